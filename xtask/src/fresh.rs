//! Are the generated files in the repository what their generator makes today?
//!
//! A generator has one row in [`GENERATORS`]. `cargo xtask codegen` writes, `cargo xtask test` only compares.

use crate::{codegen, crds, page, plain, protobuf, records, reference};
use anyhow::{Result, bail};
use std::path::Path;

/// What a generator is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Write its files, fetching what it reads.
    Write,
    /// Compare, if what it reads is on this machine; else say that it was not compared.
    Compare,
    /// Compare, fetching what it reads.
    Require,
}

/// Code that makes files which are kept in the repository.
#[derive(Clone, Copy)]
pub struct Generator {
    /// What it makes, for messages.
    pub name: &'static str,
    /// Works below the top of the clone; when comparing, fails with the names of the files that differ.
    pub run: fn(&Path, Mode) -> Result<()>,
}

/// Every generator.
pub const GENERATORS: &[Generator] = &[
    Generator { name: "schemas", run: codegen::run },
    Generator { name: "messages", run: protobuf::run },
    Generator { name: "crds", run: crds::run },
    Generator { name: "plain", run: plain::run },
    Generator { name: "records", run: records::run },
    Generator { name: "page", run: page::run },
    Generator { name: "reference", run: reference::run },
];

/// What can be asked for.
pub fn names() -> impl Iterator<Item = &'static str> {
    GENERATORS.iter().map(|generator| generator.name)
}

/// Has all of them write, or the one named.
pub fn write(root: &Path, name: Option<&str>) -> Result<()> {
    let asked = GENERATORS.iter().filter(|generator| name.is_none_or(|name| name == generator.name));
    run(root, &asked.copied().collect::<Vec<_>>(), Mode::Write)
}

/// Asks all `generators`, and fails with everything that is wrong rather than with the first.
pub fn run(root: &Path, generators: &[Generator], mode: Mode) -> Result<()> {
    let asked = generators.iter().filter_map(|generator| {
        let error = (generator.run)(root, mode).err()?;
        Some(format!("{}: {error:#}", generator.name))
    });
    let faults: Vec<String> = asked.collect();
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stale_generator_is_named() {
        let row = |name, run| Generator { name, run };
        let rows = [
            row("first", |_, mode| if mode == Mode::Write { Ok(()) } else { bail!("a differs") }),
            row("second", |_, _| Ok(())),
            row("third", |_, mode| if mode == Mode::Write { Ok(()) } else { bail!("b differs") }),
        ];
        let error = run(Path::new("."), &rows, Mode::Compare).unwrap_err();
        assert_eq!(error.to_string(), "first: a differs\nthird: b differs");
        run(Path::new("."), &rows, Mode::Write).unwrap();
    }
}
