use super::*;
use loadline_api::Context;
use loadline_api::json::Tree;
use loadline_core::divide::Answer;
use tokio::time::Instant;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
const PLACEMENT: &str = r#"{"clusterAffinity":{"clusterNames":["a","b"]}}"#;

fn known(change: impl FnOnce(&mut Value)) -> Arc<Known> {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 3, "resourceVersion": "9",
            "annotations": {"policy.karmada.io/applied-placement": PLACEMENT}},
        "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "replicas": 2,
            "clusters": [{"name": "b", "replicas": 1}, {"name": "a", "replicas": 1}],
            "placement": {"clusterAffinity": {"clusterNames": ["a", "b"]}}},
        "status": {"schedulerObservedGeneration": 3, "conditions": [
            {"type": "FullyApplied", "status": "True"},
            {"type": "Scheduled", "status": "True", "reason": "Success",
                "message": "Binding has been scheduled successfully.", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    change(&mut object);
    let facts = karmada::scheduling(&Tree::from(&object), &Context::new());
    let meta = loadline_api::object::meta(&Tree::from(&object));
    Arc::new(Known { of: RESOURCE_BINDINGS, meta, facts })
}

fn gets(clusters: &[(&str, i32)]) -> Answer {
    let one = |(name, replicas): &(&str, i32)| Target {
        name: (*name).into(),
        replicas: Some(*replicas),
        components: Vec::new(),
    };
    let mut answer = Answer::default();
    answer.clusters = clusters.iter().map(one).collect();
    answer
}

fn refuses(failure: Refused) -> Answer {
    let mut answer = Answer::default();
    answer.failure = Some(failure);
    answer
}

fn job(known: &Arc<Known>, due: Due, answer: Answer) -> Job {
    let said = [].into();
    let (known, answer) = (known.clone(), Arc::new(answer));
    Job::of(&Decided { known, due, answer, said, began: Instant::now(), before: None })
}

#[test]
fn what_is_there_already_is_not_written_again() {
    let known = known(|_| {});
    let same = job(&known, Due::Everywhere, gets(&[("a", 1), ("b", 1)]));
    assert!(!same.is_needed(NOW), "whatever their order: {same:?}");
    let asked = job(&known, Due::Asked, gets(&[("a", 1), ("b", 1)]));
    let status = asked.status(&known.facts, NOW).expect("who asked must see that it was done");
    assert_eq!(status, json!({"lastScheduledTime": "2027-01-15T08:00:00Z"}));
    let other = job(&known, Due::Replicas, gets(&[("a", 2), ("b", 0)]));
    assert_eq!(other.clusters, Some(vec![json!({"name": "a", "replicas": 2}), json!({"name": "b"})]));
}

#[test]
fn a_placement_that_was_never_remembered_is() {
    let known = known(|object| object["metadata"]["annotations"] = json!({}));
    let same = job(&known, Due::Placement, gets(&[("a", 1), ("b", 1)]));
    let written = karmada::decided(&same.clusters.expect("the annotation has to be written"), PLACEMENT);
    assert_eq!(written["metadata"]["annotations"]["policy.karmada.io/applied-placement"], PLACEMENT);
}

#[test]
fn a_failure_changes_the_condition_alone_unless_no_cluster_fits() {
    let known = known(|_| {});
    let failed = job(&known, Due::Replicas, refuses(Refused::Short { available: 1 }));
    assert_eq!(failed.clusters, None);
    let status = failed.status(&known.facts, NOW).expect("it is told");
    assert_eq!(status["conditions"][0]["type"], "FullyApplied", "others' conditions stay");
    assert_eq!(
        status["conditions"][1],
        json!({"type": "Scheduled", "status": "False", "reason": "Unschedulable",
            "message": "Clusters available replicas 1 are not enough to schedule.",
            "lastTransitionTime": "2027-01-15T08:00:00Z"})
    );
    assert_eq!(status.as_object().map(serde_json::Map::len), Some(1), "nothing was observed: {status}");

    let none = Refused::NoFit { clusters: 2, reasons: std::collections::BTreeMap::new() };
    let nowhere = job(&known, Due::Placement, refuses(none));
    assert_eq!(nowhere.clusters, Some(vec![]), "where it is it may not be");
    assert_eq!(karmada::decided(&[], "{}")["spec"]["clusters"], Value::Null);
}

#[test]
fn a_condition_that_says_the_same_keeps_its_time_and_another_reason_too() {
    let known = known(|object| object["status"]["conditions"][1]["message"] = json!("Something else."));
    let status = Job::settled(&known).status(&known.facts, NOW).expect("the message is another");
    assert_eq!(
        status["conditions"][1]["lastTransitionTime"], "2026-01-01T00:00:00Z",
        "it was True all the time"
    );
}

#[test]
fn what_is_too_long_for_a_condition_is_cut_and_not_told_again_and_again() {
    let long = "ä".repeat(condition::LONGEST_MESSAGE);
    let before = known(|_| {});
    let job = Job::unreadable(&before, long.clone());
    let status = job.status(&before.facts, NOW).expect("it is told");
    let told = status["conditions"][1].clone();
    let text = told["message"].as_str().expect("a message");
    assert!(text.len() <= condition::LONGEST_MESSAGE && long.starts_with(text.trim_end_matches('…')));
    let after = known(|object| object["status"]["conditions"][1] = told.clone());
    assert!(!Job::unreadable(&after, long).is_needed(NOW));
}

#[test]
fn what_is_settled_is_told_if_it_was_not() {
    let behind = known(|object| object["status"] = json!({"schedulerObservedGeneration": 2}));
    let status = Job::settled(&behind).status(&behind.facts, NOW).expect("both are out of date");
    assert_eq!(status["schedulerObservedGeneration"], 3);
    assert_eq!(status["conditions"][0]["reason"], "Success");
    let known = known(|_| {});
    assert!(!Job::settled(&known).is_needed(NOW));
}

#[test]
fn what_was_scaled_to_nothing_is_not_called_placed_because_it_needs_nothing() {
    let nowhere = known(|object| {
        object["spec"]["clusters"] = json!([]);
        object["status"] = json!({"schedulerObservedGeneration": 2, "conditions": [
            {"type": "Scheduled", "status": "False", "reason": "NoClusterFit", "message": "m"}]});
    });
    let status = Job::settled(&nowhere).status(&nowhere.facts, NOW);
    assert_eq!(status, Some(json!({"schedulerObservedGeneration": 3})));
}

#[test]
fn what_the_server_will_not_have_is_told_and_what_did_not_work_is_not() {
    let call = crate::cluster::connection::Call {
        verb: crate::cluster::connection::Verb::Patch,
        resource: RESOURCE_BINDINGS,
        subresource: "",
    };
    let failure =
        |cause, message: &str| Failure { call, path: String::new(), cause, message: message.into() };
    let quota =
        "admission webhook denied the request: FederatedResourceQuota(shop/q) exceeded for resource cpu.";
    for (cause, message, expected) in [
        (Cause::Forbidden, quota, Some("QuotaExceeded")),
        (Cause::Forbidden, "may not", Some("SchedulerError")),
        (Cause::Invalid, "no such field", Some("SchedulerError")),
        (Cause::Conflict, "changed", None),
        (Cause::Timeout, "no answer", None),
    ] {
        let told = refused(&failure(cause, message));
        assert_eq!(told.map(|told| told.reason), expected, "{message}");
    }
}

#[test]
fn who_did_not_answer_is_named_in_the_condition() {
    let known = known(|_| {});
    let said = ["a", "b", "c", "d", "e"].map(|name| crate::fleet::estimators::Said {
        cluster: name.into(),
        opinion: if name == "e" { Opinion::Count(1) } else { Opinion::Failed("gone".into()) },
        at: NOW,
    });
    let answer = Arc::new(gets(&[("a", 2)]));
    let decided = Decided {
        known,
        due: Due::Replicas,
        answer,
        said: said.to_vec().into(),
        began: Instant::now(),
        before: None,
    };
    let message = Job::of(&decided).condition.message;
    let expected = "Binding has been scheduled successfully. \
                    Without estimates of a: gone; b: gone; c: gone; and 1 more";
    assert_eq!(message, expected);
}
