//! Is everything fine? The checks of `cargo xtask test`, cheap ones first; the first failure ends the run.

use crate::fresh::{self, Mode};
use crate::shell::{self, spoken};
use crate::{again, calls, control_plane, deny, fuzz, layers, style};
use anyhow::{Context as _, Result, bail};
use loadline_testkit::parts::{self, Group, Missing, PACKAGES, Places, Policy};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// How proptest is told where its random numbers start.
const SEED: &str = "PROPTEST_RNG_SEED";

struct Step {
    name: &'static str,
    check: Check,
}

enum Check {
    /// A command with its terminal output.
    Command(Command),
    /// Tests of which few may need a second try, and are told.
    Tests(Command),
    /// Done in this process.
    Here(fn() -> Result<()>),
}

/// Runs all checks, or only the tests whose name contains `filter`.
pub fn run(no_real: bool, filter: Option<&str>) -> Result<()> {
    let started = Instant::now();
    let policy = match (no_real, Policy::from_env().map_err(anyhow::Error::msg)?) {
        (true, Policy::Required) => bail!("--no-real contradicts {}=1", parts::REQUIRE),
        (true, _) => Policy::Never,
        (false, policy) => policy,
    };
    let missing = missing_counters(&path());
    // Asked before anything runs: half an hour later would be late.
    if policy == Policy::Required && filter.is_none() && !missing.is_empty() {
        let lines: Vec<String> =
            missing.iter().map(|(name, how)| format!("{name} (get it: {how})")).collect();
        bail!(
            "limits on instructions need {}, and {}=1 forbids skipping",
            lines.join(" and "),
            parts::REQUIRE
        );
    }
    let steps = steps(policy, filter);
    let count = steps.len();
    let (mut taken, mut unsteady) = (Vec::with_capacity(count), Vec::new());
    for (index, mut step) in steps.into_iter().enumerate() {
        let begun = Instant::now();
        eprintln!("[{}/{count}] {}", index + 1, step.title());
        let twice =
            step.run().with_context(|| format!("{} failed after {}", step.name, spoken(begun.elapsed())))?;
        unsteady.extend(twice);
        taken.push((step.name, begun.elapsed()));
    }
    eprintln!();
    for (name, time) in taken {
        eprintln!("ok  {name:<18} {:>12}", spoken(time));
    }
    eprintln!("ok  {:<18} {:>12}", "everything", spoken(started.elapsed()));
    for program in unsteady {
        eprintln!(
            "UNSTEADY: {program} failed, and passed when it was run again: look at its first failure above"
        );
    }
    if let Some(line) = not_run(policy, &Places::from_env()) {
        eprintln!("{line}");
    }
    for (name, how) in missing {
        eprintln!("not run: limits on instructions, which need {name} (get it: {how})");
    }
    Ok(())
}

fn steps(policy: Policy, filter: Option<&str>) -> Vec<Step> {
    let command = |name, args: &[&str]| Step { name, check: Check::Command(shell::cargo(args)) };
    let here = |name, check: fn() -> Result<()>| Step { name, check: Check::Here(check) };
    let mut steps = Vec::new();
    if filter.is_none() {
        steps.push(command("format", &["fmt", "--all", "--check"]));
        steps.push(here("style", style::check_workspace));
        steps.push(here("layers", layers::check_workspace));
        steps.push(here("dependencies", deny::check_workspace));
        let compare: fn() -> Result<()> = match policy {
            Policy::Required => || fresh::run(&shell::root(), fresh::GENERATORS, Mode::Require),
            _ => || fresh::run(&shell::root(), fresh::GENERATORS, Mode::Compare),
        };
        steps.push(here("generated files", compare));
        let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
        steps.push(command("lints", &lints));
        steps.push(Step { name: "fuzz targets", check: Check::Command(fuzz::check()) });
    }
    if policy == Policy::Required {
        steps.push(here("real parts", || {
            control_plane::ensure(Group::ALL).and_then(|()| control_plane::unpack(Group::ALL))
        }));
    }
    // Only everything together is all that components do.
    let records = (policy == Policy::Required && filter.is_none()).then(calls::folder);
    steps.push(tests(policy, filter, records.as_deref()));
    if let Some(folder) = records {
        steps.push(Step { name: "least privilege", check: Check::Command(calls::check(&folder)) });
    }
    if filter.is_none() {
        let mut docs = shell::cargo(&["doc", "--workspace", "--all-features", "--no-deps"]);
        docs.env("RUSTDOCFLAGS", "-D warnings");
        steps.push(Step { name: "documentation", check: Check::Command(docs) });
        if missing_counters(&path()).is_empty() {
            let args = ["bench", "--package", "loadline-core", "--bench", "instructions"];
            steps.push(command("instructions", &args));
        }
    }
    steps
}

/// What counts instructions: the limits in the benchmarks are checked when both are there.
const COUNTERS: [(&str, &str); 2] = [
    ("valgrind", "your system's package of that name"),
    ("gungraun-runner", "cargo install gungraun-runner --version 0.20.0 --locked"),
];

fn path() -> Vec<PathBuf> {
    env::var_os("PATH").map_or_else(Vec::new, |path| env::split_paths(&path).collect())
}

fn missing_counters(path: &[PathBuf]) -> Vec<(&'static str, &'static str)> {
    let there = |name: &str| path.iter().any(|folder| folder.join(name).is_file());
    COUNTERS.into_iter().filter(|(name, _)| !there(name)).collect()
}

/// Unit, integration and documentation tests. All of them run even if one fails: the rest is worth knowing.
fn tests(policy: Policy, filter: Option<&str>, records: Option<&Path>) -> Step {
    let mut cargo = shell::cargo(&["test", "--workspace", "--all-features", "--no-fail-fast"]);
    cargo.args(filter);
    // The same cases for everybody: what passed here passes elsewhere. To look further, set another seed.
    if env::var_os(SEED).is_none() {
        cargo.env(SEED, "1");
    }
    if policy == Policy::Never {
        cargo.env(parts::AVOID, "1");
    }
    if let Some(folder) = records {
        cargo.env(calls::FOLDER, folder);
    }
    // A developer sees a failure at once; the long run at the gate tries few of them again.
    let check = if policy == Policy::Required && filter.is_none() {
        Check::Tests(cargo)
    } else {
        Check::Command(cargo)
    };
    Step { name: "tests", check }
}

impl Step {
    fn title(&self) -> String {
        match &self.check {
            Check::Command(command) | Check::Tests(command) => {
                format!("{}: {}", self.name, shell::words(command))
            }
            Check::Here(_) => self.name.to_owned(),
        }
    }

    /// Returns what passed only when it was tried again.
    fn run(&mut self) -> Result<Vec<String>> {
        match &mut self.check {
            Check::Command(command) => shell::run(command).map(|()| Vec::new()),
            Check::Tests(command) => again::run(command),
            Check::Here(check) => check().map(|()| Vec::new()),
        }
    }
}

/// What was left out, and how to get it.
fn not_run(policy: Policy, places: &Places) -> Option<String> {
    if policy == Policy::Never {
        return Some("not run: tests against a real control plane (leave out --no-real)".to_owned());
    }
    let packages: Vec<_> = PACKAGES.iter().filter(|package| package.find(places).is_none()).collect();
    let missing = [Missing::rows(&places.missing(Group::ALL)), Missing::packages(&packages)];
    let lines = missing.iter().filter(|missing| !missing.names.is_empty()).map(|missing| {
        let (names, command) = (missing.names.join(", "), missing.command());
        format!("not run: tests that need {names} (get them: {command})")
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_did_not_run_is_said_with_the_command_that_gets_it() {
        let temp = tempfile::tempdir().unwrap();
        let places = Places { assets: Some(temp.path().to_owned()), cache: None };
        for package in PACKAGES {
            fs::write(temp.path().join(package.name), "").unwrap();
        }
        let line = not_run(Policy::IfThere, &places).unwrap();
        assert!(line.starts_with("not run: tests that need etcd, kube-apiserver"), "{line}");
        assert!(line.ends_with("(get them: cargo xtask control-plane --peers --node)"), "{line}");
        let place = |group: Group| {
            for row in parts::COMPONENTS.iter().filter(|row| row.group == group) {
                fs::write(temp.path().join(row.name), "").unwrap();
            }
        };
        place(Group::ControlPlane);
        let line = not_run(Policy::IfThere, &places).unwrap();
        assert!(line.starts_with("not run: tests that need karmada-scheduler-1.17, "), "{line}");
        place(Group::Peers);
        let line = not_run(Policy::IfThere, &places).unwrap();
        assert!(
            line.ends_with(
                "kubelet, metrics-server, workload, helm (get them: cargo xtask control-plane --node)"
            ),
            "{line}"
        );
        place(Group::Node);
        assert_eq!(not_run(Policy::IfThere, &places), None);
        assert!(not_run(Policy::Never, &places).unwrap().contains("--no-real"));
    }

    #[test]
    fn instructions_are_counted_when_both_counters_are_there() {
        let temp = tempfile::tempdir().unwrap();
        let path = [temp.path().to_owned()];
        assert_eq!(missing_counters(&path).len(), 2);
        for (name, _) in COUNTERS {
            fs::write(temp.path().join(name), "").unwrap();
        }
        assert_eq!(missing_counters(&path), []);
    }

    #[test]
    fn real_parts_are_built_before_the_tests_only_when_required() {
        let names = |policy, filter| steps(policy, filter).iter().map(|step| step.name).collect::<Vec<_>>();
        assert!(!names(Policy::IfThere, None).contains(&"real parts"));
        let required = names(Policy::Required, None);
        let place = |name| required.iter().position(|step| *step == name).unwrap();
        assert!(place("real parts") < place("tests"));
        for step in ["dependencies", "fuzz targets"] {
            assert!(place(step) < place("tests"), "{step} is cheap");
        }
        assert!(place("tests") < place("least privilege"), "it compares what tests recorded");
        assert!(
            !names(Policy::IfThere, None).contains(&"least privilege"),
            "without real parts not all is seen"
        );
        assert_eq!(names(Policy::IfThere, Some("name")), ["tests"]);
        assert_eq!(names(Policy::Required, Some("name")), ["real parts", "tests"]);
    }
}
