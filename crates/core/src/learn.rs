//! What do the pods of a workload use? Learned from measurements, to be recommended to those that come.
//!
//! The next replica will use what its siblings use, whatever somebody wrote into its requests. Samples of all pods of a
//! workload are pooled, container by container, each a sample of its own. From them:
//!
//! **CPU**: so much as suffices 95 % of the time. Samples weigh as much as their windows are long, and half of it after
//! each half-life of 24 h.
//!
//! **Memory**: too little of it kills, so not time counts but peaks: of each hour on the clock the largest sample of any
//! pod is one, all weigh the same, halved as above, and 98 % of them are to suffice. With these figures a peak that
//! comes in the same hour of every day is always covered, and one that came once for twelve hours. The peak of the hour
//! that is not over counts at once. A container killed for lack of memory that had m counts as a peak of
//! `max(m × 1.2, m + 100 MiB)` for seven days.
//!
//! **Confidence**: how much of this to believe, from 0 to 1.
//!
//! ```text
//! days       = min(days since the first sample, samples ÷ 1440)
//! confidence = days ÷ (days + 1)                               1 day: 0.5, 3 days: 0.75, 7 days: 0.875
//! margin     = 15 % + (30 % − 15 %) × (1 − confidence)         1 day: 22.5 %
//! advice     = ⌈edge of the percentile's bucket × (1 + margin)⌉  in whole millicores, mebibytes
//! ```
//!
//! One sample is enough for an answer: what a first pod was seen to use, and 30 %. An answer is at least what the
//! samples say, and at most 5 % of rounding and the margin more, but never below a margin over 10m and 10 MiB.
//!
//! **The day**: the largest five-minute mean per hour of the day, see [`Day`].
//!
//! [`Like::Crane`] answers as craned would have, bit by bit, for those who compare.
//!
//! A sample costs a look-up and a few hundred instructions, whatever is known. A workload with one container and four
//! pods takes less than 2 KB, and so does its [checkpoint](Learner::checkpoint).
//!
//! ```
//! use loadline_core::learn::{Learner, Options};
//! use loadline_core::ledger::{Sample, Uid};
//! use loadline_core::load::Load;
//! use loadline_core::load::recommend::WorkloadRef;
//!
//! let (mut learner, web, now) = (Learner::new(&Options::default()), WorkloadRef::default(), "2026-01-05T10:00:00Z".parse()?);
//! let usage = Load::new(200_000_000, 300 << 20);
//! learner.observe(&web, Uid::new("first-pod"), "app", Sample { at: now, window: "15s".parse()?, usage });
//! let learned = learner.recommend(&web, now).ok_or("one sample is enough")?;
//! let advice = learned.containers["app"].advice;
//! // The edges above 200m and 300 MiB are 205.9m and 304.3 MiB; 30 % more is 267.7m and 395.5 MiB.
//! assert_eq!((advice.cpu_nano, advice.memory_bytes), (Some(268_000_000), Some(396 << 20)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::ledger::{Coarse, Sample, Uid};
use crate::load::Metered;
use crate::load::recommend::{Advice, WorkloadRef};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

mod checkpoint;
mod crane;
mod day;
mod decay;
mod facts;
mod histogram;
mod pods;
mod profile;

use day::MEAN;
use pods::Pods;
use profile::{Profile, Rules, counted, moment, shared};

pub use checkpoint::Unusable;
pub use day::Day;
pub use facts::{CraneRule, Learned, LearnedContainer, Like, Options};

/// How long a pod that is not measured is remembered, in milliseconds: a day.
const POD_EXPIRY: i64 = 86_400_000;

/// One container of a workload.
#[derive(Clone, Debug)]
struct Container {
    profile: Profile,
    pods: Pods,
    /// What was last published of it.
    published: Advice,
}

impl Container {
    fn new(profile: Profile) -> Self {
        Self { profile, pods: Pods::default(), published: Advice::default() }
    }
}

/// How far is a recommendation from what was published?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Differs {
    No,
    /// Far enough, but what was published is too new.
    Later,
    Some,
    /// It was not published at all, or is far too small.
    Much,
}

impl Differs {
    fn of(new: Option<i64>, old: Option<i64>, rules: &Rules) -> Self {
        let (Some(new), Some(old)) = (new, old) else {
            return if new == old { Self::No } else { Self::Much };
        };
        let tolerated = rules.tolerance.floor_of(old).max(0);
        if new.saturating_sub(old) > tolerated.saturating_mul(4) {
            Self::Much
        } else if new.abs_diff(old) > tolerated.unsigned_abs() {
            Self::Some
        } else {
            Self::No
        }
    }
}

/// One workload.
#[derive(Clone, Debug, Default)]
struct Workload {
    /// By name.
    containers: Vec<Container>,
    /// Has anything happened since what is known was last compared with what was published?
    touched: bool,
    /// Was a container published that is not known, or not any more?
    outlived: bool,
    /// The newest sample of what was last published.
    kept: i64,
}

impl Workload {
    fn place(&self, container: &str) -> Result<usize, usize> {
        self.containers.binary_search_by(|held| (*held.profile.name).cmp(container))
    }

    /// The container of that name, heard of at that moment.
    fn container(&mut self, name: &str, at: i64, rules: &Rules) -> &mut Container {
        let place = self.place(name).unwrap_or_else(|place| {
            self.containers.reserve_exact(1);
            self.containers.insert(place, Container::new(Profile::new(name, at, rules)));
            place
        });
        &mut self.containers[place]
    }

    fn newest(&self) -> Option<i64> {
        self.containers.iter().map(|held| held.profile.newest).max()
    }

    /// Is what would be recommended far enough from what was published, or what was published too old?
    fn differs(&self, name: &str, now: i64, rules: &Rules) -> Differs {
        let unpublished = self.newest().map_or(0, |newest| newest.saturating_sub(self.kept));
        // Between three and five quarters of the time, so that not all come at once.
        let spread = i64::try_from(Uid::new(name).0 % 256).unwrap_or(0);
        let old = unpublished > rules.refresh / 4 * 3 + rules.refresh / 512 * spread;
        let mut differs = if old || self.outlived { Differs::Much } else { Differs::No };
        for held in &self.containers {
            let advice = held.profile.advice(now, rules);
            for of in Metered::ALL {
                differs = differs.max(Differs::of(advice.get(of), held.published.get(of), rules));
            }
        }
        // Who is told a little too much can wait; a newcomer that is told far too little cannot.
        if differs == Differs::Some && unpublished < rules.pause { Differs::Later } else { differs }
    }

    fn learned(&self, workload: &WorkloadRef, now: i64, rules: &Rules) -> Option<Learned> {
        let newest = self.newest()?;
        let container = |held: &Container| (held.profile.name.clone(), held.profile.learned(now, rules));
        Some(Learned {
            workload: workload.clone(),
            containers: self.containers.iter().map(container).collect(),
            updated: moment(newest),
        })
    }

    fn heap(&self) -> usize {
        let containers = self.containers.iter().map(|held| held.profile.heap() + held.pods.heap());
        self.containers.capacity() * size_of::<Container>() + containers.sum::<usize>()
    }
}

/// What is known of all workloads. See the [module](self).
#[derive(Clone, Debug)]
pub struct Learner {
    rules: Rules,
    workloads: FxHashMap<WorkloadRef, Workload>,
}

impl Learner {
    /// Nothing is known.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self { rules: Rules::new(options), workloads: FxHashMap::default() }
    }

    fn workload(&mut self, workload: &WorkloadRef) -> &mut Workload {
        // Four texts are cloned by counting their readers up: not worth a second look-up.
        self.workloads.entry(workload.clone()).or_default()
    }

    /// Counts what a container of a pod was measured to use, and tells whether it did: what is not newer than the newest
    /// of the same pod and container has been counted before.
    pub fn observe(&mut self, workload: &WorkloadRef, pod: Uid, container: &str, sample: Sample) -> bool {
        let rules = self.rules;
        let (at, window, usage) = counted(sample);
        let known = self.workload(workload);
        let held = known.container(container, at, &rules);
        let Some((pod, last)) = held.pods.advance(pod, at) else { return false };
        let mean = pod.mean.add(last.unwrap_or(at), at, window, usage);
        held.profile.observe(at, window, usage, &rules);
        if i64::from(window) >= MEAN {
            held.profile.hours.note(at, Coarse::new(usage), rules.half_life);
        } else if let Some((began, mean)) = mean {
            held.profile.hours.note(began, mean, rules.half_life);
        }
        known.touched = true;
        true
    }

    /// A container was killed for lack of memory: its limit then, or what it used.
    pub fn oom(&mut self, workload: &WorkloadRef, container: &str, at: Timestamp, memory_bytes: i64) {
        let (rules, at) = (self.rules, at.as_millisecond());
        let known = self.workload(workload);
        known.container(container, at, &rules).profile.killed(at, memory_bytes.max(0), &rules);
        known.touched = true;
    }

    /// The pod is gone. What it used stays known.
    pub fn gone(&mut self, workload: &WorkloadRef, pod: Uid) {
        let known = self.workloads.get_mut(workload);
        known.into_iter().flat_map(|known| &mut known.containers).for_each(|held| held.pods.remove(pod));
    }

    /// Forgets all about a workload.
    pub fn forget(&mut self, workload: &WorkloadRef) {
        self.workloads.remove(workload);
    }

    /// Forgets what was not seen for too long: workloads, which are returned, containers and pods.
    pub fn expire(&mut self, now: Timestamp) -> Vec<WorkloadRef> {
        let now = now.as_millisecond();
        let (oldest, pods) = (now.saturating_sub(self.rules.expiry), now.saturating_sub(POD_EXPIRY));
        for known in self.workloads.values_mut() {
            for held in &mut known.containers {
                held.pods.expire(pods);
                let outlived = held.profile.newest < oldest && held.published != Advice::default();
                known.outlived |= outlived;
                known.touched |= outlived;
            }
            known.containers.retain(|held| held.profile.newest >= oldest);
        }
        let gone = self.workloads.extract_if(|_, known| known.containers.is_empty());
        let mut gone: Vec<_> = gone.map(|(workload, _)| workload).collect();
        gone.sort_unstable();
        gone
    }

    /// What is known of a workload; `None` if nothing is.
    #[must_use]
    pub fn recommend(&self, workload: &WorkloadRef, now: Timestamp) -> Option<Learned> {
        self.workloads.get(workload)?.learned(workload, now.as_millisecond(), &self.rules)
    }

    /// The workloads whose recommendation differs by more than the tolerance from what was [published](Self::published),
    /// or was published long ago, by name. They are told until they are published.
    pub fn changed(&mut self, now: Timestamp) -> Vec<Learned> {
        let (rules, now) = (self.rules, now.as_millisecond());
        let mut changed = Vec::new();
        for (workload, known) in self.workloads.iter_mut().filter(|(_, known)| known.touched) {
            let differs = known.differs(&workload.key.name, now, &rules);
            known.touched = differs != Differs::No;
            if differs > Differs::Later {
                changed.extend(known.learned(workload, now, &rules));
            }
        }
        changed.sort_unstable_by(|a, b| a.workload.cmp(&b.workload));
        changed
    }

    /// What a published recommendation says of the containers of a workload: one just written, or one found at the start.
    pub fn published(&mut self, workload: &WorkloadRef, containers: &BTreeMap<Arc<str>, Advice>) {
        let Some(known) = self.workloads.get_mut(workload) else { return };
        known.outlived = containers.keys().any(|name| known.place(name).is_err());
        known.touched = true;
        known.kept = known.newest().unwrap_or_default();
        for held in &mut known.containers {
            held.published = containers.get(&held.profile.name).copied().unwrap_or_default();
        }
    }

    /// What is known of a workload as bytes, to be [restored](Self::restore) after a restart; `None` if nothing is.
    #[must_use]
    pub fn checkpoint(&self, workload: &WorkloadRef) -> Option<Vec<u8>> {
        let known = self.workloads.get(workload)?;
        Some(checkpoint::encode(known.containers.iter().map(|held| &held.profile)))
    }

    /// Takes up what was known of a workload. Of a container that was measured meanwhile, what rests on more samples
    /// stays.
    ///
    /// # Errors
    /// When the bytes are not such a checkpoint, or of other arithmetic. Nothing has changed then.
    pub fn restore(&mut self, workload: &WorkloadRef, bytes: &[u8]) -> Result<(), Unusable> {
        let profiles = checkpoint::decode(bytes)?;
        if profiles.iter().any(|profile| profile.is_crane() != self.rules.is_crane()) {
            return Err(Unusable::Method);
        }
        let rules = self.rules;
        let known = self.workload(workload);
        known.touched = true;
        for profile in profiles {
            let held = known.container(&profile.name, profile.newest, &rules);
            if held.profile.samples <= profile.samples {
                held.profile = profile;
            }
        }
        Ok(())
    }

    /// All workloads something is known of, in no particular order.
    #[must_use]
    pub fn workloads(&self) -> impl ExactSizeIterator<Item = &WorkloadRef> {
        self.workloads.keys()
    }

    /// Allocated bytes, itself not included. Names are counted in full, though they may be shared.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let slots = (self.workloads.capacity() * 8).div_ceil(7).next_power_of_two();
        let name = |of: &WorkloadRef| {
            [&of.group, &of.kind, &of.key.namespace, &of.key.name].into_iter().map(shared).sum::<usize>()
        };
        let held = self.workloads.iter().map(|(workload, known)| name(workload) + known.heap());
        slots * (size_of::<(WorkloadRef, Workload)>() + 1) + held.sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
