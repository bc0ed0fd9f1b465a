//! With the load rules off we place pods as kube-scheduler does: same nodes refused for the same reasons in the
//! same words, same distance between the scores of those that remain.
//!
//! `vectors/schedule` holds what the real kube-scheduler made of some thousand small worlds; all are compared in
//! every run. Where its programs are on the machine (`cargo xtask control-plane`), worlds nobody has seen before
//! are compared as well, and some of the recorded ones once more. What differs on purpose is in
//! `worlds/differences.md`.
//!
//! | variable | meaning |
//! |---|---|
//! | `LOADLINE_WORLDS` | how many fresh worlds, 150 if not set |
//! | `LOADLINE_SEED` | their seed; the same for everybody if not set, so that what passes here passes there. `cargo xtask worlds` takes a new one |
//! | `LOADLINE_VOLUME_WORLDS` | how many fresh worlds about volumes, 50 if not set |
//! | `LOADLINE_PREEMPTION_WORLDS` | how many fresh worlds about preemption, 50 if not set |
//! | `LOADLINE_QUEUES` | how many fresh worlds of 50 nodes and 200 pods one after the other, 1 if not set |
//! | `LOADLINE_RECORD=1` | write what was seen to `vectors/schedule`; of a kind nothing was asked about, nothing |

#[path = "worlds/mod.rs"]
mod worlds;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use loadline_core::cycle::{Filter, Parts};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::sync::LazyLock;
use worlds::dice::Dice;
use worlds::queue::Queue;
use worlds::real::Real;
use worlds::{Outcome, Record, State, World, crowd, differences, generate, ours, queue};

/// Worlds about volumes are in a file of their own.
const FILES: [&str; 3] = ["worlds", "volumes", "preemption"];

/// Pods that come one after the other, many of them.
const QUEUES: &str = "queues";

fn recorded_at(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../vectors/schedule/{file}.jsonl.gz"))
}

fn recorded<T: DeserializeOwned>(file: &str) -> Vec<T> {
    let file = File::open(recorded_at(file)).expect("the recorded worlds are there");
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines.map(|line| serde_json::from_str(&line.expect("text")).expect("a record")).collect()
}

static RECORDED: LazyLock<Vec<Record>> = LazyLock::new(|| FILES.into_iter().flat_map(recorded).collect());

fn record<T: Serialize>(file: &str, records: &[T]) {
    let file = File::create(recorded_at(file)).expect("the file can be written");
    let mut out = GzEncoder::new(file, Compression::best());
    for record in records {
        writeln!(out, "{}", serde_json::to_string(record).expect("JSON")).expect("written");
    }
    out.finish().expect("written");
}

/// Do the two agree? Among equally good nodes chance decides there and the name here.
fn agree(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Outcome::Bound { behind: o, .. }, Outcome::Bound { node, behind, .. }) if !behind.is_empty() => {
            o == behind && o.get(node) == Some(&0)
        }
        // Worlds that were recorded first have nothing of what messages say of preemption.
        (Outcome::Refused(o), Outcome::Refused(t)) if !t.contains(" preemption: ") => {
            o.split_once(" preemption: ").map_or(o.as_str(), |(places, _)| places) == t
        }
        _ => ours == theirs,
    }
}

/// Would we give its claims the same volumes on that node?
fn same_volumes(world: &World, theirs: &Outcome) -> bool {
    match theirs {
        Outcome::Bound { node, volumes, .. } => ours::volumes(world, node) == *volumes,
        Outcome::Refused(_) | Outcome::Preempts { .. } => true,
    }
}

/// What is wrong with our answer, for a person to read.
fn fault(name: &str, world: &World, theirs: &Outcome) -> Option<String> {
    let ours = ours::outcome(&differences::heard(world));
    let agrees = agree(&ours, theirs) && same_volumes(world, theirs);
    (!agrees).then(|| {
        let world = serde_json::to_string(world).expect("JSON");
        format!("world {name}\n  {world}\n  kube-scheduler: {theirs:?}\n  ours:           {ours:?}")
    })
}

/// Pods that came one after the other, and what became of each.
#[derive(Debug, Serialize, Deserialize)]
struct Followed {
    queue: Queue,
    outcomes: Vec<Outcome>,
}

impl Followed {
    fn fault(&self, name: &str) -> Option<String> {
        let fault = ours::follows(&self.queue, &self.outcomes, agree).err()?;
        Some(format!("queue {name}\n  {}\n  {fault}", serde_json::to_string(&self.queue).expect("JSON")))
    }
}

/// Is it about preemption?
fn is_crowded(world: &World) -> bool {
    world.pods.iter().any(|pod| pod.started.is_some())
}

/// Fails with the first few.
fn none(faults: &[String], of: usize) {
    let shown = faults.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(faults.is_empty(), "{} of {of} worlds differ\n{shown}", faults.len());
}

#[test]
fn every_recorded_world_gets_the_answer_kube_scheduler_gave() {
    let records = &*RECORDED;
    let faults: Vec<String> = (0..)
        .zip(records)
        .filter_map(|(at, r)| fault(&format!("recorded {at}"), &r.world, &r.outcome))
        .collect();
    none(&faults, records.len());
}

#[test]
fn every_pod_of_a_recorded_queue_gets_the_answer_kube_scheduler_gave() {
    let queues: Vec<Followed> = recorded(QUEUES);
    let faults: Vec<String> =
        (0..).zip(&queues).filter_map(|(at, one)| one.fault(&format!("recorded {at}"))).collect();
    none(&faults, queues.len());
    let outcomes: Vec<&Outcome> = queues.iter().flat_map(|one| &one.outcomes).collect();
    let bound = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Bound { .. })).count();
    let preempts = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Preempts { .. })).count();
    let refused = outcomes.len() - bound - preempts;
    println!("{} queues, {bound} pods bound, {preempts} push others away, {refused} refused", queues.len());
    assert!(queues.len() >= 10 && bound >= 1000 && refused >= 100, "{bound} bound, {refused} refused");
    assert!(preempts > 0, "nobody pushes others away");
}

/// The comparison is worth as much as the worlds are varied: every rule but those on load refuses
/// many nodes in them, and every score tells many nodes apart.
#[test]
fn the_recorded_worlds_reach_every_rule_and_every_score() {
    let records = &*RECORDED;
    assert!(records.len() >= 2000, "{} worlds", records.len());
    let (mut rules, mut scores, mut unasked) = (BTreeMap::new(), BTreeMap::new(), 0);
    for record in records {
        let found = ours::examined(&record.world);
        for rule in found.iter().filter_map(|e| e.rule) {
            *rules.entry(rule).or_insert(0) += 1;
        }
        let parts: Vec<Parts> = found.iter().filter(|e| e.rule.is_none()).map(|e| e.parts).collect();
        let asked = record.world.pod.spec.contains_key("topologySpreadConstraints");
        unasked += usize::from(!asked && parts.iter().any(|p| p.spread != parts[0].spread));
        for (name, of) in SCORES {
            if parts.iter().any(|p| of(p) != of(&parts[0])) {
                *scores.entry(name).or_insert(0) += 1;
            }
        }
    }
    println!("nodes refused: {rules:?}\nworlds told apart: {scores:?}, by spread nobody asked for {unasked}");
    assert!(unasked >= 100, "spread nobody asked for tells nodes apart in {unasked} worlds only");
    for rule in Filter::ALL {
        let seen = rules.get(&rule).copied().unwrap_or_default();
        assert!(seen >= 100 || ABSENT.contains(&rule), "{rule:?} refuses {seen} nodes only");
    }
    for (name, _) in SCORES {
        let seen = scores.get(name).copied().unwrap_or_default();
        assert!(seen >= 100, "{name} tells nodes apart in {seen} worlds only");
    }
}

/// Rules no world has anything for: they have tests of their own.
const ABSENT: &[Filter] = &[Filter::Threshold, Filter::UnknownLoad, Filter::Cooling, Filter::Line];

/// So are those about volumes: pods that get volumes that are there, pods whose volumes are made, pods that get a node
/// with volumes they have, and pods whose claims keep them from all nodes at once.
#[test]
fn the_recorded_worlds_bind_volumes_in_every_way() {
    let [mut given, mut made, mut had, mut refused, mut held] = [0; 5];
    for record in
        RECORDED.iter().filter(|record| !record.world.storage.is_empty() && !is_crowded(&record.world))
    {
        let unbound = ours::unbound(&record.world);
        match &record.outcome {
            Outcome::Bound { volumes, .. } => {
                given += usize::from(!volumes.is_empty());
                made += usize::from(volumes.len() < unbound);
                had += usize::from(unbound == 0);
            }
            Outcome::Refused(why) if why.contains("node(s)") => refused += 1,
            Outcome::Refused(_) | Outcome::Preempts { .. } => held += 1,
        }
    }
    println!("given {given}, made {made}, had {had}, refused {refused}, held {held}");
    for (count, floor, what) in [
        (given, 60, "get volumes that are there"),
        (made, 40, "have volumes made"),
        (had, 40, "have their volumes"),
        (refused, 150, "are refused by every node"),
        (held, 40, "are kept from all nodes at once"),
    ] {
        assert!(count >= floor, "{count} pods {what}, fewer than {floor}");
    }
}

/// And those about preemption: pods that push one or several others away, past their budgets or not, and pods that may
/// not or cannot.
#[test]
fn the_recorded_worlds_preempt_in_every_way() {
    let [mut one, mut several, mut over, mut leaving, mut never, mut helpless] = [0; 6];
    for record in RECORDED.iter().filter(|record| is_crowded(&record.world)) {
        let world = differences::heard(&record.world);
        match &record.outcome {
            Outcome::Bound { .. } => {}
            Outcome::Preempts { victims, .. } => {
                one += usize::from(victims.len() == 1);
                several += usize::from(victims.len() > 1);
                over += usize::from(ours::violations(&world) > 0);
                let going = |p: &worlds::Pod| p.state == State::Leaving;
                let full_name = |p: &worlds::Pod| format!("{}/{}", p.namespace, p.name);
                leaving +=
                    usize::from(world.pods.iter().any(|p| going(p) && victims.contains(&full_name(p))));
            }
            Outcome::Refused(_) if record.world.pod.class == "patient" => {
                let mut bold = world;
                bold.pod.class = "urgent".to_owned();
                never += usize::from(matches!(ours::outcome(&bold), Outcome::Preempts { .. }));
            }
            Outcome::Refused(_) => helpless += 1,
        }
    }
    println!(
        "one {one}, several {several}, over {over}, leaving {leaving}, never {never}, helpless {helpless}"
    );
    for (count, floor, what) in [
        (one, 30, "push one other away"),
        (several, 60, "push several others away"),
        (over, 25, "overdraw a budget"),
        (leaving, 15, "wait for one that is leaving"),
        (never, 10, "could push others away but must not"),
        (helpless, 100, "find nobody whose going would help"),
    ] {
        assert!(count >= floor, "{count} pods {what}, fewer than {floor}");
    }
}

type Score = (&'static str, fn(&Parts) -> Option<i64>);

const SCORES: [Score; 7] = [
    ("least allocated", |p| Some(p.least)),
    ("balanced allocation", |p| p.balanced),
    ("taints", |p| p.taints),
    ("node affinity", |p| p.liking),
    ("pod affinity", |p| p.affinity),
    ("spread", |p| p.spread),
    ("images", |p| p.images),
];

#[test]
fn what_is_listed_as_a_difference_is_one() {
    let differs =
        |r: &&Record| differences::heard(&r.world) != r.world && !agree(&ours::outcome(&r.world), &r.outcome);
    let shown: Vec<&Record> = RECORDED.iter().filter(differs).collect();
    let about_volumes = shown.iter().filter(|r| !r.world.storage.is_empty()).count();
    let about_budgets = shown.iter().filter(|r| !r.world.budgets.is_empty()).count();
    assert!(about_volumes > 0, "no recorded world shows the one about claims");
    assert!(about_budgets > 0, "no recorded world shows the one about budgets");
    assert!(shown.len() > about_volumes + about_budgets, "no recorded world shows the one about namespaces");
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// How many fresh worlds of that kind.
fn wanted(name: &str, unless_told: u64) -> usize {
    usize::try_from(number(name).unwrap_or(unless_told)).expect("not that many")
}

fn seed() -> u64 {
    let seed = number("LOADLINE_SEED").unwrap_or(2026);
    println!("worlds under LOADLINE_SEED={seed}");
    seed
}

fn records() -> bool {
    env::var("LOADLINE_RECORD").is_ok_and(|value| value == "1")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A kind of small worlds: their file, how many, and how one is made from a seed and its number.
type Kind = (&'static str, usize, fn(u64, usize) -> World);

#[test]
fn fresh_worlds_get_the_answer_kube_scheduler_gives() {
    let kinds: [Kind; 3] = [
        (FILES[0], wanted("LOADLINE_WORLDS", 150), generate::world),
        (FILES[1], wanted("LOADLINE_VOLUME_WORLDS", 50), generate::volume_world),
        (FILES[2], wanted("LOADLINE_PREEMPTION_WORLDS", 50), crowd::world),
    ];
    runtime().block_on(async {
        let Some(mut real) = Real::start_or_skip().await else { return };
        let seed = seed();
        let count = kinds.iter().map(|(_, count, _)| count).sum();
        let (mut faults, mut repeated, mut at) = (Vec::new(), 0, 0);
        for (kind, count_of_kind, make) in kinds {
            let mut compared = Vec::new();
            let before = faults.len();
            for _ in 0..count_of_kind {
                let world = make(seed, at);
                let mut outcome = real.outcome(&world, at).await;
                // It may not have heard of every service and volume before it had to decide.
                for again in 1..=2 {
                    if world.is_heard_of_silently() && fault("", &world, &outcome).is_some() {
                        outcome = real.outcome(&world, count * (again + 1) + at).await;
                        repeated += 1;
                    }
                }
                if let Some(fault) = fault(&format!("{at} of seed {seed}"), &world, &outcome) {
                    faults.push(format!("{fault}\n{}", real.scores()));
                }
                compared.push(Record { world, outcome });
                at += 1;
            }
            println!("{kind}: {} of {count_of_kind} agree", count_of_kind + before - faults.len());
            if records() && !compared.is_empty() {
                record(kind, &compared);
            }
        }
        println!("asked again {repeated} times");
        if !records() {
            // The recorded ones are still what this scheduler says.
            let old = &*RECORDED;
            let mut dice = Dice::new(seed, count);
            for at in 0..50 {
                let Record { world, outcome } = &old[dice.below(old.len())];
                let mut again = real.outcome(world, count * 4 + at).await;
                if world.is_heard_of_silently() && !agree(&again, outcome) {
                    again = real.outcome(world, count * 4 + 50 + at).await;
                }
                assert!(agree(&again, outcome), "{world:?}\nrecorded: {outcome:?}\nnow: {again:?}");
            }
        }
        none(&faults, count);
    });
}

#[test]
fn fresh_queues_get_the_answers_kube_scheduler_gives() {
    let count = wanted("LOADLINE_QUEUES", 1);
    runtime().block_on(async {
        let Some(mut real) = Real::start_or_skip().await else { return };
        let (seed, mut faults, mut compared) = (seed(), Vec::new(), Vec::new());
        for at in 0..count {
            let queue = queue::queue(seed, at);
            let mut one = Followed { outcomes: real.outcomes(&queue, at).await, queue };
            if one.fault("").is_some() {
                // It may not have heard of every service before it had to decide.
                one.outcomes = real.outcomes(&one.queue, count + at).await;
            }
            faults.extend(one.fault(&format!("{at} of seed {seed}")));
            compared.push(one);
        }
        let pods: usize = compared.iter().map(|one| one.outcomes.len()).sum();
        println!("queues: {} of {count} agree, {pods} pods", count - faults.len());
        if records() && !compared.is_empty() {
            record(QUEUES, &compared);
        }
        none(&faults, count);
    });
}
