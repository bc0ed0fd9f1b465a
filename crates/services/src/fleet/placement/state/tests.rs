//! Messages in, jobs out.

use super::*;
use crate::cluster::Event;
use loadline_api::json::Tree;
use loadline_api::ocm::cel::View;
use loadline_core::place::{ClusterFacts, Members, Placement};
use loadline_core::select::LabelSelector;
use serde_json::{Value, json};

fn meta(namespace: &str, name: &str, revision: u64) -> Meta {
    Meta {
        key: Key::new(namespace, name),
        uid: format!("{namespace}/{name}").into(),
        revision: Some(revision),
    }
}

fn now() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

/// A placement that wants so many clusters.
fn wanting(count: i32, revision: u64) -> Message {
    named("web", count, revision)
}

fn named(name: &str, count: i32, revision: u64) -> Message {
    let placement = Placement {
        key: Key::new("team", name),
        count: Some(count),
        generation: i64::try_from(revision).ok(),
        ..Placement::default()
    };
    let wish = Wish { placement, leaving: false, status: Value::Null };
    Message::Placement(Event::Applied(meta("team", name, revision), Ok(wish)))
}

fn cluster(name: &str) -> Message {
    let facts = ClusterFacts { name: name.into(), ..ClusterFacts::default() };
    let object = json!({"metadata": {"name": name}});
    let view = View::of(&Tree::from(&object));
    Message::Cluster(Event::Applied(meta("", name, 1), Ok((facts, view))))
}

/// Everything is read: two clusters, and a placement that wants one.
fn state() -> State {
    let mut state = State::new(Options::default(), Metrics::default());
    let all = Members::Labels(Some(LabelSelector::default()));
    for message in [
        Message::Cluster(Event::ListStarted),
        cluster("c0"),
        cluster("c1"),
        Message::Cluster(Event::Listed(Some(1))),
        Message::Set(Event::Applied(meta("", "all", 1), Ok(all))),
        Message::Set(Event::Listed(Some(1))),
        Message::Binding(Event::Applied(meta("team", "all", 1), Ok(()))),
        Message::Binding(Event::Listed(Some(1))),
        Message::Scores(Event::Listed(Some(1))),
        Message::Decision(Event::Listed(Some(1))),
        wanting(1, 1),
        Message::Placement(Event::Listed(Some(1))),
    ] {
        state.take(message, now());
    }
    assert!(state.is_ready());
    state
}

fn failed() -> Done {
    Done {
        placement: Key::new("team", "web"),
        slices: Vec::new(),
        deleted: Vec::new(),
        status: None,
        failure: Some("the server is on fire".to_owned()),
        written: BTreeSet::new(),
        scores_dropped: false,
    }
}

#[test]
fn what_cannot_be_written_is_tried_again_later_each_time_and_two_minutes_later_at_most() {
    let mut state = state();
    let (mut at, mut before) = (Instant::now(), Duration::ZERO);
    for attempt in 1..=20 {
        let (jobs, _) = state.jobs(1, now(), at);
        assert_eq!(jobs.len(), 1, "attempt {attempt}");
        state.done(failed(), at);
        assert_eq!(state.problems().len(), 1);
        let pause = state.wake(now(), at).expect("another attempt") - at;
        assert!(
            pause > before || pause == Duration::from_mins(2),
            "attempt {attempt}: {pause:?} after {before:?}"
        );
        assert!(pause <= Duration::from_mins(2), "attempt {attempt}: {pause:?}");
        let early = at + pause.saturating_sub(Duration::from_millis(1));
        assert!(state.jobs(1, now(), early).0.is_empty(), "not before");
        (at, before) = (at + pause, pause);
    }
    assert_eq!(before, Duration::from_mins(2));
    // Whoever mended it does not wait.
    state.take(wanting(2, 2), now());
    assert_eq!(state.jobs(1, now(), at - before).0.len(), 1);
}

#[test]
fn what_was_known_counts_while_a_kind_cannot_be_read() {
    let mut state = state();
    let at = Instant::now();
    // The watch is lost, a list begins and does not get on, and then the account may not even read any more.
    for event in [Event::Failed("cut".to_owned()), Event::ListStarted, Event::Forbidden("no".to_owned())] {
        state.take(Message::Cluster(event), now());
        assert!(state.is_ready());
    }
    assert_eq!(state.kinds()[0].2, Some("no"), "and it is said");
    state.take(wanting(2, 2), now());
    let (jobs, _) = state.jobs(1, now(), at);
    assert_eq!(jobs[0].outcome.selected.len(), 2, "both clusters are still there");
    // The list that succeeds is what counts.
    state.done(failed(), at);
    for message in
        [Message::Cluster(Event::ListStarted), cluster("c1"), Message::Cluster(Event::Listed(Some(9)))]
    {
        state.take(message, now());
    }
    let (jobs, _) = state.jobs(1, now(), at + Duration::from_mins(2));
    assert_eq!(jobs[0].outcome.selected.len(), 1);
}

#[test]
fn everybody_gets_a_turn_even_if_the_first_ones_change_faster_than_all_can_be_decided() {
    let mut state = state();
    let at = Instant::now();
    let all = Members::Labels(Some(LabelSelector::default()));
    let name = |number| format!("p{number:03}");
    for number in 0..100 {
        state.take(named(&name(number), 1, 1), now());
    }
    let mut decided = BTreeSet::new();
    for turn in 0..4 {
        // A namespace may use one more set: that touches all placements there, and many more than are decided at a time.
        let set = format!("set-{turn}");
        state.take(Message::Set(Event::Applied(meta("", &set, 1), Ok(all.clone()))), now());
        state.take(Message::Binding(Event::Applied(meta("team", &set, 1), Ok(()))), now());
        let (jobs, _) = state.jobs(AT_ONCE, now(), at);
        for job in jobs {
            decided.insert(job.placement.key.clone());
            state.done(Done { placement: job.placement.key, failure: None, ..failed() }, at);
        }
    }
    assert_eq!(decided.len(), 101, "the hundred and web: 32 in each of four turns");
}
