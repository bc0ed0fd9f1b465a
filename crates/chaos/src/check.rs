//! Was a promise broken? The history says it alone: plain JSON, and no code of the components.
//!
//! | promise | module |
//! |---|---|
//! | bound once or told why not, none forgotten, line, cooling | `pods` |
//! | nothing left behind | `nodes` |
//! | published sets, estimates, nothing lost | `fleet` |
//! | who leads | `leader` |
//! | who has nothing to do waits, nobody ends by itself | here |

mod fleet;
mod leader;
mod nodes;
mod pods;

use crate::history::{ENDED, Entry, PANIC, SPIN};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// Every pod is bound exactly once, or waits and is told why.
    BoundOnce,
    /// Our decisions drive no node past its line when estimates are right.
    Line,
    /// No victim comes back while its node cools.
    Cooling,
    /// No throttle, taint or reservation is left behind.
    LeftBehind,
    /// No cluster is absent from a published set it belongs to.
    PublishedSet,
    /// No binding goes beyond the merged estimate.
    Estimate,
    /// Nothing is written by who does not lead.
    Leader,
    /// No pod, no binding and no placement is lost: at rest everything is decided about.
    NothingLost,
    /// Who has nothing to do waits.
    Rest,
    /// No component ends unasked, and nothing in it panics.
    Alive,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::BoundOnce,
        Self::Line,
        Self::Cooling,
        Self::LeftBehind,
        Self::PublishedSet,
        Self::Estimate,
        Self::Leader,
        Self::NothingLost,
        Self::Rest,
        Self::Alive,
    ];
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BoundOnce => "every pod is bound exactly once, or waits and is told why",
            Self::Line => "no node is driven past its line by our own decisions when estimates are right",
            Self::Cooling => "no victim comes back to a node that cools",
            Self::LeftBehind => "no throttle, taint or reservation is left behind",
            Self::PublishedSet => "no selected cluster is absent from a published set",
            Self::Estimate => "no binding goes beyond the merged estimate",
            Self::Leader => "nothing is written by who does not lead",
            Self::NothingLost => "no pod, binding or placement is lost",
            Self::Rest => "who has nothing to do waits",
            Self::Alive => "no component ends unasked or panics",
        })
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub promise: Promise,
    /// What happened.
    pub what: String,
    /// The object it is about, for the part of the history that shows it.
    pub about: Vec<String>,
}

/// What some promises hold under, and until when each is given, in milliseconds: what happens later is not judged by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// What is measured is true, and pods use what they asked for.
    pub honest: u64,
    /// All clocks are within seconds of each other.
    pub clocks_agree: u64,
    /// Watches of schedulers deliver what happens.
    pub hears: u64,
}

impl Conditions {
    /// All of them, always.
    pub const ALWAYS: Self = Self { honest: u64::MAX, clocks_agree: u64::MAX, hears: u64::MAX };
}

/// What came of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Everything that was broken.
    pub violations: Vec<Violation>,
    /// How often each promise could have been broken: without an occasion nothing was judged.
    pub occasions: BTreeMap<Promise, u64>,
}

impl Findings {
    fn occasion(&mut self, promise: Promise) {
        *self.occasions.entry(promise).or_default() += 1;
    }

    fn broken(&mut self, promise: Promise, what: String, about: Vec<String>) {
        self.violations.push(Violation { promise, what, about });
    }
}

/// Everything that was broken, and how much was looked at.
#[must_use]
pub fn check(history: &[Entry], given: Conditions) -> Findings {
    let end = end(history);
    let mut found = Findings::default();
    pods::bound_once(history, &end, &mut found);
    pods::lost(history, &end, &mut found);
    pods::line(history, given.honest.min(given.clocks_agree).min(given.hears), &mut found);
    pods::cooling(history, given.clocks_agree.min(given.hears), &mut found);
    nodes::left_behind(history, &end, &mut found);
    fleet::published(history, &mut found);
    fleet::estimate(history, &mut found);
    fleet::lost(history, &end, &mut found);
    leader::leads(history, &mut found);
    rests(history, &mut found);
    lives(history, &mut found);
    found
}

/// Who has nothing to do waits: what went round and round is noted where it is seen.
fn rests(history: &[Entry], found: &mut Findings) {
    let started: BTreeSet<&str> = history.iter().map(|entry| entry.identity.as_str()).collect();
    for _ in started {
        found.occasion(Promise::Rest);
    }
    for entry in history.iter().filter(|entry| entry.verb == SPIN) {
        let what =
            format!("{} went round and round at {} ms and waited for nothing", entry.identity, entry.at);
        found.broken(Promise::Rest, what, vec![entry.path.clone()]);
    }
}

/// Nobody ends by itself: who did, or had a panic inside, is noted where it is seen.
fn lives(history: &[Entry], found: &mut Findings) {
    let started: BTreeSet<&str> = history.iter().map(|entry| entry.identity.as_str()).collect();
    for _ in started {
        found.occasion(Promise::Alive);
    }
    for entry in history {
        let what = match entry.verb {
            ENDED => "ended, and nobody had asked it to",
            PANIC => "panicked",
            _ => continue,
        };
        let what = format!("{} {what} at {} ms", entry.identity, entry.at);
        found.broken(Promise::Alive, what, vec![entry.path.clone()]);
    }
}

/// The part of the history that is about these objects.
pub fn excerpt<'a>(history: &'a [Entry], about: &'a [String]) -> impl Iterator<Item = &'a Entry> {
    history.iter().filter(|entry| about.iter().any(|path| entry.path.ends_with(path.as_str())))
}

/// So long before the end nothing happens any more that keeps somebody waiting, in milliseconds.
const RESTED: u64 = 120_000;

/// Has it been so for long, if it began then?
fn rested(since: u64, history: &[Entry]) -> bool {
    history.last().is_some_and(|last| since + RESTED <= last.at)
}

/// What is there at the end, by path.
fn end(history: &[Entry]) -> BTreeMap<&str, &Value> {
    let mut end = BTreeMap::new();
    for entry in history {
        if entry.after.is_null() {
            end.remove(entry.path.as_str());
        } else {
            end.insert(entry.path.as_str(), &entry.after);
        }
    }
    end
}

/// Is a path of one of these objects?
fn is_of(path: &str, plural: &str) -> bool {
    path.rsplit('/').nth(1) == Some(plural)
}

fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())
}

fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|one| one["type"].as_str() == Some(name))
}

/// Does it say that this is not so, and why?
pub(crate) fn told_not(object: &Value, name: &str) -> bool {
    condition(object, name).is_some_and(|one| one["status"].as_str() == Some("False"))
}

fn is_told(condition: Option<&Value>) -> bool {
    let said =
        |field: &str| condition.and_then(|one| one[field].as_str()).is_some_and(|text| !text.is_empty());
    said("reason") && said("message")
}
