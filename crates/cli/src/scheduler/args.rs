//! What can be said to `loadline scheduler`.

use super::extender::Extender;
use crate::leader_election::LeaderElection;
use crate::signal::Shutdown;
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
  loadline scheduler --config scheduler.yaml
      several names, each with rules of its own; the file is read again when it changes
  loadline scheduler --shadow --kubeconfig admin.kubeconfig --http-bind-address 127.0.0.1:10259
      looks on beside kube-scheduler and writes nothing; Ctrl-C prints what it would have changed
  loadline scheduler --leader-elect --http-bind-address 0.0.0.0:10259
      in a cluster, one of several: the others stand by
  loadline scheduler --kubeconfig admin.kubeconfig --extender 127.0.0.1:8888
      beside kube-scheduler, which asks it about load (deploy/kube-scheduler/extender.yaml)

What its account must be allowed:
  list, watch    nodes, pods, namespaces, persistentvolumeclaims, persistentvolumes,
                 priorityclasses, storageclasses, csinodes, poddisruptionbudgets
                 services, replicationcontrollers, replicasets.apps, statefulsets.apps, to spread
                 pods that do not say how; without, they are not spread
                 csidrivers, csistoragecapacities, to know where volumes can be made; without,
                 every node has room for them
                 recommendations.analysis.crane.io, deployments.apps and jobs.batch, to know what pods
                 use that nobody has measured yet; without, they count as what they request
                 nodeqoss and avoidanceactions.ensurance.crane.io, to tell of lines below its targets;
                 without, nothing is said of them
  list           nodes.metrics.k8s.io, pods.metrics.k8s.io
  get            pods
  create         pods/binding, pods/eviction
  patch          pods/status, persistentvolumes, persistentvolumeclaims
  create, patch  events.events.k8s.io
  get, create, update
                 leases.coordination.k8s.io, with --leader-elect
With --shadow only what is listed and watched. deploy/scheduler/scheduler.yaml grants it.

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[derive(Debug, Args)]
pub struct Scheduler {
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    pub rules: RuleFlags,
    /// Only look on: decide on every new pod beside whatever schedules the cluster, write nothing, and tell where each
    /// would have gone and what that would have changed; a report is printed at the end and served at /debug/shadow
    #[arg(long, conflicts_with_all = ["leader_elect", "extender"])]
    pub shadow: bool,
    /// How often measurements are asked for; more often than the metrics server measures is useless
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::args::duration)]
    pub metrics_interval: Duration,
    /// Address of /healthz, /readyz and /metrics, such as 127.0.0.1:10259; none without
    #[arg(long, value_name = "ADDRESS")]
    pub http_bind_address: Option<SocketAddr>,

    #[command(flatten)]
    pub shutdown: Shutdown,

    #[command(flatten)]
    pub extender: Extender,

    #[command(flatten)]
    pub election: LeaderElection,
}

/// Whose pods, and by which rules.
#[derive(Debug, Args)]
pub struct RuleFlags {
    /// A file that says whose pods are given nodes and by which rules (`SchedulerConfiguration`, see `loadline config
    /// print`); read again when it changes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "policy", "requests_only"])]
    pub config: Option<PathBuf>,
    /// Whose pods are given nodes, by `spec.schedulerName`; may be given several times. Without, those of `loadline`;
    /// with --shadow, those of `default-scheduler`
    #[arg(long = "scheduler-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// A file with a load policy (`DynamicSchedulerPolicy`) and, if wanted, settings (`LoadSettings`); read again when it
    /// changes
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Look at requests alone, as kube-scheduler does
    #[arg(long, conflicts_with = "policy")]
    pub requests_only: bool,
}
