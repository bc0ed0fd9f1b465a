//! `loadline up --compare`: what does looking at load change? The same world twice, side by side.
//!
//! Both have the same nodes and get the same workloads at the same time; what their pods use follows from the same
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
    requests_only: Outcome,
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
        let (aware, plain) = (self.load_aware.cells(), self.requests_only.cells());
        let mut rows = vec![[String::new(), "LOAD-AWARE".to_owned(), "REQUESTS ONLY".to_owned()]];
        rows.extend(ROWS.into_iter().zip(aware).zip(plain).map(|((name, a), p)| [name.to_owned(), a, p]));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (first, second) = (width(0), width(1));
        let row = |[name, a, p]: &[String; 3]| format!("{name:<first$}  {a:<second$}  {p}");
        rows.iter().map(row).collect::<Vec<_>>().join("\n") + "\n"
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
    let (aware, plain) = tokio::try_join!(start(&args, true), start(&args, false))?;
    let started = Instant::now();
    let workloads = args.workloads.unwrap_or_default();
    if !quiet {
        line(&bold("The same world twice: one scheduler looks at load, the other at requests alone"));
        line("");
        line(&format!("  nodes       {}, simulated, in each", args.nodes));
        line(&format!("  workloads   {workloads}, coming one by one, the same in both"));
        line(&format!("  time        {time:?}, or until Ctrl-C"));
        line("");
    }
    follow(&aware, &plain, time, quiet, started).await;
    let comparison = Comparison {
        seconds: started.elapsed().as_secs(),
        nodes: args.nodes,
        workloads,
        seed: args.seed.unwrap_or(1),
        load_aware: Outcome::of(&aware),
        requests_only: Outcome::of(&plain),
    };
    tokio::join!(aware.stop(), plain.stop());
    if !quiet {
        line("");
    }
    out::answer(&comparison, args.output)
}

async fn start(args: &Up, aware: bool) -> Result<World> {
    let server = ApiServer::new(Config { seed: Some(args.seed.unwrap_or(1)), ..Config::default() });
    let scheduler = if aware { Scheduler::LoadAware } else { Scheduler::RequestsOnly };
    let mut options = Options { scheduler, ..options(args)? };
    // Who goes by requests has no use for what is learned.
    options.learn = options.learn.filter(|_| aware);
    let client = kube::Client::new(server.clone(), "default");
    World::start(client, &options, metrics(&server)).await.context("cannot start the nodes")
}

/// Until the time is over or somebody ends it.
async fn follow(aware: &World, plain: &World, time: Duration, quiet: bool, started: Instant) {
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
                let say = |world: &World| {
                    let tally = world.tally();
                    format!("{} running, {} pending, {} hot", world.running(), tally.pending, tally.hot)
                };
                let stamp = dim(&format!("{:>6.1}s", started.elapsed().as_secs_f64()));
                line(&format!("{stamp} load-aware: {}; requests only: {}", say(aware), say(plain)));
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
    }
}
