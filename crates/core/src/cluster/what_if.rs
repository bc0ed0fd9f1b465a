//! What if a pod were somewhere else? Steps that are made on a copy of the account, never on the account itself.

use super::Cluster;
use crate::ledger::{Figures, History, Uid};
use crate::load::Load;
use crate::load::estimate::{Source, estimate};
use crate::load::recommend::Recommendation;
use crate::view::{Budget, NodeId, NodeView, PodView};
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Cluster {
    /// What the ledger knows of a node.
    #[must_use]
    pub fn figures(&self, node: NodeId) -> Figures {
        self.ledger.figures(node)
    }

    /// Which pods of a node are expected to use more than can be in its measurement yet.
    #[must_use]
    pub fn arriving(&self, node: NodeId) -> FxHashSet<Uid> {
        self.ledger.pending(node).map(|(uid, _)| uid).collect()
    }

    /// How loaded a node has been.
    #[must_use]
    pub fn history(&self, node: NodeId) -> Option<History> {
        self.ledger.history(node)
    }

    /// A node, by its number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &NodeView {
        self.live.node(id)
    }

    /// How many pods may be disrupted.
    #[must_use]
    pub fn budgets(&self) -> &[Budget] {
        &self.budgets
    }

    /// What a pod was learned to use; `None` of one for which nothing was recommended.
    #[must_use]
    pub fn learned(&self, pod: &PodView) -> Option<Load> {
        Some(estimate(&pod.asks, Some(self.recommendation(pod)?), Load::ZERO).load)
    }

    /// The recommendation that says what a pod is expected to use; `None` if its requests do.
    #[must_use]
    pub fn recommendation(&self, pod: &PodView) -> Option<&Recommendation> {
        let found = self.advice.find(&pod.key.namespace, pod.owner.as_ref(), &pod.labels)?;
        let sources = estimate(&pod.asks, Some(found), Load::ZERO).sources;
        let used = sources.iter().any(|one| [one.cpu, one.memory].contains(&Source::Recommendation));
        used.then_some(found)
    }

    /// Takes a pod off its node, as far as rules look at pods. What it uses stays in the books of that node.
    pub(crate) fn lift(&mut self, pod: &PodView) {
        self.unname(pod);
        if let Some(node) = self.live.remove_pod(&pod.uid) {
            self.touch(node);
        }
    }

    /// Puts a pod that was lifted back.
    pub(crate) fn put_back(&mut self, pod: &Arc<PodView>, node: NodeId) {
        self.live.assume(pod, node);
        self.name(pod);
        self.touch(node);
    }

    /// Charges a pod that was lifted to another node, with what it is expected to use there.
    pub(crate) fn land(&mut self, pod: &PodView, expected: Load, node: NodeId) {
        self.ledger.remove(Uid::new(&pod.uid), self.now);
        self.reserve(&Arc::new(PodView { estimate: expected, ..pod.clone() }), node);
    }

    /// Nothing is placed on a node any more, whoever places.
    pub(crate) fn close(&mut self, node: NodeId) {
        self.live.close(node);
        self.touch(node);
    }
}
