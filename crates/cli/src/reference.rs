//! `loadline reference`: the pages of `docs/reference`, written by the program they are about.
//!
//! Nothing of them is kept by hand: what a page lists is asked of whatever the program itself goes by. `cargo xtask codegen
//! reference` calls it, and a test compares.

mod commands;
mod events;
mod metrics;
mod settings;

use anyhow::{Context as _, Result};
use std::fs;
use std::path::Path;

/// What every page begins with.
const MADE: &str = "<!-- Made by `cargo xtask codegen reference`; a change by hand is lost. -->\n\n";

/// Writes all pages to a folder.
///
/// # Errors
/// When a component cannot be asked, or a file not be written.
pub async fn run(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let pages = [
        ("cli.md", commands::page()),
        ("events.md", events::page()),
        ("metrics.md", metrics::page().await?),
        ("settings.md", settings::page()?),
    ];
    for (name, text) in pages {
        let path = folder.join(name);
        fs::write(&path, format!("{MADE}{text}"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}
