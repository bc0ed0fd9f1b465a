//! Whatever the bytes are, reading them ends well.

use super::*;
use crate::learn::facts::{Like, Options};
use crate::learn::profile::Rules;
use crate::load::{Both, Load};
use proptest::prelude::*;

fn rules(like: Like) -> Rules {
    Rules::new(&Options { like, ..Options::default() })
}

/// Containers with any history.
fn profiles() -> impl Strategy<Value = Vec<Profile>> {
    let sample = (0..40 * 86_400_000_i64, 0..600_000_u32, 0..200_000_000_000_i64, 0..1_i64 << 42);
    let container = (prop::collection::vec(sample, 0..60), any::<Option<i64>>());
    (prop::collection::btree_map("[a-zé-]{0,9}", container, 0..4), any::<bool>()).prop_map(|(all, crane)| {
        let rules = rules(if crane { Like::Crane(Both::default()) } else { Like::Loadline });
        let profile = |(name, (samples, killed)): (String, (Vec<_>, Option<i64>))| {
            let mut profile = Profile::new(&name, 0, &rules);
            for (at, window, cpu, memory) in samples {
                let usage = Load::new(cpu, memory);
                profile.observe(at, window, usage, &rules);
                profile.hours.note(at, Coarse::new(usage), rules.half_life);
            }
            if let Some(had) = killed {
                profile.killed(7, had, &rules);
            }
            profile
        };
        all.into_iter().map(profile).collect()
    })
}

/// With a checksum that fits, so that what is behind it is tried, too.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.insert(0, VERSION);
    let sum = checksum(&bytes);
    bytes.extend(sum);
    bytes
}

/// What was read must be fit for use.
fn used(profiles: &[Profile]) {
    for like in [Like::Loadline, Like::Crane(Both::default())] {
        let rules = rules(like);
        for mut profile in profiles.iter().cloned() {
            if profile.is_crane() != rules.is_crane() {
                continue;
            }
            for at in [0, 1_800_000_000_000] {
                let _ = profile.learned(at, &rules);
                profile.observe(at, 15_000, Load::new(1, 1), &rules);
                profile.hours.note(at, Coarse { cpu: 1, memory: 1 }, rules.half_life);
                profile.killed(at, 1, &rules);
            }
        }
    }
}

#[test]
fn numbers_of_any_size_come_back() {
    for number in [0, 1, 127, 128, 16_383, 16_384, u64::MAX - 1, u64::MAX] {
        let mut to = Writer(Vec::new());
        to.number(number);
        to.signed(number.cast_signed());
        let mut from = Reader(&to.0);
        assert_eq!(from.number(), Some(number));
        assert_eq!(from.signed(), Some(number.cast_signed()));
        assert!(from.0.is_empty());
    }
    assert_eq!(Reader(&[0xff; 9]).number(), None, "it does not end");
    assert_eq!(Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(), None, "2^64");
}

#[test]
fn what_cannot_be_used_says_why() {
    let fine = encode([Profile::new("app", 0, &rules(Like::Loadline))].iter());
    assert!(decode(&fine).is_ok());
    let with = |at: usize, byte: u8| {
        let mut bytes = fine.clone();
        bytes[at] = byte;
        bytes
    };
    let cases = [
        (vec![], Unusable::Damaged, "nothing at all"),
        (vec![VERSION], Unusable::Damaged, "no checksum"),
        (with(0, 2), Unusable::Version(2), "from the future"),
        (with(0, 0), Unusable::Version(0), "from nowhere"),
        (with(7, 0xff), Unusable::Damaged, "a byte has changed"),
        (fine[..fine.len() - 1].to_vec(), Unusable::Damaged, "the end is missing"),
        ([&fine[..], &[0]].concat(), Unusable::Damaged, "there is more"),
        (summed(vec![0, 0, 0]), Unusable::Damaged, "there is more, with a checksum"),
        (summed(vec![2, 0]), Unusable::Damaged, "no such arithmetic"),
        (summed(vec![0, 0xff, 0xff, 0xff, 0xff, 0x7f]), Unusable::Damaged, "too many containers to be there"),
    ];
    for (bytes, want, why) in cases {
        assert_eq!(decode(&bytes), Err(want), "{why}");
    }
    assert_eq!(decode(&summed(vec![0, 0])), Ok(vec![]), "no containers are no damage");
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(profiles in profiles()) {
        let bytes = encode(profiles.iter());
        prop_assert_eq!(decode(&bytes), Ok(profiles));
    }

    #[test]
    fn a_checkpoint_cut_short_or_changed_is_noticed(
        profiles in profiles(),
        at in any::<prop::sample::Index>(),
        change in 1..=u8::MAX,
    ) {
        let mut bytes = encode(profiles.iter());
        let at = at.index(bytes.len());
        prop_assert!(decode(&bytes[..at]).is_err(), "cut at {}", at);
        bytes[at] ^= change;
        prop_assert!(decode(&bytes).is_err(), "changed at {}", at);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&bytes);
        if let Ok(profiles) = decode(&summed(bytes)) {
            used(&profiles);
        }
    }

    #[test]
    fn a_checkpoint_changed_under_a_fitting_checksum_is_read_or_refused(
        profiles in profiles(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let bytes = encode(profiles.iter());
        let mut text = bytes[1..bytes.len() - CHECKSUM].to_vec();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        if let Ok(profiles) = decode(&summed(text)) {
            used(&profiles);
        }
    }
}
