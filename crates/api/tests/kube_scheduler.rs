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
//! | `LOADLINE_SEED` | their seed, by chance if not set |
//! | `LOADLINE_RECORD=1` | write what was seen to `vectors/schedule` |

#[path = "worlds/mod.rs"]
mod worlds;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use loadline_core::cycle::{Filter, Parts};
use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::sync::LazyLock;
use worlds::dice::Dice;
use worlds::real::Real;
use worlds::{Outcome, Record, World, differences, generate, ours};

fn recorded_at() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/schedule/worlds.jsonl.gz")
}

static RECORDED: LazyLock<Vec<Record>> = LazyLock::new(|| {
    let file = File::open(recorded_at()).expect("the recorded worlds are there");
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines.map(|line| serde_json::from_str(&line.expect("text")).expect("a record")).collect()
});

fn record(records: &[Record]) {
    let file = File::create(recorded_at()).expect("the file can be written");
    let mut out = GzEncoder::new(file, Compression::best());
    for record in records {
        writeln!(out, "{}", serde_json::to_string(record).expect("JSON")).expect("written");
    }
    out.finish().expect("written");
}

/// Do the two agree? Among equally good nodes chance decides there and the name here.
fn agree(ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Outcome::Bound { node: _, behind: o }, Outcome::Bound { node, behind }) if !behind.is_empty() => {
            o == behind && o.get(node) == Some(&0)
        }
        _ => ours == theirs,
    }
}

/// What is wrong with our answer, for a person to read.
fn fault(name: &str, world: &World, theirs: &Outcome) -> Option<String> {
    let ours = ours::outcome(&differences::heard(world));
    (!agree(&ours, theirs)).then(|| {
        let world = serde_json::to_string(world).expect("JSON");
        format!("world {name}\n  {world}\n  kube-scheduler: {theirs:?}\n  ours:           {ours:?}")
    })
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

/// The comparison is worth as much as the worlds are varied: every rule but those on volumes and load refuses
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
const ABSENT: &[Filter] = &[
    Filter::VolumeInUse,
    Filter::AttachLimit,
    Filter::VolumeReach,
    Filter::Threshold,
    Filter::UnknownLoad,
    Filter::Cooling,
    Filter::Line,
];

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
        |r: &Record| differences::heard(&r.world) != r.world && !agree(&ours::outcome(&r.world), &r.outcome);
    assert!(RECORDED.iter().any(differs), "no recorded world shows it");
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn fresh_worlds_get_the_answer_kube_scheduler_gives() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let Some(mut real) = Real::start_or_skip().await else { return };
        let seed = number("LOADLINE_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
        let count = usize::try_from(number("LOADLINE_WORLDS").unwrap_or(150)).expect("not that many");
        let writes = env::var("LOADLINE_RECORD").is_ok_and(|value| value == "1");
        println!("{count} worlds under LOADLINE_SEED={seed}");
        let (mut faults, mut repeated) = (Vec::new(), 0);
        let mut records = Vec::new();
        for at in 0..count {
            let world = generate::world(seed, at);
            let mut outcome = real.outcome(&world, at).await;
            // It may not have heard of every service before it had to decide.
            for again in 1..=2 {
                if world.selects() && fault("", &world, &outcome).is_some() {
                    outcome = real.outcome(&world, count * (again + 1) + at).await;
                    repeated += 1;
                }
            }
            if let Some(fault) = fault(&format!("{at} of seed {seed}"), &world, &outcome) {
                faults.push(format!("{fault}\n{}", real.scores()));
            }
            records.push(Record { world, outcome });
        }
        println!("asked again {repeated} times");
        if writes {
            record(&records);
        } else {
            // The recorded ones are still what this scheduler says.
            let old = &*RECORDED;
            let mut dice = Dice::new(seed, count);
            for at in 0..50 {
                let Record { world, outcome } = &old[dice.below(old.len())];
                let mut again = real.outcome(world, count * 4 + at).await;
                if world.selects() && !agree(&again, outcome) {
                    again = real.outcome(world, count * 4 + 50 + at).await;
                }
                assert!(agree(&again, outcome), "{world:?}\nrecorded: {outcome:?}\nnow: {again:?}");
            }
        }
        none(&faults, count);
    });
}
