//! `loadline cleanup`: takes away what components left in a cluster.

use crate::{component, out};
use anyhow::Result;
use clap::Args;
use loadline_services::cleanup::{self, Options};
use std::path::PathBuf;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  loadline cleanup --kubeconfig admin.kubeconfig --namespace loadline-system

What its account must be allowed:
  list, patch    nodes
  patch          nodes/status
  list           pods
  list, delete   configmaps, leases.coordination.k8s.io, in the namespace

Exit status: 0 when nothing is left, 2 for bad input, or when components are still there or the cluster refuses.";

/// The flags.
#[derive(Debug, Args)]
pub struct Cleanup {
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where the components were
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    namespace: String,
    /// How long their pods may take to end
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = crate::args::duration)]
    wait: Duration,
}

pub async fn run(args: &Cleanup) -> Result<()> {
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let options = Options { cluster, namespace: args.namespace.clone(), patience: args.wait };
    let removed = cleanup::run(&options).await?;
    let cleanup::Removed { nodes, leases, config_maps, left_to } = removed;
    if !left_to.is_empty() {
        tracing::warn!(
            pods = left_to.join(", "),
            "marks on nodes are left: components in other namespaces are at work, which may have made them"
        );
    }
    out::line(&format!("removed: marks on {nodes} nodes, {leases} leases, {config_maps} ConfigMaps"));
    Ok(())
}
