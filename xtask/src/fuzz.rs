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
use std::process::Command;

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

/// Runs one target, or all of them, for so many seconds each.
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
    for name in chosen {
        let found = folder().join("corpus").join(name);
        fs::create_dir_all(&found).context("cannot make a folder for what is found")?;
        let mut target = Command::new(folder().join(&host).join("release").join(name));
        target.arg(found).arg(shell::root().join("fuzz/corpus").join(name));
        target.args([LONGEST, "-print_final_stats=1", &format!("-max_total_time={seconds}")]);
        // What breaks it is written where it runs.
        target.current_dir(folder());
        eprintln!("{name}, {seconds} s");
        shell::run(&mut target)?;
    }
    Ok(())
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
