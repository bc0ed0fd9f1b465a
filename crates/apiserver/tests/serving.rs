//! Serving over TCP: who may listen where, how watches end, and what a slow reader costs.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use loadline_apiserver::listen::Error;
use loadline_apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct Served {
    url: String,
    http: Client<HttpConnector, Full<Bytes>>,
    stop: CancellationToken,
    done: JoinHandle<Result<(), Error>>,
}

impl Served {
    async fn start(config: Config) -> Self {
        let server = ApiServer::new(config);
        let listening = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a free port");
        let url = listening.url();
        let stop = CancellationToken::new();
        let done = tokio::spawn(listening.serve(stop.clone().cancelled_owned()));
        Self { url, http: Client::builder(TokioExecutor::new()).build_http(), stop, done }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: &Value,
    ) -> Response<Incoming> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.body(Full::new(body.into())).expect("written by us");
        self.http.request(request).await.expect("the server answers")
    }

    async fn create_map(&self, name: &str, size: usize) -> u16 {
        let map = json!({"metadata": {"name": name}, "data": {"x": "y".repeat(size)}});
        let path = "/api/v1/namespaces/default/configmaps";
        let response = self.send(Method::POST, path, None, &map).await;
        let code = response.status().as_u16();
        response.into_body().collect().await.expect("a whole body");
        code
    }
}

#[tokio::test]
async fn listening_beyond_loopback_needs_a_token() {
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let open = ApiServer::default().listen(everywhere).await;
    assert!(matches!(open, Err(Error::TokenRequired(_))), "nobody asked for a token");
    let guarded = ApiServer::new(Config { token: Some("secret".to_owned()), ..Config::default() });
    assert!(guarded.listen(everywhere).await.is_ok());
}

#[tokio::test]
async fn without_the_token_only_health_is_answered() {
    let served = Served::start(Config { token: Some("secret".to_owned()), ..Config::default() }).await;
    for (path, token, want) in [
        ("/api/v1/pods", None, 401),
        ("/api/v1/pods", Some("secreT"), 401),
        ("/api/v1/pods", Some("secret-and-more"), 401),
        ("/api/v1/pods", Some("secret"), 200),
        ("/healthz", None, 200),
    ] {
        let response = served.send(Method::GET, path, token, &Value::Null).await;
        assert_eq!(response.status().as_u16(), want, "{path} with {token:?}");
    }
}

#[test]
fn the_token_is_not_printed() {
    let config = Config { token: Some("hush".to_owned()), ..Config::default() };
    assert!(!format!("{config:?} {:?}", ApiServer::new(config.clone())).contains("hush"));
}

#[tokio::test]
async fn stopping_ends_open_watches() {
    let served = Served::start(Config::default()).await;
    let mut watch =
        served.send(Method::GET, "/api/v1/nodes?watch=true", None, &Value::Null).await.into_body();
    served.stop.cancel();
    assert!(watch.frame().await.is_none(), "the stream ends");
    drop(served.http);
    served.done.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_watcher_that_stops_reading_is_told_that_it_missed_something() {
    let served = Served::start(Config { log_capacity: 100, ..Config::default() }).await;
    let path = "/api/v1/namespaces/default/configmaps?watch=true";
    let mut watch = served.send(Method::GET, path, None, &Value::Null).await.into_body();
    // 400 events of 100 KB: more than any socket buffer holds, and four times what the log remembers.
    for i in 0..400 {
        assert_eq!(served.create_map(&format!("m{i}"), 100_000).await, 201);
    }
    let mut text = Vec::new();
    while let Some(frame) = watch.frame().await {
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let events: Vec<Value> = text
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    let (last, earlier) = events.split_last().unwrap();
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert!(earlier.len() < 400, "it did not see everything");
    for (i, event) in earlier.iter().enumerate() {
        assert_eq!(
            event["object"]["metadata"]["name"],
            format!("m{i}"),
            "what it saw was in order, without gaps"
        );
    }
}

#[tokio::test]
async fn of_many_writers_with_the_same_revision_one_wins() {
    let served = Served::start(Config::default()).await;
    assert_eq!(served.create_map("shared", 1).await, 201);
    let path = "/api/v1/namespaces/default/configmaps/shared";
    let body = served.send(Method::GET, path, None, &Value::Null).await.into_body();
    let read: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    let writers = (0..16).map(|i| {
        let (served, mut map) = (&served, read.clone());
        map["data"]["x"] = json!(format!("{i}"));
        async move { served.send(Method::PUT, path, None, &map).await.status().as_u16() }
    });
    let mut codes = futures::future::join_all(writers).await;
    codes.sort_unstable();
    assert_eq!((codes[0], codes[1], codes[15]), (200, 409, 409), "{codes:?}");
}
