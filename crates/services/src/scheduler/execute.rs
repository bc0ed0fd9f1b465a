//! How is a decision carried out? Its writes, and an answer to whether they arrived.

use super::Metrics;
use super::queue::{Helps, Pending};
use super::volumes::{self, Provided, Provision};
use super::watched::Pods;
use crate::cluster::events::{Happened, Recorder, Regarding, Severity};
use crate::cluster::resource::PODS;
use crate::cluster::write::Patch;
use crate::cluster::{Cause, Failure, Writer};
use jiff::Timestamp;
use loadline_api::Error;
use loadline_api::pod::Pod;
use loadline_core::object::Meta;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// What to do about a pod.
#[derive(Debug)]
pub(super) enum Action {
    /// It goes to this node; perhaps with something to say about that.
    Bind { pod: Arc<Pending>, node: Arc<str>, remark: Option<String> },
    /// It goes to this node once its claims have their volumes: this has to be written for them.
    Provide { pod: Arc<Pending>, node: Arc<str>, writes: Vec<Provision> },
    /// It goes nowhere now. Does it lose the node that was cleared for it, if one was?
    Refuse { pod: Arc<Pending>, why: Why, helps: Helps, forfeits: bool },
    /// It goes nowhere now; once the victims are gone, it goes to this node. Less important pods that were promised it are
    /// outdone: they may not fit there any more, and look elsewhere.
    Preempt {
        pod: Arc<Pending>,
        node: Arc<str>,
        victims: Vec<Meta>,
        outdone: Vec<Meta>,
        why: Why,
        helps: Helps,
    },
}

/// Why a pod goes nowhere, and whether it is to be told so now.
#[derive(Debug)]
pub(super) struct Why {
    pub text: String,
    pub is_news: bool,
}

impl Action {
    pub fn pod(&self) -> &Pending {
        match self {
            Self::Bind { pod, .. }
            | Self::Provide { pod, .. }
            | Self::Refuse { pod, .. }
            | Self::Preempt { pod, .. } => pod,
        }
    }

    /// Of a pod that goes nowhere now: why.
    pub fn refusal(&self) -> Option<(&Pending, &str)> {
        match self {
            Self::Bind { .. } | Self::Provide { .. } => None,
            Self::Refuse { pod, why, .. } | Self::Preempt { pod, why, .. } => Some((pod, &why.text)),
        }
    }

    /// Is a refusal to be told?
    pub fn is_news(&self) -> bool {
        matches!(self, Self::Refuse { why, .. } | Self::Preempt { why, .. } if why.is_news)
    }
}

/// What became of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is bound; the watch will say so.
    Bound { pod: Arc<Pending>, node: Arc<str>, remark: Option<String> },
    /// This was written for its claims, and why not all of it.
    Provided { pod: Arc<Pending>, written: Vec<Provided>, failed: Option<String> },
    /// It is not bound, as far as one can know; if the server said what the pod looks like, it is here.
    Unbound { pod: Arc<Pending>, now: Option<Box<Read>> },
    /// It has been told why it waits, or it knew.
    Refused { pod: Arc<Pending>, helps: Helps },
    /// It could not be told.
    Untold { pod: Arc<Pending> },
}

/// A pod as the server has it now.
pub(super) type Read = (Meta, Result<Box<Pod>, Error>);

/// Is a pod on a node whose binding failed? The request may have arrived although the answer did not: the server knows.
async fn read_back(writer: &Writer, pod: &Meta, node: &str) -> Result<(bool, Box<Read>), Failure> {
    let now = Box::new(writer.get::<Pods>(&pod.key).await?);
    let (meta, read) = &*now;
    let on = read.as_ref().ok().and_then(|read| read.facts.node.as_deref());
    Ok((meta.uid == pod.uid && on == Some(node), now))
}

/// First pause before a server that did not answer is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// And the longest.
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// How long a place is kept for a pod of which nothing is heard.
const KEPT: Duration = Duration::from_mins(5);

/// The same, asked until the server answers, if only that there is no such pod, or until nobody can be expected to wait. Until then the pod keeps its place: given
/// to another one, a binding that did arrive would be one too many on its node, and watches may be away for longer than
/// writes.
async fn settled(writer: &Writer, pod: &Meta, node: &str) -> (bool, Option<Box<Read>>) {
    let asked = async {
        let mut pause = FIRST_PAUSE;
        loop {
            match read_back(writer, pod, node).await {
                Ok((is_bound, now)) => return (is_bound, Some(now)),
                Err(failure) if !is_silence(&failure.cause) => return (false, None),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    };
    tokio::time::timeout(KEPT, asked).await.unwrap_or((false, None))
}

/// Is nothing known of what was asked about?
fn is_silence(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Unreachable | Cause::Timeout | Cause::Server { .. } | Cause::TooManyRequests { .. }
    )
}

/// What carrying out takes.
#[derive(Clone, Debug)]
pub(super) struct Executor {
    pub writer: Writer,
    pub metrics: Metrics,
    pub events: Recorder,
}

impl Executor {
    /// Carries an action out that was decided at that time.
    pub async fn run(self, action: Action, at: Timestamp) -> Outcome {
        match action {
            Action::Bind { pod, node, remark } => self.bind(pod, node, remark).await,
            Action::Provide { pod, writes, .. } => {
                let (written, failed) = volumes::provide(&self.writer, &writes).await;
                Outcome::Provided { pod, written, failed }
            }
            Action::Refuse { pod, why, helps, forfeits } => {
                let forfeits = forfeits && pod.pod.facts.nominated.is_some();
                self.refuse(pod, &why, forfeits, helps, at).await
            }
            Action::Preempt { pod, node, victims, outdone, why, helps } => {
                let forfeits = !self.preempt(&pod, &node, &victims, at).await;
                if !forfeits {
                    self.let_go(&node, &outdone).await;
                }
                self.refuse(pod, &why, forfeits, helps, at).await
            }
        }
    }

    async fn bind(&self, pod: Arc<Pending>, node: Arc<str>, remark: Option<String>) -> Outcome {
        match self.bind_to(&pod.meta, &node).await {
            Ok(()) => Outcome::Bound { pod, node, remark },
            Err((_, now)) => Outcome::Unbound { pod, now },
        }
    }

    /// Binds a pod to a node, and does not end before it is known whether that happened, as far as it can be known. If it
    /// did not: why, and what the server says of the pod.
    pub async fn bind_to(&self, pod: &Meta, node: &str) -> Result<(), (Failure, Option<Box<Read>>)> {
        let Err(error) = self.writer.bind(pod, node).await else { return Ok(()) };
        self.metrics.bind_failures.inc();
        tracing::warn!(pod = %pod.key, node, %error, "pod not bound");
        if error.cause == Cause::NotLeading {
            return Err((error, None));
        }
        let (is_bound, now) = settled(&self.writer, pod, node).await;
        if is_bound { Ok(()) } else { Err((error, now)) }
    }

    /// Nominates the node for the pod and asks the victims to go, one after the other. As soon as one is refused, by a
    /// disruption budget that is not what it was for example, no other is asked: without that one the pod does not fit, and who
    /// went would have gone for nothing. Says whether the pod is to keep the node: nobody goes from there otherwise, and it
    /// would be closed to others as long as this pod waits.
    async fn preempt(&self, pod: &Pending, node: &str, victims: &[Meta], at: Timestamp) -> bool {
        // First the nomination, or the place might be given to somebody else the moment it is free.
        let patch = json!({"metadata": {"uid": &*pod.meta.uid}, "status": {"nominatedNodeName": node}});
        if pod.pod.facts.nominated.as_deref() != Some(node)
            && let Err(error) = self.writer.patch(PODS.status(), &pod.meta.key, Patch::Merge, &patch).await
        {
            tracing::warn!(pod = %pod.meta.key, node, %error, "node not nominated");
            return true;
        }
        let mut goes = victims.is_empty();
        for victim in victims {
            match self.writer.evict(victim, None).await {
                Ok(()) => {
                    goes = true;
                    self.metrics.preempted.inc();
                    self.tell(victim, pod, node, at);
                }
                // It went by itself, or another one has its name.
                Err(error) if error.is_not_found() || error.is_conflict() => goes = true,
                Err(error) => {
                    tracing::info!(victim = %victim.key, pod = %pod.meta.key, %error, "victim not evicted");
                    break;
                }
            }
        }
        goes
    }

    /// Takes a node from pods it was promised to. If that fails they find out at their next turn.
    async fn let_go(&self, node: &str, pods: &[Meta]) {
        for pod in pods {
            let patch = json!({"metadata": {"uid": &*pod.uid}, "status": {"nominatedNodeName": null}});
            if let Err(error) = self.writer.patch(PODS.status(), &pod.key, Patch::Merge, &patch).await {
                tracing::info!(pod = %pod.key, node, %error, "node not taken back");
            }
        }
    }

    /// A victim is told for whom it goes, in kube-scheduler's words.
    fn tell(&self, victim: &Meta, pod: &Pending, node: &str, at: Timestamp) {
        let happened = Happened {
            severity: Severity::Normal,
            reason: "Preempted",
            action: "Preempting",
            note: format!("Preempted by pod {} on node {node}", pod.meta.uid),
        };
        let related = Some(Regarding::new(PODS, &pod.meta));
        self.events.record_with(Regarding::new(PODS, victim), related, happened, at);
    }

    /// Tells a pod why it waits, if that is news, and takes the node from it that it was promised, if that is wanted.
    async fn refuse(
        &self,
        pod: Arc<Pending>,
        why: &Why,
        forfeits: bool,
        helps: Helps,
        at: Timestamp,
    ) -> Outcome {
        let mut status = json!({});
        if why.is_news {
            let at = loadline_api::time::text(at);
            status["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why.text,
                "lastProbeTime": null, "lastTransitionTime": at, "observedGeneration": pod.pod.generation,
            }]);
        }
        if forfeits {
            status["nominatedNodeName"] = json!(null);
        }
        if status == json!({}) {
            return Outcome::Refused { pod, helps };
        }
        let patch = json!({"metadata": {"uid": &*pod.meta.uid}, "status": status});
        match self.writer.patch(PODS.status(), &pod.meta.key, Patch::Strategic, &patch).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => {
                tracing::warn!(pod = %pod.meta.key, %error, "pod not told why it waits");
                Outcome::Untold { pod }
            }
            // Gone, or another one of the same name: the watch will say so.
            _ => Outcome::Refused { pod, helps },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Connection;
    use crate::cluster::testing::meta;
    use crate::scheduler::COMPONENT;
    use http::{Method, Request, Response};
    use kube::Client;
    use kube::client::Body;
    use loadline_api::json::Tree;
    use loadline_core::load::Load;
    use loadline_core::view::Live;
    use serde_json::Value;
    use std::io;
    use std::sync::Mutex;
    use tokio_util::sync::CancellationToken;

    fn object(node: Option<&str>) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "default", "uid": "a", "resourceVersion": "5"},
            "spec": {"nodeName": node, "containers": []}})
    }

    /// An executor whose bindings are never answered, and what its questions about the pod are answered with: none is
    /// silence.
    fn executor(mut answers: Vec<Option<(u16, Value)>>) -> (Executor, Arc<Mutex<usize>>) {
        answers.reverse();
        let (answers, asked) = (Arc::new(Mutex::new(answers)), Arc::<Mutex<usize>>::default());
        let count = asked.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            let answer = if request.method() == Method::GET {
                *count.lock().unwrap() += 1;
                answers.lock().unwrap().pop().flatten()
            } else {
                None
            };
            let answer = answer.map(|(code, object)| {
                Response::builder().status(code).body(Body::from(object.to_string().into_bytes())).unwrap()
            });
            std::future::ready(answer.ok_or_else(|| io::Error::other("cut")))
        });
        let writer = Writer::new(Connection::new(Client::new(server, "default")), "test");
        let (events, _) = Recorder::new(writer.clone(), COMPONENT, "test", CancellationToken::new());
        (Executor { writer, metrics: Metrics::default(), events }, asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_keeps_its_place_until_the_server_says_whether_it_is_bound() {
        let not_found = json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "no pod a"});
        let busy = json!({"kind": "Status", "code": 503, "message": "later"});
        let table = [
            (vec![None, None, Some((200, object(Some("n1"))))], "bound", "it arrived"),
            (vec![None, Some((503, busy)), Some((200, object(None)))], "known", "it did not arrive"),
            (vec![None, Some((200, object(Some("n2"))))], "known", "somebody else was faster"),
            (vec![None, Some((404, not_found))], "unknown", "it is gone"),
        ];
        for (answers, expected, why) in table {
            let questions = answers.len();
            let (executor, asked) = executor(answers);
            let (mut pod, _) = loadline_api::pod::read(&Tree::from(&object(None))).unwrap();
            pod.resolve(&loadline_api::Context::new());
            let view = Arc::new(Live::new().view(&pod.facts, Load::ZERO));
            let pod = Arc::new(Pending { meta: meta(&object(None)), pod, view });
            let action = Action::Bind { pod, node: "n1".into(), remark: None };
            let found = match executor.run(action, Timestamp::UNIX_EPOCH).await {
                Outcome::Bound { .. } => "bound",
                Outcome::Unbound { now: Some(_), .. } => "known",
                Outcome::Unbound { now: None, .. } => "unknown",
                other => panic!("{why}: {other:?}"),
            };
            assert_eq!((found, *asked.lock().unwrap()), (expected, questions), "{why}");
        }
    }

    /// What was asked of a server, in short, and what it answers to evictions, one after the other.
    fn evicting(answers: &[u16]) -> (Executor, Arc<Mutex<Vec<String>>>) {
        let answers = Mutex::new(answers.iter().rev().copied().collect::<Vec<_>>());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (log, answers) = (asked.clone(), Arc::new(answers));
        let server = tower::service_fn(move |request: Request<Body>| {
            let (log, answers) = (log.clone(), answers.clone());
            async move {
                let (head, body) = request.into_parts();
                let body: Value = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
                let evicted =
                    head.uri.path().strip_suffix("/eviction").and_then(|path| path.rsplit('/').next());
                let (code, said) = if let Some(name) = evicted {
                    (answers.lock().unwrap().pop().unwrap_or(500), Some(name.to_owned()))
                } else {
                    let name = head.uri.path().split('/').nth_back(1).unwrap();
                    let node = body["status"].get("nominatedNodeName");
                    (200, node.map(|node| format!("{name} on {node}")))
                };
                log.lock().unwrap().extend(said);
                let status = json!({"kind": "Status", "code": code, "message": "as it is"});
                let object = if evicted.is_some() { status } else { object(None) };
                let body = Body::from(object.to_string().into_bytes());
                Ok::<_, io::Error>(Response::builder().status(code).body(body).unwrap())
            }
        });
        let writer = Writer::new(Connection::new(Client::new(server, "default")), "test");
        let (events, _) = Recorder::new(writer.clone(), COMPONENT, "test", CancellationToken::new());
        (Executor { writer, metrics: Metrics::default(), events }, asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_victim_that_is_refused_ends_it_and_a_node_that_nobody_leaves_is_given_back() {
        let (to, less) = ("a on \"n1\"", "less on null");
        let table: [(&[u16], &[&str], u64, &str); 5] = [
            (&[201, 201], &[to, "x", "y", less], 2, "both go"),
            (&[429], &[to, "x", "a on null"], 0, "one stays, so the other would go for nothing"),
            (&[201, 429], &[to, "x", "y", less], 1, "one goes: its room is kept until the next turn"),
            (&[404, 201], &[to, "x", "y", less], 1, "one went by itself"),
            (&[409, 429], &[to, "x", "y", less], 0, "another one has its name"),
        ];
        for (answers, expected, evicted, why) in table {
            let (executor, asked) = evicting(answers);
            let metrics = executor.metrics.clone();
            let [x, y, outdone] = ["x", "y", "less"]
                .map(|name| meta(&json!({"metadata": {"name": name, "namespace": "default", "uid": name}})));
            let victims = [x, y];
            let (mut pod, _) = loadline_api::pod::read(&Tree::from(&object(None))).unwrap();
            pod.resolve(&loadline_api::Context::new());
            let view = Arc::new(Live::new().view(&pod.facts, Load::ZERO));
            let action = Action::Preempt {
                pod: Arc::new(Pending { meta: meta(&object(None)), pod, view }),
                node: "n1".into(),
                victims: victims.into(),
                outdone: vec![outdone.clone()],
                why: Why { text: "full".to_owned(), is_news: true },
                helps: Helps::default(),
            };
            let outcome = executor.run(action, Timestamp::UNIX_EPOCH).await;
            assert!(matches!(outcome, Outcome::Refused { .. }), "{why}: {outcome:?}");
            assert_eq!(*asked.lock().unwrap(), expected, "{why}");
            assert_eq!(metrics.preempted.get(), evicted, "{why}");
        }
    }
}
