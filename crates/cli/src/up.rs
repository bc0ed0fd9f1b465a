//! `loadline up`: a small Kubernetes in one process.

mod compare;
mod news;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loadline_api::policy::{POLICY, SETTINGS};
use loadline_apiserver::metrics::Sample;
use loadline_apiserver::{ApiServer, Config};
use loadline_core::load::policy::Rules;
use loadline_sim::node::{Figures, Sink};
use loadline_sim::{Options, World, bind};
use tokio_util::sync::CancellationToken;

use crate::args::Up;
use crate::kubeconfig::Kubeconfig;
use crate::out::{Refused, bold, dim, line};
use crate::{documents, rules, signal};

/// How long open requests may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);

pub async fn run(args: &Up) -> Result<()> {
    if args.compare {
        return compare::run(args).await;
    }
    let options = options(args)?;
    let started = Instant::now();
    let server = ApiServer::new(Config { seed: args.seed, ..Config::default() });
    let listening = server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port))).await?;
    let (url, port) = (listening.url(), listening.address().port());
    let kubeconfig = Kubeconfig::write(args.kubeconfig_out.as_deref(), &url, port)?;

    let stop = CancellationToken::new();
    let serving = tokio::spawn(listening.serve(stop.clone().cancelled_owned()));
    let client = kube::Client::new(server.clone(), "default");
    let world = World::start(client, &options, metrics(&server)).await.context("cannot start the nodes")?;
    greet(args, &url, kubeconfig.path());

    let mut world = world;
    let why = news::follow(&mut world, args.time, started).await;
    line("");
    line(&dim(&format!("Ending: {why}.")));
    let summary = news::summary(&world, &server, started);
    world.stop().await;
    stop.cancel();
    // Whoever keeps a connection open does not keep us.
    if let Ok(served) = tokio::time::timeout(GOODBYE, serving).await {
        served.context("the API server ended badly")??;
    }
    drop(kubeconfig);
    line(&summary);
    Ok(())
}

/// What to simulate.
fn options(args: &Up) -> Result<Options> {
    let rules = args.policy.as_deref().map(load_rules).transpose()?.unwrap_or_default();
    Ok(Options {
        nodes: usize::try_from(args.nodes).unwrap_or(usize::MAX),
        seed: args.seed.unwrap_or(1),
        workloads: usize::try_from(args.workloads.unwrap_or(0)).unwrap_or(usize::MAX),
        scheduler: Some(bind::Options { rules, ..bind::Options::default() }),
        ..Options::default()
    })
}

/// The load rules of a file; a policy, settings, or both.
pub fn load_rules(path: &Path) -> Result<Rules> {
    let read = documents::read(&[path.to_owned()], &[POLICY, SETTINGS]).map_err(Refused::new)?;
    let (rules, warnings) = rules::read(&read.objects).map_err(Refused::new)?;
    for warning in warnings {
        tracing::warn!(%warning, "load policy");
    }
    Ok(rules)
}

fn greet(args: &Up, url: &str, kubeconfig: &Path) {
    line(&bold("loadline is up: a small Kubernetes in one process"));
    line("");
    line(&format!("  API server  {url}"));
    line(&format!("  nodes       {}, simulated", args.nodes));
    if let Some(workloads) = args.workloads {
        line(&format!("  workloads   {workloads}, coming one by one"));
    }
    line(&match &args.policy {
        Some(path) => format!("  scheduler   load-aware, by the policy in {}", path.display()),
        None => "  scheduler   load-aware, by crane's default policy".to_owned(),
    });
    line(&format!("  kubeconfig  {}", kubeconfig.display()));
    line("");
    line("Try, in another terminal:");
    line("");
    line(&format!("  export KUBECONFIG={}", quoted(kubeconfig)));
    line("  kubectl get nodes");
    line("  kubectl create deployment web --image=nginx --replicas=40");
    line("  kubectl get pods -o wide --watch");
    line("");
    line(&match args.time {
        Some(time) => format!("It ends by itself after {time:?}, or with Ctrl-C."),
        None => "Ctrl-C ends it.".to_owned(),
    });
    line("");
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@:".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Hands figures to the metrics API, and takes back those of pods that are gone.
fn metrics(server: &ApiServer) -> Sink {
    let server = server.clone();
    let known = Mutex::new((BTreeSet::new(), BTreeSet::new()));
    Sink::new(move |figures: &Figures| {
        let sample = Sample { at: figures.at, window: figures.window };
        let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut now = (BTreeSet::new(), BTreeSet::new());
        for node in &figures.nodes {
            server.set_node_metrics(&node.name, &node.usage, sample);
            now.0.insert(node.name.clone());
        }
        for pod in &figures.pods {
            server.set_pod_metrics(&pod.namespace, &pod.name, &pod.containers, sample);
            now.1.insert((pod.namespace.clone(), pod.name.clone()));
        }
        for gone in known.0.difference(&now.0) {
            server.clear_node_metrics(gone);
        }
        for (namespace, name) in known.1.difference(&now.1) {
            server.clear_pod_metrics(namespace, name);
        }
        *known = now;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_printed_so_that_a_shell_takes_them() {
        for (path, expected) in
            [("/a/b-1.kubeconfig", "/a/b-1.kubeconfig"), ("/a b", "'/a b'"), ("/it's", r"'/it'\''s'")]
        {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }
}
