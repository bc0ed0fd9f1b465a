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
pub(super) fn best(
    all: impl ExactSizeIterator<Item = Ranked>,
    count: usize,
) -> (Vec<Ranked>, Option<Ranked>) {
    let mut all: Vec<Ranked> = if count < all.len() / 8 { few(all, count + 1) } else { all.collect() };
    let next = (count < all.len()).then(|| {
        all.select_nth_unstable_by_key(count, Ranked::key);
        all[count]
    });
    all.truncate(count);
    all.sort_unstable_by_key(Ranked::key);
    (all, next)
}

/// The first `count` of many, in no order. Most are not even looked at twice.
fn few(all: impl Iterator<Item = Ranked>, count: usize) -> Vec<Ranked> {
    let mut kept: Vec<Ranked> = Vec::with_capacity(2 * count);
    // Nobody below this one is among the first.
    let mut bar: Option<Ranked> = None;
    for one in all {
        if let Some(bar) = bar {
            let below = one.held == bar.held && one.standing() < bar.standing();
            if below || bar.key() < one.key() {
                continue;
            }
        }
        kept.push(one);
        if kept.len() == 2 * count {
            kept.select_nth_unstable_by_key(count - 1, Ranked::key);
            kept.truncate(count);
            bar = kept.last().copied();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_the_first_of_all_in_order(totals in proptest::collection::vec(-5..5_i64, 0..200), count in 0..40_usize) {
            let ranked = |(row, total): (usize, &i64)| Ranked {
                id: u32::try_from(row).unwrap(),
                rank: u32::try_from(row).unwrap(),
                total: *total,
                bonus: 0,
                held: false,
                row,
            };
            let all: Vec<Ranked> = totals.iter().enumerate().map(ranked).collect();
            let mut sorted = all.clone();
            sorted.sort_by_key(Ranked::key);
            let (first, next) = best(all.into_iter(), count);
            let rows = |some: &[Ranked]| some.iter().map(|one| one.row).collect::<Vec<_>>();
            prop_assert_eq!(rows(&first), rows(&sorted[..count.min(sorted.len())]));
            prop_assert_eq!(next.map(|one| one.row), sorted.get(count).map(|one| one.row));
        }
    }
}
