package main

import (
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// forms are the messages whose JSON is not an object of their fields.
var forms = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():          "time Time 1:seconds!int64 2:nanos!int32",
	reflect.TypeFor[metav1.MicroTime]():     "micro MicroTime 1:seconds!int64 2:nanos!int32",
	reflect.TypeFor[resource.Quantity]():    "text Quantity 1:string!string=String_",
	reflect.TypeFor[intstr.IntOrString]():   "either IntOrString 1:type!int64 2:intVal!int32 3:strVal!string",
	reflect.TypeFor[runtime.RawExtension](): "raw RawExtension 1:raw!json",
	reflect.TypeFor[metav1.FieldsV1]():      "raw FieldsV1 1:raw!json",
	reflect.TypeFor[apiextensionsv1.JSON](): "raw JSON 1:raw!json",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray](): "first JSONSchemaPropsOrArray " +
		"2:items![]JSONSchemaProps=JSONSchemas 1:schema?*JSONSchemaProps",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](): "first JSONSchemaPropsOrBool " +
		"2:schema?*JSONSchemaProps 1:allows!bool",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "first JSONSchemaPropsOrStringArray " +
		"2:items![]string=Property 1:schema?*JSONSchemaProps",
}

var (
	names = map[reflect.Type]string{}
	taken = map[string]bool{}
	order []reflect.Type
)

// name names a message. Two groups may have a kind of the same name: the later one is preceded by its group,
// which in Go is a lower case word.
func name(t reflect.Type) string {
	if n, ok := names[t]; ok {
		return n
	}
	parts := strings.Split(t.PkgPath(), "/")
	n := t.Name()
	if taken[n] {
		n = parts[len(parts)-2] + n
	}
	if taken[n] {
		panic("name taken twice: " + n)
	}
	taken[n] = true
	names[t] = n
	order = append(order, t)
	return n
}

type message interface{ Unmarshal([]byte) error }

func ref(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + ref(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		// A named list that is a message of its own.
		if t.Name() != "" && reflect.PointerTo(t).Implements(reflect.TypeFor[message]()) {
			return name(t)
		}
		return "[]" + ref(t.Elem())
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic("map with a key that is no string: " + t.String())
		}
		return "{}" + ref(t.Elem())
	case reflect.Struct:
		return name(t)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	}
	panic("unknown type " + t.String())
}

func line(t reflect.Type) string {
	if form, ok := forms[t]; ok {
		return "form " + form
	}
	if t.Kind() == reflect.Slice {
		return fmt.Sprintf("form first %s 1:items![]%s", names[t], ref(t.Elem()))
	}
	words := []string{"type", names[t]}
	for i := range t.NumField() {
		f := t.Field(i)
		wire := f.Tag.Get("protobuf")
		if wire == "" {
			if f.Name != "TypeMeta" && f.Tag.Get("json") != "-" {
				panic("no field number: " + t.String() + "." + f.Name)
			}
			continue
		}
		number := strings.Split(wire, ",")[1]
		tag := strings.Split(f.Tag.Get("json"), ",")
		mark := "!"
		for _, option := range tag[1:] {
			switch option {
			case "omitempty":
				if mark == "!" {
					mark = "?"
				}
			case "omitzero":
				mark = "~"
			}
		}
		word := number + ":" + tag[0] + mark + ref(f.Type)
		if tag[0] == "" || strings.ToUpper(tag[0][:1])+tag[0][1:] != f.Name {
			word += "=" + f.Name
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func table(out io.Writer) {
	for _, r := range roots {
		t := reflect.TypeOf(r.obj).Elem()
		fmt.Fprintf(out, "root %s/%s %s\n", r.groupVersion, t.Name(), name(t))
	}
	// Behind forms are messages, too.
	name(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
	var lines []string
	for i := 0; i < len(order); i++ {
		lines = append(lines, line(order[i]))
	}
	sort.Strings(lines)
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
}
