//! The page about the annotator, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::parts::find_or_skip;
use service::until;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PAGE: &str = include_str!("../../../docs/guide/annotator.md");

/// Ends with the test.
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The blocks to be typed into a shell.
fn blocks() -> Vec<String> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let here = |text: &str| text.replace("127.0.0.1:8090", &format!("127.0.0.1:{port}"));
    PAGE.split("```sh\n").skip(1).map(|rest| here(rest.split("```").next().unwrap())).collect()
}

#[test]
fn nodes_on_a_laptop_are_annotated_by_three_commands() {
    let Some(kubectl) = find_or_skip("kubectl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let loadline = Path::new(env!("CARGO_BIN_EXE_loadline")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{path}", loadline.display(), kubectl.parent().unwrap().display());
    let shell = |script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).current_dir(folder.path()).env("PATH", &path);
        shell
    };
    let [up, annotator, look] = &blocks()[..] else { panic!("three terminals") };
    let open = |script: &str| {
        let run = format!("exec {}", script.trim());
        Terminal(shell(&run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let _up = open(up);
    until("the cluster", || folder.path().join("demo.kubeconfig").is_file().then_some(()));
    let _annotator = open(annotator);
    let output = shell(look).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for wanted in [
        "node/node-02 condition met",
        "\"cpu_usage_avg_5m\":\"0.0",
        "metrics API: answered",
        "nodes: 3 fresh",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is not in {said}");
    }
}
