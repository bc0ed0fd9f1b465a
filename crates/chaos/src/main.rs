//! `cargo xtask chaos`: runs many seeds, and tells of one that breaks a promise how to see it again.

use loadline_chaos::check::{Promise, excerpt};
use loadline_chaos::plan::{Flaw, Plan};
use loadline_chaos::shrink::shrink;
use loadline_chaos::{Outcome, judge_all};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;

const USAGE: &str = "usage: chaos [--seeds N] [--from SEED] [--trace] [--all] [--flaw NAME]";
/// Lines of the history that are shown.
const SHOWN: usize = 60;

struct Args {
    seeds: u64,
    from: u64,
    /// Is the whole history shown?
    trace: bool,
    /// Does it go on after a seed that breaks a promise?
    all: bool,
    /// What is wrong on purpose?
    flaw: Option<Flaw>,
}

fn args() -> Option<Args> {
    let mut args = Args { seeds: 100, from: 0, trace: false, all: false, flaw: None };
    let mut given = std::env::args().skip(1);
    while let Some(flag) = given.next() {
        match flag.as_str() {
            "--seeds" => args.seeds = given.next()?.parse().ok()?,
            "--from" => args.from = given.next()?.parse().ok()?,
            "--trace" => args.trace = true,
            "--all" => args.all = true,
            "--flaw" => args.flaw = Some(Flaw::named(&given.next()?)?),
            _ => return None,
        }
    }
    Some(args)
}

#[derive(Default)]
struct Tally {
    seeds: u64,
    writes: usize,
    /// In how many seeds each promise could have been broken, and how often.
    judged: BTreeMap<Promise, (u64, u64)>,
    failed: u64,
    first: Option<(Plan, Promise)>,
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that tells")]
fn main() -> ExitCode {
    let Some(args) = args() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let tally = Mutex::new(Tally::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let plan_of = |seed| Plan { flaws: args.flaw.into_iter().collect(), ..Plan::of(seed) };
    judge_all(args.from..args.from.saturating_add(args.seeds), threads, plan_of, |plan, outcome| {
        let Ok(mut tally) = tally.lock() else { return false };
        tally.seeds += 1;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                eprintln!("seed {}: {error}", plan.seed);
                tally.failed += 1;
                return false;
            }
        };
        tally.writes += outcome.history.len();
        for (promise, occasions) in &outcome.occasions {
            let (seeds, all) = tally.judged.entry(*promise).or_default();
            (*seeds, *all) = (*seeds + 1, *all + occasions);
        }
        if args.trace {
            println!("{plan:#?}");
            outcome.history.iter().for_each(|entry| println!("{entry}"));
        }
        let Some(first) = outcome.violations.first() else { return true };
        tell(plan, &outcome);
        tally.failed += 1;
        tally.first.get_or_insert_with(|| (plan.clone(), first.promise));
        args.all
    });
    let Ok(tally) = tally.into_inner() else { return ExitCode::FAILURE };
    if let Some((plan, promise)) = &tally.first {
        println!("the least that breaks it: {:#?}", shrink(plan, *promise));
    }
    println!("   seeds  occasions  could have broken");
    for promise in Promise::ALL {
        let (seeds, all) = tally.judged.get(&promise).copied().unwrap_or_default();
        println!("{seeds:>8} {all:>10}  {promise}");
    }
    println!("{} seeds, {} writes, {} broke a promise", tally.seeds, tally.writes, tally.failed);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stdout, reason = "a program that tells")]
fn tell(plan: &Plan, outcome: &Outcome) {
    let Some(first) = outcome.violations.first() else { return };
    println!("seed {} breaks a promise: {}", plan.seed, first.promise);
    for violation in &outcome.violations {
        println!("  {}", violation.what);
    }
    println!("what the API server saw of it:");
    let shown: Vec<String> = excerpt(&outcome.history, &first.about).map(ToString::to_string).collect();
    for line in &shown[shown.len().saturating_sub(SHOWN)..] {
        println!("  {line}");
    }
    println!("again: cargo xtask chaos --seeds 1 --from {} --trace", plan.seed);
}
