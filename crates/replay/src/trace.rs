//! What did real workloads use? Series of CPU from files, plain or gzip-compressed, in two forms:
//!
//! - **rows**: no header; a name, then one number every five minutes (Bitbrains, Google 2011, `PlanetLab`);
//! - **samples**: the header `time,name,cpu`, then one sample a line, the time in seconds or as RFC 3339.
//!
//! Numbers are [thousandths of a core, cores, or percent](Unit) of what a machine was given. What is wrong with a file is told
//! all at once, and where; what only [looks wrong](doubt) is told beside the answer.

pub mod built_in;

mod doubt;
mod foreign;
mod rows;
mod samples;

pub use doubt::doubt;

use flate2::read::MultiGzDecoder;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

/// A file of series is not larger than this, unpacked.
const LARGEST: u64 = 1 << 30;
/// How many problems of one file are kept; the others are counted.
const KEPT: usize = 20;

/// What one workload used: thousandths of a core, one every five minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    pub name: Arc<str>,
    pub milli: Vec<u32>,
}

impl Series {
    /// In thousandths of a core.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.milli.iter().map(|milli| f64::from(*milli)).sum::<f64>() / self.milli.len().max(1) as f64
    }
}

/// What numbers in a file mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    Millicores,
    Cores,
    /// Of machines with so many cores.
    Percent(f64),
}

impl Unit {
    /// What a file of that name probably has.
    #[must_use]
    pub fn guess(file: &str, cores: f64) -> Self {
        if file.contains("milli") { Self::Millicores } else { Self::Percent(cores) }
    }

    /// The number in thousandths of a core, or why it cannot be one.
    fn milli(self, number: f64) -> Result<u32, String> {
        // A machine may get a little more than it was promised.
        const MOST_PERCENT: f64 = 150.0;
        const MOST_CORES: f64 = 100_000.0;
        if !number.is_finite() || number < 0.0 {
            return Err(format!("{number} cannot be an amount of CPU"));
        }
        let milli = match self {
            Self::Millicores => number,
            Self::Cores => number * 1000.0,
            Self::Percent(_) if number > MOST_PERCENT => {
                return Err(format!("{number} is more than 100 %: is it in millicores?"));
            }
            Self::Percent(cores) => number * cores * 10.0,
        };
        if milli > MOST_CORES * 1000.0 {
            return Err(format!("{number} is more than {MOST_CORES} cores: is it in another unit?"));
        }
        Ok(milli.round() as u32)
    }
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    /// Counted from one; 0 for the file as a whole.
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, message } = self;
        if *line == 0 { write!(f, "{file}: {message}") } else { write!(f, "{file}:{line}: {message}") }
    }
}

/// Everything wrong with a file, as far as it is kept.
#[derive(Debug)]
struct Problems<'f> {
    file: &'f str,
    kept: Vec<Problem>,
    more: usize,
}

impl<'f> Problems<'f> {
    fn new(file: &'f str) -> Self {
        Self { file, kept: Vec::new(), more: 0 }
    }

    fn add(&mut self, line: usize, message: impl Into<String>) {
        if self.kept.len() < KEPT {
            self.kept.push(Problem { file: self.file.to_owned(), line, message: message.into() });
        } else {
            self.more += 1;
        }
    }

    fn or(mut self, series: Vec<Series>) -> Result<Vec<Series>, Vec<Problem>> {
        if self.kept.is_empty() && series.is_empty() {
            self.add(0, "no series: expected rows of a name and numbers, or the header time,name,cpu");
        }
        if self.kept.is_empty() {
            return Ok(series);
        }
        if self.more > 0 {
            let message = format!("and {} more problems", self.more);
            self.kept.push(Problem { file: self.file.to_owned(), line: 0, message });
        }
        Err(self.kept)
    }
}

/// Reads series.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read(file: &str, bytes: &[u8], unit: Unit) -> Result<Vec<Series>, Vec<Problem>> {
    let mut problems = Problems::new(file);
    let text = match unpack(bytes) {
        Ok(text) => text,
        Err(why) => {
            problems.add(0, why);
            return problems.or(Vec::new());
        }
    };
    let first = text.lines().next().unwrap_or_default().trim();
    if let Some(what) = foreign::told(first) {
        problems.add(1, what);
        return problems.or(Vec::new());
    }
    let is_samples = samples::is_header(first);
    let series = if is_samples {
        samples::read(&text, unit, &mut problems)
    } else {
        rows::read(&text, unit, &mut problems)
    };
    problems.or(series)
}

fn unpack(bytes: &[u8]) -> Result<String, String> {
    let mut text = String::new();
    let packed = bytes.starts_with(&[0x1f, 0x8b]);
    let all = if packed {
        MultiGzDecoder::new(bytes).take(LARGEST + 1).read_to_string(&mut text)
    } else {
        bytes.take(LARGEST + 1).read_to_string(&mut text)
    };
    match all {
        Ok(size) if size as u64 > LARGEST => Err(format!("larger than {LARGEST} bytes")),
        Ok(_) => Ok(text),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests;
