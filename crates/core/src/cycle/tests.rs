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
