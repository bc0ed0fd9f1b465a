//! Volumes of claims that get one together with a node.

use super::Cluster;
use crate::cycle;
use crate::ledger::{Assigned, Uid};
use crate::view::volumes::{Planned, Storage};
use crate::view::{NodeId, NodeView, PodView};
use jiff::Timestamp;
use std::collections::BTreeMap;

impl Cluster {
    /// What claims without a volume can get, to be changed.
    pub fn storage_mut(&mut self) -> &mut Storage {
        self.live.storage_mut()
    }

    /// How many volumes each driver can attach to a node is another. A node that is not there says so itself when it comes.
    pub fn set_attach_limits(&mut self, node: &str, limits: BTreeMap<String, i64>) {
        if let Some(id) = self.live.set_attach_limits(node, limits) {
            self.touch(id);
        }
    }

    /// The node of that name, if it is there.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<&NodeView> {
        self.live.id(name).map(|id| self.live.node(id)).filter(|node| node.present)
    }

    /// What the claims of a pod get on a node, as things are.
    pub(super) fn planned(&mut self, pod: &PodView, node: NodeId) -> Vec<Planned> {
        cycle::planned(self.live.snapshot(), pod, node)
    }

    /// Nobody else gets the volumes of a pod that goes to this node.
    pub(super) fn assume_volumes(&mut self, pod: &PodView, node: NodeId) {
        if pod.wants.claims.is_empty() {
            return;
        }
        let planned = self.planned(pod, node);
        let name = self.live.node(node).name.clone();
        self.live.storage_mut().assume(&pod.uid, &name, planned);
    }

    /// What was decided on the volumes of a pod is seen by everybody, or does not hold any more.
    pub(super) fn forget_volumes(&mut self, uid: &str) {
        if self.live.storage().assumes(uid) {
            self.live.storage_mut().forget(uid);
        }
    }

    /// A pod we placed is still on its way there: its time starts again. Volumes may take long to be made.
    pub fn renew(&mut self, uid: &str, now: Timestamp) {
        let Some(node) = self.assumed.get(uid).copied() else { return };
        let Some((_, pod)) = self.live.place(uid) else { return };
        let assigned = Assigned { node, estimate: pod.estimate, started: None };
        self.ledger.reserve(Uid::new(uid), assigned, now);
    }
}
