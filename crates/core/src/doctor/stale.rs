//! Is what nodes and workloads bear still true? Annotations of load, and recommendations.

use super::facts::{Facts, Node};
use super::permissions::Component;
use super::{Finding, count, few, span, verb};
use crate::load::annotation;
use jiff::SignedDuration;

const ANNOTATIONS: &str = "annotations";
const RECOMMENDATIONS: &str = "recommendations";

/// Ours are renewed every hour or so, those of crane every day.
const OLD: SignedDuration = SignedDuration::from_hours(48);

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut out = annotations(facts);
    out.extend(recommendations(facts));
    out
}

/// What the annotations of a node are like.
#[derive(Default)]
struct State {
    /// Metrics a reader can use.
    good: usize,
    /// The oldest that is too old, by how old it is.
    old: Option<SignedDuration>,
    unreadable: bool,
    missing: usize,
}

fn state(facts: &Facts, node: &Node) -> State {
    let zone = facts.rules.settings().time_zone.as_ref();
    let mut state = State::default();
    for metric in facts.rules.metrics() {
        let Some(window) = metric.window else { continue };
        let Some(text) = node.facts.annotations.get(&*metric.name) else {
            state.missing += 1;
            continue;
        };
        match annotation::read(text, zone) {
            Ok(reading) if facts.now.duration_since(reading.at) > window => {
                state.old = state.old.max(Some(facts.now.duration_since(reading.at)));
            }
            Ok(annotation::Reading { value: Ok(_), .. }) => state.good += 1,
            Ok(_) | Err(_) => state.unreadable = true,
        }
    }
    state
}

fn annotations(facts: &Facts) -> Vec<Finding> {
    let Some(nodes) = facts.nodes.read() else { return Vec::new() };
    let expects = facts.expects();
    let expected = nodes.iter().filter(|node| expects(node));
    let states: Vec<(&str, State)> = expected.map(|node| (node.name(), state(facts, node))).collect();
    let runs = Component::running(facts).contains(&Component::Annotator);
    let some = states.iter().any(|(_, one)| one.good > 0 || one.old.is_some() || one.unreadable);
    let show = |node: &str| format!("kubectl get node {node} -o jsonpath='{{.metadata.annotations}}'");
    if !some && !runs {
        let what = "no node bears annotations of its load; only schedulers that read them need any";
        let nodes = states.first().map_or_else(|| "kubectl get nodes".to_owned(), |(node, _)| show(node));
        return if states.is_empty() { Vec::new() } else { vec![Finding::ok(ANNOTATIONS, what, nodes)] };
    }
    let of = count(states.len(), "node");
    let which = |is: &dyn Fn(&State) -> bool| -> Vec<&str> {
        states.iter().filter(|(_, one)| is(one)).map(|(node, _)| *node).collect()
    };
    let mut out = Vec::new();
    let old = which(&|one| one.old.is_some());
    if !old.is_empty() {
        let age = states.iter().filter_map(|(_, one)| one.old).max().map(span).unwrap_or_default();
        let has = verb(old.len(), "bears", "bear");
        let what = format!(
            "{} of {of} {has} load annotations that are too old, up to {age}: {}",
            old.len(),
            few(&old)
        );
        let fix = if runs {
            "look at /readyz of `loadline annotator`: it says which source is silent"
        } else {
            "start `loadline annotator`; if nobody is to write them any more, take the annotations away"
        };
        out.push(
            Finding::broken(ANNOTATIONS, what)
                .why("schedulers that read them take no account of what is too old: the limits of the policy do not hold there")
                .fix(fix)
                .show(show(old[0]))
                .about(old),
        );
    }
    let unreadable = which(&|one| one.unreadable);
    if !unreadable.is_empty() {
        let what = format!(
            "{} of {of} {} a load annotation that does not read: {}",
            unreadable.len(),
            verb(unreadable.len(), "bears", "bear"),
            few(&unreadable)
        );
        out.push(
            Finding::broken(ANNOTATIONS, what)
                .why("expected is `VALUE,TIME` such as 0.43012,2026-01-31T12:00:00Z; anything else says nothing")
                .fix("find out who writes it; an annotator writes it anew once it is taken away")
                .show(show(unreadable[0]))
                .about(unreadable),
        );
    }
    let without = which(&|one| one.missing > 0);
    if !without.is_empty() {
        let what = format!(
            "{} of {of} {} metrics of the policy: {}",
            without.len(),
            verb(without.len(), "lacks", "lack"),
            few(&without)
        );
        out.push(
            Finding::warning(ANNOTATIONS, what)
                .why("what is not there counts neither as a limit nor in the score")
                .fix(
                    "give doctor the policy the annotator goes by (--policy); then look whether its sources know these nodes \
                     (`metrics` and `series` above)",
                )
                .show(show(without[0]))
                .about(without),
        );
    }
    if out.is_empty() {
        out.push(Finding::ok(
            ANNOTATIONS,
            format!("load annotations are good on {of}"),
            "kubectl get nodes -o yaml",
        ));
    }
    out
}

fn recommendations(facts: &Facts) -> Vec<Finding> {
    let Some(all) = facts.recommendations.read() else { return Vec::new() };
    if all.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    let age =
        |one: &crate::load::recommend::Recommendation| one.updated.map(|at| facts.now.duration_since(at));
    let old: Vec<&str> =
        all.iter().filter(|one| age(one).is_some_and(|age| age > OLD)).map(|one| &*one.name).collect();
    let of = count(all.len(), "recommendation");
    let show = |name: &str| {
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        format!("kubectl -n {namespace} get recommendation {name} -o yaml")
    };
    if !old.is_empty() {
        let most = all.iter().filter_map(age).max().map(span).unwrap_or_default();
        let what = format!(
            "{} of {of} {} old, up to {most}: {}",
            old.len(),
            verb(old.len(), "is", "are"),
            few(&old)
        );
        out.push(
            Finding::warning(RECOMMENDATIONS, what)
                .why("new pods are charged with what the workload used then")
                .fix("look whether `loadline recommender` (or craned) runs; delete what nobody renews")
                .show(show(old[0]))
                .about(old),
        );
    }
    // Ours say nothing about success: they are written only if there is something to say.
    let failed: Vec<&str> =
        all.iter().filter(|one| !one.success && one.message.is_some()).map(|one| &*one.name).collect();
    if !failed.is_empty() {
        let what = format!("{} of {of} could not be renewed the last time: {}", failed.len(), few(&failed));
        out.push(
            Finding::warning(RECOMMENDATIONS, what)
                .why("the figures are those of an earlier time")
                .fix("its annotation analysis.crane.io/message says what went wrong")
                .show(show(failed[0]))
                .about(failed),
        );
    }
    if out.is_empty() {
        let what = format!("{of}, renewed within {}", span(OLD));
        out.push(Finding::ok(RECOMMENDATIONS, what, "kubectl get recommendations -A"));
    }
    out
}
