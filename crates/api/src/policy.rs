//! The policy and our settings, read strictly from their documents.
//!
//! A `DynamicSchedulerPolicy` is crane's, field for field, the misspelt `maxLimitPecent` included; the right
//! spelling `maxLimitPercent` is taken, too, but not both at once. It has no metadata: crane would refuse the
//! file. A `LoadSettings` is ours. In both, a field nobody knows is an error, so that a slip of the pen does not
//! go unnoticed; a field that is missing, or `null`, is as crane takes it: empty or zero, and it is for the rules to
//! say whether that makes sense.
//!
//! [`rules`] does all of it: what is wrong with either document, at once.

pub(crate) mod fields;
pub(crate) mod settings;

use crate::json::Tree;
use fields::Fields;
use loadline_core::load::policy::{Bucket, Origin, Policy, Predicate, Priority, Problem, Rules, Sync};
use loadline_core::load::settings::{Mode, Settings};

/// API version and kind of crane's policy.
pub const POLICY: (&str, &str) = ("scheduler.policy.crane.io/v1alpha1", "DynamicSchedulerPolicy");
/// API version and kind of our settings.
pub const SETTINGS: (&str, &str) = ("loadline.dev/v1alpha1", "LoadSettings");

/// What has been read, as far as it could be, and what was wrong on the way.
#[derive(Debug)]
struct Read<T> {
    out: T,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl<T> Read<T> {
    fn noted(out: T, notes: fields::Notes) -> Self {
        let (problems, warnings) = notes.take();
        Self { out, problems, warnings }
    }
}

/// The rules that follow from a policy, or from crane's default one, and from settings, or from none; with what is
/// worth a warning.
///
/// # Errors
/// Everything that is wrong with either.
pub fn rules(
    policy: Option<&Tree<'_>>,
    settings: Option<&Tree<'_>>,
) -> Result<(Rules, Vec<Problem>), Vec<Problem>> {
    let mut aliased = Vec::new();
    let policy = policy.map(|document| read_policy(document, &mut aliased));
    compile(policy, &aliased, settings.map(settings::read))
}

/// The same from the specs alone, without what says what they are; paths begin with `spec`.
pub(crate) fn rules_of_specs(
    policy: Option<&Tree<'_>>,
    settings: Option<&Tree<'_>>,
) -> Result<(Rules, Vec<Problem>), Vec<Problem>> {
    let mut aliased = Vec::new();
    let policy = policy.map(|spec| {
        let notes = fields::Notes::new(Origin::Policy);
        let policy = read_spec(&Fields::spec(spec, &notes, SPEC), &mut aliased);
        Read::noted(policy, notes)
    });
    compile(policy, &aliased, settings.map(settings::read_alone))
}

fn compile(
    policy: Option<Read<Policy>>,
    aliased: &[usize],
    settings: Option<Read<Settings>>,
) -> Result<(Rules, Vec<Problem>), Vec<Problem>> {
    let mut problems = Vec::new();
    let mut warnings = Vec::new();
    let policy = policy.map_or_else(Policy::default, |read| {
        problems.extend(read.problems);
        warnings.extend(read.warnings);
        read.out
    });
    let settings = settings.map_or_else(Settings::default, |read| {
        problems.extend(read.problems);
        warnings.extend(read.warnings);
        read.out
    });
    if settings.mode == Mode::Upstream {
        warnings.extend(aliased.iter().map(|i| {
            let message = "crane knows maxLimitPecent only and refuses the file";
            Problem::policy(format!("spec.predicate[{i}].{RIGHT}"), message)
        }));
    }
    // What is said of a limit is said where it was written.
    let place = |mut problem: Problem| {
        let path = aliased.iter().map(|i| format!("spec.predicate[{i}].{MISSPELT}"));
        if problem.origin == Origin::Policy && path.into_iter().any(|path| path == problem.path) {
            problem.path = problem.path.replace(MISSPELT, RIGHT);
        }
        problem
    };
    match Rules::new(policy, settings) {
        Ok((rules, more)) if problems.is_empty() => {
            warnings.extend(more.into_iter().map(place));
            Ok((rules, warnings))
        }
        Ok(_) => Err(problems),
        Err(more) => {
            // Where something could not be read, what follows from that is no news.
            let news: Vec<Problem> = more
                .into_iter()
                .map(place)
                .filter(|m| !problems.iter().any(|p| p.origin == m.origin && related(&p.path, &m.path)))
                .collect();
            problems.extend(news);
            Err(problems)
        }
    }
}

/// Is one path the other, or within it?
fn related(a: &str, b: &str) -> bool {
    let (outer, inner) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Reads a policy alone. Whether it makes sense is for [`Rules::new`] to say.
///
/// # Errors
/// Everything that cannot be read.
pub fn policy(document: &Tree<'_>) -> Result<Policy, Vec<Problem>> {
    let read = read_policy(document, &mut Vec::new());
    if read.problems.is_empty() { Ok(read.out) } else { Err(read.problems) }
}

/// Reads settings alone. Whether they make sense is for [`Rules::new`] to say.
///
/// # Errors
/// Everything that cannot be read.
pub fn settings(document: &Tree<'_>) -> Result<Settings, Vec<Problem>> {
    let read = settings::read(document);
    if read.problems.is_empty() { Ok(read.out) } else { Err(read.problems) }
}

const MISSPELT: &str = "maxLimitPecent";
const RIGHT: &str = "maxLimitPercent";

/// Also says which predicates spell the limit right, by position.
fn read_policy(document: &Tree<'_>, aliased: &mut Vec<usize>) -> Read<Policy> {
    let notes = fields::Notes::new(Origin::Policy);
    let root = Fields::root(document, &notes, &["apiVersion", "kind", "spec"]);
    root.is(POLICY);
    let policy = read_spec(&root.object("spec", SPEC), aliased);
    Read::noted(policy, notes)
}

const SPEC: &[&str] = &["syncPolicy", "predicate", "priority", "hotValue"];

fn read_spec(spec: &Fields<'_>, aliased: &mut Vec<usize>) -> Policy {
    let mut policy = Policy::empty();
    policy.sync = spec
        .objects("syncPolicy", &["name", "period"])
        .map(|item| Sync { name: item.text("name").into(), period: item.duration_not_null("period") })
        .collect();
    for (i, item) in spec.objects("predicate", &["name", MISSPELT, RIGHT]).enumerate() {
        let limits = [MISSPELT, RIGHT].map(|field| (item.has(field), item.number(field)));
        let limit = match limits {
            [(true, _), (true, _)] => {
                item.wrong(RIGHT, &format!("expected only one of {MISSPELT} and {RIGHT}"));
                None
            }
            [_, (true, limit)] => {
                aliased.push(i);
                limit
            }
            [(_, limit), _] => limit,
        };
        policy
            .predicates
            .push(Predicate { name: item.text("name").into(), limit: limit.unwrap_or_default() });
    }
    policy.priorities = spec
        .objects("priority", &["name", "weight"])
        .map(|item| Priority {
            name: item.text("name").into(),
            weight: item.number("weight").unwrap_or_default(),
        })
        .collect();
    policy.hot = spec
        .objects("hotValue", &["timeRange", "count"])
        .map(|item| Bucket { range: item.duration_not_null("timeRange"), count: item.whole("count") })
        .collect();
    policy
}

#[cfg(test)]
mod tests;
