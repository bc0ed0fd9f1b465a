//! What `what-if place` answers to programs: names, figures, and what is left alone.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::{scenario, what_if};
use serde_json::{Value, json};

fn place(names: &[&str], more: &[&str]) -> Vec<Value> {
    let texts: Vec<String> = names.iter().map(|name| scenario(&format!("placement/{name}"))).collect();
    let answer = what_if("place", &texts.join("\n---\n"), more);
    assert_eq!(
        (&answer["apiVersion"], &answer["kind"]),
        (&json!("loadline.dev/v1alpha1"), &json!("PlaceResult"))
    );
    answer["placements"].as_array().expect("placements").clone()
}

#[test]
fn everything_is_under_its_promised_name() {
    let all = place(&["fleet", "free-share"], &[]);
    let one = &all[0];
    assert_eq!(one["placement"], "ns1/placement1");
    assert_eq!(one["selected"], json!(["alpha", "charlie", "bravo"]), "by rank");
    assert_eq!(
        (&one["unscheduled"], &one["requeueAt"], &one["rounds"]),
        (&json!(0), &Value::Null, &json!([]))
    );
    let alpha = &one["clusters"][0];
    assert_eq!(
        (&alpha["cluster"], &alpha["filteredBy"], &alpha["reason"]),
        (&json!("alpha"), &Value::Null, &Value::Null)
    );
    assert_eq!(alpha["total"], 246);
    assert_eq!(alpha["scores"]["ResourceRatioCPU"], json!({"raw": 66, "weight": 1, "weighted": 66}));
    assert_eq!(one["source"], json!({"source": "static", "oldest": null, "ageSeconds": null}));
    assert_eq!(
        (&one["margin"], &alpha["margin"]),
        (&json!(50), &json!(96)),
        "bravo 200, alpha 246, echo 150"
    );
    let group = json!({"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["placement1-decision-1"], "clusterCount": 3});
    assert_eq!(one["groups"], json!([group]));
    let decision = &one["decisions"][0];
    assert_eq!(decision["action"], "create");
    assert_eq!(decision["object"]["metadata"]["ownerReferences"][0]["kind"], "Placement");
    let labels = json!({
        "cluster.open-cluster-management.io/placement": "placement1",
        "cluster.open-cluster-management.io/decision-group-index": "0",
        "cluster.open-cluster-management.io/decision-group-name": "",
    });
    assert_eq!(decision["object"]["metadata"]["labels"], labels);
    let first = json!({"clusterName": "alpha", "reason": "", "score": 246});
    assert_eq!(decision["object"]["status"]["decisions"][0], first, "by name");
    let condition = json!({
        "type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled",
        "message": "All cluster decisions scheduled", "lastTransitionTime": "2025-01-01T12:00:00Z",
    });
    assert_eq!(one["conditions"][0], condition);
    assert_eq!(one["lastScoreUpdateTime"], "2025-01-01T12:00:00Z");
    let reasons: Vec<&Value> =
        one["events"].as_array().expect("events").iter().map(|event| &event["reason"]).collect();
    assert_eq!(reasons, ["DecisionCreate", "DecisionUpdate", "ScoreUpdate"]);
}

#[test]
fn scores_are_published_only_if_wanted() {
    let all = place(&["fleet", "free-share"], &["--publish-scores", "false"]);
    assert_eq!(
        all[0]["decisions"][0]["object"]["status"]["decisions"][0],
        json!({"clusterName": "alpha", "reason": ""})
    );
    assert_eq!(all[0]["lastScoreUpdateTime"], Value::Null);
}

#[test]
fn a_mistake_leaves_what_is_published() {
    let all = place(&["mistake"], &[]);
    let one = &all[0];
    assert_eq!((&one["selected"], &one["decisions"][0]["action"]), (&json!([]), &json!("none")));
    let misconfigured = &one["conditions"][1];
    assert_eq!(
        (&misconfigured["status"], &misconfigured["reason"]),
        (&json!("True"), &json!("Misconfigured"))
    );
    let cleared = &place(&["mistake"], &["--on-misconfigured", "clear"])[0];
    assert_eq!(cleared["decisions"][0]["action"], "patch");
    assert_eq!(cleared["decisions"][0]["object"]["status"], json!({"decisions": []}));
}

#[test]
fn a_placement_somebody_else_decides_is_listed_and_left_alone() {
    let text = scenario("placement/fleet") + "\n---\n" + &scenario("placement/free-share").replace(
        "  namespace: ns1\n",
        "  namespace: ns1\n  annotations: {cluster.open-cluster-management.io/experimental-scheduling-disable: \"true\"}\n",
    );
    let one = &what_if("place", &text, &[])["placements"][0];
    assert_eq!(
        (&one["placement"], &one["decisions"], &one["conditions"]),
        (&json!("ns1/placement1"), &json!([]), &json!([]))
    );
}

#[test]
fn filters_say_who_and_why_and_until_when() {
    let one = &place(&["tainted"], &[])[0];
    let filtered: Vec<(&Value, &Value)> = one["clusters"]
        .as_array()
        .expect("clusters")
        .iter()
        .map(|found| (&found["cluster"], &found["filteredBy"]))
        .collect();
    assert_eq!(filtered[0], (&json!("alpha"), &Value::Null));
    assert_eq!(filtered[1], (&json!("bravo"), &json!("Predicate")));
    assert_eq!(filtered[2], (&json!("charlie"), &json!("TaintToleration")));
    assert_eq!(one["requeueAt"], "2025-01-01T12:50:00Z");
    assert_eq!((&one["clusters"][1]["total"], &one["clusters"][1]["scores"]), (&Value::Null, &json!({})));
}

#[test]
fn what_is_unknown_is_null_and_not_idle() {
    let all = place(&["measured"], &[]);
    let by_use = all.iter().find(|one| one["placement"] == "ns1/by-use").expect("by-use");
    let silent = by_use["clusters"]
        .as_array()
        .expect("clusters")
        .iter()
        .find(|found| found["cluster"] == "silent")
        .expect("silent");
    assert_eq!(silent["scores"]["ResourceRatioCPU"], json!({"raw": null, "weight": 1, "weighted": -100}));
    assert_eq!(
        by_use["source"],
        json!({"source": "measured", "oldest": "2025-01-01T11:59:00Z", "ageSeconds": 60})
    );
}
