//! The first seeds keep every promise, and a seed is one history, whenever it is run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_chaos::check::Promise;
use loadline_chaos::history::fingerprint;
use loadline_chaos::plan::{Plan, What};
use loadline_chaos::{judge, judge_all};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// How often each promise could have been broken in them, at least.
const OCCASIONS: [(Promise, u64); 10] = [
    (Promise::BoundOnce, 1_800),
    (Promise::Line, 800),
    (Promise::Cooling, 4),
    (Promise::LeftBehind, 450),
    (Promise::PublishedSet, 120),
    (Promise::Estimate, 140),
    (Promise::Leader, 3_500),
    (Promise::NothingLost, 700),
    (Promise::Rest, 800),
    (Promise::Alive, 800),
];

/// How many are run each time; `cargo xtask chaos` runs more.
const SEEDS: u64 = 300;

#[test]
fn the_first_seeds_keep_every_promise() {
    let (broken, writes) = (Mutex::new(Vec::new()), Mutex::new(0));
    let occasions = Mutex::new(BTreeMap::<Promise, u64>::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    judge_all(0..SEEDS, threads, Plan::of, |plan, outcome| {
        let outcome = outcome.unwrap();
        *writes.lock().unwrap() += outcome.history.len();
        for (promise, count) in outcome.occasions {
            *occasions.lock().unwrap().entry(promise).or_default() += count;
        }
        for violation in outcome.violations {
            broken
                .lock()
                .unwrap()
                .push(format!("seed {}: {}: {}", plan.seed, violation.promise, violation.what));
        }
        true
    });
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(*writes.lock().unwrap() > 100 * 100, "something happened in them");
    // A promise that could not have been broken was not kept either: half of what there was when these were written.
    let occasions = occasions.into_inner().unwrap();
    let lacks = |(promise, least): &(Promise, u64)| occasions.get(promise).is_none_or(|count| count < least);
    let lacking: Vec<_> = OCCASIONS.into_iter().filter(lacks).collect();
    assert!(lacking.is_empty(), "too few occasions for {lacking:?}: {occasions:?}");
    assert_eq!(OCCASIONS.map(|(promise, _)| promise), Promise::ALL, "each has a floor");
}

#[test]
fn a_seed_is_one_history_byte_for_byte() {
    for seed in [1, 4, 9] {
        let plan = Plan::of(seed);
        let (one, other) = (judge(&plan).unwrap().history, judge(&plan).unwrap().history);
        let differs = one.iter().zip(&other).find(|(a, b)| a != b);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(fingerprint(&one), fingerprint(&other), "seed {seed}");
    }
}

#[test]
fn every_kind_of_trouble_comes_up() {
    let kind = |what: &What| format!("{what:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    let plans = (0..SEEDS).map(Plan::of);
    let kinds: std::collections::BTreeSet<String> =
        plans.flat_map(|plan| plan.troubles).map(|trouble| kind(&trouble.what)).collect();
    assert_eq!(kinds.len(), 14, "{kinds:?}");
}
