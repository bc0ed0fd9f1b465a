//! How many placements a second are decided and published on a real kube-apiserver, and how soon is a change? How many bindings?
//! `cargo xtask bench fleet`
//!
//! `-- placements`, `-- changes` or `-- bindings` measures one of the three, and `-- bindings SIDE...` only these sides of
//! `writes`, `karmada`, `karmada-best` and `loadline`. Numbers are other sizes: `-- placements 1000 300` and
//! `-- bindings 100 1000` are the usual ones, clusters first. What bindings are measured by is in [`bindings`]; placements:
//!
//! Each side gets a control plane of its own (etcd and kube-apiserver on this machine, which share its cores) with Open
//! Cluster Management's definitions, the same clusters and the same placements, all created before it starts. Compared are:
//!
//! - a client that only makes the necessary writes, 32 placements at a time: a decision, its status, the placement's status;
//!   with many connections, and with one as ours has
//! - Open Cluster Management's placement controller, its client not held back
//! - `loadline fleet --api ocm`
//!
//! Then, with 1 000 placements over 1 000 clusters that all weigh CPU, a cluster's status changes: how long until the decision
//! that follows from it is seen by a watch?
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails ends; counts are small"
)]

#[path = "fleet/bindings.rs"]
mod bindings;
#[path = "common/rows.rs"]
mod rows;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{Client, Config};
use loadline_core::object::Key;
use loadline_services::cluster::resource::{
    MANAGED_CLUSTER_SET_BINDINGS, MANAGED_CLUSTER_SETS, MANAGED_CLUSTERS, PLACEMENT_DECISIONS, PLACEMENTS,
};
use loadline_services::cluster::write::Patch;
use loadline_services::cluster::{Connection, Resource, Writer};
use loadline_testkit::ControlPlane;
use loadline_testkit::ocm::{Controller, Ocm};
use rows::Row;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Objects made at once.
const WRITERS: usize = 32;
const PATIENCE: Duration = Duration::from_mins(10);
/// What can be measured.
const PARTS: [&str; 3] = ["placements", "changes", "bindings"];
/// How often a cluster changes.
const CHANGES: usize = 20;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let (numbers, words): (Vec<String>, Vec<String>) =
        args.into_iter().partition(|arg| arg.parse::<usize>().is_ok());
    let numbers: Vec<usize> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    let known: Vec<&str> = PARTS.into_iter().chain(bindings::Side::ALL.map(bindings::Side::word)).collect();
    if let Some(word) = words.iter().find(|word| !known.contains(&word.as_str())) {
        bail!("{word:?} given, expected numbers and {}", known.join(", "));
    }
    let asked = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    let runtime = tokio::runtime::Runtime::new()?;
    if asked("placements") {
        measure_placements(&runtime, &numbers)?;
    }
    if asked("changes") {
        measure_changes(&runtime, &numbers)?;
    }
    if asked("bindings") {
        bindings::run(&runtime, &words, if words.is_empty() { &[] } else { &numbers })?;
    }
    Ok(())
}

fn measure_placements(runtime: &tokio::runtime::Runtime, numbers: &[usize]) -> Result<()> {
    let clusters = numbers.first().copied().unwrap_or(1_000);
    let placements = numbers.get(1).copied().unwrap_or(300);
    println!("{placements} placements over {clusters} clusters");
    println!(
        "{:<28} {:>12} {:>9} {:>6} {:>7} {:>11}",
        "side", "placements/s", "of writes", "MB", "CPU s", "servers' ms"
    );
    let mut most = None;
    for side in [Side::Writes, Side::Theirs, Side::Ours] {
        let (rate, process, servers) = runtime.block_on(throughput(side, clusters, placements))?;
        Row { bench: "placements", side: side.name(), rate, megabytes: megabytes(&process), p99: None }
            .keep()?;
        let most = *most.get_or_insert(rate);
        println!("{:<28} {rate:>12.0} {:>9.2} {process} {servers:>11.2}", side.name(), rate / most);
    }
    Ok(())
}

fn measure_changes(runtime: &tokio::runtime::Runtime, numbers: &[usize]) -> Result<()> {
    let clusters = numbers.first().copied().unwrap_or(1_000);
    println!("{clusters} placements over {clusters} clusters, one cluster changes {CHANGES} times");
    println!("{:<28} {:>8} {:>8}", "side", "p50 ms", "most ms");
    for side in [Side::Theirs, Side::Ours] {
        let mut waits = runtime.block_on(latency(side, clusters))?;
        waits.sort_unstable();
        let ms = |at: Duration| at.as_secs_f64() * 1e3;
        println!("{:<28} {:>8.1} {:>8.1}", side.name(), ms(waits[CHANGES / 2]), ms(waits[CHANGES - 1]));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Writes,
    Theirs,
    Ours,
}

impl Side {
    fn only_writes(self) -> bool {
        self == Self::Writes
    }

    fn name(self) -> &'static str {
        match self {
            Self::Writes => "only writes",
            Self::Theirs => "OCM's placement controller",
            Self::Ours => "loadline fleet --api ocm",
        }
    }
}

/// Whoever decides; ends with the value.
enum Decider<'a> {
    Nobody,
    Theirs(Controller<'a>),
    Ours(Child),
}

impl<'a> Decider<'a> {
    fn start(side: Side, ocm: Ocm<'a>) -> Result<Self> {
        Ok(match side {
            Side::Writes => Self::Nobody,
            Side::Theirs => Self::Theirs(ocm.controller()?),
            Side::Ours => {
                let kubeconfig = ocm.plane().kubeconfig();
                let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
                command.args(["fleet", "--api", "ocm", "--kubeconfig"]).arg(kubeconfig);
                Self::Ours(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
            }
        })
    }

    /// Memory at most, and CPU time so far.
    fn cost(&self) -> String {
        cost(match self {
            Self::Nobody => None,
            Self::Theirs(theirs) => theirs.running().pid(),
            Self::Ours(ours) => Some(ours.id()),
        })
    }
}

/// Memory at most, and CPU time so far, of a process; columns of 6 and 7.
fn cost(pid: Option<u32>) -> String {
    let Some(pid) = pid else { return format!("{:>6} {:>7}", "-", "-") };
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let status = read("status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    let stat = read("stat");
    // The name, in brackets, may have blanks; after it the 12th and 13th are its own and the kernel's, in hundredths.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let cpu = fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0;
    format!("{:>6} {cpu:>7.1}", kib.unwrap_or_default() * 1024 / 1_000_000)
}

/// The first column of a cost.
fn megabytes(cost: &str) -> Option<f64> {
    cost.split_whitespace().next()?.parse().ok()
}

impl Drop for Decider<'_> {
    fn drop(&mut self) {
        if let Self::Ours(ours) = self {
            let _ = ours.kill();
            let _ = ours.wait();
        }
    }
}

/// A hub with clusters, and a client that is not held back.
struct Stage<'a> {
    ocm: Ocm<'a>,
    writer: Writer,
}

fn object(of: Resource, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": of.api_version(), "kind": of.kind, "metadata": {"name": name}, "spec": spec})
}

fn name(number: usize) -> String {
    format!("c{number:05}")
}

impl<'a> Stage<'a> {
    async fn new(plane: &'a ControlPlane, clusters: usize) -> Result<Self> {
        let ocm = Ocm::install(plane)?;
        ocm.namespace("team")?;
        let config = kube::config::Kubeconfig::read_from(plane.kubeconfig())?;
        let config =
            Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await?;
        let writer = Writer::new(Connection::new(Client::try_from(config)?), "bench");
        let stage = Self { ocm, writer };
        let set = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
        stage.create(MANAGED_CLUSTER_SETS, "", object(MANAGED_CLUSTER_SETS, "all", &set)).await?;
        let binding = object(MANAGED_CLUSTER_SET_BINDINGS, "all", &json!({"clusterSet": "all"}));
        stage.create(MANAGED_CLUSTER_SET_BINDINGS, "team", binding).await?;
        let make = |number: usize| {
            let stage = &stage;
            async move {
                let mut cluster = object(MANAGED_CLUSTERS, &name(number), &json!({"hubAcceptsClient": true}));
                cluster["metadata"]["labels"] = json!({"region": format!("r{}", number % 5)});
                stage.create(MANAGED_CLUSTERS, "", cluster).await?;
                stage.cpus(number, 10 + number % 50).await
            }
        };
        stream::iter(0..clusters).map(make).buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;
        Ok(stage)
    }

    async fn create(&self, of: Resource, namespace: &str, object: Value) -> Result<()> {
        self.writer.create(of, namespace, &object).await.map(drop).map_err(|error| anyhow!("{error}"))
    }

    /// A cluster has so many.
    async fn cpus(&self, cluster: usize, cpus: usize) -> Result<()> {
        let has = json!({"cpu": cpus.to_string(), "memory": "64Gi"});
        let status =
            json!({"status": {"allocatable": has, "capacity": has, "version": {}, "conditions": []}});
        let key = Key::new("", name(cluster));
        let made = self.writer.patch(MANAGED_CLUSTERS.status(), &key, Patch::Merge, &status).await;
        made.map(drop).map_err(|error| anyhow!("{error}"))
    }

    async fn placements(&self, specs: impl Iterator<Item = Value>) -> Result<()> {
        let make = |(number, spec): (usize, Value)| async move {
            self.create(PLACEMENTS, "team", object(PLACEMENTS, &format!("p{number:05}"), &spec)).await
        };
        stream::iter(specs.enumerate()).map(make).buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// When the first tenth and the last of so many placements had a status, and how many lie between.
    fn rate(&self, placements: usize) -> Result<f64> {
        let path = format!("{}?watch=1", PLACEMENTS.collection("team"));
        let mut seen = std::collections::BTreeSet::new();
        let mut first = None;
        for event in self.ocm.plane().watch(&path, PATIENCE)? {
            let event = event?;
            if event.pointer("/object/status/conditions/0").is_none() {
                continue;
            }
            seen.insert(event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            if seen.len() == placements / 10 && first.is_none() {
                first = Some((Instant::now(), seen.len()));
            }
            if seen.len() == placements {
                let (from, before) = first.context("there are ten at least")?;
                return Ok((placements - before) as f64 / from.elapsed().as_secs_f64());
            }
        }
        Err(anyhow!("only {} of {placements} were decided", seen.len()))
    }
}

/// Twenty clusters of a region each, by OCM's own weights.
fn usual(number: usize) -> Value {
    let region = json!({"matchLabels": {"region": format!("r{}", number % 5)}});
    json!({"numberOfClusters": 20, "predicates": [{"requiredClusterSelector": {"labelSelector": region}}]})
}

/// Placements a second; what whoever decides costs; CPU time of the servers for each placement, in milliseconds.
async fn throughput(side: Side, clusters: usize, placements: usize) -> Result<(f64, String, f64)> {
    let plane = ControlPlane::setup().start()?;
    let stage = Stage::new(&plane, clusters).await?;
    stage.placements((0..placements).map(usual)).await?;
    let writer = stage.writer.clone();
    let before = plane.cpu_seconds();
    let decider = Decider::start(side, stage.ocm)?;
    let rate = std::thread::scope(|scope| -> Result<f64> {
        let watched = scope.spawn(|| stage.rate(placements));
        if side.only_writes() {
            let all = stream::iter(0..placements).map(|number| write(&writer, number));
            let all = all.buffer_unordered(WRITERS).try_collect::<Vec<_>>();
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(all))?;
        }
        watched.join().map_err(|_| anyhow!("the watch ended"))?
    })?;
    let servers = (plane.cpu_seconds() - before) * 1e3 / placements as f64;
    Ok((rate, decider.cost(), servers))
}

/// What must be written for a placement, by somebody who decides nothing.
async fn write(writer: &Writer, number: usize) -> Result<()> {
    let failed = |error| anyhow!("{error}");
    let placement = format!("p{number:05}");
    let decision = format!("{placement}-decision-1");
    let group = "cluster.open-cluster-management.io";
    let labels = json!({format!("{group}/placement"): placement, format!("{group}/decision-group-index"): "0",
        format!("{group}/decision-group-name"): ""});
    let made = json!({"apiVersion": PLACEMENT_DECISIONS.api_version(), "kind": PLACEMENT_DECISIONS.kind,
        "metadata": {"name": decision, "labels": labels}});
    writer.create(PLACEMENT_DECISIONS, "team", &made).await.map_err(failed)?;
    let chosen: Vec<Value> =
        (0..20).map(|at| json!({"clusterName": name(at * 5 + number % 5), "reason": ""})).collect();
    let status = json!({"status": {"decisions": chosen}});
    let key = Key::new("team", &*decision);
    writer.patch(PLACEMENT_DECISIONS.status(), &key, Patch::Merge, &status).await.map_err(failed)?;
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"numberOfSelectedClusters": 20, "decisionGroups": [
        {"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": [decision], "clusterCount": 20}],
        "conditions": [condition("PlacementSatisfied", "True", "AllDecisionsScheduled"),
            condition("PlacementMisconfigured", "False", "Succeedconfigured")]}});
    let key = Key::new("team", &*placement);
    writer.patch(PLACEMENTS.status(), &key, Patch::Merge, &status).await.map_err(failed)?;
    Ok(())
}

/// All weigh CPU; the first follows it, the others are steady.
fn by_cpu(number: usize) -> Value {
    let weigh = |what: &str, weight: i64| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": what}, "weight": weight});
    let mut weights = vec![weigh("ResourceAllocatableCPU", 1)];
    if number > 0 {
        weights.push(weigh("Steady", 5));
    }
    json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": weights}})
}

/// How long each change took to be published.
async fn latency(side: Side, count: usize) -> Result<Vec<Duration>> {
    let plane = ControlPlane::setup().start()?;
    let stage = Stage::new(&plane, count).await?;
    stage.placements((0..count).map(by_cpu)).await?;
    let _decider = Decider::start(side, stage.ocm)?;
    stage.rate(count)?;
    let path = format!(
        "{}?watch=1&fieldSelector=metadata.name%3Dp00000-decision-1",
        PLACEMENT_DECISIONS.collection("team")
    );
    let mut events = plane.watch(&path, PATIENCE)?;
    let mut waits = Vec::new();
    for change in 0..=CHANGES {
        let best = change % 7;
        let begun = Instant::now();
        stage.cpus(best, 1_000 + change).await?;
        loop {
            let event = events.next().context("the watch ended")??;
            ensure!(begun.elapsed() < PATIENCE, "the change was not published");
            if event
                .pointer("/object/status/decisions/0/clusterName")
                .is_some_and(|chosen| *chosen == name(best))
            {
                break;
            }
        }
        // The first one may find it still at work.
        if change > 0 {
            waits.push(begun.elapsed());
        }
    }
    Ok(waits)
}
