//! Leader election against the in-memory API server, with faults on purpose, in tokio's stopped time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_apiserver::{ApiServer, Config};
use loadline_services::cluster::lease::{Clock, Election, Leadership, Options, Role, RoleChange};
use loadline_services::cluster::resource::NODES;
use loadline_services::cluster::{Cause, Connection, Writer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/loadline";

const LEASE: Duration = Duration::from_secs(15);
const RENEW: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

/// The longest a candidate waits between two looks.
const LOOK: Duration = Duration::from_millis(4400);

/// Time is stopped and nothing here takes any: whatever takes longer will never come.
const PATIENCE: Duration = Duration::from_mins(10);

struct Candidate {
    leadership: Leadership,
    stop: CancellationToken,
    task: JoinHandle<()>,
    faults: Faults,
    changes: mpsc::UnboundedReceiver<RoleChange>,
}

impl Candidate {
    fn start(server: &ApiServer, identity: &str) -> Self {
        Self::start_with(server, identity, Clock::system())
    }

    fn start_with(server: &ApiServer, identity: &str, clock: Clock) -> Self {
        let faults = Faults::seeded(1);
        let connection = Connection::new(Client::new(faults.layer(server.clone()), "default"));
        let options = Options::new("default", "loadline");
        let checked = options.check(&options.lock(identity)).unwrap();
        let (election, leadership) = Election::with_clock(&connection, checked, identity.len() as u64, clock);
        let (stop, (sender, changes)) = (CancellationToken::new(), mpsc::unbounded_channel());
        let tell = move |change| drop(sender.send(change));
        let task = tokio::spawn(election.run(stop.clone(), tell));
        Self { leadership, stop, task, faults, changes }
    }

    /// No request of its gets through.
    fn cut_off(&self) {
        self.faults.add(Rule::new(Action::DropRequest));
    }

    async fn leads(&self) -> Instant {
        timeout(PATIENCE, self.leadership.acquired()).await.expect("it never led");
        Instant::now()
    }

    async fn leads_no_more(&self) -> Instant {
        timeout(PATIENCE, self.leadership.lost()).await.expect("it never stopped leading");
        Instant::now()
    }

    async fn released(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }

    fn told(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.changes.try_recv().ok()).map(|change| change.to_string()).collect()
    }
}

/// Looks all the time whether two may write.
struct Judge(Arc<AtomicBool>);

impl Judge {
    fn watch(candidates: &[&Candidate]) -> Self {
        let all: Vec<Leadership> = candidates.iter().map(|candidate| candidate.leadership.clone()).collect();
        let two = Arc::new(AtomicBool::new(false));
        let found = two.clone();
        tokio::spawn(async move {
            loop {
                let writers = all.iter().filter(|leadership| leadership.may_write()).count();
                found.fetch_or(writers > 1, Ordering::Relaxed);
                sleep(Duration::from_millis(100)).await;
            }
        });
        Self(two)
    }

    fn content(&self) {
        assert!(!self.0.load(Ordering::Relaxed), "two could write");
    }
}

fn server() -> ApiServer {
    ApiServer::new(Config::default())
}

async fn request(server: &ApiServer, method: &str, body: &Value) -> Value {
    let client = Client::new(server.clone(), "default");
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(PATH).header("content-type", kind);
    let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
    client.request(request.body(bytes).unwrap()).await.unwrap()
}

async fn lease(server: &ApiServer) -> Value {
    request(server, "GET", &Value::Null).await
}

async fn spec(server: &ApiServer) -> Value {
    lease(server).await["spec"].take()
}

async fn patch(server: &ApiServer, change: Value) {
    request(server, "PATCH", &change).await;
}

/// A time as the wire has it: with six digits for the fraction.
#[track_caller]
fn time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap();
    let (_, fraction) = text.split_once('.').unwrap();
    assert_eq!(fraction.len(), 7, "{text}");
    assert!(fraction.ends_with('Z'), "{text}");
    text.parse().unwrap()
}

#[track_caller]
fn about(left: Duration, right: Duration) {
    assert!(left.abs_diff(right) <= Duration::from_millis(5), "{left:?} is not {right:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_writes_the_record_that_client_go_writes() {
    let server = server();
    let mut one = Candidate::start(&server, "one_1");
    assert!(!one.leadership.may_write());
    assert_eq!(one.leadership.until(), None);
    let began = Instant::now();
    one.leads().await;
    assert!(one.leadership.may_write());
    about(one.leadership.until().unwrap() - began, RENEW);
    let spec = spec(&server).await;
    let keys: Vec<&String> = spec.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"]
    );
    assert_eq!(spec["holderIdentity"], "one_1");
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    assert_eq!(time(&spec["acquireTime"]), time(&spec["renewTime"]));
    let change = one.changes.recv().await.unwrap();
    assert_eq!((change.role, change.happened().note.as_str()), (Role::Leader, "one_1 became leader"));
    assert_eq!(change.lease.key.to_string(), "default/loadline");
    assert_eq!(Some(&*change.lease.uid), lease(&server).await["metadata"]["uid"].as_str());
    let figures = one.leadership.figures().unwrap();
    assert_eq!((figures.name.as_str(), figures.master_status, figures.slowpath_total), ("loadline", 1, 0));
    let metrics = loadline_services::ctx::Metrics::default();
    metrics.register(|registry| registry.register_collector(&one.leadership, &Leadership::LABELS));
    let text = metrics.text().unwrap();
    for line in [
        "leader_election_master_status{name=\"loadline\"} 1",
        "leader_election_slowpath_total{name=\"loadline\"} 0",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_stays_and_changes_nothing_but_the_time() {
    let server = server();
    let one = Candidate::start(&server, "one");
    one.leads().await;
    let labels = json!({"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "two"}});
    patch(&server, labels).await;
    let before = lease(&server).await;
    let lost = timeout(Duration::from_mins(5), one.leadership.lost()).await;
    assert!(lost.is_err(), "it led all the time");
    let mut after = lease(&server).await;
    assert!(time(&after["spec"]["renewTime"]) > time(&before["spec"]["renewTime"]));
    assert_eq!(one.leadership.figures().unwrap().slowpath_total, 1, "once, after somebody else's change");
    // All the rest is as it was.
    after["spec"]["renewTime"] = before["spec"]["renewTime"].clone();
    for field in ["resourceVersion", "managedFields"] {
        after["metadata"][field] = before["metadata"][field].clone();
    }
    assert_eq!(after, before);
}

#[tokio::test(start_paused = true)]
async fn a_release_ends_the_right_before_it_is_sent_and_the_next_takes_over_at_its_next_look() {
    let server = server();
    let mut one = Candidate::start(&server, "one");
    one.leads().await;
    let two = Candidate::start(&server, "two");
    let judge = Judge::watch(&[&one, &two]);
    sleep(Duration::from_mins(1)).await;
    assert!(!two.leadership.may_write());
    // The release takes a second to get there.
    one.faults.add(Rule::new(Action::Delay(Duration::from_secs(1))).verb("update"));
    one.stop.cancel();
    one.leads_no_more().await;
    assert!(!one.leadership.may_write());
    assert_eq!(spec(&server).await["holderIdentity"], "one", "not sent yet");
    let stopped = Instant::now();
    (&mut one.task).await.unwrap();
    let released = spec(&server).await;
    assert_eq!((&released["holderIdentity"], &released["leaseDurationSeconds"]), (&json!(""), &json!(1)));
    assert_eq!(released["leaseTransitions"], 0);
    assert_eq!(time(&released["acquireTime"]), time(&released["renewTime"]));
    let took = two.leads().await - stopped;
    assert!(took <= Duration::from_secs(1) + LOOK, "{took:?}");
    let taken = spec(&server).await;
    assert_eq!((&taken["holderIdentity"], &taken["leaseTransitions"]), (&json!("two"), &json!(1)));
    assert_eq!(one.told(), ["one became leader", "one stopped leading"]);
    judge.content();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_begins() {
    let server = server();
    let mut one = Candidate::start(&server, "one");
    one.leads().await;
    let two = Candidate::start(&server, "two");
    let judge = Judge::watch(&[&one, &two]);
    sleep(Duration::from_secs(61)).await;
    // Its last renewal was sent at 60.
    let last = Instant::now() - Duration::from_secs(1);
    one.cut_off();
    about(one.leads_no_more().await - last, RENEW);
    assert!(!one.leadership.may_write());
    let took = two.leads().await - last;
    assert!(took >= LEASE && took <= LEASE + LOOK, "{took:?}");
    assert_eq!(one.told(), ["one became leader", "one stopped leading"]);
    // Back again, it finds that somebody else leads, and waits.
    one.faults.clear();
    sleep(Duration::from_mins(5)).await;
    assert!(two.leadership.may_write() && !one.leadership.may_write());
    assert_eq!(spec(&server).await["leaseTransitions"], 1);
    judge.content();
}

#[tokio::test(start_paused = true)]
async fn a_writer_sends_nothing_without_the_right() {
    let server = server();
    let one = Candidate::start(&server, "one");
    let connection = Connection::new(Client::new(server.clone(), "default"));
    let writer = Writer::new(connection, "test").permitted(one.leadership.permit());
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let refused = writer.create(NODES, "", &node("early")).await.unwrap_err();
    assert_eq!(refused.cause, Cause::NotLeading);
    one.leads().await;
    writer.create(NODES, "", &node("leading")).await.unwrap();
    one.cut_off();
    sleep(RENEW).await;
    let refused = writer.create(NODES, "", &node("late")).await.unwrap_err();
    assert_eq!(refused.cause, Cause::NotLeading);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_is_replaced_after_the_lease_duration() {
    let server = server();
    let one = Candidate::start(&server, "one");
    one.leads().await;
    let two = Candidate::start(&server, "two");
    sleep(Duration::from_mins(1)).await;
    one.task.abort();
    one.leads_no_more().await;
    let died = Instant::now();
    let took = two.leads().await - died;
    assert!(took >= LEASE.checked_sub(RETRY).unwrap() && took <= LEASE + LOOK, "{took:?}");
    assert_eq!(spec(&server).await["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn the_right_counts_from_when_a_renewal_was_sent() {
    let server = server();
    let one = Candidate::start(&server, "one");
    one.faults.add(Rule::new(Action::Delay(Duration::from_secs(3))).path("/apis/**"));
    let began = Instant::now();
    let led = one.leads().await;
    about(led - began, Duration::from_secs(6));
    about(one.leadership.until().unwrap() - began, Duration::from_secs(3) + RENEW);
    let lost = timeout(Duration::from_mins(5), one.leadership.lost()).await;
    assert!(lost.is_err(), "slow, but in time");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_gives_no_right_until_the_record_is_read_back() {
    let server = server();
    let one = Candidate::start(&server, "one");
    one.leads().await;
    let began = Instant::now();
    // From the next renewal on, answers are lost, and reads do not get through.
    one.faults.add(Rule::new(Action::DropAnswer).verb("update"));
    one.faults.add(Rule::new(Action::DropRequest).verb("get"));
    let first = spec(&server).await["renewTime"].clone();
    sleep(Duration::from_secs(7)).await;
    assert_ne!(spec(&server).await["renewTime"], first, "it has arrived");
    about(one.leadership.until().unwrap() - began, RENEW);
    // Once the record can be read it counts, from when it was sent: 2 s after the first.
    one.faults.clear();
    one.faults.add(Rule::new(Action::DropRequest).verb("update"));
    one.leads_no_more().await;
    about(Instant::now() - began, RENEW + RETRY);
}

#[tokio::test(start_paused = true)]
async fn single_faults_do_not_end_leadership() {
    for action in [
        Action::DropAnswer,
        Action::DropRequest,
        Action::Answer(Answer::Conflict),
        Action::Answer(Answer::Internal),
        Action::Answer(Answer::TooManyRequests { retry_after: 1 }),
        Action::Delay(Duration::from_hours(1)),
    ] {
        let server = server();
        let mut one = Candidate::start(&server, "one");
        one.leads().await;
        one.faults.add(Rule::new(action).verb("update").every(4));
        let lost = timeout(Duration::from_mins(2), one.leadership.lost()).await;
        assert!(lost.is_err(), "{action:?}: {:?}", one.told());
        assert_eq!(spec(&server).await["leaseTransitions"], 0, "{action:?}");
        assert!(one.leadership.figures().unwrap().slowpath_total > 5, "{action:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_or_hangs_ends_leadership_at_the_deadline_and_gives_it_back() {
    for action in [Action::Answer(Answer::Internal), Action::Delay(Duration::from_hours(1))] {
        let server = server();
        let mut one = Candidate::start(&server, "one");
        one.leads().await;
        let began = Instant::now();
        one.faults.add(Rule::new(action));
        about(one.leads_no_more().await - began, RENEW);
        let requests = one.faults.log().len();
        assert!((2..=10).contains(&requests), "{action:?}: {requests} requests in {RENEW:?}");
        sleep(Duration::from_mins(1)).await;
        one.faults.clear();
        let healed = Instant::now();
        let took = one.leads().await - healed;
        assert!(took <= LOOK + RENEW / 2, "{action:?}: {took:?}");
        assert_eq!(spec(&server).await["leaseTransitions"], 0, "nobody else led");
        assert_eq!(one.told(), ["one became leader", "one stopped leading", "one became leader"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_of_somebody_else_ends_leadership_at_once() {
    for name in ["other", "one"] {
        let server = server();
        let one = Candidate::start(&server, "one");
        one.leads().await;
        sleep(RETRY / 2).await;
        let theirs = json!({"spec": {"holderIdentity": name, "renewTime": "2024-01-01T00:00:00.000000Z"}});
        patch(&server, theirs).await;
        let changed = Instant::now();
        let took = one.leads_no_more().await - changed;
        assert!(took <= RETRY, "{name}: with the next renewal, after {took:?}");
        let took = one.leads().await - changed;
        assert!(took >= LEASE && took <= LEASE + LOOK, "{name}: nobody renewed it for {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_machine_finds_its_right_gone_before_anything_is_sent() {
    static AHEAD: AtomicI64 = AtomicI64::new(0);
    fn wall() -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(AHEAD.load(Ordering::Relaxed))
    }
    let server = server();
    let mut one =
        Candidate::start_with(&server, "one", Clock::with_wall(loadline_services::ctx::Clock::new(wall)));
    one.leads().await;
    sleep(RETRY / 2).await;
    // No time passes on the monotonic clock, and an hour on the wall.
    AHEAD.store(3600, Ordering::Relaxed);
    assert!(!one.leadership.may_write(), "though the election has not run since");
    assert_eq!(one.leadership.until(), None);
    // A loop that waits to lead is not woken at once, again and again, until the election runs.
    assert_eq!(one.leadership.acquired().now_or_never(), None);
    assert_eq!(one.leadership.lost().now_or_never(), Some(()));
    // Not even with the clock set back.
    AHEAD.store(0, Ordering::Relaxed);
    assert!(!one.leadership.may_write());
    AHEAD.store(3600, Ordering::Relaxed);
    let woke = Instant::now();
    one.leads_no_more().await;
    one.leads().await;
    let took = Instant::now() - woke;
    assert!(took <= RETRY, "nobody else had come; it renews and goes on: {took:?}");
    assert!(one.leadership.may_write());
    assert_eq!(one.told(), ["one became leader", "one stopped leading", "one became leader"]);
}

#[tokio::test(start_paused = true)]
async fn of_many_exactly_one_leads_through_everything() {
    let server = server();
    let mut candidates: Vec<Candidate> =
        (0..4).map(|index| Candidate::start(&server, &format!("{}{index}", "x".repeat(index)))).collect();
    let judge = Judge::watch(&candidates.iter().collect::<Vec<_>>());
    for (index, candidate) in candidates.iter().enumerate() {
        let chance = |action, odds| Rule::new(action).path("/apis/**").chance(odds);
        candidate.faults.add(chance(Action::Delay(Duration::from_millis(1500)), 0.2));
        candidate.faults.add(chance(Action::DropAnswer, 0.1 * f64::from(u8::try_from(index).unwrap())));
        candidate.faults.add(chance(Action::Answer(Answer::Conflict), 0.1));
    }
    for round in 0..12 {
        sleep(Duration::from_secs(40)).await;
        // Whoever leads is cut off for a while, or goes.
        let Some(place) = candidates.iter().position(|candidate| candidate.leadership.may_write()) else {
            continue;
        };
        if round % 2 == 0 {
            let faults = candidates[place].faults.clone();
            faults.clear();
            faults.add(Rule::new(Action::DropRequest).first(20));
        } else {
            candidates.swap_remove(place).released().await;
            let next = Candidate::start(&server, &format!("round{round}"));
            candidates.push(next);
        }
    }
    for candidate in &candidates {
        candidate.faults.clear();
    }
    sleep(LEASE + 3 * LOOK).await;
    assert_eq!(candidates.iter().filter(|candidate| candidate.leadership.may_write()).count(), 1);
    let changes = spec(&server).await["leaseTransitions"].as_i64().unwrap();
    assert!(changes >= 6, "{changes}");
    judge.content();
}

#[tokio::test]
async fn without_election_everybody_may_write() {
    let leadership = Leadership::always();
    assert!(leadership.may_write());
    assert!(leadership.until().unwrap() > Instant::now() + Duration::from_hours(24 * 365));
    leadership.acquired().await;
    assert_eq!(leadership.figures(), None);
    let lost = timeout(Duration::from_millis(1), leadership.lost()).await;
    assert!(lost.is_err());
}
