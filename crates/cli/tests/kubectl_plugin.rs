//! `kubectl loadline …` with the real kubectl: the program is found, finds the cluster, and speaks of itself as a plugin.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::Up;
use loadline_testkit::parts::find_or_skip;
use std::os::unix::fs::symlink;
use std::process::Command;

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
