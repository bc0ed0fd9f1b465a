//! What survives a restart, against a ledger that was never interrupted.

use super::*;
use crate::ledger::checkpoint::{BadCheckpoint, Encoded, Restored, decode, encode};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// What peaks round up to.
const UNIT: Load = Load::new(100_000, 16 << 10);

fn after_restart(old: &Ledger, now: Timestamp) -> Ledger {
    let mut new = ledger(Options::default());
    let bytes = old.checkpoint(N).expect("there is a sample");
    assert_eq!(new.restore(N, &bytes, now), Ok(Restored::Done));
    new
}

fn told(samples: &[Sample]) -> Ledger {
    let mut ledger = ledger(Options::default());
    for sample in samples {
        ledger.sample(N, *sample);
    }
    ledger
}

#[test]
fn history_comes_back_and_present_usage_does_not() {
    let samples: Vec<Sample> = (0..60).map(|i| sample(i * 60, 60, load(500 + i * 10, 1024))).collect();
    let old = told(&samples);
    let mut new = after_restart(&old, t(3600));
    assert_eq!(new.history(N), old.history(N), "thousandths of a core and mebibytes are whole units");
    assert_eq!(new.figures(N), Figures::default(), "usage of before the restart is nobody's present usage");
    assert_eq!(new.changed().collect::<Vec<_>>(), [N], "and whoever goes by history is told");
    assert_eq!(new.checkpoint(N), old.checkpoint(N), "written again it is the same");

    // The newest of a slow source, seen again.
    assert_eq!(new.sample(N, samples[59]), Taken::Newest);
    assert_eq!(new.history(N), old.history(N), "it was in the checkpoint");
    assert_eq!(new.figures(N).newest, Some(samples[59]));
    assert_eq!(new.sample(N, sample(3600, 60, load(2000, 1024))), Taken::Newest);
    let mean = new.history(N).unwrap().mean_5m;
    assert_eq!(mean, load((1060 + 1070 + 1080 + 1090 + 2000) / 5, 1024), "the mean goes on where it was");
}

#[test]
fn what_is_too_old_from_the_future_or_of_no_node_is_left_alone() {
    let bytes = told(&[sample(0, 15, load(500, 512))]).checkpoint(N).unwrap();
    let day = 86_400;
    let cases = [
        (N, 0, Restored::Done, "at once"),
        (N, day, Restored::Done, "within a day"),
        (N, day + 1, Restored::TooOld, "of a day nothing is left"),
        (N, -30, Restored::Done, "a clock that differs a little"),
        (N, -31, Restored::Ahead, "a clock that is wrong"),
        (M, 0, Restored::NoNode, "gone since"),
    ];
    for (id, now, want, why) in cases {
        let mut ledger = ledger(Options::default());
        ledger.changed().for_each(drop);
        assert_eq!(ledger.restore(id, &bytes, t(now)), Ok(want), "{why}");
        assert_eq!(ledger.history(id).is_some(), want == Restored::Done, "{why}");
        assert_eq!(ledger.changed().count(), usize::from(want == Restored::Done), "{why}");
    }
    assert_eq!(ledger(Options::default()).checkpoint(N), None, "without a sample there is nothing to keep");
    assert_eq!(ledger(Options::default()).checkpoint(NodeId(7)), None);
}

#[test]
fn what_is_damaged_or_of_another_version_is_refused() {
    let mut ledger = ledger(Options::default());
    let bytes = told(&[sample(0, 15, load(500, 512))]).checkpoint(N).unwrap();
    let mut newer = bytes.clone();
    newer[0] = 2;
    assert_eq!(ledger.restore(N, &newer, t(0)), Err(BadCheckpoint::Format(2)));
    assert_eq!(BadCheckpoint::Format(2).to_string(), "checkpoint has format 2, expected 1");
    for cut in 0..bytes.len() {
        assert_eq!(ledger.restore(N, &bytes[..cut], t(0)), Err(BadCheckpoint::Damaged), "{cut} bytes of it");
    }
    let longer = [&*bytes, &[0]].concat();
    assert_eq!(ledger.restore(N, &longer, t(0)), Err(BadCheckpoint::Damaged));
    assert_eq!(ledger.history(N), None);
}

#[test]
fn a_restored_peak_leaves_its_range_like_any_other() {
    // Ten minutes at 3 cores until second 600, then little; the last sample before the restart is of second 1200.
    let busy = |at| if at <= 600 { 3000 } else { 500 };
    let samples: Vec<Sample> = (0..=20).map(|i| sample(i * 60, 60, load(busy(i * 60), 512))).collect();
    let (hour, day) = (3_600, 86_400);
    let cases = [
        (600 + hour, 3000, 3000, "an hour later"),
        (900 + hour + 300, 500, 3000, "an hour and a bucket after the last mean with any of it"),
        (1200 + day, 500, 3000, "a day later"),
        (900 + day + 2 * hour, 500, 500, "a day and a bucket later"),
    ];
    for (at, max_1h, max_1d, why) in cases {
        let mut new = after_restart(&told(&samples), t(at.min(1200 + day)));
        new.sample(N, sample(at, 60, load(500, 512)));
        let history = new.history(N).unwrap();
        assert_eq!(history.max_1h, load(max_1h, 512), "{why}");
        assert_eq!(history.max_1d, load(max_1d, 512), "{why}");
    }
}

/// A busy first minute must not count for a day because a checkpoint said that a day was covered.
#[test]
fn after_a_long_gap_a_short_mean_is_no_peak() {
    let samples: Vec<Sample> = (0..=20).map(|i| sample(i * 60, 60, load(500, 512))).collect();
    let mut new = after_restart(&told(&samples), t(1900));
    new.sample(N, sample(1900, 60, load(4000, 512)));
    assert_eq!(new.history(N).unwrap().max_1h, load(4000, 512), "while it is the present one");
    new.sample(N, sample(1960, 60, load(500, 512)));
    new.sample(N, sample(2020, 60, load(500, 512)));
    assert_eq!(
        new.history(N).unwrap().max_1h.cpu_nano,
        1_666_666_667,
        "(4000 + 500 + 500) ÷ 3: 4000 was none"
    );
}

#[test]
fn short_history_stays_short_and_a_full_day_stays_full() {
    let day = 86_400;
    for (last, why) in [(120, "two minutes"), (3 * 3600, "three hours"), (2 * day, "two days")] {
        let samples: Vec<Sample> = (0..=last / 60).map(|i| sample(i * 60, 60, load(500, 512))).collect();
        let old = told(&samples);
        let mut new = after_restart(&old, t(last + 30));
        let since = |ledger: &Ledger| ledger.history(N).unwrap().since;
        assert_eq!(since(&new), t((last - day).max(0)), "{why}");
        new.sample(N, sample(last + 60, 60, load(500, 512)));
        assert_eq!(since(&new), t((last + 60 - day).max(0)), "{why}: and goes on");
    }
}

/// Known for more than a day, most of which was silence: how far back it goes is told by the peaks alone.
#[test]
fn silence_within_the_last_day_is_not_taken_for_history() {
    let hour = 3_600;
    let at = (0..10).map(|i| i * 60).chain((23 * 60..27 * 60).map(|i| i * 60));
    let samples: Vec<Sample> = at.map(|at| sample(at, 60, load(500, 512))).collect();
    let old = told(&samples);
    let since = old.history(N).unwrap().since;
    assert!(since > t(21 * hour) && since <= t(23 * hour), "up to two hours early: {since}");
    assert_eq!(after_restart(&old, t(27 * hour)).history(N), old.history(N));
}

#[test]
fn a_checkpoint_found_late_brings_back_peaks_and_how_far_they_reach() {
    // Half an hour at 3 cores, then a new process that has ten minutes at half a core before it finds the checkpoint.
    let before: Vec<Sample> = (0..=30).map(|i| sample(i * 60, 60, load(3000, 2048))).collect();
    let early: Vec<Sample> = (32..=42).map(|i| sample(i * 60, 60, load(500, 512))).collect();
    let bytes = told(&before).checkpoint(N).unwrap();
    let mut ledger = told(&early);
    let held = ledger.history(N).unwrap();
    assert_eq!((held.since, held.max_1h), (t(1920), load(500, 512)));
    assert_eq!(ledger.restore(N, &bytes, t(2520)), Ok(Restored::Done));
    let peak = load(3000, 2048);
    assert_eq!(ledger.history(N), Some(History { since: t(0), max_1h: peak, max_1d: peak, ..held }));
}

/// A wave over the day that differs from node to node, and noise.
fn realistic(node: i64, at: i64) -> Load {
    let noise = |salt: i64, most: i64| {
        let mixed = (node * 7_919 + at * 104_729 + salt).wrapping_mul(0x5851_f42d_4c95_7f2d);
        (mixed >> 33).rem_euclid(most)
    };
    let hour = (at / 3600 + node) % 24;
    let wave = (12 - (hour - 12).abs()) * 1_500_000_000;
    let cpu = 4_000_000_000 + wave + noise(1, 2_000_000_000);
    let memory = (60 << 30) + (hour << 28) + noise(2, 1 << 29);
    Load::new(cpu, memory)
}

#[test]
fn five_thousand_nodes_fit_into_one_object() {
    // A day and an hour of samples, every 15 s with a window that is not quite as long.
    let mut ledger = Ledger::new(Options::default());
    let kinds = 24;
    for node in 0..kinds {
        let id = NodeId(u32::try_from(node).unwrap());
        ledger.node(id);
        for i in 0..25 * 240 {
            let at = i * 15;
            let window = SignedDuration::from_millis(14_900 + (i * 37 + node) % 200);
            ledger.sample(id, Sample { at: t(at), window, usage: realistic(node, at) });
        }
    }
    let kept: Vec<Vec<u8>> =
        (0..kinds).map(|n| ledger.checkpoint(NodeId(u32::try_from(n).unwrap())).unwrap()).collect();
    let longest = kept.iter().map(Vec::len).max().unwrap();
    let name = |i: usize| format!("ip-10-{}-{}-{}.eu-central-1.compute.internal", i % 3, i / 256, i % 256);
    let nodes = (0..5_000).map(|i| (name(i), &kept[i % kept.len()]));
    let Encoded { parts, left_out } = encode(nodes, 1 << 20);
    assert_eq!((parts.len(), left_out), (1, 0));
    let (average, all) = (kept.iter().map(Vec::len).sum::<usize>() / kept.len(), parts[0].len());
    println!("{average} bytes a node, at most {longest}, {} with its name; {all} in all", all / 5_000);
    assert!(longest <= 200, "{longest} bytes");
    assert!(all <= 5_000 * 140, "{} bytes a node, names included", all / 5_000);
    assert!(all.div_ceil(3) * 4 < 950_000, "as base64");
}

/// Pauses, windows and usage, the windows as long as the pauses or anything.
type Told = Vec<(i64, i64, Load)>;

fn usage() -> impl Strategy<Value = Load> {
    prop_oneof![
        (0..64_000_000_000_i64, 0..256_i64 << 30).prop_map(|(cpu, memory)| Load::new(cpu, memory)),
        (0..3_i64, 0..3_i64).prop_map(|(cpu, memory)| Load::new(cpu, memory)),
    ]
}

/// At most five within five minutes.
fn sparse() -> impl Strategy<Value = Told> {
    let pause =
        prop_oneof![8 => 60_000_000..200_000_000_i64, 1 => Just(60_000_000), 1 => 0..90_000_000_000_i64];
    let one = (pause, 0..400_000_000_i64, usage());
    vec(one.prop_map(|(pause, window, usage)| (pause.max(60_000_000), window, usage)), 1..60)
}

/// Every ten to twenty seconds, without gaps between windows.
fn dense() -> impl Strategy<Value = Told> {
    vec((10_000_000..20_000_000_i64, usage()), 1..120)
        .prop_map(|all| all.into_iter().map(|(pause, usage)| (pause, pause, usage)).collect())
}

/// One after the other, in microseconds, or in whole units of it as clocks have it.
fn samples(told: &Told, unit: i64) -> Vec<Sample> {
    let mut at = t(0);
    let span = |micros: i64| SignedDuration::from_micros(micros / unit * unit);
    let one = |(pause, window, usage): &(i64, i64, Load)| {
        at += span(*pause);
        Sample { at, window: span(*window), usage: *usage }
    };
    told.iter().map(one).collect()
}

fn units() -> impl Strategy<Value = i64> {
    prop_oneof![Just(1), Just(1_000), Just(1_000_000)]
}

/// Is each part at least as large?
fn covers(large: Load, small: Load) -> bool {
    large.max(small) == large
}

proptest! {
    #[test]
    fn few_samples_restored_are_as_good_as_never_interrupted(before in sparse(), after in sparse(), unit in units()) {
        let all = samples(&[before.clone(), after].concat(), unit);
        let (before, after) = all.split_at(before.len());
        let mut truth = told(before);
        let mut new = after_restart(&truth, before.last().unwrap().at);
        for sample in after {
            truth.sample(N, *sample);
            new.sample(N, *sample);
            let (want, got) = (truth.history(N).unwrap(), new.history(N).unwrap());
            prop_assert_eq!((got.newest, got.since), (want.newest, want.since));
            for (got, want) in [(got.mean_5m, want.mean_5m), (got.max_1h, want.max_1h), (got.max_1d, want.max_1d)] {
                prop_assert!(covers(got, want) && covers(want.plus(UNIT), got), "{:?}, expected {:?}", got, want);
            }
        }
    }

    #[test]
    fn many_samples_restored_never_understate(
        before in dense(),
        after in dense(),
        unit in units(),
        gap in prop_oneof![Just(0), 0..300_i64, 0..80_000_i64],
    ) {
        let mut all = samples(&[before.clone(), after].concat(), unit);
        for sample in &mut all[before.len()..] {
            sample.at += secs(gap);
        }
        let (before, after) = all.split_at(before.len());
        let mut truth = told(before);
        let mut new = after_restart(&truth, before.last().unwrap().at);
        let (was, is) = (truth.history(N).unwrap(), new.history(N).unwrap());
        prop_assert!(covers(is.max_1h, was.max_1h) && covers(is.max_1d, was.max_1d));
        let most = all.iter().map(|s| s.usage).fold(Load::ZERO, Load::max).plus(UNIT);
        for sample in after {
            truth.sample(N, *sample);
            new.sample(N, *sample);
            let (want, got) = (truth.history(N).unwrap(), new.history(N).unwrap());
            prop_assert_eq!((got.newest, got.since), (want.newest, want.since));
            for (got, want) in [(got.mean_5m, want.mean_5m), (got.max_1h, want.max_1h), (got.max_1d, want.max_1d)] {
                prop_assert!(covers(got, want), "{:?}, expected {:?}", got, want);
                prop_assert!(covers(most, got), "{:?} was never used", got);
            }
            if sample.at.duration_since(before.last().unwrap().at) >= secs(300) {
                prop_assert_eq!(got.mean_5m, want.mean_5m, "five minutes later all is as it was");
            }
        }
    }

    /// A peak says the same however it is written down: nothing but peaks, long after the last of their samples.
    #[test]
    fn peaks_are_the_same_to_the_last_digit(before in dense(), hours in 1..23_i64) {
        let before = samples(&before, 1);
        let mut truth = told(&before);
        let mut new = after_restart(&truth, before.last().unwrap().at);
        let mut at = before.last().unwrap().at;
        for _ in 0..hours {
            at += secs(3300);
            let idle = Sample { at, window: secs(15), usage: Load::ZERO };
            truth.sample(N, idle);
            new.sample(N, idle);
            prop_assert_eq!(new.history(N), truth.history(N));
        }
    }

    /// Samples come before the checkpoint is found: the same as the other way round, unless they go back
    /// further than it does, and then none of them is lost.
    #[test]
    fn samples_taken_before_a_checkpoint_is_found_count(
        before in sparse(),
        early in sparse(),
        late in sparse(),
        stale in any::<bool>(),
    ) {
        let all = samples(&[before.clone(), early.clone(), late].concat(), 1);
        let (before, after) = all.split_at(before.len());
        let (early, late) = after.split_at(early.len());
        let bytes = told(before).checkpoint(N).unwrap();
        // A slow source tells the last sample of before the restart once more.
        let seen = if stale { [&before[before.len() - 1..], early].concat() } else { early.to_vec() };
        let (mut first, mut second) = (ledger(Options::default()), told(&seen));
        let now = before.last().unwrap().at;
        prop_assert_eq!(first.restore(N, &bytes, now), Ok(Restored::Done));
        for sample in &seen {
            first.sample(N, *sample);
        }
        let held = second.history(N).unwrap();
        prop_assert_eq!(second.restore(N, &bytes, now), Ok(Restored::Done));
        prop_assert_eq!(second.figures(N), first.figures(N), "present usage is not touched");
        let joined = second.history(N).unwrap();
        prop_assert_eq!(joined.newest, held.newest);
        let covered = early.last().unwrap().at.duration_since(seen[0].at - seen[0].window);
        prop_assert!(covered < secs(300) || joined.since <= held.since);
        for sample in late {
            // The last sample of before the restart is rounded up in the checkpoint only.
            if covered < secs(300) {
                let (one, other) = (first.history(N).unwrap(), second.history(N).unwrap());
                prop_assert_eq!((one.newest, one.since), (other.newest, other.since));
                let alike = |a: Load, b: Load| a == b || stale && covers(a.plus(UNIT), b) && covers(b.plus(UNIT), a);
                prop_assert!(alike(one.mean_5m, other.mean_5m) && alike(one.max_1d, other.max_1d));
                prop_assert!(alike(one.max_1h, other.max_1h), "{:?}, expected {:?}", other, one);
            }
            first.sample(N, *sample);
            second.sample(N, *sample);
            prop_assert_eq!(second.history(N).unwrap().newest, sample.at);
        }
    }

    /// Whatever it already knows, a checkpoint takes nothing away.
    #[test]
    fn a_checkpoint_found_late_takes_nothing_away(before in dense(), early in dense(), gap in 0..80_000_i64) {
        let mut all = samples(&[before.clone(), early].concat(), 1);
        for sample in &mut all[before.len()..] {
            sample.at += secs(gap);
        }
        let (before, early) = all.split_at(before.len());
        let bytes = told(before).checkpoint(N).unwrap();
        let mut ledger = told(early);
        let held = ledger.history(N).unwrap();
        prop_assert_eq!(ledger.restore(N, &bytes, early.last().unwrap().at), Ok(Restored::Done));
        let joined = ledger.history(N).unwrap();
        let noted = early.last().unwrap().at.duration_since(early[0].at) >= secs(300);
        if noted {
            prop_assert_eq!(joined.mean_5m, held.mean_5m);
            prop_assert!(covers(joined.max_1h, held.max_1h) && covers(joined.max_1d, held.max_1d));
        }
        prop_assert!(joined.since <= held.since);
        let again = ledger.checkpoint(N).unwrap();
        prop_assert_eq!(ledger.restore(N, &again, early.last().unwrap().at), Ok(Restored::Done));
        prop_assert_eq!(ledger.history(N), Some(joined), "its own is no news");
    }

    #[test]
    fn any_bytes_are_refused_or_harmless(
        noise in vec(any::<u8>(), 0..80),
        before in dense(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let before = samples(&before, 1_000);
        let mut near = told(&before).checkpoint(N).unwrap();
        *place.get_mut(&mut near) = byte;
        let plausible = [&[1, byte % 4][..], &noise].concat();
        for bytes in [noise, plausible, near] {
            let _ = decode(&bytes);
            let mut ledger = told(&before);
            for now in [before[0].at, Timestamp::MIN, Timestamp::MAX] {
                let _ = ledger.restore(N, &bytes, now);
            }
            ledger.sample(N, Sample { at: before.last().unwrap().at + secs(60), ..before[0] });
            let history = ledger.history(N).unwrap();
            prop_assert!(history.since <= history.newest);
        }
    }

    #[test]
    fn parts_hold_every_node_once_and_none_is_too_large(
        nodes in btree_map("[a-c]{0,3}(é|-[0-9]{1,3})?", vec(any::<u8>(), 0..40), 0..60),
        limit in 0..400_usize,
    ) {
        let Encoded { parts, left_out } = encode(&nodes, limit);
        prop_assert!(parts.iter().all(|part| part.len() <= limit));
        let read: Vec<_> = parts.iter().flat_map(|part| decode(part).unwrap()).collect();
        prop_assert_eq!(read.len() + left_out, nodes.len());
        prop_assert!(read.is_sorted());
        prop_assert!(read.iter().all(|(name, bytes)| nodes[name] == *bytes));
        if limit >= 80 {
            prop_assert_eq!(left_out, 0, "the longest is 2 + 9 + 1 + 40 bytes, and 5 for the part");
        }
    }

    #[test]
    fn a_damaged_part_is_noticed(
        nodes in btree_map("[a-c]{1,3}", vec(any::<u8>(), 0..40), 1..20),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let whole = encode(&nodes, 10_000).parts.remove(0);
        let mut changed = whole.clone();
        *place.get_mut(&mut changed) = byte;
        prop_assert!(changed == whole || decode(&changed).is_err());
        let cut = &whole[..place.index(whole.len())];
        prop_assert!(decode(cut).is_err());
    }
}

/// What was written yesterday is to be read tomorrow: the bytes themselves, and their sum by hand.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut sum = 2_166_136_261_u32;
    for byte in body {
        sum = (sum ^ u32::from(*byte)).wrapping_mul(16_777_619);
    }
    [body, &sum.to_le_bytes()].concat()
}

#[test]
fn a_part_is_what_the_format_says() {
    let got = encode([("node-12.local", [7, 8].as_slice()), ("node-1.local", &[9])], 10_000);
    let first = [&[1, 0, 0, 12][..], b"node-1.local", &[1, 9]].concat();
    // Six bytes of the name before begin it and six end it; a 2 is between them.
    let second = [&[6, 6, 1][..], b"2", &[2, 7, 8]].concat();
    assert_eq!(got.parts, [sealed(&[first, second].concat())]);
}

#[test]
fn names_are_not_made_longer_than_names_can_be() {
    // 127 bytes, then as much again and a few more of its own.
    let entry = |start: u8, own: u8| [vec![start, 0, own], vec![b'n'; own.into()], vec![0]].concat();
    let part = |own: u8| sealed(&[vec![1], entry(0, 127), entry(127, own)].concat());
    assert_eq!(decode(&part(126)).unwrap()[1].0.len(), 253);
    assert_eq!(decode(&part(127)), Err(BadCheckpoint::Damaged), "254 bytes are no name");
}

#[test]
fn a_name_no_node_can_have_is_left_out_and_not_made_up() {
    let long = "n".repeat(254);
    let Encoded { parts, left_out } = encode([("a", [1]), (&*long, [2]), ("z", [3])], 10_000);
    assert_eq!(left_out, 1);
    let read = decode(&parts[0]).unwrap();
    assert_eq!(read, [("a".to_owned(), &[1][..]), ("z".to_owned(), &[3])]);
    assert_eq!(encode::<&str, &[u8]>([], 10_000), Encoded::default());
}
