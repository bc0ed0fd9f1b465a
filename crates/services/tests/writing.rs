//! What becomes of a write: every answer is a value, nothing is sent twice, nothing crowds the server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use http::Request;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use loadline_api::Error;
use loadline_api::json::Tree;
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_core::object::{Key, Meta};
use loadline_services::cluster::connection::{Call, Outcome, Verb};
use loadline_services::cluster::events::{FLUSH, Happened, PATIENCE, Regarding, Severity};
use loadline_services::cluster::resource::{BUDGETS, NODES, PODS, Resource};
use loadline_services::cluster::write::{DEADLINE, Patch};
use loadline_services::cluster::{Cause, Connection, Failure, Recorder, Watched, Writer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::{Layer, ServiceExt};

/// A pod, as it was written.
struct Pods;

impl Watched for Pods {
    const RESOURCE: Resource = PODS;
    type Facts = Value;

    fn read(object: &Tree<'_>) -> Result<Value, Error> {
        Ok(Value::from(object))
    }
}

fn writer(faults: &Faults, server: &ApiServer) -> Writer {
    Writer::new(Connection::new(Client::new(faults.layer(server.clone()), "default")), "test")
}

fn plain(server: &ApiServer) -> Writer {
    Writer::new(Connection::new(Client::new(server.clone(), "default")), "test")
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

async fn created(writer: &Writer, name: &str) -> Meta {
    writer.create(PODS, "default", &pod(name)).await.unwrap().read::<Pods>().unwrap().0
}

async fn node_of(writer: &Writer, pod: &Meta) -> Option<String> {
    let (_, read) = writer.get::<Pods>(&pod.key).await.unwrap();
    read.unwrap()["spec"]["nodeName"].as_str().map(str::to_owned)
}

#[tokio::test(start_paused = true)]
async fn every_failure_is_told_as_what_it_is_and_nothing_is_sent_twice() {
    let retry = Some(Duration::from_secs(7));
    let table = [
        (Action::Answer(Answer::Conflict), Cause::Conflict, false, false),
        (Action::Answer(Answer::Expired), Cause::Expired, false, false),
        (
            Action::Answer(Answer::TooManyRequests { retry_after: 7 }),
            Cause::TooManyRequests { retry_after: retry },
            false,
            false,
        ),
        (Action::Answer(Answer::Internal), Cause::Server { code: 500, retry_after: None }, true, false),
        (Action::DropRequest, Cause::Unreachable, true, false),
        (Action::DropAnswer, Cause::Unreachable, true, true),
        // Longer than anybody waits: the request arrives after its sender has gone.
        (Action::Delay(DEADLINE + Duration::from_secs(1)), Cause::Timeout, true, false),
    ];
    for (action, cause, unsure, arrived) in table {
        let server = ApiServer::default();
        let faults = Faults::seeded(1).with(Rule::new(action).path("/api/v1/namespaces/*/pods/*/binding"));
        let (rough, smooth) = (writer(&faults, &server), plain(&server));
        let pod = created(&smooth, "p").await;
        let failure = rough.bind(&pod, "n1").await.unwrap_err();
        assert_eq!(failure.cause, cause, "{action:?}: {failure}");
        assert_eq!(failure.cause.may_have_arrived(), unsure, "{action:?}");
        assert_eq!(faults.log().len(), 1, "{action:?}: sent once");
        // Whoever reads back knows.
        assert_eq!(node_of(&smooth, &pod).await.is_some(), arrived, "{action:?}");
    }
}

#[tokio::test]
async fn a_write_never_hits_another_object_of_the_same_name() {
    let server = ApiServer::default();
    let writer = plain(&server);
    let other = Meta { uid: "somebody-else".into(), ..created(&writer, "p").await };
    let patch = json!({"metadata": {"uid": "somebody-else", "labels": {"a": "b"}}});
    let failures: Vec<Failure> = vec![
        writer.bind(&other, "n1").await.unwrap_err(),
        writer.evict(&other, None).await.unwrap_err(),
        writer.delete(PODS, &other, Some(0)).await.unwrap_err(),
    ];
    for failure in failures {
        assert_eq!(failure.cause, Cause::Conflict, "{failure}");
    }
    let refused = writer.patch(PODS.whole(), &other.key, Patch::Merge, &patch).await.unwrap_err();
    assert!(matches!(refused.cause, Cause::Conflict | Cause::Invalid), "{refused}");
    let (_, there) = writer.get::<Pods>(&other.key).await.unwrap();
    assert!(there.unwrap()["metadata"]["labels"].is_null(), "nothing of it was written");
    let missing = Meta { key: Key::new("default", "nobody"), ..other.clone() };
    assert!(writer.bind(&missing, "n1").await.unwrap_err().is_not_found());
    let twice = writer.create(PODS, "default", &pod("p")).await.unwrap_err();
    assert_eq!(twice.cause, Cause::AlreadyExists);
    let invalid =
        writer.create(PODS, "default", &json!({"kind": "Pod", "apiVersion": "v1"})).await.unwrap_err();
    assert_eq!(invalid.cause, Cause::Invalid, "{invalid}");
}

#[tokio::test]
async fn all_kinds_of_writes_do_what_they_say() {
    let server = ApiServer::default();
    let writer = plain(&server);
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
    writer.create(NODES, "", &node).await.unwrap();
    let taints = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
    let key = Key::new("", "n1");
    writer.patch(NODES.whole(), &key, Patch::Merge, &taints).await.unwrap();
    let condition = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    for kind in ["Ready", "Odd"] {
        writer.patch(NODES.status(), &key, Patch::Strategic, &condition(kind)).await.unwrap();
    }
    let applied =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"a": "b"}}});
    writer.patch(NODES.whole(), &key, Patch::Apply, &applied).await.unwrap();
    let node: Value = Client::new(server.clone(), "default")
        .request(Request::get("/api/v1/nodes/n1").body(Vec::new()).unwrap())
        .await
        .unwrap();
    assert_eq!(node["spec"]["taints"][0]["key"], "a");
    assert_eq!(node["status"]["conditions"].as_array().unwrap().len(), 2, "lists with keys are merged");
    assert_eq!(node["metadata"]["labels"]["a"], "b");
    let managers = node["metadata"]["managedFields"].as_array().unwrap();
    let applied = |entry: &Value| entry["manager"] == "test" && entry["operation"] == "Apply";
    assert!(managers.iter().any(applied), "our name is on it: {managers:?}");

    let pod = created(&writer, "p").await;
    writer.bind(&pod, "n1").await.unwrap();
    assert_eq!(node_of(&writer, &pod).await.as_deref(), Some("n1"));
    // A budget does not keep a pod that has never run.
    let runs = json!({"status": {"phase": "Running"}});
    writer.patch(PODS.status(), &pod.key, Patch::Merge, &runs).await.unwrap();
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {}}});
    writer.create(BUDGETS, "default", &budget).await.unwrap();
    let refused = writer.evict(&pod, None).await.unwrap_err();
    assert!(matches!(refused.cause, Cause::Budget), "a budget refuses: {refused}");
    writer.delete(PODS, &pod, Some(0)).await.unwrap();
    assert!(writer.get::<Pods>(&pod.key).await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn every_request_is_counted_by_verb_resource_and_outcome() {
    let server = ApiServer::default();
    let writer = plain(&server);
    let pod = created(&writer, "p").await;
    writer.bind(&pod, "n1").await.unwrap();
    let again = writer.bind(&pod, "n2").await;
    assert!(again.is_err());
    let _ = writer.get::<Pods>(&Key::new("default", "nobody")).await;
    let call = |verb, subresource| Call { verb, resource: PODS, subresource };
    let expected = [
        ((call(Verb::Get, ""), Outcome::NotFound), 1),
        ((call(Verb::Create, ""), Outcome::Done), 1),
        ((call(Verb::Create, "binding"), Outcome::Done), 1),
        ((call(Verb::Create, "binding"), Outcome::Conflict), 1),
    ];
    assert_eq!(writer.connection().calls().record(), expected.into());
}

#[tokio::test]
async fn without_a_permit_nothing_is_sent() {
    let server = ApiServer::default();
    let pod = created(&plain(&server), "p").await;
    let all = Faults::seeded(1).with(Rule::new(Action::Delay(Duration::ZERO)));
    let forbidden = writer(&all, &server).permitted(Arc::new(|| None));
    assert_eq!(forbidden.bind(&pod, "n1").await.unwrap_err().cause, Cause::NotLeading);
    assert!(!Cause::NotLeading.may_have_arrived());
    assert!(all.log().is_empty(), "not even tried");
    assert!(forbidden.get::<Pods>(&pod.key).await.is_ok(), "reading is always allowed");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_waited_for_no_longer_than_writing_is_permitted() {
    let server = ApiServer::default();
    let pod = created(&plain(&server), "p").await;
    let slow = Faults::seeded(1).with(Rule::new(Action::Delay(Duration::from_secs(5))));
    let short = writer(&slow, &server).permitted(Arc::new(|| Some(Duration::from_secs(2))));
    let begun = tokio::time::Instant::now();
    assert_eq!(short.bind(&pod, "n1").await.unwrap_err().cause, Cause::Timeout);
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}

#[tokio::test]
async fn requests_wait_for_their_turn_where_too_many_are_under_way() {
    let server = ApiServer::default();
    let pods = futures::future::join_all((0..300).map(|i| {
        let writer = plain(&server);
        async move { created(&writer, &format!("p{i}")).await }
    }))
    .await;
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, peak) = (now.clone(), most.clone());
    let counted = tower::service_fn(move |request: Request<Body>| {
        let (server, count, peak) = (server.clone(), count.clone(), peak.clone());
        async move {
            peak.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let answer = server.oneshot(request).await;
            count.fetch_sub(1, Ordering::SeqCst);
            answer
        }
    });
    let writer = Writer::new(Connection::new(Client::new(counted, "default")), "test");
    let bound = futures::future::join_all(pods.iter().map(|pod| writer.bind(pod, "n1"))).await;
    assert!(bound.iter().all(Result::is_ok));
    assert_eq!(most.load(Ordering::SeqCst), 64, "many at once, never more");
}

fn happened(note: &str) -> Happened {
    Happened {
        severity: Severity::Warning,
        reason: "FailedScheduling",
        action: "Scheduling",
        note: note.into(),
    }
}

fn about(pod: usize) -> Regarding {
    Regarding { resource: PODS, key: Key::new("default", format!("p{pod}")), uid: "u".into() }
}

async fn events(writer: &Writer) -> Vec<Value> {
    let client = writer.connection().client();
    let request = Request::get("/apis/events.k8s.io/v1/events").body(Vec::new()).unwrap();
    let mut list: Value = client.request(request).await.unwrap();
    list["items"].take().as_array().cloned().unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_happens_again_is_counted_in_one_event_and_other_words_are_another() {
    let server = ApiServer::default();
    let writer = plain(&server);
    let pod = created(&writer, "p").await;
    let stop = CancellationToken::new();
    let (recorder, running) = Recorder::new(writer.clone(), "loadline-scheduler", "host-1", stop.clone());
    let running = tokio::spawn(running);
    let now = Timestamp::now();
    let tell = |note: &str| recorder.record(Regarding::new(PODS, &pod), happened(note), now);
    tell("full");
    while events(&writer).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..4 {
        tell("full");
    }
    tell("hot");
    tokio::time::sleep(FLUSH * 2).await;
    let all = events(&writer).await;
    assert_eq!(all.len(), 2, "{all:#?}");
    let full = all.iter().find(|event| event["note"] == "full").unwrap();
    assert_eq!(full["series"]["count"], 5);
    assert_eq!(
        (&full["type"], &full["reason"], &full["action"]),
        (&json!("Warning"), &json!("FailedScheduling"), &json!("Scheduling"))
    );
    assert_eq!(
        full["regarding"],
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default", "uid": &*pod.uid})
    );
    assert_eq!(
        (&full["reportingController"], &full["reportingInstance"]),
        (&json!("loadline-scheduler"), &json!("host-1"))
    );
    assert!(all.iter().any(|event| event["note"] == "hot" && event["series"].is_null()));
    stop.cancel();
    running.await.unwrap();
    assert_eq!(recorder.counts().dropped.get() + recorder.counts().failed.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn events_never_wait_and_what_does_not_fit_is_counted() {
    let server = ApiServer::default();
    let hangs = Faults::seeded(1).with(Rule::new(Action::Delay(Duration::from_hours(1))));
    let stop = CancellationToken::new();
    let (recorder, running) = Recorder::new(writer(&hangs, &server), "c", "i", stop.clone());
    let running = tokio::spawn(running);
    let begun = tokio::time::Instant::now();
    for i in 0..22_000 {
        recorder.record(about(i), happened("full"), Timestamp::now());
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let dropped = recorder.counts().dropped.get();
    assert!((5_000..6_000).contains(&dropped), "16 384 wait, the rest is dropped: {dropped}");
    stop.cancel();
    running.await.unwrap();
}

/// A server that answers neither bindings nor events before it is told to, and how many of each it holds.
#[derive(Clone)]
struct Holding {
    bindings: Arc<Semaphore>,
    events: Arc<Semaphore>,
    held: Arc<[AtomicUsize; 2]>,
}

impl Holding {
    fn new() -> Self {
        let closed = || Arc::new(Semaphore::new(0));
        Self { bindings: closed(), events: closed(), held: Arc::default() }
    }

    fn writer(&self) -> Writer {
        let this = self.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            let Self { bindings, events, held } = this.clone();
            async move {
                let kind = usize::from(request.uri().path().ends_with("/events"));
                held[kind].fetch_add(1, Ordering::SeqCst);
                [bindings, events][kind].acquire().await.unwrap().forget();
                held[kind].fetch_sub(1, Ordering::SeqCst);
                Ok::<_, std::convert::Infallible>(http::Response::new(Body::from(b"{}".to_vec())))
            }
        });
        Writer::new(Connection::new(Client::new(server, "default")), "test")
    }

    /// How many bindings and events are under way, once nothing moves any more: time passes only then.
    async fn settled(&self) -> (usize, usize) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let [bindings, events] = &*self.held;
        (bindings.load(Ordering::SeqCst), events.load(Ordering::SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn events_wait_while_something_else_is_written_unless_for_too_long_or_too_many() {
    let server = Holding::new();
    let (writer, stop) = (server.writer(), CancellationToken::new());
    let (recorder, running) = Recorder::new(writer.clone(), "c", "i", stop.clone());
    let running = tokio::spawn(running);
    let mut told = 0;
    let mut tell = |count: usize| {
        for _ in 0..count {
            recorder.record(about(told), happened("full"), Timestamp::now());
            told += 1;
        }
    };
    let bind = |name: &'static str| {
        let writer = writer.clone();
        let pod = Meta { key: Key::new("default", name), uid: name.into(), revision: None };
        tokio::spawn(async move { writer.bind(&pod, "n").await })
    };
    let first = [bind("a"), bind("b")];
    assert_eq!(server.settled().await, (2, 0));
    tell(100);
    assert_eq!(server.settled().await, (2, 1), "one was waited for when it was calm");
    server.events.add_permits(1);
    assert_eq!(server.settled().await, (2, 0), "for the others, bindings go first");
    tokio::time::sleep(PATIENCE).await;
    assert_eq!(server.settled().await, (2, 1), "not for ever: a trickle");
    server.events.add_permits(10);
    assert_eq!(server.settled().await, (2, 1), "the next, but not more than one");
    server.bindings.add_permits(1);
    assert_eq!(server.settled().await, (1, 1), "one binding is still under way");
    server.bindings.add_permits(1);
    assert_eq!(server.settled().await, (0, 8), "now it is calm");
    for bound in first {
        bound.await.unwrap().unwrap();
    }

    let _second = bind("c");
    server.events.add_permits(8);
    assert_eq!(server.settled().await, (1, 0), "another binding comes");
    // 81 wait (100 − 1 − 10 − 8), and 8 111 more make 8 192: half of the queue.
    tell(8_111);
    assert_eq!(server.settled().await, (1, 0), "half is not too many");
    tell(8);
    assert_eq!(server.settled().await, (1, 8), "more than half, and they go although it is not calm");
    assert_eq!(recorder.counts().dropped.get(), 0);

    server.events.add_permits(10_000);
    assert_eq!(server.settled().await, (1, 0), "until half are left");
    assert_eq!(server.events.available_permits(), 10_000 - 8);
    tokio::time::sleep(PATIENCE).await;
    assert_eq!(server.settled().await, (1, 0), "all of them in the end");
    assert_eq!(server.events.available_permits(), 10_000 - 8_200);
    stop.cancel();
    running.await.unwrap();
}
