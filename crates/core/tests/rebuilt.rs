//! A cluster that was told of every change is the cluster that is told of the end alone.
//!
//! Everything a decision rests on is kept up to date event by event: columns, label index, groups of pods, siblings,
//! images, the ledger, the board. Here random histories are lived through, and after every step a second cluster is made
//! from the facts as they are then, told in another order. Whatever the first one remembers wrongly, or forgot to forget,
//! shows as another answer about some node.

use jiff::{SignedDuration, Timestamp};
use loadline_core::cluster::{Cluster, Options, Profile};
use loadline_core::cycle::{Decision, Filter};
use loadline_core::ledger::Sample;
use loadline_core::load::estimate::ContainerAsk;
use loadline_core::load::policy::{Policy, Rules};
use loadline_core::load::recommend::{Advice, Form, Recommendation, WorkloadRef};
use loadline_core::load::settings::{Mode, Settings};
use loadline_core::load::{Both, Load, ratio::Ratio};
use loadline_core::object::Key;
use loadline_core::select::taint::Effect;
use loadline_core::select::{LabelSelector, Selector};
use loadline_core::view::build::{node, pod};
use loadline_core::view::siblings::Maker;
use loadline_core::view::{
    Budget, HostPort, NamespaceFacts, NodeFacts, NodeId, Phase, PodAffinity, PodFacts, PodTerm, Spread,
};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const GI: i64 = 1 << 30;
const HOST: &str = "kubernetes.io/hostname";
const NODES: usize = 5;
const PODS: usize = 24;
const KINDS: usize = 9;
/// So many kinds of pods are asked about at each step, in turns.
const ASKED: usize = 4;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).expect("a time in range")
}

/// Asked by two profiles in turns: one with load rules in that mode, one by requests alone.
fn empty(mode: Mode, now: i64) -> Cluster {
    let both = Both { cpu: Ratio::from_f64(0.7), memory: Ratio::from_f64(0.7) };
    let settings = Settings { mode, targets: both, ..Settings::default() };
    // How often pods were bound is not told by any object that is there at the end.
    let policy = Policy { hot: Vec::new(), ..Policy::default() };
    let rules = Rules::new(policy, settings).expect("valid settings").0;
    let mut cluster = Cluster::new(Options { rules: Some(rules.clone()), ..Options::default() }, at(now));
    cluster.set_profiles(vec![Profile::by(Some(rules)), Profile::by(None)]);
    cluster
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    Waiting,
    /// Waiting for a node that is being cleared for it.
    Nominated,
    Running,
    Leaving,
    Over,
}

#[derive(Clone, Debug)]
enum Event {
    Node {
        number: usize,
        like: u8,
        measured: Option<i64>,
    },
    NoNode(usize),
    Pod {
        number: usize,
        kind: usize,
        node: usize,
        life: Life,
    },
    NoPod(usize),
    /// A pod is decided about and reserved, and then seen on its node, or not.
    Decide {
        number: usize,
        kind: usize,
        bound: bool,
    },
    Service(usize, bool),
    Workload(usize, bool),
    Namespace(bool),
    Sample(usize, i64),
    /// Load was taken off a node by force: nothing new goes there for so long.
    Cool(usize, i64),
    /// How many pods of a kind may be disrupted, or of all kinds together.
    Budget(Option<usize>, i64),
    /// What the workload's pods were found to use, in thousandths of a core, or nothing any more.
    Recommended(Option<i64>),
    Wait(i64),
}

fn event() -> impl Strategy<Value = Event> {
    let life = prop_oneof![
        1 => Just(Life::Waiting),
        1 => Just(Life::Nominated),
        8 => Just(Life::Running),
        1 => Just(Life::Leaving),
        1 => Just(Life::Over),
    ];
    prop_oneof![
        4 => (0..NODES, any::<u8>(), proptest::option::of(0..100_i64))
            .prop_map(|(number, like, measured)| Event::Node { number, like, measured }),
        1 => (0..NODES).prop_map(Event::NoNode),
        16 => (0..PODS, 0..KINDS, 0..NODES, life)
            .prop_map(|(number, kind, node, life)| Event::Pod { number, kind, node, life }),
        3 => (0..PODS).prop_map(Event::NoPod),
        3 => (0..PODS, 0..KINDS, any::<bool>())
            .prop_map(|(number, kind, bound)| Event::Decide { number, kind, bound }),
        1 => (0..KINDS, any::<bool>()).prop_map(|(kind, there)| Event::Service(kind, there)),
        1 => (0..KINDS, any::<bool>()).prop_map(|(kind, there)| Event::Workload(kind, there)),
        1 => any::<bool>().prop_map(Event::Namespace),
        3 => (0..NODES, 0..100_i64).prop_map(|(number, percent)| Event::Sample(number, percent)),
        1 => (0..NODES, 1..300_i64).prop_map(|(number, seconds)| Event::Cool(number, seconds)),
        3 => (proptest::option::of(0..KINDS), 0..2_i64).prop_map(|(kind, allowed)| Event::Budget(kind, allowed)),
        2 => proptest::option::weighted(0.7, 100..3000_i64).prop_map(Event::Recommended),
        2 => (1..200_i64).prop_map(Event::Wait),
    ]
}

/// A node; each bit of `like` is something that may be different about it, the last three together one thing.
fn node_facts(number: usize, like: u8, measured: Option<i64>, now: i64) -> NodeFacts {
    let bit = |at: u8| like & (1 << at) != 0;
    let name = format!("n{number}");
    let mut one = node(&name).cpu(if bit(0) { "4" } else { "6" }).label(HOST, &name);
    // One without memory, or without a zone, may have had them a moment ago.
    one = if bit(1) && bit(2) { one } else { one.memory("16Gi") };
    one = if bit(2) && bit(3) { one } else { one.label("zone", if bit(3) { "a" } else { "b" }) };
    one = if bit(4) { one.has("example.com/gpu", "2") } else { one };
    one = match like >> 5 {
        0 => one.cordoned(),
        1 => one.taint("slow", "", Effect::PreferNoSchedule),
        2 => one.taint("closed", "", Effect::NoSchedule),
        3 | 4 => one.image("i0:1", 900 << 20),
        _ => one,
    };
    if let Some(percent) = measured {
        one = one.annotation("cpu_usage_avg_5m", &format!("0.{percent:02}000,{}", at(now)));
    }
    one.facts()
}

fn selects(kind: usize) -> Selector {
    let match_labels = [("kind".to_owned(), kind.to_string())].into();
    LabelSelector { match_labels, ..LabelSelector::default() }.selector().expect("a valid selector")
}

fn labels(kind: usize) -> BTreeMap<String, String> {
    [("kind".to_owned(), kind.to_string())].into()
}

/// Pods of a few kinds, each of which asks something else of what is remembered.
fn pod_facts(name: &str, kind: usize) -> PodFacts {
    let asking = pod(name).cpu("700m").memory("1Gi").label("kind", &kind.to_string());
    let term = |key: &str, of: usize| PodTerm {
        namespaces: vec!["default".into()],
        namespace_selector: None,
        selector: selects(of),
        topology_key: key.into(),
    };
    let asking = match kind {
        1 => asking.selects(&[("zone", "a")]),
        5 => asking.asks("example.com/gpu", "1"),
        6 => asking.images(&["i0:1"]).owner("ReplicaSet", "w"),
        7 => asking.priority(100).cpu("3"),
        _ => asking,
    };
    let mut facts = asking.facts();
    // What it is expected to use may be recommended for the one container it has.
    let container = ContainerAsk { name: "main".into(), ..ContainerAsk::default() };
    Arc::make_mut(&mut facts.asks).containers = vec![container];
    let wants = Arc::make_mut(&mut facts.wants);
    match kind {
        2 => wants.spread.extend([("zone", true), (HOST, false)].map(|(key, hard)| Spread {
            max_skew: 1,
            topology_key: key.into(),
            hard,
            selector: selects(kind),
            min_domains: None,
            honor_affinity: true,
            honor_taints: false,
        })),
        3 => wants.anti_affinity = PodAffinity { required: vec![term(HOST, kind)], preferred: Vec::new() },
        4 => {
            wants.affinity =
                PodAffinity { required: vec![term("zone", 0)], preferred: vec![(10, term(HOST, 3))] };
        }
        5 => wants.exclusive.push("default/claim".into()),
        7 => {
            let mut elsewhere = term("zone", 2);
            elsewhere.namespaces.clear();
            elsewhere.namespace_selector = Some(selects(7));
            wants.anti_affinity.preferred.push((20, elsewhere));
        }
        8 => wants.ports.push(HostPort { ip: String::new(), protocol: "TCP".into(), port: 8080 }),
        _ => {}
    }
    facts
}

/// What there is, as objects tell it, and what was measured of nodes since they are there.
#[derive(Default)]
struct Facts {
    nodes: BTreeMap<String, NodeFacts>,
    pods: BTreeMap<String, PodFacts>,
    services: BTreeSet<usize>,
    workloads: BTreeSet<usize>,
    labelled: bool,
    samples: BTreeMap<String, Vec<Sample>>,
    cooling: BTreeMap<String, i64>,
    budget: Option<(Option<usize>, i64)>,
    recommended: Option<i64>,
    mode: Mode,
    now: i64,
}

fn service(kind: usize) -> Key {
    Key::new("default", format!("s{kind}"))
}

fn workload() -> Key {
    Key::new("default", "w")
}

fn budgets((kind, allowed): (Option<usize>, i64)) -> Vec<Budget> {
    let all = || LabelSelector::default().selector().expect("a valid selector");
    let selector = kind.map_or_else(all, selects);
    vec![Budget { key: Key::new("default", "b"), selector, allowed, disrupted: Vec::new() }]
}

fn recommendation(milli: i64) -> Recommendation {
    let advice = Advice { cpu_nano: Some(milli * 1_000_000), memory_bytes: None };
    Recommendation {
        target: WorkloadRef { group: "apps".into(), kind: "ReplicaSet".into(), key: workload() },
        containers: [("main".into(), advice)].into(),
        success: true,
        message: None,
        updated: None,
        name: "default/r".into(),
        shape: Form::default(),
    }
}

fn namespace(labelled: bool) -> NamespaceFacts {
    let labels = if labelled { labels(7) } else { BTreeMap::new() };
    NamespaceFacts { name: "default".into(), labels: loadline_core::view::Labels::plain(&labels) }
}

impl Facts {
    /// The same in the order of the end: pods before their nodes, and both from behind.
    fn cluster(&self) -> Cluster {
        let mut cluster = empty(self.mode, self.now);
        if let Some(milli) = self.recommended {
            cluster.recommend(recommendation(milli));
        }
        cluster.set_namespace(namespace(self.labelled));
        for facts in self.pods.values().rev() {
            cluster.set_pod(facts);
        }
        for facts in self.nodes.values().rev() {
            cluster.set_node(facts);
        }
        for kind in &self.services {
            cluster.set_service(&service(*kind), &labels(*kind));
        }
        for kind in &self.workloads {
            cluster.set_workload(Maker::ReplicaSet, &workload(), selects(*kind));
        }
        for (node, samples) in &self.samples {
            for sample in samples {
                cluster.sample(node, *sample);
            }
        }
        for (node, until) in self.cooling.iter().filter(|(_, until)| **until > self.now) {
            cluster.cool(node, at(*until));
        }
        cluster.set_budgets(self.budget.map(budgets).unwrap_or_default());
        cluster
    }

    /// Lives through an event, in the cluster and in the facts.
    fn live(&mut self, cluster: &mut Cluster, event: &Event) {
        match event {
            Event::Node { number, like, measured } => {
                let facts = node_facts(*number, *like, *measured, self.now);
                cluster.set_node(&facts);
                self.nodes.insert(facts.name.clone(), facts);
            }
            Event::NoNode(number) => {
                let name = format!("n{number}");
                cluster.remove_node(&name);
                self.nodes.remove(&name);
                self.samples.remove(&name);
                self.cooling.remove(&name);
            }
            Event::Pod { number, kind, node, life } => {
                let mut facts = pod_facts(&format!("p{number}"), *kind);
                let node = format!("n{node}");
                match life {
                    Life::Waiting => {}
                    Life::Nominated => facts.nominated = Some(node.as_str().into()),
                    Life::Running | Life::Leaving | Life::Over => {
                        facts.node = Some(node.as_str().into());
                        facts.started = Some(at(self.now - 30));
                        facts.phase = if *life == Life::Over { Phase::Succeeded } else { Phase::Running };
                        facts.terminating = *life == Life::Leaving;
                    }
                }
                cluster.set_pod(&facts);
                self.pods.insert(facts.uid.to_string(), facts);
            }
            Event::NoPod(number) => {
                let uid = format!("uid-p{number}");
                cluster.remove_pod(&uid);
                self.pods.remove(&uid);
            }
            Event::Decide { number, kind, bound } => {
                let mut facts = pod_facts(&format!("p{number}"), *kind);
                if self.pods.get(&*facts.uid).is_some_and(|known| known.node.is_some()) {
                    return;
                }
                cluster.set_pod(&facts);
                self.pods.insert(facts.uid.to_string(), facts.clone());
                let view = cluster.view(&facts);
                let Some(id) = cluster.decide(&view).reserve().node else { return };
                if *bound {
                    facts.node = Some(cluster.node(id).name.as_ref().into());
                    cluster.set_pod(&facts);
                    self.pods.insert(facts.uid.to_string(), facts);
                } else {
                    cluster.unreserve(&facts.uid);
                    cluster.set_pod(&facts);
                }
            }
            Event::Service(kind, true) => {
                cluster.set_service(&service(*kind), &labels(*kind));
                self.services.insert(*kind);
            }
            Event::Service(kind, false) => {
                cluster.remove_service(&service(*kind));
                self.services.remove(kind);
            }
            Event::Workload(kind, there) => {
                // There is one, which selects now these and now those.
                self.workloads.clear();
                if *there {
                    cluster.set_workload(Maker::ReplicaSet, &workload(), selects(*kind));
                    self.workloads.insert(*kind);
                } else {
                    cluster.remove_workload(Maker::ReplicaSet, &workload());
                }
            }
            Event::Namespace(labelled) => {
                cluster.set_namespace(namespace(*labelled));
                self.labelled = *labelled;
            }
            Event::Sample(number, percent) => {
                let name = format!("n{number}");
                let usage = Load::new(80_000_000 * percent, 16 * GI / 100 * percent);
                let sample = Sample { at: at(self.now), window: SignedDuration::from_secs(15), usage };
                cluster.sample(&name, sample);
                if self.nodes.contains_key(&name) {
                    self.samples.entry(name).or_default().push(sample);
                }
            }
            Event::Cool(..) | Event::Budget(..) | Event::Recommended(_) => self.hear(cluster, event),
            Event::Wait(seconds) => {
                self.now += seconds;
                cluster.advance(at(self.now));
            }
        }
    }

    /// The same of what is told beside nodes and pods.
    fn hear(&mut self, cluster: &mut Cluster, event: &Event) {
        match event {
            Event::Cool(number, seconds) => {
                let (name, until) = (format!("n{number}"), self.now + seconds);
                cluster.cool(&name, at(until));
                if self.nodes.contains_key(&name) {
                    let known = self.cooling.entry(name).or_insert(until);
                    *known = until.max(*known);
                }
            }
            Event::Budget(kind, allowed) => {
                self.budget = Some((*kind, *allowed));
                cluster.set_budgets(budgets((*kind, *allowed)));
            }
            Event::Recommended(milli) => {
                match milli {
                    Some(milli) => cluster.recommend(recommendation(*milli)),
                    None => cluster.forget_recommendation("default/r"),
                }
                cluster.reestimate();
                self.recommended = *milli;
            }
            _ => {}
        }
    }
}

/// What was compared.
#[derive(Default)]
struct Tally {
    nodes: usize,
    placed: usize,
    preempted: usize,
    /// By eviction that a budget does not allow.
    overdrawn: u32,
    /// How often a rule was the first a node failed.
    rules: BTreeMap<usize, usize>,
}

/// Everything a cluster says of a pod, without the numbers it gives nodes.
fn said(cluster: &mut Cluster, (profile, kind): (usize, usize), tally: &mut Tally) -> Vec<String> {
    let view = cluster.view(&pod_facts("asked", kind));
    let mut decided = cluster.decide_by(profile, &view);
    let node = decided.node().map(|node| node.name.clone());
    let preemption = decided.preempt();
    let report = decided.report();
    tally.placed += usize::from(node.is_some());
    let mut decision = report.decision;
    decision.node = None;
    decision.example = Decision::default().example;
    decision.next = decision.next.map(|(_, mean)| (NodeId(0), mean));
    let mut out = vec![format!("to {node:?}: {decision:?}")];
    for mut found in report.nodes {
        found.node = NodeId(0);
        tally.nodes += 1;
        if let Some(rule) = found.rule {
            *tally.rules.entry(rule.index()).or_default() += 1;
        }
        out.push(format!("{found:?}"));
    }
    if let Some(found) = preemption {
        tally.preempted += 1;
        let mut victims: Vec<String> = found.victims.iter().map(|victim| victim.key.to_string()).collect();
        victims.sort();
        tally.overdrawn += found.budget_violations;
        let name = &cluster.node(found.node).name;
        let (considered, overdrawn) = (found.considered, found.budget_violations);
        out.push(format!("{victims:?} off {name}, {considered} considered, {overdrawn} overdrawn"));
    }
    out
}

/// Lives through a history, and compares after every step.
fn compared(mode: Mode, history: &[Event], tally: &RefCell<Tally>) -> Result<(), TestCaseError> {
    let (mut facts, mut cluster) = (Facts { mode, ..Facts::default() }, empty(mode, 0));
    for (step, event) in history.iter().enumerate() {
        facts.live(&mut cluster, event);
        let mut fresh = facts.cluster();
        for turn in (0..ASKED).map(|at| step * ASKED + at) {
            // All kinds by load, all again, and then all by requests alone.
            let asked = (usize::from(turn / KINDS % 3 == 2), turn % KINDS);
            let ours = said(&mut cluster, asked, &mut tally.borrow_mut());
            let theirs = said(&mut fresh, asked, &mut Tally::default());
            if ours != theirs {
                let differs = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
                let why = format!(
                    "step {step}, {event:?}, profile and kind {asked:?}: lived and rebuilt say {differs:#?}"
                );
                return Err(TestCaseError::fail(why));
            }
        }
    }
    Ok(())
}

/// Lives through random histories in a mode.
fn live_through(mode: Mode, cases: u32) -> Result<Tally, String> {
    let tally = RefCell::new(Tally::default());
    let histories = proptest::collection::vec(event(), 20..80);
    let mut runner =
        TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() });
    let lived = runner.run(&histories, |history| compared(mode, &history, &tally));
    lived.map_err(|why| why.to_string())?;
    Ok(tally.into_inner())
}

/// Every rule whose memory is at stake refused somebody.
fn refused(rules: &BTreeMap<usize, usize>, all: &[Filter]) {
    for rule in all {
        assert!(rules.contains_key(&rule.index()), "{rule:?} never refused a node");
    }
}

#[test]
fn a_cluster_told_event_by_event_is_one_told_the_end_alone() {
    let Tally { nodes, placed, preempted, overdrawn, rules } =
        live_through(Mode::Default, 60).unwrap_or_else(|why| panic!("{why}"));
    println!(
        "{nodes} nodes looked at, {placed} pods placed, {preempted} by eviction, {overdrawn} overdrawn; refused by {rules:?}"
    );
    assert!(nodes > 10_000 && placed > 1_000 && preempted > 5, "{nodes}, {placed}, {preempted} only");
    assert!(overdrawn > 0, "no budget was in the way");
    let all = [
        Filter::Cordon,
        Filter::Taints,
        Filter::NodeAffinity,
        Filter::Ports,
        Filter::Resources,
        Filter::VolumeInUse,
        Filter::Spread,
        Filter::Affinity,
        Filter::AntiAffinity,
        Filter::Threshold,
        Filter::Line,
        Filter::Cooling,
    ];
    refused(&rules, &all);
}

#[test]
fn in_upstream_mode_too_it_is_one_told_the_end_alone() {
    let Tally { nodes, placed, rules, .. } =
        live_through(Mode::Upstream, 20).unwrap_or_else(|why| panic!("{why}"));
    assert!(nodes > 3_000 && placed > 300, "{nodes}, {placed} only");
    refused(&rules, &[Filter::Threshold, Filter::Resources, Filter::Spread]);
}

// What was wrong once: it was expected to use what was recommended before.
#[test]
fn a_pod_that_others_were_evicted_for_is_expected_to_use_what_is_recommended_now() {
    let history = [
        Event::Node { number: 0, like: 0b100_1001, measured: None },
        Event::Pod { number: 0, kind: 6, node: 0, life: Life::Nominated },
        Event::Recommended(Some(2500)),
        Event::Recommended(Some(100)),
        Event::Recommended(None),
    ];
    compared(Mode::Default, &history, &RefCell::default()).expect("the same answers");
}
