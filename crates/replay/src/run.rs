//! What happened then? One world, one policy, step by step.
//!
//! A step of five minutes: nodes and pods are measured over the step before; those whose time is over leave; pods are moved,
//! if the policy does that; those that wait and those that arrive are placed, one after the other. What is wanted in the step
//! follows from where everybody is then; with protection, agents slow pods down where it is too much.

use crate::account::Account;
use crate::books::Books;
use crate::figures::{self, Counts, Figures};
use crate::forecast::Now;
use crate::moves;
use crate::policy::{Moving, Policy};
use crate::protect::Agents;
use crate::usage::Usage;
use crate::world::World;
use std::collections::VecDeque;

/// What a run is asked with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How full nodes are meant to be at most, from 0 to 1.
    pub target: f64,
    /// How many pods `+rebalance` moves within an hour at most; without, as many as by default.
    pub budget: Option<u32>,
    /// Does `+rebalance` look at what pods were seen to use an hour later in the day?
    pub look_ahead: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { target: 0.65, budget: None, look_ahead: false }
    }
}

/// A pod was on a node from one step up to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    pub pod: usize,
    pub node: usize,
    pub from: usize,
    pub to: usize,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub figures: Figures,
    /// Who was where, when.
    pub visits: Vec<Visit>,
    /// By step: the share of each node that was wanted, in thousandths, of the worst node and on average.
    pub course: Vec<[u32; 2]>,
}

/// Replays a world. `told` is called with the share that is done, now and then.
pub fn run(world: &World, policy: Policy, options: Options, mut told: impl FnMut(f64)) -> Outcome {
    let mut state = State::new(world, policy, options);
    for step in 0..world.steps {
        state.step(step);
        if step.is_multiple_of(crate::HOUR) {
            told(step as f64 / world.steps as f64);
        }
    }
    told(1.0);
    state.outcome()
}

struct State<'w> {
    world: &'w World,
    policy: Policy,
    options: Options,
    account: Account,
    books: Books,
    usage: Usage,
    counts: Counts,
    forecast: Option<Box<dyn crate::forecast::Forecast>>,
    agents: Option<Agents>,
    /// Who leaves at which step.
    leaving: Vec<Vec<usize>>,
    waiting: VecDeque<usize>,
    arriving: usize,
    /// Since when each pod is where it is.
    since: Vec<usize>,
    visits: Vec<Visit>,
}

impl<'w> State<'w> {
    fn new(world: &'w World, policy: Policy, options: Options) -> Self {
        let mut leaving = vec![Vec::new(); world.steps + 1];
        for (place, pod) in world.pods.iter().enumerate() {
            leaving[pod.leaves.min(world.steps)].push(place);
        }
        Self {
            world,
            policy,
            options,
            account: Account::new(world, policy, options),
            books: Books::new(world),
            usage: Usage::new(world),
            counts: Counts::new(world),
            forecast: policy.placing.forecast(options.target),
            agents: policy.protection.then(|| Agents::new(world)),
            leaving,
            waiting: VecDeque::new(),
            arriving: 0,
            since: vec![usize::MAX; world.pods.len()],
            visits: Vec::new(),
        }
    }

    fn step(&mut self, step: usize) {
        let world = self.world;
        let now = Now { world, books: &self.books, usage: &self.usage, step };
        self.account.measure(&now);
        self.usage.measure(world, &self.books, step);
        for pod in std::mem::take(&mut self.leaving[step]) {
            self.leave(pod, step);
        }
        match self.policy.moving {
            Moving::Never => {}
            Moving::Plain => self.move_plainly(step),
            Moving::Rebalance => {
                let now = Now { world, books: &self.books, usage: &self.usage, step };
                for found in self.account.rebalance(&now) {
                    self.carry_out(found, step);
                }
            }
        }
        self.place(step);
        if let Some(agents) = &mut self.agents {
            agents.step(world, &self.books, step);
        }
        self.count(step);
    }

    fn leave(&mut self, pod: usize, step: usize) {
        if let Some(node) = self.books.place[pod] {
            self.visits.push(Visit { pod, node, from: self.since[pod], to: step });
            self.books.take(self.world, pod, step);
            self.account.take(self.world, pod);
            if let Some(agents) = &mut self.agents {
                agents.left(pod);
            }
        }
        self.waiting.retain(|other| *other != pod);
    }

    fn carry_out(&mut self, found: moves::Move, step: usize) {
        self.leave(found.pod, step);
        self.put(found.pod, found.to, step);
        self.counts.moved[found.pod] += 1;
    }

    fn move_plainly(&mut self, step: usize) {
        let mut busy = vec![false; self.world.nodes.len()];
        loop {
            let now = Now { world: self.world, books: &self.books, usage: &self.usage, step };
            let Some(found) = moves::next(&now, self.options.target, &self.since, &mut busy) else { return };
            self.carry_out(found, step);
        }
    }

    fn put(&mut self, pod: usize, node: usize, step: usize) {
        self.account.put(self.world, pod, node, step);
        self.books.put(self.world, pod, node, step);
        self.usage.started(pod, step);
        self.since[pod] = step;
    }

    fn place(&mut self, step: usize) {
        while self.world.pods.get(self.arriving).is_some_and(|pod| pod.arrives <= step) {
            if self.world.pods[self.arriving].leaves > step {
                self.waiting.push_back(self.arriving);
            }
            self.arriving += 1;
        }
        if self.waiting.is_empty() {
            return;
        }
        let look = Now { world: self.world, books: &self.books, usage: &self.usage, step };
        if let Some(forecast) = &mut self.forecast {
            forecast.look(&look);
        }
        for pod in std::mem::take(&mut self.waiting) {
            let now = Now { world: self.world, books: &self.books, usage: &self.usage, step };
            let Some(node) = self.account.choose(&now, pod, self.forecast.as_deref_mut()) else {
                self.counts.waited[pod] += 1;
                self.waiting.push_back(pod);
                continue;
            };
            if let Some(forecast) = &mut self.forecast {
                forecast.placed(&now, node, pod);
            }
            self.put(pod, node, step);
        }
    }

    fn count(&mut self, step: usize) {
        if !self.world.counted.contains(&step) {
            return;
        }
        for (node, capacity) in self.world.nodes.iter().enumerate() {
            if i64::from(self.books.row(node)[step]) > *capacity {
                self.books.on[node].iter().for_each(|pod| self.counts.crowded[*pod] = true);
            }
        }
    }

    fn outcome(mut self) -> Outcome {
        for pod in 0..self.world.pods.len() {
            if let Some(node) = self.books.place[pod] {
                self.visits.push(Visit { pod, node, from: self.since[pod], to: self.world.steps });
            }
        }
        let course = (0..self.world.steps).map(|step| {
            let shares = self.world.nodes.iter().enumerate().map(|(node, capacity)| {
                u32::try_from(i64::from(self.books.row(node)[step]) * 1000 / (*capacity).max(1)).unwrap_or(0)
            });
            let (worst, sum) =
                shares.fold((0, 0_u64), |(worst, sum), share| (share.max(worst), sum + u64::from(share)));
            [worst, (sum / self.world.nodes.len().max(1) as u64) as u32]
        });
        Outcome {
            course: course.collect(),
            figures: figures::of(
                self.world,
                &self.books,
                &self.counts,
                self.agents.as_ref().map(|agents| &agents.slowed),
                self.options.target,
            ),
            visits: self.visits,
        }
    }
}
