//! `loadline up --compare`: what does looking at load change? The same world twice, side by side.
//!
//! All have the same nodes and get the same workloads at the same time; what their pods use follows from the same
//! seed. A third of the nodes is busy before the workloads come. One scheduler looks at load, the other at requests alone. Both are measured against the same targets.
//!
//! Unless something else is asked for, it is the story of bursts: what pods will use is not known when they are placed, so
//! the first world also moves them, and its nodes protect themselves. The other one does neither.

use super::{metrics, options, signal};
use crate::args::{Scenario, Up};
use crate::out::{self, Detail, Output, bold, dim, line};
use anyhow::{Context, Result, bail};
use loadline_apiserver::{ApiServer, Config};
use loadline_services::rebalance::{self, Because};
use loadline_sim::world::Scheduler;
use loadline_sim::{Options, World};
use serde::Serialize;
use std::time::{Duration, Instant};

/// How long it runs unless told otherwise: in the story of bursts, and otherwise.
const STORY: Duration = Duration::from_secs(110);
const TIME: Duration = Duration::from_mins(1);
/// The CPUs of every node in the story of bursts, which is told of such.
const STORY_CPUS: i64 = 8;
/// Time between two lines on the way.
const PAGE: Duration = Duration::from_secs(10);

/// What came of one world.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Measured seconds over target, summed over nodes.
    pub node_seconds_over_target: u64,
    nodes_over_target_at_end: usize,
    pub worst_node: Option<Worst>,
    pods_pending_at_end: usize,
    pods_pending_at_most: usize,
    pods_placed: u64,
    /// Sent to nodes that were measured over their target at that moment.
    pods_sent_to_hot_nodes: u64,
    evictions: u64,
    /// By whoever moves pods away from nodes over their line.
    pods_moved: u64,
    /// By nodes that protect themselves.
    pods_slowed_down: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Worst {
    pub name: String,
    pub resource: String,
    /// Of what it has for pods; 1 is all of it.
    pub peak: f64,
}

impl Outcome {
    pub fn of(world: &World) -> Self {
        let tally = world.tally();
        Self {
            node_seconds_over_target: tally.node_seconds,
            nodes_over_target_at_end: tally.hot,
            worst_node: tally.peak.map(|peak| Worst {
                name: peak.node,
                resource: peak.resource,
                peak: peak.share.to_f64(),
            }),
            pods_pending_at_end: tally.pending,
            pods_pending_at_most: tally.pending_most,
            pods_placed: world.counts().scheduler.bound.get(),
            pods_sent_to_hot_nodes: tally.onto_hot,
            evictions: world.counts().scheduler.preempted.get(),
            pods_moved: ["cpu", "memory"]
                .map(|resource| world.counts().rebalance.moves.get_or_create(&Because { resource }).get())
                .iter()
                .sum(),
            pods_slowed_down: world.counts().agent.throttled.get(),
        }
    }

    fn cells(&self) -> [String; 9] {
        let worst = self.worst_node.as_ref();
        [
            self.node_seconds_over_target.to_string(),
            self.nodes_over_target_at_end.to_string(),
            worst.map_or_else(
                || "-".to_owned(),
                |w| format!("{}, {:.0}% {}", w.name, w.peak * 100.0, w.resource),
            ),
            format!("{} / {}", self.pods_pending_at_end, self.pods_pending_at_most),
            self.pods_placed.to_string(),
            self.pods_sent_to_hot_nodes.to_string(),
            self.evictions.to_string(),
            self.pods_moved.to_string(),
            self.pods_slowed_down.to_string(),
        ]
    }
}

/// What `-o json` and `-o yaml` print.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Comparison {
    seconds: u64,
    nodes: u32,
    workloads: u32,
    seed: u64,
    /// Are pods moved and nodes protected, beside being looked at?
    closed_loop: bool,
    load_aware: Outcome,
    /// The same without what was learned; only where that is what the scenario is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_learning: Option<Outcome>,
    requests_only: Outcome,
}

impl Comparison {
    /// What it comes to, in a sentence.
    fn gain(&self) -> String {
        let over = |outcome: &Outcome| outcome.node_seconds_over_target;
        let (ours, theirs) = (over(&self.load_aware), over(&self.requests_only));
        let (who, moved) = if self.closed_loop {
            ("Placing by load, moving and protecting", format!("; {} pods moved", self.load_aware.pods_moved))
        } else {
            ("Placing by load", String::new())
        };
        let change = match (ours, theirs) {
            (_, 0) => "by requests none was over either".to_owned(),
            (ours, theirs) if ours <= theirs => {
                format!("{} % less than by requests", (theirs - ours) * 100 / theirs)
            }
            (ours, theirs) => format!("{} % more than by requests", (ours - theirs) * 100 / theirs),
        };
        format!("{who}: {ours} node-seconds over target instead of {theirs}, {change}{moved}.")
    }

    fn columns(&self) -> Vec<(&'static str, &Outcome)> {
        let first = if self.closed_loop { "CLOSED LOOP" } else { "LOAD-AWARE" };
        let mut columns = vec![(first, &self.load_aware)];
        columns.extend(self.not_learning.as_ref().map(|outcome| ("NOT LEARNING", outcome)));
        columns.push(("REQUESTS ONLY", &self.requests_only));
        columns
    }
}

const ROWS: [&str; 9] = [
    "node-seconds over target",
    "nodes over target at the end",
    "worst node",
    "pods pending, end / at most",
    "pods placed",
    "pods sent to hot nodes",
    "evictions",
    "pods moved",
    "pods slowed down",
];

impl out::Answer for Comparison {
    const KIND: &'static str = "Comparison";

    fn table(&self, _: Detail) -> String {
        let columns: Vec<Vec<String>> = self
            .columns()
            .into_iter()
            .map(|(title, outcome)| std::iter::once(title.to_owned()).chain(outcome.cells()).collect())
            .collect();
        let names: Vec<String> = std::iter::once("").chain(ROWS).map(str::to_owned).collect();
        let width = |cells: &Vec<String>| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let row = |place: usize| {
            let cells = std::iter::once(&names).chain(&columns);
            let padded = cells.map(|cells| format!("{:<width$}", cells[place], width = width(cells)));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let rows = (0..names.len()).map(row).chain([String::new(), self.gain()]);
        rows.collect::<Vec<_>>().join("\n") + "\n"
    }

    fn document(&self) -> impl Serialize {
        self
    }
}

pub async fn run(args: &Up) -> Result<()> {
    if args.scenario == Some(Scenario::Overload) {
        bail!(
            "--scenario overload is about protection, which --compare leaves out; try --scenario underrated"
        );
    }
    if args.scenario == Some(Scenario::Introduction) {
        bail!("--scenario introduction compares by itself; try --scenario underrated");
    }
    if args.scenario == Some(Scenario::Totals) {
        bail!(
            "--scenario totals is about a fleet, and --compare about one cluster; try --scenario underrated"
        );
    }
    let story = match (args.scenario, args.workloads) {
        (None, None) => Some(Scenario::Bursts),
        (scenario, _) => scenario,
    };
    let is_closed_loop = story == Some(Scenario::Bursts);
    let args = Up { workloads: args.workloads.or(Some(0)), scenario: story, ..args.clone() };
    let usual = if is_closed_loop { STORY } else { TIME };
    let (time, quiet) = (args.time.unwrap_or(usual), matches!(args.output, Output::Json | Output::Yaml));
    let learning = args.scenario == Some(Scenario::Underrated);
    let mut worlds = Vec::new();
    for kind in [Kind::LoadAware, Kind::NotLearning, Kind::RequestsOnly] {
        if kind != Kind::NotLearning || learning {
            worlds.push((kind, start(&args, kind).await?));
        }
    }
    let started = Instant::now();
    let workloads = args.workloads.unwrap_or_default();
    if !quiet {
        let what = if learning {
            "The same world three times: looking at load with what was learned, without it, and at requests alone"
        } else if is_closed_loop {
            "The same world twice: placing by load, moving and protecting; and placing by requests alone"
        } else {
            "The same world twice: one scheduler looks at load, the other at requests alone"
        };
        line(&bold(what));
        line("");
        line(&format!("  nodes       {}, simulated, in each", args.nodes));
        if workloads > 0 {
            line(&format!("  workloads   {workloads}, coming one by one, the same in all"));
        }
        if is_closed_loop {
            line("  scenario    bursts: half a minute after the start, workloads want much more than before");
        }
        line(&format!("  time        {time:?}, or until Ctrl-C"));
        line("");
    }
    follow(&worlds, time, quiet, started).await;
    let outcome = |kind: Kind| worlds.iter().find(|(k, _)| *k == kind).map(|(_, world)| Outcome::of(world));
    let comparison = Comparison {
        seconds: started.elapsed().as_secs(),
        nodes: args.nodes,
        workloads,
        seed: args.seed.unwrap_or(1),
        closed_loop: is_closed_loop,
        load_aware: outcome(Kind::LoadAware).context("it was started")?,
        not_learning: outcome(Kind::NotLearning),
        requests_only: outcome(Kind::RequestsOnly).context("it was started")?,
    };
    for (_, world) in worlds {
        world.stop().await;
    }
    if !quiet {
        line("");
    }
    out::answer(&comparison, args.output)
}

/// How pods get their nodes in one of the worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    LoadAware,
    NotLearning,
    RequestsOnly,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::LoadAware => "load-aware",
            Self::NotLearning => "not learning",
            Self::RequestsOnly => "requests only",
        }
    }
}

/// Starts a world of that kind, with what the command line asks for.
pub async fn start(args: &Up, kind: Kind) -> Result<World> {
    let server = ApiServer::new(Config { seed: Some(args.seed.unwrap_or(1)), ..Config::default() });
    let scheduler = match kind {
        Kind::LoadAware | Kind::NotLearning => Scheduler::LoadAware,
        Kind::RequestsOnly => Scheduler::RequestsOnly,
    };
    let mut options = Options { scheduler, ..options(args)? };
    // Who goes by requests has no use for what is learned.
    options.learn = options.learn.filter(|_| kind == Kind::LoadAware);
    if args.scenario == Some(Scenario::Bursts) {
        options.machines.cpus = Some(STORY_CPUS);
        if kind == Kind::LoadAware {
            options.rebalance = Some(rebalance::Mode::Act);
            options.protect = Some(super::PROTECT_EVERY);
        }
    }
    let client = kube::Client::new(server.clone(), "default");
    World::start(client, &options, metrics(&server)).await.context("cannot start the nodes")
}

/// Until the time is over or somebody ends it.
async fn follow(worlds: &[(Kind, World)], time: Duration, quiet: bool, started: Instant) {
    let over = tokio::time::sleep(time);
    tokio::pin!(over);
    let ended = signal::ended();
    tokio::pin!(ended);
    let mut pages = tokio::time::interval_at(tokio::time::Instant::now() + PAGE, PAGE);
    loop {
        tokio::select! {
            () = &mut over => return,
            _ = &mut ended => return,
            _ = pages.tick() => if !quiet {
                let say = |(kind, world): &(Kind, World)| {
                    let (tally, running) = (world.tally(), world.running());
                    format!("{}: {running} running, {} pending, {} hot", kind.name(), tally.pending, tally.hot)
                };
                let stamp = dim(&format!("{:>6.1}s", started.elapsed().as_secs_f64()));
                line(&format!("{stamp} {}", worlds.iter().map(say).collect::<Vec<_>>().join("; ")));
            }
        }
    }
}

#[cfg(test)]
impl Outcome {
    /// One of which these figures matter.
    pub fn with(node_seconds: u64, worst: Option<(&str, f64)>) -> Self {
        Self {
            node_seconds_over_target: node_seconds,
            nodes_over_target_at_end: 2,
            worst_node: worst.map(|(name, peak)| Worst { name: name.into(), resource: "cpu".into(), peak }),
            pods_pending_at_end: 1,
            pods_pending_at_most: 4,
            pods_placed: 80,
            pods_sent_to_hot_nodes: 0,
            evictions: 0,
            pods_moved: 0,
            pods_slowed_down: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(node_seconds: u64, worst: Option<(&str, f64)>) -> Outcome {
        Outcome::with(node_seconds, worst)
    }

    #[test]
    fn both_worlds_are_in_one_table() {
        let comparison = Comparison {
            seconds: 60,
            nodes: 10,
            workloads: 16,
            seed: 1,
            closed_loop: false,
            load_aware: outcome(5, Some(("node-03", 0.71))),
            not_learning: None,
            requests_only: outcome(340, None),
        };
        let expected = "
                              LOAD-AWARE        REQUESTS ONLY
node-seconds over target      5                 340
nodes over target at the end  2                 2
worst node                    node-03, 71% cpu  -
pods pending, end / at most   1 / 4             1 / 4
pods placed                   80                80
pods sent to hot nodes        0                 0
evictions                     0                 0
pods moved                    0                 0
pods slowed down              0                 0

Placing by load: 5 node-seconds over target instead of 340, 98 % less than by requests.
";
        assert_eq!(format!("\n{}", out::Answer::table(&comparison, Detail::Brief)), expected);
        let three = Comparison { not_learning: Some(outcome(70, None)), ..comparison };
        let table = out::Answer::table(&three, Detail::Brief);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["LOAD-AWARE", "NOT", "LEARNING", "REQUESTS", "ONLY"]);
        assert_eq!(rows[1][3..], ["5", "70", "340"], "in the order of the columns");

        let load_aware = Outcome { pods_moved: 3, ..outcome(30, None) };
        let closed = |over: u64| Comparison {
            closed_loop: true,
            load_aware: load_aware.clone(),
            requests_only: outcome(over, None),
            not_learning: None,
            ..three
        };
        let closed = [closed(300), closed(20), closed(0)].map(|one| one.gain());
        let who = "Placing by load, moving and protecting: 30 node-seconds over target instead of";
        assert_eq!(closed[0], format!("{who} 300, 90 % less than by requests; 3 pods moved."));
        assert_eq!(closed[1], format!("{who} 20, 50 % more than by requests; 3 pods moved."));
        assert_eq!(closed[2], format!("{who} 0, by requests none was over either; 3 pods moved."));
    }
}
