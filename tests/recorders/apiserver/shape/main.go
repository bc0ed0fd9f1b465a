// Records the wire shape of the types an API server stores: which fields exist, what they hold and when the
// encoder leaves them out. `cargo xtask codegen records` runs it and writes crates/apiserver/recorded/types.txt.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var roots = []struct {
	group string
	obj   any
}{
	{"", corev1.Namespace{}}, {"", corev1.Node{}}, {"", corev1.Pod{}}, {"", corev1.Event{}}, {"", corev1.ConfigMap{}},
	{"", corev1.Secret{}}, {"", corev1.Service{}}, {"", corev1.Endpoints{}}, {"", corev1.ServiceAccount{}},
	{"", corev1.PersistentVolume{}}, {"", corev1.PersistentVolumeClaim{}}, {"", corev1.ResourceQuota{}},
	{"", corev1.LimitRange{}}, {"", corev1.ReplicationController{}}, {"", corev1.PodTemplate{}}, {"", corev1.Binding{}},
	{"apps", appsv1.Deployment{}}, {"apps", appsv1.ReplicaSet{}}, {"apps", appsv1.StatefulSet{}},
	{"apps", appsv1.DaemonSet{}}, {"apps", appsv1.ControllerRevision{}},
	{"batch", batchv1.Job{}}, {"batch", batchv1.CronJob{}},
	{"policy", policyv1.PodDisruptionBudget{}}, {"policy", policyv1.Eviction{}},
	{"coordination.k8s.io", coordinationv1.Lease{}},
	{"events.k8s.io", eventsv1.Event{}},
	{"scheduling.k8s.io", schedulingv1.PriorityClass{}},
	{"storage.k8s.io", storagev1.StorageClass{}}, {"storage.k8s.io", storagev1.CSINode{}},
	{"storage.k8s.io", storagev1.CSIDriver{}}, {"storage.k8s.io", storagev1.VolumeAttachment{}},
	{"storage.k8s.io", storagev1.CSIStorageCapacity{}},
	{"node.k8s.io", nodev1.RuntimeClass{}},
	{"rbac.authorization.k8s.io", rbacv1.Role{}}, {"rbac.authorization.k8s.io", rbacv1.RoleBinding{}},
	{"rbac.authorization.k8s.io", rbacv1.ClusterRole{}}, {"rbac.authorization.k8s.io", rbacv1.ClusterRoleBinding{}},
	{"autoscaling", autoscalingv1.Scale{}}, {"autoscaling", autoscalingv1.HorizontalPodAutoscaler{}},
	{"discovery.k8s.io", discoveryv1.EndpointSlice{}},
	{"networking.k8s.io", networkingv1.Ingress{}}, {"networking.k8s.io", networkingv1.NetworkPolicy{}},
	{"apiextensions.k8s.io", apiextensionsv1.CustomResourceDefinition{}},
	{"authorization.k8s.io", authorizationv1.SelfSubjectAccessReview{}},
	{"autoscaling/v2", autoscalingv2.HorizontalPodAutoscaler{}},
	{"networking.k8s.io", networkingv1.ServiceCIDR{}}, {"networking.k8s.io", networkingv1.IPAddress{}},
	{"storage.k8s.io", storagev1.VolumeAttributesClass{}},
	{"resource.k8s.io", resourcev1.ResourceClaim{}}, {"resource.k8s.io", resourcev1.ResourceClaimTemplate{}},
	{"resource.k8s.io", resourcev1.ResourceSlice{}}, {"resource.k8s.io", resourcev1.DeviceClass{}},
	{"certificates.k8s.io", certificatesv1.CertificateSigningRequest{}},
	{"admissionregistration.k8s.io", admissionregistrationv1.ValidatingAdmissionPolicy{}},
	{"admissionregistration.k8s.io", admissionregistrationv1.ValidatingAdmissionPolicyBinding{}},
}

// special are the types with an encoding of their own.
var special = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):                                  "time",
	reflect.TypeOf(metav1.MicroTime{}):                             "microtime",
	reflect.TypeOf(metav1.Duration{}):                              "string",
	reflect.TypeOf(resource.Quantity{}):                            "quantity",
	reflect.TypeOf(intstr.IntOrString{}):                           "intorstring",
	reflect.TypeOf(runtime.RawExtension{}):                         "raw",
	reflect.TypeOf(metav1.FieldsV1{}):                              "raw",
	reflect.TypeOf(apiextensionsv1.JSON{}):                         "raw",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrArray{}):       "schemaor",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrBool{}):        "schemaor",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrStringArray{}): "schemaor",
}

var (
	names = map[reflect.Type]string{}
	taken = map[string]bool{}
	order []reflect.Type
)

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

func ref(t reflect.Type) string {
	if s, ok := special[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + ref(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + ref(t.Elem())
	case reflect.Map:
		return "{}" + ref(t.Elem())
	case reflect.Struct:
		return name(t)
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Float64:
		return "float"
	}
	panic("unknown type " + t.String())
}

func fields(t reflect.Type, out *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "-" || !f.IsExported() {
			continue
		}
		if tag[0] == "" { // embedded
			fields(f.Type, out)
			continue
		}
		mark := "!"
		for _, o := range tag[1:] {
			switch o {
			case "omitempty":
				if mark == "!" {
					mark = "?"
				}
			case "omitzero":
				mark = "~"
			case "inline":
				mark = "inline"
			}
		}
		if mark == "inline" {
			fields(f.Type, out)
			continue
		}
		*out = append(*out, tag[0]+mark+ref(f.Type))
	}
}

func main() {
	var out strings.Builder
	for _, r := range roots {
		t := reflect.TypeOf(r.obj)
		fmt.Fprintf(&out, "root %s/%s %s\n", r.group, t.Name(), name(t))
	}
	var lines []string
	for i := 0; i < len(order); i++ {
		var f []string
		fields(order[i], &f)
		lines = append(lines, fmt.Sprintf("type %s %s", names[order[i]], strings.Join(f, " ")))
	}
	sort.Strings(lines)
	for _, l := range lines {
		fmt.Fprintln(&out, l)
	}
	os.Stdout.WriteString(out.String())
}
