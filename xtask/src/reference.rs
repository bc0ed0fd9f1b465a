//! The reference pages: what the program says of itself.
//!
//! The program writes them, and a test of it compares: building it once more here, only to compare, would take minutes.

use crate::fresh::Mode;
use crate::shell;
use anyhow::Result;
use std::path::Path;

/// Where the pages live.
const PAGES: &str = "docs/reference";

/// Makes the pages anew below `root`; comparing is left to the tests of the program.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    match mode {
        Mode::Write => make(&root.join(PAGES)),
        Mode::Compare | Mode::Require => Ok(()),
    }
}

fn make(out: &Path) -> Result<()> {
    let mut cargo = shell::cargo(&["run", "--quiet", "--locked", "--package", "loadline", "--", "reference"]);
    shell::run(cargo.arg(out))
}
