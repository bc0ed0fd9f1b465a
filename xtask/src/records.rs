//! What do Kubernetes' own Go libraries answer: recorded by small Go programs below `tests`.
//!
//! What a running kube-apiserver answers is recorded and compared by tests of `crates/apiserver`, see its README.

use crate::fresh::Mode;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::Command;

/// One program and what it writes.
struct Recorder {
    /// Its module.
    module: &'static str,
    args: &'static [&'static str],
    wrote: Wrote,
}

enum Wrote {
    /// This file, to standard output.
    Output(&'static str),
    /// These files, to the folder named by one more argument.
    Folder(&'static str, &'static [&'static str]),
}

const RECORDERS: &[Recorder] = &[
    Recorder {
        module: "tests/vectors-go",
        args: &[".", "-out"],
        wrote: Wrote::Folder(
            "vectors",
            &[
                "machinery/label-selector.json",
                "machinery/quantity-arithmetic.json",
                "machinery/quantity.json",
                "core/node-affinity.json",
                "core/pod-resources.json",
                "core/toleration.json",
            ],
        ),
    },
    Recorder {
        module: "tests/recorders/apiserver",
        args: &["./shape"],
        wrote: Wrote::Output("crates/apiserver/recorded/types.txt"),
    },
    Recorder {
        module: "tests/recorders/apiserver",
        args: &["./protobuf", "table"],
        wrote: Wrote::Output("crates/machinery/recorded/messages.txt"),
    },
    Recorder {
        module: "tests/recorders/apiserver",
        args: &["./protobuf", "vectors"],
        wrote: Wrote::Output("crates/machinery/recorded/protobuf.txt"),
    },
    Recorder {
        module: "tests/recorders/apiserver",
        args: &["./protobuf", "event", "../../../crates/api/tests/decode/pod.json"],
        wrote: Wrote::Output("crates/api/tests/decode/pod.pb"),
    },
];

/// Records anew below `root`, or compares with what would be recorded.
///
/// [`Mode::Compare`] does not: building the programs takes Go, and a minute.
pub fn run(root: &Path, mode: Mode) -> Result<()> {
    if mode == Mode::Compare {
        return Ok(());
    }
    let mut stale = Vec::new();
    for recorder in RECORDERS {
        for (path, bytes) in recorder.record(root)? {
            let target = root.join(&path);
            if mode == Mode::Write {
                std::fs::write(&target, bytes).with_context(|| format!("write {path}"))?;
            } else if std::fs::read(&target).ok() != Some(bytes) {
                stale.push(path);
            }
        }
    }
    if !stale.is_empty() {
        bail!("not fresh: {}; run `cargo xtask codegen records`", stale.join(", "));
    }
    Ok(())
}

impl Recorder {
    /// What it writes today, by path below `root`.
    fn record(&self, root: &Path) -> Result<Vec<(String, Vec<u8>)>> {
        let mut go = Command::new("go");
        go.arg("run").args(self.args).current_dir(root.join(self.module)).env("GOWORK", "off");
        match &self.wrote {
            Wrote::Output(path) => Ok(vec![((*path).to_owned(), output(&mut go)?)]),
            Wrote::Folder(folder, names) => {
                let fresh = root.join("target/records");
                output(go.arg(&fresh))?;
                let read = |name: &&str| {
                    let bytes = std::fs::read(fresh.join(name)).with_context(|| format!("read {name}"))?;
                    Ok((format!("{folder}/{name}"), bytes))
                };
                names.iter().map(read).collect()
            }
        }
    }
}

fn output(go: &mut Command) -> Result<Vec<u8>> {
    let output = go.output().context("cannot start go")?;
    if !output.status.success() {
        let words: Vec<_> = go.get_args().map(|arg| arg.to_string_lossy()).collect();
        bail!("go {} failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[test]
    fn every_recorded_file_and_its_program_are_there() {
        let root = shell::root();
        for recorder in RECORDERS {
            assert!(root.join(recorder.module).join("go.mod").is_file(), "{}", recorder.module);
            let files: Vec<String> = match recorder.wrote {
                Wrote::Output(path) => vec![path.to_owned()],
                Wrote::Folder(folder, names) => names.iter().map(|name| format!("{folder}/{name}")).collect(),
            };
            for file in files {
                assert!(root.join(&file).is_file(), "{file}");
            }
        }
    }
}
