//! What if a test fails only now and then? The programs that failed are run once more, alone, and the run says which.
//!
//! Most tests start real servers on a machine that does other things, too. One that fails twice is wrong; one that fails and
//! then passes is *unsteady*: that does not end a run of an hour, and it is not silent either, because its first failure stands in the
//! output and its name at the end of it. More than a few at once are no coincidence.

use crate::shell;
use anyhow::{Context as _, Result, bail};
use std::io::{BufRead as _, BufReader, Write};
use std::process::{Command, Stdio};

/// So many programs may fail at first.
const FEW: usize = 2;
/// How cargo says what to do about a program whose tests failed: what follows, up to the next backtick, are its arguments.
const HINT: &str = "to rerun pass `";

/// Runs `cargo test …`, and what failed of it once more. Returns what passed only then, as cargo calls it.
pub fn run(command: &mut Command) -> Result<Vec<String>> {
    run_to(command, &mut std::io::stderr())
}

fn run_to(command: &mut Command, out: &mut impl Write) -> Result<Vec<String>> {
    command.stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", shell::words(command)))?;
    let mut failed = Vec::new();
    if let Some(said) = child.stderr.take() {
        for line in BufReader::new(said).split(b'\n') {
            let line = line?;
            failed.extend(program(&String::from_utf8_lossy(&line)));
            out.write_all(&line)?;
            out.write_all(b"\n")?;
        }
    }
    let status = child.wait()?;
    if status.success() {
        return Ok(Vec::new());
    }
    // It may have failed before any test: then there is nothing to run again.
    if failed.is_empty() || failed.len() > FEW {
        bail!("{} ended with {status}", shell::words(command));
    }
    for args in &failed {
        eprintln!("failed, and is run once more, alone: {args}");
        let mut again = shell::cargo(&["test", "--all-features"]);
        again.args(args.split_whitespace());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                again.env(name, value);
            }
        }
        shell::run(&mut again).context("failed twice")?;
    }
    Ok(failed)
}

/// Of a line of cargo's, which program is to be run again.
fn program(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(HINT)?;
    rest.split_once('`').map(|(args, _)| args.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_read_from_what_cargo_says() {
        let table = [
            (
                "error: test failed, to rerun pass `-p loadline --test leader`",
                Some("-p loadline --test leader"),
            ),
            ("error: doctest failed, to rerun pass `-p loadline-core --doc`", Some("-p loadline-core --doc")),
            ("error: 1 target failed:", None),
            ("    `-p loadline --test leader`", None),
        ];
        for (line, args) in table {
            assert_eq!(program(line).as_deref(), args, "{line}");
        }
    }

    /// Not to our own output, where whoever runs these tests looks for the very same words.
    fn run(mut command: Command) -> Result<Vec<String>> {
        run_to(&mut command, &mut std::io::sink())
    }

    /// A program that says what cargo says, and ends as asked.
    fn says(lines: &str, code: u8) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("printf '%s\\n' '{lines}' >&2; exit {code}")]);
        shell
    }

    #[test]
    fn what_fails_twice_fails_and_so_does_what_many_fail_of() {
        assert_eq!(run(says("fine", 0)).unwrap(), Vec::<String>::new());
        // Not a test: nothing is run again.
        assert!(run(says("error: could not compile", 101)).is_err());
        let hint = |name: &str| format!("error: test failed, to rerun pass `-p {name} --lib`");
        // There is no such package: it fails the second time, too.
        let error = run(says(&hint("there-is-no-such-package"), 101)).unwrap_err();
        assert_eq!(error.to_string(), "failed twice");
        let many = ["a", "b", "c"].map(hint).join("\n");
        let error = run(says(&many, 101)).unwrap_err();
        assert!(error.to_string().contains("ended with"), "{error}");
    }
}
