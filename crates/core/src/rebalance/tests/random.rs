//! Any small cluster over time, its pods using what they use: what must hold of every plan, looked at from outside.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A pod as the checks see it: thousandths of a core, and where it is.
#[derive(Clone, Debug)]
struct Thing {
    workload: usize,
    kind: u8,
    cpu: i64,
    node: usize,
    uid: String,
    moves: u32,
    /// When it was moved last.
    moved: Option<i64>,
}

const LINE: i64 = 6500;
const BELOW: i64 = 6000;

/// A cluster that lives on, minute by minute.
struct Life {
    world: World,
    things: Vec<Thing>,
    nodes: usize,
    minute: i64,
    /// For how many minutes each node has been over its line.
    over: Vec<i64>,
    /// When, whose, from where, to where.
    made: Vec<(i64, usize, usize, usize)>,
    /// By how many nodes off what the plan says successors land, one after the other; none are off without.
    off: Vec<usize>,
}

fn name(node: usize) -> String {
    format!("n{node}")
}

impl Life {
    fn new(nodes: usize, things: Vec<Thing>) -> Self {
        let mut world = World::new();
        for id in 0..nodes {
            world.cluster.set_node(&node(&name(id)).cpu("10").memory("320Gi").facts());
        }
        let mut life =
            Self { world, things, nodes, minute: 0, over: vec![0; nodes], made: Vec::new(), off: Vec::new() };
        for at in 0..life.things.len() {
            life.appear(at, -7200);
        }
        life
    }

    fn appear(&mut self, at_index: usize, since: i64) {
        let thing = &self.things[at_index];
        let owner = if thing.kind == 1 { "DaemonSet" } else { "ReplicaSet" };
        let mut pod = pod(&thing.uid).cpu("50m").memory("8Mi").on(&name(thing.node));
        if thing.kind != 2 {
            pod = pod.owner(owner, &format!("w{}", thing.workload));
        }
        let mut facts = pod.facts();
        facts.daemon = thing.kind == 1;
        facts.uid = thing.uid.as_str().into();
        (facts.accepted, facts.started) = (Some(at(since)), Some(at(since)));
        self.world.cluster.set_pod(&facts);
    }

    fn used(&self, node: usize) -> i64 {
        self.things.iter().filter(|thing| thing.node == node).map(|thing| thing.cpu).sum()
    }

    /// A minute passes, everything is measured, and what is planned is done.
    fn step(&mut self) -> Result<(), TestCaseError> {
        self.minute += 1;
        let now = self.minute * 60;
        self.world.cluster.advance(at(now));
        for id in 0..self.nodes {
            let used = self.used(id);
            self.world.measure(&name(id), now, used);
            self.over[id] = if used > LINE { self.over[id] + 1 } else { 0 };
        }
        for thing in &self.things {
            let one = sample(now, 60, milli(thing.cpu));
            self.world.recent.pod(Uid::new(&thing.uid), one);
            self.world.cluster.pod_sample(&Key::new("default", thing.uid.as_str()), one);
        }
        let plan = self.world.plan();
        prop_assert_eq!(&self.world.plan(), &plan, "the same question has the same answer");
        self.check(&plan)?;
        for one in &plan.moves {
            let index = self.things.iter().position(|thing| *thing.uid == *one.uid).expect("it was there");
            let to = (0..self.nodes).find(|id| name(*id) == *one.to).expect("a node");
            let off = self.off.get(self.made.len()).copied().unwrap_or(0);
            let to = (to + off) % self.nodes;
            let thing = &mut self.things[index];
            self.world.cluster.remove_pod(&thing.uid);
            self.made.push((now, thing.workload, thing.node, to));
            (thing.node, thing.moves, thing.moved) = (to, thing.moves + 1, Some(now));
            thing.uid = format!("{}x", thing.uid);
            self.appear(index, now);
            // Objects say only which second it was.
            self.world.moves.note(one.moved(at(now) + SignedDuration::from_millis(700)));
        }
        Ok(())
    }

    /// What must hold, by figures of our own.
    fn check(&self, plan: &Plan) -> Result<(), TestCaseError> {
        let now = self.minute * 60;
        let mut used: Vec<i64> = (0..self.nodes).map(|id| self.used(id)).collect();
        let mut made = self.made.clone();
        for one in &plan.moves {
            let thing = self.things.iter().find(|thing| *thing.uid == *one.uid);
            let thing = thing.expect("only pods that are there are moved");
            let to = (0..self.nodes).find(|id| name(*id) == *one.to).expect("only to nodes that are there");
            prop_assert_eq!(thing.kind, 0, "only pods somebody makes again, and not for this node");
            prop_assert!(thing.moved.is_none_or(|at| now - at >= 7200), "who was moved stays for two hours");
            prop_assert_eq!(thing.moves, 0, "under steady load nothing has to be moved twice");
            prop_assert!(used[thing.node] > LINE, "only from nodes that are still over");
            prop_assert!(self.over[thing.node] >= 5, "and have been for five minutes");
            prop_assert!(used[to] + thing.cpu <= BELOW, "only to where it stays under the line");
            prop_assert_eq!(one.gap.cpu_nano, (used[thing.node] - LINE) * 1_000_000);
            used[thing.node] -= thing.cpu;
            used[to] += thing.cpu;
            prop_assert_eq!(one.gap_after.cpu_nano, (used[thing.node] - LINE).max(0) * 1_000_000);
            // Of two of a workload that were moved in the same second nobody can say which came from where.
            let sure = |m: &(i64, usize, usize, usize)| {
                made.iter().filter(|o| (o.0, o.1) == (m.0, m.1)).count() == 1
            };
            let back = |m: &(i64, usize, usize, usize)| {
                (m.2, m.3) == (to, thing.node) && m.0 > now - 7200 && sure(m)
            };
            prop_assert!(!made.iter().any(back), "two nodes never swap");
            made.push((now, thing.workload, thing.node, to));
        }
        let hour: Vec<_> = made.iter().filter(|m| m.0 > now - 3600).collect();
        let (mut nodes, mut workloads) = (BTreeMap::new(), BTreeMap::new());
        for m in &hour {
            *nodes.entry(m.2).or_insert(0) += 1;
            *workloads.entry(m.1).or_insert(0) += 1;
        }
        prop_assert!(
            hour.len() <= 60 && nodes.values().all(|n| *n <= 4) && workloads.values().all(|n| *n <= 2)
        );
        for over in plan.nodes.iter().filter(|over| over.wait.is_none()) {
            let id = (0..self.nodes).find(|id| name(*id) == *over.node).expect("a node");
            let here = self.things.iter().filter(|thing| thing.node == id).count();
            let gone = plan.moves.iter().filter(|one| one.from == over.node).count();
            prop_assert_eq!(here, gone + over.stays.len(), "each pod goes or has a reason to stay");
        }
        Ok(())
    }
}

fn things(nodes: usize) -> impl Strategy<Value = Vec<Thing>> {
    let one = (0..6_usize, prop_oneof![8 => Just(0_u8), 1 => Just(1), 1 => Just(2)], 10..2500_i64, 0..nodes);
    vec(one, 0..24).prop_map(|all| {
        let thing = |(i, (workload, kind, cpu, node)): (usize, (usize, u8, i64, usize))| Thing {
            workload: workload + 10 * usize::from(kind),
            kind,
            cpu,
            node,
            uid: format!("p{i}"),
            moves: 0,
            moved: None,
        };
        all.into_iter().enumerate().map(thing).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn under_steady_load_every_plan_keeps_its_promises_and_the_end_is_rest(
        (nodes, things) in (2..6_usize).prop_flat_map(|nodes| (Just(nodes), things(nodes)))
    ) {
        let before: Vec<bool> = (0..nodes)
            .map(|id| things.iter().filter(|t| t.node == id).map(|t| t.cpu).sum::<i64>() > LINE)
            .collect();
        let mut life = Life::new(nodes, things);
        for _ in 0..90 {
            life.step()?;
        }
        if !before.contains(&true) {
            prop_assert!(life.made.is_empty(), "no node was over its line, so nothing moves");
        }
        for (id, was_over) in before.into_iter().enumerate() {
            prop_assert!(was_over || life.used(id) <= LINE, "no node gets over its line by moves");
        }
    }

    // Load that jumps about, and a scheduler that puts pods anywhere: what each minute brings is new, the promises are the same but
    // for rest.
    #[test]
    fn under_any_load_only_nodes_over_their_line_for_long_give_up_pods(
        things in things(4), jumps in vec((0..24_usize, 10..2500_i64), 60), off in vec(0..4_usize, 0..20)
    ) {
        let mut life = Life { off, ..Life::new(4, things) };
        for (which, cpu) in jumps {
            if let Some(thing) = life.things.get_mut(which) {
                thing.cpu = cpu;
            }
            life.things.iter_mut().for_each(|thing| thing.moves = 0);
            life.step()?;
        }
    }
}
