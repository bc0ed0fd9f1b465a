//! What `what-if schedule` answers to programs: names, order, and that the form of the input does not matter.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::{NOW, what_if};
use serde_json::{Value, json};
use std::process::Command;

fn scenario(name: &str) -> String {
    common::scenario(&format!("schedule/{name}"))
}

/// The answer to what is given on the standard input.
fn ask(input: &str, more: &[&str]) -> Value {
    what_if("schedule", input, more)
}

fn node(name: &str) -> String {
    let amounts = r#"{cpu: "10", memory: 32Gi, pods: "110"}"#;
    format!(
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{capacity: {amounts}, allocatable: {amounts}}}\n"
    )
}

fn measured(node: &str, at: &str, cpu: &str) -> String {
    format!(
        "---\napiVersion: metrics.k8s.io/v1beta1\nkind: NodeMetrics\nmetadata: {{name: {node}}}\ntimestamp: {at}\nwindow: 60s\nusage: {{cpu: {cpu}, memory: 8Gi}}\n"
    )
}

/// A pod; `more` goes into its spec.
fn pod(name: &str, created: &str, more: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, creationTimestamp: {created}}}\nspec: {{containers: [{{name: main, resources: {{requests: {{cpu: 500m, memory: 1Gi}}}}}}]{more}}}\n"
    )
}

fn placed(answer: &Value) -> Vec<String> {
    let pods = answer["pods"].as_array().expect("a list of pods");
    let text = |pod: &Value| {
        format!("{} {}", pod["pod"].as_str().unwrap_or("?"), pod["node"].as_str().unwrap_or("-"))
    };
    pods.iter().map(text).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn a_recommendation_says_how_its_last_run_went_and_how_old_it_is() {
    let good = scenario("recommendation");
    let shown = |message: &str| {
        json!({
            "name": "default/web-resource-x7k2p", "message": message,
            "updated": "2025-01-01T00:00:00Z", "ageSeconds": 43200,
        })
    };
    let pod = &ask(&good, &[])["pods"][0];
    assert_eq!((&pod["recommendation"], &pod["warnings"]), (&shown("Success"), &json!([])));
    let failed = good.replace("message: Success", "message: \"no data points\"");
    let pod = &ask(&failed, &[])["pods"][0];
    assert_eq!(pod["recommendation"], shown("no data points"));
    assert_eq!(
        pod["warnings"],
        json!([
            "the recommendation default/web-resource-x7k2p is used though its last run 43200 s ago failed (no data points): its figures are from an earlier one, nobody says which"
        ])
    );
    assert_eq!(pod["node"], "n2", "it is used all the same");
    let none = good.replace("type: Resource", "type: Replicas");
    assert_eq!(ask(&none, &[])["pods"][0]["recommendation"], Value::Null);
}

// The cases that read as cold, or as nothing at all.
#[test]
fn in_upstream_mode_what_is_no_number_is_told_as_such() {
    let settings =
        "---\napiVersion: loadline.dev/v1alpha1\nkind: LoadSettings\nspec: {mode: upstream, timeZone: UTC}\n";
    let annotated =
        |values: &str| node("n1").replace("{name: n1}", &format!("{{name: n1, annotations: {{{values}}}}}"));
    let at = "2025-01-01T11:59:00Z";
    let values = format!(
        "mem_usage_avg_5m: \"+Inf,{at}\", cpu_usage_avg_5m: \"NaN,{at}\", node_hot_value: \"2.55,{at}\""
    );
    let input = format!("{}{settings}{}", annotated(&values), pod("web", "2025-01-01T00:00:00Z", ""));
    let answer = ask(&input, &[]);
    let pod = &answer["pods"][0];
    assert_eq!(pod["message"], "0/1 nodes are available: 1 Load[mem_usage_avg_5m] of node[n1] is too high.");
    let found = &pod["nodes"][0];
    assert_eq!(found["reasons"], json!(["Load[mem_usage_avg_5m] of node[n1] is too high"]));
    assert_eq!(found["counterfactual"], "would fit if mem_usage_avg_5m had no limit");
    assert_eq!(found["hotValue"], 2.55);
    let term = |metric: &str| {
        let term = found["terms"].as_array().unwrap().iter().find(|term| term["metric"] == metric).unwrap();
        (term["value"].clone(), term["reason"].clone(), term["note"].clone())
    };
    assert_eq!(
        term("mem_usage_avg_5m"),
        (Value::Null, json!("malformed"), json!("+Inf, counted as crane counts it"))
    );
    assert_eq!(
        term("cpu_usage_avg_5m"),
        (Value::Null, json!("malformed"), json!("NaN, counted as crane counts it"))
    );
}

#[test]
fn the_names_are_those_of_the_guide() {
    let answer = ask(&scenario("recommendation"), &[]);
    assert_eq!(answer["apiVersion"], "loadline.dev/v1alpha1");
    assert_eq!(answer["kind"], "ScheduleResult");
    let pod = &answer["pods"][0];
    assert_eq!(keys(pod), ["message", "node", "nodes", "pod", "preemption", "recommendation", "warnings"]);
    let node = &pod["nodes"][0];
    assert_eq!(
        keys(node),
        [
            "counterfactual",
            "details",
            "fits",
            "hotValue",
            "load",
            "node",
            "reasons",
            "score",
            "scores",
            "terms",
            "warnings"
        ]
    );
    assert_eq!(
        node["scores"]["load"],
        json!({"base": 61, "hotPenalty": 0, "final": 61}),
        "cpu 0.4, memory 0.375: 100 × (1 − 0.3875)"
    );
    assert_eq!(
        node["terms"][0],
        json!({
            "metric": "cpu_usage_avg_5m", "value": 0.4, "limit": 0.65, "weight": 0.2, "ageSeconds": 15,
            "windowSeconds": 300, "source": "metrics", "reason": null
        })
    );
    assert_eq!(
        node["load"]["cpu"],
        json!({
            "measured": "4", "pending": "0", "incoming": "2", "allocatable": "10", "target": 0.65,
            "pendingPods": [], "sources": {"main.cpu": "recommendation"}, "basis": "measured"
        })
    );
    let refused = &pod["nodes"][1];
    assert_eq!(refused["fits"], false);
    assert_eq!(refused["details"][0]["kind"], "overLine");
    assert_eq!(refused["counterfactual"], "would fit if the cpu target were 0.70", "(5 + 2) ÷ 10");
}

#[test]
fn neither_the_order_nor_the_form_of_the_input_matters() {
    let text = scenario("burst");
    let expected = ask(&text, &[]);
    let mut documents: Vec<&str> = text.split("---\n").skip(1).collect();
    documents.reverse();
    assert_eq!(ask(&documents.join("---\n"), &[]), expected, "reversed");
    let items: Vec<String> = text
        .split("---\n")
        .skip(1)
        .map(|document| format!("- {}", document.trim_end().replace('\n', "\n  ")))
        .collect();
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}\n", items.join("\n"));
    assert_eq!(ask(&list, &[]), expected, "as a list");
}

// Promise 2 of the design: a burst never drives a node past its line.
#[test]
fn each_pod_is_charged_before_the_next_unless_they_are_independent() {
    let nodes = |answer: &Value| -> Vec<String> {
        placed(answer).iter().map(|text| text.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
    };
    let charged = nodes(&ask(&scenario("burst"), &[]));
    let count = |name: &str| charged.iter().filter(|node| *node == name).count();
    assert_eq!((count("n1"), count("n2"), count("-")), (3, 2, 1), "1.5 cores, 1 core, and no room");
    assert_eq!(nodes(&ask(&scenario("burst"), &["--independent"])), ["n1"; 6]);
}

#[test]
fn pods_are_decided_by_priority_then_age_then_name() {
    let input = [
        node("n1"),
        pod("c", "2025-01-01T11:00:00Z", ""),
        pod("b", "2025-01-01T11:00:00Z", ""),
        pod("young", "2025-01-01T11:30:00Z", ""),
        pod("important", "2025-01-01T11:59:00Z", ", priority: 10"),
        pod("old", "2025-01-01T09:00:00Z", ", schedulerName: other"),
        pod("placed", "2025-01-01T09:00:00Z", ", nodeName: n1"),
    ]
    .concat();
    let order: Vec<String> = placed(&ask(&input, &[]))
        .iter()
        .map(|text| text.split(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(order, ["default/important", "default/old", "default/b", "default/c", "default/young"]);
}

#[test]
fn several_measurements_of_a_node_are_its_history() {
    let input = [
        node("n1"),
        measured("n1", "2025-01-01T11:58:00Z", "2"),
        measured("n1", "2025-01-01T11:59:00Z", "4"),
        measured("n1", "2025-01-01T11:59:00Z", "9"),
        pod("web", "2025-01-01T11:00:00Z", ""),
    ]
    .concat();
    let answer = ask(&input, &[]);
    let node = &answer["pods"][0]["nodes"][0];
    assert_eq!(node["terms"][0]["value"], 0.3, "the mean of 2 and 4 over 10");
    assert_eq!(node["load"]["cpu"]["measured"], "4", "the newest");
    let warnings = answer["pods"][0]["warnings"].to_string();
    assert!(warnings.contains("another sample of this moment"), "{warnings}");
}

#[test]
fn a_written_hot_value_counts_when_there_are_no_events() {
    let scenario = scenario("hot-node");
    let documents: Vec<&str> = scenario.split("---\n").collect();
    let written = documents
        .iter()
        .filter(|document| !document.contains("kind: Event"))
        .map(|document| {
            document
                .replace("annotations:\n", "annotations:\n    node_hot_value: \"2,2025-01-01T11:58:00Z\"\n")
        })
        .collect::<Vec<_>>()
        .join("---\n");
    let node = |answer: &Value, name: &str| {
        let nodes = answer["pods"][0]["nodes"].as_array().cloned().unwrap_or_default();
        nodes.into_iter().find(|node| node["node"] == name).expect("the node is there")
    };
    let told = ask(&scenario, &[]);
    assert_eq!(node(&told, "n1")["hotValue"], 3, "5 ÷ 5 + 5 ÷ 2");
    assert_eq!(node(&told, "n2")["hotValue"], 0);
    let read = ask(&written, &[]);
    assert_eq!(node(&read, "n1")["hotValue"], 2);
    assert_eq!(node(&read, "n1")["scores"]["load"], json!({"base": 80, "hotPenalty": 20, "final": 60}));
}

#[test]
fn measurements_of_pods_lower_what_is_pending() {
    let started = "status: {phase: Running, containerStatuses: [{name: main, state: {running: {startedAt: 2025-01-01T11:58:30Z}}}]}\n";
    let arriving = pod("arriving", "2025-01-01T11:58:00Z", ", nodeName: n1") + started;
    let usage = "---\napiVersion: metrics.k8s.io/v1beta1\nkind: PodMetrics\nmetadata: {name: arriving, namespace: default}\ntimestamp: 2025-01-01T11:59:00Z\nwindow: 15s\ncontainers: [{name: main, usage: {cpu: 200m, memory: 1Gi}}]\n";
    let world = [
        node("n1"),
        measured("n1", "2025-01-01T11:59:00Z", "4"),
        arriving,
        pod("web", "2025-01-01T11:00:00Z", ""),
    ]
    .concat();
    for (why, input, pending, pods) in [
        (
            "started within the window of the measurement: in full",
            world.clone(),
            "500m",
            json!(["default/arriving"]),
        ),
        ("200m of it are in the measurement", format!("{world}{usage}"), "300m", json!(["default/arriving"])),
    ] {
        let answer = ask(&input, &[]);
        let cpu = &answer["pods"][0]["nodes"][0]["load"]["cpu"];
        assert_eq!((&cpu["pending"], &cpu["pendingPods"]), (&json!(pending), &pods), "{why}");
    }
}

// D3: stamps are UTC unless the settings name the zone crane wrote them in; a clock that is off is noticed.
#[test]
fn clocks_that_differ_are_noticed_both_ways() {
    let reading = |stamp: &str, settings: &str| {
        let annotated = node("n1").replace(
            "{name: n1}",
            &format!("{{name: n1, annotations: {{cpu_usage_avg_5m: \"0.4,{stamp}\"}}}}"),
        );
        let answer =
            ask(&[annotated, pod("web", "2025-01-01T11:00:00Z", ""), settings.to_owned()].concat(), &[]);
        let term = &answer["pods"][0]["nodes"][0]["terms"][0];
        (term["value"].clone(), term["reason"].clone())
    };
    let zone =
        "---\napiVersion: loadline.dev/v1alpha1\nkind: LoadSettings\nspec: {timeZone: Asia/Shanghai}\n";
    for (why, stamp, settings, expected) in [
        ("just now", "2025-01-01T11:59:00Z", "", (json!(0.4), Value::Null)),
        ("20 s ahead: clocks differ a little", "2025-01-01T12:00:20Z", "", (json!(0.4), Value::Null)),
        ("a minute ahead", "2025-01-01T12:01:00Z", "", (Value::Null, json!("future"))),
        ("8 min old", "2025-01-01T11:52:00Z", "", (Value::Null, json!("expired"))),
        ("written in Shanghai, read as UTC", "2025-01-01T19:59:00Z", "", (Value::Null, json!("future"))),
        ("written in Shanghai, and we were told", "2025-01-01T19:59:00Z", zone, (json!(0.4), Value::Null)),
        ("no time", "soon", "", (Value::Null, json!("malformed"))),
    ] {
        assert_eq!(reading(stamp, settings), expected, "{why}");
    }
}

#[test]
fn a_status_that_makes_no_sense_does_not_stop_the_pod() {
    let odd = pod("odd", "2025-01-01T11:00:00Z", ", nodeName: n1") + "status: {phase: Dreaming}\n";
    let answer = ask(&[node("n1"), odd, pod("web", "2025-01-01T11:00:00Z", "")].concat(), &[]);
    assert_eq!(placed(&answer), ["default/web n1"]);
    let load = &answer["pods"][0]["nodes"][0]["load"]["cpu"];
    assert_eq!(load["pending"], "500m", "the odd one is counted by what it asks for");
    assert!(answer["warnings"].to_string().contains("status.phase"), "{}", answer["warnings"]);
}

#[test]
fn a_world_without_pods_or_without_nodes_is_answered() {
    assert_eq!(ask(&node("n1"), &[])["pods"], json!([]));
    let answer = ask(&pod("web", "2025-01-01T11:00:00Z", ""), &[]);
    let only = &answer["pods"][0];
    assert_eq!((&only["node"], &only["nodes"]), (&Value::Null, &json!([])));
    assert_eq!(only["message"], "no nodes available to schedule pods");
}

#[test]
fn of_many_nodes_the_table_shows_the_best_and_the_json_all() {
    let nodes: String = (0..25).map(|i| node(&format!("n{i:02}"))).collect();
    let input = nodes + &pod("web", "2025-01-01T11:00:00Z", "");
    assert_eq!(ask(&input, &[])["pods"][0]["nodes"].as_array().map(Vec::len), Some(25));
    for (output, rows, ends) in [("table", 20, true), ("wide", 25, false)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &input).unwrap();
        let answered = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["what-if", "schedule", "--now", NOW, "-o", output, "-f"])
            .arg(file.path())
            .output()
            .unwrap();
        let text = String::from_utf8(answered.stdout).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains(" yes ")).count(), rows, "{text}");
        assert_eq!(text.ends_with("and 5 more nodes; -o wide shows all\n"), ends, "{text}");
    }
}

#[test]
fn a_move_and_the_node_it_is_made_from_are_told_with_all_their_figures() {
    let input = common::scenario("rebalance/hot-node");
    let answer = what_if("rebalance", &input, &[]);
    assert_eq!(answer["pause"], Value::Null);
    let one = &answer["moves"][0];
    let want = json!({
        "pod": "shop/web-2", "workload": "shop/ReplicaSet/web", "from": "n1", "to": "n2", "resource": "cpu",
        "uses": {"cpu": "900m", "memory": "1Gi"}, "high": {"cpu": "900m", "memory": "1Gi"},
        "gap": {"cpu": "500m", "memory": "0"}, "gapAfter": {"cpu": "0", "memory": "0"},
        // 2 of n2 and 0.9 more; of memory 8 GiB and 1 more, which leaves less of 0.65 × 32 GiB than there is left of the 7.5 cores.
        "there": "2900m", "margin": one["margin"],
        "message": "cpu of n1 is 500m over its line, 0 after; n2 stays 37 % of it below its line with the pod, which uses 900m and at most 900m",
    });
    assert_eq!(*one, want);
    let margin = one["margin"].as_f64().unwrap();
    assert!((margin - (0.65 - 9.0 / 32.0)).abs() < 0.01, "{margin}");
    assert_eq!(answer["moves"].as_array().map(Vec::len), Some(1));
    let node = &answer["nodes"][0];
    let figures = ["node", "resource", "line", "expected", "allocatable", "since", "gap", "left", "wait"];
    let want = json!(["n1", "cpu", "7500m", "8", "10", "2025-01-01T11:53:45Z", {"cpu": "500m", "memory": "0"},
        {"cpu": "0", "memory": "0"}, null]);
    assert_eq!(json!(figures.map(|name| node[name].clone())), want);
    let stay = node["stays"].as_array().unwrap().iter().find(|one| one["pod"] == "shop/debug").unwrap();
    assert_eq!(
        *stay,
        json!({"pod": "shop/debug", "reason": {"kind": "bare"}, "message": "nobody would make it again"})
    );
}
