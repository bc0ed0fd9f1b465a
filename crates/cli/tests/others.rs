//! Files of other projects, as they are: folders in the shapes their own examples have, with what does not matter in them.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use loadline_testkit::{karmada, ocm};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.arg("what-if").args(args).current_dir(ROOT).output().expect("the program runs")
}

/// The answer, and what was told beside it.
fn ask(args: &[&str]) -> (Value, Vec<String>) {
    let output = run(&[args, &["--now", "2025-01-01T12:00:00Z", "-o", "json"]].concat());
    let told: Vec<String> = String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {told:#?}");
    (serde_json::from_slice(&output.stdout).expect("an answer"), told)
}

fn skipped(told: &[String]) -> Vec<&str> {
    told.iter()
        .filter_map(|line| line.strip_prefix("warning: skipped, as they do not matter here: "))
        .collect()
}

#[test]
fn cranes_objects_and_a_whole_cluster_say_what_an_agent_would_do() {
    let (answer, told) = ask(&["protect", "-f", "scenarios/others/crane"]);
    assert_eq!(
        skipped(&told),
        [
            "1 ConfigMap, 1 EndpointSlice, 1 Endpoints, 1 HorizontalPodAutoscaler, 2 Service, 1 ServiceAccount, 1 TimeSeriesPrediction"
        ]
    );
    let names = told.iter().filter(|line| line.contains("crane's webhook takes"));
    assert_eq!(names.count(), 3, "{told:#?}");
    assert_eq!(answer["node"], "n1");
    let phases: Vec<(&Value, &Value)> =
        answer["rules"].as_array().unwrap().iter().map(|rule| (&rule["rule"], &rule["phase"])).collect();
    assert_eq!(phases[0], (&json!("mixed-nodes/cpu_total_usage"), &json!("triggered")), "7500 of 6000");
    // (7500 − 6000) × 1.1 = 1650; a step of a tenth of the 5 cores it may use is 500.
    let write = &answer["writes"][0];
    assert_eq!((&write["pod"], &write["gapBefore"]), (&json!("default/crunch-1"), &json!(1650)));
    assert_eq!(answer["protected"].get("default/crunch-1"), None, "its priority is that of its class, 50");
    assert_eq!(answer["protected"]["default/shop-1"], "NotAllowed");
}

#[test]
fn a_whole_cluster_says_where_its_pending_pods_go() {
    let (answer, told) = ask(&["schedule", "-f", "scenarios/others/crane"]);
    assert_eq!(skipped(&told).len(), 1, "{told:#?}");
    assert_eq!(answer["pods"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&answer["pods"][0]["pod"], &answer["pods"][0]["node"]),
        (&json!("default/crunch-2"), &Value::Null)
    );
}

#[test]
fn karmadas_samples_are_divided() {
    let (answer, told) = ask(&["divide", "-f", "scenarios/others/karmada"]);
    assert_eq!(skipped(&told), ["1 Cluster, 1 Namespace, 1 OverridePolicy, 1 Secret, 1 Service"]);
    let replicas = json!([{"name": "member1", "replicas": 3}, {"name": "member2", "replicas": 6}]);
    assert_eq!(answer["clusters"], replicas, "9 by 1 : 2");
}

#[test]
fn ocms_solutions_are_placed() {
    let (answer, told) = ask(&["place", "-f", "scenarios/others/ocm"]);
    assert_eq!(skipped(&told), ["1 ClusterManagementAddOn, 1 ManifestWorkReplicaSet, 1 Secret"]);
    assert_eq!(
        answer["placements"][0]["selected"],
        json!(["cluster1"]),
        "70 before 20, and the taint is tolerated"
    );
}

/// The originals, from Go's module cache: none of them is kept here.
#[test]
fn karmadas_own_samples_and_ocms_own_solutions_are_read_as_they_are() {
    if let Some(folder) = karmada::samples_or_skip() {
        let folder = folder.unwrap();
        let clusters = "scenarios/others/karmada/clusters.yaml";
        let (answer, told) = ask(&["divide", "-f", folder.to_str().unwrap(), clusters]);
        assert_eq!(
            skipped(&told),
            ["1 Cluster, 1 CustomResourceDefinition, 1 Guestbook, 2 OverridePolicy, 1 Secret"]
        );
        let replicas = json!([{"name": "member1", "replicas": 1}, {"name": "member2", "replicas": 1}]);
        assert_eq!(answer["clusters"], replicas, "2 by 1 : 1");
    }
    if let Some(folder) = ocm::solutions_or_skip() {
        let folder = folder.unwrap();
        for (solution, left) in [
            ("deploy-a-helm-chart", "1 Channel, 1 Subscription"),
            ("deploy-argocd-apps", "1 ApplicationSet, 2 Cluster, 1 ConfigMap, 1 Role, 1 RoleBinding"),
            (
                "multicluster-gateway",
                "1 Channel, 1 EnvoyProxy, 1 Gateway, 1 GatewayClass, 1 HTTPRoute, 1 ReferenceGrant, 1 Subscription",
            ),
        ] {
            let (answer, told) = ask(&["place", "-f", folder.join(solution).to_str().unwrap()]);
            assert_eq!(skipped(&told), [left], "{solution}");
            assert_eq!(answer["placements"].as_array().unwrap().len(), 1, "{solution}");
        }
    }
}

#[test]
fn a_folder_with_nothing_that_matters_is_refused_and_so_is_what_is_malformed_in_it() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_owned();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let refused = |folder: &Path| {
        let output = run(&["place", "-f", folder.to_str().unwrap()]);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
        String::from_utf8(output.stderr).unwrap().replace(folder.to_str().unwrap(), "F")
    };
    assert_eq!(refused(&folder), "F: expected files that end in .yaml, .yml or .json, found none\n");
    write("a.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n");
    write("notes.txt", "not: [read");
    std::fs::create_dir(folder.join(".git")).unwrap();
    std::fs::write(folder.join(".git/b.yaml"), "not: [read").unwrap();
    assert_eq!(
        refused(&folder),
        "F: expected objects of the kinds Placement, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision, AddOnPlacementScore, found only 1 Secret\n"
    );
    std::fs::create_dir(folder.join("deep")).unwrap();
    std::fs::write(
        folder.join("deep/c.yml"),
        "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedClustr\nmetadata: {name: c}\n",
    )
    .unwrap();
    write("d.json", "{\"apiVersion\": ");
    assert_eq!(
        refused(&folder),
        "F/d.json: document 1: line 1, column 15: EOF while parsing a value\n\
         F/deep/c.yml: document 1: kind: unknown kind ManagedClustr, expected ManagedCluster\n"
    );
}

#[test]
fn what_kustomize_and_helm_keep_beside_objects_is_told_and_left_out() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().to_owned();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // All of this is legal where it stands, and none of it is an object.
    write("kustomization.yaml", "resources: [node.yaml, pod.yaml]\n");
    write("overlay/kustomization.yml", "resources: [../base]\n");
    write("chart/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
    write("chart/values.yaml", "replicas: 3\n");
    write("chart/values.schema.json", "{\"type\": \"object\"}");
    write("chart/templates/pod.yaml", "{{- if .Values.pod }}\nkind: [\n{{- end }}\n");
    let path = folder.to_str().unwrap();
    let output = run(&["schedule", "-f", path]);
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    let left = "1 Chart.yaml, 1 kustomization.yaml, 1 kustomization.yml, 1 templates/, 1 values.schema.json, 1 values.yaml";
    assert!(told.ends_with(&format!("found only {left}\n")), "{told}");
    write(
        "node.yaml",
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n",
    );
    write(
        "templates/pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n",
    );
    let (answer, told) = ask(&["schedule", "-f", path]);
    assert_eq!(skipped(&told), [left]);
    assert_eq!(answer["pods"][0]["node"], "n1", "a folder of that name that is no chart's is read");
    // Whoever names such a file means it.
    let named = folder.join("kustomization.yaml");
    let output = run(&["schedule", "-f", named.to_str().unwrap()]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("kind: expected a kind such as Pod, found nothing"), "{told}");
}
