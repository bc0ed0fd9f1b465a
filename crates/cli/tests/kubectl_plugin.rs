//! `kubectl loadline …` with the real kubectl: the program is found, finds the cluster, and speaks of itself as a plugin.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::Up;
use loadline_testkit::parts::find_or_skip;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Above seven cores pods are evicted.
const RULES: &str = "\
apiVersion: ensurance.crane.io/v1alpha1
kind: AvoidanceAction
metadata: {name: drop}
spec: {coolDownSeconds: 300, eviction: {terminationGracePeriodSeconds: 30}}
---
apiVersion: ensurance.crane.io/v1alpha1
kind: NodeQOS
metadata: {name: all}
spec:
  nodeQualityProbe: {nodeLocalGet: {}}
  rules:
  - {name: cpu-evict, metricRule: {name: cpu_total_usage, value: 7000}, avoidanceThreshold: 1, restoreThreshold: 2, actionName: drop}
";

#[test]
fn kubectl_runs_the_program_as_its_plugin() {
    let Some(program) = find_or_skip("kubectl") else { return };
    let up = Up::start(&["--nodes", "2"]);
    let links = tempfile::tempdir().unwrap();
    for name in ["kubectl-loadline", "kubectl_complete-loadline"] {
        symlink(env!("CARGO_BIN_EXE_loadline"), links.path().join(name)).unwrap();
    }
    let path = format!("{}:{}", links.path().display(), std::env::var("PATH").unwrap());
    let kubectl = |args: &[&str]| -> (bool, String) {
        let mut kubectl: Command = common::kubectl(&program, &up.kubeconfig(), up.folder());
        let ran = kubectl.env("PATH", &path).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        (ran.status.success(), said)
    };

    let (ok, said) = kubectl(&["plugin", "list"]);
    assert!(ok && said.contains("kubectl-loadline"), "{said}");
    let (ok, said) = kubectl(&["run", "web", "--image=web", "--restart=Never"]);
    assert!(ok, "{said}");
    let (ok, said) = kubectl(&["wait", "pod/web", "--for=condition=Ready", "--timeout=120s"]);
    assert!(ok, "{said}");

    // The cluster is found where kubectl finds it.
    let (ok, said) = kubectl(&["loadline", "explain", "pod", "default/web"]);
    assert!(ok && said.contains("default/web"), "{said}");
    let (ok, said) = kubectl(&["loadline", "explain", "pod", "default/web", "-o", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(ok && answer.is_object(), "{said}");
    let (ok, said) = kubectl(&["loadline", "explain", "pod", "default/nobody"]);
    assert!(!ok && said.contains("there is no pod default/nobody"), "{said}");

    // A pod by its name alone is in the namespace of the context, or in the one that is said.
    let (ok, said) = kubectl(&["loadline", "explain", "pod", "web"]);
    assert!(ok && said.contains("default/web"), "{said}");
    let (ok, said) = kubectl(&["loadline", "explain", "pod", "web", "-n", "kube-system"]);
    assert!(!ok && said.contains("there is no pod kube-system/web"), "{said}");
    // Of several kubeconfigs all count, as for kubectl: here the first says nothing but the context.
    let first = links.path().join("context");
    let context = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: shop\ncontexts: [{{name: shop, context: {{cluster: {name}, user: {name}, namespace: kube-system}}}}]\n",
        name = "loadline"
    );
    std::fs::write(&first, context).unwrap();
    let both = std::env::join_paths([&first, &up.kubeconfig()]).unwrap();
    let mut asked = common::kubectl(&program, Path::new(&both), up.folder());
    let ran = asked.env("PATH", &path).args(["loadline", "explain", "pod", "web"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("there is no pod kube-system/web"), "{said}");
    let rules = links.path().join("rules.yaml");
    std::fs::write(&rules, RULES).unwrap();
    let (ok, said) = kubectl(&["apply", "-f", rules.to_str().unwrap()]);
    assert!(ok, "{said}");
    // A node is explained without an address of its agent, too.
    let (ok, said) = kubectl(&["loadline", "explain", "node", "node-00", "-o", "json"]);
    assert!(ok && said.contains("\"NodeExplanation\"") && said.contains("it alone knows"), "{said}");
    let (ok, said) = kubectl(&["loadline", "explain", "node", "nowhere"]);
    assert!(!ok && said.contains("there is no node nowhere"), "{said}");

    let (ok, said) = kubectl(&["loadline", "explain", "pod", "--help"]);
    assert!(ok && said.contains("Usage: kubectl loadline explain pod"), "{said}");
    assert!(
        said.contains("  kubectl loadline explain pod default/web-1") && !said.contains("\n  loadline "),
        "{said}"
    );
    let (ok, said) = kubectl(&["loadline", "help"]);
    assert!(ok && said.contains("`kubectl loadline up`"), "{said}");

    // What a shell asks when Tab is pressed.
    let (ok, said) = kubectl(&["__complete", "loadline", "explain", "p"]);
    assert!(ok && said.contains("pod\t") && said.contains("placement\t"), "{said}");
}
