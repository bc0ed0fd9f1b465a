//! How are seats shared out by votes? The method of Webster and Sainte-Laguë, in exact arithmetic.
//!
//! ```text
//! each seat goes to the party with the largest   votes / (2 × seats + 1)
//! equal: fewer seats first; equal still: by name, upwards or downwards
//! ```
//!
//! Nobody loses a seat when there are more to give. And as long as there are no more seats than votes, nobody gets more
//! seats than votes: a party's v-th seat comes at `v / (2v − 1) > ½`, its next one only at `v / (2v + 1) < ½`, and there
//! are as many seats above ½ as there are votes. So what fits can be used as votes, and is never exceeded.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Who comes first where votes and seats are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ties {
    /// The first.
    #[default]
    Upwards,
    /// The last.
    Downwards,
}

impl Ties {
    /// Half of all workloads break ties one way and half the other, so that not everything lands on the first cluster:
    /// by the parity of the FNV-1a hash of the uid. No uid, upwards.
    #[must_use]
    pub fn of(uid: &str) -> Self {
        let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = uid.bytes().fold(0x811c_9dc5, step);
        if !uid.is_empty() && hash % 2 == 1 { Self::Downwards } else { Self::Upwards }
    }
}

/// A party that waits for its next seat.
struct Party {
    votes: u64,
    /// `2 × seats + 1`.
    divisor: u64,
    ties: Ties,
    at: usize,
}

impl Ord for Party {
    /// The largest gets the next seat.
    fn cmp(&self, other: &Self) -> Ordering {
        let ours = u128::from(self.votes) * u128::from(other.divisor);
        let theirs = u128::from(other.votes) * u128::from(self.divisor);
        let by_place = || match self.ties {
            Ties::Upwards => other.at.cmp(&self.at),
            Ties::Downwards => self.at.cmp(&other.at),
        };
        ours.cmp(&theirs).then_with(|| other.divisor.cmp(&self.divisor)).then_with(by_place)
    }
}

impl PartialOrd for Party {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Party {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Party {}

/// Shares seats out among parties with these votes, in the order of their names, and answers in that order. With no votes
/// at all, nobody gets anything.
///
/// The work hardly depends on how many seats there are: all but a few are given at once. With the divisor
/// `d = votes / seats'`, every party gets its votes / d, rounded. As long as these are no more than there are, all of
/// them are seats the one-by-one method gives first. The nearer `seats'` is to the number of seats, the fewer are left;
/// but rounding may give too many, and at most half a seat to each: with `seats − parties / 2` it never does.
#[must_use]
pub fn webster(seats: u32, votes: &[u64], ties: Ties) -> Vec<u32> {
    let total: u128 = votes.iter().map(|votes| u128::from(*votes)).sum();
    let mut given = vec![0_u32; votes.len()];
    if total == 0 {
        return given;
    }
    let parties = votes.iter().filter(|votes| **votes > 0).count();
    let half = u32::try_from(parties.div_ceil(2)).unwrap_or(u32::MAX);
    let mut left = at_once(seats, half, votes, total, &mut given);
    if left == 0 {
        return given;
    }
    let waits = |(at, (votes, given)): (usize, (&u64, &u32))| {
        let party = Party { votes: *votes, divisor: 2 * u64::from(*given) + 1, ties, at };
        (*votes > 0).then_some(party)
    };
    let waiting: Vec<Party> = votes.iter().zip(&given).enumerate().filter_map(waits).collect();
    let mut queue = BinaryHeap::from(waiting);
    while left > 0 {
        let Some(mut first) = queue.peek_mut() else { break };
        given[first.at] += 1;
        first.divisor += 2;
        left -= 1;
    }
    given
}

/// Gives what can be given at once, and says how many seats are left.
fn at_once(seats: u32, half: u32, votes: &[u64], total: u128, given: &mut [u32]) -> u32 {
    let safe = seats.saturating_sub(half);
    let mut sure = seats;
    // Each step back is twice as wide as what was too much: a few are enough, or the safe one is.
    for attempt in 0..4 {
        let sum = shares(sure, votes, total, given);
        let Some(over) = sum.checked_sub(u64::from(seats)).filter(|over| *over > 0) else {
            return u32::try_from(u64::from(seats) - sum).unwrap_or(0);
        };
        let back = u32::try_from(over << attempt).unwrap_or(u32::MAX);
        sure = sure.saturating_sub(back);
        if sure <= safe {
            break;
        }
    }
    let sum = shares(safe, votes, total, given);
    u32::try_from(u64::from(seats).saturating_sub(sum)).unwrap_or(0)
}

/// Everybody's share of `sure` seats, rounded; and their sum.
fn shares(sure: u32, votes: &[u64], total: u128, given: &mut [u32]) -> u64 {
    let mut sum = 0;
    let mut give = |given: &mut u32, share: u64| {
        *given = u32::try_from(share).unwrap_or(u32::MAX);
        sum += share;
    };
    // Wide numbers take ten times as long to divide, and are rarely needed.
    let small = u64::try_from(total).ok().filter(|_| votes.iter().all(|votes| *votes < 1 << 31));
    for (given, votes) in given.iter_mut().zip(votes) {
        let share = match small {
            // The product is below 2^64.
            Some(total) => ((2 * u64::from(sure) * votes).saturating_sub(1) / total).div_ceil(2),
            None => u64::try_from(rounded(u128::from(*votes), u128::from(sure), total)).unwrap_or(u64::MAX),
        };
        give(given, share);
    }
    sum
}

/// How many seats a party has whose quotient is above `total / (2 × sure)`: the largest `k` with
/// `(2k − 1) × total < 2 × sure × votes`.
fn rounded(votes: u128, sure: u128, total: u128) -> u128 {
    // Both factors are below 2^64 and 2^33: no overflow.
    let odd = (2 * sure * votes).saturating_sub(1) / total;
    odd.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One seat after the other, quotients as Karmada computes them.
    fn one_by_one(seats: u32, parties: &[u64], ties: Ties) -> Vec<u32> {
        let mut given = vec![0_u32; parties.len()];
        if parties.iter().all(|votes| *votes == 0) {
            return given;
        }
        #[expect(clippy::cast_precision_loss, reason = "the rounding is the point")]
        let quotient = |votes: u64, seats: u32| votes as f64 / f64::from(2 * seats + 1);
        for _ in 0..seats {
            let mut best = 0;
            for at in 1..parties.len() {
                let (ours, theirs) = (quotient(parties[at], given[at]), quotient(parties[best], given[best]));
                let named = match ties {
                    Ties::Upwards => at < best,
                    Ties::Downwards => at > best,
                };
                #[expect(clippy::float_cmp, reason = "as Karmada compares")]
                let wins = ours > theirs
                    || ours == theirs && (given[at] < given[best] || given[at] == given[best] && named);
                if wins {
                    best = at;
                }
            }
            given[best] += 1;
        }
        given
    }

    #[test]
    fn seats_go_where_the_quotient_is_largest() {
        for (why, seats, votes, want) in [
            ("quotients 1200, 900, 600, 400: A, B, A, C", 4, &[1200, 900, 400][..], &[2, 1, 1][..]),
            ("the textbook: 8 seats of 230 000 votes", 8, &[100_000, 80_000, 30_000, 20_000], &[3, 3, 1, 1]),
            ("9 of 1:2 is exact", 9, &[1, 2], &[3, 6]),
            ("9 of 1:3 is 2.25 and 6.75", 9, &[1, 3], &[2, 7]),
            ("10 of 7:9 is 4.375 and 5.625", 10, &[7, 9], &[4, 6]),
            ("equal votes: the one with fewer seats, then the first name", 3, &[1, 1], &[2, 1]),
            ("as many seats as votes: everyone gets its votes", 21, &[5, 7, 9], &[5, 7, 9]),
            ("no votes, no seat", 5, &[0, 3], &[0, 5]),
            ("nobody parties", 5, &[0, 0], &[0, 0]),
            ("nobody there", 5, &[], &[]),
            ("no seats", 0, &[1, 2], &[0, 0]),
        ] {
            assert_eq!(webster(seats, votes, Ties::Upwards), want, "{why}");
        }
    }

    #[test]
    fn ties_follow_the_parity_of_the_hashed_uid() {
        // FNV-1a of "a" is 0xe40c292c, even; of "b" 0xe70c2de5, odd; of nothing 0x811c9dc5, odd, but no uid is upwards.
        for (uid, want) in [("a", Ties::Upwards), ("b", Ties::Downwards), ("", Ties::Upwards)] {
            assert_eq!(Ties::of(uid), want, "{uid}");
        }
        let parties = [1, 1];
        assert_eq!(webster(1, &parties, Ties::Upwards), [1, 0]);
        assert_eq!(webster(1, &parties, Ties::Downwards), [0, 1]);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let parties = [u64::MAX, u64::MAX, 1];
        let given = webster(u32::MAX, &parties, Ties::Upwards);
        assert_eq!(given.iter().map(|n| u64::from(*n)).sum::<u64>(), u64::from(u32::MAX));
        assert_eq!(given[2], 0, "one vote in 2^65 is less than half a seat in 2^32");
    }

    fn parties() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(prop_oneof![0..4_u64, 0..100_u64, 0..1_000_000_u64], 1..40)
    }

    proptest! {
        #[test]
        fn all_at_once_is_one_by_one(votes in parties(), seats in 0..3000_u32, down: bool) {
            let ties = if down { Ties::Downwards } else { Ties::Upwards };
            prop_assert_eq!(webster(seats, &votes, ties), one_by_one(seats, &votes, ties));
        }

        #[test]
        fn nobody_loses_by_more_seats(votes in parties(), seats in 0..3000_u32) {
            let (few, more) = (webster(seats, &votes, Ties::Upwards), webster(seats + 1, &votes, Ties::Upwards));
            prop_assert!(few.iter().zip(&more).all(|(few, more)| few <= more));
        }

        #[test]
        fn nobody_gets_more_than_its_votes_while_they_last(votes in parties(), share in 0..=100_u64) {
            let seats = u32::try_from(votes.iter().sum::<u64>() * share / 100).expect("40 million at most");
            let given = webster(seats, &votes, Ties::Upwards);
            prop_assert_eq!(given.iter().sum::<u32>(), seats);
            prop_assert!(given.iter().zip(&votes).all(|(seats, votes)| u64::from(*seats) <= *votes));
        }
    }
}
