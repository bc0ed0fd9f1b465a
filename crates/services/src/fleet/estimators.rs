//! How many replicas fit in each member? Estimators, asked in parallel over gRPC.
//!
//! Each cluster has its own estimator, its own connection and its own deadline: one that is dead, hangs or answers
//! nonsense loses its own vote and nobody else's. After three failures in a row it is not waited for any more;
//! every now and then it is asked on the side, and counts again once it answers.
//!
//! The same question is not asked twice within [`Options::fresh`]. What is on its way to a cluster is a part of the
//! question, so that an answer is never used again once something was assigned.
//!
//! | question | module |
//! |---|---|
//! | where does an estimator listen | [`address`] |
//! | how is it reached | [`transport`] |
//! | is it worth asking | `link` |

pub mod address;
mod link;
pub mod once;
pub mod transport;

pub use address::Addresses;
pub use transport::Tls;

use crate::cluster::Connection;
use crate::ctx::Clock;
use crate::metrics::Registrar;
use jiff::Timestamp;
use link::{Gate, Link};
use loadline_api::estimator::service::estimator_client::EstimatorClient;
use loadline_api::estimator::{pb, replicas_request, sets_request};
use loadline_api::karmada::Asks;
use loadline_core::divide::{Bound, Opinion};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prost::Message as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

/// Under which name their answers are told; it is Karmada's.
pub const NAME: &str = "scheduler-estimator";
/// Clusters whose recovery may wait to be noticed.
const RECOVERIES: usize = 256;

/// How estimators are asked.
#[derive(Clone, Debug)]
pub struct Options {
    pub addresses: Addresses,
    /// How they are talked to; in plain text without.
    pub tls: Option<Tls>,
    /// How long each may take, connecting included.
    pub timeout: Duration,
    /// How long an answer to the same question is used again.
    pub fresh: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            addresses: Addresses::default(),
            tls: None,
            timeout: Duration::from_secs(3),
            fresh: Duration::from_secs(1),
        }
    }
}

/// What is asked about a workload.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// What it is about.
    pub about: Bound,
    pub asks: Asks,
    /// What is on its way, by cluster.
    pub assumed: BTreeMap<Arc<str>, Vec<pb::AssumedWorkload>>,
}

/// What an estimator said of its cluster.
#[derive(Clone, Debug)]
pub struct Said {
    pub cluster: Arc<str>,
    pub opinion: Opinion,
    /// When it said so.
    pub at: Timestamp,
}

/// By what came of it: `answered`, `reused`, `failed`, `withheld`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

/// What is counted.
#[derive(Clone, Debug)]
pub struct Metrics {
    estimates: Family<ByOutcome, Counter>,
    duration: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { estimates: Family::default(), duration: Histogram::new(exponential_buckets(0.0005, 2.0, 14)) }
    }
}

impl Metrics {
    pub(super) fn register(&self, registry: &mut Registrar<'_>) {
        registry.register(
            "estimates",
            "Questions to estimators, by what came of them",
            self.estimates.clone(),
        );
        registry.register(
            "estimate_duration_seconds",
            "Time until all estimators that were asked together had answered or failed",
            self.duration.clone(),
        );
    }

    fn count(&self, outcome: &'static str) {
        self.estimates.get_or_create(&ByOutcome { outcome }).inc();
    }

    /// So often, by what came of it.
    #[must_use]
    pub fn counted(&self, outcome: &'static str) -> u64 {
        self.estimates.get_or_create(&ByOutcome { outcome }).get()
    }
}

/// The estimators of a fleet. Clones are the same.
#[derive(Clone, Debug)]
pub struct Estimators {
    options: Arc<Options>,
    hub: Connection,
    links: Arc<Mutex<BTreeMap<Arc<str>, Arc<Link>>>>,
    recovered: mpsc::Sender<Arc<str>>,
    metrics: Metrics,
    clock: Clock,
}

impl Estimators {
    /// None is connected to yet. The receiver hears of clusters whose estimator answers again.
    #[must_use]
    pub fn new(
        options: Options,
        hub: Connection,
        metrics: Metrics,
        clock: Clock,
    ) -> (Self, mpsc::Receiver<Arc<str>>) {
        let (recovered, recoveries) = mpsc::channel(RECOVERIES);
        let links = Arc::default();
        let estimators = Self { options: Arc::new(options), hub, links, recovered, metrics, clock };
        (estimators, recoveries)
    }

    /// What each of them says, all asked at once; by cluster.
    pub async fn ask(&self, clusters: &[Arc<str>], question: &Question) -> Vec<Said> {
        let began = Instant::now();
        let said =
            futures::future::join_all(clusters.iter().map(|cluster| self.one(cluster, question))).await;
        self.metrics.duration.observe(began.elapsed().as_secs_f64());
        said
    }

    /// How many replicas of a workload have waited for a node in a cluster for that long.
    ///
    /// # Errors
    /// Why it is not known.
    pub async fn waiting(
        &self,
        cluster: &Arc<str>,
        about: &Bound,
        threshold: Duration,
    ) -> Result<i32, String> {
        let resource = pb::ObjectReference {
            api_version: about.api_version.clone(),
            kind: about.kind.clone(),
            namespace: about.key.namespace.to_string(),
            name: about.key.name.to_string(),
        };
        let request = pb::UnschedulableReplicasRequest {
            cluster: cluster.to_string(),
            resource: Some(resource),
            unschedulable_threshold: i64::try_from(threshold.as_nanos()).unwrap_or(i64::MAX),
        };
        let link = self.link(cluster);
        match link.gate(Instant::now()) {
            // Whoever finds it ajar is the one who finds out: nobody else asks before that is over.
            Gate::Open | Gate::Ajar => self.attempt(&link, Call::Waiting(request), about).await,
            Gate::Shut => Err(link.trouble().unwrap_or_default()),
        }
    }

    /// Finds out, on the side, whether those are back that nobody waits for any more.
    pub fn probe(&self) {
        let links = self.with_links(|links| links.clone());
        for (cluster, link) in links {
            if link.gate(Instant::now()) == Gate::Ajar {
                let this = self.clone();
                tokio::spawn(async move {
                    let nothing = Question::default();
                    this.attempt(&link, Call::of(&cluster, &nothing), &nothing.about).await
                });
            }
        }
    }

    /// What was answered about a cluster may not hold any more.
    pub fn stale(&self, cluster: &str) {
        if let Some(link) = self.with_links(|links| links.get(cluster).cloned()) {
            link.forget_answers();
        }
    }

    /// Closes the connections to all clusters but these.
    pub fn retain(&self, clusters: &BTreeSet<Arc<str>>) {
        self.with_links(|links| links.retain(|cluster, _| clusters.contains(cluster)));
    }

    /// What is wrong, by cluster.
    #[must_use]
    pub fn troubles(&self) -> Vec<(Arc<str>, String)> {
        let links = self.with_links(|links| links.clone());
        links.into_iter().filter_map(|(cluster, link)| Some((cluster, link.trouble()?))).collect()
    }

    fn with_links<T>(&self, f: impl FnOnce(&mut BTreeMap<Arc<str>, Arc<Link>>) -> T) -> T {
        f(&mut self.links.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn link(&self, cluster: &Arc<str>) -> Arc<Link> {
        self.with_links(|links| links.entry(cluster.clone()).or_insert_with(|| Link::new(cluster)).clone())
    }

    async fn one(&self, cluster: &Arc<str>, question: &Question) -> Said {
        let (link, call) = (self.link(cluster), Call::of(cluster, question));
        let (key, now) = (call.key(), Instant::now());
        if let Some((count, at)) = link.answer(&key, now, self.options.fresh) {
            self.metrics.count("reused");
            return Said { cluster: cluster.clone(), opinion: Opinion::Count(count), at };
        }
        let answer = match link.gate(now) {
            Gate::Open => self.attempt(&link, call, &question.about).await,
            gate => {
                if gate == Gate::Ajar {
                    // Nobody waits for it; what it says may count next time.
                    let (this, link, about) = (self.clone(), link.clone(), question.about.clone());
                    tokio::spawn(async move { this.attempt(&link, call, &about).await });
                }
                self.metrics.count("withheld");
                let trouble = link.trouble().unwrap_or_default();
                let opinion = Opinion::Failed(format!("not waited for, after failing repeatedly: {trouble}"));
                return Said { cluster: cluster.clone(), opinion, at: self.clock.now() };
            }
        };
        let at = self.clock.now();
        let opinion = match answer {
            Ok(count) => {
                link.keep(key, count, at, Instant::now(), self.options.fresh);
                Opinion::Count(count)
            }
            Err(why) => Opinion::Failed(why),
        };
        Said { cluster: cluster.clone(), opinion, at }
    }

    /// Asks, within the deadline, and notes what that says of the estimator.
    async fn attempt(&self, link: &Arc<Link>, call: Call, about: &Bound) -> Result<i32, String> {
        let deadline = self.options.timeout;
        let ended = timeout(deadline, self.call(link, call, about)).await;
        let (answer, alive) = match ended {
            Err(_) | Ok(Err(Problem::Late)) => (Err(format!("no answer within {deadline:?}")), false),
            Ok(Err(Problem::Dead(why))) => (Err(why), false),
            Ok(Err(Problem::Refused(why))) => (Err(why), true),
            Ok(Ok(count)) => (Ok(count), true),
        };
        self.metrics.count(if answer.is_ok() { "answered" } else { "failed" });
        if alive {
            if link.answered(answer.as_ref().err().cloned()) {
                let _ = self.recovered.try_send(link.cluster().clone());
            }
        } else {
            // Where it listens may have changed.
            link.struck(answer.as_ref().err().cloned().unwrap_or_default(), Instant::now());
        }
        answer
    }

    async fn call(&self, link: &Link, call: Call, about: &Bound) -> Result<i32, Problem> {
        let channel = link.channel(|| self.connect(link.cluster())).await.map_err(Problem::Dead)?;
        let mut client = EstimatorClient::new(channel);
        match call {
            Call::Replicas(request) => {
                let answer = client.max_available_replicas(self.request(request, about)).await;
                count(answer, |answer| answer.max_replicas)
            }
            Call::Sets(request) => {
                let answer = client.max_available_component_sets(self.request(request, about)).await;
                match answer {
                    // An older one, which has no opinion of sets.
                    Err(status) if status.code() == Code::Unimplemented => Ok(-1),
                    answer => count(answer, |answer| answer.max_sets),
                }
            }
            Call::Waiting(request) => {
                let answer = client.get_unschedulable_replicas(self.request(request, about)).await;
                count(answer, |answer| answer.unschedulable_replicas)
            }
        }
    }

    /// With the deadline, and what it is about, for the logs of the other side.
    fn request<T>(&self, message: T, about: &Bound) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.options.timeout);
        if let Ok(text) = format!("kind={}, name={}", about.kind, about.key).parse() {
            request.metadata_mut().insert("object", text);
        }
        request
    }

    async fn connect(&self, cluster: &Arc<str>) -> Result<Channel, String> {
        let addresses = self.options.addresses.of(cluster, &self.hub).await?;
        let tls = self.options.tls.as_ref();
        let connect = |address, within| transport::connect(address, tls, within);
        first(&addresses, self.options.timeout, connect).await
    }
}

/// The first of these that is there. Each has its share of the time: one that swallows everything must leave some for the next.
async fn first<'a, T, F>(
    addresses: &'a [String],
    patience: Duration,
    connect: impl Fn(&'a str, Duration) -> F,
) -> Result<T, String>
where
    F: Future<Output = Result<T, String>>,
{
    let share = patience / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut problems = Vec::new();
    for address in addresses {
        match timeout(share, connect(address, share)).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(problem)) => problems.push(format!("{address}: {problem}")),
            Err(_) => problems.push(format!("{address}: no connection within {share:?}")),
        }
    }
    Err(problems.join("; "))
}

/// One question to one estimator.
#[derive(Clone, Debug)]
enum Call {
    Replicas(pb::MaxAvailableReplicasRequest),
    Sets(pb::MaxAvailableComponentSetsRequest),
    Waiting(pb::UnschedulableReplicasRequest),
}

impl Call {
    fn of(cluster: &Arc<str>, question: &Question) -> Self {
        let Question { asks, assumed, .. } = question;
        let assumed = assumed.get(cluster).map_or(&[][..], Vec::as_slice);
        if asks.components.is_empty() {
            return Self::Replicas(replicas_request(cluster, asks.replica.as_ref(), assumed));
        }
        let parts: Vec<pb::Component> =
            asks.components.iter().map(|(name, count, replica)| replica.component(name, *count)).collect();
        Self::Sets(sets_request(cluster, &asks.namespace, &parts, assumed))
    }

    /// The same for the same question.
    fn key(&self) -> Vec<u8> {
        match self {
            Self::Replicas(request) => request.encode_to_vec(),
            Self::Sets(request) => request.encode_to_vec(),
            Self::Waiting(request) => request.encode_to_vec(),
        }
    }
}

/// Why there is no answer.
enum Problem {
    /// Nobody is there, or somebody who speaks another language.
    Dead(String),
    /// Time is up: the connection counts, too, and either may notice first.
    Late,
    /// Somebody is there, and says that there is none.
    Refused(String),
}

fn count<T>(answer: Result<Response<T>, Status>, read: impl FnOnce(&T) -> i32) -> Result<i32, Problem> {
    let status = match answer {
        Ok(answer) => return Ok(read(answer.get_ref())),
        Err(status) => status,
    };
    let why = format!("{:?}: {}", status.code(), status.message());
    Err(match status.code() {
        Code::DeadlineExceeded | Code::Cancelled => Problem::Late,
        Code::Unavailable | Code::Internal => Problem::Dead(why),
        // What did not come from the other side has a source.
        _ if std::error::Error::source(&status).is_some() => Problem::Dead(why),
        _ => Problem::Refused(why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
        let patience = Duration::from_secs(3);
        let both = ["swallows".to_owned(), "answers".to_owned()];
        let connect = |address, _| async move {
            match address {
                "swallows" => std::future::pending().await,
                "answers" => Ok(address),
                other => Err(format!("{other} is not there")),
            }
        };
        assert_eq!(timeout(patience, first(&both, patience, connect)).await, Ok(Ok("answers")));
        let neither = ["swallows".to_owned(), "x".to_owned()];
        let told = "swallows: no connection within 1.5s; x: x is not there".to_owned();
        assert_eq!(first(&neither, patience, connect).await, Err(told));
    }
}
