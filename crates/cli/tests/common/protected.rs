//! A real node with pods to protect it from, rules, and an agent.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use crate::account;
use crate::service::{Service, until};
use loadline_testkit::{ControlPlane, Line, NodeRoot, RealNode, parts};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the kernel says of a container that is not held back.
pub const UNLIMITED: i64 = -1;
/// Cores of the node, as it is seen here.
const CORES: u32 = 2;
const PODS: &str = "/api/v1/namespaces/default/pods";
const SHIPPED: &str = include_str!("../../../../deploy/agent/act.yaml");
const QOS: &str = "/apis/ensurance.crane.io/v1alpha1";

/// A node to be protected.
pub struct Stage<'a> {
    pub plane: &'a ControlPlane,
    pub node: &'a RealNode<'a>,
    root: NodeRoot,
    /// How the agent reaches the API server: by an account that may do what the shipped file says, and no more.
    kubeconfig: String,
    /// Where the agent keeps its journal.
    pub state: tempfile::TempDir,
}

impl<'a> Stage<'a> {
    pub fn new(plane: &'a ControlPlane, node: &'a RealNode<'a>) -> Self {
        for definition in loadline_services::agent::definitions() {
            plane.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).unwrap();
        }
        until("the kinds are served", || {
            let served = |kind: &str| plane.get(&format!("{QOS}/{kind}")).is_ok();
            (served("nodeqoss") && served("podqoss") && served("avoidanceactions")).then_some(())
        });
        let root = NodeRoot::start(node, CORES).unwrap();
        let kubeconfig = account::least_privilege(plane, SHIPPED, "loadline-agent");
        Self { plane, node, root, kubeconfig, state: tempfile::tempdir().unwrap() }
    }

    /// Runs a pod that uses so many millicores.
    pub fn run(&self, name: &str, milli: &str, is_batch: bool) {
        let mut pod = self.node.pod(name, &["burn", milli]);
        if is_batch {
            pod["metadata"]["labels"] = json!({"tier": "batch"});
        }
        self.start(name, pod);
    }

    /// Runs a pod of batch with a limit of CPU.
    pub fn run_limited(&self, name: &str, milli: &str, limit: &str) {
        self.run_with(name, milli, &json!({"requests": {"cpu": "100m"}, "limits": {"cpu": limit}}));
    }

    /// Runs a pod of batch that requests so much, and is never slowed down below that.
    pub fn run_requesting(&self, name: &str, milli: &str, request: &str) {
        self.run_with(name, milli, &json!({"requests": {"cpu": request}}));
    }

    /// The same, that may take so many seconds to end.
    pub fn run_patient(&self, name: &str, milli: &str, request: &str, grace: i64) {
        let mut pod = self.batch(name, milli, &json!({"requests": {"cpu": request}}));
        pod["spec"]["terminationGracePeriodSeconds"] = json!(grace);
        self.start(name, pod);
    }

    fn run_with(&self, name: &str, milli: &str, resources: &Value) {
        self.start(name, self.batch(name, milli, resources));
    }

    fn batch(&self, name: &str, milli: &str, resources: &Value) -> Value {
        let mut pod = self.node.pod(name, &["burn", milli]);
        pod["metadata"]["labels"] = json!({"tier": "batch"});
        pod["spec"]["containers"][0]["resources"] = resources.clone();
        pod
    }

    fn start(&self, name: &str, mut pod: Value) {
        let grace = &mut pod["spec"]["terminationGracePeriodSeconds"];
        if grace.is_null() {
            *grace = json!(1);
        }
        self.plane.create(PODS, &pod).unwrap();
        until(name, || (self.pod(name)["status"]["phase"] == "Running").then_some(()));
    }

    pub fn pod(&self, name: &str) -> Value {
        self.plane.get(&format!("{PODS}/{name}")).unwrap_or_default()
    }

    pub fn delete(&self, name: &str) {
        self.plane.request("DELETE", &format!("{PODS}/{name}"), None).unwrap();
    }

    /// What an agent of this node is started with, besides these. What is given twice counts the second time.
    pub fn args(&self, more: &[&str]) -> Vec<String> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut args: Vec<String> = vec![
            "agent".into(),
            "--node-name".into(),
            self.node.name().into(),
            "--interval".into(),
            "1s".into(),
            "--host-root".into(),
            text(self.root.path()),
            "--cgroup-root".into(),
            self.node.cgroup().into(),
        ];
        if !more.contains(&"--state-dir") {
            args.extend(["--state-dir".into(), text(self.state.path())]);
        }
        if !more.contains(&"--kubeconfig") {
            args.extend(["--kubeconfig".into(), self.kubeconfig.clone()]);
        }
        if !more.contains(&"--runtime-endpoint") {
            args.extend(["--runtime-endpoint".into(), text(&self.node.socket())]);
        }
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        args
    }

    /// A kubeconfig by which the API server is reached through a line.
    pub fn kubeconfig_through(&self, line: &Line) -> tempfile::NamedTempFile {
        let text = fs::read_to_string(&self.kubeconfig).unwrap();
        let (from, to) = (format!(":{}", self.plane.port()), format!(":{}", line.port()));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text.replace(&from, &to)).unwrap();
        file
    }

    pub fn agent(&self, more: &[&str]) -> Service {
        Service::start(&self.args(more))
    }

    /// Batch is slowed down above so many millicores, by so many percent a step.
    pub fn throttle_above(&self, milli: i64, step: i64) {
        let throttle = json!({"cpuThrottle": {"minCPURatio": 10, "stepCPURatio": step}});
        self.action("slow-down", &json!({"coolDownSeconds": 1, "throttle": throttle}));
        self.scope(&["slow-down", "evict"]);
        self.rule("busy", milli, "slow-down");
    }

    pub fn action(&self, name: &str, spec: &Value) {
        self.apply("AvoidanceAction", name, spec);
    }

    pub fn scope(&self, actions: &[&str]) {
        let spec = json!({"labelSelector": {"matchLabels": {"tier": "batch"}}, "allowedActions": actions});
        self.apply("PodQOS", "batch", &spec);
    }

    /// A `NodeQOS` with one rule about the CPU of the node.
    pub fn rule(&self, name: &str, milli: i64, action: &str) {
        self.rule_restoring_after(name, milli, action, 2);
    }

    /// One that gives back after so many looks below its line.
    pub fn rule_restoring_after(&self, name: &str, milli: i64, action: &str, looks: i64) {
        let rule = json!({"name": name, "actionName": action, "strategy": "None", "avoidanceThreshold": 1, "restoreThreshold": looks,
            "metricRule": {"name": "cpu_total_usage", "value": milli}});
        let spec = json!({"nodeQualityProbe": {"nodeLocalGet": {}}, "rules": [rule]});
        self.apply("NodeQOS", name, &spec);
    }

    pub fn forget_rule(&self, name: &str) {
        self.plane.request("DELETE", &format!("{QOS}/nodeqoss/{name}"), None).unwrap();
    }

    /// As whoever protects a node would, with kubectl.
    fn apply(&self, kind: &str, name: &str, spec: &Value) {
        let object = json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        let mut kubectl = Command::new(parts::find("kubectl").unwrap())
            .env("KUBECONFIG", self.plane.kubeconfig())
            .env("KUBECACHEDIR", self.plane.folder().join("kubectl-cache"))
            .args(["apply", "-f", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        kubectl.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
        assert!(kubectl.wait().unwrap().success(), "{kind} {name}");
    }

    /// The cgroup of the one container of a pod; none while it has none.
    fn cgroup(&self, name: &str) -> Option<PathBuf> {
        let pod = self.pod(name);
        let (uid, id) = (
            pod["metadata"]["uid"].as_str()?,
            pod["status"]["containerStatuses"][0]["containerID"].as_str()?.strip_prefix("containerd://")?,
        );
        let class = pod["status"]["qosClass"].as_str()?.to_lowercase();
        let below = format!("{}/kubepods/{class}/pod{uid}/{id}", self.node.cgroup());
        let all = [format!("/sys/fs/cgroup/cpu/{below}"), format!("/sys/fs/cgroup/{below}")];
        all.into_iter().map(PathBuf::from).find(|path| path.exists())
    }

    /// What the kernel holds the container of a pod to, in microseconds of 100 000.
    pub fn quota(&self, name: &str) -> i64 {
        let Some(cgroup) = self.cgroup(name) else { panic!("{name} has no cgroup") };
        let one = fs::read_to_string(cgroup.join("cpu.cfs_quota_us"));
        let text = one.or_else(|_| fs::read_to_string(cgroup.join("cpu.max"))).unwrap();
        let first = text.split_whitespace().next().unwrap();
        if first == "max" { UNLIMITED } else { first.parse().unwrap() }
    }

    /// What all pods of the node use, in millicores, over half a second.
    pub fn used_milli(&self) -> f64 {
        let read = || {
            let text = fs::read_to_string(self.root.path().join("proc/stat")).unwrap();
            text.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
        };
        let (before, began) = (read(), Instant::now());
        std::thread::sleep(Duration::from_millis(500));
        (read() - before) * 10.0 / began.elapsed().as_secs_f64()
    }

    pub fn is_tainted(&self) -> bool {
        let node = self.plane.get(&format!("/api/v1/nodes/{}", self.node.name())).unwrap();
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().any(|taint| taint["key"] == "interference.crane.io")
    }

    /// Does the node bear the taint, the condition and the mark of a node that cools?
    pub fn marks(&self) -> (bool, bool, bool) {
        let node = self.plane.get(&format!("/api/v1/nodes/{}", self.node.name())).unwrap();
        let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        let mut of_ours = conditions.filter(|one| one["type"] == "interference-identified");
        let closed = of_ours.any(|one| one["status"] == "True");
        (self.is_tainted(), closed, node["metadata"]["annotations"]["loadline.dev/cooling-until"].is_string())
    }

    /// What an agent that ended says it left: by pod, what it surely wrote and what it may have written.
    pub fn noted(&self, name: &str) -> Option<(i64, Option<i64>)> {
        let journal = self.journal();
        let all = journal["state"]["throttled"].as_array()?;
        let of = all.iter().find(|one| one["pod"] == format!("default/{name}"))?;
        Some((of["writtenQuotaUs"].as_i64()?, of["unsureQuotasUs"][0].as_i64()))
    }

    /// The reasons of the agent's events about an object.
    pub fn events(&self, name: &str) -> Vec<String> {
        self.events_by("loadline-agent", name).into_iter().map(|(reason, _)| reason).collect()
    }

    /// The reasons and the words of events about an object.
    pub fn events_by(&self, component: &str, name: &str) -> Vec<(String, String)> {
        let all = self.plane.get("/api/v1/namespaces/default/events").unwrap_or_default();
        let of = all["items"].as_array().into_iter().flatten();
        let of = of.filter(|event| {
            event["involvedObject"]["name"] == name && event["reportingComponent"] == component
        });
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        of.map(|event| (text(event, "reason"), text(event, "message"))).collect()
    }

    /// A pod that a scheduler of ours is to find a node for.
    pub fn ask_for(&self, name: &str) {
        let mut pod = self.node.pod(name, &["pause"]);
        let spec = pod["spec"].as_object_mut().unwrap();
        spec.remove("nodeName");
        spec.insert("schedulerName".into(), json!("loadline"));
        self.plane.create(PODS, &pod).unwrap();
    }

    /// Has everything been given back, whatever may still be looked out for?
    pub fn all_is_back(&self) -> bool {
        let journal = self.journal();
        let left = journal["state"]["throttled"].as_array();
        left.is_none_or(|left| left.iter().all(|one| one["givenBackTime"].is_string()))
    }

    /// The agent's journal.
    pub fn journal(&self) -> Value {
        let text = fs::read(self.state.path().join("journal.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// What the journal says was written is what the kernel has.
    pub fn until_journal_equals_cgroups(&self, names: &[&str]) {
        until("journal and cgroups say the same", || {
            let journal = self.journal();
            let all = journal["state"]["throttled"].as_array()?;
            let written = |name: &str| {
                let of = all.iter().find(|one| one["pod"] == format!("default/{name}"));
                of.and_then(|one| one["writtenQuotaUs"].as_i64())
            };
            names.iter().all(|name| written(name) == Some(self.quota(name))).then_some(())
        });
    }
}
