//! A decision that is not charged yet, and the only way to charge one.

use super::{Asked, Cluster, Report};
use crate::cycle::{self, Decision, InVain, Preemption};
use crate::explain::Reason;
use crate::ledger::Uid;
use crate::load::Load;
use crate::view::volumes::Planned;
use crate::view::{NodeId, NodeView, PodView};
use std::sync::Arc;

/// Where a pod goes, as things are, from [`Cluster::decide`].
///
/// The account cannot change while this is there, so what it says holds until it is [reserved](Self::reserve), or
/// dropped by those who only asked.
///
/// ```
/// # use loadline_core::cluster::{Cluster, Options};
/// # use loadline_core::view::PodFacts;
/// # let mut cluster = Cluster::new(Options::default(), jiff::Timestamp::UNIX_EPOCH);
/// let pod = cluster.view(&PodFacts::default());
/// let mut decided = cluster.decide(&pod);
/// if decided.node().is_none() {
///     assert_eq!(decided.message(), "no nodes available to schedule pods");
/// }
/// decided.reserve();
/// ```
///
/// Nothing is reserved without a decision:
///
/// ```compile_fail
/// # use loadline_core::cluster::{Cluster, Options};
/// # use loadline_core::view::{NodeId, PodFacts};
/// # let mut cluster = Cluster::new(Options::default(), jiff::Timestamp::UNIX_EPOCH);
/// let pod = cluster.view(&PodFacts::default());
/// cluster.reserve(&pod, NodeId(0));
/// ```
///
/// nor on one that does not hold any more:
///
/// ```compile_fail
/// # use loadline_core::cluster::{Cluster, Options};
/// # use loadline_core::view::{NodeFacts, PodFacts};
/// # let mut cluster = Cluster::new(Options::default(), jiff::Timestamp::UNIX_EPOCH);
/// let pod = cluster.view(&PodFacts::default());
/// let decided = cluster.decide(&pod);
/// cluster.set_node(&NodeFacts::default());
/// decided.reserve();
/// ```
#[derive(Debug)]
#[must_use = "nothing is charged before it is reserved"]
pub struct Decided<'c> {
    pub(super) cluster: &'c mut Cluster,
    pub(super) profile: usize,
    pub(super) pod: &'c Arc<PodView>,
    pub(super) decision: Decision,
}

impl Cluster {
    /// Where a pod goes by the first profile, as things are. Charges nothing before it is told to.
    pub fn decide<'c>(&'c mut self, pod: &'c Arc<PodView>) -> Decided<'c> {
        self.decide_by(0, pod)
    }

    /// The same by another [profile](super::Profile), by its place among them; beyond them, by the first.
    pub fn decide_by<'c>(&'c mut self, profile: usize, pod: &'c Arc<PodView>) -> Decided<'c> {
        let profile = if profile < self.judges.len() { profile } else { 0 };
        let Asked { input, memo, .. } = self.ask(profile, pod);
        let decision = cycle::decide(&input, pod, memo);
        Decided { cluster: self, profile, pod, decision }
    }
}

impl Decided<'_> {
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// The node; `None` if none will do.
    #[must_use]
    pub fn node(&self) -> Option<&NodeView> {
        self.decision.node.map(|id| self.cluster.live.node(id))
    }

    /// What the claims of the pod that have no volume get on its node.
    #[must_use]
    pub fn volumes(&mut self) -> Vec<Planned> {
        self.decision.node.map(|node| self.volumes_on(node)).unwrap_or_default()
    }

    /// What they would get on another node.
    #[must_use]
    pub fn volumes_on(&mut self, node: NodeId) -> Vec<Planned> {
        if self.pod.wants.claims.is_empty() { Vec::new() } else { self.cluster.planned(self.pod, node) }
    }

    /// Everything known and found about the pod, node by node.
    #[must_use]
    pub fn report(&mut self) -> Report {
        self.cluster.report(self.profile, self.pod, self.decision.clone())
    }

    /// Why no node would do, in the words of kube-scheduler; in upstream mode of crane's plugin in it.
    #[must_use]
    pub fn message(&mut self) -> String {
        self.cluster.refresh();
        let loads = self.cluster.judges[self.profile].loads.iter().enumerate();
        let over = loads.filter_map(|(at, load)| match load.filtered.reasons.first()? {
            reason @ Reason::LoadTooHigh { .. } => Some((NodeId::at(at), reason.to_string())),
            _ => None,
        });
        let over = over.collect();
        cycle::message_with(&self.cluster.ask(self.profile, self.pod).input, self.pod, &self.decision, &over)
    }

    /// Does any node have some of a resource for pods, whether it is free or not?
    #[must_use]
    pub fn is_offered(&mut self, name: &str) -> bool {
        let snapshot = self.cluster.snapshot();
        snapshot.names().find(name).is_some_and(|resource| {
            snapshot.nodes().any(|node| node.present && node.allocatable.get(resource) > 0)
        })
    }

    /// Who would have to go for a pod that fits nowhere; `None` if that helps nowhere.
    #[must_use]
    pub fn preempt(&mut self) -> Option<Preemption> {
        self.make_room(true).ok()
    }

    /// The same, and if nobody is to go, why. Is anybody less important, on any node? If that is not known: yes.
    ///
    /// # Errors
    /// When nobody is to go.
    pub fn make_room(&mut self, is_any_lesser: bool) -> Result<Preemption, InVain> {
        let Asked { input, memo, ledger, budgets } = self.cluster.ask(self.profile, self.pod);
        // Only load nobody has measured yet surely goes with the pod.
        let releases = |pod: &PodView, node: NodeId| {
            let uid = Uid::new(&pod.uid);
            ledger.pending(node).find(|(u, _)| *u == uid).map_or(Load::ZERO, |(_, load)| load)
        };
        cycle::make_room(&input, self.pod, is_any_lesser, budgets, Some(&releases), memo)
    }

    /// Charges the pod to its node, if there is one, before anything else can be decided. It stays charged until it is
    /// seen bound, [taken back](Cluster::unreserve), or its time is over.
    #[expect(clippy::must_use_candidate, reason = "it is called for what it does")]
    pub fn reserve(self) -> Decision {
        if let Some(node) = self.decision.node {
            self.cluster.reserve(self.pod, node);
        }
        self.decision
    }
}
