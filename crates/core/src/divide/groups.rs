//! Which regions? Combinations of groups of clusters, the best first, without trying them all.
//!
//! A combination is enough if it has between `min` and `max` groups and at least so many clusters. Groups are taken in
//! the order clusters upwards, score downwards, name, and a combination ends as soon as it is enough. The best has the
//! highest sum of scores, then most clusters, then comes first. Karmada lists all combinations, which doubles with
//! every region.
//!
//! Here `best(i, n, c)` is the best that groups from `i` on can add to `n` groups with `c` clusters. It follows from
//! `best(i + 1, …)`, with group `i` or without, so a table of groups × min(max, …) × clusters wanted holds it all. And as
//! the table says exactly what each step can still lead to, the second best, the third and so on are found by walking
//! it best first.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Clusters that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region<'a> {
    pub name: &'a str,
    /// How many clusters.
    pub clusters: i64,
    /// How good.
    pub score: i64,
}

/// How many of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub min: usize,
    pub max: usize,
    /// So many clusters at least.
    pub clusters: i64,
}

/// A table no larger than this: beyond, the highest scores are taken without weighing combinations.
const LARGEST: usize = 2_000_000;

/// Sum of scores, then clusters.
type Worth = (i64, i64);

/// Combinations, the best first.
pub(super) struct Choices<'a> {
    groups: Vec<(usize, &'a Region<'a>)>,
    wanted: Wanted,
    /// More groups than this are not told apart.
    most: usize,
    /// Clusters beyond those wanted are not told apart.
    enough: usize,
    best: Vec<Option<Worth>>,
    frontier: BinaryHeap<Step>,
}

/// Some groups taken, some left out.
struct Step {
    /// What it leads to.
    worth: Worth,
    /// Of the groups so far: false where it was left out.
    taken: Vec<bool>,
    count: usize,
    clusters: usize,
    worth_so_far: Worth,
    done: bool,
}

impl Ord for Step {
    fn cmp(&self, other: &Self) -> Ordering {
        // Taking the earlier group is listed first.
        let listed = || self.taken.iter().cmp(&other.taken);
        self.worth.cmp(&other.worth).then_with(listed)
    }
}

impl PartialOrd for Step {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Step {}

impl<'a> Choices<'a> {
    /// `None` if there are too many to weigh.
    pub fn new(regions: &'a [Region<'a>], wanted: Wanted) -> Option<Self> {
        let mut groups: Vec<_> = regions.iter().enumerate().collect();
        groups.sort_by_key(|(_, group)| (group.clusters, Reverse(group.score), group.name));
        let enough = usize::try_from(wanted.clusters.max(0)).unwrap_or(usize::MAX);
        // Without a maximum, it only matters whether there are enough groups.
        let most = if wanted.max >= groups.len() { wanted.min } else { wanted.max };
        let most = most.min(groups.len().saturating_add(1));
        let size = (groups.len() + 1).checked_mul(most + 1)?.checked_mul(enough.checked_add(1)?)?;
        if size > LARGEST {
            return None;
        }
        let mut out =
            Self { groups, wanted, most, enough, best: vec![None; size], frontier: BinaryHeap::new() };
        out.fill();
        out.start();
        Some(out)
    }

    fn start(&mut self) {
        if let Some(worth) = self.best[self.at(0, 0, 0)] {
            let done = self.is_enough(0, 0);
            let start = Step { worth, taken: Vec::new(), count: 0, clusters: 0, worth_so_far: (0, 0), done };
            self.frontier.push(start);
        }
    }

    fn at(&self, from: usize, count: usize, clusters: usize) -> usize {
        (from * (self.most + 1) + count) * (self.enough + 1) + clusters
    }

    fn is_enough(&self, count: usize, clusters: usize) -> bool {
        count >= self.wanted.min && clusters >= self.enough
    }

    fn fill(&mut self) {
        for from in (0..=self.groups.len()).rev() {
            for count in 0..=self.most {
                for clusters in 0..=self.enough {
                    let at = self.at(from, count, clusters);
                    self.best[at] = if count > self.wanted.max {
                        None
                    } else if self.is_enough(count, clusters) {
                        Some((0, 0))
                    } else {
                        self.with(from, count, clusters).max(self.without(from, count, clusters))
                    };
                }
            }
        }
    }

    /// Counts after taking a group.
    fn after(&self, from: usize, count: usize, clusters: usize) -> (usize, usize) {
        let more = self.groups.get(from).map_or(0, |(_, group)| group.clusters.max(0));
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        ((count + 1).min(self.most), clusters.saturating_add(more).min(self.enough))
    }

    fn with(&self, from: usize, count: usize, clusters: usize) -> Option<Worth> {
        let (_, group) = self.groups.get(from)?;
        if count >= self.wanted.max {
            return None;
        }
        let (count, clusters) = self.after(from, count, clusters);
        let (score, all) = self.best[self.at(from + 1, count, clusters)]?;
        Some((score + group.score, all + group.clusters))
    }

    fn without(&self, from: usize, count: usize, clusters: usize) -> Option<Worth> {
        (from < self.groups.len()).then(|| self.best[self.at(from + 1, count, clusters)]).flatten()
    }

    /// Would this combination have been listed, that is: is it enough, and not enough without its last group?
    fn is_listed(&self, positions: &[usize]) -> bool {
        let clusters = |some: &[usize]| some.iter().map(|at| self.groups[*at].1.clusters).sum::<i64>();
        let Some((_, but_last)) = positions.split_last() else { return false };
        (self.wanted.min..=self.wanted.max).contains(&positions.len())
            && clusters(positions) >= self.wanted.clusters
            && (positions.len() == self.wanted.min || clusters(but_last) < self.wanted.clusters)
    }

    /// The best one, cut short: if its first groups by score alone are enough, they are taken.
    pub fn first(&mut self) -> Option<Vec<usize>> {
        let mut best = self.positions()?;
        self.by_score(&mut best);
        for count in 1..best.len() {
            let mut some = best[..count].to_vec();
            some.sort_unstable();
            if self.is_listed(&some) {
                best.truncate(count);
                break;
            }
        }
        Some(self.regions(&best))
    }

    /// Begins again with the best.
    pub fn restart(&mut self) {
        self.frontier.clear();
        self.start();
    }

    fn by_score(&self, positions: &mut [usize]) {
        positions.sort_by_key(|at| (Reverse(self.groups[*at].1.score), self.groups[*at].1.name));
    }

    fn regions(&self, positions: &[usize]) -> Vec<usize> {
        positions.iter().map(|at| self.groups[*at].0).collect()
    }

    /// The next one, as positions in the order of groups.
    fn positions(&mut self) -> Option<Vec<usize>> {
        while let Some(step) = self.frontier.pop() {
            if step.done {
                let taken = step.taken.iter().enumerate().filter(|(_, taken)| **taken);
                return Some(taken.map(|(at, _)| at).collect());
            }
            let from = step.taken.len();
            let plus = |(a, b): Worth, (c, d): Worth| (a + c, b + d);
            if let Some(worth) = self.with(from, step.count, step.clusters) {
                let group = self.groups[from].1;
                let (count, clusters) = self.after(from, step.count, step.clusters);
                self.frontier.push(Step {
                    worth: plus(step.worth_so_far, worth),
                    taken: step.taken.iter().copied().chain([true]).collect(),
                    count,
                    clusters,
                    worth_so_far: plus(step.worth_so_far, (group.score, group.clusters)),
                    done: self.is_enough(count, clusters),
                });
            }
            if let Some(worth) = self.without(from, step.count, step.clusters) {
                let taken = step.taken.iter().copied().chain([false]).collect();
                self.frontier.push(Step { worth: plus(step.worth_so_far, worth), taken, ..step });
            }
        }
        None
    }
}

impl Iterator for Choices<'_> {
    type Item = Vec<usize>;

    /// The next combination, as positions of the regions given, the highest score first.
    fn next(&mut self) -> Option<Vec<usize>> {
        let mut next = self.positions()?;
        self.by_score(&mut next);
        Some(self.regions(&next))
    }
}

/// Where there are too many to weigh: the highest scores, until it is enough.
pub(super) fn plainly(regions: &[Region<'_>], wanted: Wanted) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..regions.len()).collect();
    order.sort_by_key(|at| (Reverse(regions[*at].score), Reverse(regions[*at].clusters), regions[*at].name));
    let mut clusters = 0;
    for (at, region) in order.iter().enumerate() {
        clusters += regions[*region].clusters;
        let count = at + 1;
        if count > wanted.max {
            return None;
        }
        if count >= wanted.min && clusters >= wanted.clusters {
            order.truncate(count);
            return Some(order);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every combination in the order of listing: worth, and groups by score.
    fn listed(regions: &[Region<'_>], wanted: Wanted) -> Vec<(Worth, Vec<usize>)> {
        fn walk(
            groups: &[(usize, &Region<'_>)],
            wanted: Wanted,
            from: usize,
            path: &mut Vec<usize>,
            out: &mut Vec<Vec<usize>>,
        ) {
            let clusters: i64 = path.iter().map(|at| groups[*at].1.clusters).sum();
            if clusters >= wanted.clusters && (wanted.min..=wanted.max).contains(&path.len()) {
                out.push(path.clone());
                return;
            }
            if path.len() >= wanted.max {
                return;
            }
            for at in from..groups.len() {
                path.push(at);
                walk(groups, wanted, at + 1, path, out);
                path.pop();
            }
        }
        let mut groups: Vec<_> = regions.iter().enumerate().collect();
        groups.sort_by_key(|(_, group)| (group.clusters, Reverse(group.score), group.name));
        let mut paths = Vec::new();
        walk(&groups, wanted, 0, &mut Vec::new(), &mut paths);
        let mut out: Vec<(Worth, Vec<usize>)> = paths
            .into_iter()
            .map(|mut path| {
                path.sort_by_key(|at| (Reverse(groups[*at].1.score), groups[*at].1.name));
                let score = path.iter().map(|at| groups[*at].1.score).sum();
                let clusters = path.iter().map(|at| groups[*at].1.clusters).sum();
                ((score, clusters), path.into_iter().map(|at| groups[at].0).collect())
            })
            .collect();
        // Stable: what was listed first stays first.
        out.sort_by_key(|(worth, _)| Reverse(*worth));
        out
    }

    /// The best listed, replaced by every listed one that it begins with.
    fn chosen(listed: &[(Worth, Vec<usize>)]) -> Option<Vec<usize>> {
        let mut best = listed.first()?.1.clone();
        for (_, other) in &listed[1..] {
            if other.len() < best.len() && best.starts_with(other) {
                best.clone_from(other);
            }
        }
        Some(best)
    }

    fn regions(given: &[(&'static str, i64, i64)]) -> Vec<Region<'static>> {
        given
            .iter()
            .map(|(name, clusters, score)| Region { name, clusters: *clusters, score: *score })
            .collect()
    }

    #[test]
    fn the_best_combination_is_found() {
        for (why, given, (min, max, clusters), want) in [
            ("two of three: 9 + 7", &[("a", 1, 5), ("b", 1, 9), ("c", 1, 7)][..], (2, 2, 0), Some("b c")),
            (
                "three clusters: c alone has them, and ends at once",
                &[("a", 1, 5), ("c", 3, 7)],
                (1, 2, 3),
                Some("c"),
            ),
            (
                "a comes before c, so both are listed; c alone is enough and begins it",
                &[("a", 1, 5), ("c", 3, 7)],
                (1, 2, 3),
                Some("c"),
            ),
            ("a has the higher score: a and c", &[("a", 1, 9), ("c", 3, 7)], (1, 2, 3), Some("a c")),
            ("not enough clusters anywhere", &[("a", 1, 9), ("c", 1, 7)], (1, 2, 3), None),
            ("not enough regions", &[("a", 1, 9)], (2, 3, 1), None),
            ("equal scores: more clusters", &[("a", 1, 5), ("b", 2, 5)], (1, 1, 0), Some("b")),
            ("equal in all: the first name", &[("b", 1, 5), ("a", 1, 5)], (1, 1, 0), Some("a")),
            ("no regions", &[], (1, 1, 0), None),
        ] {
            let regions = regions(given);
            let mut choices = Choices::new(&regions, Wanted { min, max, clusters }).expect("few");
            let found = choices
                .first()
                .map(|all| all.iter().map(|at| regions[*at].name).collect::<Vec<_>>().join(" "));
            assert_eq!(found.as_deref(), want, "{why}");
        }
    }

    #[test]
    fn too_many_to_weigh_are_taken_by_score() {
        let names: Vec<String> = (0..5000).map(|i| format!("r{i:04}")).collect();
        let regions: Vec<Region<'_>> =
            names.iter().zip(0..).map(|(name, score)| Region { name, clusters: 1, score }).collect();
        let wanted = Wanted { min: 3, max: 4000, clusters: 3000 };
        assert!(Choices::new(&regions, wanted).is_none());
        let found = plainly(&regions, wanted).expect("there are enough");
        assert_eq!((found.len(), found[0]), (3000, 4999));
    }

    proptest! {
        #[test]
        fn walking_the_table_lists_what_enumeration_lists(
            given in prop::collection::vec((1..5_i64, 0..6_i64), 0..9),
            min in 1..5_usize, more in 0..4_usize, unlimited: bool, clusters in 0..12_i64,
        ) {
            let names: Vec<String> = (0..given.len()).map(|i| format!("r{i}")).collect();
            let regions: Vec<Region<'_>> = names.iter().zip(&given)
                .map(|(name, (clusters, score))| Region { name, clusters: *clusters, score: *score }).collect();
            let wanted = Wanted { min, max: if unlimited { usize::MAX } else { min + more }, clusters };
            let all = listed(&regions, wanted);
            let choices = Choices::new(&regions, wanted).expect("few");
            let ours: Vec<Vec<usize>> = choices.collect();
            let theirs: Vec<Vec<usize>> = all.iter().map(|(_, path)| path.clone()).collect();
            prop_assert_eq!(ours, theirs);
            let mut choices = Choices::new(&regions, wanted).expect("few");
            prop_assert_eq!(choices.first(), chosen(&all));
        }
    }
}
