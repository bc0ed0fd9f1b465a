//! How was it in the last hour? A point every few seconds, of the whole and of every node.

use loadline_core::load::Metered;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Points that are kept.
const POINTS: usize = 240;
/// A share that is not known.
const UNKNOWN: u16 = u16::MAX;

/// Shares of what a node has, CPU and memory.
type Shares = [Option<f64>; 2];

/// One moment of the whole cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub measured: Shares,
    pub requested: Shares,
    pub expected: Shares,
    /// Of the node that uses the largest share.
    pub worst: Shares,
    /// Nodes over their line for a resource.
    pub over_line: [u32; 2],
    /// Nodes that take no pods because of load.
    pub closed: u32,
    pub waiting: u32,
}

/// One resource over time, oldest first. Field names are a promise.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Series {
    measured: Vec<Option<f64>>,
    requested: Vec<Option<f64>>,
    expected: Vec<Option<f64>>,
    worst: Vec<Option<f64>>,
    over_line: Vec<u32>,
}

/// All of it. Field names are a promise.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Whole {
    pub cpu: Series,
    pub memory: Series,
    pub closed: Vec<u32>,
    pub waiting: Vec<u32>,
}

/// Of one node, oldest first. Field names are a promise.
#[derive(Debug, Default, Serialize)]
pub(super) struct OfNode {
    pub cpu: Vec<Option<f64>>,
    pub memory: Vec<Option<f64>>,
}

/// The last hour, or what of it was seen.
#[derive(Debug, Default)]
pub(super) struct History {
    whole: VecDeque<Point>,
    /// In thousandths, so that many nodes take little.
    nodes: BTreeMap<Arc<str>, VecDeque<[u16; 2]>>,
}

impl History {
    /// Adds a point; nodes that are not named are forgotten.
    pub fn push(&mut self, whole: Point, nodes: impl Iterator<Item = (Arc<str>, Shares)>) {
        if self.whole.len() >= POINTS {
            self.whole.pop_front();
        }
        self.whole.push_back(whole);
        let mut before = std::mem::take(&mut self.nodes);
        for (name, shares) in nodes {
            let mut points = before.remove(&name).unwrap_or_default();
            if points.len() >= POINTS {
                points.pop_front();
            }
            points.push_back(shares.map(thousandths));
            self.nodes.insert(name, points);
        }
    }

    pub fn whole(&self) -> Whole {
        let of = |resource: Metered| {
            let at = resource as usize;
            let column =
                |pick: fn(&Point) -> Shares| self.whole.iter().map(|p| pick(p)[at].map(rounded)).collect();
            Series {
                measured: column(|p| p.measured),
                requested: column(|p| p.requested),
                expected: column(|p| p.expected),
                worst: column(|p| p.worst),
                over_line: self.whole.iter().map(|p| p.over_line[at]).collect(),
            }
        };
        let counts = |pick: fn(&Point) -> u32| self.whole.iter().map(pick).collect();
        Whole {
            cpu: of(Metered::Cpu),
            memory: of(Metered::Memory),
            closed: counts(|p| p.closed),
            waiting: counts(|p| p.waiting),
        }
    }

    pub fn of_node(&self, name: &str) -> OfNode {
        let Some(points) = self.nodes.get(name) else { return OfNode::default() };
        let column = |at: usize| points.iter().map(|point| share(point[at])).collect();
        OfNode { cpu: column(0), memory: column(1) }
    }
}

fn thousandths(share: Option<f64>) -> u16 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held to the range before")]
    share.map_or(UNKNOWN, |share| (share * 1000.0).round().clamp(0.0, f64::from(UNKNOWN - 1)) as u16)
}

fn share(thousandths: u16) -> Option<f64> {
    (thousandths != UNKNOWN).then(|| f64::from(thousandths) / 1000.0)
}

fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_and_nodes_that_are_gone_are_not() {
        let mut history = History::default();
        for number in 0..POINTS + 10 {
            let point = Point { waiting: u32::try_from(number).unwrap(), ..Point::default() };
            let both = [("a", Some(0.5)), ("b", None)].map(|(name, cpu)| (name.into(), [cpu, Some(9999.0)]));
            history.push(point, both.into_iter());
        }
        let whole = history.whole();
        assert_eq!((whole.waiting.len(), whole.waiting[0]), (POINTS, 10), "the oldest are gone");
        assert_eq!(whole.cpu.measured[0], None, "what is not known is not nothing");
        let (a, b) = (history.of_node("a"), history.of_node("b"));
        assert_eq!((a.cpu.len(), a.cpu[0], b.cpu[0]), (POINTS, Some(0.5), None));
        assert_eq!(a.memory[0], Some(65.534), "held to what can be kept");
        history.push(Point::default(), [("b".into(), [Some(0.25), None])].into_iter());
        assert!(history.of_node("a").cpu.is_empty());
        assert_eq!(history.of_node("b").cpu.last(), Some(&Some(0.25)));
    }
}
