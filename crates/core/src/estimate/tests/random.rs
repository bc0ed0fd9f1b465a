//! Random worlds, random orders of events: always the same answer as the obvious way.

use super::slow::{self, Slow};
use super::{affine, list};
use crate::estimate::{Ask, Assumed, Component, Given, Index, UNCONSTRAINED, View};
use crate::object::Key;
use crate::select::taint::{Effect, Operator};
use crate::select::{Taint, Toleration};
use crate::view::{NodeFacts, Phase, PodFacts};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

/// What happens to the cluster.
#[derive(Clone, Debug)]
enum Event {
    Node(NodeFacts),
    NodeGone(String),
    Pod(PodFacts),
    PodGone(String),
    /// Somebody takes a view and keeps it: later events must not change it.
    Publish,
}

fn node() -> impl Strategy<Value = NodeFacts> {
    let amounts = (0..5_i64, 0..4_i64, option::of(0..3_i64), 0..6_i64);
    let looks = (0..3_usize, option::of(0..2_usize), any::<bool>(), 0..8_u8);
    (0..6_usize, amounts, looks).prop_map(|(name, (cpu, memory, gpu, pods), (zone, team, ssd, odd))| {
        let name = format!("n{name}");
        let mut facts = NodeFacts { name: name.clone(), unschedulable: odd == 0, ..NodeFacts::default() };
        facts.allocatable = list(&[("cpu", &format!("{}m", cpu * 700)), ("memory", &format!("{memory}Gi"))]);
        facts.allocatable.extend(list(&[("pods", &pods.to_string())]));
        if let Some(gpu) = gpu {
            facts.allocatable.extend(list(&[("example.com/gpu", &gpu.to_string())]));
        }
        if odd != 1 {
            facts.labels.insert("kubernetes.io/hostname".into(), name);
        }
        if zone > 0 {
            facts.labels.insert("topology.kubernetes.io/zone".into(), format!("z{zone}"));
        }
        if ssd {
            facts.labels.insert("disk".into(), "ssd".into());
        }
        let taint = |value: usize| Taint {
            key: "team".into(),
            value: value.to_string(),
            effect: if odd % 2 == 0 { Effect::NoSchedule } else { Effect::NoExecute },
            time_added: None,
        };
        facts.taints = team.into_iter().map(taint).collect();
        facts
    })
}

fn amounts() -> impl Strategy<Value = crate::resources::List> {
    (option::of(0..9_i64), option::of(0..5_i64), option::of(0..2_i64)).prop_map(|(cpu, memory, gpu)| {
        let mut out = crate::resources::List::new();
        out.extend(cpu.map(|n| list(&[("cpu", &format!("{}m", n * 250))])).unwrap_or_default());
        out.extend(memory.map(|n| list(&[("memory", &format!("{}Mi", n * 300))])).unwrap_or_default());
        out.extend(gpu.map(|n| list(&[("example.com/gpu", &n.to_string())])).unwrap_or_default());
        out
    })
}

fn pod() -> impl Strategy<Value = PodFacts> {
    (0..12_usize, option::weighted(0.9, 0..7_usize), amounts(), 0..10_u8, 0..3_i32).prop_map(
        |(name, node, requests, phase, priority)| PodFacts {
            key: Key::new("default", format!("p{name}")),
            uid: format!("uid-{name}").into(),
            requests,
            priority,
            phase: if phase == 0 { Phase::Failed } else { Phase::Running },
            node: node.map(|n| format!("n{n}")),
            ..PodFacts::default()
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => node().prop_map(Event::Node),
        1 => (0..6_usize).prop_map(|n| Event::NodeGone(format!("n{n}"))),
        6 => pod().prop_map(Event::Pod),
        2 => (0..12_usize).prop_map(|n| Event::PodGone(format!("uid-{n}"))),
        1 => Just(Event::Publish),
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    let on = |key: &str, op: &str, values: &[&str]| json!({"key": key, "operator": op, "values": values});
    let expressions = vec![
        on("disk", "In", &["ssd"]),
        on("disk", "DoesNotExist", &[]),
        on("topology.kubernetes.io/zone", "NotIn", &["z1"]),
        on("kubernetes.io/hostname", "In", &["n1", "n3"]),
        on("kubernetes.io/hostname", "NotIn", &["n2"]),
        on("kubernetes.io/hostname", "Exists", &[]),
        on("disk", "Smells", &["x"]),
    ];
    let fields = vec![on("metadata.name", "In", &["n1"]), on("metadata.name", "NotIn", &["n1"])];
    let term =
        (vec(proptest::sample::select(expressions), 0..3), vec(proptest::sample::select(fields), 0..2))
            .prop_map(|(labels, fields)| json!({"matchExpressions": labels, "matchFields": fields}));
    let affinity = option::weighted(0.5, vec(term, 0..3));
    let toleration = option::of(0..3_usize);
    (amounts(), affinity, toleration, any::<bool>()).prop_map(|(requests, affinity, toleration, cordon)| {
        let mut ask = affinity.map(|terms| affine(&json!({"nodeSelectorTerms": terms}))).unwrap_or_default();
        ask.requests = requests;
        let tolerate = |key: &str, operator, value: String| Toleration {
            key: key.into(),
            operator,
            value,
            ..Toleration::default()
        };
        ask.tolerations.extend(toleration.map(|n| tolerate("team", Operator::Equal, n.to_string())));
        if cordon {
            ask.tolerations.push(tolerate(
                "node.kubernetes.io/unschedulable",
                Operator::Exists,
                String::new(),
            ));
        }
        ask
    })
}

fn component() -> impl Strategy<Value = Component> {
    (0..4_i32, ask()).prop_map(|(replicas, ask)| Component { name: "c".into(), replicas, ask })
}

/// Everything that happened, folded in as it came and kept the obvious way.
fn run(events: &[Event]) -> (Index, Slow, Vec<(View, Slow)>) {
    let (mut index, mut slow, mut kept) = (Index::new(), Slow::default(), Vec::new());
    for event in events {
        match event {
            Event::Node(facts) => {
                index.set_node(facts);
                slow.nodes.insert(facts.name.clone(), facts.clone());
            }
            Event::NodeGone(name) => {
                index.remove_node(name);
                slow.nodes.remove(name);
            }
            Event::Pod(facts) => {
                index.set_pod(facts);
                slow.pods.insert(facts.uid.to_string(), facts.clone());
            }
            Event::PodGone(uid) => {
                index.remove_pod(uid);
                slow.pods.remove(uid);
            }
            Event::Publish => kept.push((index.publish(), slow.clone())),
        }
    }
    kept.push((index.publish(), slow.clone()));
    (index, slow, kept)
}

proptest! {
    #[test]
    fn replicas_are_what_brute_force_counts(events in vec(event(), 0..60), asks in vec(ask(), 1..6)) {
        let (_, _, kept) = run(&events);
        for (view, slow) in kept {
            for ask in &asks {
                let answer = view.replicas(ask, &Given::default()).unwrap();
                prop_assert_eq!(slow::nodes(&answer), slow.replicas(ask, &[]), "{:?}", ask);
                let nodes = view.nodes(ask, &Given::default()).unwrap();
                let sum: i64 = nodes.iter().map(|n| i64::from(n.replicas)).sum();
                prop_assert_eq!(slow::nodes(&answer), sum, "nodes add up");
                for node in nodes {
                    prop_assert_eq!(node.replicas == 0, node.reason.is_some(), "none has a reason");
                }
            }
        }
    }

    #[test]
    fn what_is_assumed_is_placed_as_brute_force_places_it(
        events in vec(event(), 0..60), ask in ask(), assumed in vec(vec(component(), 0..4), 0..3)
    ) {
        let (index, slow, _) = run(&events);
        let assumed: Vec<_> =
            assumed.into_iter().map(|components| Assumed { components, ..Assumed::default() }).collect();
        let given = Given { assumed: &assumed, ..Given::default() };
        let answer = index.publish().replicas(&ask, &given).unwrap();
        prop_assert_eq!(slow::nodes(&answer), slow.replicas(&ask, &assumed));
    }

    #[test]
    fn sets_are_what_brute_force_places(events in vec(event(), 0..60), components in vec(component(), 0..5)) {
        let (index, slow, _) = run(&events);
        let answer = index.publish().sets("", &components, &Given::default()).unwrap();
        prop_assert_eq!(slow::nodes(&answer), slow.sets(&components));
        let enough = Given { enough: Some(2), ..Given::default() };
        let few = index.publish().sets("", &components, &enough).unwrap();
        prop_assert_eq!(few.most.min(2), answer.most.min(2));
    }

    #[test]
    fn the_order_and_repetition_of_events_do_not_matter(
        nodes in vec(node(), 0..8), pods in vec(pod(), 0..12), seed in any::<u64>(), ask in ask()
    ) {
        // The last word on each object, then all of them in some order, and once more in another.
        let mut last = Slow::default();
        last.nodes.extend(nodes.into_iter().map(|n| (n.name.clone(), n)));
        last.pods.extend(pods.into_iter().map(|p| (p.uid.to_string(), p)));
        let mut events: Vec<Event> = last.nodes.values().cloned().map(Event::Node).collect();
        events.extend(last.pods.values().cloned().map(Event::Pod));
        let count = events.len().max(1);
        let shuffled = |seed: u64| {
            let mut events = events.clone();
            let turn = usize::try_from(seed % count as u64).unwrap();
            if !events.is_empty() {
                events.rotate_left(turn);
            }
            events
        };
        let (forward, _, _) = run(&events);
        let (again, _, _) = run(&[shuffled(seed), shuffled(seed / 7)].concat());
        let answer = |index: &Index| index.publish().replicas(&ask, &Given::default()).unwrap();
        prop_assert_eq!(answer(&forward), answer(&again));
        let shape = |index: &Index| {
            let view = index.publish();
            (view.node_count(), view.pod_count(), view.kind_count(), view.class_count())
        };
        prop_assert_eq!(shape(&forward), shape(&again), "nothing is left over");
    }

    #[test]
    fn with_more_room_and_less_asked_no_fewer_fit(events in vec(event(), 0..60), ask in ask()) {
        let (mut index, _, _) = run(&events);
        let count = |index: &Index, ask: &Ask| index.publish().replicas(ask, &Given::default()).unwrap().most;
        let before = count(&index, &ask);
        let less = Ask { requests: crate::resources::List::new(), ..ask.clone() };
        prop_assert!(count(&index, &less) >= before);
        prop_assert!(before < UNCONSTRAINED);
        for n in 0..12 {
            index.remove_pod(&format!("uid-{n}"));
        }
        prop_assert!(count(&index, &ask) >= before);
    }
}
