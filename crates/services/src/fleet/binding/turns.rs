//! Who is decided about while estimators are asked for somebody else? Only who can have nothing to do with them: a decision
//! counts on the room the last one left in each of its clusters, so those that may go to the same cluster go one after the other, as
//! their turn comes. An estimator that takes its time holds up only them.

use super::state::{Fleet, Known};
use std::cmp::Ordering;
use std::sync::Arc;

/// Estimators are asked for so many at a time.
const ASKING: usize = 8;
/// So many that have to wait for those are remembered; then nobody else is looked at.
const BEHIND: usize = 16;

/// Where a binding may go, by name.
pub(super) type Reach = Arc<[Arc<str>]>;

/// Somebody who is being decided about, or has to wait for that.
#[derive(Debug)]
struct Place {
    known: Arc<Known>,
    fleet: Arc<Fleet>,
    reach: Reach,
}

/// Whose turn it is beside whom.
#[derive(Debug, Default)]
pub(super) struct Turns {
    asking: Vec<Place>,
    behind: Vec<Place>,
    /// Who waited last time: where they may go need not be found out again.
    waited: Vec<Place>,
}

impl Turns {
    /// May nobody else be looked at for now?
    pub fn are_full(&self) -> bool {
        self.asking.len() >= ASKING || self.behind.len() >= BEHIND
    }

    /// Where a binding may go, if that was found out a moment ago.
    pub fn reach(&self, known: &Arc<Known>, fleet: &Arc<Fleet>) -> Option<Reach> {
        let same = |place: &&Place| Arc::ptr_eq(&place.known, known) && Arc::ptr_eq(&place.fleet, fleet);
        self.waited.iter().find(same).map(|place| place.reach.clone())
    }

    /// Must it wait for somebody who came before it? Then it is remembered.
    pub fn has_to_wait(&mut self, known: &Arc<Known>, fleet: &Arc<Fleet>, reach: &Reach) -> bool {
        let mut before = self.asking.iter().chain(&self.behind);
        if !before.any(|other| meet(&other.reach, reach)) {
            return false;
        }
        self.behind.push(Place { known: known.clone(), fleet: fleet.clone(), reach: reach.clone() });
        true
    }

    /// Estimators are asked for it from now on.
    pub fn asks(&mut self, known: &Arc<Known>, fleet: &Arc<Fleet>, reach: Reach) {
        self.asking.push(Place { known: known.clone(), fleet: fleet.clone(), reach });
    }

    /// They have been asked. Gives all that had to wait: it is their turn again.
    pub fn asked(&mut self, known: &Known) -> impl Iterator<Item = &Arc<Known>> {
        let meant = |place: &Place| place.known.of == known.of && place.known.meta.key == known.meta.key;
        if let Some(at) = self.asking.iter().position(meant) {
            self.asking.swap_remove(at);
        }
        self.waited = std::mem::take(&mut self.behind);
        self.waited.iter().map(|place| &place.known)
    }
}

/// Have they a cluster in common? Both are in order.
fn meet(one: &[Arc<str>], other: &[Arc<str>]) -> bool {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        match a.cmp(b) {
            Ordering::Equal => return true,
            Ordering::Less => drop(one.next()),
            Ordering::Greater => drop(other.next()),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn two_meet_if_any_cluster_of_one_is_one_of_the_other(
            one in prop::collection::btree_set("[a-e][a-c]", 0..6),
            other in prop::collection::btree_set("[a-e][a-c]", 0..6),
        ) {
            let reach = |names: &std::collections::BTreeSet<String>| -> Vec<Arc<str>> {
                names.iter().map(|name| name.as_str().into()).collect()
            };
            prop_assert_eq!(meet(&reach(&one), &reach(&other)), !one.is_disjoint(&other));
        }
    }
}
