//! How long does kube-scheduler wait for an answer of the extender? `cargo xtask bench extender`
//!
//! One connection, one question after the other, as kube-scheduler asks: `filter` with so many names, then `prioritize`
//! with those that passed, each for another pod. The cluster is in memory, in this process, annotated as crane would, with a pod on each
//! node. No pod is ever bound, so what is reserved for it ends soon (100 ms): in a cluster its binding would be seen by then.
//! *Floor* is a question that needs no thought (a path there is not, with the same body): what HTTP and this machine cost.
//! `-- 5000 500` measures with so many nodes and names; without, with 5 000 nodes and 100, 500 and 5 000 names.

use anyhow::{Context as _, Result, ensure};
use hdrhistogram::Histogram;
use jiff::Timestamp;
use kube::Client;
use loadline_apiserver::ApiServer;
use loadline_core::cluster::Keep;
use loadline_services::Ctx;
use loadline_services::cluster::resource::{NODES, PODS};
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::scheduler::{self, Options, Phase, extender};
use loadline_services::serve;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Questions of each kind.
const QUESTIONS: usize = 5_000;
/// Asked before, and not counted.
const WARM_UP: usize = 500;

fn main() -> Result<()> {
    let args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let given: Vec<usize> =
        args.map(|arg| arg.parse().context("sizes are numbers")).collect::<Result<_>>()?;
    let (nodes, sizes) = match given[..] {
        [nodes, names] => (nodes, vec![names]),
        _ => (5_000, vec![100, 500, 5_000]),
    };
    let runtime = tokio::runtime::Runtime::new()?;
    println!(
        "{:<14} {:>6} {:>12} {:>8} {:>8} {:>8} {:>8}",
        "keep", "names", "question", "p50 µs", "p99 µs", "p99.9", "most"
    );
    for keep in [Keep::All, Keep::Best] {
        let (ctx, address) = runtime.block_on(serve(nodes, keep))?;
        for names in &sizes {
            measure(address, keep, nodes, *names)?;
        }
        ctx.stop.cancel();
    }
    Ok(())
}

async fn serve(nodes: usize, keep: Keep) -> Result<(Ctx, SocketAddr)> {
    let client = Client::new(ApiServer::default(), "default");
    let writer = Writer::new(Connection::new(client.clone()), "bench");
    for i in 0..nodes {
        let has = json!({"cpu": "64", "memory": "256Gi", "pods": "250"});
        let used = format!("0.{:02}000,{}", i % 60, Timestamp::now());
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name(i), "annotations": {"cpu_usage_avg_5m": used, "mem_usage_avg_5m": used}},
            "status": {"capacity": has, "allocatable": has}});
        writer.create(NODES, "", &node).await.map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    // One pod on each, as a cluster in use has them.
    for i in 0..nodes {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("there-{i}"), "labels": {"app": "web"}},
            "spec": {"nodeName": name(i), "containers": [{"name": "app", "image": "registry/web:1",
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]}});
        writer.create(PODS, "default", &pod).await.map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    let ctx = Ctx::new("bench", CancellationToken::new());
    let listening = serve::listen(([127, 0, 0, 1], 0).into(), None, false).await?;
    let address = listening.address();
    let extender = Some(extender::Options { listening, keep, reserve_for: Duration::from_millis(100) });
    let options = Options { extender, ..Options::new(Access::Client(client)) };
    let status = options.status.clone();
    tokio::spawn(scheduler::run(ctx.clone(), options));
    while status.phase() == Phase::Reading {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok((ctx, address))
}

fn name(i: usize) -> String {
    format!("ip-10-0-{}-{}.eu-central-1.compute.internal", i / 250, i % 250)
}

/// A pod like those of a real deployment, and the candidates.
fn question(i: usize, names: &[String]) -> String {
    let pod = json!({
        "metadata": {"name": format!("web-{i}"), "namespace": "shop", "uid": format!("uid-{i}"), "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "uid": "r", "controller": true}]},
        "spec": {"schedulerName": "default-scheduler", "priority": 0, "containers": [{"name": "app", "image": "registry/web:1",
            "env": [{"name": "A", "value": "b"}, {"name": "C", "value": "d"}], "ports": [{"containerPort": 80}],
            "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]},
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    });
    // In the order in which kube-scheduler writes it.
    format!("{{\"Pod\":{pod},\"Nodes\":null,\"NodeNames\":{}}}", json!(names))
}

fn measure(address: SocketAddr, keep: Keep, nodes: usize, count: usize) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut times = [(); 3].map(|()| Histogram::<u64>::new(3));
    let label = format!("{keep:?}");
    for i in 0..WARM_UP + QUESTIONS {
        // Another part of the nodes each time, as kube-scheduler goes round.
        let names: Vec<String> = (0..count).map(|n| name((i * count + n) % nodes)).collect();
        let asked = question(i, &names);
        let floor = ask(&mut stream, "/floor", &asked)?;
        let filter = ask(&mut stream, "/filter", &asked)?;
        ensure!(filter.status == 200, "{}", filter.body);
        let answer: Value = serde_json::from_str(&filter.body)?;
        let passed: Vec<String> = serde_json::from_value(answer["NodeNames"].clone())?;
        ensure!(!passed.is_empty(), "{}", filter.body);
        let prioritize = ask(&mut stream, "/prioritize", &question(i, &passed))?;
        ensure!(prioritize.status == 200, "{}", prioritize.body);
        if i >= WARM_UP {
            for (times, answer) in times.iter_mut().zip([floor, filter, prioritize]) {
                let Ok(times) = times else { continue };
                times.record(u64::try_from(answer.took.as_micros())?)?;
            }
        }
    }
    for (times, kind) in times.iter().zip(["floor", "filter", "prioritize"]) {
        let Ok(times) = times else { continue };
        let at = |quantile: f64| times.value_at_quantile(quantile);
        let (half, most, nearly, all) = (at(0.5), at(0.99), at(0.999), times.max());
        println!("{label:<14} {count:>6} {kind:>12} {half:>8} {most:>8} {nearly:>8} {all:>8}");
    }
    Ok(())
}

struct Answer {
    status: u16,
    body: String,
    took: Duration,
}

/// One question on a connection that stays open.
fn ask(stream: &mut TcpStream, path: &str, body: &str) -> Result<Answer> {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let begun = Instant::now();
    stream.write_all(request.as_bytes())?;
    let mut read = Vec::with_capacity(64 << 10);
    let mut part = vec![0; 256 << 10];
    loop {
        let count = stream.read(&mut part)?;
        ensure!(count > 0, "the connection ended");
        read.extend_from_slice(&part[..count]);
        let Some(head) = read.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = std::str::from_utf8(&read[..head])?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("no length")?.parse()?;
        if read.len() >= head + 4 + length {
            let took = begun.elapsed();
            let status = text.split(' ').nth(1).context("no status")?.parse()?;
            return Ok(Answer { status, body: String::from_utf8(read.split_off(head + 4))?, took });
        }
    }
}
