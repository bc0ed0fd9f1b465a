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
    pub row: u32,
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

/// Clusters to choose from, by row.
pub(super) struct Field<'f, R> {
    /// Their points, without what comes on top.
    pub totals: &'f [i64],
    /// One of them with everything.
    pub ranked: R,
    /// What comes on top at most.
    pub bonus: i64,
    /// May some be held?
    pub holds: bool,
    /// Are they in the order of their names?
    pub by_name: bool,
}

impl<R: Fn(usize) -> Ranked> Field<'_, R> {
    /// All of them.
    pub fn everybody(&self) -> impl Iterator<Item = Ranked> {
        (0..self.totals.len()).map(&self.ranked)
    }

    /// The first `count`, the best first; and the best of the others.
    pub fn best(&self, count: usize) -> (Vec<Ranked>, Option<Ranked>) {
        let many = self.totals.len();
        if count >= many {
            return (self.in_order(), None);
        }
        let mut all: Vec<Ranked> =
            if count < many / 8 { self.few(count + 1) } else { self.everybody().collect() };
        let next = (count < all.len()).then(|| {
            all.select_nth_unstable_by_key(count, Ranked::key);
            all[count]
        });
        all.truncate(count);
        all.sort_unstable_by_key(Ranked::key);
        (all, next)
    }

    /// All of them, the best first. Whoever wants everybody mostly has few different points to compare, and gets clusters in
    /// the order of their names: then each can be put where it belongs, without comparing any two.
    fn in_order(&self) -> Vec<Ranked> {
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for total in self.totals {
            (least, most) = (least.min(*total), most.max(*total));
        }
        let plain = self.by_name && !self.holds && self.bonus == 0;
        let span = most.checked_sub(least).and_then(|span| usize::try_from(span).ok());
        let Some(span) = span.filter(|span| plain && *span <= 4 * self.totals.len()) else {
            let mut all: Vec<Ranked> = self.everybody().collect();
            all.sort_unstable_by_key(Ranked::key);
            return all;
        };
        let below = |total: i64| usize::try_from(most - total).unwrap_or(span);
        // Where those with so many points begin, and then, where the next of them goes.
        let mut places = vec![0_usize; span + 2];
        for total in self.totals {
            places[below(*total) + 1] += 1;
        }
        for next in 1..places.len() {
            places[next] += places[next - 1];
        }
        let mut order = vec![0_usize; self.totals.len()];
        for (row, total) in self.totals.iter().enumerate() {
            let place = &mut places[below(*total)];
            order[*place] = row;
            *place += 1;
        }
        order.into_iter().map(&self.ranked).collect()
    }

    /// The first `count` of many, in no order. Most are only held against the last of those so far.
    fn few(&self, count: usize) -> Vec<Ranked> {
        let mut kept: Vec<Ranked> = Vec::with_capacity(2 * count);
        // Nobody below this one is among the first; and neither is who has fewer points, whatever comes on top.
        let mut bar: Option<Ranked> = None;
        let mut enough = i64::MIN;
        for (row, total) in self.totals.iter().enumerate() {
            if *total < enough {
                continue;
            }
            let one = (self.ranked)(row);
            if bar.is_some_and(|bar| bar.key() < one.key()) {
                continue;
            }
            kept.push(one);
            if kept.len() == 2 * count {
                kept.select_nth_unstable_by_key(count - 1, Ranked::key);
                kept.truncate(count);
                bar = kept.last().copied();
                if let Some(bar) = bar.filter(|_| !self.holds) {
                    enough = bar.standing().saturating_sub(self.bonus);
                }
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_the_first_of_all_in_order(
            totals in proptest::collection::vec((-5..5_i64, prop::bool::weighted(0.1)), 0..200),
            count in prop_oneof![0..40_usize, Just(1000)],
            (by_name, special, holds, wide) in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        ) {
            let many = u32::try_from(totals.len()).unwrap();
            let points: Vec<i64> =
                totals.iter().map(|(total, _)| if wide { *total * 10_000 } else { *total }).collect();
            let ranked = |row: usize| {
                let (id, odd) = (u32::try_from(row).unwrap(), totals[row].1);
                Ranked {
                    id,
                    rank: if by_name { id } else { many - id },
                    total: points[row],
                    bonus: if special && odd { 2 } else { 0 },
                    held: holds && special && odd && row.is_multiple_of(2),
                    row: id,
                }
            };
            let field =
                Field { totals: &points, ranked, bonus: if special { 2 } else { 0 }, holds, by_name };
            let mut sorted: Vec<Ranked> = field.everybody().collect();
            sorted.sort_by_key(Ranked::key);
            let (first, next) = field.best(count);
            let rows = |some: &[Ranked]| some.iter().map(|one| one.row).collect::<Vec<_>>();
            prop_assert_eq!(rows(&first), rows(&sorted[..count.min(sorted.len())]));
            prop_assert_eq!(next.map(|one| one.row), sorted.get(count).map(|one| one.row));
        }
    }
}
