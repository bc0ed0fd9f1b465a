//! Printing results: to stdout, coloured only for people, and calm when the reader has gone.

use std::io::{IsTerminal, Write};

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
