//! The page about Karmada's bindings, done as it says: on this machine alone, and in the place of the real karmada-scheduler.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::{Guide, Terminal};
use loadline_testkit::karmada::{self, Karmada, Pair, Version};
use loadline_testkit::{ControlPlane, Running, parts};
use serde_json::{Value, json};
use service::until;
use std::path::Path;

const PAGE: &str = include_str!("../../../docs/guide/fleet-karmada.md");
const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings";

#[test]
fn a_binding_is_divided_by_what_estimators_say_and_explained_in_three_terminals() {
    let Some(guide) = Guide::start(PAGE, &["127.0.0.1:8095"]) else { return };
    let blocks = guide.blocks();
    let [up, reach, fleet, bind] = &blocks[..] else { panic!("three terminals, the second in two steps") };
    let up = guide.open(up);
    let told = |up: &Terminal| {
        let said = up.said();
        let line = said.lines().find_map(|line| line.trim().strip_prefix("estimator "))?;
        Some(line.trim().split(',').next()?.to_owned())
    };
    let estimator = until("the fleet", || told(&up));
    guide.run(reach);
    // Somebody else may have the usual port.
    let _controller = guide.open(&fleet.replace("127.0.0.1:10352", &estimator));
    let said = guide.run(bind);
    assert!(said.contains(r#"[{"name":"member3","replicas":4}]"#), "{said}");
    assert!(said.contains("ResourceBinding default/web-deployment → member3 4\n"), "{said}");
    let row = |cluster: &str| {
        let row = said.lines().find(|line| line.split_whitespace().next() == Some(cluster));
        let row = row.unwrap_or_else(|| panic!("no {cluster} in {said}"));
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // 10 × ⌊7.9 ÷ 10⌋ = 0 and 10 × ⌊15.9 ÷ 10⌋ = 10. By totals it would be seven: something asks for 12 of 79, in vain.
    assert!(row("member1").contains(", scheduler-estimator 0"), "{said}");
    assert!(!row("member1").contains("general-estimator 0,"), "{said}");
    assert!(row("member3").starts_with("member3 4 10 0 general-estimator 1"), "{said}");
    assert!(row("member3").contains(", scheduler-estimator 10"), "{said}");
}

/// The command of a Deployment on the page, by the name of its container.
fn command(name: &str) -> Vec<String> {
    let blocks = PAGE.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let documents = blocks.filter_map(|block| serde_saphyr::from_str::<Value>(block).ok());
    let found = documents
        .map(|document| document["spec"]["containers"][0].clone())
        .find(|container| container["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no container {name} on the page"));
    found["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// Starts it as the page says, with the files of this machine and some more flags.
fn start(name: &str, program: &Path, plane: &ControlPlane, more: impl Fn(u16) -> Vec<String>) -> Running {
    let pair = Pair::of(plane);
    let files = [
        ("/etc/karmada/config/karmada.config", plane.kubeconfig()),
        ("/etc/karmada/pki/ca.crt", pair.authority),
        ("/etc/karmada/pki/karmada.crt", pair.certificate),
        ("/etc/karmada/pki/karmada.key", pair.key),
    ];
    let running = Running::start(name, program, |port| {
        let words = command(name).into_iter().skip(1).map(|word| {
            let here =
                files.iter().fold(word, |word, (from, to)| word.replace(from, &to.display().to_string()));
            here.replace("0.0.0.0:8095", &format!("127.0.0.1:{port}"))
        });
        words.chain(more(port)).collect()
    });
    running.unwrap()
}

/// Ours, for the cluster a; both sides show a certificate.
fn estimator(plane: &ControlPlane) -> Running {
    let (config, pair) = (plane.kubeconfig(), Pair::of(plane));
    let running = Running::start("loadline", Path::new(env!("CARGO_BIN_EXE_loadline")), |port| {
        vec![
            "estimator".to_owned(),
            format!("--cluster=a={}", config.display()),
            "--bind-address=127.0.0.1".into(),
            format!("--server-port={port}"),
            "--health-probe-bind-address=0".into(),
            "--metrics-bind-address=0".into(),
            format!("--grpc-auth-cert-file={}", pair.certificate.display()),
            format!("--grpc-auth-key-file={}", pair.key.display()),
            format!("--grpc-client-ca-file={}", pair.authority.display()),
        ]
    });
    let running = running.unwrap();
    running.wait_until(|said| said.contains("ready clusters=1 nodes=1")).unwrap();
    running
}

#[test]
fn one_deployment_is_replaced_by_the_other_and_back_and_nothing_moves() {
    let Some(plane) = karmada::plane_or_skip() else { return };
    let room = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
    plane.add_node("node-0", &Value::Null, &room).unwrap();
    let estimator = estimator(&plane);
    let karmada = Karmada::install(&plane).unwrap();
    // By what the cluster says of itself a hundred would fit, by its estimator ⌊16 ÷ 3⌋ = 5.
    let says = json!({"allocatable": {"cpu": "300", "memory": "64Gi", "pods": "110"}});
    karmada.cluster("a", &says, estimator.port()).unwrap();

    let state = |name: &str| plane.get(&format!("{BINDINGS}/{name}")).unwrap();
    let decided = |by: &Running, name: &str, replicas: i64| -> String {
        let asks = json!({"resourceRequest": {"cpu": "3"}});
        let binding = karmada::deployment(name, replicas, &asks, &karmada::aggregated());
        plane.create(BINDINGS, &binding).unwrap();
        let reason = || {
            let conditions = state(name)["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let told = conditions.iter().find(|one| one["type"] == "Scheduled")?.clone();
            told["reason"].as_str().map(str::to_owned)
        };
        by.wait_until(|_| reason().is_some()).unwrap();
        reason().unwrap()
    };
    let theirs = || {
        let program = parts::find(Version::V1_18.scheduler()).unwrap();
        start("karmada-scheduler", &program, &plane, |port| {
            vec![format!("--health-probe-bind-address=127.0.0.1:{port}"), "--metrics-bind-address=0".into()]
        })
    };
    let first = theirs();
    assert_eq!(decided(&first, "old", 5), "Success");
    assert_eq!(decided(&first, "old-too-many", 6), "Unschedulable");
    drop(first);
    let spec = |name: &str| (state(name)["spec"].clone(), state(name)["metadata"]["generation"].clone());
    let before = spec("old");

    // It keeps room for what it assigned, and theirs does not: for comparing, only for a moment.
    let loadline = Path::new(env!("CARGO_BIN_EXE_loadline"));
    let ours = start("loadline", loadline, &plane, |_| vec!["--promise-duration=1ms".into()]);
    assert_eq!(decided(&ours, "new", 5), "Success");
    assert_eq!(decided(&ours, "new-too-many", 6), "Unschedulable");
    assert_eq!(spec("old"), before, "nothing moved");
    drop(ours);

    let (old, new) = (spec("old"), spec("new"));
    let again = theirs();
    assert_eq!(decided(&again, "last", 5), "Success");
    assert_eq!((spec("old"), spec("new")), (old, new), "nothing moved");
}
