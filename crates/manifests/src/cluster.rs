//! What is the cluster in these files like? Objects become facts, and facts a [`Cluster`].
//!
//! The order of the objects does not matter: what others refer to comes first, measurements come by time.

use crate::kind::Kind;
use crate::manifest::{Manifest, Manifests, read_all};
use crate::problem::Problem;
use jiff::Timestamp;
use loadline_api::json::Tree;
use loadline_api::{
    Context, Error, cluster as api_cluster, event, metrics, node, owners, pod, recommendation,
};
use loadline_core::cluster::{Cluster, Options};
use loadline_core::estimate::Index;
use loadline_core::ledger::{Ignored, PodMetrics, Sample, Taken};
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::object::Key;
use loadline_core::view::{NodeFacts, Owner, PodFacts, Texts};
use std::cmp::Reverse;

/// Every kind a cluster is made of.
pub const KINDS: [Kind; 25] = [
    Kind::NODE,
    Kind::POD,
    Kind::NODE_METRICS,
    Kind::POD_METRICS,
    Kind::RECOMMENDATION,
    Kind::EVENT,
    Kind::PERSISTENT_VOLUME,
    Kind::PERSISTENT_VOLUME_CLAIM,
    Kind::STORAGE_CLASS,
    Kind::CSI_NODE,
    Kind::CSI_DRIVER,
    Kind::CSI_STORAGE_CAPACITY,
    Kind::PRIORITY_CLASS,
    Kind::NAMESPACE,
    Kind::POD_DISRUPTION_BUDGET,
    Kind::SERVICE,
    Kind::REPLICATION_CONTROLLER,
    Kind::REPLICA_SET,
    Kind::DEPLOYMENT,
    Kind::STATEFUL_SET,
    Kind::DAEMON_SET,
    Kind::JOB,
    Kind::CRON_JOB,
    Kind::LOAD_POLICY,
    Kind::LOAD_SETTINGS,
];

const WORKLOADS: [Kind; 7] = [
    Kind::REPLICATION_CONTROLLER,
    Kind::REPLICA_SET,
    Kind::DEPLOYMENT,
    Kind::STATEFUL_SET,
    Kind::DAEMON_SET,
    Kind::JOB,
    Kind::CRON_JOB,
];

/// A pod that has no node yet, and what is odd about it.
#[derive(Clone, Debug)]
pub struct UnscheduledPod {
    pub facts: PodFacts,
    pub warnings: Vec<String>,
}

/// What the objects describe.
pub struct Described {
    pub cluster: Cluster,
    /// What pods and nodes refer to.
    pub context: Context,
    /// In the order in which a scheduling queue would hand them out.
    pub pending: Vec<UnscheduledPod>,
}

/// Whoever counts the same facts in a way of its own.
pub trait Observer {
    fn node(&mut self, facts: &NodeFacts);
    /// With or without a node.
    fn pod(&mut self, facts: &PodFacts);
    /// Who controls a workload.
    fn controlled(&mut self, workload: &WorkloadRef, by: Option<&Owner>);
}

impl Observer for () {
    fn node(&mut self, _: &NodeFacts) {}
    fn pod(&mut self, _: &PodFacts) {}
    fn controlled(&mut self, _: &WorkloadRef, _: Option<&Owner>) {}
}

impl Observer for Index {
    fn node(&mut self, facts: &NodeFacts) {
        self.set_node(facts);
    }

    fn pod(&mut self, facts: &PodFacts) {
        self.set_pod(facts);
    }

    fn controlled(&mut self, workload: &WorkloadRef, by: Option<&Owner>) {
        Self::controlled(self, workload.clone(), by.cloned());
    }
}

/// Takes the objects of a cluster and makes of them what they describe at that time. What is wrong is noted.
pub fn describe(manifests: &mut Manifests, now: Timestamp, observer: &mut impl Observer) -> Described {
    let rules = manifests.load_rules();
    let pod_metrics = manifests.take_all(Kind::POD_METRICS);
    let pods = if pod_metrics.is_empty() { PodMetrics::Unused } else { PodMetrics::Used };
    let mut cluster = Cluster::new(Options { rules: Some(rules), pods }, now);
    let context = context(manifests);
    context.offer(cluster.storage_mut());
    let mut builder = Builder { manifests, cluster, context, observer };
    builder.namespaces();
    builder.services();
    builder.workloads();
    builder.recommendations();
    builder.nodes();
    let pending = builder.pods();
    builder.node_metrics();
    builder.pod_metrics(&pod_metrics);
    builder.events();
    builder.budgets();
    let Builder { mut cluster, context, .. } = builder;
    // Nothing here expires by itself any more; what the time says is asked once.
    cluster.advance(now);
    Described { cluster, context, pending }
}

/// What pods and nodes refer to.
fn context(manifests: &mut Manifests) -> Context {
    type Add = fn(&mut Context, &Tree<'_>) -> Result<(), Error>;
    let mut context = Context::new();
    for (kind, add) in [
        (Kind::PRIORITY_CLASS, Context::priority_class as Add),
        (Kind::PERSISTENT_VOLUME_CLAIM, Context::claim),
        (Kind::PERSISTENT_VOLUME, Context::volume),
        (Kind::STORAGE_CLASS, Context::storage_class),
        (Kind::CSI_NODE, Context::csi_node),
        (Kind::CSI_DRIVER, Context::csi_driver),
        (Kind::CSI_STORAGE_CAPACITY, Context::storage_capacity),
    ] {
        for object in manifests.take(kind) {
            manifests.must(&object, |tree| add(&mut context, tree));
        }
    }
    context
}

/// A cluster in the making.
struct Builder<'a, O> {
    manifests: &'a mut Manifests,
    cluster: Cluster,
    context: Context,
    observer: &'a mut O,
}

impl<O: Observer> Builder<'_, O> {
    fn namespaces(&mut self) {
        let mut texts = Texts::default();
        for object in self.manifests.take(Kind::NAMESPACE) {
            let read = |tree: &Tree<'_>| api_cluster::namespace_facts(tree, &mut texts);
            if let Some(facts) = self.manifests.must(&object, read) {
                self.cluster.set_namespace(facts);
            }
        }
    }

    fn services(&mut self) {
        for object in self.manifests.take(Kind::SERVICE) {
            if let Some(service) = self.manifests.must(&object, api_cluster::service) {
                self.cluster.set_service(&service.key, &service.selector);
            }
        }
    }

    fn workloads(&mut self) {
        for kind in WORKLOADS {
            self.workloads_of(kind);
        }
    }

    fn workloads_of(&mut self, kind: Kind) {
        for workload in self.manifests.required_all(kind, owners::read) {
            self.observer.controlled(&workload.target, workload.controller.as_ref());
            if let Some((maker, selector)) = workload.selects {
                self.cluster.set_workload(maker, &workload.target.key, selector);
            }
            self.cluster.controlled(workload.target, workload.controller);
            if let Some(advice) = workload.advice {
                self.cluster.recommend(advice);
            }
        }
    }

    fn recommendations(&mut self) {
        for object in self.manifests.take_all(Kind::RECOMMENDATION) {
            if let Some(advice) = self.manifests.optional(&object, recommendation::read).flatten() {
                self.cluster.recommend(advice);
            }
        }
    }

    fn nodes(&mut self) {
        for mut facts in self.manifests.tolerant_all(Kind::NODE, node::with_images) {
            self.context.complete(&mut facts);
            self.cluster.set_node(&facts);
            self.observer.node(&facts);
        }
    }

    /// Puts pods that have a node there; gives back the others in the order of a queue.
    fn pods(&mut self) -> Vec<UnscheduledPod> {
        let mut pending = Vec::new();
        let mut lost: Vec<String> = Vec::new();
        let objects = self.manifests.take(Kind::POD);
        let context = &self.context;
        let read = |tree: &Tree<'_>| pod::facts(tree, context);
        for (mut object, first) in read_all(objects, read) {
            let found = self.manifests.or_without_status(&mut object, first, read);
            let Some((mut facts, warnings)) = found else { continue };
            if facts.uid.is_empty() {
                facts.uid = facts.key.to_string().into();
            }
            self.observer.pod(&facts);
            if let Some(node) = &facts.node {
                if self.cluster.snapshot().find_node(node).is_none() && !facts.phase.is_over() {
                    lost.push(format!("{} on {node}", facts.key));
                }
                self.cluster.set_pod(&facts);
                self.manifests.warn_of(&object, warnings);
            } else if !facts.phase.is_over() {
                let warnings = warnings.into_iter().map(|one| one.problem.to_string()).collect();
                pending.push(UnscheduledPod { facts, warnings });
            }
        }
        if let [first, ..] = lost.as_slice() {
            let count = lost.len();
            self.manifests.warn(Problem::general(format!(
                "pods on nodes that are not in the input are not counted: {count}, such as {first}"
            )));
        }
        sort_by_queue(&mut pending);
        pending
    }

    /// Measurements of nodes by time, so that all but the newest become history.
    fn node_metrics(&mut self) {
        let mut samples: Vec<(Manifest, String, Sample)> = Vec::new();
        for object in self.manifests.take_all(Kind::NODE_METRICS) {
            let read = |tree: &Tree<'_>| metrics::node(tree).map(|sample| (sample, Vec::new()));
            if let Some((node, sample)) = self.manifests.optional(&object, read) {
                samples.push((object, node, sample));
            }
        }
        samples.sort_by_key(|(_, _, sample)| sample.at);
        for (object, node, sample) in samples {
            if let Some((path, message)) = odd(self.cluster.sample(&node, sample)) {
                self.manifests.warn(object.problem(path, message));
            }
        }
    }

    fn pod_metrics(&mut self, objects: &[Manifest]) {
        for object in objects {
            let read = |tree: &Tree<'_>| metrics::pod(tree).map(|sample| (sample, Vec::new()));
            if let Some((pod, sample)) = self.manifests.optional(object, read) {
                self.cluster.pod_sample(&pod, sample);
            }
        }
    }

    /// Who was bound where.
    fn events(&mut self) {
        for object in self.manifests.take_all(Kind::EVENT) {
            let Some(binding) = event::binding(&object.tree()) else { continue };
            let pod = Key::new(&*binding.pod_namespace, &*binding.pod_name);
            let known = self.cluster.uid(&pod).map(ToString::to_string);
            let uid = binding.pod_uid.clone().or(known).unwrap_or_else(|| pod.to_string());
            self.cluster.bound(&uid, &binding.node, binding.at);
        }
    }

    fn budgets(&mut self) {
        let budgets = self.manifests.required_all(Kind::POD_DISRUPTION_BUDGET, api_cluster::budget);
        self.cluster.set_budgets(budgets);
    }
}

/// By priority, then by age, then by name.
fn sort_by_queue(pending: &mut [UnscheduledPod]) {
    pending.sort_by(|a, b| {
        let rank =
            |pod: &UnscheduledPod| (Reverse(pod.facts.priority), pod.facts.created.unwrap_or(Timestamp::MAX));
        rank(a).cmp(&rank(b)).then_with(|| a.facts.key.cmp(&b.facts.key))
    });
}

/// What is odd about a sample, by what became of it.
fn odd(taken: Option<Taken>) -> Option<(&'static str, &'static str)> {
    match taken {
        None | Some(Taken::Ignored(Ignored::NoNode)) => Some(("metadata.name", "there is no such node")),
        Some(Taken::Ignored(Ignored::Repeated)) => {
            Some(("timestamp", "there is another sample of this moment, and the first counts"))
        }
        Some(Taken::Ignored(Ignored::Negative)) => Some(("usage", "is negative; the sample is left out")),
        Some(Taken::Ignored(Ignored::Ahead)) => {
            Some(("timestamp", "is ahead of the time that is taken to be now, and not believed"))
        }
        Some(Taken::Ignored(Ignored::TooOld) | Taken::Newest | Taken::History) => None,
    }
}
