//! What is found about nodes: measurements, annotations, marks and taints, lines.

use super::*;
use crate::load::policy::{Policy as LoadPolicy, Rules};
use crate::load::recommend::Recommendation;
use crate::load::settings::Settings;
use crate::load::taints;
use crate::qos::Level;
use crate::qos::metric::Catalogue;
use crate::qos::policy::{Action, Evict, NodeQos, Policy, Rule, Strategy};
use crate::rebalance::COOLING_TAINT;
use crate::select::taint::{Effect, Taint};

fn annotate(facts: &mut Facts, which: usize, key: &str, text: &str) {
    read(&mut facts.nodes)[which].facts.annotations.insert(key.to_owned(), text.to_owned());
}

fn taint(facts: &mut Facts, which: usize, key: &str) {
    let taint =
        Taint { key: key.to_owned(), value: String::new(), effect: Effect::NoSchedule, time_added: None };
    read(&mut facts.nodes)[which].facts.taints.push(taint);
}

/// A policy with just one metric, so that one annotation is all of them.
fn one_metric(facts: &mut Facts) {
    let mut policy = LoadPolicy::default();
    policy.sync.truncate(1);
    policy.predicates.truncate(1);
    policy.priorities.truncate(1);
    facts.rules = Rules::new(policy, Settings::default()).unwrap().0;
}

/// Every node says so.
fn annotated(facts: &mut Facts, text: &str) {
    one_metric(facts);
    for which in 0..2 {
        annotate(facts, which, "cpu_usage_avg_5m", text);
    }
}

#[test]
fn measurements_arrive_or_not() {
    table([
        (
            "nobody serves them",
            &|f| f.metrics = Known::Failed(failed(Why::Missing)),
            Some((Severity::Broken, "metrics", "no metrics API")),
        ),
        (
            "one node is not measured",
            &|f| drop(read(&mut f.metrics).pop()),
            Some((Severity::Broken, "metrics", "1 of 2 nodes has no measurement: n2")),
        ),
        (
            "but it is down",
            &|f| {
                read(&mut f.metrics).pop();
                read(&mut f.nodes)[1].ready = Some(false);
            },
            None,
        ),
        (
            "or has just come",
            &|f| {
                read(&mut f.metrics).pop();
                read(&mut f.nodes)[1].created = Some(ago(60));
            },
            None,
        ),
        (
            "but so have all",
            &|f| {
                read(&mut f.metrics).pop();
                for node in read(&mut f.nodes) {
                    node.created = Some(ago(60));
                }
            },
            Some((Severity::Broken, "metrics", "1 of 2 nodes has no measurement: n2")),
        ),
        (
            "a measurement is old",
            &|f| read(&mut f.metrics)[0].1.at = ago(301),
            Some((Severity::Broken, "metrics", "1 of 2 nodes has old measurements, up to 5 min: n1")),
        ),
        ("it is just not", &|f| read(&mut f.metrics)[0].1.at = ago(300), None),
    ]);
}

#[test]
fn annotations_that_are_too_old_unreadable_or_missing() {
    let good = "0.125,2025-01-01T11:59:00Z";
    table([
        ("all are good", &|f| annotated(f, good), None),
        (
            "one is older than its three minutes and five of grace",
            &|f| {
                annotated(f, good);
                annotate(f, 1, "cpu_usage_avg_5m", "0.1,2025-01-01T11:51:59Z");
            },
            Some((
                Severity::Broken,
                "annotations",
                "1 of 2 nodes bears load annotations that are too old, up to 8 min: n2",
            )),
        ),
        (
            "it is just not",
            &|f| {
                annotated(f, good);
                annotate(f, 1, "cpu_usage_avg_5m", "0.1,2025-01-01T11:52:00Z");
            },
            None,
        ),
        (
            "one does not read",
            &|f| {
                annotated(f, good);
                annotate(f, 0, "cpu_usage_avg_5m", "a lot");
            },
            Some((Severity::Broken, "annotations", "does not read: n1")),
        ),
        (
            "one is missing where others have it",
            &|f| {
                annotated(f, good);
                read(&mut f.nodes)[0].facts.annotations.clear();
            },
            Some((Severity::Warning, "annotations", "1 of 2 nodes lacks metrics of the policy: n1")),
        ),
        (
            "nobody has any, but an annotator leads",
            &|f| {
                one_metric(f);
                read(&mut f.leases).push(lease("kube-system", "loadline-annotator", "a", ago(2)));
            },
            Some((Severity::Warning, "annotations", "2 of 2 nodes lack metrics")),
        ),
        ("nobody has any, and nobody writes them", &|f| one_metric(f), None),
    ]);
}

#[test]
fn recommendations_grow_old() {
    let with = |age: i64, success: bool, message: Option<&str>| Recommendation {
        name: "shop/web".into(),
        updated: Some(ago(age)),
        success,
        message: message.map(Into::into),
        ..Recommendation::default()
    };
    table([
        (
            "three days old",
            &|f| f.recommendations = Known::Read(vec![with(3 * 86_400, true, Some("Success"))]),
            Some((
                Severity::Warning,
                "recommendations",
                "1 of 1 recommendation is old, up to 3 days: shop/web",
            )),
        ),
        (
            "two days old",
            &|f| f.recommendations = Known::Read(vec![with(2 * 86_400, true, Some("Success"))]),
            None,
        ),
        (
            "not renewed",
            &|f| f.recommendations = Known::Read(vec![with(60, false, Some("Failed to run"))]),
            Some((Severity::Warning, "recommendations", "could not be renewed")),
        ),
        (
            "of ours, which say nothing about it",
            &|f| f.recommendations = Known::Read(vec![with(60, false, None)]),
            None,
        ),
    ]);
}

#[test]
fn two_accounts_of_a_node_are_far_apart() {
    // 1 of 8 cores is 0.125 by the metrics API.
    table([
        (
            "CPU by more than a half",
            &|f| annotated(f, "0.63,2025-01-01T11:59:00Z"),
            Some((Severity::Warning, "agreement", "two accounts of 2 nodes are far apart: cpu of")),
        ),
        ("by a half", &|f| annotated(f, "0.625,2025-01-01T11:59:00Z"), None),
        ("one of them is old news", &|f| annotated(f, "0.99,2025-01-01T11:54:00Z"), None),
    ]);
}

#[test]
fn marks_and_taints_belong_together() {
    let soon = Some(now() + SignedDuration::from_mins(5));
    table([
        (
            "a taint whose mark is over",
            &|f| {
                taint(f, 0, COOLING_TAINT);
                read(&mut f.nodes)[0].cooling = Some(ago(1));
            },
            Some((
                Severity::Broken,
                "agreement",
                "the taint loadline.dev/cooling without a cooling mark: n1",
            )),
        ),
        (
            "both",
            &|f| {
                taint(f, 0, COOLING_TAINT);
                read(&mut f.nodes)[0].cooling = soon;
            },
            None,
        ),
        (
            "a mark without the taint that another node has",
            &|f| {
                taint(f, 0, COOLING_TAINT);
                for node in read(&mut f.nodes) {
                    node.cooling = soon;
                }
            },
            Some((
                Severity::Warning,
                "agreement",
                "a cooling mark without the taint loadline.dev/cooling: n2",
            )),
        ),
        ("a mark alone, as is usual", &|f| read(&mut f.nodes)[0].cooling = soon, None),
        (
            "the agent's taint without its condition",
            &|f| {
                taint(f, 0, "interference.crane.io");
                read(&mut f.nodes)[0].interference = Some(false);
            },
            Some((Severity::Warning, "agreement", "interference.crane.io")),
        ),
        (
            "with it",
            &|f| {
                taint(f, 0, "interference.crane.io");
                read(&mut f.nodes)[0].interference = Some(true);
            },
            None,
        ),
        (
            "a taint for load that nobody measures",
            &|f| taint(f, 1, taints::KEY),
            Some((Severity::Broken, "agreement", "the taint loadline.dev/load with no load annotation")),
        ),
        (
            "that somebody does",
            &|f| {
                annotated(f, "0.125,2025-01-01T11:59:00Z");
                taint(f, 1, taints::KEY);
            },
            None,
        ),
    ]);
}

/// Pods are evicted above so many cores.
fn line(cores: i64, strategy: Strategy) -> Policy {
    let rule = Rule {
        name: "cpu".into(),
        metric: "cpu_total_usage".into(),
        selector: None,
        value: Some(Level::from_nano(i128::from(cores) * 1_000_000_000_000)),
        avoid_after: 1,
        restore_after: 1,
        action: "drop".into(),
        strategy,
    };
    let action = Action {
        name: "drop".into(),
        cool_down_seconds: 300,
        throttle: None,
        reclaim: false,
        evict: Some(Evict { grace_seconds: None }),
    };
    let rules = NodeQos { name: "line".into(), selector: None, rules: vec![rule] };
    Policy::new(Catalogue::default(), &[rules], vec![action], &[])
}

#[test]
fn a_target_is_above_a_waterline() {
    // The limit of the default policy is 0.65, of 8 cores 5.2.
    table([
        (
            "5 cores",
            &|f| f.lines = Known::Read(line(5, Strategy::Act)),
            Some((Severity::Broken, "lines", "so on one more node")),
        ),
        ("6 cores", &|f| f.lines = Known::Read(line(6, Strategy::Act)), None),
        ("5 cores, but only said", &|f| f.lines = Known::Read(line(5, Strategy::Preview)), None),
    ]);
}
