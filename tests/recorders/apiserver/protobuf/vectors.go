package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler sets every field of every message once; further messages of a kind get their plain fields only, so that
// the whole stays small.
type filler struct {
	seen  map[reflect.Type]bool
	count int64
}

func (f *filler) next() int64 {
	f.count++
	return f.count
}

func (f *filler) fill(v reflect.Value, name string) {
	n := f.next()
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		*p = metav1.Unix(1700000000+n, 0)
		return
	case *metav1.MicroTime:
		*p = metav1.NewMicroTime(time.Unix(1700000000+n, n*1000))
		return
	case *resource.Quantity:
		*p = resource.MustParse(fmt.Sprintf("%dMi", n))
		return
	case *intstr.IntOrString:
		*p = intstr.FromInt32(int32(n))
		if n%2 == 0 {
			*p = intstr.FromString(fmt.Sprintf("%d%%", n))
		}
		return
	case *runtime.RawExtension:
		p.Raw = fmt.Appendf(nil, `{"raw":[%d,null,"x"]}`, n)
		return
	case *metav1.FieldsV1:
		p.Raw = fmt.Appendf(nil, `{"f:number%d":{".":{}}}`, n)
		return
	case *apiextensionsv1.JSON:
		p.Raw = fmt.Appendf(nil, `{"json":%d.5}`, n)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("%s%d", strings.ToLower(name), n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		if n%3 == 0 {
			n = -n
		}
		v.SetInt(n)
	case reflect.Float64:
		v.SetFloat(float64(n) / 4)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), name)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(fmt.Appendf(nil, "\xff%s%d", name, n))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0), name)
		f.fill(v.Index(1), name)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, "key")
			f.fill(value, name)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		first := !f.seen[v.Type()]
		f.seen[v.Type()] = true
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.Type == reflect.TypeFor[metav1.TypeMeta]() || field.Tag.Get("json") == "-" {
				continue
			}
			kind := field.Type.Kind()
			if first || kind == reflect.String || kind == reflect.Bool || kind == reflect.Int32 {
				f.fill(v.Field(i), field.Name)
			}
		}
	default:
		panic("cannot fill " + v.Type().String())
	}
}

// special are the objects a filler does not come upon.
func special() []named {
	text := func(s string) *string { return &s }
	number := func(n int32) *int32 { return &n }
	yes, no := true, false
	floats := func(f float64) *float64 { return &f }
	group := func(v string) schema.GroupVersion { return schema.GroupVersion{Group: v, Version: "v1"} }
	core, apps := group(""), group("apps")
	return []named{
		{"zero pointers are kept", apps, &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{Replicas: number(0), Paused: false},
		}},
		{"zero and unset booleans differ", core, &corev1.Pod{Spec: corev1.PodSpec{
			EnableServiceLinks: &no, HostUsers: &yes, ServiceAccountName: "",
			Containers: []corev1.Container{{Name: "", StdinOnce: true, Env: []corev1.EnvVar{{Name: "A"}}}},
		}}},
		{"negative numbers take ten bytes", core, &corev1.Event{Count: -7, Type: "Normal"}},
		{"the smallest and largest", core, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: -1 << 63},
			Status: corev1.PodStatus{ObservedGeneration: 1<<63 - 1}}},
		{"before the epoch", core, &corev1.Event{
			FirstTimestamp: metav1.Unix(-1, 0), EventTime: metav1.NewMicroTime(time.Unix(-2, 999999000)),
		}},
		{"the year one is no time", core, &corev1.Event{LastTimestamp: metav1.Time{}}},
		{"values that are empty", core, &corev1.ConfigMap{
			Data: map[string]string{"a": "", "": "b"}, BinaryData: map[string][]byte{"c": {}, "d": {0, 255}},
		}},
		{"text beyond ASCII", core, &corev1.Secret{
			StringData: map[string]string{"ß": "日本 \u0000 \"\\"}, Data: map[string][]byte{"k": []byte("☃")},
		}},
		{"amounts as they are written", core, &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("2Gi"),
				"pods": resource.MustParse("0"), "x": resource.MustParse("1e3")},
		}}},
		{"a number or a name", group("policy"), &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &intstr.IntOrString{}, MaxUnavailable: &intstr.IntOrString{Type: intstr.String, StrVal: "50%"},
		}}},
		{"an eviction", group("policy"), &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"},
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64), DryRun: []string{"All"},
				Preconditions: &metav1.Preconditions{ResourceVersion: text("")}},
		}},
		{"schemas that are no schemas", group("apiextensions.k8s.io"), &apiextensionsv1.CustomResourceDefinition{
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1",
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Maximum: floats(2), Minimum: floats(-0.25), MultipleOf: floats(0),
						AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true},
						AdditionalItems:      &apiextensionsv1.JSONSchemaPropsOrBool{Allows: false},
						Items: &apiextensionsv1.JSONSchemaPropsOrArray{
							Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
						Default: &apiextensionsv1.JSON{Raw: []byte(`0`)},
						Enum:    []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}, {Raw: []byte(`null`)}},
						Dependencies: apiextensionsv1.JSONSchemaDependencies{
							"a": {Property: []string{"b"}}, "c": {Schema: &apiextensionsv1.JSONSchemaProps{}},
						},
						Properties: map[string]apiextensionsv1.JSONSchemaProps{"p": {
							AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{
								Schema: &apiextensionsv1.JSONSchemaProps{Type: "integer"}},
							Items: &apiextensionsv1.JSONSchemaPropsOrArray{
								JSONSchemas: []apiextensionsv1.JSONSchemaProps{{}, {Type: "number"}}},
						}},
					}},
				}},
			},
		}},
	}
}

type named struct {
	name         string
	groupVersion schema.GroupVersion
	obj          runtime.Object
}

func vectors(out io.Writer) {
	f := filler{seen: map[reflect.Type]bool{}}
	var all []named
	for _, r := range roots {
		gv, err := schema.ParseGroupVersion(strings.Replace(r.groupVersion, anywhere, "policy/v1", 1))
		check(err)
		t := reflect.TypeOf(r.obj).Elem()
		empty := reflect.New(t).Interface().(runtime.Object)
		all = append(all, named{"empty " + t.Name(), gv, empty})
		f.fill(reflect.ValueOf(r.obj).Elem(), t.Name())
		all = append(all, named{"full " + t.Name(), gv, r.obj})
	}
	all = append(all, special()...)
	wire := protobuf.NewSerializer(nil, nil)
	text := json.NewSerializerWithOptions(json.DefaultMetaFactory, nil, nil, json.SerializerOptions{})
	for _, n := range all {
		n.obj.GetObjectKind().SetGroupVersionKind(n.groupVersion.WithKind(reflect.TypeOf(n.obj).Elem().Name()))
		var w, t bytes.Buffer
		check(wire.Encode(n.obj, &w))
		check(text.Encode(n.obj, &t))
		encoded := base64.StdEncoding.EncodeToString(w.Bytes())
		fmt.Fprintf(out, "%s\t%s\t%s\n", n.name, encoded, strings.TrimSpace(t.String()))
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
