//! Whose turn is it? Pods without a node: higher priority first, then older, then by name.
//!
//! A pod is active, in flight while something is written about it, or waiting. One that is unschedulable waits for an
//! event that could help it, see [`Helps`], and is tried again after [`FLUSH`] whatever happens. Each time it is tried in
//! vain its backoff grows, up to [`LAST_BACKOFF`], whatever the event: many pods that fit nowhere must not keep others
//! from their turn.

use super::counted::{Counted, Event};
use jiff::Timestamp;
use loadline_api::pod::Pod;
use loadline_core::object::{Key, Meta};
use loadline_core::view::PodView;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long an unschedulable pod waits if nothing helps.
const FLUSH: Duration = Duration::from_secs(30);
/// Backoff of a pod that was tried in vain once.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
/// And at most.
const LAST_BACKOFF: Duration = Duration::from_secs(10);

/// A pod without a node.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub meta: Meta,
    pub pod: Pod,
    /// What it looks like to decisions.
    pub view: Arc<PodView>,
}

impl Pending {
    /// Is what decisions depend on the same? Its status is not.
    fn wants_the_same(&self, other: &Self) -> bool {
        self.pod.generation == other.pod.generation && self.pod.facts.labels == other.pod.facts.labels
    }
}

/// Which events could help an unschedulable pod, besides a change of nodes and a pod that goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Helps {
    /// Some load goes down.
    pub load: bool,
    /// Another pod comes.
    pub pods: bool,
}

impl Helps {
    /// A node changed or a pod went: anybody may be helped.
    pub const ANY: Self = Self { load: true, pods: true };
    /// Some load went down.
    pub const LOAD: Self = Self { load: true, pods: false };
    /// A pod came.
    pub const POD_ADDED: Self = Self { load: false, pods: true };

    /// What happened if nobody says.
    fn event(self) -> Event {
        match self {
            Self::LOAD => Event::Load,
            Self::POD_ADDED => Event::AssignedPodAdd,
            _ => Event::AssignedPodDelete,
        }
    }
}

/// Smaller is sooner.
type Turn = (Reverse<i32>, Option<Timestamp>, Key);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Active,
    /// Something is written about it; what would have helped may have happened since that many news. None if it changed
    /// itself.
    InFlight {
        since: Option<u64>,
    },
    /// Until then at the latest; earlier if it is helped, but not before its pause is over.
    Waiting {
        until: Instant,
        helps: Option<Helps>,
    },
}

#[derive(Debug)]
struct Entry {
    pod: Arc<Pending>,
    place: Place,
    tries: u32,
    added: Instant,
    /// Left alone until then.
    backoff: Option<Instant>,
    /// Was it ever found to fit nowhere?
    unschedulable: bool,
    /// Since when it has been refused for load each time it was looked at; none if it was not, the last time.
    overloaded_since: Option<Instant>,
    /// The plugins that kept it from nodes when it was last looked at; none while it is looked at.
    plugins: BTreeSet<&'static str>,
}

/// How many wait for what. News come with every pod that is bound, and most help nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiters {
    /// For nothing but the end of their pause.
    paused: usize,
    load: usize,
    pods: usize,
}

impl Waiters {
    fn count(&mut self, place: Place, by: fn(usize, usize) -> usize) {
        let Place::Waiting { helps, .. } = place else { return };
        let Some(helps) = helps else {
            self.paused = by(self.paused, 1);
            return;
        };
        self.load = by(self.load, usize::from(helps.load));
        self.pods = by(self.pods, usize::from(helps.pods));
    }
}

/// Pods without a node.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pods: BTreeMap<Key, Entry>,
    active: BTreeSet<Turn>,
    waiting: BTreeSet<(Instant, Key)>,
    unschedulable_count: usize,
    waiters: Waiters,
    /// How often there was news that may have helped somebody.
    news: u64,
    counted: Counted,
}

impl Queue {
    /// How many pods have no node because they fitted nowhere when they were last looked at.
    pub fn unschedulable_count(&self) -> usize {
        self.unschedulable_count
    }

    /// A pod has no node. One that changed in what it wants is looked at at once.
    pub fn set(&mut self, pod: Arc<Pending>) {
        let key = pod.meta.key.clone();
        let Some(entry) = self.pods.get_mut(&key).filter(|e| e.pod.meta.uid == pod.meta.uid) else {
            self.remove(&key);
            self.active.insert(turn(&pod));
            self.counted.came("active", Event::PodAdd);
            self.pods.insert(
                key,
                Entry {
                    pod,
                    place: Place::Active,
                    tries: 0,
                    added: Instant::now(),
                    backoff: None,
                    unschedulable: false,
                    overloaded_since: None,
                    plugins: BTreeSet::new(),
                },
            );
            return;
        };
        let changed = !entry.pod.wants_the_same(&pod);
        let (old, place) = (std::mem::replace(&mut entry.pod, pod.clone()), entry.place);
        match place {
            Place::Active => {
                self.active.remove(&turn(&old));
                self.active.insert(turn(&pod));
            }
            Place::InFlight { .. } if changed => {
                entry.put(Place::InFlight { since: None }, &mut self.waiters);
            }
            Place::Waiting { until, .. } if changed => {
                self.waiting.remove(&(until, key));
                entry.put(Place::Active, &mut self.waiters);
                self.active.insert(turn(&pod));
                self.counted.came("active", Event::PodUpdate);
            }
            Place::InFlight { .. } | Place::Waiting { .. } => {}
        }
    }

    /// A pod has a node, or is gone.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Pending>> {
        let entry = self.pods.remove(key)?;
        match entry.place {
            Place::Active => drop(self.active.remove(&turn(&entry.pod))),
            Place::Waiting { until, .. } => drop(self.waiting.remove(&(until, key.clone()))),
            Place::InFlight { .. } => {}
        }
        self.unschedulable_count -= usize::from(entry.unschedulable);
        self.waiters.count(entry.place, |count, one| count - one);
        self.counted.keep(&entry.plugins, &entry.pod.pod.scheduler, -1);
        Some(entry.pod)
    }

    /// Is this pod held?
    pub fn is_in_flight(&self, key: &Key, uid: &str) -> bool {
        let held = |e: &Entry| *e.pod.meta.uid == *uid && matches!(e.place, Place::InFlight { .. });
        self.pods.get(key).is_some_and(held)
    }

    /// Whose turn it is; the pod is held until something is said about it.
    pub fn pop(&mut self, now: Instant) -> Option<Arc<Pending>> {
        while let Some((until, key)) = self.waiting.first().filter(|(until, _)| *until <= now).cloned() {
            let paused = self.pods.get(&key).is_some_and(|entry| entry.backoff == Some(until));
            self.release(&key, if paused { Event::BackoffComplete } else { Event::Timeout }, now);
        }
        let (.., key) = self.active.pop_first()?;
        let entry = self.pods.get_mut(&key)?;
        let plugins = std::mem::take(&mut entry.plugins);
        self.counted.keep(&plugins, &entry.pod.pod.scheduler, -1);
        entry.put(Place::InFlight { since: Some(self.news) }, &mut self.waiters);
        Some(entry.pod.clone())
    }

    /// A pod was looked at, and these plugins keep it from nodes; if load is one of them, for how long has that been so?
    pub fn looked_at(
        &mut self,
        key: &Key,
        plugins: BTreeSet<&'static str>,
        by_load: bool,
        now: Instant,
    ) -> Option<Duration> {
        let entry = self.pods.get_mut(key)?;
        self.counted.keep(&entry.plugins, &entry.pod.pod.scheduler, -1);
        self.counted.keep(&plugins, &entry.pod.pod.scheduler, 1);
        entry.plugins = plugins;
        entry.overloaded_since = by_load.then(|| entry.overloaded_since.unwrap_or(now));
        Some(now.duration_since(entry.overloaded_since?))
    }

    pub fn get(&self, key: &Key) -> Option<Arc<Pending>> {
        self.pods.get(key).map(|entry| entry.pod.clone())
    }

    /// When a pod came, and which try this is, from 1 on.
    pub fn tried(&self, key: &Key) -> Option<(Instant, u32)> {
        self.pods.get(key).map(|entry| (entry.added, entry.tries.saturating_add(1)))
    }

    /// Everybody about whom nothing is being written.
    pub fn waiting(&self) -> Vec<Arc<Pending>> {
        let idle = self.pods.values().filter(|entry| !matches!(entry.place, Place::InFlight { .. }));
        idle.map(|entry| entry.pod.clone()).collect()
    }

    /// How many are active, wait for nothing but the end of their pause, and wait for something that helps. Nobody is
    /// counted twice, as in kube-scheduler.
    pub fn counts(&self) -> [usize; 3] {
        let paused = self.waiters.paused;
        [self.active.len(), paused, self.waiting.len() - paused]
    }

    /// The pod that is held fits nowhere; it is looked at again when load has kept it from nodes for so long.
    pub fn unschedulable(&mut self, key: &Key, helps: Helps, patience: Option<Duration>, now: Instant) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        let Place::InFlight { since } = entry.place else { return };
        let helped = since != Some(self.news);
        self.unschedulable_count += usize::from(!std::mem::replace(&mut entry.unschedulable, true));
        let backoff = now + entry.next_backoff();
        let mut until = if helped { backoff } else { now + FLUSH };
        let end = entry.overloaded_since.zip(patience).map(|(since, patience)| since + patience);
        if let Some(end) = end.filter(|end| *end > now) {
            until = until.min(end.max(backoff));
        }
        entry.backoff = Some(backoff);
        entry.put(Place::Waiting { until, helps: Some(helps) }, &mut self.waiters);
        self.waiting.insert((until, key.clone()));
        self.counted.came("unschedulable", Event::AttemptFailure);
    }

    /// What was written about the pod that is held did not arrive: it is tried again after a pause.
    pub fn backoff(&mut self, key: &Key, now: Instant) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        if !matches!(entry.place, Place::InFlight { .. }) {
            return;
        }
        let until = now + entry.next_backoff();
        entry.backoff = Some(until);
        entry.put(Place::Waiting { until, helps: None }, &mut self.waiters);
        self.waiting.insert((until, key.clone()));
        self.counted.came("backoff", Event::AttemptFailure);
    }

    /// So many more pods, or fewer, that are not here are kept by that plugin.
    pub fn keep(&mut self, plugin: &'static str, scheduler: &str, by: i64) {
        self.counted.keep(&[plugin].into(), scheduler, by);
    }

    /// What was counted since this was last asked.
    pub fn counted(&mut self) -> Counted {
        std::mem::take(&mut self.counted)
    }

    /// News that may help some. Comes with every pod that is bound, so nobody is looked at if it helps none.
    pub fn requeue(&mut self, on: Helps, now: Instant) {
        self.requeue_by(on.event(), on, now);
    }

    /// The same, and says what happened.
    pub fn requeue_by(&mut self, event: Event, on: Helps, now: Instant) {
        self.news += 1;
        let Waiters { paused, load, pods } = self.waiters;
        let concerned = if on == Helps::ANY {
            self.waiting.len() - paused
        } else {
            load * usize::from(on.load) + pods * usize::from(on.pods)
        };
        if concerned == 0 {
            return;
        }
        let helps = |entry: &Entry| match entry.place {
            Place::Waiting { helps: Some(helps), .. } => {
                on == Helps::ANY || (helps.load && on.load) || (helps.pods && on.pods)
            }
            _ => false,
        };
        let waiting = self.waiting.iter().map(|(_, key)| key);
        let helped = waiting.filter(|key| self.pods.get(key).is_some_and(helps));
        for key in helped.cloned().collect::<Vec<_>>() {
            self.release(&key, event, now);
        }
    }

    /// The same, by what became of one that is held: it does not help itself.
    pub fn requeue_others(&mut self, held: &Key, on: Helps, now: Instant) {
        let before = self.news;
        self.requeue(on, now);
        if let Some(Entry { place: Place::InFlight { since: Some(since) }, .. }) = self.pods.get_mut(held)
            && *since == before
        {
            *since = self.news;
        }
    }

    /// Pods that something keeps from being placed whatever the nodes are like.
    pub fn held_back(&self) -> Vec<Arc<Pending>> {
        self.pods
            .values()
            .filter(|entry| !entry.pod.pod.facts.wants.holds.is_empty())
            .map(|entry| entry.pod.clone())
            .collect()
    }

    /// When somebody is due by time alone.
    pub fn due(&self) -> Option<Instant> {
        self.waiting.first().map(|(until, _)| *until)
    }

    /// Does somebody wait for loads to go down?
    pub fn waits_for_load(&self) -> bool {
        self.waiters.load > 0
    }

    /// Makes a waiting pod ready, or lets it wait for the end of its pause.
    fn release(&mut self, key: &Key, event: Event, now: Instant) {
        let Some(entry) = self.pods.get_mut(key) else { return };
        let Place::Waiting { until, .. } = entry.place else { return };
        self.waiting.remove(&(until, key.clone()));
        if let Some(backoff) = entry.backoff.filter(|backoff| *backoff > now) {
            entry.put(Place::Waiting { until: backoff, helps: None }, &mut self.waiters);
            self.waiting.insert((backoff, key.clone()));
            self.counted.came("backoff", event);
        } else {
            entry.put(Place::Active, &mut self.waiters);
            self.active.insert(turn(&entry.pod));
            self.counted.came("active", event);
        }
    }
}

impl Entry {
    fn put(&mut self, place: Place, waiters: &mut Waiters) {
        waiters.count(place, |count, one| count + one);
        waiters.count(std::mem::replace(&mut self.place, place), |count, one| count - one);
    }

    fn next_backoff(&mut self) -> Duration {
        let backoff = FIRST_BACKOFF.saturating_mul(1 << self.tries.min(10)).min(LAST_BACKOFF);
        self.tries = self.tries.saturating_add(1);
        backoff
    }
}

fn turn(pod: &Pending) -> Turn {
    (Reverse(pod.pod.facts.priority), pod.pod.facts.created, pod.meta.key.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_api::json::Tree;
    use loadline_core::view::Live;
    use proptest::prelude::*;
    use serde_json::json;

    fn pod(name: &str, priority: i32, created: i64) -> Arc<Pending> {
        let meta = Meta { key: Key::new("default", name), uid: name.into(), revision: None };
        let created = Timestamp::from_second(created).expect("small").to_string();
        let object = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created},
            "spec": {"priority": priority},
        });
        let (mut pod, _) = loadline_api::pod::read(&Tree::from(&object)).expect("a pod");
        pod.resolve(&loadline_api::Context::new());
        let view = Arc::new(Live::new().view(&pod.facts, loadline_core::load::Load::ZERO));
        Arc::new(Pending { meta, pod, view })
    }

    fn names(queue: &mut Queue, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| queue.pop(now)).map(|pod| pod.meta.key.name.to_string()).collect()
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
        let load = Helps { load: true, pods: false };
        let pods = Helps { load: false, pods: true };
        let after = Duration::from_secs(1);
        let table = [
            (load, Some(Helps::LOAD), after, true, "a load that goes down helps whom load kept out"),
            (Helps::default(), Some(Helps::LOAD), after, false, "it does not help whom requests kept out"),
            (pods, Some(Helps::POD_ADDED), after, true, "a pod that comes helps who wants pods"),
            (load, Some(Helps::POD_ADDED), after, false, "and nobody else"),
            (Helps::default(), Some(Helps::ANY), after, true, "a new node may help anybody"),
            (Helps::default(), Some(Helps::ANY), Duration::ZERO, false, "but not before its pause is over"),
            (Helps::default(), None, FLUSH, true, "in the end everybody is looked at again"),
        ];
        for (wants, news, after, helped, why) in table {
            let mut queue = Queue::default();
            queue.set(pod("a", 0, 1));
            let start = Instant::now();
            let held = queue.pop(start).unwrap();
            queue.unschedulable(&held.meta.key, wants, None, start);
            if let Some(news) = news {
                queue.requeue(news, start + after);
            }
            assert_eq!(queue.pop(start + after).is_some(), helped, "{why}");
            assert_eq!(queue.unschedulable_count(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn news_that_come_while_a_pod_is_held_are_not_lost() {
        let mut queue = Queue::default();
        queue.set(pod("a", 0, 1));
        let start = Instant::now();
        let held = queue.pop(start).unwrap();
        queue.requeue(Helps::ANY, start);
        queue.unschedulable(&held.meta.key, Helps::default(), None, start);
        assert_eq!(queue.due(), Some(start + FIRST_BACKOFF));
        assert!(queue.pop(start + FIRST_BACKOFF).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_later_each_time_and_never_later_than_the_limit() {
        let mut queue = Queue::default();
        queue.set(pod("a", 0, 1));
        let (mut now, mut pauses) = (Instant::now(), Vec::new());
        for _ in 0..12 {
            let held = queue.pop(now).unwrap();
            queue.backoff(&held.meta.key, now);
            queue.requeue(Helps::ANY, now);
            let due = queue.due().unwrap();
            pauses.push(due - now);
            now = due;
        }
        assert_eq!(pauses[..3], [50, 100, 200].map(Duration::from_millis));
        assert!(pauses.is_sorted());
        assert_eq!(pauses.last(), Some(&LAST_BACKOFF));
    }

    #[tokio::test(start_paused = true)]
    async fn a_successor_of_the_same_name_is_another_pod() {
        let mut queue = Queue::default();
        queue.set(pod("a", 0, 1));
        let now = Instant::now();
        let held = queue.pop(now).unwrap();
        queue.unschedulable(&held.meta.key, Helps::default(), None, now);
        let mut next = Pending::clone(&held);
        next.meta.uid = "another".into();
        queue.set(Arc::new(next));
        assert_eq!(queue.unschedulable_count(), 0);
        assert_eq!(&*queue.pop(now).unwrap().meta.uid, "another");
        assert!(queue.is_in_flight(&held.meta.key, "another") && !queue.is_in_flight(&held.meta.key, "a"));
    }

    #[tokio::test(start_paused = true)]
    async fn by_what_pods_came_into_which_queue_and_what_keeps_them_is_counted() {
        let mut queue = Queue::default();
        let (key, start) = (Key::new("default", "a"), Instant::now());
        queue.set(pod("a", 0, 1));
        let counted = |queue: &mut Queue| {
            let Counted { incoming, kept } = queue.counted();
            let came =
                incoming.into_iter().map(|((to, by), count)| format!("{to} by {} {count}", by.label()));
            let kept =
                kept.into_iter().filter(|(_, by)| *by != 0).map(|((by, _), count)| format!("{by} {count}"));
            came.chain(kept).collect::<Vec<_>>()
        };
        assert_eq!(counted(&mut queue), ["active by UnschedulablePodAdd 1"]);
        queue.pop(start);
        queue.looked_at(&key, ["NodeResourcesFit", "Load"].into(), true, start);
        queue.unschedulable(&key, Helps::LOAD, None, start);
        let refused = ["unschedulable by ScheduleAttemptFailure 1", "Load 1", "NodeResourcesFit 1"];
        assert_eq!(counted(&mut queue), refused);
        queue.requeue_by(Event::NodeAdd, Helps::ANY, start);
        assert_eq!(counted(&mut queue), ["backoff by NodeAdd 1"], "not before its pause is over");
        queue.pop(start + FIRST_BACKOFF);
        let looked_at = ["active by BackoffComplete 1", "Load -1", "NodeResourcesFit -1"];
        assert_eq!(counted(&mut queue), looked_at, "it is looked at");
        queue.looked_at(&key, ["Load"].into(), true, start + FIRST_BACKOFF);
        queue.unschedulable(&key, Helps::LOAD, None, start + FIRST_BACKOFF);
        queue.pop(start + FIRST_BACKOFF + FLUSH);
        let again = ["active by UnschedulableTimeout 1", "unschedulable by ScheduleAttemptFailure 1"];
        assert_eq!(counted(&mut queue), again);
        queue.looked_at(&key, ["Load"].into(), true, start + FLUSH);
        queue.remove(&key);
        assert_eq!(counted(&mut queue), Vec::<String>::new(), "kept for a moment, and gone");
    }

    /// Something that happens to one of four pods, and how much later.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set { generation: u8 },
        Remove,
        Pop,
        Unschedulable(Helps),
        Backoff,
        News(Helps),
    }

    fn steps() -> impl Strategy<Value = Vec<(usize, Step, u64)>> {
        let helps = || (any::<bool>(), any::<bool>()).prop_map(|(load, pods)| Helps { load, pods });
        let news = prop_oneof![Just(Helps::ANY), Just(Helps::LOAD), Just(Helps::POD_ADDED)];
        let step = prop_oneof![
            (0..3u8).prop_map(|generation| Step::Set { generation }),
            Just(Step::Remove),
            Just(Step::Pop),
            Just(Step::Pop),
            helps().prop_map(Step::Unschedulable),
            helps().prop_map(Step::Unschedulable),
            Just(Step::Backoff),
            news.prop_map(Step::News),
        ];
        proptest::collection::vec((0..4usize, step, 0..200u64), 1..80)
    }

    proptest! {
        #[test]
        fn who_waits_for_what_is_what_a_walk_over_everybody_finds(steps in steps()) {
            let names = ["a", "b", "c", "d"];
            let (mut queue, mut now) = (Queue::default(), Instant::now());
            for (of, step, later) in steps {
                now += Duration::from_millis(later);
                let key = Key::new("default", names[of]);
                match step {
                    Step::Set { generation } => {
                        let mut pod = Pending::clone(&pod(names[of], 0, 1));
                        pod.pod.generation = generation.into();
                        queue.set(Arc::new(pod));
                    }
                    Step::Remove => drop(queue.remove(&key)),
                    Step::Pop => drop(queue.pop(now)),
                    Step::Unschedulable(helps) => queue.unschedulable(&key, helps, None, now),
                    Step::Backoff => queue.backoff(&key, now),
                    Step::News(helps) => queue.requeue(helps, now),
                }
                let waiting = |is: fn(Option<Helps>) -> bool| {
                    let all = queue.pods.values();
                    all.filter(|e| matches!(e.place, Place::Waiting { helps, .. } if is(helps))).count()
                };
                let found = Waiters {
                    paused: waiting(|helps| helps.is_none()),
                    load: waiting(|helps| helps.is_some_and(|h| h.load)),
                    pods: waiting(|helps| helps.is_some_and(|h| h.pods)),
                };
                prop_assert_eq!(queue.waiters, found);
                if let Step::News(on) = step {
                    let helped = |helps: Helps| on == Helps::ANY || (helps.load && on.load) || (helps.pods && on.pods);
                    let left = queue.pods.values().filter(
                        |e| matches!(e.place, Place::Waiting { helps: Some(helps), .. } if helped(helps)));
                    prop_assert_eq!(left.count(), 0, "whom it helps waits for nothing but the end of a pause");
                }
            }
        }
    }
}
