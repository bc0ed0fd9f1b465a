package main

import (
	"fmt"
	"math/rand"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helper "k8s.io/component-helpers/resource"
)

// podRow is a pod and its totals under several sets of options. Totals equal to Requests (or Limits) are left out.
type podRow struct {
	Why      string            `json:"why,omitempty"`
	Pod      leanPod           `json:"pod"`
	Requests map[string]string `json:"requests"`
	Limits   map[string]string `json:"limits"`
	// status resources of containers, but not of the pod as a whole
	Containers map[string]string `json:"containerStatus,omitempty"`
	// nothing from the status
	Spec       map[string]string `json:"spec,omitempty"`
	SpecLimits map[string]string `json:"specLimits,omitempty"`
	// neither pod-level resources nor overhead
	Bare map[string]string `json:"bare,omitempty"`
	// cpu in milli and memory in bytes with the scheduler's defaults for what nobody asked for
	NonZero [2]int64 `json:"nonZero"`
}

type leanPod struct {
	Spec   leanSpec   `json:"spec"`
	Status leanStatus `json:"status,omitzero"`
}

type leanSpec struct {
	Containers     []leanContainer          `json:"containers"`
	InitContainers []leanContainer          `json:"initContainers,omitempty"`
	Resources      *v1.ResourceRequirements `json:"resources,omitempty"`
	Overhead       v1.ResourceList          `json:"overhead,omitempty"`
}

type leanContainer struct {
	Name          string                     `json:"name"`
	Resources     v1.ResourceRequirements    `json:"resources,omitzero"`
	RestartPolicy *v1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`
}

type leanStatus struct {
	ContainerStatuses     []leanContainerStatus    `json:"containerStatuses,omitempty"`
	InitContainerStatuses []leanContainerStatus    `json:"initContainerStatuses,omitempty"`
	Conditions            []leanCondition          `json:"conditions,omitempty"`
	Resources             *v1.ResourceRequirements `json:"resources,omitempty"`
	AllocatedResources    v1.ResourceList          `json:"allocatedResources,omitempty"`
}

type leanContainerStatus struct {
	Name               string                   `json:"name"`
	Resources          *v1.ResourceRequirements `json:"resources,omitempty"`
	AllocatedResources v1.ResourceList          `json:"allocatedResources,omitempty"`
}

type leanCondition struct {
	Type   v1.PodConditionType `json:"type"`
	Status string              `json:"status"`
	Reason string              `json:"reason,omitempty"`
}

func (p leanPod) full() *v1.Pod {
	pod := &v1.Pod{}
	pod.Spec.Resources, pod.Spec.Overhead = p.Spec.Resources, p.Spec.Overhead
	for _, c := range p.Spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c.Name, Resources: c.Resources})
	}
	for _, c := range p.Spec.InitContainers {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	for _, s := range p.Status.ContainerStatuses {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources})
	}
	for _, s := range p.Status.InitContainerStatuses {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, v1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources})
	}
	for _, c := range p.Status.Conditions {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: c.Type, Status: v1.ConditionStatus(c.Status), Reason: c.Reason})
	}
	pod.Status.Resources, pod.Status.AllocatedResources = p.Status.Resources, p.Status.AllocatedResources
	return pod
}

func podResources() []section {
	var out []podRow
	for _, c := range writtenPods() {
		out = append(out, podTotals(c.why, build(c.parts...)))
	}
	random := rand.New(rand.NewSource(1))
	var drawn []podRow
	for range 200 {
		drawn = append(drawn, podTotals("", drawPod(random)))
	}
	return []section{{"written", rows(out)}, {"drawn", rows(drawn)}}
}

func podTotals(why string, lean leanPod) podRow {
	full := helper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	requests := helper.PodRequests(lean.full(), full)
	row := podRow{Why: why, Pod: lean, Requests: text(requests), Limits: text(helper.PodLimits(lean.full(), full))}
	row.Containers = unless(row.Requests, text(helper.PodRequests(lean.full(), helper.PodResourcesOptions{UseStatusResources: true})))
	row.Spec = unless(row.Requests, text(helper.PodRequests(lean.full(), helper.PodResourcesOptions{})))
	row.SpecLimits = unless(row.Limits, text(helper.PodLimits(lean.full(), helper.PodResourcesOptions{})))
	bare := full
	bare.SkipPodLevelResources, bare.ExcludeOverhead = true, true
	row.Bare = unless(row.Requests, text(helper.PodRequests(lean.full(), bare)))

	// The scheduler fills in what is missing per container, unless the pod as a whole asks for it.
	fill := v1.ResourceList{}
	levelled := helper.IsPodLevelRequestsSet(lean.full())
	if _, asked := requests[v1.ResourceCPU]; !levelled || !asked {
		fill[v1.ResourceCPU] = *resource.NewMilliQuantity(100, resource.DecimalSI)
	}
	if _, asked := requests[v1.ResourceMemory]; !levelled || !asked {
		fill[v1.ResourceMemory] = *resource.NewQuantity(200<<20, resource.DecimalSI)
	}
	full.NonMissingContainerRequests = fill
	filled := helper.PodRequests(lean.full(), full)
	row.NonZero = [2]int64{filled.Cpu().MilliValue(), filled.Memory().Value()}
	return row
}

func text(list v1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		number, suffix := q.CanonicalizeBytes(nil)
		out[string(name)] = string(number) + string(suffix)
	}
	return out
}

// unless drops what repeats the main answer. An empty answer that differs is kept as an explicit marker.
func unless(same, got map[string]string) map[string]string {
	if fmt.Sprint(same) == fmt.Sprint(got) {
		return nil
	}
	if len(got) == 0 {
		return map[string]string{"": ""}
	}
	return got
}

// list reads "cpu=1,memory=1Gi"; short names keep the table below narrow.
func list(s string) v1.ResourceList {
	if s == "" {
		return nil
	}
	names := map[string]v1.ResourceName{
		"c": v1.ResourceCPU, "m": v1.ResourceMemory, "e": v1.ResourceEphemeralStorage, "g": "example.com/gpu", "h": "hugepages-2Mi",
	}
	out := v1.ResourceList{}
	for _, pair := range strings.Split(s, ",") {
		name, amount, _ := strings.Cut(pair, "=")
		out[names[name]] = resource.MustParse(amount)
	}
	return out
}

func requirements(s string) v1.ResourceRequirements {
	requests, limits, _ := strings.Cut(s, "/")
	return v1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
}

type part func(*leanPod)

// run adds a container, start one that runs before, side one that keeps running beside: "requests/limits".
func run(s string) part {
	return func(p *leanPod) {
		name := fmt.Sprintf("c%d", len(p.Spec.Containers))
		p.Spec.Containers = append(p.Spec.Containers, leanContainer{Name: name, Resources: requirements(s)})
	}
}

func start(s string) part {
	return func(p *leanPod) {
		name := fmt.Sprintf("i%d", len(p.Spec.InitContainers))
		p.Spec.InitContainers = append(p.Spec.InitContainers, leanContainer{Name: name, Resources: requirements(s)})
	}
}

func side(s string) part {
	return func(p *leanPod) {
		name := fmt.Sprintf("i%d", len(p.Spec.InitContainers))
		always := v1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = append(p.Spec.InitContainers, leanContainer{Name: name, Resources: requirements(s), RestartPolicy: &always})
	}
}

func again(policy v1.ContainerRestartPolicy, s string) part {
	return func(p *leanPod) {
		name := fmt.Sprintf("i%d", len(p.Spec.InitContainers))
		p.Spec.InitContainers = append(p.Spec.InitContainers, leanContainer{Name: name, Resources: requirements(s), RestartPolicy: &policy})
	}
}

func whole(s string) part {
	return func(p *leanPod) { r := requirements(s); p.Spec.Resources = &r }
}

func over(s string) part { return func(p *leanPod) { p.Spec.Overhead = list(s) } }

// has reports what a container really has, and got what it was granted.
func has(name, actual, granted string) part {
	return func(p *leanPod) {
		r := requirements(actual)
		s := leanContainerStatus{Name: name, Resources: &r, AllocatedResources: list(granted)}
		if strings.HasPrefix(name, "i") {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, s)
		} else {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, s)
		}
	}
}

func granted(name, amount string) part {
	return func(p *leanPod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, leanContainerStatus{Name: name, AllocatedResources: list(amount)})
	}
}

func podHas(actual, granted string) part {
	return func(p *leanPod) {
		r := requirements(actual)
		p.Status.Resources, p.Status.AllocatedResources = &r, list(granted)
	}
}

func pending(reason string) part {
	return func(p *leanPod) {
		p.Status.Conditions = append(p.Status.Conditions, leanCondition{v1.PodResizePending, "True", reason})
	}
}

func condition(kind, reason string) part {
	return func(p *leanPod) {
		p.Status.Conditions = append(p.Status.Conditions, leanCondition{v1.PodConditionType(kind), "True", reason})
	}
}

func build(parts ...part) leanPod {
	p := leanPod{Spec: leanSpec{Containers: []leanContainer{}}}
	for _, f := range parts {
		f(&p)
	}
	return p
}

type writtenPod struct {
	why   string
	parts []part
}

func writtenPods() []writtenPod {
	w := func(why string, parts ...part) writtenPod { return writtenPod{why, parts} }
	return []writtenPod{
		w("no containers"),
		w("nothing asked", run("")),
		w("two that ask for nothing", run(""), run("")),
		w("one container", run("c=1,m=1Gi")),
		w("requests and limits", run("c=100m,m=64Mi/c=1,m=1Gi")),
		w("limits alone", run("/c=1,m=1Gi")),
		w("containers add up", run("c=100m,m=64Mi"), run("c=250m,m=1Gi"), run("c=1")),
		w("formats mix", run("c=0.5,m=1G"), run("c=500m,m=1Gi")),
		w("zero is asked, not missing", run("c=0,m=0")),
		w("zero first takes the format of the next", run("m=0"), run("m=1Gi")),
		w("fractions of a milli round up", run("c=100u"), run("c=1n")),
		w("extended resources", run("c=1,g=1"), run("g=2/g=2")),
		w("ephemeral storage", run("e=1Gi/e=2Gi"), run("e=500M")),
		w("huge pages", run("h=64Mi/h=64Mi,c=1")),
		w("a small init container hides", run("c=1,m=1Gi"), start("c=100m,m=10Mi")),
		w("a large init container rules", run("c=1,m=1Gi"), start("c=2,m=10Mi")),
		w("init containers do not add up", run("c=1"), start("c=2"), start("c=3"), start("c=1")),
		w("per resource maximum", run("c=2,m=1Gi"), start("c=1,m=4Gi"), start("c=3")),
		w("a tie keeps the containers' style", run("m=1Gi"), start("m=1073741824")),
		w("init container asks for what no container does", run("c=1"), start("g=1,e=1Gi")),
		w("init limits", run("/c=1"), start("/c=2,m=1Gi")),
		w("a sidecar adds", run("c=1,m=1Gi"), side("c=100m,m=64Mi")),
		w("sidecar before init container counts with it", run("c=100m"), side("c=1"), start("c=2")),
		w("sidecar after init container does not", run("c=100m"), start("c=2"), side("c=1")),
		w("two sidecars around an init container", run("c=1"), side("c=500m"), start("c=2"), side("c=250m"), start("c=2")),
		w("sidecars alone", side("c=1"), side("c=2")),
		w("sidecar limits", run("/c=1,m=1Gi"), side("/c=1"), start("/c=3,m=100Mi")),
		w("restart policy Never is an ordinary init container", run("c=1"), again(v1.ContainerRestartPolicyNever, "c=2")),
		w("restart policy OnFailure too", run("c=1"), again(v1.ContainerRestartPolicyOnFailure, "c=2"), start("c=500m")),
		w("sidecar that asks for nothing", run("c=1"), side(""), start("c=500m")),
		w("overhead adds to requests", run("c=1,m=1Gi"), over("c=250m,m=120Mi")),
		w("overhead adds what nobody asked for", run("c=1"), over("m=120Mi")),
		w("overhead adds to limits only where set", run("c=1/c=2"), over("c=250m,m=120Mi")),
		w("overhead does not touch a zero limit", run("/c=0,m=1Gi"), over("c=250m,m=1Mi")),
		w("overhead after the init maximum", run("c=1"), start("c=2"), over("c=1")),
		w("overhead without containers", over("c=1")),
		w("pod level replaces", run("c=1,m=1Gi"), whole("c=4,m=8Gi")),
		w("pod level replaces downwards too", run("c=4,m=8Gi"), whole("c=1,m=1Gi")),
		w("pod level for one resource", run("c=1,m=1Gi"), whole("c=4")),
		w("pod level without container requests", run(""), run(""), whole("c=4,m=8Gi")),
		w("pod level with overhead", run("c=1"), whole("c=2,m=1Gi"), over("c=100m,m=50Mi,e=1Gi")),
		w("pod level over init and sidecars", run("c=1"), side("c=1"), start("c=5"), whole("c=3")),
		w("pod level limits alone", run("c=1/c=2"), whole("/c=4,m=4Gi")),
		w("pod level requests and limits", run("c=1/c=2,e=1Gi"), whole("c=2/c=4,m=4Gi")),
		w("pod level huge pages", run("h=64Mi"), whole("h=128Mi,c=1")),
		w("pod level does not know ephemeral storage", run("e=1Gi,c=1"), whole("e=5Gi")),
		w("pod level does not know extended resources", run("g=1"), whole("g=5,c=1")),
		w("pod level empty", run("c=1"), whole("")),
		w("resize: status equals spec", run("c=1"), has("c0", "c=1", "c=1")),
		w("resize up: spec is largest", run("c=2,m=2Gi"), has("c0", "c=1,m=1Gi", "c=1,m=1Gi")),
		w("resize down: actual is largest", run("c=1"), has("c0", "c=3", "c=2")),
		w("resize: granted is largest", run("c=1"), has("c0", "c=2", "c=4")),
		w("resize: per resource", run("c=1,m=4Gi"), has("c0", "c=3,m=1Gi", "c=2,m=2Gi")),
		w("resize: granted without actual is ignored", run("c=1"), granted("c0", "c=4")),
		w("resize infeasible: spec does not count", run("c=8,m=8Gi"), has("c0", "c=1,m=1Gi", "c=2,m=1Gi"), pending("Infeasible")),
		w("resize deferred: spec counts", run("c=8"), has("c0", "c=1", "c=1"), pending("Deferred")),
		w("resize pending without reason", run("c=8"), has("c0", "c=1", "c=1"), pending("")),
		w("resize in progress: spec counts", run("c=8"), has("c0", "c=1", "c=1"), condition("PodResizeInProgress", "Infeasible")),
		w("first pending condition decides", run("c=8"), has("c0", "c=1", "c=1"), pending("Deferred"), pending("Infeasible")),
		w("infeasible, yet nothing reported", run("c=8"), pending("Infeasible")),
		w("infeasible with empty report", run("c=8"), has("c0", "", ""), pending("Infeasible")),
		w("resize limits: spec or actual", run("/c=2,m=1Gi"), has("c0", "/c=1,m=3Gi", "")),
		w("resize limits infeasible: actual", run("/c=8,m=1Gi"), has("c0", "/c=1", ""), pending("Infeasible")),
		w("status of another container", run("c=1"), has("c9", "c=8", "c=8")),
		w("status of a sidecar counts", run("c=1"), side("c=1"), has("i0", "c=3", "c=2")),
		w("status of an init container does not", run("c=1"), start("c=1"), has("i0", "c=3", "c=2")),
		w("sidecar infeasible", run("c=1"), side("c=9"), has("i0", "c=3", "c=2"), pending("Infeasible")),
		w("sidecar limits from status", run("/c=1"), side("/c=1"), has("i0", "/c=3", "")),
		w("pod level resize up", run("c=1"), whole("c=4"), podHas("c=2", "c=2")),
		w("pod level resize down", run("c=1"), whole("c=2"), podHas("c=4", "c=3")),
		w("pod level infeasible", run("c=1"), whole("c=8"), podHas("c=2", "c=3"), pending("Infeasible")),
		w("pod level infeasible with empty report", run("c=1"), whole("c=8,m=1Gi"), podHas("", ""), pending("Infeasible"), over("m=1Mi")),
		w("pod level limits resize", run("c=1"), whole("/c=2,m=1Gi"), podHas("/c=4", "")),
		w("pod level limits infeasible", run("c=1"), whole("/c=2,m=1Gi"), podHas("/c=4", ""), pending("Infeasible")),
		w("pod status without pod level spec", run("c=1"), podHas("c=4", "c=4")),
		w("granted to the pod without actual", run("c=1"), whole("c=2"), func(p *leanPod) { p.Status.AllocatedResources = list("c=9") }),
		w("everything at once", run("c=1,m=1Gi/c=2"), run("c=500m"), side("c=250m,m=32Mi"), start("c=3,e=1Gi"), whole("c=3/c=6"), over("c=100m,m=20Mi"), has("c0", "c=2,m=2Gi/c=3", "c=2"), has("i0", "c=1", "m=64Mi"), podHas("c=5", "c=4")),
	}
}

// drawPod makes a pod by chance, from few amounts so that ties and zeros are common.
func drawPod(r *rand.Rand) leanPod {
	amounts := map[string][]string{
		"c": {"0", "1m", "100m", "250m", "1", "1.5", "2", "4"},
		"m": {"0", "1", "64Mi", "100M", "1Gi", "1500Mi", "2G"},
		"e": {"0", "1Gi", "500M"},
		"g": {"0", "1", "2"},
		"h": {"2Mi", "64Mi"},
	}
	draw := func() string {
		var out []string
		for _, name := range []string{"c", "m", "e", "g", "h"} {
			odds := 2
			if name != "c" && name != "m" {
				odds = 8
			}
			if r.Intn(odds) == 0 {
				out = append(out, name+"="+amounts[name][r.Intn(len(amounts[name]))])
			}
		}
		return strings.Join(out, ",")
	}
	both := func() string {
		if r.Intn(3) == 0 {
			return draw() + "/" + draw()
		}
		return draw()
	}
	var parts []part
	containers := r.Intn(3)
	for range containers {
		parts = append(parts, run(both()))
	}
	inits := r.Intn(4)
	for range inits {
		if r.Intn(2) == 0 {
			parts = append(parts, side(both()))
		} else {
			parts = append(parts, start(both()))
		}
	}
	if r.Intn(3) == 0 {
		parts = append(parts, whole(both()))
		if r.Intn(2) == 0 {
			parts = append(parts, podHas(both(), draw()))
		}
	}
	if r.Intn(4) == 0 {
		parts = append(parts, over(draw()))
	}
	if r.Intn(2) == 0 {
		for i := range containers {
			if r.Intn(2) == 0 {
				parts = append(parts, has(fmt.Sprintf("c%d", i), both(), draw()))
			}
		}
		for i := range inits {
			if r.Intn(2) == 0 {
				parts = append(parts, has(fmt.Sprintf("i%d", i), both(), draw()))
			}
		}
		if r.Intn(3) == 0 {
			parts = append(parts, pending([]string{"Infeasible", "Deferred"}[r.Intn(2)]))
		}
	}
	return build(parts...)
}
