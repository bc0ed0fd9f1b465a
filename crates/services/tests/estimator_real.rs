//! The feed against a real kube-apiserver: what is there counts, and goes on counting while the server is away.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::{SignedDuration, Timestamp};
use loadline_core::estimate::{Ask, Given};
use loadline_core::object::Key;
use loadline_services::cluster::Access;
use loadline_services::estimator::follow::{self, Options};
use loadline_services::estimator::{Known, Member, Status};
use loadline_testkit::{ControlPlane, WORKLOADS};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(4);

/// A followed control plane.
struct Stage {
    plane: ControlPlane,
    member: Arc<Member>,
    runtime: Runtime,
}

impl Stage {
    fn start(plane: ControlPlane) -> Self {
        let runtime = Runtime::new().unwrap();
        let (member, source) = (Arc::new(Member::default()), Access::Kubeconfig(plane.kubeconfig()));
        let options = Options { quotas: true, ..Options::default() };
        runtime.spawn(follow::run("m1".into(), member.clone(), source, options, CancellationToken::new()));
        Self { plane, member, runtime }
    }

    fn until(&self, what: &str, wanted: impl Fn(&Known, &Status) -> bool) {
        until(self.runtime.handle(), &self.member, what, wanted);
    }

    /// Waits until answers are what the API server's objects say, one by one.
    fn agrees(&self, expected: i32) {
        assert_eq!(counted(&self.plane), expected);
        self.until(&format!("{expected} to fit"), |known, _| room(known) == expected);
    }
}

fn until(on: &Handle, member: &Member, what: &str, wanted: impl Fn(&Known, &Status) -> bool) {
    let mut changes = member.changes();
    let fulfilled = || member.known().is_some_and(|known| wanted(&known, &member.status()));
    let in_time = on.block_on(async {
        tokio::time::timeout(PATIENCE, async {
            while !fulfilled() {
                changes.changed().await.unwrap();
            }
        })
        .await
    });
    assert!(in_time.is_ok(), "waited too long for {what}: {:?}", member.status());
}

/// How many more pods of one core fit.
fn room(known: &Known) -> i32 {
    let requests = [("cpu".to_owned(), "1".parse().unwrap())].into();
    let ask = Ask { requests, namespace: "default".into(), ..Ask::default() };
    known.view.replicas(&ask, &Given::default()).unwrap().most
}

fn request(plane: &ControlPlane, method: &str, path: &str, body: Option<&Value>) -> Value {
    let reply = plane.request(method, path, body).unwrap();
    assert!(reply.status < 300, "{method} {path}: {}", String::from_utf8_lossy(&reply.body));
    reply.json()
}

/// Whole cores, node by node, as the objects are now.
fn counted(plane: &ControlPlane) -> i32 {
    let items = |path| request(plane, "GET", path, None)["items"].as_array().cloned().unwrap();
    let (nodes, pods) = (items("/api/v1/nodes"), items("/api/v1/pods"));
    let cores = |value: &Value| value.as_str().unwrap().parse::<i32>().unwrap();
    let free = |node: &Value| {
        let on = pods.iter().filter(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"]);
        let used: i32 =
            on.map(|pod| cores(&pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])).sum();
        let open = node["spec"]["unschedulable"] != true;
        if open { (cores(&node["status"]["allocatable"]["cpu"]) - used).max(0) } else { 0 }
    };
    nodes.iter().map(free).sum()
}

fn node(plane: &ControlPlane, name: &str, cores: u32) {
    request(plane, "POST", "/api/v1/nodes", Some(&json!({"metadata": {"name": name}})));
    let room = json!({"cpu": cores.to_string(), "memory": "64Gi", "pods": "110"});
    let status = json!({"status": {"capacity": room, "allocatable": room,
        "conditions": [{"type": "Ready", "status": "True"}]}});
    request(plane, "PATCH", &format!("/api/v1/nodes/{name}/status"), Some(&status));
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(plane: &ControlPlane, name: &str, on: &str) {
    let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": on, "containers":
        [{"name": "c", "image": "none", "env": [{"name": "A", "value": "b"}],
            "resources": {"requests": {"cpu": "1"}}}]}});
    request(plane, "POST", PODS, Some(&pod));
}

fn delete(plane: &ControlPlane, path: &str) {
    request(plane, "DELETE", path, Some(&json!({"gracePeriodSeconds": 0})));
}

#[test]
fn answers_follow_a_real_api_server_and_outlive_it() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    for (name, cores) in [("a", 4), ("b", 8), ("c", 2)] {
        node(&plane, name, cores);
    }
    for i in 0..5 {
        pod(&plane, &format!("p{i}"), ["a", "b"][i % 2]);
    }
    let mut stage = Stage::start(plane);
    stage.agrees(9);
    pod(&stage.plane, "q", "c");
    stage.agrees(8);
    delete(&stage.plane, &format!("{PODS}/p0"));
    stage.agrees(9);
    let cordon = |on: bool| json!({"spec": {"unschedulable": on}});
    request(&stage.plane, "PATCH", "/api/v1/nodes/b", Some(&cordon(true)));
    stage.agrees(3);
    request(&stage.plane, "PATCH", "/api/v1/nodes/b", Some(&cordon(false)));
    stage.agrees(9);
    delete(&stage.plane, "/api/v1/nodes/c");
    stage.until("a node to be gone", |known, _| room(known) == 8);

    // The API server dies. Answers stay, with their age and the reason.
    let (member, handle) = (stage.member.clone(), stage.runtime.handle().clone());
    let seen = stage.plane.without_apiserver(|| {
        until(&handle, &member, "the trouble to be noticed", |_, status| status.problem.is_some());
        (member.known().unwrap(), member.status())
    });
    let (known, status) = seen.unwrap();
    assert_eq!(room(&known), 8, "as it was");
    assert!(status.heard.unwrap() <= status.since.unwrap(), "{status:?}");
    // It is back, with what was stored, and things go on.
    pod(&stage.plane, "late", "b");
    stage.until("the server to be back", |known, status| room(known) == 7 && status.problem.is_none());
    assert!(stage.member.status().heard.unwrap() > status.heard.unwrap());
}

// §5.8 with the controllers that make replica sets, and the scheduler that finds no node.
#[test]
fn replicas_that_wait_in_vain_are_found_behind_real_controllers() {
    let Some(plane) = ControlPlane::setup().controllers(WORKLOADS).scheduler(&[]).start_or_skip() else {
        return;
    };
    node(&plane, "a", 4);
    let deployment = |cores: &str| {
        json!({"metadata": {"name": "web"}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c",
                "image": "none", "resources": {"requests": {"cpu": cores}}}]}}}})
    };
    let path = "/apis/apps/v1/namespaces/default/deployments";
    request(&plane, "POST", path, Some(&deployment("1")));
    let stage = Stage::start(plane);
    let waiting = |known: &Known, name: &str| {
        known.waiting.unschedulable(&Key::new("default", name), SignedDuration::ZERO, Timestamp::MAX)
    };
    stage.until("three to be placed", |known, _| room(known) == 1 && waiting(known, "web") == Some(0));
    // A rollout to what fits nowhere: the first new pod waits, old ones do not count.
    request(&stage.plane, "PATCH", &format!("{path}/web"), Some(&deployment("9")));
    stage.until("the new replica set to wait", |known, _| waiting(known, "web") == Some(1));
    // And back: the template of the first replica set is the newest again.
    request(&stage.plane, "PATCH", &format!("{path}/web"), Some(&deployment("1")));
    stage.until("nothing to wait", |known, _| waiting(known, "web") == Some(0));
    assert_eq!(waiting(&stage.member.known().unwrap(), "other"), None);
}
