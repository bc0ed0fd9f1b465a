//! One function per verb: read, ask, write.

use super::bodies::{Bodies, Unread};
use super::memory::Memory;
use super::metrics::Metrics;
use super::{Ask, NotReady, Reserved};
use crate::cluster::lease::Leadership;
use crate::scheduler::execute::Executor;
use crate::scheduler::watched::Pods;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use http::{Method, StatusCode, Version, header};
use http_body::Body as _;
use loadline_api::extender::{self as api, Args, BindArgs, PreemptArgs};
use loadline_api::pod::Pod;
use loadline_core::cluster::{Keep, Verdict};
use loadline_core::object::Meta;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The longest request read, in bytes: some thousand whole nodes, any number of names.
pub const LARGEST: usize = 64 << 20;

/// What answering takes.
#[derive(Debug)]
pub(super) struct Server {
    pub asks: mpsc::Sender<Ask>,
    pub keep: Keep,
    pub reserve_for: Duration,
    pub executor: Executor,
    /// Is this the one that is asked?
    pub leadership: Leadership,
    pub metrics: Metrics,
    pub bodies: Bodies,
    pub memory: Memory,
    /// Bindings that are tried, by the pod's uid.
    pub binding: Mutex<BTreeMap<Arc<str>, Tries>>,
}

/// How often a pod is being bound, whether it was charged to a node for that, and whether it has one by now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tries {
    under_way: usize,
    charged: bool,
    has_node: bool,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Filter,
    Prioritize,
    Preempt,
    Bind,
}

impl Verb {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/filter" => Some(Self::Filter),
            "/prioritize" => Some(Self::Prioritize),
            "/preempt" => Some(Self::Preempt),
            "/bind" => Some(Self::Bind),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Prioritize => "prioritize",
            Self::Preempt => "preempt",
            Self::Bind => "bind",
        }
    }

    /// An answer that says why there is none, where the contract has a place for it.
    fn error(self, status: StatusCode, why: &str) -> Answer {
        match self {
            Self::Filter => Answer { told_an_error: true, ..Answer::json(api::filter_error(why)) },
            Self::Bind => Answer { told_an_error: true, ..Answer::json(api::bound(why)) },
            Self::Prioritize | Self::Preempt => Answer::plain(status, why),
        }
    }
}

struct Answer {
    status: StatusCode,
    /// Is there an `Error` in it?
    told_an_error: bool,
    content: &'static str,
    body: Vec<u8>,
}

impl Answer {
    fn json(body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, told_an_error: false, content: "application/json", body }
    }

    fn plain(status: StatusCode, text: &str) -> Self {
        let body = format!("{text}\n").into_bytes();
        Self { status, told_an_error: false, content: "text/plain; charset=utf-8", body }
    }
}

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error(transparent)]
    Unreadable(#[from] api::Error),
    #[error("loadline is still reading the cluster")]
    Reading,
    #[error("too many requests at once")]
    Busy,
    #[error("loadline is ending")]
    Ending,
    #[error("another loadline leads, this one stands by")]
    StandingBy,
    /// A pod was not bound.
    #[error("{0}")]
    Unbound(String),
    /// It was not bound there, and has a node: the watch will say so, or did.
    #[error("{0}")]
    Elsewhere(String),
}

impl Unanswered {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unreadable(_) => StatusCode::BAD_REQUEST,
            Self::Reading
            | Self::Busy
            | Self::Ending
            | Self::StandingBy
            | Self::Unbound(_)
            | Self::Elsewhere(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

pub(super) fn router(server: Arc<Server>) -> Router {
    Router::new().fallback(serve).with_state(server)
}

async fn serve(State(server): State<Arc<Server>>, request: Request) -> http::Response<Body> {
    let begun = Instant::now();
    let verb = Verb::of(request.uri().path());
    // Behind one address for all, the next connection may find the one that leads.
    let closes = !server.leadership.may_write() && request.version() < Version::HTTP_2;
    let answer = match verb {
        None => Answer::plain(StatusCode::NOT_FOUND, "there are /filter, /prioritize, /preempt and /bind"),
        Some(_) if request.method() != Method::POST => {
            Answer::plain(StatusCode::METHOD_NOT_ALLOWED, "only POST is understood here")
        }
        // What says how long it is need not be read to find out.
        Some(_) if request.body().size_hint().lower() > LARGEST as u64 => too_large(),
        Some(verb) => match server.bodies.read(request.into_body()).await {
            // The room is taken until there is an answer.
            Ok((body, _room)) => server.answer(verb, body).await,
            Err(Unread::TooLarge) => too_large(),
            Err(Unread::Busy) => verb.error(Unanswered::Busy.status(), &Unanswered::Busy.to_string()),
            Err(Unread::Broken(error)) => verb.error(StatusCode::BAD_REQUEST, &error.to_string()),
        },
    };
    let Answer { status, told_an_error, content, body } = answer;
    server.metrics.count(verb.map_or("unknown", Verb::name), status, told_an_error, begun.elapsed());
    let mut response = http::Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content));
    if closes {
        response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST"));
    }
    response
}

fn too_large() -> Answer {
    Answer::plain(StatusCode::PAYLOAD_TOO_LARGE, &format!("at most {LARGEST} bytes are read"))
}

impl Server {
    async fn answer(self: &Arc<Self>, verb: Verb, body: Bytes) -> Answer {
        let answered = match verb {
            _ if !self.leadership.may_write() => Err(Unanswered::StandingBy),
            Verb::Filter => self.filter(&body).await,
            Verb::Prioritize => self.prioritize(&body).await,
            Verb::Preempt => self.preempt(&body).await,
            Verb::Bind => self.bind(&body).await,
        };
        answered.map_or_else(
            |why| {
                tracing::debug!(verb = verb.name(), %why, "question not answered");
                verb.error(why.status(), &why.to_string())
            },
            Answer::json,
        )
    }

    async fn filter(&self, body: &[u8]) -> Result<Vec<u8>, Unanswered> {
        let Args { pod, names, form } = api::args(body)?;
        let uid = pod.facts.uid.clone();
        let (pod, keep, reserve_for) = (Box::new(pod), self.keep, self.reserve_for);
        let (names, verdicts, told) =
            self.ask(|reply| Ask::Filter { pod, names, keep, reserve_for, reply }).await?;
        let answer = api::filtered(&form, &names, &verdicts);
        if let Some(told) = told {
            let is_told = |at: usize| verdicts.get(at) == Some(&Verdict::Passes);
            self.memory.keep(body, uid, told, names, is_told);
        }
        Ok(answer)
    }

    async fn prioritize(&self, body: &[u8]) -> Result<Vec<u8>, Unanswered> {
        if let Some((pod, told, names)) = self.memory.take(body)
            && let Some(levels) = self.ask(|reply| Ask::Again { pod, told, reply }).await?
        {
            return Ok(api::prioritized(&names, &levels));
        }
        let Args { pod, names, .. } = api::args(body)?;
        let (pod, reserve_for) = (Box::new(pod), self.reserve_for);
        let (names, levels) = self.ask(|reply| Ask::Prioritize { pod, names, reserve_for, reply }).await?;
        Ok(api::prioritized(&names, &levels))
    }

    async fn preempt(&self, body: &[u8]) -> Result<Vec<u8>, Unanswered> {
        let PreemptArgs { pod, victims } = api::preempt_args(body)?;
        let pod = Box::new(pod);
        // A node nobody has to leave was not meant: kube-scheduler takes it for a mistake of ours.
        let asked = victims.iter().filter(|(_, victims)| !victims.pods.is_empty());
        let asked = asked.map(|(node, victims)| (node.clone(), victims.pods.clone())).collect();
        let kept = self.ask(|reply| Ask::Preempt { pod, victims: asked, reply }).await?;
        let kept = kept.iter().filter_map(|node| Some((node.as_str(), victims.get(node)?)));
        Ok(api::preempted(&kept.collect()))
    }

    async fn bind(self: &Arc<Self>, body: &[u8]) -> Result<Vec<u8>, Unanswered> {
        let BindArgs { pod, node } = api::bind_args(body)?;
        // Whoever asks waits for a few seconds only and is gone then; what was begun is ended all the same.
        let server = self.clone();
        let bound = tokio::spawn(async move { server.bind_there(&pod, &node).await });
        bound.await.map_err(|_| Unanswered::Ending)??;
        Ok(api::bound(""))
    }

    async fn bind_there(&self, pod: &Meta, node: &str) -> Result<(), Unanswered> {
        self.begin(&pod.uid);
        let bound = self.try_bind(pod, node).await;
        self.end(pod, matches!(bound, Ok(()) | Err(Unanswered::Elsewhere(_)))).await;
        bound
    }

    async fn try_bind(&self, pod: &Meta, node: &str) -> Result<(), Unanswered> {
        let mut reserved = self.reserve(pod, None, node).await?;
        if reserved == Reserved::UnknownPod {
            let object = self.read(pod).await?;
            reserved = self.reserve(pod, Some(object), node).await?;
        }
        if reserved != Reserved::Charged {
            return Err(Unanswered::Unbound(format!(
                "pod {} not bound: node {node:?} is not known",
                pod.key
            )));
        }
        self.charged(&pod.uid, true);
        let bound = tokio::select! {
            bound = self.executor.bind_to(pod, node) => bound,
            // The room is nobody's any more.
            () = self.asks.closed() => return Err(Unanswered::Ending),
        };
        bound.map_err(|(error, now)| {
            let why = format!("pod {} not bound to {node}: {error}", pod.key);
            let now = now.as_deref().filter(|(meta, _)| meta.uid == pod.uid);
            let on = now.and_then(|(_, read)| read.as_ref().ok()?.facts.node.as_ref());
            if on.is_some() { Unanswered::Elsewhere(why) } else { Unanswered::Unbound(why) }
        })?;
        self.executor.metrics.bound.inc();
        Ok(())
    }

    /// A binding of that pod is tried.
    fn begin(&self, uid: &Arc<str>) {
        self.binding().entry(uid.clone()).or_default().under_way += 1;
    }

    /// Has the pod been charged to a node for a binding that is tried, or just now?
    fn charged(&self, uid: &str, now: bool) -> bool {
        let mut binding = self.binding();
        let Some(tries) = binding.get_mut(uid) else { return false };
        tries.charged |= now;
        tries.charged
    }

    fn binding(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Tries>> {
        self.binding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One has ended. Who asked may not have waited for it and have asked for another one: the room is given back once
    /// none can arrive any more and none has.
    async fn end(&self, pod: &Meta, has_node: bool) {
        // Room for the message is there before it is decided on: what comes after is told after. Who is bound or was never
        // charged has nothing to tell, and does not wait in line for it.
        let may_tell = !has_node && self.charged(&pod.uid, false);
        let told = if may_tell { self.asks.reserve().await.ok() } else { None };
        let mut binding = self.binding();
        let Some(tries) = binding.get_mut(&pod.uid) else { return };
        tries.under_way -= 1;
        tries.has_node |= has_node;
        let Tries { under_way, has_node, .. } = *tries;
        if under_way > 0 {
            return;
        }
        binding.remove(&pod.uid);
        if !has_node && let Some(told) = told {
            told.send(Ask::Unreserve { pod: pod.clone() });
        }
    }

    async fn reserve(
        &self,
        pod: &Meta,
        object: Option<Box<Pod>>,
        node: &str,
    ) -> Result<Reserved, Unanswered> {
        let (pod, node) = (pod.clone(), node.to_owned());
        self.ask(|reply| Ask::Reserve { pod, object, node, reply }).await
    }

    /// The pod as the API server has it, if it is the one that is meant.
    async fn read(&self, pod: &Meta) -> Result<Box<Pod>, Unanswered> {
        let unbound = |why: String| Unanswered::Unbound(format!("pod {} not bound: {why}", pod.key));
        let read = self.executor.writer.get::<Pods>(&pod.key).await;
        let (meta, object) = read.map_err(|error| unbound(error.to_string()))?;
        if meta.uid != pod.uid {
            return Err(unbound(format!("its uid is {}, not {}", meta.uid, pod.uid)));
        }
        object.map_err(|error| unbound(error.to_string()))
    }

    async fn ask<T>(
        &self,
        ask: impl FnOnce(oneshot::Sender<Result<T, NotReady>>) -> Ask,
    ) -> Result<T, Unanswered> {
        let (reply, answer) = oneshot::channel();
        self.asks.try_send(ask(reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unanswered::Busy,
            mpsc::error::TrySendError::Closed(_) => Unanswered::Ending,
        })?;
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(NotReady)) => Err(Unanswered::Reading),
            Err(_) => Err(Unanswered::Ending),
        }
    }
}
