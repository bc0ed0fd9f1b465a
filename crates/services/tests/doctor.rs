//! The gathering of facts against the in-memory API server: every read at once, none stopped by another.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod signing;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_apiserver::metrics::Sample;
use loadline_core::doctor::{Component, Facts, Finding, Severity, examine};
use loadline_services::cluster::Access;
use loadline_services::doctor::{Beside, Options, Served, gather};
use loadline_services::serve::{self, Clients};
use serde_json::{Value, json};
use signing::{Authority, Files};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::{Layer as _, ServiceExt as _};

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);

async fn create(server: &ApiServer, path: &str, object: &Value) {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(axum::body::Body::from(object.to_string()))
        .unwrap();
    let answer = server.clone().oneshot(request).await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
}

/// A healthy cluster of so many nodes.
async fn cluster(nodes: usize) -> ApiServer {
    let server = ApiServer::default();
    let has = json!({"cpu": "8", "memory": "32Gi", "pods": "110"});
    let usage = BTreeMap::from([("cpu".to_owned(), "1".to_owned()), ("memory".to_owned(), "4Gi".to_owned())]);
    for number in 0..nodes {
        let (name, address) = (format!("n{number}"), format!("10.0.{}.{}", number / 250, number % 250));
        let addresses = json!([{"type": "InternalIP", "address": address}]);
        let conditions = json!([{"type": "Ready", "status": "True"}]);
        let node = json!({"metadata": {"name": name}, "status": {"capacity": has, "allocatable": has,
            "addresses": addresses, "conditions": conditions}});
        create(&server, "/api/v1/nodes", &node).await;
        let at = Timestamp::now();
        let renewed = at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let lease = json!({"metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed}});
        create(&server, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", &lease).await;
        server.set_node_metrics(&name, &usage, Sample { at, window: Duration::from_secs(15) });
    }
    server
}

fn options(server: &ApiServer, faults: &Faults) -> Options {
    let access = Access::Client(Client::new(faults.layer(server.clone()), "default"));
    let beside = Beside { deadline: PATIENCE, ..Beside::default() };
    Options { beside, ..Options::new(access) }
}

async fn facts(server: &ApiServer, faults: &Faults) -> Facts {
    Box::pin(gather(options(server, faults))).await.unwrap()
}

fn bad(found: &[Finding]) -> Vec<&Finding> {
    found.iter().filter(|one| one.severity != Severity::Ok).collect()
}

#[tokio::test]
async fn nothing_bad_is_said_of_a_healthy_cluster() {
    let server = cluster(3).await;
    let found = examine(&facts(&server, &Faults::seeded(1)).await);
    assert!(bad(&found).is_empty(), "{found:#?}");
    let measured = found.iter().find(|one| one.check == "metrics").unwrap();
    assert!(measured.what.starts_with("3 nodes measured"), "{}", measured.what);
}

#[tokio::test]
async fn half_of_the_reads_are_denied_and_the_others_go_on() {
    let server = cluster(3).await;
    server.clear_node_metrics("n2");
    let deny = |path: &str| Rule::new(Action::Answer(Answer::Forbidden)).path(path);
    let faults = Faults::seeded(1)
        .with(deny("/apis/coordination.k8s.io/**"))
        .with(deny("/apis/apiextensions.k8s.io/**"))
        .with(deny("/apis/apps/v1/daemonsets"))
        .with(deny("/apis/analysis.crane.io/**"))
        .with(deny("/apis/ensurance.crane.io/v1alpha1/nodeqoss"));
    let found = examine(&facts(&server, &faults).await);
    let denied: Vec<&str> =
        bad(&found).iter().filter(|one| one.check == "reads").map(|one| one.what.as_str()).collect();
    assert_eq!(denied.len(), 5, "{denied:#?}");
    for (said, wanted) in
        denied.iter().zip(["leases", "definitions", "recommendations", "rules of agents", "deployments"])
    {
        assert!(said.contains(&format!("may not read {wanted}")), "{said}");
    }
    // What could be read is judged.
    let broken: Vec<&Finding> = found.iter().filter(|one| one.severity == Severity::Broken).collect();
    assert!(matches!(broken[..], [one] if one.about == ["n2"]), "{broken:#?}");
    assert!(found.iter().any(|one| one.check == "version"), "{found:#?}");
}

#[tokio::test]
async fn a_read_that_hangs_or_fails_is_a_finding_and_holds_up_no_other() {
    let server = cluster(2).await;
    let faults = Faults::seeded(1)
        .with(Rule::new(Action::Delay(Duration::from_hours(1))).path("/api/v1/nodes"))
        .with(Rule::new(Action::Answer(Answer::Internal)).path("/apis/coordination.k8s.io/**"))
        .with(Rule::new(Action::Answer(Answer::Unavailable)).path("/apis/metrics.k8s.io/**"));
    let mut options = options(&server, &faults);
    options.beside.deadline = Duration::from_millis(500);
    let found = examine(&Box::pin(gather(options)).await.unwrap());
    let said: Vec<(&str, &str)> = bad(&found).iter().map(|one| (one.check, one.what.as_str())).collect();
    let has = |check: &str, words: &str| said.iter().any(|(of, what)| *of == check && what.contains(words));
    assert!(has("reads", "nodes could not be read: no"), "{said:#?}");
    assert!(has("reads", "leases could not be read: Internal error occurred: injected fault"), "{said:#?}");
    assert!(has("metrics", "no metrics API"), "{said:#?}");
    assert_eq!(said.len(), 3, "{said:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_follows_from_an_answer_has_no_deadline_of_its_own() {
    let server = cluster(1).await;
    run(&server, &json!(["scheduler"])).await;
    // Workloads come late, and reviews never.
    let faults = Faults::seeded(1)
        .with(Rule::new(Action::Delay(Duration::from_secs(6))).path("/apis/apps/v1/deployments"))
        .with(Rule::new(Action::Delay(Duration::from_hours(1))).path("/apis/authorization.k8s.io/**"));
    let mut options = options(&server, &faults);
    options.beside.deadline = Duration::from_secs(8);
    let began = tokio::time::Instant::now();
    let facts = Box::pin(gather(options)).await.unwrap();
    assert!(facts.workloads.read().is_some(), "{:?}", facts.workloads);
    assert!(facts.permissions.failed().is_some(), "{:?}", facts.permissions);
    // In tokio's time, which stands still while anything can go on.
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

/// A deployment of a component with such arguments.
async fn run(server: &ApiServer, flags: &Value) {
    let spec = json!({"serviceAccountName": "loadline-scheduler", "containers": [{"name": "c", "image": "loadline", "args": flags}]});
    let deployment = json!({"metadata": {"name": "loadline-scheduler", "namespace": "default"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}});
    create(server, "/apis/apps/v1/namespaces/default/deployments", &deployment).await;
}

#[tokio::test]
async fn how_much_is_asked_grows_with_the_pages_and_nothing_else() {
    // Pages of 500; everything but nodes, leases and measurements is asked for once, whatever the size.
    let mut counts = Vec::new();
    for nodes in [10, 1_000, 2_000] {
        let server = cluster(nodes).await;
        let faults = Faults::seeded(1).with(Rule::new(Action::Delay(Duration::ZERO)));
        let facts = facts(&server, &faults).await;
        assert_eq!(facts.nodes.read().unwrap().len(), nodes);
        assert_eq!(facts.leases.read().unwrap().len(), nodes);
        assert!(bad(&examine(&facts)).is_empty());
        counts.push(faults.log().len());
    }
    let [few, thousand, two_thousand] = counts[..] else { panic!("{counts:?}") };
    // One more page of each of the three lists with every 500 nodes.
    assert_eq!(thousand - few, 3, "{counts:?}");
    assert_eq!(two_thousand - thousand, 6, "{counts:?}");
}

#[tokio::test]
async fn nothing_but_reviews_is_ever_written() {
    let server = cluster(2).await;
    run(&server, &json!(["scheduler", "--leader-elect"])).await;
    let faults = Faults::seeded(1).with(Rule::new(Action::Answer(Answer::Internal)).verb("update"));
    let writes = ["create", "update", "patch", "delete", "deletecollection"];
    let watched = writes
        .iter()
        .fold(faults, |faults, verb| faults.with(Rule::new(Action::Delay(Duration::ZERO)).verb(verb)));
    let mut options = options(&server, &watched);
    options.components = vec![Component::Agent];
    let facts = Box::pin(gather(options)).await.unwrap();
    let (theirs, own) = (facts.permissions.read().unwrap(), facts.own.read().unwrap());
    assert!(theirs.iter().all(|one| one.account == "system:serviceaccount:default:loadline-scheduler"));
    assert!(own.iter().all(|one| one.account.is_empty() && one.component == Component::Agent));
    assert!(theirs.len() > 30 && own.len() > 10, "{} and {}", theirs.len(), own.len());
    // What was hit by a rule above was a write: reviews alone.
    assert_eq!(watched.log().len(), theirs.len() + own.len());
}

#[tokio::test]
async fn certificates_are_looked_at_where_they_are_served_and_in_files() {
    let authority = Authority::new("test");
    let files = Files::new(&authority.sign("server"), &authority);
    // Whoever wants to see a certificate of its clients shows its own all the same.
    let tls = files.tls(Clients::Required);
    let http = serve::listen(([127, 0, 0, 1], 0).into(), Some(tls), false).await.unwrap();
    let address = http.address().to_string();
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    tokio::spawn(serve::run(http, axum::Router::new(), stop));
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let server = cluster(1).await;
    let mut options = options(&server, &Faults::seeded(1));
    options.beside.certificates = vec![
        Served::At(address.clone()),
        Served::At(nobody),
        Served::File(files.path("tls.crt")),
        Served::File(files.path("tls.key")),
        Served::File(files.path("none")),
    ];
    let facts = Box::pin(gather(options)).await.unwrap();
    let good: Vec<bool> = facts.certificates.iter().map(|one| one.good.is_ok()).collect();
    assert_eq!(good, [true, false, true, false, false], "{:#?}", facts.certificates);
    assert_eq!(facts.certificates[0].from, address);
    assert_eq!(facts.certificates[0].good, facts.certificates[2].good);
    let (since, until) = facts.certificates[0].good.clone().unwrap();
    assert!(since < facts.now && until > facts.now + SignedDuration::from_hours(24));
}
