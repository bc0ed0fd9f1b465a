// Records what the reader of protobuf must know, and what it is held to.
//
//	go run ./protobuf table    field numbers and JSON names of every message
//	go run ./protobuf vectors  objects encoded by the real serializers, both ways
//	go run ./protobuf event F  the event of a pod that F holds in JSON
//
// `cargo xtask codegen records` runs it and writes crates/machinery/recorded/{messages,protobuf}.txt and
// crates/api/tests/decode/pod.pb.
package main

import (
	"fmt"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// anywhere are the group versions of kinds that every group has.
const anywhere = "*"

var roots = []struct {
	groupVersion string
	obj          runtime.Object
}{
	{"v1", &corev1.Namespace{}}, {"v1", &corev1.Node{}}, {"v1", &corev1.Pod{}}, {"v1", &corev1.Event{}},
	{"v1", &corev1.ConfigMap{}}, {"v1", &corev1.Secret{}}, {"v1", &corev1.Service{}}, {"v1", &corev1.Endpoints{}},
	{"v1", &corev1.ServiceAccount{}}, {"v1", &corev1.PersistentVolume{}}, {"v1", &corev1.PersistentVolumeClaim{}},
	{"v1", &corev1.ResourceQuota{}}, {"v1", &corev1.LimitRange{}}, {"v1", &corev1.ReplicationController{}},
	{"v1", &corev1.PodTemplate{}}, {"v1", &corev1.Binding{}}, {"v1", &metav1.Status{}},
	{"apps/v1", &appsv1.Deployment{}}, {"apps/v1", &appsv1.ReplicaSet{}}, {"apps/v1", &appsv1.StatefulSet{}},
	{"apps/v1", &appsv1.DaemonSet{}}, {"apps/v1", &appsv1.ControllerRevision{}},
	{"batch/v1", &batchv1.Job{}}, {"batch/v1", &batchv1.CronJob{}},
	{"policy/v1", &policyv1.PodDisruptionBudget{}}, {"policy/v1", &policyv1.Eviction{}},
	{"coordination.k8s.io/v1", &coordinationv1.Lease{}},
	{"events.k8s.io/v1", &eventsv1.Event{}},
	{"scheduling.k8s.io/v1", &schedulingv1.PriorityClass{}},
	{"storage.k8s.io/v1", &storagev1.StorageClass{}}, {"storage.k8s.io/v1", &storagev1.CSINode{}},
	{"storage.k8s.io/v1", &storagev1.CSIDriver{}}, {"storage.k8s.io/v1", &storagev1.VolumeAttachment{}},
	{"storage.k8s.io/v1", &storagev1.CSIStorageCapacity{}},
	{"node.k8s.io/v1", &nodev1.RuntimeClass{}},
	{"rbac.authorization.k8s.io/v1", &rbacv1.Role{}}, {"rbac.authorization.k8s.io/v1", &rbacv1.RoleBinding{}},
	{"rbac.authorization.k8s.io/v1", &rbacv1.ClusterRole{}},
	{"rbac.authorization.k8s.io/v1", &rbacv1.ClusterRoleBinding{}},
	{"autoscaling/v1", &autoscalingv1.Scale{}}, {"autoscaling/v1", &autoscalingv1.HorizontalPodAutoscaler{}},
	{"discovery.k8s.io/v1", &discoveryv1.EndpointSlice{}},
	{"networking.k8s.io/v1", &networkingv1.Ingress{}}, {"networking.k8s.io/v1", &networkingv1.IngressClass{}},
	{"networking.k8s.io/v1", &networkingv1.NetworkPolicy{}},
	{"apiextensions.k8s.io/v1", &apiextensionsv1.CustomResourceDefinition{}},
	{"authorization.k8s.io/v1", &authorizationv1.SelfSubjectAccessReview{}},
	{"authorization.k8s.io/v1", &authorizationv1.SelfSubjectRulesReview{}},
	{"authorization.k8s.io/v1", &authorizationv1.SubjectAccessReview{}},
	{"authorization.k8s.io/v1", &authorizationv1.LocalSubjectAccessReview{}},
	{"authentication.k8s.io/v1", &authenticationv1.TokenReview{}},
	{"authentication.k8s.io/v1", &authenticationv1.TokenRequest{}},
	{"authentication.k8s.io/v1", &authenticationv1.SelfSubjectReview{}},
	{"autoscaling/v2", &autoscalingv2.HorizontalPodAutoscaler{}},
	{"networking.k8s.io/v1", &networkingv1.ServiceCIDR{}}, {"networking.k8s.io/v1", &networkingv1.IPAddress{}},
	{"storage.k8s.io/v1", &storagev1.VolumeAttributesClass{}},
	{"resource.k8s.io/v1", &resourcev1.ResourceClaim{}}, {"resource.k8s.io/v1", &resourcev1.ResourceClaimTemplate{}},
	{"resource.k8s.io/v1", &resourcev1.ResourceSlice{}}, {"resource.k8s.io/v1", &resourcev1.DeviceClass{}},
	{"certificates.k8s.io/v1", &certificatesv1.CertificateSigningRequest{}},
	{"admissionregistration.k8s.io/v1", &admissionregistrationv1.ValidatingAdmissionPolicy{}},
	{"admissionregistration.k8s.io/v1", &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}},
	{anywhere, &metav1.DeleteOptions{}},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "table" {
		table(os.Stdout)
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "vectors" {
		vectors(os.Stdout)
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "event" {
		if err := event(os.Stdout, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	fmt.Fprintln(os.Stderr, "usage: go run . table|vectors|event FILE")
	os.Exit(2)
}
