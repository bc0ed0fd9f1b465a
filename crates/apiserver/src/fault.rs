//! What does a client do when the API server misbehaves?
//!
//! A tower layer in front of a server that breaks requests by rule. Which request is hit follows from the seed and
//! the order of requests alone, never from a clock or from scheduling, so a failing run can be repeated.
//!
//! ```
//! use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
//!
//! let faults = Faults::seeded(7)
//!     .with(Rule::new(Action::Answer(Answer::Conflict)).verb("update").path("/api/v1/nodes/*").nth(2))
//!     .with(Rule::new(Action::CutWatch { after: 3 }).path("/api/v1/**").chance(0.5));
//! // tower::ServiceBuilder::new().layer(faults.clone()).service(server)
//! assert!(faults.log().is_empty());
//! ```
//!
//! A dropped request is an `Err` of the service. Called in process, the client sees it as a transport error. Behind
//! [`Listening::with_faults`](crate::listen::Listening::with_faults) it ends an HTTP/1 connection without an answer and
//! resets an HTTP/2 stream.
//!
//! | question | module |
//! |---|---|
//! | which requests does a rule hit? | `rule` |
//! | how does a watch go wrong in the middle? | `watch` |

mod rule;
mod watch;

#[cfg(test)]
mod tests;

pub use rule::Rule;

use crate::ending::{End, until};
use crate::status::{Details, Status, Subject};
use axum::body::Body;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use rule::Call;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Layer, Service};

/// What happens to a request that a rule hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It waits first (in tokio's time), and later rules may still hit it.
    Delay(Duration),
    /// It never reaches the server.
    DropRequest,
    /// The server handles it, but the answer is lost: a write happened, and the client cannot know.
    DropAnswer,
    /// The server handles it at once, and the answer comes so much later: whoever waits less long cannot know.
    DelayAnswer(Duration),
    /// The server handles it, and there never is an answer, nor a word that there will be none.
    Hang,
    /// It is answered with a failure and never reaches the server.
    Answer(Answer),
    /// A watch ends cleanly after this many events, as servers do now and then.
    CutWatch {
        /// Events delivered before.
        after: usize,
    },
    /// A watch stays open after this many events but delivers nothing more, as behind a lost connection.
    StallWatch {
        /// Events delivered before.
        after: usize,
    },
    /// A watch reports after this many events that it cannot go on from its revision (410), and ends.
    ExpireWatch {
        /// Events delivered before.
        after: usize,
    },
}

impl Action {
    fn needs_watch(self) -> bool {
        matches!(self, Self::CutWatch { .. } | Self::StallWatch { .. } | Self::ExpireWatch { .. })
    }
}

/// A failure in place of the server's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// 403: the account may not.
    Forbidden,
    /// 409: somebody else changed the object.
    Conflict,
    /// 410: the revision asked for is gone.
    Expired,
    /// 429 with `Retry-After`.
    TooManyRequests {
        /// Seconds to wait.
        retry_after: u32,
    },
    /// 500.
    Internal,
    /// 503.
    Unavailable,
}

impl Answer {
    fn status(self, call: &Call) -> Status {
        match self {
            Self::Forbidden => {
                let subject = Subject { group: &call.group, resource: &call.resource, kind: "" };
                Status::forbidden(subject, &call.name, "the account may not")
            }
            Self::Conflict => {
                let subject = Subject { group: &call.group, resource: &call.resource, kind: "" };
                Status::modified(subject, &call.name)
            }
            Self::Expired => Status::expired(EXPIRED),
            Self::TooManyRequests { retry_after } => {
                let mut status =
                    Status::new(429, "TooManyRequests", "too many requests, please try again later");
                status.details =
                    Some(Box::new(Details { retry_after_seconds: Some(retry_after), ..Details::default() }));
                status
            }
            Self::Internal => Status::internal("injected fault"),
            Self::Unavailable => {
                Status::new(503, "ServiceUnavailable", "the server is currently unable to handle the request")
            }
        }
    }

    fn response(self, call: &Call) -> Response<Body> {
        let status = self.status(call);
        let mut response = Response::new(Body::from(status.to_json().to_string()));
        *response.status_mut() =
            http::StatusCode::from_u16(status.code).expect("codes of this enum are valid HTTP codes");
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        if let Self::TooManyRequests { retry_after } = self {
            headers.insert(http::header::RETRY_AFTER, retry_after.into());
        }
        response
    }
}

const EXPIRED: &str = "The provided resource version is no longer available: injected fault";

/// Why a request got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// It was lost on the way to the server.
    #[error("injected fault: the request was dropped before the server saw it")]
    Request,
    /// The answer was lost on the way back.
    #[error("injected fault: the answer was dropped, the server has handled the request")]
    Answer,
}

/// One fault that was injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injected {
    /// Number of the request, counted from 0 over all requests.
    pub request: u64,
    /// Its verb in Kubernetes' words.
    pub verb: &'static str,
    /// Its path.
    pub path: String,
    /// Place of the rule that hit it.
    pub rule: usize,
    /// What was done.
    pub action: Action,
}

/// The rules, and what they did so far. Clones share both.
#[derive(Debug, Clone)]
pub struct Faults {
    seed: u64,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    /// Per rule, how many requests have matched it.
    matched: Vec<u64>,
    requests: u64,
    log: Vec<Injected>,
    /// The connection between clients and server; cancelled while there is none.
    connection: CancellationToken,
}

impl Faults {
    /// No faults yet; `seed` decides every [`Rule::chance`].
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { seed, state: Arc::default() }
    }

    /// Adds a rule. Rules are asked in order; the first that hits decides, and delays add up on the way.
    #[must_use]
    pub fn with(self, rule: Rule) -> Self {
        self.add(rule);
        self
    }

    /// Adds a rule while requests are running.
    pub fn add(&self, rule: Rule) {
        let mut state = self.lock();
        state.rules.push(rule);
        state.matched.push(0);
    }

    /// Removes every rule, so that a test can watch things recover. The log stays.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.rules.clear();
        state.matched.clear();
    }

    /// Cuts the connection to the server, for clients in the same process that have no socket to lose: every request
    /// fails with [`Dropped::Request`] and open watches break. Requests lost this way are not logged.
    pub fn disconnect(&self) {
        self.lock().connection.cancel();
    }

    /// Lets requests through again after [`Faults::disconnect`].
    pub fn reconnect(&self) {
        let mut state = self.lock();
        if state.connection.is_cancelled() {
            state.connection = CancellationToken::new();
        }
    }

    /// What was injected so far, in order of requests.
    #[must_use]
    pub fn log(&self) -> Vec<Injected> {
        self.lock().log.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic elsewhere cannot leave counters half-written, so a poisoned lock is still good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about one request, in the order in which requests come in.
    fn decide(&self, call: &Call) -> (Duration, Option<Action>) {
        let mut state = self.lock();
        let State { rules, matched, requests, log, .. } = &mut *state;
        let request = *requests;
        *requests += 1;
        let (mut delay, mut decided) = (Duration::ZERO, None);
        for (index, (rule, matched)) in rules.iter().zip(matched).enumerate() {
            if !rule.matches(call) {
                continue;
            }
            let turn = *matched;
            *matched += 1;
            if decided.is_some() || !rule.fires(self.seed, index, turn) {
                continue;
            }
            match rule.action {
                Action::Delay(time) => delay += time,
                action => decided = Some(action),
            }
            log.push(Injected {
                request,
                verb: call.verb,
                path: call.path.clone(),
                rule: index,
                action: rule.action,
            });
        }
        (delay, decided)
    }
}

impl<S> Layer<S> for Faults {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Faulty { faults: self.clone(), inner }
    }
}

/// A server behind [`Faults`].
#[derive(Debug, Clone)]
pub struct Faulty<S> {
    faults: Faults,
    inner: S,
}

impl<S, B> Service<Request<B>> for Faulty<S>
where
    S: Service<Request<B>, Response = Response<Body>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let connection = self.faults.lock().connection.clone();
        if connection.is_cancelled() {
            return std::future::ready(Err(Dropped::Request.into())).boxed();
        }
        let call = Call::of(request.method(), request.uri());
        let (delay, action) = self.faults.decide(&call);
        // The clone takes the place of the service that was polled ready, which goes with the request.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            match action {
                Some(Action::DropRequest) => return Err(Dropped::Request.into()),
                Some(Action::Answer(answer)) => return Ok(answer.response(&call)),
                _ => {}
            }
            let response = inner.call(request).await.map_err(Into::into)?;
            if connection.is_cancelled() {
                return Err(Dropped::Answer.into());
            }
            let response = match action {
                Some(Action::DropAnswer) => return Err(Dropped::Answer.into()),
                Some(Action::Hang) => return std::future::pending().await,
                Some(Action::DelayAnswer(time)) => {
                    tokio::time::sleep(time).await;
                    response
                }
                Some(action) if action.needs_watch() => watch::disturb(response, action),
                _ => response,
            };
            match call.verb {
                "watch" => Ok(response.map(|body| until(body, &connection, End::Break))),
                _ => Ok(response),
            }
        }
        .boxed()
    }
}
