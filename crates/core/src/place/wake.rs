//! When is the answer another one, even if nothing happens?

use super::choose::Ranked;
use super::decide::{Cycle, Findings};
use super::index::at;
use super::pick::Since;
use fixedbitset::FixedBitSet;
use jiff::Timestamp;

/// The first time something will be different by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wakes {
    /// Something that is published or told.
    pub requeue_at: Option<Timestamp>,
    /// Anything, also what others may only notice later.
    pub look_at: Option<Timestamp>,
}

impl Wakes {
    /// What is published may be another then.
    pub fn requeue(&mut self, time: Option<Timestamp>) {
        self.requeue_at = first(self.requeue_at, time);
        self.look(time);
    }

    /// Something may be another then that need not be told.
    pub fn look(&mut self, time: Option<Timestamp>) {
        self.look_at = first(self.look_at, time);
    }
}

fn first(known: Option<Timestamp>, new: Option<Timestamp>) -> Option<Timestamp> {
    known.into_iter().chain(new).min()
}

impl Cycle<'_> {
    pub fn wakes(&self, found: &Findings<'_>, since: &Since) -> Wakes {
        let mut wakes = Wakes::default();
        wakes.requeue(found.scored.found.until);
        wakes.requeue(found.filtered.until);
        self.tolerations_end(found, &mut wakes);
        self.dwells_end(found, since, &mut wakes);
        wakes
    }

    /// Clusters that are not selected change nothing that is published when they drop out, but the points of others
    /// may; so they are a reason to look, not one to tell.
    fn tolerations_end(&self, found: &Findings<'_>, wakes: &mut Wakes) {
        let Findings { filters, filtered, picks, .. } = found;
        let timed = filters.deadlines(&filtered.passed);
        if timed.is_empty() {
            return;
        }
        let mut concerned = FixedBitSet::with_capacity(self.fleet.index.len());
        concerned.extend(picks.chosen.iter().map(|one| at(one.id)));
        concerned.union_with(filters.incumbents);
        for (id, deadline) in timed {
            if concerned.contains(at(id)) {
                wakes.requeue(Some(deadline));
            } else {
                wakes.look(Some(deadline));
            }
        }
    }

    /// A cluster that others wait for will have been selected long enough. Where nobody waits, only the order of the
    /// selected changes then: a reason to look, too.
    fn dwells_end(&self, found: &Findings<'_>, since: &Since, wakes: &mut Wakes) {
        let spread = !self.placement().spread.is_empty();
        let picks = &found.picks;
        for one in picks.chosen.iter().filter(|one| one.held) {
            let Some(since) = since.get(self.fleet.index.name(one.id)) else { continue };
            let free = Ranked { held: false, ..*one };
            let is_awaited = picks.next.map_or(spread, |next| next.key() < free.key());
            let end = Some(self.dwells_until(*since));
            if is_awaited {
                wakes.requeue(end);
            } else {
                wakes.look(end);
            }
        }
    }
}
