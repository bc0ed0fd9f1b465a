//! How is a metric measured? From the text of a file, and from what the file said before.
//!
//! A [`Collector`] stands beside everything else that is known of its metric. It reads nothing itself: whoever runs it hands it
//! the text of its file, unchanged to the last newline, and the text it was handed the time before.
//!
//! What there is to say of a series comes in three ways, and unknown is never zero:
//!
//! | it gives | means |
//! |---|---|
//! | a value | measured |
//! | a series without a value | it is there, and what the file says of it is no measurement: damaged, cut, a counter that went backwards, no time between two looks |
//! | no series | not there yet: a rate has been looked at only once |
//!
//! A text that does not end with a newline was cut, as the kernel ends every line: its last line is not believed, since a number
//! that lost its last digits still is a number.

mod text;

pub use text::{Stall, Stalled, stalled};
pub(super) use text::{counter, counters, decimal, lines, named};

use super::cgroup::{Figure, Version};
use super::level::Level;
use crate::view::Labels;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a file said, and when.
#[derive(Clone, Copy, Debug)]
pub struct Look<'t> {
    pub text: &'t str,
    /// Since any fixed moment of a clock that only goes forward.
    pub at: Duration,
}

/// What there is to know of the machine besides the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Logical CPUs; 0: not known, then the files are asked.
    pub cores: u32,
    /// Network interfaces that count; none: all but the loopback.
    pub interfaces: Vec<Arc<str>>,
    /// Whole disks, as in `/sys/block`.
    pub disks: Vec<Arc<str>>,
    /// Is waiting for disks busy?
    pub count_iowait: bool,
}

/// One series of a metric, in the metric's unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub labels: Labels,
    /// None: what the file says is no measurement.
    pub value: Option<Level>,
}

impl Found {
    /// The only series of a metric.
    pub(super) fn only(value: Option<Level>) -> Vec<Self> {
        vec![Self { labels: Labels::default(), value }]
    }

    /// One of many.
    pub(super) fn of(label: &str, name: &str, value: Option<Level>) -> Self {
        let labels = BTreeMap::from([(label.to_owned(), name.to_owned())]);
        Self { labels: Labels::plain(&labels), value }
    }
}

/// How a metric is measured.
#[derive(Clone, Copy, Debug)]
pub struct Collector {
    /// The file, below the root of the node's file system, such as `proc/stat`.
    pub file: &'static str,
    /// What the file says now, given what it said before.
    pub read: fn(&Machine, Look<'_>, Option<Look<'_>>) -> Vec<Found>,
}

/// How what each pod uses of a metric is measured: from a file of its cgroup.
#[derive(Clone, Copy, Debug)]
pub struct OfPods {
    pub figure: Figure,
    /// What the file says now, given what it said before; none if that is no measurement, or not yet one.
    pub read: fn(Version, Look<'_>, Option<Look<'_>>) -> Option<Level>,
}

/// From one moment to another: none if no time passed, or the clock went backwards.
pub(super) fn elapsed(now: Duration, before: Duration) -> Option<Duration> {
    now.checked_sub(before).filter(|passed| !passed.is_zero())
}

/// How far a counter moved; none if it went backwards.
pub(super) fn moved(now: u64, before: u64) -> Option<u64> {
    now.checked_sub(before)
}

/// `moved × by / over` per second, down to a billionth: 3 000 sectors in 1.5 s, by 1 over 2, are 1 000 KiB/s.
pub(super) fn per_second(moved: u64, (by, over): (u32, u32), passed: Duration) -> Option<Level> {
    let nanos = i128::try_from(passed.as_nanos()).ok().filter(|nanos| *nanos > 0)?;
    let amount = i128::from(moved) * i128::from(by) * NANO;
    Some(Level::from_nano(amount).times(NANO, nanos * i128::from(over)))
}

/// A billion: how many billionths a unit has, and nanoseconds a second.
const NANO: i128 = 1_000_000_000;

/// A counter of many things in one file, such as disks: one series for each.
pub(super) struct Rates {
    /// The label that tells which one it is.
    pub(super) label: &'static str,
    /// The name in a line and the fields after it; none if the line is about nothing.
    pub(super) split: fn(&str) -> Option<(&str, &str)>,
    /// How many fields there are at least.
    pub(super) fields: usize,
    /// Which of them is the counter.
    pub(super) place: usize,
    /// Units of the counter to the metric's.
    pub(super) scale: (u32, u32),
    /// The most that makes sense.
    pub(super) most: Option<Level>,
}

impl Rates {
    /// One series for each of these names.
    pub(super) fn of(&self, names: &[Arc<str>], now: Look<'_>, before: Option<Look<'_>>) -> Vec<Found> {
        self.read(now, before, |new, old| {
            // What is named is to be there; what has just come has nothing to be compared with yet.
            let just_come = |name: &str| new.contains_key(name) && !old.contains_key(name);
            names.iter().map(|name| &**name).filter(|name| !just_come(name)).collect()
        })
    }

    /// One series for everything there is and the filter lets through.
    pub(super) fn all(
        &self,
        wanted: fn(&str) -> bool,
        now: Look<'_>,
        before: Option<Look<'_>>,
    ) -> Vec<Found> {
        self.read(now, before, |new, old| {
            new.keys().copied().filter(|name| wanted(name) && old.contains_key(name)).collect()
        })
    }

    fn read<'n>(
        &self,
        now: Look<'n>,
        before: Option<Look<'_>>,
        names: impl Fn(&Counters<'n>, &Counters<'_>) -> Vec<&'n str>,
    ) -> Vec<Found> {
        let Some(before) = before else { return Vec::new() };
        let (new, old) = (self.counters(now.text), self.counters(before.text));
        let passed = elapsed(now.at, before.at);
        let rate = |name: &str| {
            let at = |all: &Counters<'_>| all.get(name).copied().flatten();
            let level = per_second(moved(at(&new)?, at(&old)?)?, self.scale, passed?)?;
            Some(self.most.map_or(level, |most| level.min(most)))
        };
        let one = |name: &str| Found::of(self.label, name, rate(name));
        let mut found: Vec<Found> = names(&new, &old).into_iter().map(one).collect();
        // Nobody knows whose lines are missing, so one without a name stands for them.
        if !now.text.ends_with('\n') || !before.text.ends_with('\n') {
            found.extend(Found::only(None));
        }
        found
    }

    fn counters<'t>(&self, text: &'t str) -> Counters<'t> {
        let mut all = Counters::new();
        for (name, rest) in lines(text).filter_map(self.split) {
            let mut fields = rest.split_ascii_whitespace();
            let value = fields.nth(self.place).and_then(counter);
            let enough = fields.count() + self.place + 1 >= self.fields;
            // Of two lines about one thing, one is wrong.
            let twice = all.contains_key(name);
            all.insert(name, value.filter(|_| enough && !twice));
        }
        all
    }
}

/// Counters by name; none where there is no number that could be one.
type Counters<'t> = BTreeMap<&'t str, Option<u64>>;
