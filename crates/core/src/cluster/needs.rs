//! When in the day does a pod use how much, and does that count?

use super::Cluster;
use super::profile::Judge;
use crate::load::Load;
use crate::load::estimate::{Asks, estimate};
use crate::load::need::Day;
use crate::load::recommend::Recommendation;
use crate::load::settings::{Line, Mode, Scored};
use crate::view::{PodFacts, PodView, Snapshot};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The days of pods. Those of one workload use the same, so there is one copy for all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(FxHashMap<Arc<str>, Arc<Day>>);

impl Shared {
    /// The day of a pod that asks for this, by what was recommended for it.
    pub fn of(&mut self, asks: &Asks, found: Option<&Recommendation>) -> Option<Arc<Day>> {
        let found = found?;
        let day = Day::of(asks, Some(found))?;
        if let Some(same) = self.0.get(&found.name).filter(|held| ***held == day) {
            return Some(same.clone());
        }
        let new = Arc::new(day);
        self.0.insert(found.name.clone(), new.clone());
        Some(new)
    }

    /// That recommendation is gone.
    pub fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl Cluster {
    /// What a pod looks like to decisions, with what it is expected to use.
    pub(super) fn look_at(&mut self, facts: &PodFacts) -> PodView {
        let found = self.advice.find(&facts.key.namespace, facts.owner.as_ref(), &facts.labels);
        let expected = estimate(&facts.asks, found, Load::ZERO).load;
        let day = self.days.of(&facts.asks, found);
        PodView { day, ..self.live.view(facts, expected) }
    }

    /// A pod that was looked at before, with what it is expected to use by what is recommended now.
    #[must_use]
    pub fn advised(&mut self, pod: &Arc<PodView>) -> Arc<PodView> {
        let found = self.advice.find(&pod.key.namespace, pod.owner.as_ref(), &pod.labels);
        let expected = estimate(&pod.asks, found, Load::ZERO).load;
        let day = self.days.of(&pod.asks, found);
        if (expected, &day) == (pod.estimate, &pod.day) {
            return pod.clone();
        }
        Arc::new(PodView { estimate: expected, day, ..PodView::clone(pod) })
    }
}

impl Judge {
    /// Is the need of nodes scored for this pod? For all nodes or for none, and only once some day is known.
    pub fn scores_need(&self, at: &Snapshot, pod: &PodView) -> bool {
        let settings = self.rules.settings();
        self.profile.rules.is_some()
            && settings.mode == Mode::Default
            && settings.need == Scored::Yes
            && (pod.day.is_some() || at.days() > 0)
    }

    /// Is the CPU line no rule for this pod, because its day is known and counts?
    pub fn is_unlined(&self, at: &Snapshot, pod: &PodView) -> bool {
        pod.day.is_some() && self.rules.settings().line == Line::Unlearned && self.scores_need(at, pod)
    }
}
