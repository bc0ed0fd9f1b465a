//! Every rule of the ledger by example; `model` compares it with slow obvious books under any events.

use super::*;
use jiff::SignedDuration;

mod checkpoint;
mod history;
mod model;

const N: NodeId = NodeId(0);
const M: NodeId = NodeId(1);

/// Seconds after some moment.
fn t(secs: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + secs).expect("a year like any other")
}

fn secs(secs: i64) -> SignedDuration {
    SignedDuration::from_secs(secs)
}

/// Thousandths of a core and mebibytes.
fn load(milli: i64, mi: i64) -> Load {
    Load::new(milli * 1_000_000, mi << 20)
}

fn sample(at: i64, window: i64, usage: Load) -> Sample {
    Sample { at: t(at), window: secs(window), usage }
}

fn on(node: NodeId, estimate: Load, started: Option<i64>) -> Assigned {
    Assigned { node, estimate, started: started.map(t) }
}

fn ledger(rules: Options) -> Ledger {
    let mut ledger = Ledger::new(rules);
    ledger.node(N);
    ledger
}

/// A node measured at 100 s over 15 s: T − W is 85 s.
fn measured(rules: Options, usage: Load) -> Ledger {
    let mut ledger = ledger(rules);
    assert_eq!(ledger.sample(N, sample(100, 15, usage)), Taken::Newest);
    ledger
}

// A2
#[test]
fn a_pod_is_pending_until_the_whole_window_has_seen_it_run() {
    let cases = [
        (None, 0, true, "an image is pulled for an hour: its load will come"),
        (Some(100), 0, true, "started as the measurement ended"),
        (Some(86), 0, true, "a second of the window is without it"),
        (Some(85), 0, false, "started as the window began"),
        (Some(-9_000), 0, false, "long ago"),
        (Some(85), 1, true, "85 + 1 is after 85: it may still be warming up"),
        (Some(84), 1, false, "84 + 1"),
        (Some(85), -60, false, "a negative allowance is none"),
        (Some(86), -60, true, "and does not settle a pod before it has run"),
    ];
    for (started, settle, pending, why) in cases {
        let mut ledger = measured(Options { settle: secs(settle), ..Options::default() }, load(1000, 1024));
        ledger.assign(Uid(1), on(N, load(300, 64), started));
        let figures = ledger.figures(N);
        let want = if pending { load(300, 64) } else { Load::ZERO };
        assert_eq!(figures.pending, want, "started at {started:?}, settle {settle}: {why}");
        assert_eq!(figures.pending_pods, u32::from(pending), "{why}");
        assert_eq!(figures.assigned, load(300, 64), "{why}");
        assert_eq!(figures.expected(), Some(load(1000, 1024).plus(want)), "{why}");
    }
}

// A2
#[test]
fn a_pod_that_was_restarted_is_not_pending_again() {
    let mut ledger = measured(Options { settle: secs(60), ..Options::default() }, load(1000, 1024));
    ledger.assign(Uid(1), Assigned { node: N, estimate: load(300, 64), started: Some(Timestamp::MIN) });
    assert_eq!(ledger.figures(N).pending_pods, 0);
}

// A2, A7
#[test]
fn without_a_sample_everything_is_pending_and_nothing_is_expected() {
    let mut ledger = ledger(Options::default());
    ledger.assign(Uid(1), on(N, load(300, 64), Some(-9_000)));
    ledger.assign(Uid(2), on(N, load(200, 32), None));
    let figures = ledger.figures(N);
    assert_eq!((figures.pods, figures.pending_pods), (2, 2));
    assert_eq!((figures.assigned, figures.pending), (load(500, 96), load(500, 96)));
    assert_eq!(figures.expected(), None, "unknown is not zero");
    assert_eq!(ledger.figures(NodeId(77)), Figures::default(), "a slot never heard of");
}

// D6
#[test]
fn every_pod_of_a_burst_counts_before_the_next_is_decided() {
    let mut ledger = measured(Options::default(), load(1000, 1024));
    for i in 1..=10 {
        ledger.reserve(Uid(i), on(N, load(500, 64), None), t(101));
        let want = load(1000 + 500 * i64::try_from(i).unwrap(), 1024 + 64 * i64::try_from(i).unwrap());
        assert_eq!(ledger.figures(N).expected(), Some(want), "after {i}");
    }
}

// A16
#[test]
fn a_pod_placed_by_another_scheduler_counts_when_it_is_seen_bound() {
    let mut ledger = measured(Options::default(), load(1000, 1024));
    ledger.assign(Uid(1), on(N, load(500, 64), None));
    assert_eq!(ledger.figures(N).expected(), Some(load(1500, 1088)));
}

#[test]
fn a_reservation_holds_until_it_is_bound_taken_back_or_too_old() {
    let books = || {
        let mut ledger = measured(Options::default(), load(1000, 1024));
        let until = ledger.reserve(Uid(1), on(N, load(500, 64), Some(0)), t(101));
        assert_eq!(until, Reserved::Until(t(101 + 900)), "fifteen minutes");
        assert_eq!(ledger.next_expiry(), Some(t(1001)));
        assert_eq!(ledger.figures(N).pending_pods, 1, "what is not bound has not started");
        ledger
    };
    let pods = |ledger: &Ledger| ledger.figures(N).pods;

    let mut ledger = books();
    ledger.advance(t(1000));
    assert_eq!(pods(&ledger), 1, "a second before");
    ledger.advance(t(1001));
    assert_eq!((pods(&ledger), ledger.next_expiry()), (0, None), "too old");

    let mut ledger = books();
    ledger.unreserve(Uid(1));
    assert_eq!((pods(&ledger), ledger.next_expiry()), (0, None), "binding failed");

    let mut ledger = books();
    ledger.assign(Uid(1), on(N, load(400, 64), None));
    ledger.advance(t(9_000));
    ledger.unreserve(Uid(1));
    assert_eq!(ledger.figures(N).pending, load(400, 64), "bound: no expiry, nothing to take back");
    assert_eq!(ledger.reserve(Uid(1), on(M, load(1, 1), None), t(9_000)), Reserved::Bound(N));
    assert_eq!((pods(&ledger), ledger.figures(M).pods, ledger.next_expiry()), (1, 0, None));

    let mut ledger = books();
    ledger.reserve(Uid(1), on(M, load(600, 64), None), t(201));
    assert_eq!((pods(&ledger), ledger.figures(M).assigned), (0, load(600, 64)), "decided again");
    assert_eq!(ledger.next_expiry(), Some(t(1101)), "and counted from then");
    ledger.remove(Uid(1), t(300));
    assert_eq!((ledger.pods(), ledger.next_expiry()), (0, None), "deleted before it was bound");
}

#[test]
fn a_pod_seen_on_another_node_moves() {
    let mut ledger = measured(Options::default(), load(1000, 1024));
    ledger.reserve(Uid(1), on(N, load(500, 64), None), t(101));
    ledger.assign(Uid(1), on(M, load(500, 64), None));
    assert_eq!((ledger.figures(N).pods, ledger.figures(N).pending), (0, Load::ZERO));
    assert_eq!((ledger.figures(M).pods, ledger.place(Uid(1))), (1, Some(M)), "M is not there yet, but taken");
}

#[test]
fn saying_the_same_again_changes_nothing() {
    let mut ledger = measured(Options::default(), load(1000, 1024));
    let pod = on(N, load(500, 64), Some(90));
    ledger.assign(Uid(1), pod);
    assert_eq!(ledger.changed().collect::<Vec<_>>(), [N], "once, whatever happened");
    ledger.assign(Uid(1), pod);
    ledger.node(N);
    ledger.unreserve(Uid(1));
    ledger.remove(Uid(2), t(0));
    ledger.pod_sample(Uid(2), sample(100, 15, load(1, 1)));
    ledger.sample(N, sample(100, 15, load(7, 7)));
    ledger.advance(t(5_000));
    assert_eq!(ledger.changed().count(), 0);
    ledger.assign(Uid(1), on(N, load(600, 64), Some(90)));
    ledger.assign(Uid(3), on(M, load(600, 64), None));
    ledger.assign(Uid(1), on(N, load(700, 64), Some(90)));
    assert_eq!(ledger.changed().collect::<Vec<_>>(), [N, M]);
    assert_eq!(ledger.figures(N).assigned, load(700, 64), "what is said last counts");
}

// A1, A2
#[test]
fn pods_settle_as_the_window_moves_on_and_unsettle_when_it_reaches_back() {
    let mut ledger = measured(Options::default(), load(1000, 1024));
    for (uid, started) in [(1, Some(80)), (2, Some(90)), (3, Some(105)), (4, None)] {
        ledger.assign(Uid(uid), on(N, load(100, 16), started));
    }
    let pending = |l: &Ledger| l.pending(N).map(|(uid, _)| uid.0).collect::<Vec<_>>();
    assert_eq!(pending(&ledger), [2, 3, 4], "T − W = 85");
    for (at, window, want, why) in [
        (115, 15, vec![3, 4], "100"),
        (130, 15, vec![4], "115"),
        (131, 60, vec![1, 2, 3, 4], "71: an hour-glass, not an arrow"),
        (160, 0, vec![4], "160: a window of nothing is seen at once"),
    ] {
        ledger.sample(N, sample(at, window, load(1000, 1024)));
        assert_eq!(pending(&ledger), want, "T − W = {why}");
        let n = i64::try_from(want.len()).unwrap();
        assert_eq!(ledger.figures(N).pending, load(100 * n, 16 * n));
    }
}

// A2
#[test]
fn what_was_measured_of_a_pending_pod_is_not_counted_twice() {
    let used = Options { pods: PodMetrics::Used, ..Options::default() };
    let cases = [
        (used, 100, load(200, 40), load(300, 24), "as old as the node's: the rest is to come"),
        (used, 130, load(200, 40), load(300, 24), "newer"),
        (used, 99, load(200, 40), load(500, 64), "older: the node's is about another time"),
        (
            used,
            100,
            load(800, 40),
            load(0, 24),
            "more than estimated: nothing more to come, memory for itself",
        ),
        (used, 100, load(-1, 40), load(500, 64), "negative is not measured"),
        (Options::default(), 100, load(200, 40), load(500, 64), "not used by default"),
    ];
    for (rules, at, usage, want, why) in cases {
        let mut ledger = measured(rules, load(1000, 1024));
        ledger.assign(Uid(1), on(N, load(500, 64), Some(95)));
        ledger.pod_sample(Uid(1), sample(at, 10, usage));
        assert_eq!(ledger.figures(N).pending, want, "{why}");
        assert_eq!(ledger.pending(N).collect::<Vec<_>>(), [(Uid(1), want)], "{why}");
        assert_eq!(ledger.figures(N).assigned, load(500, 64), "{why}");
    }
}

#[test]
fn a_pods_sample_counts_until_the_node_has_a_newer_one() {
    let mut ledger = measured(Options { pods: PodMetrics::Used, ..Options::default() }, load(1000, 1024));
    ledger.assign(Uid(1), on(N, load(500, 64), Some(102)));
    ledger.pod_sample(Uid(1), sample(105, 10, load(200, 40)));
    ledger.pod_sample(Uid(1), sample(104, 10, load(490, 63)));
    assert_eq!(ledger.figures(N).pending, load(300, 24), "an older one does not replace it");
    ledger.sample(N, sample(106, 15, load(1000, 1024)));
    assert_eq!(ledger.figures(N).pending, load(500, 64), "106 is after 105");
    ledger.sample(N, sample(115, 15, load(1000, 1024)));
    assert_eq!(ledger.figures(N).pending, load(500, 64));
    ledger.pod_sample(Uid(1), sample(116, 10, load(100, 10)));
    assert_eq!(ledger.figures(N).pending, load(400, 54), "measured again");
    ledger.sample(N, sample(116, 14, load(1000, 1024)));
    assert_eq!(ledger.figures(N).pending, Load::ZERO, "settled: 102 <= 116 − 14");
}

#[test]
fn what_was_measured_of_a_departed_pod_is_taken_off_by_its_share_of_the_window() {
    // The node: T = 100, W = 15, so the window began at 85. The pod was measured at 1500m and 300 Mi.
    let cases = [
        (Some(0), 120, load(1500, 300), "ended after T: all of it is inside"),
        (Some(0), 100, load(1500, 300), "ended at T"),
        (Some(0), 90, load(500, 0), "5 of 15 s; memory is a level at T, when it was gone"),
        (Some(0), 85, load(0, 0), "ended as the window began"),
        (Some(0), 60, load(0, 0), "before"),
        (Some(95), 120, load(500, 300), "began inside: 5 of 15 s"),
        (Some(90), 95, load(500, 0), "began and ended inside"),
        (Some(101), 120, load(0, 0), "began after T: was never inside"),
        (None, 120, load(0, 0), "never started"),
    ];
    for (started, end, want, why) in cases {
        let mut ledger = measured(Options::default(), load(4000, 1024));
        ledger.assign(Uid(1), on(N, load(9000, 2048), started));
        ledger.pod_sample(Uid(1), sample(50, 10, load(1500, 300)));
        assert_eq!(ledger.figures(N).departed, Load::ZERO, "{why}: still there");
        ledger.remove(Uid(1), t(end));
        let figures = ledger.figures(N);
        assert_eq!(figures.departed, want, "{started:?} to {end}: {why}");
        assert_eq!(figures.expected(), Some(load(4000, 1024).minus(want)), "{why}");
        assert_eq!((figures.pods, figures.pending), (0, Load::ZERO));
    }
}

#[test]
fn a_credit_is_rounded_down_and_never_more_than_was_measured() {
    let mut ledger = measured(Options::default(), Load::new(1000, 1000));
    for (uid, usage) in [(1, Load::new(10, 400)), (2, Load::new(2000, 700))] {
        ledger.assign(Uid(uid), Assigned { node: N, estimate: Load::ZERO, started: Some(t(0)) });
        ledger.pod_sample(Uid(uid), sample(95, 10, usage));
    }
    ledger.remove(Uid(1), t(89));
    assert_eq!(ledger.figures(N).departed, Load::new(2, 0), "10 × 4 ÷ 15 = 2.67");
    ledger.remove(Uid(2), t(100));
    assert_eq!(ledger.figures(N).departed, Load::new(1000, 700), "2 + 2000 is more than 1000");
    assert_eq!(ledger.figures(N).expected(), Some(Load::new(0, 300)));
}

#[test]
fn nothing_is_taken_off_for_a_pod_that_was_not_measured_of_late() {
    let cases = [
        (None, "an estimate is a guess: crediting it could make the node look idle"),
        (Some(-181), "measured more than five minutes before its end"),
    ];
    for (measured_at, why) in cases {
        let mut ledger = measured(Options::default(), load(4000, 1024));
        ledger.assign(Uid(1), on(N, load(1500, 300), Some(-1_000)));
        if let Some(at) = measured_at {
            ledger.pod_sample(Uid(1), sample(at, 10, load(1500, 300)));
        }
        ledger.remove(Uid(1), t(120));
        assert_eq!(ledger.figures(N).expected(), Some(load(4000, 1024)), "{why}");
    }
}

#[test]
fn a_departure_is_forgotten_once_the_samples_are_past_it() {
    let mut ledger = measured(Options::default(), load(4000, 1024));
    ledger.assign(Uid(1), on(N, load(1500, 300), Some(0)));
    ledger.pod_sample(Uid(1), sample(100, 10, load(1500, 300)));
    ledger.remove(Uid(1), t(110));
    for (at, want, why) in [
        (105, load(1500, 300), "110 is after 105"),
        (115, load(1000, 0), "10 of 15 s"),
        (125, load(0, 0), "110 is when the window began"),
    ] {
        ledger.sample(N, sample(at, 15, load(4000, 1024)));
        assert_eq!(ledger.figures(N).departed, want, "T = {at}: {why}");
    }
    ledger.sample(N, sample(405, 300, load(4000, 1024)));
    assert_eq!(ledger.figures(N).departed, load(25, 0), "a long window may reach it again: 5 of 300 s");
    ledger.sample(N, sample(410, 900, load(4000, 1024)));
    assert_eq!(ledger.figures(N).departed, Load::ZERO, "but not after five minutes");
}

// A1
#[test]
fn samples_count_by_their_moment() {
    let mut ledger = ledger(Options::default());
    let cases = [
        (100, 15, 1, Taken::Newest, "the first"),
        (100, 15, 2, Taken::Ignored(Ignored::Repeated), "the first of a moment counts"),
        (115, 15, 3, Taken::Newest, "newer"),
        (110, 15, 4, Taken::History, "another replica of the metrics server lags behind"),
        (110, 15, 5, Taken::Ignored(Ignored::Repeated), "and again"),
        (100, 15, 6, Taken::Ignored(Ignored::Repeated), "still held"),
        (-184, 15, 7, Taken::History, "299 s before the newest"),
        (-185, 15, 8, Taken::Ignored(Ignored::TooOld), "300 s"),
        (120, -1, 9, Taken::Ignored(Ignored::Negative), "no such window"),
        (120, 15, -1, Taken::Ignored(Ignored::Negative), "no such usage"),
        (120, 15, 0, Taken::Newest, "zero was measured, not unknown"),
    ];
    for (at, window, milli, want, why) in cases {
        assert_eq!(ledger.sample(N, sample(at, window, load(milli, 0))), want, "at {at}: {why}");
    }
    assert_eq!(ledger.figures(N).newest, Some(sample(120, 15, Load::ZERO)));
    assert_eq!(ledger.sample(M, sample(1, 1, Load::ZERO)), Taken::Ignored(Ignored::NoNode));
}

#[test]
fn a_node_cools_until_the_latest_moment_said() {
    let mut ledger = ledger(Options::default());
    ledger.cool(N, t(300));
    ledger.cool(N, t(200));
    ledger.cool(M, t(900));
    assert_eq!(ledger.figures(N).cooling_until, Some(t(300)));
    assert_eq!(ledger.next_expiry(), Some(t(300)));
    ledger.advance(t(299));
    assert_eq!(ledger.figures(N).cooling_until, Some(t(300)));
    ledger.changed().for_each(drop);
    ledger.advance(t(300));
    assert_eq!((ledger.figures(N).cooling_until, ledger.next_expiry()), (None, None), "M is not there");
    assert_eq!(ledger.changed().collect::<Vec<_>>(), [N]);
}

#[test]
fn a_node_that_goes_leaves_its_pods_and_nothing_else() {
    let mut ledger = measured(Options::default(), load(4000, 1024));
    for uid in [1, 2] {
        ledger.assign(Uid(uid), on(N, load(500, 64), Some(0)));
        ledger.pod_sample(Uid(uid), sample(100, 10, load(400, 60)));
    }
    ledger.remove(Uid(1), t(120));
    ledger.cool(N, t(300));
    ledger.remove_node(N);
    let left = Figures {
        pending: load(500, 64),
        assigned: load(500, 64),
        pods: 1,
        pending_pods: 1,
        ..Figures::default()
    };
    assert_eq!((ledger.figures(N), ledger.history(N), ledger.next_expiry()), (left, None, None));
    assert!(!ledger.is_vacant(N), "its pod is there still");
    ledger.remove(Uid(2), t(130));
    assert!(ledger.is_vacant(N));
    ledger.node(N);
    assert!(!ledger.is_vacant(N));
    ledger.sample(N, sample(125, 15, load(100, 100)));
    assert_eq!(ledger.figures(N).departed, Load::ZERO, "another node: the departures were not its own");
}

#[test]
fn amounts_beyond_all_bounds_are_held_and_leave_nothing_behind() {
    let most = Load::new(i64::MAX, i64::MAX);
    let mut ledger = measured(Options { settle: SignedDuration::MAX, ..Options::default() }, most);
    for uid in 0..4 {
        ledger.assign(Uid(uid), Assigned { node: N, estimate: most, started: Some(Timestamp::MAX) });
    }
    ledger.assign(Uid(9), on(N, Load::new(-5, 7), None));
    assert_eq!(ledger.figures(N).expected(), Some(most));
    for uid in 0..4 {
        ledger.remove(Uid(uid), Timestamp::MIN);
    }
    assert_eq!(ledger.figures(N).assigned, Load::new(0, 7), "below nothing counts as nothing");
    ledger.sample(N, Sample { at: Timestamp::MAX, window: SignedDuration::MAX, usage: most });
    ledger.sample(N, Sample { at: Timestamp::MIN, window: SignedDuration::MIN, usage: most });
    ledger.cool(N, Timestamp::MAX);
    ledger.advance(Timestamp::MIN);
    assert_eq!(ledger.figures(N).pending, Load::new(0, 7));
    assert_eq!(ledger.history(N).map(|h| h.mean_5m), Some(most));
}

#[test]
fn a_snapshot_does_not_see_later_events() {
    let mut ledger = measured(Options::default(), load(1000, 1024));
    let before = ledger.snapshot();
    ledger.assign(Uid(1), on(N, load(500, 64), None));
    let after = ledger.snapshot();
    ledger.remove_node(N);
    assert_eq!(before.figures(N).expected(), Some(load(1000, 1024)));
    assert_eq!(after.figures(N).expected(), Some(load(1500, 1088)));
    let block = after.blocks().next().unwrap();
    assert_eq!((block.cpu[0], block.pending_cpu[0], block.pods[0]), (1_000_000_000, 500_000_000, 1));
    assert_eq!((block.at[1], block.cooling[0]), (UNKNOWN, UNKNOWN));
    assert_eq!(after.figures(NodeId(1_000_000)), Figures::default());
}

/// A hundred thousand pods on five thousand nodes, five minutes of samples each: 64 bytes a pod, 1 KiB a node.
#[test]
fn a_large_cluster_is_kept_in_twelve_megabytes() {
    let mut ledger = Ledger::new(Options::default());
    let empty = ledger.bytes();
    for node in 0..5_000 {
        ledger.node(NodeId(node));
        for i in 0..40 {
            ledger.sample(NodeId(node), sample(15 * i, 15, load(1000, 1024)));
        }
    }
    ledger.changed().for_each(drop);
    let nodes = ledger.bytes() - empty;
    for pod in 0..100_000_u32 {
        let uid = Uid::new(&format!("pod-{pod}"));
        ledger.assign(uid, on(NodeId(pod % 5_000), load(100, 64), Some(i64::from(pod % 700))));
    }
    ledger.changed().for_each(drop);
    let pods = ledger.bytes() - empty - nodes;
    assert!(nodes <= 5_000 * 1024, "{} bytes a node", nodes / 5_000);
    assert!(pods <= 100_000 * 64, "{} bytes a pod", pods / 100_000);
}

/// Deleted pods leave no trace in the table either, however often they come and go.
#[test]
fn coming_and_going_does_not_grow_the_books() {
    let mut ledger = ledger(Options::default());
    let mut most = 0;
    for round in 0..50_u32 {
        for pod in 0..1_000 {
            ledger.assign(Uid::new(&format!("{round}/{pod}")), on(N, load(1, 1), None));
        }
        for pod in 0..1_000 {
            let uid = Uid::new(&format!("{round}/{pod}"));
            assert_eq!(ledger.place(uid), Some(N));
            ledger.remove(uid, t(0));
            assert_eq!(ledger.place(uid), None);
        }
        if round == 1 {
            most = ledger.bytes();
        }
    }
    assert_eq!((ledger.pods(), ledger.figures(N).assigned), (0, Load::ZERO));
    assert!(ledger.bytes() <= most + most / 10, "{} after, {most} before", ledger.bytes());
}
