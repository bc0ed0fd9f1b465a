use super::*;
use crate::view::build::{node, pod, world};
use std::sync::Arc;

fn chosen(world: crate::view::build::World, pod: crate::view::build::Pod) -> Option<String> {
    let mut live = world.0;
    let facts = pod.facts();
    let view = Arc::new(live.view(&facts, facts.asks.effective));
    let at = live.snapshot();
    let decision = decide(&Input::new(at), &view, &mut Memo::default());
    decision.node.map(|id| at[id].name.to_string())
}

#[test]
fn the_emptiest_node_that_fits_wins_and_among_equals_the_first_name() {
    let world = || {
        world()
            .node(node("b").cpu("4").memory("8Gi"))
            .node(node("a").cpu("4").memory("8Gi"))
            .node(node("c").cpu("8").memory("16Gi").cordoned())
    };
    assert_eq!(chosen(world(), pod("p").cpu("1").memory("1Gi")).as_deref(), Some("a"));
    let busy = world().pod(pod("x").cpu("2").memory("2Gi").on("a"));
    assert_eq!(chosen(busy, pod("p").cpu("1").memory("1Gi")).as_deref(), Some("b"));
    assert_eq!(chosen(world(), pod("p").cpu("5")), None, "only the cordoned one is large enough");
}

/// What is said of a pod that no node takes.
fn said(world: crate::view::build::World, pod: crate::view::build::Pod) -> String {
    let mut live = world.0;
    let facts = pod.facts();
    let view = Arc::new(live.view(&facts, facts.asks.effective));
    let input = Input::new(live.snapshot());
    let decision = decide(&input, &view, &mut Memo::default());
    assert_eq!(decision.node, None);
    message(&input, &view, &decision)
}

fn named(terms: &str) -> crate::view::build::Pod {
    let affinity = serde_json::from_str(&format!(r#"{{"nodeSelectorTerms": {terms}}}"#)).unwrap();
    pod("p").cpu("1").requires(&affinity)
}

#[test]
fn nodes_an_affinity_by_name_passes_over_are_not_looked_at() {
    let world = || world().node(node("a").cordoned()).node(node("b")).node(node("c"));
    let a = r#"{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}"#;
    let b = a.replace("[\"a\"]", "[\"b\"]");
    let not_c = a.replace("In", "NotIn").replace("[\"a\"]", "[\"c\"]");
    let both =
        a.replace("]}]}", "]}, {\"key\": \"metadata.name\", \"operator\": \"In\", \"values\": [\"b\"]}]}");
    let over = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
    for (terms, want, why) in [
        (format!("[{a}]"), format!("1 node(s) were unschedulable, 2 {over}"), "a is the only one it can be"),
        (format!("[{b}]"), format!("1 Insufficient cpu, 2 {over}"), "that the other is cordoned is not said"),
        (
            format!("[{a}, {b}]"),
            format!("1 Insufficient cpu, 1 {over}, 1 node(s) were unschedulable"),
            "any of those named",
        ),
        (
            format!("[{a}, {not_c}]"),
            "1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable"
                .to_owned(),
            "the second term leaves more than names, so every node is looked at",
        ),
        (
            format!("[{a}, {{}}]"),
            "1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector".to_owned(),
            "an empty term names nobody, though it matches nobody either",
        ),
        (format!("[{both}]"), "pod affinity terms conflict".to_owned(), "no node has two names"),
    ] {
        assert_eq!(said(world(), named(&terms)), format!("0/3 nodes are available: {want}."), "{why}");
    }
}

#[test]
fn what_is_promised_to_a_pod_that_goes_first_is_lacking() {
    let mut first = pod("first").cpu("2").memory("2Gi").priority(5).facts();
    first.nominated = Some("a".into());
    let mut world = world().node(node("a").cpu("4").memory("8Gi"));
    let view = world.0.view(&first, first.asks.effective);
    world.0.set_pod(view, None);
    let asks = pod("p").cpu("3").memory("6Gi");
    assert_eq!(
        said(world, asks),
        "0/1 nodes are available: 1 Insufficient cpu.",
        "3 of 4 - 2 CPUs are too many, 6 of 8 - 2 Gi are not"
    );
}

/// What a pod wants, in a test.
type Wanted = fn(&mut crate::view::Wants);

#[test]
fn what_a_node_is_promised_to_counts_as_if_it_were_there_for_whoever_does_not_go_before_it() {
    use crate::view::{PodTerm, Spread, Volume};
    fn term(app: &str) -> PodTerm {
        PodTerm {
            namespaces: vec!["default".into()],
            namespace_selector: None,
            selector: format!("app={app}").parse().expect("a selector"),
            topology_key: "host".into(),
        }
    }
    fn volume(id: &str) -> Volume {
        Volume { id: id.into(), driver: Some("disk".into()), ..Volume::default() }
    }
    let cases: [(&str, Wanted, Wanted, Filter); 5] = [
        (
            "it keeps the new one away",
            |w| w.anti_affinity.required.push(term("new")),
            |_| {},
            Filter::ExistingAntiAffinity,
        ),
        (
            "the new one keeps away from it",
            |_| {},
            |w| w.anti_affinity.required.push(term("first")),
            Filter::AntiAffinity,
        ),
        (
            "both on one host are one too many",
            |_| {},
            |w| {
                w.spread.push(Spread {
                    max_skew: 1,
                    topology_key: "host".into(),
                    hard: true,
                    selector: "app in (first, new)".parse().expect("a selector"),
                    min_domains: None,
                    honor_affinity: true,
                    honor_taints: false,
                });
            },
            Filter::Spread,
        ),
        (
            "one volume can be attached",
            |w| w.volumes.push(volume("theirs")),
            |w| w.volumes.push(volume("its own")),
            Filter::AttachLimit,
        ),
        (
            "one pod may use the claim",
            |w| w.exclusive.push("default/data".into()),
            |w| w.exclusive.push("default/data".into()),
            Filter::VolumeInUse,
        ),
    ];
    let wanting = |name: &str, priority: i32, wants: Wanted| {
        let mut facts = pod(name).label("app", name).priority(priority).facts();
        wants(Arc::make_mut(&mut facts.wants));
        facts
    };
    for (why, theirs, new, rule) in cases {
        let mut live = crate::view::Live::new();
        for name in ["a", "b"] {
            let mut facts = node(name).label("host", name).facts();
            facts.attach_limits.insert("disk".to_owned(), 1);
            live.set_node(&facts);
        }
        let mut first = wanting("first", 5, theirs);
        first.nominated = Some("a".into());
        let first = live.view(&first, first.asks.effective);
        live.set_pod(first, None);
        for (priority, expected) in [(4, Some(rule)), (5, Some(rule)), (6, None)] {
            let new = wanting("new", priority, new);
            let new = live.view(&new, new.asks.effective);
            let found = examine(&Input::new(live.snapshot()), &new);
            let rules: Vec<_> = found.iter().map(|one| one.rule).collect();
            assert_eq!(rules, [expected, None], "{why}, priority {priority}");
            let told: Vec<_> = found.iter().map(|one| one.reasons.len()).collect();
            assert_eq!(told, [usize::from(expected.is_some()), 0], "{why}: and is told");
        }
    }
}

#[test]
fn nobody_counts_on_being_near_a_pod_that_a_node_is_only_promised_to() {
    let mut near = pod("new").facts();
    Arc::make_mut(&mut near.wants).affinity.required.push(crate::view::PodTerm {
        namespaces: vec!["default".into()],
        namespace_selector: None,
        selector: "app=first".parse().expect("a selector"),
        topology_key: "host".into(),
    });
    let mut live = world().node(node("a").label("host", "a")).0;
    let mut first = pod("first").label("app", "first").priority(5).facts();
    first.nominated = Some("a".into());
    let first = live.view(&first, first.asks.effective);
    live.set_pod(first, None);
    let new = live.view(&near, near.asks.effective);
    let found = examine(&Input::new(live.snapshot()), &new);
    assert_eq!(found[0].rule, Some(Filter::Affinity), "it may come to be elsewhere");
}

#[test]
fn the_node_that_was_cleared_for_a_pod_is_taken_if_it_does_whatever_the_others_are_worth() {
    for (cpu, expected) in [("2", "a"), ("500m", "b")] {
        let mut facts = pod("new").cpu("1").facts();
        facts.nominated = Some("a".into());
        let nodes = world().node(node("a").cpu(cpu)).node(node("b").cpu("64"));
        let on = chosen(nodes, crate::view::build::Pod::of(facts));
        assert_eq!(on.as_deref(), Some(expected), "a has {cpu}");
    }
}

fn spread_over(key: &str, max_skew: i64) -> crate::view::build::Pod {
    use crate::select::LabelSelector;
    let match_labels = [("app".to_owned(), "web".to_owned())].into();
    let selector = LabelSelector { match_labels, ..LabelSelector::default() }.selector().unwrap();
    let mut facts = pod("p").cpu("1").label("app", "web").facts();
    Arc::make_mut(&mut facts.wants).spread.push(crate::view::Spread {
        max_skew,
        topology_key: key.into(),
        hard: true,
        selector,
        min_domains: None,
        honor_affinity: true,
        honor_taints: false,
    });
    crate::view::build::Pod::of(facts)
}

#[test]
fn how_uneven_it_would_be_is_told_in_numbers() {
    let on = |name: &str, node: &str| pod(name).label("app", "web").on(node);
    let world = || {
        let zoned = |name: &str, zone: &str| node(name).cpu("8").label("zone", zone);
        let nodes = world().node(zoned("a", "one")).node(zoned("b", "two")).node(zoned("c", "three"));
        // 4 in one, 2 in two, 1 in three.
        let pods =
            [("p1", "a"), ("p2", "a"), ("p3", "a"), ("p4", "a"), ("p5", "b"), ("p6", "b"), ("p7", "c")];
        pods.into_iter().fold(nodes, |world, (name, node)| world.pod(on(name, node)))
    };
    let found = |max_skew: i64| {
        let (mut live, facts) = (world().0, spread_over("zone", max_skew).facts());
        let view = live.view(&facts, facts.asks.effective);
        let examined = examine(&Input::new(live.snapshot()), &view);
        let uneven = |one: &Examined| match one.reasons.first() {
            Some(crate::explain::Reason::Uneven { topology_key, here, least, max_skew }) => {
                Some((topology_key.clone(), *here, *least, *max_skew))
            }
            _ => None,
        };
        examined.iter().map(uneven).collect::<Vec<_>>()
    };
    let told = |here, max_skew| Some(("zone".to_owned(), here, 1, max_skew));
    // With the new one 5 − 1 = 4, 3 − 1 = 2 and 2 − 1 = 1 more than in the emptiest.
    assert_eq!(found(1), [told(4, 1), told(2, 1), None]);
    assert_eq!(found(2), [told(4, 2), None, None]);
    assert_eq!(found(3), [told(4, 3), None, None]);
    assert_eq!(found(4), [None, None, None]);
}

// 100 × (most + least − pods) ÷ most, as kube-scheduler rounds it.
#[test]
fn pods_spread_evenly_are_worth_a_hundred_and_none_where_there_is_no_place() {
    for (raw, least, most, want, why) in [
        (Some(2), 2, 5, 100, "the emptiest: 100 × 5 ÷ 5"),
        (Some(5), 2, 5, 40, "the fullest: 100 × 2 ÷ 5"),
        (Some(4), 2, 5, 60, "between: 100 × 3 ÷ 5"),
        (Some(3), 1, 3, 33, "100 × 1 ÷ 3 is 33.3"),
        (Some(0), 0, 0, 100, "nobody anywhere"),
        (None, 2, 5, 0, "no place at all"),
    ] {
        assert_eq!(spread::normal(raw, least, most), want, "{why}");
    }
}
