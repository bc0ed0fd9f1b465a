//! Karmada's scheduler and Karmada's own estimators work on our harness: what a comparison with ours rests on.
//!
//! The story told here: one replica that asks for 12 cpu. Cluster a has 80 cpu, but in nodes of 8; cluster b has 32,
//! in nodes of 16. By the sums, a has room for ⌊80/12⌋ = 6 replicas and b for ⌊32/12⌋ = 2, so a would be taken, and
//! the pod would wait there for ever. By the nodes, a has room for 10 × ⌊8/12⌋ = 0 and b for 2 × ⌊16/12⌋ = 2.

#![expect(clippy::unwrap_used, reason = "a failed step of a helper fails its test")]

use loadline_testkit::karmada::{self, Channel, Karmada, Pair, Scheduler, Version};
use loadline_testkit::{ControlPlane, Running};
use serde_json::{Value, json};

fn add_nodes(plane: &ControlPlane, count: usize, cpu: u32) {
    let room = json!({"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"});
    for index in 0..count {
        plane.add_node(&format!("node-{index}"), &Value::Null, &room).unwrap();
    }
}

fn summary(nodes: u32, cpu: u32) -> Value {
    let sum = |each: u32| (nodes * each).to_string();
    json!({"allocatable": {"cpu": sum(cpu), "memory": format!("{}Gi", nodes * 64), "pods": sum(110)}})
}

/// Two clusters: a's API server is also the one the scheduler works on.
struct Fleet {
    a: ControlPlane,
    b: ControlPlane,
}

impl Fleet {
    fn start_or_skip() -> Option<Self> {
        let fleet = Self { a: karmada::plane_or_skip()?, b: ControlPlane::start_or_skip()? };
        add_nodes(&fleet.a, 10, 8);
        add_nodes(&fleet.b, 2, 16);
        Some(fleet)
    }

    fn estimators(&self, version: Version, channel: &Channel) -> [Running; 2] {
        [(&self.a, "a"), (&self.b, "b")].map(|(plane, name)| {
            let estimator = karmada::estimator(version, &plane.kubeconfig(), name, channel, &[]).unwrap();
            karmada::settle(&estimator, plane).unwrap();
            estimator
        })
    }

    /// The story with a scheduler and estimators of these versions.
    fn tell(&self, version: Version, estimators: Version, channel: &Channel) {
        let [a, b] = self.estimators(estimators, channel);
        let karmada = Karmada::install(&self.a).unwrap();
        karmada.cluster("a", &summary(10, 8), a.port()).unwrap();
        karmada.cluster("b", &summary(2, 16), b.port()).unwrap();
        let decide = |scheduler: &Scheduler, name: &str, replicas| {
            let request = json!({"resourceRequest": {"cpu": "12"}});
            let binding = karmada::deployment(name, replicas, &request, &karmada::aggregated());
            scheduler.bind(&binding).unwrap()
        };

        let sums = karmada.scheduler(version, channel, &["--enable-scheduler-estimator=false"]).unwrap();
        let by_sums = decide(&sums, "by-sums", 1);
        assert_eq!(by_sums.clusters, [("a".to_owned(), 1)], "without estimators: {by_sums:?}");
        drop(sums);

        let scheduler = karmada.scheduler(version, channel, &[]).unwrap();
        let one = decide(&scheduler, "one", 1);
        assert_eq!(one.clusters, [("b".to_owned(), 1)], "{one:?}");
        assert_eq!(one.reason, "Success");
        assert!(
            scheduler.is_connected("a") && scheduler.is_connected("b"),
            "{}",
            scheduler.running().output()
        );

        let three = decide(&scheduler, "three", 3);
        assert_eq!(three.clusters, [], "b has room for two only: {three:?}");
        assert!(three.message.contains("available replicas 2 are not enough to schedule"), "{three:?}");
    }
}

#[test]
fn karmada_1_17_divides_by_the_answers_of_its_estimators() {
    let Some(fleet) = Fleet::start_or_skip() else { return };
    fleet.tell(Version::V1_17, Version::V1_17, &Channel::Plain);
}

#[test]
fn karmada_1_18_divides_by_the_answers_of_its_estimators_over_mutual_tls() {
    let Some(fleet) = Fleet::start_or_skip() else { return };
    fleet.tell(Version::V1_18, Version::V1_18, &Channel::Mutual(Pair::of(&fleet.a)));
}

// Each must write what the other reads: the older wire form.
#[test]
fn karmada_1_17_and_1_18_understand_each_other() {
    for (scheduler, estimators) in [(Version::V1_17, Version::V1_18), (Version::V1_18, Version::V1_17)] {
        let Some(fleet) = Fleet::start_or_skip() else { return };
        fleet.tell(scheduler, estimators, &Channel::Plain);
    }
}

#[test]
fn an_estimator_is_a_process_of_its_own_that_ends_with_its_value() {
    let Some(plane) = karmada::plane_or_skip() else { return };
    let version = Version::V1_18;
    let estimator = karmada::estimator(version, &plane.kubeconfig(), "a", &Channel::Plain, &[]).unwrap();
    let status = format!("/proc/{}/status", estimator.pid().unwrap());
    // Linux only; elsewhere there is no such file to compare with.
    if let Ok(text) = std::fs::read_to_string(&status) {
        assert!(text.starts_with("Name:\tkarmada-schedul"), "{text}");
    }
    let port = estimator.port();
    drop(estimator);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    assert!(!std::path::Path::new(&status).exists());
}

// First-fit counts depend on the order of nodes, so a comparison needs one it knows.
#[test]
fn an_estimator_takes_nodes_by_name() {
    let Some(plane) = karmada::plane_or_skip() else { return };
    let names = ["e", "b", "d", "a", "c"];
    for name in names {
        plane.add_node(name, &Value::Null, &json!({"cpu": "1", "pods": "10"})).unwrap();
    }
    for &version in Version::ALL {
        let estimator = karmada::estimator(version, &plane.kubeconfig(), "a", &Channel::Plain, &[]).unwrap();
        karmada::settle(&estimator, &plane).unwrap();
        let output = estimator.output();
        let first = |name: &str| output.find(&format!("to NodeTree\" node=\"{name}\"")).unwrap();
        let mut taken = names;
        taken.sort_by_key(|name| first(name));
        assert_eq!(taken, ["a", "b", "c", "d", "e"], "{version:?}");
    }
}
