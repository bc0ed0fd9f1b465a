//! What can be said to `loadline recommender`.

use crate::leader_election::LeaderElection;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  loadline recommender --kubeconfig admin.kubeconfig --create-definition
      learns from the metrics API, in a cluster without crane
  loadline recommender --leader-elect --http-bind-address 0.0.0.0:8091
      in a cluster, one of several
  kubectl get recommendations -A -l app.kubernetes.io/managed-by=loadline
      what it recommends

What its account must be allowed:
  list, watch    pods, replicasets.apps, jobs.batch, recommendations.analysis.crane.io
  list           pods.metrics.k8s.io
  create, patch, delete
                 recommendations.analysis.crane.io
  create         customresourcedefinitions.apiextensions.k8s.io, with --create-definition
  create, patch  events.events.k8s.io, with --leader-elect
  get, create, update
                 leases.coordination.k8s.io, with --leader-elect

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[derive(Debug, Args)]
pub struct Recommender {
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// How often the metrics API is asked; more often than the metrics server measures is useless
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::args::duration)]
    pub metrics_interval: Duration,
    /// Recommendations written per second, on average
    #[arg(long, value_name = "N", default_value_t = 25.0, value_parser = crate::annotator::args::rate)]
    pub publish_qps: f64,
    /// Whose arithmetic
    #[arg(long, value_name = "WHOSE", default_value = "loadline")]
    pub like: Like,
    /// Make the kind `Recommendation` known to the cluster if it is not
    #[arg(long)]
    pub create_definition: bool,
    /// Address of /healthz, /readyz and /metrics, such as 127.0.0.1:8091; none without
    #[arg(long, value_name = "ADDRESS")]
    pub http_bind_address: Option<SocketAddr>,

    #[command(flatten)]
    pub election: LeaderElection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Like {
    /// 95 % of the time for CPU, peaks for memory, and a margin that shrinks as more is known
    Loadline,
    /// The 99th percentile of a week, and 15 %
    Crane,
}
