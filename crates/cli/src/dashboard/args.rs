//! What can be said to `loadline dashboard`.

use crate::scheduler::args::RuleFlags;
use crate::signal::Shutdown;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  loadline dashboard --kubeconfig admin.kubeconfig
      shows the cluster at http://127.0.0.1:8100, to this machine alone
  loadline dashboard --kubeconfig admin.kubeconfig --scheduler-name default-scheduler --policy policy.yaml
      by the load policy your scheduler goes by
  loadline dashboard --kubeconfig admin.kubeconfig --hub-kubeconfig hub.kubeconfig
      with the fleet the cluster belongs to: placements and bindings of its hub, and why
  loadline dashboard --kubeconfig admin.kubeconfig --scheduler http://127.0.0.1:10259
      with what that scheduler decided, and what each decision rested on
  loadline dashboard --listen 0.0.0.0:8443 --cert tls.crt --key tls.key --token-file token
      in a cluster, for whoever has the token: open https://ADDRESS:8443/?token=TOKEN once

What its account must be allowed (it writes nothing):
  list, watch    what `loadline scheduler` lists and watches, and events.events.k8s.io
  list           nodes.metrics.k8s.io, pods.metrics.k8s.io
  list, watch    for the fleet, where the kinds are there: managedclusters, managedclustersets,
                 managedclustersetbindings, placements, placementdecisions and addonplacementscores of
                 cluster.open-cluster-management.io; clusters.cluster.karmada.io, resourcebindings and
                 clusterresourcebindings of work.karmada.io

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[derive(Debug, Args)]
pub struct Dashboard {
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// How to reach the hub of a fleet, where that is another cluster than the one that is shown; without, placements and
    /// bindings are looked for in the cluster itself
    #[arg(long, value_name = "FILE")]
    pub hub_kubeconfig: Option<PathBuf>,
    /// Where a running scheduler serves /metrics: it remembers what it decided, and is asked first why a pod is where it is
    #[arg(long, value_name = "URL")]
    pub scheduler: Option<String>,
    /// What the page calls the cluster
    #[arg(long, value_name = "NAME", default_value = "cluster")]
    pub name: String,
    /// Where the page is served; beyond this machine, only with a certificate and a token. /healthz, /readyz and /metrics are
    /// there, too
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8100")]
    pub listen: SocketAddr,
    /// Its certificate, as PEM; needed beyond this machine
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// A file with the token that whoever looks must have; needed beyond this machine
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How often measurements are asked for; more often than the metrics server measures is useless
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::args::duration)]
    pub metrics_interval: Duration,

    #[command(flatten)]
    pub shutdown: Shutdown,

    #[command(flatten)]
    pub rules: RuleFlags,
}
