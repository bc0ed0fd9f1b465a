//! What would the agents of nodes do? A node that wants more than its waterline slows some of its pods down, by the engine of
//! `loadline agent` ([`loadline_core::qos`]); beside that is counted whom acting on all would have slowed down.
//!
//! A step of five minutes is up to thirty cycles of an agent, ten seconds apart, in which everybody wants the same: the plan of
//! each is carried out, what is measured follows from the quotas, and it is over when a plan writes nothing. A full node
//! measures itself as full, not as how much more was wanted, as in real life.
//!
//! There is one rule, and one action that is allowed on everybody: above [`WATERLINE_PERCENT`], a step takes 40 % of what a pod
//! uses, never below what it asks for. All are equally important here, so who uses most is first.

use crate::account::time;
use crate::books::Books;
use crate::world::World;
use jiff::SignedDuration;
use loadline_core::object::Key;
use loadline_core::qos::gap::Category;
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::metric::cpu::QUOTA;
use loadline_core::qos::policy::{Action, NodeQos, Policy, Rule};
use loadline_core::qos::scope::Scope;
use loadline_core::qos::throttle::Step;
use loadline_core::qos::{self, Class, Container, CpuQuota, Level, NodeSnapshot, PERIOD_US, Series, State};
use loadline_core::select::label::Expression;
use loadline_core::view::Labels;
use std::sync::Arc;

/// Agents act above so much of a node.
pub const WATERLINE_PERCENT: i64 = 90;
const STEP: Step = Step { percent: 40, least_percent: 10 };
/// Cycles of an agent in a step of a replay, and seconds between two of them.
const CYCLES: i64 = 30;
const SECONDS: i64 = 10;
const METRIC: &str = "cpu_total_usage";
const NAMESPACE: &str = "replay";

/// What agents did, while it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slowed {
    /// By pod: was it slowed down?
    pub exactly: Vec<bool>,
    /// By pod: would acting on all have slowed it down?
    pub by_all: Vec<bool>,
    /// By pod: was it on a node that wanted more than it has even so?
    pub crowded: Vec<bool>,
    /// The steps in which a node wanted more than it has even so, added up over nodes.
    pub over_full: usize,
    /// What pods wanted and were not given, in thousandths of a core, added up over steps.
    pub withheld: i64,
}

/// The agents of all nodes.
#[derive(Debug)]
pub(crate) struct Agents {
    /// By node: it has lines of its own.
    policies: Vec<Policy>,
    states: Vec<State>,
    /// By pod: what it may take.
    quotas: Vec<CpuQuota>,
    pub slowed: Slowed,
}

fn policy(capacity: i64) -> Policy {
    let name: Arc<str> = "slow-down".into();
    let action = Action { name: name.clone(), throttle: Some(STEP), ..Action::default() };
    let rule = Rule {
        name: "cpu".into(),
        metric: METRIC.into(),
        value: Some(Level::whole(capacity * WATERLINE_PERCENT / 100)),
        avoid_after: 1,
        restore_after: 1,
        action: name.clone(),
        ..Rule::default()
    };
    let everybody =
        Expression { key: "Namespace".into(), operator: "In".into(), values: vec![NAMESPACE.into()] };
    let scope = Scope {
        name: "everybody".into(),
        expressions: vec![everybody],
        allowed: vec![name],
        ..Scope::default()
    };
    let rules = NodeQos { name: "replay".into(), selector: None, rules: vec![rule] };
    Policy::new(Catalogue::default(), &[rules], vec![action], &[scope])
}

impl Agents {
    pub fn new(world: &World) -> Self {
        let pods = world.pods.len();
        Self {
            policies: world.nodes.iter().map(|capacity| policy(*capacity)).collect(),
            states: vec![State::default(); world.nodes.len()],
            quotas: vec![CpuQuota::Unlimited; pods],
            slowed: Slowed {
                exactly: vec![false; pods],
                by_all: vec![false; pods],
                crowded: vec![false; pods],
                ..Slowed::default()
            },
        }
    }

    /// A pod left its node: what it gets next has no quota.
    pub fn left(&mut self, pod: usize) {
        self.quotas[pod] = CpuQuota::Unlimited;
    }

    /// What a pod takes of what it wants.
    fn takes(&self, world: &World, pod: usize, step: usize) -> Level {
        let wants = Level::whole(world.usage(pod, step));
        self.quotas[pod].level(PERIOD_US).map_or(wants, |most| most.min(wants))
    }

    /// Everybody is where they are in this step, and wants what they want.
    pub fn step(&mut self, world: &World, books: &Books, step: usize) {
        for (node, capacity) in world.nodes.iter().enumerate() {
            let wanted = i64::from(books.row(node)[step]);
            let is_calm =
                wanted * 100 <= capacity * WATERLINE_PERCENT && self.states[node].throttled.is_empty();
            if !is_calm {
                self.node(world, &books.on[node], (node, step));
            }
        }
    }

    fn node(&mut self, world: &World, pods: &[usize], (node, step): (usize, usize)) {
        let counts = world.counted.contains(&step);
        let capacity = Level::whole(world.nodes[node]);
        for cycle in 0..CYCLES {
            let now = time(step) + SignedDuration::from_secs(cycle * SECONDS);
            let snapshot = self.snapshot(world, pods, (node, step), now);
            let plan = qos::plan(&self.policies[node], &snapshot);
            let downs = || plan.steps.writes.iter().filter(|write| write.category == Category::ThrottleDown);
            if downs().next().is_some() && counts {
                let may = |pod: &qos::Pod| {
                    let lowered = |one| (QUOTA.down)(pod, one, STEP);
                    pod.containers.iter().any(|one| lowered(one).is_some())
                };
                for (pod, facts) in pods.iter().zip(&snapshot.pods) {
                    self.slowed.by_all[*pod] |= may(facts);
                    self.slowed.exactly[*pod] |= downs().any(|write| write.pod == facts.key);
                }
            }
            for write in &plan.steps.writes {
                if let Some(at) = snapshot.pods.iter().position(|facts| facts.key == write.pod) {
                    self.quotas[pods[at]] = write.quota;
                }
            }
            self.states[node] = plan.as_planned();
            if plan.steps.writes.is_empty() {
                break;
            }
        }
        if counts {
            let taken: Level = pods.iter().map(|pod| self.takes(world, *pod, step)).sum();
            let wanted: i64 = pods.iter().map(|pod| world.usage(*pod, step)).sum();
            let given =
                i64::try_from(taken.min(capacity).nano() / Level::whole(1).nano()).unwrap_or(i64::MAX);
            self.slowed.withheld += (wanted - given).max(0);
            if taken > capacity {
                self.slowed.over_full += 1;
                for pod in pods {
                    self.slowed.crowded[*pod] = true;
                }
            }
        }
    }

    /// What an agent measures.
    fn snapshot(
        &self,
        world: &World,
        pods: &[usize],
        (node, step): (usize, usize),
        now: jiff::Timestamp,
    ) -> NodeSnapshot {
        let capacity = Level::whole(world.nodes[node]);
        let all: Level = pods.iter().map(|pod| self.takes(world, *pod, step)).sum();
        let facts = |pod: &usize| {
            let takes = self.takes(world, *pod, step);
            // What a full node has is shared out by what is wanted.
            let uses = if all > capacity { takes.times(capacity.nano(), all.nano()) } else { takes };
            let name: Arc<str> = format!("p{pod:06}").into();
            qos::Pod {
                key: Key::new(NAMESPACE, name.clone()),
                uid: name,
                class: Class::Burstable,
                started: Some(time(world.pods[*pod].arrives)),
                cpu: Some(uses),
                containers: vec![Container {
                    name: "app".into(),
                    usage: Some(uses),
                    quota: self.quotas[*pod],
                    request: Some(Level::whole(world.pods[*pod].request_milli)),
                    ..Container::default()
                }],
                ..qos::Pod::default()
            }
        };
        NodeSnapshot {
            now,
            node: qos::Node {
                name: format!("node-{node:05}").into(),
                cpu: Some(capacity),
                ..qos::Node::default()
            },
            series: vec![Series {
                name: METRIC.into(),
                labels: Labels::default(),
                value: Some(all.min(capacity)),
                at: now,
            }],
            latest: Vec::new(),
            pods: pods.iter().map(facts).collect(),
            budgets: Vec::new(),
            state: self.states[node].clone(),
            options: qos::Options::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Pod, Workload};

    /// One node of ten cores, and pods that ask for a tenth of a core and want what is given here, the same all the time.
    fn world(wants: &[u32], steps: usize) -> (World, Books) {
        let workload =
            |milli: &u32| Workload { name: format!("w{milli}").into(), series: vec![*milli].into() };
        let pod =
            |workload| Pod { workload, arrives: 0, leaves: steps, request_milli: 100, shift: 0, scale: 1000 };
        let world = World {
            nodes: vec![10_000],
            workloads: wants.iter().map(workload).collect(),
            pods: (0..wants.len()).map(pod).collect(),
            steps,
            counted: 0..steps,
        };
        let mut books = Books::new(&world);
        (0..wants.len()).for_each(|pod| books.put(&world, pod, 0, 0));
        (world, books)
    }

    #[test]
    fn only_as_many_are_slowed_down_as_close_the_gap_the_largest_first() {
        // 11 cores are wanted of 10. The node measures 10, which is 1 above 9, and a tenth more than the gap is taken: 40 % of
        // the largest, 5 × 10/11 = 4.545 measured, are 1.818. Then 2.727 + 6 = 8.727 are taken, and all is calm.
        let (world, books) = world(&[5000, 3000, 2000, 1000], 3);
        let mut agents = Agents::new(&world);
        (0..3).for_each(|step| agents.step(&world, &books, step));
        assert_eq!(agents.slowed.exactly, [true, false, false, false]);
        assert_eq!(agents.slowed.by_all, [true; 4]);
        assert_eq!((agents.slowed.over_full, agents.slowed.crowded), (0, vec![false; 4]));
        assert!(agents.slowed.withheld >= 3 * 1000, "{}: what was above 10", agents.slowed.withheld);
    }

    #[test]
    fn below_the_waterline_nobody_is_touched() {
        let (world, books) = world(&[5000, 4000], 4);
        let mut agents = Agents::new(&world);
        (0..4).for_each(|step| agents.step(&world, &books, step));
        let nobody = vec![false; 2];
        let expected =
            Slowed { exactly: nobody.clone(), by_all: nobody.clone(), crowded: nobody, ..Slowed::default() };
        assert_eq!(agents.slowed, expected);
    }

    #[test]
    fn what_was_taken_comes_back_when_there_is_room() {
        let (mut world, mut books) = world(&[6000, 5000], 4);
        let mut agents = Agents::new(&world);
        agents.step(&world, &books, 0);
        assert_ne!(agents.quotas[0], CpuQuota::Unlimited);
        // The second one leaves.
        books.take(&world, 1, 1);
        world.pods[1].leaves = 1;
        (1..4).for_each(|step| agents.step(&world, &books, step));
        assert_eq!(agents.takes(&world, 0, 3), Level::whole(6000));
    }
}
