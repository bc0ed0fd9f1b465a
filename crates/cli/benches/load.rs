//! What do the annotator and the recommender cost at full size? `cargo xtask bench load`
//!
//! Both are processes of their own, asked for their CPU time and memory by what the kernel says of them. The annotator looks
//! after the nodes of a `loadline up`, measured by the metrics API and, where it is there, by a real Prometheus that scrapes
//! their exporters. The recommender reads an in-memory API server of this process with workloads of two pods each, whose
//! figures change every 15 seconds. `-- NODES WORKLOADS` measures at other sizes than 5 000 and 10 000; 0 leaves one out.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark that fails ends; counts are small"
)]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/monitoring.rs"]
mod monitoring;
#[path = "../tests/common/service.rs"]
mod service;

use anyhow::{Context, Result};
use common::Up;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use monitoring::Prometheus;
use serde_json::{Value, from_value, json};
use service::Service;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::sleep;
use std::time::Duration;

/// For how long each is measured.
const TIME: Duration = Duration::from_mins(2);
const EVERY: Duration = Duration::from_secs(15);
/// Objects made at once.
const WRITERS: usize = 32;
const PODS: usize = 2;
/// Questions to Prometheus, whatever came of them.
const ASKED: &str = "loadline_annotator_queries_total{source=\"prometheus\"";

fn main() -> Result<()> {
    let args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let sizes: Vec<usize> =
        args.map(|arg| arg.parse().context("sizes are numbers")).collect::<Result<_>>()?;
    let (nodes, workloads) =
        (sizes.first().copied().unwrap_or(5_000), sizes.get(1).copied().unwrap_or(10_000));
    if nodes > 0 {
        annotator(nodes);
    }
    if workloads > 0 {
        recommender(workloads)?;
    }
    Ok(())
}

/// CPU time over a while, in seconds.
fn spent(service: &Service) -> f64 {
    let before = service.cpu_seconds();
    sleep(TIME);
    service.cpu_seconds() - before
}

fn annotator(nodes: usize) {
    let count = nodes.to_string();
    let up =
        Up::start(&["--nodes", &count, "--without", "annotator,agent,recommender,scheduler", "--for", "2h"]);
    let prometheus = loadline_testkit::parts::find("prometheus").ok().map(|program| {
        let targets = up.said("exporters");
        let found = json!({"http_sd_configs": [{"url": targets, "refresh_interval": "1m"}]});
        Prometheus::start_every("15s", program, found, true)
    });
    let kubeconfig = up.kubeconfig();
    let mut args = vec!["annotator".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
    if let Some(prometheus) = &prometheus {
        args.push(format!("--prometheus-address={}", prometheus.url()));
    }
    args.push("--leader-elect".to_owned());
    let service = Service::start(&args);
    service.until(&format!("nodes: {nodes} fresh"));
    // The first patches of all nodes, at 25 a second.
    sleep(Duration::from_secs(nodes as u64 / 25 + 30));
    let written = |service: &Service| service.sum("loadline_annotator_patches_total");
    let (cpu_of, before) = (&service, written(&service));
    let cpu = spent(cpu_of);
    let rounds = TIME.as_secs_f64() / 60.0;
    println!(
        "annotator    {nodes} nodes{}: {:.2} s of CPU a minute ({:.1} % of a core), {:.1} patches/s, {} MB resident",
        if prometheus.is_some() { ", metrics API and Prometheus" } else { ", metrics API" },
        cpu / rounds,
        cpu / TIME.as_secs_f64() * 100.0,
        (written(&service) - before) / TIME.as_secs_f64(),
        service.resident_kib() * 1024 / 1_000_000,
    );
    // One that stands by asks, joins and decides all the same, and writes nothing: that is what refreshing costs.
    let standby = Service::start(&args);
    standby.until(&format!("nodes: {nodes} fresh"));
    sleep(EVERY * 2);
    let before = standby.sum(ASKED);
    let cpu = spent(&standby);
    println!(
        "annotator    the same standing by: {:.2} s of CPU a minute, {:.1} queries to Prometheus a minute",
        cpu / rounds,
        (standby.sum(ASKED) - before) / rounds,
    );
}

fn recommender(workloads: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = ApiServer::default();
    let listening = runtime.block_on(server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
    let url = listening.url();
    runtime.spawn(listening.serve(std::future::pending()));
    runtime.block_on(fill(&server, workloads))?;
    measure(&server, workloads, 0);
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let cluster = json!({"name": "bench", "cluster": {"server": url}});
    let context = json!({"name": "bench", "context": {"cluster": "bench", "user": ""}});
    let config = json!({"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "current-context": "bench"});
    std::fs::write(&kubeconfig, config.to_string())?;
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let start = |rate: &str| {
        let rate = format!("--publish-qps={rate}");
        Service::start(&["recommender", &kubeconfig, "--create-definition", &rate])
    };
    let service = start("200");
    while service.sum("loadline_recommender_published_total") < workloads as f64 {
        sleep(Duration::from_secs(1));
    }
    let fresh = server.clone();
    std::thread::spawn(move || {
        for round in 1_i64.. {
            sleep(EVERY);
            measure(&fresh, workloads, round);
        }
    });
    sleep(EVERY);
    let before = service.sum("loadline_recommender_published_total");
    let cpu = spent(&service);
    let published = service.sum("loadline_recommender_published_total") - before;
    let ready = service.get("/readyz");
    let bytes: f64 = ready
        .split("bytes ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .context("readyz says how many bytes")?;
    println!(
        "recommender  {workloads} workloads, {} pods: {:.2} % of a core, {:.1} published/s, {:.0} bytes a workload, {} MB resident",
        workloads * PODS,
        cpu / TIME.as_secs_f64() * 100.0,
        published / TIME.as_secs_f64(),
        bytes / workloads as f64,
        service.resident_kib() * 1024 / 1_000_000,
    );
    // What reading and learning cost, with next to nothing written.
    drop(service);
    let service = start("0.1");
    service.until("active");
    sleep(EVERY);
    println!(
        "recommender  the same, next to nothing written: {:.2} % of a core",
        spent(&service) / TIME.as_secs_f64() * 100.0
    );
    Ok(())
}

fn name(workload: usize) -> String {
    format!("web-{workload}-5d4f8c7b9")
}

/// Replica sets, each of a Deployment, with their pods.
async fn fill(server: &ApiServer, workloads: usize) -> Result<()> {
    let client = kube::Client::new(server.clone(), "default");
    let deployments: &Api<Deployment> = &Api::default_namespaced(client.clone());
    let (sets, pods): (&Api<ReplicaSet>, &Api<Pod>) =
        (&Api::default_namespaced(client.clone()), &Api::default_namespaced(client));
    let owner = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let make = |workload: usize| async move {
        let labels = json!({"app": format!("web-{workload}")});
        let spec = json!({"containers": [{"name": "app", "image": "i"}]});
        let template = json!({"metadata": {"labels": labels}, "spec": spec});
        let spec_of = json!({"selector": {"matchLabels": labels}, "template": template});
        let deployment = json!({"metadata": {"name": format!("web-{workload}")}, "spec": spec_of});
        let made = deployments.create(&PostParams::default(), &from_value(deployment)?).await?;
        let owners = owner("Deployment", &format!("web-{workload}"), &made.metadata.uid.unwrap_or_default());
        let set = json!({"metadata": {"name": name(workload), "ownerReferences": owners}, "spec": spec_of});
        let made = sets.create(&PostParams::default(), &from_value(set)?).await?;
        let owners = owner("ReplicaSet", &name(workload), &made.metadata.uid.unwrap_or_default());
        for pod in 0..PODS {
            let pod: Value = json!({"metadata": {"name": format!("{}-{pod}", name(workload)), "labels": labels, "ownerReferences": owners}, "spec": spec});
            pods.create(&PostParams::default(), &from_value(pod)?).await?;
        }
        anyhow::Ok(())
    };
    stream::iter(0..workloads).map(make).buffer_unordered(WRITERS).try_collect::<()>().await
}

/// All pods use something else than before.
fn measure(server: &ApiServer, workloads: usize, round: i64) {
    let sample = Sample { at: Timestamp::now(), window: EVERY };
    for workload in 0..workloads {
        for pod in 0..PODS {
            let roll = i64::try_from(workload * 7 + pod * 13).unwrap_or(0) + round * 31;
            let usage = BTreeMap::from([
                ("cpu".to_owned(), format!("{}m", 50 + roll % 200)),
                ("memory".to_owned(), format!("{}Mi", 100 + roll % 50)),
            ]);
            let containers = BTreeMap::from([("app".to_owned(), usage)]);
            server.set_pod_metrics("default", &format!("{}-{pod}", name(workload)), &containers, sample);
        }
    }
}
