//! Is what `deploy/` holds taken by a real API server as it is, and do its containers say what the program understands?
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Every object of every file for a component of ours, with the name of the file.
fn objects() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let mut out = Vec::new();
    for component in [
        "agent",
        "annotator",
        "dashboard",
        "doctor",
        "estimator",
        "fleet",
        "rebalance",
        "recommender",
        "scheduler",
    ] {
        for file in fs::read_dir(folder.join(component)).unwrap() {
            let file = file.unwrap().path();
            let name = format!("{component}/{}", file.file_name().unwrap().to_string_lossy());
            for text in fs::read_to_string(&file).unwrap().split("\n---\n") {
                out.push((name.clone(), serde_saphyr::from_str(text).unwrap()));
            }
        }
    }
    out
}

/// The containers of those that run something.
fn containers() -> Vec<(String, Value)> {
    let running = |(file, object): (String, Value)| {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array()?.clone();
        Some(containers.into_iter().map(move |one| (file.clone(), one)).collect::<Vec<_>>())
    };
    objects().into_iter().filter_map(running).flatten().collect()
}

#[test]
fn an_api_server_takes_every_object_word_for_word() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    for namespace in ["open-cluster-management-hub", "karmada-system"] {
        plane.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).unwrap();
    }
    let all = objects();
    for (file, object) in &all {
        let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let group = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
        let namespace = object["metadata"]["namespace"].as_str();
        let namespace = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
        // A field nobody knows, or one that is there twice, is a mistake here.
        let query = "dryRun=All&fieldValidation=Strict";
        let plural = match kind {
            "NetworkPolicy" => "networkpolicies".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        };
        let path = format!("{group}{namespace}/{plural}?{query}");
        let reply = plane.request("POST", &path, Some(object)).unwrap();
        assert_eq!(reply.status, 201, "{file} {kind}: {}", String::from_utf8_lossy(&reply.body));
    }
    assert!(all.len() > 80, "{} objects", all.len());
}

#[test]
fn containers_say_what_the_program_understands_and_none_acts_unasked() {
    let all = containers();
    assert_eq!(all.len(), 13, "one in each file");
    for (file, container) in all {
        let args: Vec<&str> =
            container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
        // What is before it has to be understood for this.
        let output = Command::new(env!("CARGO_BIN_EXE_loadline")).args(&args).arg("--help").output().unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(args.contains(&"--act"), file.ends_with("/act.yaml"), "{file}");
    }
}

#[test]
fn the_schedulers_configuration_is_one() {
    let all = objects();
    let texts = all.iter().filter_map(|(_, object)| object["data"]["scheduler.yaml"].as_str());
    let [text] = texts.collect::<Vec<_>>()[..] else { panic!("one configuration") };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scheduler.yaml");
    fs::write(&file, text).unwrap();
    let print =
        Command::new(env!("CARGO_BIN_EXE_loadline")).args(["config", "print"]).arg(&file).output().unwrap();
    assert!(print.status.success(), "{}", String::from_utf8_lossy(&print.stderr));
    assert!(String::from_utf8_lossy(&print.stdout).contains("schedulerName: loadline"));
}
