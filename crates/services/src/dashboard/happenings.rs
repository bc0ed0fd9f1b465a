//! What happened of late? The newest Events of the cluster, as many as are kept, each with a number that only grows.

use crate::cluster::Event;
use crate::cluster::resource::EVENTS;
use crate::cluster::watch::watched;
use jiff::Timestamp;
use loadline_api::json::{Skip, Tree};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// How many are kept.
const KEPT: usize = 10_000;
/// The longest text that is kept.
const LONGEST: usize = 1024;

/// What it is about, for whoever looks for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Topic {
    /// A pod was given a node, or was not.
    Decision,
    /// Pods were slowed down, sent away, given back to.
    Protection,
    /// A pod was moved, or should be.
    Rebalance,
    /// What is known of nodes.
    Data,
    Other,
}

/// One of them. Field names are a promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Happening {
    pub seq: u64,
    pub at: Timestamp,
    /// `Normal` or `Warning`.
    pub r#type: String,
    pub reason: String,
    /// What kind of object it is about.
    pub kind: String,
    /// `namespace/name`, or a name.
    pub about: String,
    /// Of which node it speaks, if of any.
    pub node: Option<String>,
    pub from: String,
    pub group: Topic,
    pub text: String,
    /// How often it was seen.
    pub count: u64,
}

const SKIPPED: Skip = Skip::fields(&["reportingInstance"])
    .within(&[("metadata", Skip::fields(&["labels", "annotations", "managedFields"]))]);

watched!(Events: EVENTS, skip SKIPPED, Happening, |o: &Tree<'_>| Ok(read(o)));

fn read(event: &Tree<'_>) -> Happening {
    let text = |tree: &Tree<'_>| tree.as_str().unwrap_or_default().to_owned();
    let regarding = &event["regarding"];
    let (namespace, name) = (text(&regarding["namespace"]), text(&regarding["name"]));
    let series = &event["series"];
    // Who writes events the old way says when in other fields.
    let times = [&series["lastObservedTime"], &event["deprecatedLastTimestamp"], &event["eventTime"]];
    let at = times.into_iter().find_map(|time| time.as_str()?.parse().ok());
    let counts = [&series["count"], &event["deprecatedCount"]];
    let (reason, action) = (text(&event["reason"]), text(&event["action"]));
    let (kind, said) = (text(&regarding["kind"]), shortened(text(&event["note"])));
    // Whoever writes an Event about a namespace writes it into that one.
    let about = match kind.as_str() {
        "Namespace" => name.clone(),
        _ if namespace.is_empty() => name.clone(),
        _ => format!("{namespace}/{name}"),
    };
    let node = match kind.as_str() {
        "Node" => Some(name),
        _ => (reason == "Scheduled").then(|| assigned(&said)).flatten(),
    };
    let from = match event["reportingController"].as_str() {
        None | Some("") => text(&event["deprecatedSource"]["component"]),
        Some(from) => from.to_owned(),
    };
    Happening {
        seq: 0,
        at: at.unwrap_or(Timestamp::UNIX_EPOCH),
        r#type: text(&event["type"]),
        group: topic(&reason, &action),
        kind,
        about,
        node,
        from,
        reason,
        text: said,
        count: counts.into_iter().find_map(|count| u64::try_from(count.as_i64()?).ok()).unwrap_or(1),
    }
}

/// Which node "Successfully assigned default/web-1 to node-00" speaks of; our own remarks may follow.
fn assigned(said: &str) -> Option<String> {
    let (_, node) = said.rsplit_once(" to ").filter(|_| said.starts_with("Successfully assigned "))?;
    let (node, _) = node.split_once(':').unwrap_or((node, ""));
    (!node.is_empty() && !node.contains(' ')).then(|| node.to_owned())
}

fn shortened(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

fn topic(reason: &str, action: &str) -> Topic {
    match (action, reason) {
        ("Protecting", _) => Topic::Protection,
        ("Rebalancing", _) => Topic::Rebalance,
        ("Loading" | "Tainting", _) => Topic::Data,
        ("Scheduling" | "Binding" | "Preempting", _)
        | (_, "Scheduled" | "FailedScheduling" | "Preempted") => Topic::Decision,
        _ => Topic::Other,
    }
}

#[derive(Debug, Default)]
struct Kept {
    newest: VecDeque<Happening>,
    /// By which number an event was last told, and how often it had been seen by then.
    seen: HashMap<Arc<str>, (u64, u64)>,
    next: u64,
    /// What a list has said so far, while there is one: at most twice as many as are kept, the newest of them.
    listed: Option<Vec<(Arc<str>, Happening)>>,
    /// When they were last known to be all there are.
    heard: Option<Timestamp>,
    /// Why they are not read.
    problem: Option<String>,
}

impl Kept {
    fn push(&mut self, uid: Arc<str>, mut happening: Happening) {
        // A list repeats what is known; only another count is news.
        if self.seen.get(&uid).is_some_and(|(_, count)| *count == happening.count) {
            return;
        }
        if self.newest.len() >= KEPT {
            self.newest.pop_front();
            let oldest = self.newest.front().map_or(self.next, |first| first.seq);
            // What nobody can see any more need not be known for seen.
            if self.seen.len() > 2 * KEPT {
                self.seen.retain(|_, (seq, _)| *seq >= oldest);
            }
        }
        self.next += 1;
        happening.seq = self.next;
        self.seen.insert(uid, (self.next, happening.count));
        self.newest.push_back(happening);
    }
}

/// The newest; clones are the same.
#[derive(Clone, Debug)]
pub struct Happenings {
    kept: Arc<Mutex<Kept>>,
    epoch: Arc<str>,
}

impl Default for Happenings {
    fn default() -> Self {
        // Keys of hashers are drawn anew for each.
        let drawn = RandomState::new().build_hasher().finish();
        Self { kept: Arc::default(), epoch: format!("{drawn:016x}").into() }
    }
}

/// Some of them. Field names are a promise.
#[derive(Debug, Serialize)]
pub struct Page {
    /// By whom they are numbered: another one begins anew.
    pub epoch: String,
    /// From where to go on.
    pub next: u64,
    /// Why what happens is not known, if it is not.
    pub problem: Option<String>,
    /// Is something missing between what was asked for and the first of these?
    pub dropped: bool,
    /// The newest last.
    pub items: Vec<Happening>,
}

impl Happenings {
    pub(super) fn take(&self, event: Event<Happening>, now: Timestamp) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // A list says what there is only as a whole.
        let is_current = match &event {
            Event::Failed(_) | Event::Forbidden(_) | Event::ListStarted => false,
            Event::Listed(_) => true,
            Event::Applied(..) | Event::Deleted(_) | Event::Bookmark => kept.listed.is_none(),
        };
        if is_current {
            (kept.heard, kept.problem) = (Some(now), None);
        }
        match event {
            Event::ListStarted => kept.listed = Some(Vec::new()),
            Event::Applied(meta, Ok(happening)) => match &mut kept.listed {
                Some(listed) => {
                    listed.push((meta.uid, happening));
                    // A cluster may have far more than are kept; the oldest would only be dropped later.
                    if listed.len() > 2 * KEPT {
                        listed.select_nth_unstable_by_key(KEPT, |(_, happening)| Reverse(happening.at));
                        listed.truncate(KEPT);
                    }
                }
                None => kept.push(meta.uid, happening),
            },
            // A list is by name; what is told is told in the order in which it happened.
            Event::Listed(_) => {
                let mut listed = kept.listed.take().unwrap_or_default();
                listed.sort_by_key(|(_, happening)| happening.at);
                for (uid, happening) in listed {
                    kept.push(uid, happening);
                }
            }
            Event::Deleted(meta) => {
                kept.seen.remove(&meta.uid);
            }
            Event::Failed(problem) | Event::Forbidden(problem) => {
                kept.listed = None;
                tracing::debug!(problem, "events cannot be watched");
                kept.problem = Some(problem);
            }
            Event::Applied(_, Err(_)) | Event::Bookmark => {}
        }
    }

    /// What came after a number, at most so many, the newest of them; 0 asks for the newest.
    #[must_use]
    pub fn since(&self, seq: u64, limit: usize) -> Page {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let new = kept.newest.iter().rev().take_while(|one| one.seq > seq).take(limit);
        let mut items: Vec<_> = new.cloned().collect();
        items.reverse();
        let dropped = seq > 0 && items.first().is_some_and(|first| first.seq > seq + 1);
        Page { epoch: self.epoch.to_string(), next: kept.next, problem: kept.problem.clone(), dropped, items }
    }

    /// When they were last known to be all there are, and why they are not read now.
    pub(super) fn freshness(&self) -> (Option<Timestamp>, Option<String>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.heard, kept.problem.clone())
    }

    /// The newest of what speaks of a node, or is about one of the pods on it, at most so many, the newest first.
    #[must_use]
    pub fn about(&self, node: &str, pods: &HashSet<String>, limit: usize) -> Vec<Happening> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.newest.iter().rev().filter(|one| match &one.node {
            Some(other) => other == node,
            // Who was evicted is not there any more; who is, is meant.
            None => one.kind == "Pod" && pods.contains(&one.about),
        });
        found.take(limit).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_core::object::{Key, Meta};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn happening(count: u64) -> Happening {
        let tree = r#"{"eventTime": "2026-01-01T12:00:00.000000Z", "type": "Normal", "reason": "Scheduled", "action": "Binding",
            "regarding": {"kind": "Pod", "namespace": "shop", "name": "web-1"}, "reportingController": "loadline-scheduler",
            "note": "Successfully assigned shop/web-1 to n1: least bad"}"#;
        let tree = Tree::parse(tree.as_bytes(), Skip::NOTHING).unwrap();
        Happening { count, ..read(&tree) }
    }

    fn meta(uid: &str) -> Meta {
        Meta { key: Key::new("shop", uid), uid: uid.into(), ..Meta::default() }
    }

    #[test]
    fn an_event_is_read_with_the_node_it_speaks_of() {
        let one = happening(1);
        assert_eq!((one.about.as_str(), one.node.as_deref()), ("shop/web-1", Some("n1")));
        assert_eq!((one.group, one.from.as_str()), (Topic::Decision, "loadline-scheduler"));
        assert_eq!(one.at.to_string(), "2026-01-01T12:00:00Z");
    }

    #[test]
    fn a_pod_that_is_called_as_its_namespace_keeps_both_names() {
        let about = |kind: &str, namespace: &str| {
            let tree = format!(
                r#"{{"regarding": {{"kind": "{kind}", "namespace": "{namespace}", "name": "shop"}}}}"#
            );
            read(&Tree::parse(tree.as_bytes(), Skip::NOTHING).unwrap()).about
        };
        assert_eq!(about("Pod", "shop"), "shop/shop");
        assert_eq!(about("Namespace", "shop"), "shop");
        assert_eq!(about("Node", ""), "shop");
    }

    #[test]
    fn who_may_not_read_events_is_told_so_until_they_are_read() {
        let kept = Happenings::default();
        let problem = || kept.since(0, 10).problem;
        kept.take(Event::ListStarted, NOW);
        kept.take(Event::Forbidden("may not list events".to_owned()), NOW);
        assert_eq!(problem().as_deref(), Some("may not list events"));
        assert_eq!(kept.freshness(), (None, Some("may not list events".to_owned())));
        kept.take(Event::ListStarted, NOW);
        kept.take(Event::Applied(meta("a"), Ok(happening(1))), NOW);
        assert!(problem().is_some(), "half a list says nothing");
        kept.take(Event::Listed(None), NOW);
        assert_eq!((problem(), kept.freshness()), (None, (Some(NOW), None)));
    }

    #[test]
    fn each_program_numbers_what_happens_by_itself() {
        let [one, other] = [Happenings::default(), Happenings::default()];
        assert_eq!(one.since(0, 1).epoch, one.clone().since(0, 1).epoch);
        assert_ne!(one.since(0, 1).epoch, other.since(0, 1).epoch);
    }

    #[test]
    fn what_the_old_api_wrote_is_read_too() {
        let tree = r#"{"eventTime": null, "deprecatedLastTimestamp": "2026-01-01T12:00:05Z", "deprecatedCount": 3,
            "deprecatedSource": {"component": "kubelet"}, "reportingController": "", "type": "Warning", "reason": "BackOff",
            "regarding": {"kind": "Node", "name": "n1"}, "note": "again"}"#;
        let one = read(&Tree::parse(tree.as_bytes(), Skip::NOTHING).unwrap());
        assert_eq!((one.about.as_str(), one.node.as_deref(), one.count), ("n1", Some("n1"), 3));
        assert_eq!((one.from.as_str(), one.group), ("kubelet", Topic::Other));
        assert_eq!(one.at.to_string(), "2026-01-01T12:00:05Z");
    }

    #[test]
    fn a_list_says_nothing_twice_and_a_series_says_it_again() {
        let kept = Happenings::default();
        kept.take(Event::Applied(meta("a"), Ok(happening(1))), NOW);
        kept.take(Event::Applied(meta("a"), Ok(happening(1))), NOW);
        assert_eq!(kept.since(0, 10).items.len(), 1);
        kept.take(Event::Applied(meta("a"), Ok(happening(2))), NOW);
        let page = kept.since(1, 10);
        assert_eq!(page.items.iter().map(|one| (one.seq, one.count)).collect::<Vec<_>>(), [(2, 2)]);
        assert_eq!((page.next, page.dropped), (2, false));
    }

    #[test]
    fn a_list_is_told_in_the_order_in_which_it_happened() {
        let kept = Happenings::default();
        kept.take(Event::ListStarted, NOW);
        for (uid, second) in [("a", 3), ("b", 1), ("c", 2)] {
            let at = Timestamp::from_second(second).unwrap();
            kept.take(Event::Applied(meta(uid), Ok(Happening { at, ..happening(1) })), NOW);
        }
        assert!(kept.since(0, 10).items.is_empty(), "not before it is complete");
        kept.take(Event::Listed(None), NOW);
        let told: Vec<_> = kept.since(0, 10).items.iter().map(|one| one.at.as_second()).collect();
        assert_eq!(told, [1, 2, 3]);
    }

    #[test]
    fn a_node_is_told_what_happened_there_and_to_its_pods() {
        let kept = Happenings::default();
        let about = |about: &str, node: Option<&str>| Happening {
            about: about.to_owned(),
            node: node.map(str::to_owned),
            ..happening(1)
        };
        for (uid, one) in [
            ("a", about("shop/web-1", None)),
            ("b", about("shop/web-2", None)),
            ("c", about("shop/web-1", Some("n2"))),
            ("d", about("n1", Some("n1"))),
        ] {
            kept.take(Event::Applied(meta(uid), Ok(one)), NOW);
        }
        let told = kept.about("n1", &HashSet::from(["shop/web-1".to_owned()]), 10);
        let told: Vec<_> = told.iter().map(|one| (one.seq, one.about.as_str())).collect();
        assert_eq!(told, [(4, "n1"), (1, "shop/web-1")], "the newest first; not what another node was given");
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for_and_who_missed_some_is_told() {
        let kept = Happenings::default();
        for number in 0..3 * KEPT {
            kept.take(Event::Applied(meta(&number.to_string()), Ok(happening(1))), NOW);
        }
        let all = kept.since(0, usize::MAX);
        assert_eq!(all.items.len(), KEPT);
        assert!(!all.dropped, "who asks for the newest misses nothing");
        assert!(kept.since(5, usize::MAX).dropped);
        assert!(!kept.since(all.next - 3, usize::MAX).dropped);
        let seen = kept.kept.lock().unwrap().seen.len();
        assert!(seen <= 2 * KEPT + 1, "{seen}");
    }

    #[test]
    fn a_hundred_thousand_decisions_a_minute_are_held_in_the_room_of_ten_thousand() {
        let happenings = Happenings::default();
        for at in 0..100_000 {
            let uid = format!("u{at}");
            happenings.take(Event::Applied(meta(&uid), Ok(happening(1))), NOW);
        }
        let kept = happenings.kept.lock().unwrap();
        assert_eq!((kept.newest.len(), kept.newest.capacity() < 4 * KEPT), (KEPT, true));
        assert!(kept.seen.len() <= 2 * KEPT + 1, "{} known for seen", kept.seen.len());
        drop(kept);
        // Whoever comes late gets the newest, and is told that something is missing.
        let page = happenings.since(5, 2_000);
        assert_eq!((page.items.len(), page.dropped, page.next), (2_000, true, 100_000));
        assert_eq!(page.items.last().map(|one| one.seq), Some(100_000));
        // A list that repeats what is known is no news.
        happenings.take(Event::ListStarted, NOW);
        happenings.take(Event::Applied(meta("u99999"), Ok(happening(1))), NOW);
        happenings.take(Event::Listed(None), NOW);
        assert_eq!(happenings.since(100_000, 10).items, []);
    }

    #[test]
    fn of_a_list_of_a_hundred_thousand_the_newest_are_held_in_the_room_of_twenty_thousand() {
        let happenings = Happenings::default();
        happenings.take(Event::ListStarted, NOW);
        // In no order of time, as a list is by name.
        for at in (0..100_000).map(|at| at * 7919 % 100_000) {
            let one = Happening { at: Timestamp::from_second(at).unwrap(), ..happening(1) };
            happenings.take(Event::Applied(meta(&format!("u{at}")), Ok(one)), NOW);
            let kept = happenings.kept.lock().unwrap();
            let listed = kept.listed.as_ref().unwrap();
            assert!(listed.len() <= 2 * KEPT && listed.capacity() < 4 * KEPT, "{} listed", listed.len());
        }
        happenings.take(Event::Listed(None), NOW);
        let page = happenings.since(0, usize::MAX);
        let told: Vec<_> = page.items.iter().map(|one| one.at.as_second()).collect();
        assert_eq!(
            told,
            (90_000..100_000).collect::<Vec<_>>(),
            "the newest, in the order in which they happened"
        );
    }
}
