//! The account of production, told of what happens in a replay, and asked where a pod goes.

use crate::forecast::{Forecast, Now};
use crate::moves::Move;
use crate::policy::{Moving, Placing, Policy};
use crate::run;
use crate::world::World;
use crate::{HOUR, STEP_MINUTES};
use jiff::{SignedDuration, Timestamp};
use loadline_core::cluster::{Cluster, Options};
use loadline_core::cycle::{self, Input, Memo, Weights};
use loadline_core::learn::{self, Learner};
use loadline_core::ledger::{Sample, Uid};
use loadline_core::load::board::{Board, Closed};
use loadline_core::load::estimate::{Asks, ContainerAsk};
use loadline_core::load::policy::{self, Derivable, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::load::settings::Settings;
use loadline_core::load::{Both, Load, Metered};
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_core::rebalance::{self, Moves, Off, Recent};
use loadline_core::requests::NonZero;
use loadline_core::select::Selector;
use loadline_core::select::label::Requirement;
use loadline_core::view::siblings::Maker;
use loadline_core::view::{NodeFacts, NodeId, Owner, Phase, PodFacts, PodView, Wants};
use std::sync::Arc;

/// Monday, midnight.
const BEGIN: i64 = 1_767_571_200;
const NAMESPACE: &str = "replay";
const CONTAINER: &str = "app";
/// Memory a core comes with, on nodes and in requests: it never decides.
const PER_CORE: i64 = 4 << 30;
/// Scores of forecasts are in millionths of a node.
const FINE: f64 = 1e6;
const WINDOW: SignedDuration = SignedDuration::from_mins(STEP_MINUTES as i64);

/// When a step begins.
pub fn time(step: usize) -> Timestamp {
    let second = BEGIN + (step * STEP_MINUTES * 60) as i64;
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}

/// The place in the world of a pod of that name.
fn place(uid: &str) -> Option<usize> {
    uid.strip_prefix('p')?.parse().ok()
}

/// The most a pod's workload was seen to use in the hour of the day that comes next; `None` before that hour was seen.
fn soon(now: &Now<'_>, pod: &PodView) -> Option<Load> {
    let workload = now.world.pods.get(place(&pod.uid)?)?.workload;
    let peak = now.usage.workloads[workload].seen_peak((now.step + HOUR) / HOUR % 24)?;
    Some(Load::new((peak * 1e6).round() as i64, 0))
}

/// What only policies that learn have.
#[derive(Debug)]
struct Learning {
    learner: Learner,
    workloads: Vec<WorkloadRef>,
}

/// What only policies that move pods have.
#[derive(Debug)]
struct Rebalancing {
    settings: rebalance::Settings,
    recent: Recent,
    moves: Moves,
    look_ahead: bool,
}

impl Rebalancing {
    fn new(options: run::Options) -> Self {
        let run::Options { target, budget, look_ahead } = options;
        let usual = rebalance::Settings::default();
        let line = Ratio::from_f64(target).map(|target| usual.line(Metered::Cpu, target));
        let settings = rebalance::Settings {
            targets: Both { cpu: line, memory: None },
            per_hour: budget.unwrap_or(usual.per_hour),
            ..usual
        };
        Self { recent: Recent::new(&settings), moves: Moves::default(), settings, look_ahead }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Account {
    cluster: Cluster,
    placing: Placing,
    names: Vec<String>,
    ids: Vec<NodeId>,
    wants: Arc<Wants>,
    owners: Vec<Owner>,
    learning: Option<Learning>,
    rebalancing: Option<Rebalancing>,
    /// Are measurements of any use?
    measures: bool,
}

/// Crane's policy without memory, which is not replayed.
fn limits() -> policy::Policy {
    let mut limits = policy::Policy::default();
    let is_cpu = |name: &str| Derivable::of(name).is_some_and(|metric| metric.resource == Metered::Cpu);
    limits.sync.retain(|entry| is_cpu(&entry.name));
    limits.predicates.retain(|entry| is_cpu(&entry.name));
    limits.priorities.retain(|entry| is_cpu(&entry.name));
    limits
}

impl Account {
    pub fn new(world: &World, policy: Policy, options: run::Options) -> Self {
        let Policy { placing, moving, .. } = policy;
        let targets = Both { cpu: Ratio::from_f64(options.target), memory: None };
        let rules = Rules::new(limits(), Settings { targets, ..Settings::default() });
        let rebalancing = (moving == Moving::Rebalance).then(|| Rebalancing::new(options));
        // Those with a forecast place by it; where a moved pod may go is for load rules to say.
        let by_load = matches!(placing, Placing::Crane | Placing::Line | Placing::Learned)
            || (rebalancing.is_some() && placing != Placing::Requests);
        let measures = by_load || rebalancing.is_some();
        let rules = rules.ok().map(|(rules, _)| rules).filter(|_| by_load);
        let mut cluster = Cluster::new(Options { rules, ..Options::default() }, time(0));
        let names: Vec<String> = (0..world.nodes.len()).map(|node| format!("node-{node:05}")).collect();
        for (name, milli) in names.iter().zip(&world.nodes) {
            let has = [
                ("cpu", Quantity::from_milli(*milli)),
                ("memory", Quantity::from_bytes(milli * PER_CORE / 1000)),
                ("pods", Quantity::from_milli(250_000)),
            ];
            let has: loadline_core::resources::List =
                has.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect();
            cluster.set_node(&NodeFacts {
                name: name.clone(),
                labels: [("kubernetes.io/hostname".to_owned(), name.clone())].into(),
                allocatable: has.clone(),
                capacity: has,
                ..NodeFacts::default()
            });
        }
        let ids = cluster.candidates(names.iter().map(String::as_str)).into_iter().flatten().collect();
        let owner = |name: &Arc<str>| Owner {
            group: "apps".into(),
            kind: "ReplicaSet".into(),
            name: name.clone(),
            uid: name.clone(),
        };
        let owners: Vec<Owner> = world.workloads.iter().map(|workload| owner(&workload.name)).collect();
        for workload in &world.workloads {
            let selector = Selector::all(vec![Requirement::equals("app".into(), workload.name.to_string())]);
            cluster.set_workload(Maker::ReplicaSet, &Key::new(NAMESPACE, workload.name.clone()), selector);
        }
        let learning = (placing == Placing::Learned).then(|| Learning {
            learner: Learner::new(&learn::Options::default()),
            workloads: owners.iter().map(|owner| WorkloadRef::of(&NAMESPACE.into(), owner)).collect(),
        });
        Self { cluster, placing, names, ids, wants: Arc::default(), owners, learning, rebalancing, measures }
    }

    fn facts(&self, world: &World, pod: usize) -> PodFacts {
        let one = &world.pods[pod];
        let (cpu, memory) = (one.request_milli, one.request_milli * PER_CORE / 1000);
        let name: Arc<str> = format!("p{pod:06}").into();
        let asks = Asks {
            containers: vec![ContainerAsk {
                name: CONTAINER.into(),
                cpu_nano: Some(cpu * 1_000_000),
                memory_bytes: Some(memory),
            }],
            effective: Load::new(cpu * 1_000_000, memory),
            ..Asks::default()
        };
        PodFacts {
            key: Key::new(NAMESPACE, name.clone()),
            uid: name,
            labels: [("app".to_owned(), world.workloads[one.workload].name.to_string())].into(),
            requests: [
                ("cpu".to_owned(), Quantity::from_milli(cpu)),
                ("memory".to_owned(), Quantity::from_bytes(memory)),
            ]
            .into(),
            nonzero: NonZero { cpu_milli: cpu, memory_bytes: memory },
            asks: Arc::new(asks),
            owner: Some(self.owners[one.workload].clone()),
            wants: self.wants.clone(),
            ..PodFacts::default()
        }
    }

    /// Nodes and pods were measured over the step before this; who left since is told afterwards.
    pub fn measure(&mut self, now: &Now<'_>) {
        let at = time(now.step);
        self.cluster.advance(at);
        // Who does not look at load needs no measurements of it.
        if !self.measures || now.step == 0 {
            return;
        }
        let sample = |milli: i64| Sample { at, window: WINDOW, usage: Load::new(milli * 1_000_000, 0) };
        for (node, name) in self.names.iter().enumerate() {
            let sample = sample(i64::from(now.books.row(node)[now.step - 1]));
            self.cluster.sample(name, sample);
            if let Some(Rebalancing { recent, .. }) = &mut self.rebalancing {
                recent.node(self.ids[node], sample);
            }
        }
        for pod in now.books.on.iter().flatten().copied() {
            let (uid, milli) = (format!("p{pod:06}"), now.world.usage(pod, now.step - 1));
            if let Some(Learning { learner, workloads }) = &mut self.learning {
                learner.observe(
                    &workloads[now.world.pods[pod].workload],
                    Uid::new(&uid),
                    CONTAINER,
                    sample(milli),
                );
            }
            if let Some(Rebalancing { recent, .. }) = &mut self.rebalancing {
                recent.pod(Uid::new(&uid), sample(milli));
            }
            self.cluster.pod_sample(&Key::new(NAMESPACE, uid), sample(milli));
        }
        if now.step.is_multiple_of(HOUR) {
            self.publish(at);
        }
    }

    /// What was learned is recommended.
    fn publish(&mut self, at: Timestamp) {
        let Some(Learning { learner, .. }) = &mut self.learning else { return };
        let changed = learner.changed(at);
        for learned in &changed {
            learner.published(&learned.workload, &learned.advice());
            self.cluster.recommend(learned.recommendation(learned.workload.key.name.clone()));
        }
        if !changed.is_empty() {
            self.cluster.reestimate();
        }
    }

    /// Who is to be moved where now, by the plan of production.
    pub fn rebalance(&mut self, now: &Now<'_>) -> Vec<Move> {
        let Some(Rebalancing { settings, recent, moves, look_ahead }) = &mut self.rebalancing else {
            return Vec::new();
        };
        let at = time(now.step);
        moves.expire(at, settings.dwell);
        moves.follow(self.cluster.snapshot());
        let soon = |pod: &PodView| soon(now, pod);
        let soon: Option<rebalance::Soon<'_>> = if *look_ahead { Some(&soon) } else { None };
        let input = rebalance::Input { settings, recent, moves, off: &Off::default(), soon };
        let plan = rebalance::plan(&mut self.cluster, &input);
        let mut out = Vec::with_capacity(plan.moves.len());
        for planned in plan.moves {
            let pod = place(&planned.uid);
            let to = self.names.iter().position(|name| **name == *planned.to);
            if let (Some(pod), Some(to)) = (pod, to) {
                moves.note(planned.moved(at));
                out.push(Move { pod, to });
            }
        }
        out
    }

    /// Where a pod goes; nowhere if it fits nowhere by its requests.
    pub fn choose(
        &mut self,
        now: &Now<'_>,
        pod: usize,
        forecast: Option<&mut (dyn Forecast + 'static)>,
    ) -> Option<usize> {
        let view = self.cluster.view(&self.facts(now.world, pod));
        let found = match (forecast, self.placing) {
            (Some(forecast), _) => {
                forecast.ask(now, pod);
                let board = self.board(now, pod, forecast);
                // Ties, and nearly that, are broken as kube-scheduler would.
                self.by_board(&board, Weights { load: 1, ..Weights::default() }, &view)
            }
            (None, Placing::Crane) => {
                let mut board = self.cluster.board().clone();
                // Crane has limits and no line.
                board.head.iter_mut().flatten().for_each(|head| *head = i64::MAX);
                self.by_board(&board, Weights::default(), &view)
            }
            (None, _) => {
                let mut decided = self.cluster.decide(&view);
                let node = decided.decision().node;
                node.or_else(|| decided.least_bad().map(|least| least.node))
            }
        };
        let node = self.ids.iter().position(|id| Some(*id) == found)?;
        self.cluster.charge(&view, &self.names[node]);
        Some(node)
    }

    /// What a forecast says of every node.
    fn board(&self, now: &Now<'_>, pod: usize, forecast: &dyn Forecast) -> Board {
        let mut board = Board::default();
        board.grow(self.ids.iter().map(|id| id.index() + 1).max().unwrap_or(0));
        for (node, id) in self.ids.iter().enumerate() {
            let share = forecast.with(now, node, pod) / (now.world.nodes[node] as f64).max(1.0);
            board.score[id.index()] = (forecast.score(share) * FINE).round() as i64;
            if forecast.refuses() && share > 1.0 {
                board.closed[id.index()] = Closed::Threshold;
            }
        }
        board
    }

    /// The best node by a board; where it closes all of them, the best of all.
    fn by_board(&mut self, board: &Board, weights: Weights, view: &Arc<PodView>) -> Option<NodeId> {
        let cluster = self.cluster.snapshot();
        let open = Input { cluster, board: Some(board), exempt: false, weights, changes: None };
        let first = cycle::decide(&open, view, &mut Memo::default()).node;
        first.or_else(|| cycle::decide(&Input { exempt: true, ..open }, view, &mut Memo::default()).node)
    }

    /// A pod runs on a node from that step on.
    pub fn put(&mut self, world: &World, pod: usize, node: usize, step: usize) {
        let mut facts = self.facts(world, pod);
        facts.node = Some(self.names[node].clone());
        facts.phase = Phase::Running;
        (facts.created, facts.accepted, facts.started) =
            (Some(time(step)), Some(time(step)), Some(time(step)));
        self.cluster.set_pod(&facts);
    }

    /// A pod is gone.
    pub fn take(&mut self, world: &World, pod: usize) {
        let uid = format!("p{pod:06}");
        self.cluster.remove_pod(&uid);
        if let Some(Learning { learner, workloads }) = &mut self.learning {
            learner.gone(&workloads[world.pods[pod].workload], Uid::new(&uid));
        }
        if let Some(Rebalancing { recent, .. }) = &mut self.rebalancing {
            recent.forget_pod(Uid::new(&uid));
        }
    }
}
