//! Printing results: to stdout, coloured only for people, and calm when the reader has gone.

use serde::Serialize;
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

/// How much tables show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What fits on a screen.
    Brief,
    /// Everything.
    Wide,
}

impl Detail {
    /// So many rows at most, if not everything is shown.
    pub fn rows(self, brief: usize) -> usize {
        match self {
            Self::Brief => brief,
            Self::Wide => usize::MAX,
        }
    }
}

/// What a command has to say, to people and to programs.
pub trait Answer {
    /// The kind of the document.
    const KIND: &'static str;

    /// For people.
    fn table(&self, detail: Detail) -> String;

    /// For programs. Field names are a promise.
    fn document(&self) -> impl Serialize;
}

/// A document, with what every document says first.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    answer: T,
}

/// Prints an answer as it is asked for.
pub fn answer<A: Answer>(answer: &A, output: Output) -> anyhow::Result<()> {
    print(&text(answer, output)?);
    Ok(())
}

/// An answer as it is asked for.
pub fn text<A: Answer>(answer: &A, output: Output) -> anyhow::Result<String> {
    let document =
        || Document { api_version: "loadline.dev/v1alpha1", kind: A::KIND, answer: answer.document() };
    Ok(match output {
        Output::Table => answer.table(Detail::Brief),
        Output::Wide => answer.table(Detail::Wide),
        Output::Json => serde_json::to_string_pretty(&document())? + "\n",
        Output::Yaml => serde_saphyr::to_string(&document())?,
    })
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
