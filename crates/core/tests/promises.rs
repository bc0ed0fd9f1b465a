//! The promises, on random worlds.
//!
//! 1. Unknown, old, future or broken data never reads as idle.
//! 2. A burst never drives a node past its target when estimates are right.
//!
//! And what makes them worth having: the same answer with and without memory of earlier decisions.

use jiff::{SignedDuration, Timestamp};
use loadline_core::cluster::{Cluster, Options};
use loadline_core::cycle::{self, Input, Memo};
use loadline_core::ledger::Sample;
use loadline_core::load::policy::{Policy, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::{Missing, Settings};
use loadline_core::load::{Both, Load, Metered};
use loadline_core::object::Key;
use loadline_core::view::build::{Node, Pod, node, pod};
use loadline_core::view::images::{ImageName, Images};
use loadline_core::view::{NodeFacts, PodFacts};
use proptest::prelude::*;

const GI: i64 = 1 << 30;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).expect("a time in range")
}

fn rules(target: f64, missing: Missing) -> Rules {
    let both = Both { cpu: Ratio::from_f64(target), memory: Ratio::from_f64(target) };
    let settings = Settings { targets: both, missing, ..Settings::default() };
    Rules::new(Policy::default(), settings).expect("valid settings").0
}

fn cluster(rules: Rules) -> Cluster {
    Cluster::new(Options { rules: Some(rules), ..Options::default() }, at(0))
}

fn sized(i: usize, cores: i64, gib: i64) -> Node {
    node(&format!("n{i}")).cpu(&cores.to_string()).memory(&format!("{gib}Gi"))
}

fn asking(name: &str, milli: i64, mib: i64) -> Pod {
    pod(name).cpu(&format!("{milli}m")).memory(&format!("{mib}Mi"))
}

/// A node's size, and what is measured there, if anything: percent of CPU and memory, and how old.
type Measured = (i64, i64, Option<(i64, i64, i64)>);

fn nodes() -> impl Strategy<Value = Vec<Measured>> {
    let measured = proptest::option::weighted(0.8, (0..110i64, 0..110i64, -40..600i64));
    proptest::collection::vec((1..32i64, 1..64i64, measured), 1..6)
}

fn sample(cores: i64, gib: i64, (cpu, memory, age): (i64, i64, i64)) -> Sample {
    let usage = Load::new(cores * cpu * 10_000_000, gib * GI / 100 * memory);
    Sample { at: at(-age), window: SignedDuration::from_secs(15), usage }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // Promise 2: pods use what was estimated, whatever the data; afterwards no node is past its line because of
    // what we placed, and what is reported as pending is what was placed.
    #[test]
    fn a_burst_never_drives_a_node_past_its_target(
        worlds in nodes(),
        pods in proptest::collection::vec((1..4000i64, 1..4096i64), 1..60),
        target in 30..95u8,
    ) {
        let target = f64::from(target) / 100.0;
        let mut cluster = cluster(rules(target, Missing::Estimate));
        // What each node will use when everything has arrived, by the estimates.
        let mut truth = Vec::new();
        for (i, (cores, gib, measured)) in worlds.iter().enumerate() {
            cluster.set_node(&sized(i, *cores, *gib).facts());
            let mut used = Load::ZERO;
            // A sample that is too old or from the future is not used: nothing runs there by our knowledge.
            if let Some(seen) = measured.filter(|(_, _, age)| (-30..=300).contains(age)) {
                used = sample(*cores, *gib, seen).usage;
            }
            if let Some(seen) = measured {
                cluster.sample(&format!("n{i}"), sample(*cores, *gib, *seen));
            }
            truth.push(used);
        }
        for (i, (milli, mib)) in pods.iter().enumerate() {
            let view = cluster.view(&asking(&format!("p{i}"), *milli, *mib).facts());
            let Some(id) = cluster.decide(&view).reserve().node else { continue };
            let name = cluster.snapshot()[id].name.to_string();
            let n: usize = name[1..].parse().expect("a number");
            truth[n] = truth[n].plus(Load::new(milli * 1_000_000, mib << 20));
            let (cores, gib, _) = worlds[n];
            let ratio = Ratio::from_f64(target).expect("a ratio");
            prop_assert!(truth[n].cpu_nano <= ratio.floor_of(cores * 1_000_000_000), "{name} cpu {:?}", truth[n]);
            prop_assert!(truth[n].memory_bytes <= ratio.floor_of(gib * GI), "{name} memory {:?}", truth[n]);
        }
    }

    // Promise 1: breaking the data of a node never makes it take a pod it refused before, as long as its pods
    // account for what was measured.
    #[test]
    fn broken_data_never_reads_as_idle(
        cores in 2..32i64,
        running in proptest::collection::vec((100..4000i64, 100..4096i64), 0..12),
        incoming in (1..4000i64, 1..4096i64),
        broken in prop_oneof![
            Just("NaN,2023-11-14T22:13:20Z"), Just("-1,2023-11-14T22:13:20Z"), Just("0.00000,2023-11-14T20:00:00Z"),
            Just("0.00000,2033-11-14T22:13:20Z"), Just("0.00000"), Just(""), Just("0.0,0.0,2023-11-14T22:13:20Z"),
            Just("zero,2023-11-14T22:13:20Z"), Just("+Inf,2023-11-14T22:13:20Z"), Just("0.1,yesterday"),
        ],
        age in prop_oneof![301..100_000i64, -100_000..-31i64],
    ) {
        let world = |good: bool| {
            let mut cluster = cluster(rules(0.6, Missing::Estimate));
            let mut n = sized(0, cores, 64);
            if !good {
                for metric in ["cpu_usage_avg_5m", "mem_usage_avg_5m", "cpu_usage_max_avg_1h", "mem_usage_max_avg_1h"] {
                    n = n.annotation(metric, broken);
                }
            }
            cluster.set_node(&n.facts());
            let mut used = Load::ZERO;
            for (i, (milli, mib)) in running.iter().enumerate() {
                let mut facts = asking(&format!("r{i}"), *milli, *mib).on("n0").facts();
                facts.started = Some(at(-3600));
                cluster.set_pod(&facts);
                used = used.plus(Load::new(milli * 1_000_000, mib << 20));
            }
            let (stamp, usage) = if good { (at(0), used) } else { (at(-age), Load::ZERO) };
            cluster.sample("n0", Sample { at: stamp, window: SignedDuration::from_secs(15), usage });
            let view = cluster.view(&asking("new", incoming.0, incoming.1).facts());
            cluster.decide(&view).node().is_some()
        };
        prop_assert_eq!(world(true), world(false));
    }

    // Deny means deny: with nothing known nothing is taken, whatever else is broken.
    #[test]
    fn unknown_load_is_refused_when_asked_to(cores in 1..32i64, milli in 0..100i64) {
        let mut cluster = cluster(rules(0.6, Missing::Deny));
        cluster.set_node(&sized(0, cores, 64).facts());
        let view = cluster.view(&asking("new", milli, 1).facts());
        prop_assert_eq!(cluster.decide(&view).decision().node, None);
    }

    // The memory of shapes, the list of changes and the board only make it faster.
    #[test]
    fn remembering_changes_no_answer(steps in proptest::collection::vec(step(), 1..80)) {
        let mut cluster = cluster(rules(0.7, Missing::Estimate));
        for i in 0..4 {
            cluster.set_node(&labelled(i));
        }
        let mut placed: Vec<String> = Vec::new();
        let mut now = 0;
        for (i, step) in steps.into_iter().enumerate() {
            match step {
                Step::Schedule(kind) => {
                    let view = cluster.view(&shaped(kind, i));
                    let fast = cluster.decide(&view).decision().clone();
                    let exempt = cluster.is_exempt(&view);
                    let board = cluster.board().clone();
                    let fresh = Input { board: Some(&board), exempt, ..Input::new(cluster.snapshot()) };
                    prop_assert_eq!(&fast, &cycle::decide(&fresh, &view, &mut Memo::default()));
                    let ranked = cycle::rank(&fresh, &view);
                    prop_assert_eq!(fast.node, ranked.first().map(|(node, _)| *node), "the slow way agrees");
                    prop_assert_eq!(fast.score, ranked.first().map_or(0, |(_, total)| *total));
                    prop_assert_eq!(fast.feasible as usize, ranked.len());
                    prop_assert_eq!(fast.next.map(|(node, _)| node), ranked.get(1).map(|(node, _)| *node));
                    let slow = cluster.decide(&view).report().nodes;
                    let mean = |node| slow.iter().find(|found| found.node == node).map(|found| found.score);
                    prop_assert_eq!(fast.node.map(|_| fast.mean), fast.node.and_then(mean));
                    prop_assert_eq!(fast.next.map(|(_, mean)| mean), fast.next.and_then(|(node, _)| mean(node)));
                    for (rule, _, node) in fast.refusals() {
                        let found = slow.iter().find(|found| found.node == node);
                        prop_assert_eq!(found.and_then(|found| found.rule), Some(rule), "an example of its rule");
                    }
                    let grounds = cluster.decide(&view).grounds();
                    for refusal in &grounds.refused {
                        let found = slow.iter().find(|found| found.name == refusal.node);
                        let told = found.map_or(&[][..], |found| &found.reasons);
                        prop_assert!(refusal.reason.as_ref().is_none_or(|why| told.contains(why)), "{:?} of {:?}", refusal, told);
                    }
                    let lines = fast.node.and_then(|at| slow.iter().find(|found| found.node == at)?.lines);
                    prop_assert_eq!(grounds.lines, lines);
                    let reserved = cluster.decide(&view).reserve();
                    prop_assert_eq!(&reserved, &fast, "asking changes nothing");
                    if reserved.node.is_some() {
                        placed.push(view.uid.to_string());
                    }
                }
                Step::Remove(n) if !placed.is_empty() => {
                    let uid = placed.swap_remove(n % placed.len());
                    cluster.remove_pod(&uid);
                }
                Step::Sample(n, percent) => {
                    let usage = Load::new(8 * percent * 10_000_000, 16 * GI / 100 * percent);
                    let window = SignedDuration::from_secs(15);
                    cluster.sample(&format!("n{n}"), Sample { at: at(now), window, usage });
                }
                Step::Wait(seconds) => {
                    now += seconds;
                    cluster.advance(at(now));
                }
                Step::Node(n, true) => cluster.set_node(&labelled(n)),
                Step::Node(n, false) => cluster.remove_node(&format!("n{n}")),
                Step::Cordon(n) => {
                    let mut facts = labelled(n);
                    facts.unschedulable = true;
                    cluster.set_node(&facts);
                }
                Step::Pull(n, image) => {
                    let mut facts = labelled(n);
                    let name = ImageName::held(&format!("i{image}:1"));
                    facts.images = vec![(name, 900 << 20)];
                    cluster.set_node(&facts);
                }
                Step::Serve(kind, true) => {
                    let labels = [("shape".to_owned(), kind.to_string())].into();
                    cluster.set_service(&Key::new("default", "s"), &labels);
                }
                Step::Serve(_, false) => cluster.remove_service(&Key::new("default", "s")),
                Step::Remove(_) => {}
            }
        }
    }

    // The line by the book: the head every node has left is what adding everything up anew says.
    #[test]
    fn heads_are_what_adding_up_says(worlds in nodes(), pods in proptest::collection::vec((0..5usize, 1..3000i64), 0..30)) {
        let mut cluster = cluster(rules(0.8, Missing::Estimate));
        for (i, (cores, gib, _)) in worlds.iter().enumerate() {
            cluster.set_node(&sized(i, *cores, *gib).facts());
        }
        let mut sums = vec![0i64; worlds.len()];
        for (i, (n, milli)) in pods.iter().enumerate() {
            let n = n % worlds.len();
            cluster.set_pod(&asking(&format!("p{i}"), *milli, 1).on(&format!("n{n}")).facts());
            sums[n] += milli * 1_000_000;
        }
        for (i, (cores, gib, measured)) in worlds.iter().enumerate() {
            let mut expected = sums[i];
            if let Some(seen) = measured {
                cluster.sample(&format!("n{i}"), sample(*cores, *gib, *seen));
                if (-30..=300).contains(&seen.2) {
                    expected += sample(*cores, *gib, *seen).usage.cpu_nano;
                }
            }
            let id = cluster.snapshot().find_node(&format!("n{i}")).expect("it is there").id;
            let line = cluster.load(id).expect("it is there").lines.get(Metered::Cpu);
            prop_assert_eq!(line.expected(), Some(expected));
            prop_assert_eq!(line.head(), cores * 800_000_000 - expected);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Schedule(usize),
    Remove(usize),
    Sample(usize, i64),
    Wait(i64),
    Node(usize, bool),
    Cordon(usize),
    Pull(usize, usize),
    Serve(usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..7usize).prop_map(Step::Schedule),
        2 => any::<usize>().prop_map(Step::Remove),
        2 => (0..4usize, 0..100i64).prop_map(|(n, p)| Step::Sample(n, p)),
        1 => (1..200i64).prop_map(Step::Wait),
        1 => (0..6usize, any::<bool>()).prop_map(|(n, there)| Step::Node(n, there)),
        1 => (0..4usize).prop_map(Step::Cordon),
        2 => (0..5usize, 0..2usize).prop_map(|(n, image)| Step::Pull(n, image)),
        1 => (0..7usize, any::<bool>()).prop_map(|(kind, there)| Step::Serve(kind, there)),
    ]
}

fn labelled(i: usize) -> NodeFacts {
    let mut n =
        sized(i, 8, 16).label("zone", ["a", "b"][i % 2]).label("kubernetes.io/hostname", &format!("n{i}"));
    if i == 3 {
        n = n.taint("slow", "", loadline_core::select::taint::Effect::PreferNoSchedule);
    }
    n.facts()
}

/// Pods of a few shapes: plain, choosy, spread, apart, together, exempt, of images that some nodes have.
fn shaped(kind: usize, i: usize) -> PodFacts {
    use loadline_core::select::LabelSelector;
    use loadline_core::view::{PodAffinity, PodTerm, Spread};
    use std::sync::Arc;
    let mut facts = asking(&format!("s{i}"), 300, 512).label("shape", &kind.to_string()).facts();
    let selector = LabelSelector {
        match_labels: [("shape".to_owned(), kind.to_string())].into(),
        ..LabelSelector::default()
    }
    .selector()
    .expect("a valid selector");
    let term = |key: &str| PodTerm {
        namespaces: vec!["default".into()],
        namespace_selector: None,
        selector: selector.clone(),
        topology_key: key.into(),
    };
    let wants = Arc::make_mut(&mut facts.wants);
    match kind {
        1 => {
            wants.required = loadline_core::select::node::Required::new(
                &[("zone".to_owned(), "a".to_owned())].into(),
                None,
            );
        }
        2 => {
            for (key, hard) in [("zone", true), ("kubernetes.io/hostname", false)] {
                wants.spread.push(Spread {
                    max_skew: 1,
                    topology_key: key.into(),
                    hard,
                    selector: selector.clone(),
                    min_domains: None,
                    honor_affinity: true,
                    honor_taints: false,
                });
            }
        }
        3 => {
            wants.anti_affinity =
                PodAffinity { required: vec![term("kubernetes.io/hostname")], ..PodAffinity::default() }
        }
        4 => {
            wants.affinity = PodAffinity {
                required: vec![term("zone")],
                preferred: vec![(10, term("kubernetes.io/hostname"))],
            };
        }
        5 => facts.daemon = true,
        6 => {
            let names = ["i0:1", "i1:1"].map(ImageName::asked);
            wants.images = Images { names: names.into(), containers: 2 };
        }
        _ => {}
    }
    facts
}

/// Load of a node that steps from 30 to 90 % of its CPU, as a metrics server shows it: the mean of the last 15 s.
fn shown(second: i64, step: i64) -> i64 {
    let high = (second - step).clamp(0, 15);
    (30 * (15 - high) + 90 * high) / 15
}

#[test]
fn a_step_in_load_is_seen_with_the_first_measurement_that_shows_it() {
    let (resolution, poll) = (15, 15);
    let mut seen = Vec::new();
    for step in 0..resolution {
        for phase in 0..poll {
            let rules = rules(0.65, Missing::Estimate);
            let mut cluster = Cluster::new(Options { rules: Some(rules), ..Options::default() }, at(-60));
            cluster.set_node(&sized(0, 10, 10).facts());
            let small = cluster.set_pod(&asking("p", 1, 1).facts());
            let mut refused = None;
            // The server measures every 15 s from 0 on, and is asked every 15 s from `phase` on.
            for second in -60..90 {
                cluster.advance(at(second));
                if (second - phase).rem_euclid(poll) == 0 {
                    let measured = second.div_euclid(resolution) * resolution;
                    let usage = Load::new(10 * shown(measured, step) * 10_000_000, GI);
                    let window = SignedDuration::from_secs(resolution);
                    cluster.sample("n0", Sample { at: at(measured), window, usage });
                }
                let fits = cluster.decide(&small).node().is_some();
                if second < step {
                    assert!(fits, "30 % leaves room");
                } else if !fits {
                    refused = refused.or(Some(second - step));
                }
            }
            seen.push(refused.expect("90 % does not"));
        }
    }
    // A window that is more than 35/60 high shows it: at best that is the one under way, at worst the next.
    assert!(seen.iter().all(|after| *after <= 2 * resolution + poll), "{:?}", seen.iter().max());
    let soon = seen.iter().filter(|after| **after <= resolution + poll).count();
    assert!(soon * 2 > seen.len(), "most within one measurement and one poll: {soon} of {}", seen.len());
}
