//! How do policies compare, over several seeds? All runs, as many at a time as there are cores.

use crate::fewest::{Enough, fewest};
use crate::figures::{Figures, Protection};
use crate::policy::Policy;
use crate::run::{Options, run};
use crate::trace::Series;
use crate::world::{Plan, World, draw};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many nodes there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nodes {
    Fixed(usize),
    /// As many as would be used by that share on average, from 0 to 1.
    Density(f64),
    /// As few as are enough, for each policy.
    Fewest(Enough),
    /// Those the world has.
    Own,
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// A world that is there already, in place of one for each seed.
    pub recorded: Option<&'a World>,
    pub series: &'a [Series],
    pub policies: &'a [Policy],
    pub seeds: &'a [u64],
    pub plan: Plan,
    pub nodes: Nodes,
    pub node_milli: i64,
    pub options: Options,
}

/// One policy in one world.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub policy: Policy,
    pub seed: u64,
    /// Nothing where even very many nodes are not enough.
    pub figures: Option<Figures>,
    /// See [`crate::run::Outcome`].
    pub course: Vec<[u32; 2]>,
}

/// As few nodes as may be are looked for below this density.
const SPARSEST: f64 = 0.05;
/// So many nodes times steps are kept at a time in one run, of four bytes each: a week of 25 000 nodes.
pub const MOST: usize = 50_000_000;

/// What was asked for can be neither held nor waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch {
    pub nodes: usize,
    pub steps: usize,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, steps } = self;
        let most = MOST / (*steps).max(1);
        write!(
            f,
            "{nodes} nodes over {steps} steps of five minutes are too much to replay, {most} would not be: say fewer nodes or days, larger nodes, or a higher density"
        )
    }
}

impl std::error::Error for TooMuch {}

impl Comparison<'_> {
    /// How many runs it takes.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.policies.len() * self.seeds.len()
    }

    /// How many nodes one run has at most.
    fn nodes(&self, world: &World) -> usize {
        match self.nodes {
            Nodes::Own => world.nodes.len(),
            Nodes::Fixed(nodes) => nodes,
            Nodes::Density(share) => world.nodes_for(share, self.node_milli),
            Nodes::Fewest(_) => world.nodes_for(SPARSEST, self.node_milli),
        }
    }

    /// Does it all; the rows are by policy, then by seed, whoever was done first. `told` gets how many runs are done.
    ///
    /// # Errors
    /// When a world would be too large, before anything is replayed.
    pub fn rows(&self, threads: usize, told: impl Fn(f64) + Sync) -> Result<Vec<Row>, TooMuch> {
        let plan = |seed: &u64| Plan { seed: *seed, largest_milli: self.node_milli, ..self.plan };
        let worlds: Vec<World> = match self.recorded {
            Some(world) => vec![world.clone(); self.seeds.len()],
            None => self.seeds.iter().map(|seed| draw(self.series, &plan(seed))).collect(),
        };
        for world in &worlds {
            let (nodes, steps) = (self.nodes(world), world.steps);
            if nodes.saturating_mul(steps) > MOST {
                return Err(TooMuch { nodes, steps });
            }
        }
        let jobs: Vec<(usize, Policy)> =
            self.policies.iter().flat_map(|policy| (0..worlds.len()).map(|world| (world, *policy))).collect();
        let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![0.0; jobs.len()]));
        let rows: Mutex<Vec<Option<Row>>> = Mutex::new(vec![None; jobs.len()]);
        let work = || {
            while let Some((place, (world, policy))) = {
                let place = next.fetch_add(1, Ordering::Relaxed);
                jobs.get(place).map(|job| (place, *job))
            } {
                let row = self.one(&worlds[world], self.seeds[world], policy, |part| {
                    let Ok(mut done) = done.lock() else { return };
                    done[place] = part;
                    told(done.iter().sum());
                });
                if let Ok(mut rows) = rows.lock() {
                    rows[place] = Some(row);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.max(1) {
                scope.spawn(work);
            }
            work();
        });
        Ok(rows.into_inner().unwrap_or_default().into_iter().flatten().collect())
    }

    fn one(&self, world: &World, seed: u64, policy: Policy, told: impl FnMut(f64)) -> Row {
        let nodes = self.nodes(world);
        if let Nodes::Fewest(enough) = self.nodes {
            let found = fewest(world, self.node_milli, nodes, policy, (self.options, enough), told);
            let (figures, course) = found.map(|outcome| (outcome.figures, outcome.course)).unzip();
            return Row { policy, seed, figures, course: course.unwrap_or_default() };
        }
        let nodes = if self.nodes == Nodes::Own { world.nodes.clone() } else { vec![self.node_milli; nodes] };
        let world = World { nodes, ..world.clone() };
        let outcome = run(&world, policy, self.options, told);
        Row { policy, seed, figures: Some(outcome.figures), course: outcome.course }
    }
}

/// The mean over seeds, figure by figure; `None` if one of them has none. Whole numbers are rounded.
#[must_use]
pub fn mean<'f>(all: impl ExactSizeIterator<Item = Option<&'f Figures>>) -> Option<Figures> {
    let count = all.len();
    let all: Vec<&Figures> = all.collect::<Option<_>>()?;
    if count == 0 {
        return None;
    }
    let float = |of: fn(&Figures) -> f64| all.iter().map(|figures| of(figures)).sum::<f64>() / count as f64;
    let whole = |of: fn(&Figures) -> usize| {
        (all.iter().map(|figures| of(figures)).sum::<usize>() as f64 / count as f64).round() as usize
    };
    Some(Figures {
        nodes: whole(|f| f.nodes),
        mean_use: float(|f| f.mean_use),
        over_target: float(|f| f.over_target),
        over_full: float(|f| f.over_full),
        not_served: float(|f| f.not_served),
        p99_use: float(|f| f.p99_use),
        peak_use: float(|f| f.peak_use),
        pods_pending: whole(|f| f.pods_pending),
        pending_hours: float(|f| f.pending_hours),
        moves: whole(|f| f.moves),
        moves_per_pod_day: float(|f| f.moves_per_pod_day),
        pods_disturbed: whole(|f| f.pods_disturbed),
        pods: whole(|f| f.pods),
        protection: all.iter().all(|f| f.protection.is_some()).then(|| Protection {
            pods_slowed: whole(|f| f.protection.map_or(0, |p| p.pods_slowed)),
            pods_slowed_by_all: whole(|f| f.protection.map_or(0, |p| p.pods_slowed_by_all)),
            over_full: float(|f| f.protection.map_or(0.0, |p| p.over_full)),
        }),
    })
}
