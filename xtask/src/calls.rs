//! Do roles grant what components do, and no more?
//!
//! Components record what they ask of API servers; the comparison itself is in testkit, which has Helm and reads YAML.

use crate::shell;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// By this components know where to record.
pub const FOLDER: &str = "LOADLINE_RECORD_CALLS";

/// Where the tests of this run do: a folder of its own, so that nothing of an earlier one counts.
pub fn folder() -> PathBuf {
    shell::root().join("target").join("calls").join(process::id().to_string())
}

/// Compares what stands there with what we ship.
pub fn check(folder: &Path) -> Command {
    let mut cargo =
        shell::cargo(&["run", "--quiet", "--package", "loadline-testkit", "--bin", "privilege", "--"]);
    cargo.arg(folder);
    cargo
}
