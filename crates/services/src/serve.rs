//! How is something served? One way for every service: TLS, limits, an orderly end.
//!
//! [`listen`] binds an address and fails in one line if it may not or cannot; [`run`] serves a router there until told
//! to stop. Requests under way are then answered; who takes longer than [`Limits::grace`] is cut off. Whoever answers
//! with a stream that has no end of its own looks for [`Stopping`] among the extensions of the request; who asks is there, too
//! ([`local::Peer`]).

pub mod authorize;
mod certificates;
pub mod local;
mod patience;
pub mod probes;
pub mod process;

pub use certificates::{Certificates, Clients, Tls};

use axum::body::Body;
use axum::{Extension, Router};
use http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use local::Peer;
use patience::{Answer, Timely, UnderWay};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{ServiceExt as _, service_fn};
use tracing::{debug, error, warn};

/// Why something cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Beyond loopback, everybody could read along.
    #[error(
        "refusing to listen on {0} without TLS: give a certificate and a key, listen on 127.0.0.1, or allow \
         plaintext explicitly"
    )]
    Plaintext(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Address asked for.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// A certificate or key cannot be used.
    #[error("{}: {problem}", file.display())]
    Certificate {
        file: PathBuf,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
}

/// How much is served at once, and how long is waited for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; others wait to be accepted.
    pub connections: usize,
    /// Requests at once on one connection.
    pub streams: u32,
    /// From a connection to its first request, with the handshake of TLS.
    pub handshake: Duration,
    /// From the last answer on a connection to the head of the next request, where HTTP/1 is spoken. A client that sends one just
    /// as this ends may take it for lost: whose clients keep connections gives them longer than they keep them.
    pub head: Duration,
    /// From the head of a request to the end of its body.
    pub body: Duration,
    /// From the last answer on a connection to the next request, where HTTP/2 is spoken.
    pub idle: Duration,
    /// From being told to stop to the end.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            streams: 256,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_mins(5),
            grace: Duration::from_secs(10),
        }
    }
}

/// Among the extensions of every request: ends when the server is told to stop.
#[derive(Clone, Debug)]
pub struct Stopping(pub CancellationToken);

/// Among the extensions of a request where somebody says so: the end is near, and others are to be asked. It comes before
/// [`Stopping`].
#[derive(Clone, Debug)]
pub struct Leaving(pub CancellationToken);

/// A bound address, not yet served. It is known, so that it can be told to others first.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    certificates: Option<Arc<Certificates>>,
    limits: Limits,
}

/// Binds an address; port 0 picks a free one. Without TLS, only loopback is served unless `plaintext` says that
/// everybody may read along.
///
/// # Errors
/// When plaintext is not allowed there, a certificate cannot be used, or the address cannot be had.
pub async fn listen(address: SocketAddr, tls: Option<Tls>, plaintext: bool) -> Result<Listening, Error> {
    if tls.is_none() && !plaintext && !address.ip().is_loopback() {
        return Err(Error::Plaintext(address));
    }
    let certificates = tls.map(Certificates::load).transpose()?.map(Arc::new);
    let bind = |source| Error::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let address = listener.local_addr().map_err(bind)?;
    Ok(Listening { listener, address, certificates, limits: Limits::default() })
}

impl Listening {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificates it serves with; `None` for plaintext.
    #[must_use]
    pub fn certificates(&self) -> Option<Arc<Certificates>> {
        self.certificates.clone()
    }

    /// The same with other limits.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

/// Serves until told to stop, or until the listener breaks, which is logged; what has been asked by then is answered,
/// within bounds.
pub async fn run(listening: Listening, router: Router, stop: CancellationToken) {
    let Listening { listener, address, certificates, limits } = listening;
    // A broken listener ends the rest of this server, too, and nobody else's.
    let stop = stop.child_token();
    // What is cut off when patience ends.
    let cut = CancellationToken::new();
    let _cut_at_the_latest = cut.clone().drop_guard();
    let tasks = TaskTracker::new();
    if let Some(certificates) = certificates.clone() {
        tasks.spawn(stop.clone().run_until_cancelled_owned(async move { certificates.follow().await }));
    }
    let server = Arc::new(Server {
        router: router.layer(Extension(Stopping(stop.clone()))),
        certificates,
        limits,
        stop: stop.clone(),
    });
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        let next = async {
            // The semaphore is never closed.
            let place = places.clone().acquire_owned().await.ok();
            (place, listener.accept().await)
        };
        let Some((place, accepted)) = stop.run_until_cancelled(next).await else { break };
        match accepted {
            Ok((stream, peer)) => {
                let (server, cut) = (server.clone(), cut.clone());
                tasks.spawn(async move {
                    let _place = place;
                    if let Some(Err(error)) =
                        cut.run_until_cancelled(server.connection(stream, Peer(peer))).await
                    {
                        debug!(%peer, error, "connection ended");
                    }
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                error!(%address, %error, "cannot accept connections any more");
                stop.cancel();
            }
            Err(error) => {
                // Often there are too many open files: trying again at once would only burn time.
                warn!(%error, "cannot accept a connection");
                let _ = timeout(Duration::from_millis(100), stop.cancelled()).await;
            }
        }
    }
    drop(listener);
    tasks.close();
    if timeout(limits.grace, tasks.wait()).await.is_err() {
        warn!(connections = tasks.len(), "cutting off connections that did not end in time");
        cut.cancel();
        tasks.wait().await;
    }
}

struct Server {
    router: Router,
    certificates: Option<Arc<Certificates>>,
    limits: Limits,
    stop: CancellationToken,
}

impl Server {
    async fn connection(&self, stream: TcpStream, peer: Peer) -> Result<(), String> {
        // Answers are small and wanted now.
        let _ = stream.set_nodelay(true);
        let first = Instant::now() + self.limits.handshake;
        if let Some(certificates) = &self.certificates {
            let handshake = timeout_at(first, certificates.acceptor().accept(stream)).await;
            let stream = handshake.map_err(|_| late())?.map_err(|error| error.to_string())?;
            self.requests(stream, peer, first).await
        } else {
            self.requests(stream, peer, first).await
        }
    }

    async fn requests(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
        first: Instant,
    ) -> Result<(), String> {
        let Limits { streams, handshake, head, body, idle, .. } = self.limits;
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(head);
        // A peer that is gone without a word is noticed.
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(streams)
            .keep_alive_interval(Duration::from_mins(1))
            .keep_alive_timeout(Duration::from_secs(20));
        let under_way = UnderWay::default();
        let (router, answering) = (self.router.clone(), under_way.clone());
        let service = service_fn(move |request: Request<_>| {
            let answering = answering.begin();
            let by = Instant::now() + body;
            let mut request = request.map(|body| Body::new(Timely::new(body, by)));
            request.extensions_mut().insert(peer);
            let answer = router.clone().oneshot(request);
            async move { answer.await.map(|answer| answer.map(|body| Answer::new(body, answering))) }
        });
        let service = TowerToHyperService::new(service);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = under_way.none(first, idle) => {
                // Over HTTP/2 the peer is told first: what it has sent by then is answered.
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = under_way.none(Instant::now() + handshake, handshake) => return Err(late()),
                }
            }
        };
        ended.map_err(|error| error.to_string())
    }
}

fn late() -> String {
    "nothing came in time".to_owned()
}
