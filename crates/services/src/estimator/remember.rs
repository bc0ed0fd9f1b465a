//! Has this been asked before, of the same state? Then the answer is the same.
//!
//! An answer follows from what is known of a cluster and from the question, and from nothing else: no clock, no chance.
//! A scheduler that divides many replicas of a few sizes asks the same of a cluster over and over. So answers are kept
//! beside the state they were made from, and go with it when the next event is published.

use loadline_core::estimate::Answer;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// So many answers are kept of a cluster; whoever comes later is computed every time.
const MOST: usize = 256;
/// Questions of more bytes are not kept.
const LONGEST: usize = 4 * 1024;
/// So many bytes are kept of a cluster: one that is quiet for days must not have all the room of the others.
const SHARE: usize = 256 * 1024;
/// So many bytes are kept of all clusters together, however many one process answers for.
const ALL: usize = 16 * 1024 * 1024;
/// What one more answer takes beside the text of its question: its place in the map, the answer, and what the allocator
/// rounds up. Somewhat less in truth.
const EACH: usize = 512;

/// How much room for answers there is, over all clusters of a process.
#[derive(Debug)]
pub(super) struct Room {
    most: usize,
    taken: AtomicUsize,
}

impl Default for Room {
    fn default() -> Self {
        Self { most: ALL, taken: AtomicUsize::new(0) }
    }
}

impl Room {
    /// Nothing if there is not enough left.
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Place> {
        let more = |taken: usize| taken.checked_add(bytes).filter(|all| *all <= self.most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Place { room: self.clone(), bytes })
    }
}

/// Room that is taken; given back with the answer that is in it.
#[derive(Debug)]
struct Place {
    room: Arc<Room>,
    bytes: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What was asked: replicas or sets, and the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    method: u8,
    message: Vec<u8>,
}

impl Question {
    pub(super) fn replicas(message: Vec<u8>) -> Self {
        Self { method: 0, message }
    }

    pub(super) fn sets(message: Vec<u8>) -> Self {
        Self { method: 1, message }
    }

    /// Its size as a message, in bytes.
    pub(super) fn len(&self) -> usize {
        self.message.len()
    }
}

/// Answers of one state.
#[derive(Clone, Debug, Default)]
pub struct Remembered(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<Question, (Arc<Answer>, Place)>,
    bytes: usize,
}

impl Remembered {
    pub(super) fn find(&self, question: &Question) -> Option<Arc<Answer>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.answers.get(question).map(|(answer, _)| answer.clone())
    }

    /// Keeps it where there is room; an answer that is not kept is computed again.
    pub(super) fn keep(&self, question: Question, answer: &Arc<Answer>, room: &Arc<Room>) {
        let quota = answer.by_quota.as_ref().map_or(0, |bound| bound.quota.len());
        let bytes = EACH + question.len() + quota;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = kept.answers.len() < MOST && question.len() <= LONGEST && kept.bytes + bytes <= SHARE;
        // Two may have worked out the same.
        if !fits || kept.answers.contains_key(&question) {
            return;
        }
        if let Some(place) = room.take(bytes) {
            kept.answers.insert(question, (answer.clone(), place));
            kept.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(most: i32) -> Arc<Answer> {
        Arc::new(Answer { most, by_nodes: most, by_quota: None, by_load: None, by_preempting: None })
    }

    fn numbered(n: usize, length: usize) -> Question {
        Question::replicas([vec![0; length], n.to_be_bytes().to_vec()].concat())
    }

    fn count(kept: &Remembered) -> usize {
        kept.0.lock().unwrap().answers.len()
    }

    #[test]
    fn replicas_and_sets_are_different_questions() {
        let (kept, room) = (Remembered::default(), Arc::default());
        kept.keep(Question::replicas(vec![1]), &answer(7), &room);
        assert_eq!(kept.find(&Question::replicas(vec![1])).unwrap().most, 7);
        assert_eq!(kept.find(&Question::sets(vec![1])), None);
        assert_eq!(kept.find(&Question::replicas(vec![1, 2])), None);
    }

    #[test]
    fn neither_many_questions_nor_long_ones_fill_the_memory() {
        let (kept, room) = (Remembered::default(), Arc::default());
        for n in 0..MOST + 10 {
            kept.keep(numbered(n, 0), &answer(1), &room);
        }
        assert_eq!(count(&kept), MOST);
        let kept = Remembered::default();
        kept.keep(Question::replicas(vec![0; LONGEST + 1]), &answer(1), &room);
        assert_eq!(count(&kept), 0, "too long");
        for n in 0..MOST {
            kept.keep(numbered(n, LONGEST - 8), &answer(1), &room);
        }
        assert_eq!(count(&kept), SHARE / (LONGEST + EACH), "no more than a cluster's share");
    }

    #[test]
    fn a_thousand_clusters_keep_no_more_than_all_may_and_the_next_state_gives_the_room_back() {
        let room: Arc<Room> = Arc::default();
        let mut clusters: Vec<Remembered> = (0..1000).map(|_| Remembered::default()).collect();
        for kept in &clusters {
            for n in 0..MOST {
                kept.keep(numbered(n, LONGEST - 8), &answer(1), &room);
            }
        }
        let taken = || room.taken.load(Ordering::Relaxed);
        assert!(taken() <= ALL && taken() > ALL - LONGEST - EACH, "{}", taken());
        assert_eq!(clusters.iter().map(count).sum::<usize>() * (LONGEST + EACH), taken());
        let last = clusters.pop().unwrap();
        assert_eq!(count(&last), 0, "it came too late: it is computed every time");
        // The first hears of something new: what it had goes to who asks next.
        clusters[0] = Remembered::default();
        last.keep(numbered(0, 0), &answer(1), &room);
        assert_eq!(count(&last), 1);
        drop((clusters, last));
        assert_eq!(taken(), 0);
    }

    #[test]
    fn what_two_worked_out_at_once_takes_its_room_once() {
        let (kept, room) = (Remembered::default(), Arc::default());
        for _ in 0..2 {
            kept.keep(numbered(1, 0), &answer(1), &room);
        }
        assert_eq!((count(&kept), room.taken.load(Ordering::Relaxed)), (1, EACH + 8));
    }
}
