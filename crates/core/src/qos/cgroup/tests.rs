//! What the files of a group say, and what they cannot say.

use super::*;
use crate::qos::level::Level;
use crate::qos::pod::CpuQuota;
use Version::{V1, V2};
use proptest::prelude::*;
use std::time::Duration;

const DAMAGED: [&str; 9] = [
    "",
    "\n",
    "NaN\n",
    "-5\n",
    "18446744073709551615\n",
    "18446744073709551616\n",
    "12",
    "\u{0}\u{1}\n",
    "1 2 3\n4 5 6\n",
];

#[test]
fn how_long_a_group_ran() {
    assert_eq!(cpu_usage_ns(V1, "998609895\n"), Some(998_609_895));
    // Fields came and will come: one for idle siblings, two for bursts, one for nice tasks.
    let text = "usage_usec 929884\nuser_usec 793910\nsystem_usec 135973\ncore_sched.force_idle_usec 0\n\
                nice_usec 0\nnr_periods 47\nnr_throttled 46\nthrottled_usec 3580119\nnr_bursts 0\nburst_usec 0\n";
    assert_eq!(cpu_usage_ns(V2, text), Some(929_884_000));
    for text in DAMAGED {
        assert_eq!((cpu_usage_ns(V1, text), cpu_usage_ns(V2, text)), (None, None), "{text:?}");
        let named = format!("usage_usec {text}");
        assert_eq!(cpu_usage_ns(V2, &named), None, "{named:?}");
    }
    assert_eq!(cpu_usage_ns(V2, "usage_usec 9223372036854775807\n"), None, "more nanoseconds than can be");
}

#[test]
fn what_a_group_may_take() {
    let us = |us, period_us| Some(Quota { quota: CpuQuota::Us(us), period_us });
    let free = |period_us| Some(Quota { quota: CpuQuota::Unlimited, period_us });
    for (version, quota_text, period_text, expected, why) in [
        (V2, "20000 100000\n", None, us(20_000, 100_000), ""),
        (V2, "max 100000\n", None, free(100_000), ""),
        (V2, "400000 50000\n", None, us(400_000, 50_000), "eight CPUs"),
        (V1, "20000\n", Some("100000\n"), us(20_000, 100_000), ""),
        (V1, "-1\n", Some("100000\n"), free(100_000), ""),
        (V1, "20000\n", None, None, "no period"),
        (V1, "max\n", Some("100000\n"), None, "the other version's word"),
        (V2, "-1 100000\n", None, None, "the other version's word"),
        (V1, "-2\n", Some("100000\n"), None, "no kernel prints that"),
        (V1, "0\n", Some("100000\n"), None, "no kernel prints that"),
        (V2, "999 100000\n", None, None, "less than the kernel takes"),
        (V2, "20000 999\n", None, None, "shorter than the kernel takes"),
        (V2, "20000 1000001\n", None, None, "longer than the kernel takes"),
        (V2, "max\n", None, None, "no period"),
        (V2, "20000 10000", None, None, "cut"),
        (V2, "20000 100000\nmax 100000\n", None, None, "two lines"),
        (V2, "18446744073709551615 100000\n", None, None, "-1 in disguise"),
    ] {
        assert_eq!(quota(version, quota_text, period_text), expected, "{version:?} {quota_text:?} {why}");
    }
    for text in DAMAGED {
        assert_eq!(quota(V2, text, None), None, "{text:?}");
        assert_eq!(quota(V1, text, Some("100000\n")), None, "{text:?}");
        assert_eq!(quota(V1, "20000\n", Some(text)), None, "{text:?}");
    }
}

#[test]
fn what_the_kernel_would_refuse_is_not_written() {
    for (version, quota, period, expected) in [
        (V2, CpuQuota::Us(20_000), 100_000, Some("20000 100000\n")),
        (V2, CpuQuota::Unlimited, 100_000, Some("max 100000\n")),
        (V1, CpuQuota::Us(20_000), 100_000, Some("20000\n")),
        (V1, CpuQuota::Unlimited, 100_000, Some("-1\n")),
        (V2, CpuQuota::Us(1_000), 1_000, Some("1000 1000\n")),
        (V2, CpuQuota::Us(999), 100_000, None),
        (V1, CpuQuota::Us(0), 100_000, None),
        (V1, CpuQuota::Us(-1), 100_000, None),
        (V2, CpuQuota::Unknown, 100_000, None),
        (V2, CpuQuota::Us(20_000), 0, None),
        (V2, CpuQuota::Us(20_000), 1_000_001, None),
    ] {
        assert_eq!(quota_text(version, quota, period).as_deref(), expected, "{version:?} {quota:?} {period}");
    }
}

#[test]
fn how_often_a_quota_held_a_group_back() {
    let expected = Some(Throttling { periods: 50, throttled: 49, time_ns: 3_668_031_000 });
    assert_eq!(throttled(V1, "nr_periods 50\nnr_throttled 49\nthrottled_time 3668031000\n"), expected);
    let text =
        "usage_usec 9\nnr_periods 50\nnr_throttled 49\nthrottled_usec 3668031\nnr_bursts 0\nburst_usec 0\n";
    assert_eq!(throttled(V2, text), expected);
    let off = "usage_usec 9\nuser_usec 8\nsystem_usec 1\n";
    assert_eq!(throttled(V2, off), None, "without the controller it was not never");
    assert_eq!(throttled(V2, &text[..text.len() - 30]), None, "cut within the time");
    let at = |time_ms: u64, seconds| (time_ms * 1_000_000, Duration::from_secs(seconds));
    let rate = Some(Level::whole(750_000));
    assert_eq!(throttled_rate(at(500, 1), at(2000, 3)), rate, "1.5 s in 2 s");
    assert_eq!(throttled_rate(at(500, 1), at(499, 3)), None, "it went backwards");
    assert_eq!(throttled_rate(at(500, 1), at(600, 1)), None, "no time passed");
}

#[test]
fn memory_that_is_in_use_and_memory_that_stays() {
    let stat = "anon 110592\ninactive_anon 5000\nactive_anon 300\ninactive_file 2000\nactive_file 70\nunevictable 11\n";
    let old = "inactive_file 1\ninactive_anon 1\nactive_anon 1\nunevictable 1\ntotal_inactive_anon 5000\n\
               total_active_anon 300\ntotal_inactive_file 2000\ntotal_active_file 70\ntotal_unevictable 11\n";
    for (version, stat) in [(V2, stat), (V1, old)] {
        assert_eq!(working_set(version, "9000\n", stat), Some(7000), "{version:?}");
        assert_eq!(
            working_set(version, "1500\n", stat),
            Some(0),
            "{version:?}: counted at different moments"
        );
        assert_eq!(unreclaimable(version, stat), Some(5311), "{version:?}: 5 000 + 300 + 11");
        for text in DAMAGED {
            assert_eq!(working_set(version, text, stat), None, "{text:?}");
            assert_eq!(working_set(version, "9000\n", text), None, "{text:?}");
            assert_eq!(unreclaimable(version, text), None, "{text:?}");
        }
    }
    let most = i64::MAX;
    let lie = format!("inactive_anon {most}\nactive_anon {most}\nunevictable {most}\n");
    assert_eq!(unreclaimable(V2, &lie), None, "more than can be added");
}

#[test]
fn shares_and_weights() {
    for (shares, weight) in [(2, 1), (102, 4), (512, 20), (1024, 39), (2048, 79), (262_144, 10_000)] {
        assert_eq!(weight_of(shares), weight, "{shares} shares");
        assert_eq!(weight_of(shares_of(weight)), weight, "a weight of {weight}");
        assert!(shares_of(weight) <= shares, "the fewest of that weight");
    }
    assert_eq!((weight_of(0), weight_of(u64::MAX)), (1, 10_000));
    assert_eq!((shares_of(0), shares_of(u64::MAX)), (2, 262_144));
    assert_eq!((shares(V1, "1024\n"), shares(V2, "39\n")), (Some(1024), Some(999)));
    for (version, text) in [(V1, "1\n"), (V1, "262145\n"), (V2, "0\n"), (V2, "10001\n"), (V2, "39")] {
        assert_eq!(shares(version, text), None, "{version:?} {text:?}");
    }
}

#[test]
fn how_long_a_process_waited() {
    assert_eq!(run_queue_wait_ns("2000000000 1500000 42\n"), Some(1_500_000));
    for text in ["", "1\n", "1 2\n", "1 2 3", "1 -2 3\n", "1 NaN 3\n"] {
        assert_eq!(run_queue_wait_ns(text), None, "{text:?}");
    }
}

#[test]
fn a_counter_of_cpu_gives_millicores_or_nothing() {
    const S: u64 = 1_000_000_000;
    let at = Duration::from_millis;
    for (cores, before, now, expected, why) in [
        (4, (5 * S, at(0)), (8 * S, at(2000)), Some(1500), "3 s in 2 s"),
        (4, (5 * S, at(0)), (5 * S, at(2000)), Some(0), "it rests, which is measured"),
        (4, (5 * S, at(0)), (4 * S, at(2000)), None, "restarted"),
        (4, (5 * S, at(2000)), (8 * S, at(2000)), None, "no time passed"),
        (4, (5 * S, at(3000)), (8 * S, at(2000)), None, "the clock went backwards"),
        (4, (0, at(0)), (4 * S + S / 25, at(1000)), Some(4000), "4.04 s in 1 s: counted late, all there is"),
        (4, (0, at(0)), (5 * S, at(1000)), None, "more than four can do"),
        (4, (0, at(0)), (i64::MAX as u64, at(1000)), None, "a lie"),
        (0, (0, at(0)), (5 * S, at(1000)), Some(5000), "nobody knows how much there is"),
    ] {
        assert_eq!(cpu_rate(cores, before, now), expected.map(Level::whole), "{why}");
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_as_it_was_meant(us in 1_000..i64::MAX, period in 1_000..=1_000_000_i64) {
        for quota_of in [CpuQuota::Us(us), CpuQuota::Unlimited] {
            let expected = Some(Quota { quota: quota_of, period_us: period });
            let text = quota_text(V2, quota_of, period).unwrap();
            prop_assert_eq!(quota(V2, &text, None), expected);
            let text = quota_text(V1, quota_of, period).unwrap();
            prop_assert_eq!(quota(V1, &text, Some(&format!("{period}\n"))), expected);
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in any::<String>(), other in "[a-z_]{0,12} ?[0-9.-]{0,24}\n?") {
        for text in [&text, &other] {
            for version in [V1, V2] {
                let _ = (cpu_usage_ns(version, text), quota(version, text, Some(text)), throttled(version, text));
                let _ = (working_set(version, text, text), unreclaimable(version, text), shares(version, text));
            }
            let _ = (run_queue_wait_ns(text), bare_id(text));
        }
    }

    #[test]
    fn no_rate_is_negative_or_more_than_the_machine(
        cores in 1..1024_u32, from in any::<u64>(), to in any::<u64>(), first in any::<u64>(), then in any::<u64>(),
    ) {
        let at = Duration::from_nanos;
        if let Some(rate) = cpu_rate(cores, (from, at(first)), (to, at(then))) {
            prop_assert!(rate >= Level::ZERO && rate <= Level::whole(i64::from(cores) * 1000));
        }
    }
}

#[test]
fn who_waits_is_compared_with_itself() {
    let of = |all: &[(u32, u64)]| all.iter().copied().collect::<std::collections::BTreeMap<u32, u64>>();
    let at = Duration::from_secs;
    let before = of(&[(1, 5_000_000), (2, 7_000_000), (3, 900_000_000)]);
    for (now, seconds, rate, why) in [
        (of(&[(1, 35_000_000), (2, 17_000_000)]), 12, Some(20_000), "30 ms and 10 ms in 2 s; one has gone"),
        (of(&[(1, 35_000_000), (9, 800_000_000)]), 12, Some(15_000), "one has come"),
        (of(&[(3, 100_000_000)]), 12, Some(0), "another one with that id"),
        (of(&[]), 12, Some(0), "nobody is left"),
        (of(&[(1, 35_000_000)]), 10, None, "no time passed"),
    ] {
        let found = wait_rate((&before, at(10)), (&now, at(seconds)));
        assert_eq!(found, rate.map(Level::whole), "{why}");
    }
}
