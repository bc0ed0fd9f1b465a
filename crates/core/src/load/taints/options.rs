//! By which lines, for how long, how many? And which answers make sense?

use crate::load::policy::Problem;
use crate::load::ratio::Ratio;
use jiff::SignedDuration;

/// What decides about taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Above this share of a limit a node is marked `high`.
    pub soft: Ratio,
    /// Above this share of a limit it is marked `over`.
    pub hard: Ratio,
    /// A grade is left below its line less this share of it.
    pub hysteresis: Ratio,
    /// How long a grade is kept at least.
    pub dwell: SignedDuration,
    /// How many of the nodes that take pods may be marked at once; 0 is none.
    pub share: Ratio,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            soft: Ratio::from_nano(900_000_000),
            hard: Ratio::ONE,
            hysteresis: Ratio::from_nano(100_000_000),
            dwell: SignedDuration::from_mins(3),
            share: Ratio::from_nano(300_000_000),
        }
    }
}

impl Options {
    /// How many of so many nodes may be marked: the share cut to a whole, at least one, never all.
    pub(super) fn allowed(&self, nodes: usize) -> usize {
        let Some(all_but_one) = nodes.checked_sub(1).filter(|_| self.share > Ratio::ZERO) else { return 0 };
        let share = self.share.floor_of(i64::try_from(nodes).unwrap_or(i64::MAX));
        usize::try_from(share).unwrap_or(usize::MAX).max(1).min(all_but_one)
    }
}

/// Everything that is wrong, with paths below `taints`.
#[must_use]
pub fn check(options: &Options) -> Vec<Problem> {
    let Options { soft, hard, hysteresis, dwell, share } = *options;
    let mut problems = Vec::new();
    let mut expect = |field: &str, fine: bool, message: String| {
        if !fine {
            problems.push(Problem::settings(format!("taints.{field}"), message));
        }
    };
    expect("soft", soft > Ratio::ZERO, format!("expected more than 0, not {soft}: every node would be hot"));
    expect("soft", soft < hard, format!("expected less than the hard line ({hard}), not {soft}"));
    expect("hard", hard > Ratio::ZERO, format!("expected more than 0, not {hard}: every node would be over"));
    expect(
        "hysteresis",
        (Ratio::ZERO..Ratio::ONE).contains(&hysteresis),
        format!("expected a ratio from 0 to less than 1, not {hysteresis}: at 1 no taint would ever go"),
    );
    expect("dwell", !dwell.is_negative(), format!("expected 0s or more, not {dwell:#}"));
    expect("share", (Ratio::ZERO..=Ratio::ONE).contains(&share), format!("{share} is not a ratio 0..1"));
    problems
}
