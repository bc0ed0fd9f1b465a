//! How does another scheduler ask about load? By kube-scheduler's extender API, version 1, over HTTP.
//!
//! Requests are read where they arrive and handed to the one task that knows the cluster, which answers them in turn
//! (`State::answer`); what it answered is written where it was asked. Nobody waits in an endless line: who finds it full
//! is told so.
//!
//! | what is wrong | answer |
//! |---|---|
//! | `filter`, `bind`: the request cannot be read, not everything is known yet, too many ask | 200 with `Error` |
//! | `prioritize`, `preempt`: the request cannot be read | 400 |
//! | `prioritize`, `preempt`: not everything is known yet, too many ask | 503 |
//! | another one leads | as if not everything were known: it does not know who is on the way by the answers of the other |
//! | more than [`LARGEST`] bytes | 413 |
//! | another path; another method than `POST` | 404; 405 |
//!
//! Whatever is not 200, or has an `Error`, fails the cycle of one pod, which is tried again; an extender that is
//! `ignorable` is passed over instead. Why is in the log of kube-scheduler only where the contract has a place for it.

mod bodies;
mod memory;
mod metrics;
mod server;

pub use server::LARGEST;

use super::execute::Executor;
use super::state::State;
use crate::cluster::lease::Leadership;
use crate::ctx::Ctx;
use crate::serve::{self, Limits, Listening};
use bodies::Bodies;
use loadline_api::extender::Names;
use loadline_api::pod::Pod;
use loadline_core::cluster::{Keep, Told, Verdict};
use loadline_core::object::Meta;
use memory::Memory;
use metrics::Metrics;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long a connection of HTTP/1 is kept without a question. kube-scheduler gives up its own after ninety seconds; were we the
/// first, a question it sends at that moment would be lost, as it does not send one twice.
const KEPT: Duration = Duration::from_mins(5);
/// Requests that wait for their turn; more are refused.
const WAITING: usize = 256;

/// How another scheduler is served.
#[derive(Debug)]
pub struct Options {
    pub listening: Listening,
    /// Which nodes `filter` tells: the best alone where nobody asks to prioritize.
    pub keep: Keep,
    /// How long a pod is taken to be on its way if nothing is heard of it.
    pub reserve_for: Duration,
}

/// Nothing is answered before everything has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotReady;

/// Where an answer goes.
type Reply<T> = oneshot::Sender<Result<T, NotReady>>;

/// What is asked of the one who knows.
#[derive(Debug)]
pub(super) enum Ask {
    /// Which of these nodes will do?
    Filter {
        pod: Box<Pod>,
        names: Names,
        keep: Keep,
        reserve_for: Duration,
        reply: Reply<(Names, Vec<Verdict>, Option<Told>)>,
    },
    /// How good are the nodes that a pod, by uid, was told in that answer? `None` where they have to be named.
    Again { pod: Arc<str>, told: Told, reply: Reply<Option<Vec<u8>>> },
    /// How good are they?
    Prioritize { pod: Box<Pod>, names: Names, reserve_for: Duration, reply: Reply<(Names, Vec<u8>)> },
    /// Which of these nodes would do once these pods, by uid, have left them?
    Preempt { pod: Box<Pod>, victims: BTreeMap<String, Vec<String>>, reply: Reply<Vec<String>> },
    /// The pod is about to be bound there; its object, where it was read for this.
    Reserve { pod: Meta, object: Option<Box<Pod>>, node: String, reply: Reply<Reserved> },
    /// It was not.
    Unreserve { pod: Meta },
}

/// Is a pod charged to the node it is about to be bound to?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reserved {
    Charged,
    /// The pod is not known: nobody asked about it of late.
    UnknownPod,
    UnknownNode,
}

/// What has been asked.
#[derive(Debug)]
pub(super) struct Asks {
    receiver: mpsc::Receiver<Ask>,
    metrics: Metrics,
    /// Without a server it is kept so that nobody takes the end of the questions for one.
    kept: Option<mpsc::Sender<Ask>>,
    serving: Option<JoinHandle<()>>,
}

/// Begins to serve, if wanted.
pub(super) fn start(
    ctx: &Ctx,
    options: Option<Options>,
    executor: &Executor,
    leadership: &Leadership,
) -> Asks {
    let (sender, receiver) = mpsc::channel(WAITING);
    let metrics = Metrics::default();
    let Some(Options { listening, keep, reserve_for }) = options else {
        return Asks { receiver, metrics, kept: Some(sender), serving: None };
    };
    metrics.register(ctx);
    tracing::info!(address = %listening.address(), ?keep, ?reserve_for, "extender listening");
    let server = server::Server {
        asks: sender,
        keep,
        reserve_for,
        executor: executor.clone(),
        leadership: leadership.clone(),
        metrics: metrics.clone(),
        bodies: Bodies::default(),
        memory: Memory::default(),
        binding: Mutex::default(),
    };
    let router = server::router(Arc::new(server));
    let listening = listening.limited(Limits { head: KEPT, ..Limits::default() });
    let serving = tokio::spawn(serve::run(listening, router, ctx.stop.clone()));
    Asks { receiver, metrics, kept: None, serving: Some(serving) }
}

impl Asks {
    /// Waits for questions. Without a server, or after its end, for ever.
    pub async fn receive(&mut self, into: &mut Vec<Ask>) {
        if self.kept.is_some() || self.receiver.recv_many(into, WAITING).await == 0 {
            std::future::pending::<()>().await;
        }
    }

    /// How many pods may be about to arrive.
    pub fn tell(&self, state: &State) {
        if self.serving.is_some() {
            self.metrics.tentative.set(i64::try_from(state.tentative()).unwrap_or(i64::MAX));
        }
    }

    /// Waits for the server, which has been told to end; questions still waiting are not answered any more.
    pub async fn end(self) {
        drop(self.receiver);
        if let Some(serving) = self.serving {
            let _ = serving.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Connection, Recorder, Writer};
    use crate::scheduler;
    use http::Request;
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::io::{Read as _, Write as _};
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt as _;

    async fn post(address: SocketAddr, path: &str, body: &Value) -> (u16, String) {
        let body = body.to_string();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.trim_end().to_owned())
    }

    /// Without an API server.
    fn alone() -> Executor {
        let nobody = tower::service_fn(|_: Request<Body>| async {
            Err::<http::Response<Body>, _>(std::io::Error::other("nobody is there"))
        });
        let writer = Writer::new(Connection::new(Client::new(nobody, "default")), "test");
        let (events, _) =
            Recorder::new(writer.clone(), "loadline-scheduler", "test", CancellationToken::new());
        Executor { writer, metrics: scheduler::Metrics::default(), events }
    }

    #[tokio::test]
    async fn who_sends_more_than_there_is_room_for_is_told_so_in_the_words_of_the_contract() {
        let (asks, _receiver) = mpsc::channel(1);
        let server = server::Server {
            asks,
            keep: Keep::All,
            reserve_for: Duration::from_mins(1),
            executor: alone(),
            leadership: Leadership::always(),
            metrics: Metrics::default(),
            bodies: Bodies::of(5),
            memory: Memory::default(),
            binding: Mutex::default(),
        };
        let router = server::router(Arc::new(server));
        let table = [
            ("/filter", "123456", 200, "\"Error\":\"too many requests at once\""),
            ("/prioritize", "123456", 503, "too many requests at once"),
            ("/prioritize", "12345", 400, "the request cannot be read"),
        ];
        for (path, body, status, text) in table {
            let request = Request::post(path).body(axum::body::Body::from(body)).unwrap();
            let answer = router.clone().oneshot(request).await.unwrap();
            let got = answer.status();
            let told = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            let told = String::from_utf8_lossy(&told);
            assert!(got == status && told.contains(text), "{path} {body}: {got} {told}");
        }
    }

    /// While a thread of the test waits, time stands still but for what the test says.
    #[tokio::test(start_paused = true)]
    async fn a_connection_is_kept_for_longer_than_kube_scheduler_keeps_it() {
        let ctx = Ctx::new("test", CancellationToken::new());
        let listening = serve::listen(([127, 0, 0, 1], 0).into(), None, false).await.unwrap();
        let address = listening.address();
        let options = Options { listening, keep: Keep::All, reserve_for: Duration::from_mins(1) };
        let asks = start(&ctx, Some(options), &alone(), &Leadership::always());
        let (answered, first) = oneshot::channel();
        let (go_on, wait) = std::sync::mpsc::channel();
        let asker = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            // It needs no thought, and nobody is there to think.
            let mut ask = || {
                stream.write_all(b"GET /filter HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
                let mut answer = Vec::new();
                let mut part = [0; 4096];
                while !answer.ends_with(b"only POST is understood here\n") {
                    let count = stream.read(&mut part).unwrap();
                    if count == 0 {
                        return false;
                    }
                    answer.extend_from_slice(&part[..count]);
                }
                answer.starts_with(b"HTTP/1.1 405")
            };
            answered.send(ask()).unwrap();
            wait.recv().unwrap();
            ask()
        });
        assert!(first.await.unwrap());
        tokio::time::advance(Duration::from_secs(90)).await;
        go_on.send(()).unwrap();
        assert!(asker.await.unwrap(), "the same connection is answered again");
        ctx.stop.cancel();
        asks.end().await;
    }

    #[tokio::test]
    async fn who_finds_the_line_full_is_told_so_at_once_in_the_words_of_the_contract() {
        let executor = alone();
        let ctx = Ctx::new("test", CancellationToken::new());
        let listening = serve::listen(([127, 0, 0, 1], 0).into(), None, false).await.unwrap();
        let address = listening.address();
        let options = Options { listening, keep: Keep::All, reserve_for: Duration::from_mins(1) };
        let mut asks = start(&ctx, Some(options), &executor, &Leadership::always());

        let pod = json!({"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}});
        let asked = json!({"Pod": pod, "NodeNames": ["n"]});
        let waiting: Vec<_> = (0..WAITING)
            .map(|_| {
                let asked = asked.clone();
                tokio::spawn(async move { post(address, "/filter", &asked).await })
            })
            .collect();
        while asks.receiver.len() < WAITING {
            tokio::task::yield_now().await;
        }
        let bind = json!({"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n"});
        let busy = "too many requests at once";
        let table = [
            (
                "/filter",
                &asked,
                200,
                format!(
                    "\"NodeNames\":null,\"FailedNodes\":{{}},\"FailedAndUnresolvableNodes\":{{}},\"Error\":\"{busy}\""
                ),
            ),
            ("/prioritize", &asked, 503, busy.to_owned()),
            ("/preempt", &asked, 503, busy.to_owned()),
            ("/bind", &bind, 200, format!("{{\"Error\":\"{busy}\"}}")),
        ];
        for (path, body, status, text) in table {
            let (got, answer) = post(address, path, body).await;
            assert!(got == status && answer.contains(&text), "{path}: {got} {answer}");
        }
        assert_eq!(asks.receiver.len(), WAITING, "nobody slipped in");
        // One is taken: there is room for one more, which waits like the others.
        let Some(Ask::Filter { reply, .. }) = asks.receiver.recv().await else { panic!("a question") };
        let _ = reply.send(Err(NotReady));
        let next = tokio::spawn(async move { post(address, "/filter", &asked).await });
        while asks.receiver.len() < WAITING {
            tokio::task::yield_now().await;
        }
        assert!(!next.is_finished());
        ctx.stop.cancel();
        asks.end().await;
        for answer in waiting {
            let (status, answer) = answer.await.unwrap();
            assert!(
                status == 200 && answer.contains("\"Error\":\"loadline is "),
                "each got an answer: {answer}"
            );
        }
    }
}
