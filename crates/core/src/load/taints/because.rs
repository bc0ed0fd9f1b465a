//! Why does a node get, keep or lose its taint? As data that reads as a sentence.

use super::heat::{Heat, Line};
use crate::load::ratio::Ratio;
use jiff::Timestamp;
use std::fmt;

/// Why it was decided so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// It is above a line.
    Over {
        heat: Heat,
        /// The value at which the line lies for this metric.
        line: Ratio,
    },
    /// It is no longer above the line, but not clearly below it.
    NotBelow {
        heat: Heat,
        /// The value below which the grade is left.
        line: Ratio,
    },
    /// It is clearly below a line.
    Below { heat: Heat, line: Ratio },
    /// It would change, but has not been there for long enough.
    Dwell {
        until: Timestamp,
        /// Why it would change.
        otherwise: Box<Because>,
    },
    /// Enough others are marked.
    Share {
        /// How many may be.
        allowed: usize,
        /// Of how many.
        nodes: usize,
        /// Why it would be marked.
        otherwise: Box<Because>,
    },
    /// No metric with a limit is known.
    Unknown,
    /// No pods come anyway.
    Closed,
    /// Nobody is there any more to take it off.
    Exit,
}

impl Because {
    pub(super) fn over(heat: &Heat, line: Line) -> Self {
        Self::Over { heat: heat.clone(), line: heat.at(line) }
    }

    pub(super) fn not_below(heat: &Heat, line: Line) -> Self {
        Self::NotBelow { heat: heat.clone(), line: heat.at(line) }
    }

    pub(super) fn below(heat: &Heat, line: Line) -> Self {
        Self::Below { heat: heat.clone(), line: heat.at(line) }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compared = |f: &mut fmt::Formatter<'_>, heat: &Heat, how: &str, line: &Ratio| {
            write!(f, "{} {} {how} {line}", heat.metric(), heat.value())?;
            // A line that is not the limit itself would be looked for in vain in the policy.
            if *line == heat.limit() { Ok(()) } else { write!(f, " (limit {})", heat.limit()) }
        };
        match self {
            Self::Over { heat, line } => compared(f, heat, "over", line),
            Self::NotBelow { heat, line } => compared(f, heat, "not below", line),
            Self::Below { heat, line } => compared(f, heat, "below", line),
            Self::Dwell { until, otherwise } => write!(f, "kept until {until}: {otherwise}"),
            Self::Share { allowed, nodes, otherwise } => {
                write!(f, "{otherwise}, but at most {allowed} of {nodes} nodes are tainted")
            }
            Self::Unknown => f.write_str("no metric with a limit is known"),
            Self::Closed => f.write_str("the node takes no pods anyway"),
            Self::Exit => f.write_str("load taints are no longer kept"),
        }
    }
}
