//! How is one request sent, and what became of it?
//!
//! Every request to an API server goes through [`Connection::call`] or [`Connection::stream`]: it has a deadline, waits for
//! its turn where too many are under way, is counted by verb, resource and outcome, and is never sent twice. What the
//! server answers other than "done" is a [`Failure`], which says enough for the caller to decide: try again, when, or not;
//! and whether the request may have been carried out all the same.

mod busy;
mod calls;
mod failure;
mod media;
mod record;
mod rest;

pub use calls::{Call, Calls, Outcome, Verb};
pub use failure::{Cause, Failure};
pub use media::Media;
pub use record::FOLDER as RECORD_FOLDER;
pub use rest::Rest;

use crate::cluster::Resource;
use crate::cluster::backoff::by_chance;
use busy::Busy;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// Requests under way at once, streams not counted. kube-apiserver shares 600 among everybody.
const IN_FLIGHT: usize = 64;
/// The largest answer that is read, in bytes; etcd takes no object above 1.5 MiB, and a page has 500.
const LARGEST: usize = 1 << 30;

/// What is asked of the server, without where.
#[derive(Clone, Debug)]
pub struct Ask {
    pub call: Call,
    pub method: Method,
    /// With query.
    pub path: String,
    pub content_type: &'static str,
    /// What the answer may be in; JSON it may be always.
    pub accept: Media,
    pub body: Vec<u8>,
}

impl Ask {
    /// A question that changes nothing.
    #[must_use]
    pub fn read(verb: Verb, resource: Resource, path: String) -> Self {
        Self {
            call: Call { verb, resource, subresource: "" },
            method: Method::GET,
            path,
            content_type: "application/json",
            accept: Media::Json,
            body: Vec::new(),
        }
    }

    /// The same, to be answered in this if the server can.
    #[must_use]
    pub fn accept(self, accept: Media) -> Self {
        Self { accept, ..self }
    }
}

/// A way to one API server. Clones share their limits and counters.
#[derive(Clone)]
pub struct Connection {
    client: Client,
    places: Arc<Semaphore>,
    calls: Calls,
    rest: Rest,
    busy: Busy,
    /// Who asks, for whoever reads the server's audit log.
    agent: HeaderValue,
    /// The component, if it is one.
    component: Option<&'static str>,
    /// Can what is sent this way wait for others?
    yields: bool,
    /// What pauses between tries are spread by.
    seed: u64,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

impl Connection {
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::counted(client, Calls::default())
    }

    /// The same, counting into counters that are there already.
    #[must_use]
    pub fn counted(client: Client, calls: Calls) -> Self {
        let places = Arc::new(Semaphore::new(IN_FLIGHT));
        let agent = HeaderValue::from_static(concat!("loadline/", env!("CARGO_PKG_VERSION")));
        let busy = Busy::default();
        let rest = Rest::default();
        Self { client, places, calls, rest, busy, agent, component: None, yields: false, seed: by_chance() }
    }

    /// The same way, for a component of that name: so it is called in the server's audit log, and so its requests are
    /// recorded (see [`RECORD_FOLDER`]).
    #[must_use]
    pub fn named(self, component: &'static str) -> Self {
        let agent = format!("{component}/{}", env!("CARGO_PKG_VERSION"));
        let agent = HeaderValue::try_from(agent).unwrap_or(self.agent);
        Self { agent, component: Some(component), ..self }
    }

    /// For the same component, counted together, with limits of its own: what is sent this way waits behind nothing else.
    #[must_use]
    pub fn apart(&self) -> Self {
        let (rest, agent, component) = (self.rest.clone(), self.agent.clone(), self.component);
        Self { rest, agent, component, ..Self::counted(self.client.clone(), self.calls.clone()) }
    }

    /// The same way, with pauses between tries that follow from a seed.
    #[must_use]
    pub fn spread(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// What pauses of one of several kinds of tries are spread by.
    #[must_use]
    pub fn seed(&self, of: &str) -> u64 {
        of.bytes().fold(self.seed, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// The same way, for requests that others need not wait for; see [`Connection::is_busy`].
    #[must_use]
    pub fn yielding(&self) -> Self {
        Self { yields: true, ..self.clone() }
    }

    /// Is a request under way, or waiting for its turn, that does not yield?
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.busy.is()
    }

    /// Waits until none is.
    pub async fn calm(&self) {
        self.busy.over().await;
    }

    /// What has been asked so far, and what became of it.
    #[must_use]
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The same, in the words of Kubernetes' Go client.
    #[must_use]
    pub fn rest(&self) -> &Rest {
        &self.rest
    }

    /// The client behind it.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one request and reads its answer. Never sent again, whatever happens.
    ///
    /// # Errors
    /// What the server said instead, or why nothing was heard of it.
    pub async fn call(&self, ask: Ask, deadline: Duration) -> Result<Bytes, Failure> {
        self.answer(ask, deadline).await.map(Response::into_body)
    }

    /// The same, with the headers of the answer.
    ///
    /// # Errors
    /// What the server said instead, or why nothing was heard of it.
    pub async fn answer(&self, ask: Ask, deadline: Duration) -> Result<Response<Bytes>, Failure> {
        let (call, path, until) = (ask.call, ask.path.clone(), Instant::now() + deadline);
        let _busy = (!self.yields).then(|| self.busy.begin());
        let answer = async {
            // The semaphore is never closed.
            let _place = self.places.acquire().await;
            let response = self.send(ask).await?;
            body(response).await
        };
        let answer = timeout_at(until, answer)
            .await
            .unwrap_or_else(|_| Err((Cause::Timeout, format!("no answer within {deadline:?}"))));
        self.finish(call, path, answer)
    }

    /// Sends a request whose answer has no end; gives its body once it has begun, and what it is in.
    ///
    /// # Errors
    /// What the server said instead, or why nothing was heard of it.
    pub async fn stream(&self, ask: Ask, deadline: Duration) -> Result<(Body, Media), Failure> {
        let (call, path, until) = (ask.call, ask.path.clone(), Instant::now() + deadline);
        let begun = async {
            let response = self.send(ask).await?;
            if response.status().is_success() {
                let media = Media::of(response.headers());
                Ok((response.into_body(), media))
            } else {
                Err(refusal(response).await)
            }
        };
        let begun = timeout_at(until, begun)
            .await
            .unwrap_or_else(|_| Err((Cause::Timeout, format!("no answer within {deadline:?}"))));
        self.finish(call, path, begun)
    }

    /// A write that was not sent, counted.
    pub(super) fn not_leading(&self, call: Call, path: String) -> Failure {
        self.calls.count(call, Outcome::NotLeading);
        Failure { call, path, cause: Cause::NotLeading, message: "somebody else may be leading".to_owned() }
    }

    async fn send(&self, ask: Ask) -> Result<Response<Body>, (Cause, String)> {
        let mut sent = self.rest.begin(&ask.method);
        let request = Request::builder()
            .method(ask.method)
            .uri(ask.path)
            .header(header::ACCEPT, ask.accept.accepted())
            .header(header::CONTENT_TYPE, ask.content_type)
            .header(header::USER_AGENT, self.agent.clone())
            // Streams are read as they come; what is compressed one by one would not be.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::from(ask.body))
            .map_err(|error| (Cause::Malformed, error.to_string()))?;
        let answer = self.client.send(request).await;
        sent.code = answer.as_ref().ok().map(Response::status);
        answer.map_err(|error| (Cause::Unreachable, chain(&error)))
    }

    fn finish<T>(&self, call: Call, path: String, answer: Result<T, (Cause, String)>) -> Result<T, Failure> {
        let outcome = answer.as_ref().map_or_else(|(cause, _)| Outcome::from(*cause), |_| Outcome::Done);
        self.calls.count(call, outcome);
        if let Some(component) = self.component {
            record::note(component, call, &path);
        }
        answer.map_err(|(cause, message)| Failure { call, path, cause, message })
    }
}

async fn body(response: Response<Body>) -> Result<Response<Bytes>, (Cause, String)> {
    if !response.status().is_success() {
        return Err(refusal(response).await);
    }
    let (parts, body) = response.into_parts();
    Ok(Response::from_parts(parts, collect(body).await?))
}

async fn collect(body: Body) -> Result<Bytes, (Cause, String)> {
    let limited = http_body_util::Limited::new(body, LARGEST);
    match limited.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => Err((Cause::Unreachable, format!("the answer broke off: {}", chain(&*error)))),
    }
}

/// The part of a `Status` that says why.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Said {
    message: String,
    reason: String,
    details: Details,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: u64,
    causes: Vec<Why>,
}

/// One of the causes in a `Status`.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Why {
    reason: String,
}

/// The cause of a 429 that is about the pod, and not about how much the server has to do.
const BUDGET: &str = "DisruptionBudget";

/// What the server said instead of doing it.
async fn refusal(response: Response<Body>) -> (Cause, String) {
    let status = response.status();
    let header = response.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
    let text = collect(response.into_body()).await.unwrap_or_default();
    let said: Said = media::status(&text).unwrap_or_default();
    let seconds = header.or(Some(said.details.retry_after_seconds).filter(|seconds| *seconds > 0));
    let is_budget = said.details.causes.iter().any(|why| why.reason == BUDGET);
    let cause = match cause(status, &said.reason, seconds.map(Duration::from_secs)) {
        Cause::TooManyRequests { .. } if is_budget => Cause::Budget,
        cause => cause,
    };
    let message = if said.message.is_empty() { status.to_string() } else { said.message };
    (cause, message)
}

fn cause(status: StatusCode, reason: &str, retry_after: Option<Duration>) -> Cause {
    match status.as_u16() {
        401 => Cause::Unauthorized,
        403 => Cause::Forbidden,
        404 => Cause::NotFound,
        409 if reason == "AlreadyExists" => Cause::AlreadyExists,
        409 => Cause::Conflict,
        410 => Cause::Expired,
        422 => Cause::Invalid,
        429 => Cause::TooManyRequests { retry_after },
        500.. => Cause::Server { code: status.as_u16(), retry_after },
        code => Cause::Rejected { code },
    }
}

/// An error and what is behind it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
