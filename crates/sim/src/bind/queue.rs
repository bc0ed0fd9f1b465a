//! Whose turn is it? Pods without a node: higher priority first, then older, then by name.
//!
//! A pod is at one of three places: ready to be decided, held while something is written about it, or waiting.
//! One that fits nowhere waits for news that could help it, see [`Help`], and is looked at again after
//! [`FLUSH`] whatever happens. Each time it is tried in vain it must be left alone a little longer, up to
//! [`LAST_PAUSE`], whatever the news: many pods that fit nowhere must not keep others from their turn.

use super::Pending;
use crate::cluster::Key;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a pod that fits nowhere waits if nothing helps.
const FLUSH: Duration = Duration::from_secs(30);
/// How long a pod is left alone after it was tried in vain once.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// And at most.
const LAST_PAUSE: Duration = Duration::from_secs(10);

/// What could help a pod that fits nowhere, besides a change of nodes and a pod that goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Help {
    /// Some load goes down.
    pub load: bool,
    /// Another pod comes.
    pub company: bool,
}

impl Help {
    /// A node changed or a pod went: anybody may be helped.
    pub const ANYBODY: Self = Self { load: true, company: true };
    /// Some load went down.
    pub const LOAD: Self = Self { load: true, company: false };
    /// A pod came.
    pub const COMPANY: Self = Self { load: false, company: true };
}

/// Smaller is sooner.
type Turn = (Reverse<i32>, Option<Timestamp>, Key);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Ready,
    /// Something is written about it; news that would have helped may have come meanwhile.
    Held {
        helped: bool,
    },
    /// Until then at the latest; earlier if it is helped, but not before its pause is over.
    Waiting {
        until: Instant,
        help: Option<Help>,
    },
}

#[derive(Debug)]
struct Entry {
    pod: Arc<Pending>,
    place: Place,
    tries: u32,
    /// Left alone until then.
    pause: Option<Instant>,
    /// Was it ever found to fit nowhere?
    refused: bool,
}

/// Pods without a node.
#[derive(Debug, Default)]
pub struct Queue {
    pods: BTreeMap<Key, Entry>,
    ready: BTreeSet<Turn>,
    waiting: BTreeSet<(Instant, Key)>,
    refused: usize,
}

impl Queue {
    /// How many pods have no node because they fitted nowhere when they were last looked at.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// A pod has no node. One that changed in what it wants is looked at at once.
    pub fn set(&mut self, pod: Arc<Pending>) {
        let key = pod.meta.key.clone();
        let Some(entry) = self.pods.get_mut(&key).filter(|e| e.pod.meta.uid == pod.meta.uid) else {
            self.remove(&key);
            self.ready.insert(turn(&pod));
            self.pods.insert(key, Entry { pod, place: Place::Ready, tries: 0, pause: None, refused: false });
            return;
        };
        let changed = !entry.pod.wants_the_same(&pod);
        let (old, place) = (std::mem::replace(&mut entry.pod, pod.clone()), entry.place);
        match place {
            Place::Ready => {
                self.ready.remove(&turn(&old));
                self.ready.insert(turn(&pod));
            }
            Place::Held { .. } if changed => entry.place = Place::Held { helped: true },
            Place::Waiting { until, .. } if changed => {
                self.waiting.remove(&(until, key));
                entry.place = Place::Ready;
                self.ready.insert(turn(&pod));
            }
            Place::Held { .. } | Place::Waiting { .. } => {}
        }
    }

    /// A pod has a node, or is gone.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Pending>> {
        let entry = self.pods.remove(key)?;
        match entry.place {
            Place::Ready => drop(self.ready.remove(&turn(&entry.pod))),
            Place::Waiting { until, .. } => drop(self.waiting.remove(&(until, key.clone()))),
            Place::Held { .. } => {}
        }
        self.refused -= usize::from(entry.refused);
        Some(entry.pod)
    }

    /// Is this pod held?
    pub fn holds(&self, key: &Key, uid: &str) -> bool {
        let held = |e: &Entry| e.pod.meta.uid == uid && matches!(e.place, Place::Held { .. });
        self.pods.get(key).is_some_and(held)
    }

    /// Whose turn it is; the pod is held until something is said about it.
    pub fn next(&mut self, now: Instant) -> Option<Arc<Pending>> {
        while let Some((_, key)) = self.waiting.first().filter(|(until, _)| *until <= now).cloned() {
            self.release(&key, now);
        }
        let (.., key) = self.ready.pop_first()?;
        let entry = self.pods.get_mut(&key)?;
        entry.place = Place::Held { helped: false };
        Some(entry.pod.clone())
    }

    /// The pod that is held fits nowhere.
    pub fn refuse(&mut self, key: &Key, help: Help, now: Instant) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        let Place::Held { helped } = entry.place else { return };
        self.refused += usize::from(!std::mem::replace(&mut entry.refused, true));
        let pause = now + entry.next_pause();
        let until = if helped { pause } else { now + FLUSH };
        entry.pause = Some(pause);
        entry.place = Place::Waiting { until, help: Some(help) };
        self.waiting.insert((until, key.clone()));
    }

    /// What was written about the pod that is held did not arrive: it is tried again after a pause.
    pub fn fail(&mut self, key: &Key, now: Instant) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        if !matches!(entry.place, Place::Held { .. }) {
            return;
        }
        let until = now + entry.next_pause();
        entry.pause = Some(until);
        entry.place = Place::Waiting { until, help: None };
        self.waiting.insert((until, key.clone()));
    }

    /// News that may help some.
    pub fn help(&mut self, with: Help, now: Instant) {
        let helps = |help: Help| (help.load && with.load) || (help.company && with.company);
        let anybody = with == Help::ANYBODY;
        let mut helped = Vec::new();
        for (key, entry) in &mut self.pods {
            match &mut entry.place {
                Place::Held { helped } => *helped = true,
                Place::Waiting { help: Some(help), .. } if anybody || helps(*help) => {
                    helped.push(key.clone());
                }
                Place::Waiting { .. } | Place::Ready => {}
            }
        }
        for key in helped {
            self.release(&key, now);
        }
    }

    /// Pods that something keeps from being placed whatever the nodes are like.
    pub fn held_back(&self) -> Vec<Arc<Pending>> {
        self.pods.values().filter(|entry| entry.pod.held.is_some()).map(|entry| entry.pod.clone()).collect()
    }

    /// When somebody is due by time alone.
    pub fn due(&self) -> Option<Instant> {
        self.waiting.first().map(|(until, _)| *until)
    }

    /// Does somebody wait for loads to go down?
    pub fn waits_for_load(&self) -> bool {
        self.refused > 0
            && self.pods.values().any(|e| matches!(e.place, Place::Waiting { help: Some(h), .. } if h.load))
    }

    /// Makes a waiting pod ready, or lets it wait for the end of its pause.
    fn release(&mut self, key: &Key, now: Instant) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        let Place::Waiting { until, .. } = entry.place else { return };
        self.waiting.remove(&(until, key.clone()));
        if let Some(pause) = entry.pause.filter(|pause| *pause > now) {
            entry.place = Place::Waiting { until: pause, help: None };
            self.waiting.insert((pause, key.clone()));
        } else {
            entry.place = Place::Ready;
            self.ready.insert(turn(&entry.pod));
        }
    }
}

impl Entry {
    fn next_pause(&mut self) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.tries.min(10)).min(LAST_PAUSE);
        self.tries = self.tries.saturating_add(1);
        pause
    }
}

fn turn(pod: &Pending) -> Turn {
    (Reverse(pod.facts.priority), pod.facts.created, pod.meta.key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Meta;
    use loadline_core::view::PodFacts;

    fn pod(name: &str, priority: i32, created: i64) -> Arc<Pending> {
        let meta = Meta { key: Key::new("default", name), uid: name.into(), ..Meta::default() };
        let created = Some(Timestamp::from_second(created).expect("small"));
        let facts = PodFacts { priority, created, ..PodFacts::default() };
        Arc::new(Pending { meta, facts, told: None, held: None })
    }

    fn names(queue: &mut Queue, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| queue.next(now)).map(|pod| pod.meta.key.name.clone()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn higher_priority_goes_first_then_the_older_then_by_name() {
        let mut queue = Queue::default();
        for pod in [pod("d", 0, 2), pod("c", 0, 1), pod("b", 0, 1), pod("a", 5, 9)] {
            queue.set(pod);
        }
        assert_eq!(names(&mut queue, Instant::now()), ["a", "b", "c", "d"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_helped_only_by_what_it_waits_for_or_by_time() {
        let load = Help { load: true, company: false };
        let company = Help { load: false, company: true };
        let after = Duration::from_secs(1);
        let table = [
            (load, Some(Help::LOAD), after, true, "a load that goes down helps whom load kept out"),
            (Help::default(), Some(Help::LOAD), after, false, "it does not help whom requests kept out"),
            (company, Some(Help::COMPANY), after, true, "a pod that comes helps who wants company"),
            (load, Some(Help::COMPANY), after, false, "and nobody else"),
            (Help::default(), Some(Help::ANYBODY), after, true, "a new node may help anybody"),
            (Help::default(), Some(Help::ANYBODY), Duration::ZERO, false, "but not before its pause is over"),
            (Help::default(), None, FLUSH, true, "in the end everybody is looked at again"),
        ];
        for (wants, news, after, helped, why) in table {
            let mut queue = Queue::default();
            queue.set(pod("a", 0, 1));
            let start = Instant::now();
            let held = queue.next(start).unwrap();
            queue.refuse(&held.meta.key, wants, start);
            if let Some(news) = news {
                queue.help(news, start + after);
            }
            assert_eq!(queue.next(start + after).is_some(), helped, "{why}");
            assert_eq!(queue.refused(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn news_that_come_while_a_pod_is_held_are_not_lost() {
        let mut queue = Queue::default();
        queue.set(pod("a", 0, 1));
        let start = Instant::now();
        let held = queue.next(start).unwrap();
        queue.help(Help::ANYBODY, start);
        queue.refuse(&held.meta.key, Help::default(), start);
        assert_eq!(queue.due(), Some(start + FIRST_PAUSE));
        assert!(queue.next(start + FIRST_PAUSE).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_later_each_time_and_never_later_than_the_limit() {
        let mut queue = Queue::default();
        queue.set(pod("a", 0, 1));
        let (mut now, mut pauses) = (Instant::now(), Vec::new());
        for _ in 0..12 {
            let held = queue.next(now).unwrap();
            queue.fail(&held.meta.key, now);
            queue.help(Help::ANYBODY, now);
            let due = queue.due().unwrap();
            pauses.push(due - now);
            now = due;
        }
        assert_eq!(pauses[..3], [50, 100, 200].map(Duration::from_millis));
        assert!(pauses.is_sorted());
        assert_eq!(pauses.last(), Some(&LAST_PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_successor_of_the_same_name_is_another_pod() {
        let mut queue = Queue::default();
        queue.set(pod("a", 0, 1));
        let now = Instant::now();
        let held = queue.next(now).unwrap();
        queue.refuse(&held.meta.key, Help::default(), now);
        let mut next = Pending::clone(&held);
        next.meta.uid = "another".into();
        queue.set(Arc::new(next));
        assert_eq!(queue.refused(), 0);
        assert_eq!(queue.next(now).unwrap().meta.uid, "another");
        assert!(queue.holds(&held.meta.key, "another") && !queue.holds(&held.meta.key, "a"));
    }
}
