//! `loadline up --compare`: what does looking at load change? The same world twice, side by side.
//!
//! All have the same nodes and get the same workloads at the same time; what their pods use follows from the same
//! seed. A third of the nodes is busy before the workloads come. One scheduler looks at load, the other at requests alone. Both are measured against the same targets.

use super::{metrics, options, signal};
use crate::args::{Scenario, Up};
use crate::out::{self, Detail, Output, bold, dim, line};
use anyhow::{Context, Result, bail};
use loadline_apiserver::{ApiServer, Config};
use loadline_sim::world::Scheduler;
use loadline_sim::{Options, World};
use serde::Serialize;
use std::time::{Duration, Instant};

/// How long it runs unless told otherwise.
const TIME: Duration = Duration::from_mins(1);
/// How many workloads unless told otherwise.
const WORKLOADS: u32 = 16;
/// Time between two lines on the way.
const PAGE: Duration = Duration::from_secs(10);

/// What came of one world.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    /// Measured seconds over target, summed over nodes.
    node_seconds_over_target: u64,
    worst_node: Option<Worst>,
    pods_pending_at_end: usize,
    pods_pending_at_most: usize,
    pods_placed: u64,
    /// Sent to nodes that were measured over their target at that moment.
    pods_sent_to_hot_nodes: u64,
    evictions: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Worst {
    name: String,
    resource: String,
    /// Of what it has for pods; 1 is all of it.
    peak: f64,
}

impl Outcome {
    fn of(world: &World) -> Self {
        let tally = world.tally();
        Self {
            node_seconds_over_target: tally.node_seconds,
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
        }
    }

    fn cells(&self) -> [String; 6] {
        let worst = self.worst_node.as_ref();
        [
            self.node_seconds_over_target.to_string(),
            worst.map_or_else(
                || "-".to_owned(),
                |w| format!("{}, {:.0}% {}", w.name, w.peak * 100.0, w.resource),
            ),
            format!("{} / {}", self.pods_pending_at_end, self.pods_pending_at_most),
            self.pods_placed.to_string(),
            self.pods_sent_to_hot_nodes.to_string(),
            self.evictions.to_string(),
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
    load_aware: Outcome,
    /// The same without what was learned; only where that is what the scenario is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_learning: Option<Outcome>,
    requests_only: Outcome,
}

impl Comparison {
    fn columns(&self) -> Vec<(&'static str, &Outcome)> {
        let mut columns = vec![("LOAD-AWARE", &self.load_aware)];
        columns.extend(self.not_learning.as_ref().map(|outcome| ("NOT LEARNING", outcome)));
        columns.push(("REQUESTS ONLY", &self.requests_only));
        columns
    }
}

const ROWS: [&str; 6] = [
    "node-seconds over target",
    "worst node",
    "pods pending, end / at most",
    "pods placed",
    "pods sent to hot nodes",
    "evictions",
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
        (0..names.len()).map(row).collect::<Vec<_>>().join("\n") + "\n"
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
    let usual = if args.scenario.is_some() { 0 } else { WORKLOADS };
    let args = Up { workloads: args.workloads.or(Some(usual)), ..args.clone() };
    let (time, quiet) = (args.time.unwrap_or(TIME), matches!(args.output, Output::Json | Output::Yaml));
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
        } else {
            "The same world twice: one scheduler looks at load, the other at requests alone"
        };
        line(&bold(what));
        line("");
        line(&format!("  nodes       {}, simulated, in each", args.nodes));
        if workloads > 0 {
            line(&format!("  workloads   {workloads}, coming one by one, the same in all"));
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
enum Kind {
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

async fn start(args: &Up, kind: Kind) -> Result<World> {
    let server = ApiServer::new(Config { seed: Some(args.seed.unwrap_or(1)), ..Config::default() });
    let scheduler = match kind {
        Kind::LoadAware | Kind::NotLearning => Scheduler::LoadAware,
        Kind::RequestsOnly => Scheduler::RequestsOnly,
    };
    let mut options = Options { scheduler, ..options(args)? };
    // Who goes by requests has no use for what is learned.
    options.learn = options.learn.filter(|_| kind == Kind::LoadAware);
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
mod tests {
    use super::*;

    fn outcome(node_seconds: u64, worst: Option<(&str, f64)>) -> Outcome {
        Outcome {
            node_seconds_over_target: node_seconds,
            worst_node: worst.map(|(name, peak)| Worst { name: name.into(), resource: "cpu".into(), peak }),
            pods_pending_at_end: 1,
            pods_pending_at_most: 4,
            pods_placed: 80,
            pods_sent_to_hot_nodes: 0,
            evictions: 0,
        }
    }

    #[test]
    fn both_worlds_are_in_one_table() {
        let comparison = Comparison {
            seconds: 60,
            nodes: 10,
            workloads: 16,
            seed: 1,
            load_aware: outcome(5, Some(("node-03", 0.71))),
            not_learning: None,
            requests_only: outcome(340, None),
        };
        let expected = "
                             LOAD-AWARE        REQUESTS ONLY
node-seconds over target     5                 340
worst node                   node-03, 71% cpu  -
pods pending, end / at most  1 / 4             1 / 4
pods placed                  80                80
pods sent to hot nodes       0                 0
evictions                    0                 0
";
        assert_eq!(format!("\n{}", out::Answer::table(&comparison, Detail::Brief)), expected);
        let three = Comparison { not_learning: Some(outcome(70, None)), ..comparison };
        let table = out::Answer::table(&three, Detail::Brief);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["LOAD-AWARE", "NOT", "LEARNING", "REQUESTS", "ONLY"]);
        assert_eq!(rows[1][3..], ["5", "70", "340"], "in the order of the columns");
    }
}
