//! What can be said to `loadline doctor`.

use crate::annotator::args::Prometheus;
use crate::out::Output;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  loadline doctor
      the cluster kubectl talks to, by crane's default policy
  loadline doctor --kubeconfig admin.kubeconfig --policy policy.yaml \\
        --prometheus-address http://prometheus.monitoring:9090 --estimator estimator.example.com:10352
      with everything Loadline goes by there
  loadline doctor --preflight
      before anything is installed: is the cluster recent enough, is there a metrics API, who else does the same work?
  loadline doctor --component scheduler --kubeconfig scheduler.kubeconfig
      may this account do all that a scheduler does?
  loadline doctor -f saved/ --now 2025-01-01T12:00:00Z
      from files, such as `kubectl get nodes,leases,nodes.metrics.k8s.io -A -o yaml` prints; what is in no file is not judged

What the account should be allowed; what it may not read is told and left out:
  list    nodes, leases.coordination.k8s.io, nodes.metrics.k8s.io, deployments and daemonsets.apps,
          recommendations.analysis.crane.io, nodeqoss and avoidanceactions.ensurance.crane.io
  get     customresourcedefinitions.apiextensions.k8s.io
  create  subjectaccessreviews.authorization.k8s.io, to ask what the accounts of components may do

Exit status: 0 when nothing is broken, 1 when something is, 2 for bad input.";

/// The flags.
#[derive(Debug, Args)]
pub struct Doctor {
    /// How to reach the cluster; without, as kubectl does, or as the pod this runs in
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub kubeconfig: Option<PathBuf>,
    /// A file of Kubernetes objects in YAML or JSON, a folder of such files, or - for the standard input, in place of a cluster; may
    /// be given several times
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// The time that is taken to be now, such as 2025-01-01T12:00:00Z, instead of the time it is
    #[arg(long, value_name = "TIME", value_parser = crate::args::moment, requires = "files")]
    pub now: Option<jiff::Timestamp>,
    /// The load policy that is meant to hold (`DynamicSchedulerPolicy`) and, if wanted, settings (`LoadSettings`)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Rules of agents (`NodeQOS` with its `AvoidanceAction`), in place of those in the cluster; may be given several times
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub agent_rules: Vec<PathBuf>,
    /// HOST:PORT of an estimator, the certificate of which is looked at; may be given several times
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub estimator: Vec<String>,
    /// A certificate as PEM, the end of which is looked at; may be given several times
    #[arg(long, value_name = "FILE")]
    pub certificate: Vec<PathBuf>,
    /// A component this account is to run: may it do all that takes? May be given several times
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "files")]
    pub component: Vec<Component>,
    /// Say whether Loadline can be installed, rather than how it does
    #[arg(long)]
    pub preflight: bool,
    /// A component that is not to be installed: who does its work already is no trouble then. May be given several times
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "preflight")]
    pub without: Vec<Component>,
    /// How long each read may take
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = crate::args::duration)]
    pub timeout: Duration,
    /// How the answer is printed; wide names everybody a finding is about
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,

    #[command(flatten)]
    pub prometheus: Prometheus,
}

/// Whose permissions are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Component {
    Scheduler,
    Annotator,
    Recommender,
    Rebalance,
    Agent,
    Estimator,
    /// `fleet --api ocm`
    Placement,
    /// `fleet --api karmada`
    Binding,
    /// `fleet --publish`, in the member it measures
    Publish,
    Dashboard,
}

impl From<Component> for loadline_core::doctor::Component {
    fn from(component: Component) -> Self {
        match component {
            Component::Scheduler => Self::Scheduler,
            Component::Annotator => Self::Annotator,
            Component::Recommender => Self::Recommender,
            Component::Rebalance => Self::Rebalance,
            Component::Agent => Self::Agent,
            Component::Estimator => Self::Estimator,
            Component::Placement => Self::Placement,
            Component::Binding => Self::Binding,
            Component::Publish => Self::Publish,
            Component::Dashboard => Self::Dashboard,
        }
    }
}

fn address(text: &str) -> Result<String, String> {
    let port =
        text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, port)| port.parse().ok());
    match port {
        Some(1_u16..) => Ok(text.to_owned()),
        _ => Err(format!("expected HOST:PORT such as estimator.example.com:10352, not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimator_has_a_host_and_a_port() {
        for (text, good) in [
            ("e:10352", true),
            ("[::1]:1", true),
            ("10.0.0.1:10352", true),
            ("e", false),
            (":1", false),
            ("e:0", false),
            ("e:x", false),
            ("https://e", false),
        ] {
            assert_eq!(address(text).is_ok(), good, "{text}");
        }
    }
}
