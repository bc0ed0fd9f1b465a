//! Which nodes bear a taint for their load? For clusters whose scheduler cannot be configured: all heed taints.
//!
//! A node's [`Heat`] is its load over its limit, by the metric where that is largest. Above the soft line it is marked
//! `loadline.dev/load=high:PreferNoSchedule`, above the hard line `loadline.dev/load=over:NoSchedule`:
//!
//! ```text
//!            nothing          high              over
//!  heat  ──────────────┬──────────┬───────────────────►
//!                     0.9        1.0                      entered above its line, at once
//!                0.81        0.9                          left below line × (1 − hysteresis), after the dwell
//! ```
//!
//! **Dwell**: a grade is kept for at least so long from when it was reached. Only from high to over it goes at once. A
//! hot node that cools while it is `over` becomes `high` first, unless it is cool enough to lose that too.
//!
//! **Share**: at most so many of the nodes that take pods are marked, both grades counted: the share of their
//! number cut to a whole, but at least one, and never all of them. A single node is never marked: its pods
//! would have nowhere to go. When more qualify, those whose dwell is not over keep their place; then over
//! before high, then the hotter. Who has a place keeps it against others that are hotter by no more than the
//! hysteresis: two nodes equally hot but for noise would otherwise swap their taints every few minutes. Then by
//! name. Who gets none is told as such. The share is the stronger promise: when nodes go, so that fewer may be
//! marked, it is kept at once and dwell is not.
//!
//! **Unknown** is neither hot nor idle. A node without data gets no taint, since closing nodes because a monitoring
//! system is down would close the cluster when nobody looks. One that is there stays for its dwell, since a gap of a
//! minute says nothing about load, and then goes, since nobody could say any more what it is there for. The same holds
//! for nodes that take no pods anyway: to mark them changes nothing, and they are not counted.
//!
//! There is no state but the nodes: grade and time are read off the taint itself, so that whoever comes after a crash
//! decides the same. Times are written in whole seconds, as the API keeps them, rounded up so that no dwell is cut.

mod because;
mod heat;
mod options;

pub use because::Because;
pub use heat::Heat;
pub use options::{Options, check};

use super::term::AHEAD;
use crate::select::taint::{Effect, Taint};
use heat::Line;
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The key of the taint.
pub const KEY: &str = "loadline.dev/load";

/// How hot a node is, as its taint says it; the hotter is the larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// Above the soft line: pods go elsewhere if they can.
    High,
    /// Above the hard line: no more pods come.
    Over,
}

impl Grade {
    /// The value of the taint.
    #[must_use]
    pub const fn value(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Over => "over",
        }
    }

    #[must_use]
    pub const fn effect(self) -> Effect {
        match self {
            Self::High => Effect::PreferNoSchedule,
            Self::Over => Effect::NoSchedule,
        }
    }

    /// By the effect, which is what schedulers go by. One we never write is not ours, whatever its key.
    fn of(taint: &Taint) -> Option<Self> {
        match taint.effect {
            _ if taint.key != KEY => None,
            Effect::PreferNoSchedule => Some(Self::High),
            Effect::NoSchedule => Some(Self::Over),
            Effect::NoExecute | Effect::Other(_) => None,
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.value())
    }
}

/// Our taint on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadTaint {
    pub grade: Grade,
    /// Since when it has had this grade. Without a time, as when somebody else wrote it, its dwell counts as over.
    pub since: Option<Timestamp>,
}

impl LoadTaint {
    /// Reads it off a node. If both are there, by whatever hand, the stronger counts.
    #[must_use]
    pub fn of(taints: &[Taint]) -> Option<Self> {
        let ours = taints.iter().filter_map(|t| Some(Self { grade: Grade::of(t)?, since: t.time_added }));
        ours.max_by_key(|taint| taint.grade)
    }

    /// As it is written to a node.
    #[must_use]
    pub fn taint(&self) -> Taint {
        let Self { grade, since } = *self;
        Taint { key: KEY.into(), value: grade.value().into(), effect: grade.effect(), time_added: since }
    }

    /// Until when it has to stay, if that is still to come. A time far ahead is the mistake of some clock and must
    /// not keep it for good.
    fn stays_until(&self, dwell: SignedDuration, now: Timestamp) -> Option<Timestamp> {
        let since = self.since.filter(|since| since.duration_since(now) <= AHEAD)?;
        since.checked_add(dwell).ok().filter(|until| *until > now)
    }
}

/// What there is to know of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeHeat {
    pub name: Arc<str>,
    /// None if no metric with a limit is known.
    pub heat: Option<Heat>,
    /// What it bears of ours.
    pub taint: Option<LoadTaint>,
    /// May ordinary pods come at all? Not where it is cordoned or another taint repels them.
    pub takes_pods: bool,
}

/// What is done about a node's taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    Add,
    /// From high to over.
    Raise,
    /// From over to high.
    Lower,
    /// There is nothing to write.
    Keep,
    Remove,
    /// It is hot and has none because enough others do. There is nothing to write.
    Spare,
}

/// What is decided about one node, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub node: Arc<str>,
    pub act: Act,
    pub before: Option<LoadTaint>,
    pub after: Option<LoadTaint>,
    pub because: Because,
}

impl Change {
    fn new(node: &NodeHeat, grade: Option<Grade>, because: Because, now: Timestamp) -> Self {
        let before = node.taint;
        let act = match (before.map(|b| b.grade), grade) {
            (None, None) => Act::Spare,
            (None, Some(_)) => Act::Add,
            (Some(_), None) => Act::Remove,
            (Some(old), Some(new)) => match new.cmp(&old) {
                Ordering::Greater => Act::Raise,
                Ordering::Less => Act::Lower,
                Ordering::Equal => Act::Keep,
            },
        };
        let after = match grade {
            Some(_) if act == Act::Keep => before,
            Some(grade) => Some(LoadTaint { grade, since: Some(whole_second(now)) }),
            None => None,
        };
        Self { node: node.name.clone(), act, before, after, because }
    }

    /// Is there something to write?
    #[must_use]
    pub fn writes(&self) -> bool {
        self.before != self.after
    }

    /// The node's taints with this one as decided, the others as they are.
    #[must_use]
    pub fn apply(&self, taints: &[Taint]) -> Vec<Taint> {
        let others = taints.iter().filter(|t| Grade::of(t).is_none()).cloned();
        others.chain(self.after.map(|after| after.taint())).collect()
    }
}

/// As the API keeps it, and never earlier.
fn whole_second(now: Timestamp) -> Timestamp {
    now.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil)).unwrap_or(now)
}

/// What a node by itself calls for.
struct Wish<'a> {
    node: &'a NodeHeat,
    grade: Option<Grade>,
    because: Because,
    /// Its dwell is not over.
    firm: bool,
}

/// Decides about every node. Told are those that have a taint, get one, or are spared, by name; of the others there is
/// nothing to say.
#[must_use]
pub fn decide(nodes: &[NodeHeat], options: &Options, now: Timestamp) -> Vec<Change> {
    let counted = nodes.iter().filter(|node| node.takes_pods).count();
    let allowed = options.allowed(counted);
    let wishes = nodes.iter().map(|node| wish(node, options, now));
    let (mut marked, others): (Vec<_>, Vec<_>) =
        wishes.partition(|wish| wish.grade.is_some() && wish.node.takes_pods);
    marked.sort_unstable_by(|a, b| rank(a, b, options));

    let mut out: Vec<Change> = Vec::new();
    for (place, Wish { node, grade, because, .. }) in marked.into_iter().enumerate() {
        out.push(if place < allowed {
            Change::new(node, grade, because, now)
        } else {
            Change::new(
                node,
                None,
                Because::Share { allowed, nodes: counted, otherwise: because.into() },
                now,
            )
        });
    }
    for Wish { node, grade, because, .. } in others {
        if node.taint.is_some() {
            out.push(Change::new(node, grade, because, now));
        }
    }
    out.sort_unstable_by(|a, b| a.node.cmp(&b.node));
    out
}

/// All of ours, to be removed when we leave for good: nobody would ever take them off.
#[must_use]
pub fn withdraw(nodes: &[NodeHeat], now: Timestamp) -> Vec<Change> {
    let ours = nodes.iter().filter(|node| node.taint.is_some());
    let mut out: Vec<Change> = ours.map(|node| Change::new(node, None, Because::Exit, now)).collect();
    out.sort_unstable_by(|a, b| a.node.cmp(&b.node));
    out
}

fn wish<'a>(node: &'a NodeHeat, options: &Options, now: Timestamp) -> Wish<'a> {
    let until = node.taint.and_then(|taint| taint.stays_until(options.dwell, now));
    let held = node.taint.map(|taint| taint.grade);
    let wish = |grade, because| Wish { node, grade, because, firm: until.is_some() };
    // Until the dwell is over a grade stays, whatever there is to say against it.
    let against = |grade, because: Because| match until {
        Some(until) => wish(held, Because::Dwell { until, otherwise: because.into() }),
        None => wish(grade, because),
    };
    if !node.takes_pods {
        return against(None, Because::Closed);
    }
    let Some(heat) = &node.heat else { return against(None, Because::Unknown) };
    let (high, over) = (Line::entry(options.soft), Line::entry(options.hard));
    let (not_high, not_over) =
        (Line::exit(options.soft, options.hysteresis), Line::exit(options.hard, options.hysteresis));

    if heat.is_above(over) {
        wish(Some(Grade::Over), Because::over(heat, over))
    } else if held == Some(Grade::Over) && !heat.is_below(not_over) {
        wish(held, Because::not_below(heat, not_over))
    } else if held == Some(Grade::Over) && !heat.is_below(not_high) {
        against(Some(Grade::High), Because::below(heat, not_over))
    } else if heat.is_above(high) {
        wish(Some(Grade::High), Because::over(heat, high))
    } else if held == Some(Grade::High) && !heat.is_below(not_high) {
        wish(held, Because::not_below(heat, not_high))
    } else {
        against(None, Because::below(heat, not_high))
    }
}

/// Who comes first when not all can be marked.
fn rank(a: &Wish<'_>, b: &Wish<'_>, options: &Options) -> Ordering {
    let head_start =
        |wish: &Wish<'_>| wish.node.taint.map_or(Line::WHOLE, |_| Line::rest(options.hysteresis));
    let hotter = || match (&a.node.heat, &b.node.heat) {
        (Some(x), Some(y)) => y.compare(head_start(b), x, head_start(a)),
        (x, y) => y.is_some().cmp(&x.is_some()),
    };
    b.firm
        .cmp(&a.firm)
        .then_with(|| b.grade.cmp(&a.grade))
        .then_with(hotter)
        .then_with(|| b.node.taint.is_some().cmp(&a.node.taint.is_some()))
        .then_with(|| a.node.name.cmp(&b.node.name))
}

#[cfg(test)]
mod tests;
