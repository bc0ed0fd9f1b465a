use super::build::{node, pod, world};
use super::*;
use crate::load::Load;
use crate::resources::Resource;
use crate::select::Selector;

#[test]
fn a_node_knows_what_its_pods_take_and_what_is_left() {
    let at = world()
        .node(node("n2").cpu("2").memory("1Gi"))
        .node(node("n1").cpu("4").memory("8Gi").has("example.com/gpu", "1"))
        .pod(pod("web").cpu("1500m").memory("1Gi").on("n1"))
        .pod(pod("gpu").asks("example.com/gpu", "2").on("n1"))
        .pod(pod("done").cpu("2").on("n1").phase(Phase::Succeeded))
        .pod(pod("lost").cpu("2").on("n9"))
        .pod(pod("new").cpu("1"))
        .snapshot();
    let n1 = at.find_node("n1").unwrap();
    let gpu = at.names().find("example.com/gpu").unwrap();
    let free = n1.free();
    assert_eq!(free.get(Resource::CPU), 2500, "4000 - 1500; the finished pod holds nothing");
    assert_eq!(free.get(Resource::PODS), 108, "110 - 2");
    assert_eq!(free.get(gpu), -1, "more was promised than there is, and it shows");
    assert_eq!(at.columns().free_of(gpu)[n1.id.index()], -1, "and the column says the same");
    assert_eq!(n1.nonzero.cpu_milli, 1600, "1500 + 100 assumed");
    let on_n1: Vec<&str> = at.pods_on(n1.id).map(|p| &*p.key.name).collect();
    assert_eq!(on_n1, ["web", "gpu"]);
    assert_eq!(at.nodes().map(|n| &*n.name).collect::<Vec<_>>(), ["n1", "n2"], "by name; n9 is not there");
    assert!(at.find_node("n9").is_none());
}

#[test]
fn a_pod_may_come_before_its_node_and_a_repeated_event_changes_nothing() {
    let mut live = world().pod(pod("p").cpu("1").on("b")).0;
    assert_eq!(live.snapshot().nodes().count(), 0);
    let node = node("b").cpu("4").label("zone", "z").facts();
    let id = live.set_node(&node);
    assert_eq!(live.set_node(&node), id);
    let again = live.view(&pod("p").cpu("1").on("b").facts(), Load::ZERO);
    live.set_pod(again, Some("b"));
    let at = live.snapshot().clone();
    assert_eq!(at.columns().free_of(Resource::CPU)[id.index()], 3000);
    assert_eq!(at[id].pods.len(), 1);
    assert_eq!(
        at.groups().of_namespace("default", &Selector::everything()).flat_map(groups::Group::nodes).count(),
        1
    );
}

#[test]
fn a_snapshot_does_not_change_when_the_cluster_does() {
    let mut live = world().node(node("a").cpu("4")).0;
    let before = live.snapshot().clone();
    let view = live.view(&pod("p").cpu("1").on("a").facts(), Load::ZERO);
    live.set_pod(view, Some("a"));
    live.remove_node("a");
    assert_eq!(before.columns().free_of(Resource::CPU), [4000]);
    assert_eq!(before.nodes().count(), 1);
    assert_eq!(live.snapshot().nodes().count(), 0);
}

#[test]
fn a_number_is_given_out_again_when_node_and_pods_are_gone() {
    let mut live = world().node(node("a")).pod(pod("p").on("a")).0;
    let id = live.id("a").unwrap();
    live.remove_node("a");
    assert_eq!(live.id("a"), Some(id), "its pod still holds it");
    live.remove_pod("uid-p");
    assert_eq!(live.id("a"), None);
    assert_eq!(live.set_node(&node("b").facts()), id);
}

#[test]
fn labels_are_shared_and_found() {
    let mut texts = Texts::default();
    let map = BTreeMap::from([("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())]);
    let (one, two) = (Labels::new(&map, &mut texts), Labels::new(&map, &mut texts));
    assert_eq!(one.value("b"), Some("2"));
    assert_eq!(one.value("c"), None);
    assert!(Arc::ptr_eq(&one.0[0].0, &two.0[0].0), "one copy of the key");
    assert_eq!(one.iter().map(|(k, _)| k).collect::<Vec<_>>(), ["a", "b"]);
}

// Every outage leaves taints with another time. A scheduler that runs for months must not remember them all.
#[test]
fn taints_that_nobody_has_any_more_are_forgotten() {
    use crate::select::taint::Effect;
    let mut live = Live::new();
    let tainted = |key: &str, second: i64| {
        let mut facts = node("a").taint(key, "", Effect::NoExecute).facts();
        facts.taints[0].time_added = jiff::Timestamp::from_second(second).ok();
        facts
    };
    live.set_node(&node("b").facts());
    let versions: Vec<u64> = (0..100)
        .map(|second| {
            live.set_node(&tainted("down", second));
            live.snapshot().taints_version()
        })
        .collect();
    assert_eq!(versions[0], versions[99], "when it was added makes no difference");
    for number in 0..100 {
        live.set_node(&tainted(&format!("t{number}"), 0));
    }
    assert_eq!(live.snapshot().taints().len(), 3, "one of a, one of b, and one to change to");
    live.remove_node("a");
    assert!(live.snapshot().taints().iter().all(|taints| taints.is_empty()));
    let class = |live: &mut Live, name: &str| {
        let at = live.snapshot();
        let id = at.find_node(name).unwrap().id;
        at.taints()[at.columns().taints[id.index()] as usize].clone()
    };
    live.set_node(&tainted("down", 7));
    assert_eq!(class(&mut live, "a")[0].key, "down");
    assert!(class(&mut live, "b").is_empty());
}
