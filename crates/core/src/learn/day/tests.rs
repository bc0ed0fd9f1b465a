//! By example, and against all samples sorted into days, hours and five minutes.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MINUTE: i64 = 60_000;

/// At which minute it ended, over how many seconds, how many thousandths of a core.
type Told = (i64, u32, i64);

/// In which hour, how many thousandths of a core.
type Peak = (usize, i64);

/// One pod and the day it makes.
#[derive(Default)]
struct One {
    last: Option<i64>,
    mean: Mean,
    hours: Hours,
}

impl One {
    fn add(&mut self, at: i64, window: u32, milli: i64) {
        let usage = Load::new(milli * 1_000_000, milli << 20);
        if let Some((began, mean)) = self.mean.add(self.last.unwrap_or(at), at, window, usage) {
            self.hours.note(began, mean, DAY);
        }
        self.last = Some(at);
    }

    fn milli(&self) -> Vec<Peak> {
        let day = self.hours.day(0);
        day.hours().map(|(hour, load)| (hour, load.cpu_nano / 1_000_000)).collect()
    }
}

#[test]
fn a_mean_counts_if_the_pod_was_there_before_and_after() {
    let cases: [(&[Told], &[Peak], &str); 7] = [
        (&[(1, 60, 900), (6, 60, 100)], &[], "the first five minutes of a pod follow nothing"),
        (&[(1, 60, 900), (6, 60, 100), (11, 60, 50)], &[(0, 100)], "the second are between others"),
        (
            &[(1, 60, 9), (6, 60, 100), (7, 180, 300), (11, 60, 5)],
            &[(0, 250)],
            "(100 × 60 + 300 × 180) ÷ 240",
        ),
        (&[(1, 60, 9), (6, 0, 100), (7, 0, 300), (11, 60, 5)], &[(0, 200)], "no windows: the plain mean"),
        (&[(1, 60, 9), (6, 60, 900), (16, 60, 5)], &[], "before a silence"),
        (&[(1, 60, 9), (11, 60, 900), (16, 60, 5)], &[], "after a silence"),
        (
            &[(50, 60, 9), (56, 60, 400), (61, 60, 200), (66, 60, 9)],
            &[(0, 400), (1, 200)],
            "an hour ends at 60 min",
        ),
    ];
    for (samples, want, why) in cases {
        let mut one = One::default();
        for (minute, window, milli) in samples {
            one.add(minute * MINUTE, window * 1000, *milli);
        }
        assert_eq!(one.milli(), want, "{samples:?}: {why}");
    }
}

/// Ten-thousandths of a core.
fn note(hours: &mut Hours, hour: i64, cpu: u32) {
    hours.note(hour * HOUR, Coarse { cpu, memory: cpu }, DAY);
}

fn at(hours: &Hours, hour: usize) -> Option<i64> {
    hours.day(0).hour(hour).map(|load| load.cpu_nano / Coarse::new(Load::new(1, 1)).load().cpu_nano)
}

#[test]
fn an_hour_is_todays_peak_or_what_is_left_of_the_days_before() {
    let mut hours = Hours::default();
    assert_eq!(at(&hours, 14), None, "nothing is known");
    for (when, cpu, want, why) in [
        (14, 4_000, 4_000, "a first peak counts at once"),
        (14, 3_000, 4_000, "a smaller one of the same hour does not"),
        (24 + 14, 1_000, 4_000, "the next day: while the hour lasts, yesterday's is held"),
        (24 + 15, 7, 2_000, "it is over: max(1000, 4000 ÷ 2)"),
        (48 + 14, 1_500, 2_000, "the third day"),
        (48 + 15, 7, 1_500, "max(1500, 2000 ÷ 2)"),
        (96 + 14, 100, 1_500, "nobody was there for a day: no reason to forget"),
        (96 + 15, 7, 375, "but two days have passed: max(100, 1500 ÷ 4)"),
        (120 + 14, 9_000, 9_000, "a higher one counts at once"),
    ] {
        note(&mut hours, when, cpu);
        assert_eq!(at(&hours, 14), Some(want), "hour {when}: {why}");
    }
}

#[test]
fn what_a_slower_pod_tells_late_counts_for_its_hour() {
    let mut hours = Hours::default();
    note(&mut hours, 14, 100);
    note(&mut hours, 15, 50);
    note(&mut hours, 14, 300);
    assert_eq!((at(&hours, 14), at(&hours, 15)), (Some(300), Some(50)));
    note(&mut hours, 13, 300);
    assert_eq!(at(&hours, 13), Some(300), "even if nobody else told of it");
    note(&mut hours, 48, 50);
    note(&mut hours, 14, 900);
    assert_eq!(at(&hours, 14), Some(300), "and so is a day later");
}

#[test]
fn idle_is_known_and_silence_is_not() {
    let mut hours = Hours::default();
    note(&mut hours, 3, 0);
    assert_eq!((at(&hours, 3), at(&hours, 4)), (Some(1), None), "a unit at least");
    assert_eq!(hours.day(0).hour(24), None, "there is no such hour");
    note(&mut hours, 24 + 5, 7);
    assert_eq!(hours.day(DAY - 1).hours().count(), 2, "seen on that day");
    assert_eq!(hours.day(DAY).hour(3), None, "seen before it");
    assert!(hours.day(9 * DAY).hour(5).is_some(), "what is not over is not too old");
}

/// All means of one pod that count: began when, ten-thousandths of a core.
fn slow_means(samples: &[(i64, u32, u32)]) -> Vec<(i64, f64)> {
    let mut slots: BTreeMap<i64, Vec<(u32, u32)>> = BTreeMap::new();
    for (at, window, cpu) in samples {
        slots.entry(at / MEAN).or_default().push((*window, *cpu));
    }
    let last = samples.last().map_or(0, |sample| sample.0 / MEAN);
    let counts =
        |slot: &i64| *slot < last && slots.contains_key(&(slot - 1)) && slots.contains_key(&(slot + 1));
    let mean = |all: &[(u32, u32)]| {
        let sum: f64 = all.iter().map(|(window, cpu)| f64::from(*window) * f64::from(*cpu)).sum();
        sum / all.iter().map(|(window, _)| f64::from(*window)).sum::<f64>()
    };
    slots.iter().filter(|(slot, _)| counts(slot)).map(|(slot, all)| (slot * MEAN, mean(all))).collect()
}

/// The day at the end, as the rule says it.
fn slow_day(means: &[(i64, f64)]) -> BTreeMap<i64, f64> {
    let mut peaks: BTreeMap<i64, f64> = BTreeMap::new();
    for (began, mean) in means {
        let peak = peaks.entry(began / HOUR).or_default();
        *peak = peak.max(*mean);
    }
    let open = peaks.keys().last().copied();
    let mut day: BTreeMap<i64, (f64, i64)> = BTreeMap::new();
    for (hour, peak) in &peaks {
        let (old, seen) = day.get(&(hour % 24)).copied().unwrap_or((0.0, 0));
        let left =
            if Some(*hour) == open { old } else { old / f64::from(1_u32 << (hour / 24 - seen).min(30)) };
        day.insert(hour % 24, (peak.max(left), hour / 24));
    }
    day.into_iter().map(|(hour, (peak, _))| (hour, peak)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_day_is_that_of_all_samples_sorted(
        steps in prop::collection::vec((20_000_i64..400_000, 1_000_u32..60_000, 1_u32..50_000), 1..800),
        pace in 1..6_i64,
    ) {
        let mut at = 5 * DAY;
        let mut samples = Vec::new();
        for (step, window, cpu) in steps {
            at += step * pace / 2;
            samples.push((at, window, cpu));
        }
        let (mut mean, mut hours, mut last) = (Mean::default(), Hours::default(), samples[0].0);
        for (at, window, cpu) in &samples {
            let usage = Load::new(i64::from(*cpu) * 100_000, i64::from(*cpu) << 14);
            if let Some((began, mean)) = mean.add(last, *at, *window, usage) {
                hours.note(began, mean, DAY);
            }
            last = *at;
        }
        let got: BTreeMap<i64, f64> = hours.day(0).hours().map(|(hour, load)| {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let units = (load.cpu_nano / 100_000) as f64;
            (i64::try_from(hour).expect("24 hours"), units)
        }).collect();
        let want = slow_day(&slow_means(&samples));
        prop_assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
        for (hour, peak) in want {
            // Means round up to a unit, what is left of older ones down.
            prop_assert!((got[&hour] - peak).abs() <= 1.001, "hour {}: {} for {}", hour, got[&hour], peak);
        }
    }
}
