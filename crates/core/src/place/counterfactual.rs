//! What would have to be different for another cluster to be selected? Each sentence is checked: the placement is decided again
//! under it, and what does not help is not told.

use super::decide::{Cycle, Scratch};
use super::filter::Why;
use super::fleet::{Fleet, Row};
use super::index::Id;
use super::report::{ClusterReport, Report};
use super::spec::{Placement, Toleration};
use super::{Judge, Taint};
use jiff::Timestamp;
use std::fmt;
use std::sync::Arc;

/// So many clusters with a taint in the way are tried; each costs a decision.
const TAINTED: usize = 8;
/// So many clusters that others are ahead of, the nearest first; each costs a few.
const NEAREST: usize = 3;

/// What is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The placement puts up with a taint.
    Tolerated(Taint),
    /// The cluster has so many points more.
    Points(i64),
    /// So many clusters are asked for.
    Count(i32),
}

/// A cluster that is not selected, and what would get it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterfactual {
    pub cluster: Arc<str>,
    pub change: Change,
}

impl fmt::Display for Counterfactual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} would be selected if ", self.cluster)?;
        match &self.change {
            Change::Tolerated(taint) => write!(f, "the taint {taint} were tolerated"),
            Change::Points(1) => f.write_str("it had 1 point more"),
            Change::Points(points) => write!(f, "it had {points} points more"),
            Change::Count(count) => write!(f, "numberOfClusters were {count}"),
        }
    }
}

impl Fleet {
    /// Single changes that would get clusters in that a report says are not selected: taints that are not tolerated; and for those
    /// that others are ahead of, points, or places. Only the first few of each kind are tried.
    pub fn counterfactuals(
        &mut self,
        placement: &Placement,
        report: &Report,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> Vec<Counterfactual> {
        self.index.settle();
        let tainted = report.clusters.iter().filter_map(|found| match &found.why {
            Some(Why::Untolerated { taint, .. }) => Some((found, taint)),
            _ => None,
        });
        let tolerated = tainted.take(TAINTED).filter_map(|(found, taint)| {
            let mut wish = placement.clone();
            wish.tolerations.push(tolerating(taint));
            self.selects(wish, found, None, judge, now)
                .then(|| Counterfactual::new(found, Change::Tolerated(taint.clone())))
        });
        let behind = || {
            let behind =
                |found: &&ClusterReport| matches!(found.why, Some(Why::Outranked { .. } | Why::Crowded));
            report.clusters.iter().filter(behind).take(NEAREST)
        };
        let points = behind().filter_map(|found| {
            let Some(Why::Outranked { points }) = found.why else { return None };
            // Among equals another one may come first.
            let enough = [points, points.saturating_add(1)].into_iter().filter(|points| *points > 0);
            let mut enough =
                enough.filter(|more| self.selects(placement.clone(), found, Some(*more), judge, now));
            Some(Counterfactual::new(found, Change::Points(enough.next()?)))
        });
        let places = || {
            let count = placement.count?;
            (1..).zip(behind()).find_map(|(more, found)| {
                let count = count.checked_add(more)?;
                let wish = Placement { count: Some(count), ..placement.clone() };
                self.selects(wish, found, None, judge, now)
                    .then(|| Counterfactual::new(found, Change::Count(count)))
            })
        };
        tolerated.chain(points).chain(places()).collect()
    }

    /// Would a cluster be selected, with so many points more?
    fn selects(
        &self,
        placement: Placement,
        found: &ClusterReport,
        points: Option<i64>,
        judge: &dyn Judge,
        now: Timestamp,
    ) -> bool {
        let more: Option<(Id, i64)> = self.index.find(&found.cluster).zip(points);
        let row = Row::wished(placement);
        let cycle = Cycle { fleet: self, row: &row, judge, verdicts: None, now, trace: false, more };
        let outcome = cycle.run(&mut Scratch::default()).outcome;
        outcome.selected.iter().any(|chosen| *chosen.cluster == *found.cluster)
    }
}

impl Counterfactual {
    fn new(found: &ClusterReport, change: Change) -> Self {
        Self { cluster: found.cluster.clone(), change }
    }
}

/// Puts up with that taint for good, and with no other.
fn tolerating(taint: &Taint) -> Toleration {
    Toleration {
        key: taint.key.clone(),
        operator: "Equal".to_owned(),
        value: taint.value.clone(),
        effect: taint.effect.as_str().to_owned(),
        seconds: None,
    }
}
