//! Recommendations in every shape they ever had.

use loadline_api::json::Tree;
use loadline_api::recommendation;
use loadline_core::load::recommend::{Form, Recommendation};
use serde_json::{Value, json};

const MI: i64 = 1 << 20;

/// A Recommendation for the Deployment `shop/web`, kept elsewhere, with that status.
fn with(status: &Value) -> Value {
    json!({"apiVersion": "analysis.crane.io/v1alpha1", "kind": "Recommendation",
        "metadata": {"namespace": "crane-system", "name": "workloads-rule-resource-x7", "annotations":
            {"analysis.crane.io/message": "Success", "analysis.crane.io/run-number": "12"}},
        "spec": {"type": "Resource", "adoptionType": "StatusAndAnnotation", "targetRef":
            {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"}},
        "status": status})
}

fn yaml() -> &'static str {
    "resourceRequest:\n  containers:\n  - containerName: main\n    target:\n      cpu: 575m\n      memory: 1150Mi\n  \
     - containerName: log\n    target:\n      cpu: 114m\n      memory: \"120586239\"\n"
}

fn patch() -> &'static str {
    r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"requests":
        {"cpu":"575m","memory":"1150Mi"}}},{"name":"log","resources":{"requests":
        {"cpu":"114m","memory":"120586239"}}}]}}}}"#
}

fn typed() -> Value {
    json!({"containers": [{"containerName": "main", "target": {"cpu": "575m", "memory": "1150Mi"}},
        {"containerName": "log", "target": {"cpu": "114m", "memory": 120_586_239}}]})
}

fn read(value: &Value) -> (Option<Recommendation>, Vec<String>) {
    let (found, warnings) = recommendation::read(&Tree::from(value)).expect("a valid object");
    (found, warnings.iter().map(ToString::to_string).collect())
}

/// Container by container: CPU in thousandths, memory in bytes.
fn figures(found: &Recommendation) -> Vec<(&str, Option<i64>, Option<i64>)> {
    found
        .containers
        .iter()
        .map(|(name, a)| (&**name, a.cpu_nano.map(|n| n / 1_000_000), a.memory_bytes))
        .collect()
}

#[test]
fn every_shape_says_the_same() {
    for (status, shape) in [
        (json!({"recommendedValue": yaml(), "recommendedInfo": patch(), "action": "Patch"}), Form::Value),
        (json!({"recommendedValue": yaml(), "recommendedInfo": "{"}), Form::Value),
        (json!({"recommendedInfo": patch(), "currentInfo": "x"}), Form::Patch),
        (json!({"recommendedValue": "", "recommendedInfo": patch()}), Form::Patch),
        (json!({"resourceRequest": typed()}), Form::Typed),
    ] {
        let (found, warnings) = read(&with(&status));
        let found = found.unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(found.shape, shape);
        assert_eq!(
            figures(&found),
            [("log", Some(114), Some(120_586_239)), ("main", Some(575), Some(1150 * MI))],
            "{shape:?}"
        );
    }
}

#[test]
fn the_target_is_the_one_named_wherever_the_object_is() {
    let (found, _) =
        read(&with(&json!({"recommendedValue": yaml(), "lastUpdateTime": "2025-01-01T00:00:00Z"})));
    let found = found.unwrap();
    assert_eq!(found.target.to_string(), "Deployment shop/web");
    assert_eq!(&*found.target.group, "apps");
    assert_eq!(&*found.name, "crane-system/workloads-rule-resource-x7");
    assert_eq!(found.updated, Some("2025-01-01T00:00:00Z".parse().unwrap()));
    let mut here = with(&json!({"recommendedValue": yaml()}));
    here["spec"]["targetRef"]["namespace"] = json!("");
    assert_eq!(
        &*read(&here).0.unwrap().target.key.namespace,
        "crane-system",
        "none named: where the object is"
    );
}

#[test]
fn success_is_what_the_message_says() {
    for (message, success) in
        [(json!("Success"), true), (json!("Failed to query history"), false), (json!(null), false)]
    {
        let mut value = with(&json!({"recommendedValue": yaml()}));
        value["metadata"]["annotations"]["analysis.crane.io/message"] = message.clone();
        let found = read(&value).0.unwrap();
        assert_eq!((found.success, found.message.as_deref()), (success, message.as_str()));
    }
}

#[test]
fn a_bad_amount_takes_only_itself_away() {
    for (cpu, memory, want, path) in [
        (json!("lots"), json!("1Mi"), (None, Some(MI)), Some("target.cpu: quantity \"lots\"")),
        (json!("1"), json!("1 GB"), (Some(1000), None), Some("target.memory: quantity \"1 GB\"")),
        (json!("1"), json!("-1Gi"), (Some(1000), None), Some("target.memory: quantity -1Gi must not")),
        (json!("1"), json!({}), (Some(1000), None), Some("target.memory: ")),
        (json!("1"), json!(null), (Some(1000), None), None),
        (json!(0.5), json!("107374182400m"), (Some(500), Some(107_374_183)), None),
    ] {
        let status = json!({"resourceRequest": {"containers":
            [{"containerName": "main", "target": {"cpu": cpu, "memory": memory}}]}});
        let (found, warnings) = read(&with(&status));
        let found = found.unwrap();
        assert_eq!(figures(&found), [("main", want.0, want.1)]);
        assert_eq!(warnings.len(), usize::from(path.is_some()), "{warnings:?}");
        if let (Some(path), Some(warning)) = (path, warnings.first()) {
            let start = "Recommendation crane-system/workloads-rule-resource-x7: status.resourceRequest.containers[0].";
            assert!(warning.starts_with(&format!("{start}{path}")), "{warning}");
        }
    }
}

#[test]
fn a_text_that_does_not_read_is_passed_over_with_a_warning() {
    for bad in
        ["resourceRequest: {", "resourceRequest: [1, 2]", "resourceRequest: {containers: 7}", "just words"]
    {
        let (found, warnings) = read(&with(&json!({"recommendedValue": bad, "recommendedInfo": patch()})));
        assert_eq!(found.unwrap().shape, Form::Patch, "{bad:?}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("status.recommendedValue"), "{warnings:?}");
        assert!(!warnings[0].contains('\n'), "{warnings:?}");
    }
    let (found, warnings) =
        read(&with(&json!({"recommendedValue": 7, "recommendedInfo": "[", "resourceRequest": 1})));
    assert_eq!((found, warnings.len()), (None, 3));
}

#[test]
fn other_kinds_of_recommendations_and_empty_ones_are_none() {
    let mut replicas = with(&json!({"recommendedValue": "replicasRecommendation:\n  replicas: 3\n"}));
    replicas["spec"]["type"] = json!("Replicas");
    for value in
        [replicas, with(&json!({})), with(&json!(null)), with(&json!({"proposal": {"containers": []}}))]
    {
        assert_eq!(read(&value), (None, Vec::new()));
    }
}

#[test]
fn a_recommendation_for_nothing_is_an_error() {
    let mut value = with(&json!({"recommendedValue": yaml()}));
    value["spec"]["targetRef"] = json!({"apiVersion": "apps/v1"});
    let error = recommendation::read(&Tree::from(&value)).unwrap_err().to_string();
    assert!(
        error.ends_with("spec.targetRef.kind: must not be empty; spec.targetRef.name: must not be empty"),
        "{error}"
    );
}

#[test]
fn the_day_of_a_container_is_read_and_a_bad_one_takes_nothing_else_away() {
    let hours = |hour: serde_json::Value| -> serde_json::Value {
        (0..24).map(|at| if at == 9 { hour.clone() } else { json!(200) }).collect::<Vec<_>>().into()
    };
    let short = json!({"main": [1, 2]}).to_string();
    for (text, want, warning) in [
        (json!({"main": hours(json!(1500))}).to_string(), Some(1_500_000_000_i64), None),
        (json!({"main": hours(json!(null))}).to_string(), Some(200_000_000), None),
        (json!({"main": hours(json!("1"))}).to_string(), None, Some("main[9]: ")),
        (
            json!({"main": hours(json!(-1))}).to_string(),
            None,
            Some("main[9]: expected 0 or more millicores, found -1"),
        ),
        (short, None, Some("main: expected 24 hours, found 2")),
        ("{".to_owned(), None, Some("")),
        ("{}".to_owned(), None, None),
    ] {
        let mut value = with(&json!({"recommendedValue": yaml()}));
        value["metadata"]["annotations"]["loadline.dev/day"] = json!(text);
        let (found, warnings) = read(&value);
        let found = found.unwrap();
        assert_eq!(found.days.get("main").map(|day| day.cpu_nano()[9]), want, "{text}");
        assert_eq!(figures(&found).len(), 2, "what is recommended stays: {text}");
        assert_eq!(warnings.len(), usize::from(warning.is_some()), "{warnings:?}");
        if let (Some(part), Some(told)) = (warning, warnings.first()) {
            let at = "metadata.annotations[loadline.dev/day]";
            assert!(told.contains(at) && told.contains(part), "{told}");
        }
    }
}
