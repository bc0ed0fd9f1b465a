//! How many complete sets fit, components placed in order, each on the first node that takes it?
//!
//! A node that takes no more of a component never will again, because nodes only fill: every component has a first
//! node it still fits on, and that only moves forward. While no component moves, set after set goes to the same
//! nodes, so as many sets as they take together are placed at once. Between two such leaps a component has moved, so
//! the work is bounded by components × nodes, however many sets there are.

use super::field::{Field, Item};
use super::view::held;
use super::{Component, Given, UNCONSTRAINED, Unwanted};
use rustc_hash::FxHashMap;

/// What a set puts on one node: position and amount.
type Load = Vec<(usize, i64)>;

impl Field<'_> {
    /// How many sets fit; stops at what is enough.
    pub fn sets(mut self, components: &[Component], given: &Given<'_>) -> Result<i32, Unwanted> {
        if self.len() == 0 {
            return Ok(0);
        }
        let items = self.items(components);
        if items.is_empty() {
            // Nothing to place: no node limits how often.
            return Ok(UNCONSTRAINED);
        }
        let enough = i64::from(given.enough.unwrap_or(UNCONSTRAINED).max(0));
        let mut first = vec![0; items.len()];
        let mut sets = 0_i64;
        while sets < enough {
            let before = first.clone();
            if !self.set(&items, &mut first, given)? {
                break;
            }
            sets += 1;
            if first == before {
                let more = self.leap(&items, &first, enough - sets);
                sets += more;
            }
        }
        Ok(held(sets.min(enough)))
    }

    /// Places one set; false if it does not fit.
    fn set(
        &mut self,
        items: &[(Item<'_>, i64)],
        first: &mut [usize],
        given: &Given<'_>,
    ) -> Result<bool, Unwanted> {
        for ((item, replicas), first) in items.iter().zip(first) {
            let mut left = *replicas;
            while left > 0 {
                if *first >= self.len() {
                    return Ok(false);
                }
                self.step(given)?;
                let here = self.fit(item, *first).min(left);
                self.take(&item.costs, *first, here);
                left -= here;
                if left > 0 {
                    *first += 1;
                }
            }
        }
        Ok(true)
    }

    /// Places as many sets at once as fit on the nodes where the components are now.
    fn leap(&mut self, items: &[(Item<'_>, i64)], first: &[usize], most: i64) -> i64 {
        let mut loads: FxHashMap<usize, Load> = FxHashMap::default();
        for ((item, replicas), at) in items.iter().zip(first) {
            let load = loads.entry(*at).or_default();
            for (position, amount) in &item.costs {
                let more = amount.saturating_mul(*replicas);
                match load.iter_mut().find(|(known, _)| known == position) {
                    Some((_, sum)) => *sum = sum.saturating_add(more),
                    None => load.push((*position, more)),
                }
            }
        }
        let fits = loads.iter().flat_map(|(at, load)| load.iter().map(move |cost| (*at, *cost)));
        let fits = fits.filter(|(_, (_, amount))| *amount > 0);
        let count = fits.map(|(at, (position, amount))| self.free(position, at).max(0) / amount).min();
        let count = count.unwrap_or(0).min(most);
        for (at, load) in &loads {
            self.take(load, *at, count);
        }
        count
    }
}
