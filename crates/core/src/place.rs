//! Which clusters of a fleet? Placements, decided and published.
//!
//! A **placement** asks for clusters. It sees those of the **sets** its namespace is bound to; **filters** say which of
//! them will do, **prioritizers** give these points, and the ones with the most points are **selected**, divided into
//! **groups** and published in **slices** of at most a hundred.
//!
//! | step | module |
//! |---|---|
//! | what is known of the fleet, and when to decide anew | [`Fleet`] |
//! | is the placement right, and what does it mean? | `prepare` |
//! | who will do: predicates, then taints | `filter` |
//! | how many points: balance, steadiness, resources, scores of others | `score` |
//! | who is selected: by points, or spread apart | `pick`, `choose`, `spread` |
//! | when to look again | `wake` |
//! | who is in which group | `group` |
//! | what is published, and written in which order | `publish`, `write` |
//! | what is said: conditions and events | `condition` |
//! | what would have to be different? | `counterfactual` |
//!
//! # What is ours
//!
//! Decisions agree with Open Cluster Management's placement controller, bit for bit, except where that would hurt:
//!
//! - A mistake keeps the last good selection instead of tearing everything down ([`OnMisconfigured`]), and is told at
//!   once, not on the day the first cluster reaches it.
//! - No selected cluster is ever briefly absent from all slices while they are rewritten ([`Write`]).
//! - Shares of groups are rounded up exactly; 7 % of 100 is 7.
//! - `ResourceRatio…` is there, any resource can be weighed, and what is free can be measured ([`Source`]).
//! - A spread policy is obeyed.
//! - On request, a selected cluster is not given up for a few points ([`Extra`]).
//!
//! # CEL
//!
//! Predicates may hold expressions in CEL over a whole object. What these mean is not known here: a [`Judge`] is
//! asked, once whether an expression is one, and then cluster by cluster whether it holds. It has the objects, by the names
//! of the clusters; that one is another now is told by its fingerprint ([`ClusterFacts::fingerprint`]). A judge must answer in
//! bounded time, and the same for the same cluster and scores: what it says is remembered until one of them changes.

mod amount;
mod choose;
mod cohort;
mod condition;
mod counterfactual;
mod decide;
mod facts;
mod filter;
mod fleet;
mod group;
mod index;
mod known;
mod pick;
mod prepare;
mod publish;
mod report;
mod score;
mod selected;
mod spec;
mod spread;
#[cfg(test)]
mod tests;
mod verdict;
mod wake;
mod write;

pub use amount::{Amount, Resources};
pub use condition::{Code, Condition, Event, MISCONFIGURED, Note, SATISFIED};
pub use counterfactual::{Change, Counterfactual};
pub use decide::Outcome;
pub use facts::{
    ClusterFacts, ClusterLoad, Effect, Entry, GROUP_INDEX_LABEL, GROUP_NAME_LABEL, Members, PLACEMENT_LABEL,
    SET_LABEL, Scores, Slice, Taint,
};
pub use filter::Why;
pub use fleet::{Fleet, OnMisconfigured, Options};
pub use group::Group;
pub use prepare::{Prioritizer, Problem};
pub use report::{ClusterReport, LoadUsed, Report, Score};
pub use selected::{Chosen, Selected};
pub use spec::{
    Configuration, Constraint, Coordinate, Extra, GroupRule, GroupSize, Missing, Placement, Predicate,
    SortBy, Source, Status, Toleration, TopologyKind,
};
pub use spread::Round;
pub use write::{Action, Write};

use index::{Id, at};
use jiff::Timestamp;
use rustc_hash::FxHashMap;

/// Scores by object name, then by the number of the cluster.
pub(crate) type ScoreBook = FxHashMap<String, Vec<Option<Scores>>>;

/// Answers whether expressions hold for a cluster.
pub trait Judge {
    /// What is wrong with an expression, if anything is.
    fn problem(&self, expression: &str) -> Option<String>;

    /// Do all these expressions hold?
    fn judge(&self, expressions: &[String], cluster: &ClusterFacts, scores: &Book<'_>) -> Ruling;

    /// A filter or prioritizer gets to work. Told to whoever takes the time; nothing is decided by it.
    fn begins(&self) {}

    /// It is done.
    fn ended(&self, _plugin: Plugin<'_>) {}
}

/// What works on a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin<'a> {
    /// By name.
    Filter(&'static str),
    Prioritizer(&'a Prioritizer),
}

/// The answer of a [`Judge`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// They hold.
    Holds,
    /// They do not, or cannot be answered; why.
    Fails(String),
}

/// A judge that knows no expression.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCel;

impl Judge for NoCel {
    fn problem(&self, _: &str) -> Option<String> {
        Some("expressions are not supported here".to_owned())
    }

    fn judge(&self, expressions: &[String], _: &ClusterFacts, _: &Book<'_>) -> Ruling {
        match expressions {
            [] => Ruling::Holds,
            [first, ..] => Ruling::Fails(format!("{first} cannot be answered here")),
        }
    }
}

/// The scores of one cluster, as far as they still hold.
#[derive(Clone, Copy, Debug)]
pub struct Book<'a> {
    scores: &'a ScoreBook,
    cluster: Id,
    now: Timestamp,
}

impl<'a> Book<'a> {
    /// The scores in the object of that name. What has expired is as good as absent: an empty list would make "all of
    /// them are fine" true.
    #[must_use]
    pub fn get(&self, object: &str) -> Option<&'a Scores> {
        self.known(object).filter(|scores| !scores.expired(self.now))
    }

    /// All of them that still hold, by object name.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, &'a Scores)> {
        let of_cluster = |(object, all): (&'a String, &'a Vec<Option<Scores>>)| {
            Some((object.as_str(), all.get(at(self.cluster))?.as_ref()?))
        };
        let (now, known) = (self.now, self.scores.iter().filter_map(of_cluster));
        known.filter(move |(_, scores)| !scores.expired(now)).collect::<Vec<_>>().into_iter()
    }

    fn known(&self, object: &str) -> Option<&'a Scores> {
        self.scores.get(object)?.get(at(self.cluster))?.as_ref()
    }
}
