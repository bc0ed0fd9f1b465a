//! How far is it? One line that is written over, on a terminal; nothing elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often the line is written.
const PACE: Duration = Duration::from_millis(200);
const WIDTH: usize = 30;

/// A line that grows.
#[derive(Debug)]
pub struct Bar {
    /// What is done, and of what it is a part.
    what: &'static str,
    of: String,
    runs: usize,
    /// When it was last written; nothing if nobody looks.
    last: Option<Mutex<Instant>>,
}

impl Bar {
    pub fn new(runs: usize) -> Self {
        Self { what: "replaying", of: format!(" of {runs} runs"), ..Self::of_runs(runs) }
    }

    /// Of what is read before.
    pub fn reading() -> Self {
        Self { what: "reading", ..Self::of_runs(1) }
    }

    fn of_runs(runs: usize) -> Self {
        Self {
            what: "",
            of: String::new(),
            runs,
            last: std::io::stderr().is_terminal().then(|| Mutex::new(Instant::now())),
        }
    }

    /// So many runs are done, or parts of them.
    pub fn tell(&self, done: f64) {
        let Some(Ok(mut last)) = self.last.as_ref().map(Mutex::lock) else { return };
        if last.elapsed() < PACE {
            return;
        }
        *last = Instant::now();
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r{}", self.line(done));
        let _ = err.flush();
    }

    /// What it says then.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few runs"
    )]
    fn line(&self, done: f64) -> String {
        let share = (done / self.runs.max(1) as f64).clamp(0.0, 1.0);
        let full = (share * WIDTH as f64) as usize;
        let bar = "#".repeat(full) + &".".repeat(WIDTH - full);
        format!("{} [{bar}] {:3.0} %{} ", self.what, share * 100.0, self.of)
    }

    /// It is over: the line goes.
    pub fn end(&self) {
        if self.last.is_some() {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r{:70}\r", "");
            let _ = err.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_grows_with_what_is_done_and_is_always_as_wide() {
        let bar = Bar::new(4);
        assert_eq!(bar.line(0.0), "replaying [..............................]   0 % of 4 runs ");
        assert_eq!(bar.line(1.0), "replaying [#######.......................]  25 % of 4 runs ");
        assert_eq!(bar.line(9.0), "replaying [##############################] 100 % of 4 runs ");
        let widths: Vec<usize> = (0..=40_u32).map(|tenth| bar.line(f64::from(tenth) / 10.0).len()).collect();
        assert!(
            widths.iter().all(|width| *width == widths[0]),
            "what is written over is covered: {widths:?}"
        );
        assert!(widths[0] < 70, "and goes when it is over");
    }
}
