//! Which placements must be decided anew? The state of a fleet, fed by what happens.
//!
//! Every change is held against what each placement reads: labels and claims by their keys, resources it weighs, scores
//! it names, sets it may use. A heartbeat of a cluster touches nobody. What others have selected is not a reason to
//! decide anew, only something to look at when deciding: otherwise two placements could chase each other for ever.

use super::condition::Condition;
use super::decide::{Cycle, Outcome, Scratch};
use super::facts::{ClusterFacts, Members, SET_LABEL, Scores, Slice};
use super::index::{Id, Index, at};
use super::known::Slices;
use super::prepare::{Criterion, Prepared, Reads, prepare, rules};
use super::report::Report;
use super::spec::Placement;
use super::verdict::Verdicts;
use super::write::{Action, Write};
use super::{Judge, ScoreBook};
use crate::object::Key;
use crate::select::LabelSelector;
use fixedbitset::FixedBitSet;
use jiff::Timestamp;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// What becomes of a published selection when the placement turns out to be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMisconfigured {
    /// It stays: a mistake must not tear anything down.
    #[default]
    Retain,
    /// It is emptied, as other controllers do.
    Clear,
}

/// How a fleet is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What a mistake does.
    pub on_misconfigured: OnMisconfigured,
    /// Are totals published with the selected clusters?
    pub publish_scores: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { on_misconfigured: OnMisconfigured::default(), publish_scores: true }
    }
}

/// A set, who is in it, or why that cannot be told.
#[derive(Clone, Debug)]
pub(super) struct SetRow {
    rule: Members,
    labels: Vec<Criterion>,
    pub members: FixedBitSet,
    pub problem: Option<String>,
}

impl SetRow {
    fn new(name: &str, rule: Members) -> Self {
        let (labels, problem) = match &rule {
            Members::Exclusive => {
                let label =
                    Criterion { key: SET_LABEL.to_owned(), values: vec![name.to_owned()], wanted: true };
                (vec![label], None)
            }
            Members::Labels(given) => match given.as_ref().map(LabelSelector::selector) {
                // No selector at all selects nothing; no key is empty.
                None => (vec![Criterion { key: String::new(), values: Vec::new(), wanted: true }], None),
                Some(Ok(selector)) => (rules(selector.requirements().unwrap_or_default()), None),
                Some(Err(error)) => (Vec::new(), Some(error.to_string())),
            },
            Members::Unknown(kind) => {
                let problem = format!(
                    "selectorType {kind:?} is not known, expected ExclusiveClusterSetLabel or LabelSelector"
                );
                (Vec::new(), Some(problem))
            }
        };
        Self { rule, labels, members: FixedBitSet::new(), problem }
    }

    fn has(&self, cluster: &ClusterFacts) -> bool {
        self.problem.is_none() && self.labels.iter().all(|rule| rule.matches(&cluster.labels))
    }

    /// Takes a cluster in or out; says whether it was and is in.
    fn update(&mut self, id: Id, cluster: Option<&ClusterFacts>) -> (bool, bool) {
        let (was, is) = (self.members.contains(at(id)), cluster.is_some_and(|cluster| self.has(cluster)));
        self.members.grow(at(id) + 1);
        self.members.set(at(id), is);
        (was, is)
    }
}

/// A placement and what was last decided.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub placement: Arc<Placement>,
    pub prepared: Prepared,
    touched: bool,
    decided: Option<Decided>,
}

/// What was decided, and how long that holds if nothing happens.
#[derive(Clone, Debug)]
struct Decided {
    at: Timestamp,
    look: Option<Timestamp>,
    outcome: Arc<Outcome>,
}

impl Row {
    /// One that is not there.
    pub fn wished(placement: Placement) -> Self {
        let prepared = prepare(&placement);
        Self { placement: Arc::new(placement), prepared, touched: false, decided: None }
    }

    /// Is there a reason to decide now?
    fn due(&self, now: Timestamp) -> bool {
        let Some(Decided { at, look, .. }) = &self.decided else { return true };
        // What holds until and including a moment has been looked at in that moment already.
        self.touched || look.is_some_and(|wake| wake <= now && *at < now)
    }

    /// Is nothing new about a placement but that its status says what was decided? Published times have no fractions.
    fn is_told(&self, new: &Placement, scores: bool) -> bool {
        let Some(Decided { outcome, .. }) = &self.decided else { return false };
        let second = |at: Option<Timestamp>| at.map(Timestamp::as_second);
        let said = |condition: &Condition| {
            let mut all = new.status.conditions.iter();
            all.any(|(kind, status, _)| kind == condition.kind && *status == condition.status)
        };
        let dated = !scores || second(new.status.last_score_update) == second(outcome.last_score_update);
        let same = || Placement { status: self.placement.status.clone(), ..new.clone() } == *self.placement;
        dated && outcome.conditions.iter().all(said) && same()
    }
}

/// Everything known of a fleet.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    pub(super) options: Options,
    pub(super) index: Index,
    pub(super) sets: BTreeMap<String, SetRow>,
    bindings: BTreeMap<String, BTreeSet<String>>,
    pub(super) scores: ScoreBook,
    pub(super) slices: Slices,
    placements: BTreeMap<Key, Row>,
    verdicts: Verdicts,
    scratch: Scratch,
}

/// What is different about a cluster.
#[derive(Debug, Default)]
struct Change {
    labels: BTreeSet<String>,
    claims: BTreeSet<String>,
    resources: BTreeSet<String>,
    taints: bool,
    load: bool,
    object: bool,
}

impl Change {
    fn between(old: &ClusterFacts, new: &ClusterFacts) -> Self {
        fn keys<V: PartialEq>(old: &BTreeMap<String, V>, new: &BTreeMap<String, V>) -> BTreeSet<String> {
            let all = old.keys().chain(new.keys());
            all.filter(|key| old.get(*key) != new.get(*key)).cloned().collect()
        }
        let mut resources = keys(&old.allocatable, &new.allocatable);
        resources.extend(keys(&old.capacity, &new.capacity));
        Self {
            labels: keys(&old.labels, &new.labels),
            claims: keys(&old.claims, &new.claims),
            resources,
            taints: old.taints != new.taints,
            load: old.load != new.load,
            object: old.fingerprint != new.fingerprint,
        }
    }

    fn touches(&self, reads: &Reads) -> bool {
        self.taints
            || (self.object && reads.cel)
            || (self.load && reads.load)
            || !self.labels.is_disjoint(&reads.labels)
            || !self.claims.is_disjoint(&reads.claims)
            || !self.resources.is_disjoint(&reads.resources)
    }
}

impl Fleet {
    /// An empty fleet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// A cluster is there, or is different.
    pub fn set_cluster(&mut self, cluster: ClusterFacts) {
        let id = self.index.id(&cluster.name);
        if self.index.row(id).is_some_and(|known| **known == cluster) {
            return;
        }
        let new = Arc::new(cluster);
        let old = self.index.set(id, Some(new.clone()));
        self.cluster_changed(id, old.as_deref(), Some(&new));
    }

    /// A cluster is gone.
    pub fn remove_cluster(&mut self, name: &str) {
        let Some(id) = self.index.find(name) else { return };
        if let Some(old) = self.index.set(id, None) {
            self.cluster_changed(id, Some(&old), None);
        }
    }

    fn cluster_changed(&mut self, id: Id, old: Option<&ClusterFacts>, new: Option<&ClusterFacts>) {
        self.verdicts.forget(id);
        self.scratch.cohorts.clear();
        let there = |cluster: Option<&ClusterFacts>| cluster.is_some_and(|cluster| !cluster.leaving);
        let (was_there, is_there) = (there(old), there(new));
        // By set: was it a candidate through it, and is it?
        let mut around: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        for (name, set) in &mut self.sets {
            let (was, is) = set.update(id, new);
            let (was, is) = (was && was_there, is && is_there);
            if was || is {
                around.insert(name, (was, is));
            }
        }
        if around.is_empty() {
            return;
        }
        let none = ClusterFacts::default();
        let change = Change::between(old.unwrap_or(&none), new.unwrap_or(&none));
        for row in self.placements.values_mut().filter(|row| !row.touched) {
            let placement = &row.placement;
            let Some(bound) = self.bindings.get(&*placement.key.namespace) else { continue };
            let (mut was, mut is) = (false, false);
            for (set, (before, after)) in &around {
                if bound.contains(*set) && listed(placement, set) {
                    was |= *before;
                    is |= *after;
                }
            }
            // Whom no predicate matches, before and after, is nobody's business.
            let matters = || {
                let found =
                    |cluster: Option<&ClusterFacts>| cluster.is_some_and(|c| row.prepared.may_match(c));
                found(old) || found(new)
            };
            row.touched = was != is || (is && change.touches(&row.prepared.reads) && matters());
        }
    }

    /// A set is there, or is different.
    pub fn set_set(&mut self, name: &str, members: Members) {
        if self.sets.get(name).is_some_and(|known| known.rule == members) {
            return;
        }
        let mut set = SetRow::new(name, members);
        set.members.grow(self.index.len());
        for (id, cluster) in self.index.rows() {
            set.update(id, Some(cluster));
        }
        let new = self.sets.insert(name.to_owned(), set).is_none();
        self.touch(|placement| new || listed(placement, name), Some(name));
    }

    /// A set is gone.
    pub fn remove_set(&mut self, name: &str) {
        if self.sets.remove(name).is_some() {
            self.touch(|_| true, Some(name));
        }
    }

    /// A namespace may use a set.
    pub fn bind(&mut self, namespace: &str, set: &str) {
        if self.bindings.entry(namespace.to_owned()).or_default().insert(set.to_owned()) {
            self.touch(|placement| &*placement.key.namespace == namespace, None);
        }
    }

    /// A namespace may no longer use a set.
    pub fn unbind(&mut self, namespace: &str, set: &str) {
        let Some(bound) = self.bindings.get_mut(namespace) else { return };
        if bound.remove(set) {
            self.touch(|placement| &*placement.key.namespace == namespace, None);
        }
    }

    /// Touches placements, if need be only those whose namespace may use a set. That a set can be used at all matters
    /// also to placements that do not want it: they say whether there is none or only none they want.
    fn touch(&mut self, which: impl Fn(&Placement) -> bool, bound: Option<&str>) {
        for row in self.placements.values_mut() {
            let bindings = self.bindings.get(&*row.placement.key.namespace);
            let may = bound.is_none_or(|set| bindings.is_some_and(|bindings| bindings.contains(set)));
            row.touched |= may && which(&row.placement);
        }
    }

    /// A cluster has scores, or other ones.
    pub fn set_scores(&mut self, cluster: &str, object: &str, scores: Scores) {
        let id = self.index.find(cluster).unwrap_or_else(|| self.index.id(&cluster.into()));
        let of_object = self.scores.entry(object.to_owned()).or_default();
        if of_object.len() <= at(id) {
            of_object.resize(self.index.len(), None);
        }
        if of_object[at(id)].as_ref() == Some(&scores) {
            return;
        }
        of_object[at(id)] = Some(scores);
        self.scores_changed(id, object);
    }

    /// A cluster no longer has these scores.
    pub fn remove_scores(&mut self, cluster: &str, object: &str) {
        let Some(id) = self.index.find(cluster) else { return };
        let known = self.scores.get_mut(object).and_then(|of_object| of_object.get_mut(at(id))?.take());
        if known.is_some() {
            self.scores_changed(id, object);
        }
    }

    fn scores_changed(&mut self, id: Id, object: &str) {
        self.verdicts.forget(id);
        self.scratch.cohorts.clear();
        if !self.index.present.contains(at(id)) {
            return;
        }
        let around: BTreeSet<&str> = self
            .sets
            .iter()
            .filter(|(_, set)| set.members.contains(at(id)))
            .map(|(name, _)| name.as_str())
            .collect();
        for row in self.placements.values_mut() {
            let Row { placement, prepared: Prepared { reads, .. }, touched, .. } = row;
            let Some(bound) = self.bindings.get(&*placement.key.namespace) else { continue };
            let candidate = || around.iter().any(|set| bound.contains(*set) && listed(placement, set));
            *touched |= (reads.cel || reads.scores.contains(object)) && candidate();
        }
    }

    /// A slice was published, by whomever. Where points are not published, what somebody made of them does not matter.
    pub fn set_slice(&mut self, slice: impl Into<Arc<Slice>>) {
        let slice = slice.into();
        let known = self.slices.get(&slice.key).map(|known| &known.slice);
        let same = !self.options.publish_scores && known.is_some_and(|known| known.is_but_for_points(&slice));
        let owners = self.slices.set(slice, &mut self.index);
        if !same {
            owners.iter().flatten().for_each(|owner| self.touch_one(owner));
        }
    }

    /// A slice is gone.
    pub fn remove_slice(&mut self, key: &Key) {
        if let Some(owner) = self.slices.remove(key) {
            self.touch_one(&owner);
        }
    }

    fn touch_one(&mut self, key: &Key) {
        if let Some(row) = self.placements.get_mut(key) {
            row.touched = true;
        }
    }

    /// A placement is there, or is different. That its status says what was decided is no reason to decide anew: what others
    /// have selected since would count, and that is none either.
    pub fn set_placement(&mut self, placement: Placement) {
        let known = self.placements.get_mut(&placement.key);
        if known.as_ref().is_some_and(|known| *known.placement == placement) {
            return;
        }
        let placement = Arc::new(placement);
        if let Some(known) = known {
            if known.is_told(&placement, self.options.publish_scores) {
                known.placement = placement;
                return;
            }
            let decided = known.decided.take();
            let row = Row { prepared: prepare(&placement), placement, touched: true, decided };
            let before = std::mem::replace(known, row);
            self.tidy(&before);
            return;
        }
        let row = Row { prepared: prepare(&placement), placement, touched: true, decided: None };
        self.placements.insert(row.placement.key.clone(), row);
    }

    /// A placement is gone.
    pub fn remove_placement(&mut self, key: &Key) {
        if let Some(before) = self.placements.remove(key) {
            self.tidy(&before);
        }
    }

    /// A placement is no longer what it was: what only it asked need not be remembered.
    fn tidy(&mut self, before: &Row) {
        if before.prepared.reads.cel {
            let asks =
                |row: &Row, what: &[String]| row.placement.predicates.iter().any(|one| one.cel == what);
            self.verdicts.keep(|what| self.placements.values().any(|row| asks(row, what)));
        }
    }

    /// Decides every placement for which there is a reason, and gives what came out. What is to be written must come
    /// back as slices, as it does from a cluster, before others see it. The judge must always be the same one.
    pub fn decide(&mut self, judge: &dyn Judge, now: Timestamp) -> Vec<Arc<Outcome>> {
        let due: Vec<Key> = self.due(now).cloned().collect();
        due.iter().filter_map(|key| self.decide_one(key, judge, now)).collect()
    }

    /// Decides one placement, whether there is a reason or not.
    pub fn decide_one(&mut self, key: &Key, judge: &dyn Judge, now: Timestamp) -> Option<Arc<Outcome>> {
        self.index.settle();
        let verdicts = RefCell::new(std::mem::take(&mut self.verdicts));
        let mut scratch = std::mem::take(&mut self.scratch);
        let fleet = &*self;
        let report = fleet.placements.get(key).map(|row| {
            let cycle = Cycle { fleet, row, judge, verdicts: Some(&verdicts), now, trace: false, more: None };
            cycle.run(&mut scratch)
        });
        (self.verdicts, self.scratch) = (verdicts.into_inner(), scratch);
        let Report { outcome, look, .. } = report?;
        let outcome = Arc::new(outcome);
        let row = self.placements.get_mut(key)?;
        row.touched = false;
        row.decided = Some(Decided { at: now, look, outcome: outcome.clone() });
        Some(outcome)
    }

    /// Takes what an outcome is about to write for written, so that others see it when they are decided; its own placement
    /// is not decided anew for that. Whoever writes tells what there really is when that is over.
    pub fn assume(&mut self, outcome: &Outcome) {
        let touched = |fleet: &Self| fleet.placements.get(&outcome.placement).is_some_and(|row| row.touched);
        let before = touched(self);
        for Write { action, slice, .. } in &outcome.writes {
            match action {
                Action::Create | Action::Patch => self.set_slice(slice.clone()),
                Action::Delete => self.remove_slice(&slice.key),
                Action::None => {}
            }
        }
        if let Some(row) = self.placements.get_mut(&outcome.placement) {
            row.touched = before;
        }
    }

    /// There is a reason to decide a placement that the fleet does not know: a write of it failed.
    pub fn again(&mut self, key: &Key) {
        self.touch_one(key);
    }

    /// From now on, totals are published or not: a server may not know the field, and would drop it each time.
    pub fn publish_scores(&mut self, publish: bool) {
        self.options.publish_scores = publish;
    }

    /// What was last decided for a placement.
    #[must_use]
    pub fn outcome(&self, key: &Key) -> Option<&Arc<Outcome>> {
        self.placements.get(key)?.decided.as_ref().map(|decided| &decided.outcome)
    }

    /// When to decide again, even if nothing happens.
    #[must_use]
    pub fn wake(&self) -> Option<Timestamp> {
        let decided = self.placements.values().filter_map(|row| row.decided.as_ref());
        decided.filter_map(|decided| decided.look).min()
    }

    /// The placements there is a reason to decide at that time.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = &Key> {
        self.due_after(None, now)
    }

    /// The same, beginning after one of them and going round. Whoever decides only a few at a time goes on where it was, so that
    /// all get their turn even if the first ones are touched again each time.
    pub fn due_after(&self, last: Option<&Key>, now: Timestamp) -> impl Iterator<Item = &Key> {
        let (after, until) = match last {
            Some(last) => (Bound::Excluded(last), Some(..=last)),
            None => (Bound::Unbounded, None),
        };
        let around = until.into_iter().flat_map(|until| self.placements.range::<Key, _>(until));
        let all = self.placements.range::<Key, _>((after, Bound::Unbounded)).chain(around);
        all.filter(move |(_, row)| row.due(now)).map(|(key, _)| key)
    }

    /// Is there such a placement?
    #[must_use]
    pub fn has_placement(&self, key: &Key) -> bool {
        self.placements.contains_key(key)
    }

    pub fn placements(&self) -> impl Iterator<Item = &Arc<Placement>> {
        self.placements.values().map(|row| &row.placement)
    }

    /// What would be decided for a placement now, and why. Nothing is remembered, and nothing remembered is used.
    pub fn report(&mut self, key: &Key, judge: &dyn Judge, now: Timestamp) -> Option<Report> {
        self.index.settle();
        let row = self.placements.get(key)?;
        let cycle = Cycle { fleet: self, row, judge, verdicts: None, now, trace: true, more: None };
        Some(cycle.run(&mut Scratch::default()))
    }

    /// The same for a placement that is not there, or not so; what is published under its name counts as its own.
    pub fn report_wish(&mut self, placement: Placement, judge: &dyn Judge, now: Timestamp) -> Report {
        self.index.settle();
        let row = Row::wished(placement);
        let cycle = Cycle { fleet: self, row: &row, judge, verdicts: None, now, trace: true, more: None };
        cycle.run(&mut Scratch::default())
    }

    /// The sets a namespace may use, whether they exist or not.
    pub(super) fn bound(&self, namespace: &str) -> impl Iterator<Item = &String> {
        self.bindings.get(namespace).into_iter().flatten()
    }
}

/// Does a placement want clusters of that set?
fn listed(placement: &Placement, set: &str) -> bool {
    placement.cluster_sets.is_empty() || placement.cluster_sets.iter().any(|listed| listed == set)
}
