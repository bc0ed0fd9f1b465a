//! `loadline estimator`: how many replicas would really fit in each member cluster, over gRPC.

pub mod args;

use crate::signal;
use crate::up::load_rules;
use anyhow::{Context, Result, bail};
use args::{Estimator, Place};
use loadline_services::estimator::feed::{self, Source};
use loadline_services::estimator::metrics::Metrics;
use loadline_services::estimator::{Member, Members, health, load, server};
use loadline_services::serve::{self, Clients, Listening, Tls};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How often to look whether certificates have changed.
const CERTIFICATES: Duration = Duration::from_secs(10);
/// How often to say how far reading is.
const PROGRESS: Duration = Duration::from_secs(2);
/// How long open requests may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);
/// Where upstream listens beside the gRPC server.
const HEALTH_PORT: u16 = 10351;
const METRICS_PORT: u16 = 8080;

/// Switches of upstream that mean nothing to an estimator.
const IDLE_GATES: [&str; 6] = [
    "AllAlpha",
    "AllBeta",
    "CustomizedClusterResourceModeling",
    "MultiplePodTemplatesScheduling",
    "PriorityBasedScheduling",
    "WorkloadAffinity",
];

pub async fn run(args: &Estimator) -> Result<()> {
    let sources = sources(args).await?;
    let counting = counting(args);
    let load = match (args.load, &args.policy) {
        (false, _) => None,
        (true, None) => Some(load::Options::default()),
        (true, Some(path)) => Some(load::Options { rules: load_rules(path)?, ..load::Options::default() }),
    };
    let followed = feed::Options { quotas: counting.quotas, load };
    let grpc = listen(args).await?;
    let beside = listen_beside(args, grpc.address().ip()).await?;

    let members: Members = sources.keys().map(|name| (name.clone(), Arc::new(Member::default()))).collect();
    let members = Arc::new(members);
    let metrics = Metrics::new(&members);
    if let Some(certificates) = grpc.certificates() {
        metrics.watch(certificates);
    }
    let places: Vec<String> = beside.iter().map(|listening| listening.address().to_string()).collect();
    let address = grpc.address();
    tracing::info!(
        "listening: gRPC on {address}{}, health and metrics on {}",
        if grpc.certificates().is_some() { "" } else { " (plaintext)" },
        if places.is_empty() { "no address".to_owned() } else { places.join(" and ") }
    );

    let stop = CancellationToken::new();
    let mut feeds = JoinSet::new();
    for (name, source) in sources {
        let Some(member) = members.get(&name).cloned() else { continue };
        feeds.spawn(feed::run(name, member, source, followed.clone(), stop.clone()));
    }
    let mut servers = JoinSet::new();
    servers.spawn(serve::run(grpc, server::routes(members.clone(), counting, metrics.clone()), stop.clone()));
    for listening in beside {
        let router = health::router(members.clone(), metrics.clone());
        servers.spawn(serve::run(listening, router, stop.clone()));
    }
    let why = tokio::select! {
        why = signal::ended() => Ok(why),
        () = tell(&members) => Ok("nothing more to tell"),
        // Nobody told it to: whoever started us is to know, and start us again.
        Some(_) = servers.join_next() => Err(anyhow::anyhow!("a server ended by itself")),
    };
    stop.cancel();
    // Whoever keeps a connection open does not keep us.
    let _ = tokio::time::timeout(GOODBYE, async {
        while servers.join_next().await.is_some() {}
        while feeds.join_next().await.is_some() {}
    })
    .await;
    tracing::info!("ending: {}", why?);
    Ok(())
}

/// Says how far reading is until everything has been read, then once more. Never ends.
async fn tell(members: &Members) {
    let mut unread = JoinSet::new();
    for member in members.values() {
        let (member, mut changes) = (member.clone(), member.changes());
        unread.spawn(async move { while member.known().is_none() && changes.changed().await.is_ok() {} });
    }
    let mut ticks = tokio::time::interval(PROGRESS);
    ticks.tick().await;
    let mut last = String::new();
    loop {
        tokio::select! {
            read = unread.join_next() => if read.is_none() { break },
            _ = ticks.tick() => {
                let line = progress(members);
                if !line.is_empty() && line != last {
                    tracing::info!("reading {line}");
                    last = line;
                }
            }
        }
    }
    let (nodes, pods) =
        members.values().filter_map(|member| member.known()).fold((0, 0), |(nodes, pods), known| {
            (nodes + known.view.node_count(), pods + known.view.pod_count())
        });
    let clusters = members.len();
    tracing::info!(
        "ready: {clusters} cluster{}, {nodes} nodes, {pods} pods",
        if clusters == 1 { "" } else { "s" }
    );
    std::future::pending::<()>().await;
}

/// How far those are that are getting on; what is wrong with others has been told.
fn progress(members: &Members) -> String {
    let reading = members
        .iter()
        .filter(|(_, member)| member.known().is_none() && member.status().problem.is_none())
        .map(|(name, member)| format!("{name}: {}", member.status().progress));
    reading.collect::<Vec<_>>().join("; ")
}

/// Which clusters, and how each is reached. A kubeconfig that stands for the whole command must be good; one of many
/// may become so.
async fn sources(args: &Estimator) -> Result<BTreeMap<String, Source>> {
    let mut given = Vec::new();
    if let Some(name) = &args.cluster_name {
        if name.is_empty() {
            bail!("--cluster-name must not be empty");
        }
        let source = args.kubeconfig.clone().map_or(Source::InCluster, Source::Kubeconfig);
        if let Err(problem) = source.connect().await {
            let hint = if args.kubeconfig.is_none() { "; give --kubeconfig" } else { "" };
            bail!("{problem}{hint}");
        }
        given.push((name.clone(), source));
    }
    let file = |(name, file): &(String, PathBuf)| (name.clone(), Source::Kubeconfig(file.clone()));
    given.extend(args.clusters.iter().map(file));
    if let Some(folder) = &args.cluster_dir {
        let found = kubeconfigs(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        if found.is_empty() {
            bail!("{} holds no kubeconfig: expected a file per cluster", folder.display());
        }
        given.extend(found.iter().map(file));
    }
    if given.is_empty() {
        bail!(
            "no cluster: give --cluster-name and --kubeconfig, --cluster NAME=FILE, or --cluster-dir FOLDER"
        );
    }
    let mut sources = BTreeMap::new();
    for (name, source) in given {
        if sources.insert(name.clone(), source).is_some() {
            bail!("cluster {name:?} is given twice: names must differ");
        }
    }
    Ok(sources)
}

/// Files of a folder, by name without extension. Those with a leading dot are how Kubernetes swaps mounted secrets.
fn kubeconfigs(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        if let (false, true, Some(name)) =
            (hidden, path.is_file(), path.file_stem().and_then(|name| name.to_str()))
        {
            found.push((name.to_owned(), path.clone()));
        }
    }
    found.sort();
    Ok(found)
}

fn counting(args: &Estimator) -> server::Options {
    let mut options =
        server::Options { pending: args.count_pending, load: args.load, ..server::Options::default() };
    for (gate, on) in &args.feature_gates {
        match gate.as_str() {
            "ResourceQuotaEstimate" => options.quotas = *on,
            "SchedulingOvercommitProtection" => options.assumed = *on,
            known if IDLE_GATES.contains(&known) => {}
            unknown => tracing::warn!("--feature-gates: no such gate {unknown:?} here; ignored"),
        }
    }
    options
}

/// Binds the gRPC server.
async fn listen(args: &Estimator) -> Result<Listening> {
    let tls = match (&args.grpc_auth_cert_file, &args.grpc_auth_key_file) {
        (Some(certificate), Some(key)) => Some(Tls {
            certificate: certificate.clone(),
            key: key.clone(),
            clients: match (&args.grpc_client_ca_file, args.insecure_skip_grpc_client_verify) {
                (None, _) => Clients::Anyone,
                (Some(file), true) => Clients::Offered(file.clone()),
                (Some(file), false) => Clients::Required(file.clone()),
            },
            every: CERTIFICATES,
        }),
        _ => None,
    };
    let default = if tls.is_some() { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let address = SocketAddr::new(args.bind_address.unwrap_or(default.into()), args.server_port);
    serve::listen(address, tls, args.allow_plaintext).await.map_err(|error| match error {
        serve::Error::Plaintext(address) => anyhow::anyhow!(
            "refusing to listen on {address} without TLS: give --grpc-auth-cert-file and --grpc-auth-key-file, \
             --bind-address 127.0.0.1, or --allow-plaintext"
        ),
        other => other.into(),
    })
}

/// Binds what is served beside it: once where both addresses are the same.
async fn listen_beside(args: &Estimator, ip: IpAddr) -> Result<Vec<Listening>> {
    let at = |given: Option<Place>, port| match given {
        None => Some(SocketAddr::new(ip, port)),
        Some(Place::At(address)) => Some(address),
        Some(Place::Nowhere) => None,
    };
    let health = at(args.health_probe_bind_address, HEALTH_PORT);
    let metrics = at(args.metrics_bind_address, METRICS_PORT).filter(|address| health != Some(*address));
    let mut bound = Vec::new();
    for address in [health, metrics].into_iter().flatten() {
        // Probes and scrapers come without certificates; nothing there is secret.
        bound.push(serve::listen(address, None, true).await?);
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_a_cluster_per_file() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["m2.kubeconfig", "m1.yaml", "m3", "..data", ".hidden"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let names: Vec<String> =
            kubeconfigs(folder.path()).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["m1", "m2", "m3"]);
    }
}
