//! Does a real kube-apiserver still answer what is written in `recorded/`?
//!
//! The files there hold questions with their answers, one per line: what the library embeds (which resources there are)
//! and what its own tests replay (objects, schemas and rules, with what became of them). Here the questions go to a
//! real server. `LOADLINE_RECORD=1` writes its answers down; a new question is a line without an answer.
//!
//! Not asked here: `types.txt`, which comes from Kubernetes' Go types (`cargo xtask codegen records`), and `tables.json`, whose objects no client can make in one step; the `table` cases
//! of the conformance suite hold tables to the real server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails by panicking")]

mod builtin;
mod discovery;
mod file;
mod schemas;

use file::{Compared, File};
use loadline_testkit::ControlPlane;
use serde_json::Value;

/// A real server.
pub struct Real(ControlPlane);

impl Real {
    /// Status code and body.
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let reply = self.0.request(method, path, body).unwrap();
        (reply.status, reply.json())
    }

    /// Removes an object and waits until it is gone; nobody else here takes finalizers off.
    fn remove(&self, path: &str) {
        let now = serde_json::json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let (mut code, mut left) = self.ask("DELETE", path, Some(&now));
        for _ in 0..500 {
            if code == 404 {
                return;
            }
            if left.pointer("/metadata/finalizers").is_some() {
                self.ask("PATCH", path, Some(&serde_json::json!({"metadata": {"finalizers": null}})));
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            (code, left) = self.ask("GET", path, None);
        }
        panic!("{path} does not go away: {left}");
    }
}

#[test]
fn a_record_is_written_as_it_was_read() {
    for name in ["resources.json", "builtin.json", "structural.json", "rules.json"] {
        let committed = std::fs::read_to_string(file::path(name)).unwrap();
        assert!(File::read(name).text() == committed, "{name}: recording would move more than what changed");
    }
}

#[test]
fn a_real_server_answers_as_recorded() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let real = Real(plane);
    let all = [
        discovery::resources(&real),
        builtin::objects(&real),
        schemas::values(&real),
        schemas::definitions(&real),
        schemas::rules(&real),
    ];
    for Compared { what, same, differ } in &all {
        println!("{what}: {same} same, {} differ", differ.len());
    }
    let differ: Vec<String> = all.into_iter().flat_map(|compared| compared.differ).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
