//! How fast, and how small, is `loadline estimator` beside Karmada's own? `cargo xtask bench estimator`
//!
//! Both are asked the same questions over gRPC, one after the other, on one real API server with the same nodes and
//! pods. Without the peers (`cargo xtask control-plane --peers`) only ours is measured; without a control plane there
//! is nothing to measure on. *Floor* is a question that needs no thought, whether ours is healthy: what gRPC and this
//! machine cost, measured in the same run. *Varied* asks for another amount every time, so that no answer is one that
//! was given before; the others ask the same again and again. Everything shares the machine's cores: the server asked, the one not asked,
//! the API server, and whoever asks. `-- 100 1000 5000 20000` measures at other sizes than 5 000 nodes.

#[path = "common/rows.rs"]
mod rows;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hdrhistogram::Histogram;
use kube::api::{Api, PostParams};
use loadline_api::estimator::pb::{MaxAvailableComponentSetsRequest, MaxAvailableReplicasRequest};
use loadline_api::estimator::service::estimator_client::EstimatorClient;
use loadline_api::estimator::{Replica, replicas_request, sets_request};
use loadline_core::resources::List;
use loadline_testkit::karmada::{self, Channel, Version};
use loadline_testkit::{ControlPlane, Running};
use rows::Row;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::transport::Channel as Connection;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// What the clusters are called in requests.
const CLUSTER: &str = "member";
/// For how long each is asked at each concurrency.
const TIME: Duration = Duration::from_secs(10);
/// Pods on each node.
const PODS: usize = 4;
/// Objects made at once.
const WRITERS: usize = 32;

fn main() -> Result<()> {
    let args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let mut sizes: Vec<usize> =
        args.map(|arg| arg.parse().context("sizes are numbers")).collect::<Result<_>>()?;
    if sizes.is_empty() {
        sizes.push(5_000);
    }
    // One thread asks, so that the other cores are the server's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for nodes in sizes {
        measure(&runtime, nodes)?;
    }
    Ok(())
}

fn measure(runtime: &tokio::runtime::Runtime, nodes: usize) -> Result<()> {
    let setup = ControlPlane::setup().apiserver(&[
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=1000",
        "--watch-cache=true",
    ]);
    let Some(plane) = setup.start_or_skip() else { return Ok(()) };
    let begun = Instant::now();
    runtime.block_on(fill(&plane.kubeconfig(), nodes))?;
    println!("{nodes} nodes and {} pods, made in {:.0} s", nodes * PODS, begun.elapsed().as_secs_f64());
    println!(
        "{:<16} {:>10} {:>4} {:>12} {:>10} {:>10} {:>10} {:>10}",
        "estimator", "question", "at", "answers/s", "p50 µs", "p99 µs", "resident", "answer"
    );
    let ours = start(&plane)?;
    let mut all = vec![("loadline".to_owned(), ours)];
    if loadline_testkit::parts::find(Version::V1_18.estimator()).is_ok() {
        let theirs = karmada::estimator(Version::V1_18, &plane.kubeconfig(), CLUSTER, &Channel::Plain, &[])?;
        karmada::settle(&theirs, &plane)?;
        all.push(("karmada 1.18.2".to_owned(), theirs));
    }
    for question in [Question::Floor, Question::Plain, Question::Varied, Question::Claim, Question::Sets] {
        let mut answers = Vec::new();
        let asked = if matches!(question, Question::Floor) { 1 } else { all.len() };
        for (name, server) in all.iter().take(asked) {
            for concurrency in [1, 8] {
                let result = runtime.block_on(ask(server, question, concurrency))?;
                println!(
                    "{name:<16} {:>10} {concurrency:>4} {:>12.0} {:>10} {:>10} {:>7} MB {:>10}",
                    question.name(),
                    result.per_second,
                    result.times.value_at_quantile(0.5),
                    result.times.value_at_quantile(0.99),
                    resident(server)? / 1024,
                    result.answer,
                );
                let bench = format!("estimator, {}, {concurrency} at once", question.name());
                let p99 = Duration::from_micros(result.times.value_at_quantile(0.99)).as_secs_f64() * 1e3;
                let megabytes = Some(f64::from(u32::try_from(resident(server)?)?) * 1.024 / 1e3);
                Row { bench: &bench, side: name, rate: result.per_second, megabytes, p99: Some(p99) }
                    .keep()?;
                answers.push(result.answer);
            }
        }
        // First fit depends on the order of nodes, which differs on purpose.
        let same = answers.windows(2).all(|pair| pair[0] == pair[1]);
        ensure!(same || matches!(question, Question::Sets), "answers differ: {answers:?}");
    }
    Ok(())
}

/// Starts ours and waits until it answers.
fn start(plane: &ControlPlane) -> Result<Running> {
    let program = Path::new(env!("CARGO_BIN_EXE_loadline"));
    let server = Running::start("loadline", program, |port| {
        vec![
            "estimator".into(),
            format!("--cluster-name={CLUSTER}"),
            format!("--kubeconfig={}", plane.kubeconfig().display()),
            format!("--server-port={port}"),
            "--metrics-bind-address=0".into(),
            "--health-probe-bind-address=0".into(),
        ]
    })?;
    server.wait_until(|said| said.contains("ready"))?;
    Ok(server)
}

/// Makes the nodes and their pods.
async fn fill(kubeconfig: &Path, nodes: usize) -> Result<()> {
    let read = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let config =
        kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default()).await?;
    let client = kube::Client::try_from(config)?;
    let (node_api, pod_api) = (Api::all(client.clone()), Api::default_namespaced(client));
    let params = PostParams::default();
    let make_node = |n: usize| {
        let (api, params): (&Api<k8s_openapi::api::core::v1::Node>, _) = (&node_api, &params);
        async move {
            api.create(params, &serde_json::from_value(node(n))?).await.map(drop).map_err(anyhow::Error::from)
        }
    };
    stream::iter(0..nodes).map(make_node).buffer_unordered(WRITERS).try_collect::<()>().await?;
    let make_pod = |p: usize| {
        let (api, params): (&Api<k8s_openapi::api::core::v1::Pod>, _) = (&pod_api, &params);
        async move {
            api.create(params, &serde_json::from_value(pod(p, nodes))?)
                .await
                .map(drop)
                .map_err(anyhow::Error::from)
        }
    };
    stream::iter(0..nodes * PODS).map(make_pod).buffer_unordered(WRITERS).try_collect::<()>().await
}

/// Eight models in three zones, no two with the same free: memory differs by a little, as machines do.
fn node(n: usize) -> Value {
    let cpu = 8 * (1 + n % 4);
    let amounts = json!({"cpu": cpu.to_string(), "memory": format!("{}Ki", (cpu * 4) << 20 | n),
        "ephemeral-storage": "100Gi", "pods": "110"});
    json!({
        "metadata": {"name": format!("node-{n:05}"), "labels": {
            "kubernetes.io/hostname": format!("node-{n:05}"),
            "kubernetes.io/arch": if n % 8 < 6 { "amd64" } else { "arm64" },
            "node.kubernetes.io/instance-type": format!("m{}", n % 8),
            "topology.kubernetes.io/zone": format!("zone-{}", n % 3)}},
        "status": {"allocatable": amounts, "capacity": amounts}
    })
}

fn pod(p: usize, nodes: usize) -> Value {
    let (node, cpu) = (p % nodes, 250 * (1 + p % 3));
    json!({
        "metadata": {"name": format!("pod-{p:06}"), "labels": {"app": format!("app-{}", p % 500)}},
        "spec": {"nodeName": format!("node-{node:05}"), "containers": [{"name": "main", "image": "none",
            "env": (0..8).map(|i| json!({"name": format!("VARIABLE_{i}"), "value": "some value"})).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": "512Mi"}}}]}
    })
}

#[derive(Clone, Copy)]
enum Question {
    Floor,
    Plain,
    Varied,
    Claim,
    Sets,
}

impl Question {
    fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Plain => "plain",
            Self::Varied => "varied",
            Self::Claim => "claim",
            Self::Sets => "sets",
        }
    }

    /// What is asked, made once: what it takes to write a question down is nobody's speed.
    fn message(self) -> Result<Message> {
        let amounts = |cpu: &str, memory: &str| -> Result<List> {
            Ok(List::from([("cpu".to_owned(), cpu.parse()?), ("memory".to_owned(), memory.parse()?)]))
        };
        let mut replica = Replica { requests: amounts("500m", "1Gi")?, ..Replica::default() };
        Ok(match self {
            Self::Floor => Message::Health(HealthCheckRequest { service: String::new() }),
            Self::Plain => Message::Replicas(replicas_request(CLUSTER, Some(&replica), &[])),
            Self::Varied => Message::Varied(replica),
            Self::Claim => {
                replica.selector = [("kubernetes.io/arch".to_owned(), "amd64".to_owned())].into();
                replica.affinity =
                    Some(serde_json::from_value(json!({"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["zone-2"]}]}]}))?);
                Message::Replicas(replicas_request(CLUSTER, Some(&replica), &[]))
            }
            Self::Sets => {
                // Large ones: Karmada's places set after set over all nodes.
                let big = Replica { requests: amounts("7", "28Gi")?, ..Replica::default() };
                let set = [big.component("leader", 1), big.component("worker", 99)];
                Message::Sets(sets_request(CLUSTER, "default", &set, &[]))
            }
        })
    }
}

enum Message {
    Health(HealthCheckRequest),
    Replicas(MaxAvailableReplicasRequest),
    /// Another amount each time.
    Varied(Replica),
    Sets(MaxAvailableComponentSetsRequest),
}

impl Message {
    /// Asks once. Questions of a number other than 0 may differ, and their answers with them: those are not told.
    async fn put(&self, channel: &Connection, number: u64) -> Result<Option<i32>> {
        let mut client = EstimatorClient::new(channel.clone());
        let answer = match self {
            Self::Health(ask) => {
                HealthClient::new(channel.clone()).check(request(ask.clone())).await?.into_inner().status
            }
            Self::Replicas(ask) => {
                client.max_available_replicas(request(ask.clone())).await?.into_inner().max_replicas
            }
            Self::Varied(replica) => {
                // A byte more each time: no two are alike, and all cost the same.
                let mut replica = replica.clone();
                replica.requests.insert("memory".to_owned(), ((1_u64 << 30) + number).to_string().parse()?);
                let ask = replicas_request(CLUSTER, Some(&replica), &[]);
                client.max_available_replicas(request(ask)).await?.into_inner().max_replicas
            }
            Self::Sets(ask) => {
                client.max_available_component_sets(request(ask.clone())).await?.into_inner().max_sets
            }
        };
        Ok((number == 0 || !matches!(self, Self::Varied(_))).then_some(answer))
    }
}

fn request<T>(message: T) -> tonic::Request<T> {
    tonic::Request::new(message)
}

struct Measured {
    per_second: f64,
    /// In microseconds.
    times: Histogram<u64>,
    answer: i32,
}

/// Asks for a while, so many at a time.
async fn ask(server: &Running, question: Question, concurrency: usize) -> Result<Measured> {
    let endpoint = Connection::from_shared(format!("http://127.0.0.1:{}", server.port()))?;
    let channel = endpoint.connect().await?;
    // The first is not counted: caches fill, code is read from disk.
    let message = Arc::new(question.message()?);
    let answer = message.put(&channel, 0).await?.context("the first is told")?;
    let begun = Instant::now();
    let tasks = (0..concurrency).map(|task| {
        let (channel, message) = (channel.clone(), message.clone());
        let mut number = u64::try_from(task).unwrap_or_default();
        tokio::spawn(async move {
            let mut times = Histogram::<u64>::new(3)?;
            while begun.elapsed() < TIME {
                let start = Instant::now();
                number += u64::try_from(concurrency)?;
                let told = message.put(&channel, number).await?;
                ensure!(told.is_none_or(|told| told == answer), "the answer changed");
                times.record(u64::try_from(start.elapsed().as_micros())?)?;
            }
            Ok(times)
        })
    });
    let mut times = Histogram::new(3)?;
    for task in tasks.collect::<Vec<_>>() {
        times.add(task.await??)?;
    }
    let per_second = f64::from(u32::try_from(times.len())?) / begun.elapsed().as_secs_f64();
    Ok(Measured { per_second, times, answer })
}

/// Resident memory in KiB.
fn resident(server: &Running) -> Result<u64> {
    let pid = server.pid().context("it has ended")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.split_whitespace().next().context("no figure")?.parse()?)
}
