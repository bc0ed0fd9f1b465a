//! Many workloads, many pods: who is counted, what is told, what is kept.

use super::*;
use crate::load::recommend::Index;
use crate::load::{Both, Load};
use crate::object::Key;
use jiff::SignedDuration;

const APP: &str = "app";
const DAY: i64 = 86_400;

/// Seconds after some midnight.
fn t(secs: i64) -> Timestamp {
    Timestamp::from_second(20_000 * DAY + secs).expect("a year like any other")
}

fn web(number: usize) -> WorkloadRef {
    let key = Key::new("online-shop", format!("web-frontend-{number}"));
    WorkloadRef { group: "apps".into(), kind: "Deployment".into(), key }
}

/// Thousandths of a core and mebibytes over 15 s.
fn sample(at: i64, milli: i64, mi: i64) -> Sample {
    Sample { at: t(at), window: SignedDuration::from_secs(15), usage: Load::new(milli * 1_000_000, mi << 20) }
}

fn learner() -> Learner {
    Learner::new(&Options::default())
}

/// CPU in thousandths, memory in mebibytes.
fn told(answer: &Learned, container: &str) -> (i64, i64) {
    let advice = answer.containers[container].advice;
    (advice.cpu_nano.expect("measured") / 1_000_000, advice.memory_bytes.expect("measured") >> 20)
}

#[test]
fn what_a_first_pod_used_is_recommended_to_the_second() {
    let mut learner = learner();
    assert_eq!(learner.recommend(&web(1), t(0)), None, "nothing is known");
    assert!(learner.observe(&web(1), Uid(1), APP, sample(0, 200, 300)));
    let answer = learner.recommend(&web(1), t(0)).expect("one sample is enough");
    assert_eq!(told(&answer, APP), (268, 396), "205.94m and 304.26 MiB, × 1.3");
    let app = answer.containers[APP];
    assert_eq!((app.samples, app.since, answer.updated), (1, t(0), t(0)));
    assert_eq!(app.day, Day::default(), "no five minutes have passed");
    assert_eq!(learner.recommend(&web(2), t(0)), None, "of others nothing is known");
}

#[test]
fn a_sample_that_is_not_newer_than_the_newest_of_its_pod_is_not_counted() {
    let mut learner = learner();
    let cases = [
        (1, APP, 100, true, "a first one"),
        (1, APP, 100, false, "the same again"),
        (1, APP, 99, false, "an older one"),
        (1, APP, 115, true, "a newer one"),
        (2, APP, 100, true, "another pod"),
        (1, "proxy", 100, true, "another container"),
    ];
    for (pod, container, at, counted, why) in cases {
        assert_eq!(learner.observe(&web(1), Uid(pod), container, sample(at, 100, 100)), counted, "{why}");
    }
    let answer = learner.recommend(&web(1), t(200)).expect("known");
    assert_eq!((answer.containers[APP].samples, answer.containers["proxy"].samples), (3, 1));
    learner.gone(&web(1), Uid(1));
    assert!(learner.observe(&web(1), Uid(1), APP, sample(100, 1, 1)), "nothing is remembered of who is gone");
    assert!(!learner.observe(&web(1), Uid(2), APP, sample(100, 1, 1)), "but of the others");
    learner.gone(&web(9), Uid(1));
}

#[test]
fn pods_are_pooled_and_each_counts_for_itself() {
    let mut learner = learner();
    // Nine replicas idle, the tenth is the leader.
    for at in (0..DAY).step_by(60) {
        for pod in 0..10 {
            let (milli, mi) = if pod == 9 { (900, 900) } else { (50, 100) };
            learner.observe(&web(1), Uid(pod), APP, sample(at, milli, mi));
        }
    }
    let answer = learner.recommend(&web(1), t(DAY)).expect("known");
    let why = "a tenth of the time is more than 5 %: the edge 934.55 × 1.225 = 1144.8, of both";
    assert_eq!(told(&answer, APP), (1145, 1145), "{why}");
    let day = answer.containers[APP].day;
    assert_eq!(day.hours().count(), 24);
    assert!(
        day.hours().all(|(_, peak)| peak == Load::new(900_000_000, 900 << 20)),
        "what one pod used: {day:?}"
    );
}

#[test]
fn the_day_shows_the_busy_hours() {
    let mut learner = learner();
    for at in (0..2 * DAY).step_by(15) {
        let milli = if (9..17).contains(&(at % DAY / 3600)) { 800 } else { 100 };
        learner.observe(&web(1), Uid(1), APP, sample(at, milli, 200));
    }
    let day = learner.recommend(&web(1), t(2 * DAY)).expect("known").containers[APP].day;
    for hour in 0..24 {
        let milli = if (9..17).contains(&hour) { 800 } else { 100 };
        assert_eq!(day.hour(hour), Some(Load::new(milli * 1_000_000, 200 << 20)), "{hour} h");
    }
}

#[test]
fn samples_over_five_minutes_are_means_by_themselves() {
    let mut learner = learner();
    let long = Sample { window: SignedDuration::from_mins(10), ..sample(7200, 300, 300) };
    learner.observe(&web(1), Uid(1), APP, long);
    let day = learner.recommend(&web(1), t(7200)).expect("known").containers[APP].day;
    assert_eq!(day.hours().collect::<Vec<_>>(), [(2, Load::new(300_000_000, 300 << 20))]);
}

#[test]
fn what_changed_is_told_until_it_is_published() {
    let mut learner = learner();
    let names = |changed: &[Learned]| changed.iter().map(|of| of.workload.to_string()).collect::<Vec<_>>();
    let both = ["Deployment online-shop/web-frontend-1", "Deployment online-shop/web-frontend-2"];
    for number in [2, 1] {
        learner.observe(&web(number), Uid(1), APP, sample(0, 200, 300));
    }
    let changed = learner.changed(t(0));
    assert_eq!(names(&changed), both, "new, by name");
    assert_eq!(learner.changed(t(0)), changed, "writing may have failed");
    learner.published(&web(2), &changed[1].advice());
    assert_eq!(names(&learner.changed(t(0))), both[..1]);
    learner.published(&web(1), &changed[0].advice());
    assert_eq!(learner.changed(t(0)), [], "all is written");
    learner.observe(&web(2), Uid(2), APP, sample(15, 300, 300));
    learner.observe(&web(1), Uid(2), APP, sample(15, 200, 300));
    assert_eq!(names(&learner.changed(t(15))), both[1..], "half more is told at once, the same is not");
    learner.published(&web(9), &changed[0].advice());
    assert_eq!(learner.workloads().len(), 2, "publishing teaches nothing");
}

#[test]
fn a_change_within_the_tolerance_is_not_told() {
    let mut learner = learner();
    learner.observe(&web(1), Uid(1), APP, sample(0, 200, 300));
    let now = Advice { cpu_nano: Some(268_000_000), memory_bytes: Some(396 << 20) };
    let cases = [
        (now, false, "the same"),
        (Advice { cpu_nano: Some(256_000_000), ..now }, false, "12 of 256 is 4.7 %"),
        (Advice { cpu_nano: Some(255_000_000), ..now }, true, "13 of 255 is 5.1 %"),
        (Advice { cpu_nano: Some(282_000_000), ..now }, false, "14 less of 282 is 5.0 %"),
        (Advice { cpu_nano: Some(283_000_000), ..now }, true, "15 less of 283 is 5.3 %"),
        (Advice { memory_bytes: Some(300 << 20), ..now }, true, "memory alone"),
        (Advice { memory_bytes: None, ..now }, true, "something instead of nothing"),
    ];
    for (place, (published, told, why)) in (1..).zip(cases) {
        learner.published(&web(1), &[(APP.into(), published)].into());
        // Five minutes later, so that it is not too soon.
        learner.observe(&web(1), Uid(1), APP, sample(300 * place, 200, 300));
        assert_eq!(!learner.changed(t(300 * place)).is_empty(), told, "{why}");
    }
    learner.published(&web(1), &[(APP.into(), now), ("old".into(), now)].into());
    assert_eq!(learner.changed(t(0)).len(), 1, "a container was published that is not known");
    learner.published(&web(1), &BTreeMap::new());
    assert_eq!(learner.changed(t(0)).len(), 1, "what was published is gone");
}

#[test]
fn a_change_is_told_five_minutes_after_the_last_unless_far_too_little_was_published() {
    let now = Advice { cpu_nano: Some(268_000_000), memory_bytes: Some(396 << 20) };
    let cases = [
        (Advice { cpu_nano: Some(300_000_000), ..now }, 300, "11 % too much can wait"),
        (Advice { cpu_nano: Some(900_000_000), ..now }, 300, "so can three times as much"),
        (Advice { cpu_nano: Some(240_000_000), ..now }, 300, "28 of 240 is 11.7 % too little"),
        (Advice { cpu_nano: Some(220_000_000), ..now }, 15, "48 of 220 is 21.8 % too little"),
        (Advice { memory_bytes: Some(300 << 20), ..now }, 15, "as is 32 % of memory"),
        (Advice::default(), 15, "nothing was published"),
    ];
    for (published, after, why) in cases {
        let mut learner = learner();
        learner.observe(&web(1), Uid(1), APP, sample(0, 200, 300));
        learner.published(&web(1), &[(APP.into(), published)].into());
        let told = (1..=20).map(|n| 15 * n).find(|second| {
            learner.observe(&web(1), Uid(1), APP, sample(*second, 200, 300));
            !learner.changed(t(*second)).is_empty()
        });
        assert_eq!(told, Some(after), "{why}");
    }
}

#[test]
fn what_was_learned_is_published_anew_every_hour_or_so_though_it_changes_nothing() {
    let mut learner = learner();
    learner.observe(&web(1), Uid(1), APP, sample(0, 200, 300));
    let advice = learner.recommend(&web(1), t(0)).expect("known").advice();
    learner.published(&web(1), &advice);
    let mut told = Vec::new();
    for second in (0..4 * 3600).step_by(15) {
        learner.observe(&web(1), Uid(1), APP, sample(second, 200, 300));
        for learned in learner.changed(t(second)) {
            told.push(second);
            learner.published(&web(1), &learned.advice());
        }
    }
    let between: Vec<i64> = told.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(told.len() >= 3 && between.iter().all(|time| (2700..=4515).contains(time)), "{told:?}");
    // Without samples there is nothing new to keep.
    assert_eq!(learner.changed(t(10 * 3600)), []);
}

#[test]
fn what_is_not_seen_for_two_weeks_is_forgotten() {
    let mut learner = learner();
    learner.observe(&web(1), Uid(1), APP, sample(0, 100, 100));
    learner.observe(&web(2), Uid(1), APP, sample(0, 100, 100));
    learner.observe(&web(2), Uid(1), "old", sample(0, 100, 100));
    let advice = learner.recommend(&web(2), t(0)).expect("known").advice();
    learner.observe(&web(2), Uid(1), APP, sample(DAY, 100, 100));
    learner.published(&web(2), &advice);
    learner.changed(t(DAY));
    assert_eq!(learner.expire(t(14 * DAY)), [], "two weeks");
    assert_eq!(learner.expire(t(14 * DAY + 1)), [web(1)], "and a second");
    assert_eq!(learner.recommend(&web(1), t(14 * DAY)), None);
    let changed = learner.changed(t(14 * DAY + 1));
    assert_eq!(changed.len(), 1, "a container was published that nobody has any more");
    assert_eq!(changed[0].containers.keys().map(|name| &**name).collect::<Vec<_>>(), [APP]);
    learner.published(&web(2), &changed[0].advice());
    assert_eq!(learner.changed(t(14 * DAY + 1)), []);
    learner.forget(&web(2));
    assert_eq!(learner.workloads().len(), 0);
}

#[test]
fn pods_that_are_not_measured_for_a_day_are_forgotten() {
    let mut learner = learner();
    for pod in 0..100 {
        learner.observe(&web(1), Uid(pod), APP, sample(0, 100, 100));
    }
    learner.observe(&web(1), Uid(0), APP, sample(DAY, 100, 100));
    let before = learner.bytes();
    learner.expire(t(DAY));
    assert!(!learner.observe(&web(1), Uid(5), APP, sample(0, 100, 100)), "a day");
    learner.expire(t(DAY + 1));
    assert!(before - learner.bytes() >= 99 * 48, "99 pods of 48 bytes");
    assert!(!learner.observe(&web(1), Uid(0), APP, sample(DAY, 100, 100)), "a second ago");
}

#[test]
fn a_kill_is_heard_before_any_sample() {
    let mut learner = learner();
    learner.oom(&web(1), APP, t(0), 300 << 20);
    let changed = learner.changed(t(0));
    let want = Advice { cpu_nano: None, memory_bytes: Some(520 << 20) };
    assert_eq!(changed[0].containers[APP].advice, want, "(300 + 100) MiB × 1.3; of CPU nothing is known");
}

#[test]
fn what_was_learned_is_read_like_any_recommendation() {
    let mut learner = learner();
    learner.observe(&web(1), Uid(1), APP, sample(0, 200, 300));
    let answer = learner.recommend(&web(1), t(0)).expect("known");
    let mut index = Index::default();
    index.add(answer.recommendation("online-shop/web-frontend-1"));
    let found = index.get(&web(1)).expect("added");
    assert_eq!(found.containers[APP], answer.containers[APP].advice);
    assert_eq!((found.updated, found.success), (Some(t(0)), true));
}

#[test]
fn a_restart_forgets_nothing_but_the_pods() {
    let mut before = learner();
    for at in (0..DAY).step_by(60) {
        before.observe(&web(1), Uid(1), APP, sample(at, at % 700, 200 + at % 300));
        before.observe(&web(1), Uid(1), "proxy", sample(at, 5, 20));
    }
    before.oom(&web(1), APP, t(DAY), 600 << 20);
    let bytes = before.checkpoint(&web(1)).expect("known");
    assert_eq!(before.checkpoint(&web(2)), None);

    let mut after = learner();
    assert_eq!(after.restore(&web(1), &bytes), Ok(()));
    assert_eq!(after.recommend(&web(1), t(DAY)), before.recommend(&web(1), t(DAY)));
    assert_eq!(after.checkpoint(&web(1)).as_ref(), Some(&bytes));

    let mut busy = learner();
    busy.observe(&web(1), Uid(1), "new", sample(DAY, 100, 100));
    busy.observe(&web(1), Uid(1), APP, sample(DAY, 100, 100));
    assert_eq!(busy.restore(&web(1), &bytes), Ok(()));
    let answer = busy.recommend(&web(1), t(DAY)).expect("known");
    let samples = ["app", "new", "proxy"].map(|name| answer.containers[name].samples);
    assert_eq!(samples, [1440, 1, 1440], "what rests on more samples stays");
}

#[test]
fn a_checkpoint_of_other_arithmetic_changes_nothing() {
    let mut crane = Learner::new(&Options { like: Like::Crane(Both::default()), ..Options::default() });
    crane.observe(&web(1), Uid(1), APP, sample(0, 200, 300));
    let bytes = crane.checkpoint(&web(1)).expect("known");
    let mut learner = learner();
    assert_eq!(learner.restore(&web(1), &bytes), Err(Unusable::Method));
    assert_eq!(learner.restore(&web(1), &[9, 9, 9]), Err(Unusable::Version(9)));
    assert_eq!(learner.restore(&web(1), &[]), Err(Unusable::Damaged));
    assert_eq!(learner.workloads().len(), 0);
    assert_eq!(crane.restore(&web(2), &bytes), Ok(()));
}

/// A week of four pods each, measured once a minute. Half of the workloads have busy hours and bursts on top, and are
/// between a hundredth of a core and ten of them; the others use anything between these from minute to minute.
fn realistic(workloads: usize) -> Learner {
    let mut learner = learner();
    let mut chance = 42_u64;
    let mut chance = move |below: i64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(chance >> 33).expect("31 bits") % below
    };
    for number in 0..workloads {
        let scale = 10 << chance(9);
        for at in (0..7 * DAY).step_by(60) {
            let busy = if (8..20).contains(&(at % DAY / 3600)) { 4 } else { 1 };
            for pod in 0..4 {
                let burst = if chance(50) == 0 { 1 + chance(6) } else { 1 };
                let steady = scale * busy * burst * (70 + chance(60)) / 100;
                let wild = (10 << chance(10)) * (100 + chance(100)) / 100;
                let milli = if number % 2 == 0 { steady } else { wild };
                let mi = scale * (100 + chance(20) + 2 * busy) / 100;
                learner.observe(&web(number), Uid(pod), APP, sample(at, milli, mi));
            }
        }
    }
    learner
}

#[test]
fn a_workload_takes_less_than_two_kilobytes_in_memory_and_written_down() {
    // A table of 16 is at most 14 full.
    let workloads = 14;
    let learner = realistic(workloads);
    let each = learner.bytes() / workloads;
    let most = learner.workloads.values().map(Workload::heap).max().expect("there are some");
    let most = most + 2 * (size_of::<(WorkloadRef, Workload)>() + 1) + 128;
    let checkpoints = learner.workloads().filter_map(|of| learner.checkpoint(of)).map(|bytes| bytes.len());
    let largest = checkpoints.max().expect("there are some");
    assert!(each <= 2048, "{each} bytes a workload");
    assert!(most <= 2048, "{most} bytes of one workload, two slots for it, and its name");
    assert!(largest <= 2048, "{largest} bytes of checkpoint");
}
