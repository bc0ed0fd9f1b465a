//! Whole cycles, with the arithmetic written out.

mod bad;
mod candidates;
mod collecting;
mod cycles;
mod evicting;
mod fewest;
mod lines;
mod new_metric;
mod previewing;
mod reclaiming;
mod restoring;
mod settling;
mod throttling;

use super::metric::Catalogue;
use super::policy::{Action, Evict, NodeQos, Policy, Rule};
use super::scope::Scope;
use super::throttle::Step;
use super::*;
use crate::object::Key;
use crate::select::label::Expression;
use crate::view::Labels;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// 2025-01-01T00:00:00Z and so many seconds.
fn t(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_735_689_600 + seconds).expect("within range")
}

fn mc(millicores: f64) -> Level {
    Level::from_f64(millicores).expect("a number")
}

const GI: i64 = 1 << 30;

fn key(name: &str) -> Key {
    Key::new("default", name)
}

/// A pod of one container of that name that uses so many cores, without limits.
fn pod(name: &str, cores: f64) -> Pod {
    let usage = Some(mc(cores * 1000.0));
    Pod {
        key: key(name),
        uid: format!("uid-{name}").into(),
        class: Class::BestEffort,
        started: Some(t(-3600)),
        cpu: usage,
        memory: Some(Level::whole(GI)),
        containers: vec![Container {
            name: "main".into(),
            usage,
            quota: CpuQuota::Unlimited,
            ..Container::default()
        }],
        ..Pod::default()
    }
}

fn using(name: &str, cores: f64, gibibytes: i64) -> Pod {
    Pod { memory: Some(Level::whole(gibibytes * GI)), ..pod(name, cores) }
}

fn throttle(name: &str, percent: i32, least_percent: i32) -> Action {
    let step = Some(Step { percent, least_percent });
    Action { name: name.into(), cool_down_seconds: 300, throttle: step, ..Action::default() }
}

fn evict(name: &str) -> Action {
    let evict = Some(Evict::default());
    Action { name: name.into(), cool_down_seconds: 300, evict, ..Action::default() }
}

/// A rule that acts at the first sample and restores at the first one below.
fn rule(name: &str, metric: &str, value: i64, action: &str) -> Rule {
    Rule {
        name: name.into(),
        metric: metric.into(),
        value: Some(Level::whole(value)),
        avoid_after: 1,
        restore_after: 1,
        action: action.into(),
        ..Rule::default()
    }
}

/// Allows these actions on every pod.
fn everybody(actions: &[&str]) -> Scope {
    scope("everybody", ("Namespace", "NotIn", &["nowhere"]), actions)
}

fn scope(name: &str, (what, operator, values): (&str, &str, &[&str]), actions: &[&str]) -> Scope {
    let values = values.iter().map(ToString::to_string).collect();
    Scope {
        name: name.into(),
        expressions: vec![Expression { key: what.into(), operator: operator.into(), values }],
        allowed: actions.iter().map(|a| Arc::from(*a)).collect(),
        ..Scope::default()
    }
}

fn policy(rules: Vec<Rule>, actions: Vec<Action>) -> Policy {
    let names: Vec<Arc<str>> = actions.iter().map(|a| a.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(|n| &**n).collect();
    policy_for(rules, actions, &[everybody(&names)])
}

fn policy_for(rules: Vec<Rule>, actions: Vec<Action>, scopes: &[Scope]) -> Policy {
    let object = NodeQos { name: "nq".into(), selector: None, rules };
    Policy::new(Catalogue::default(), &[object], actions, scopes)
}

fn series(name: &str, value: f64) -> Series {
    Series { name: name.into(), labels: Labels::default(), value: Level::from_f64(value), at: t(0) }
}

/// A node of 8 cores and 32 Gi with these pods, at the beginning.
fn snapshot(samples: &[(&str, f64)], pods: Vec<Pod>) -> NodeSnapshot {
    NodeSnapshot {
        now: t(0),
        node: Node {
            name: "n1".into(),
            cpu: Some(Level::whole(8000)),
            memory: Some(Level::whole(32 * GI)),
            ..Node::default()
        },
        series: samples.iter().map(|(name, value)| series(name, *value)).collect(),
        latest: Vec::new(),
        pods,
        budgets: Vec::new(),
        state: State::default(),
        options: Options::default(),
    }
}

/// The same node `seconds` later with other samples, remembering what the plan left.
fn next(before: &NodeSnapshot, plan: &Plan, seconds: i64, samples: &[(&str, f64)]) -> NodeSnapshot {
    let now = before.now + SignedDuration::from_secs(seconds);
    let at_now = |(name, value): &(&str, f64)| Series { at: now, ..series(name, *value) };
    NodeSnapshot {
        now,
        series: samples.iter().map(at_now).collect(),
        state: plan.as_planned(),
        ..before.clone()
    }
}

/// `pod quota` of every write, in order; -1 is unlimited.
fn writes(plan: &Plan) -> Vec<(&str, i64)> {
    plan.steps.writes.iter().map(|w| (short(&w.pod), w.quota.us().unwrap_or(0))).collect()
}

fn victims(plan: &Plan) -> Vec<&str> {
    plan.steps.victims.iter().map(|v| short(&v.pod)).collect()
}

fn short(pod: &Key) -> &str {
    &pod.name
}

fn phases(plan: &Plan) -> Vec<&'static str> {
    plan.rules.iter().map(|r| r.phase.as_str()).collect()
}

/// The gap to the lowest line at the end, in the unit of gaps.
fn gap(plan: &Plan, category: gap::Category, metric: &str) -> f64 {
    let of = |target: &&gap::Gap| target.category == category && target.metric.name == metric;
    let target = plan.steps.targets.iter().find(of).expect("a line of that metric");
    target.gap().expect("quantified").to_f64()
}
