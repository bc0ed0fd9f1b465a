//! What is made of samples, with the arithmetic written out.

use super::*;

const HOUR: i64 = 3_600_000;
/// Some hour.
const T: i64 = 500_000 * HOUR;

fn rules() -> Rules {
    Rules::new(&Options::default())
}

fn crane() -> Rules {
    Rules::new(&Options { like: Like::Crane(Both::default()), ..Options::default() })
}

/// Thousandths of a core and mebibytes, measured for 15 s until so many milliseconds after T.
fn used(profile: &mut Profile, after: i64, milli: i64, mi: i64, rules: &Rules) {
    profile.observe(T + after, 15_000, Load::new(milli * MILLICORE, mi * MEBIBYTE), rules);
}

/// The same in the same units.
fn advice(profile: &Profile, after: i64, rules: &Rules) -> (Option<i64>, Option<i64>) {
    let advice = profile.advice(T + after, rules);
    (advice.cpu_nano.map(|nano| nano / MILLICORE), advice.memory_bytes.map(|bytes| bytes / MEBIBYTE))
}

#[test]
fn one_sample_is_enough_for_an_answer_that_is_not_below_it() {
    let rules = rules();
    let cases = [
        (0, 0, 13, 13, "10m and 10 MiB × 1.3"),
        (10, 10, 13, 13, "the same: both are edges"),
        (200, 300, 268, 396, "205.94m × 1.3 = 267.7m, 304.26 MiB × 1.3 = 395.5 MiB"),
    ];
    for (milli, mi, cpu, memory, why) in cases {
        let mut profile = Profile::new("app", T, &rules);
        used(&mut profile, 0, milli, mi, &rules);
        assert_eq!(advice(&profile, 0, &rules), (Some(cpu), Some(memory)), "{milli}m, {mi} MiB: {why}");
        assert_eq!((profile.confidence(), profile.samples), (Ratio::ZERO, 1));
    }
    assert_eq!(advice(&Profile::new("app", T, &rules), 0, &rules), (None, None), "nothing is known");
}

#[test]
fn confidence_grows_with_days_and_samples() {
    let cases = [
        (0, 1, 0, "a first sample"),
        (24 * HOUR, 1440, 500_000_000, "a day, one a minute: 1 ÷ 2"),
        (24 * HOUR, 100_000, 500_000_000, "many pods make no more days"),
        (24 * HOUR, 288, 166_666_667, "one in five minutes: 0.2 ÷ 1.2"),
        (72 * HOUR, 100_000, 750_000_000, "3 ÷ 4"),
        (7 * 24 * HOUR, 100_000, 875_000_000, "7 ÷ 8"),
        (365 * 24 * HOUR, u32::MAX, 997_267_760, "365 ÷ 366: never all"),
    ];
    for (length, samples, nano, why) in cases {
        let profile = Profile { newest: T + length, samples, ..Profile::new("app", T, &rules()) };
        assert_eq!(profile.confidence().nano(), nano, "{samples} in {} h: {why}", length / HOUR);
    }
}

#[test]
fn the_margin_narrows_as_confidence_grows() {
    let rules = rules();
    for (confidence, margin, why) in [
        (0, 300_000_000, "the wide one"),
        (500_000_000, 225_000_000, "15 % + 15 % × 0.5"),
        (750_000_000, 187_500_000, "15 % + 15 % × 0.25"),
        (1_000_000_000, 150_000_000, "the narrow one"),
    ] {
        assert_eq!(rules.margin(Ratio::from_nano(confidence)).nano(), margin, "{confidence}: {why}");
    }
    let options = Options { wide_margin: Ratio::ZERO, ..Options::default() };
    assert_eq!(Rules::new(&options).margin(Ratio::ZERO), options.margin, "wide is not less than narrow");
}

#[test]
fn cpu_is_what_suffices_most_of_the_time() {
    let rules = rules();
    let feed = |high: i64, window: u32| {
        let mut profile = Profile::new("app", T, &rules);
        // A day, one a minute; of a hundred some are high.
        for minute in 0..1440 {
            let (milli, window) = if minute % 100 < high { (2_000, window) } else { (100, 15_000) };
            profile.observe(T + minute * 60_000, window, Load::new(milli * MILLICORE, 0), &rules);
        }
        advice(&profile, 24 * HOUR, &rules).0
    };
    // Confidence 1439 ÷ 2879 = 0.49983, margin 22.5026 %. Edges: 104.013m and 2040.02m.
    assert_eq!(feed(3, 15_000), Some(128), "3 % of the time: 104.013m × 1.225 = 127.4m");
    assert_eq!(feed(7, 15_000), Some(2500), "7 %: 2040.02m × 1.225 = 2499.1m");
    assert_eq!(feed(3, 45_000), Some(2500), "3 samples thrice as long are 9 ÷ 106 of the time");
}

#[test]
fn memory_is_the_peak_of_almost_every_hour() {
    let rules = rules();
    let mut profile = Profile::new("app", T, &rules);
    // 200 MiB for ten days; one sample of 800 MiB in the 100th hour.
    let mut held = Vec::new();
    for step in 0..240 * 60 {
        let mi = if step == 100 * 60 + 30 { 800 } else { 200 };
        used(&mut profile, step * 60_000, 100, mi, &rules);
        let (_, memory) = advice(&profile, step * 60_000, &rules);
        if memory > Some(500) {
            held.push(step);
        }
    }
    let (first, last) = (held[0], held[held.len() - 1]);
    assert_eq!(first, 100 * 60 + 30, "it counts at once");
    // 2^(−h ÷ 24) falls below 2 % of the total, 34 by then: h > 24 × log2(1 ÷ 0.68) = 13.
    assert!((112 * 60..=115 * 60).contains(&last), "and for half a day: until minute {last}");
    assert_eq!(held.len(), usize::try_from(last - first + 1).expect("ascending"), "without a gap");
}

#[test]
fn a_peak_in_the_same_hour_of_every_day_is_always_covered() {
    let rules = rules();
    let mut profile = Profile::new("app", T, &rules);
    for hour in 0..20 * 24 {
        used(&mut profile, hour * HOUR, 100, if hour % 24 == 3 { 800 } else { 200 }, &rules);
        let (_, memory) = advice(&profile, hour * HOUR, &rules);
        assert!(hour < 3 || memory > Some(800), "hour {hour}: {memory:?}");
    }
}

#[test]
fn an_hour_told_late_counts_in_the_next() {
    let rules = rules();
    let mut profile = Profile::new("app", T, &rules);
    used(&mut profile, HOUR, 100, 200, &rules);
    used(&mut profile, HOUR - 1, 100, 800, &rules);
    assert_eq!(advice(&profile, HOUR, &rules).1, Some(1050), "807.3 MiB × 1.3 = 1049.5 MiB");
}

#[test]
fn being_killed_for_lack_of_memory_counts_as_a_higher_peak_for_a_week() {
    let cases = [
        (0, 130, "0 + 100 MiB, × 1.3"),
        (300, 520, "300 + 100 = 400 beats 360: × 1.3"),
        (500, 780, "500 + 100 = 500 × 1.2: × 1.3"),
        (1000, 1560, "1000 × 1.2 = 1200 beats 1100: × 1.3"),
    ];
    let rules = rules();
    let week = 7 * 24 * HOUR;
    for (had, want, why) in cases {
        let mut profile = Profile::new("app", T, &rules);
        profile.killed(T, had * MEBIBYTE, &rules);
        assert_eq!(advice(&profile, 0, &rules), (None, Some(want)), "{had} MiB: {why}");
        assert_eq!(advice(&profile, week, &rules).1, Some(want), "a week");
        assert_eq!(advice(&profile, week + 1, &rules).1, None, "and no longer");
    }
    let mut profile = Profile::new("app", T, &rules);
    used(&mut profile, 0, 100, 2000, &rules);
    let before = advice(&profile, 0, &rules);
    profile.killed(T, 1000 * MEBIBYTE, &rules);
    assert_eq!(advice(&profile, 0, &rules), before, "more was seen in use");
}

#[test]
fn of_several_kills_the_worst_of_the_week_counts() {
    let rules = rules();
    let week = 7 * 24 * HOUR;
    let mut profile = Profile::new("app", T, &rules);
    let mut told = |after: i64, had: i64| {
        profile.killed(T + after, had * MEBIBYTE, &rules);
        profile.oom.map(|oom| (oom.at - T, oom.bytes / MEBIBYTE))
    };
    assert_eq!(told(0, 1000), Some((0, 1200)));
    assert_eq!(told(0, 1000), Some((0, 1200)), "told twice");
    assert_eq!(told(5, 500), Some((0, 1200)), "a smaller one");
    assert_eq!(told(9, 1000), Some((9, 1200)), "the same again");
    assert_eq!(told(5, 1000), Some((9, 1200)), "told late");
    assert_eq!(told(10, 1200), Some((10, 1440)), "a larger one");
    assert_eq!(told(11 + week, 500), Some((11 + week, 600)), "a smaller one when the larger is forgotten");
}

#[test]
fn like_crane_is_its_arithmetic_with_protection_from_the_last_kill() {
    let rules = crane();
    let mut profile = Profile::new("app", T, &rules);
    let bytes = |profile: &Profile, after| profile.advice(T + after, &rules).memory_bytes;
    used(&mut profile, 0, 50, 50, &rules);
    let smallest = Advice { cpu_nano: Some(114_000_000), memory_bytes: Some(120_586_239) };
    assert_eq!(profile.advice(T, &rules), smallest);
    profile.killed(T, 300 * MEBIBYTE, &rules);
    assert_eq!(bytes(&profile, 0), Some(400 << 20), "300 + 100 MiB beats 360");
    profile.killed(T, 1 << 30, &rules);
    assert_eq!(bytes(&profile, 0), Some(1_288_490_188), "1 GiB × 1.2 = 1288490188.8, no margin");
    used(&mut profile, 8 * 24 * HOUR, 50, 50, &rules);
    assert_eq!(bytes(&profile, 8 * 24 * HOUR), Some(120_586_239), "eight days later");
}

#[test]
fn amounts_with_a_margin_round_up_and_stay_numbers() {
    let ratio = Ratio::from_nano;
    assert_eq!(with_margin(1_000_000, ratio(0), MILLICORE), 1_000_000);
    assert_eq!(with_margin(1_000_001, ratio(0), MILLICORE), 2_000_000);
    assert_eq!(with_margin(100, ratio(150_000_000), 1), 115);
    assert_eq!(with_margin(101, ratio(150_000_000), 1), 117, "116.15");
    assert_eq!(with_margin(i64::MAX, ratio(i64::MAX), 1), i64::MAX);
}
