//! Which definitions do the kinds have that we bring along: made from the types in `crates/api`.
//!
//! The types are compiled by whoever asks for them only. That the files are what the types say is also a test of that
//! crate, so that comparing here takes no time unless everything is to be made anew.

use crate::fresh::Mode;
use crate::protobuf::{differing, files};
use crate::shell;
use anyhow::{Result, bail};
use std::path::Path;

/// Where the definitions live.
const DEFINITIONS: &str = "deploy/crds";

/// Makes the definitions anew below `root`, or compares.
///
/// [`Mode::Compare`] leaves it to the tests.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    match mode {
        Mode::Write => make(&root.join(DEFINITIONS)),
        Mode::Compare => Ok(()),
        Mode::Require => {
            let fresh = root.join("target/crds");
            // Files of another time would look like files that are missing.
            let _ = std::fs::remove_dir_all(&fresh);
            make(&fresh)?;
            let stale = differing(&files(&fresh)?, &files(&root.join(DEFINITIONS))?);
            if !stale.is_empty() {
                bail!("not fresh in {DEFINITIONS}: {}; run `cargo xtask codegen crds`", stale.join(", "));
            }
            Ok(())
        }
    }
}

fn make(out: &Path) -> Result<()> {
    let package = ["--package", "loadline-api", "--features", "schema", "--bin", "loadline-crds"];
    let mut cargo = shell::cargo(&["run", "--quiet", "--locked"]);
    shell::run(cargo.args(package).arg("--").arg(out))
}
