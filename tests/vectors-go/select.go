package main

import (
	"math/rand"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// bits writes one digit per tried object: 1 matched, 0 did not, e could not be told.
func bits[T any](tried []T, f func(T) byte) string {
	out := make([]byte, len(tried))
	for i, t := range tried {
		out[i] = f(t)
	}
	return string(out)
}

func bit(b bool) byte {
	if b {
		return '1'
	}
	return '0'
}

type selectorRow struct {
	In    string `json:"in"`
	Ok    bool   `json:"ok"`
	Out   string `json:"out,omitempty"`
	Match string `json:"match,omitempty"`
	Err   string `json:"err,omitempty"`
}

type structuredRow struct {
	Selector *metav1.LabelSelector `json:"selector"`
	Ok       bool                  `json:"ok"`
	Out      string                `json:"out,omitempty"`
	Match    string                `json:"match,omitempty"`
}

func labelSelectors() []section {
	sets := []labels.Set{
		{},
		{"a": "b"},
		{"a": "c", "x": "y"},
		{"a": "", "n": "5"},
		{"app.kubernetes.io/name": "web", "tier": "front", "n": "10"},
		{"in": "notin", "notin": "in", "n": "abc"},
		{"a": "x", "b": "y", "c": "z", "n": "-3"},
		{"A": "B", "n": "9223372036854775808", "x": "1.5"},
	}
	var parsed []selectorRow
	seen := map[string]bool{}
	for _, in := range selectorStrings() {
		if seen[in] {
			continue
		}
		seen[in] = true
		s, err := labels.Parse(in)
		row := selectorRow{In: in, Ok: err == nil}
		if err == nil {
			row.Out = s.String()
			row.Match = bits(sets, func(l labels.Set) byte { return bit(s.Matches(l)) })
		} else {
			row.Err = err.Error()
		}
		parsed = append(parsed, row)
	}
	var structured []structuredRow
	for _, ls := range selectorObjects() {
		s, err := metav1.LabelSelectorAsSelector(ls)
		row := structuredRow{Selector: ls, Ok: err == nil}
		if err == nil {
			row.Out = s.String()
			row.Match = bits(sets, func(l labels.Set) byte { return bit(s.Matches(l)) })
		}
		structured = append(structured, row)
	}
	return []section{{"labels", rows(sets)}, {"parsed", rows(parsed)}, {"structured", rows(structured)}}
}

func selectorStrings() []string {
	long := strings.Repeat("a", 63)
	out := []string{
		"", " ", "\t\n\r ", "a", "!a", "! a", " ! a ", "a=b", "a==b", "a!=b", "a = b", " a  ==  b ", "a=", "a==", "a!=", "a=,x=y", "a,x", "a , x", "a=b,x!=y", "x=y,a=c",
		"a in (b)", "a in (b,c)", "a in ( b , c )", "a in(b)", "a in (c,b,c)", "a notin (b)", "a notin (b,c)", "a notin(b),x", "a in ()", "a notin ()", "a in (,)", "a in (,b)", "a in (b,)", "a in (b,,c)", "a in (,,)",
		"a in (in)", "in in (in)", "in", "notin", "!in", "in=notin", "notin in (in,notin)", "in notin (notin)", "in in (notin)", "a in (notin)", "in,notin", "in = in",
		"n>3", "n<3", "n > 3", "n>3,n<8", "n>5", "n<5", "n>-5", "n<-5", "n>+3", "n>abc", "n>", "n<,a", "n>3.5", "n>9223372036854775807", "n>9223372036854775808", "n<0", "n>0", "n>007", "n>=3", "n<=3", "n=>3", "n==5", "n in (5,10)",
		"a b", "a=b c", "a=b c=d", "a,,x", ",a", "a,", ",", ",,", "a in", "a in (", "a in (b", "a in b", "a in b)", "a in ((b))", "a in (b))", "a notin", "a not in (b)", "a (b)", "(a)", ")", "(", "a)", "a(",
		"=", "==", "!=", "!", "!!a", "! !a", "a!", "a!b", "!a=b", "!a in (b)", "!a!=b", "a=!b", "a==!b", "a===b", "a=!=b", "a=<b", "a=(b)", "a!=(b)", "a><3", "a<>3", "a=b=c", "a=b==c", "a in (b=c)", "a in (b!c)", "a in (b c)", "a in (<)", "a in (b,=)", "a in (b,", "a in (,", "a in (b,,", "a in (,(", "a in (-b,-c)", "a in (-c,-b,x)", "a in (-b,-b)", "a in (b,-c,d_)", "n>-abc", "n>-", "n<" + long + "a", "a==,x", "a=b,!x", "!a,!x", "!a,x=y",
		"app.kubernetes.io/name=web", "app.kubernetes.io/name", "!app.kubernetes.io/name", "app.kubernetes.io/name in (web,db)", "app.kubernetes.io/name notin (web)", "/name=web", "app.kubernetes.io/=web", "a/b/c=d", "App.io/x=y", "app_io/x=y", "app..io/x", ".io/x", "io./x", "a-/x", "-a/x",
		"-a=b", "a-=b", "_a=b", "a_=b", ".a", "a.", "a-b=c", "a_b=c", "a.b=c", "a--b", "a..b", "A=B", "A,!a", "9=9", "a=-b", "a=b-", "a=_b", "a=b_", "a=.b", "a=b.", "a=b-c", "a=b_c.d", "a=b/c", "a=b:c", "a=b@c", "a=b*", "a=*", "a=é", "é=b", "a=\"b\"", "a='b'", "a=b;c", "x=1.5", "a=b+c", "a=b%20c", "a~b", "a=~b", "a&b", "a|b",
		long + "=b", long + "a=b", "a=" + long, "a=" + long + "a", "a in (" + long + ",b)", "a in (" + long + "a,b)", strings.Repeat("a", 253) + "/x", strings.Repeat("a", 254) + "/x", strings.Repeat("a", 64) + ".b/x=y",
		"a\x00", "a\x00b", "\x00", "\x00a", "a=b\x00", "a=\x00b", "a,\x00", "a in (b\x00)", "a in (b)\x00", "a\x00,x", "!\x00a", "a\tin\n(b\r,c)", "a\u00a0=b", "a\v=b",
		"x=y,a=c,x!=z,a in (c,d)", "c,b,a", "a=x,b=y,c=z", "a=x,b=y,c!=z", "a=b,a=c", "a=b,a!=b", "a,!a", "tier in (front),n>3,app.kubernetes.io/name=web", "tier=front, n<11, n>9", "x in (a,b),y,z notin ()", "x notin (a),!y,n",
	}
	return out
}

func selectorObjects() []*metav1.LabelSelector {
	e := func(key, op string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOperator(op), Values: values}
	}
	s := func(l map[string]string, e ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: l, MatchExpressions: e}
	}
	return []*metav1.LabelSelector{
		nil,
		s(nil),
		s(map[string]string{}),
		s(map[string]string{"a": "b"}),
		s(map[string]string{"a": ""}),
		s(map[string]string{"a": "c", "x": "y"}),
		s(map[string]string{"-a": "c"}),
		s(map[string]string{"a": "c d"}),
		s(map[string]string{"": "c"}),
		s(nil, e("a", "In", "b", "c")),
		s(nil, e("a", "In", "c", "b", "c")),
		s(nil, e("a", "In")),
		s(nil, e("a", "In", "")),
		s(nil, e("a", "NotIn", "b")),
		s(nil, e("a", "NotIn")),
		s(nil, e("a", "NotIn", "b", "")),
		s(nil, e("a", "Exists")),
		s(nil, e("a", "Exists", "b")),
		s(nil, e("a", "DoesNotExist")),
		s(nil, e("a", "DoesNotExist", "b")),
		s(nil, e("n", "Gt", "3")),
		s(nil, e("n", "Lt", "3")),
		s(nil, e("a", "in", "b")),
		s(nil, e("a", "")),
		s(nil, e("a", "Equals", "b")),
		s(nil, e("a", "In", "b/c")),
		s(nil, e("a b", "Exists")),
		s(nil, e("app.kubernetes.io/name", "In", "web"), e("tier", "NotIn", "back"), e("n", "Exists")),
		s(map[string]string{"x": "y"}, e("a", "In", "c"), e("b", "DoesNotExist")),
		s(map[string]string{"x": "y"}, e("x", "NotIn", "y")),
		s(nil, e("a", "In", strings.Repeat("v", 64))),
	}
}

// affinityRow is what a pod demands and prefers, and how each node of the file answers.
type affinityRow struct {
	NodeSelector map[string]string            `json:"nodeSelector,omitempty"`
	Required     *v1.NodeSelector             `json:"required,omitempty"`
	Preferred    []v1.PreferredSchedulingTerm `json:"preferred,omitempty"`
	// One digit per node: fits, does not, or does not with an error told.
	Match string `json:"match"`
	// Sums of the weights per node; absent when the preference does not parse.
	Score []int64 `json:"score,omitempty"`
}

type leanNode struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

func nodeAffinities() []section {
	nodes := []leanNode{
		{"n1", map[string]string{"zone": "a", "disk": "ssd", "gen": "3", "kubernetes.io/hostname": "n1"}},
		{"n2", map[string]string{"zone": "b", "gen": "10", "gpu": ""}},
		{"n3", map[string]string{"zone": "c", "gen": "x", "disk": "hdd"}},
		{"n4", map[string]string{}},
		{"", map[string]string{"zone": "a", "gen": "-1"}},
	}
	full := make([]*v1.Node, len(nodes))
	for i, n := range nodes {
		full[i] = &v1.Node{}
		full[i].Name, full[i].Labels = n.Name, n.Labels
	}
	var out []affinityRow
	for _, row := range append(writtenAffinities(), drawnAffinities()...) {
		pod := &v1.Pod{}
		pod.Spec.NodeSelector = row.NodeSelector
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  row.Required,
			PreferredDuringSchedulingIgnoredDuringExecution: row.Preferred,
		}}
		required := nodeaffinity.GetRequiredNodeAffinity(pod)
		row.Match = bits(full, func(n *v1.Node) byte {
			match, err := required.Match(n)
			if err != nil {
				return 'e'
			}
			return bit(match)
		})
		if preferred, err := nodeaffinity.NewPreferredSchedulingTerms(row.Preferred); err == nil {
			for _, n := range full {
				row.Score = append(row.Score, preferred.Score(n))
			}
		}
		out = append(out, row)
	}
	return []section{{"nodes", rows(nodes)}, {"cases", rows(out)}}
}

func wants(key, op string, values ...string) v1.NodeSelectorRequirement {
	return v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOperator(op), Values: values}
}

func byLabel(e ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: e}
}

func byField(e ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchFields: e}
}

func writtenAffinities() []affinityRow {
	req := func(terms ...v1.NodeSelectorTerm) affinityRow {
		return affinityRow{Required: &v1.NodeSelector{NodeSelectorTerms: terms}}
	}
	pref := func(weight int32, term v1.NodeSelectorTerm) affinityRow {
		return affinityRow{Preferred: []v1.PreferredSchedulingTerm{{Weight: weight, Preference: term}}}
	}
	mixed := byLabel(wants("zone", "In", "a", "b"))
	mixed.MatchFields = []v1.NodeSelectorRequirement{wants("metadata.name", "NotIn", "n1")}
	return []affinityRow{
		{},
		{NodeSelector: map[string]string{"zone": "a"}},
		{NodeSelector: map[string]string{"zone": "a", "disk": "ssd"}},
		{NodeSelector: map[string]string{"zone": ""}},
		{NodeSelector: map[string]string{"gpu": ""}},
		{NodeSelector: map[string]string{"not valid!": "x"}},
		req(), req(byLabel()), req(byLabel(), byLabel(wants("zone", "In", "a"))),
		req(byLabel(wants("zone", "In", "a", "c"))), req(byLabel(wants("zone", "NotIn", "a"))), req(byLabel(wants("disk", "Exists"))), req(byLabel(wants("disk", "DoesNotExist"))),
		req(byLabel(wants("gen", "Gt", "3"))), req(byLabel(wants("gen", "Lt", "10"))), req(byLabel(wants("gen", "Gt", "-5"))), req(byLabel(wants("gen", "Lt", "x"))), req(byLabel(wants("gen", "Gt"))), req(byLabel(wants("gen", "Gt", "1", "2"))), req(byLabel(wants("gen", "Lt", "4"))), req(byLabel(wants("gen", "Gt", "0"))),
		req(byLabel(wants("zone", "In"))), req(byLabel(wants("zone", "Exists", "a"))), req(byLabel(wants("zone", "Equals", "a"))), req(byLabel(wants("", "Exists"))), req(byLabel(wants("zone", "In", "not valid!"))),
		req(byLabel(wants("zone", "In", "a"), wants("disk", "Exists"))), req(byLabel(wants("zone", "In", "a")), byLabel(wants("zone", "In", "b"))),
		req(byLabel(wants("zone", "Bad", "a")), byLabel(wants("zone", "In", "b"))), req(byLabel(wants("zone", "In", "b")), byLabel(wants("gen", "Gt", "x"))),
		req(byField(wants("metadata.name", "In", "n1"))), req(byField(wants("metadata.name", "NotIn", "n1"))), req(byField(wants("metadata.name", "In", "n1", "n2"))), req(byField(wants("metadata.name", "In"))), req(byField(wants("metadata.name", "Exists"))), req(byField(wants("metadata.name", "In", "n1")), byField(wants("metadata.name", "In", "n2"))),
		req(byField(wants("metadata.uid", "In", "n1"))), req(byField(wants("metadata.uid", "In", ""))), req(byField(wants("metadata.uid", "NotIn", "n1"))), req(byField(wants("metadata.name", "In", "n1"), wants("metadata.name", "In", "n2"))), req(byField(wants("metadata.name", "In", "N1 with spaces"))),
		req(mixed),
		{NodeSelector: map[string]string{"zone": "a"}, Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{byLabel(wants("disk", "In", "ssd"))}}},
		{NodeSelector: map[string]string{"zone": "a"}, Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{byLabel(wants("disk", "Bad", "ssd"))}}},
		pref(10, byLabel(wants("zone", "In", "a"))), pref(0, byLabel(wants("zone", "Bad", "a"))), pref(5, byLabel(wants("zone", "Bad", "a"))), pref(5, byLabel()), pref(5, mixed), pref(-5, byLabel(wants("zone", "Exists"))), pref(100, byField(wants("metadata.name", "In", "n2"))),
		{Preferred: []v1.PreferredSchedulingTerm{{Weight: 3, Preference: byLabel(wants("zone", "Exists"))}, {Weight: 4, Preference: byLabel(wants("disk", "In", "ssd"))}, {Weight: 100, Preference: byLabel(wants("gen", "Gt", "2"))}}},
		{Preferred: []v1.PreferredSchedulingTerm{{Weight: 3, Preference: byLabel(wants("zone", "Exists"))}, {Weight: 4, Preference: byField(wants("metadata.name", "Exists"))}}},
	}
}

func drawnAffinities() []affinityRow {
	r := rand.New(rand.NewSource(2))
	one := func(of ...string) string { return of[r.Intn(len(of))] }
	some := func(of ...string) []string {
		var out []string
		for _, v := range of {
			if r.Intn(3) == 0 {
				out = append(out, v)
			}
		}
		return out
	}
	term := func() v1.NodeSelectorTerm {
		var t v1.NodeSelectorTerm
		for range r.Intn(3) {
			op := one("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
			var values []string
			switch op {
			case "In", "NotIn":
				values = some("a", "b", "c", "ssd", "hdd", "3", "")
			case "Gt", "Lt":
				values = []string{one("1", "3", "10", "z")}
			}
			t.MatchExpressions = append(t.MatchExpressions, wants(one("zone", "disk", "gen", "gpu"), op, values...))
		}
		if r.Intn(4) == 0 {
			t.MatchFields = append(t.MatchFields, wants("metadata.name", one("In", "NotIn"), one("n1", "n2", "n3")))
		}
		return t
	}
	var out []affinityRow
	for range 80 {
		var row affinityRow
		if r.Intn(4) == 0 {
			row.NodeSelector = map[string]string{one("zone", "disk"): one("a", "b", "ssd")}
		}
		if r.Intn(3) > 0 {
			row.Required = &v1.NodeSelector{}
			for range r.Intn(3) {
				row.Required.NodeSelectorTerms = append(row.Required.NodeSelectorTerms, term())
			}
		}
		for range r.Intn(3) {
			row.Preferred = append(row.Preferred, v1.PreferredSchedulingTerm{Weight: int32(r.Intn(5)), Preference: term()})
		}
		out = append(out, row)
	}
	return out
}

type tolerationRow struct {
	Toleration v1.Toleration `json:"toleration"`
	// One digit per taint, with the Lt and Gt operators switched off and on.
	Off string `json:"off"`
	On  string `json:"on"`
}

func tolerations() []section {
	taints := []v1.Taint{
		{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule},
		{Key: "k", Value: "v", Effect: v1.TaintEffectNoExecute},
		{Key: "k", Value: "v", Effect: v1.TaintEffectPreferNoSchedule},
		{Key: "k", Value: "w", Effect: v1.TaintEffectNoSchedule},
		{Key: "k", Effect: v1.TaintEffectNoSchedule},
		{Key: "l", Value: "v", Effect: v1.TaintEffectNoSchedule},
		{Key: "node.kubernetes.io/unschedulable", Effect: v1.TaintEffectNoSchedule},
		{Key: "n", Value: "5", Effect: v1.TaintEffectNoSchedule},
		{Key: "n", Value: "-5", Effect: v1.TaintEffectNoExecute},
		{Key: "n", Value: "05", Effect: v1.TaintEffectNoSchedule},
		{Key: "n", Value: "9223372036854775808", Effect: v1.TaintEffectNoSchedule},
		{Key: "n", Value: "0", Effect: v1.TaintEffectNoSchedule},
		{Key: "k", Value: "v", Effect: "Odd"},
	}
	var out []tolerationRow
	seconds := int64(30)
	given := []v1.Toleration{
		{}, {Operator: "Exists"}, {Operator: "Equal"}, {Operator: "Exists", Effect: "NoSchedule"}, {Operator: "Exists", Effect: "NoExecute"}, {Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds}, {Operator: "Exists", Effect: "Odd"},
		{Key: "k"}, {Key: "k", Operator: "Exists"}, {Key: "k", Operator: "Exists", Value: "w"}, {Key: "k", Operator: "Equal", Value: "v"}, {Key: "k", Value: "v"}, {Key: "k", Value: "v", Effect: "NoSchedule"}, {Key: "k", Operator: "Equal", Value: "w", Effect: "NoSchedule"}, {Key: "k", Operator: "Equal", Value: "v", Effect: "PreferNoSchedule"},
		{Key: "K", Operator: "Exists"}, {Key: "l", Operator: "Equal", Value: "v", Effect: "NoExecute"}, {Value: "v"}, {Operator: "Bad", Key: "k", Value: "v"}, {Operator: "exists", Key: "k"}, {Key: "node.kubernetes.io/unschedulable", Operator: "Exists", Effect: "NoSchedule"},
		{Key: "n", Operator: "Gt", Value: "3"}, {Key: "n", Operator: "Lt", Value: "3"}, {Key: "n", Operator: "Gt", Value: "5"}, {Key: "n", Operator: "Lt", Value: "5"}, {Key: "n", Operator: "Gt", Value: "-10"}, {Key: "n", Operator: "Gt", Value: "-0"}, {Key: "n", Operator: "Gt", Value: "+3"}, {Key: "n", Operator: "Gt", Value: "03"}, {Key: "n", Operator: "Gt", Value: ""}, {Key: "n", Operator: "Gt", Value: "x"},
		{Key: "n", Operator: "Lt", Value: "9223372036854775808"}, {Key: "n", Operator: "Lt", Value: "9223372036854775807"}, {Operator: "Gt", Value: "3"}, {Operator: "Lt", Value: "3", Effect: "NoExecute"}, {Key: "n", Operator: "Equal", Value: "5"}, {Key: "n", Operator: "Gt", Value: "-"}, {Key: "n", Operator: "Gt", Value: "1_0"},
	}
	quiet := klog.TODO().V(100)
	for _, t := range given {
		row := tolerationRow{Toleration: t}
		row.Off = bits(taints, func(x v1.Taint) byte { return bit(t.ToleratesTaint(quiet, &x, false)) })
		row.On = bits(taints, func(x v1.Taint) byte { return bit(t.ToleratesTaint(quiet, &x, true)) })
		out = append(out, row)
	}
	return []section{{"taints", rows(taints)}, {"cases", rows(out)}}
}
