//! Which placements have the same survivors? What follows from these alone is worked out once for all of them.
//!
//! A thousand placements ask for clusters in a few dozen ways. Where the same clusters passed the filters, what is free on
//! them compares in the same way: points of resources and of scores that do not expire are kept by column, until a cluster or
//! a score is another. How often others have selected a cluster is nothing of the kind, and neither is what a placement
//! selected itself.

use super::index::{Id, Index, ids};
use super::prepare::Prioritizer;
use super::score::Points;
use fixedbitset::FixedBitSet;

/// No points: nothing is known.
const NOTHING: i32 = i32::MIN;
/// Figures that are kept at most, of all cohorts together; 4 bytes each.
const MOST: usize = 4_000_000;
/// With weights up to that, no sum comes near the end of what can be counted.
const LIGHT: i64 = 1 << 20;

/// The points of one prioritizer, for each survivor in order.
#[derive(Clone, Debug)]
pub(super) struct Column(Vec<i32>);

impl Column {
    /// None if there are points that do not fit.
    fn new(points: &Points) -> Option<Self> {
        let cell = |points: &Option<i64>| match points {
            None => Some(NOTHING),
            Some(points) => i32::try_from(*points).ok().filter(|points| *points != NOTHING),
        };
        points.iter().map(cell).collect::<Option<_>>().map(Self)
    }

    /// Adds the points to the totals, `missing` where nothing is known; says whether that could be done.
    pub fn add(&self, weight: i64, missing: i64, totals: &mut [i64]) -> bool {
        if weight.abs() > LIGHT {
            return false;
        }
        for (total, points) in totals.iter_mut().zip(&self.0) {
            *total += if *points == NOTHING { missing } else { weight * i64::from(*points) };
        }
        true
    }
}

/// Those that passed all filters of some placements, and what was worked out for them.
#[derive(Clone, Debug)]
pub(super) struct Cohort {
    passed: FixedBitSet,
    /// By number.
    pub survivors: Vec<Id>,
    /// Is that also the order of their names?
    pub by_name: bool,
    /// None where nothing can be kept.
    columns: Vec<(Prioritizer, Option<Column>)>,
}

impl Cohort {
    fn new(passed: &FixedBitSet, index: &Index) -> Self {
        let survivors: Vec<Id> = ids(passed).collect();
        let by_name = survivors.is_sorted_by_key(|id| index.rank(*id));
        Self { passed: passed.clone(), survivors, by_name, columns: Vec::new() }
    }

    /// Has it been worked out for a prioritizer, whether or not it could be kept?
    pub fn knows(&self, prioritizer: &Prioritizer) -> bool {
        self.columns.iter().any(|(known, _)| known == prioritizer)
    }

    /// The column of a prioritizer, if one is kept.
    pub fn column(&self, prioritizer: &Prioritizer) -> Option<&Column> {
        self.columns.iter().find(|(known, _)| known == prioritizer)?.1.as_ref()
    }

    /// Keeps one; none if its points cannot be kept.
    pub fn keep(&mut self, prioritizer: &Prioritizer, points: Option<&Points>) {
        self.columns.push((prioritizer.clone(), points.and_then(Column::new)));
    }

    fn size(&self) -> usize {
        let columns = self.columns.iter().filter_map(|(_, column)| column.as_ref());
        self.survivors.len() + columns.map(|column| column.0.len()).sum::<usize>()
    }
}

/// All of them, as long as no cluster and no score is another.
#[derive(Clone, Debug, Default)]
pub(super) struct Cohorts(Vec<Cohort>);

impl Cohorts {
    /// A cluster or a score is another.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The one of those that passed.
    pub fn of(&mut self, passed: &FixedBitSet, index: &Index) -> &mut Cohort {
        if let Some(known) = self.0.iter().position(|cohort| cohort.passed == *passed) {
            return &mut self.0[known];
        }
        if self.0.iter().map(Cohort::size).sum::<usize>() > MOST {
            self.0.clear();
        }
        self.0.push(Cohort::new(passed, index));
        self.0.last_mut().expect("it was just put there")
    }
}
