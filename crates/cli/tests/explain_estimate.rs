//! `loadline explain estimate`, end to end: a real `loadline estimator` is asked as a fleet scheduler asks, and says why.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;
#[path = "common/service.rs"]
mod service;

use common::Up;
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;
use service::until;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A running `loadline estimator`, and where it answers.
struct Estimator {
    child: Child,
    grpc: String,
}

impl Estimator {
    fn start(args: &[&str]) -> Self {
        let free = ["--server-port", "0", "--health-probe-bind-address", "0", "--metrics-bind-address", "0"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["estimator", "--log-format", "json"])
            .args(free)
            .args(args)
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = lines.find_map(|line| line.ok().filter(|line| line.contains("\"listening\"")));
        let listening: Value = serde_json::from_str(&listening.unwrap()).unwrap();
        // Read on, or it would be held up.
        std::thread::spawn(move || lines.for_each(drop));
        let grpc = listening["fields"]["grpc"].as_str().unwrap().to_owned();
        Self { child, grpc }
    }
}

impl Drop for Estimator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn loadline(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline")).args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [WITHOUT]}]
      containers:
      - {name: web, image: web, resources: {requests: {cpu: 300m, memory: 64Mi}}}
";

/// A cluster, the workload in a file, and one of its nodes, on which the workload may not be.
fn world() -> (Up, String, String) {
    let up = Up::start(&["--nodes", "3"]);
    let found = loadline(&[
        "what-if",
        "estimate",
        "-f",
        &write(&up, "none"),
        "--live",
        "--kubeconfig",
        up.kubeconfig().to_str().unwrap(),
        "-o",
        "json",
    ]);
    assert!(!found.stdout.is_empty(), "{}", said(&found));
    let answer: Value = serde_json::from_slice(&found.stdout).unwrap();
    let without = answer["nodes"][0]["node"].as_str().unwrap().to_owned();
    let file = write(&up, &without);
    (up, file, without)
}

fn write(up: &Up, without: &str) -> String {
    let file = up.folder().join("web.yaml");
    fs::write(&file, WEB.replace("WITHOUT", without)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Asks until the estimator has read its cluster.
fn ask(estimator: &Estimator, file: &str, more: &[&str]) -> String {
    let args =
        [&["explain", "estimate", "-f", file, "--cluster", "m1", "--estimator", &estimator.grpc], more]
            .concat();
    until("an answer", || {
        let output = loadline(&args);
        let text = said(&output);
        if !output.status.success() {
            assert!(text.contains("is not ready"), "{text}");
            return None;
        }
        Some(String::from_utf8(output.stdout).unwrap())
    })
}

#[test]
fn an_estimator_says_how_many_fit_and_why_in_the_words_of_what_if() {
    let (up, file, without) = world();
    let kubeconfig = up.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let estimator = Estimator::start(&["--cluster-name", "m1", "--kubeconfig", kubeconfig]);

    let told = until("it has heard of its cluster", || {
        let told: Value = serde_json::from_str(&ask(&estimator, &file, &["-o", "json"])).unwrap();
        told["ageSeconds"].is_i64().then_some(told)
    });
    let own =
        loadline(&["what-if", "estimate", "-f", &file, "--live", "--kubeconfig", kubeconfig, "-o", "json"]);
    let own: Value = serde_json::from_slice(&own.stdout).unwrap();
    assert_eq!(told["kind"], "EstimateExplanation");
    assert_eq!(told["cluster"], "m1");
    assert!(own["maxReplicas"].as_i64().unwrap() > 0, "{own}");
    assert_eq!((&told["answer"], &told["maxReplicas"]), (&own["maxReplicas"], &own["maxReplicas"]));
    let nodes = |answer: &Value| -> Vec<[Value; 4]> {
        let fields = ["node", "replicas", "limitedBy", "reason"];
        answer["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| fields.map(|field| node[field].clone()))
            .collect()
    };
    assert_eq!(nodes(&told), nodes(&own));
    assert_eq!(nodes(&told).len(), 3);
    let excluded = nodes(&told).into_iter().find(|node| node[0] == without.as_str()).unwrap();
    assert_eq!(excluded[1], 0);
    assert!(excluded[3].is_string(), "{excluded:?}");

    // For people, too.
    let table = ask(&estimator, &file, &[]);
    // An estimator is always asked that, too.
    let own =
        loadline(&["what-if", "estimate", "-f", &file, "--live", "--preempting", "--kubeconfig", kubeconfig]);
    let own = String::from_utf8(own.stdout).unwrap();
    let (head, rest) = table.split_once('\n').unwrap();
    assert!(head.starts_with(&format!("The estimator at {} answers ", estimator.grpc)), "{head}");
    assert_eq!(rest, own);
    assert!(ask(&estimator, &file, &["-o", "wide"]).contains("NODE"));
}

#[test]
fn what_is_wrong_is_said() {
    let (up, file, _) = world();
    let kubeconfig = up.kubeconfig();
    let estimator = Estimator::start(&["--cluster-name", "m1", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    let refused = |cluster: &str, address: &str, file: &str| {
        let output =
            loadline(&["explain", "estimate", "-f", file, "--cluster", cluster, "--estimator", address]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    let text = refused("m2", &estimator.grpc, &file);
    assert!(text.contains("\"m2\" is not served here, expected \"m1\""), "{text}");
    let text = refused("m1", "127.0.0.1:1", &file);
    assert!(text.contains("no estimator is reached at 127.0.0.1:1"), "{text}");
    let text = refused("m1", "nonsense", &file);
    assert!(text.contains("expected HOST:PORT, not \"nonsense\""), "{text}");
    let text = refused("m1", &estimator.grpc, "no-such-file.yaml");
    assert!(text.contains("no-such-file.yaml"), "{text}");
}

#[test]
fn certificates_are_those_of_the_fleet() {
    let (up, file, _) = world();
    let folder = up.folder();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let kept = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (certificate, key) = (kept("tls.crt", &own.pem()), kept("tls.key", &key.serialize_pem()));
    let kubeconfig = up.kubeconfig();
    let tls = ["--grpc-auth-cert-file", &certificate, "--grpc-auth-key-file", &key];
    let address = ["--bind-address", "127.0.0.1", "--cluster-name", "m1", "--kubeconfig"];
    let estimator = Estimator::start(&[&tls[..], &address[..], &[kubeconfig.to_str().unwrap()]].concat());
    assert!(Path::new(&certificate).is_file());

    let answer = ask(&estimator, &file, &["--scheduler-estimator-ca-file", &certificate]);
    assert!(answer.contains("more replicas fit"), "{answer}");
    let answer = ask(&estimator, &file, &["--insecure-skip-estimator-verify"]);
    assert!(answer.contains("more replicas fit"), "{answer}");
    let plain =
        loadline(&["explain", "estimate", "-f", &file, "--cluster", "m1", "--estimator", &estimator.grpc]);
    assert_eq!(plain.status.code(), Some(2), "{}", said(&plain));
}
