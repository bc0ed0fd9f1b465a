//! How much more load does each node take? For those who count replicas and do not decide about pods.

use super::Cluster;
use crate::estimate::Room;
use crate::explain::Reason;
use crate::load::board::Closed;
use crate::load::{Load, Metered};
use crate::view::NodeId;
use std::sync::Arc;

/// Up to where changes have been read; begins at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark(u64);

impl Cluster {
    /// The room, by the first profile, of every node for which it may be another than at that mark, by name, and the mark of now. Empty when
    /// load is left out.
    ///
    /// Where nothing is measured the settings decide: the node is closed, or its line is held against what its pods are
    /// expected to use. It never counts as idle.
    pub fn rooms(&mut self, since: Mark) -> (Mark, Vec<(Arc<str>, Room)>) {
        self.refresh();
        let mark = Mark(self.changes.count());
        if !self.is_load_aware() {
            return (mark, Vec::new());
        }
        let width = self.live.snapshot().width();
        let mut ids: Vec<NodeId> = match self.changes.since(since.0) {
            Some(changed) if since != Mark::default() => changed.to_vec(),
            _ => (0..width).map(NodeId::at).collect(),
        };
        ids.sort_unstable();
        ids.dedup();
        let rooms = ids.into_iter().filter_map(|id| self.room(id)).collect();
        (mark, rooms)
    }

    /// `None` for a node that is not there.
    fn room(&mut self, id: NodeId) -> Option<(Arc<str>, Room)> {
        let node = &self.live.snapshot()[id];
        if !node.present {
            return None;
        }
        let name = node.name.clone();
        let judge = &self.judges[0];
        let (at, load) = (id.index(), judge.loads.get(id.index())?);
        let closed = match judge.board.closed[at] {
            Closed::No => None,
            Closed::Threshold => load.filtered.reasons.first().cloned(),
            Closed::Unknown => Some(Reason::UnknownLoad),
            Closed::Cooling => load.cooling_until.map(|until| Reason::Cooling { until }),
        };
        let mut head = Load::ZERO;
        for (column, resource) in judge.board.head.iter().zip(Metered::ALL) {
            head = head.with(resource, column[at]);
        }
        Some((name, Room { head, closed }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Options;
    use crate::ledger::Sample;
    use crate::load::Both;
    use crate::load::policy::{Policy, Rules};
    use crate::load::ratio::Ratio;
    use crate::load::settings::{Missing, Settings};
    use crate::view::build::{node, pod};
    use jiff::{SignedDuration, Timestamp};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).expect("a second in range")
    }

    /// Two nodes of ten cores, half of which may be used.
    fn cluster(missing: Missing) -> Cluster {
        let targets = Both { cpu: Ratio::from_f64(0.5), memory: None };
        let settings = Settings { targets, missing, ..Settings::default() };
        let (rules, _) = Rules::new(Policy::default(), settings).expect("good rules");
        let mut cluster = Cluster::new(Options { rules: Some(rules), ..Options::default() }, at(0));
        for name in ["n1", "n2"] {
            cluster.set_node(&node(name).cpu("10").memory("32Gi").facts());
        }
        cluster
    }

    fn sample(seconds: i64, cores: i64) -> Sample {
        let usage = Load::new(cores * 1_000_000_000, 0);
        Sample { at: at(seconds), window: SignedDuration::from_secs(15), usage }
    }

    /// Names, free cores under the line, closed or not.
    fn shown(rooms: &[(Arc<str>, Room)]) -> Vec<(&str, i64, bool)> {
        let cores = |room: &Room| room.head.cpu_nano / 1_000_000_000;
        rooms.iter().map(|(name, room)| (&**name, cores(room), room.closed.is_some())).collect()
    }

    #[test]
    fn rooms_follow_what_is_measured_and_only_what_changed_is_told() {
        let mut cluster = cluster(Missing::Estimate);
        let (mark, rooms) = cluster.rooms(Mark::default());
        assert_eq!(shown(&rooms), [("n1", 5, false), ("n2", 5, false)], "10 × 0.5, nothing is there");
        let (mark, rooms) = cluster.rooms(mark);
        assert_eq!(shown(&rooms), [], "nothing happened");
        cluster.sample("n2", sample(0, 2));
        let (mark, rooms) = cluster.rooms(mark);
        assert_eq!(shown(&rooms), [("n2", 3, false)], "5 − 2");
        cluster.set_pod(&pod("p").cpu("4").memory("1Gi").on("n1").facts());
        let (mark, rooms) = cluster.rooms(mark);
        assert_eq!(shown(&rooms), [("n1", 1, false)], "not measured, so by its requests: 5 − 4");
        cluster.remove_node("n1");
        let (_, rooms) = cluster.rooms(mark);
        assert_eq!(shown(&rooms), [], "a node that is gone has no room to tell");
    }

    #[test]
    fn without_measurements_the_settings_decide() {
        for (missing, closed) in [(Missing::Estimate, false), (Missing::Deny, true), (Missing::Allow, false)]
        {
            let (_, rooms) = cluster(missing).rooms(Mark::default());
            assert_eq!(rooms.iter().map(|(_, room)| room.closed.is_some()).collect::<Vec<_>>(), [closed; 2]);
        }
        let (_, rooms) = cluster(Missing::Deny).rooms(Mark::default());
        assert_eq!(rooms[0].1.closed, Some(Reason::UnknownLoad));
    }

    #[test]
    fn a_sample_that_gets_old_is_told_of_when_its_time_has_come() {
        let mut cluster = cluster(Missing::Deny);
        for name in ["n1", "n2"] {
            cluster.sample(name, sample(0, 2));
        }
        let (mark, rooms) = cluster.rooms(Mark::default());
        assert_eq!(shown(&rooms), [("n1", 3, false), ("n2", 3, false)]);
        let mut closed = false;
        let mut mark = mark;
        while let Some(due) = cluster.next_due().filter(|_| !closed) {
            cluster.advance(due);
            let (next, rooms) = cluster.rooms(mark);
            mark = next;
            closed = rooms.iter().any(|(_, room)| room.closed == Some(Reason::UnknownLoad));
        }
        assert!(closed, "nobody measured again, so nothing is known any more");
    }
}
