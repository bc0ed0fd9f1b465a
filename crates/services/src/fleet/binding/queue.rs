//! Whose turn is it? Bindings that may need a decision: higher priority first, then who came first.
//!
//! One is active, in flight while it is being decided or written about, or waiting: for the end of its pause, or for room
//! in some cluster. Pauses and patience are those of Karmada's queue.

use loadline_core::object::Key;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// The pause after the first failure.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// And at most.
const LAST_BACKOFF: Duration = Duration::from_secs(10);

/// Smaller is sooner.
type Turn = (Reverse<i32>, u64, Key);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Active,
    /// Being decided about. Something may have changed meanwhile: then it is looked at again at once, or, if only
    /// room was gained, should it turn out to lack some.
    InFlight {
        changed: bool,
        room: bool,
    },
    Waiting {
        until: Instant,
        /// For room, not only for the end of its pause.
        room: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    priority: i32,
    /// When it came, as a number.
    order: u64,
    place: Place,
    tries: u32,
    /// Left alone until then.
    pause: Option<Instant>,
}

/// Bindings that may need a decision.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: BTreeMap<Key, Entry>,
    active: BTreeSet<Turn>,
    waiting: BTreeSet<(Instant, Key)>,
    came: u64,
}

impl Queue {
    /// Something about the binding changed: it is looked at as soon as it is its turn.
    pub fn push(&mut self, key: &Key, priority: i32) {
        self.came += 1;
        let new = Entry { priority, order: self.came, place: Place::Active, tries: 0, pause: None };
        let known = self.entries.get(key).copied();
        let entry = match known {
            None => new,
            Some(entry) => {
                self.unplace(key, &entry);
                match entry.place {
                    // Its place in the row stays.
                    Place::Active => Entry { priority, ..entry },
                    Place::InFlight { room, .. } => {
                        Entry { priority, place: Place::InFlight { changed: true, room }, ..entry }
                    }
                    Place::Waiting { .. } => Entry { priority, place: Place::Active, ..entry },
                }
            }
        };
        self.put(key, entry);
    }

    /// It is gone, or somebody else's.
    pub fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.unplace(key, &entry);
        }
    }

    /// Whose turn it is; it is held until something is said about it.
    pub fn pop(&mut self, now: Instant) -> Option<Key> {
        while let Some((_, key)) = self.waiting.first().filter(|(until, _)| *until <= now).cloned() {
            self.release(&key, now);
        }
        let (.., key) = self.active.pop_first()?;
        self.entries.get_mut(&key)?.place = Place::InFlight { changed: false, room: false };
        Some(key)
    }

    /// The one that is held needs nothing more, unless it changed meanwhile.
    pub fn done(&mut self, key: &Key) {
        let Some(entry) = self.held(key) else { return };
        if matches!(entry.place, Place::InFlight { changed: true, .. }) {
            self.put(key, Entry { place: Place::Active, tries: 0, pause: None, ..entry });
        } else {
            self.entries.remove(key);
        }
    }

    /// The one that is held was not looked at after all: its place in the row is the same.
    pub fn put_back(&mut self, key: &Key) {
        let Some(entry) = self.held(key) else { return };
        self.put(key, Entry { place: Place::Active, ..entry });
    }

    /// The one that is held is to be tried again after a pause.
    pub fn backoff(&mut self, key: &Key, now: Instant) {
        let Some(mut entry) = self.held(key) else { return };
        let until = now + entry.next_pause();
        self.put(key, Entry { place: Place::Waiting { until, room: false }, pause: Some(until), ..entry });
    }

    /// The one that is held lacks room: it waits for some, but not for longer than that.
    pub fn park(&mut self, key: &Key, patience: Duration, now: Instant) {
        let Some(mut entry) = self.held(key) else { return };
        let pause = now + entry.next_pause();
        let place = match entry.place {
            Place::InFlight { changed: true, .. } => Place::Active,
            Place::InFlight { room: true, .. } => Place::Waiting { until: pause, room: false },
            _ => Place::Waiting { until: now + patience.max(FIRST_BACKOFF), room: true },
        };
        self.put(key, Entry { place, pause: Some(pause), ..entry });
    }

    /// There is more room somewhere: those it may help are looked at again, as soon as their pause is over.
    pub fn room(&mut self, helps: impl Fn(&Key) -> bool, now: Instant) {
        let helped: Vec<Key> = self
            .entries
            .iter()
            .filter(|(key, e)| e.wants_room() && helps(key))
            .map(|(key, _)| key.clone())
            .collect();
        for key in helped {
            match self.entries.get_mut(&key) {
                Some(Entry { place: Place::InFlight { room, .. }, .. }) => *room = true,
                _ => self.release(&key, now),
            }
        }
    }

    /// When somebody is due by time alone.
    pub fn due(&self) -> Option<Instant> {
        self.waiting.first().map(|(until, _)| *until)
    }

    /// How many are active, pause, and wait for room.
    pub fn counts(&self) -> [usize; 3] {
        let parked =
            self.entries.values().filter(|e| matches!(e.place, Place::Waiting { room: true, .. })).count();
        [self.active.len(), self.waiting.len() - parked, parked]
    }

    /// The one that is held, if it still is.
    fn held(&self, key: &Key) -> Option<Entry> {
        self.entries.get(key).copied().filter(|entry| matches!(entry.place, Place::InFlight { .. }))
    }

    /// Makes a waiting one active, or lets it wait for the end of its pause.
    fn release(&mut self, key: &Key, now: Instant) {
        let Some(entry) = self.entries.get(key).copied() else { return };
        self.unplace(key, &entry);
        let place = match entry.pause.filter(|pause| *pause > now) {
            Some(until) => Place::Waiting { until, room: false },
            None => Place::Active,
        };
        self.put(key, Entry { place, ..entry });
    }

    fn put(&mut self, key: &Key, entry: Entry) {
        match entry.place {
            Place::Active => drop(self.active.insert((Reverse(entry.priority), entry.order, key.clone()))),
            Place::Waiting { until, .. } => drop(self.waiting.insert((until, key.clone()))),
            Place::InFlight { .. } => {}
        }
        self.entries.insert(key.clone(), entry);
    }

    fn unplace(&mut self, key: &Key, entry: &Entry) {
        match entry.place {
            Place::Active => drop(self.active.remove(&(Reverse(entry.priority), entry.order, key.clone()))),
            Place::Waiting { until, .. } => drop(self.waiting.remove(&(until, key.clone()))),
            Place::InFlight { .. } => {}
        }
    }
}

impl Entry {
    fn wants_room(&self) -> bool {
        matches!(self.place, Place::Waiting { room: true, .. } | Place::InFlight { room: false, .. })
    }

    fn next_pause(&mut self) -> Duration {
        let pause = FIRST_BACKOFF.saturating_mul(1 << self.tries.min(10)).min(LAST_BACKOFF);
        self.tries = self.tries.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_mins(5);

    fn key(name: &str) -> Key {
        Key::new("shop", name)
    }

    fn names(queue: &mut Queue, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| queue.pop(now)).map(|key| key.name.to_string()).collect()
    }

    #[test]
    fn higher_priority_goes_first_then_who_came_first() {
        let mut queue = Queue::default();
        for (name, priority) in [("d", 0), ("a", 0), ("c", 7), ("b", 0)] {
            queue.push(&key(name), priority);
        }
        queue.push(&key("d"), 0);
        assert_eq!(
            names(&mut queue, Instant::now()),
            ["c", "d", "a", "b"],
            "pushed again it keeps its place"
        );
    }

    #[test]
    fn one_that_is_held_is_not_given_to_another_and_comes_again_if_it_changed() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(&key("a"), 0);
        let held = queue.pop(now).unwrap();
        queue.push(&key("a"), 0);
        assert_eq!(queue.pop(now), None);
        queue.done(&held);
        assert_eq!(queue.pop(now), Some(key("a")));
        queue.done(&held);
        assert_eq!((queue.pop(now), queue.counts()), (None, [0; 3]));
    }

    #[test]
    fn one_that_is_put_back_comes_before_those_that_came_later() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for name in ["b", "a"] {
            queue.push(&key(name), 0);
        }
        let held = queue.pop(now).unwrap();
        queue.put_back(&held);
        assert_eq!(names(&mut queue, now), ["b", "a"]);
        queue.remove(&held);
        queue.put_back(&held);
        assert_eq!(queue.pop(now), None, "it is gone");
    }

    #[test]
    fn pauses_grow_to_ten_seconds() {
        let (mut queue, mut now) = (Queue::default(), Instant::now());
        queue.push(&key("a"), 0);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let held = queue.pop(now).unwrap();
            queue.backoff(&held, now);
            let due = queue.due().unwrap();
            pauses.push((due - now).as_secs());
            assert_eq!(queue.pop(due - Duration::from_millis(1)), None, "not before its time");
            now = due;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
    }

    #[test]
    fn who_lacks_room_is_helped_by_room_or_a_change_or_in_the_end_by_time() {
        let start = Instant::now();
        let later = start + Duration::from_secs(2);
        let parked = || {
            let mut queue = Queue::default();
            queue.push(&key("a"), 0);
            let held = queue.pop(start).unwrap();
            queue.park(&held, PATIENCE, start);
            assert_eq!(queue.counts(), [0, 0, 1]);
            queue
        };
        let mut queue = parked();
        queue.room(|_| false, later);
        assert_eq!(queue.pop(later), None, "room where it may not go");
        queue.room(|_| true, later);
        assert_eq!(queue.pop(later), Some(key("a")));

        let mut queue = parked();
        queue.room(|_| true, start);
        assert_eq!(queue.pop(start), None, "many that lack room must not keep others from their turn");
        assert_eq!(queue.pop(later), Some(key("a")), "but it was not forgotten");

        let mut queue = parked();
        queue.push(&key("a"), 0);
        assert_eq!(queue.pop(start), Some(key("a")), "it asks for something else now");

        let mut queue = parked();
        assert_eq!(queue.pop(start + PATIENCE), Some(key("a")));
    }

    #[test]
    fn room_gained_while_it_was_decided_about_is_not_lost() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(&key("a"), 0);
        let held = queue.pop(now).unwrap();
        queue.room(|_| true, now);
        queue.park(&held, PATIENCE, now);
        assert_eq!(queue.due(), Some(now + FIRST_BACKOFF));
        assert_eq!(queue.pop(now + FIRST_BACKOFF), Some(key("a")));
        queue.done(&held);
        assert_eq!(queue.counts(), [0; 3], "and one that was placed needs none");
    }

    #[test]
    fn one_that_is_gone_is_nowhere() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for name in ["a", "b", "c"] {
            queue.push(&key(name), 0);
        }
        let held = queue.pop(now).unwrap();
        queue.remove(&held);
        queue.backoff(&held, now);
        queue.remove(&key("b"));
        assert_eq!(names(&mut queue, now + PATIENCE), ["c"]);
    }
}
