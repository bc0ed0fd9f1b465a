//! How many bindings of Karmada a second are divided and written?
//!
//! Each side gets a control plane of its own with Karmada's definitions, the same clusters and the same bindings, all created
//! before it starts: Deployments of twenty replicas, by what fits in the twenty clusters of a region. Compared are:
//!
//! - a client that only makes the necessary writes, 32 bindings at a time: the clusters, the status
//! - karmada-scheduler at its defaults, and with a client that is not held back
//! - `loadline fleet --api karmada`
//!
//! A binding counts when the API server shows its condition `Scheduled`. What it was asked for is counted there, too: how many
//! writes and reads of bindings, and how many Events, for each binding.

use crate::rows::Row;
use crate::{PATIENCE, WRITERS, cost, megabytes};
use anyhow::{Context as _, Result, anyhow};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{Client, Config};
use loadline_core::object::Key;
use loadline_services::cluster::resource::{KARMADA_CLUSTERS, RESOURCE_BINDINGS};
use loadline_services::cluster::write::Patch;
use loadline_services::cluster::{Connection, Writer};
use loadline_testkit::ControlPlane;
use loadline_testkit::karmada::{Channel, Karmada, Scheduler, Version, deployment};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Clusters are in so many regions.
const REGIONS: usize = 5;
/// Of every binding.
const REPLICAS: usize = 20;
/// More than any side could make use of.
const NOT_HELD_BACK: [&str; 2] = ["--kube-api-qps=10000", "--kube-api-burst=10000"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Writes,
    Defaults,
    Best,
    Ours,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::Writes, Self::Defaults, Self::Best, Self::Ours];

    /// What it is called on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Writes => "writes",
            Self::Defaults => "karmada",
            Self::Best => "karmada-best",
            Self::Ours => "loadline",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Writes => "only writes",
            Self::Defaults => "karmada-scheduler",
            Self::Best => "karmada-scheduler, unlimited",
            Self::Ours => "loadline fleet --api karmada",
        }
    }
}

/// Measures the sides that are named, or all.
pub fn run(runtime: &tokio::runtime::Runtime, words: &[String], numbers: &[usize]) -> Result<()> {
    let clusters = numbers.first().copied().unwrap_or(100);
    let bindings = numbers.get(1).copied().unwrap_or(1_000);
    let named = |side: &Side| words.iter().any(|word| word == side.word());
    let any = Side::ALL.iter().any(named);
    println!("{bindings} bindings over {clusters} clusters; requests and Events: of each binding");
    println!(
        "{:<28} {:>10} {:>9} {:>6} {:>7} {:>11} {:>8} {:>7}",
        "side", "bindings/s", "of writes", "MB", "CPU s", "servers' ms", "requests", "Events"
    );
    let mut most = None;
    for side in Side::ALL.into_iter().filter(|side| !any || named(side)) {
        let Measured { rate, process, servers, requests, events } =
            runtime.block_on(throughput(side, clusters, bindings))?;
        Row { bench: "bindings", side: side.name(), rate, megabytes: megabytes(&process), p99: None }
            .keep()?;
        if side == Side::Writes {
            most = Some(rate);
        }
        let share = most.map_or_else(|| "-".to_owned(), |most: f64| format!("{:.2}", rate / most));
        println!(
            "{:<28} {rate:>10.0} {share:>9} {process} {servers:>11.2} {requests:>8.2} {events:>7.2}",
            side.name()
        );
    }
    Ok(())
}

struct Measured {
    /// Bindings a second, between the first tenth and the last.
    rate: f64,
    /// Memory and CPU time of whoever decided.
    process: String,
    /// CPU time of the servers for each binding, in milliseconds.
    servers: f64,
    /// About bindings, and Events, for each binding.
    requests: f64,
    events: f64,
}

/// Whoever decides; ends with the value.
enum Decider<'a> {
    Nobody,
    Theirs(Scheduler<'a>),
    Ours(Child),
}

impl<'a> Decider<'a> {
    fn start(side: Side, karmada: Karmada<'a>, plane: &ControlPlane) -> Result<Self> {
        // What a test wants of it costs time: estimators, and much to say.
        let usual = ["--enable-scheduler-estimator=false", "--v=0"];
        let theirs = |more: &[&str]| -> Result<Self> {
            let flags = [&usual[..], more].concat();
            Ok(Self::Theirs(karmada.scheduler(Version::V1_18, &Channel::Plain, &flags)?))
        };
        match side {
            Side::Writes => Ok(Self::Nobody),
            Side::Defaults => theirs(&[]),
            Side::Best => theirs(&NOT_HELD_BACK),
            Side::Ours => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
                command.args(["fleet", "--api", "karmada", "--kubeconfig"]).arg(plane.kubeconfig());
                Ok(Self::Ours(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?))
            }
        }
    }

    fn cost(&self) -> String {
        cost(match self {
            Self::Nobody => None,
            Self::Theirs(theirs) => theirs.running().pid(),
            Self::Ours(ours) => Some(ours.id()),
        })
    }
}

impl Drop for Decider<'_> {
    fn drop(&mut self) {
        if let Self::Ours(ours) = self {
            let _ = ours.kill();
            let _ = ours.wait();
        }
    }
}

async fn throughput(side: Side, clusters: usize, bindings: usize) -> Result<Measured> {
    let plane = ControlPlane::setup().start()?;
    let karmada = Karmada::install(&plane)?;
    let config = kube::config::Kubeconfig::read_from(plane.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await?;
    let writer = Writer::new(Connection::new(Client::try_from(config)?), "bench");
    let all = stream::iter(0..clusters).map(|number| cluster(&writer, number));
    all.buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;
    let all = stream::iter(0..bindings).map(|number| binding(&writer, number));
    all.buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;

    let (before, cpu) = (Asked::read(&plane)?, plane.cpu_seconds());
    let decider = Decider::start(side, karmada, &plane)?;
    let rate = std::thread::scope(|scope| -> Result<f64> {
        let watched = scope.spawn(|| watch(&plane, bindings));
        if side == Side::Writes {
            let all = stream::iter(0..bindings).map(|number| write(&writer, number, clusters));
            let all = all.buffer_unordered(WRITERS).try_collect::<Vec<_>>();
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(all))?;
        }
        watched.join().map_err(|_| anyhow!("the watch ended"))?
    })?;
    let (process, asked) = (decider.cost(), Asked::read(&plane)?);
    let each = |from: u64, to: u64| (to - from) as f64 / bindings as f64;
    Ok(Measured {
        rate,
        process,
        servers: (plane.cpu_seconds() - cpu) * 1e3 / bindings as f64,
        requests: each(before.bindings, asked.bindings),
        events: each(before.events, asked.events),
    })
}

fn name(number: usize) -> String {
    format!("c{number:05}")
}

async fn cluster(writer: &Writer, number: usize) -> Result<()> {
    let failed = |error| anyhow!("{error}");
    let cluster = json!({"apiVersion": KARMADA_CLUSTERS.api_version(), "kind": KARMADA_CLUSTERS.kind,
        "metadata": {"name": name(number), "labels": {"region": format!("r{}", number % REGIONS)}},
        "spec": {"syncMode": "Push"}});
    writer.create(KARMADA_CLUSTERS, "", &cluster).await.map_err(failed)?;
    let enabled =
        json!([{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}]);
    let ready = json!({"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let has = json!({"cpu": (2_000 + number % 50).to_string(), "memory": "64Ti", "pods": "110000"});
    let status = json!({"status": {"apiEnablements": enabled, "conditions": [ready],
        "resourceSummary": {"allocatable": has}}});
    let key = Key::new("", name(number));
    writer.patch(KARMADA_CLUSTERS.status(), &key, Patch::Merge, &status).await.map(drop).map_err(failed)
}

/// Divided by what fits, over the clusters of a region.
fn placement(number: usize) -> Value {
    json!({
        "clusterAffinity": {"labelSelector": {"matchLabels": {"region": format!("r{}", number % REGIONS)}}},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"}},
    })
}

async fn binding(writer: &Writer, number: usize) -> Result<()> {
    let asks = json!({"resourceRequest": {"cpu": "100m", "memory": "128Mi"}});
    let binding =
        deployment(&format!("b{number:05}"), REPLICAS.try_into().unwrap(), &asks, &placement(number));
    let made = writer.create(RESOURCE_BINDINGS, "default", &binding).await;
    made.map(drop).map_err(|error| anyhow!("{error}"))
}

/// What must be written for a binding, by somebody who decides nothing.
async fn write(writer: &Writer, number: usize, clusters: usize) -> Result<()> {
    let failed = |error| anyhow!("{error}");
    let key = Key::new("default", format!("b{number:05}"));
    let within = clusters / REGIONS;
    let target = |at: usize| json!({"name": name((at % within) * REGIONS + number % REGIONS), "replicas": 1});
    let targets: Vec<Value> = (0..REPLICAS.min(within)).map(target).collect();
    let change = loadline_api::karmada::decided(&targets, &placement(number).to_string());
    writer.patch(RESOURCE_BINDINGS.whole(), &key, Patch::Merge, &change).await.map_err(failed)?;
    let condition = json!({"type": "Scheduled", "status": "True", "reason": "Success",
        "message": "Binding has been scheduled successfully.", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"conditions": [condition], "schedulerObservedGeneration": 2,
        "lastScheduledTime": "2026-01-01T00:00:00Z"}});
    let made = writer.patch(RESOURCE_BINDINGS.status(), &key, Patch::Merge, &status).await;
    made.map(drop).map_err(failed)
}

/// When the first tenth and the last of so many bindings were scheduled, and how many lie between.
fn watch(plane: &ControlPlane, bindings: usize) -> Result<f64> {
    let path = format!("{}?watch=1", RESOURCE_BINDINGS.collection("default"));
    let (mut seen, mut first, begun) = (BTreeSet::new(), None, Instant::now());
    // The API server ends watches of a kind that was defined a moment ago. A new one begins with everything that is there.
    while begun.elapsed() < PATIENCE {
        for event in plane.watch(&path, PATIENCE)? {
            let event = event?;
            let conditions = event.pointer("/object/status/conditions").and_then(Value::as_array);
            let scheduled = |one: &Value| one["type"] == "Scheduled" && one["status"] == "True";
            if !conditions.is_some_and(|all| all.iter().any(scheduled)) {
                continue;
            }
            seen.insert(event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned());
            if seen.len() == bindings / 10 && first.is_none() {
                first = Some((Instant::now(), seen.len()));
            }
            if seen.len() == bindings {
                let (from, before) = first.context("there are ten at least")?;
                return Ok((bindings - before) as f64 / from.elapsed().as_secs_f64());
            }
        }
    }
    Err(anyhow!("only {} of {bindings} were scheduled", seen.len()))
}

/// What an API server was asked for so far, but for watches, which it counts when they end.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// Everything about bindings.
    bindings: u64,
    events: u64,
}

impl Asked {
    fn read(plane: &ControlPlane) -> Result<Self> {
        let reply = plane.request("GET", "/metrics", None)?;
        let mut asked = Self::default();
        for line in String::from_utf8_lossy(&reply.body).lines() {
            let Some(labels) = line.strip_prefix("apiserver_request_total{") else { continue };
            let count = line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count")]
            let count = count.unwrap_or_default() as u64;
            if labels.contains("resource=\"resourcebindings\"") {
                asked.bindings += count;
            } else if labels.contains("resource=\"events\"") {
                asked.events += count;
            }
        }
        Ok(asked)
    }
}
