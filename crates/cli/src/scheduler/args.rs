//! What can be said to `loadline scheduler`. Flags of leader election are those of Kubernetes' own components.

use anyhow::Result;
use clap::{ArgAction, Args};
use loadline_core::lease::Settings;
use loadline_services::cluster::lease;
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

    /// Let one of several schedulers lead, by a lease; the others stand by
    #[arg(long, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, default_value_t = false, help_heading = "Leader election")]
    pub leader_elect: bool,
    /// How long the others wait before they take over from a leader they hear nothing of
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = crate::args::duration, help_heading = "Leader election")]
    pub leader_elect_lease_duration: Duration,
    /// How long a leader that cannot renew its lease goes on; shorter than the lease
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::args::duration, help_heading = "Leader election")]
    pub leader_elect_renew_deadline: Duration,
    /// Time between two attempts to get or renew the lease
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::args::duration, help_heading = "Leader election")]
    pub leader_elect_retry_period: Duration,
    /// What the lock is kept in; there is only one way
    #[arg(long, value_name = "KIND", default_value = "leases", help_heading = "Leader election")]
    pub leader_elect_resource_lock: String,
    /// Name of the lease
    #[arg(long, value_name = "NAME", default_value = "loadline-scheduler", help_heading = "Leader election")]
    pub leader_elect_resource_name: String,
    /// Namespace of the lease
    #[arg(long, value_name = "NAME", default_value = "kube-system", help_heading = "Leader election")]
    pub leader_elect_resource_namespace: String,
}

impl Scheduler {
    /// The election, if there is one.
    ///
    /// # Errors
    /// Everything that is wrong with its flags.
    pub fn lease(&self, identity: &str) -> Result<Option<lease::Checked>> {
        let options = lease::Options {
            leader_elect: self.leader_elect,
            settings: Settings {
                lease_duration: self.leader_elect_lease_duration,
                renew_deadline: self.leader_elect_renew_deadline,
                retry_period: self.leader_elect_retry_period,
            },
            resource_lock: self.leader_elect_resource_lock.clone(),
            resource_name: self.leader_elect_resource_name.clone(),
            resource_namespace: self.leader_elect_resource_namespace.clone(),
        };
        let checked = options.check(&options.lock(identity))?;
        Ok(self.leader_elect.then_some(checked))
    }
}
