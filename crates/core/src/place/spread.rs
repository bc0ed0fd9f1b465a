//! Who is selected when the selected are to be far apart? One after another, each where few are.
//!
//! Terms are a hierarchy: the second splits what the first makes one place of. In each round every place that may
//! take one more is worth the more the fewer it has, compared to its siblings; six bits per term, the first the most
//! significant, brought to -100 to 100 over all that are left.

use super::choose::Ranked;
use super::facts::ClusterFacts;
use super::index::Id;
use super::spec::{Constraint, TopologyKind};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One round as it went, for those who ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// What places were worth, by cluster.
    pub raw: Vec<(Arc<str>, i64)>,
    /// The same from -100 to 100.
    pub normalised: Vec<(Arc<str>, i64)>,
    /// With everything else.
    pub totals: Vec<(Arc<str>, i64)>,
    /// Who was taken.
    pub picked: Arc<str>,
}

/// The places one term makes.
#[derive(Default)]
struct Level {
    /// How many were taken in each place.
    counts: Vec<i64>,
    /// The family each place is in: places that share all terms before.
    family: Vec<usize>,
    /// Least and most of each family, and how many have the least.
    least: Vec<(i64, usize)>,
    most: Vec<i64>,
}

impl Level {
    fn settle(&mut self) {
        self.least.fill((i64::MAX, 0));
        self.most.fill(i64::MIN);
        for (count, family) in self.counts.iter().zip(&self.family) {
            let (least, how_many) = &mut self.least[*family];
            match count.cmp(least) {
                std::cmp::Ordering::Less => (*least, *how_many) = (*count, 1),
                std::cmp::Ordering::Equal => *how_many += 1,
                std::cmp::Ordering::Greater => {}
            }
            self.most[*family] = self.most[*family].max(*count);
        }
    }

    /// By how much a place would be ahead of its siblings with one more.
    fn skew(&self, place: usize) -> i64 {
        let count = self.counts[place];
        let (least, how_many) = self.least[self.family[place]];
        // The only one with the least lifts the least.
        let least = if count == least && how_many == 1 { least + 1 } else { least };
        count + 1 - least
    }

    /// 63 for the emptiest place of a family, 0 for the fullest.
    fn worth(&self, place: usize) -> i64 {
        let family = self.family[place];
        let (least, most) = (self.least[family].0, self.most[family]);
        if most == least { 0 } else { 63 * (most - self.counts[place]) / (most - least) }
    }
}

/// Clusters that are in the same place by all terms: the best of them is the next.
struct Leaf {
    /// The place of each term; none where the cluster says nothing.
    places: Vec<Option<usize>>,
    /// The best first.
    queue: Vec<Ranked>,
    next: usize,
    /// What it was last worth, from -100 to 100.
    last: Option<i64>,
}

/// What came out.
pub(super) struct Picked {
    /// In the order of picking, each with what its place was worth.
    pub chosen: Vec<(Ranked, i64)>,
    /// The others, each with what its place was last worth.
    pub left: Vec<(Ranked, Option<i64>)>,
    /// Those that lack a key they must have.
    pub lacking: Vec<(Ranked, String)>,
    pub rounds: Vec<Round>,
}

/// From a family and a value to the family of the next term and the place, if there is a value.
type Families<'a> = FxHashMap<(usize, Option<&'a str>), (usize, Option<usize>)>;

/// What spreading looks at.
pub(super) struct Spreading<'a> {
    pub constraints: &'a [Constraint],
    pub weight: i64,
    pub count: usize,
    pub cluster: &'a dyn Fn(Id) -> &'a ClusterFacts,
    /// At most so many figures of rounds are kept.
    pub trace: usize,
}

impl Spreading<'_> {
    pub fn pick(&self, all: Vec<Ranked>) -> Picked {
        let (mut levels, mut leaves, lacking) = self.places(all);
        let mut out = Picked { chosen: Vec::new(), left: Vec::new(), lacking, rounds: Vec::new() };
        let mut room = self.trace;
        while out.chosen.len() < self.count {
            levels.iter_mut().for_each(Level::settle);
            let open: Vec<(usize, i64)> = leaves
                .iter()
                .enumerate()
                .filter(|(_, leaf)| leaf.next < leaf.queue.len() && self.allows(&levels, leaf))
                .map(|(number, leaf)| (number, worth(&levels, leaf)))
                .collect();
            let (least, most) =
                open.iter().fold((i64::MAX, i64::MIN), |(l, m), (_, raw)| (l.min(*raw), m.max(*raw)));
            let normal =
                |raw: i64| if most == least { 0 } else { -100 + 200 * (raw - least) / (most - least) };
            let candidate = |(number, raw): &(usize, i64)| {
                let leaf = &leaves[*number];
                let one = leaf.queue[leaf.next];
                let spread = normal(*raw);
                (one.with(self.weight * spread), *number, spread)
            };
            let Some((_, leaf, spread)) = open.iter().map(candidate).min_by_key(|(one, _, _)| one.key())
            else {
                break;
            };
            if room > 0 {
                let round = self.round(&open, &leaves, leaf, normal);
                room = room.saturating_sub(round.raw.len());
                out.rounds.push(round);
            }
            for (number, raw) in &open {
                leaves[*number].last = Some(normal(*raw));
            }
            let leaf = &mut leaves[leaf];
            out.chosen.push((leaf.queue[leaf.next], spread));
            leaf.next += 1;
            for (level, place) in levels.iter_mut().zip(&leaf.places) {
                if let Some(place) = place {
                    level.counts[*place] += 1;
                }
            }
        }
        for leaf in leaves {
            out.left.extend(leaf.queue[leaf.next..].iter().map(|one| (*one, leaf.last)));
        }
        out
    }

    /// The places of every term, and who is where.
    fn places(&self, mut all: Vec<Ranked>) -> (Vec<Level>, Vec<Leaf>, Vec<(Ranked, String)>) {
        all.sort_unstable_by_key(Ranked::key);
        let mut levels: Vec<Level> = self.constraints.iter().map(|_| Level::default()).collect();
        let mut lacking = Vec::new();
        let mut leaves: Vec<Leaf> = Vec::new();
        // Per term: the family (what all terms before say) and the value give the family of the next term.
        let mut families: Vec<Families<'_>> = self.constraints.iter().map(|_| Families::default()).collect();
        let mut leaf_of: FxHashMap<usize, usize> = FxHashMap::default();
        for one in all {
            let cluster = (self.cluster)(one.id);
            let values: Vec<Option<&str>> = self
                .constraints
                .iter()
                .map(|term| {
                    let from = match term.kind {
                        TopologyKind::Label => &cluster.labels,
                        TopologyKind::Claim => &cluster.claims,
                    };
                    from.get(&term.key).map(String::as_str)
                })
                .collect();
            let mut terms = self.constraints.iter().zip(&values);
            if let Some((term, _)) = terms.find(|(term, value)| term.required && value.is_none()) {
                lacking.push((one, term.key.clone()));
                continue;
            }
            let mut family = 0;
            let mut places = Vec::with_capacity(values.len());
            for ((level, known), value) in levels.iter_mut().zip(&mut families).zip(values) {
                let new = known.len();
                let (next, place) = known.entry((family, value)).or_insert_with(|| {
                    let place = value.is_some().then(|| {
                        level.counts.push(0);
                        level.family.push(family);
                        level.counts.len() - 1
                    });
                    (new, place)
                });
                if level.least.len() <= family {
                    level.least.resize(family + 1, (i64::MAX, 0));
                    level.most.resize(family + 1, i64::MIN);
                }
                places.push(*place);
                family = *next;
            }
            let leaf = *leaf_of.entry(family).or_insert_with(|| {
                leaves.push(Leaf { places, queue: Vec::new(), next: 0, last: None });
                leaves.len() - 1
            });
            leaves[leaf].queue.push(one);
        }
        (levels, leaves, lacking)
    }

    /// May this place take one more?
    fn allows(&self, levels: &[Level], leaf: &Leaf) -> bool {
        let terms = self.constraints.iter().zip(levels).zip(&leaf.places);
        let mut required = terms.filter(|((term, _), _)| term.required);
        required.all(|((term, level), place)| place.is_some_and(|place| level.skew(place) <= term.max_skew))
    }

    fn round(
        &self,
        open: &[(usize, i64)],
        leaves: &[Leaf],
        picked: usize,
        normal: impl Fn(i64) -> i64,
    ) -> Round {
        let mut round = Round::default();
        let mut rows: Vec<(&Arc<str>, i64, i64)> = Vec::new();
        for (number, raw) in open {
            let leaf = &leaves[*number];
            for one in &leaf.queue[leaf.next..] {
                rows.push((&(self.cluster)(one.id).name, *raw, one.total));
            }
        }
        rows.sort_unstable();
        for (name, raw, total) in rows {
            let spread = normal(raw);
            round.raw.push((name.clone(), raw));
            round.normalised.push((name.clone(), spread));
            round.totals.push((name.clone(), total.saturating_add(self.weight * spread)));
        }
        let leaf = &leaves[picked];
        round.picked = (self.cluster)(leaf.queue[leaf.next].id).name.clone();
        round
    }
}

impl Ranked {
    fn with(self, points: i64) -> Self {
        Self { total: self.total.saturating_add(points), ..self }
    }
}

/// Six bits per term, the first the most significant.
fn worth(levels: &[Level], leaf: &Leaf) -> i64 {
    let level = |(level, place): (&Level, &Option<usize>)| place.map_or(0, |place| level.worth(place));
    levels.iter().zip(&leaf.places).map(level).fold(0, |sum, worth| (sum << 6) + worth)
}
