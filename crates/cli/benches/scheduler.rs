//! How many pods a second are placed on a real kube-apiserver, and what does that cost? `cargo xtask bench scheduler`
//!
//! Each side gets a control plane of its own (etcd and kube-apiserver on this machine, which share its cores), the same
//! nodes, and the same pods, all created before it starts. Bindings are counted by the API server itself. Compared are:
//!
//! - a client that only binds, 32 at a time, and decides nothing: the most this API server can do
//! - kube-scheduler, its client not held back (`qps`, `burst`)
//! - `loadline scheduler`, by requests alone and by load
//! - kube-scheduler with an extender that lets everything through, and with ours, at the same settings; ours as a filter alone
//! - kube-scheduler with nodes that `loadline annotator --taints` has marked: every third high, every ninth over
//!
//! `-- NODES PODS [SIDE…]` measures at other sizes than 5 000 and 5 000, or only some sides; `every-node` among them has
//! kube-scheduler look at all nodes for each pod (`percentageOfNodesToScore: 100`), as our examples of its configuration do.
//! `-- latency NODES` measures how long a pod waits from created to bound when 100 come a second.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails ends; counts are small"
)]

#[path = "common/rows.rs"]
mod rows;

use anyhow::{Context as _, Result, bail, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hdrhistogram::Histogram;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Config};
use loadline_services::cluster::resource::{NODES, PODS};
use loadline_services::cluster::{Connection, Writer};
use loadline_testkit::{ControlPlane, parts};
use rows::Row;
use serde_json::{Value, from_value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What has kube-scheduler look at all nodes for each pod.
const EVERY_NODE: &str = "every-node";
/// Objects made, or pods bound, at once.
const WRITERS: usize = 32;
const PATIENCE: Duration = Duration::from_mins(10);

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let runtime = tokio::runtime::Runtime::new()?;
    if args.first().is_some_and(|arg| arg == "latency") {
        let nodes = args.get(1).map_or(Ok(1_000), |arg| arg.parse()).context("NODES is a number")?;
        for side in [Side::Kube, Side::Ours] {
            runtime.block_on(latency(side, nodes))?;
        }
        return Ok(());
    }
    let numbers: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let (nodes, pods) = (numbers.first().copied().unwrap_or(5_000), numbers.get(1).copied().unwrap_or(5_000));
    let named: Vec<&String> = args.iter().filter(|arg| arg.parse::<usize>().is_err()).collect();
    let every_node = named.iter().any(|name| **name == EVERY_NODE);
    let named: Vec<&String> = named.into_iter().filter(|name| **name != EVERY_NODE).collect();
    println!("{nodes} nodes, {pods} pods{}", if every_node { ", every node looked at" } else { "" });
    println!("{:<34} {:>8} {:>8} {:>8} {:>10}", "side", "pods/s", "of bind", "MB", "CPU s");
    let mut most = None;
    for side in Side::ALL {
        if !named.is_empty() && !named.iter().any(|name| **name == side.name()) {
            continue;
        }
        let Measured { rate, megabytes, cpu, all, answers } =
            runtime.block_on(throughput(side, [nodes, pods], every_node))?;
        Row { bench: "scheduler", side: side.name(), rate, megabytes: all, p99: None }.keep()?;
        if side == Side::Bind {
            most = Some(rate);
        }
        let share = most.map_or_else(|| "-".to_owned(), |most: f64| format!("{:.2}", rate / most));
        println!("{:<34} {rate:>8.0} {share:>8} {megabytes:>8} {cpu:>10}{answers}", side.name());
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Bind,
    Kube,
    Ours,
    OursByLoad,
    KubeNoOp,
    KubeOurs,
    KubeFilterOnly,
    KubeTaints,
}

impl Side {
    const ALL: [Self; 8] = [
        Self::Bind,
        Self::Kube,
        Self::Ours,
        Self::OursByLoad,
        Self::KubeNoOp,
        Self::KubeOurs,
        Self::KubeFilterOnly,
        Self::KubeTaints,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Bind => "bind-only",
            Self::Kube => "kube-scheduler",
            Self::Ours => "loadline-requests",
            Self::OursByLoad => "loadline",
            Self::KubeNoOp => "kube-scheduler+no-op-extender",
            Self::KubeOurs => "kube-scheduler+loadline-extender",
            Self::KubeFilterOnly => "kube-scheduler+loadline-filter",
            Self::KubeTaints => "kube-scheduler+loadline-taints",
        }
    }
}

struct Measured {
    /// Pods a second, between the first tenth and the last.
    rate: f64,
    /// Of the scheduler, and of the extender where there is one.
    megabytes: String,
    /// Seconds of CPU from its start until the last pod was bound, of the same.
    cpu: String,
    /// Memory of all of them together, where there are any.
    all: Option<f64>,
    /// How long our extender took to answer, where there is one.
    answers: String,
}

impl Measured {
    fn new(rate: f64, processes: &[&Process]) -> Self {
        let joined = |all: Vec<String>| if all.is_empty() { "-".to_owned() } else { all.join("+") };
        let megabytes = joined(processes.iter().map(|process| process.megabytes().to_string()).collect());
        let cpu = joined(processes.iter().map(|process| format!("{:.1}", process.cpu_seconds())).collect());
        let all = processes.iter().map(|process| process.megabytes()).sum::<u64>() as f64;
        let all = (!processes.is_empty()).then_some(all);
        Self { rate, megabytes, cpu, all, answers: String::new() }
    }
}

/// Ends with the value.
struct Process(Child);

impl Process {
    fn start(program: &Path, args: &[String]) -> Result<Self> {
        let child = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| format!("{} does not start", program.display()))?))
    }

    fn megabytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or_default() * 1024 / 1_000_000
    }

    /// Of its own and of the kernel for it.
    fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        // The name, in brackets, may have blanks; after it the 12th and 13th are these, in hundredths.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A control plane with nodes, and clients that are not held back.
struct Stage {
    plane: ControlPlane,
    client: Client,
    writer: Writer,
}

impl Stage {
    async fn new(nodes: usize, taints: fn(usize) -> Value) -> Result<Self> {
        let plane = ControlPlane::setup().start()?;
        let config = kube::config::Kubeconfig::read_from(plane.kubeconfig())?;
        let config =
            Config::from_custom_kubeconfig(config, &kube::config::KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let writer = Writer::new(Connection::new(client.clone()), "bench");
        let stage = Self { plane, client, writer };
        let has = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
        let make = |i: usize| {
            let at = jiff::Timestamp::now();
            let used = format!("0.{:02}000,{at}", i % 50);
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": format!("node-{i:05}"),
                "labels": {"kubernetes.io/hostname": format!("node-{i:05}"), "topology.kubernetes.io/zone": format!("z{}", i % 3)},
                "annotations": {"cpu_usage_avg_5m": used, "mem_usage_avg_5m": used}},
                "spec": {"taints": taints(i)},
                "status": {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]}});
            let writer = stage.writer.clone();
            async move { writer.create(NODES, "", &node).await.map_err(|error| anyhow::anyhow!("{error}")) }
        };
        stream::iter(0..nodes).map(make).buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;
        Ok(stage)
    }

    /// What the annotator would have written on nodes of which some are hot.
    fn load_taints(i: usize) -> Value {
        match i {
            i if i.is_multiple_of(9) => {
                json!([{"key": "loadline.dev/load", "value": "over", "effect": "NoSchedule"}])
            }
            i if i.is_multiple_of(3) => {
                json!([{"key": "loadline.dev/load", "value": "high", "effect": "PreferNoSchedule"}])
            }
            _ => json!([]),
        }
    }

    fn pod(i: usize) -> Value {
        let asks = json!({"requests": {"cpu": "100m", "memory": "128Mi"}});
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("pod-{i:05}"), "namespace": "default", "labels": {"app": format!("web-{}", i % 20)}},
            "spec": {"schedulerName": "bench", "containers": [{"name": "main", "image": "image", "resources": asks}]}})
    }

    async fn pods(&self, count: usize) -> Result<()> {
        let make = |i: usize| {
            let writer = self.writer.clone();
            async move {
                let made = writer.create(PODS, "default", &Self::pod(i)).await;
                made.map_err(|error| anyhow::anyhow!("{error}"))
            }
        };
        stream::iter(0..count).map(make).buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;
        Ok(())
    }

    /// How many bindings the API server has made.
    fn bound(&self) -> Result<usize> {
        let metrics = self.plane.request("GET", "/metrics", None)?;
        let text = String::from_utf8_lossy(&metrics.body);
        let lines = text.lines().filter(|line| {
            line.starts_with("apiserver_request_total{")
                && line.contains("subresource=\"binding\"")
                && line.contains("code=\"201\"")
        });
        let count: f64 = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        Ok(count as usize)
    }

    /// Waits until all pods are bound; pods a second between the first tenth and the last.
    async fn rate(&self, pods: usize) -> Result<f64> {
        let begun = Instant::now();
        let (mut first, mut last) = (None, None);
        loop {
            let (now, bound) = (Instant::now(), self.bound()?);
            if bound >= pods / 10 && first.is_none() {
                first = Some((now, bound));
            }
            if bound >= pods - pods / 10 && last.is_none() {
                last = Some((now, bound));
            }
            if let (Some((from, before)), Some((to, after))) = (first, last)
                && bound >= pods
            {
                return Ok((after - before) as f64 / (to - from).as_secs_f64().max(0.001));
            }
            ensure!(begun.elapsed() < PATIENCE, "only {bound} of {pods} were bound in time");
            // Counting is work for the API server, too.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn kube_scheduler(&self, extender: Option<Value>, every_node: bool) -> Result<Process> {
        let kubeconfig = self.plane.kubeconfig();
        let mut config = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": false},
            "clientConnection": {"kubeconfig": kubeconfig, "qps": 10_000, "burst": 10_000},
            "profiles": [{"schedulerName": "bench"}],
            "extenders": extender.into_iter().collect::<Vec<_>>(),
        });
        if every_node {
            config["percentageOfNodesToScore"] = json!(100);
        }
        let file = self.plane.folder().join("bench-scheduler.json");
        std::fs::write(&file, config.to_string())?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let args = [
            format!("--config={}", file.display()),
            format!("--secure-port={port}"),
            format!("--authentication-kubeconfig={}", kubeconfig.display()),
            format!("--authorization-kubeconfig={}", kubeconfig.display()),
        ];
        Process::start(&parts::find("kube-scheduler")?, &args)
    }

    fn ours(&self, more: &[&str]) -> Result<Process> {
        let mut args =
            vec!["scheduler".to_owned(), format!("--kubeconfig={}", self.plane.kubeconfig().display())];
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        Process::start(Path::new(env!("CARGO_BIN_EXE_loadline")), &args)
    }
}

async fn throughput(side: Side, [nodes, pods]: [usize; 2], every_node: bool) -> Result<Measured> {
    let taints = if side == Side::KubeTaints { Stage::load_taints } else { |_| json!([]) };
    let stage = Stage::new(nodes, taints).await?;
    stage.pods(pods).await?;
    let rate = |stage| async move { Stage::rate(stage, pods).await };
    Ok(match side {
        Side::Bind => {
            let writer = stage.writer.clone();
            let client = stage.client.clone();
            let binding = tokio::spawn(async move { bind_all(&client, &writer, nodes).await });
            let rate = rate(&stage).await?;
            binding.await??;
            Measured::new(rate, &[])
        }
        Side::Kube | Side::KubeTaints => {
            let scheduler = stage.kube_scheduler(None, every_node)?;
            Measured::new(rate(&stage).await?, &[&scheduler])
        }
        Side::Ours | Side::OursByLoad => {
            let by = if side == Side::Ours {
                &["--scheduler-name=bench", "--requests-only"][..]
            } else {
                &["--scheduler-name=bench"][..]
            };
            let scheduler = stage.ours(by)?;
            Measured::new(rate(&stage).await?, &[&scheduler])
        }
        Side::KubeNoOp => {
            let port = no_op().await?;
            let scheduler = stage.kube_scheduler(Some(extender(port, true)), every_node)?;
            Measured::new(rate(&stage).await?, &[&scheduler])
        }
        Side::KubeOurs | Side::KubeFilterOnly => {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let address = format!("--extender=127.0.0.1:{port}");
            let shown = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let metrics = format!("--http-bind-address=127.0.0.1:{shown}");
            let mut args = vec!["--scheduler-name=nobody", &address, &metrics];
            if side == Side::KubeFilterOnly {
                args.push("--extender-filter-only");
            }
            let ours = stage.ours(&args)?;
            ready(port).await?;
            let scheduler = stage.kube_scheduler(Some(extender(port, side == Side::KubeOurs)), every_node)?;
            let rate = rate(&stage).await?;
            let answers = answered_below(shown, 0.99)?;
            Measured { answers, ..Measured::new(rate, &[&scheduler, &ours]) }
        }
    })
}

/// Not before it has read everything: what it cannot answer keeps pods waiting.
async fn ready(port: u16) -> Result<()> {
    let begun = Instant::now();
    let question = json!({"Pod": Stage::pod(0), "NodeNames": ["node-00000"]}).to_string();
    while begun.elapsed() < PATIENCE {
        let asked = Command::new("curl")
            .args(["-s", "-d", &question, &format!("http://127.0.0.1:{port}/filter")])
            .output();
        if asked.is_ok_and(|asked| String::from_utf8_lossy(&asked.stdout).contains("\"node-00000\"")) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("the extender does not get ready")
}

/// Below which time that share of the extender's answers was given, by what was asked, as its own histogram says.
fn answered_below(port: u16, share: f64) -> Result<String> {
    let asked = Command::new("curl").args(["-s", &format!("http://127.0.0.1:{port}/metrics")]).output()?;
    let text = String::from_utf8_lossy(&asked.stdout).into_owned();
    let mut said = String::new();
    for verb in ["filter", "prioritize"] {
        let of_verb = format!("verb=\"{verb}\"");
        let bucket = |line: &str| {
            let (labels, count) =
                line.strip_prefix("loadline_extender_request_duration_seconds_bucket")?.rsplit_once(' ')?;
            let (_, end) = labels.contains(&of_verb).then(|| labels.split_once("le=\""))??;
            Some((end.split('"').next()?.to_owned(), count.parse::<f64>().ok()?))
        };
        let mut buckets: Vec<(String, f64)> = text.lines().filter_map(bucket).collect();
        buckets.sort_by(|a, b| a.1.total_cmp(&b.1));
        let Some((_, all)) = buckets.last() else { continue };
        if let Some((end, _)) = buckets.iter().find(|(_, count)| *count >= all * share) {
            write!(said, "  {verb}: {:.0} % of {all} within {end} s", share * 100.0)?;
        }
    }
    Ok(said)
}

fn extender(port: u16, prioritize: bool) -> Value {
    let mut extender = json!({
        "urlPrefix": format!("http://127.0.0.1:{port}"), "filterVerb": "filter", "nodeCacheCapable": true, "httpTimeout": "5s",
    });
    if prioritize {
        extender["prioritizeVerb"] = json!("prioritize");
        extender["weight"] = json!(3);
    }
    extender
}

/// What a question to an extender names, borrowed from its text.
#[derive(serde::Deserialize)]
struct Asked<'a> {
    #[serde(rename = "NodeNames", borrow, default)]
    names: Vec<&'a str>,
}

#[derive(serde::Serialize)]
struct Passed<'a> {
    #[serde(rename = "NodeNames")]
    names: Vec<&'a str>,
}

#[derive(serde::Serialize)]
struct Equal<'a> {
    #[serde(rename = "Host")]
    host: &'a str,
    #[serde(rename = "Score")]
    score: u8,
}

/// An extender that lets everything through and finds all nodes equal, at the least that costs: no name is copied but
/// into the answer.
async fn no_op() -> Result<u16> {
    let filter = post(|body: Bytes| async move {
        let asked = serde_json::from_slice::<Asked>(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
        serde_json::to_vec(&Passed { names: asked.names }).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
    });
    let prioritize = post(|body: Bytes| async move {
        let asked = serde_json::from_slice::<Asked>(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
        let equal: Vec<Equal> = asked.names.into_iter().map(|host| Equal { host, score: 5 }).collect();
        serde_json::to_vec(&equal).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let router = Router::new().route("/filter", filter).route("/prioritize", prioritize);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(port)
}

/// Binds every pod, one node after the other.
async fn bind_all(client: &Client, writer: &Writer, nodes: usize) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let listed = pods.list(&ListParams::default()).await?;
    let bind = |(i, pod): (usize, Pod)| {
        let writer = writer.clone();
        async move {
            let meta = loadline_core::object::Meta {
                key: loadline_core::object::Key::new("default", pod.metadata.name.unwrap_or_default()),
                uid: pod.metadata.uid.unwrap_or_default().into(),
                revision: None,
            };
            writer
                .bind(&meta, &format!("node-{:05}", i % nodes))
                .await
                .map_err(|error| anyhow::anyhow!("{error}"))
        }
    };
    let all = listed.items.into_iter().enumerate();
    stream::iter(all).map(bind).buffer_unordered(WRITERS).try_collect::<Vec<_>>().await?;
    Ok(())
}

/// From created to bound, with 100 pods a second for 20 seconds.
async fn latency(side: Side, nodes: usize) -> Result<()> {
    const RATE: u64 = 100;
    const COUNT: usize = 2_000;
    let stage = Stage::new(nodes, |_| json!([])).await?;
    let _scheduler = match side {
        Side::Kube => stage.kube_scheduler(None, false)?,
        _ => stage.ours(&["--scheduler-name=bench"])?,
    };
    // One pod first: it is there once that is bound.
    stage.pods(1).await?;
    while stage.bound()? < 1 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let pods: Api<Pod> = Api::default_namespaced(stage.client.clone());
    let version = pods.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    let watching = pods.clone();
    let seen = tokio::spawn(async move {
        let mut bound = HashMap::new();
        let mut events = watching.watch(&WatchParams::default(), &version).await?.boxed();
        while bound.len() < COUNT
            && let Some(event) = events.try_next().await?
        {
            if let WatchEvent::Modified(pod) = event
                && pod.spec.is_some_and(|spec| spec.node_name.is_some())
            {
                bound.entry(pod.metadata.name.unwrap_or_default()).or_insert_with(Instant::now);
            }
        }
        anyhow::Ok(bound)
    });
    let mut created = HashMap::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(1000 / RATE));
    for i in 1..=COUNT {
        ticks.tick().await;
        let pod: Pod = from_value(Stage::pod(i))?;
        let made = pods.create(&PostParams::default(), &pod).await?;
        created.insert(made.metadata.name.unwrap_or_default(), Instant::now());
    }
    let bound = tokio::time::timeout(PATIENCE, seen).await???;
    let mut micros = Histogram::<u64>::new(3)?;
    for (name, at) in created {
        // Nobody is left out: one that was never bound would be the slowest.
        let bound = bound.get(&name).with_context(|| format!("{name} was not seen bound"))?;
        let took = bound.saturating_duration_since(at);
        micros.record(u64::try_from(took.as_micros())?)?;
    }
    println!(
        "{:<20} {nodes} nodes, {RATE} pods/s: created to bound p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms",
        side.name(),
        micros.value_at_quantile(0.5) as f64 / 1000.0,
        micros.value_at_quantile(0.99) as f64 / 1000.0,
        micros.max() as f64 / 1000.0,
    );
    Ok(())
}
