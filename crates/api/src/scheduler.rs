//! `SchedulerConfiguration`: whose pods are given nodes, and by which rules.
//!
//! Read as strictly as the policy it contains: a field nobody knows is an error, and everything that is wrong is said
//! at once, each with its path. [`write()`] gives the whole of it back, with what was left out filled in.
//!
//! ```yaml
//! apiVersion: loadline.dev/v1alpha1
//! kind: SchedulerConfiguration
//! profiles:
//! - schedulerName: loadline          # everything by its default
//! - schedulerName: batch
//!   settings: {targets: {cpu: 0.9}}  # the spec of LoadSettings
//!   whenOverloaded: LeastBad         # after a minute, the node that is over by least
//!   leastBadAfter: 1m
//! - schedulerName: by-requests
//!   loadAware: false
//! ```

mod write;

pub use write::write;

use crate::json::Tree;
use crate::policy::fields::{Fields, Notes};
use crate::policy::rules_of_specs;
use jiff::SignedDuration;
use loadline_core::cluster::Profile;
use loadline_core::cycle::Weights;
use loadline_core::load::policy::{Origin, Problem, Rules};

/// API version and kind.
pub const CONFIGURATION: (&str, &str) = ("loadline.dev/v1alpha1", "SchedulerConfiguration");
/// The name pods ask for unless it is configured.
pub const NAME: &str = "loadline";

const ROOT: &[&str] = &["apiVersion", "kind", "metadata", "profiles", "parallelWrites"];
const PROFILE: &[&str] =
    &["schedulerName", "loadAware", "policy", "settings", "weights", "whenOverloaded", "leastBadAfter"];
/// The scores by the names their plugins have in kube-scheduler, and ours.
const WEIGHTS: [&str; 9] = [
    "Load",
    "Need",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "TaintToleration",
    "NodeAffinity",
    "InterPodAffinity",
    "PodTopologySpread",
    "ImageLocality",
];
/// A weight beyond this could make sums that nobody can compare.
const HEAVIEST: i64 = 1_000_000;

/// What becomes of a pod that only load keeps from every node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenOverloaded {
    /// It waits until there is room.
    #[default]
    Wait,
    /// It waits so long; then it goes to the node that would be over its limits by least.
    LeastBad { after: SignedDuration },
}

impl WhenOverloaded {
    /// How long a pod waits unless it is said.
    pub const AFTER: SignedDuration = SignedDuration::from_mins(1);
}

/// One name, and by which rules its pods are placed.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerProfile {
    /// What pods have in `spec.schedulerName`.
    pub name: String,
    pub profile: Profile,
    pub when_overloaded: WhenOverloaded,
}

impl SchedulerProfile {
    /// By these rules, or by requests alone; waiting when there is no room.
    #[must_use]
    pub fn new(name: impl Into<String>, rules: Option<Rules>) -> Self {
        let when_overloaded = WhenOverloaded::default();
        Self { name: name.into(), profile: Profile::by(rules), when_overloaded }
    }
}

/// All of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// At least one, no name twice.
    pub profiles: Vec<SchedulerProfile>,
    /// Writes under way at a time.
    pub parallel_writes: usize,
}

impl Default for Configuration {
    fn default() -> Self {
        Self { profiles: vec![SchedulerProfile::new(NAME, Some(Rules::default()))], parallel_writes: 32 }
    }
}

/// Reads a document; gives what is worth a warning along with it.
///
/// # Errors
/// Everything that is wrong.
pub fn read(document: &Tree<'_>) -> Result<(Configuration, Vec<Problem>), Vec<Problem>> {
    let notes = Notes::new(Origin::Settings);
    let root = Fields::root(document, &notes, ROOT);
    root.is(CONFIGURATION);
    root.open("metadata");
    let mut out = Configuration::default();
    let mut more = Vec::new();
    if root.has("profiles") {
        out.profiles = root
            .list("profiles", PROFILE)
            .enumerate()
            .map(|(i, item)| {
                let path = format!("profiles[{i}]");
                let read = rules_of_specs(item.value("policy"), item.value("settings"));
                let (rules, warnings) = read.unwrap_or_else(|problems| {
                    more.extend(problems.into_iter().map(|problem| (true, moved(&path, problem))));
                    (Rules::default(), Vec::new())
                });
                more.extend(warnings.into_iter().map(|problem| (false, moved(&path, problem))));
                profile(&item, rules)
            })
            .collect();
        if out.profiles.is_empty() {
            root.wrong("profiles", "expected at least one, found none");
        }
        for (i, one) in out.profiles.iter().enumerate() {
            if out.profiles[..i].iter().any(|other| other.name == one.name) {
                root.wrong(
                    &format!("profiles[{i}].schedulerName"),
                    &format!("{:?} is there already", one.name),
                );
            }
        }
    }
    if root.has("parallelWrites") {
        let writes = root.whole("parallelWrites");
        out.parallel_writes = usize::try_from(writes).unwrap_or(0);
        if !(1..=1024).contains(&writes) {
            root.wrong("parallelWrites", &format!("expected 1 to 1024, found {writes}"));
        }
    }
    let (mut problems, mut warnings) = notes.take();
    for (fatal, problem) in more {
        if fatal { &mut problems } else { &mut warnings }.push(problem);
    }
    if problems.is_empty() { Ok((out, warnings)) } else { Err(problems) }
}

fn profile(item: &Fields<'_>, rules: Rules) -> SchedulerProfile {
    let name = item.text("schedulerName").to_owned();
    if name.is_empty() {
        item.wrong("schedulerName", "expected the name pods ask for, found nothing");
    }
    let load_aware = item.flag("loadAware").unwrap_or(true);
    for field in ["policy", "settings"] {
        if !load_aware && item.has(field) {
            item.wrong(field, "expected nothing: with loadAware: false no load counts");
        }
    }
    let when = [("Wait", false), ("LeastBad", true)];
    let least_bad = item.choice("whenOverloaded", &when).unwrap_or(false);
    let when_overloaded = match (least_bad, item.has("leastBadAfter")) {
        (true, true) => WhenOverloaded::LeastBad { after: item.duration("leastBadAfter") },
        (true, false) => WhenOverloaded::LeastBad { after: WhenOverloaded::AFTER },
        (false, given) => {
            if given {
                item.wrong("leastBadAfter", "expected nothing without whenOverloaded: LeastBad");
            }
            WhenOverloaded::Wait
        }
    };
    if let WhenOverloaded::LeastBad { after } = when_overloaded
        && after.is_negative()
    {
        item.wrong("leastBadAfter", "expected a time that is not negative");
    }
    let profile = Profile { rules: load_aware.then_some(rules), weights: weights(item) };
    SchedulerProfile { name, profile, when_overloaded }
}

fn weights(item: &Fields<'_>) -> Weights {
    let given = item.object("weights", &WEIGHTS);
    let mut out = Weights::default();
    for (name, held) in WEIGHTS.iter().zip(parts(&mut out)) {
        if given.has(name) {
            *held = given.whole(name);
            if !(0..=HEAVIEST).contains(held) {
                given.wrong(name, &format!("expected 0 to {HEAVIEST}, found {held}"));
            }
        }
    }
    out
}

/// The weights in the order of their names.
fn parts(weights: &mut Weights) -> [&mut i64; 9] {
    let Weights { load, need, least, balanced, taints, liking, affinity, spread, images } = weights;
    [load, need, least, balanced, taints, liking, affinity, spread, images]
}

/// The same problem, where it is in the whole document.
fn moved(path: &str, problem: Problem) -> Problem {
    let within = match problem.origin {
        Origin::Policy => "policy",
        Origin::Settings => "settings",
    };
    let rest = problem.path.strip_prefix("spec").unwrap_or(&problem.path);
    Problem { path: format!("{path}.{within}{rest}"), ..problem }
}

#[cfg(test)]
mod tests;
