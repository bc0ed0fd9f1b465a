//! What a real kubectl prints of a cluster, taken as it is by `what-if`: by the commands of the page.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;
#[path = "common/service.rs"]
mod service;

use common::Up;
use loadline_testkit::{ControlPlane, WORKLOADS, parts};
use serde_json::{Value, json};
use service::until;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PAGE: &str = include_str!("../../../docs/guide/what-if.md");

/// A shell with kubectl and our program, in a folder, pointed at a cluster.
struct Shell {
    folder: PathBuf,
    kubeconfig: PathBuf,
    path: String,
}

impl Shell {
    fn new(kubectl: &Path, folder: &Path, kubeconfig: PathBuf) -> Self {
        let loadline = Path::new(env!("CARGO_BIN_EXE_loadline")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{path}", loadline.display(), kubectl.parent().unwrap().display());
        Self { folder: folder.to_owned(), kubeconfig, path }
    }

    fn output(&self, script: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).current_dir(&self.folder).env("PATH", &self.path);
        shell.env("KUBECONFIG", &self.kubeconfig).env("KUBECACHEDIR", self.folder.join("kubectl-cache"));
        shell.output().unwrap()
    }

    /// What was printed, and what was told beside it.
    fn run(&self, script: &str) -> (String, String) {
        let output = self.output(script);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, told) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{script}: {said}{told}");
        (said, told)
    }
}

/// The commands of the page that take all of a cluster, the last of which asks.
fn commands() -> (String, String) {
    let blocks = PAGE.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let block = blocks.into_iter().find(|block| block.starts_with("kubectl get all,")).unwrap();
    let (get, ask) = block.trim_end().rsplit_once('\n').unwrap();
    assert!(ask.starts_with("loadline what-if schedule "), "{ask}");
    (get.to_owned(), format!("{ask} -o json"))
}

#[test]
fn all_of_a_simulated_cluster_says_where_a_waiting_pod_goes_and_what_an_agent_would_do() {
    let Some(kubectl) = parts::find_or_skip("kubectl") else { return };
    let up = Up::start(&["--nodes", "4", "--scenario", "overload"]);
    let shell = Shell::new(&kubectl, up.folder(), up.kubeconfig());
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": {
        "schedulerName": "nobody", "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]}});
    std::fs::write(up.folder().join("pod.json"), pod.to_string()).unwrap();
    shell.run("kubectl apply -f pod.json");
    let pods = "kubectl get --raw /apis/metrics.k8s.io/v1beta1/pods > pod-metrics.json";
    until("measurements of nodes and pods", || {
        shell.run(pods);
        let read: Value =
            serde_json::from_str(&std::fs::read_to_string(up.folder().join("pod-metrics.json")).unwrap())
                .unwrap();
        (!read["items"].as_array()?.is_empty()).then_some(())
    });

    let (get, ask) = commands();
    shell.run(&get);
    let (answer, _) = shell.run(&ask);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let pods = answer["pods"].as_array().unwrap();
    assert_eq!((pods.len(), &pods[0]["pod"]), (1, &json!("default/waits")), "{answer}");
    assert!(pods[0]["node"].as_str().unwrap().starts_with("node-0"), "{answer}");

    shell
        .run("kubectl get nodeqos,podqos,avoidanceaction,nodes,pods,priorityclasses -A -o json > rules.json");
    let protect =
        "loadline what-if protect -f rules.json metrics.json pod-metrics.json --node node-00 -o json";
    let (answer, _) = shell.run(protect);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["node"], "node-00");
    let rules: Vec<&Value> = answer["rules"].as_array().unwrap().iter().map(|rule| &rule["rule"]).collect();
    assert_eq!(rules, ["overload/busy", "overload/full"], "{answer}");
}

#[test]
fn all_of_a_real_api_server_says_where_pods_would_go() {
    let Some(plane) = ControlPlane::setup().controllers(WORKLOADS).start_or_skip() else { return };
    let kubectl = parts::find_or_skip("kubectl").expect("it comes with the others");
    let shell = Shell::new(&kubectl, plane.folder(), plane.kubeconfig());
    for name in ["n1", "n2"] {
        let room = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
        plane.add_node(name, &json!({"kubernetes.io/hostname": name}), &room).unwrap();
    }
    shell.run("kubectl create deployment web --image=none --replicas=3");
    shell.run("kubectl expose deployment web --port=80");
    until("three pods", || {
        let (pods, _) = shell.run("kubectl get pods -o name");
        (pods.lines().count() == 3).then_some(())
    });
    shell.run("kubectl get all,nodes,events,pdb,priorityclasses -A -o json > cluster.json");
    let (answer, _) = shell.run("loadline what-if schedule -f cluster.json -o json");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let pods = answer["pods"].as_array().unwrap();
    assert_eq!(pods.len(), 3, "{answer}");
    for pod in pods {
        assert!(["n1", "n2"].contains(&pod["node"].as_str().unwrap_or_default()), "{pod}");
    }
}
