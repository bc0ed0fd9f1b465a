//! What does a placement mean, and what is wrong with it? Checked and prepared once, before any cluster is looked at.
//!
//! Everything is checked always. A mistake that only shows once a cluster reaches it would surface on the day it hurts.

use super::facts::ClusterFacts;
use super::spec::{Configuration, Coordinate, GroupSize, Placement, Predicate, TopologyKind};
use crate::select::label::{Error, Expression, Op, Requirement, check_key};
use crate::select::{LabelSelector, Lookup};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Why a placement cannot be decided. Displays as in the condition: the plugin, a colon, the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `Predicate`, `TaintToleration`, or nothing.
    pub plugin: &'static str,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.plugin, self.message)
    }
}

/// The filter for predicates.
pub const PREDICATE: &str = "Predicate";
/// The filter for taints.
pub const TAINTS: &str = "TaintToleration";

/// One condition on one label or claim. Unlike a [`Requirement`], values may be anything: claims are long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Criterion {
    pub key: String,
    pub values: Vec<String>,
    /// Must there be a value (one of `values`, if there are any), or must there not?
    pub wanted: bool,
}

impl Criterion {
    pub fn matches<L: Lookup + ?Sized>(&self, of: &L) -> bool {
        let found = of.value(&self.key);
        found.is_some_and(|v| self.values.is_empty() || self.values.iter().any(|have| have == v))
            == self.wanted
    }

    fn claim(given: &Expression) -> Result<Self, Error> {
        let (op, wanted) = match given.operator.as_str() {
            "In" => (Op::In, true),
            "NotIn" => (Op::NotIn, false),
            "Exists" => (Op::Exists, true),
            "DoesNotExist" => (Op::DoesNotExist, false),
            // Lets the selector say what is wrong.
            _ => {
                let all =
                    LabelSelector { match_expressions: vec![given.clone()], ..LabelSelector::default() };
                return Err(all.selector().expect_err("the operator is not one a selector knows"));
            }
        };
        // Values may be anything, as long as there are as many as there should be.
        let stand_ins = vec!["x".to_owned(); given.values.len()];
        Requirement::new(&given.key, op, stand_ins)?;
        Ok(Self { key: given.key.clone(), values: given.values.clone(), wanted })
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.values.as_slice(), self.wanted) {
            ([], true) => write!(f, "{} exists", self.key),
            ([], false) => write!(f, "{} does not exist", self.key),
            ([one], true) => write!(f, "{}={one}", self.key),
            ([one], false) => write!(f, "{}!={one}", self.key),
            (more, true) => write!(f, "{} in ({})", self.key, more.join(",")),
            (more, false) => write!(f, "{} notin ({})", self.key, more.join(",")),
        }
    }
}

/// Conditions on labels and claims that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conditions {
    pub labels: Vec<Criterion>,
    pub claims: Vec<Criterion>,
}

impl Conditions {
    fn read(labels: &LabelSelector, claims: &[Expression]) -> Result<Self, Error> {
        let selector = labels.selector()?;
        let claims = claims.iter().map(Criterion::claim).collect::<Result<_, _>>()?;
        Ok(Self { labels: rules(selector.requirements().unwrap_or_default()), claims })
    }

    pub fn hold(&self, cluster: &ClusterFacts) -> bool {
        self.labels.iter().all(|rule| rule.matches(&cluster.labels))
            && self.claims.iter().all(|rule| rule.matches(&cluster.claims))
    }
}

/// The same conditions, without what only nodes know.
pub(super) fn rules(requirements: &[Requirement]) -> Vec<Criterion> {
    let wanted = |op| matches!(op, Op::Equals | Op::DoubleEquals | Op::In | Op::Exists);
    let rule = |r: &Requirement| Criterion {
        key: r.key().to_owned(),
        values: r.values().to_vec(),
        wanted: wanted(r.op()),
    };
    requirements.iter().map(rule).collect()
}

/// What gives a cluster points.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prioritizer {
    /// Selected by few others.
    Balance,
    /// Selected already.
    Steady,
    /// Much of a resource, compared to the others.
    Allocatable(String),
    /// A large share of a resource.
    Ratio(String),
    /// No taint that would rather not have us.
    TaintPreference,
    /// What an object of the cluster says: its name, the name of the score.
    AddOn(String, String),
    /// Where few of the selected are.
    Spread,
}

impl fmt::Display for Prioritizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = |name: &str| match name {
            "cpu" => "CPU".to_owned(),
            "memory" => "Memory".to_owned(),
            other => other.to_owned(),
        };
        match self {
            Self::Balance => f.write_str("Balance"),
            Self::Steady => f.write_str("Steady"),
            Self::Allocatable(name) => write!(f, "ResourceAllocatable{}", resource(name)),
            Self::Ratio(name) => write!(f, "ResourceRatio{}", resource(name)),
            Self::TaintPreference => f.write_str("TaintPreference"),
            Self::AddOn(object, score) => write!(f, "AddOn/{object}/{score}"),
            Self::Spread => f.write_str("Spread"),
        }
    }
}

/// The prioritizer of that name. Any resource can be weighed: what follows `ResourceRatio` or `ResourceAllocatable` is
/// `CPU`, `Memory` or its name, such as `ResourceRationvidia.com/gpu`.
fn built_in(name: &str) -> Option<Prioritizer> {
    let resource = |rest: &str| match rest {
        "CPU" => Some("cpu".to_owned()),
        "Memory" => Some("memory".to_owned()),
        other => check_key(other).ok().map(|()| other.to_owned()),
    };
    match name {
        "Balance" => Some(Prioritizer::Balance),
        "Steady" => Some(Prioritizer::Steady),
        "TaintPreference" => Some(Prioritizer::TaintPreference),
        "Spread" => Some(Prioritizer::Spread),
        _ => {
            let allocatable = name.strip_prefix("ResourceAllocatable").and_then(resource);
            let ratio = || name.strip_prefix("ResourceRatio").and_then(resource);
            allocatable.map(Prioritizer::Allocatable).or_else(|| ratio().map(Prioritizer::Ratio))
        }
    }
}

/// A placement ready to be decided.
#[derive(Clone, Debug, Default)]
pub(super) struct Prepared {
    pub predicates: Vec<Conditions>,
    /// Those that count, each once; by name, so that answers read alike.
    pub weights: Vec<(Prioritizer, i64)>,
    pub spread_weight: i64,
    pub groups: Vec<Conditions>,
    /// Everything that is wrong, as far as that can be told without CEL.
    pub problems: Vec<Problem>,
    pub reads: Reads,
}

impl Prepared {
    /// Can a cluster match a predicate, whatever its expressions say? If in doubt, it can.
    pub fn may_match(&self, cluster: &ClusterFacts) -> bool {
        self.predicates.is_empty()
            || !self.problems.is_empty()
            || self.predicates.iter().any(|conditions| conditions.hold(cluster))
    }
}

/// What a decision depends on, besides which clusters there are and what is published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub labels: BTreeSet<String>,
    pub claims: BTreeSet<String>,
    pub resources: BTreeSet<String>,
    /// Names of score objects.
    pub scores: BTreeSet<String>,
    /// Any part of a cluster, and any of its scores.
    pub cel: bool,
    /// The published load.
    pub load: bool,
}

/// Checks and prepares.
pub(super) fn prepare(placement: &Placement) -> Prepared {
    let mut out = Prepared::default();
    predicates(&placement.predicates, &mut out);
    tolerations(placement, &mut out.problems);
    weights(placement, &mut out);
    groups(placement, &mut out);
    let name = &placement.key.name;
    if name.len() > 63 {
        let message = format!(
            "the name is a label of the decisions and must be no longer than 63 characters, not {}",
            name.len()
        );
        out.problems.push(Problem { plugin: "", message });
    }
    if let Some(count) = placement.count.filter(|count| *count < 0) {
        let message = format!("numberOfClusters must not be negative, not {count}");
        out.problems.push(Problem { plugin: "", message });
    }
    if placement.spread.len() > 8 {
        let message = format!("spreadConstraints must be no more than 8, not {}", placement.spread.len());
        out.problems.push(Problem { plugin: "", message });
    }
    for constraint in &placement.spread {
        let keys = match constraint.kind {
            TopologyKind::Label => &mut out.reads.labels,
            TopologyKind::Claim => &mut out.reads.claims,
        };
        keys.insert(constraint.key.clone());
    }
    out
}

fn note(conditions: &Conditions, reads: &mut Reads) {
    reads.labels.extend(conditions.labels.iter().map(|rule| rule.key.clone()));
    reads.claims.extend(conditions.claims.iter().map(|rule| rule.key.clone()));
}

fn predicates(given: &[Predicate], out: &mut Prepared) {
    for (index, predicate) in given.iter().enumerate() {
        out.reads.cel |= !predicate.cel.is_empty();
        match Conditions::read(&predicate.labels, &predicate.claims) {
            Ok(conditions) => {
                note(&conditions, &mut out.reads);
                out.predicates.push(conditions);
            }
            Err(error) => {
                let message = format!("predicates[{index}]: {error}");
                out.problems.push(Problem { plugin: PREDICATE, message });
            }
        }
    }
}

fn tolerations(placement: &Placement, problems: &mut Vec<Problem>) {
    for toleration in &placement.tolerations {
        let exists = toleration.operator == "Exists";
        let message = if toleration.key.is_empty() && !exists {
            "If the key is empty, operator must be Exists."
        } else if exists && !toleration.value.is_empty() {
            "If the operator is Exists, the value should be empty."
        } else {
            continue;
        };
        problems.push(Problem { plugin: TAINTS, message: message.to_owned() });
    }
}

fn weights(placement: &Placement, out: &mut Prepared) {
    let mut problem = |message: String| out.problems.push(Problem { plugin: "", message });
    let additive = match placement.mode.as_str() {
        "" | "Additive" => true,
        "Exact" => false,
        other => return problem(format!("incorrect prioritizer policy mode: {other}")),
    };
    let mut weights: Vec<(Prioritizer, i64)> = Vec::new();
    if additive {
        weights.extend([(Prioritizer::Balance, 1), (Prioritizer::Steady, 1)]);
        if !placement.spread.is_empty() {
            weights.push((Prioritizer::Spread, 2));
        }
    }
    // What is wrong, with the last weight it got: nobody minds what is switched off.
    let mut wrong: BTreeMap<String, i64> = BTreeMap::new();
    for Configuration { coordinate, weight } in &placement.configurations {
        let weight = i64::from(*weight);
        let prioritizer = match coordinate {
            None => {
                problem("scoreCoordinate field is required".to_owned());
                continue;
            }
            Some(Coordinate::AddOn(None)) => {
                wrong.insert("addOn should not be empty".to_owned(), weight);
                continue;
            }
            Some(Coordinate::AddOn(Some((object, score)))) => {
                Prioritizer::AddOn(object.clone(), score.clone())
            }
            Some(Coordinate::BuiltIn(name)) => {
                let Some(known) = built_in(name) else {
                    wrong.insert(format!("incorrect builtin prioritizer: {name}"), weight);
                    continue;
                };
                known
            }
        };
        let known = weights.iter_mut().find(|(known, _)| *known == prioritizer);
        match (known, &prioritizer) {
            // The same score named twice counts twice; of built-in ones the last word holds.
            (Some((_, sum)), Prioritizer::AddOn(..)) => *sum += weight,
            (Some((_, last)), _) => *last = weight,
            (None, _) => weights.push((prioritizer, weight)),
        }
    }
    wrong.into_iter().filter(|(_, weight)| *weight != 0).for_each(|(message, _)| problem(message));
    for (prioritizer, weight) in weights.into_iter().filter(|(_, weight)| *weight != 0) {
        match &prioritizer {
            Prioritizer::Spread => {
                out.spread_weight = weight;
                continue;
            }
            Prioritizer::Allocatable(name) | Prioritizer::Ratio(name) => {
                out.reads.resources.insert(name.clone());
                out.reads.load |= placement.extra.source != super::spec::Source::Static;
            }
            Prioritizer::AddOn(object, _) => {
                out.reads.scores.insert(object.clone());
            }
            Prioritizer::Balance | Prioritizer::Steady | Prioritizer::TaintPreference => {}
        }
        out.weights.push((prioritizer, weight));
    }
    out.weights.sort();
}

fn groups(placement: &Placement, out: &mut Prepared) {
    for (index, group) in placement.groups.iter().enumerate() {
        match Conditions::read(&group.labels, &group.claims) {
            Ok(conditions) => {
                note(&conditions, &mut out.reads);
                out.groups.push(conditions);
            }
            Err(error) => {
                let message = format!("decisionGroups[{index}]: {error}");
                out.problems.push(Problem { plugin: "", message });
            }
        }
    }
    if let GroupSize::Text(text) = &placement.group_size
        && percent(text).is_none()
    {
        let message = format!("{text} invalid type: string is not a percentage");
        out.problems.push(Problem { plugin: "", message });
    }
}

/// The number before a percent sign.
pub(super) fn percent(text: &str) -> Option<i64> {
    text.strip_suffix('%')?.parse().ok()
}
