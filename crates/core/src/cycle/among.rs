//! Which of some nodes do the load rules allow, and which are better? For a scheduler that asks about nodes it has chosen
//! by every other rule itself.
//!
//! Such a scheduler takes eleven levels of goodness and no more, so order matters, not distance. The different load scores among
//! the candidates are counted, and where there are more than levels, as many of them as needed share one:
//!
//! ```text
//! level(node) = 10 − ⌊11 × better / max(11, all)⌋
//! better        how many different load scores among the candidates are better than its own
//! all           how many different load scores there are
//! ```
//!
//! Of candidates with the scores 80, 75, 75 and 20, the levels are 10, 9, 9 and 8. Of 22 different scores the two best are on
//! level 10, the next two on 9, and the two worst on 0. Equal scores are on one level, a better one is never on a lower level,
//! and neither end of the order is lost: where other rules leave only nodes that are loaded more than most, the least loaded of
//! them is still told from the others.

use super::decide::Input;
use super::local;
use super::prepare::promised;
use super::{Filter, message};
use crate::load::Load;
use crate::view::{NodeId, PodView};

/// The best level.
pub const BEST: u8 = 10;
/// How many there are, with the lowest.
const LEVELS: usize = BEST as usize + 1;

/// The load rules, ready to be held against nodes for one pod.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    input: &'a Input<'a>,
    pod: &'a PodView,
    promised: Vec<(usize, super::prepare::Promised)>,
}

impl<'a> Rules<'a> {
    pub fn new(input: &'a Input<'a>, pod: &'a PodView) -> Self {
        Self { input, pod, promised: promised(input.cluster, pod) }
    }

    /// The load rule that keeps the pod off a node, if one does, once so much load has gone from there.
    pub fn check(&self, node: NodeId, released: Load) -> Option<Filter> {
        let promised = self.promised.iter().find(|(at, _)| *at == node.index()).map(|(_, p)| p.load);
        local::check_load(self.input, self.pod, promised.unwrap_or(Load::ZERO), released, node.index())
    }

    /// What nodes are compared by, more is better; all are equal when load is left out.
    pub fn score(&self, node: NodeId) -> i64 {
        self.input.board.map_or(0, |board| board.score[node.index()])
    }
}

/// What a rule says of a node, in the words of `kube-scheduler`, which counts how many nodes say the same.
#[must_use]
pub fn words(rule: Filter) -> &'static str {
    message::words(rule)
}

/// The level of each candidate by its score; those without are on the lowest.
#[must_use]
pub fn levels(scores: &[Option<i64>]) -> Vec<u8> {
    // Each once, the best first.
    let mut different: Vec<i64> = scores.iter().flatten().copied().collect();
    different.sort_unstable_by(|a, b| b.cmp(a));
    different.dedup();
    let all = different.len().max(LEVELS);
    let level = |score: i64| {
        let better = different.partition_point(|other| *other > score);
        // Fewer than all are better, so the share is below the number of levels.
        BEST - u8::try_from(LEVELS * better / all).unwrap_or(BEST)
    };
    scores.iter().map(|score| score.map_or(0, level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_documented_example() {
        assert_eq!(levels(&[Some(80), Some(75), Some(75), Some(20)]), [10, 9, 9, 8]);
    }

    #[test]
    fn refused_ones_are_on_the_lowest_level_and_none_are_none() {
        assert_eq!(levels(&[None, Some(1), None]), [0, 10, 0]);
        assert!(levels(&[]).is_empty());
        assert_eq!(levels(&[Some(i64::MIN)]), [10]);
    }

    #[test]
    fn where_there_are_more_scores_than_levels_the_order_is_kept_to_its_end() {
        let scores: Vec<_> = (0..22).map(|score| Some(100 - score)).collect();
        let levels = levels(&scores);
        assert_eq!(levels[..4], [10, 10, 9, 9]);
        assert_eq!(levels[18..], [1, 1, 0, 0]);
    }

    /// The formula, word by word.
    fn slow(scores: &[Option<i64>]) -> Vec<u8> {
        let different: BTreeSet<i64> = scores.iter().flatten().copied().collect();
        let level = |score: i64| {
            let better = different.iter().filter(|other| **other > score).count();
            10 - 11 * better / different.len().max(11)
        };
        scores.iter().map(|s| s.map_or(0, |s| u8::try_from(level(s)).unwrap())).collect()
    }

    proptest! {
        #[test]
        fn levels_are_the_formula(scores in prop::collection::vec(prop::option::of(-3_i64..60), 0..200)) {
            let levels = levels(&scores);
            prop_assert_eq!(&levels, &slow(&scores));
            let different: BTreeSet<i64> = scores.iter().flatten().copied().collect();
            let most = different.len().div_ceil(11);
            for (a, one) in scores.iter().zip(&levels) {
                for (b, other) in scores.iter().zip(&levels) {
                    if let (Some(a), Some(b)) = (a, b) {
                        prop_assert!(a != b || one == other, "equals are on one level");
                        prop_assert!(a <= b || one >= other, "a better one is never lower");
                        let between = different.range(b.min(a)..a.max(b)).count();
                        prop_assert!(a <= b || one > other || between < most, "and higher, unless few are between");
                    }
                }
            }
            prop_assert!(different.is_empty() || levels.contains(&10), "the best is on the best level");
            prop_assert!(different.len() < 11 || (0..=10).all(|level| levels.contains(&level)), "none is left out");
        }
    }
}
