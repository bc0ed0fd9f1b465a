//! Which of some nodes do the load rules allow, and which are better? For a scheduler that asks about nodes it has chosen
//! by every other rule itself.
//!
//! Such a scheduler takes eleven levels of goodness and no more, so order matters, not distance:
//!
//! ```text
//! level(node) = 10 − min(10, how many different load scores among the candidates are better than its own)
//! ```
//!
//! Of candidates with the scores 80, 75, 75 and 20, the levels are 10, 9, 9 and 8. Equal scores are on one level, a better
//! one is never on a lower level, and the ten best scores have a level each.

use super::decide::Input;
use super::local;
use super::prepare::promised;
use super::{Filter, message, score};
use crate::load::Load;
use crate::view::{NodeId, PodView};

/// The best level.
pub const BEST: u8 = 10;

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

    /// What nodes are compared by, from 0 to 100, more is better: their load, and what they are expected to need. All are equal
    /// when load is left out.
    pub fn score(&self, node: NodeId) -> i64 {
        score::by_load(self.input, self.pod, node.index())
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
    // The best scores, each once, the best first.
    let mut best = [i64::MIN; BEST as usize];
    let mut known = 0;
    for score in scores.iter().flatten().copied() {
        let place = best[..known].partition_point(|b| *b > score);
        if place == best.len() || (place < known && best[place] == score) {
            continue;
        }
        known = (known + 1).min(best.len());
        best[place..known].rotate_right(1);
        best[place] = score;
    }
    let level = |score: i64| {
        let better = best[..known].partition_point(|b| *b > score);
        // There are never more than ten in the list.
        BEST - u8::try_from(better).unwrap_or(BEST)
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

    /// The formula, word by word.
    fn slow(scores: &[Option<i64>]) -> Vec<u8> {
        let different: BTreeSet<i64> = scores.iter().flatten().copied().collect();
        let level = |score: i64| 10 - different.iter().filter(|other| **other > score).count().min(10);
        scores.iter().map(|s| s.map_or(0, |s| u8::try_from(level(s)).unwrap())).collect()
    }

    proptest! {
        #[test]
        fn levels_are_the_formula(scores in prop::collection::vec(prop::option::of(-3_i64..30), 0..60)) {
            let levels = levels(&scores);
            prop_assert_eq!(&levels, &slow(&scores));
            for (a, one) in scores.iter().zip(&levels) {
                for (b, other) in scores.iter().zip(&levels) {
                    if let (Some(a), Some(b)) = (a, b) {
                        prop_assert!(a != b || one == other, "equals are on one level");
                        prop_assert!(a <= b || one >= other, "a better one is never lower");
                        prop_assert!(a <= b || one > other || *one == 0, "and above it unless levels ran out");
                    }
                }
            }
        }
    }
}
