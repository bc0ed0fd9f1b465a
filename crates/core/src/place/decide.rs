//! One cycle of one placement: from the state of the fleet to what is selected, published and said.

use super::cohort::Cohorts;
use super::condition::{Code, Condition, Event, Tally, conditions, events};
use super::filter::{Filters, Why};
use super::fleet::{Fleet, Row};
use super::group::Group;
use super::index::{Id, at, ids};
use super::known::Known;
use super::pick::Picks;
use super::prepare::{PREDICATE, Prioritizer, Problem, TAINTS};
use super::publish::Published;
use super::report::Report;
use super::score::{Counts, Found, Points, Scoring};
use super::selected::Selected;
use super::spec::Placement;
use super::verdict::Verdicts;
use super::wake::Wakes;
use super::write::Write;
use super::{Judge, Plugin};
use crate::object::Key;
use fixedbitset::FixedBitSet;
use jiff::Timestamp;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

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
    pub selected: Selected,
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
        self.groups.iter().map(|group| group.clusters).sum()
    }
}

pub(super) struct Cycle<'a> {
    pub fleet: &'a Fleet,
    pub row: &'a Row,
    pub judge: &'a dyn Judge,
    /// What the judge said before; none if it is to be asked anew.
    pub verdicts: Option<&'a RefCell<Verdicts>>,
    pub now: Timestamp,
    /// Is everything to be kept that was found on the way?
    pub trace: bool,
    /// What a cluster gets on top of its points, to find out whether that would help.
    pub more: Option<(Id, i64)>,
}

/// Memory that is used again for every placement: a fleet's worth of it each time would cost more than the decision.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// Those that passed all filters.
    pub cohorts: Cohorts,
    /// Their points.
    totals: Vec<i64>,
    counts: Counts,
}

/// Who may be selected.
struct Candidates {
    all: FixedBitSet,
    /// Bindings to sets that exist.
    bindings: usize,
    /// The sets that may be used, by name.
    sets: Vec<String>,
    /// What is wrong with a set.
    error: Option<String>,
}

/// Candidates and how far they come.
pub(super) struct Filtered {
    /// Those a predicate matches.
    pub matching: FixedBitSet,
    /// Those of them no taint keeps away.
    pub passed: FixedBitSet,
    /// Until when the predicates say so.
    pub until: Option<Timestamp>,
}

/// Those that passed all filters, and their points.
pub(super) struct Scored<'s> {
    pub survivors: &'s [Id],
    /// Are they in the order of their names?
    pub by_name: bool,
    pub totals: &'s [i64],
    pub found: Found,
    /// The points of each prioritizer and its weight, if that is asked for.
    pub apart: Vec<(Prioritizer, i64, Points)>,
    code: Code,
    warnings: Vec<String>,
}

/// Everything found on the way to a decision.
pub(super) struct Findings<'s> {
    pub filters: &'s Filters<'s>,
    pub filtered: Filtered,
    pub scored: Scored<'s>,
    pub picks: Picks,
}

impl Cycle<'_> {
    pub fn placement(&self) -> &Placement {
        &self.row.placement
    }

    /// How many clusters are asked for; none for all.
    pub fn wanted(&self) -> Option<usize> {
        self.placement().count.map(|count| usize::try_from(count).unwrap_or(0))
    }

    /// Decides. The report has clusters only if traced.
    pub fn run(&self, scratch: &mut Scratch) -> Report {
        let placement = self.placement();
        if placement.disabled {
            let outcome = Outcome { disabled: true, ..self.blank() };
            return Report { outcome, ..Report::default() };
        }
        let own = self.fleet.slices.own(&placement.key);
        let mut candidates = self.candidates();
        if let Some(message) = candidates.error.take() {
            return self.undecided(&own, &candidates, Code::Error(message));
        }
        let problems = self.problems();
        if !problems.is_empty() {
            return self.undecided(&own, &candidates, Code::Misconfigured(problems));
        }
        self.decide(&own, &candidates, scratch)
    }

    /// Nothing decided yet.
    fn blank(&self) -> Outcome {
        let placement = self.placement();
        Outcome {
            placement: placement.key.clone(),
            last_score_update: placement.status.last_score_update,
            ..Outcome::default()
        }
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

    fn candidates(&self) -> Candidates {
        let placement = self.placement();
        let all = FixedBitSet::with_capacity(self.fleet.index.len());
        let mut out = Candidates { all, bindings: 0, sets: Vec::new(), error: None };
        for name in self.fleet.bound(&placement.key.namespace) {
            let Some(set) = self.fleet.sets.get(name) else { continue };
            out.bindings += 1;
            if !placement.cluster_sets.is_empty() && !placement.cluster_sets.contains(name) {
                continue;
            }
            out.sets.push(name.clone());
            match &set.problem {
                Some(problem) => {
                    out.error = out.error.or_else(|| Some(format!("ManagedClusterSet {name}: {problem}")));
                }
                None => out.all.union_with(&set.members),
            }
        }
        out.all.intersect_with(&self.fleet.index.present);
        out
    }

    /// What is published stays, or is emptied.
    fn undecided(&self, own: &[Arc<Known>], candidates: &Candidates, code: Code) -> Report {
        let placement = self.placement();
        let Published { groups, writes, last_score_update, .. } = self.keep(own);
        let kept = groups.iter().map(|group| group.clusters).sum();
        let tally = Tally { kept, ..candidates.tally() };
        let warnings = match &code {
            Code::Misconfigured(problems) => problems.iter().skip(1).map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        let outcome = Outcome {
            conditions: conditions(placement, &code, &tally, self.now),
            events: events(placement, &code, &writes, std::iter::empty()),
            code,
            groups,
            writes,
            last_score_update,
            warnings,
            ..self.blank()
        };
        Report { outcome, ..Report::default() }
    }

    fn decide(&self, own: &[Arc<Known>], candidates: &Candidates, scratch: &mut Scratch) -> Report {
        let published: Vec<Id> = own.iter().flat_map(|known| &known.ids).copied().collect();
        let mut incumbents = FixedBitSet::with_capacity(self.fleet.index.len());
        incumbents.extend(published.iter().map(|id| at(*id)));
        let filters = self.filters(&incumbents);
        let filtered = filter(&filters, &candidates.all);
        let scored = self.score(&filters, &filtered.passed, &published, scratch);
        let since = self.since(own);
        let picks = self.pick(&self.field(&scored, &incumbents, &since));
        let found = Findings { filters: &filters, filtered, scored, picks };
        let mut wakes = self.wakes(&found, &since);
        let whole = found.scored.by_name && found.picks.chosen.len() == found.scored.survivors.len();
        let published = self.publish(own, (&found.picks, whole), since);
        wakes.requeue(published.held_until);
        let outcome = self.outcome(candidates, &found, published, wakes);
        let report = if self.trace { self.report(&candidates.all, found) } else { Report::default() };
        Report { outcome, look: wakes.look_at, ..report }
    }

    fn filters<'f>(&'f self, incumbents: &'f FixedBitSet) -> Filters<'f> {
        Filters {
            index: &self.fleet.index,
            placement: self.placement(),
            prepared: &self.row.prepared,
            judge: self.judge,
            verdicts: self.verdicts,
            scores: &self.fleet.scores,
            now: self.now,
            incumbents,
        }
    }

    /// Gives everybody that passed points.
    fn score<'s>(
        &self,
        filters: &Filters<'_>,
        passed: &FixedBitSet,
        published: &[Id],
        scratch: &'s mut Scratch,
    ) -> Scored<'s> {
        let Scratch { cohorts, totals, counts } = scratch;
        let cohort = cohorts.of(passed, filters.index);
        let (survivors, by_name) = (std::mem::take(&mut cohort.survivors), cohort.by_name);
        totals.clear();
        totals.resize(survivors.len(), 0);
        counts.of_others(self.fleet.slices.counts(), filters.index.len(), published);
        let tainted = &filters.index.tainted;
        let scoring = Scoring { filters, counts, survivors: &survivors, published, tainted };
        let mut found = Found::default();
        let mut apart = Vec::new();
        let (mut code, mut warnings) = (Code::Success, Vec::new());
        for (prioritizer, weight) in &self.row.prepared.weights {
            self.judge.begins();
            if self.trace {
                scoring.add(prioritizer, *weight, totals, &mut found, Some(&mut apart));
            } else {
                scoring.add_shared(prioritizer, *weight, cohort, totals, &mut found);
            }
            self.judge.ended(Plugin::Prioritizer(prioritizer));
            let mut expired = std::mem::take(&mut found.expired);
            if !expired.is_empty() {
                // By name: after a restart clusters may be known in another order, and it is not another message for that.
                expired.sort_unstable();
                let message = format!("AddOnPlacementScores {} expired", expired.join(" "));
                warnings.push(message.clone());
                code = Code::Warning { plugin: prioritizer.to_string(), message };
            }
        }
        if let Some((id, more)) = self.more
            && let Ok(row) = survivors.binary_search(&id)
        {
            totals[row] = totals[row].saturating_add(more);
        }
        warnings.extend(self.unknown_load(found.unknown));
        cohort.survivors = survivors;
        Scored { survivors: &cohort.survivors, by_name, totals, found, apart, code, warnings }
    }

    /// What is said when nobody knows how much is free on so many clusters.
    fn unknown_load(&self, clusters: usize) -> Option<String> {
        let whom = match clusters {
            0 => return None,
            1 => "a cluster".to_owned(),
            many => format!("{many} clusters"),
        };
        let what = self.placement().extra.source.as_str();
        Some(format!("the {what} load of {whom} is unknown or too old"))
    }

    fn outcome(
        &self,
        candidates: &Candidates,
        found: &Findings<'_>,
        published: Published,
        wakes: Wakes,
    ) -> Outcome {
        let (placement, index) = (self.placement(), &self.fleet.index);
        let Findings { filters, filtered, scored, picks } = found;
        let Published { groups, writes, last_score_update, .. } = published;
        let asked = self.wanted().unwrap_or(scored.survivors.len());
        let unscheduled = asked.saturating_sub(picks.chosen.len());
        let nobody = picks.chosen.is_empty();
        let tally = Tally {
            matching: filtered.matching.count_ones(..),
            survivors: scored.survivors.len(),
            selected: picks.chosen.len(),
            unscheduled,
            taints: if nobody { taint_keys(filters, filtered) } else { Vec::new() },
            ..candidates.tally()
        };
        let totals = index.by_name().iter().filter_map(|id| {
            let row =
                filtered.passed.contains(at(*id)).then(|| scored.survivors.binary_search(id).ok())??;
            Some((&**index.name(*id), scored.totals[row]))
        });
        Outcome {
            conditions: conditions(placement, &scored.code, &tally, self.now),
            events: events(placement, &scored.code, &writes, totals),
            code: scored.code.clone(),
            selected: Selected::new(index, &picks.chosen),
            unscheduled,
            groups,
            writes,
            requeue_at: wakes.requeue_at,
            last_score_update,
            margin: self.margin(picks),
            warnings: scored.warnings.clone(),
            ..self.blank()
        }
    }
}

impl Candidates {
    fn tally(&self) -> Tally {
        Tally {
            bindings: self.bindings,
            sets: self.sets.clone(),
            candidates: self.all.count_ones(..),
            ..Tally::default()
        }
    }
}

fn filter(filters: &Filters<'_>, candidates: &FixedBitSet) -> Filtered {
    let judge = filters.judge;
    judge.begins();
    let (matching, until) = filters.predicate(candidates);
    judge.ended(Plugin::Filter(PREDICATE));
    judge.begins();
    let passed = filters.taints(matching.clone());
    judge.ended(Plugin::Filter(TAINTS));
    Filtered { matching, passed, until }
}

/// The keys of the taints that keep clusters away, the first few.
fn taint_keys(filters: &Filters<'_>, filtered: &Filtered) -> Vec<String> {
    const TOLD: usize = 5;
    let mut kept_away = filtered.matching.clone();
    kept_away.difference_with(&filtered.passed);
    let mut keys = BTreeSet::new();
    for id in ids(&kept_away) {
        if let Some(Why::Untolerated { taint, .. }) = filters.untolerated(id) {
            keys.insert(taint.key);
        }
    }
    let more = keys.len() > TOLD;
    keys.into_iter().take(TOLD).chain(more.then(|| "…".to_owned())).collect()
}
