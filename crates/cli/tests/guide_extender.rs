//! The page about the extender, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::parts::find_or_skip;
use service::until;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PAGE: &str = include_str!("../../../docs/guide/extender.md");

/// Ends with the test.
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The blocks to be typed into a shell, with ports nobody has.
fn blocks() -> Vec<String> {
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [probes, extender] = held.map(|listener| listener.local_addr().unwrap().to_string());
    let here = |text: &str| text.replace("127.0.0.1:8090", &probes).replace("127.0.0.1:8888", &extender);
    PAGE.split("```sh\n").skip(1).map(|rest| here(rest.split("```").next().unwrap())).collect()
}

#[test]
fn an_extender_answers_by_three_commands() {
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
    let [up, extender, ask] = &blocks()[..] else { panic!("three terminals") };
    let open = |script: &str| {
        let run = format!("exec {}", script.trim());
        Terminal(shell(&run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let _up = open(up);
    until("the cluster", || folder.path().join("demo.kubeconfig").is_file().then_some(()));
    let _extender = open(extender);
    let output = shell(ask).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for wanted in [
        "\"NodeNames\":[\"node-00\",\"node-01\"]",
        "\"FailedNodes\":{\"elsewhere\":\"node(s) were not known to the load rules yet\"}",
        "\"Host\":\"node-00\",\"Score\":10",
        "loadline_extender_tentative_reservations 1",
        "loadline_extender_requests_total{verb=\"filter\",code=\"200\"} 1",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is not in {said}");
    }
    // What the page says about configurations is what is shipped.
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kube-scheduler");
    for file in std::fs::read_dir(shipped).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(PAGE.contains(&format!("deploy/kube-scheduler/{name}")), "{name} is not on the page");
    }
}
