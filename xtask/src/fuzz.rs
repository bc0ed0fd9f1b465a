//! Do the fuzz targets still hold? They compile with every `cargo xtask test`; here they run.
//!
//! libFuzzer needs to know which branches were taken, which the compiler's coverage pass tells; what usually makes fuzzing a
//! matter of nightly compilers is the address sanitizer, and there is no `unsafe` here for it to watch. So the ordinary
//! compiler does. Each target starts from the seeds under `fuzz/corpus`; what it finds beside them is kept in `target`, and
//! what breaks one is named by libFuzzer with the file to run it again with.

use crate::shell;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Which branches were taken, as libFuzzer reads it.
const COVERAGE: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];
/// So many run at once, if there is more than one to run.
const AT_ONCE: usize = 2;

/// No seed of ours is as long, and nothing longer is more telling.
const LONGEST: &str = "-max_len=4096";

/// The targets, by name: every one has a folder of seeds, which `cargo xtask test` runs as ordinary tests.
pub fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in
        fs::read_dir(shell::root().join("fuzz/fuzz_targets")).context("cannot list fuzz/fuzz_targets")?
    {
        let path = file?.path();
        names.extend(path.file_stem().and_then(|name| name.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn manifest() -> String {
    shell::root().join("fuzz/Cargo.toml").display().to_string()
}

fn folder() -> PathBuf {
    shell::root().join("target/fuzz")
}

/// Compiles the targets, without libFuzzer itself: that is C++, and takes longer than all of them.
pub fn check() -> Command {
    let mut cargo =
        shell::cargo(&["check", "--manifest-path", &manifest(), "--bins", "--no-default-features"]);
    cargo.env("CARGO_TARGET_DIR", folder());
    cargo
}

/// Runs one target, or all of them, for so many seconds each. One has the terminal; of several, only what broke is shown.
pub fn run(name: Option<&str>, seconds: u32) -> Result<()> {
    let all = targets()?;
    let chosen: Vec<&String> = all.iter().filter(|known| name.is_none_or(|name| name == *known)).collect();
    if chosen.is_empty() {
        bail!("there is no fuzz target {}, expected one of {}", name.unwrap_or_default(), all.join(", "));
    }
    let mut build = shell::cargo(&["build", "--manifest-path", &manifest(), "--bins", "--release"]);
    build.env("CARGO_TARGET_DIR", folder()).env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"));
    // With a target, flags are for what is built and not for what builds it.
    let host = host()?;
    build.args(["--target", &host]);
    shell::run(&mut build)?;
    let commands = chosen.into_iter().map(|name| Ok((name.as_str(), command(name, &host, seconds)?)));
    let mut commands = commands.collect::<Result<Vec<_>>>()?;
    if let [(name, command)] = &mut commands[..] {
        eprintln!("{name}, {seconds} s");
        return shell::run(command);
    }
    together(commands, seconds)
}

fn command(name: &str, host: &str, seconds: u32) -> Result<Command> {
    let found = folder().join("corpus").join(name);
    fs::create_dir_all(&found).context("cannot make a folder for what is found")?;
    let mut target = Command::new(folder().join(host).join("release").join(name));
    target.arg(found).arg(shell::root().join("fuzz/corpus").join(name));
    target.args([LONGEST, "-print_final_stats=1", &format!("-max_total_time={seconds}")]);
    // What breaks it is written where it runs.
    target.current_dir(folder());
    Ok(target)
}

/// Runs few at a time; all of them, even if one breaks.
fn together(commands: Vec<(&str, Command)>, seconds: u32) -> Result<()> {
    let waiting = Mutex::new(commands.into_iter());
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.next());
    let work = || {
        let mut broken = Vec::new();
        while let Some((name, mut command)) = next() {
            match quietly(&mut command) {
                Ok(runs) => eprintln!("{name}, {seconds} s: {runs} inputs"),
                Err(error) => {
                    eprintln!("{name}: {error:#}");
                    broken.push(name);
                }
            }
        }
        broken
    };
    let broken: Vec<&str> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|_| vec!["a thread"])).collect()
    });
    if broken.is_empty() { Ok(()) } else { bail!("broken: {}", broken.join(", ")) }
}

/// How many inputs it took, as libFuzzer says at the end; or all it said, where it broke.
fn quietly(command: &mut Command) -> Result<u64> {
    let words = shell::words(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {words}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{words} ended with {}\n{said}", output.status);
    }
    let runs = said.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let runs = runs.and_then(|runs| runs.trim().parse().ok()).filter(|runs| *runs > 0);
    runs.with_context(|| format!("{words} took no input\n{said}"))
}

/// What the compiler makes programs for.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said =
        Command::new(rustc).arg("-vV").current_dir(shell::root()).output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned);
    host.context("rustc does not say what it is for")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(lines: &str, code: u8) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("printf '%s\\n' '{lines}' >&2; exit {code}")]);
        shell
    }

    #[test]
    fn of_several_targets_all_run_and_those_that_broke_are_named() {
        let fine = || says("#12 DONE\nstat::number_of_executed_units: 12", 0);
        assert_eq!(quietly(&mut fine()).unwrap(), 12);
        let all = vec![
            ("a", fine()),
            ("b", says("panicked", 77)),
            ("c", fine()),
            ("d", says("", 1)),
            ("e", fine()),
        ];
        let error = together(all, 1).unwrap_err().to_string();
        assert!(error == "broken: b, d" || error == "broken: d, b", "{error}");
        together(vec![("a", fine()), ("b", fine())], 1).unwrap();
        // One that says it is fine and looked at nothing is not.
        for said in ["", "stat::number_of_executed_units: 0"] {
            assert!(quietly(&mut says(said, 0)).unwrap_err().to_string().contains("took no input"), "{said}");
        }
    }

    #[test]
    fn every_target_runs_on_a_schedule() {
        let workflow = fs::read_to_string(shell::root().join(".github/workflows/scheduled.yml")).unwrap();
        let list = workflow.split_once("target: [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0;
        assert_eq!(list.split(", ").collect::<Vec<_>>(), targets().unwrap());
    }

    #[test]
    fn every_target_has_seeds_that_ordinary_tests_run() {
        let top = shell::root();
        let tests: String = [
            "api/tests/corpus.rs",
            "core/tests/corpus.rs",
            "machinery/tests/corpus.rs",
            "manifests/tests/corpus.rs",
            "apiserver/src/fuzz.rs",
        ]
        .iter()
        .map(|file| fs::read_to_string(top.join("crates").join(file)).unwrap())
        .collect();
        let manifest = fs::read_to_string(manifest()).unwrap();
        let targets = targets().unwrap();
        assert!(targets.len() >= 13, "{targets:?}");
        for name in targets {
            let seeds = fs::read_dir(top.join("fuzz/corpus").join(&name)).unwrap().count();
            assert!(seeds >= 12, "{name} has {seeds} seeds");
            let named = [format!("\"{name}\""), format!("corpus/{name}\"")];
            assert!(named.iter().any(|name| tests.contains(name)), "no test runs the seeds of {name}");
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in fuzz/Cargo.toml");
        }
    }
}
