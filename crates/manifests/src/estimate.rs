//! What is asked about, and under which circumstances? Of the objects given, one is the workload.

use crate::cluster::{self, Described};
use crate::kind::{self, Kind};
use crate::manifest::Manifests;
use crate::problem::{Problem, Problems};
use jiff::Timestamp;
use loadline_api::json::Tree;
use loadline_api::workload::{self, Question};
use loadline_api::{Context, quota};
use loadline_core::cluster::Cluster;
use loadline_core::estimate::{Assumed, Index};

/// Workloads that are meant whenever they are there: nobody finds them in a cluster by chance.
pub(crate) const MEANT: [Kind; 3] =
    [Kind::POD_TEMPLATE, Kind::RESOURCE_BINDING, Kind::CLUSTER_RESOURCE_BINDING];
/// Workloads a question can be about.
pub(crate) const WORKLOADS: [Kind; 7] = [
    Kind::DEPLOYMENT,
    Kind::STATEFUL_SET,
    Kind::REPLICA_SET,
    Kind::JOB,
    Kind::POD_TEMPLATE,
    Kind::RESOURCE_BINDING,
    Kind::CLUSTER_RESOURCE_BINDING,
];
/// A workload, and the cluster in which more of it is to fit.
#[derive(Debug)]
pub struct EstimateInput {
    pub question: Question,
    /// What is on its way.
    pub assumed: Vec<Assumed>,
    /// What is there, by what is requested.
    pub index: Index,
    /// The same by load.
    pub cluster: Cluster,
    /// How many pods have no node.
    pub pending: usize,
    /// What is odd and bears on the answer.
    pub warnings: Vec<Problem>,
}

impl EstimateInput {
    /// Every kind that is read: all that is scheduled by, so that one file serves both, and what is only asked here.
    pub const KINDS: &[Kind] =
        &kind::concat::<30>(&[&cluster::KINDS, &[Kind::RESOURCE_QUOTA], &MEANT, &[Kind::ASSUMED_WORKLOAD]]);

    /// Finds the workload among the objects and makes of the others the cluster they describe at that time. What was
    /// read from a live cluster is part of that, never the workload.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests, live: Manifests, now: Timestamp) -> Result<Self, Problems> {
        let asked = manifests.workload(&MEANT, &WORKLOADS);
        manifests.extend(live);
        manifests.objects.retain(|object| !MEANT.contains(&object.kind));
        let mut index = Index::new();
        let Described { cluster, context, pending } = cluster::describe(&mut manifests, now, &mut index);
        quotas(&mut manifests, &mut index);
        let question =
            asked.and_then(|asked| manifests.required(&asked, |tree| workload::read(tree, &context)));
        let assumed = assumed(&mut manifests, &context);
        let (question, warnings) = manifests.finish(question)?;
        Ok(Self { question, assumed, index, cluster, pending: pending.len(), warnings })
    }
}

/// Tells the index of quotas.
fn quotas(manifests: &mut Manifests, index: &mut Index) {
    for object in manifests.take(Kind::RESOURCE_QUOTA) {
        let Some(quota) = manifests.must(&object, quota::quota) else { continue };
        if quota.hard.is_empty() {
            let message = "nobody has counted yet, so this quota binds nothing";
            manifests.warn(object.problem("status.hard", message));
        }
        index.set_quota(quota);
    }
}

/// What is on its way.
fn assumed(manifests: &mut Manifests, context: &Context) -> Vec<Assumed> {
    // Those without a name are all different.
    let all = manifests.take_all(Kind::ASSUMED_WORKLOAD).into_iter();
    let (named, others): (Vec<_>, Vec<_>) = all.partition(|object| !object.key().name.is_empty());
    let all = manifests.unique(named).into_iter().chain(others);
    let read = |tree: &Tree<'_>| workload::assumed(tree, context);
    all.filter_map(|object| manifests.required(&object, read)).collect()
}
