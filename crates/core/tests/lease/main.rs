//! Whatever happens, never two leaders; and when nothing happens any more, always one.
//!
//! Random worlds: candidates on machines with clocks of their own, a network that loses, delays and doubles messages,
//! partitions, stopped processes, suspended machines, crashes, exits. [`judge`] says what was promised.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod clock;
mod flaw;
mod judge;
mod plan;
mod store;
mod world;

use flaw::Flaw;
use judge::Broken;
use loadline_core::lease::Loss;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::cell::{Cell, RefCell};

proptest! {
    #![proptest_config(Config { cases: 400, ..Config::default() })]

    #[test]
    fn there_are_never_two_leaders_and_in_the_end_there_is_one(plan in plan::plan()) {
        prop_assert_eq!(world::run(&plan, Flaw::None).broken, []);
    }
}

/// Runs the same worlds for everybody until `look` says no.
fn run_worlds(cases: u32, look: impl Fn(&plan::Plan) -> bool) -> bool {
    let config = Config { cases, max_shrink_iters: 0, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let worlds = TestRunner::new_with_rng(config, rng)
        .run(&plan::plan(), |plan| if look(&plan) { Ok(()) } else { Err(TestCaseError::fail("no")) });
    !matches!(worlds, Err(TestError::Fail(..)))
}

/// Is there a world in which a flaw breaks this promise?
fn is_found(flaw: Flaw, promise: &Broken) -> bool {
    let keeps = |plan: &plan::Plan| world::run(plan, flaw).broken.iter().all(|(broken, _)| broken != promise);
    !run_worlds(2000, keeps)
}

#[test]
fn the_worlds_are_rough() {
    let (losses, changes) = (RefCell::new(Vec::new()), Cell::new(0));
    run_worlds(200, |plan| {
        let report = world::run(plan, Flaw::None);
        losses.borrow_mut().extend(report.losses);
        changes.set(changes.get() + report.changes);
        true
    });
    let count = |wanted: fn(&Loss) -> bool| losses.borrow().iter().filter(|loss| wanted(loss)).count();
    // Otherwise nothing was tested. Nobody is ever surprised by another holder: the right has ended before.
    for (least, found, what) in [
        (100, count(|loss| *loss == Loss::Deadline), "without a renewal in time"),
        (20, count(|loss| *loss == Loss::Clock), "suspended, or the clock was set"),
        (250, changes.get(), "changes of holder"),
    ] {
        assert!(found >= least, "{found} {what}");
    }
    assert_eq!(count(|loss| matches!(loss, Loss::Holder(_))), 0);
}

#[test]
fn wrong_candidates_are_found_out() {
    use Broken::{
        Miscounted, NobodyLeads, TakenTooEarly, TooManyRequests, TwoWriters, Unstable, WriterWithoutRenewal,
    };
    for (flaw, promise) in [
        (Flaw::RightFromAnswer, TwoWriters),
        (Flaw::RightFromAnswer, WriterWithoutRenewal),
        (Flaw::ExpiryByWallClock, TwoWriters),
        (Flaw::ExpiryByWallClock, TakenTooEarly),
        (Flaw::NoRevision, TwoWriters),
        (Flaw::MonotonicOnly, TwoWriters),
        (Flaw::MonotonicOnly, WriterWithoutRenewal),
        (Flaw::TrustsLostAnswers, TwoWriters),
        (Flaw::TrustsLostAnswers, WriterWithoutRenewal),
        (Flaw::WritesWhileReleasing, TwoWriters),
        (Flaw::SeenWhenAsked, TakenTooEarly),
        (Flaw::Impatient, TwoWriters),
        (Flaw::Impatient, TakenTooEarly),
        (Flaw::NeverTakesOver, NobodyLeads),
        (Flaw::Sleepy, Unstable),
        (Flaw::Restless, TooManyRequests),
        (Flaw::CountsRenewals, Miscounted),
    ] {
        assert!(is_found(flaw, &promise), "{flaw:?} breaks {promise:?}");
    }
}
