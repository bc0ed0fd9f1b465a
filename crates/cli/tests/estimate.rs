//! What `what-if estimate` answers to programs: names, sums, and what counts.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::{scenario, what_if};
use serde_json::{Value, json};

/// The answer to a scenario.
fn ask(names: &[&str], more: &[&str]) -> Value {
    let input: String = names.iter().map(|name| scenario(&format!("estimate/{name}"))).collect();
    what_if("estimate", &input, more)
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn sum(nodes: &Value) -> i64 {
    nodes.as_array().expect("a list").iter().filter_map(|node| node["replicas"].as_i64()).sum()
}

/// What each node says, shortly.
fn nodes(list: &Value) -> Vec<String> {
    let text = |node: &Value| {
        let why = node["limitedBy"].as_str().or(node["detail"]["kind"].as_str()).unwrap_or("-");
        format!("{} {} {why}", node["node"].as_str().unwrap_or("?"), node["replicas"])
    };
    list.as_array().expect("a list").iter().map(text).collect()
}

#[test]
fn the_names_are_those_of_the_guide() {
    let answer = ask(&["load"], &["--load", "--preempting"]);
    assert_eq!(answer["apiVersion"], "loadline.dev/v1alpha1");
    assert_eq!(answer["kind"], "EstimateResult");
    assert_eq!(
        keys(&answer),
        [
            "apiVersion",
            "kind",
            "limitedBy",
            "load",
            "maxReplicas",
            "nodes",
            "preempting",
            "quota",
            "warnings",
            "workload"
        ]
    );
    assert_eq!(keys(&answer["nodes"][0]), ["detail", "limitedBy", "node", "reason", "replicas"]);
    assert_eq!(keys(&answer["load"]), ["limitedBy", "maxReplicas", "nodes"]);
    assert_eq!(answer["preempting"], json!({"maxReplicas": 26}), "there is nobody to evict");
    let sets = ask(&["components"], &[]);
    assert_eq!((&sets["maxSets"], &sets["maxReplicas"]), (&json!(2), &Value::Null));
    assert_eq!(sets["nodes"], json!([]));
    assert_eq!(keys(&sets["components"][0]), ["maxReplicas", "name", "nodes", "replicas"]);
}

// Section 15 of the reference: the two stories, and what totals would say.
#[test]
fn nodes_are_counted_and_not_their_total() {
    for (why, names, by_total, really) in [
        ("10 × 8 cores, 12 asked", ["small-nodes", "solver"], 80 / 12, 0),
        ("2 × 16 cores", ["large-nodes", "solver"], 32 / 12, 2),
        ("10 × 16 cores without the label", ["plain-nodes", "solver-labelled"], 160 / 12, 0),
        ("2 × 16 cores with it", ["labelled-nodes", "solver-labelled"], 32 / 12, 2),
    ] {
        let answer = ask(&names, &[]);
        assert_eq!(answer["maxReplicas"], really, "{why}; by the total {by_total}");
        assert_eq!(sum(&answer["nodes"]), really, "{why}");
    }
}

#[test]
fn every_node_says_what_stops_it() {
    let answer = ask(&["mixed"], &[]);
    assert_eq!(
        nodes(&answer["nodes"]),
        [
            "cpu-1 0 doesNotFit",
            "gpu-1 3 example.com/gpu",
            "gpu-2 2 cpu",
            "gpu-3 0 cordoned",
            "gpu-4 1 pods",
            "gpu-5 0 untolerated"
        ]
    );
    assert_eq!(answer["maxReplicas"], 6, "3 + 2 + 1");
}

#[test]
fn a_quota_holds_the_answer_and_is_named() {
    let answer = ask(&["quota"], &[]);
    assert_eq!((&answer["maxReplicas"], &answer["limitedBy"]), (&json!(6), &json!("compute")), "10 − 4");
    assert_eq!(sum(&answer["nodes"]), 16, "the nodes would take more");
    // Row 3: used > hard leaves nothing, and never less than that.
    let overdrawn = ask(&["quota-overdrawn"], &[]);
    assert_eq!((&overdrawn["maxReplicas"], &overdrawn["limitedBy"]), (&json!(0), &json!("compute")));
    // Row 26: all scopes must match. The quota of another priority class does not count, even when it is used up.
    let urgent =
        scenario("estimate/quota").replace("    spec:\n", "    spec:\n      priorityClassName: urgent\n");
    let answer = what_if("estimate", &urgent, &[]);
    assert_eq!((&answer["maxReplicas"], &answer["limitedBy"]), (&json!(0), &json!("urgent")), "now it does");
    // A quota that allows more than the nodes take is told, and does not bind.
    let roomy = scenario("estimate/quota").replace("\"4\"", "\"-0\"").replace("\"10\"", "\"99\"");
    let answer = what_if("estimate", &roomy, &[]);
    assert_eq!(
        (&answer["maxReplicas"], &answer["limitedBy"]),
        (&json!(14), &json!("objects")),
        "20 − 6 pods"
    );
    // Row 27: what belongs to no namespace is bound by no quota.
    let binding = "---\napiVersion: work.karmada.io/v1alpha2\nkind: ClusterResourceBinding\nmetadata: {name: web}\nspec: {replicas: 1, replicaRequirements: {resourceRequest: {cpu: 1}}}\n";
    let answer = what_if("estimate", &(scenario("estimate/quota") + binding), &[]);
    assert_eq!((&answer["maxReplicas"], &answer["quota"]), (&json!(16), &Value::Null));
}

// Rows 22 and 23: what was promised takes its place first, what has arrived of it counts once, and what does not fit
// any more takes what it can.
#[test]
fn what_was_promised_takes_its_place_first_and_once() {
    let text = scenario("estimate/assumed");
    let without = |kind: &str| -> String {
        let parts: Vec<&str> =
            text.split("---\n").filter(|part| !part.contains(&format!("kind: {kind}\n"))).collect();
        parts.join("---\n")
    };
    let most = |input: &str| what_if("estimate", input, &[])["maxReplicas"].clone();
    assert_eq!(most(&text), 8, "14 − 3 × 2");
    assert_eq!(most(&without("AssumedWorkload")), 14, "6 + 8");
    assert_eq!(
        most(&text.replace("  resource:", "  # resource:")),
        6,
        "nobody says whose pods they are: 14 − 4 × 2"
    );
    assert_eq!(most(&without("ReplicaSet")), 6, "nobody says who owns the ReplicaSet");
    assert_eq!(most(&text.replace("replicas: 4", "replicas: 40")), 0, "everything is promised");
}

// Row 21: pods without a node count when asked to.
#[test]
fn pods_without_a_node_count_when_asked_to() {
    let answer = ask(&["pending"], &[]);
    assert_eq!(answer["maxReplicas"], 4);
    assert_eq!(answer["warnings"], json!(["1 pod without a node is not counted (--pending counts it)"]));
    let answer = ask(&["pending"], &["--pending"]);
    assert_eq!((&answer["maxReplicas"], &answer["warnings"]), (&json!(1), &json!([])));
}

// Row 4: sets without pods are bound by nothing; the computation ends at once.
#[test]
fn sets_of_nothing_are_not_limited() {
    let none = scenario("estimate/components")
        .replace("replicas: 1,", "replicas: 0,")
        .replace("replicas: 3,", "replicas: 0,");
    assert_eq!(what_if("estimate", &none, &[])["maxSets"], i32::MAX);
}

#[test]
fn the_load_line_is_a_second_answer() {
    let answer = ask(&["load"], &["--load"]);
    assert_eq!((&answer["maxReplicas"], &answer["load"]["maxReplicas"]), (&json!(26), &json!(6)));
    assert_eq!(nodes(&answer["load"]["nodes"]), ["n1 1 cpu", "n2 5 cpu", "n3 0 overThreshold"]);
    assert_eq!(ask(&["load"], &[])["load"], Value::Null, "nobody asked");
    let settings = "---\napiVersion: loadline.dev/v1alpha1\nkind: LoadSettings\nspec: {exempt: {namespaces: [default]}}\n";
    let answer = what_if("estimate", &(scenario("estimate/load") + settings), &["--load"]);
    assert_eq!(answer["load"]["maxReplicas"], 26);
    assert_eq!(answer["warnings"], json!(["the settings exempt this workload from the load line"]));
    let advice = r#"---
apiVersion: analysis.crane.io/v1alpha1
kind: Recommendation
metadata: {name: web, namespace: default}
spec: {type: Resource, targetRef: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}}
status: {recommendedValue: "resourceRequest: {containers: [{containerName: main, target: {cpu: \"2\", memory: 1Gi}}]}"}
"#;
    let answer = what_if("estimate", &(scenario("estimate/load") + advice), &["--load"]);
    assert_eq!(answer["maxReplicas"], 26, "requests are what they are");
    assert_eq!(
        nodes(&answer["load"]["nodes"]),
        ["n1 0 noHeadroom", "n2 2 cpu", "n3 0 overThreshold"],
        "⌊1.5 ÷ 2⌋, ⌊5.5 ÷ 2⌋"
    );
}

#[test]
fn evicting_is_a_number_of_its_own() {
    let answer = ask(&["preempting"], &["--preempting"]);
    assert_eq!((&answer["maxReplicas"], &answer["preempting"]), (&json!(0), &json!({"maxReplicas": 3})));
    assert_eq!(ask(&["preempting"], &[])["preempting"], Value::Null, "nobody asked");
    let unknown =
        scenario("estimate/preempting").replace("metadata: {name: important}", "metadata: {name: other}");
    let answer = what_if("estimate", &unknown, &["--preempting"]);
    assert_eq!(answer["preempting"], Value::Null, "unknown is never zero");
    assert!(answer["warnings"][0].as_str().unwrap().contains("PriorityClass \"important\""), "{answer}");
}

#[test]
fn neither_the_order_nor_the_form_of_the_input_matters() {
    let text = scenario("estimate/assumed");
    let expected = what_if("estimate", &text, &[]);
    let mut documents: Vec<&str> = text.split("---\n").skip(1).collect();
    documents.reverse();
    assert_eq!(what_if("estimate", &documents.join("---\n"), &[]), expected, "reversed");
}

#[test]
fn a_cluster_without_nodes_is_answered() {
    let answer = ask(&["solver"], &["--load"]);
    assert_eq!((&answer["maxReplicas"], &answer["nodes"]), (&json!(0), &json!([])));
    assert_eq!(answer["warnings"][0], "there is no node in the input");
}
