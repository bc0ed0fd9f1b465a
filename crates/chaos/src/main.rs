//! `cargo xtask chaos`: runs many seeds, and tells of one that breaks a promise how to see it again.

use loadline_chaos::check::excerpt;
use loadline_chaos::judge;
use loadline_chaos::plan::Plan;
use loadline_chaos::shrink::shrink;
use std::process::ExitCode;

const USAGE: &str = "usage: chaos [--seeds N] [--from SEED] [--trace]";
/// Lines of the history that are shown.
const SHOWN: usize = 60;

struct Args {
    seeds: u64,
    from: u64,
    trace: bool,
}

fn args() -> Option<Args> {
    let mut args = Args { seeds: 100, from: 0, trace: false };
    let mut given = std::env::args().skip(1);
    while let Some(flag) = given.next() {
        match flag.as_str() {
            "--seeds" => args.seeds = given.next()?.parse().ok()?,
            "--from" => args.from = given.next()?.parse().ok()?,
            "--trace" => args.trace = true,
            _ => return None,
        }
    }
    Some(args)
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that tells")]
fn main() -> ExitCode {
    let Some(args) = args() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (mut writes, mut failed) = (0_usize, 0_usize);
    for seed in args.from..args.from.saturating_add(args.seeds) {
        let plan = Plan::of(seed);
        let outcome = match judge(&plan) {
            Ok(outcome) => outcome,
            Err(error) => {
                eprintln!("seed {seed}: {error}");
                return ExitCode::from(2);
            }
        };
        writes += outcome.history.len();
        if args.trace {
            println!("{plan:#?}");
            outcome.history.iter().for_each(|entry| println!("{entry}"));
        }
        let Some(first) = outcome.violations.first() else { continue };
        failed += 1;
        println!("seed {seed} breaks a promise: {}", first.promise);
        for violation in &outcome.violations {
            println!("  {}", violation.what);
        }
        println!("what the API server saw of it:");
        let shown: Vec<String> = excerpt(&outcome.history, &first.about).map(ToString::to_string).collect();
        for line in &shown[shown.len().saturating_sub(SHOWN)..] {
            println!("  {line}");
        }
        println!("again: cargo xtask chaos --seeds 1 --from {seed} --trace");
        if failed == 1 {
            println!("the least that breaks it: {:#?}", shrink(&plan));
        }
    }
    println!("{} seeds, {writes} writes, {failed} broke a promise", args.seeds);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
