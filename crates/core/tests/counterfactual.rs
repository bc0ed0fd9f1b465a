//! Every "would fit if" is true: each is applied to its node, exactly and alone, and the pod is asked about again.

use jiff::{SignedDuration, Timestamp};
use loadline_core::cluster::{Change, Cluster, Keep, NodeReport, Options, Question, Wait};
use loadline_core::explain::Reason;
use loadline_core::ledger::Sample;
use loadline_core::load::estimate::Asks;
use loadline_core::load::policy::{Policy, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::{Missing, Mode, Settings};
use loadline_core::load::{Both, Load};
use loadline_core::quantity::Quantity;
use loadline_core::select::taint::{Effect, Operator, Toleration};
use loadline_core::view::build::{node, pod};
use loadline_core::view::{NodeFacts, PodFacts};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

const GI: i64 = 1 << 30;
/// Every metric of the default policy, and its limit in thousandths.
const METRICS: [(&str, i64); 6] = [
    ("cpu_usage_avg_5m", 650),
    ("cpu_usage_max_avg_1h", 750),
    ("cpu_usage_max_avg_1d", 0),
    ("mem_usage_avg_5m", 650),
    ("mem_usage_max_avg_1h", 750),
    ("mem_usage_max_avg_1d", 0),
];

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).expect("a time in range")
}

/// What nodes of a kind have besides, in pieces.
const GPU: &str = "example.com/gpu";

/// What a pod asks for and what it is expected to use: thousandths of a core and mebibytes, and pieces of what is only asked for.
#[derive(Clone, Copy, Debug)]
struct Pod {
    asks: [i64; 3],
    uses: [i64; 2],
}

/// One node, one pod, and everything that can be in between.
#[derive(Clone, Debug)]
struct World {
    mode: Mode,
    missing: Missing,
    /// In hundredths; without, the limits of the short metrics stand in.
    targets: Option<[i64; 2]>,
    /// Changed limits, by metric; in upstream mode for all nodes.
    limits: BTreeMap<String, f64>,
    /// Cores, gibibytes, places for pods; pieces of [`GPU`], of which a node with none does not even speak.
    size: [i64; 4],
    /// Written loads in thousandths, if any.
    loads: Vec<Option<i64>>,
    /// Measured, in percent.
    sample: Option<[i64; 2]>,
    residents: Vec<Pod>,
    /// Others were evicted for it there.
    nominated: Option<Pod>,
    /// Another scheduler may be sending it.
    tentative: Option<Pod>,
    cordoned: bool,
    taints: usize,
    tolerated: Vec<String>,
    cooling: bool,
    pod: Pod,
    overrides: BTreeMap<String, String>,
}

fn pods() -> impl Strategy<Value = Pod> {
    let two = |most: i64| [0..most, 0..most];
    let pieces = prop_oneof![2 => Just(0_i64), 1 => 1..4_i64];
    (two(3000), pieces, two(3000))
        .prop_map(|([milli, mib], pieces, uses)| Pod { asks: [milli, mib, pieces], uses })
}

fn worlds() -> impl Strategy<Value = World> {
    let mode = prop_oneof![3 => Just(Mode::Default), 1 => Just(Mode::Upstream)];
    let missing = prop_oneof![Just(Missing::Estimate), Just(Missing::Allow), Just(Missing::Deny)];
    let targets = prop::option::of([10..=100_i64, 10..=100_i64]);
    let size = [1..12_i64, 1..12_i64, 0..4_i64, 0..5_i64];
    let loads = prop::collection::vec(prop::option::weighted(0.4, 0..1300_i64), 6);
    let sample = prop::option::weighted(0.6, [0..90_i64, 0..90_i64]);
    let residents = prop::collection::vec(pods(), 0..3);
    let rare = |pods| prop::option::weighted(0.2, pods);
    let flags = (prop::bool::weighted(0.2), 0..3_usize, prop::bool::weighted(0.2));
    ((mode, missing, targets, size), (loads, sample, residents, rare(pods()), rare(pods())), (flags, pods()))
        .prop_map(
            |((mode, missing, targets, size), (loads, sample, residents, nominated, tentative), rest)| {
                let ((cordoned, taints, cooling), pod) = rest;
                World {
                    mode,
                    missing,
                    targets,
                    limits: BTreeMap::new(),
                    size,
                    loads,
                    sample,
                    residents,
                    nominated,
                    tentative,
                    cordoned,
                    taints,
                    tolerated: Vec::new(),
                    cooling,
                    pod,
                    overrides: BTreeMap::new(),
                }
            },
        )
}

impl World {
    fn rules(&self) -> Rules {
        let mut policy = Policy::default();
        for predicate in &mut policy.predicates {
            predicate.limit = self.limits.get(&*predicate.name).copied().unwrap_or(predicate.limit);
        }
        let hundredth = |of: i64| Some(Ratio::from_nano(of * 10_000_000));
        let targets = self.targets.map_or_else(Both::default, |[cpu, memory]| Both {
            cpu: hundredth(cpu),
            memory: hundredth(memory),
        });
        let settings = Settings { mode: self.mode, missing: self.missing, targets, ..Settings::default() };
        Rules::new(policy, settings).expect("valid rules").0
    }

    fn node(&self) -> NodeFacts {
        let [cores, gib, places, pieces] = self.size;
        let mut made =
            node("n").cpu(&cores.to_string()).memory(&format!("{gib}Gi")).has("pods", &places.to_string());
        if pieces > 0 {
            made = made.has(GPU, &pieces.to_string());
        }
        for ((metric, _), load) in METRICS.iter().zip(&self.loads) {
            if let Some(load) = load {
                let text = format!("{}.{:03},{}", load / 1000, load % 1000, "2023-11-14T22:13:20Z");
                made = made.annotation(metric, &text);
            }
        }
        for (key, value) in &self.overrides {
            made = made.annotation(key, value);
        }
        for taint in 0..self.taints {
            made = made.taint(&format!("t{taint}"), "", Effect::NoSchedule);
        }
        if self.cordoned { made.cordoned() } else { made }.facts()
    }

    fn incoming(&self) -> PodFacts {
        let mut made = pod("new");
        for key in &self.tolerated {
            let operator = Operator::Exists;
            made = made.tolerates(Toleration { key: key.clone(), operator, ..Toleration::default() });
        }
        sized(made.facts(), self.pod)
    }

    /// What is found of the node for the pod, and whether one more may be on its way there.
    fn ask(&self) -> (NodeReport, bool) {
        let mut cluster = Cluster::new(Options { rules: Some(self.rules()), ..Options::default() }, at(0));
        cluster.set_node(&self.node());
        for (i, resident) in self.residents.iter().enumerate() {
            let mut facts = sized(pod(&format!("r{i}")).on("n").facts(), *resident);
            facts.started = Some(at(-3600));
            cluster.set_pod(&facts);
        }
        if let Some(nominated) = self.nominated {
            let mut facts = sized(pod("first").priority(10).facts(), nominated);
            facts.nominated = Some("n".into());
            cluster.set_pod(&facts);
        }
        let [cores, gib, ..] = self.size;
        if let Some([cpu, memory]) = self.sample {
            let usage = Load::new(cores * cpu * 10_000_000, gib * GI / 100 * memory);
            cluster.sample("n", Sample { at: at(0), window: SignedDuration::from_secs(15), usage });
        }
        if let Some(tentative) = self.tentative {
            let other = cluster.view(&sized(pod("other").facts(), tentative));
            let nodes = cluster.candidates(["n"].into_iter());
            let _ = cluster.filter(
                Question { profile: 0, pod: &other, nodes: &nodes, wait: Wait::until(at(60)) },
                Keep::All,
            );
        }
        if self.cooling {
            cluster.cool("n", at(60));
        }
        let view = cluster.view(&self.incoming());
        let mut decided = cluster.decide(&view);
        let taken = decided.node().is_some();
        let mut report = decided.report();
        assert_eq!(report.nodes[0].fits, taken, "the report says what was decided: {self:#?}");
        let report = report.nodes.remove(0);
        (report, cluster.tentative_count() > 0)
    }

    /// The same with one thing different.
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Target { resource, to } => {
                self.overrides.insert(format!("loadline.dev/target-{resource}"), to.to_string());
            }
            Change::Limit { metric, to } => self.limit(metric, to.to_f64()),
            Change::NoLimit { metric } => self.limit(metric, 0.0),
            Change::Free { resource, more } => self.free(resource, *more),
            Change::FewerPods(fewer) => self.size[2] += fewer,
            Change::AllowUnknown => self.missing = Missing::Allow,
            Change::NotCooling { until } => {
                assert_eq!(*until, at(60));
                self.cooling = false;
            }
            Change::Uncordoned => self.cordoned = false,
            Change::Tolerated { taint } => self.tolerated.push(taint.key.clone()),
        }
    }

    /// By default a node may say so itself.
    fn limit(&mut self, metric: &str, to: f64) {
        match self.mode {
            Mode::Upstream => drop(self.limits.insert(metric.to_owned(), to)),
            Mode::Default => {
                drop(self.overrides.insert(format!("loadline.dev/threshold-{metric}"), to.to_string()));
            }
        }
    }

    /// Pods that are there ask for so much less, then the one that comes; what any of them uses stays.
    fn free(&mut self, resource: &str, more: i64) {
        let (at, unit) = match resource {
            "cpu" => (0, 1),
            "memory" => (1, 1 << 20),
            other => {
                assert_eq!(other, GPU, "nobody asks for anything else");
                (2, 1)
            }
        };
        assert_eq!(more % unit, 0, "everything here is asked for in whole units");
        let mut more = more / unit;
        let first = self.nominated.iter_mut();
        for pod in self.residents.iter_mut().chain(first).chain([&mut self.pod]) {
            let less = pod.asks[at].min(more);
            pod.asks[at] -= less;
            more -= less;
        }
        assert_eq!(more, 0, "that much was asked for");
    }
}

/// With what it asks for, and, apart from that, what it is expected to use.
fn sized(
    mut facts: PodFacts,
    Pod { asks: [milli, mib, pieces], uses: [used_milli, used_mib] }: Pod,
) -> PodFacts {
    let pieces = Some((GPU, pieces.to_string())).filter(|_| pieces > 0);
    for (name, amount) in
        [("cpu", format!("{milli}m")), ("memory", format!("{mib}Mi"))].into_iter().chain(pieces)
    {
        facts.requests.insert(name.to_owned(), amount.parse::<Quantity>().expect("a quantity"));
    }
    let effective = Load::new(used_milli * 1_000_000, used_mib << 20);
    facts.asks = Arc::new(Asks { effective, ..Asks::default() });
    facts
}

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Target { .. } => "target",
        Change::Limit { .. } => "limit",
        Change::NoLimit { .. } => "no limit",
        Change::Free { resource, .. } if resource == GPU => "free pieces",
        Change::Free { .. } => "free",
        Change::FewerPods(_) => "fewer pods",
        Change::AllowUnknown => "allow unknown",
        Change::NotCooling { .. } => "not cooling",
        Change::Uncordoned => "uncordoned",
        Change::Tolerated { .. } => "tolerated",
    }
}

/// The metrics above their limits, as the world has them. By default what is measured is the mean of five minutes, and
/// the longer ones where nothing is written about them.
fn exceeded(world: &World) -> Vec<&'static str> {
    let load = |metric: &str, written: Option<i64>| {
        let measured = world.sample.map(|[cpu, memory]| if metric.starts_with("cpu") { cpu } else { memory });
        let measured = measured.filter(|_| world.mode == Mode::Default).map(|percent| percent * 10);
        if metric.ends_with("5m") { measured.or(written) } else { written.or(measured) }
    };
    let all = METRICS.iter().zip(&world.loads);
    let over = all.filter(|((metric, limit), written)| {
        *limit > 0 && load(metric, **written).is_some_and(|load| load > *limit)
    });
    over.map(|((metric, _), _)| *metric).collect()
}

fn metric(reason: &Reason) -> Option<&str> {
    match reason {
        Reason::OverThreshold { metric, .. } | Reason::LoadTooHigh { metric, .. } => Some(metric),
        _ => None,
    }
}

fn told(report: &NodeReport) -> Vec<&str> {
    report.reasons.iter().filter_map(metric).collect()
}

#[test]
fn a_node_with_everything_that_would_have_to_change_takes_the_pod() {
    let seen: RefCell<BTreeMap<&str, usize>> = RefCell::default();
    let answered = RefCell::new(0);
    let mut runner = TestRunner::new(Config { cases: 3000, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&worlds(), |world| {
        let (report, on_its_way) = world.ask();
        prop_assert_eq!(report.fits, report.reasons.is_empty(), "refused for a reason: {:?}", report.reasons);
        prop_assert_eq!(told(&report), exceeded(&world), "every limit that is exceeded is told");
        let Some(counterfactual) = &report.counterfactual else { return Ok(()) };
        *answered.borrow_mut() += 1;
        let mut different = world.clone();
        // Nothing else is different: what was not sent there before is not sent there now.
        different.tentative = different.tentative.filter(|_| on_its_way);
        for change in &counterfactual.changes {
            *seen.borrow_mut().entry(kind(change)).or_default() += 1;
            different.apply(change);
        }
        let (again, _) = different.ask();
        prop_assert!(again.fits, "{counterfactual}, and then {:?}", again.reasons);
        Ok(())
    });
    outcome.unwrap();
    let answered = *answered.borrow();
    assert!(answered >= 1200, "{answered} answers only");
    let least = [
        ("target", 300),
        ("limit", 300),
        ("no limit", 150),
        ("free", 150),
        ("free pieces", 150),
        ("fewer pods", 150),
        ("allow unknown", 50),
        ("not cooling", 150),
        ("uncordoned", 150),
        ("tolerated", 500),
    ];
    for (kind, least) in least {
        let seen = seen.borrow().get(kind).copied().unwrap_or(0);
        assert!(seen >= least, "{kind}: applied {seen} times only");
    }
}

// The case that was wrong: memory at 0.9 by two metrics with limits of 0.65 and 0.75.
#[test]
fn several_limits_are_told_and_answered_together() {
    let mut world = World {
        mode: Mode::Default,
        missing: Missing::Allow,
        targets: None,
        limits: BTreeMap::new(),
        size: [10, 10, 10, 0],
        loads: vec![None, None, None, Some(900), Some(900), None],
        sample: None,
        residents: Vec::new(),
        nominated: None,
        tentative: None,
        cordoned: false,
        taints: 0,
        tolerated: Vec::new(),
        cooling: false,
        pod: Pod { asks: [100, 100, 0], uses: [0, 0] },
        overrides: BTreeMap::new(),
    };
    let (report, _) = world.ask();
    assert_eq!(told(&report), ["mem_usage_avg_5m", "mem_usage_max_avg_1h"]);
    let counterfactual = report.counterfactual.unwrap();
    assert_eq!(
        counterfactual.to_string(),
        "would fit if the limit of mem_usage_avg_5m were 0.9 and the limit of mem_usage_max_avg_1h were 0.9 and the memory target were 0.90",
    );
    counterfactual.changes.iter().for_each(|change| world.apply(change));
    assert!(world.ask().0.fits);
    world.overrides.remove("loadline.dev/threshold-mem_usage_max_avg_1h");
    assert!(!world.ask().0.fits, "one of them alone is not enough");
}
