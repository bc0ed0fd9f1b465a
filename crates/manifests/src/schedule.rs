//! Which pods are to be scheduled, and in which cluster?

use crate::cluster::{self, UnscheduledPod};
use crate::kind::Kind;
use crate::manifest::Manifests;
use crate::problem::{Problem, Problems};
use jiff::Timestamp;
use loadline_core::cluster::Cluster;

/// A cluster and the pods in it that have no node yet.
#[derive(Debug)]
pub struct ScheduleInput {
    pub cluster: Cluster,
    /// In the order in which a scheduling queue would hand them out.
    pub pods: Vec<UnscheduledPod>,
    /// What is odd and bears on decisions.
    pub warnings: Vec<Problem>,
}

impl ScheduleInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &cluster::KINDS;

    /// Makes of the objects the cluster they describe at that time.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests, now: Timestamp) -> Result<Self, Problems> {
        let described = cluster::describe(&mut manifests, now, &mut ());
        let (cluster::Described { cluster, pending, .. }, warnings) = manifests.finish(Some(described))?;
        Ok(Self { cluster, pods: pending, warnings })
    }
}
