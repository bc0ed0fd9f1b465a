//! What is the cluster in these files like? Objects become facts, and facts a [`Cluster`].
//!
//! The order of the documents does not matter: what others refer to comes first, measurements come by time.

use crate::documents::{self, Document, Documents, Kind, Problem, side_by_side};
use crate::rules;
use jiff::Timestamp;
use loadline_api::json::Tree;
use loadline_api::{
    Context, Error, Warning, cluster as api_cluster, event, metrics, node, owners, pod, policy,
    recommendation,
};
use loadline_core::cluster::{Cluster, Options};
use loadline_core::ledger::{Ignored, PodMetrics, Sample, Taken};
use loadline_core::load::policy::Rules;
use loadline_core::load::recommend::Target;
use loadline_core::object::Key;
use loadline_core::view::{NodeFacts, Owner, PodFacts, Texts};
use serde_json::Value;
use std::collections::BTreeMap;

/// Every kind that is read.
pub const KINDS: [Kind; 22] = [
    ("v1", "Node"),
    ("v1", "Pod"),
    ("metrics.k8s.io/v1beta1", "NodeMetrics"),
    ("metrics.k8s.io/v1beta1", "PodMetrics"),
    ("analysis.crane.io/v1alpha1", "Recommendation"),
    ("v1", "Event"),
    ("events.k8s.io/v1", "Event"),
    ("v1", "PersistentVolume"),
    ("v1", "PersistentVolumeClaim"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("storage.k8s.io/v1", "CSINode"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("v1", "Namespace"),
    ("policy/v1", "PodDisruptionBudget"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    policy::POLICY,
    policy::SETTINGS,
];

/// What was read of an object, and what is odd about it.
type Facts<T> = Result<(T, Vec<Warning>), Error>;

/// A pod to be decided, and what is odd about it.
pub struct Waiting {
    pub facts: PodFacts,
    pub warnings: Vec<String>,
}

/// What there is, for whoever counts it in a way of its own.
pub enum News<'a> {
    Node(&'a NodeFacts),
    /// With or without a node.
    Pod(&'a PodFacts),
    /// Who controls a workload.
    Controlled(&'a Target, Option<&'a Owner>),
}

/// Told of everything there is.
pub type Tell<'a> = &'a mut dyn FnMut(News<'_>);

/// The cluster of the input.
pub struct World {
    pub cluster: Cluster,
    /// What pods and nodes refer to.
    pub context: Context,
    /// Pods without a node, in the order in which a queue would hand them out.
    pub waiting: Vec<Waiting>,
    /// What is odd about the input and bears on decisions.
    pub warnings: Vec<String>,
}

/// Builds the cluster the objects describe, at a time, and tells of everything on the way.
///
/// # Errors
/// All problems at once.
pub fn build(read: Documents, now: Timestamp, tell: Tell<'_>) -> Result<World, Vec<Problem>> {
    let mut build = Build::default();
    build.warnings.extend(read.warnings.iter().map(ToString::to_string));
    let mut by_kind: BTreeMap<&str, Vec<Document>> = BTreeMap::new();
    for object in read.objects {
        by_kind.entry(object.kind).or_default().push(object);
    }
    let mut take = |kind: &str| by_kind.remove(kind).unwrap_or_default();
    let rules = build.rules(&[take("DynamicSchedulerPolicy"), take("LoadSettings")].concat());
    let pod_metrics = take("PodMetrics");
    let pods = if pod_metrics.is_empty() { PodMetrics::Unused } else { PodMetrics::Used };
    let mut cluster = Cluster::new(Options { rules: Some(rules), pods, ..Options::default() }, now);

    let context = build.context(&mut take);
    let mut texts = Texts::default();
    for document in build.once(take("Namespace")) {
        let facts = api_cluster::namespace_facts(&Tree::from(&document.value), &mut texts);
        if let Some(facts) = build.must(&document, facts) {
            cluster.set_namespace(facts);
        }
    }
    for kind in ["ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"] {
        for document in build.once(take(kind)) {
            build.workload(&document, &mut cluster, tell);
        }
    }
    for document in take("Recommendation") {
        if let Some(Some(advice)) = build.may(&document, recommendation::read(&Tree::from(&document.value))) {
            cluster.recommend(advice);
        }
    }
    for mut document in build.once(take("Node")) {
        let first = node::facts(&Tree::from(&document.value));
        if let Some((mut facts, warnings)) = build.wanted(&mut document, first, node::facts) {
            build.warn(&document, warnings);
            context.complete(&mut facts);
            cluster.set_node(&facts);
            tell(News::Node(&facts));
        }
    }
    let waiting = build.pods(take("Pod"), &context, &mut cluster, tell);
    build.node_samples(&take("NodeMetrics"), &mut cluster);
    for document in pod_metrics {
        if let Some((pod, sample)) =
            build.may(&document, metrics::pod(&Tree::from(&document.value)).map(|m| (m, vec![])))
        {
            cluster.pod_sample(&pod, sample);
        }
    }
    for document in take("Event") {
        bind(&document.value, &mut cluster);
    }
    let mut budgets = Vec::new();
    for document in build.once(take("PodDisruptionBudget")) {
        if let Some((budget, warnings)) =
            build.must(&document, api_cluster::budget(&Tree::from(&document.value)))
        {
            build.warn(&document, warnings);
            budgets.push(budget);
        }
    }
    cluster.set_budgets(budgets);
    if !build.problems.is_empty() {
        return Err(documents::sorted(build.problems));
    }
    // Nothing here expires by itself any more; what the time says is asked once.
    cluster.advance(now);
    Ok(World { cluster, context, waiting, warnings: build.warnings })
}

/// Adds an object to what others refer to.
type Add = fn(&mut Context, &Tree<'_>) -> Result<(), Error>;

/// What was found on the way.
#[derive(Default)]
pub struct Build {
    pub problems: Vec<Problem>,
    pub warnings: Vec<String>,
}

impl Build {
    /// What must be right.
    pub fn must<T>(&mut self, document: &Document, read: Result<T, Error>) -> Option<T> {
        read.map_err(|error| {
            let problems = error.problems.into_iter().map(|one| document.problem(one.path, one.problem));
            self.problems.extend(problems);
        })
        .ok()
    }

    /// A pod or a node: what it wants must be right, what its status says need not be.
    pub fn wanted<T>(
        &mut self,
        document: &mut Document,
        first: Facts<T>,
        read: impl Fn(&Tree<'_>) -> Facts<T>,
    ) -> Option<(T, Vec<Warning>)> {
        let Err(error) = &first else { return first.ok() };
        if error.problems.iter().any(|one| !one.path.starts_with("status")) {
            return self.must(document, first);
        }
        let told = error.problems.iter().map(|one| document.problem(one.path.as_str(), one.problem.as_str()));
        self.warnings.extend(told.map(|problem| format!("{problem}; the status is left out")));
        if let Value::Object(fields) = &mut document.value {
            fields.remove("status");
        }
        let again = read(&Tree::from(&document.value));
        self.must(document, again)
    }

    /// What was only observed: as good as absent if it cannot be read.
    pub fn may<T>(&mut self, document: &Document, read: Result<(T, Vec<Warning>), Error>) -> Option<T> {
        match read {
            Ok((value, warnings)) => {
                self.warn(document, warnings);
                Some(value)
            }
            Err(error) => {
                let told = error.problems.into_iter().map(|one| document.problem(one.path, one.problem));
                self.warnings.extend(told.map(|problem| format!("{problem}; {} is left out", document.kind)));
                None
            }
        }
    }

    pub fn warn(&mut self, document: &Document, warnings: Vec<Warning>) {
        let told = warnings.into_iter().map(|one| document.problem(one.problem.path, one.problem.problem));
        self.warnings.extend(told.map(|problem| problem.to_string()));
    }

    /// Each object once. The same object again is the same; another one of the same name is a problem, since the
    /// order of documents must not matter.
    pub fn once(&mut self, documents: Vec<Document>) -> Vec<Document> {
        let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut kept: Vec<Document> = Vec::with_capacity(documents.len());
        for document in documents {
            match known.entry(name(&document.value)) {
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(kept.len());
                    kept.push(document);
                }
                std::collections::btree_map::Entry::Occupied(first) => {
                    let first = &kept[*first.get()];
                    if first.value != document.value {
                        let what = format!(
                            "expected each {} once, found another one of this name in {}",
                            document.kind, first.place
                        );
                        self.problems.push(document.problem("metadata.name", what));
                    }
                }
            }
        }
        kept
    }

    /// The rules of the one policy and the one set of settings, or the defaults.
    fn rules(&mut self, documents: &[Document]) -> Rules {
        match rules::read(documents) {
            Ok((rules, warnings)) => {
                self.warnings.extend(warnings.iter().map(ToString::to_string));
                rules
            }
            Err(problems) => {
                self.problems.extend(problems);
                Rules::default()
            }
        }
    }

    /// What pods and nodes refer to.
    fn context(&mut self, mut take: impl FnMut(&str) -> Vec<Document>) -> Context {
        let mut context = Context::new();
        for (kind, add) in [
            ("PriorityClass", Context::priority_class as Add),
            ("PersistentVolumeClaim", Context::claim),
            ("PersistentVolume", Context::volume),
            ("StorageClass", Context::storage_class),
            ("CSINode", Context::csi_node),
        ] {
            for document in self.once(take(kind)) {
                let read = add(&mut context, &Tree::from(&document.value));
                self.must(&document, read);
            }
        }
        context
    }

    fn workload(&mut self, document: &Document, cluster: &mut Cluster, tell: Tell<'_>) {
        let Some((workload, warnings)) = self.must(document, owners::read(&Tree::from(&document.value)))
        else {
            return;
        };
        self.warn(document, warnings);
        tell(News::Controlled(&workload.target, workload.controller.as_ref()));
        cluster.controlled(workload.target, workload.controller);
        if let Some(advice) = workload.advice {
            cluster.recommend(advice);
        }
    }

    /// Puts pods that have a node there; gives back the others in the order of a queue.
    fn pods(
        &mut self,
        documents: Vec<Document>,
        context: &Context,
        cluster: &mut Cluster,
        tell: Tell<'_>,
    ) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        let mut lost: Vec<String> = Vec::new();
        let read = |value: &Tree<'_>| pod::facts(value, context);
        let mut all: Vec<(Document, Option<Facts<PodFacts>>)> =
            self.once(documents).into_iter().map(|document| (document, None)).collect();
        side_by_side(&mut all, |(document, facts)| {
            let found = read(&Tree::from(&document.value));
            if found.is_ok() {
                // Not needed any more, and there are many.
                document.value = Value::Null;
            }
            *facts = Some(found);
        });
        for (mut document, first) in all {
            let Some((mut facts, warnings)) = first.and_then(|first| self.wanted(&mut document, first, read))
            else {
                continue;
            };
            if facts.uid.is_empty() {
                facts.uid = facts.key.to_string().into();
            }
            tell(News::Pod(&facts));
            if let Some(node) = &facts.node {
                if cluster.snapshot().find_node(node).is_none() && !facts.phase.is_over() {
                    lost.push(format!("{} on {node}", facts.key));
                }
                cluster.set_pod(&facts);
                self.warn(&document, warnings);
            } else if !facts.phase.is_over() {
                let warnings = warnings.into_iter().map(|one| one.problem.to_string()).collect();
                waiting.push(Waiting { facts, warnings });
            }
        }
        if let [first, ..] = lost.as_slice() {
            let count = lost.len();
            self.warnings.push(format!(
                "pods on nodes that are not in the input are not counted: {count}, such as {first}"
            ));
        }
        waiting.sort_by(|a, b| {
            let key = |waiting: &Waiting| {
                let facts = &waiting.facts;
                (std::cmp::Reverse(facts.priority), facts.created.unwrap_or(Timestamp::MAX))
            };
            key(a).cmp(&key(b)).then_with(|| a.facts.key.cmp(&b.facts.key))
        });
        waiting
    }

    /// Measurements of nodes by time, so that all but the newest become history.
    fn node_samples(&mut self, documents: &[Document], cluster: &mut Cluster) {
        let mut samples: Vec<(&Document, String, Sample)> = Vec::new();
        for document in documents {
            if let Some((node, sample)) =
                self.may(document, metrics::node(&Tree::from(&document.value)).map(|m| (m, vec![])))
            {
                samples.push((document, node, sample));
            }
        }
        samples.sort_by_key(|(_, _, sample)| sample.at);
        for (document, node, sample) in samples {
            let odd = match cluster.sample(&node, sample) {
                None | Some(Taken::Ignored(Ignored::NoNode)) => {
                    Some(("metadata.name", "there is no such node"))
                }
                Some(Taken::Ignored(Ignored::Repeated)) => {
                    Some(("timestamp", "there is another sample of this moment, and the first counts"))
                }
                Some(Taken::Ignored(Ignored::Negative)) => {
                    Some(("usage", "is negative; the sample is left out"))
                }
                Some(Taken::Ignored(Ignored::Ahead)) => {
                    Some(("timestamp", "is ahead of the time that is taken to be now, and not believed"))
                }
                Some(Taken::Ignored(Ignored::TooOld) | Taken::Newest | Taken::History) => None,
            };
            if let Some((path, what)) = odd {
                self.warnings.push(document.problem(path, what).to_string());
            }
        }
    }
}

/// Namespace and name.
fn name(value: &Value) -> (String, String) {
    let part = |key: &str| value["metadata"][key].as_str().unwrap_or_default().to_owned();
    let namespace = part("namespace");
    (if namespace.is_empty() { "default".to_owned() } else { namespace }, part("name"))
}

fn bind(event: &Value, cluster: &mut Cluster) {
    let Some(binding) = event::binding(&Tree::from(event)) else { return };
    let pod = Key::new(&*binding.pod_namespace, &*binding.pod_name);
    let known = cluster.uid(&pod).map(ToString::to_string);
    let uid = binding.pod_uid.clone().or(known).unwrap_or_else(|| pod.to_string());
    cluster.bound(&uid, &binding.node, binding.at);
}
