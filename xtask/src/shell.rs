//! How are other programs called from here, and what does a person see of it?

use anyhow::{Context as _, Result, bail};
use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// The top of the clone.
pub fn root() -> PathBuf {
    let xtask =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().map_or_else(|| xtask.clone(), PathBuf::from)
}

/// Cargo, at the top of the clone, as a person would call it.
///
/// `cargo run` tells us about the package it runs through the environment. Passed on, these variables make build
/// scripts that look at them (ring's does) run again at every change between `cargo` and `cargo xtask`.
pub fn cargo<S: AsRef<str>>(args: &[S]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args.iter().map(AsRef::as_ref)).current_dir(root());
    for (name, _) in env::vars_os() {
        let ours = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
        if name.to_str().is_some_and(|name| ours.iter().any(|prefix| name.starts_with(prefix))) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs `command` with our terminal and fails if it does.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", words(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", words(command));
    }
    Ok(())
}

/// The command as typed.
pub fn words(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(name).chain(args).collect::<Vec<_>>().join(" ")
}

/// `loadline up ARGS`, built first. Cargo takes our place in the process table and the program takes cargo's: signals
/// and the exit code need nobody to pass them on.
pub fn up(args: &[String]) -> Result<ExitCode> {
    let mut cargo =
        cargo(&["run", "--profile", "up", "--package", "loadline", "--bin", "loadline", "--", "up"]);
    cargo.args(args);
    // The program runs where the person is, so that relative paths in its arguments mean what they look like.
    cargo.current_dir(env::current_dir().context("cannot tell the current folder")?);
    replace(&mut cargo)
}

#[cfg(unix)]
fn replace(command: &mut Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    let error = command.exec();
    Err(error).with_context(|| format!("cannot start {}", words(command)))
}

#[cfg(not(unix))]
fn replace(command: &mut Command) -> Result<ExitCode> {
    let status = command.status().with_context(|| format!("cannot start {}", words(command)))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// A duration as people say it: `0.4 s`, `12 s`, `3 min 05 s`.
pub fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").is_file(), "{}", root().display());
    }

    #[test]
    fn durations_read_naturally() {
        let cases =
            [(400, "0.4 s"), (9_990, "10.0 s"), (12_800, "12 s"), (59_999, "59 s"), (185_000, "3 min 05 s")];
        for (millis, text) in cases {
            assert_eq!(spoken(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn nested_cargo_is_not_told_about_this_package() {
        // Cargo sets these for tests just as it does for `cargo run`.
        assert!(env::var_os("CARGO_PKG_NAME").is_some());
        let cargo = cargo(&["build"]);
        let removed: Vec<_> =
            cargo.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert!(
            removed.contains(&"CARGO_PKG_NAME".as_ref()) && removed.contains(&"CARGO_MANIFEST_DIR".as_ref())
        );
        assert!(words(&cargo).ends_with("cargo build"));
    }
}
