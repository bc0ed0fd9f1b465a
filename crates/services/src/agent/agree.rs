//! Does a scheduler fill the nodes that are emptied here? The targets it goes by are held against the rules.

use super::state::State;
use super::tell::Teller;
use crate::reload::{Reloaded, Source};
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
    targets: Option<Reloaded<Rules>>,
    /// By node.
    told: BTreeMap<Arc<str>, Vec<Disagreement>>,
}

impl Agreement {
    pub fn new(targets: Option<Source<Rules>>) -> Self {
        Self { targets: targets.map(|source| Reloaded::new("policy", source)), told: BTreeMap::new() }
    }

    /// Takes in what the file of the targets says now.
    pub fn reread(&mut self, read: Result<String, String>) {
        if let Some(targets) = &mut self.targets {
            targets.take_text(read);
        }
    }

    /// What is wrong with the newest text of that file.
    pub fn problem(&self) -> Option<&str> {
        self.targets.as_ref()?.problem()
    }

    /// Looks at all nodes; what is not as it was is told. Says how many rules are below a target.
    pub fn look(&mut self, state: &State, policy: &Policy, teller: &Teller, now: Timestamp) -> usize {
        let Some(targets) = self.targets.as_ref().filter(|targets| targets.is_loaded()) else { return 0 };
        let targets = targets.current();
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
