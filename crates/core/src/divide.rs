//! Which clusters get how many replicas? Division over a fleet, as Karmada's scheduler does it, and why.
//!
//! ```text
//! filter    clusters that may have it at all                  a refusal each
//! estimate  how many more replicas fit there                  merged from several estimators
//! select    which of them, by the spread constraints          in the order tier, score, available, name
//! assign    how many to each                                  duplicated, by weights, by capacity, aggregated
//! ```
//!
//! [`divide`] takes [`Member`]s, a [`Binding`] and what estimators said, and gives an [`Answer`]: what to write, what
//! was found on the way, and a condition. The same input gives the same answer, whatever order the clusters come in.
//!
//! Karmada's wire names and texts are kept. Where its scheduler does what nobody can want, ours differs, unless
//! [`Options::upstream`] asks for the original: one dead estimator silences only itself, an omitted maximum means no
//! limit, every kind of spread constraint counts, a choice of regions is checked for capacity, a failed spread is
//! `Unschedulable` and waits for capacity instead of spinning.

mod affinity;
mod asked;
mod assign;
mod counterfactual;
pub mod deschedule;
pub mod due;
mod estimates;
mod filter;
pub mod general;
mod groups;
pub mod news;
mod outcome;
pub mod promised;
mod spread;
pub mod summary;
mod webster;

pub use affinity::Affinity;
pub use asked::{counts, reach};
pub use counterfactual::{Change, Counterfactual, counterfactuals};
pub use estimates::{Estimator, Mode, Opinion, needed};
pub use filter::Refusal;
pub use outcome::{Answer, Condition, Failure, Feasible, Filtered, Retry, Target};
pub use summary::{Model, Summary};
pub use webster::{Ties, webster};

use crate::estimate::{Ask, Assumed, Component};
use crate::object::Key;
use crate::select::{Taint, Toleration};
use estimates::Candidate;
use jiff::Timestamp;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A cluster of the fleet, as far as division looks at it.
#[derive(Clone, Debug, Default)]
pub struct Member {
    pub name: Arc<str>,
    pub labels: BTreeMap<String, String>,
    /// Who runs it; empty if not said.
    pub provider: String,
    /// Where it is; empty if not said.
    pub region: String,
    /// Which zones it stretches over.
    pub zones: Vec<String>,
    /// What keeps workloads away.
    pub taints: Vec<Taint>,
    /// It is on its way out.
    pub deleting: bool,
    /// What it serves. Best shared among clusters that serve the same: it is then looked at once.
    pub apis: Arc<Apis>,
    /// What it has and what is taken; `None` if it never said.
    pub summary: Option<Summary>,
    /// The grades its nodes are sorted into.
    pub models: Vec<Model>,
}

/// Kinds by group and version.
pub type Apis = BTreeMap<String, BTreeSet<String>>;

/// What is to be divided, and what was decided before.
#[derive(Clone, Debug, Default)]
pub struct Binding {
    /// What is bound.
    pub resource: Bound,
    /// How many replicas are wanted.
    pub replicas: i32,
    /// What each asks for; `None` if its template says nothing.
    pub ask: Option<Ask>,
    /// The parts of a workload that has several pod templates.
    pub components: Vec<Component>,
    /// Where it is now.
    pub clusters: Vec<Previous>,
    /// Clusters it is being moved away from.
    pub evicting: BTreeSet<String>,
    /// When somebody asked for a fresh division.
    pub rescheduled: Option<Timestamp>,
    /// When it was last divided.
    pub scheduled: Option<Timestamp>,
    /// The affinity group it is in now; empty for none.
    pub observed: String,
    /// What a replica asks for has changed since. Estimates must then be made as if its own pods were gone, and what it
    /// has is not added to them.
    pub changed: bool,
    /// Where it may go.
    pub placement: Option<Placement>,
}

/// The object that is bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// Group and version, such as `apps/v1`.
    pub api_version: String,
    pub kind: String,
    pub key: Key,
    /// Its uid, by which ties are broken; may be empty.
    pub uid: String,
}

/// Replicas a cluster has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// Which cluster.
    pub name: String,
    /// How many.
    pub replicas: i32,
}

/// Where something may go, and how it is divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Which clusters; `None` for all, unless there are groups.
    pub affinity: Option<Affinity>,
    /// Groups of clusters, tried one after the other.
    pub groups: Vec<Group>,
    /// Which taints of clusters are put up with.
    pub tolerations: Vec<Toleration>,
    /// How it is to be spread.
    pub spread: Vec<Spread>,
    /// How replicas are divided.
    pub division: Division,
}

/// A group of clusters, and where to go when it is full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// Which clusters.
    pub affinity: Affinity,
    /// More clusters for what does not fit, tier after tier.
    pub overflow: Vec<Affinity>,
}

/// How many different ones there must and may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Different in what.
    pub by: By,
    /// So many at least.
    pub min: i64,
    /// So many at most; 0 if not said.
    pub max: i64,
}

/// What clusters are told apart by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// By nothing: each for itself.
    Cluster,
    /// By region.
    Region,
    /// By zone; a cluster may be in several.
    Zone,
    /// By provider.
    Provider,
    /// By the value of a label.
    Label(String),
    /// Nothing is said. Admission makes that clusters; a binding that never passed it is refused.
    Unsaid,
}

/// How replicas are divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Division {
    /// Every cluster gets all of them.
    #[default]
    Duplicated,
    /// As few clusters as possible.
    Aggregated,
    /// By weights; `None` for all the same.
    Weighted(Option<Weights>),
    /// In a way that is not known. Admission lets none pass.
    Unknown {
        /// What is written for the type.
        kind: String,
        /// What is written for the preference.
        preference: String,
    },
}

/// What clusters weigh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Written weights; the largest that matches counts.
    pub fixed: Vec<(Affinity, i64)>,
    /// What fits counts instead.
    pub dynamic: bool,
}

/// Under which circumstances is divided.
#[derive(Clone, Debug, Default)]
pub struct Given<'a> {
    /// What estimators said beside the general one, which needs only what is in [`Member`].
    pub estimators: &'a [Estimator],
    /// Numbers that stand for all estimates of a cluster.
    pub replaced: BTreeMap<String, i32>,
    /// What is on its way to clusters, by cluster.
    pub assumed: Cow<'a, BTreeMap<String, Vec<Assumed>>>,
    /// How.
    pub options: Options,
}

/// Choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whose estimate counts.
    pub mode: Mode,
    /// What happens when not all replicas fit.
    pub shortfall: Shortfall,
    /// Clusters that get no replicas get the workload all the same.
    pub empty: bool,
    /// Divide anew even when as many are assigned as are wanted.
    pub rebalance: bool,
    /// As Karmada v1.18 does it, its defects included. For comparing.
    pub upstream: bool,
}

/// What happens when not all replicas fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shortfall {
    /// Nothing is decided.
    #[default]
    Fail,
    /// What fits is placed, and the rest is told.
    Partial,
}

impl Binding {
    /// Does it run pods at all?
    #[must_use]
    pub fn is_workload(&self) -> bool {
        self.replicas > 0 || self.ask.is_some() || !self.components.is_empty()
    }

    /// Was a fresh division asked for since the last?
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.rescheduled.zip(self.scheduled).is_some_and(|(asked, done)| asked > done)
    }

    /// Replicas there already, `None` where it is not.
    fn previous(&self) -> BTreeMap<&str, i32> {
        let mut out = BTreeMap::new();
        for known in &self.clusters {
            out.entry(known.name.as_str()).or_insert(known.replicas.max(0));
        }
        out
    }
}

/// A cluster, and how many it has; `None` where it is not.
#[derive(Clone, Copy)]
struct Known<'a> {
    member: &'a Member,
    previous: Option<i32>,
}

/// Something by name, walked along with names that come in the same order: for a whole fleet, quicker than looking up.
struct Along<'a, T, I: Iterator<Item = (&'a str, T)>> {
    rest: std::iter::Peekable<I>,
}

impl<'a, T, I: Iterator<Item = (&'a str, T)>> Along<'a, T, I> {
    fn new(sorted: I) -> Self {
        Self { rest: sorted.peekable() }
    }

    /// The one of that name; names must be asked in order, each once.
    fn find(&mut self, name: &str) -> Option<T> {
        loop {
            match self.rest.peek()?.0.cmp(name) {
                Ordering::Less => drop(self.rest.next()),
                Ordering::Equal => return self.rest.next().map(|(_, value)| value),
                Ordering::Greater => return None,
            }
        }
    }
}

/// What is asked of the steps, resolved once.
struct Case<'a> {
    binding: &'a Binding,
    placement: &'a Placement,
    given: &'a Given<'a>,
    /// Complete sets of components are counted, and each cluster chosen gets one.
    sets: bool,
}

#[must_use]
pub fn divide(members: &[Member], binding: &Binding, given: &Given<'_>) -> Answer {
    let Some(placement) = &binding.placement else {
        return Answer::failed(binding, Failure::Error("the binding has no placement".into()));
    };
    if let Some(problem) = refused(binding, placement) {
        return Answer::failed(binding, Failure::Error(problem));
    }
    let case = Case {
        binding,
        placement,
        given,
        // Karmada counts sets only where a feature gate is on.
        sets: !binding.components.is_empty() && !given.options.upstream,
    };
    let mut sorted: Vec<&Member> = members.iter().collect();
    let mut warnings = Vec::new();
    // Mostly they come by name, each once.
    if !sorted.is_sorted_by(|a, b| a.name < b.name) {
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        for twice in sorted.windows(2).filter(|pair| pair[0].name == pair[1].name) {
            warnings.push(format!("cluster {}: given more than once, the first counts", twice[0].name));
        }
        sorted.dedup_by(|a, b| a.name == b.name);
    }
    let previous = binding.previous();
    let mut previous = Along::new(previous.iter().map(|(name, replicas)| (*name, *replicas)));
    for member in sorted.iter().filter(|member| member.deleting) {
        warnings.push(format!("cluster {}: it is being deleted and was left out", member.name));
    }
    let known: Vec<Known<'_>> =
        sorted.into_iter().map(|member| Known { member, previous: previous.find(&member.name) }).collect();
    let mut answer = case.groups(&known);
    warnings.append(&mut answer.warnings);
    answer.warnings = warnings;
    answer
}

/// What no attempt can be made with.
fn refused(binding: &Binding, placement: &Placement) -> Option<String> {
    if binding.replicas < 0 {
        return Some(format!("spec.replicas: expected 0 or more, found {}", binding.replicas));
    }
    if placement.affinity.is_some() && !placement.groups.is_empty() {
        return Some("placement: clusterAffinity and clusterAffinities exclude each other".into());
    }
    None
}

impl<'a> Case<'a> {
    /// Tries the affinity groups in order, from the observed one on. If none succeeds, the first failure is told.
    fn groups(&self, members: &[Known<'a>]) -> Answer {
        let mut first: Option<Answer> = None;
        for group in self.tried() {
            let mut answer = self.attempt(members, Some(group));
            match &mut first {
                _ if answer.failure.is_none() => {
                    answer.affinity = Some(group.name.clone());
                    if let Some(first) = first {
                        answer.warnings.splice(0..0, first.warnings);
                    }
                    return answer;
                }
                None => {
                    let why = answer.condition().message;
                    answer.warnings.push(format!("affinity group {}: {why}", group.name));
                    first = Some(answer);
                }
                Some(first) => {
                    let why = answer.condition().message;
                    first.warnings.push(format!("affinity group {}: {why}", group.name));
                }
            }
        }
        first.unwrap_or_else(|| self.attempt(members, None))
    }

    /// The affinity groups, from the observed one on; all of them when a fresh division was asked for.
    fn tried(&self) -> &'a [Group] {
        let groups = &self.placement.groups;
        let observed = groups.iter().position(|group| group.name == self.binding.observed);
        let anew = self.binding.is_fresh() && !self.given.options.upstream;
        &groups[if anew { 0 } else { observed.unwrap_or(0) }..]
    }

    fn attempt(&self, members: &[Known<'a>], group: Option<&'a Group>) -> Answer {
        let filter = filter::Filter::new(self, group);
        let mut filtered = Vec::new();
        let mut passed = Vec::with_capacity(members.len());
        for known in members.iter().filter(|known| !known.member.deleting) {
            match filter.check(*known) {
                Ok(tier) => passed.push((*known, tier)),
                Err(reason) => filtered.push(Filtered { name: known.member.name.clone(), reason }),
            }
        }
        let mut warnings = Vec::new();
        let (mut candidates, said) = self.candidates(&passed, &mut warnings);
        let roomless = self.without_room(&mut candidates);
        // Where there would be one with more room, that is what is missing.
        let short = !roomless.is_empty();
        if short {
            filtered.extend(roomless);
            filtered.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let candidates = ordered(&candidates);
        let mut answer = Answer { filtered, warnings, said, ..Answer::default() };
        if candidates.is_empty() {
            let all = members.len();
            let refusals = answer.filtered.iter().map(|f| &f.reason);
            let failure =
                if short { Failure::Short { available: 0 } } else { Failure::no_fit(all, refusals) };
            answer.failure = Some(failure);
            answer.shortfall = self.wanted();
            return answer;
        }
        let decided = self.select(&candidates, &mut answer).and_then(|chosen| {
            let chosen: Vec<&Candidate<'_>> = chosen.into_iter().map(|at| &candidates[at]).collect();
            self.assign(&chosen, group.is_some_and(|group| !group.overflow.is_empty()), &mut answer.warnings)
        });
        match decided {
            Ok(decided) => {
                answer.clusters = decided.targets;
                answer.lacking = decided.lacking;
                answer.shortfall = decided.lacking.map_or(0, |lacking| lacking.replicas);
            }
            Err(failure) => {
                answer.failure = Some(failure);
                answer.shortfall = self.wanted();
            }
        }
        answer.feasible = candidates.iter().map(Candidate::told).collect();
        answer.upstream = self.given.options.upstream;
        answer
    }

    /// Takes out clusters no complete set fits into, for a workload of several templates: part of it does not run. One
    /// that has it already keeps it.
    fn without_room(&self, candidates: &mut Vec<Candidate<'a>>) -> Vec<Filtered> {
        let full = |one: &mut Candidate<'_>| self.sets && one.allocatable <= 0 && one.score == 0;
        let refused = |one: Candidate<'_>| Filtered { name: one.member.name.clone(), reason: Refusal::NoSet };
        candidates.extract_if(.., full).map(refused).collect()
    }

    /// How many replicas are to be assigned in all, where they are divided.
    fn wanted(&self) -> i32 {
        outcome::wanted(self.binding)
    }
}

/// In the order in which clusters are chosen: tier, score, confirmed first, room, name. Given by name.
///
/// All of it makes one number, the place in the list last, so that numbers are sorted and nothing else is looked at.
fn ordered<'a>(candidates: &[Candidate<'a>]) -> Vec<Candidate<'a>> {
    /// Room is what fits and what is there, each below 2^31.
    const MOST: i64 = (1 << 33) - 1;
    let number = |(at, one): (usize, &Candidate<'_>)| {
        let room = u128::try_from(MOST - one.available.clamp(0, MOST)).unwrap_or(0);
        let tier = u128::from(u32::try_from(one.tier).unwrap_or(u32::MAX));
        let flags = (u128::from(one.score == 0) << 1) | u128::from(!one.confirmed);
        let at = u128::from(u32::try_from(at).unwrap_or(u32::MAX));
        (tier << 67) | (flags << 65) | (room << 32) | at
    };
    let mut numbers: Vec<u128> = candidates.iter().enumerate().map(number).collect();
    numbers.sort_unstable();
    let place = |number: u128| usize::try_from(number & u128::from(u32::MAX)).unwrap_or(0);
    numbers.into_iter().map(|number| candidates[place(number)]).collect()
}

#[cfg(test)]
mod tests;
