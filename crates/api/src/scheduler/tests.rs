use super::*;
use loadline_core::cluster::Profile;
use serde_json::{Value, json};

fn read_value(document: &Value) -> Result<Configuration, Vec<String>> {
    let read = read(&Tree::from(document));
    read.map(|(configuration, _)| configuration)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn document(profiles: &Value) -> Value {
    json!({"apiVersion": "loadline.dev/v1alpha1", "kind": "SchedulerConfiguration", "profiles": profiles})
}

#[test]
fn nothing_said_is_the_default() {
    let bare = json!({"apiVersion": "loadline.dev/v1alpha1", "kind": "SchedulerConfiguration"});
    assert_eq!(read_value(&bare), Ok(Configuration::default()));
    let named = document(&json!([{"schedulerName": "loadline"}]));
    assert_eq!(read_value(&named), Ok(Configuration::default()));
}

#[test]
fn profiles_have_rules_weights_and_patience_of_their_own() {
    let read = read_value(&document(&json!([
        {"schedulerName": "a", "settings": {"targets": {"cpu": 0.9}}, "whenOverloaded": "LeastBad"},
        {"schedulerName": "b", "loadAware": false, "weights": {"NodeResourcesFit": 7, "Need": 0}},
        {"schedulerName": "c", "whenOverloaded": "LeastBad", "leastBadAfter": "5s"},
    ])))
    .unwrap();
    let [a, b, c] = &read.profiles[..] else { panic!("three") };
    let target = a.profile.rules.as_ref().unwrap().settings().targets.cpu;
    assert_eq!(target, loadline_core::load::ratio::Ratio::from_f64(0.9));
    assert_eq!(a.when_overloaded, WhenOverloaded::LeastBad { after: SignedDuration::from_mins(1) });
    let weights = Weights { least: 7, need: 0, ..Weights::default() };
    assert_eq!(b.profile, Profile { rules: None, weights });
    assert_eq!(c.when_overloaded, WhenOverloaded::LeastBad { after: SignedDuration::from_secs(5) });
}

#[test]
fn everything_that_is_wrong_is_said_at_once_and_where() {
    let problems = read_value(&json!({
        "apiVersion": "loadline.dev/v1", "kind": "SchedulerConfiguration",
        "profiles": [
            {"schedulerName": "a", "policy": {"predicate": [{"name": "cpu_usage_avg_5m", "maxLimitPecent": 65}]}},
            {"schedulerName": "a", "settings": {"target": {}}},
            {"policy": {}, "loadAware": false, "whenOverloaded": "Panic", "leastBadAfter": "1m"},
            {"schedulerName": "d", "weights": {"Load": -1, "Speed": 1}},
        ],
        "parallelWrites": 0, "profile": [],
    }))
    .unwrap_err();
    let paths: Vec<&str> = problems.iter().map(|p| p.split(": ").next().unwrap()).collect();
    for expected in [
        "apiVersion",
        "profile",
        "profiles[0].policy.predicate[0].maxLimitPecent",
        "profiles[1].schedulerName",
        "profiles[1].settings.target",
        "profiles[2].schedulerName",
        "profiles[2].policy",
        "profiles[2].whenOverloaded",
        "profiles[2].leastBadAfter",
        "profiles[3].weights.Load",
        "profiles[3].weights.Speed",
        "parallelWrites",
    ] {
        assert!(paths.contains(&expected), "{expected} is not among {problems:#?}");
    }
}

#[test]
fn no_profile_at_all_is_a_mistake() {
    let problems = read_value(&document(&json!([]))).unwrap_err();
    assert_eq!(problems, ["profiles: expected at least one, found none"]);
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    let full = document(&json!([
        {"schedulerName": "a", "whenOverloaded": "LeastBad", "leastBadAfter": "1m30s",
         "settings": {
            "mode": "default", "timeZone": "Asia/Shanghai", "targets": {"cpu": 0.7}, "missingData": "Deny", "settle": "30s", "need": "Ignore", "line": "Always",
            "nodes": [{"selector": {"matchLabels": {"pool": "gold"}, "matchExpressions": [
                {"key": "zone", "operator": "NotIn", "values": ["x", "y"]}, {"key": "spot", "operator": "DoesNotExist"}]},
                "targets": {"memory": 0.9}, "thresholds": {"cpu_usage_avg_5m": 0.5}}],
            "exempt": {"namespaces": ["kube-system"], "podSelector": {"matchLabels": {"vip": "yes"}}}},
         "policy": {"syncPolicy": [{"name": "cpu_usage_avg_5m", "period": "3m"}],
            "predicate": [{"name": "cpu_usage_avg_5m", "maxLimitPecent": 0.65}],
            "priority": [{"name": "cpu_usage_avg_5m", "weight": 0.2}], "hotValue": [{"timeRange": "5m", "count": 5}]}},
        {"schedulerName": "b", "loadAware": false, "weights": {"ImageLocality": 0}},
    ]));
    for document in [full, json!({"apiVersion": CONFIGURATION.0, "kind": CONFIGURATION.1})] {
        let first = read_value(&document).unwrap();
        let written = serde_json::to_value(write(&first)).unwrap();
        assert_eq!(read_value(&written).as_ref(), Ok(&first), "{written:#}");
    }
}
