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
