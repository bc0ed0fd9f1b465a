//! What can be said to `loadline rebalance`.

use crate::leader_election::LeaderElection;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  loadline rebalance --kubeconfig admin.kubeconfig --http-bind-address 127.0.0.1:8092
      says which pods it would move, in the log and at /debug/rebalance, and moves none
  loadline rebalance --act --leader-elect --max-moves-per-hour 10
      in a cluster, one of several: moves at most ten pods within an hour
  loadline rebalance --act --settings rebalance.yaml
      by settings of your own (see `loadline what-if rebalance --help`), read again when they change

To switch it off, at once and without a restart:
  everywhere     enabled: false in the settings
  a namespace    kubectl annotate namespace shop loadline.dev/rebalance=off
  a node         kubectl annotate node n1 loadline.dev/rebalance=off
  a pod          the label loadline.dev/rebalance=off, in the template of its workload

What its account must be allowed (deploy/rebalance/act.yaml):
  list, watch    what `loadline scheduler` lists and watches
  list           nodes.metrics.k8s.io, pods.metrics.k8s.io
  patch          nodes, with --act
  create         pods/eviction, with --act
  create, patch  events.events.k8s.io, with --act or --leader-elect
  get, create, update
                 leases.coordination.k8s.io, with --leader-elect

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[derive(Debug, Args)]
pub struct Rebalance {
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Move pods; without, it only says which it would move
    #[arg(long, conflicts_with = "dry_run")]
    pub act: bool,
    /// Only say which pods would be moved: what it does anyway without --act
    #[arg(long)]
    pub dry_run: bool,
    /// A file with settings (`RebalanceSettings`), read again when it changes
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// A file with the load policy the pods' scheduler goes by (`DynamicSchedulerPolicy`, `LoadSettings`); without, crane's default.
    /// Read again when it changes
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The pods' scheduler looks at requests alone, as kube-scheduler does
    #[arg(long, conflicts_with = "policy")]
    pub requests_only: bool,
    /// Moves within an hour at most, in place of what the settings say
    #[arg(long, value_name = "N")]
    pub max_moves_per_hour: Option<u32>,
    /// For how long schedulers leave a node alone that gave up a pod
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::args::duration)]
    pub cooling: Duration,
    /// How often measurements are asked for; more often than the metrics server measures is useless
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::args::duration)]
    pub metrics_interval: Duration,
    /// Address of /healthz, /readyz, /metrics and /debug/rebalance, such as 127.0.0.1:8092; none without
    #[arg(long, value_name = "ADDRESS")]
    pub http_bind_address: Option<SocketAddr>,

    #[command(flatten)]
    pub election: LeaderElection,
}
