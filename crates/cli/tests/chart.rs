//! What does the chart come to? Rendered by a real Helm, taken by a real API server, refused where values are wrong, and granting
//! what the plain files in `deploy/` grant.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_testkit::install::chart;
use loadline_testkit::{ControlPlane, parts};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Everything on, and able to act.
const ALL: &[&str] = &[
    "scheduler.mode=active",
    "agent.act=true",
    "rebalance.enabled=true",
    "rebalance.act=true",
    "annotator.taints=true",
    "annotator.prometheus=http://prometheus:9090",
    "estimator.enabled=true",
    "estimator.clusterName=m1",
    "estimator.load=true",
    "estimator.secretName=tls",
    "fleet.enabled=true",
    "dashboard.enabled=true",
    "dashboard.secretName=tls",
    "dashboard.tokenSecret=token",
    "policy=x",
    "scheduler.config=x",
    "rebalance.settings=x",
];

/// The other ways of what has several.
const OTHERS: &[&str] = &[
    "scheduler.mode=extender",
    "fleet.enabled=true",
    "fleet.api=karmada",
    "dashboard.enabled=true",
    "estimator.enabled=true",
    "estimator.kubeconfigsSecret=clusters",
    "estimator.allowPlaintext=true",
    "rebalance.enabled=true",
    "policy=x",
    "kubernetes.host=10.0.0.1",
    "kubernetes.port=6443",
    "log.verbosity=2",
];

fn template(helm: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(helm);
    command
        .args(["template", "loadline"])
        .arg(chart())
        .args(["-n", "loadline-system", "--kube-version", "1.36"])
        .args(more);
    command.output().unwrap()
}

fn objects(helm: &Path, more: &[&str]) -> Vec<Value> {
    let output = template(helm, more);
    assert!(output.status.success(), "{more:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text.split("\n---").filter(|text| text.contains("\nkind:"));
    documents
        .map(|text| serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")))
        .collect()
}

fn set<'a>(values: &[&'a str]) -> Vec<&'a str> {
    values.iter().flat_map(|value| ["--set", value]).collect()
}

fn migrations() -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(chart().join("migrate")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// All that is tried, with what it is called.
fn cases() -> Vec<(String, Vec<String>)> {
    let owned = |values: &[&str]| set(values).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut cases = vec![
        ("as it is".to_owned(), Vec::new()),
        ("everything".to_owned(), owned(ALL)),
        ("otherwise".to_owned(), owned(OTHERS)),
        (
            "publish".to_owned(),
            owned(&[
                "fleet.enabled=true",
                "fleet.api=publish",
                "fleet.clusterName=m1",
                "fleet.kubeconfigSecret=hub",
            ]),
        ),
    ];
    cases.extend(migrations().into_iter().map(|file| {
        (
            file.file_name().unwrap().to_string_lossy().into_owned(),
            vec!["--values".to_owned(), file.display().to_string()],
        )
    }));
    cases
}

#[test]
fn an_api_server_takes_what_it_is_rendered_to() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    plane.create("/api/v1/namespaces", &json!({"metadata": {"name": "loadline-system"}})).unwrap();
    for (name, args) in cases() {
        for version in ["1.30", "1.36"] {
            let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
            args.extend(["--kube-version", version]);
            let all = objects(&helm, &args);
            assert!(all.len() > 5, "{name}");
            for object in all {
                let (api, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
                let group = if api == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api}") };
                let namespace = object["metadata"]["namespace"].as_str();
                let namespace = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
                let plural = match kind {
                    "NetworkPolicy" => "networkpolicies".to_owned(),
                    "PriorityClass" => "priorityclasses".to_owned(),
                    kind => format!("{}s", kind.to_lowercase()),
                };
                let path = format!("{group}{namespace}/{plural}?dryRun=All&fieldValidation=Strict");
                let reply = plane.request("POST", &path, Some(&object)).unwrap();
                assert_eq!(reply.status, 201, "{name} {kind}: {}", String::from_utf8_lossy(&reply.body));
            }
        }
    }
}

#[test]
fn wrong_values_are_refused_with_their_path() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    for (value, path, why) in [
        ("scheduler.mode=passive", "/scheduler/mode", "one of three"),
        ("scheduler.replicas=0", "/scheduler/replicas", "at least one"),
        ("agent.enabled=perhaps", "/agent/enabled", "a boolean"),
        ("agent.runtimeSocket=run/x.sock", "/agent/runtimeSocket", "an absolute path"),
        ("agent.interval=often", "/agent/interval", "a time"),
        ("schedular.enabled=true", "schedular", "a name nobody knows"),
        ("image.digest=abc", "/image/digest", "a digest"),
        ("annotator.prometheus=prometheus:9090", "/annotator/prometheus", "an address"),
        ("estimator.enabled=true", "estimator.clusterName", "which cluster"),
        ("fleet.enabled=true,fleet.api=publish", "fleet.clusterName", "which cluster"),
    ] {
        let output = template(&helm, &["--set", value]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{value}: {why}");
        assert!(said.contains(path), "{value}: {said}");
    }
}

#[test]
fn containers_say_what_the_program_understands_and_none_acts_unasked() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let mut seen = 0;
    for (name, args) in cases() {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        for object in objects(&helm, &args) {
            let containers = object["spec"]["template"]["spec"]["containers"].as_array().cloned();
            for container in containers.into_iter().flatten() {
                let args: Vec<&str> =
                    container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
                // What is before it has to be understood for this.
                let output =
                    Command::new(env!("CARGO_BIN_EXE_loadline")).args(&args).arg("--help").output().unwrap();
                assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                assert!(name == "everything" || !args.contains(&"--act"), "{name}");
                let security = &container["securityContext"];
                assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
                assert_eq!(security["capabilities"]["drop"], json!(["ALL"]), "{name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn accounts_may_do_what_the_plain_files_say() {
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let rendered = objects(&helm, &set(ALL));
    let rules = |all: &[Value], kind: &str, name: &str| {
        let of = all.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        let mut rules = of.unwrap_or_else(|| panic!("{kind} {name}"))["rules"].as_array().unwrap().clone();
        rules.sort_by_key(Value::to_string);
        rules
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for (file, plain, component) in [
        ("agent/agent.yaml", "loadline-agent", "loadline-agent"),
        ("scheduler/scheduler.yaml", "loadline-scheduler", "loadline-scheduler"),
        ("rebalance/rbac.yaml", "loadline-rebalance", "loadline-rebalance"),
        ("fleet/ocm.yaml", "loadline-placement", "loadline-fleet"),
    ] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        let all: Vec<Value> =
            text.split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap()).collect();
        for kind in ["ClusterRole", "Role"] {
            if kind == "Role" && file.starts_with("agent") {
                continue;
            }
            assert_eq!(rules(&all, kind, plain), rules(&rendered, kind, component), "{file} {kind}");
        }
    }
}

#[test]
fn the_kinds_are_those_in_deploy_and_stay() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let files: Vec<_> =
        fs::read_dir(chart().join("files/crds")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 4);
    for file in files {
        let ours = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap();
        let hint =
            "cp deploy/crds/{nodeqoss,podqoss,avoidanceactions,recommendations}.yaml deploy/chart/files/crds";
        assert_eq!(ours, fs::read_to_string(folder.join("crds").join(name)).unwrap(), "{hint}");
    }
    let Some(helm) = parts::find_or_skip("helm") else { return };
    let kept = objects(&helm, &[]).into_iter().filter(|object| object["kind"] == "CustomResourceDefinition");
    let kept: Vec<_> =
        kept.map(|object| object["metadata"]["annotations"]["helm.sh/resource-policy"].clone()).collect();
    assert_eq!(kept, vec![json!("keep"); 4]);
}
