//! Does a scheduler fill the nodes that are emptied here? The targets it goes by are held against the rules.

use super::state::State;
use super::tell::Teller;
use jiff::Timestamp;
use loadline_core::load::policy::Rules;
use loadline_core::qos::agree::{About, Disagreement, disagreements};
use loadline_core::qos::policy::Policy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was told.
#[derive(Debug)]
pub(super) struct Agreement {
    /// What the scheduler goes by; none if nobody said.
    targets: Option<Rules>,
    /// By node.
    told: BTreeMap<Arc<str>, Vec<Disagreement>>,
}

impl Agreement {
    pub fn new(targets: Option<Rules>) -> Self {
        Self { targets, told: BTreeMap::new() }
    }

    /// Looks at all nodes; what is not as it was is told. Says how many rules are below a target.
    pub fn look(&mut self, state: &State, policy: &Policy, teller: &Teller, now: Timestamp) -> usize {
        let Some(targets) = &self.targets else { return 0 };
        let mut all = BTreeMap::new();
        for (meta, node) in state.nodes() {
            let found = disagreements(targets, policy, &About::from(&*node.facts));
            if found.is_empty() {
                continue;
            }
            let before = self.told.get(&meta.key.name).map_or(&[][..], Vec::as_slice);
            for one in found.iter().filter(|one| !before.contains(one)) {
                teller.disagrees(&meta, one, now);
            }
            all.insert(meta.key.name.clone(), found);
        }
        self.told = all;
        self.told.values().map(Vec::len).sum()
    }
}
