//! What is known of each metric right now? Values with their age and source, or why there is none.
//!
//! A node's annotations are parsed once, when the node changes ([`Seen`]); what they are worth depends on the
//! time and is asked per decision ([`evaluate`]). The answer says until when it holds by itself, so that it need
//! not be asked again before.
//!
//! By default a five-minute metric comes from our own samples ([`Derived`]) while these are recent, else from its
//! annotation; the longer ones come from the annotation, else from the samples, with a note while these do not
//! reach back far enough. A stamp a little ahead of us is a clock that differs and counts as now; one far ahead is
//! a mistake and unreadable. Upstream mode knows annotations only and trusts any stamp from the future.

use super::annotation::{self, Unreadable};
use super::policy::{Derivable, Figure, Metric, NodeRules, Range, Rules};
use super::ratio::Ratio;
use super::score::Hot;
use super::settings::Mode;
use super::{Both, Load, Metered};
use crate::ledger::History;
use crate::select::Lookup;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// How far ahead of us a stamp may be.
pub const AHEAD: SignedDuration = SignedDuration::from_secs(30);

/// How old the newest sample may be for a five-minute mean, or for any figure the policy gives no window.
pub const RECENT: SignedDuration = SignedDuration::from_secs(300);

/// Load over capacity, worked out from the samples we hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Derived {
    /// The time of the newest sample.
    pub at: Timestamp,
    /// How far back the samples reach.
    pub since: Timestamp,
    /// The mean of the last five minutes.
    pub avg_5m: Both<Option<Ratio>>,
    /// The largest such mean of the last hour.
    pub max_1h: Both<Option<Ratio>>,
    /// The largest such mean of the last day.
    pub max_1d: Both<Option<Ratio>>,
}

impl Derived {
    /// The shares of what a node has in all; of what it does not say it has, none.
    #[must_use]
    pub fn new(history: &History, capacity: Both<Option<i64>>) -> Self {
        let share = |load: Load| {
            let of = |r: Metered| capacity.get(r).and_then(|whole| Ratio::of(load.get(r), whole));
            Both { cpu: of(Metered::Cpu), memory: of(Metered::Memory) }
        };
        Self {
            at: history.newest,
            since: history.since,
            avg_5m: share(history.mean_5m),
            max_1h: share(history.max_1h),
            max_1d: share(history.max_1d),
        }
    }

    /// One of the six figures.
    #[must_use]
    pub fn get(&self, figure: Derivable) -> Option<Ratio> {
        let of = match figure.range {
            Range::Avg5m => &self.avg_5m,
            Range::Max1h => &self.max_1h,
            Range::Max1d => &self.max_1d,
        };
        of.get(figure.resource)
    }
}

/// An annotation as far as it can be judged without knowing the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Read {
    /// There is none.
    Absent,
    /// It is no value and time.
    Unreadable(Unreadable),
    /// It has a time. Whether the value reads matters only if that is recent.
    At(Timestamp, Result<Figure, Unreadable>),
}

impl Read {
    /// Reads one annotation by the rules of the mode.
    #[must_use]
    pub fn new(rules: &Rules, text: Option<&str>) -> Self {
        let zone = rules.settings().time_zone.as_ref();
        let Some(text) = text else { return Self::Absent };
        let read = match rules.mode() {
            Mode::Default => annotation::read(text, zone),
            Mode::Upstream => annotation::read_upstream(text, zone),
        };
        read.map_or_else(Self::Unreadable, |reading| Self::At(reading.at, reading.value))
    }
}

/// What was seen of a node, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// One per metric of [`Rules::metrics`].
    pub readings: Vec<Read>,
    /// The hot value written on it.
    pub hot: Read,
    /// What our samples say.
    pub derived: Option<Derived>,
}

impl Seen {
    /// Parses the annotations the policy asks for.
    pub fn new<A: Lookup + ?Sized>(rules: &Rules, annotations: &A, derived: Option<Derived>) -> Self {
        let read = |key: &str| Read::new(rules, annotations.value(key));
        Self {
            readings: rules.metrics().iter().map(|metric| read(&metric.name)).collect(),
            hot: read(annotation::HOT_VALUE),
            derived,
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// The node's annotation.
    Annotation,
    /// Our samples of the metrics API.
    Metrics,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Annotation => "annotation",
            Self::Metrics => "metrics",
        })
    }
}

/// Why a value is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unknown {
    /// Nobody says anything.
    Missing,
    /// What is said is no value and time.
    Malformed,
    /// It is too old.
    Expired,
    /// Its time is yet to come.
    Future,
    /// It is less than nothing.
    Negative,
}

impl From<Unreadable> for Unknown {
    fn from(why: Unreadable) -> Self {
        match why {
            Unreadable::Malformed => Self::Malformed,
            Unreadable::Negative => Self::Negative,
        }
    }
}

/// What is known of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Which.
    pub metric: Arc<str>,
    /// How much; `None` if not known.
    pub value: Option<Figure>,
    /// The node's limit, if it has one.
    pub limit: Option<Figure>,
    /// What it weighs in the score, if it does.
    pub weight: Option<Figure>,
    /// When it was so.
    pub at: Option<Timestamp>,
    /// How long ago that is, in whole seconds.
    pub age_seconds: Option<i64>,
    /// How old it may be.
    pub window_seconds: Option<i64>,
    /// Who says so.
    pub source: Option<Source>,
    /// Why it is not known, if it is not; also of a value that is no number, which only upstream mode counts.
    pub reason: Option<Unknown>,
    /// What else there is to say.
    pub note: Option<&'static str>,
}

/// What is known of a node's metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// One per metric of [`Rules::metrics`].
    pub terms: Vec<Term>,
    /// When this changes even if nothing happens; ages aside, it is the same until then.
    pub valid_until: Option<Timestamp>,
}

/// Said of a figure over a range our samples do not cover yet.
pub const SHORT_HISTORY: &str = "short history";
/// Said of an annotation that cannot be judged.
pub const NOT_FETCHED: &str = "no syncPolicy entry";

fn not_finite(value: Figure) -> &'static str {
    if value.to_f64().is_nan() {
        "NaN, counted as crane counts it"
    } else {
        "+Inf, counted as crane counts it"
    }
}

/// What is known of every metric of the policy at a time.
#[must_use]
pub fn evaluate(rules: &Rules, node: &NodeRules, seen: &Seen, now: Timestamp) -> Terms {
    let mut valid_until = None;
    let readings = seen.readings.iter().chain(std::iter::repeat(&Read::Absent));
    let terms = rules
        .metrics()
        .iter()
        .zip(readings)
        .map(|(metric, read)| {
            let annotated = annotated(rules.mode(), metric, *read, now);
            let best = match (rules.mode(), metric.derivable) {
                (Mode::Default, Some(figure)) => {
                    let sampled = sampled(metric, figure, seen.derived.as_ref(), now);
                    if figure.range == Range::Avg5m { sampled.or(annotated) } else { annotated.or(sampled) }
                }
                _ => annotated,
            };
            valid_until = earlier(valid_until, best.changes);
            let (value, reason, remark) = match best.value {
                // Crane counts what is no number, and what comes of it is hard to believe without a word.
                Ok(value) if !value.to_f64().is_finite() => {
                    (Some(value), Some(Unknown::Malformed), Some(not_finite(value)))
                }
                Ok(value) => (Some(value), None, best.note),
                Err(why) => (None, Some(why), best.note),
            };
            let limit = metric.predicate.and_then(|i| node.limits.get(i).copied().flatten());
            Term {
                metric: metric.name.clone(),
                value,
                limit,
                weight: metric.weight,
                at: best.at,
                age_seconds: best.at.map(|at| age(at, now).as_secs()),
                window_seconds: best.window.map(|window| window.as_secs()),
                source: value.map(|_| best.source),
                reason,
                note: remark,
            }
        })
        .collect();
    Terms { terms, valid_until }
}

/// The hot value written on a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrittenHot {
    /// What it is, or why that is not known.
    pub value: Result<Hot, Unknown>,
    /// When that changes by itself.
    pub changes: Option<Timestamp>,
}

/// The hot value written on a node at a time.
#[must_use]
pub fn written_hot(rules: &Rules, seen: &Seen, now: Timestamp) -> WrittenHot {
    let found = aged(rules.mode(), Some(annotation::HOT_WINDOW), seen.hot, now);
    let hot = |value| match value {
        Figure::Float(float) => Hot::Float(float),
        Figure::Exact(ratio) => Hot::exact(ratio),
    };
    WrittenHot { value: found.value.map(hot), changes: found.changes }
}

/// What one source knows of a metric, and when that changes by itself.
#[derive(Clone, Copy)]
struct Found {
    value: Result<Figure, Unknown>,
    at: Option<Timestamp>,
    window: Option<SignedDuration>,
    source: Source,
    changes: Option<Timestamp>,
    note: Option<&'static str>,
}

impl Found {
    /// This, or the other if nothing is known here.
    fn or(self, other: Self) -> Self {
        match (self.value, other.value) {
            (Ok(_), _) => self,
            // The better story: the first, unless it is that there is none.
            (Err(why), Err(_)) if why != Unknown::Missing => {
                Self { changes: earlier(self.changes, other.changes), ..self }
            }
            _ => Self { changes: earlier(self.changes, other.changes), ..other },
        }
    }
}

fn annotated(mode: Mode, metric: &Metric, read: Read, now: Timestamp) -> Found {
    aged(mode, metric.window, read, now)
}

/// Is an annotation good now? Without a window nobody can tell, so it is not used.
fn aged(mode: Mode, window: Option<SignedDuration>, read: Read, now: Timestamp) -> Found {
    let found =
        |value, at, changes, note| Found { value, at, window, source: Source::Annotation, changes, note };
    let Some(window) = window else {
        return found(Err(Unknown::Missing), None, None, Some(NOT_FETCHED));
    };
    match read {
        Read::Absent => found(Err(Unknown::Missing), None, None, None),
        Read::Unreadable(why) => found(Err(why.into()), None, None, None),
        Read::At(at, value) => {
            if mode == Mode::Default && at.duration_since(now) > AHEAD {
                let readable = at.checked_sub(AHEAD).ok();
                return found(Err(Unknown::Future), Some(at), readable, None);
            }
            // An end past all time never comes.
            let end = at.checked_add(window).ok();
            if end.is_some_and(|end| now >= end) {
                return found(Err(Unknown::Expired), Some(at), None, None);
            }
            found(value.map_err(Unknown::from), Some(at), end, None)
        }
    }
}

/// What our samples say. They are good as long as an annotation would be; a five-minute mean for as long as it
/// spans.
fn sampled(metric: &Metric, figure: Derivable, derived: Option<&Derived>, now: Timestamp) -> Found {
    let window = match figure.range {
        Range::Avg5m => RECENT,
        _ => metric.window.unwrap_or(RECENT),
    };
    let found = |value, at, changes, note| Found {
        value,
        at,
        window: Some(window),
        source: Source::Metrics,
        changes,
        note,
    };
    let Some((derived, value)) = derived.and_then(|d| Some((d, d.get(figure)?))) else {
        return Found { window: metric.window, ..found(Err(Unknown::Missing), None, None, None) };
    };
    let at = derived.at;
    if at.duration_since(now) > AHEAD {
        return found(Err(Unknown::Future), Some(at), at.checked_sub(AHEAD).ok(), None);
    }
    if now.duration_since(at) > window {
        return found(Err(Unknown::Expired), Some(at), None, None);
    }
    // Good up to and including the window, so it changes right after.
    let end = at.checked_add(window + SignedDuration::from_nanos(1)).ok();
    let short = figure.range != Range::Avg5m && at.duration_since(derived.since) < figure.range.length();
    found(Ok(Figure::Exact(value)), Some(at), end, short.then_some(SHORT_HISTORY))
}

/// Stamps a little ahead of us count as now.
fn age(at: Timestamp, now: Timestamp) -> SignedDuration {
    now.duration_since(at).max(SignedDuration::ZERO)
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
