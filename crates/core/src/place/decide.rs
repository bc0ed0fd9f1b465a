//! One cycle of one placement: from the state of the fleet to what is selected, published and said.

use super::Judge;
use super::choose::{Ranked, best};
use super::condition::{Code, Condition, Event, Tally, conditions, events};
use super::facts::Slice;
use super::filter::{Filters, Why};
use super::fleet::{Fleet, Row};
use super::group::Group;
use super::index::{Id, at, ids};
use super::prepare::{PREDICATE, Problem, TAINTS};
use super::report::Report;
use super::score::{Counts, Found, Scoring};
use super::spec::Placement;
use super::spread::{Round, Spreading};
use super::verdict::Verdicts;
use super::write::Write;
use crate::object::Key;
use fixedbitset::FixedBitSet;
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A selected cluster and its points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub cluster: Arc<str>,
    /// Its points.
    pub total: i64,
}

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub placement: Key,
    /// Does somebody else decide? Then everything else is empty.
    pub disabled: bool,
    /// How it went.
    pub code: Code,
    /// The selected, the best first (in the order of picking under a spread policy). Empty if it could not be decided,
    /// whatever is kept.
    pub selected: Vec<Chosen>,
    /// How many more were asked for.
    pub unscheduled: usize,
    /// How the selected, or those kept, are divided.
    pub groups: Vec<Group>,
    /// What is to be written, in this order.
    pub writes: Vec<Write>,
    /// What is said in the status.
    pub conditions: Vec<Condition>,
    /// When to look again, even if nothing happens.
    pub requeue_at: Option<Timestamp>,
    /// When totals were last published, this time included.
    pub last_score_update: Option<Timestamp>,
    /// By how many points the last of the selected is ahead of the first that is not; none if nobody is waiting, or
    /// under a spread policy.
    pub margin: Option<i64>,
    /// What is worth knowing.
    pub warnings: Vec<String>,
    /// What is told.
    pub events: Vec<Event>,
}

impl Outcome {
    /// How many clusters are selected, or kept, over all groups.
    #[must_use]
    pub fn number_selected(&self) -> usize {
        self.groups.iter().map(|group| group.entries.len()).sum()
    }
}

/// Figures of rounds that are kept at most, for those who ask.
const TRACE: usize = 1_000_000;

pub(super) struct Cycle<'a> {
    pub fleet: &'a Fleet,
    pub row: &'a Row,
    pub judge: &'a dyn Judge,
    /// What the judge said before; none if it is to be asked anew.
    pub verdicts: Option<&'a RefCell<Verdicts>>,
    pub now: Timestamp,
    /// Is everything to be kept that was found on the way?
    pub trace: bool,
}

/// Memory that is used again for every placement: a fleet's worth of it each time would cost more than the decision.
#[derive(Default)]
pub(super) struct Scratch {
    /// Those that passed all filters, by number.
    survivors: Vec<Id>,
    /// Their points.
    totals: Vec<i64>,
    counts: Counts,
}

/// Who may be selected, and from where.
struct Candidates {
    all: FixedBitSet,
    /// What is wrong with a set.
    error: Option<String>,
}

/// What scoring and choosing came to.
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

impl Cycle<'_> {
    pub fn placement(&self) -> &Placement {
        &self.row.placement
    }

    /// Decides. The report has clusters only if traced.
    pub fn run(&self, scratch: &mut Scratch) -> Report {
        let placement = self.placement();
        let mut out = Outcome {
            placement: placement.key.clone(),
            last_score_update: placement.status.last_score_update,
            ..Outcome::default()
        };
        if placement.disabled {
            out.disabled = true;
            return Report { outcome: out, ..Report::default() };
        }
        let own = self.fleet.own(&placement.key);
        let mut tally = Tally::default();
        let candidates = self.candidates(&mut tally);
        let problems = self.problems();
        let mut report = Report::default();
        if let Some(message) = candidates.error {
            out.code = Code::Error(message);
        } else if problems.is_empty() {
            report = self.decide(&candidates.all, &own, scratch, &mut tally, &mut out);
        } else {
            out.warnings.extend(problems.iter().skip(1).map(ToString::to_string));
            out.code = Code::Misconfigured(problems);
        }
        if !out.code.decided() {
            self.undecided(&own, &mut tally, &mut out);
        }
        out.conditions = conditions(placement, &out.code, &tally, self.now);
        report.outcome = out;
        report
    }

    /// Everything wrong with the placement, in the order in which it would be found.
    fn problems(&self) -> Vec<Problem> {
        let known = &self.row.prepared.problems;
        let mut all: Vec<Problem> = known.iter().filter(|p| p.plugin == PREDICATE).cloned().collect();
        let expressions = self.placement().predicates.iter().flat_map(|predicate| &predicate.cel);
        let cel = expressions.filter_map(|expression| self.judge.problem(expression));
        all.extend(
            cel.map(|why| Problem { plugin: PREDICATE, message: format!("compilation failed: {why}") }),
        );
        all.extend(known.iter().filter(|p| p.plugin == TAINTS).cloned());
        all.extend(known.iter().filter(|p| p.plugin.is_empty()).cloned());
        all
    }

    fn candidates(&self, tally: &mut Tally) -> Candidates {
        let placement = self.placement();
        let bound = self.fleet.bound(&placement.key.namespace);
        let mut all = FixedBitSet::with_capacity(self.fleet.index.len());
        let mut error = None;
        for name in bound {
            let Some(set) = self.fleet.sets.get(name) else { continue };
            tally.bindings += 1;
            if !placement.cluster_sets.is_empty() && !placement.cluster_sets.contains(name) {
                continue;
            }
            tally.sets.push(name.clone());
            match &set.problem {
                Some(problem) => {
                    error = error.or_else(|| Some(format!("ManagedClusterSet {name}: {problem}")));
                }
                None => all.union_with(&set.members),
            }
        }
        all.intersect_with(&self.fleet.index.present);
        tally.candidates = all.count_ones(..);
        Candidates { all, error }
    }

    fn decide(
        &self,
        candidates: &FixedBitSet,
        own: &[Arc<Slice>],
        scratch: &mut Scratch,
        tally: &mut Tally,
        out: &mut Outcome,
    ) -> Report {
        let Fleet { index, .. } = self.fleet;
        let placement = self.placement();
        let Scratch { survivors, totals, counts } = scratch;
        let published = self.fleet.published(own);
        let mut incumbents = FixedBitSet::with_capacity(index.len());
        incumbents.extend(published.iter().map(|id| at(*id)));
        let filters = Filters {
            index,
            placement,
            prepared: &self.row.prepared,
            judge: self.judge,
            verdicts: self.verdicts,
            scores: &self.fleet.scores,
            now: self.now,
            incumbents: &incumbents,
        };
        let (matching, judged_until) = filters.predicate(candidates);
        let passed = filters.taints(matching.clone());
        tally.matching = matching.count_ones(..);
        survivors.clear();
        survivors.extend(ids(&passed));
        tally.survivors = survivors.len();

        counts.of_others(&self.fleet.counts, index.len(), &published);
        let scoring = Scoring { filters: &filters, counts, survivors, tainted: &index.tainted };
        totals.clear();
        totals.resize(survivors.len(), 0);
        let mut found = Found::default();
        let mut apart = Vec::new();
        for (prioritizer, weight) in &self.row.prepared.weights {
            let keep = self.trace.then_some(&mut apart);
            scoring.add(prioritizer, *weight, totals, &mut found, keep);
            if !found.expired.is_empty() {
                let message = format!("AddOnPlacementScores {} expired", found.expired.join(" "));
                found.expired.clear();
                out.warnings.push(message.clone());
                out.code = Code::Warning { plugin: prioritizer.to_string(), message };
            }
        }
        if found.unknown > 0 {
            let what = placement.extra.source.as_str();
            let whom = if found.unknown == 1 {
                "a cluster".to_owned()
            } else {
                format!("{} clusters", found.unknown)
            };
            out.warnings.push(format!("the {what} load of {whom} is unknown or too old"));
        }

        let since = self.since(own);
        let ranked = self.rank(survivors, totals, &incumbents, &since);
        let wanted = placement.count.map(|count| usize::try_from(count).unwrap_or(0));
        let picks = self.pick(ranked, wanted);
        out.unscheduled = wanted.unwrap_or(survivors.len()).saturating_sub(picks.chosen.len());
        (tally.selected, tally.unscheduled) = (picks.chosen.len(), out.unscheduled);
        if picks.chosen.is_empty() {
            tally.taints = taint_keys(&filters, &matching, &passed);
        }
        let chosen = |one: &Ranked| Chosen { cluster: index.name(one.id).clone(), total: one.total };
        out.selected = picks.chosen.iter().map(chosen).collect();
        let cut = picks.chosen.last().filter(|_| placement.spread.is_empty());
        out.margin = cut.zip(picks.next).map(|(last, next)| last.standing().saturating_sub(next.standing()));

        let mut wake = Wake::default();
        wake.at(found.until);
        wake.at(judged_until);
        let mut timed = passed.clone();
        timed.intersect_with(&index.tainted);
        let mut picked = FixedBitSet::with_capacity(index.len());
        picked.extend(picks.chosen.iter().map(|one| at(one.id)));
        // Clusters that are not selected change nothing that is published when they drop out, but the points of others
        // may; so they are a reason to look, not one to tell.
        let mut look = Wake::default();
        for id in ids(&timed) {
            let deadline = filters.deadline(id);
            look.at(deadline);
            if incumbents.contains(at(id)) || picked.contains(at(id)) {
                wake.at(deadline);
            }
        }
        self.held(&picks, &since, &mut wake, &mut look);
        self.publish(own, &picks, since, &mut wake, out);
        let survivor_totals = index.by_name().iter().filter_map(|id| {
            let row = passed.contains(at(*id)).then(|| survivors.binary_search(id).ok())??;
            Some((&**index.name(*id), totals[row]))
        });
        out.events = events(placement, &out.code, &out.writes, survivor_totals);
        out.requeue_at = wake.first;
        look.at(wake.first);
        if !self.trace {
            return Report { look: look.first, ..Report::default() };
        }
        let mut rejected: Vec<(Id, Why)> = Vec::new();
        for id in index.by_name().iter().copied().filter(|id| candidates.contains(at(*id))) {
            if !matching.contains(at(id)) {
                rejected.push((id, filters.mismatch(id)));
            } else if let Some(why) = filters.untolerated(id) {
                rejected.push((id, why));
            }
        }
        Report { look: look.first, ..self.report(picks, rejected, &apart, &found, out.margin) }
    }

    /// Since when each selected cluster is. One nobody dated is taken to have just come: better late than restless.
    fn since(&self, own: &[Arc<Slice>]) -> BTreeMap<Arc<str>, Timestamp> {
        if self.placement().extra.dwell.is_none() {
            return BTreeMap::new();
        }
        let mut since = BTreeMap::new();
        for slice in own {
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

    fn rank<'r>(
        &'r self,
        survivors: &'r [Id],
        totals: &'r [i64],
        incumbents: &'r FixedBitSet,
        since: &'r BTreeMap<Arc<str>, Timestamp>,
    ) -> impl ExactSizeIterator<Item = Ranked> + use<'r> {
        let index = &self.fleet.index;
        let margin = self.placement().extra.margin.unwrap_or(0).max(0);
        let held =
            |id: Id| since.get(index.name(id)).is_some_and(|since| self.now < self.dwells_until(*since));
        let rank = move |(row, (id, total)): (usize, (&Id, &i64))| {
            let chosen = incumbents.contains(at(*id));
            Ranked {
                id: *id,
                rank: index.rank(*id),
                total: *total,
                bonus: if chosen { margin } else { 0 },
                held: chosen && !since.is_empty() && held(*id),
                row,
            }
        };
        survivors.iter().zip(totals).enumerate().map(rank)
    }

    fn pick(&self, ranked: impl ExactSizeIterator<Item = Ranked>, wanted: Option<usize>) -> Picks {
        let placement = self.placement();
        let count = wanted.unwrap_or(ranked.len());
        if placement.spread.is_empty() && self.trace {
            let mut chosen: Vec<Ranked> = ranked.collect();
            chosen.sort_unstable_by_key(Ranked::key);
            let left = chosen.split_off(count.min(chosen.len()));
            return Picks { chosen, next: left.first().copied(), left, ..Picks::default() };
        }
        if placement.spread.is_empty() {
            let (chosen, next) = best(ranked, count);
            return Picks { chosen, next, ..Picks::default() };
        }
        let ranked: Vec<Ranked> = ranked.collect();
        let index = &self.fleet.index;
        let weight = self.row.prepared.spread_weight;
        let spreading = Spreading {
            constraints: &placement.spread,
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

    /// When a cluster that others wait for will have been selected long enough. Where nobody waits, only the order of
    /// the selected changes then: a reason to look, too.
    fn held(&self, picks: &Picks, since: &BTreeMap<Arc<str>, Timestamp>, wake: &mut Wake, look: &mut Wake) {
        let spread = !self.placement().spread.is_empty();
        for one in picks.chosen.iter().filter(|one| one.held) {
            let free = Ranked { held: false, ..*one };
            let wanted = picks.next.map_or(spread, |next| next.key() < free.key());
            let Some(since) = since.get(self.fleet.index.name(one.id)) else { continue };
            look.at(Some(self.dwells_until(*since)));
            if wanted {
                wake.at(Some(self.dwells_until(*since)));
            }
        }
    }
}

/// The first time something will be different by itself.
#[derive(Default)]
pub(super) struct Wake {
    first: Option<Timestamp>,
}

impl Wake {
    pub fn at(&mut self, time: Option<Timestamp>) {
        self.first = match (self.first, time) {
            (Some(known), Some(new)) => Some(known.min(new)),
            (known, new) => known.or(new),
        };
    }
}

/// The keys of the taints that keep clusters away, the first few.
fn taint_keys(filters: &Filters<'_>, matching: &FixedBitSet, passed: &FixedBitSet) -> Vec<String> {
    const TOLD: usize = 5;
    let mut kept_away = matching.clone();
    kept_away.difference_with(passed);
    let mut keys = BTreeSet::new();
    for id in ids(&kept_away) {
        if let Some(Why::Untolerated { taint, .. }) = filters.untolerated(id) {
            keys.insert(taint.key);
        }
    }
    let more = keys.len() > TOLD;
    keys.into_iter().take(TOLD).chain(more.then(|| "…".to_owned())).collect()
}
