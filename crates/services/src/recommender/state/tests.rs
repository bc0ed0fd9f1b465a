use super::*;
use crate::cluster::Watched;
use crate::cluster::testing::meta;
use crate::recommender::form;
use crate::recommender::watched::{Jobs, Pods, Recommendations, ReplicaSets};
use crate::sources::metrics_api::Measured;
use jiff::SignedDuration;
use loadline_api::json::Tree;
use loadline_core::ledger::Sample;
use loadline_core::load::Load;
use serde_json::{Value, json};

fn now(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).expect("small")
}

fn object(kind: &str, name: &str, revision: u64, owner: Option<(&str, &str)>) -> Value {
    let owners = owner.map(|(kind, name)| {
        let version = match kind {
            "Node" => "v1",
            "Job" | "CronJob" => "batch/v1",
            _ => "apps/v1",
        };
        json!([{"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": true}])
    });
    json!({"kind": kind, "metadata": {"name": name, "namespace": "shop", "uid": name,
        "resourceVersion": revision.to_string(), "ownerReferences": owners}})
}

/// Everything has been read, and nothing is there.
fn empty() -> State {
    let mut state = State::new(&Options::default());
    for message in [
        Message::Pod(Event::ListStarted),
        Message::Pod(Event::Listed(Some(1))),
        Message::ReplicaSet(Event::ListStarted),
        Message::ReplicaSet(Event::Listed(Some(1))),
        Message::Job(Event::ListStarted),
        Message::Job(Event::Listed(Some(1))),
        Message::Recommendation(Event::ListStarted),
        Message::Recommendation(Event::Listed(Some(1))),
    ] {
        state.take(message, now(0));
    }
    assert!(state.is_ready());
    state
}

fn pod(value: &Value) -> Message {
    Message::Pod(Event::Applied(meta(value), Pods::read(&Tree::from(value))))
}

fn set(value: &Value) -> Message {
    Message::ReplicaSet(Event::Applied(meta(value), ReplicaSets::read(&Tree::from(value))))
}

fn measured(pod: &str, milli: i64, second: i64) -> Message {
    let usage = Load::new(milli * 1_000_000, 300 << 20);
    let sample = Sample { at: now(second), window: SignedDuration::from_secs(15), usage };
    let containers = vec![(Key::new("shop", pod), vec![("app".to_owned(), sample)])];
    Message::Measured(Ok(Measured { containers, ..Measured::default() }))
}

#[test]
fn pods_are_found_a_workload_whatever_comes_first() {
    let pod_first = [pod(&object("Pod", "p", 2, Some(("ReplicaSet", "web-1"))))];
    let set_then = [set(&object("ReplicaSet", "web-1", 3, Some(("Deployment", "web"))))];
    let mut state = empty();
    for message in pod_first.into_iter().chain(set_then) {
        state.take(message, now(1));
    }
    state.take(measured("p", 200, 1), now(1));
    let due = state.due(now(1));
    let [Due::Create(learned, _)] = &due[..] else { panic!("one to be made: {due:?}") };
    assert_eq!((&*learned.workload.kind, &*learned.workload.key.name), ("Deployment", "web"));
}

#[test]
fn what_another_leader_wrote_is_not_written_again_and_what_somebody_changed_is() {
    let mut state = empty();
    state.take(set(&object("ReplicaSet", "web-1", 2, Some(("Deployment", "web")))), now(1));
    state.take(pod(&object("Pod", "p", 3, Some(("ReplicaSet", "web-1")))), now(1));
    state.take(measured("p", 200, 1), now(1));
    let due = state.due(now(1));
    let [Due::Create(learned, checkpoint)] = &due[..] else { panic!("one to be made: {due:?}") };
    // The other one knew the same, and was quicker.
    let mut theirs = recommendation::object(&form(learned, checkpoint, now(1)));
    theirs["metadata"]["uid"] = json!("r");
    let written = |value: &Value, revision: u64| {
        let mut value = value.clone();
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        Message::Recommendation(Event::Applied(meta(&value), Recommendations::read(&Tree::from(&value))))
    };
    state.take(written(&theirs, 4), now(2));
    assert!(state.due(now(2)).is_empty(), "it is there");

    let text = theirs["status"]["recommendedValue"].as_str().unwrap_or_default().replace("268m", "5m");
    assert_ne!(theirs["status"]["recommendedValue"], json!(text));
    theirs["status"]["recommendedValue"] = json!(text);
    state.take(written(&theirs, 5), now(3));
    let due = state.due(now(3));
    assert!(matches!(&due[..], [Due::Patch(meta, ..)] if &*meta.uid == "r"), "{due:?}");

    // Nobody has seen it for two weeks.
    let due = state.due(now(14 * 86_400 + 2));
    assert!(matches!(&due[..], [Due::Delete(meta)] if &*meta.uid == "r"), "{due:?}");
}

#[test]
fn pods_of_nobody_of_a_node_and_of_a_job_that_runs_once_teach_nothing_those_of_a_cron_job_do() {
    let mut state = empty();
    let job = |name: &str, owner: Option<(&str, &str)>| {
        let value = object("Job", name, 2, owner);
        Message::Job(Event::Applied(meta(&value), Jobs::read(&Tree::from(&value))))
    };
    state.take(job("once", None), now(1));
    state.take(job("nightly-1", Some(("CronJob", "nightly"))), now(1));
    let pods = [
        ("alone", None),
        ("mirror", Some(("Node", "n1"))),
        ("batch", Some(("Job", "once"))),
        ("cron", Some(("Job", "nightly-1"))),
    ];
    for (name, owner) in pods {
        state.take(pod(&object("Pod", name, 3, owner)), now(1));
        state.take(measured(name, 200, 1), now(1));
    }
    let due = state.due(now(1));
    let [Due::Create(learned, _)] = &due[..] else { panic!("one: {due:?}") };
    assert_eq!((&*learned.workload.kind, &*learned.workload.key.name), ("CronJob", "nightly"));
}
