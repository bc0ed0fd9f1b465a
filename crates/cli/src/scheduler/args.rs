//! What can be said to `loadline scheduler`.

use crate::leader_election::LeaderElection;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  loadline scheduler --kubeconfig admin.kubeconfig
      gives nodes to pods with `schedulerName: loadline`, by crane's default policy
  loadline scheduler --kubeconfig admin.kubeconfig --policy policy.yaml --scheduler-name batch
      another policy, for pods of another scheduler name
  loadline scheduler --leader-elect --http-bind-address 0.0.0.0:10259
      in a cluster, one of several: the others stand by

What its account must be allowed:
  list, watch    nodes, pods, namespaces, persistentvolumeclaims, persistentvolumes,
                 priorityclasses, storageclasses, csinodes, poddisruptionbudgets
                 services, replicationcontrollers, replicasets.apps, statefulsets.apps, to spread
                 pods that do not say how; without, they are not spread
  list           nodes.metrics.k8s.io, pods.metrics.k8s.io
  get            pods
  create         pods/binding, pods/eviction
  patch          pods/status
  create, patch  events.events.k8s.io
  get, create, update
                 leases.coordination.k8s.io, with --leader-elect

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[derive(Debug, Args)]
pub struct Scheduler {
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Whose pods are given nodes, by `spec.schedulerName`; may be given several times
    #[arg(long = "scheduler-name", value_name = "NAME", default_value = "loadline")]
    pub names: Vec<String>,
    /// A file with a load policy (`DynamicSchedulerPolicy`) and, if wanted, settings (`LoadSettings`)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Look at requests alone, as kube-scheduler does
    #[arg(long, conflicts_with = "policy")]
    pub requests_only: bool,
    /// How often measurements are asked for; more often than the metrics server measures is useless
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::args::duration)]
    pub metrics_interval: Duration,
    /// Address of /healthz, /readyz and /metrics, such as 127.0.0.1:10259; none without
    #[arg(long, value_name = "ADDRESS")]
    pub http_bind_address: Option<SocketAddr>,

    #[command(flatten)]
    pub election: LeaderElection,
}
