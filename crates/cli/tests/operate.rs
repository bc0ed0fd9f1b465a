//! Everyday operation of a component that runs: how much it logs, what it decided, what it uses.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;
#[path = "common/service.rs"]
mod service;

use common::{Up, client};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use service::{Service, until};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// The status and the body of an answer.
fn ask(service: &Service, method: &str, path: &str, body: &str) -> (u16, String) {
    let address = service.url();
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// A cluster without a scheduler, and ours beside it.
fn scheduler() -> (Up, Service) {
    let up = Up::start(&["--nodes", "2", "--without", "scheduler"]);
    let kubeconfig = up.kubeconfig();
    let service = Service::start(&["scheduler", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    service.until("active");
    (up, service)
}

async fn make(up: &Up, name: &str, cpu: &str) {
    let pods: Api<Pod> = Api::namespaced(client(&up.kubeconfig()).await, "default");
    let pod = json!({"metadata": {"name": name}, "spec": {"schedulerName": "loadline",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn how_much_is_logged_can_be_changed_while_it_runs() {
    let (up, service) = scheduler();
    let (status, filter) = ask(&service, "GET", "/debug/log", "");
    assert_eq!(status, 200, "{filter}");
    assert!(filter.contains("info"), "{filter}");

    let (status, said) = ask(&service, "PUT", "/debug/log", "inof,x=loud");
    assert_eq!(status, 400);
    assert_eq!(said.matches("expected LEVEL or TARGET=LEVEL").count(), 2, "both are told: {said}");
    assert_eq!(ask(&service, "GET", "/debug/log", "").1, filter, "what was, stays");
    let (status, _) = ask(&service, "PUT", "/debug/log", &"info,".repeat(2000));
    assert_eq!(status, 413, "no filter is that long");

    let (status, now) = ask(&service, "PUT", "/debug/log", "off\n");
    assert_eq!((status, now.trim()), (200, "off"));
    let before = service.log();
    make(&up, "quiet", "1000").await;
    let decided = |name: &str| {
        let (_, lines) = ask(&service, "GET", "/debug/decisions", "");
        lines.lines().any(|line| line.contains(&format!("default/{name}")))
    };
    until("a decision", || decided("quiet").then_some(()));
    assert_eq!(service.log(), before, "not a word");

    let (status, _) = ask(&service, "PUT", "/debug/log", "warn,loadline_services=info,loadline=info");
    assert_eq!(status, 200);
    service.says("log filter changed");
    make(&up, "loud", "1000").await;
    service.says("default/loud");
}

#[test]
fn whoever_is_asked_goes_on_answering_for_a_while_after_it_was_told_to_end() {
    let up = Up::start(&["--nodes", "2", "--without", "scheduler"]);
    let kubeconfig = up.kubeconfig();
    // Longer than this test: it ends because it is told so again.
    let service = Service::start(&[
        "scheduler",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--extender",
        "127.0.0.1:0",
        "--shutdown-delay-duration",
        "1h",
    ]);
    service.until("active");
    let asked: Value = serde_json::from_str(&service.says("extender listening")).unwrap();
    let address = asked["fields"]["address"].as_str().unwrap().to_owned();
    service.signal("TERM");
    until("it is not ready", || service.get("/readyz").starts_with("HTTP/1.1 503").then_some(()));
    let told = service.get("/readyz");
    assert!(told.contains("\r\n\r\nending\n"), "{told}");
    assert!(service.get("/healthz").starts_with("HTTP/1.1 200"), "nobody is to start it again");
    // Over a new connection, as somebody asks who has not heard of it yet.
    let pod = json!({"metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let question = json!({"Pod": pod, "NodeNames": ["node-1"]}).to_string();
    let mut stream = TcpStream::connect(&address).unwrap();
    let length = question.len();
    let head = format!("POST /filter HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{question}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(service.ends(), "at once, when told again");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_is_told_as_lines_of_json_the_newest_first() {
    let (up, service) = scheduler();
    make(&up, "fits", "100m").await;
    let lines = |query: &str| -> Vec<Value> {
        let (status, text) = ask(&service, "GET", &format!("/debug/decisions{query}"), "");
        assert_eq!(status, 200, "{text}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of = |name: &str| lines("").into_iter().find(|line| line["pod"] == format!("default/{name}"));
    let fits = until("a decision", || of("fits"));
    assert!(fits["node"].is_string(), "{fits}");
    make(&up, "huge", "1000").await;
    let huge = until("a decision", || of("huge"));
    assert_eq!(huge["node"], Value::Null);
    assert!(huge["message"].as_str().unwrap().contains("Insufficient cpu"), "{huge}");
    assert_eq!(huge["scheduler"], "loadline");
    assert_eq!(lines("?most=1").len(), 1);
    assert_eq!(lines("?most=1")[0]["pod"], "default/huge", "the newest");
    // The same document as `explain` has, with the pod.
    let (_, explained) = ask(&service, "GET", "/debug/explain/pods/default/fits", "");
    let explained: Value = serde_json::from_str(&explained).unwrap();
    let mut alone = fits.clone();
    alone.as_object_mut().unwrap().remove("pod");
    assert_eq!(explained["decisions"][0], alone);
    assert_eq!(ask(&service, "GET", "/debug/decisions?most=x", "").0, 400);
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_process_uses_is_told_thread_by_thread() {
    let (_up, service) = scheduler();
    let (status, text) = ask(&service, "GET", "/debug/process?seconds=0", "");
    assert_eq!(status, 200, "{text}");
    let process: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(process["kind"], "Process");
    assert!(process["memory"]["resident"].as_u64().unwrap() > 1 << 20);
    assert!(process["tasks"]["alive"].as_u64().unwrap() > 3, "{process}");
    let threads = process["threads"].as_array().unwrap();
    assert!(
        threads.iter().any(|thread| thread["name"].as_str().unwrap().starts_with("loadline")),
        "{process}"
    );
    for bad in ["?seconds=61", "?seconds=x", "?minutes=1"] {
        assert_eq!(ask(&service, "GET", &format!("/debug/process{bad}"), "").0, 400, "{bad}");
    }
}

#[test]
fn the_file_of_a_policy_is_read_again_when_it_changes() {
    let up = Up::start(&["--nodes", "2", "--without", "scheduler"]);
    let (kubeconfig, file) = (up.kubeconfig(), up.folder().join("policy.yaml"));
    let short = include_str!("../../../scenarios/doctor/short.yaml");
    let (kubeconfig, path) = (kubeconfig.to_str().unwrap(), file.to_str().unwrap());
    for (component, problem) in [("scheduler", "configuration: "), ("rebalance", "policy: ")] {
        std::fs::write(&file, short).unwrap();
        let service = Service::start(&[component, "--kubeconfig", kubeconfig, "--policy", path]);
        service.until("active");
        std::fs::write(&file, short.replace("0.65", "many")).unwrap();
        service.until(problem);
        let told = service.get("/readyz");
        assert!(told.starts_with("HTTP/1.1 200") && told.contains("maxLimitPecent"), "{component}: {told}");
        std::fs::write(&file, short.replace("0.65", "0.5")).unwrap();
        until("the problem to be over", || (!service.get("/readyz").contains(problem)).then_some(()));
    }
}
