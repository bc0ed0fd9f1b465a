//! From an API server to answers: what is there counts, whatever goes wrong on the way.
//!
//! Against the in-memory API server, with faults on purpose. Waits are for signals of the member, never for a time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_apiserver::metrics::Sample;
use loadline_apiserver::{ApiServer, Config};
use loadline_core::estimate::{Ask, Given};
use loadline_core::load::Both;
use loadline_core::load::policy::{Policy, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::Settings;
use loadline_core::object::Key;
use loadline_services::cluster::Access;
use loadline_services::estimator::follow::{self, Options};
use loadline_services::estimator::{Known, Member, Status, load};
use loadline_services::reload::Source;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::{Layer, ServiceExt};

/// Generous: a busy machine must not fail a test. Longer than a silent watch is put up with, too.
const PATIENCE: Duration = Duration::from_mins(4);

/// A followed cluster.
struct Stage {
    server: ApiServer,
    faults: Faults,
    /// Talks to the server past all faults.
    client: Client,
    member: Arc<Member>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Stage {
    /// A cluster in which something is already, followed through faults.
    async fn start(objects: &[Value], faults: Faults, options: Options) -> Self {
        let server = server();
        let client = Client::new(server.clone(), "default");
        for object in objects {
            create(&client, object).await;
        }
        let rough = Client::new(faults.layer(server.clone()), "default");
        let (member, stop, task) = start(Access::Client(rough), options);
        Self { server, faults, client, member, stop, task }
    }

    /// The state, once it is as wanted.
    async fn until(&self, what: &str, wanted: impl Fn(&Known, &Status) -> bool) -> Arc<Known> {
        until(&self.member, what, wanted).await
    }

    /// Waits until so many pods of a core fit.
    async fn fits(&self, expected: i32) {
        self.until(&format!("{expected} to fit"), |known, _| room(known) == expected).await;
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn server() -> ApiServer {
    ApiServer::new(Config { bookmark_every: Duration::from_millis(50), ..Config::default() })
}

fn start(access: Access, options: Options) -> (Arc<Member>, CancellationToken, JoinHandle<()>) {
    let (member, stop) = (Arc::new(Member::default()), CancellationToken::new());
    let task = tokio::spawn(follow::run("m1".to_owned(), member.clone(), access, options, stop.clone()));
    (member, stop, task)
}

async fn until(member: &Member, what: &str, wanted: impl Fn(&Known, &Status) -> bool) -> Arc<Known> {
    let mut changes = member.changes();
    let waiting = async {
        loop {
            if let Some(known) = member.known().filter(|known| wanted(known, &member.status())) {
                return known;
            }
            changes.changed().await.unwrap();
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, waiting).await;
    in_time.unwrap_or_else(|_| {
        let rooms = member.known().map(|known| room(&known));
        panic!("waited too long for {what}: {rooms:?} fit, {:?}", member.status())
    })
}

/// Waits for a status before there is any state.
async fn told(member: &Member, what: &str, wanted: impl Fn(&Status) -> bool) -> Arc<Status> {
    let mut changes = member.changes();
    let waiting = async {
        while !wanted(&member.status()) {
            changes.changed().await.unwrap();
        }
        member.status()
    };
    let in_time = tokio::time::timeout(PATIENCE, waiting).await;
    in_time.unwrap_or_else(|_| panic!("waited too long for {what}: {:?}", member.status()))
}

/// How many more pods of one core fit.
fn room(known: &Known) -> i32 {
    replicas(known, "default", false).0
}

/// The same in a namespace; and under the load line.
fn replicas(known: &Known, namespace: &str, load: bool) -> (i32, Option<i32>) {
    let requests = [("cpu".to_owned(), "1".parse().unwrap())].into();
    let ask = Ask { requests, namespace: namespace.to_owned(), ..Ask::default() };
    let answer = known.view.replicas(&ask, &Given { load, ..Given::default() }).unwrap();
    (answer.most, answer.by_load)
}

/// What the brute force says of everything the server has.
async fn counted(client: &Client) -> i32 {
    let cores = |value: &Value| value.as_str().unwrap().parse::<i32>().unwrap();
    let (nodes, pods) = (items(client, "/api/v1/nodes").await, items(client, "/api/v1/pods").await);
    let free = |node: &Value| {
        let name = &node["metadata"]["name"];
        let on = pods.iter().filter(|pod| pod["spec"]["nodeName"] == *name);
        let alive = on.filter(|pod| pod["status"]["phase"] != "Succeeded");
        let used: i32 =
            alive.map(|pod| cores(&pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])).sum();
        let closed = node["spec"]["unschedulable"] == true;
        if closed { 0 } else { (cores(&node["status"]["allocatable"]["cpu"]) - used).max(0) }
    };
    nodes.iter().map(free).sum()
}

async fn request(client: &Client, method: &str, path: &str, body: &Value) -> Value {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
    client.request(request.body(bytes).unwrap()).await.unwrap_or_else(|e| panic!("{method} {path}: {e}"))
}

async fn items(client: &Client, path: &str) -> Vec<Value> {
    request(client, "GET", path, &Value::Null).await["items"].as_array().cloned().unwrap_or_default()
}

fn path(object: &Value) -> String {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    match object["kind"].as_str().unwrap() {
        "Node" => "/api/v1/nodes".into(),
        "Pod" => format!("/api/v1/namespaces/{namespace}/pods"),
        "ResourceQuota" => format!("/api/v1/namespaces/{namespace}/resourcequotas"),
        "Deployment" => format!("/apis/apps/v1/namespaces/{namespace}/deployments"),
        "ReplicaSet" => format!("/apis/apps/v1/namespaces/{namespace}/replicasets"),
        other => panic!("{other}"),
    }
}

/// Creates an object, its status included.
async fn create(client: &Client, object: &Value) -> Value {
    let created = request(client, "POST", &path(object), object).await;
    if object["status"].is_null() {
        return created;
    }
    let name = object["metadata"]["name"].as_str().unwrap();
    let status = json!({"status": object["status"]});
    request(client, "PATCH", &format!("{}/{name}/status", path(object)), &status).await
}

async fn delete(client: &Client, object: &Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let now = json!({"gracePeriodSeconds": 0});
    request(client, "DELETE", &format!("{}/{name}", path(object)), &now).await;
}

async fn patch(client: &Client, object: &Value, patch: Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    request(client, "PATCH", &format!("{}/{name}", path(object)), &patch).await;
}

fn node(name: &str, cores: u32) -> Value {
    let room = json!({"cpu": cores.to_string(), "memory": "64Gi", "pods": "110"});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"allocatable": room, "capacity": room}})
}

fn pod(name: &str, on: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"nodeName": on, "containers":
            [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}})
}

/// Two nodes of four cores and a pod: seven fit.
fn small() -> Vec<Value> {
    vec![node("a", 4), node("b", 4), pod("p", "a")]
}

#[tokio::test]
async fn answers_follow_everything_that_happens() {
    let stage = Stage::start(&small(), Faults::seeded(1), Options::default()).await;
    stage.fits(7).await;
    create(&stage.client, &pod("q", "b")).await;
    stage.fits(6).await;
    create(&stage.client, &node("c", 8)).await;
    stage.fits(14).await;
    patch(&stage.client, &node("a", 4), json!({"spec": {"unschedulable": true}})).await;
    stage.fits(11).await;
    delete(&stage.client, &pod("q", "b")).await;
    stage.fits(12).await;
    patch(&stage.client, &node("a", 4), json!({"spec": {"unschedulable": null}})).await;
    stage.fits(15).await;
    // One that has ended leaves the selection: to us it is gone.
    let ended = json!({"status": {"phase": "Succeeded"}});
    request(&stage.client, "PATCH", "/api/v1/namespaces/default/pods/p/status", &ended).await;
    stage.fits(16).await;
    delete(&stage.client, &node("b", 4)).await;
    stage.fits(12).await;
    assert_eq!(counted(&stage.client).await, 12);
    stage.stop().await;
}

#[tokio::test]
async fn more_than_a_page_is_read_page_by_page() {
    let nodes: Vec<Value> = (0..1201).map(|i| node(&format!("n{i:04}"), 2)).collect();
    let every = Rule::new(Action::Delay(Duration::ZERO)).verb("list").path("/api/v1/nodes");
    let stage = Stage::start(&nodes, Faults::seeded(1).with(every), Options::default()).await;
    stage.fits(2402).await;
    assert_eq!(stage.faults.log().len(), 3, "500 + 500 + 201");
    stage.stop().await;
}

#[tokio::test]
async fn exactly_the_documented_permissions_are_used() {
    let load = Some(load::Options::default());
    for (options, more) in [
        (Options::default(), [].as_slice()),
        (
            Options { quotas: true, load, ..Options::default() },
            &[
                ("list", "/api/v1/resourcequotas"),
                ("watch", "/api/v1/resourcequotas"),
                ("list", "/apis/metrics.k8s.io/v1beta1/nodes"),
            ],
        ),
    ] {
        let all = Faults::seeded(1).with(Rule::new(Action::Delay(Duration::ZERO)));
        let stage = Stage::start(&small(), all, options).await;
        let calls = || -> BTreeSet<(String, String)> {
            stage.faults.log().into_iter().map(|call| (call.verb.to_owned(), call.path)).collect()
        };
        stage.fits(7).await;
        let mut expected: BTreeSet<(String, String)> = BTreeSet::new();
        for path in
            ["/api/v1/nodes", "/api/v1/pods", "/apis/apps/v1/replicasets", "/apis/apps/v1/deployments"]
        {
            expected.insert(("list".into(), path.into()));
            expected.insert(("watch".into(), path.into()));
        }
        expected.extend(more.iter().map(|(verb, path)| ((*verb).to_owned(), (*path).to_owned())));
        stage.until("every watch to have begun", |_, _| calls().len() >= expected.len()).await;
        assert_eq!(calls(), expected);
        stage.stop().await;
    }
}

/// Something is wrong with the watch of pods; while it is, pods come and go.
#[tokio::test]
async fn no_fault_loses_or_keeps_a_pod() {
    let watches = |action| Rule::new(action).verb("watch").path("/api/v1/pods");
    let lists = |action| Rule::new(action).verb("list").path("/api/v1/pods");
    for (what, rules) in [
        ("watches end", vec![watches(Action::CutWatch { after: 1 }).first(3)]),
        ("watches end at once", vec![watches(Action::CutWatch { after: 0 }).first(1)]),
        ("the revision is gone, in the stream", vec![watches(Action::ExpireWatch { after: 1 }).first(2)]),
        ("the revision is gone, as an answer", vec![watches(Action::Answer(Answer::Expired)).first(1)]),
        ("watches are refused", vec![watches(Action::Answer(Answer::Unavailable)).first(1)]),
        ("watches fail", vec![watches(Action::Answer(Answer::Internal)).first(1)]),
        ("requests get lost", vec![watches(Action::DropRequest).first(1)]),
        ("answers get lost", vec![lists(Action::DropAnswer).first(1)]),
        (
            "lists fail when the revision is gone",
            vec![
                watches(Action::ExpireWatch { after: 0 }).first(1),
                lists(Action::Answer(Answer::Internal)).nth(2),
            ],
        ),
        ("slow down", vec![lists(Action::Answer(Answer::TooManyRequests { retry_after: 1 })).first(1)]),
    ] {
        let faults = rules.into_iter().fold(Faults::seeded(1), Faults::with);
        let stage = Stage::start(&small(), faults, Options::default()).await;
        for i in 0..3 {
            create(&stage.client, &pod(&format!("q{i}"), "b")).await;
        }
        delete(&stage.client, &pod("p", "a")).await;
        assert_eq!(counted(&stage.client).await, 5, "8 − 3");
        stage.until(what, |known, status| room(known) == 5 && status.problem.is_none()).await;
        create(&stage.client, &pod("last", "a")).await;
        stage.until(what, |known, _| room(known) == 4).await;
        assert!(!stage.faults.log().is_empty(), "{what}: the fault was there");
        stage.stop().await;
    }
}

#[tokio::test]
async fn without_an_api_server_answers_go_on_and_get_old() {
    let stage = Stage::start(&small(), Faults::seeded(1), Options::default()).await;
    stage.fits(7).await;
    // Bookmarks come: what is known stays young though nothing happens.
    let before = stage.member.status().heard.unwrap();
    stage.until("a bookmark of every watch", |_, status| status.heard.is_some_and(|at| at > before)).await;

    // From now on nobody is there. Open watches are cut, as by a crash.
    stage.faults.add(Rule::new(Action::DropRequest));
    stage.server.end_watches();
    stage.until("the trouble to be noticed", |_, status| status.problem.is_some()).await;
    let status = stage.member.status();
    let (heard, since) = (status.heard.unwrap(), status.since.unwrap());
    assert!(heard <= since, "{status:?}");
    assert!(status.problem.as_deref().unwrap().contains("watching "), "{status:?}");
    create(&stage.client, &pod("q", "b")).await;
    let all = |status: &Status| status.problem.as_deref().is_some_and(|problem| problem.ends_with("2 more"));
    stage.until("all four to be in trouble", |_, status| all(status)).await;
    assert_eq!(room(&stage.member.known().unwrap()), 7, "as it was");
    assert_eq!(stage.member.status().since, Some(since), "since it began");
    stage.stop().await;
}

/// Another server with another history takes the place of the first, as after a restore from a backup. To a watch
/// from a revision that is yet to come it says nothing.
#[tokio::test(start_paused = true)]
async fn a_server_that_knows_other_things_replaces_everything() {
    let silent = Config { bookmark_every: Duration::from_hours(1), ..Config::default() };
    let (first, second) = (server(), ApiServer::new(silent));
    let [old, new] = [&first, &second].map(|server| Client::new(server.clone(), "default"));
    for object in small() {
        create(&old, &object).await;
    }
    // Less has happened here: the revisions we know of do not exist yet.
    create(&new, &node("other", 3)).await;
    let current = Arc::new(std::sync::Mutex::new(first.clone()));
    let serving = current.clone();
    let switch = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let server = serving.lock().unwrap().clone();
        server.oneshot(request)
    });
    let (member, stop, task) = start(Access::Client(Client::new(switch, "default")), Options::default());
    until(&member, "the first", |known, _| room(known) == 7).await;
    *current.lock().unwrap() = second;
    first.end_watches();
    until(&member, "the second", |known, status| room(known) == 3 && status.problem.is_none()).await;
    assert_eq!(member.known().unwrap().view.node_count(), 1);
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_without_bookmarks_is_begun_again() {
    let stall = Rule::new(Action::StallWatch { after: 0 }).verb("watch").path("/api/v1/nodes").first(1);
    let stage = Stage::start(&small(), Faults::seeded(1).with(stall), Options::default()).await;
    stage.fits(7).await;
    create(&stage.client, &node("c", 2)).await;
    // Nobody tells: minutes pass, in which the others are heard of.
    let silent = |status: &Status| {
        status.problem.as_deref().is_some_and(|problem| problem.contains("watching nodes: silent"))
    };
    stage.until("the silence to be noticed", |_, status| silent(status)).await;
    stage.fits(9).await;
    stage.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_is_waited_for_and_nothing_is_answered_before() {
    let slow = Rule::new(Action::Delay(Duration::from_secs(50))).verb("list").path("/api/v1/pods");
    let stage = Stage::start(&small(), Faults::seeded(1).with(slow), Options::default()).await;
    told(&stage.member, "the nodes", |status| status.progress.starts_with("nodes 2, pods 0")).await;
    assert!(stage.member.known().is_none(), "without its pods a node looks emptier than it is");
    stage.fits(7).await;
    stage.stop().await;
}

// §5.8 over a watch: the newest replica set of a Deployment has two pods no node was found for.
#[tokio::test]
async fn pods_that_wait_in_vain_are_found_through_their_deployment() {
    let template = |image: &str, hash: Option<&str>| {
        let mut labels = json!({"app": "web"});
        if let Some(hash) = hash {
            labels["pod-template-hash"] = json!(hash);
        }
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}})
    };
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("i:2", None)}});
    let stage = Stage::start(&small(), Faults::seeded(1), Options::default()).await;
    let made = create(&stage.client, &deployment).await;
    let owner = |kind: &str, of: &Value| {
        json!([{"apiVersion": "apps/v1", "kind": kind, "name": of["metadata"]["name"],
            "uid": of["metadata"]["uid"], "controller": true}])
    };
    for (name, image, pods) in [("web-1", "i:1", 3), ("web-2", "i:2", 2)] {
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": owner("Deployment", &made)},
            "spec": {"selector": {"matchLabels": {"app": "web", "pod-template-hash": name}},
                "template": template(image, Some(name))}});
        let set = create(&stage.client, &set).await;
        for i in 0..pods {
            let mut pod = pod(&format!("{name}-{i}"), "");
            pod["metadata"]["labels"] = json!({"app": "web", "pod-template-hash": name});
            pod["metadata"]["ownerReferences"] = owner("ReplicaSet", &set);
            pod["spec"].as_object_mut().unwrap().remove("nodeName");
            pod["status"] = json!({"conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "lastTransitionTime": "2025-01-01T00:00:00Z"}]});
            create(&stage.client, &pod).await;
        }
    }
    let ask = |known: &Known, name: &str| {
        let now = "2025-01-01T00:06:00Z".parse::<Timestamp>().unwrap();
        known.waiting.unschedulable(&Key::new("default", name), SignedDuration::from_mins(5), now)
    };
    let known = stage.until("both pods to wait", |known, _| ask(known, "web") == Some(2)).await;
    assert_eq!(ask(&known, "other"), None);
    delete(&stage.client, &json!({"kind": "Pod", "metadata": {"name": "web-2-0"}})).await;
    stage.until("one to be gone", |known, _| ask(known, "web") == Some(1)).await;
    delete(&stage.client, &deployment).await;
    stage.until("the Deployment to be gone", |known, _| ask(known, "web").is_none()).await;
    stage.stop().await;
}

#[tokio::test]
async fn quotas_bind_where_they_are_followed() {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"requests.cpu": "10"}},
        "status": {"hard": {"requests.cpu": "10"}, "used": {"requests.cpu": "8"}}});
    let mut objects = small();
    objects.push(quota.clone());
    let stage =
        Stage::start(&objects, Faults::seeded(1), Options { quotas: true, ..Options::default() }).await;
    stage.until("10 − 8", |known, _| replicas(known, "default", false).0 == 2).await;
    assert_eq!(replicas(&stage.member.known().unwrap(), "other", false).0, 7, "another namespace");
    delete(&stage.client, &quota).await;
    stage.until("no quota", |known, _| replicas(known, "default", false).0 == 7).await;
    stage.stop().await;
}

#[tokio::test]
async fn load_counts_where_it_is_measured_and_is_assumed_where_it_is_not() {
    let load = load::Options { every: Duration::from_millis(50), ..load::Options::default() };
    let options = Options { load: Some(load), ..Options::default() };
    let stage = Stage::start(&[node("a", 10), node("b", 10)], Faults::seeded(1), options).await;
    let by_load = |known: &Known| replicas(known, "default", true).1;
    let known = stage.until("rooms", |known, _| by_load(known).is_some()).await;
    let assumed = by_load(&known).unwrap();
    assert!((1..20).contains(&assumed), "nothing measured, nothing there: up to the line: {assumed}");
    // Both use all they have: not one more.
    for name in ["a", "b"] {
        let usage = [("cpu".to_owned(), "10".to_owned()), ("memory".to_owned(), "1Gi".to_owned())].into();
        let sample = Sample { at: Timestamp::now(), window: Duration::from_secs(15) };
        stage.server.set_node_metrics(name, &usage, sample);
    }
    let known = stage.until("measurements", |known, _| by_load(known) == Some(0)).await;
    assert_eq!(replicas(&known, "default", false).0, 20, "by requests there is room");
    stage.stop().await;
}

#[tokio::test]
async fn the_file_of_the_load_policy_counts_as_it_is_now() {
    let parse = |text: &str| -> Result<Rules, String> {
        let share: f64 = text.parse().map_err(|_| "no share".to_owned())?;
        let settings =
            Settings { targets: Both { cpu: Ratio::from_f64(share), memory: None }, ..Settings::default() };
        Rules::new(Policy::default(), settings).map(|(rules, _)| rules).map_err(|_| "refused".to_owned())
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy");
    std::fs::write(&file, "0.5").unwrap();
    let load = load::Options {
        rules: parse("0.5").unwrap(),
        policy: Source::file(&file, parse),
        ..load::Options::default()
    };
    let options = Options { load: Some(load), ..Options::default() };
    let stage = Stage::start(&[node("a", 10), node("b", 10)], Faults::seeded(1), options).await;
    let by_load = |known: &Known| replicas(known, "default", true).1;
    stage.until("half of both", |known, _| by_load(known) == Some(10)).await;
    std::fs::write(&file, "much").unwrap();
    let told = stage.until("a problem", |_, status| status.progress.ends_with(", policy: no share")).await;
    assert_eq!(by_load(&told), Some(10), "the last good one stays");
    std::fs::write(&file, "0.2").unwrap();
    stage.until("a fifth of both", |known, _| by_load(known) == Some(4)).await;
    stage.until("no problem", |_, status| !status.progress.contains("policy")).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_broken_member_disturbs_nobody_and_is_back_once_it_is_mended() {
    let good = Stage::start(&small(), Faults::seeded(1), Options::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m2.kubeconfig");
    let (member, stop, task) = start(Access::Kubeconfig(file.clone()), Options::default());
    let problem =
        told(&member, "a problem", |status| status.problem.is_some()).await.problem.clone().unwrap();
    assert!(problem.contains("m2.kubeconfig") && problem.contains("No such file"), "{problem}");
    good.fits(7).await;

    // There is a file now, but nobody at the address; then there is.
    let kubeconfig = |url: &str| {
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url}}], "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]})
    };
    std::fs::write(&file, kubeconfig("http://127.0.0.1:1").to_string()).unwrap();
    told(&member, "nobody at the address", |status| {
        status.problem.as_deref().is_some_and(|problem| problem.contains("listing "))
    })
    .await;
    assert!(member.known().is_none());
    let listening = good.server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    std::fs::write(&file, kubeconfig(&listening.url()).to_string()).unwrap();
    let serving = tokio::spawn(listening.serve(stop.clone().cancelled_owned()));
    until(&member, "the second member", |known, status| room(known) == 7 && status.problem.is_none()).await;
    stop.cancel();
    task.await.unwrap();
    serving.await.unwrap().unwrap();
    good.stop().await;
}
