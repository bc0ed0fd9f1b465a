//! Has this happened before, and is it time to say so again?

use super::{FLUSH, Happened, Regarding, Reporter};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Without a repetition for so long, a series is over.
const LASTS: Duration = Duration::from_mins(6);
/// Events remembered at a time; the ones that have not been seen for longest are forgotten first.
const MOST: usize = 4096;

/// What makes two events the same.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Seen {
    pub by: Reporter,
    pub regarding: Regarding,
    pub related: Option<Regarding>,
    pub happened: Happened,
}

#[derive(Debug)]
struct Entry {
    name: String,
    count: u32,
    last: Timestamp,
    /// When it was last seen.
    at: Instant,
    /// When it was last written.
    told: Instant,
    /// Does the server know it?
    created: bool,
    /// Is there more than the server knows?
    dirty: bool,
}

/// What to do about an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is the first.
    Create(Arc<Seen>, String),
    /// It has happened again, and nobody was told for a while.
    Update(Arc<Seen>),
    /// It is counted, and will be told later.
    Wait,
}

/// Events of the last minutes.
#[derive(Debug)]
pub(super) struct Series {
    seen: BTreeMap<Arc<Seen>, Entry>,
    /// By when they were last seen.
    order: BTreeSet<(Instant, Arc<Seen>)>,
    /// Names of events must differ, also between runs against the same server.
    serial: u64,
}

impl Series {
    /// Names are counted from that number on.
    pub fn new(serial: u64) -> Self {
        Self { seen: BTreeMap::new(), order: BTreeSet::new(), serial }
    }

    /// Something happened.
    pub fn add(&mut self, seen: Seen, at: Timestamp, now: Instant) -> Step {
        while let Some((last, oldest)) = self.order.first().cloned()
            && (now.duration_since(last) > LASTS || self.seen.len() >= MOST)
        {
            self.forget(&oldest);
        }
        let seen = Arc::new(seen);
        if let Some(entry) = self.seen.get_mut(&seen) {
            self.order.remove(&(entry.at, seen.clone()));
            self.order.insert((now, seen.clone()));
            (entry.count, entry.last, entry.at) = (entry.count.saturating_add(1), at, now);
            // The second is told at once; whoever looks is to know that it goes on.
            let due = entry.created && (entry.count == 2 || now.duration_since(entry.told) >= FLUSH);
            (entry.dirty, entry.told) = (!due, if due { now } else { entry.told });
            return if due { Step::Update(seen) } else { Step::Wait };
        }
        self.serial = self.serial.wrapping_add(1);
        let name = format!("{}.{:016x}", seen.regarding.key.name, self.serial);
        let entry = Entry {
            name: name.clone(),
            count: 1,
            last: at,
            at: now,
            told: now,
            created: false,
            dirty: false,
        };
        self.seen.insert(seen.clone(), entry);
        self.order.insert((now, seen.clone()));
        Step::Create(seen, name)
    }

    /// Those of which there is more than the server knows, and has not been told for a while.
    pub fn due(&mut self, now: Instant) -> Vec<Arc<Seen>> {
        let mut due = Vec::new();
        for (seen, entry) in &mut self.seen {
            if entry.dirty && entry.created && now.duration_since(entry.told) >= FLUSH {
                (entry.dirty, entry.told) = (false, now);
                due.push(seen.clone());
            }
        }
        due
    }

    /// Name, count and last time of a series.
    pub fn state(&self, seen: &Seen) -> Option<(&str, u32, Timestamp)> {
        self.seen.get(seen).map(|entry| (entry.name.as_str(), entry.count, entry.last))
    }

    /// The server knows it.
    pub fn written(&mut self, seen: &Seen) {
        if let Some(entry) = self.seen.get_mut(seen) {
            entry.created = true;
        }
    }

    /// The next of them is the first again.
    pub fn forget(&mut self, seen: &Arc<Seen>) {
        if let Some(entry) = self.seen.remove(seen) {
            self.order.remove(&(entry.at, seen.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;
    use crate::cluster::resource::PODS;
    use loadline_core::object::Key;

    fn seen(name: &str, note: &str) -> Seen {
        Seen {
            by: Reporter { controller: "c".into(), instance: "i".into() },
            regarding: Regarding { resource: PODS, key: Key::new("shop", name), uid: "u".into() },
            related: None,
            happened: Happened {
                severity: Severity::Warning,
                reason: "FailedScheduling",
                action: "Scheduling",
                note: note.into(),
            },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_repetition_is_counted_told_at_once_the_first_time_and_then_now_and_then() {
        let (mut series, at) = (Series::new(7), Timestamp::UNIX_EPOCH);
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let Step::Create(first, name) = series.add(seen("a", "full"), at, start) else { panic!("the first") };
        assert!(name.starts_with("a."));
        series.written(&first);
        assert_eq!(
            series.add(seen("a", "full"), at, after(1)),
            Step::Update(first.clone()),
            "the second, at once"
        );
        assert_eq!(series.add(seen("a", "full"), at, after(2)), Step::Wait, "the third, later");
        assert_eq!(series.add(seen("a", "full"), at, after(3)), Step::Wait);
        assert_eq!(series.due(after(5)), [], "too soon");
        assert_eq!(series.due(after(11)), std::slice::from_ref(&first));
        assert_eq!(series.state(&first).map(|(_, count, _)| count), Some(4));
        assert_eq!(series.due(after(60)), [], "nothing new to tell");
        assert!(
            matches!(series.add(seen("a", "hot"), at, after(61)), Step::Create(..)),
            "another text is news"
        );
        assert!(matches!(series.add(seen("b", "full"), at, after(61)), Step::Create(..)), "another object");
        let later = after(3) + LASTS + Duration::from_secs(1);
        assert!(matches!(series.add(seen("a", "full"), at, later), Step::Create(..)), "the series was over");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_updated_that_the_server_does_not_know() {
        let (mut series, at, start) = (Series::new(7), Timestamp::UNIX_EPOCH, Instant::now());
        let Step::Create(first, _) = series.add(seen("a", "full"), at, start) else { panic!("the first") };
        assert_eq!(series.add(seen("a", "full"), at, start), Step::Wait, "it is still being written");
        assert_eq!(series.due(start + FLUSH), []);
        series.written(&first);
        assert_eq!(series.due(start + FLUSH), [first]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded() {
        let (mut series, at) = (Series::new(7), Timestamp::UNIX_EPOCH);
        for i in 0..2 * MOST {
            series.add(seen(&format!("p{i}"), "full"), at, Instant::now());
        }
        assert_eq!((series.seen.len(), series.order.len()), (MOST, MOST));
    }
}
