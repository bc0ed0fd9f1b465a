//! Targets as craned computes them, with the arithmetic written out.

use super::*;

const NOW: i64 = 20_000 * DAY + 1;

/// So many cores, so many times.
type Told = (f64, usize);

fn cpu(samples: &[Told], rule: CraneRule) -> Option<i64> {
    let mut held = Linear::default();
    for (cores, times) in samples {
        (0..*times).for_each(|_| held.add(*cores, CPU, NOW));
    }
    held.target(CPU, rule, NOW).map(|cores| nanocores(cores) / 1_000_000)
}

#[test]
fn cpu_targets_are_those_of_craned() {
    let rule = CraneRule::default();
    let median = CraneRule { percentile: 0.5, ..rule };
    let halved = CraneRule { utilisation: 0.5, ..rule };
    let cases: [(&[Told], CraneRule, i64, &str); 11] = [
        (&[(0.0, 1)], rule, 114, "0.1 × 1.15 = 0.11499999999999999"),
        (&[(0.099, 50)], rule, 114, "the first bucket up to 0.1"),
        (&[(0.25, 1)], rule, 345, "trunc(0.25 ÷ 0.1) = 2, 3 × 0.1 × 1.15"),
        (&[(0.3, 1)], rule, 345, "0.3 ÷ 0.1 = 2.9999999999999996 in floats: bucket 2, not 3"),
        (&[(0.95, 1)], rule, 1150, "10 × 0.1 × 1.15"),
        (&[(99.95, 1)], rule, 114_999, "bucket 999: 1000 × 0.1 × 1.15 = 114.99999999999999"),
        (&[(640.0, 1)], rule, 114_999, "the last bucket ends nowhere: its lower edge 100 × 1.15"),
        (&[(0.05, 99), (0.95, 1)], rule, 1150, "weights 4.95 and 0.95: 4.95 < 0.99 × 5.9 = 5.841"),
        (&[(0.05, 99), (0.15, 1)], median, 114, "weights 4.95 and 0.15: 4.95 ≥ 2.55"),
        (
            &[(0.0, 1000), (0.15, 1)],
            median,
            229,
            "weights 1000 × 0.00001 = 0.01 and 0.15: 0.2 × 1.15 = 0.22999999999999998",
        ),
        (&[(0.05, 1)], halved, 229, "0.11499999999999999 ÷ 0.5 = 0.22999999999999998"),
    ];
    for (samples, rule, milli, why) in cases {
        assert_eq!(cpu(samples, rule), Some(milli), "{samples:?}: {why}");
    }
    assert_eq!(cpu(&[], rule), None, "nothing is known");
}

#[test]
fn memory_targets_are_those_of_craned() {
    let mi = f64::from(1 << 20);
    let cases = [
        (0.0, 120_586_239, "104 857 600 × 1.15 = 120586239.99999999"),
        (99.9 * mi, 120_586_239, "the first bucket up to 100 MiB"),
        (100.0 * mi, 241_172_479, "the second: 209 715 200 × 1.15 = 241172479.99999997"),
        (1000.0 * mi, 1_326_448_640, "the eleventh: 1 153 433 600 × 1.15, which floats hit"),
        (1e15, 120_586_239_999, "the last: 104 857 600 000 × 1.15 = 120586239999.99998"),
    ];
    for (used, want, why) in cases {
        let mut held = Linear::default();
        held.add(used, MEMORY, NOW);
        assert_eq!(held.target(MEMORY, CraneRule::default(), NOW).map(bytes), Some(want), "{used}: {why}");
    }
}

#[test]
fn what_is_older_than_seven_days_is_out() {
    let mut held = Linear::default();
    held.add(5.05, CPU, NOW);
    let target = |held: &Linear, at| held.target(CPU, CraneRule::default(), at).map(nanocores);
    assert_eq!(target(&held, NOW + 7 * DAY), Some(5_865_000_000), "51 × 0.1 × 1.15");
    assert_eq!(target(&held, NOW + 8 * DAY), None, "read too late");
    held.add(0.05, CPU, NOW + 7 * DAY);
    assert_eq!(target(&held, NOW + 7 * DAY), Some(5_865_000_000));
    held.add(0.05, CPU, NOW + 8 * DAY);
    assert_eq!(target(&held, NOW + 8 * DAY), Some(114_000_000));
    held.add(5.05, CPU, NOW);
    assert_eq!(held.days().len(), 2, "nor does a late one come back");
}
