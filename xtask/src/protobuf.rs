//! Which Rust do the protobuf messages become: made by the package `xtask/protobuf`, without protoc.
//!
//! The generator is apart, so that only who needs it waits for it to be built. What it made last is recorded with a
//! fingerprint of everything it was made from: comparing that takes no time.

use crate::fresh::Mode;
use crate::shell;
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Where the messages are.
const PROTOS: &str = "crates/api/proto";
/// Below here lives what is made of them.
const SOURCES: &str = "crates/api/src";
/// Where exactly: a folder per schema.
const GENERATED: [&str; 2] = ["cri/generated", "estimator/generated"];
const GENERATOR: &str = "xtask/protobuf";
/// The fingerprint of what was read, beside what was made.
const RECORD: &str = "made-from.txt";

/// Makes the Rust code anew below `root`, or compares.
///
/// [`Mode::Compare`] only looks whether what it is made from has changed since.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    let record = fingerprint(root)?;
    let sources = root.join(SOURCES);
    match mode {
        Mode::Write => make(root, &sources, &record)?,
        Mode::Compare => {
            let recorded = |folder: &str| std::fs::read_to_string(sources.join(folder).join(RECORD)).ok();
            if GENERATED.iter().any(|folder| recorded(folder).as_deref() != Some(record.as_str())) {
                bail!("{PROTOS} or {GENERATOR} has changed; run `cargo xtask codegen`");
            }
        }
        Mode::Require => {
            let fresh = root.join("target/protobuf");
            // Files of another time would look like files that are missing.
            let _ = std::fs::remove_dir_all(&fresh);
            make(root, &fresh, &record)?;
            let mut stale = Vec::new();
            for folder in GENERATED {
                let differing = differing(&files(&fresh.join(folder))?, &files(&sources.join(folder))?);
                stale.extend(differing.iter().map(|name| format!("{folder}/{name}")));
            }
            if !stale.is_empty() {
                bail!("not fresh in {SOURCES}: {}; run `cargo xtask codegen`", stale.join(", "));
            }
        }
    }
    Ok(())
}

/// Makes all of it below `out`, each folder with what it was made from.
fn make(root: &Path, out: &Path, record: &str) -> Result<()> {
    for folder in GENERATED {
        std::fs::create_dir_all(out.join(folder)).with_context(|| format!("create {folder}"))?;
    }
    let manifest = format!("{GENERATOR}/Cargo.toml");
    let mut cargo = shell::cargo(&["run", "--quiet", "--locked", "--manifest-path", &manifest, "--"]);
    shell::run(cargo.arg(root.join(PROTOS)).arg(out))?;
    for folder in GENERATED {
        std::fs::write(out.join(folder).join(RECORD), record).context("write what it was made from")?;
    }
    Ok(())
}

/// Everything in a folder, by name.
pub fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut out = BTreeMap::new();
    for entry in entries {
        let path = entry.with_context(|| format!("list {}", folder.display()))?.path();
        if path.is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            out.insert(name, std::fs::read(&path).with_context(|| format!("read {}", path.display()))?);
        }
    }
    Ok(out)
}

/// The names of files that are not the same in both.
pub fn differing(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let mut names: Vec<String> = one.keys().chain(other.keys()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| one.get(name) != other.get(name));
    names
}

/// One line per file that is read: its name and a number that changes with its content.
fn fingerprint(root: &Path) -> Result<String> {
    let mut out = String::new();
    for folder in [PathBuf::from(PROTOS), PathBuf::from(GENERATOR), Path::new(GENERATOR).join("src")] {
        for (name, content) in files(&root.join(&folder))? {
            let path = folder.join(name);
            writeln!(out, "{:016x} {}", fnv(&content), path.display()).context("write a line")?;
        }
    }
    Ok(out)
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_message_is_noticed_and_named() {
        let root = tempfile::tempdir().unwrap();
        let sources = root.path().join(SOURCES);
        let generated = GENERATED.map(|folder| sources.join(folder));
        for folder in
            [PROTOS, "xtask/protobuf/src"].map(|folder| root.path().join(folder)).iter().chain(&generated)
        {
            std::fs::create_dir_all(folder).unwrap();
        }
        let proto = root.path().join(PROTOS).join("a.proto");
        std::fs::write(&proto, "message A {}").unwrap();
        let record = fingerprint(root.path()).unwrap();
        assert!(record.ends_with(" crates/api/proto/a.proto\n"), "{record}");
        for (index, folder) in generated.iter().enumerate() {
            assert!(run(root.path(), Mode::Compare).is_err(), "{index} of {} are made", generated.len());
            std::fs::write(folder.join(RECORD), &record).unwrap();
        }
        run(root.path(), Mode::Compare).unwrap();
        std::fs::write(&proto, "message B {}").unwrap();
        let error = run(root.path(), Mode::Compare).unwrap_err();
        assert!(error.to_string().contains("run `cargo xtask codegen`"), "{error}");
    }

    #[test]
    fn files_that_differ_or_are_on_one_side_only_are_named() {
        let files = |names: &[(&str, &str)]| {
            names.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
        };
        let (one, other) = (files(&[("a", "1"), ("b", "1"), ("c", "1")]), files(&[("a", "1"), ("b", "2")]));
        assert_eq!(differing(&one, &other), ["b", "c"]);
        assert_eq!(differing(&other, &one), ["b", "c"]);
    }
}
