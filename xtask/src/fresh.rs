//! Are the generated files in the repository what their generator makes today?
//!
//! A generated file has one row in [`GENERATED`]. `cargo xtask test` compares and never writes.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::Path;

/// A file that is made by code and kept in the repository for its readers.
pub struct Generated {
    /// Where it is, from the top of the clone.
    pub path: &'static str,
    /// What to type when it is stale.
    pub command: &'static str,
    /// Its content as it should be.
    pub make: fn() -> Result<String>,
}

/// Every generated file.
pub const GENERATED: &[Generated] = &[];

/// Fails with the list of files that differ.
pub fn check(root: &Path, files: &[Generated]) -> Result<()> {
    let mut stale = Vec::new();
    for file in files {
        let wanted = (file.make)().with_context(|| format!("cannot make {}", file.path))?;
        if fs::read_to_string(root.join(file.path)).ok().as_deref() != Some(&wanted) {
            stale.push(format!("{} is stale: {}", file.path, file.command));
        }
    }
    if !stale.is_empty() {
        bail!("{}", stale.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_and_absent_files_are_named_with_the_command_that_makes_them() {
        let temp = tempfile::tempdir().unwrap();
        let make = || Ok("new".to_owned());
        let file = |path| Generated { path, command: "make it", make };
        fs::write(temp.path().join("fresh"), "new").unwrap();
        fs::write(temp.path().join("stale"), "old").unwrap();
        check(temp.path(), &[file("fresh")]).unwrap();
        let error = check(temp.path(), &[file("fresh"), file("stale"), file("absent")]).unwrap_err();
        assert_eq!(error.to_string(), "stale is stale: make it\nabsent is stale: make it");
    }
}
