//! Which taints are to be written?

use super::{APART, Due, Entry, State};
use crate::annotator::taint::{Tainted, Tainting, takes_pods};
use crate::ctx::Now;
use loadline_core::load::publish::{Update, Urgency};
use loadline_core::load::taints::{self, LoadTaint, NodeHeat};
use std::sync::Arc;

impl State {
    /// Adds the taints that are to be written. Without lines to taint by, what an earlier run left behind goes.
    pub(super) fn taint(&mut self, due: &mut Vec<Due>, now: Now) {
        let changes = match &self.taints {
            Some(options) => taints::decide(&self.heats(|_| true), options, now.clock),
            None => taints::withdraw(&self.heats(|entry| !entry.node.taints.is_empty()), now.clock),
        };
        self.tainted = Tainted::count(&changes);
        let others = due.len();
        for change in changes.into_iter().filter(taints::Change::writes) {
            let Some(entry) = self.entries.get(&change.node) else { continue };
            let soon = entry.written.is_some_and(|at| now.at.duration_since(at) < APART[0]);
            if entry.in_flight || soon || entry.not_before.is_some_and(|at| now.at < at) {
                continue;
            }
            let tainting = Some(Tainting::new(change, &entry.node.taints));
            // By name, as the nodes are.
            let at = due[..others].binary_search_by(|due| due.node.key.name.cmp(&entry.meta.key.name));
            if let Ok(at) = at {
                (due[at].taint, due[at].update.urgency) = (tainting, Urgency::Now);
            } else {
                let node = entry.meta.clone();
                due.push(Due { node, update: Update::nothing(), taint: tainting });
            }
        }
    }

    /// Takes all taints of ours away: nobody will when we are gone.
    pub(in crate::annotator) fn withdraw(&self, now: Now) -> Vec<Due> {
        let changes = taints::withdraw(&self.heats(|_| true), now.clock);
        let due = changes.into_iter().filter_map(|change| {
            let entry = self.entries.get(&change.node)?;
            let taint = Some(Tainting::new(change, &entry.node.taints));
            Some(Due { node: entry.meta.clone(), update: Update::nothing(), taint })
        });
        due.collect()
    }

    fn heats(&self, of: impl Fn(&Entry) -> bool) -> Vec<NodeHeat> {
        let heat = |(name, entry): (&Arc<str>, &Entry)| NodeHeat {
            name: name.clone(),
            heat: entry.heat.clone(),
            taint: LoadTaint::of(&entry.node.taints),
            takes_pods: takes_pods(&entry.node),
        };
        self.entries.iter().filter(|(_, entry)| of(entry)).map(heat).collect()
    }
}
