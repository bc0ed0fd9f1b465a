//! By which rules are pods placed? One cluster may be asked by several: schedulers of different names with policies of
//! their own, all reading one account.

use super::{Cluster, NodeLoad};
use crate::cycle::{Memo, Weights};
use crate::load::board::Board;
use crate::load::filter::{Who, exempt};
use crate::load::policy::Rules;
use crate::view::{NodeId, PodView};

/// Rules to decide by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The load policy and its settings; `None` leaves load out of every decision.
    pub rules: Option<Rules>,
    /// How much each score weighs.
    pub weights: Weights,
}

impl Profile {
    /// By these rules, or without load.
    #[must_use]
    pub fn by(rules: Option<Rules>) -> Self {
        Self { rules, weights: Weights::default() }
    }
}

/// A profile, and what follows from it for every node.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub profile: Profile,
    /// The rules of the profile; where it has none, crane's, for who asks all the same.
    pub rules: Rules,
    pub board: Board,
    pub loads: Vec<NodeLoad>,
    pub memo: Memo,
}

impl Judge {
    pub fn new(profile: Profile) -> Self {
        let rules = profile.rules.clone().unwrap_or_default();
        Self { profile, rules, board: Board::default(), loads: Vec::new(), memo: Memo::default() }
    }

    /// Do the load rules let this pod through whatever the load?
    pub fn is_exempt(&self, pod: &PodView) -> bool {
        exempt(&self.rules, &Who { namespace: &pod.key.namespace, labels: &pod.labels, daemon: pod.daemon })
    }
}

impl Cluster {
    /// Decides by these from now on, in place of those before; at least one is needed, so none changes nothing.
    ///
    /// What is known stays: profiles share the account. How long load is taken to be on its way is the longest any of
    /// them says.
    pub fn set_profiles(&mut self, profiles: Vec<Profile>) {
        if profiles.is_empty() || profiles.iter().eq(self.judges.iter().map(|judge| &judge.profile)) {
            return;
        }
        self.judges = profiles.into_iter().map(Judge::new).collect();
        self.tentative.forget_rules();
        if let Some(settle) = self.judges.iter().map(|judge| judge.rules.settings().settle).max() {
            self.ledger.set_settle(settle);
        }
        for id in (0..self.live.snapshot().width()).map(NodeId::at) {
            self.reread(id);
        }
        self.due.clear();
        self.touch_all();
    }

    /// By how many profiles it can be asked.
    #[must_use]
    pub fn profiles(&self) -> usize {
        self.judges.len()
    }

    /// The load rules in force in the first profile.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.judges[0].rules
    }

    /// Does load count in the decisions of any profile?
    #[must_use]
    pub fn is_load_aware(&self) -> bool {
        self.judges.iter().any(|judge| judge.profile.rules.is_some())
    }

    /// Do the load rules of the first profile let this pod through whatever the load?
    #[must_use]
    pub fn is_exempt(&self, pod: &PodView) -> bool {
        self.judges[0].is_exempt(pod)
    }
}
