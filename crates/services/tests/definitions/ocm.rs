//! Placements, clusters, sets and scores: what an API server takes of them.

use crate::edit::{Edit, edited};
use crate::verdicts;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// One of each kind with everything in it that a placement looks at.
const WHOLE: &str = include_str!("whole.yaml");

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}

#[test]
fn everything_that_can_be_said_is_taken() {
    for object in documents(WHOLE) {
        let (status, words) = verdicts(|server| server.create(&object));
        assert!(status < 300, "{} {}: {words}", object["kind"], object["metadata"]["name"]);
        for server in crate::servers::both() {
            let stored = server.stored(&object);
            for part in ["spec", "status"] {
                assert_eq!(stored.get(part), object.get(part), "{} {part}", server.name());
            }
        }
    }
}

/// The examples and stories of the design.
#[test]
fn every_object_of_our_scenarios_is_taken() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/placement");
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        files += 1;
        for object in documents(&fs::read_to_string(&path).unwrap()) {
            if !object["apiVersion"].as_str().unwrap_or_default().starts_with(loadline_api::ocm::GROUP) {
                continue;
            }
            for server in crate::servers::both() {
                if let Some(namespace) = object["metadata"]["namespace"].as_str() {
                    server.ask("POST", "/api/v1/namespaces", Some(&json!({"metadata": {"name": namespace}})));
                }
            }
            let (status, words) = verdicts(|server| server.create(&object));
            assert!(status < 300, "{}: {}: {words}", path.display(), object["metadata"]["name"]);
        }
    }
    assert!(files >= 11, "{files}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn what_cannot_be_meant_is_refused() {
    let whole = documents(WHOLE);
    let set = |pointer: &'static str, value: Value| vec![(pointer, Some(value))];
    let without = |pointer: &'static str| vec![(pointer, None)];
    let spread = json!({"topologyKey": "zone", "topologyKeyType": "Label"});
    let cases: Vec<(&str, &str, Vec<Edit>, &str)> = vec![
        ("Placement", "no wish", without("/spec"), "spec: Required value"),
        (
            "Placement",
            "less than no clusters",
            set("/spec/numberOfClusters", json!(-1)),
            "greater than or equal to 0",
        ),
        (
            "Placement",
            "a number in words",
            set("/spec/numberOfClusters", json!("three")),
            "must be of type integer",
        ),
        (
            "Placement",
            "too heavy",
            set("/spec/prioritizerPolicy/configurations/0/weight", json!(11)),
            "less than or equal to 10",
        ),
        (
            "Placement",
            "too light",
            set("/spec/prioritizerPolicy/configurations/0/weight", json!(-11)),
            "greater than or equal to -10",
        ),
        (
            "Placement",
            "a nameless prioritizer",
            set("/spec/prioritizerPolicy/configurations/0", json!({"weight": 1})),
            "scoreCoordinate: Required value",
        ),
        (
            "Placement",
            "another type of score",
            set("/spec/prioritizerPolicy/configurations/0/scoreCoordinate/type", json!("Other")),
            "Unsupported value: \"Other\"",
        ),
        (
            "Placement",
            "half a score of others",
            set(
                "/spec/prioritizerPolicy/configurations/1/scoreCoordinate/addOn",
                json!({"resourceName": "r"}),
            ),
            "scoreName: Required value",
        ),
        (
            "Placement",
            "a toleration of no key",
            set("/spec/tolerations/0/key", json!("no key")),
            "spec.tolerations[0].key",
        ),
        (
            "Placement",
            "a toleration of another effect",
            set("/spec/tolerations/0/effect", json!("NoSchedule")),
            "Unsupported value: \"NoSchedule\"",
        ),
        (
            "Placement",
            "a toleration with a long value",
            set("/spec/tolerations/0/value", json!("v".repeat(1025))),
            "Too long",
        ),
        (
            "Placement",
            "nine spreads",
            set("/spec/spreadPolicy/spreadConstraints", json!(vec![spread; 9])),
            "must have at most 8 items",
        ),
        (
            "Placement",
            "a spread over nothing",
            without("/spec/spreadPolicy/spreadConstraints/0/topologyKey"),
            "topologyKey: Required value",
        ),
        (
            "Placement",
            "a spread over a zone",
            set("/spec/spreadPolicy/spreadConstraints/0/topologyKeyType", json!("Zone")),
            "Unsupported value: \"Zone\"",
        ),
        (
            "Placement",
            "a skew of nothing",
            set("/spec/spreadPolicy/spreadConstraints/0/maxSkew", json!(0)),
            "greater than or equal to 1",
        ),
        (
            "Placement",
            "a spread or else",
            set("/spec/spreadPolicy/spreadConstraints/0/whenUnsatisfiable", json!("Fail")),
            "Unsupported value: \"Fail\"",
        ),
        (
            "Placement",
            "a group with a short name",
            set("/spec/decisionStrategy/groupStrategy/decisionGroups/0/groupName", json!("x")),
            "groupName",
        ),
        (
            "Placement",
            "a group of whom",
            without("/spec/decisionStrategy/groupStrategy/decisionGroups/0/groupClusterSelector"),
            "groupClusterSelector: Required value",
        ),
        (
            "Placement",
            "groups of none",
            set("/spec/decisionStrategy/groupStrategy/clustersPerDecisionGroup", json!("0")),
            "clustersPerDecisionGroup",
        ),
        (
            "Placement",
            "groups of more than all",
            set("/spec/decisionStrategy/groupStrategy/clustersPerDecisionGroup", json!("101%")),
            "clustersPerDecisionGroup",
        ),
        ("Placement", "sorted by age", set("/spec/sortBy", json!("Age")), "Unsupported value: \"Age\""),
        ("Placement", "once a day", set("/spec/scoreRateLimit", json!("1d")), "spec.scoreRateLimit"),
        (
            "Placement",
            "a condition without a reason",
            without("/status/conditions/0/reason"),
            "reason: Required value",
        ),
        (
            "ManagedCluster",
            "a taint without an effect",
            without("/spec/taints/0/effect"),
            "effect: Required value",
        ),
        (
            "ManagedCluster",
            "a taint without a key",
            set("/spec/taints/0/key", json!("")),
            "spec.taints[0].key",
        ),
        (
            "ManagedCluster",
            "a taint with a key of 317",
            set("/spec/taints/0/key", json!("k".repeat(317))),
            "may not be more than 316",
        ),
        (
            "ManagedCluster",
            "a taint of another effect",
            set("/spec/taints/0/effect", json!("NoExecute")),
            "Unsupported value: \"NoExecute\"",
        ),
        (
            "ManagedCluster",
            "lots of memory",
            set("/status/capacity/memory", json!("lots")),
            "status.capacity.memory",
        ),
        (
            "ManagedCluster",
            "a claim of nothing",
            set("/status/clusterClaims/0/name", json!("")),
            "should be at least 1 chars long",
        ),
        (
            "ManagedCluster",
            "a condition that is perhaps",
            set("/status/conditions/0/status", json!("Perhaps")),
            "Unsupported value: \"Perhaps\"",
        ),
        (
            "ManagedClusterSet",
            "another selector",
            set("/spec/clusterSelector/selectorType", json!("Other")),
            "Unsupported value: \"Other\"",
        ),
        (
            "ManagedClusterSet",
            "a namespace twice",
            set("/spec/managedNamespaces/-", json!({"name": "apps"})),
            "Duplicate value",
        ),
        (
            "ManagedClusterSetBinding",
            "a set without a name",
            set("/spec/clusterSet", json!("")),
            "should be at least 1 chars long",
        ),
        (
            "AddOnPlacementScore",
            "too good",
            set("/status/scores/0/value", json!(101)),
            "less than or equal to 100",
        ),
        (
            "AddOnPlacementScore",
            "too bad",
            set("/status/scores/0/value", json!(-101)),
            "greater than or equal to -100",
        ),
        (
            "AddOnPlacementScore",
            "two scores of one name",
            set("/status/scores/-", json!({"name": "a", "value": 1})),
            "Duplicate value",
        ),
        (
            "PlacementDecision",
            "a cluster without a name",
            without("/status/decisions/0/clusterName"),
            "clusterName: Required value",
        ),
    ];
    for (kind, reason, edits, expected) in cases {
        let good = whole.iter().find(|object| object["kind"] == kind).expect(kind);
        let mut bad = edited(good, &edits);
        bad["metadata"]["name"] = json!("bad");
        let (status, words) = verdicts(|server| {
            let verdict = server.create(&bad);
            server.remove(&bad);
            verdict
        });
        assert_eq!(status, 422, "{kind}: {reason}: {words}");
        assert!(words.contains(expected), "{kind}: {reason}: expected {expected:?} in {words:?}");
    }
}

#[test]
fn both_versions_of_a_placement_are_one_object() {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/placement/free-share.yaml"),
    );
    let mut older = documents(&text.unwrap()).remove(0);
    older["metadata"]["name"] = json!("older");
    assert_eq!(older["apiVersion"], "cluster.open-cluster-management.io/v1alpha1");
    for server in crate::servers::both() {
        assert_eq!(server.create(&older), (201, String::new()), "{}", server.name());
        let mut newer = older.clone();
        newer["apiVersion"] = json!("cluster.open-cluster-management.io/v1beta1");
        let stored = server.stored_already(&newer);
        assert_eq!(stored["apiVersion"], newer["apiVersion"], "{}", server.name());
        let names = |object: &Value| {
            let all = object["spec"]["prioritizerPolicy"]["configurations"].as_array().cloned();
            all.unwrap_or_default().iter().map(|one| one["name"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&stored), ["ResourceRatioCPU", "ResourceRatioMemory"], "{}", server.name());
        assert_eq!(stored["spec"]["prioritizerPolicy"]["mode"], "Additive", "{}", server.name());
        assert_eq!(
            stored["spec"]["prioritizerPolicy"]["configurations"][0]["weight"],
            1,
            "{}",
            server.name()
        );
    }
}
