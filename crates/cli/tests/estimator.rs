//! `loadline estimator`, end to end: the real binary follows a small cluster, and ends when it is told to.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;
#[path = "common/service.rs"]
mod service;

use common::Up;
use service::until;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A running `loadline estimator`.
struct Estimator {
    child: Child,
    log: BufReader<ChildStderr>,
}

impl Estimator {
    fn start(args: &[&str]) -> Self {
        let free = ["--server-port", "0", "--health-probe-bind-address", "127.0.0.1:0"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .arg("estimator")
            .args(free)
            .args(["--metrics-bind-address", "0", "--log-format", "json"])
            .args(args)
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        Self { child, log }
    }

    /// The first line of its log that contains a text.
    fn says(&mut self, text: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert!(self.log.read_line(&mut line).unwrap() > 0, "it ended without {text:?}:\n{all}");
            if line.contains(text) {
                return line;
            }
            all.push_str(&line);
        }
    }

    /// Asks it to end, as a service manager would.
    #[cfg(unix)]
    fn terminate(&self) {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Asks it to end; says whether it did so well.
    #[cfg(unix)]
    fn ends(mut self) -> bool {
        self.terminate();
        self.says("a request to terminate");
        self.child.wait().unwrap().success()
    }
}

impl Drop for Estimator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a line of the log says.
fn fields(line: &str) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(line).expect("the log is JSON")["fields"].take()
}

/// The whole answer to one plain request.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[cfg(unix)]
#[test]
fn one_cluster_is_read_and_the_end_is_orderly() {
    let up = Up::start(&["--nodes", "3", "--for", "10m"]);
    let kubeconfig = up.kubeconfig();
    let one = ["--cluster-name", "m1", "--kubeconfig", path(&kubeconfig)];
    let mut estimator =
        Estimator::start(&[&one[..], &["--load", "--shutdown-delay-duration", "1h"]].concat());
    let listening = fields(&estimator.says("\"listening\""));
    assert!(listening["grpc"].as_str().unwrap().starts_with("127.0.0.1:"), "{listening}");
    assert_eq!(listening["tls"], false);
    let ready = fields(&estimator.says("\"ready\""));
    assert_eq!((&ready["clusters"], &ready["nodes"]), (&1.into(), &3.into()), "{ready}");
    let (grpc, http) = (listening["grpc"].as_str().unwrap(), listening["http"].as_str().unwrap());
    let answer = get(http, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("m1: ready, nodes 3, "), "{answer}");
    // Told to end, it is not ready any more, and still answers whoever has not heard of it. Told again, it waits for nobody.
    estimator.terminate();
    estimator.says("a request to terminate");
    let answer = get(http, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("m1: ready, nodes 3, "), "{answer}");
    TcpStream::connect(grpc).unwrap();
    assert!(estimator.ends());
}

#[cfg(unix)]
#[test]
fn the_file_of_a_policy_is_read_again_when_it_changes() {
    let up = Up::start(&["--nodes", "2", "--for", "10m"]);
    let (kubeconfig, file) = (up.kubeconfig(), up.folder().join("policy.yaml"));
    let short = include_str!("../../../scenarios/doctor/short.yaml");
    std::fs::write(&file, short).unwrap();
    let one = ["--cluster-name", "m1", "--kubeconfig", path(&kubeconfig), "--load", "--policy", path(&file)];
    let mut estimator = Estimator::start(&one);
    let listening = fields(&estimator.says("\"listening\""));
    estimator.says("\"ready\"");
    std::fs::write(&file, short.replace("0.65", "many")).unwrap();
    estimator.says("settings cannot be used");
    let ask = || get(listening["http"].as_str().unwrap(), "/readyz");
    let told = until("the problem", || Some(ask()).filter(|told| told.contains(", policy: ")));
    assert!(told.starts_with("HTTP/1.1 200") && told.contains("maxLimitPecent"), "{told}");
    std::fs::write(&file, short.replace("0.65", "0.5")).unwrap();
    estimator.says("settings loaded");
    until("the problem to be over", || (!ask().contains("policy")).then_some(()));
    assert!(estimator.ends());
}

#[cfg(unix)]
#[test]
fn a_folder_of_clusters_one_of_which_is_broken_is_answered_for() {
    let up = Up::start(&["--nodes", "2", "--for", "10m"]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(up.kubeconfig(), folder.path().join("m1.yaml")).unwrap();
    std::fs::write(folder.path().join("m2.yaml"), "nonsense").unwrap();
    let gates = "ResourceQuotaEstimate=false,NoSuchGate=true";
    let mut estimator = Estimator::start(&["--cluster-dir", path(folder.path()), "--feature-gates", gates]);
    estimator.says("no such gate \\\"NoSuchGate\\\"");
    let mut lines = [String::new(), String::new()];
    for line in &mut lines {
        *line = estimator.says("\"cluster\":");
    }
    let broken = lines.iter().find(|line| line.contains("\"m2\"")).unwrap();
    assert!(broken.contains("cluster cannot be reached") && broken.contains("m2.yaml"), "{broken}");
    if !lines.iter().any(|line| line.contains("cluster read completely")) {
        estimator.says("cluster read completely");
    }
    // Mended, it is read, too.
    std::fs::copy(up.kubeconfig(), folder.path().join("m2.yaml")).unwrap();
    let ready = fields(&estimator.says("\"ready\""));
    assert_eq!((&ready["clusters"], &ready["nodes"]), (&2.into(), &4.into()), "{ready}");
    assert!(estimator.ends());
}
