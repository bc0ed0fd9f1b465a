//! `loadline doctor` on real parts: a kube-apiserver with its permissions, a kubelet and metrics-server, a Prometheus with our rules.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/account.rs"]
mod account;
#[path = "common/monitoring.rs"]
mod monitoring;
#[path = "common/service.rs"]
mod service;

use account::least_privilege;
use loadline_core::doctor::{Component, needs};
use loadline_testkit::parts::find_or_skip;
use loadline_testkit::{ControlPlane, MetricsServer, RealNode};
use monitoring::{Prometheus, exporter};
use serde_json::{Value, json};
use service::{Service, until};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

/// What was found, and how it ended.
struct Report {
    document: Value,
    code: i32,
}

impl Report {
    fn read(output: &Output) -> Self {
        let said = String::from_utf8_lossy(&output.stderr);
        let document =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        Self { document, code: output.status.code().unwrap() }
    }

    /// What is said by a check that is not fine.
    fn bad(&self, check: &str) -> Vec<String> {
        let all = self.document["findings"].as_array().unwrap().iter();
        let of = all.filter(|one| one["check"] == check && one["severity"] != "ok");
        of.map(|one| one["what"].as_str().unwrap().to_owned()).collect()
    }

    /// What is fine, by a check.
    fn fine(&self, check: &str) -> Vec<String> {
        let all = self.document["findings"].as_array().unwrap().iter();
        let of = all.filter(|one| one["check"] == check && one["severity"] == "ok");
        of.map(|one| one["what"].as_str().unwrap().to_owned()).collect()
    }
}

fn doctor(kubeconfig: &Path, more: &[&str]) -> Report {
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["doctor", "-o", "json", "--timeout", "1m", "--kubeconfig"])
        .arg(kubeconfig)
        .args(more)
        .output()
        .unwrap();
    Report::read(&output)
}

#[test]
fn a_healthy_cluster_has_nothing_bad_to_hear() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let Some(exporter) = exporter() else { return };
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let _metrics = MetricsServer::start(&plane, &node).unwrap();
    let prometheus = Prometheus::start(program, &[format!("{}:{}", node.name(), exporter.port())], true);
    let (kubeconfig, url) = (plane.kubeconfig(), prometheus.url());
    let file = kubeconfig.to_str().unwrap();
    let annotator =
        Service::start(&["annotator", "--kubeconfig", file, "--metrics-interval", "1s", "--leader-elect"]);
    let report = until("a clean report", || {
        let report = doctor(&kubeconfig, &["--prometheus-address", &url]);
        let clean = report.document["broken"] == 0 && report.document["warnings"] == 0;
        // All that is looked at is there by now.
        (clean && !report.fine("series").is_empty() && !report.fine("annotations").is_empty())
            .then_some(report)
    });
    assert_eq!(report.code, 0);
    for check in ["version", "clock", "metrics", "series", "scrape", "annotations", "agreement"] {
        assert_eq!(report.fine(check).len(), 1, "{check}: {:#}", report.document);
    }
    assert!(report.fine("metrics")[0].starts_with("1 node measured"), "{:#}", report.document);
    assert!(
        report.fine("series")[0].contains("1 node matched by series of 6 metrics"),
        "{:#}",
        report.document
    );
    assert!(report.fine("agreement")[0].starts_with("loadline-annotator is led by"), "{:#}", report.document);
    // Before an installation as well.
    let report = doctor(&kubeconfig, &["--preflight"]);
    assert_eq!((report.code, &report.document["broken"]), (0, &json!(0)), "{:#}", report.document);
    assert!(annotator.ends());
}

/// Two nodes that are fine, from files, with what that Prometheus says of them.
fn beside(prometheus: &Prometheus) -> Report {
    let healthy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/doctor/healthy");
    let output = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["doctor", "-o", "json", "--timeout", "1m", "--prometheus-address", &prometheus.url(), "-f"])
        .arg(healthy)
        .output()
        .unwrap();
    Report::read(&output)
}

#[test]
fn a_prometheus_without_our_rules_lacks_the_metrics_of_the_policy() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let Some(exporter) = exporter() else { return };
    let prometheus = Prometheus::start(program, &[format!("127.0.0.1:{}", exporter.port())], false);
    let report = until("an answer", || {
        let report = beside(&prometheus);
        // While it starts it answers nobody.
        (!report.bad("series").iter().any(|what| what.contains("cannot be asked"))).then_some(report)
    });
    assert_eq!(report.code, 1);
    assert_eq!(
        report.bad("series"),
        [
            "Prometheus has no series for cpu_usage_avg_5m, cpu_usage_max_avg_1h, cpu_usage_max_avg_1d and 3 more"
        ]
    );
    assert_eq!(report.bad("scrape"), [""; 0], "without rules there are no ranges");
}

#[test]
fn a_prometheus_that_scrapes_seldom_is_told_which_ranges_of_rules_are_too_short() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let Some(exporter) = exporter() else { return };
    // The first scrape comes at some time within the interval. One second is often; the rule is made to look back over less.
    let ranges = [("[4m]", "[2s]"), ("[5m]", "[1s]")];
    let targets = [format!("127.0.0.1:{}", exporter.port())];
    let prometheus = Prometheus::start_looking_back(&ranges, program, &targets);
    let report = until("a scrape", || {
        let report = beside(&prometheus);
        (report.bad("scrape").len() == 3).then_some(report)
    });
    let scrape = report.bad("scrape").join("\n");
    for said in [
        "cpu_usage_active looks back 2 s over node_cpu_seconds_total, which the job node brings every 1 s",
        "cpu_usage_avg_5m looks back 1 s over cpu_usage_active, which the rule cpu_usage_active brings every 1 s",
        "mem_usage_avg_5m looks back 1 s over mem_usage_active, which the rule mem_usage_active brings every 1 s",
    ] {
        assert!(scrape.contains(said), "{said} is not in\n{scrape}");
    }
    let all = report.document["findings"].as_array().unwrap();
    let of = |severity: &str| {
        all.iter().filter(|one| one["check"] == "scrape" && one["severity"] == severity).count()
    };
    assert_eq!((of("warning"), of("broken")), (1, 2), "two samples just so, and one");
}

/// A scheduler of ours whose account nobody gave a role.
fn deploy_without_a_role(plane: &ControlPlane) {
    let containers = json!([{"name": "c", "image": "loadline", "args": ["scheduler"]}]);
    let template = json!({"metadata": {"labels": {"app": "s"}}, "spec": {"serviceAccountName": "nobody", "containers": containers}});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "s"}}, "template": template});
    let object =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "s"}, "spec": spec});
    plane.create("/apis/apps/v1/namespaces/default/deployments", &object).unwrap();
}

fn lead(plane: &ControlPlane, namespace: &str) {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    // Long enough for a slow machine.
    let spec = json!({"holderIdentity": "somebody", "leaseDurationSeconds": 600, "renewTime": now});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "loadline-scheduler"}, "spec": spec});
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    until("its namespace", || plane.create(&path, &lease).ok());
}

#[test]
fn what_was_broken_on_purpose_is_found_and_each_account_sees_what_it_may() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let Some(exporter) = exporter() else { return };
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    for (name, address) in [("here", "127.0.0.1"), ("elsewhere", "192.0.2.7")] {
        plane.add_node(name, &json!({}), &room).unwrap();
        let addresses = json!([{"type": "InternalIP", "address": address}]);
        let path = format!("/api/v1/nodes/{name}/status");
        plane.patch(&path, &json!({"status": {"addresses": addresses}})).unwrap();
    }
    let taints = json!([{"key": "loadline.dev/cooling", "effect": "NoSchedule"}]);
    plane.patch("/api/v1/nodes/elsewhere", &json!({"spec": {"taints": taints}})).unwrap();
    deploy_without_a_role(&plane);
    lead(&plane, "default");
    lead(&plane, "kube-system");
    let prometheus = Prometheus::start(program, &[format!("127.0.0.1:{}", exporter.port())], true);
    let (kubeconfig, url) = (plane.kubeconfig(), prometheus.url());
    let report = until("series", || {
        let report = doctor(&kubeconfig, &["--prometheus-address", &url]);
        report.bad("series").iter().all(|what| what.contains("matches no series")).then_some(report)
    });

    assert_eq!(report.code, 1);
    let one = |check: &str, words: &str| {
        let found = report.bad(check);
        assert!(matches!(&found[..], [what] if what.contains(words)), "{check}: {found:#?}");
    };
    one("metrics", "the cluster has no metrics API");
    one(
        "series",
        "1 node matches no series: elsewhere; address: no series has the name elsewhere or the address 192.0.2.7",
    );
    one("permissions", "system:serviceaccount:default:nobody may not");
    let agreement = report.bad("agreement").join("\n");
    assert!(agreement.contains("2 lead the same work at once"), "{agreement}");
    assert!(
        agreement.contains("the taint loadline.dev/cooling without a cooling mark: elsewhere"),
        "{agreement}"
    );
    assert_eq!(report.bad("clock"), [""; 0]);
    assert_eq!(report.bad("reads"), [""; 0]);

    // The account of a scheduler: it may do what a scheduler does, not what an annotator does, and not all that doctor looks at.
    let shipped = std::fs::read_to_string(deployed("scheduler/scheduler.yaml")).unwrap();
    let file = least_privilege(&plane, &shipped, "loadline-scheduler");
    let report = doctor(Path::new(&file), &["--component", "scheduler,annotator"]);
    let granted = report.fine("permissions");
    assert!(
        matches!(&granted[..], [what] if what.contains("may do all that `loadline scheduler` does")),
        "{granted:#?}"
    );
    let lacking = report.bad("permissions");
    assert!(matches!(&lacking[..], [what] if what.contains("may not patch nodes")), "{lacking:#?}");
    let denied = report.bad("reads").join("\n");
    for what in ["leases", "definitions of kinds", "deployments and daemon sets"] {
        assert!(denied.contains(&format!("may not read {what}")), "{denied}");
    }
    assert_eq!(report.code, 1);
}

fn deployed(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file)
}

/// What the roles of a file, or of the YAML of a page, grant, as `verb resource.group/subresource`.
fn granted(file: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut text = std::fs::read_to_string(deployed(file)).unwrap();
    if text.starts_with("# loadline") {
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        text = blocks.filter(|block| block.contains("\nrules:")).collect::<Vec<_>>().join("\n---\n");
    }
    for text in text.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(text).unwrap();
        let words = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().map(|one| one.as_str().unwrap().to_owned()).collect()
        };
        for rule in object["rules"].as_array().into_iter().flatten() {
            for group in words(&rule["apiGroups"]) {
                for resource in words(&rule["resources"]) {
                    for verb in words(&rule["verbs"]) {
                        out.insert(format!("{verb} {group} {resource}"));
                    }
                }
            }
        }
    }
    out
}

#[test]
fn what_components_are_said_to_need_is_what_shipped_roles_grant() {
    let flags = ["--act", "--leader-elect"].map(str::to_owned);
    for component in Component::ALL {
        let file = match component {
            Component::Scheduler => "scheduler/scheduler.yaml",
            Component::Annotator => "annotator/annotator.yaml",
            Component::Recommender => "recommender/recommender.yaml",
            Component::Rebalance => "rebalance/act.yaml",
            Component::Agent => "agent/act.yaml",
            Component::Estimator => "estimator/estimator.yaml",
            Component::Placement => "fleet/ocm.yaml",
            // Its account is one of Karmada's control plane, which is nowhere in its file.
            Component::Binding => "../docs/guide/fleet-karmada.md",
            Component::Publish => "fleet/publish.yaml",
            Component::Dashboard => "dashboard/dashboard.yaml",
        };
        // Agents and estimators have no lease.
        let is_alone = matches!(component, Component::Agent | Component::Estimator);
        let flags = if is_alone { &flags[..1] } else { &flags[..] };
        let said: BTreeSet<String> = needs(component, flags)
            .iter()
            .map(|need| match need.subresource {
                "" => format!("{} {} {}", need.verb, need.group, need.resource),
                below => format!("{} {} {}/{below}", need.verb, need.group, need.resource),
            })
            .collect();
        let mut granted = granted(file);
        // Only with a flag that asks who is allowed to ask.
        granted.retain(|one| !one.contains("tokenreviews") && !one.contains("subjectaccessreviews"));
        assert_eq!(said, granted, "{component}");
    }
}
