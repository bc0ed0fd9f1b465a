//! Nodes with too much load, to plan for.

use jiff::{SignedDuration, Timestamp};
use loadline_core::object::Key;
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::policy::{Action, Evict, NodeQos, Policy, Rule};
use loadline_core::qos::scope::Scope;
use loadline_core::qos::throttle::Step;
use loadline_core::qos::{
    Class, Container, CpuQuota, Level, Missing, Node, NodeSnapshot, Options, Planner, Pod, Series, State,
};
use loadline_core::select::label::Expression;
use loadline_core::view::Labels;
use std::collections::BTreeMap;

const GI: i64 = 1 << 30;

fn now() -> Timestamp {
    Timestamp::from_second(1_735_689_600).expect("a time in range")
}

/// Six metrics and ten rules, all of them passed: two that throttle and two that evict for CPU, one for its share; two for
/// memory, one for its share; two that nobody can quantify, which only keep pods away.
const RULES: [(&str, &str, i64, &str); 10] = [
    ("r0", "cpu_total_usage", 40_000, "squeeze"),
    ("r1", "cpu_total_usage", 42_000, "squeeze"),
    ("r2", "cpu_total_usage", 50_000, "drop"),
    ("r3", "cpu_total_usage", 52_000, "drop"),
    ("r4", "cpu_total_utilization", 60, "squeeze"),
    ("r5", "memory_total_usage", 150 * GI, "drop"),
    ("r6", "memory_total_usage", 160 * GI, "drop"),
    ("r7", "memory_total_utilization", 55, "drop"),
    ("r8", "disk_utilization", 80, "close"),
    ("r9", "network_receive_kibps", 1_000, "close"),
];

/// The rules, prepared once as an agent does.
pub fn policy() -> Policy {
    let rule = |(name, metric, value, action): &(&str, &str, i64, &str)| Rule {
        name: (*name).into(),
        metric: (*metric).into(),
        value: Some(Level::whole(*value)),
        avoid_after: 1,
        restore_after: 1,
        action: (*action).into(),
        ..Rule::default()
    };
    let object = NodeQos { name: "nq".into(), selector: None, rules: RULES.iter().map(rule).collect() };
    let action = |name: &str, throttle, evict| Action {
        name: name.into(),
        cool_down_seconds: 300,
        throttle,
        evict,
        ..Action::default()
    };
    let actions = vec![
        action("squeeze", Some(Step { percent: 10, least_percent: 10 }), None),
        action("drop", None, Some(Evict::default())),
        action("close", None, None),
    ];
    let batch =
        Expression { key: "Priority".into(), operator: "In".into(), values: vec!["-1000-100".into()] };
    let scope = Scope {
        name: "batch".into(),
        expressions: vec![batch],
        allowed: vec!["squeeze".into(), "drop".into()],
        ..Scope::default()
    };
    Policy::new(Catalogue::default(), &[object], actions, &[scope])
}

/// A node of 64 cores and 256 GiB with so many pods of two containers each.
pub fn node(pods: usize, planner: Planner) -> NodeSnapshot {
    let sample = |name: &str, value: i64| Series {
        name: name.into(),
        labels: Labels::default(),
        value: Some(Level::whole(value)),
        at: now(),
    };
    NodeSnapshot {
        now: now(),
        node: Node {
            name: "n1".into(),
            cpu: Some(Level::whole(64_000)),
            memory: Some(Level::whole(256 * GI)),
            ..Node::default()
        },
        series: vec![
            sample("cpu_total_usage", 58_000),
            sample("cpu_total_utilization", 90),
            sample("memory_total_usage", 180 * GI),
            sample("memory_total_utilization", 70),
            sample("disk_utilization", 90),
            sample("network_receive_kibps", 5_000),
        ],
        latest: Vec::new(),
        pods: (0..pods).map(|i| pod(i, pods)).collect(),
        budgets: Vec::new(),
        state: State::default(),
        options: Options {
            planner,
            max_per_cycle: 0,
            max_per_hour: 0,
            missing_evict: Missing::Paced,
            ..Options::default()
        },
    }
}

fn pod(at: usize, all: usize) -> Pod {
    let mixed = i64::try_from(at * 7919 % 997).unwrap_or_default();
    let share = i64::try_from(all).unwrap_or(1).max(1);
    let cpu = Level::whole(1 + 116_000 * mixed / 997 / share);
    let memory = Level::whole(1 + 360 * GI / 997 * mixed / share);
    let half = Some(cpu.times(1, 2));
    let container = |name: &str| Container {
        name: name.into(),
        usage: half,
        quota: CpuQuota::Unlimited,
        ..Container::default()
    };
    Pod {
        key: Key::new("batch", format!("pod-{at:04}")),
        uid: format!("uid-{at}").into(),
        labels: Labels::plain(&BTreeMap::from([("app".into(), format!("app-{}", at % 20))])),
        priority: i32::try_from(mixed % 3).unwrap_or_default() * 100,
        class: if at.is_multiple_of(2) { Class::BestEffort } else { Class::Burstable },
        started: Some(now() - SignedDuration::from_secs(mixed)),
        cpu: Some(cpu),
        memory: Some(memory),
        containers: vec![container("main"), container("side")],
        ..Pod::default()
    }
}
