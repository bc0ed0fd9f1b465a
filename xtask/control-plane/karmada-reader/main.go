// Command karmada-reader prints the bindings of a hub as Karmada's own client
// library reads them, as JSON: what its controllers, dashboards and everybody
// else who uses that library would go by. What the library has no field for, or
// of another type, is listed; a client that is not strict would pass over it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"

	policyv1alpha1 "github.com/karmada-io/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-io/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-io/karmada/pkg/generated/clientset/versioned"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	strict "sigs.k8s.io/json"
)

// appliedPlacement is the annotation with the placement of the last division.
const appliedPlacement = "policy.karmada.io/applied-placement"

// Read is one binding.
type Read struct {
	Name               string                       `json:"name"`
	Clusters           []workv1alpha2.TargetCluster `json:"clusters"`
	Scheduled          *metav1.Condition            `json:"scheduled"`
	ObservedGeneration int64                        `json:"observedGeneration"`
	ObservedAffinity   string                       `json:"observedAffinity"`
	HasTime            bool                         `json:"hasTime"`
	// Is the placement it was last divided by the one it has?
	Applied bool `json:"applied"`
}

// Answer is all of them.
type Answer struct {
	Bindings []Read `json:"bindings"`
	// What a strict reader finds wrong.
	Problems []string `json:"problems"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the hub")
	namespace := flag.String("namespace", "default", "whose bindings are read")
	flag.Parse()
	answer, err := read(*kubeconfig, *namespace)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(kubeconfig, namespace string) (*Answer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	list, err := client.WorkV1alpha2().ResourceBindings(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	answer := &Answer{Bindings: []Read{}, Problems: []string{}}
	for i := range list.Items {
		one := &list.Items[i]
		applied := policyv1alpha1.Placement{}
		text := one.Annotations[appliedPlacement]
		same := false
		if text != "" {
			answer.check(one.Name+": "+appliedPlacement, []byte(text), &applied)
			same = one.Spec.Placement != nil && reflect.DeepEqual(applied, *one.Spec.Placement)
		}
		answer.Bindings = append(answer.Bindings, Read{
			Name:               one.Name,
			Clusters:           one.Spec.Clusters,
			Scheduled:          meta.FindStatusCondition(one.Status.Conditions, workv1alpha2.Scheduled),
			ObservedGeneration: one.Status.SchedulerObservedGeneration,
			ObservedAffinity:   one.Status.SchedulerObservedAffinityName,
			HasTime:            one.Status.LastScheduledTime != nil,
			Applied:            same,
		})
	}
	raw, err := client.WorkV1alpha2().RESTClient().Get().Namespace(namespace).Resource("resourcebindings").Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	answer.check("the list", raw, &workv1alpha2.ResourceBindingList{})
	return answer, nil
}

// check notes what a strict reader finds wrong with a text.
func (a *Answer) check(what string, text []byte, into any) {
	problems, err := strict.UnmarshalStrict(text, into)
	if err != nil {
		problems = append(problems, err)
	}
	for _, problem := range problems {
		a.Problems = append(a.Problems, what+": "+problem.Error())
	}
}
