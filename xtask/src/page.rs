//! Is the page of the dashboard what its sources make? It is kept as it is built, so that Rust alone serves it.

use crate::fresh::Mode;
use crate::shell;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the page, or compares it and runs its tests. Needs Node.js.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    let web = root.join("web");
    if !has_npm() {
        match mode {
            Mode::Compare => {
                eprintln!("not compared: web/dist, which needs Node.js (npm) to build");
                return Ok(());
            }
            Mode::Write | Mode::Require => {
                bail!("npm is missing: the page of the dashboard is built with Node.js 20 or later")
            }
        }
    }
    // What was got before is good as long as the lock file says the same.
    let (lock, got) = (web.join("package-lock.json"), web.join("node_modules/.package-lock.json"));
    if !got.is_file() || is_newer(&lock, &got) {
        if mode == Mode::Compare {
            eprintln!("not compared: web/dist (get what it is built with: cd web && npm ci)");
            return Ok(());
        }
        npm(&web, &["ci", "--no-audit", "--no-fund"])?;
    }
    match mode {
        Mode::Write => npm(&web, &["run", "build"]),
        Mode::Compare => npm(&web, &["run", "check"]),
        Mode::Require => npm(&web, &["run", "check"]).and_then(|()| npm(&web, &["test"])),
    }
}

fn has_npm() -> bool {
    let found = Command::new("npm").arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

fn is_newer(one: &PathBuf, other: &PathBuf) -> bool {
    let at = |path: &PathBuf| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    at(one) > at(other)
}

fn npm(web: &Path, args: &[&str]) -> Result<()> {
    let mut command = Command::new("npm");
    command.args(args).current_dir(web);
    shell::run(&mut command).context("the page of the dashboard")
}
