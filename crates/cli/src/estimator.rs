//! `loadline estimator`: how many replicas would really fit in each member cluster, over gRPC.

pub mod args;

use crate::signal::{self, End};
use crate::up::{load_rules, rules};
use crate::{component, debug};
use anyhow::{Context, Result, bail};
use args::{Estimator, Place};
use loadline_services::cluster::Access;
use loadline_services::estimator::{self, Options, load, server};
use loadline_services::reload::Source;
use loadline_services::serve::{self, Clients, Listening, Tls};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often to look whether certificates have changed.
const CERTIFICATES: Duration = Duration::from_secs(10);
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
    let ended = signal::ended();
    let clusters = clusters(args).await?;
    let load = match (args.load, &args.policy) {
        (false, _) => None,
        (true, None) => Some(load::Options::default()),
        (true, Some(path)) => {
            // What is wrong at the start ends it; later the last good one stays. What comes through a pipe is there once.
            let read = load_rules(path)?;
            let policy = if path.is_file() {
                Source::file(path, rules)
            } else {
                Source::Fixed(Box::new(read.clone()))
            };
            Some(load::Options { rules: read, policy, ..load::Options::default() })
        }
    };
    let grpc = listen(args).await?;
    let http = listen_beside(args, grpc.address().ip()).await?;
    let options = Options {
        counting: counting(args),
        load,
        http,
        more: debug::router(),
        ..Options::new(clusters, grpc)
    };
    let stop = CancellationToken::new();
    let ctx = component::ctx("", &stop);
    let end = End { delay: args.shutdown.shutdown_delay_duration, ..End::of(&ctx) };
    signal::until_ended(estimator::run(ctx, options), &end, ended).await
}

/// Which clusters, and how each is reached. A kubeconfig that stands for the whole command must be good; one of many
/// may become so.
async fn clusters(args: &Estimator) -> Result<BTreeMap<String, Access>> {
    let mut given = Vec::new();
    if let Some(name) = &args.cluster_name {
        if name.is_empty() {
            bail!("--cluster-name must not be empty");
        }
        let access = args.kubeconfig.clone().map_or(Access::InCluster, Access::Kubeconfig);
        if let Err(problem) = access.connect().await {
            let hint = if args.kubeconfig.is_none() { "; give --kubeconfig" } else { "" };
            bail!("{problem}{hint}");
        }
        given.push((name.clone(), access));
    }
    let file = |(name, file): &(String, PathBuf)| (name.clone(), Access::Kubeconfig(file.clone()));
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
    let mut clusters = BTreeMap::new();
    for (name, access) in given {
        if clusters.insert(name.clone(), access).is_some() {
            bail!("cluster {name:?} is given twice: names must differ");
        }
    }
    Ok(clusters)
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
