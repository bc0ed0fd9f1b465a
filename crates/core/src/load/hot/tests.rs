use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const N1: NodeId = NodeId(0);
const N2: NodeId = NodeId(1);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("tests write times")
}

fn bucket(seconds: i64, count: i64) -> Bucket {
    Bucket { range: SignedDuration::from_secs(seconds), count }
}

/// What crane ships.
fn shipped() -> [Bucket; 2] {
    [bucket(300, 5), bucket(60, 2)]
}

// D2
#[test]
fn bindings_count_at_once_and_by_bucket() {
    let mut bindings = Bindings::new();
    for pod in 0..5_u128 {
        bindings.bind(N1, pod, at(1000), at(1000));
    }
    for (why, now, want) in [
        ("5/5 and 5/2", 1000, 3),
        ("59 s later", 1059, 3),
        ("at 60 s they are not younger than a minute", 1060, 1),
        ("at 300 s not younger than five", 1300, 0),
    ] {
        assert_eq!(bindings.hot(N1, at(now), &shipped()), want, "{why}");
        assert_eq!(bindings.hot(N2, at(now), &shipped()), 0, "{why}: the other node");
    }
    assert_eq!(bindings.next_change(N1, at(1000), &shipped()), Some(at(1060)));
    assert_eq!(bindings.next_change(N1, at(1060), &shipped()), Some(at(1300)));
    assert_eq!(bindings.next_change(N1, at(1300), &shipped()), None);
}

// D2
#[test]
fn a_binding_told_twice_counts_once_and_a_moved_pod_counts_where_it_is() {
    let buckets = [bucket(60, 1)];
    let mut bindings = Bindings::new();
    assert!(bindings.bind(N1, 1_u128, at(1000), at(1000)));
    assert!(!bindings.bind(N1, 1, at(1000), at(1000)), "a relist");
    assert!(!bindings.bind(N1, 1, at(1005), at(1005)), "an updated event");
    assert_eq!(bindings.hot(N1, at(1000), &buckets), 1);
    assert!(bindings.bind(N2, 1, at(1000), at(1000)), "bound elsewhere within the second");
    assert_eq!((bindings.hot(N1, at(1000), &buckets), bindings.hot(N2, at(1000), &buckets)), (0, 1));
    assert!(!bindings.bind(N1, 1, at(999), at(1000)), "old news");
    assert_eq!(bindings.hot(N2, at(1000), &buckets), 1);
    assert!(bindings.forget(1));
    assert!(!bindings.forget(1));
    assert!(bindings.is_empty() && bindings.hot(N2, at(1000), &buckets) == 0);
}

// D2: no cap of 1024.
#[test]
fn nothing_is_dropped_but_what_is_older_than_every_range() {
    let mut bindings = Bindings::new();
    for pod in 0..5000_u128 {
        bindings.bind(N1, pod, at(1000 + i64::try_from(pod).unwrap() / 50), at(2000));
    }
    assert_eq!(bindings.hot(N1, at(1100), &[bucket(300, 1)]), 5000);
    bindings.prune(at(1349), &shipped());
    assert_eq!(bindings.len(), 2500, "bound at 1000..=1049 are 300 s old, 50 pods a second");
    bindings.prune(at(1349), &[]);
    assert!(bindings.is_empty(), "without buckets nothing needs to be kept");
}

#[test]
fn a_binding_from_the_future_is_one_of_now() {
    let mut bindings = Bindings::new();
    bindings.bind(N1, 1_u128, at(9_999_999), at(1000));
    assert_eq!(bindings.hot(N1, at(1000), &[bucket(60, 1)]), 1);
    assert_eq!(bindings.hot(N1, at(1060), &[bucket(60, 1)]), 0);
    let instant = Bucket { range: SignedDuration::from_millis(500), count: 1 };
    assert_eq!(bindings.hot(N1, at(1000), &[instant]), 0, "in whole seconds nothing is that young");
}

// Crane divides by zero here.
#[test]
fn a_bucket_without_a_count_adds_nothing() {
    let mut bindings = Bindings::new();
    bindings.bind(N1, 1_u128, at(1000), at(1000));
    assert_eq!(bindings.hot(N1, at(1000), &[bucket(60, 0), bucket(60, -1)]), 0);
    assert_eq!(bindings.next_change(N1, at(1000), &[bucket(60, 0), bucket(60, -1)]), None);
}

proptest! {
    /// Against a list of all bindings, counted one by one.
    #[test]
    fn counts_are_those_of_a_plain_list(
        events in prop::collection::vec((0..3_u32, 0..20_u128, 0..200_i64, any::<bool>()), 0..60),
        buckets in prop::collection::vec((1..90_i64, 1..4_i64), 0..3),
        now in 0..300_i64,
    ) {
        let buckets: Vec<Bucket> = buckets.into_iter().map(|(range, count)| bucket(range, count)).collect();
        let mut bindings = Bindings::new();
        let mut plain: BTreeMap<u128, (u32, i64)> = BTreeMap::new();
        for (node, pod, time, gone) in events {
            if gone {
                prop_assert_eq!(bindings.forget(pod), plain.remove(&pod).is_some());
            } else {
                bindings.bind(NodeId(node), pod, at(time), at(1000));
                let stays = plain.get(&pod).is_some_and(|(n, t)| *n == node || time < *t);
                if !stays {
                    plain.insert(pod, (node, time));
                }
            }
        }
        let slow = |node: u32, now: i64| -> i64 {
            let young = |b: &Bucket| plain.values().filter(|(n, t)| *n == node && *t > now - b.range.as_secs()).count();
            buckets.iter().map(|b| i64::try_from(young(b)).unwrap() / b.count).sum()
        };
        for node in 0..3 {
            let id = NodeId(node);
            prop_assert_eq!(bindings.hot(id, at(now), &buckets), slow(node, now));
            let change = (now + 1..now + 500).find(|t| slow(node, *t) != slow(node, now));
            prop_assert_eq!(bindings.next_change(id, at(now), &buckets), change.map(at));
        }
        bindings.prune(at(now), &buckets);
        for node in 0..3 {
            prop_assert_eq!(bindings.hot(NodeId(node), at(now), &buckets), slow(node, now), "pruning changes nothing");
        }
    }
}
