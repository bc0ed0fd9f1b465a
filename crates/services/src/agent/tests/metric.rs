//! A metric more, with its collectors and its knob: what a look finds of it is what the plan goes by.

use super::*;
use crate::node::local::{Actuator, Local, Options as OfMachine};
use loadline_core::qos::cgroup::{Figure, Layout, Version};
use loadline_core::qos::collect::{Collector, Found, Look, Machine, OfPods};
use loadline_core::qos::metric::{Metric, Throttle};
use loadline_core::qos::throttle::{Lowered, Step};
use loadline_core::qos::{Class, Container, Pod};
use loadline_core::view::Labels;
use std::path::{Path, PathBuf};

/// A rule on it is allowed, and here it is something else.
pub(super) const NAME: &str = "network_receive_kibps";
/// What the node says of it, and what a pod does; an agent may read both.
const FILES: (&str, &str) = ("proc/1/net/dev", "memory.current");

fn number(text: &str) -> Option<Level> {
    text.trim_end().parse().ok().map(Level::whole)
}

fn used(pod: &Pod) -> Option<Level> {
    pod.usage.get(NAME).copied()
}

fn read(_: &Machine, now: Look<'_>, _: Option<Look<'_>>) -> Vec<Found> {
    vec![Found { labels: Labels::default(), value: number(now.text) }]
}

/// Half of what it receives.
fn down(pod: &Pod, _: &Container, _: Step) -> Option<Lowered> {
    Some(Lowered { quota_us: 20_000, release: used(pod)?.times(1, 2) })
}

pub(super) fn network(knob: Option<&'static str>) -> Metric {
    let figure = Figure::Other { controller: "memory", v1: "memory.usage_in_bytes", v2: FILES.1 };
    Metric {
        compare: Some(|a, b| used(b).cmp(&used(a))),
        release: Some(used),
        // Before CPU, so that what is slowed down is by this one.
        rank: 9,
        throttle: knob.map(|knob| Throttle { knob, down, up: |_, _, _, _| None }),
        of_pods: Some(OfPods { figure, read: |_, now, _| number(now.text) }),
        ..Metric::watched(NAME, "kbit/s", Some(Collector { file: FILES.0, read }))
    }
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("written");
}

/// A node that receives 1 500, 200 of which are for pod `a` and 700 for `b`.
pub(super) async fn receiving(stage: &mut Stage, rules: Vec<(crate::cluster::Resource, Value)>, root: &Path) {
    stage.ask_for(rules).await;
    write(root, "sys/fs/cgroup/cgroup.controllers", "memory\n");
    write(root, FILES.0, "1500\n");
    for (name, kibps) in [("a", 200), ("b", 700)] {
        stage.run(name, 10, true).await;
        let key = Key::new("default", name);
        let status = json!({"status": {"containerStatuses": [{
            "name": "main", "image": "simulated", "imageID": "", "ready": true, "restartCount": 0, "started": true,
            "containerID": format!("containerd://{name}"),
            "state": {"running": {"startedAt": stage.now.to_string()}}}]}});
        stage.writer.patch(PODS.status(), &key, Patch::Strategic, &status).await.expect("the pod is there");
        let has_id = |state: &State| {
            state.pod(&key).is_some_and(|(_, pod)| pod.pod.containers.iter().all(|one| one.id.is_some()))
        };
        stage.until("its container has an id", has_id).await;
        let group = group(stage, name);
        write(root, &format!("sys/fs/cgroup/{group}/{}", FILES.1), &format!("{kibps}\n"));
        write(root, &format!("sys/fs/cgroup/{group}/cpu.stat"), "usage_usec 1\n");
        std::fs::create_dir_all(quota_file(stage, root, name).parent().expect("a folder")).expect("a folder");
        std::fs::write(quota_file(stage, root, name), "max 100000\n").expect("written");
    }
    stage.agent.host = local(root, Actuator::Cgroup);
}

fn group(stage: &Stage, name: &str) -> String {
    Layout::candidates(Version::V2, "")[0].pod(Class::Burstable, &stage.uid(name)).expect("a uid")
}

/// The file that says what the container of a pod is held to.
pub(super) fn quota_file(stage: &Stage, root: &Path, name: &str) -> PathBuf {
    root.join("sys/fs/cgroup").join(group(stage, name)).join(format!("cri-containerd-{name}.scope/cpu.max"))
}

/// A machine that is a folder.
pub(super) fn local(root: &Path, actuator: Actuator) -> Arc<Local> {
    Arc::new(Local::new(OfMachine {
        node: NODE.into(),
        root: root.to_owned(),
        cgroup_root: String::new(),
        interfaces: Vec::new(),
        count_iowait: false,
        longest: Duration::from_mins(1),
        actuator,
    }))
}

#[tokio::test]
async fn who_uses_most_of_a_metric_of_its_own_goes() {
    let (mut stage, root) = (Stage::new().await, tempfile::tempdir().expect("a folder"));
    stage.state.catalogue.register(network(None));
    let mut objects = only_evict();
    objects[3].1["spec"]["rules"][0]["metricRule"] = json!({"name": NAME, "value": 1000});
    receiving(&mut stage, objects, root.path()).await;
    for _ in 0..8 {
        stage.cycle().await;
    }
    let asked = [("default/b".to_owned(), Reply::Granted)];
    assert_eq!(stage.asked(), asked, "500 and a tenth more are to go, and it receives 700");
}

#[tokio::test]
async fn a_knob_nobody_here_can_turn_is_refused_and_no_quota_is_written_in_its_place() {
    let (mut stage, root) = (Stage::new().await, tempfile::tempdir().expect("a folder"));
    stage.state.catalogue.register(network(Some("network")));
    let mut objects = rules();
    let rules = &mut objects[3].1["spec"]["rules"];
    rules[0]["metricRule"] = json!({"name": NAME, "value": 1000});
    rules.as_array_mut().expect("a list").truncate(1);
    receiving(&mut stage, objects, root.path()).await;
    for _ in 0..4 {
        let told = stage.cycle().await;
        assert!(!told.iter().any(|line| line.contains("throttled")), "{told:?}");
    }
    assert!(stage.agent.metrics.failed_writes.get() > 0);
    assert_eq!(stage.agent.failure.as_deref(), Some("there is no knob \"network\" here"));
    assert!(!stage.state.remembers(), "nothing was taken");
}
