use super::*;
use crate::cluster::Watched as _;
use crate::cluster::testing::meta;
use crate::scheduler::watched::{Nodes, Pods};
use jiff::{SignedDuration, Timestamp};
use loadline_api::json::Tree;
use serde_json::{Value, json};

fn pod(name: &str, node: Option<&str>, phase: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"schedulerName": "default-scheduler", "nodeName": node, "containers": [{"name": "c"}]},
        "status": {"phase": phase},
    })
}

fn worlds() -> Worlds {
    let mut worlds = Worlds::new(Rules::default());
    for name in ["n1", "n2"] {
        let has = json!({"cpu": "10", "memory": "10Gi", "pods": "110"});
        let node =
            json!({"metadata": {"name": name, "uid": name}, "status": {"allocatable": has, "capacity": has}});
        let event = Event::Applied(meta(&node), Nodes::read(&Tree::from(&node)));
        worlds.translate(Message::Node(event), |_| true);
    }
    worlds
}

impl Worlds {
    /// Where the pod is in our world, as the message that comes out says.
    fn see(&mut self, value: &Value) -> Option<String> {
        let event = Event::Applied(meta(value), Pods::read(&Tree::from(value)));
        match self.translate(Message::Pod(event), |name| name == "default-scheduler") {
            Message::Pod(Event::Applied(_, Ok(pod))) => pod.facts.node,
            other => panic!("{other:?}"),
        }
    }

    fn event(&mut self, event: Event<Box<Pod>>) {
        self.translate(Message::Pod(event), |_| true);
    }

    /// What nodes use in our world, in thousandths of a CPU.
    fn measure(&mut self, second: i64, nodes: [i64; 2], pods: &[(&str, i64)]) -> Vec<i64> {
        let sample = |milli: i64| Sample {
            at: Timestamp::from_second(1_700_000_000 + second).expect("small"),
            window: SignedDuration::from_secs(15),
            usage: Load::new(milli * 1_000_000, 1 << 20),
        };
        let measured = Measured {
            nodes: ["n1", "n2"]
                .iter()
                .zip(nodes)
                .map(|(n, milli)| ((*n).to_owned(), sample(milli)))
                .collect(),
            pods: pods.iter().map(|(name, milli)| (Key::new("default", *name), sample(*milli))).collect(),
            ..Measured::default()
        };
        match self.translate(Message::Measured(Ok(measured)), |_| true) {
            Message::Measured(Ok(measured)) => {
                measured.nodes.iter().map(|(_, sample)| sample.usage.cpu_nano / 1_000_000).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn who_was_there_before_stays_and_who_comes_is_ours_to_place() {
    let mut worlds = worlds();
    worlds.event(Event::ListStarted);
    assert_eq!(worlds.see(&pod("old", Some("n1"), "Running")).as_deref(), Some("n1"));
    worlds.event(Event::Listed(None));
    assert_eq!(worlds.see(&pod("old", Some("n1"), "Running")).as_deref(), Some("n1"), "also later");
    let late = "seen bound at first, because the other one was faster";
    assert_eq!(worlds.see(&pod("a", Some("n1"), "Pending")), None, "{late}");
    worlds.decided(&"uid-a".into(), &"n2".into());
    assert_eq!(worlds.see(&pod("a", Some("n1"), "Running")).as_deref(), Some("n2"));
    let mut other = pod("b", Some("n1"), "Pending");
    other["spec"]["schedulerName"] = json!("another");
    assert_eq!(worlds.see(&other).as_deref(), Some("n1"), "of another name: none of our business");
}

#[test]
fn what_is_measured_moves_with_the_pods() {
    let mut worlds = worlds();
    worlds.event(Event::Listed(None));
    worlds.see(&pod("a", Some("n1"), "Running"));
    assert_eq!(
        worlds.measure(0, [5000, 1000], &[("a", 2000)]),
        [3000, 1000],
        "it is nowhere in ours: 5 − 2 on n1"
    );
    worlds.decided(&"uid-a".into(), &"n2".into());
    assert_eq!(worlds.measure(15, [5000, 1000], &[("a", 2000)]), [3000, 3000], "5 − 2 and 1 + 2");
    assert_eq!(worlds.measure(30, [5000, 1000], &[]), [3000, 3000], "as it was last measured");
    assert_eq!(worlds.measure(45, [500, 1000], &[]), [0, 3000], "never less than nothing");
    worlds.event(Event::Deleted(meta(&pod("a", Some("n1"), "Running"))));
    assert_eq!(worlds.measure(60, [500, 1000], &[]), [500, 1000], "it is gone from both");
}

#[test]
fn what_is_measured_of_pods_that_are_gone_is_not_kept() {
    let mut worlds = worlds();
    worlds.event(Event::ListStarted);
    worlds.see(&pod("old", Some("n1"), "Running"));
    worlds.event(Event::Listed(None));
    worlds.see(&pod("a", Some("n1"), "Running"));
    worlds.measure(0, [5000, 1000], &[("a", 2000), ("old", 500)]);
    let held = |worlds: &Worlds| {
        let mut held: Vec<String> = worlds.pairs.values().map(|pair| pair.key.name.to_string()).collect();
        held.sort();
        held
    };
    assert_eq!(held(&worlds), ["a"], "of the old one nobody asks what it uses");
    // A metrics server tells of a pod for a while after it has gone.
    worlds.event(Event::Deleted(meta(&pod("a", Some("n1"), "Running"))));
    worlds.measure(15, [5000, 1000], &[("a", 2000)]);
    assert_eq!(held(&worlds), Vec::<String>::new());
    let mut successor = pod("a", None, "Pending");
    successor["metadata"]["uid"] = json!("another");
    worlds.see(&successor);
    worlds.measure(30, [5000, 1000], &[("a", 2000)]);
    successor["spec"]["nodeName"] = json!("n1");
    worlds.see(&successor);
    let moved = worlds.measure(45, [5000, 1000], &[]);
    assert_eq!(moved, [5000, 1000], "what was measured under its name before was not of it");
}

#[test]
fn agreement_is_counted_once_for_each_pod() {
    let mut worlds = worlds();
    worlds.event(Event::Listed(None));
    for (name, node) in [("a", "n1"), ("b", "n1"), ("c", "n2")] {
        worlds.see(&pod(name, Some(node), "Pending"));
    }
    worlds.decided(&"uid-a".into(), &"n1".into());
    worlds.decided(&"uid-b".into(), &"n2".into());
    worlds.see(&pod("b", Some("n1"), "Running"));
    assert_eq!(worlds.agreement(), Agreement { same: 1, elsewhere: 1, waiting: 1 });
    let [one] = &worlds.differences()[..] else { panic!("one") };
    assert_eq!((&*one.pod.name, &*one.real, &*one.ours), ("b", "n1", "n2"));
    assert!(worlds.differences().is_empty(), "told once");
    worlds.see(&pod("c", Some("n2"), "Succeeded"));
    assert_eq!(worlds.agreement().waiting, 0, "it is over");
}

#[test]
fn a_list_that_does_not_name_a_pod_ends_it() {
    let mut worlds = worlds();
    worlds.event(Event::ListStarted);
    worlds.event(Event::Listed(None));
    worlds.see(&pod("a", Some("n1"), "Running"));
    assert_eq!(worlds.agreement().waiting, 1);
    worlds.event(Event::ListStarted);
    worlds.event(Event::Listed(None));
    assert_eq!(worlds.agreement().waiting, 0);
}

#[test]
fn pods_on_hot_nodes_are_counted_in_both_worlds() {
    let mut worlds = worlds();
    worlds.event(Event::Listed(None));
    worlds.see(&pod("a", Some("n1"), "Running"));
    worlds.see(&pod("b", Some("n1"), "Running"));
    worlds.decided(&"uid-a".into(), &"n1".into());
    worlds.decided(&"uid-b".into(), &"n2".into());
    // Crane's default lets 65 % be used.
    worlds.measure(0, [7000, 0], &[("a", 3000), ("b", 3000)]);
    let ours = BTreeMap::from([("n1".into(), 1), ("n2".into(), 1)]);
    assert_eq!(
        worlds.on_hot(&ours, &Heat::default()),
        (2, 0),
        "both on n1 in reality; nothing is hot in ours"
    );
    assert_eq!((worlds.real.hot(), worlds.real.node_seconds()), (1, 15));
}
