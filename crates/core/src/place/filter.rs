//! Which clusters will do? Predicates, then taints, in that order.

use super::facts::{ClusterFacts, Effect, Taint};
use super::index::{Id, Index, at, ids};
use super::prepare::{Conditions, PREDICATE, Prepared, TAINTS};
use super::spec::{Placement, Toleration};
use super::verdict::{Answers, Verdict, Verdicts};
use super::{Judge, Ruling, ScoreBook};
use fixedbitset::FixedBitSet;
use jiff::{SignedDuration, Timestamp};
use std::cell::RefCell;
use std::fmt;

/// Why a cluster is not selected although it could have been. Displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It matches no predicate.
    Mismatch {
        /// How many there are.
        predicates: usize,
        /// What it fails of the first ones.
        fails: Vec<String>,
    },
    /// It has a taint that is not tolerated.
    Untolerated {
        /// The first one.
        taint: Taint,
        /// When it was tolerated until, if it ever was.
        until: Option<Timestamp>,
    },
    /// It lacks what clusters must be spread by.
    NoTopology {
        /// The label or claim.
        key: String,
    },
    /// Its place has enough of the selected already.
    Crowded,
    /// Others have more points.
    Outranked {
        /// How many points it lacks.
        points: i64,
    },
}

impl Why {
    /// The filter that says so, if it is one.
    #[must_use]
    pub fn filter(&self) -> Option<&'static str> {
        match self {
            Self::Mismatch { .. } => Some(PREDICATE),
            Self::Untolerated { .. } => Some(TAINTS),
            _ => None,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch { predicates, fails } => {
                let which = match predicates {
                    1 => "the predicate does not match".to_owned(),
                    many => format!("none of {many} predicates matches"),
                };
                write!(f, "{which}: {}", fails.join("; "))?;
                if *predicates > fails.len() {
                    f.write_str("; …")?;
                }
                Ok(())
            }
            Self::Untolerated { taint, until: None } => write!(f, "the taint {taint} is not tolerated"),
            Self::Untolerated { taint, until: Some(until) } => {
                write!(f, "the taint {taint} was tolerated until {until}")
            }
            Self::NoTopology { key } => write!(f, "it lacks {key}, which clusters must be spread by"),
            Self::Crowded => f.write_str("too many of the selected are in its place already"),
            Self::Outranked { points: 0 } => f.write_str("another one with as many points comes first"),
            Self::Outranked { points: 1 } => f.write_str("it lacks 1 point"),
            Self::Outranked { points } => write!(f, "it lacks {points} points"),
        }
    }
}

/// What filters look at.
pub(super) struct Filters<'a> {
    pub index: &'a Index,
    pub placement: &'a Placement,
    pub prepared: &'a Prepared,
    pub judge: &'a dyn Judge,
    /// What the judge said before; none if it is to be asked anew.
    pub verdicts: Option<&'a RefCell<Verdicts>>,
    pub scores: &'a ScoreBook,
    pub now: Timestamp,
    /// Those selected already.
    pub incumbents: &'a FixedBitSet,
}

impl Filters<'_> {
    /// Candidates that match a predicate, and the first time expressions may be answered in another way.
    pub fn predicate(&self, candidates: &FixedBitSet) -> (FixedBitSet, Option<Timestamp>) {
        let given = &self.placement.predicates;
        if given.is_empty() {
            return (candidates.clone(), None);
        }
        let mut until: Option<Timestamp> = None;
        let mut out = FixedBitSet::with_capacity(candidates.len());
        let mut wanting = candidates.clone();
        for (predicate, conditions) in given.iter().zip(&self.prepared.predicates) {
            let mut matching = wanting.clone();
            self.conditions(conditions, &mut matching);
            if !predicate.cel.is_empty() {
                let first = self.expressions(&predicate.cel, &mut matching);
                until = until.into_iter().chain(first).min();
            }
            out.union_with(&matching);
            wanting.difference_with(&matching);
            if wanting.is_clear() {
                break;
            }
        }
        (out, until)
    }

    /// Keeps those for whom expressions hold; the first time that may be another answer.
    fn expressions(&self, expressions: &[String], among: &mut FixedBitSet) -> Option<Timestamp> {
        let mut verdicts = self.verdicts.map(RefCell::borrow_mut);
        let mut known: Option<&mut Answers> = verdicts.as_mut().map(|all| all.of(expressions));
        let mut until: Option<Timestamp> = None;
        let found: Vec<Id> = ids(among).collect();
        for id in found {
            let ask = || {
                let (cluster, book) = (self.index.cluster(id), self.book(id));
                Verdict::new(self.judge.judge(expressions, cluster, &book) == Ruling::Holds, &book)
            };
            let verdict = match &mut known {
                Some(known) => known.get(id, self.now, ask),
                None => ask(),
            };
            until = until.into_iter().chain(verdict.until).min();
            if !verdict.holds {
                among.set(at(id), false);
            }
        }
        until
    }

    fn conditions(&self, conditions: &Conditions, among: &mut FixedBitSet) {
        for rule in &conditions.labels {
            self.index.keep_labels(rule, among);
        }
        for rule in &conditions.claims {
            self.index.keep_claims(rule, among);
        }
    }

    fn book(&self, id: Id) -> super::Book<'_> {
        super::Book { scores: self.scores, cluster: id, now: self.now }
    }

    /// What a cluster fails of the first predicates, in words.
    pub fn mismatch(&self, id: Id) -> Why {
        const TOLD: usize = 3;
        let cluster = self.index.cluster(id);
        let given = &self.placement.predicates;
        let fails = given.iter().zip(&self.prepared.predicates).take(TOLD).map(|(predicate, conditions)| {
            let label = conditions.labels.iter().find(|rule| !rule.matches(&cluster.labels));
            let claim = conditions.claims.iter().find(|rule| !rule.matches(&cluster.claims));
            match (label, claim) {
                (Some(rule), _) => format!("label {rule}"),
                (None, Some(rule)) => format!("claim {rule}"),
                (None, None) => match self.judge.judge(&predicate.cel, cluster, &self.book(id)) {
                    Ruling::Fails(why) => why,
                    Ruling::Holds => "no longer".to_owned(),
                },
            }
        });
        Why::Mismatch { predicates: given.len(), fails: fails.collect() }
    }

    /// Those all of whose taints are tolerated, and the earliest time one of the incumbents no longer will be.
    pub fn taints(&self, mut among: FixedBitSet) -> FixedBitSet {
        let mut tainted = among.clone();
        tainted.intersect_with(&self.index.tainted);
        let mut known = self.by_taints();
        for id in ids(&tainted) {
            let repels = known[self.tainting(id)].get_or_insert_with(|| self.repelling(id).is_some());
            if *repels {
                among.set(at(id), false);
            }
        }
        among
    }

    /// Room for an answer about each list of taints there is, for clusters that are selected and for those that are not.
    fn by_taints<T: Clone>(&self) -> Vec<Option<T>> {
        vec![None; 2 * self.index.taintings()]
    }

    /// Where the answer about a cluster goes.
    fn tainting(&self, id: Id) -> usize {
        2 * self.index.tainting(id) + usize::from(self.incumbents.contains(at(id)))
    }

    /// The first taint that keeps the placement away.
    pub fn untolerated(&self, id: Id) -> Option<Why> {
        let (taint, until) = self.repelling(id)?;
        Some(Why::Untolerated { taint: taint.clone(), until })
    }

    /// The same, and until when it was tolerated.
    fn repelling(&self, id: Id) -> Option<(&Taint, Option<Timestamp>)> {
        let chosen = self.incumbents.contains(at(id));
        let taints = &self.index.cluster(id).taints;
        taints.iter().find_map(|taint| match self.stand(taint, chosen) {
            Stand::Untolerated(until) => Some((taint, until)),
            Stand::Tolerated(_) => None,
        })
    }

    /// When the tolerations of clusters start to run out, of those for which they do.
    pub fn deadlines(&self, among: &FixedBitSet) -> Vec<(Id, Timestamp)> {
        // What is tolerated for ever never runs out.
        if self.placement.tolerations.iter().all(|toleration| toleration.seconds.is_none()) {
            return Vec::new();
        }
        let mut timed = among.clone();
        timed.intersect_with(&self.index.tainted);
        let mut known = self.by_taints();
        let mut deadline = |id: Id| *known[self.tainting(id)].get_or_insert_with(|| self.deadline(id));
        ids(&timed).filter_map(|id| Some((id, deadline(id)?))).collect()
    }

    /// When the tolerations of a cluster start to run out.
    fn deadline(&self, id: Id) -> Option<Timestamp> {
        let chosen = self.incumbents.contains(at(id));
        let taints = self.index.cluster(id).taints.iter();
        taints
            .filter_map(|taint| match self.stand(taint, chosen) {
                Stand::Tolerated(until) => until,
                Stand::Untolerated(_) => None,
            })
            .min()
    }

    fn stand(&self, taint: &Taint, chosen: bool) -> Stand {
        match taint.effect {
            Effect::PreferNoSelect => return Stand::Tolerated(None),
            Effect::NoSelectIfNew if chosen => return Stand::Tolerated(None),
            _ => {}
        }
        let mut over = None;
        for toleration in self.placement.tolerations.iter().filter(|one| matches(one, taint)) {
            match until(toleration, taint) {
                None => return Stand::Tolerated(None),
                Some(deadline) if self.now < deadline => return Stand::Tolerated(Some(deadline)),
                Some(deadline) => over = over.max(Some(deadline)),
            }
        }
        // A taint nobody dated was never tolerated for a while.
        Stand::Untolerated(over.filter(|_| taint.time_added.is_some()))
    }

    /// Does the cluster have a taint that would rather not have this placement? If not, until when it has none.
    pub fn disliked(&self, cluster: &ClusterFacts) -> (bool, Option<Timestamp>) {
        let mut first: Option<Timestamp> = None;
        for taint in cluster.taints.iter().filter(|taint| taint.effect == Effect::PreferNoSelect) {
            let fitting = self.placement.tolerations.iter().filter(|one| matches(one, taint));
            // For ever is later than any time.
            let last =
                fitting.map(|one| until(one, taint).map_or((true, Timestamp::MAX), |end| (false, end)));
            match last.max() {
                Some((true, _)) => {}
                Some((false, end)) if self.now < end => first = first.into_iter().chain([end]).min(),
                Some(_) | None => return (true, None),
            }
        }
        (false, first)
    }
}

enum Stand {
    /// Until then, or for ever.
    Tolerated(Option<Timestamp>),
    /// Since then, or always.
    Untolerated(Option<Timestamp>),
}

fn matches(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect.as_str();
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    let value = match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == taint.value,
        "Exists" => true,
        _ => false,
    };
    effect && key && value
}

/// When a toleration of that taint ends: never, or at this moment. A taint without a date ended it long ago.
fn until(toleration: &Toleration, taint: &Taint) -> Option<Timestamp> {
    let seconds = toleration.seconds?;
    let Some(added) = taint.time_added else { return Some(Timestamp::MIN) };
    match added.checked_add(SignedDuration::from_secs(seconds)) {
        Ok(deadline) => Some(deadline),
        // Past the end of time is never, before its start is always over.
        Err(_) => (seconds < 0).then_some(Timestamp::MIN),
    }
}
