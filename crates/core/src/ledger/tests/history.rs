//! The five-minute mean and the peaks.

use super::*;

/// When it ended, over how long, how many thousandths of a core and mebibytes.
type Told = (i64, i64, i64);

fn history(samples: &[Told]) -> History {
    let mut ledger = ledger(Options::default());
    for (at, window, milli) in samples {
        ledger.sample(N, sample(*at, *window, load(*milli, *milli)));
    }
    ledger.history(N).expect("there is a sample")
}

// A1
#[test]
fn the_mean_weighs_samples_by_their_part_of_the_last_five_minutes() {
    let cases: [(&[Told], i64, &str); 8] = [
        (&[(100, 15, 600)], 600_000_000, "whatever there is"),
        (&[(100, 60, 600), (160, 60, 300)], 450_000_000, "as long as each other"),
        (&[(100, 30, 600), (160, 60, 300)], 400_000_000, "(600 × 30 + 300 × 60) ÷ 90"),
        (
            &[(100, 60, 600), (380, 60, 300)],
            375_000_000,
            "20 s of the first are left: (12 000 + 18 000) ÷ 80",
        ),
        (&[(100, 60, 600), (400, 60, 300)], 300_000_000, "it ended when the five minutes began"),
        (&[(100, 0, 600), (110, 0, 300)], 450_000_000, "no windows: the plain mean"),
        (&[(100, 0, 600), (110, 15, 300)], 300_000_000, "a window of nothing has no weight beside others"),
        (&[(100, 900, 600), (110, 10, 300)], 590_000_000, "290 s of it: (174 000 + 3 000) ÷ 300"),
    ];
    for (samples, nano, why) in cases {
        assert_eq!(history(samples).mean_5m.cpu_nano, nano, "{samples:?}: {why}");
    }
    let mut backwards = ledger(Options::default());
    for (at, window, milli) in [(160, 60, 300), (100, 30, 600)] {
        backwards.sample(N, sample(at, window, load(milli, milli)));
    }
    let forwards = history(&[(100, 30, 600), (160, 60, 300)]);
    assert_eq!(backwards.history(N), Some(forwards), "in whatever order they come");
}

// A1
#[test]
fn the_mean_rounds_up() {
    let mut ledger = ledger(Options::default());
    for (at, cpu) in [(10, 1), (20, 1), (30, 2)] {
        ledger.sample(N, Sample { at: t(at), window: secs(10), usage: Load::new(cpu, cpu - 1) });
    }
    assert_eq!(ledger.history(N).unwrap().mean_5m, Load::new(2, 1), "4 ÷ 3 and 1 ÷ 3");
}

// A1
#[test]
fn samples_denser_than_ten_seconds_are_merged_and_none_is_forgotten() {
    let mut ledger = ledger(Options::default());
    for at in 1..=300 {
        ledger.sample(N, sample(at, 1, load(at, 1)));
    }
    let mean = ledger.history(N).unwrap().mean_5m;
    let exact = 150_500_000;
    assert!(
        (mean.cpu_nano - exact).abs() < 300,
        "(1 + … + 300) ÷ 300 = 150.5 thousandths but for rounding: {mean:?}"
    );
    assert_eq!(mean.memory_bytes, 1 << 20);
}

// A1
#[test]
fn peaks_are_the_largest_means_of_their_range_and_never_understated() {
    // One sample a minute with a window of a minute; a plateau of ten minutes at 3 cores from second 600 on.
    let mut ledger = ledger(Options::default());
    let (hour, day) = (3_600, 86_400);
    for at in (60..=30 * hour).step_by(60) {
        let milli = if (660..=1200).contains(&at) { 3000 } else { 500 };
        ledger.sample(N, sample(at, 60, load(milli, 512)));
        let history = ledger.history(N).unwrap();
        let peak = load(3000, 512);
        // The first mean without a plateau sample is at 1500; the last pure one at 1200.
        if (900..=1200 + hour).contains(&at) {
            assert_eq!(history.max_1h, peak, "at {at}: within the hour");
        }
        if at > 1500 + hour + 300 {
            assert_eq!(history.max_1h, load(500, 512), "at {at}: an hour and a bucket later");
        }
        if (900..=1200 + day).contains(&at) {
            assert_eq!(history.max_1d, peak, "at {at}: within the day");
        }
        if at > 1500 + day + 2 * hour {
            assert_eq!(history.max_1d, load(500, 512), "at {at}: a day and a bucket later");
        }
        assert_eq!(history.since, t(60.max(at - day)), "at {at}");
        assert_eq!(history.newest, t(at));
    }
}

#[test]
fn peaks_round_up_to_their_units() {
    let mut ledger = ledger(Options::default());
    let usage = Load::new(1, (16 << 10) + 1);
    for at in [0, 150, 300] {
        ledger.sample(N, Sample { at: t(at), window: secs(10), usage });
    }
    let got = ledger.history(N).unwrap();
    let coarse = Load::new(100_000, 32 << 10);
    assert_eq!((got.mean_5m, got.max_1h, got.max_1d), (usage, coarse, coarse));
}

/// A busy minute after a restart, or after silence, would otherwise count for a day.
#[test]
fn a_mean_of_less_than_five_minutes_is_no_peak() {
    let peaks = |samples: &[Told]| {
        let history = history(samples);
        assert_eq!(history.max_1h, history.max_1d);
        history.max_1h
    };
    let mut samples = vec![(0, 15, 3000), (15, 15, 1000)];
    assert_eq!(peaks(&samples), load(2000, 2000), "all there is so far");
    samples.extend([(165, 15, 500), (280, 15, 500)]);
    assert_eq!(peaks(&samples), load(1250, 1250), "280 + 15 s");
    samples.push((299, 15, 500));
    assert_eq!(
        peaks(&samples).cpu_nano,
        664_000_000,
        "1 s of the first: (3000 + 15 × 2500) ÷ 61, rounded up"
    );
    samples.push((800, 15, 2000));
    samples.push((815, 15, 100));
    assert_eq!(peaks(&samples).cpu_nano, 1_050_000_000, "after silence it starts over");
    samples.push((900, 15, 0));
    assert_eq!(peaks(&samples).cpu_nano, 700_000_000, "and 2000 was no peak");
}

#[test]
fn after_days_of_silence_history_begins_anew() {
    let day = 86_400;
    let got = history(&[(0, 15, 3000), (3 * day, 15, 500)]);
    assert_eq!((got.mean_5m, got.max_1h, got.max_1d), (load(500, 500), load(500, 500), load(500, 500)));
    assert_eq!(got.since, t(3 * day));
}
