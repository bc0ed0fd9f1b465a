//! A real kube-scheduler that asks us about load, by the configurations that are shipped. What was written is read from
//! the audit log of the API server.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::ControlPlane;
use loadline_testkit::control_plane::FOLDER;
use serde_json::{Value, json};
use service::{PATIENCE, Service, until};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PODS: &str = "/api/v1/namespaces/default/pods";
const EXTENDER: &str = include_str!("../../../deploy/kube-scheduler/extender.yaml");
const FILTER_ONLY: &str = include_str!("../../../deploy/kube-scheduler/filter-only.yaml");
const HTTPS: &str = include_str!("../../../deploy/kube-scheduler/extender-https.yaml");

/// Half of a node may be used. Pods are new for long: what nobody measures is counted as requested.
const POLICY: &str = "apiVersion: loadline.dev/v1alpha1
kind: LoadSettings
spec:
  targets: {cpu: 0.5}
";

/// One control plane at a time is enough for a small machine.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A control plane whose kube-scheduler asks at a port where nobody listens yet.
struct Bench {
    plane: ControlPlane,
    port: u16,
}

impl Bench {
    fn start(configuration: &str) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let here = configuration
            .replace("/etc/kubernetes/scheduler.conf", &format!("{FOLDER}/kubeconfig"))
            .replace("/etc/kubernetes/loadline/ca.crt", &format!("{FOLDER}/ca.crt"))
            .replace("/etc/kubernetes/loadline/client", &format!("{FOLDER}/front-proxy"))
            .replace("10.96.88.88", "127.0.0.1")
            .replace("loadline-extender.kube-system.svc", "localhost")
            .replace(":8888", &format!(":{port}"));
        let plane = ControlPlane::setup().scheduler_config(&here).audited().start_or_skip()?;
        std::fs::write(plane.folder().join("policy.yaml"), POLICY).unwrap();
        Some(Self { plane, port })
    }

    fn extender(&self, more: &[&str]) -> Service {
        let file = |name: &str| self.plane.folder().join(name).display().to_string();
        let (kubeconfig, policy) = (file("kubeconfig"), file("policy.yaml"));
        let address = format!("127.0.0.1:{}", self.port);
        let mut args =
            vec!["scheduler", "--kubeconfig", &kubeconfig, "--policy", &policy, "--extender", &address];
        args.extend(more);
        let service = Service::start(&args);
        service.until("active");
        service
    }

    /// A node of eight cores, so much of which is used.
    fn node(&self, name: &str, used: f64) {
        let has = json!({"cpu": "8", "memory": "64Gi", "pods": "500"});
        self.plane.add_node(name, &json!({}), &has).unwrap();
        self.annotate(name, used);
    }

    fn annotate(&self, name: &str, used: f64) {
        let annotations = json!({"cpu_usage_avg_5m": format!("{used:.5},{}", now())});
        let change = json!({"metadata": {"annotations": annotations}});
        self.plane.patch(&format!("/api/v1/nodes/{name}"), &change).unwrap();
    }

    fn pod(&self, name: &str, spec: &Value) {
        let requests = json!({"cpu": "100m", "memory": "16Mi"});
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][key] = value.clone();
        }
        self.plane.create(PODS, &pod).unwrap();
    }

    fn burst(&self, prefix: &str, count: usize) {
        (0..count).for_each(|i| self.pod(&format!("{prefix}-{i}"), &json!({})));
    }

    /// Makes pods, some at a time, and lets something happen once so many of them are bound. Those that are named `late` are made
    /// after it has.
    fn interrupted(&self, prefix: &str, count: usize, middle: usize, happens: impl FnOnce()) {
        let before = self.logged("").len();
        let late = count / 4;
        let names: Vec<String> = (late..count).map(|i| format!("{prefix}-{i}")).collect();
        thread::scope(|scope| {
            for some in names.chunks(names.len().div_ceil(4)) {
                scope.spawn(move || some.iter().for_each(|name| self.pod(name, &json!({}))));
            }
            let begun = Instant::now();
            while self.logged("").len() < before + middle {
                assert!(begun.elapsed() < PATIENCE, "waited too long for {middle} bound pods");
                thread::sleep(Duration::from_millis(5));
            }
            happens();
            println!("it happened with {} of {count} pods bound", self.logged(prefix).len());
            self.burst(&format!("{prefix}-late"), late);
        });
    }

    /// Pods of a burst that are bound, says the audit log.
    fn logged(&self, prefix: &str) -> Vec<String> {
        let log = self.plane.audit().unwrap();
        let names = log.iter().filter(|entry| is_binding(entry));
        let names = names.map(|entry| entry["objectRef"]["name"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    }

    fn pods(&self) -> Vec<Value> {
        self.plane.get(PODS).unwrap()["items"].as_array().unwrap().clone()
    }

    /// Pods per node, once all have one.
    fn placed(&self) -> BTreeMap<String, usize> {
        let pods = until("all pods to be bound", || {
            let pods = self.pods();
            pods.iter().all(|pod| pod["spec"]["nodeName"].is_string()).then_some(pods)
        });
        let mut out = BTreeMap::new();
        for pod in pods {
            *out.entry(pod["spec"]["nodeName"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        out
    }

    /// Every pod was bound once, says the audit log; by whom.
    fn bound_once(&self) -> Vec<String> {
        let log = self.plane.audit().unwrap();
        let mut by: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in log.iter().filter(|entry| is_binding(entry)) {
            // We do not say who we are.
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            by.entry(text(&entry["objectRef"]["name"])).or_default().push(text(&entry["userAgent"]));
        }
        let names: Vec<String> =
            self.pods().iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        for name in &names {
            assert_eq!(by.get(name).map(Vec::len), Some(1), "{name}: {by:?}");
        }
        let mut agents: Vec<String> = by.into_values().flatten().collect();
        agents.sort();
        agents.dedup();
        agents
    }
}

/// Is it the entry of a pod that was bound?
fn is_binding(entry: &Value) -> bool {
    entry["objectRef"]["subresource"] == "binding" && entry["responseStatus"]["code"] == 201
}

/// As annotators write it.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    jiff::Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap().to_string()
}

/// Ten nodes of eight cores, half of which may be used: five have room for 36 pods of a tenth of a core, five for eight.
fn ten_nodes(bench: &Bench) {
    for i in 0..5 {
        bench.node(&format!("calm-{i}"), 0.05);
        bench.node(&format!("busy-{i}"), 0.40);
    }
}

/// No node has more than fits under its line.
#[track_caller]
fn under_the_line(placed: &BTreeMap<String, usize>) {
    for (node, count) in placed {
        let most = if node.starts_with("calm") { 36 } else { 8 };
        assert!(*count <= most, "{node} has {count} pods, {most} fit under its line: {placed:?}");
    }
}

#[test]
fn a_burst_passes_no_line_and_avoids_hot_nodes_also_when_we_are_killed() {
    let _alone = alone();
    let Some(bench) = Bench::start(EXTENDER) else { return };
    ten_nodes(&bench);
    bench.node("hot", 0.9);
    let mut extender = bench.extender(&[]);
    // Killed in the middle: pods wait, and nothing is lost.
    bench.interrupted("one", 200, 50, || extender.signal("KILL"));
    bench.burst("two", 10);
    until("kube-scheduler to fail for want of us", || {
        let failed = |pod: &Value| {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let conditions = pod["status"]["conditions"].as_array();
            let failed =
                conditions.is_some_and(|all| all.iter().any(|one| one["reason"] == "SchedulerError"));
            name.starts_with("two-") && failed
        };
        bench.pods().iter().any(failed).then_some(())
    });
    assert_eq!(
        bench.logged("two-"),
        Vec::<String>::new(),
        "nobody is placed without having been asked about"
    );

    extender = bench.extender(&[]);
    let placed = bench.placed();
    println!("210 pods: {placed:?}");
    under_the_line(&placed);
    assert_eq!(placed.get("hot"), None);
    assert_eq!(placed.values().sum::<usize>(), 210);
    let agents = bench.bound_once();
    assert!(agents.iter().all(|agent| agent.starts_with("kube-scheduler/")), "{agents:?}");
    assert!(extender.sum("loadline_extender_requests_total{verb=\"filter\"") > 0.0);
    assert!(extender.sum("loadline_extender_requests_total{verb=\"prioritize\"") > 0.0);
    assert!(extender.ends());
}

#[test]
fn by_filter_alone_a_burst_passes_no_line_and_nobody_waits_for_one_that_may_be_ignored() {
    let _alone = alone();
    let Some(bench) = Bench::start(&FILTER_ONLY.replace("ignorable: false", "ignorable: true")) else {
        return;
    };
    ten_nodes(&bench);
    bench.node("hot", 0.9);
    let extender = bench.extender(&["--extender-filter-only"]);
    bench.burst("one", 200);
    let placed = bench.placed();
    println!("200 pods by filter alone: {placed:?}");
    under_the_line(&placed);
    assert_eq!(placed.get("hot"), None);
    assert!(extender.sum("loadline_extender_requests_total{verb=\"filter\"") >= 200.0);
    assert!(extender.sum("loadline_extender_requests_total{verb=\"prioritize\"") < 0.5, "nobody asked");
    until("nobody to be on the way", || {
        (extender.sum("loadline_extender_tentative_reservations") < 0.5).then_some(())
    });

    (5..8).for_each(|i| bench.node(&format!("calm-{i}"), 0.05));
    // Killed in the middle of the next burst, away for a while, and back before its end: kube-scheduler goes on alone meanwhile.
    let mut back = None;
    bench.interrupted("two", 60, 10, || {
        extender.signal("KILL");
        drop(extender);
        bench.burst("three", 20);
        until("pods without us", || (bench.logged("three-").len() == 20).then_some(()));
        bench.annotate("hot", 0.9);
        back = Some(bench.extender(&["--extender-filter-only"]));
    });
    let extender = back.unwrap();
    // It is asked again, and what it says holds.
    assert_eq!(bench.placed().values().sum::<usize>(), 280);
    assert!(extender.sum("loadline_extender_requests_total{verb=\"filter\",code=\"200\"}") >= 15.0);
    for pod in bench.pods() {
        let (name, node) = (pod["metadata"]["name"].as_str().unwrap(), &pod["spec"]["nodeName"]);
        assert!(!name.starts_with("two-late-") || node != "hot", "{name} is on {node}");
    }
    bench.bound_once();
    assert!(extender.ends());
}

#[test]
fn no_line_is_passed_by_pods_that_wait_long_to_be_bound() {
    let _alone = alone();
    let slow = EXTENDER.replace("qps: 1000", "qps: 20").replace("burst: 2000", "burst: 20");
    assert_ne!(slow, EXTENDER);
    let Some(bench) = Bench::start(&slow) else { return };
    ten_nodes(&bench);
    // Decided on at once, bound in ten seconds or more: without a word they would be forgotten after one.
    let extender = bench.extender(&["--extender-reserve-for", "1s"]);
    bench.burst("one", 200);
    let placed = bench.placed();
    println!("200 pods by twenty requests a second: {placed:?}");
    under_the_line(&placed);
    bench.bound_once();
    assert!(extender.ends());
}

/// In the cluster the extender is a pod, and somebody has to place it.
#[test]
fn a_cluster_whose_extender_is_gone_places_its_replacement_and_everybody_else() {
    let _alone = alone();
    let Some(bench) = Bench::start(HTTPS) else { return };
    ten_nodes(&bench);
    let placed =
        |prefix: &str| until("pods without an extender", || (bench.logged(prefix).len() == 2).then_some(()));
    // On a node that is lost: connections are taken, and nobody answers.
    let lost = TcpListener::bind(("127.0.0.1", bench.port)).unwrap();
    bench.burst("lost", 2);
    placed("lost-");
    // Drained: nobody is there at all.
    drop(lost);
    bench.burst("gone", 2);
    placed("gone-");

    bench.node("hot", 0.9);
    let file = |name: &str| bench.plane.folder().join(name).display().to_string();
    let tls = [file("serving.crt"), file("serving.key"), file("ca.crt")];
    let tls = ["--extender-cert", &tls[0], "--extender-key", &tls[1], "--extender-client-ca", &tls[2]];
    let extender = bench.extender(&tls);
    bench.burst("back", 50);
    assert_eq!(bench.placed().get("hot"), None, "once it is there it is asked");
    assert!(extender.sum("loadline_extender_requests_total{verb=\"filter\",code=\"200\"}") >= 50.0);
    extender.signal("KILL");
    bench.burst("again", 2);
    placed("again-");
    bench.bound_once();
}

/// Nodes of one core, full by what pods of no importance ask for.
fn full(bench: &Bench, name: &str, used: f64) {
    let has = json!({"cpu": "1", "memory": "64Gi", "pods": "500"});
    bench.plane.add_node(name, &json!({}), &has).unwrap();
    bench.annotate(name, used);
    let requests = json!({"cpu": "400m", "memory": "16Mi"});
    for i in 0..2 {
        bench.pod(
            &format!("{name}-{i}"),
            &json!({"nodeName": name, "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}),
        );
    }
}

#[test]
fn others_leave_a_node_that_is_full_and_not_one_that_is_hot_over_tls() {
    preempts(HTTPS);
}

#[test]
fn a_kube_scheduler_that_sends_whole_nodes_gets_the_same() {
    let whole = HTTPS.replace("nodeCacheCapable: true", "nodeCacheCapable: false");
    assert_ne!(whole, HTTPS);
    preempts(&whole);
}

/// A pod of importance comes, and there is room on no node: somebody leaves the one that is full, and nobody the one that is
/// hot, where that would not help.
fn preempts(configuration: &str) {
    let _alone = alone();
    let Some(bench) = Bench::start(configuration) else { return };
    // By load there is room on both but for the threshold: new pods are counted in full, on top of what is measured.
    std::fs::write(bench.plane.folder().join("policy.yaml"), POLICY.replace("0.5", "0.99")).unwrap();
    full(&bench, "full", 0.1);
    full(&bench, "hot", 0.9);
    let file = |name: &str| bench.plane.folder().join(name).display().to_string();
    let tls = [file("serving.crt"), file("serving.key"), file("ca.crt")];
    let extender = bench.extender(&[
        "--extender-cert",
        &tls[0],
        "--extender-key",
        &tls[1],
        "--extender-client-ca",
        &tls[2],
    ]);
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "high"}, "value": 1000});
    bench.plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).unwrap();
    let requests = json!({"cpu": "300m", "memory": "16Mi"});
    bench.pod(
        "important",
        &json!({"priorityClassName": "high",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}),
    );
    assert_eq!(bench.placed().remove("hot"), Some(2), "both are still there");
    let important = bench.plane.get(&format!("{PODS}/important")).unwrap();
    assert_eq!(important["spec"]["nodeName"], "full");
    assert!(extender.sum("loadline_extender_requests_total{verb=\"preempt\",code=\"200\"}") >= 1.0);
    let deleted: Vec<Value> = bench.plane.audit().unwrap();
    let deleted =
        deleted.iter().filter(|entry| entry["verb"] == "delete" && entry["objectRef"]["resource"] == "pods");
    let deleted: Vec<&str> = deleted.map(|entry| entry["objectRef"]["name"].as_str().unwrap()).collect();
    assert!(matches!(deleted[..], [one] if one.starts_with("full-")), "{deleted:?}");
    assert!(extender.ends());
}

#[test]
fn we_bind_if_we_are_asked_to() {
    let _alone = alone();
    let binding = EXTENDER.replace("preemptVerb: preempt", "preemptVerb: preempt\n    bindVerb: bind");
    let Some(bench) = Bench::start(&binding) else { return };
    ten_nodes(&bench);
    let extender = bench.extender(&[]);
    bench.burst("one", 50);
    under_the_line(&bench.placed());
    let agents = bench.bound_once();
    assert!(agents.iter().all(|agent| !agent.starts_with("kube-scheduler")), "{agents:?}");
    // The last one may be seen on its node before its answer has been counted.
    let answered = || extender.sum("loadline_extender_requests_total{verb=\"bind\",code=\"200\"}");
    until("every answer", || (answered() > 49.5).then_some(()));
    assert!(extender.ends());
}

#[test]
fn an_address_beyond_this_machine_needs_tls() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["scheduler", "--extender", "0.0.0.0:8888", "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let refusal = "refusing to serve an extender on 0.0.0.0:8888 without TLS: give --extender-cert and --extender-key, \
                   or --extender 127.0.0.1:8888";
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(refusal), "{said}");
}

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
";
