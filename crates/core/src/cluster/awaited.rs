//! Who is going to come where? A pod that was moved is made again by its workload, and for that one a node was planned. Until it
//! has got one, room is kept for it there, and nobody else gets that.
//!
//! What is kept is the most the moved pod was expected to use. Its successor is known by its workload and by having been made
//! since. It is asked about without what is kept for it, and as one that uses that much, whatever it asks for: the plan asked the
//! same, and where it found a node, one must be found now. Where it goes is decided as for every other pod. What nobody claims
//! in time is given up.

use super::Cluster;
use crate::load::Load;
use crate::rebalance::Moved;
use crate::view::{PodFacts, PodView};
use jiff::Timestamp;
use std::sync::Arc;

/// More are not waited for at a time. Moves are few; who writes many on nodes must not slow down decisions.
const MOST: usize = 256;

/// A moved pod, the successor of which is waited for.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    moved: Moved,
    until: Timestamp,
    /// Who takes its place, by uid.
    by: Option<Arc<str>>,
}

impl Awaited {
    /// What is kept for it, among those that may be about to arrive. Its own uid is that of the pod that leaves.
    fn name(&self) -> Arc<str> {
        format!("moved/{}", self.moved.uid).into()
    }

    /// Does that pod take its place?
    fn is_succeeded_by(&self, pod: &PodView) -> bool {
        self.moved.is_succeeded_by(pod, None)
    }
}

impl Cluster {
    /// A pod was sent away, and its successor is expected somewhere. Repeating it changes nothing.
    pub fn await_moved(&mut self, moved: &Moved, until: Timestamp) {
        let known = self.awaited.iter().any(|one| one.moved.uid == moved.uid);
        if known || until <= self.now || self.awaited.len() >= MOST {
            return;
        }
        let mut one = Awaited { moved: moved.clone(), until, by: None };
        // It may have been quicker than the news.
        let there = self.live.snapshot().nodes().flat_map(|node| &node.pods);
        let claimed = |pod: &PodView| self.awaited.iter().any(|other| other.by.as_ref() == Some(&pod.uid));
        one.by =
            there.filter(|pod| one.is_succeeded_by(pod) && !claimed(pod)).map(|pod| pod.uid.clone()).next();
        if one.by.is_none() {
            self.keep_room(&one);
        }
        self.awaited.push(one);
    }

    /// Pods that left a node after all, by uid: nobody is waited for in place of others.
    pub fn await_only(&mut self, from: &str, moved: &[Moved]) {
        let stays = |one: &Awaited| *one.moved.from != *from || moved.iter().any(|m| m.uid == one.moved.uid);
        let (stay, go) = std::mem::take(&mut self.awaited).into_iter().partition(stays);
        self.awaited = stay;
        for one in go {
            self.release(&one.name());
        }
    }

    /// A pod that is to be placed, as it is to be asked about: one that takes the place of a moved one gets what is kept for
    /// that, and is expected to use as much. If it is not placed then, that is kept again.
    #[must_use]
    pub fn succeeding(&mut self, pod: &Arc<PodView>) -> Arc<PodView> {
        match self.claim(pod) {
            Some(high) => Arc::new(PodView { estimate: high, ..PodView::clone(pod) }),
            None => pod.clone(),
        }
    }

    /// How many successors of moved pods are waited for.
    #[must_use]
    pub fn awaited_count(&self) -> usize {
        self.awaited.iter().filter(|one| one.by.is_none()).count()
    }

    /// A pod takes the place of one that was moved, if one is left; how much that was expected to use.
    pub(super) fn claim(&mut self, pod: &PodView) -> Option<Load> {
        if self.awaited.is_empty() {
            return None;
        }
        let mine = |one: &Awaited| one.by.as_ref() == Some(&pod.uid);
        let free = |one: &Awaited| one.by.is_none() && one.is_succeeded_by(pod);
        let at = self.awaited.iter().position(mine).or_else(|| self.awaited.iter().position(free))?;
        let one = &mut self.awaited[at];
        let high = one.moved.high;
        if one.by.is_none() {
            one.by = Some(pod.uid.clone());
            let name = one.name();
            self.release(&name);
        }
        Some(high)
    }

    /// Those nobody waits for any more, those whose successor was not placed, and those whose node was not known before.
    pub(super) fn advance_awaited(&mut self) {
        if self.awaited.is_empty() {
            return;
        }
        let now = self.now;
        self.awaited.retain(|one| one.until > now);
        for at in 0..self.awaited.len() {
            let one = &mut self.awaited[at];
            if let Some(by) = one.by.clone()
                && (self.live.place(&by).is_some() || self.tentative.is_expected(&by))
            {
                continue;
            }
            one.by = None;
            if !self.tentative.is_expected(&one.name()) {
                let one = one.clone();
                self.keep_room(&one);
            }
        }
    }

    fn keep_room(&mut self, one: &Awaited) {
        let facts = PodFacts { key: one.moved.pod.clone(), uid: one.name(), ..PodFacts::default() };
        let pod = Arc::new(self.live.view(&facts, one.moved.high));
        if let Some(node) = self.live.id(&one.moved.to) {
            self.keep(&pod, node, one.until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tentative::{Question, Wait};
    use super::*;
    use crate::cluster::Options;
    use crate::ledger::Sample;
    use crate::load::Both;
    use crate::load::policy::{Policy, Rules};
    use crate::load::ratio::Ratio;
    use crate::load::settings::Settings;
    use crate::object::Key;
    use crate::view::build::{node, pod};
    use jiff::SignedDuration;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    /// Nodes of ten cores, half of which may be used; n1 uses 3, n2 uses 1.
    fn cluster() -> Cluster {
        let targets = Both { cpu: Ratio::from_f64(0.5), memory: None };
        let settings = Settings { targets, ..Settings::default() };
        let (rules, _) = Rules::new(Policy::default(), settings).unwrap();
        let mut cluster = Cluster::new(Options { rules: Some(rules), ..Options::default() }, at(0));
        for (name, used) in [("n1", 3), ("n2", 1)] {
            cluster.set_node(&node(name).cpu("10").memory("32Gi").facts());
            let usage = Load::new(used * 1_000_000_000, 0);
            cluster.sample(name, Sample { at: at(0), window: SignedDuration::from_secs(15), usage });
        }
        cluster
    }

    fn moved(uid: &str, to: &str, cores: i64) -> Moved {
        Moved {
            at: at(10),
            pod: Key::new("default", uid),
            uid: uid.into(),
            workload: "default/ReplicaSet/web".into(),
            from: "n9".into(),
            to: to.into(),
            high: Load::new(cores * 1_000_000_000, 0),
            because: "".into(),
        }
    }

    /// A pod that asks for a core, made then.
    fn facts(name: &str, of: &str, made: i64) -> PodFacts {
        let facts = pod(name).cpu("1").memory("1Gi").owner("ReplicaSet", of).facts();
        PodFacts { created: Some(at(made)), ..facts }
    }

    fn placed(cluster: &mut Cluster, facts: &PodFacts) -> Option<String> {
        let view = cluster.view(facts);
        let view = cluster.succeeding(&view);
        let decided = cluster.decide(&view);
        let node = decided.node().map(|node| node.name.to_string());
        let _ = decided.reserve();
        node
    }

    /// Cores that may still come to each node.
    fn room(cluster: &mut Cluster) -> Vec<i64> {
        cluster.board().head[0].iter().map(|nano| nano / 1_000_000_000).collect()
    }

    #[test]
    fn room_is_kept_for_the_successor_and_for_nobody_else() {
        let mut cluster = cluster();
        assert_eq!(room(&mut cluster), [2, 4]);
        cluster.await_moved(&moved("u1", "n2", 4), at(120));
        cluster.await_moved(&moved("u1", "n2", 4), at(120));
        assert_eq!(room(&mut cluster), [2, 0], "4 of the 4 that were left, once");
        assert_eq!(
            placed(&mut cluster, &facts("a", "other", 20)).as_deref(),
            Some("n1"),
            "though n2 is emptier"
        );
        assert_eq!(
            placed(&mut cluster, &facts("b", "web", 9)).as_deref(),
            Some("n1"),
            "made before the move"
        );
        assert_eq!(
            placed(&mut cluster, &facts("c", "other", 20)),
            None,
            "there is no room left but the one that is kept"
        );
        assert_eq!(placed(&mut cluster, &facts("web-2", "web", 11)).as_deref(), Some("n2"));
        assert_eq!(
            (room(&mut cluster), cluster.awaited_count()),
            (vec![0, 0], 0),
            "it counts as what the moved one used"
        );
        // Seen there, and measured: nothing is kept twice.
        cluster.set_pod(&PodFacts { node: Some("n2".into()), ..facts("web-2", "web", 11) });
        cluster.advance(at(30));
        assert_eq!((cluster.awaited_count(), cluster.tentative_count()), (0, 0));
        assert_eq!(
            placed(&mut cluster, &facts("web-3", "web", 12)).as_deref(),
            Some("n2"),
            "as any other: 1 of 3"
        );
    }

    #[test]
    fn what_is_kept_is_kept_until_its_successor_has_a_node_or_it_is_late() {
        let mut cluster = cluster();
        cluster.await_moved(&moved("u1", "n2", 3), at(120));
        let heir = cluster.view(&facts("web-2", "web", 11));
        let asked = cluster.succeeding(&heir);
        assert_eq!((asked.estimate.cpu_nano, room(&mut cluster)), (3_000_000_000, vec![2, 4]));
        // Nothing came of it.
        cluster.advance(at(20));
        assert_eq!((room(&mut cluster), cluster.awaited_count()), (vec![2, 1], 1));
        // Another scheduler may have taken it anywhere.
        let nodes = cluster.candidates(["n1", "n2"].into_iter());
        let asked = cluster.succeeding(&heir);
        cluster.filter(
            Question { profile: 0, pod: &asked, nodes: &nodes, wait: Wait::until(at(25)) },
            super::super::Keep::All,
        );
        assert_eq!(room(&mut cluster), [2, 1], "3 do not fit on n1; on n2 they are charged as its own");
        cluster.advance(at(24));
        assert_eq!((cluster.tentative_count(), cluster.awaited_count()), (1, 0));
        cluster.advance(at(26));
        assert_eq!(
            (room(&mut cluster), cluster.awaited_count()),
            (vec![2, 1], 1),
            "it did not: it is kept again"
        );
        cluster.advance(at(120));
        assert_eq!((room(&mut cluster), cluster.tentative_count()), (vec![2, 4], 0), "it is late");
        cluster.await_moved(&moved("u2", "n2", 3), at(119));
        assert_eq!(room(&mut cluster), [2, 4], "so is this");
    }

    #[test]
    fn each_successor_takes_the_place_of_one() {
        let mut cluster = cluster();
        // Seen before the news of the move.
        cluster.set_pod(&PodFacts { node: Some("n1".into()), ..facts("web-2", "web", 10) });
        let before = room(&mut cluster);
        cluster.await_moved(&moved("u1", "n2", 2), at(120));
        assert_eq!(room(&mut cluster), before, "it is there already");
        cluster.await_moved(&moved("u2", "n2", 2), at(120));
        cluster.await_moved(&moved("u3", "n2", 1), at(120));
        assert_eq!(room(&mut cluster)[1], 4 - 2 - 1, "it took the place of one");
        cluster.set_pod(&PodFacts { node: Some("n1".into()), ..facts("web-3", "web", 12) });
        assert_eq!(room(&mut cluster)[1], 4 - 1, "wherever somebody else put it");
        cluster.await_only("n9", &[moved("u1", "n2", 2), moved("u2", "n2", 2)]);
        assert_eq!(room(&mut cluster)[1], 4, "the third may not go after all");
        cluster.await_only("n1", &[]);
        assert_eq!(cluster.awaited.len(), 2, "those of another node stay");
        cluster.await_moved(&moved("u4", "n3", 1), at(120));
        assert_eq!(room(&mut cluster)[1], 4, "a node nobody knows");
        cluster.set_node(&node("n3").cpu("10").memory("32Gi").facts());
        let usage = Load::ZERO;
        cluster.sample("n3", Sample { at: at(20), window: SignedDuration::from_secs(15), usage });
        cluster.advance(at(21));
        assert_eq!(room(&mut cluster)[2], 5 - 1, "and now it is");
    }
}
