//! What is written on a node, and when? Only what changes what a reader would decide, and before it expires.
//!
//! Readers (crane's scheduler, ours, people) know a node by its annotations: one per metric of the policy, and the hot
//! value. Everything due is written by one patch:
//!
//! | why | when |
//! |---|---|
//! | [`Urgency::Now`] | nothing a reader can use is there, a value crosses its limit, the hot value changes, a key of ours left the policy |
//! | [`Urgency::Expires`] | between half and two thirds of its life are over, each node at a moment of its own |
//! | [`Urgency::Changed`] | a value moved by [`Options::tolerance`] or more |
//!
//! A value is stamped with the moment it was measured, so one that is not newer than what is there is not written, nor is
//! one whose life is over: nobody could use it. What is not known is left to expire. Which keys are ours, by which
//! policy they were written, and which ranges are not filled yet is written beside them.

use super::annotation::{self, HOT_VALUE, HOT_WINDOW};
use super::join::Value;
use super::policy::{Figure, Metric, NodeRules, Range, Rules};
use super::ratio::Ratio;
use super::term::{AHEAD, Derived, RECENT};
use crate::ledger::Uid;
use crate::select::Lookup;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Which annotations of a node are ours.
pub const KEYS: &str = "loadline.dev/load-metrics";
/// By which policy they were written.
pub const POLICY: &str = "loadline.dev/load-policy";
/// Which of them look back further than there are measurements.
pub const WARMING_UP: &str = "loadline.dev/load-warming-up";

/// How much is too little to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A value that moved by less is not written for that alone.
    pub tolerance: Ratio,
}

impl Default for Options {
    /// One point of the score.
    fn default() -> Self {
        Self { tolerance: Ratio::from_nano(10_000_000) }
    }
}

/// A value that could be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub value: Value,
    /// Does its range reach back further than the measurements?
    pub warming_up: bool,
}

/// What the annotations of a node say, parsed: they change seldom and are looked at often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// One per metric of [`Rules::metrics`]; `None` if a reader cannot use it at any time.
    metrics: Vec<Option<Value>>,
    hot: Option<Value>,
    /// Is there a key of ours the policy does not speak of?
    left: bool,
    /// Which moment of the life of a value is this node's, in thousandths.
    place: i32,
}

impl Written {
    /// Reads what is there.
    pub fn read<A: Lookup + ?Sized>(rules: &Rules, name: &str, annotations: &A) -> Self {
        let metrics = rules.metrics();
        let wanted = |key: &str| {
            let fetched = metrics.iter().any(|metric| metric.window.is_some() && *metric.name == *key);
            fetched || (key == HOT_VALUE && !rules.policy().hot.is_empty())
        };
        Self {
            metrics: metrics.iter().map(|metric| held(rules, annotations, &metric.name)).collect(),
            hot: held(rules, annotations, HOT_VALUE),
            left: annotations
                .value(KEYS)
                .is_some_and(|keys| keys.split(',').any(|k| !k.is_empty() && !wanted(k))),
            place: i32::try_from(Uid::new(name).0 % 1000).unwrap_or(0),
        }
    }

    /// After how much of its life a value is written anew: from one half to two thirds, the same for a node every time
    /// and different among nodes, so that they do not come all at once.
    fn life(&self, window: SignedDuration) -> SignedDuration {
        window / 2 + window / 6000 * self.place
    }
}

/// What is known of a node.
#[derive(Debug)]
pub struct Node<'a, A: Lookup + ?Sized> {
    pub rules: &'a NodeRules,
    /// As they are on the node now.
    pub annotations: &'a A,
    /// And what they say.
    pub written: &'a Written,
    /// One per metric of [`Rules::metrics`].
    pub known: &'a [Option<Known>],
    pub hot: i64,
}

/// How soon something should be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    Now,
    Expires,
    Changed,
}

/// What to write: annotations to set, or with `None` to take away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    pub urgency: Urgency,
    pub annotations: BTreeMap<String, Option<String>>,
}

impl Update {
    /// For a patch that is made for another reason.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { urgency: Urgency::Now, annotations: BTreeMap::new() }
    }
}

/// The best that is known of a metric: what was derived from samples of the metrics API, and what monitoring says.
///
/// The mean of five minutes is that of our samples while these are recent: they are newer. The longer ranges are
/// monitoring's, which looks back further, unless its value cannot be used any more. Metrics of other names are
/// monitoring's alone. What is from the future, beyond a clock that differs a little, is a mistake.
#[must_use]
pub fn choose(
    metric: &Metric,
    derived: Option<&Derived>,
    monitored: Option<Value>,
    now: Timestamp,
) -> Option<Known> {
    let window = metric.window?;
    let usable = |known: &Known| known.value.at <= end(now, AHEAD) && now < end(known.value.at, window);
    let monitored = monitored.map(|value| Known { value, warming_up: false }).filter(usable);
    let Some(figure) = metric.derivable else { return monitored };
    let own = derived.and_then(|derived| {
        let value = Value { share: derived.get(figure)?, at: derived.at };
        let reach = derived.at.duration_since(derived.since);
        Some(Known { value, warming_up: figure.range != Range::Avg5m && reach < figure.range.length() })
    });
    let own = own.filter(usable);
    match figure.range {
        Range::Avg5m => own.filter(|own| now <= end(own.value.at, RECENT)).or(monitored),
        Range::Max1h | Range::Max1d => monitored.or(own),
    }
}

/// What there is to write on a node, if anything is due.
#[must_use]
pub fn update<A: Lookup + ?Sized>(
    rules: &Rules,
    node: &Node<'_, A>,
    options: Options,
    now: Timestamp,
) -> Option<Update> {
    let mut urgency = node.written.left.then_some(Urgency::Now);
    for one in news(rules, node, now) {
        urgency = sooner(urgency, why(node, &one, options, now));
    }
    if !rules.policy().hot.is_empty() {
        urgency = sooner(urgency, why_hot(node, now));
    }
    // Most nodes most of the time.
    let urgency = urgency?;

    let zone = rules.settings().time_zone.as_ref();
    let mut set = BTreeMap::new();
    let mut warming = BTreeSet::new();
    let fetched = rules.metrics().iter().filter(|metric| metric.window.is_some());
    let mut wanted: BTreeSet<&str> = fetched.map(|metric| &*metric.name).collect();
    for News { metric, known: Known { value, warming_up }, .. } in news(rules, node, now) {
        if warming_up {
            warming.insert(&*metric.name);
        }
        set.insert(metric.name.to_string(), Some(annotation::write(value.share, value.at, zone)));
    }
    let written = node.written.hot;
    if !rules.policy().hot.is_empty() {
        wanted.insert(HOT_VALUE);
        if node.hot != 0 || written.is_some_and(|written| now < end(written.at, HOT_WINDOW)) {
            set.insert(HOT_VALUE.to_owned(), Some(annotation::write_hot(node.hot, now, zone)));
        }
    }
    let ours: BTreeSet<&str> = node.annotations.value(KEYS).map(list).unwrap_or_default();
    for left in ours.difference(&wanted) {
        set.insert((*left).to_owned(), None);
    }
    let keys: BTreeSet<&str> =
        wanted.iter().copied().filter(|key| ours.contains(key) || set.contains_key(*key)).collect();
    let unfilled = node.annotations.value(WARMING_UP).map(list).unwrap_or_default();
    // What is not written now stays as it is said to be.
    warming.extend(unfilled.iter().filter(|key| keys.contains(*key) && !set.contains_key(**key)));
    let join =
        |keys: BTreeSet<&str>| (!keys.is_empty()).then(|| keys.into_iter().collect::<Vec<_>>().join(","));
    let about = [(KEYS, join(keys)), (POLICY, Some(fingerprint(rules))), (WARMING_UP, join(warming))];
    for (key, text) in about {
        if text.as_deref() != node.annotations.value(key) {
            set.insert(key.to_owned(), text);
        }
    }
    Some(Update { urgency, annotations: set })
}

/// Takes away everything we ever wrote on a node; nothing if that is nothing.
#[must_use]
pub fn retire<A: Lookup + ?Sized>(annotations: &A) -> BTreeMap<String, Option<String>> {
    let ours = annotations.value(KEYS).map(list).unwrap_or_default();
    let about = [KEYS, POLICY, WARMING_UP].into_iter().filter(|key| annotations.value(key).is_some());
    ours.into_iter().chain(about).map(|key| (key.to_owned(), None)).collect()
}

/// Short for the policy: two processes that show the same go by the same.
#[must_use]
pub fn fingerprint(rules: &Rules) -> String {
    let policy = rules.policy();
    let sync = policy.sync.iter().map(|sync| format!("sync {} {}", sync.name, sync.period.as_millis()));
    let limits = policy.predicates.iter().map(|one| format!("predicate {} {}", one.name, one.limit));
    let weights = policy.priorities.iter().map(|one| format!("priority {} {}", one.name, one.weight));
    let hot = policy.hot.iter().map(|bucket| format!("hot {} {}", bucket.range.as_millis(), bucket.count));
    let lines: Vec<String> = sync.chain(limits).chain(weights).chain(hot).collect();
    let text = lines.join("\n");
    format!("{:016x}", Uid::new(&text).0 >> 64)
}

/// What a reader finds under a key; `None` if it cannot use it at any time.
fn held<A: Lookup + ?Sized>(rules: &Rules, annotations: &A, key: &str) -> Option<Value> {
    let reading = annotation::read(annotations.value(key)?, rules.settings().time_zone.as_ref()).ok()?;
    Some(Value { share: reading.value.ok()?.ratio()?, at: reading.at })
}

/// A value that is newer than what is there, and good for a while.
struct News<'a> {
    metric: &'a Metric,
    known: Known,
    held: Option<Value>,
    window: SignedDuration,
}

fn news<'a, A: Lookup + ?Sized>(
    rules: &'a Rules,
    node: &Node<'a, A>,
    now: Timestamp,
) -> impl Iterator<Item = News<'a>> {
    let all = rules.metrics().iter().zip(node.known).zip(&node.written.metrics);
    all.filter_map(move |((metric, known), held)| {
        let known = (*known)?;
        let newer = held.is_none_or(|held| known.value.at.as_second() > held.at.as_second());
        let window = metric.window.filter(|window| newer && now < end(known.value.at, *window))?;
        Some(News { metric, known, held: *held, window })
    })
}

/// Why a value is to be written now, if it is.
fn why<A: Lookup + ?Sized>(
    node: &Node<'_, A>,
    one: &News<'_>,
    options: Options,
    now: Timestamp,
) -> Option<Urgency> {
    let News { metric, known: Known { value, .. }, held, window } = *one;
    let Some(held) = held.filter(|held| now < end(held.at, window)) else { return Some(Urgency::Now) };
    let limit = metric.predicate.and_then(|place| *node.rules.limits.get(place)?).and_then(Figure::ratio);
    let over = |share: Ratio| limit.is_some_and(|limit| share > limit);
    if over(value.share) != over(held.share) {
        return Some(Urgency::Now);
    }
    if now >= end(held.at, node.written.life(window)) {
        return Some(Urgency::Expires);
    }
    let moved = value.share.nano().abs_diff(held.share.nano());
    (moved >= options.tolerance.nano().unsigned_abs()).then_some(Urgency::Changed)
}

/// Why the hot value is to be written now, if it is. None that can be used reads as 0.
fn why_hot<A: Lookup + ?Sized>(node: &Node<'_, A>, now: Timestamp) -> Option<Urgency> {
    let usable = node.written.hot.filter(|written| now < end(written.at, HOT_WINDOW));
    let says = usable.map_or(0, |written| written.share.nano() / Ratio::ONE.nano());
    if says != node.hot {
        return Some(Urgency::Now);
    }
    let refresh = usable.is_some_and(|usable| now >= end(usable.at, node.written.life(HOT_WINDOW)));
    (refresh && node.hot != 0).then_some(Urgency::Expires)
}

fn end(at: Timestamp, after: SignedDuration) -> Timestamp {
    at.checked_add(after).unwrap_or(Timestamp::MAX)
}

fn list(text: &str) -> BTreeSet<&str> {
    text.split(',').filter(|key| !key.is_empty()).collect()
}

/// The more urgent of two, where both may be nothing.
fn sooner(one: Option<Urgency>, other: Option<Urgency>) -> Option<Urgency> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests;
