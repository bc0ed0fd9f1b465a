//! How hot is a node? Its load over its limit, compared with lines without ever dividing.
//!
//! ```text
//! heat = value / limit > line    exactly when    value × 10¹⁸ > limit × line, line in quintillionths
//! ```

use crate::load::policy::{Figure, NodeRules, Rules};
use crate::load::publish::Known;
use crate::load::ratio::Ratio;
use crate::load::term::Terms;
use std::cmp::Ordering;
use std::sync::Arc;

/// A hundred thousand times the whole is as hot as anything can be: three such factors fit into 128 bits.
const MOST: Ratio = Ratio::from_nano(100_000 * Ratio::ONE.nano());

/// A share of a limit in quintillionths: the product of two ratios, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line(i128);

impl Line {
    pub(super) const WHOLE: Self = Self(1_000_000_000_000_000_000);

    /// What a grade is entered above.
    pub(super) fn entry(line: Ratio) -> Self {
        Self(i128::from(line.nano()) * i128::from(Ratio::ONE.nano()))
    }

    /// What it is left below: `line × (1 − hysteresis)`.
    pub(super) fn exit(line: Ratio, hysteresis: Ratio) -> Self {
        Self(i128::from(line.nano()) * i128::from(Ratio::ONE.nano().saturating_sub(hysteresis.nano())))
    }

    /// What is left of the whole: `1 − hysteresis`, and always something, or nothing could be divided by it.
    pub(super) fn rest(hysteresis: Ratio) -> Self {
        let most = Ratio::from_nano(Ratio::ONE.nano() - 1);
        Self::exit(Ratio::ONE, hysteresis.clamp(Ratio::ZERO, most))
    }
}

/// The metric of a node that is nearest to its limit, or furthest above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heat {
    metric: Arc<str>,
    value: Ratio,
    limit: Ratio,
}

impl Heat {
    /// One metric. None without a limit: nothing is hot then, however much it is.
    #[must_use]
    pub fn new(metric: Arc<str>, value: Ratio, limit: Ratio) -> Option<Self> {
        (limit > Ratio::ZERO).then(|| Self {
            metric,
            value: value.clamp(Ratio::ZERO, MOST),
            limit: limit.min(MOST),
        })
    }

    /// The hottest of all metrics, of equal ones the first of the policy. Like for the filter, a limit whose metric is
    /// not known does not count; none if that is true of all.
    #[must_use]
    pub fn of(terms: &Terms) -> Option<Self> {
        let known = terms.terms.iter().filter_map(|term| {
            let (value, limit) = (term.value?.ratio()?, term.limit?.ratio()?);
            Self::new(term.metric.clone(), value, limit)
        });
        Self::hottest(known)
    }

    /// The same of what could be written on the node, one per metric of [`Rules::metrics`]: who taints nodes goes by what
    /// it annotates them with.
    #[must_use]
    pub fn of_known(rules: &Rules, node: &NodeRules, known: &[Option<Known>]) -> Option<Self> {
        let known = rules.metrics().iter().zip(known).filter_map(|(metric, known)| {
            let limit =
                metric.predicate.and_then(|place| *node.limits.get(place)?).and_then(Figure::ratio)?;
            Self::new(metric.name.clone(), (*known)?.value.share, limit)
        });
        Self::hottest(known)
    }

    fn hottest(all: impl Iterator<Item = Self>) -> Option<Self> {
        all.reduce(|hottest, next| {
            let hotter = next.compare(Line::WHOLE, &hottest, Line::WHOLE) == Ordering::Greater;
            if hotter { next } else { hottest }
        })
    }

    #[must_use]
    pub fn metric(&self) -> &Arc<str> {
        &self.metric
    }

    #[must_use]
    pub fn value(&self) -> Ratio {
        self.value
    }

    #[must_use]
    pub fn limit(&self) -> Ratio {
        self.limit
    }

    pub(super) fn is_above(&self, line: Line) -> bool {
        self.against(line) == Ordering::Greater
    }

    pub(super) fn is_below(&self, line: Line) -> bool {
        self.against(line) == Ordering::Less
    }

    fn against(&self, line: Line) -> Ordering {
        let (value, limit) = (i128::from(self.value.nano()), i128::from(self.limit.nano()));
        // A line too high for the product is above any value, and stays so when it is held at the largest.
        (value * Line::WHOLE.0).cmp(&limit.saturating_mul(line.0))
    }

    /// Compares `self ÷ share` with `other ÷ its share`: a smaller share makes a node count as hotter.
    pub(super) fn compare(&self, share: Line, other: &Self, its: Line) -> Ordering {
        // Shares come from one ratio each; as billionths the product of three fits.
        let one = i128::from(Ratio::ONE.nano());
        let side = |a: &Self, b: &Self, share: Line| {
            (i128::from(a.value.nano()) * i128::from(b.limit.nano())).saturating_mul(share.0 / one)
        };
        side(self, other, its).cmp(&side(other, self, share))
    }

    /// The value at which a line lies, to be shown.
    pub(super) fn at(&self, line: Line) -> Ratio {
        let exact = i128::from(self.limit.nano()).saturating_mul(line.0);
        let nano = (exact.saturating_add(Line::WHOLE.0 / 2)).div_euclid(Line::WHOLE.0);
        Ratio::from_nano(i64::try_from(nano).unwrap_or(i64::MAX))
    }
}
