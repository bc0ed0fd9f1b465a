//! The chart on a real node: installed with Helm from an image, changed, rolled back, and gone without a trace.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::install::{self, NAMESPACE};
use loadline_testkit::{ControlPlane, MetricsServer, NodeRoot, RealNode, parts};
use serde_json::{Value, json};
use service::until;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const PODS: &str = "/api/v1/namespaces/default/pods";
const QOS: &str = "/apis/ensurance.crane.io/v1alpha1";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// What the kernel says of a container that is not held back.
const UNLIMITED: i64 = -1;
/// Everything the chart has, each with the accounts of its own.
const COMPONENTS: [&str; 8] =
    ["scheduler", "annotator", "recommender", "rebalance", "agent", "estimator", "fleet", "dashboard"];

/// A line that anything at all on the node is above.
fn policy(cores: f64) -> String {
    format!(
        "apiVersion: scheduler.policy.crane.io/v1alpha1
kind: DynamicSchedulerPolicy
spec:
  syncPolicy: [{{name: cpu_usage_avg_5m, period: 3m}}]
  priority: [{{name: cpu_usage_avg_5m, weight: 1}}]
---
apiVersion: loadline.dev/v1alpha1
kind: LoadSettings
spec:
  targets: {{cpu: {:.6}, memory: 1}}
",
        0.1 / cores
    )
}

struct Stage<'a> {
    plane: &'a ControlPlane,
    node: &'a RealNode<'a>,
    values: PathBuf,
}

impl Stage<'_> {
    #[track_caller]
    fn helm(&self, words: &str) -> String {
        let mut helm = install::helm(self.plane).unwrap();
        helm.args(words.split_whitespace()).args(["-n", NAMESPACE]);
        let output = helm.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "helm {words}: {}\n{}", text(&output.stderr), self.state());
        text(&output.stdout)
    }

    /// What its pods are at and what they said, for whoever has to find out.
    fn state(&self) -> String {
        let kubectl = |words: &str| {
            let output = self.plane.kubectl().unwrap().args(words.split(' ')).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let mut text = kubectl(&format!("-n {NAMESPACE} get pods -o wide"))
            + &kubectl(&format!("-n {NAMESPACE} get events"));
        for log in walk(&self.node.logs()[0].with_file_name("logs")) {
            let said = fs::read_to_string(&log).unwrap_or_default();
            writeln!(text, "--- {}\n{said}", log.display()).unwrap();
        }
        text
    }

    fn install(&self) {
        let (chart, values) = (install::chart(), &self.values);
        self.helm(&format!(
            "install loadline {} --create-namespace --values {} --wait --timeout 4m",
            chart.display(),
            values.display()
        ));
    }

    fn upgrade(&self, set: &str) {
        let chart = install::chart();
        self.helm(&format!(
            "upgrade loadline {} --reset-then-reuse-values --set {set} --wait --timeout 4m",
            chart.display()
        ));
    }

    fn list(&self, path: &str) -> Vec<Value> {
        self.plane.get(path).unwrap()["items"].as_array().cloned().unwrap_or_default()
    }

    fn names(&self, path: &str) -> Vec<String> {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        self.list(path).iter().map(name).filter(|name| name.starts_with("loadline")).collect()
    }

    fn pod(&self, name: &str) -> Value {
        self.plane.get(&format!("{PODS}/{name}")).unwrap_or_default()
    }

    fn node_object(&self) -> Value {
        self.plane.get(&format!("/api/v1/nodes/{}", self.node.name())).unwrap()
    }

    fn is_tainted(&self) -> bool {
        let node = self.node_object();
        node["spec"]["taints"].as_array().into_iter().flatten().any(|it| it["key"] == "interference.crane.io")
    }

    /// What the kernel holds the container of a pod to, in microseconds of 100 000.
    fn quota(&self, name: &str) -> i64 {
        let pod = self.pod(name);
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap();
        let id = id.strip_prefix("containerd://").unwrap();
        let class = pod["status"]["qosClass"].as_str().unwrap().to_lowercase();
        let below = format!("{}/kubepods/{class}/pod{uid}/{id}", self.node.cgroup());
        let one = fs::read_to_string(format!("/sys/fs/cgroup/cpu/{below}/cpu.cfs_quota_us"));
        let text = one.or_else(|_| fs::read_to_string(format!("/sys/fs/cgroup/{below}/cpu.max"))).unwrap();
        let first = text.split_whitespace().next().unwrap();
        if first == "max" { UNLIMITED } else { first.parse().unwrap() }
    }

    /// Batch is slowed down above so many millicores.
    fn rules(&self) {
        let throttle = json!({"coolDownSeconds": 1, "throttle": {"cpuThrottle": {"minCPURatio": 10, "stepCPURatio": 40}}});
        let scope =
            json!({"labelSelector": {"matchLabels": {"tier": "batch"}}, "allowedActions": ["slow-down"]});
        let rule = json!({"name": "busy", "actionName": "slow-down", "strategy": "None", "avoidanceThreshold": 1,
            "restoreThreshold": 2, "metricRule": {"name": "cpu_total_usage", "value": 300}});
        let line = json!({"nodeQualityProbe": {"nodeLocalGet": {}}, "rules": [rule]});
        for (kind, plural, name, spec) in [
            ("AvoidanceAction", "avoidanceactions", "slow-down", throttle),
            ("PodQOS", "podqoss", "batch", scope),
            ("NodeQOS", "nodeqoss", "busy", line),
        ] {
            let object = json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
            self.plane.create(&format!("{QOS}/{plural}"), &object).unwrap();
        }
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Verbs by resource, of the rules of a role.
fn granted(rules: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let texts = |value: &Value| -> Vec<String> {
        let list = value.as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut out = BTreeMap::<String, BTreeSet<String>>::new();
    for rule in rules {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let (name, part) =
                    resource.split_once('/').map_or((&*resource, ""), |(name, part)| (name, part));
                let mut full = name.to_owned();
                if !group.is_empty() {
                    full = format!("{full}.{group}");
                }
                if !part.is_empty() {
                    full = format!("{full}/{part}");
                }
                out.entry(full).or_default().extend(texts(&rule["verbs"]));
            }
        }
    }
    out
}

/// The same, of what `kubectl auth can-i --list` says, without what every account may.
fn allowed(said: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut out = BTreeMap::<String, BTreeSet<String>>::new();
    for line in said.lines().skip(1) {
        let resource = line.split_whitespace().next().unwrap_or_default();
        if resource.is_empty() || resource.starts_with(['[', '/']) || resource.starts_with("selfsubject") {
            continue;
        }
        let verbs = line.rsplit('[').next().unwrap_or_default().trim_end().trim_end_matches(']');
        out.entry(resource.to_owned()).or_default().extend(verbs.split(' ').map(str::to_owned));
    }
    out
}

#[test]
fn it_is_installed_with_one_command_does_its_work_and_leaves_without_a_trace() {
    if parts::find_or_skip("helm").is_none() {
        return;
    }
    let Some(plane) = install::setup().start_or_skip() else { return };
    let Some(node) = RealNode::start_joined_or_skip(&plane) else { return };
    let root = NodeRoot::start(&node, 2).unwrap();
    install::import(&node, Path::new(env!("CARGO_BIN_EXE_loadline"))).unwrap();
    let journal = tempfile::tempdir().unwrap();
    // The kinds of a hub, for the part that decides about fleets.
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        if text.contains("group: cluster.open-cluster-management.io") {
            let definition: Value = serde_saphyr::from_str(&text).unwrap();
            plane.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).unwrap();
        }
    }
    let stage = Stage { plane: &plane, node: &node, values: plane.folder().join("values.json") };
    let cores: f64 = stage.node_object()["status"]["allocatable"]["cpu"].as_str().unwrap().parse().unwrap();
    let mut values = install::values(&plane, &node, &root, journal.path());
    values["policy"] = json!(policy(cores));
    values["rebalance"] = json!({"enabled": true, "replicas": 1});
    values["estimator"] =
        json!({"enabled": true, "replicas": 1, "clusterName": "m1", "allowPlaintext": true});
    values["fleet"] = json!({"enabled": true, "replicas": 1});
    values["dashboard"] = json!({"enabled": true});
    fs::write(&stage.values, values.to_string()).unwrap();

    without_a_metrics_api_nothing_is_installed(&stage);
    let _metrics = MetricsServer::start(&plane, &node).unwrap();
    stage.install();
    let pods = stage.list(&format!("/api/v1/namespaces/{NAMESPACE}/pods"));
    for component in COMPONENTS {
        let of =
            pods.iter().filter(|pod| pod["metadata"]["labels"]["app.kubernetes.io/component"] == component);
        let of: Vec<_> = of.collect();
        assert!(!of.is_empty(), "{component}");
        for pod in of {
            assert_eq!(pod["spec"]["serviceAccountName"], format!("loadline-{component}"));
            assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true, "{component}");
        }
        accounts_may_do_what_their_roles_say(&stage, component);
    }
    until("nodes say how loaded they are", || {
        stage.node_object()["metadata"]["annotations"]["cpu_usage_avg_5m"].is_string().then_some(())
    });

    // A preview tells, and changes nothing.
    let mut batch = node.pod("batch", &["burn", "600"]);
    batch["metadata"]["labels"] = json!({"tier": "batch"});
    batch["spec"]["terminationGracePeriodSeconds"] = json!(1);
    until("the default account", || plane.create(PODS, &batch).ok());
    node.wait_until(|| stage.pod("batch")["status"]["phase"] == "Running").unwrap();
    stage.rules();
    until("the plan is told", || {
        let told = stage.list("/apis/events.k8s.io/v1/events");
        told.iter().any(|event| event["reportingController"] == "loadline-agent").then_some(())
    });
    assert_eq!(stage.quota("batch"), UNLIMITED);
    assert!(!stage.is_tainted());

    // Switched on, it is slowed down, and the next pod goes elsewhere.
    stage.upgrade("agent.act=true,scheduler.mode=active");
    until("it is slowed down", || (stage.quota("batch") != UNLIMITED).then_some(()));
    until("the node is closed", || stage.is_tainted().then_some(()));
    let mut next = node.pod("next", &["pause"]);
    let spec = next["spec"].as_object_mut().unwrap();
    spec.remove("nodeName");
    spec.insert("schedulerName".into(), json!("loadline"));
    plane.create(PODS, &next).unwrap();
    until("the next one waits", || {
        let told = stage.list("/apis/events.k8s.io/v1/namespaces/default/events");
        let about =
            |event: &&Value| event["regarding"]["name"] == "next" && event["reason"] == "FailedScheduling";
        // Which of the two is told first depends on who was faster.
        let why = ["would pass the load line", "were cooling down"];
        let is_avoided = |event: &Value| {
            event["note"].as_str().is_some_and(|note| why.iter().any(|why| note.contains(why)))
        };
        told.iter().filter(about).any(is_avoided).then_some(())
    });

    // Back, with everything given back.
    stage.helm("rollback loadline 1 --wait --timeout 4m");
    until("it is given back", || (stage.quota("batch") == UNLIMITED).then_some(()));
    until("the node is open", || (!stage.is_tainted()).then_some(()));

    // Uninstalled while it acts: nothing of it stays, and what is the user's does.
    stage.upgrade("agent.act=true");
    until("it is slowed down again", || (stage.quota("batch") != UNLIMITED).then_some(()));
    until("the node is closed again", || stage.is_tainted().then_some(()));
    stage.helm("uninstall loadline --wait --timeout 4m");
    nothing_is_left(&stage);
    assert_eq!(stage.list(&format!("{QOS}/nodeqoss")).len(), 1, "rules are the user's");
    assert_eq!(stage.pod("batch")["status"]["phase"], "Running");

    // And again, with the kinds that stayed.
    stage.install();
    stage.helm("uninstall loadline --wait --timeout 4m");
}

/// The preflight of the chart says why, and how to go on.
fn without_a_metrics_api_nothing_is_installed(stage: &Stage<'_>) {
    let mut helm = install::helm(stage.plane).unwrap();
    helm.args(["install", "loadline", "--create-namespace", "--timeout", "4m", "-n", NAMESPACE]);
    let output = helm.arg(install::chart()).arg("--values").arg(&stage.values).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("loadline-preflight"), "{said}\n{}", stage.state());
    let told = stage.state();
    assert!(
        told.contains("the cluster has no metrics API") && told.contains("install metrics-server"),
        "{told}"
    );
    for path in ["/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets", &format!("{RBAC}/clusterroles")] {
        assert_eq!(stage.names(path), [""; 0], "{path}");
    }
    stage.helm("uninstall loadline --no-hooks");
}

fn accounts_may_do_what_their_roles_say(stage: &Stage<'_>, component: &str) {
    let account = format!("loadline-{component}");
    let mut rules = Vec::new();
    for path in [format!("{RBAC}/clusterroles"), format!("{RBAC}/namespaces/{NAMESPACE}/roles")] {
        let role = stage.plane.get(&format!("{path}/{account}")).unwrap_or_default();
        rules.extend(role["rules"].as_array().cloned().unwrap_or_default());
    }
    let user = format!("--as=system:serviceaccount:{NAMESPACE}:{account}");
    let output = stage
        .plane
        .kubectl()
        .unwrap()
        .args(["auth", "can-i", "--list", "-n", NAMESPACE, &user])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(allowed(&said), granted(&rules), "{account}: {said}");
}

fn nothing_is_left(stage: &Stage<'_>) {
    assert_eq!(stage.quota("batch"), UNLIMITED);
    let node = stage.node_object();
    assert!(!stage.is_tainted(), "{node}");
    let annotations = node["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let ours = |name: &String| {
        name.contains("loadline.dev") || name.contains("_usage_") || name.contains("hot_value")
    };
    let left: Vec<_> = annotations.keys().filter(|name| ours(name)).collect();
    assert!(left.is_empty(), "{left:?}");
    let conditions = node["status"]["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().all(|condition| condition["type"] != "interference-identified"),
        "{conditions:?}"
    );
    for path in [
        format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"),
        format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
        format!("/api/v1/namespaces/{NAMESPACE}/pods"),
        format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"),
        format!("/api/v1/namespaces/{NAMESPACE}/services"),
        format!("{RBAC}/clusterroles"),
        format!("{RBAC}/clusterrolebindings"),
        "/apis/scheduling.k8s.io/v1/priorityclasses".to_owned(),
    ] {
        assert_eq!(stage.names(&path), [""; 0], "{path}");
    }
}
