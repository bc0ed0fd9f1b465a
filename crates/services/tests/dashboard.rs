//! What the dashboard says of a cluster, on the in-memory API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_apiserver::metrics::Sample;
use loadline_services::cluster::Access;
use loadline_services::dashboard::{self, Beside, Guard, Happenings, Options};
use loadline_services::sources::metrics_api;
use loadline_services::{Ctx, ask, scheduler};
use serde_json::{Value, from_value, json};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::{Layer as _, ServiceExt as _};

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(3);
const OFTEN: Duration = Duration::from_millis(50);

/// A cluster of two nodes of ten cores, 6.5 of which may be used: `n1` uses 6 in all, `n2` was never measured.
struct World {
    server: ApiServer,
    client: Client,
    router: axum::Router,
    _stop: DropGuard,
}

impl World {
    async fn start(faults: Faults) -> Self {
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "default");
        let has = json!({"cpu": "10", "memory": "32Gi", "pods": "110"});
        for name in ["n1", "n2"] {
            let node = json!({"metadata": {"name": name}, "status": {"capacity": has, "allocatable": has}});
            let all: Api<Node> = Api::all(client.clone());
            all.create(&PostParams::default(), &from_value(node).unwrap()).await.unwrap();
        }
        let rough = Client::new(faults.layer(server.clone()), "default");
        let access = Access::Client(rough);
        let measure = metrics_api::Options { every: OFTEN, of: metrics_api::Of::NodesAndPods };
        let options = Options {
            scheduler: scheduler::Options { measure, ..scheduler::Options::new(access.clone()) },
            step: OFTEN,
            ..Options::new("test", access)
        };
        let stop = CancellationToken::new();
        let (asker, questions) = ask::channel();
        let router =
            dashboard::router(asker, options.happenings.clone(), Guard::default(), Beside::default());
        let ctx = Ctx::new("test", stop.clone());
        tokio::spawn(async move { dashboard::run(ctx, options, questions).await.unwrap() });
        Self { server, client, router, _stop: stop.drop_guard() }
    }

    /// One that runs on a node for an hour, or waits for one.
    async fn pod(&self, name: &str, node: Option<&str>, cpu: &str) {
        let mut pod = json!({
            "metadata": {"name": name},
            "spec": {"schedulerName": "loadline", "containers": [
                {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]},
        });
        if let Some(node) = node {
            pod["spec"]["nodeName"] = json!(node);
        }
        let all: Api<Pod> = Api::default_namespaced(self.client.clone());
        all.create(&PostParams::default(), &from_value(pod).unwrap()).await.unwrap();
        if node.is_some() {
            let since = loadline_api::time::text(Timestamp::now() - SignedDuration::from_hours(1));
            let status = json!({"status": {"phase": "Running", "startTime": since,
                "containerStatuses": [{"name": "main", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                    "state": {"running": {"startedAt": since}}}]}});
            all.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        }
    }

    /// `n1` was measured just now, and the pod `old` that uses all of it but half a core.
    fn measure(&self, cores: i64) {
        let used = |milli: i64| {
            BTreeMap::from([("cpu".to_owned(), format!("{milli}m")), ("memory".to_owned(), "2Gi".to_owned())])
        };
        let sample = Sample { at: Timestamp::now(), window: Duration::from_secs(15) };
        self.server.set_node_metrics("n1", &used(cores * 1000), sample);
        let containers = [("main".to_owned(), used(cores * 1000 - 500))].into();
        self.server.set_pod_metrics("default", "old", &containers, sample);
    }

    /// Status, headers and body.
    async fn ask(&self, path: &str, asked: &[(header::HeaderName, &str)]) -> (StatusCode, HeaderMap, Bytes) {
        let mut request = Request::get(path);
        for (name, value) in asked {
            request = request.header(name, *value);
        }
        let answer = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (head, body) = answer.into_parts();
        (head.status, head.headers, body.collect().await.unwrap().to_bytes())
    }

    async fn get(&self, path: &str, host: &str) -> (StatusCode, Value) {
        let (status, _, body) = self.ask(path, &[(header::HOST, host)]).await;
        (status, serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body))))
    }

    /// What is answered there, once it is as it should be.
    async fn until(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let look = async {
            loop {
                let (_, answer) = self.get(path, "localhost").await;
                if holds(&answer) {
                    return answer;
                }
                tokio::time::sleep(OFTEN).await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("never: {what}"))
    }
}

#[tokio::test]
async fn a_node_is_shown_with_what_it_uses_and_what_is_not_known_is_not_nothing() {
    let world = World::start(Faults::seeded(1)).await;
    world.pod("old", Some("n1"), "4").await;
    world.measure(6);
    let shown = world.until("/api/v1/cluster", "n1 is measured", |shown| {
        shown["ready"] == true && shown["nodes"][0]["cpu"]["measured"] == 6.0
    });
    let shown = shown.await;
    let (n1, n2) = (&shown["nodes"][0], &shown["nodes"][1]);
    assert_eq!(
        (&n1["name"], &n1["cpu"]["requested"], &n1["cpu"]["allocatable"]),
        (&json!("n1"), &json!(4.0), &json!(10.0))
    );
    assert_eq!(n1["cpu"]["line"], 6.5, "0.65 of 10");
    assert_eq!(shown["targets"], json!({"cpu": 0.65, "memory": 0.65}));
    assert_eq!(
        (&n2["name"], &n2["cpu"]["measured"], &n2["cpu"]["ageSeconds"]),
        (&json!("n2"), &Value::Null, &Value::Null)
    );
    // The plots go on meanwhile.
    let is_there = |all: &Value| all["cpu"]["worst"].as_array().is_some_and(|all| all.contains(&json!(0.6)));
    world.until("/api/v1/history", "a point at 6 of 10", is_there).await;
    let (status, node) = world.get("/api/v1/nodes/n1", "localhost").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(node["pods"][0]["pod"], "default/old");
    assert_eq!(node["pods"][0]["cpu"], json!({"requested": 4.0, "measured": 5.5}));
    assert_eq!(world.get("/api/v1/nodes/n9", "localhost").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn why_a_pod_would_go_there_is_told_in_the_words_of_the_engine() {
    let world = World::start(Faults::seeded(1)).await;
    world.pod("old", Some("n1"), "4").await;
    world.measure(6);
    world.pod("new", None, "1").await;
    let told = world.until("/api/v1/pods/default/new?nodes=5", "n1 would pass its line", |told| {
        let nodes = told["now"]["nodes"].as_array();
        nodes.is_some_and(|nodes| nodes.iter().any(|node| node["node"] == "n1" && node["fits"] == false))
    });
    let told = told.await;
    let n1 = told["now"]["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n1").unwrap();
    // 6 measured + 1 incoming is over 6.5.
    assert!(n1["reasons"][0].as_str().unwrap().starts_with("cpu would pass the line: 6 measured"), "{n1}");
    assert_eq!(told["now"]["node"], "n2");
    let (status, told) = world.get("/api/v1/pods/default/none", "localhost").await;
    assert_eq!((status, told["error"].is_string()), (StatusCode::NOT_FOUND, true));
    let (status, told) = world.get("/api/v1/pods/default/new?nodes=many", "localhost").await;
    assert_eq!(
        (status, &told["error"]),
        (StatusCode::BAD_REQUEST, &json!("expected nodes=NUMBER, found \"many\""))
    );
}

#[tokio::test]
async fn what_happens_is_told_once_and_from_where_one_was() {
    let world = World::start(Faults::seeded(1)).await;
    let event = |name: &str| {
        from_value::<Event>(json!({
            "metadata": {"name": name}, "eventTime": "2026-01-01T12:00:00.000000Z", "type": "Normal", "reason": "Scheduled",
            "action": "Binding", "note": format!("Successfully assigned default/{name} to n2"), "reportingController": "x/y",
            "reportingInstance": "z", "regarding": {"kind": "Pod", "namespace": "default", "name": name},
        }))
        .unwrap()
    };
    let all: Api<Event> = Api::default_namespaced(world.client.clone());
    all.create(&PostParams::default(), &event("a")).await.unwrap();
    let one = world.until("/api/v1/happenings", "the first", |told| {
        told["items"].as_array().is_some_and(|all| all.len() == 1)
    });
    let one = one.await;
    assert_eq!((&one["items"][0]["about"], &one["items"][0]["node"]), (&json!("default/a"), &json!("n2")));
    all.create(&PostParams::default(), &event("b")).await.unwrap();
    let next = format!("/api/v1/happenings?since={}", one["next"]);
    let two = world
        .until(&next, "the second alone", |told| told["items"].as_array().is_some_and(|all| all.len() == 1))
        .await;
    assert_eq!((&two["items"][0]["about"], &two["dropped"]), (&json!("default/b"), &json!(false)));
}

#[tokio::test]
async fn whoever_cannot_read_events_sees_everything_else() {
    let broken = Rule::new(Action::Answer(Answer::Internal)).path("/apis/events.k8s.io/v1/events");
    let world = World::start(Faults::seeded(1).with(broken)).await;
    world.measure(6);
    let shown = world.until("/api/v1/cluster", "ready, and why Events are not known", |shown| {
        shown["ready"] == true && source(shown, "events")["problem"].is_string()
    });
    let shown = shown.await;
    assert_eq!(shown["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(source(&shown, "events")["ageSeconds"], Value::Null, "never heard of");
    assert_eq!(source(&shown, "nodes")["problem"], Value::Null);
    let told = world.get("/api/v1/happenings", "localhost").await.1;
    assert!(told["problem"].as_str().unwrap().contains("injected"), "{told}");
}

/// What is said of one source.
fn source(shown: &Value, name: &str) -> Value {
    let all = shown["sources"].as_array().into_iter().flatten();
    all.clone().find(|one| one["name"] == name).cloned().unwrap_or_default()
}

#[tokio::test]
async fn of_each_source_it_is_said_how_old_it_is_and_a_watch_that_fails_is_not_called_fresh() {
    let broken = Rule::new(Action::Answer(Answer::Internal)).path("/apis/policy/v1/poddisruptionbudgets");
    let world = World::start(Faults::seeded(1).with(broken)).await;
    let at = Timestamp::now() - SignedDuration::from_secs(120);
    let used = BTreeMap::from([("cpu".to_owned(), "1".to_owned()), ("memory".to_owned(), "2Gi".to_owned())]);
    world.server.set_node_metrics("n1", &used, Sample { at, window: Duration::from_secs(15) });
    let shown = world.until("/api/v1/cluster", "budgets fail and n1 is measured", |shown| {
        let failed = source(shown, "poddisruptionbudgets")["problem"].is_string();
        failed && source(shown, "measurements")["ageSeconds"].is_number()
    });
    let shown = shown.await;
    // Asked for just now, and measured two minutes ago.
    assert!(source(&shown, "measurements")["ageSeconds"].as_i64().unwrap() >= 120, "{shown}");
    assert_eq!(source(&shown, "poddisruptionbudgets")["ageSeconds"], Value::Null, "never read");
    assert!(source(&shown, "pods")["ageSeconds"].is_number(), "{shown}");
    assert_eq!(source(&shown, "annotations"), Value::Null, "nobody wrote any");
    let written = format!("0.5,{}", loadline_api::time::text(Timestamp::now()));
    let patch = json!({"metadata": {"annotations": {"cpu_usage_avg_5m": written}}});
    let all: Api<Node> = Api::all(world.client.clone());
    all.patch("n2", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    world
        .until("/api/v1/cluster", "an annotation is there", |shown| {
            source(shown, "annotations")["ageSeconds"].is_number()
        })
        .await;
}

#[tokio::test]
async fn without_measurements_only_pods_that_came_of_late_are_called_arriving() {
    let world = World::start(Faults::seeded(1)).await;
    world.pod("old", Some("n1"), "4").await;
    let is_there = |shown: &Value| shown["pods"].as_array().is_some_and(|pods| !pods.is_empty());
    let shown = world.until("/api/v1/nodes/n1", "its pod", is_there).await;
    let named = shown["pods"].as_array().unwrap().iter().filter(|pod| pod["arriving"] == true).count();
    assert_eq!(shown["node"]["pendingPods"], named, "the same is said of the node and of its pods: {shown}");
    // Measured with its node: it has arrived.
    world.measure(6);
    let shown = world
        .until("/api/v1/nodes/n1", "it is measured", |shown| shown["node"]["cpu"]["measured"] == 6.0)
        .await;
    assert_eq!((&shown["pods"][0]["arriving"], &shown["node"]["pendingPods"]), (&json!(false), &json!(0)));
}

#[tokio::test]
async fn a_long_answer_goes_packed_to_whoever_takes_that() {
    let world = World::start(Faults::seeded(1)).await;
    for number in 0..20 {
        world.pod(&format!("p{number}"), Some("n1"), "100m").await;
    }
    let is_there = |shown: &Value| shown["pods"].as_array().is_some_and(|pods| pods.len() == 20);
    world.until("/api/v1/nodes/n1", "its pods", is_there).await;
    let host = (header::HOST, "localhost");
    let (_, plain, _) = world.ask("/api/v1/nodes/n1", std::slice::from_ref(&host)).await;
    assert_eq!(plain.get(header::CONTENT_ENCODING), None);
    let takes = (header::ACCEPT_ENCODING, "gzip, br");
    let (status, headers, body) = world.ask("/api/v1/nodes/n1", &[host.clone(), takes.clone()]).await;
    assert_eq!((status, headers[header::CONTENT_ENCODING].as_bytes()), (StatusCode::OK, &b"gzip"[..]));
    let mut text = String::new();
    GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    assert!(body.len() * 4 < text.len(), "{} of {}", body.len(), text.len());
    assert!(is_there(&serde_json::from_str(&text).unwrap()));
    let (_, short, _) = world.ask("/api/v1/nodes/none", &[host, takes]).await;
    assert_eq!(short.get(header::CONTENT_ENCODING), None, "not worth it");
}

#[tokio::test]
async fn other_things_beside_the_page_are_told_on_loopback_by_its_names_only() {
    let others = || axum::Router::new().route("/debug/log", axum::routing::get(async || "info"));
    for (why, is_loopback, host, status) in [
        ("its name", true, "localhost:8100", StatusCode::OK),
        (
            "a page of somebody else under a name that leads here",
            true,
            "evil.example",
            StatusCode::MISDIRECTED_REQUEST,
        ),
        ("monitoring, by the address of the pod", false, "10.0.0.7:8443", StatusCode::OK),
    ] {
        let request = Request::get("/debug/log").header(header::HOST, host).body(Body::empty()).unwrap();
        let answer = dashboard::beside(others(), is_loopback).oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status, "{why}");
    }
}

#[tokio::test]
async fn a_token_in_the_address_is_taken_out_of_it_whatever_is_before_it() {
    for (tls, secure) in [(true, "; Secure"), (false, "")] {
        let guard = Guard { token: Some("s3cret".into()), tls };
        let router = dashboard::router(ask::channel().0, Happenings::default(), guard, Beside::default());
        let request = Request::get("/?token=s3cret").body(Body::empty()).unwrap();
        let answer = router.oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(answer.headers()[header::LOCATION], "./", "behind a prefix, too");
        let cookie = answer.headers()[header::SET_COOKIE].to_str().unwrap();
        assert_eq!(cookie, format!("loadline-token=s3cret; HttpOnly; SameSite=Strict{secure}"));
    }
}

#[tokio::test]
async fn the_page_is_served_to_this_machine_and_asks_nobody_else() {
    let world = World::start(Faults::seeded(1)).await;
    let (status, page) = world.get("/", "127.0.0.1:8100").await;
    assert_eq!(status, StatusCode::OK);
    let page = page.as_str().unwrap();
    assert!(page.contains("Loadline") && page.len() < 150_000, "{} bytes", page.len());
    // Everything stands in the page itself.
    assert!(!page.contains("<script src") && !page.contains("<link rel=\"stylesheet\""));
    let (status, _) = world.get("/", "loadline.evil.example").await;
    assert_eq!(status, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(world.get("/api/v1/nonsense", "localhost").await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/api/v1/fleet", "localhost").await, (StatusCode::OK, Value::Null));
}
