//! Do we decide as kube-scheduler does, in worlds nobody has seen before? Runs the comparison in
//! `crates/api/tests/kube_scheduler.rs` on as many as asked for.

use crate::shell;
use anyhow::Result;
use loadline_testkit::parts;
use std::hash::{BuildHasher as _, RandomState};
use std::process::Command;

/// What decides how many of a kind there are, and their share in a hundred. The rest are plain.
const SHARES: [(&str, u64); 3] =
    [("LOADLINE_VOLUME_WORLDS", 20), ("LOADLINE_PREEMPTION_WORLDS", 29), ("LOADLINE_QUEUES", 1)];

/// Compares so many fresh worlds; without a seed, chance takes one and says which.
pub fn run(fresh: u64, seed: Option<u64>) -> Result<()> {
    shell::run(&mut command(fresh, seed))
}

fn command(fresh: u64, seed: Option<u64>) -> Command {
    let test = ["test", "--workspace", "--all-features", "--test", "kube_scheduler"];
    let mut cargo = shell::cargo(&test);
    // One after the other, or two control planes would share the machine.
    cargo.args(["fresh", "--", "--nocapture", "--test-threads=1"]).env(parts::REQUIRE, "1");
    for (name, count) in counts(fresh) {
        cargo.env(name, count.to_string());
    }
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    cargo.env("LOADLINE_SEED", seed.to_string());
    cargo
}

/// How many of each kind.
fn counts(fresh: u64) -> Vec<(&'static str, u64)> {
    let mut all: Vec<_> = SHARES.iter().map(|(name, share)| (*name, fresh * share / 100)).collect();
    let others: u64 = all.iter().map(|(_, count)| count).sum();
    all.push(("LOADLINE_WORLDS", fresh - others));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_asked_for_are_of_some_kind() {
        let two_thousand = counts(2000);
        assert_eq!(
            two_thousand,
            [
                ("LOADLINE_VOLUME_WORLDS", 400),
                ("LOADLINE_PREEMPTION_WORLDS", 580),
                ("LOADLINE_QUEUES", 20),
                ("LOADLINE_WORLDS", 1000)
            ]
        );
        for fresh in [0, 1, 7, 199] {
            assert_eq!(counts(fresh).iter().map(|(_, count)| count).sum::<u64>(), fresh);
        }
    }
}
