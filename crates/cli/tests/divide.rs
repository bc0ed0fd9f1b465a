//! What `what-if divide` answers to programs: names, and what counts.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::{scenario, what_if};
use serde_json::{Value, json};

/// The answer to a scenario.
fn ask(name: &str, more: &[&str]) -> Value {
    what_if("divide", &scenario(&format!("divide/{name}")), more)
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn the_names_are_those_of_the_guide() {
    let answer = ask("grow", &[]);
    assert_eq!(answer["apiVersion"], "loadline.dev/v1alpha1");
    assert_eq!(answer["kind"], "DivideResult");
    assert_eq!(
        keys(&answer),
        [
            "affinity",
            "apiVersion",
            "clusters",
            "condition",
            "feasible",
            "filtered",
            "kind",
            "shortfall",
            "warnings",
            "workload"
        ]
    );
    assert_eq!(answer["clusters"][0], json!({"name": "member1", "replicas": 5}));
    assert_eq!(
        answer["feasible"][0],
        json!({"name": "member1", "score": 100, "allocatable": 2, "available": 6, "estimates": {"general-estimator": 2}}),
        "both have six in all; the first name"
    );
    assert_eq!(
        answer["filtered"][0],
        json!({"name": "member4", "reasons": ["cluster(s) had untolerated taint {maintenance:NoSchedule}"]})
    );
    assert_eq!(
        answer["condition"],
        json!({"type": "Scheduled", "status": "True", "reason": "Success", "message": "Binding has been scheduled successfully."})
    );
    assert_eq!((&answer["shortfall"], &answer["warnings"]), (&json!(0), &json!([])));
}

// Section 15 of the reference: the two stories, and what totals would say.
#[test]
fn totals_choose_wrong_and_counting_nodes_does_not() {
    for story in ["sizes", "labels"] {
        assert_eq!(ask(story, &[])["clusters"], json!([{"name": "A", "replicas": 1}]), "{story}, by totals");
        let counted = ["--estimate", "A=0", "--estimate", "B=2"];
        let answer = ask(story, &counted);
        assert_eq!(answer["clusters"], json!([{"name": "B", "replicas": 1}]), "{story}, node by node");
        assert_eq!(answer["feasible"][0]["estimates"], json!({"override": 2}), "{story}");
    }
}

// By totals 2 fit in B, whatever somebody else says; which of the two counts is up to the mode.
#[test]
fn of_several_estimates_the_mode_says_which_counts() {
    let both = json!({"general-estimator": 2, "override": 5});
    let least = ["--estimator-mode", "min"];
    for (more, fits, estimates, why) in [
        (&[][..], 5, json!({"override": 5}), "it stands for all others"),
        (&["--estimator-mode", "accurate-first"], 5, json!({"override": 5}), "the same, said"),
        (&least, 2, both.clone(), "the smaller of 2 and 5"),
        (&["--mode", "upstream"], 2, both, "as Karmada, which always takes the smallest"),
    ] {
        let answer = ask("labels", &[&["--estimate", "B=5"], more].concat());
        let feasible = answer["feasible"].as_array().unwrap();
        let b = feasible.iter().find(|one| one["name"] == "B").unwrap();
        assert_eq!((&b["allocatable"], &b["estimates"]), (&json!(fits), &estimates), "{why}");
    }
    let answer = ask("labels", &[&["--estimate", "B=1"], &least[..]].concat());
    let feasible = answer["feasible"].as_array().unwrap();
    let fits = |name: &str| feasible.iter().find(|one| one["name"] == name).unwrap()["allocatable"].clone();
    assert_eq!((fits("A"), fits("B")), (json!(13), json!(1)), "of A nobody else says anything");
}

// Two rows of docs/division-differences.md, both ways.
#[test]
fn karmadas_own_way_can_be_asked_for() {
    let condition = |text: &str, mode: &str| {
        let answer = what_if("divide", text, &["--mode", mode]);
        let text = |field: &str| answer["condition"][field].as_str().unwrap().to_owned();
        (text("reason"), text("message"))
    };
    // Nine regions where there are three; of clusters there may be as many as one likes.
    let regions = scenario("divide/regions");
    let many = regions.replace("minGroups: 2, maxGroups: 2", "minGroups: 9, maxGroups: 9");
    assert_ne!(many, regions, "the scenario has such constraints");
    let few = "the number of feasible region is less than spreadConstraint.MinGroups";
    assert_eq!(
        condition(&many, "default"),
        ("Unschedulable".to_owned(), few.to_owned()),
        "it waits for room"
    );
    assert_eq!(condition(&many, "upstream").0, "SchedulerError", "it is tried again and again");
    let boundless = regions.replace(", maxGroups: 2", "");
    assert_eq!(condition(&boundless, "default").0, "Success", "no maximum is no limit");
    assert_ne!(condition(&boundless, "upstream").0, "Success", "no maximum is none at all");
}

#[test]
fn three_replicas_do_not_fit_where_two_do() {
    let three = scenario("divide/sizes").replace("replicas: 1", "replicas: 3");
    let counted = ["--estimate", "A=0", "--estimate", "B=2"];
    let answer = what_if("divide", &three, &counted);
    assert_eq!((&answer["clusters"], &answer["shortfall"]), (&json!([]), &json!(3)));
    assert_eq!(
        answer["condition"],
        json!({"type": "Scheduled", "status": "False", "reason": "Unschedulable",
            "message": "Clusters available replicas 2 are not enough to schedule."})
    );
    let some = what_if("divide", &three, &[&counted[..], &["--shortfall", "partial"]].concat());
    assert_eq!((&some["clusters"], &some["shortfall"]), (&json!([{"name": "B", "replicas": 2}]), &json!(1)));
}

#[test]
fn components_go_as_a_whole_and_have_no_replicas() {
    let answer = ask("components", &[]);
    let parts = json!([{"name": "manager", "replicas": 1}, {"name": "worker", "replicas": 3}]);
    assert_eq!(answer["clusters"], json!([{"name": "large", "components": parts}]));
    let sets: Vec<_> = answer["feasible"].as_array().unwrap().iter().map(|c| &c["allocatable"]).collect();
    assert_eq!(sets, [&json!(2), &json!(1)]);
}

#[test]
fn clusters_without_replicas_can_get_the_workload() {
    let answer = ask("sizes", &["--empty-workload-propagation"]);
    assert_eq!(answer["clusters"], json!([{"name": "A", "replicas": 1}, {"name": "B", "replicas": 0}]));
}

#[test]
fn what_the_schema_allows_and_the_engine_refuses_is_an_answer() {
    let answer = |from: &str, to: &str| {
        let changed = scenario("divide/regions").replace(from, to);
        let answer = what_if("divide", &changed, &[]);
        assert_eq!(answer["clusters"], json!([]), "{to}");
        (
            answer["condition"]["reason"].as_str().unwrap().to_owned(),
            answer["condition"]["message"].as_str().unwrap().to_owned(),
        )
    };
    for (from, to, reason, message) in [
        ("replicas: 10", "replicas: -1", "SchedulerError", "spec.replicas: expected 0 or more, found -1"),
        (
            "region, minGroups: 2",
            "region, minGroups: 3",
            "SchedulerError",
            "spread constraint by region: maxGroups 2 is less than minGroups 3",
        ),
        (
            "region, minGroups: 2, maxGroups: 2",
            "region, minGroups: 4, maxGroups: 4",
            "Unschedulable",
            "at least 4 different in region do not go into at most 2 clusters",
        ),
        (
            "replicaDivisionPreference: Weighted",
            "",
            "SchedulerError",
            "unsupported replica scheduling strategy, replicaSchedulingType: Divided, replicaDivisionPreference: , please try another scheduling strategy",
        ),
        (
            "kind: Deployment}]",
            "kind: Other}]",
            "NoClusterFit",
            "0/4 clusters are available: 4 cluster(s) did not have the API resource.",
        ),
    ] {
        assert_eq!(answer(from, to), (reason.to_owned(), message.to_owned()));
    }
}

#[test]
fn the_order_of_documents_does_not_matter() {
    let text = scenario("divide/grow");
    let mut documents: Vec<&str> = text.split("\n---\n").skip(1).collect();
    let forwards = what_if("divide", &documents.join("\n---\n"), &[]);
    documents.reverse();
    assert_eq!(what_if("divide", &documents.join("\n---\n"), &[]), forwards);
}
