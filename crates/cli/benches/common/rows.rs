//! What was measured, as lines of JSON for whoever compares several runs (`cargo xtask bench peers`).

use anyhow::{Context as _, Result};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::Write as _;

/// The file rows are added to; without it they are only printed for people.
const FILE: &str = "LOADLINE_BENCH_ROWS";

#[derive(Debug, Serialize)]
pub struct Row<'a> {
    /// What was measured, and of whom.
    pub bench: &'a str,
    pub side: &'a str,
    /// How many a second.
    pub rate: f64,
    /// Resident at most, of the one that is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub megabytes: Option<f64>,
    /// In milliseconds, where each answer was timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
}

impl Row<'_> {
    pub fn keep(&self) -> Result<()> {
        let Some(file) = std::env::var_os(FILE) else { return Ok(()) };
        let mut opened = OpenOptions::new().create(true).append(true).open(&file).context(FILE)?;
        writeln!(opened, "{}", serde_json::to_string(self)?).context(FILE)
    }
}
