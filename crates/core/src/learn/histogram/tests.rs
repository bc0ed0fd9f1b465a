//! By example, and against a sorted list of all samples with weights in floats.

use super::*;
use proptest::prelude::*;

const HOUR: i64 = 3_600_000;
const HALF_LIFE: i64 = 24 * HOUR;

fn share(nano: i64) -> Ratio {
    Ratio::from_nano(nano)
}

#[test]
fn edges_grow_by_a_twentieth_from_ten_millicores_and_ten_mebibytes() {
    let cases = [
        (Scale::CPU, 0, 0, 10_000_000, "nothing is in the first"),
        (Scale::CPU, 10_000_000, 0, 10_000_000, "an edge is in its own bucket"),
        (Scale::CPU, 10_000_001, 1, 10_500_000, "10m × 1.05"),
        (Scale::CPU, 11_000_000, 2, 11_025_000, "10m × 1.05²"),
        (Scale::MEMORY, 10 << 20, 0, 10_485_760, "10 MiB"),
        (Scale::MEMORY, 11 << 20, 2, 11_560_551, "11 010 048 × 1.05 = 11 560 550.4, up"),
        (Scale::CPU, -5, 0, 10_000_000, "less than nothing"),
    ];
    for (scale, amount, bucket, edge, why) in cases {
        assert_eq!((scale.bucket(amount), scale.edge(bucket)), (bucket, edge), "{amount}: {why}");
    }
    assert!(Scale::CPU.edge(u8::MAX) > 2_500_000_000_000, "cores");
    assert!(Scale::MEMORY.edge(u8::MAX) > 2400 << 30, "GiB");
    assert_eq!(Scale::MEMORY.bucket(i64::MAX), u8::MAX, "what is beyond is in the last");
}

#[test]
fn a_percentile_is_the_first_bucket_that_reaches_its_share() {
    let mut held = Histogram::default();
    assert_eq!(held.percentile(share(500_000_000)), None, "nothing is known");
    for (bucket, weight) in [(7, 10), (3, 80), (200, 10)] {
        held.add(bucket, weight, 0, HALF_LIFE);
    }
    let cases = [
        (0, 3, "the smallest there is"),
        (790_000_000, 3, "79 of 100"),
        (800_000_000, 3, "80 of 100 reaches it"),
        (800_000_001, 7, "80 does not"),
        (900_000_000, 7, "80 + 10"),
        (950_000_000, 200, "80 + 10 + 10"),
        (1_000_000_000, 200, "all"),
        (7_000_000_000, 200, "no more than all"),
        (-1, 3, "no less than nothing"),
    ];
    for (nano, bucket, why) in cases {
        assert_eq!(held.percentile(share(nano)), Some(bucket), "{nano}: {why}");
    }
}

#[test]
fn weights_halve_with_every_half_life() {
    let cases = [(24, 2_000, "2 : 1"), (48, 4_000, "4 : 1"), (72, 8_000, "8 : 1")];
    for (hours, weight, why) in cases {
        let mut held = Histogram::default();
        held.add(1, 1_000, 0, HALF_LIFE);
        held.add(2, 1_000, hours * HOUR, HALF_LIFE);
        assert_eq!(held.weights().collect::<Vec<_>>(), [(1, 1_000), (2, weight)], "{hours} h: {why}");
    }
    let mut held = Histogram::default();
    held.add(2, 1_000, 72 * HOUR, HALF_LIFE);
    held.add(1, 1_000, 0, HALF_LIFE);
    assert_eq!(held.weights().collect::<Vec<_>>(), [(1, 125), (2, 1_000)], "in whatever order they come");
}

#[test]
fn a_sample_far_ahead_moves_the_reference_and_drops_what_has_become_nothing() {
    let mut held = Histogram::default();
    held.add(1, 1_000, 0, HALF_LIFE);
    held.add(2, 16, 7 * HALF_LIFE, HALF_LIFE);
    // At most three half-lives ahead: the reference moves by 4, 1000 ÷ 2^4 = 62, and 16 × 2^3 = 128.
    assert_eq!(held.reference(), 4 * HALF_LIFE);
    assert_eq!(held.weights().collect::<Vec<_>>(), [(1, 62), (2, 128)]);
    held.add(3, 1, 100 * HALF_LIFE, HALF_LIFE);
    assert_eq!(held.weights().collect::<Vec<_>>(), [(3, 8)], "the others are 2^-93 of it");
    held.add(4, u32::MAX, i64::MAX, HALF_LIFE);
    assert_eq!(held.weights().map(|(bucket, _)| bucket).collect::<Vec<_>>(), [4], "all time there is");
    held.add(5, 1, i64::MIN, HALF_LIFE);
    assert_eq!(held.percentile(share(950_000_000)), Some(4), "an ancient sample harms nobody");
}

#[test]
fn a_full_bucket_halves_all_and_goes_on() {
    let mut held = Histogram::default();
    held.add(9, HEAVIEST / 4, 0, HALF_LIFE);
    for _ in 0..1_000 {
        held.add(1, HEAVIEST, 0, HALF_LIFE);
        held.add(2, HEAVIEST, 0, HALF_LIFE);
    }
    let weights: Vec<_> = held.weights().collect();
    let [(1, first), (2, second), (9, other)] = weights[..] else { panic!("{weights:?}") };
    assert!(first > u32::MAX / 2 - HEAVIEST, "{first} uses the digits there are");
    assert!(first.abs_diff(second) <= HEAVIEST / 16, "{first} and {second} got the same");
    assert!(other > 0, "1 in 4000 of the others is still there");
    assert_eq!(held.percentile(share(1_000_000_000)), Some(9));
}

/// Years of samples every 15 s of a thousand pods: 1 in 20 of them is high.
#[test]
fn after_years_a_percentile_is_that_of_the_last_days() {
    let mut held = Histogram::default();
    for hour in 0..2 * 365 * 24 {
        let high = if hour > 2 * 365 * 24 - 200 { 90 } else { 200 };
        held.add(10, 3_420_000, hour * HOUR, HALF_LIFE);
        held.add(high, 180_000, hour * HOUR, HALF_LIFE);
    }
    // 200 h are 8.3 half-lives: of the old high ones 1 in 320 × 1 in 20 is left.
    assert_eq!(held.percentile(share(940_000_000)), Some(10));
    assert_eq!(held.percentile(share(960_000_000)), Some(90));
    assert_eq!(held.percentile(share(999_000_000)), Some(90), "99.984 % are not higher");
    assert_eq!(held.percentile(share(1_000_000_000)), Some(200));
}

#[derive(Clone, Debug)]
struct Told {
    amount: i64,
    weight: u32,
    at: i64,
}

fn told() -> impl Strategy<Value = Told> {
    // From a millicore to 500 cores, evenly over the digits.
    (0.0..5.7_f64, 1_000_u32..600_000, 0..20 * 24 * HOUR).prop_map(|(digits, weight, at)| {
        #[expect(clippy::cast_possible_truncation, reason = "at most 500 cores")]
        let amount = (1e6 * 10_f64.powf(digits)) as i64;
        Told { amount, weight, at }
    })
}

/// The smallest amount such that the share of all weight is not above it.
fn slow(all: &[Told], share: f64) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let weight = |told: &Told| f64::from(told.weight) * (told.at as f64 / HALF_LIFE as f64).exp2();
    let mut sorted = all.to_vec();
    sorted.sort_by_key(|told| told.amount);
    let total: f64 = sorted.iter().map(weight).sum();
    let mut running = 0.0;
    let reached = sorted.iter().find(|told| {
        running += weight(told);
        running >= share * total
    });
    reached.or(sorted.last()).expect("there are samples").amount
}

proptest! {
    #[test]
    fn a_percentile_is_within_a_bucket_of_that_of_the_sorted_samples(
        all in prop::collection::vec(told(), 1..300),
        percent in 1..100_i64,
    ) {
        let mut held = Histogram::default();
        for told in &all {
            held.add(Scale::CPU.bucket(told.amount), told.weight, told.at, HALF_LIFE);
        }
        let got = Scale::CPU.edge(held.percentile(share(percent * 10_000_000)).expect("there are samples"));
        #[expect(clippy::cast_precision_loss, reason = "1 to 99")]
        let exact = percent as f64 / 100.0;
        // Weights are cut to whole numbers: a thousandth of the total is more than all of that.
        let (low, high) = (slow(&all, exact - 1e-3), slow(&all, exact + 1e-3));
        prop_assert!(got >= low, "{got} is below {low}");
        prop_assert!(got <= (high + high / 20 + 1).max(10_000_000), "{got} is a bucket above {high}");
    }

    #[test]
    fn no_sample_is_too_odd(
        all in prop::collection::vec((any::<u8>(), any::<u32>(), any::<i64>(), any::<i64>()), 0..50),
    ) {
        let mut held = Histogram::default();
        for (bucket, weight, at, half_life) in all {
            held.add(bucket, weight, at, half_life);
            prop_assert!(held.weights().all(|(_, weight)| weight > 0));
            prop_assert!(held.weights().collect::<Vec<_>>().is_sorted_by(|a, b| a.0 < b.0));
            prop_assert!(held.percentile(share(950_000_000)).is_some());
        }
    }
}
