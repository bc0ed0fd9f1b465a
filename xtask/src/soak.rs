//! Which tests fail now and then? Programs of tests are run over and over while something else keeps all cores busy.
//!
//! Nothing is tried again here: whatever fails is counted, by the test that failed. A test that depends on the speed of the machine
//! shows within a few dozen rounds; one that passes them all may still be wrong, only seldom.

use crate::shell;
use anyhow::{Context as _, Result, bail, ensure};
use cargo_metadata::Message;
use std::collections::BTreeMap;
use std::hint;
use std::io::BufReader;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// How a program of tests says that one failed.
const FAILED: &str = " ... FAILED";

/// A program of tests, and the folder it is run in.
struct Program {
    name: String,
    command: Command,
}

/// Runs each so many times beside so many busy threads.
pub fn run(names: &[String], times: u32, busy: usize) -> Result<()> {
    let programs = build(names)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..busy {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let told = soak(programs, times);
        stop.store(true, Ordering::Relaxed);
        told
    })
}

/// Builds them as `cargo xtask test` does, so that nothing is built twice.
fn build(names: &[String]) -> Result<Vec<Program>> {
    let mut cargo = shell::cargo(&["test", "--workspace", "--all-features", "--no-run"]);
    cargo.arg("--message-format=json-render-diagnostics");
    for name in names {
        cargo.args(["--test", name]);
    }
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let said = child.stdout.take().context("cargo has an output")?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(said)) {
        let Message::CompilerArtifact(made) = message? else { continue };
        let Some(program) = made.executable.filter(|_| made.profile.test) else { continue };
        let mut command = Command::new(program);
        // Where cargo runs them.
        command.current_dir(made.manifest_path.parent().context("a package is in a folder")?);
        programs.push(Program { name: made.target.name, command });
    }
    let status = child.wait()?;
    ensure!(status.success(), "{} ended with {status}", shell::words(&cargo));
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// In turns, so that each has its share of whatever the machine is up to.
fn soak(mut programs: Vec<Program>, times: u32) -> Result<()> {
    let mut failures: BTreeMap<String, (u32, BTreeMap<String, u32>)> = BTreeMap::new();
    for round in 1..=times {
        for Program { name, command } in &mut programs {
            let output =
                command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
            let said = String::from_utf8_lossy(&output.stdout);
            if output.status.success() {
                eprintln!("{round}/{times} {name}: ok");
                continue;
            }
            eprintln!(
                "{round}/{times} {name}: {}\n{said}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
            let (count, tests) = failures.entry(name.clone()).or_default();
            *count += 1;
            for test in failed(&said) {
                *tests.entry(test.to_owned()).or_default() += 1;
            }
        }
    }
    eprintln!();
    for Program { name, .. } in &programs {
        let (count, tests) = failures.get(name).map_or((0, None), |(count, tests)| (*count, Some(tests)));
        eprintln!("{name}: {count} of {times} failed");
        for (test, count) in tests.into_iter().flatten() {
            eprintln!("  {test}: {count}");
        }
    }
    if failures.is_empty() { Ok(()) } else { bail!("failed now and then: {}", keys(&failures)) }
}

fn keys<V>(map: &BTreeMap<String, V>) -> String {
    map.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The tests that failed, by what their program printed.
fn failed(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(FAILED)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(name: &str, script: &str) -> Program {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Program { name: name.to_owned(), command }
    }

    #[test]
    fn whatever_fails_once_is_counted_and_nothing_is_tried_again() {
        let temp = tempfile::tempdir().unwrap();
        let runs = temp.path().join("runs");
        // The second of three runs fails.
        let script = format!(
            "echo >> {0}; [ $(wc -l < {0}) = 2 ] || exit 0; echo 'test a::b ... FAILED'; exit 101",
            runs.display()
        );
        let error = soak(vec![says("fine", "exit 0"), says("unsteady", &script)], 3).unwrap_err();
        assert_eq!(error.to_string(), "failed now and then: unsteady");
        assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), 3, "three runs, and no fourth");
        soak(vec![says("fine", "exit 0")], 2).unwrap();
    }

    #[test]
    fn the_tests_that_failed_are_named() {
        let said =
            "test a::b ... FAILED\ntest c ... ok\ntest d - should panic ... FAILED\nnot a test ... FAILED\n";
        assert_eq!(failed(said), ["a::b", "d - should panic"]);
    }
}
