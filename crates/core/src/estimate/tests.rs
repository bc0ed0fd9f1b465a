//! Small worlds with the arithmetic written out. Random ones are in `random`.

mod random;
mod slow;

use super::*;
use crate::object::Key;
use crate::select::node::NodeSelector;
use crate::select::taint::Effect;
use crate::view::Owner;
use crate::view::build::{self, node, pod};
use serde_json::json;
use std::cell::Cell;

/// A world under construction.
#[derive(Default)]
pub struct World(pub Index);

impl World {
    fn node(mut self, node: build::Node) -> Self {
        self.0.set_node(&node.facts());
        self
    }

    fn nodes(mut self, count: usize, node: impl Fn(&str) -> build::Node) -> Self {
        for i in 1..=count {
            self.0.set_node(&node(&format!("n{i:02}")).facts());
        }
        self
    }

    fn pod(mut self, pod: build::Pod) -> Self {
        self.0.set_pod(&pod.facts());
        self
    }

    fn quota(mut self, quota: Quota) -> Self {
        self.0.set_quota(quota);
        self
    }

    fn most(&self, ask: &Ask) -> i32 {
        self.answer(ask).most
    }

    fn answer(&self, ask: &Ask) -> Answer {
        self.0.publish().replicas(ask, &Given::default()).expect("the answer is wanted")
    }

    fn given(&self, ask: &Ask, given: &Given<'_>) -> Answer {
        self.0.publish().replicas(ask, given).expect("the answer is wanted")
    }

    fn sets(&self, components: &[Component]) -> i32 {
        self.0.publish().sets("default", components, &Given::default()).expect("the answer is wanted").most
    }
}

fn world() -> World {
    World::default()
}

/// A list of amounts: `list(&[("cpu", "2")])`.
pub fn list(amounts: &[(&str, &str)]) -> List {
    amounts.iter().map(|(n, q)| ((*n).to_owned(), q.parse().expect("tests write valid quantities"))).collect()
}

/// A replica that asks for so much.
pub fn ask(amounts: &[(&str, &str)]) -> Ask {
    Ask { requests: list(amounts), namespace: "default".into(), ..Ask::default() }
}

fn selecting(key: &str, value: &str) -> Ask {
    Ask { required: Required::new(&[(key.into(), value.into())].into(), None), ..ask(&[("cpu", "12")]) }
}

fn affine(selector: &serde_json::Value) -> Ask {
    let selector: NodeSelector =
        serde_json::from_value(selector.clone()).expect("tests write valid selectors");
    Ask { required: Required::new(&std::collections::BTreeMap::new(), Some(&selector)), ..Ask::default() }
}

fn component(name: &str, replicas: i32, ask: Ask) -> Component {
    Component { name: name.into(), replicas, ask }
}

#[test]
fn ten_nodes_of_eight_cores_take_no_pod_of_twelve() {
    let a = world().nodes(10, |name| node(name).cpu("8"));
    let b = world().nodes(2, |name| node(name).cpu("16"));
    assert_eq!(a.most(&ask(&[("cpu", "12")])), 0, "80 cores in all, 8 in one place: 10 × ⌊8/12⌋");
    assert_eq!(b.most(&ask(&[("cpu", "12")])), 2, "32 cores in all, 16 in one place: 2 × ⌊16/12⌋");
}

#[test]
fn only_nodes_that_match_count() {
    let a = world().nodes(10, |name| node(name).cpu("16"));
    let b = world().nodes(2, |name| node(name).cpu("16").label("key", "value"));
    assert_eq!(a.most(&selecting("key", "value")), 0, "no node has the label");
    assert_eq!(b.most(&selecting("key", "value")), 2, "2 × ⌊16/12⌋");
}

#[test]
fn a_node_takes_as_many_as_its_scarcest_resource_allows() {
    for (asked, want, why) in [
        (&[][..], 5, "nothing asked: free places for pods"),
        (&[("cpu", "500m")][..], 5, "8 by cpu, 5 by pods"),
        (&[("cpu", "1")][..], 4, "⌊4/1⌋ by cpu"),
        (&[("cpu", "1"), ("memory", "3Gi")][..], 2, "⌊8/3⌋ by memory"),
        (&[("cpu", "1500m"), ("memory", "1Gi")][..], 2, "⌊4/1.5⌋ by cpu"),
        (&[("example.com/gpu", "1")][..], 3, "three of them"),
        (&[("example.com/fpga", "1")][..], 0, "no node lists it"),
        (&[("example.com/fpga", "0")][..], 5, "zero of it is no demand"),
        (&[("cpu", "0")][..], 5, "zero puts no bound"),
        (&[("pods", "7")][..], 5, "each replica costs one place, whatever is written"),
        (&[("storage", "1Ti")][..], 5, "no resource of nodes"),
        (&[("cpu", "1u")][..], 5, "rounded up to 1m: 4000 by cpu"),
        (&[("ephemeral-storage", "1")][..], 0, "the node has none"),
    ] {
        let all = world().node(node("n").cpu("4").memory("8Gi").has("example.com/gpu", "3").has("pods", "5"));
        assert_eq!(all.most(&ask(asked)), want, "{asked:?}: {why}");
    }
}

#[test]
fn pods_on_nodes_take_room_until_they_are_over() {
    let all = || world().node(node("n").cpu("4").has("pods", "3"));
    let one = || pod("p").cpu("1").on("n");
    for (pods, want, why) in [
        (vec![], 3, "⌊4/1⌋ by cpu, 3 by pods"),
        (vec![one()], 2, "⌊3/1⌋, 2 places left"),
        (vec![one().phase(crate::view::Phase::Succeeded)], 3, "it is over"),
        (vec![one().terminating()], 2, "being deleted, it is still there"),
        (vec![pod("p").cpu("1")], 3, "without a node it is nowhere"),
        (vec![pod("p").cpu("1").on("elsewhere")], 3, "on a node nobody knows"),
        (vec![one(), one()], 2, "the same twice counts once"),
        (vec![one(), one().cpu("3")], 1, "a resize: ⌊1/1⌋"),
        (vec![pod("p").cpu("9").on("n")], 0, "more promised than there is"),
    ] {
        let all = pods.into_iter().fold(all(), World::pod);
        assert_eq!(all.most(&ask(&[("cpu", "1")])), want, "{why}");
    }
}

#[test]
fn a_cluster_without_nodes_takes_nothing() {
    assert_eq!(world().most(&Ask::default()), 0);
    assert_eq!(world().sets(&[component("a", 1, Ask::default())]), 0);
    assert_eq!(world().sets(&[]), 0);
    let gone = || {
        let mut world = world().node(node("n").cpu("1")).pod(pod("p").on("n"));
        world.0.remove_node("n");
        world
    };
    assert_eq!(gone().most(&Ask::default()), 0, "the node is gone, its pod is not");
    assert_eq!(gone().node(node("n").cpu("1")).most(&Ask::default()), 109, "it is back, and so is the pod");
}

#[test]
fn taints_and_cordons_keep_replicas_away_unless_tolerated() {
    let tolerating = |text: serde_json::Value| Ask {
        tolerations: vec![serde_json::from_value(text).expect("tests write valid tolerations")],
        ..Ask::default()
    };
    let tainted = |effect| world().node(node("n").taint("gpu", "yes", effect));
    for (all, ask, want, why) in [
        (tainted(Effect::NoSchedule), Ask::default(), 0, "not tolerated"),
        (tainted(Effect::NoExecute), Ask::default(), 0, "not tolerated"),
        (tainted(Effect::PreferNoSchedule), Ask::default(), 110, "only discouraged"),
        (tainted(Effect::NoSchedule), tolerating(json!({"key": "gpu", "value": "yes"})), 110, "tolerated"),
        (tainted(Effect::NoSchedule), tolerating(json!({"key": "gpu", "value": "no"})), 0, "another value"),
        (tainted(Effect::NoSchedule), tolerating(json!({"operator": "Exists"})), 110, "everything tolerated"),
        (
            tainted(Effect::NoSchedule),
            tolerating(json!({"key": "gpu", "operator": "Lt", "value": "9"})),
            0,
            "no such comparison",
        ),
        (world().node(node("n").cordoned()), Ask::default(), 0, "cordoned"),
        (
            world().node(node("n").cordoned()),
            tolerating(json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})),
            110,
            "cordon tolerated",
        ),
    ] {
        assert_eq!(all.most(&ask), want, "{why}");
    }
}

#[test]
fn affinity_terms_are_alternatives_and_bad_ones_match_nothing() {
    let all = || {
        world()
            .node(node("a").label("kubernetes.io/hostname", "a").label("zone", "z1").label("cores", "8"))
            .node(node("b").label("kubernetes.io/hostname", "b").label("zone", "z2").label("cores", "16"))
            .node(node("c").label("kubernetes.io/hostname", "c"))
    };
    let on = |key: &str, op: &str, values: &[&str]| json!({"key": key, "operator": op, "values": values});
    let terms = |terms: serde_json::Value| json!({"nodeSelectorTerms": terms});
    let label = |e: serde_json::Value| terms(json!([{"matchExpressions": [e]}]));
    let field = |e: serde_json::Value| terms(json!([{"matchFields": [e]}]));
    for (selector, nodes, why) in [
        (label(on("zone", "In", &["z1", "z2"])), 2, "a and b"),
        (label(on("zone", "NotIn", &["z1"])), 2, "b, and c which has no zone"),
        (label(on("zone", "Exists", &[])), 2, "a and b"),
        (label(on("zone", "DoesNotExist", &[])), 1, "c"),
        (label(on("cores", "Gt", &["8"])), 1, "b"),
        (label(on("cores", "Lt", &["9"])), 1, "a"),
        (label(on("zone", "Like", &["z"])), 0, "no such operator"),
        (label(on("kubernetes.io/hostname", "In", &["b", "c"])), 2, "a label that is the node's own name"),
        (label(on("kubernetes.io/hostname", "Exists", &[])), 3, "all have one"),
        (label(on("kubernetes.io/hostname", "NotIn", &["a"])), 2, "b and c"),
        (field(on("metadata.name", "In", &["b"])), 1, "by name"),
        (field(on("metadata.name", "NotIn", &["b"])), 2, "all but one"),
        (field(on("metadata.name", "In", &["b", "c"])), 0, "fields take one value"),
        (field(on("spec.x", "In", &["b"])), 0, "no such field"),
        (terms(json!([])), 0, "no alternatives"),
        (terms(json!([{}])), 0, "an empty alternative"),
        (
            terms(
                json!([{"matchExpressions": [on("zone", "In", &["z1"])]}, {"matchExpressions": [on("zone", "In", &["z2"])]}]),
            ),
            2,
            "either",
        ),
        (
            terms(
                json!([{"matchExpressions": [on("zone", "Like", &["z1"])]}, {"matchExpressions": [on("zone", "In", &["z2"])]}]),
            ),
            1,
            "a bad one beside a good one",
        ),
        (
            terms(json!([{"matchExpressions": [on("zone", "In", &["z1"]), on("cores", "In", &["16"])]}])),
            0,
            "both at once",
        ),
    ] {
        assert_eq!(all().most(&affine(&selector)), nodes * 110, "{selector}: {why}");
    }
}

#[test]
fn nodes_that_are_alike_are_counted_at_once() {
    let hosts = |name: &str| node(name).label("kubernetes.io/hostname", name).cpu("8");
    let all = world().nodes(60, hosts);
    let view = all.0.publish();
    assert_eq!((view.node_count(), view.kind_count(), view.class_count()), (60, 1, 1), "all the same");
    let all = all.pod(pod("p").cpu("1").on("n07")).node(hosts("n08").label("disk", "ssd"));
    let view = all.0.publish();
    assert_eq!((view.kind_count(), view.class_count()), (2, 3), "one has another label, one a pod");
    assert_eq!(all.most(&ask(&[("cpu", "8")])), 59, "all but the one with a pod");
    let mut all = all.node(hosts("n08"));
    all.0.remove_pod("uid-p");
    let view = all.0.publish();
    assert_eq!((view.kind_count(), view.class_count()), (1, 1), "all the same again");
}

#[test]
fn a_view_stays_as_it_is_when_the_index_moves_on() {
    let mut all = world().nodes(200, |name| node(name).cpu("4"));
    let before = all.0.publish();
    let count = |view: &View| view.replicas(&ask(&[("cpu", "4")]), &Given::default()).expect("wanted").most;
    for i in 1..=200 {
        all.0.set_pod(&pod(&format!("p{i}")).cpu("1").on(&format!("n{i:02}")).facts());
    }
    all.0.remove_node("n01");
    assert_eq!(count(&before), 200);
    assert_eq!(count(&all.0.publish()), 0, "every node has a pod");
}

// Row 4: upstream loops 2³¹ times over components without replicas.
#[test]
fn sets_without_pods_are_not_limited_by_nodes() {
    let all = world().node(node("n"));
    assert_eq!(all.sets(&[]), UNCONSTRAINED);
    assert_eq!(all.sets(&[component("a", 0, ask(&[("cpu", "1")]))]), UNCONSTRAINED);
    let quota = Quota {
        key: Key::new("default", "q"),
        hard: list(&[("cpu", "1")]),
        used: list(&[("cpu", "1")]),
        scopes: vec![],
    };
    let all = all.quota(quota);
    assert_eq!(all.sets(&[component("a", 0, ask(&[("cpu", "1")]))]), UNCONSTRAINED, "they use up no quota");
}

#[test]
fn sets_are_placed_first_fit() {
    let two = || world().nodes(2, |name| node(name).cpu("4"));
    let cpu = |amount: &str| ask(&[("cpu", amount)]);
    for (components, want, why) in [
        (vec![("a", 1, "1")], 8, "4 + 4"),
        (vec![("a", 1, "3"), ("b", 1, "1")], 2, "3+1 on each"),
        (vec![("a", 1, "1"), ("b", 1, "3")], 2, "1+3 on each"),
        (vec![("a", 2, "1"), ("b", 1, "3")], 1, "2 on the first, 3 on the second; then 2 more fit, but no 3"),
        (vec![("a", 1, "5")], 0, "no node has 5"),
        (vec![("a", 9, "1")], 0, "8 in all"),
        (vec![("a", 8, "1")], 1, "8 in all, over two nodes"),
        (vec![("a", 3, "1")], 2, "3 on the first, 1+2 over both"),
        (vec![("a", 1, "1"), ("none", 0, "9")], 8, "what is not there does not matter"),
    ] {
        let components: Vec<_> = components.iter().map(|(n, r, c)| component(n, *r, cpu(c))).collect();
        assert_eq!(two().sets(&components), want, "{why}");
    }
    let many = [component("a", 1, Ask::default())];
    let enough = Given { enough: Some(3), ..Given::default() };
    assert_eq!(two().0.publish().sets("", &many, &enough).map(|a| a.most), Ok(3), "220 fit, 3 are enough");
}

#[test]
fn what_is_assumed_takes_its_room_once() {
    let all = world().nodes(2, |name| node(name).cpu("4"));
    let deployment = |name: &str| WorkloadRef {
        group: "apps".into(),
        kind: "Deployment".into(),
        key: Key::new("default", name),
    };
    let assumed = |count, workload| Assumed {
        namespace: "default".into(),
        workload,
        components: vec![component("web", count, ask(&[("cpu", "1")]))],
    };
    let count = |all: &World, assumed: &[Assumed]| {
        all.given(&ask(&[("cpu", "1")]), &Given { assumed, ..Given::default() }).most
    };
    assert_eq!(count(&all, &[assumed(3, None)]), 5, "8 − 3");
    assert_eq!(count(&all, &[assumed(3, None), assumed(2, None)]), 3, "8 − 3 − 2");
    assert_eq!(count(&all, &[assumed(100, None)]), 0, "as many as fit are taken");

    // Row 22: pods that are there already are not counted a second time.
    let replica = |name: &str| pod(name).cpu("1").owner("ReplicaSet", "web-1").on("n01");
    let mut all = all.pod(replica("a")).pod(replica("b"));
    let told = [assumed(3, Some(deployment("web")))];
    assert_eq!(count(&all, &told), 3, "8 − 2 there − 3: nobody said whose they are");
    let set = WorkloadRef { kind: "ReplicaSet".into(), ..deployment("web-1") };
    let owner =
        Owner { group: "apps".into(), kind: "Deployment".into(), name: "web".into(), uid: "uid-web".into() };
    all.0.controlled(set.clone(), Some(owner));
    assert_eq!(count(&all, &told), 5, "8 − 2 there − 1 still to come");
    assert_eq!(count(&all, &[assumed(3, Some(deployment("api")))]), 3, "another workload's");
    assert_eq!(count(&all, &[assumed(3, None)]), 5, "the only component has the workload's name");
    all.0.controlled(set, None);
    assert_eq!(count(&all, &told), 3, "the ReplicaSet is nobody's any more");
}

// Row 23: what fits of an assumed workload is deducted, also when the rest of it does not fit.
#[test]
fn what_fits_of_an_assumed_workload_counts() {
    let all = world().node(node("n").cpu("4"));
    let assumed = [Assumed {
        components: vec![component("a", 1, ask(&[("cpu", "3")])), component("b", 1, ask(&[("cpu", "2")]))],
        ..Assumed::default()
    }];
    let given = Given { assumed: &assumed, ..Given::default() };
    assert_eq!(all.given(&ask(&[("cpu", "1")]), &given).most, 1, "4 − 3; the 2 are nowhere");
}

// Row 21: pods that wait for a node will take room, too, if so wanted.
#[test]
fn pods_without_a_node_are_placed_first_if_they_count() {
    let gate = crate::view::Hold::Gate("wait".into());
    let mut held = pod("held").cpu("1").facts();
    std::sync::Arc::make_mut(&mut held.wants).holds.push(gate);
    let mut all = world().node(node("n").cpu("4")).pod(pod("a").cpu("1")).pod(pod("b").cpu("9"));
    all.0.set_pod(&held);
    let count =
        |all: &World, pending| all.given(&ask(&[("cpu", "1")]), &Given { pending, ..Given::default() }).most;
    assert_eq!(
        (count(&all, false), count(&all, true)),
        (4, 3),
        "a takes 1, b fits nowhere, the third is held"
    );
    let all = all.pod(pod("a").cpu("1").on("n"));
    assert_eq!((count(&all, false), count(&all, true)), (3, 3), "a has a node now");
}

#[test]
fn lower_priorities_could_be_evicted() {
    let all = world()
        .node(node("n").cpu("8"))
        .pod(pod("low").cpu("4").priority(10).on("n"))
        .pod(pod("same").cpu("2").priority(100).on("n"));
    for (priority, want, why) in [
        (Some(100), Some(6), "2 free + 4 of the lower one"),
        (Some(101), Some(8), "both are lower"),
        (Some(10), Some(2), "none is lower"),
        (None, None, "no priority known"),
    ] {
        let ask = Ask { priority, ..ask(&[("cpu", "1")]) };
        let answer = all.given(&ask, &Given { preempting: true, ..Given::default() });
        assert_eq!((answer.most, answer.by_preempting), (2, want), "{why}");
    }
}

#[test]
fn the_load_line_binds_where_it_is_asked_about() {
    let mut all = world().nodes(2, |name| node(name).cpu("8").memory("8Gi"));
    let load = Given { load: true, ..Given::default() };
    let one = ask(&[("cpu", "1"), ("memory", "1Gi")]);
    assert_eq!(all.given(&one, &load).by_load, None, "nothing is known of load");
    let head = |cpu: i64, memory: i64| Some(Room { head: Load::new(cpu, memory), closed: None });
    all.0.set_room("n01", head(2_500_000_000, 1 << 40));
    let answer = all.given(&one, &load);
    assert_eq!(
        (answer.most, answer.by_nodes, answer.by_load),
        (2, 16, Some(2)),
        "2 on n01, nothing known of n02"
    );
    all.0.set_room("n02", head(i64::MAX, 3 << 30));
    assert_eq!(all.given(&one, &load).by_load, Some(5), "2 by cpu and 3 by memory");
    let light = Ask { load: Some(Load::new(500_000_000, 0)), ..one.clone() };
    assert_eq!(all.given(&light, &load).by_load, Some(13), "5 by what it will use, 8 by what it requests");
    all.0.set_room("n02", Some(Room { closed: Some(Reason::UnknownLoad), ..Room::default() }));
    assert_eq!(all.given(&one, &load).by_load, Some(2), "n02 is closed");
    all.0.set_room("n01", head(-1, 0));
    assert_eq!(all.given(&Ask::default(), &load).by_load, Some(0), "past the line not even nothing may come");
    assert_eq!(all.given(&one, &Given::default()).most, 16, "not asked about");
}

#[test]
fn every_node_says_what_limits_it_or_why_it_takes_none() {
    let zone = |name: &str, zone: &str| node(name).cpu("8").label("topology.kubernetes.io/zone", zone);
    let all = world()
        .node(zone("a1", "a"))
        .node(zone("a2", "a").has("pods", "1"))
        .node(zone("b1", "b").taint("gpu", "", Effect::NoSchedule))
        .node(node("x1").cpu("1"));
    let answers = all.0.publish().nodes(&ask(&[("cpu", "2")]), &Given::default()).expect("wanted");
    let short: Vec<_> = answers
        .iter()
        .map(|a| {
            let reason = a.reason.as_ref().map(ToString::to_string).unwrap_or_default();
            (a.node.as_str(), a.replicas, a.limited_by.as_deref().unwrap_or_default(), reason)
        })
        .collect();
    let expected = [
        ("x1", 0, "cpu", "the pod asks for 2 cpu, but only 1 is free".to_owned()),
        ("a1", 4, "cpu", String::new()),
        ("b1", 0, "", "the pod does not tolerate the taint gpu:NoSchedule".to_owned()),
        ("a2", 1, "pods", String::new()),
    ];
    assert_eq!(short, expected, "by turns from no zone, a and b");
}

#[test]
fn an_answer_nobody_wants_is_not_worked_out() {
    let all = world().nodes(40, |name| node(name).cpu("64"));
    let view = all.0.publish();
    let left = Cell::new(1);
    let wanted = || left.replace(left.get() - 1) > 0;
    let given = Given { wanted: &wanted, ..Given::default() };
    assert_eq!(view.replicas(&Ask::default(), &given).map(|a| a.most), Ok(4400), "asked once");
    assert_eq!(view.replicas(&Ask::default(), &given), Err(Unwanted));
    left.set(1);
    let assumed: Vec<_> = (0..3000)
        .map(|i| Assumed {
            components: vec![component("a", i % 7, selecting("no", "node"))],
            ..Assumed::default()
        })
        .collect();
    let long = Given { wanted: &wanted, assumed: &assumed, ..Given::default() };
    assert_eq!(view.replicas(&Ask::default(), &long), Err(Unwanted), "gave up on the way");
}

#[test]
fn sums_stop_at_the_largest_answer() {
    let huge = world().nodes(3, |name| node(name).has("pods", "2000000000"));
    assert_eq!(huge.most(&Ask::default()), UNCONSTRAINED, "6 000 000 000 in all");
    let absurd = world().nodes(2, |name| node(name).has("pods", "9223372036854775807"));
    assert_eq!(absurd.most(&Ask::default()), UNCONSTRAINED);
}
