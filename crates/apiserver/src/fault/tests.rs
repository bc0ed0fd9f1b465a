use super::*;
use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use tower::ServiceExt as _;

/// A server that counts what reaches it, answers 200, and sends watches five events in uneven chunks.
#[derive(Clone, Default)]
struct Server {
    handled: Arc<AtomicU64>,
}

impl Service<Request<Body>> for Server {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.handled.fetch_add(1, Ordering::Relaxed);
        let body = if request.uri().query() == Some("watch=true") {
            let chunks = ["e1\ne", "2\ne3", "\n", "e4\ne5\n"];
            let events = chunks.map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk)));
            Body::from_stream(futures::stream::iter(events).chain(futures::stream::pending()))
        } else {
            Body::from("fine")
        };
        std::future::ready(Ok(Response::new(body)))
    }
}

fn request(method: &str, uri: &str) -> Request<Body> {
    Request::builder().method(method).uri(uri).body(Body::empty()).unwrap()
}

async fn ask(faults: &Faults, server: &Server, method: &str, uri: &str) -> Result<Response<Body>, BoxError> {
    faults.layer(server.clone()).oneshot(request(method, uri)).await
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

const NODE: &str = "/api/v1/nodes/n1";
const WATCH: &str = "/api/v1/nodes?watch=true";

#[tokio::test]
async fn a_dropped_request_never_reaches_the_server_and_a_dropped_answer_comes_too_late() {
    let server = Server::default();
    let faults = Faults::seeded(1)
        .with(Rule::new(Action::DropRequest).verb("get").nth(1))
        .with(Rule::new(Action::DropAnswer).verb("update").nth(1));
    let error = ask(&faults, &server, "GET", NODE).await.unwrap_err();
    assert_eq!(error.downcast_ref::<Dropped>(), Some(&Dropped::Request));
    assert_eq!(server.handled.load(Ordering::Relaxed), 0);
    let error = ask(&faults, &server, "PUT", NODE).await.unwrap_err();
    assert_eq!(error.downcast_ref::<Dropped>(), Some(&Dropped::Answer));
    assert_eq!(server.handled.load(Ordering::Relaxed), 1, "the write happened");
    assert_eq!(text(ask(&faults, &server, "GET", NODE).await.unwrap()).await, "fine", "only the first get");
}

#[tokio::test]
async fn failures_are_proper_statuses() {
    let server = Server::default();
    for (answer, code, reason) in [
        (Answer::Conflict, 409, "Conflict"),
        (Answer::Expired, 410, "Expired"),
        (Answer::TooManyRequests { retry_after: 3 }, 429, "TooManyRequests"),
        (Answer::Internal, 500, "InternalError"),
        (Answer::Unavailable, 503, "ServiceUnavailable"),
    ] {
        let faults = Faults::seeded(1).with(Rule::new(Action::Answer(answer)));
        let response = ask(&faults, &server, "PUT", NODE).await.unwrap();
        assert_eq!(response.status().as_u16(), code);
        let retry = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(retry.as_deref(), (code == 429).then_some("3"), "{code}");
        let status: Value = serde_json::from_str(&text(response).await).unwrap();
        assert_eq!((&status["kind"], &status["reason"]), (&"Status".into(), &reason.into()));
        if code == 409 {
            assert_eq!(status["details"], serde_json::json!({ "name": "n1", "kind": "nodes" }));
        }
        if code == 429 {
            assert_eq!(status["details"]["retryAfterSeconds"], 3);
        }
    }
    assert_eq!(server.handled.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn delays_add_up_before_the_rule_that_decides() {
    let faults = Faults::seeded(1)
        .with(Rule::new(Action::Delay(Duration::from_secs(2))))
        .with(Rule::new(Action::Delay(Duration::from_secs(3))))
        .with(Rule::new(Action::Answer(Answer::Internal)))
        .with(Rule::new(Action::Delay(Duration::from_mins(1))));
    let started = tokio::time::Instant::now();
    let response = ask(&faults, &Server::default(), "GET", NODE).await.unwrap();
    assert_eq!(response.status().as_u16(), 500);
    assert_eq!(started.elapsed(), Duration::from_secs(5), "rules after the deciding one do nothing");
}

#[tokio::test]
async fn a_watch_is_cut_between_events() {
    for (after, delivered) in
        [(0, ""), (1, "e1\n"), (2, "e1\ne2\n"), (3, "e1\ne2\ne3\n"), (4, "e1\ne2\ne3\ne4\n")]
    {
        let faults = Faults::seeded(1).with(Rule::new(Action::CutWatch { after }));
        let response = ask(&faults, &Server::default(), "GET", WATCH).await.unwrap();
        assert_eq!(text(response).await, delivered);
    }
}

#[tokio::test]
async fn an_expired_watch_says_so_and_ends() {
    let faults = Faults::seeded(1).with(Rule::new(Action::ExpireWatch { after: 1 }));
    let body = text(ask(&faults, &Server::default(), "GET", WATCH).await.unwrap()).await;
    let (first, rest) = body.split_once('\n').unwrap();
    assert_eq!(first, "e1");
    let event: Value = serde_json::from_str(rest).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&"ERROR".into(), &410.into()));
}

#[tokio::test]
async fn a_stalled_watch_stays_open_and_silent() {
    let faults = Faults::seeded(1).with(Rule::new(Action::StallWatch { after: 2 }));
    let response = ask(&faults, &Server::default(), "GET", WATCH).await.unwrap();
    let mut stream = response.into_body().into_data_stream();
    assert_eq!(stream.next().await.unwrap().unwrap(), "e1\ne");
    assert_eq!(stream.next().await.unwrap().unwrap(), "2\n");
    assert!(stream.next().now_or_never().is_none(), "neither an event nor the end");
}

#[tokio::test]
async fn watch_faults_leave_other_requests_alone() {
    let faults = Faults::seeded(1).with(Rule::new(Action::CutWatch { after: 0 }));
    let response = ask(&faults, &Server::default(), "GET", "/api/v1/nodes").await.unwrap();
    assert_eq!(text(response).await, "fine");
    assert!(faults.log().is_empty());
}

#[tokio::test]
async fn the_same_seed_and_order_give_the_same_faults() {
    let run = async |seed| {
        let faults = Faults::seeded(seed)
            .with(Rule::new(Action::DropRequest).verb("get").chance(0.3))
            .with(Rule::new(Action::Answer(Answer::Conflict)).verb("update").chance(0.5))
            .with(Rule::new(Action::DropAnswer).path("/api/v1/nodes/*").every(7));
        for turn in 0..200 {
            let method = if turn % 3 == 0 { "PUT" } else { "GET" };
            let _ = ask(&faults, &Server::default(), method, NODE).await;
        }
        faults.log()
    };
    let (first, again, other) = (run(5).await, run(5).await, run(6).await);
    assert!(first.len() > 50, "{} faults in 200 requests", first.len());
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[tokio::test]
async fn the_log_tells_what_hit_which_request() {
    let server = Server::default();
    let faults = Faults::seeded(1).with(Rule::new(Action::DropRequest).verb("delete").first(1));
    let _ = ask(&faults, &server, "GET", NODE).await;
    let _ = ask(&faults, &server, "DELETE", NODE).await;
    let _ = ask(&faults, &server, "DELETE", NODE).await;
    let expected =
        Injected { request: 1, verb: "delete", path: NODE.to_owned(), rule: 0, action: Action::DropRequest };
    assert_eq!(faults.log(), std::slice::from_ref(&expected));
    faults.clear();
    let _ = ask(&faults, &server, "DELETE", NODE).await;
    assert_eq!(faults.log(), [expected], "without rules nothing happens, and the log stays");
}

#[tokio::test]
async fn without_a_connection_requests_fail_and_watches_break() {
    let server = Server::default();
    let stall = Rule::new(Action::StallWatch { after: 0 }).nth(2);
    let faults = Faults::seeded(1).with(stall);
    let mut open = ask(&faults, &server, "GET", WATCH).await.unwrap().into_body().into_data_stream();
    assert_eq!(open.next().await.unwrap().unwrap(), "e1\ne", "it was open before");
    let mut stalled = ask(&faults, &server, "GET", WATCH).await.unwrap().into_body().into_data_stream();
    assert!(stalled.next().now_or_never().is_none());
    faults.disconnect();
    for watch in [&mut open, &mut stalled] {
        assert!(watch.next().await.unwrap().is_err(), "not a clean end");
        assert!(watch.next().await.is_none());
    }
    let error = ask(&faults, &server, "GET", NODE).await.unwrap_err();
    assert_eq!(error.downcast_ref::<Dropped>(), Some(&Dropped::Request));
    assert_eq!(server.handled.load(Ordering::Relaxed), 2, "the two watches before");
    faults.reconnect();
    assert_eq!(text(ask(&faults, &server, "GET", NODE).await.unwrap()).await, "fine");
    assert_eq!(faults.log().len(), 1, "only the stall is a fault of a rule");
}
