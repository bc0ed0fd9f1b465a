//! For how long has a node been over its line, and how high did a pod's use go of late?
//!
//! One sample says little. Of a node the last stretch of time is kept in [`SLOTS`] slots, each with the least that was used in
//! it: a node was over its line without a break for as long as the least of every slot is over it. Of a pod as many slots
//! keep the most it used. Both are bounded, and cost the same for every sample.

use super::settings::Settings;
use crate::ledger::{Sample, Uid};
use crate::load::admit::USABLE;
use crate::load::{Load, Metered};
use crate::view::NodeId;
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Into how many parts the past is cut.
const SLOTS: usize = 12;
/// How many of them a node must be over its line for at least.
const PER_RUN: i64 = 5;

/// One part of a node's past.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Which: the time divided by the length of a slot.
    number: i64,
    /// Where the window of its first sample began.
    from: Timestamp,
    /// When its last sample ended.
    to: Timestamp,
    least: Load,
    samples: u32,
}

/// An unbroken stretch over the line, up to the newest sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub since: Timestamp,
    pub until: Timestamp,
    pub samples: u32,
}

impl Run {
    /// How long it has lasted.
    #[must_use]
    pub fn length(&self) -> SignedDuration {
        self.until.duration_since(self.since)
    }
}

/// What a pod uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// In its newest sample.
    pub now: Load,
    /// When that ended.
    pub at: Timestamp,
    /// Since when it is measured: where the window of its first sample began.
    pub since: Timestamp,
    /// The most of late.
    pub high: Load,
}

/// The recent past of a pod.
#[derive(Clone, Debug)]
struct Pod {
    since: Timestamp,
    newest: Sample,
    /// The number of the newest slot.
    number: i64,
    /// The most used, by slot number modulo [`SLOTS`].
    most: [Load; SLOTS],
}

/// The recent past of nodes and pods.
#[derive(Clone, Debug)]
pub struct Recent {
    node_slot: i64,
    pod_slot: i64,
    nodes: FxHashMap<NodeId, VecDeque<Slot>>,
    pods: FxHashMap<Uid, Pod>,
}

impl Recent {
    /// Nothing yet. Keeps as much as these settings look at.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let part = |whole: SignedDuration, parts: i64| {
            i64::try_from(whole.as_millis()).unwrap_or(i64::MAX).div_euclid(parts).max(1)
        };
        Self {
            node_slot: part(settings.over_for, PER_RUN),
            pod_slot: part(settings.high_for, i64::try_from(SLOTS).unwrap_or(1)),
            nodes: FxHashMap::default(),
            pods: FxHashMap::default(),
        }
    }

    /// A node was measured. What is not newer than what is known, or negative, does not count.
    pub fn node(&mut self, node: NodeId, sample: Sample) {
        if !is_sane(&sample) {
            return;
        }
        let number = sample.at.as_millisecond().div_euclid(self.node_slot);
        let from = sample.at.checked_sub(sample.window).unwrap_or(sample.at);
        let slots = self.nodes.entry(node).or_default();
        match slots.back_mut() {
            Some(last) if sample.at <= last.to => {}
            // Where nobody looked for too long a slot ends: what is between two of them breaks a run.
            Some(last) if last.number == number && from.duration_since(last.to) <= USABLE => {
                last.to = sample.at;
                last.least = last.least.zip(sample.usage, i64::min);
                last.samples = last.samples.saturating_add(1);
            }
            _ => {
                if slots.len() == SLOTS {
                    slots.pop_front();
                }
                slots.push_back(Slot { number, from, to: sample.at, least: sample.usage, samples: 1 });
            }
        }
    }

    /// A pod was measured; as for nodes.
    pub fn pod(&mut self, pod: Uid, sample: Sample) {
        if !is_sane(&sample) {
            return;
        }
        let number = sample.at.as_millisecond().div_euclid(self.pod_slot);
        let since = sample.at.checked_sub(sample.window).unwrap_or(sample.at);
        let known = self.pods.entry(pod).or_insert_with(|| Pod {
            since,
            newest: Sample { at: Timestamp::MIN, ..sample },
            number,
            most: [Load::ZERO; SLOTS],
        });
        if sample.at <= known.newest.at {
            return;
        }
        // Slots that passed without a sample hold nothing.
        let passed = number.saturating_sub(known.number).min(i64::try_from(SLOTS).unwrap_or(i64::MAX));
        for back in 0..passed {
            known.most[place(number.saturating_sub(back))] = Load::ZERO;
        }
        let most = &mut known.most[place(number)];
        *most = most.max(sample.usage);
        (known.number, known.newest) = (number, sample);
    }

    /// A node is gone.
    pub fn forget_node(&mut self, node: NodeId) {
        self.nodes.remove(&node);
    }

    /// A pod is gone.
    pub fn forget_pod(&mut self, pod: Uid) {
        self.pods.remove(&pod);
    }

    /// Forgets pods that were not measured for so long, and nodes that were not for a day.
    pub fn expire(&mut self, now: Timestamp, length: SignedDuration) {
        self.pods.retain(|_, pod| now.duration_since(pod.newest.at) <= length);
        let day = SignedDuration::from_hours(24);
        self.nodes.retain(|_, slots| slots.back().is_some_and(|last| now.duration_since(last.to) <= day));
    }

    /// Is anything known of any node?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How long a node has used more than that, without a break, up to its newest sample; `None` if it does not.
    #[must_use]
    pub fn over(&self, node: NodeId, resource: Metered, limit: i64) -> Option<Run> {
        let slots = self.nodes.get(&node)?;
        let mut run: Option<Run> = None;
        for slot in slots.iter().rev() {
            let broken = run.is_some_and(|run| run.since.duration_since(slot.to) > USABLE);
            if slot.least.get(resource) <= limit || broken {
                break;
            }
            let samples = run.map_or(0, |run| run.samples).saturating_add(slot.samples);
            run = Some(Run { since: slot.from, until: run.map_or(slot.to, |run| run.until), samples });
        }
        run
    }

    /// What a pod uses; `None` if it was not measured within [`USABLE`].
    #[must_use]
    pub fn of(&self, pod: Uid, now: Timestamp) -> Option<Use> {
        let known = self.pods.get(&pod).filter(|pod| now.duration_since(pod.newest.at) <= USABLE)?;
        let high = known.most.iter().fold(Load::ZERO, |most, one| most.max(*one));
        Some(Use { now: known.newest.usage, at: known.newest.at, since: known.since, high })
    }
}

fn place(number: i64) -> usize {
    usize::try_from(number.rem_euclid(i64::try_from(SLOTS).unwrap_or(1))).unwrap_or(0)
}

fn is_sane(sample: &Sample) -> bool {
    sample.usage.cpu_nano >= 0 && sample.usage.memory_bytes >= 0 && !sample.window.is_negative()
}
