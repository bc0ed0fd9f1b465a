//! `loadline fleet --api karmada` on a real hub when everything goes wrong at once: five hundred bindings, estimators that
//! die, hang and talk nonsense, and the hub itself goes away in the middle. Every binding is decided about, and no cluster is
//! promised more than it has.
//!
//! | cluster | says of itself | has | estimator, all but the last with certificates on both sides |
//! |---|---|---|---|
//! | a | 150 cpu | 10 nodes of 8 | Karmada's own, with `SchedulingOvercommitProtection` |
//! | b | 150 cpu | 2 nodes of 16 | ours |
//! | c | 60 cpu | 4 nodes of 10 | ours, killed |
//! | d | 60 cpu | 4 nodes of 10 | ours, stopped |
//! | e | 60 cpu | nobody knows | talks, but no gRPC |

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::karmada::{self, Channel, Karmada, Pair, Version};
use loadline_testkit::{ControlPlane, Running};
use serde_json::{Value, json};
use service::until;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings";
const COUNT: usize = 500;
/// Without it Karmada's estimator does not listen to what is on its way.
const KEEPS: &str = "--feature-gates=SchedulingOvercommitProtection=true";

fn start(flags: impl Fn(u16) -> Vec<String>) -> Running {
    Running::start("loadline", Path::new(env!("CARGO_BIN_EXE_loadline")), flags).unwrap()
}

/// A member in memory, with so many nodes, and its estimator.
struct Member {
    _server: Running,
    estimator: Running,
}

impl Member {
    fn start(name: &str, nodes: usize, cpu: usize, pair: &Pair) -> Self {
        let server = start(|port| vec!["apiserver".into(), "--listen".into(), format!("127.0.0.1:{port}")]);
        for number in 0..nodes {
            let has = json!({"cpu": cpu.to_string(), "memory": "64Gi", "pods": "110"});
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{number}")},
                "status": {"allocatable": has, "capacity": has, "conditions": ready}});
            post(server.port(), "/api/v1/nodes", &node);
        }
        let config = server.folder().join("kubeconfig");
        let url = format!("http://127.0.0.1:{}", server.port());
        let text = json!({"apiVersion": "v1", "kind": "Config", "current-context": "m",
            "clusters": [{"name": "m", "cluster": {"server": url}}],
            "contexts": [{"name": "m", "context": {"cluster": "m", "user": ""}}]});
        std::fs::write(&config, text.to_string()).unwrap();
        let estimator = start(|port| {
            vec![
                "estimator".into(),
                format!("--cluster={name}={}", config.display()),
                "--bind-address=127.0.0.1".into(),
                format!("--server-port={port}"),
                "--health-probe-bind-address=0".into(),
                "--metrics-bind-address=0".into(),
                format!("--grpc-auth-cert-file={}", pair.certificate.display()),
                format!("--grpc-auth-key-file={}", pair.key.display()),
                format!("--grpc-client-ca-file={}", pair.authority.display()),
            ]
        });
        estimator.wait_until(|said| said.contains(&format!("ready clusters=1 nodes={nodes}"))).unwrap();
        Self { _server: server, estimator }
    }
}

fn post(port: u16, path: &str, object: &Value) {
    let (mut stream, body) = (TcpStream::connect(("127.0.0.1", port)).unwrap(), object.to_string());
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json");
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

/// Somebody who greets whoever comes, as mail servers do.
fn nonsense() -> u16 {
    let listening = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listening.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listening.accept() {
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n");
            held.push(stream);
        }
    });
    port
}

fn controller(plane: &ControlPlane, pair: &Pair) -> Running {
    start(|port| {
        vec![
            "fleet".into(),
            "--api=karmada".into(),
            format!("--kubeconfig={}", plane.kubeconfig().display()),
            "--scheduler-name=loadline".into(),
            format!("--http-bind-address=127.0.0.1:{port}"),
            "--enable-scheduler-estimator".into(),
            "--scheduler-estimator-timeout=2s".into(),
            format!("--scheduler-estimator-ca-file={}", pair.authority.display()),
            format!("--scheduler-estimator-cert-file={}", pair.certificate.display()),
            format!("--scheduler-estimator-key-file={}", pair.key.display()),
            // Longer than the test may take.
            "--promise-duration=1h".into(),
        ]
    })
}

/// The bindings there are, by reason: none, or what is told.
fn told(plane: &ControlPlane) -> Option<BTreeMap<String, Vec<Value>>> {
    let list = plane.get(BINDINGS).ok()?;
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for binding in list["items"].as_array()? {
        let conditions = binding["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let scheduled = conditions.iter().find(|one| one["type"] == "Scheduled");
        let reason = scheduled.and_then(|one| one["reason"].as_str()).unwrap_or_default();
        all.entry(reason.to_owned()).or_default().push(binding.clone());
    }
    Some(all)
}

/// How many are decided about.
fn decided(plane: &ControlPlane) -> Option<usize> {
    let told = told(plane)?;
    Some(told.iter().filter(|(reason, _)| !reason.is_empty()).map(|(_, all)| all.len()).sum())
}

/// Replicas by cluster, and bindings that are in more or less than one.
fn placed(told: &BTreeMap<String, Vec<Value>>) -> (BTreeMap<String, i64>, usize) {
    let (mut counts, mut odd) = (BTreeMap::new(), 0);
    for binding in told.get("Success").into_iter().flatten() {
        let clusters = binding["spec"]["clusters"].as_array().cloned().unwrap_or_default();
        odd += usize::from(clusters.len() != 1);
        for one in clusters {
            *counts.entry(one["name"].as_str().unwrap().to_owned()).or_default() +=
                one["replicas"].as_i64().unwrap();
        }
    }
    (counts, odd)
}

#[test]
fn five_hundred_at_once_estimators_in_trouble_and_a_hub_that_goes_away_promise_no_room_twice() {
    let Some(mut plane) = karmada::plane_or_skip() else { return };
    for number in 0..10 {
        let room = json!({"cpu": "8", "memory": "64Gi", "pods": "110"});
        plane.add_node(&format!("node-{number}"), &Value::Null, &room).unwrap();
    }
    let pair = Pair::of(&plane);
    let theirs = karmada::estimator(
        Version::V1_18,
        &plane.kubeconfig(),
        "a",
        &Channel::Mutual(Pair::of(&plane)),
        &[KEEPS],
    )
    .unwrap();
    karmada::settle(&theirs, &plane).unwrap();
    let (b, c, d) = (
        Member::start("b", 2, 16, &pair),
        Member::start("c", 4, 10, &pair),
        Member::start("d", 4, 10, &pair),
    );
    let hub = Karmada::install(&plane).unwrap();
    for (name, cpu, port) in [
        ("a", "150", theirs.port()),
        ("b", "150", b.estimator.port()),
        ("c", "60", c.estimator.port()),
        ("d", "60", d.estimator.port()),
        ("e", "60", nonsense()),
    ] {
        let says = json!({"allocatable": {"cpu": cpu, "memory": "640Gi", "pods": "1000"}});
        hub.cluster(name, &says, port).unwrap();
    }
    for number in 0..COUNT {
        let asks = json!({"resourceRequest": {"cpu": "1"}});
        let mut binding = karmada::deployment(&format!("w-{number:03}"), 1, &asks, &karmada::aggregated());
        binding["spec"]["schedulerName"] = json!("loadline");
        plane.create(BINDINGS, &binding).unwrap();
    }
    let ours = controller(&plane, &pair);
    let at_least = |plane: &ControlPlane, count: usize| {
        let enough = || decided(plane).filter(|now| *now >= count);
        until(&format!("{count} decisions: {}", ours.output()), enough)
    };

    at_least(&plane, 20);
    drop(c.estimator);
    let stopped = d.estimator.pid().unwrap().to_string();
    assert!(Command::new("kill").args(["-STOP", &stopped]).status().unwrap().success());
    at_least(&plane, 60);
    plane.kill_apiserver().unwrap();
    plane.start_apiserver_again().unwrap();
    at_least(&plane, COUNT);

    let all = told(&plane).unwrap();
    let (counts, odd) = placed(&all);
    assert_eq!(odd, 0, "each is in one cluster");
    let on = |name: &str| counts.get(name).copied().unwrap_or_default();
    // 10 × 8 and 2 × 16 by nodes, and the others what they say of themselves: nobody goes by the 40 that the estimators of c and d said
    // as long as they said anything.
    assert_eq!((on("a"), on("b")), (80, 32), "{counts:?}");
    assert_eq!((on("c"), on("d"), on("e")), (60, 60, 60), "{counts:?}");
    let waiting = all.get("Unschedulable").map_or(0, Vec::len);
    assert_eq!(waiting, COUNT - 80 - 32 - 3 * 60, "{:?}", all.keys());
    // Who has an opinion of its own and who has not is told.
    for name in ["c", "d", "e"] {
        let named = |text: &str| {
            let (_, of) = text.split_once("Without estimates of ").unwrap_or_default();
            of.split("; ").any(|one| one.starts_with(&format!("{name}: ")))
        };
        let mut messages = all["Success"].iter().map(|one| one["status"]["conditions"].to_string());
        assert!(messages.any(|text| named(&text)), "somebody was placed without an estimate of {name}");
    }
    let metrics = get(ours.port(), "/metrics");
    assert!(metrics.contains("loadline_fleet_estimates_total{outcome=\"answered\"}"), "{metrics}");
    drop((theirs, b, d.estimator));
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
