//! Which of the survivors are selected? Those with the most points, or spread apart; some are held.

use super::choose::{Field, Ranked};
use super::decide::{Cycle, Scored};
use super::index::{Id, at};
use super::known::Known;
use super::spread::{Round, Spreading};
use fixedbitset::FixedBitSet;
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Figures of rounds that are kept at most, for those who ask.
const TRACE: usize = 1_000_000;

/// Who is selected, and who is not.
#[derive(Default)]
pub(super) struct Picks {
    /// The best first.
    pub chosen: Vec<Ranked>,
    /// Everybody else, if that is asked for.
    pub left: Vec<Ranked>,
    /// The best of these.
    pub next: Option<Ranked>,
    /// What they lack that they must have, under a spread policy.
    pub lacking: BTreeMap<Id, String>,
    /// What their places were last worth, under a spread policy.
    pub worth: FxHashMap<Id, Option<i64>>,
    pub rounds: Vec<Round>,
}

/// Since when clusters are selected, by name; only where a placement asks for a minimum dwell.
pub(super) type Since = BTreeMap<Arc<str>, Timestamp>;

impl Cycle<'_> {
    /// Since when each selected cluster is. One nobody dated is taken to have just come: better late than restless.
    pub fn since(&self, own: &[Arc<Known>]) -> Since {
        if self.placement().extra.dwell.is_none() {
            return BTreeMap::new();
        }
        let mut since = BTreeMap::new();
        for slice in own.iter().map(|known| &known.slice) {
            for entry in &slice.entries {
                let at = slice.since.get(&entry.cluster).copied().unwrap_or(self.now);
                since.insert(entry.cluster.clone(), at.min(self.now));
            }
        }
        since
    }

    pub fn dwells_until(&self, since: Timestamp) -> Timestamp {
        let dwell = self.placement().extra.dwell.unwrap_or(SignedDuration::ZERO);
        since.checked_add(dwell).unwrap_or(Timestamp::MAX)
    }

    /// By how many points the last of the selected is ahead of the first that is not; not told under a spread policy,
    /// where points are not all that counts.
    pub fn margin(&self, picks: &Picks) -> Option<i64> {
        let last = picks.chosen.last().filter(|_| self.placement().spread.is_empty())?;
        Some(last.standing().saturating_sub(picks.next?.standing()))
    }

    /// The survivors, ready to be compared.
    pub fn field<'r>(
        &'r self,
        scored: &'r Scored<'_>,
        incumbents: &'r FixedBitSet,
        since: &'r Since,
    ) -> Field<'r, impl Fn(usize) -> Ranked + use<'r>> {
        let index = &self.fleet.index;
        let margin = self.placement().extra.margin.unwrap_or(0).max(0);
        let holds = !since.is_empty();
        let held =
            |id: Id| since.get(index.name(id)).is_some_and(|since| self.now < self.dwells_until(*since));
        let ranked = move |row: usize| {
            let id = scored.survivors[row];
            let chosen = (holds || margin > 0) && incumbents.contains(at(id));
            Ranked {
                id,
                rank: index.rank(id),
                total: scored.totals[row],
                bonus: if chosen { margin } else { 0 },
                held: chosen && holds && held(id),
                row: Id::try_from(row).expect("no more than there are clusters"),
            }
        };
        Field { totals: scored.totals, ranked, bonus: margin, holds, by_name: scored.by_name }
    }

    /// Takes as many as are asked for, or all.
    pub fn pick<R: Fn(usize) -> Ranked>(&self, field: &Field<'_, R>) -> Picks {
        let placement = self.placement();
        let count = self.wanted().unwrap_or(field.totals.len());
        if placement.spread.is_empty() && self.trace {
            let mut chosen: Vec<Ranked> = field.everybody().collect();
            chosen.sort_unstable_by_key(Ranked::key);
            let left = chosen.split_off(count.min(chosen.len()));
            return Picks { chosen, next: left.first().copied(), left, ..Picks::default() };
        }
        if placement.spread.is_empty() {
            let (chosen, next) = field.best(count);
            return Picks { chosen, next, ..Picks::default() };
        }
        self.pick_apart(field.everybody().collect(), count)
    }

    /// Takes so many, one after the other, each where it helps the spread policy most.
    fn pick_apart(&self, ranked: Vec<Ranked>, count: usize) -> Picks {
        let index = &self.fleet.index;
        let weight = self.row.prepared.spread_weight;
        let spreading = Spreading {
            constraints: &self.placement().spread,
            weight,
            count,
            cluster: &|id| index.cluster(id),
            trace: if self.trace { TRACE } else { 0 },
        };
        let picked = spreading.pick(ranked);
        let mut out = Picks { rounds: picked.rounds, ..Picks::default() };
        let with = |one: Ranked, worth: Option<i64>| Ranked {
            total: one.total.saturating_add(weight * worth.unwrap_or(0)),
            ..one
        };
        for (one, worth) in picked.chosen {
            out.chosen.push(with(one, Some(worth)));
            out.worth.insert(one.id, Some(worth));
        }
        for (one, worth) in picked.left {
            out.left.push(with(one, worth));
            out.worth.insert(one.id, worth);
        }
        for (one, key) in picked.lacking {
            out.left.push(one);
            out.worth.insert(one.id, None);
            out.lacking.insert(one.id, key);
        }
        out.left.sort_unstable_by_key(Ranked::key);
        out
    }
}
