//! A server that is killed and started again: what clients lose, and what stays.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::{Action, Faults, Rule};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Asks without a socket, as clients in the same process do.
async fn ask(server: &ApiServer, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = server.respond(request.body(Full::<Bytes>::from(body.to_string())).unwrap()).await;
    let status = response.status().as_u16();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&text).unwrap())
}

/// Creates an object and tells its revision.
async fn create(server: &ApiServer, path: &str, name: &str) -> String {
    let (status, made) = ask(server, Method::POST, path, &json!({"metadata": {"name": name}})).await;
    assert_eq!(status, 201, "{made}");
    made["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Asks over the port. No connection is used twice: one may be dead without knowing.
async fn get(url: &str, path: &str) -> Result<Response<Incoming>, Error> {
    let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
    client.request(Request::get(format!("{url}{path}")).body(Full::<Bytes>::default()).unwrap()).await
}

/// Names of the objects in the next events that come together.
async fn next_names(watch: &mut Incoming) -> Vec<String> {
    let frame = watch.frame().await.expect("the watch goes on").expect("nothing broke");
    let text = frame.into_data().unwrap();
    let events = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
    events.map(|event| event.unwrap()["object"]["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn from(revision: &str) -> String {
    format!("{MAPS}?watch=true&resourceVersion={revision}")
}

#[tokio::test]
async fn a_kill_cuts_connections_and_a_start_goes_on_where_clients_were() {
    let server = ApiServer::default();
    let revision = create(&server, MAPS, "before").await;
    let mut serving = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap().start();
    let url = serving.url();
    let mut watch = get(&url, &from(&revision)).await.unwrap().into_body();
    create(&server, MAPS, "seen").await;
    assert_eq!(next_names(&mut watch).await, ["seen"]);

    serving.kill().await;
    assert!(watch.frame().await.unwrap().is_err(), "cut, not ended");
    assert!(get(&url, MAPS).await.unwrap_err().is_connect(), "nobody listens");
    create(&server, MAPS, "missed").await;

    serving.start().unwrap();
    assert_eq!(serving.url(), url);
    let mut watch = get(&url, &from(&revision)).await.unwrap().into_body();
    assert_eq!(next_names(&mut watch).await, ["seen", "missed"], "the log was not lost");
    serving.stop().await.unwrap();
}

#[tokio::test]
async fn the_port_stays_ours_through_many_kills() {
    let server = ApiServer::default();
    let mut serving = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap().start();
    let url = serving.url();
    for round in 0..50 {
        serving.kill().await;
        // Whoever picks a free port now must not get this one.
        let other = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        assert_ne!(other.local_addr().unwrap(), serving.address(), "round {round}");
        assert!(get(&url, "/healthz").await.is_err(), "round {round}");
        serving.start().unwrap();
        serving.start().expect("what runs already is left alone");
        assert_eq!(get(&url, "/healthz").await.unwrap().status(), 200, "round {round}");
    }
}

#[tokio::test]
async fn dropping_it_ends_it() {
    let server = ApiServer::default();
    let serving = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap().start();
    let url = serving.url();
    let mut watch = get(&url, &from("1")).await.unwrap().into_body();
    drop(serving);
    while let Some(Ok(_)) = watch.frame().await {}
    assert!(get(&url, "/healthz").await.is_err());
}

#[tokio::test]
async fn a_restart_forgets_events_and_keeps_objects() {
    let server = ApiServer::default();
    let old = create(&server, MAPS, "a").await;
    let (_, page) = ask(&server, Method::GET, "/api/v1/namespaces?limit=1", &Value::Null).await;
    // Nothing happens to config maps any more, but revisions are counted for all resources together.
    let newest = create(&server, "/api/v1/namespaces/default/secrets", "b").await;
    let open = server.respond(Request::get(from(&newest)).body(Full::<Bytes>::default()).unwrap()).await;

    server.restart();
    let rest = open.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(rest, "", "the open watch ends, without an error");
    let (status, event) = ask(&server, Method::GET, &from(&old), &Value::Null).await;
    assert_eq!((status, &event["type"], &event["object"]["code"]), (200, &json!("ERROR"), &json!(410)));
    let exact = format!("{MAPS}?resourceVersionMatch=Exact&resourceVersion={old}");
    assert_eq!(ask(&server, Method::GET, &exact, &Value::Null).await.0, 410);
    let more =
        format!("/api/v1/namespaces?limit=1&continue={}", page["metadata"]["continue"].as_str().unwrap());
    assert_eq!(ask(&server, Method::GET, &more, &Value::Null).await.0, 410, "{more}");

    let (_, list) = ask(&server, Method::GET, MAPS, &Value::Null).await;
    assert_eq!(list["items"][0]["metadata"]["resourceVersion"], old, "objects are as they were");
    assert_eq!(list["metadata"]["resourceVersion"], newest, "and revisions go on");
    let open = server.respond(Request::get(from(&newest)).body(Full::<Bytes>::default()).unwrap()).await;
    create(&server, MAPS, "c").await;
    let mut open = open.into_body();
    let event = open.frame().await.unwrap().unwrap().into_data().unwrap();
    let event: Value = serde_json::from_slice(&event).unwrap();
    assert_eq!(event["object"]["metadata"]["name"], "c", "a watch from now on sees what happens");
}

#[tokio::test]
async fn ended_watches_may_be_begun_again() {
    let server = ApiServer::default();
    let revision = create(&server, MAPS, "a").await;
    let open = server.respond(Request::get(from(&revision)).body(Full::<Bytes>::default()).unwrap()).await;
    server.end_watches();
    assert_eq!(open.into_body().collect().await.unwrap().to_bytes(), "");
    create(&server, MAPS, "b").await;
    let open = server.respond(Request::get(from(&revision)).body(Full::<Bytes>::default()).unwrap()).await;
    let event = open.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&event).unwrap()["object"]["metadata"]["name"], "b");
}

#[tokio::test]
async fn a_request_dropped_by_a_fault_closes_its_connection() {
    let server = ApiServer::default();
    let faults = Faults::seeded(1)
        .with(Rule::new(Action::DropRequest).path("/api/v1/nodes").nth(1))
        .with(Rule::new(Action::CutWatch { after: 1 }));
    let listening = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    let serving = listening.with_faults(faults.clone()).start();
    let error = get(&serving.url(), "/api/v1/nodes").await.unwrap_err();
    assert!(!error.is_connect(), "{error:?}");
    assert_eq!(get(&serving.url(), "/api/v1/nodes").await.unwrap().status(), 200, "only the first");
    let watch = get(&serving.url(), "/api/v1/namespaces?watch=true").await.unwrap();
    let text = watch.into_body().collect().await.unwrap().to_bytes();
    let lines = std::str::from_utf8(&text).unwrap().lines();
    assert_eq!(lines.count(), 1, "one event, then a clean end");
    assert_eq!(faults.log().len(), 2);
}
