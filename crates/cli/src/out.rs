//! Printing results: to stdout, coloured only for people, and calm when the reader has gone.

use serde::Serialize;
use std::fmt;
use std::io::{IsTerminal, Write};

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
}

/// Input that was refused: every problem on a line of its own.
#[derive(Debug)]
pub struct Refused(Vec<String>);

impl Refused {
    /// From problems that display as one line each.
    pub fn new<P: fmt::Display>(problems: Vec<P>) -> Self {
        Self(problems.into_iter().map(|problem| problem.to_string()).collect())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Refused {}

/// Prints an answer as a document: YAML where that is asked for, else JSON.
pub fn document(format: Output, answer: &impl Serialize) -> anyhow::Result<()> {
    if format == Output::Yaml {
        print(&serde_saphyr::to_string(answer)?);
    } else {
        line(&serde_json::to_string_pretty(answer)?);
    }
    Ok(())
}

/// Prints as is. A closed pipe is not our failure: whoever closed it has seen enough.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Prints a line.
pub fn line(text: &str) {
    print(&format!("{text}\n"));
}

/// Text that stands out on a terminal.
pub fn bold(text: &str) -> String {
    styled(text, "1")
}

/// Text that stands back on a terminal.
pub fn dim(text: &str) -> String {
    styled(text, "2")
}

fn styled(text: &str, style: &str) -> String {
    let plain =
        !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    if plain { text.to_owned() } else { format!("\x1b[{style}m{text}\x1b[0m") }
}
