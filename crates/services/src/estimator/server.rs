//! How many would fit? Questions over gRPC, answered from what is known of the member cluster named.
//!
//! | what is wrong | status |
//! |---|---|
//! | a cluster that is not served here; something malformed; more components than anybody has | `INVALID_ARGUMENT` |
//! | the cluster has not been read completely yet | `UNAVAILABLE`, with how far it is |
//! | no such workload | `NOT_FOUND` |
//! | a workload that is no Deployment | `UNIMPLEMENTED` |
//! | the caller's time is over, or ours ([`Options::longest`]) | `DEADLINE_EXCEEDED` |
//! | the caller has gone | `CANCELLED`, and computing ends |
//! | more at once than [`Options::concurrency`], a message above 4 MiB | `RESOURCE_EXHAUSTED`, `OUT_OF_RANGE` |
//!
//! Most answers take microseconds and are computed where they are asked. What may take longer goes to other threads,
//! few at a time: it never keeps a short answer waiting. What was asked before and has not changed since is not computed
//! again (`remember`).

mod limit;

use super::health::Health;
use super::metrics::Metrics;
use super::remember::{Question, Room};
use super::{Known, Member, Members};
use axum::Router;
use axum::middleware::from_fn_with_state;
use jiff::Timestamp;
use limit::{Gate, Wanted};
use loadline_api::estimator::service::estimator_server::{Estimator, EstimatorServer};
use loadline_api::estimator::{self as api, pb};
use loadline_core::estimate::{Answer, Given, Unwanted};
use prost::Message as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tracing::Instrument as _;

/// What is counted, and how much one caller may ask for.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Do quotas bind? Upstream's gate `ResourceQuotaEstimate`, which is off there.
    pub quotas: bool,
    /// Is room kept for what is said to be on its way? Upstream's gate `SchedulingOvercommitProtection`; a scheduler
    /// whose gate is off says nothing.
    pub assumed: bool,
    /// Is room kept for pods that have no node yet?
    pub pending: bool,
    /// Does the load line bind, too?
    pub load: bool,
    /// How many requests are worked on at once; more are refused.
    pub concurrency: usize,
    /// For how long one request is worked on, where its caller would wait longer.
    pub longest: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            quotas: true,
            assumed: true,
            pending: false,
            load: false,
            concurrency: 512,
            longest: Duration::from_secs(10),
        }
    }
}

impl Options {
    /// What counts in every answer.
    fn given(&self) -> Given<'static> {
        Given { quotas: self.quotas, pending: self.pending, load: self.load, ..Given::default() }
    }
}

/// The largest message read, in bytes: gRPC's usual limit.
const LARGEST: usize = 4 * 1024 * 1024;
/// A request of more bytes than so many may take long: it has thousands of conditions.
const SHORT: usize = 16 * 1024;
/// So many nodes are told of at most: what is told must fit into a message.
const MOST_NODES: usize = 5000;
/// So many clusters are named to somebody who asked for another.
const MOST_NAMED: usize = 20;

/// The gRPC side: estimates, health and reflection.
pub fn routes(members: Arc<Members>, options: Options, metrics: Arc<Metrics>) -> Router {
    let gate = Arc::new(Gate::new(options.concurrency, options.longest, metrics.clone()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let server = Server {
        members: members.clone(),
        options: Arc::new(options),
        metrics,
        long: Arc::new(Semaphore::new(cores)),
        room: Arc::default(),
    };
    let estimator = EstimatorServer::new(server).max_decoding_message_size(LARGEST);
    let estimates = Routes::new(estimator).into_axum_router().layer(from_fn_with_state(gate, limit::admit));
    // Both bring an answer for paths nobody knows, and there can be one: the first's.
    let mut others = Routes::builder();
    others.add_service(Health::new(members).service());
    reflection(&mut others);
    let others = others.routes().into_axum_router();
    estimates.merge(others.reset_fallback())
}

/// What the server is able to do, for tools that ask. Its descriptors are part of the program; were they broken, it
/// would do without.
fn reflection(routes: &mut tonic::service::RoutesBuilder) {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(api::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    if let Ok(service) = builder().build_v1() {
        routes.add_service(service);
    }
    // What most tools still ask for.
    if let Ok(service) = builder().build_v1alpha() {
        routes.add_service(service);
    }
}

#[derive(Clone)]
struct Server {
    members: Arc<Members>,
    options: Arc<Options>,
    metrics: Arc<Metrics>,
    /// Computations that may take long, at once.
    long: Arc<Semaphore>,
    /// For answers that are kept, of all members.
    room: Arc<Room>,
}

#[tonic::async_trait]
impl Estimator for Server {
    async fn max_available_replicas(
        &self,
        request: Request<pb::MaxAvailableReplicasRequest>,
    ) -> Result<Response<pb::MaxAvailableReplicasResponse>, Status> {
        let span = span(&request, "MaxAvailableReplicas");
        self.replicas(request).instrument(span).await.map(Response::new)
    }

    async fn max_available_component_sets(
        &self,
        request: Request<pb::MaxAvailableComponentSetsRequest>,
    ) -> Result<Response<pb::MaxAvailableComponentSetsResponse>, Status> {
        let span = span(&request, "MaxAvailableComponentSets");
        self.sets(request).instrument(span).await.map(Response::new)
    }

    async fn get_unschedulable_replicas(
        &self,
        request: Request<pb::UnschedulableReplicasRequest>,
    ) -> Result<Response<pb::UnschedulableReplicasResponse>, Status> {
        let span = span(&request, "GetUnschedulableReplicas");
        span.in_scope(|| self.unschedulable(request.get_ref())).map(Response::new)
    }
}

/// What the caller says the request is about is for people who follow a trace; nothing is spent on it otherwise.
fn span<T>(request: &Request<T>, method: &'static str) -> tracing::Span {
    let object =
        || request.metadata().get("object").and_then(|value| value.to_str().ok()).unwrap_or_default();
    tracing::debug_span!("estimate", method, object = object())
}

impl Server {
    fn known(&self, cluster: &str) -> Result<(&Arc<Member>, Arc<Known>), Status> {
        let Some(member) = self.members.get(cluster) else {
            return Err(Status::invalid_argument(self.not_here(cluster)));
        };
        let known = member.known().ok_or_else(|| {
            let status = member.status();
            let problem = status.problem.as_deref().map(|p| format!("; {p}")).unwrap_or_default();
            let progress = if status.progress.is_empty() { "nothing read yet" } else { &status.progress };
            Status::unavailable(format!("cluster {cluster:?} is not ready: {progress}{problem}"))
        })?;
        Ok((member, known))
    }

    fn not_here(&self, cluster: &str) -> String {
        let asked: String = cluster.chars().take(100).collect();
        let names = self.members.keys().take(MOST_NAMED).map(|name| format!("{name:?}")).collect::<Vec<_>>();
        let more = self.members.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" or one of {more} more") } else { String::new() };
        format!("cluster: {asked:?} is not served here, expected {}{more}", names.join(" or "))
    }

    async fn replicas(
        &self,
        request: Request<pb::MaxAvailableReplicasRequest>,
    ) -> Result<pb::MaxAvailableReplicasResponse, Status> {
        let wanted = Wanted::of(&request, self.options.longest);
        let mut request = request.into_inner();
        let (member, known) = self.known(&request.cluster)?;
        if !self.options.assumed {
            request.assumed_workloads.clear();
        }
        let question = Question::replicas(request.encode_to_vec());
        let answer = if let Some(answer) = known.answers.find(&question) {
            self.metrics.reused();
            answer
        } else {
            let (ask, assumed) = api::replicas(&request).map_err(|error| malformed(&error))?;
            let preempting = request.details && ask.priority.is_some();
            let pending = self.options.pending && known.view.pending_count() > 0;
            let large = question.len() > SHORT;
            let long = large || pending || preempting || self.options.load || !assumed.is_empty();
            let (options, from) = (self.options.clone(), known.clone());
            let work = move |wanted: &dyn Fn() -> bool| {
                let given = Given { assumed: &assumed, preempting, wanted, ..options.given() };
                from.view.replicas(&ask, &given)
            };
            let answer = Arc::new(self.compute(wanted.clone(), long, work).await?);
            known.answers.keep(question, &answer, &self.room);
            answer
        };
        self.metrics.estimated(&request.cluster, &answer);
        let told = Told::new(&answer, member, request.details);
        let node_count = request.nodes.then(|| i64::try_from(known.view.node_count()).unwrap_or(i64::MAX));
        let nodes = if request.nodes { self.nodes(wanted, known, &request).await? } else { Vec::new() };
        Ok(pb::MaxAvailableReplicasResponse {
            max_replicas: answer.most.max(0),
            by_load: told.by_load,
            by_preempting: told.by_preempting,
            by_nodes: told.by_nodes,
            limited_by: told.limited_by,
            age_seconds: told.age_seconds,
            nodes,
            node_count,
        })
    }

    /// What each node takes. People ask for that, and seldom: it is not remembered.
    async fn nodes(
        &self,
        wanted: Wanted,
        known: Arc<Known>,
        request: &pb::MaxAvailableReplicasRequest,
    ) -> Result<Vec<pb::NodeEstimate>, Status> {
        let (ask, assumed) = api::replicas(request).map_err(|error| malformed(&error))?;
        let options = self.options.clone();
        let work = move |wanted: &dyn Fn() -> bool| {
            let given = Given { assumed: &assumed, wanted, ..options.given() };
            known.view.nodes(&ask, &given)
        };
        let nodes = self.compute(wanted, true, work).await?.into_iter().take(MOST_NODES);
        let told = nodes.map(|node| pb::NodeEstimate {
            node: node.node,
            replicas: node.replicas,
            limited_by: node.limited_by.unwrap_or_default(),
            reason: node.reason.map(|reason| reason.to_string()).unwrap_or_default(),
            by_load: node.by_load,
        });
        Ok(told.collect())
    }

    async fn sets(
        &self,
        request: Request<pb::MaxAvailableComponentSetsRequest>,
    ) -> Result<pb::MaxAvailableComponentSetsResponse, Status> {
        let wanted = Wanted::of(&request, self.options.longest);
        let mut request = request.into_inner();
        let (member, known) = self.known(&request.cluster)?;
        if !self.options.assumed {
            request.assumed_workloads.clear();
        }
        let details = request.details;
        let question = Question::sets(request.encode_to_vec());
        let answer = if let Some(answer) = known.answers.find(&question) {
            self.metrics.reused();
            answer
        } else {
            let (components, assumed) = api::sets(&request).map_err(|error| malformed(&error))?;
            let preempting = details && components.iter().any(|c| c.ask.priority.is_some());
            let (options, from) = (self.options.clone(), known.clone());
            let work = move |wanted: &dyn Fn() -> bool| {
                let enough = request.enough;
                let given = Given { assumed: &assumed, preempting, enough, wanted, ..options.given() };
                from.view.sets(&request.namespace, &components, &given)
            };
            let answer = Arc::new(self.compute(wanted, true, work).await?);
            known.answers.keep(question, &answer, &self.room);
            answer
        };
        let told = Told::new(&answer, member, details);
        Ok(pb::MaxAvailableComponentSetsResponse {
            max_sets: answer.most.max(0),
            by_load: told.by_load,
            by_preempting: told.by_preempting,
            by_nodes: told.by_nodes,
            limited_by: told.limited_by,
            age_seconds: told.age_seconds,
        })
    }

    fn unschedulable(
        &self,
        request: &pb::UnschedulableReplicasRequest,
    ) -> Result<pb::UnschedulableReplicasResponse, Status> {
        let (_, known) = self.known(&request.cluster)?;
        let (target, threshold) = api::unschedulable(request).map_err(|error| malformed(&error))?;
        if (&*target.group, &*target.kind) != ("apps", "Deployment") {
            let text = format!("resource: expected an apps Deployment, found {target} of {:?}", target.group);
            return Err(Status::unimplemented(text.chars().take(1000).collect::<String>()));
        }
        let waiting = known.waiting.unschedulable(&target.key, threshold, Timestamp::now());
        let not_found = || {
            let text = format!("{target} is not in cluster {:?}", request.cluster);
            Status::not_found(text.chars().take(1000).collect::<String>())
        };
        Ok(pb::UnschedulableReplicasResponse { unschedulable_replicas: waiting.ok_or_else(not_found)? })
    }

    /// Works out an answer, here or, if it may take long, where nobody is kept waiting.
    async fn compute<T: Send + 'static>(
        &self,
        wanted: Wanted,
        long: bool,
        work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, Unwanted> + Send + 'static,
    ) -> Result<T, Status> {
        let now = wanted.clone();
        let work = move || work(&|| now.still());
        let answer = if long {
            // The caller's deadline is watched outside; the semaphore is never closed.
            let place = self.long.clone().acquire_owned().await;
            let work = move || {
                let _place = place;
                work()
            };
            tokio::task::spawn_blocking(work).await.map_err(|_| {
                Status::internal("computing the answer failed; this is a bug, please report it")
            })?
        } else {
            work()
        };
        answer.map_err(|Unwanted| wanted.over())
    }
}

fn malformed(error: &api::Error) -> Status {
    Status::invalid_argument(error.to_string())
}

/// Where a figure comes from, for who asks. Others get what they know: an answer of zero is an empty message.
#[derive(Default)]
struct Told {
    by_load: Option<i32>,
    by_preempting: Option<i32>,
    by_nodes: Option<i32>,
    limited_by: String,
    age_seconds: Option<i64>,
}

impl Told {
    fn new(answer: &Answer, member: &Member, asked: bool) -> Self {
        if !asked {
            return Self::default();
        }
        let binding = answer.by_quota.as_ref().filter(|bound| bound.allows <= answer.most);
        Self {
            by_load: answer.by_load,
            by_preempting: answer.by_preempting,
            by_nodes: Some(answer.by_nodes),
            limited_by: binding.map(|bound| bound.quota.clone()).unwrap_or_default(),
            age_seconds: member
                .status()
                .heard
                .map(|heard| Timestamp::now().duration_since(heard).as_secs().max(0)),
        }
    }
}
