use super::build::{node, pod, world};
use super::*;

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
    assert_eq!(n1.id, NodeId(0), "numbered by name, not by arrival");
    assert_eq!(n1.free.get(Resource::CPU), 2500, "4000 - 1500; the finished pod holds nothing");
    assert_eq!(n1.free.get(Resource::PODS), 108, "110 - 2");
    assert_eq!(n1.free.get(gpu), -1, "more was promised than there is, and it shows");
    assert_eq!(n1.nonzero.cpu_milli, 1600, "1500 + 100 assumed");
    let on_n1: Vec<&str> = at.pods_on(n1.id).map(|p| &*p.name).collect();
    assert_eq!(on_n1, ["gpu", "web"]);
    assert_eq!(at.find_pod("default", "lost").unwrap().place, Place::Gone("n9".into()));
    assert_eq!(at.find_pod("default", "new").unwrap().place, Place::Unbound);
    assert!(at.find_pod("other", "new").is_none() && at.find_node("n9").is_none());
}

#[test]
fn order_of_arrival_does_not_matter_and_the_last_of_a_name_wins() {
    let (a, b) = (node("a").cpu("1"), node("b").cpu("2"));
    let one = world().node(a.clone()).node(b.clone()).pod(pod("p").on("b")).snapshot();
    let two = world().pod(pod("p").on("b")).node(node("b").cpu("7")).node(b).node(a).snapshot();
    assert_eq!(format!("{one:?}"), format!("{two:?}"));
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
