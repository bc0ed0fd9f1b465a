//! What is written over hours, on a clock that the test moves.

use super::*;
use crate::annotator::watched::{Nodes, Pods};
use crate::annotator::{Options, history};
use crate::cluster::pace::Pace;
use crate::cluster::testing::meta;
use crate::cluster::{Access, Watched};
use crate::sources::metrics_api::Measured;
use loadline_api::json::Tree;
use loadline_api::prometheus::Answer;
use loadline_core::ledger::Sample;
use loadline_core::load::Load;
use loadline_core::load::annotation;
use loadline_core::load::join::Series;
use serde_json::{Value, json};

const EPOCH: i64 = 1_700_000_000;

/// A clock of which both hands move together.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn at(self, second: u32) -> Now {
        let clock = Timestamp::from_second(EPOCH + i64::from(second)).expect("small");
        Now { clock, at: self.0 + Duration::from_secs(u64::from(second)) }
    }
}

fn state(adjust: impl FnOnce(&mut Options)) -> (State, Clock) {
    let mut options = Options::new(Access::InCluster);
    adjust(&mut options);
    let mut state = State::new(Reloaded::new("policy", options.policy.clone()), &options);
    let clock = Clock(Instant::now());
    for message in [
        Message::Node(Event::ListStarted),
        Message::Node(Event::Listed(Some(1))),
        Message::Pod(Event::ListStarted),
        Message::Pod(Event::Listed(Some(1))),
    ] {
        state.take(message, clock.at(0));
    }
    (state, clock)
}

fn node(name: &str, addresses: &[&str]) -> Value {
    let addresses: Vec<Value> =
        addresses.iter().map(|address| json!({"type": "InternalIP", "address": address})).collect();
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1", "annotations": {}},
        "status": {"capacity": {"cpu": "10", "memory": "64Gi"}, "addresses": addresses},
    })
}

fn set(value: &Value) -> Message {
    Message::Node(Event::Applied(meta(value), Nodes::read(&Tree::from(value))))
}

/// Ten CPUs, so that a thousandth of a node is ten thousandths of a CPU.
fn sample(share_milli: i64, at: Timestamp) -> Sample {
    let usage = Load::new(share_milli * 10_000_000, (64 << 30) / 1000 * share_milli);
    Sample { at, window: SignedDuration::from_secs(15), usage }
}

fn measured(samples: impl IntoIterator<Item = (String, Sample)>) -> Message {
    Message::Measured(Ok(Measured { nodes: samples.into_iter().collect(), ..Measured::default() }))
}

/// A node as it is after a patch of ours.
fn patched(value: &mut Value, due: &Due) {
    let revision: u64 = value["metadata"]["resourceVersion"].as_str().unwrap_or("0").parse().unwrap_or(0);
    value["metadata"]["resourceVersion"] = json!((revision + 1).to_string());
    for (key, text) in &due.update.annotations {
        match text {
            Some(text) => value["metadata"]["annotations"][key] = json!(text),
            None => drop(value["metadata"]["annotations"].as_object_mut().and_then(|all| all.remove(key))),
        }
    }
}

fn write(state: &mut State, value: &mut Value, due: &Due, now: Now) {
    state.sent(&due.node, now);
    patched(value, due);
    let read = Nodes::read(&Tree::from(&*value)).ok();
    state.done(&due.node.key, Some((meta(value), read)), now);
}

#[test]
fn a_node_that_is_measured_no_more_is_told_once_and_so_is_its_return() {
    let (mut state, clock) = state(|_| {});
    state.take(set(&node("a", &[])), clock.at(0));
    let mut told = Vec::new();
    for second in (0..1800).step_by(15) {
        let now = clock.at(second);
        // Measured for five minutes, then ten minutes of silence, then again.
        if !(300..900).contains(&second) {
            state.take(measured([("a".to_owned(), sample(500, now.clock))]), now);
        }
        state.due(now);
        told.extend(
            state.happened().into_iter().map(|(node, happened)| (second, node.key.name, happened.reason)),
        );
    }
    let names: Vec<(u32, &str)> = told.iter().map(|(second, _, reason)| (*second, *reason)).collect();
    // The last sample is of second 285: at 585 it is five minutes old, at the next look more than that.
    assert_eq!(names, [(600, "LoadDataLost"), (900, "LoadDataFound")]);
}

/// For an hour, so many nodes whose load wanders, patched at so many a second: is a value ever too old to be used, how many
/// patches are there in the busiest minute, and how many in all?
fn hour(count: u32, per_second: f64) -> (usize, usize, usize) {
    let (mut state, clock) = state(|_| {});
    let mut nodes: Vec<Value> = (0..count).map(|i| node(&format!("n{i}"), &[])).collect();
    for node in &nodes {
        state.take(set(node), clock.at(0));
    }
    let mut pace = Pace::new(per_second, clock.at(0).at);
    let (mut dice, mut expired) = (1_u64, 0);
    let mut loads = vec![300_i64; count as usize];
    let mut minutes = vec![0_usize; 60];
    for second in (0..3600_u32).step_by(5) {
        let now = clock.at(second);
        if second.is_multiple_of(15) {
            for load in &mut loads {
                // xorshift: steps of up to two points, so that most nodes are worth a patch every minute.
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                *load = (*load + i64::try_from(dice % 41).expect("small") - 20).clamp(0, 1000);
            }
            let samples =
                loads.iter().enumerate().map(|(i, load)| (format!("n{i}"), sample(*load, now.clock)));
            state.take(measured(samples.collect::<Vec<_>>()), now);
        }
        let (mut sends, end) = (now.at, now.at + Duration::from_secs(5));
        for due in state.due(now) {
            // As the service does: waits for the rate, until it looks again.
            if let Err(at) = pace.take(sends) {
                if at >= end {
                    break;
                }
                sends = at;
                pace.take(sends).expect("its time has come");
            }
            let at: usize = due.node.key.name[1..].parse().expect("its number");
            write(&mut state, &mut nodes[at], &due, now);
            minutes[second as usize / 60] += 1;
        }
        // All were written once after a few minutes; from then on a reader must always find what it can use.
        if second >= 600 && second.is_multiple_of(60) {
            let window = SignedDuration::from_mins(8);
            for key in ["cpu_usage_avg_5m", "mem_usage_avg_5m"] {
                let texts = nodes
                    .iter()
                    .map(|node| node["metadata"]["annotations"][key].as_str().unwrap_or_default());
                expired += texts
                    .filter(|text| {
                        let read = annotation::read(text, None);
                        read.is_ok_and(|reading| now.clock.duration_since(reading.at) >= window)
                            || text.is_empty()
                    })
                    .count();
            }
        }
    }
    (expired, minutes.iter().copied().max().unwrap_or(0), minutes.iter().sum())
}

#[test]
fn patches_keep_to_their_rate_and_no_value_ever_expires() {
    // A fiftieth of 5 000 nodes at a fiftieth of the usual rate of 25 a second.
    let (expired, busiest, all) = hour(100, 0.5);
    assert_eq!(expired, 0);
    assert!(busiest <= 30 + 2, "one every two seconds, and what may run ahead: {busiest} in a minute");
    assert!(all > 1000, "most nodes change all the time, so the rate is what limits: {all}");
    // With a rate that cannot be enough it shows: 100 nodes need about one every three seconds for their lives alone.
    let (expired, ..) = hour(100, 0.1);
    assert!(expired > 0, "or the test would see nothing");
}

#[test]
fn a_clock_that_is_wrong_keeps_nothing_out_and_writes_nothing_from_the_future() {
    let (mut state, clock) = state(|_| {});
    state.take(set(&node("a", &[])), clock.at(0));
    let now = clock.at(600);
    for (ahead, taken) in [(3600, false), (31, false), (30, true)] {
        let at = now.clock + SignedDuration::from_secs(ahead);
        state.take(measured([("a".to_owned(), sample(500, at))]), now);
        assert_eq!(!state.due(now).is_empty(), taken, "{ahead} s ahead");
    }
    // A server whose clock is behind measures what is old for us; older than its life it is not written.
    let (mut state, clock) = self::state(|_| {});
    state.take(set(&node("a", &[])), clock.at(0));
    let now = clock.at(3600);
    let due = |state: &mut State, behind: i64| {
        let at = now.clock - SignedDuration::from_secs(behind);
        state.take(measured([("a".to_owned(), sample(500, at))]), now);
        let due = state.due(now);
        due.iter().any(|due| due.update.annotations.contains_key("cpu_usage_avg_5m"))
    };
    assert!(!due(&mut state, 481), "eight minutes are over");
    assert!(due(&mut state, 200));
}

fn answered(metric: &str, series: &[(&str, &str)], at: Timestamp) -> Message {
    let series = series.iter().map(|(whose, percent)| Series {
        whose: vec![(*whose).to_owned()],
        percent: (*percent).to_owned(),
        at,
    });
    let answer = Answer { series: series.collect(), unlabelled: 0, warnings: Vec::new() };
    Message::Answered(Answered { metric: metric.into(), answer: Ok(answer), at })
}

#[test]
fn series_of_another_cluster_and_of_shared_addresses_are_nobodys() {
    let (mut state, clock) = state(|_| {});
    for value in [
        node("a", &["10.0.0.1"]),
        node("twin-1", &["10.0.0.9"]),
        node("twin-2", &["10.0.0.9"]),
        node("nowhere", &[]),
        node("six", &["fd00::6"]),
    ] {
        state.take(set(&value), clock.at(0));
    }
    let now = clock.at(10);
    let metric = "cpu_usage_avg_5m";
    let series = [
        ("10.0.0.1:9100", "40"),
        ("10.0.0.9:9100", "99"),
        ("192.168.7.7:9100", "99"),
        ("nowhere", "20"),
        ("[fd00::6]:9100", "60"),
    ];
    state.take(answered(metric, &series, now.clock), now);
    let written: BTreeMap<String, String> = state
        .due(now)
        .into_iter()
        .filter_map(|due| {
            let text = due.update.annotations.get(metric)?.clone()?;
            Some((due.node.key.name.to_string(), text.split(',').next().unwrap_or_default().to_owned()))
        })
        .collect();
    let want = [("a", "0.40000"), ("nowhere", "0.20000"), ("six", "0.60000")];
    assert_eq!(written, want.map(|(name, share)| (name.to_owned(), share.to_owned())).into());
    let ignored: BTreeMap<_, _> = state.ignored().into();
    assert_eq!((ignored["nobodys"], ignored["shared_address"]), (1, 1));
}

#[test]
fn a_binding_that_is_seen_before_its_node_counts_when_the_node_comes() {
    let (mut state, clock) = state(|_| {});
    let now = clock.at(60);
    for name in ["p", "q"] {
        let pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"},
            "spec": {"nodeName": "late"},
            "status": {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": clock.at(50).clock.to_string()}]},
        });
        state.take(Message::Pod(Event::Applied(meta(&pod), Pods::read(&Tree::from(&pod)))), now);
    }
    state.take(set(&node("late", &[])), now);
    let due = state.due(now);
    let hot =
        due.first().and_then(|due| due.update.annotations.get("node_hot_value")?.clone()).unwrap_or_default();
    assert!(hot.starts_with("1,"), "two within a minute make it hotter by one: {hot:?}");
}

#[test]
fn history_is_not_written_before_it_is_known_what_was_kept() {
    let (mut state, clock) = state(|options| options.history = Some(history::Options::new("kube-system")));
    state.take(set(&node("a", &[])), clock.at(0));
    state.take(measured([("a".to_owned(), sample(500, clock.at(1).clock))]), clock.at(1));
    assert_eq!(state.history(), None);
    state.take(Message::History(Err("forbidden".to_owned())), clock.at(2));
    assert_eq!((state.history(), state.not_kept()), (None, Some("forbidden")));
    state.take(Message::History(Ok(vec![b"nonsense".to_vec()])), clock.at(3));
    assert!(state.history().is_some_and(|parts| parts.len() == 1), "what cannot be read is replaced");
}
