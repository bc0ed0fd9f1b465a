//! How do I see all of it on a real node?

use crate::{control_plane, shell};
use anyhow::{Context as _, Result, bail};
use loadline_testkit::parts::Group;
use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Gets the parts, builds the program, and hands over to whoever starts them all and takes them down again.
pub fn run() -> Result<ExitCode> {
    if !cfg!(target_os = "linux") {
        bail!("a real node needs Linux; `cargo xtask up` needs nothing");
    }
    let groups = [Group::ControlPlane, Group::Node];
    control_plane::ensure(&groups)?;
    control_plane::unpack(&groups)?;
    shell::run(&mut shell::cargo(&[
        "build",
        "--profile",
        "up",
        "--package",
        "loadline",
        "--bin",
        "loadline",
    ]))?;
    shell::run(&mut shell::cargo(&["build", "--package", "loadline-testkit", "--bin", "real"]))?;
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| shell::root().join("target"), PathBuf::from);
    let mut real = Command::new(folder.join("debug").join("real"));
    // Ctrl-C ends us alone; it sees the end of the pipe, and has the time to take everything down.
    real.arg(folder.join("up").join("loadline")).stdin(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut real, 0);
    let mut real = real.spawn().context("cannot start the node")?;
    let held = real.stdin.take();
    let status = real.wait().context("cannot wait for the node")?;
    drop(held);
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
