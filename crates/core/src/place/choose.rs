//! Who is selected? The most points first, ties by name; those selected already may be held.

use super::index::Id;
use std::cmp::Reverse;

/// A cluster with its points, ready to be compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    pub id: Id,
    /// Its position in the order of names.
    pub rank: u32,
    pub total: i64,
    /// Points it gets on top for being selected already.
    pub bonus: i64,
    /// Has it not yet been selected long enough to be given up?
    pub held: bool,
    /// Where it stands in the list of survivors.
    pub row: usize,
}

impl Ranked {
    /// The better one is the smaller. Among equals the one that is selected stays, but only if a margin is asked for.
    pub fn key(&self) -> impl Ord + use<> {
        (Reverse(self.held), Reverse(self.standing()), Reverse(self.bonus > 0), self.rank)
    }

    /// The points that count against others.
    pub fn standing(&self) -> i64 {
        self.total.saturating_add(self.bonus)
    }
}

/// The first `count`, the best first; and the best of the others.
pub(super) fn best(mut all: Vec<Ranked>, count: usize) -> (Vec<Ranked>, Option<Ranked>) {
    let next = (count < all.len()).then(|| {
        all.select_nth_unstable_by_key(count, Ranked::key);
        all[count]
    });
    all.truncate(count);
    all.sort_unstable_by_key(Ranked::key);
    (all, next)
}
