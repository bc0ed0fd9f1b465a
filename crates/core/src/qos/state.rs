//! What is remembered from one cycle to the next? The agent's journal.

use super::level::Level;
use super::pod::Pod;
use super::policy::RuleName;
use crate::object::Key;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a rule is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleState {
    /// How many times in a row the line was passed.
    pub above: i32,
    /// How many times in a row it was not.
    pub below: i32,
    /// Has it caused anything that is not undone?
    pub active: bool,
    /// Is that being undone?
    pub restoring: bool,
    /// Has it only ever said, while active, what it would do? Then it has caused nothing.
    pub only_said: bool,
    /// When it last triggered.
    pub last_triggered: Option<Timestamp>,
    /// What the rule said then; none if not remembered.
    pub definition: Option<Arc<str>>,
    /// The cool-down of its action then, in seconds, for when the rule is deleted.
    pub cool_down_seconds: Option<i64>,
}

/// A container that was slowed down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttled {
    pub pod: Key,
    /// Which pod of that name, where known: what a successor has is not ours to give back.
    pub uid: Arc<str>,
    pub container: Arc<str>,
    /// What it had, as the kernel writes it.
    pub original_us: i64,
    /// What it was given last, for certain.
    pub written_us: i64,
    /// What else it may have been given, the newest last: writes whose outcome nobody knows. Each may still arrive, in any
    /// order, also after what was written for certain.
    pub unsure_us: Vec<i64>,
    /// Because of which rules.
    pub rules: Vec<Arc<RuleName>>,
    /// Since when it has everything back, where a write without an answer may still take it away again: it is only looked after.
    pub back_since: Option<Timestamp>,
}

/// How long after everything was given back a write without an answer may still arrive, in seconds. A runtime that has answered again
/// does what it was asked before within moments, or not at all.
const LATE_SECONDS: i64 = 120;

impl Throttled {
    /// Has it less than it had, as far as is known?
    #[must_use]
    pub fn is_slowed(&self) -> bool {
        self.back_since.is_none()
    }

    /// Has it had everything back for so long that nothing can take it away any more?
    pub(super) fn is_settled(&self, now: Timestamp) -> bool {
        self.back_since.is_some_and(|since| now > later(since, LATE_SECONDS))
    }

    /// Is it about this very pod?
    #[must_use]
    pub fn is_of(&self, pod: &Pod) -> bool {
        self.pod == pod.key && is_same(&self.uid, &pod.uid)
    }
}

/// Are two uids of the same object, as far as both are known?
fn is_same(one: &str, other: &str) -> bool {
    one.is_empty() || other.is_empty() || one == other
}

/// What the API server replied when a pod was to be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The pod goes.
    Granted,
    /// It was gone already.
    Gone,
    /// It was gone already, and another pod has its key.
    Replaced,
    /// A disruption budget has nothing left.
    Refused,
    /// Anything else. The number tells kinds of failures apart, and means nothing here.
    Failed(u16),
}

impl Reply {
    /// Does the pod go because it was asked to?
    #[must_use]
    pub fn is_granted(self) -> bool {
        self == Self::Granted
    }

    /// Was there nobody to ask any more?
    #[must_use]
    pub fn is_gone(self) -> bool {
        matches!(self, Self::Gone | Self::Replaced)
    }
}

/// A pod that was asked to go, and what was replied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    pub pod: Key,
    pub uid: Arc<str>,
    /// When.
    pub at: Timestamp,
    pub reply: Reply,
    /// How long it was given, in seconds; the pod's own time if not remembered.
    pub grace_seconds: Option<i64>,
}

/// How long the end of a pod may take beyond its own time, in seconds: a stuck finalizer is no relief.
const PATIENCE_SECONDS: i64 = 30;
/// How long a refused pod is left alone the first time, in seconds; twice as long each further time.
const BACK_OFF_SECONDS: i64 = 30;
/// And the longest, in seconds.
const LONGEST_BACK_OFF_SECONDS: i64 = 480;
const HOUR: SignedDuration = SignedDuration::from_hours(1);

impl Eviction {
    /// Is it about this very pod?
    #[must_use]
    pub fn is_of(&self, pod: &Pod) -> bool {
        self.pod == pod.key && is_same(&self.uid, &pod.uid)
    }

    /// Until when it counts as relief on its way.
    fn counts_until(&self, pod: &Pod) -> Timestamp {
        let grace = if self.reply.is_gone() { 0 } else { self.grace_seconds.unwrap_or_else(|| pod.grace()) };
        later(self.at, grace.saturating_add(PATIENCE_SECONDS))
    }
}

/// `from` and so many seconds, or the end of time.
pub(super) fn later(from: Timestamp, seconds: i64) -> Timestamp {
    from.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// What earlier cycles left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// How many cycles the agent has run; none: long enough.
    pub cycles: Option<u64>,
    /// Where each rule is.
    pub rules: BTreeMap<Arc<RuleName>, RuleState>,
    /// What is slowed down.
    pub throttled: Vec<Throttled>,
    /// Who was asked to go.
    pub evictions: Vec<Eviction>,
    /// Who was on the way out in the last cycle. Not written down: who comes after an agent does not evict at once.
    pub leaving: Vec<Departure>,
}

/// A pod on its way out, and what that was to release, by metric. Once it is gone, the sample that ends with this cycle still
/// has a part of what it used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    pub pod: Key,
    pub uid: Arc<str>,
    pub release: BTreeMap<&'static str, Level>,
}

/// Why a pod counts as gone already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It was told to go.
    Terminating,
    /// We had it told.
    Evicted,
    /// It was gone when we asked; the measurement does not know yet.
    AlreadyGone,
    /// It is gone since the last cycle; the sample is of a time in which it was there.
    StillMeasured,
}

impl Leaving {
    /// As it is written in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminating => "Terminating",
            Self::Evicted => "Evicted",
            Self::AlreadyGone => "AlreadyGone",
            Self::StillMeasured => "StillMeasured",
        }
    }
}

impl State {
    /// The clock was set by so much: everything happened as long ago as it did.
    pub fn shift(&mut self, by: SignedDuration) {
        self.change_times(|at| at.checked_add(by).unwrap_or(at));
    }

    /// What happened after now was told by a clock that has been set back since. How long ago it was, nobody knows: it counts as of now.
    pub fn cap(&mut self, now: Timestamp) {
        self.change_times(|at| at.min(now));
    }

    fn change_times(&mut self, change: impl Fn(Timestamp) -> Timestamp) {
        let rules = self.rules.values_mut().filter_map(|rule| rule.last_triggered.as_mut());
        let evictions = self.evictions.iter_mut().map(|eviction| &mut eviction.at);
        let throttled = self.throttled.iter_mut().filter_map(|entry| entry.back_since.as_mut());
        rules.chain(evictions).chain(throttled).for_each(|at| *at = change(*at));
    }

    /// Is the pod on its way out, so that its usage will be?
    pub(super) fn leaving(&self, pod: &Pod, now: Timestamp) -> Option<Leaving> {
        if let Some(gone_by) = pod.deleted {
            return (now <= later(gone_by, PATIENCE_SECONDS)).then_some(Leaving::Terminating);
        }
        let asked = self
            .evictions
            .iter()
            .rev()
            .find(|e| e.is_of(pod) && (e.reply.is_granted() || e.reply.is_gone()))?;
        let kind = if asked.reply.is_gone() { Leaving::AlreadyGone } else { Leaving::Evicted };
        (now <= asked.counts_until(pod)).then_some(kind)
    }

    /// The last refusal of a pod that is still to be respected.
    pub(super) fn refused(&self, pod: &Pod, now: Timestamp) -> Option<&Eviction> {
        let of_it = || self.evictions.iter().filter(|e| e.is_of(pod));
        let last = of_it().max_by_key(|e| e.at).filter(|e| !e.reply.is_granted() && !e.reply.is_gone())?;
        let times = of_it().filter(|e| e.reply == last.reply).count();
        let doublings = u32::try_from(times.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
        let wait = BACK_OFF_SECONDS.saturating_mul(1 << doublings).min(LONGEST_BACK_OFF_SECONDS);
        (now < later(last.at, wait)).then_some(last)
    }

    /// How many were evicted within the hour.
    pub(super) fn within_the_hour(&self, now: Timestamp) -> usize {
        self.evictions.iter().filter(|e| e.reply.is_granted() && now.duration_since(e.at) < HOUR).count()
    }

    /// Who was evicted at that very time.
    pub(super) fn granted_at(&self, at: Timestamp) -> impl Iterator<Item = &Eviction> {
        self.evictions.iter().filter(move |e| e.at == at && e.reply.is_granted())
    }

    /// The evictions still worth remembering.
    pub(super) fn kept(&self, now: Timestamp) -> impl Iterator<Item = &Eviction> {
        self.evictions.iter().filter(move |e| now.duration_since(e.at) < HOUR)
    }
}
