//! What is remembered of nodes and pods, beside a slow version that keeps every sample.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn recent() -> Recent {
    Recent::new(&Settings::default())
}

fn run(since: i64, until: i64, samples: u32) -> Run {
    Run { since: at(since), until: at(until), samples }
}

/// When, and how much was used.
type Samples = &'static [(i64, i64)];

#[test]
fn a_run_ends_at_the_first_sample_that_is_not_over_or_missing() {
    let limit = 6_500_000_000;
    let table: [(&str, Samples, Option<Run>); 6] = [
        ("never measured", &[], None),
        ("not over", &[(0, 6500)], None),
        ("over once", &[(0, 6501)], Some(run(-60, 0, 1))),
        ("over, then not", &[(0, 8000), (60, 100)], None),
        ("over since a while", &[(0, 100), (60, 8000), (120, 8000)], Some(run(0, 120, 2))),
        ("nobody looked for six minutes", &[(0, 8000), (420, 8000)], Some(run(360, 420, 1))),
    ];
    for (why, samples, want) in table {
        let mut recent = recent();
        for (seconds, cpu) in samples {
            recent.node(NodeId(0), sample(*seconds, 60, milli(*cpu)));
        }
        assert_eq!(recent.over(NodeId(0), Metered::Cpu, limit), want, "{why}");
    }
}

#[test]
fn a_hole_breaks_a_run_also_where_slots_are_longer_than_it() {
    // Slots of 24 minutes: both samples are in one.
    let settings = Settings { over_for: SignedDuration::from_hours(2), ..Settings::default() };
    let begin = 1440 - at(0).as_second().rem_euclid(1440);
    for (hole, want) in [(300, run(begin, begin + 420, 2)), (301, run(begin + 361, begin + 421, 1))] {
        let mut recent = Recent::new(&settings);
        recent.node(NodeId(0), sample(begin + 60, 60, milli(8000)));
        recent.node(NodeId(0), sample(begin + 60 + hole + 60, 60, milli(8000)));
        assert_eq!(recent.over(NodeId(0), Metered::Cpu, 1), Some(want), "nobody looked for {hole} s");
    }
}

#[test]
fn what_is_older_than_known_or_negative_does_not_count() {
    let mut recent = recent();
    recent.node(NodeId(0), sample(60, 60, milli(8000)));
    recent.node(NodeId(0), sample(60, 60, milli(1)));
    recent.node(NodeId(0), sample(30, 60, milli(1)));
    recent.node(NodeId(0), sample(90, 60, milli(-1)));
    recent.node(NodeId(0), sample(90, -60, milli(1)));
    assert_eq!(recent.over(NodeId(0), Metered::Cpu, 1), Some(run(0, 60, 1)));
    recent.pod(Uid(1), sample(60, 60, milli(5)));
    recent.pod(Uid(1), sample(60, 60, milli(900)));
    recent.pod(Uid(1), sample(70, 60, milli(-1)));
    let known = recent.of(Uid(1), at(60)).expect("measured");
    assert_eq!((known.now, known.high), (milli(5), milli(5)));
    recent.expire(at(60 + 7200), SignedDuration::from_hours(2));
    assert!(recent.of(Uid(1), at(60)).is_some(), "measured two hours ago");
    recent.expire(at(61 + 7200), SignedDuration::from_hours(2));
    assert_eq!(recent.of(Uid(1), at(60)), None, "a second more is too long");
    recent.pod(Uid(1), sample(60, 60, milli(5)));
    recent.forget_pod(Uid(1));
    assert_eq!(recent.of(Uid(1), at(60)), None);
}

#[test]
fn a_pods_highest_use_is_forgotten_after_a_while() {
    let mut recent = recent();
    recent.pod(Uid(1), sample(0, 60, milli(900)));
    recent.pod(Uid(1), sample(6000, 60, milli(100)));
    assert_eq!(recent.of(Uid(1), at(6000)).map(|of| of.high), Some(milli(900)), "within two hours");
    recent.pod(Uid(1), sample(7800, 60, milli(100)));
    assert_eq!(recent.of(Uid(1), at(7800)).map(|of| of.high), Some(milli(100)), "ten minutes more");
}

proptest! {
    // A run may look shorter by what shares a slot with its beginning, never longer, however long slots are.
    #[test]
    fn a_run_is_never_told_longer_than_it_is(
        over_for in prop_oneof![Just(300), 1..86_400_i64],
        steps in vec((prop_oneof![4 => 1..200_i64, 1 => 200..1500_i64], prop_oneof![4 => Just(2_i64), 1 => 0..3_i64]), 1..60),
    ) {
        let settings = Settings { over_for: SignedDuration::from_secs(over_for), ..Settings::default() };
        let (mut recent, mut seconds, mut all) = (Recent::new(&settings), 0, Vec::new());
        for (step, cpu) in steps {
            seconds += step;
            let one = sample(seconds, step.min(60), milli(cpu));
            recent.node(NodeId(0), one);
            all.push(one);
        }
        let mut over: Vec<Sample> = Vec::new();
        for one in all.iter().rev().take_while(|one| one.usage.cpu_nano > 1_000_000) {
            // From the end of one to the beginning of the next window.
            let hole = over.last().map(|next| (next.at - next.window).duration_since(one.at).as_secs());
            if hole.is_some_and(|hole| hole > 300) {
                break;
            }
            over.push(*one);
        }
        let run = recent.over(NodeId(0), Metered::Cpu, 1_000_000);
        let first = over.last().map(|one| one.at - one.window);
        match (run, first) {
            (None, None) => {}
            // A dip in the newest slot hides what came after it.
            (None, Some(first)) => {
                let hidden = at(seconds).duration_since(first).as_secs();
                prop_assert!(hidden <= over_for / 5 + 1 + 60, "{hidden} s");
            }
            (Some(run), first) => {
                prop_assert!(first.is_some_and(|first| run.since >= first));
                prop_assert_eq!(run.until, at(seconds));
                prop_assert!(usize::try_from(run.samples).expect("few") <= over.len());
            }
        }
    }

    // Of a pod the highest of the last two hours is never missed, and nothing older than that and one slot counts.
    #[test]
    fn the_highest_use_is_never_understated(steps in vec((1..2000_i64, 0..1000_i64), 1..40)) {
        let (mut recent, mut seconds, mut all) = (recent(), 0, Vec::new());
        for (step, cpu) in steps {
            seconds += step;
            recent.pod(Uid(7), sample(seconds, 60, milli(cpu)));
            all.push((seconds, cpu));
        }
        let most = |length: i64| {
            all.iter().filter(|(at, _)| *at > seconds - length).map(|(_, cpu)| *cpu).max().unwrap_or(0)
        };
        let high = recent.of(Uid(7), at(seconds)).expect("measured").high;
        prop_assert!(high.cpu_nano >= milli(most(7200 - 600)).cpu_nano);
        prop_assert!(high.cpu_nano <= milli(most(7200)).cpu_nano);
    }
}
