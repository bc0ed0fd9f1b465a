//! What can be said to `loadline explain`.

use crate::out::Output;
use crate::scheduler::args::RuleFlags;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// About what.
#[derive(Debug, Subcommand)]
pub enum Explain {
    /// Say why a pod is where it is, or nowhere
    ///
    /// Shows what was decided about the pod of late, if a running scheduler remembers it, and what every rule says of every
    /// node now: the load terms with value, age and limit (-o wide), the scores, and what would have to be different.
    /// Without a scheduler to ask, the cluster is read and the same is worked out here. Nothing is changed anywhere.
    #[command(after_help = EXAMPLES)]
    Pod(Pod),
    /// Say what the agent of a node sees, and what it would do now
    ///
    /// Asks a running `loadline agent`: where every rule is, the lines and the gaps to them, who comes first by each metric,
    /// what would be written and who would be evicted, and why others are left alone.
    #[command(after_help = NODE_EXAMPLES)]
    Node(Node),
    /// Say which clusters a placement selects now, and why these
    ///
    /// Reads the hub and decides the placement as `loadline fleet --api ocm` does: who is filtered by what, the points of
    /// everybody (-o wide), the margin to the first that is not selected, what would be written, and when the answer may be
    /// another one. All that decides is in the hub, so whoever publishes, the answer is the same. Nothing is changed.
    #[command(after_help = PLACEMENT_EXAMPLES)]
    Placement(Placement),
    /// Say which clusters a binding of Karmada gets, how many replicas each, and why
    ///
    /// Asks a running `loadline fleet --api karmada`: what was last decided, who was filtered by what, what every estimator
    /// said and how long ago, and what would be decided now.
    #[command(after_help = BINDING_EXAMPLES)]
    Binding(Binding),
}

const BINDING_EXAMPLES: &str = "\
Examples:
  loadline explain binding shop/web-deployment --controller http://127.0.0.1:8095
      asks a running `loadline fleet --api karmada --http-bind-address 127.0.0.1:8095`

Exit status: 0 when there is an answer, 2 for bad input, when nobody answers, or when there is no such binding.";

#[derive(Debug, Args)]
pub struct Binding {
    /// The binding, NAMESPACE/NAME; NAME alone for a `ClusterResourceBinding`
    #[arg(value_name = "BINDING")]
    pub name: String,
    /// Where the controller serves /metrics
    #[arg(long, value_name = "URL")]
    pub controller: String,
    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

const PLACEMENT_EXAMPLES: &str = "\
Examples:
  loadline explain placement team/web --kubeconfig hub.kubeconfig
      who is selected, who is not, and why
  loadline explain placement team/web -o json
      the same for a program

The account must be allowed to list placements, placementdecisions, managedclusters, managedclustersets,
managedclustersetbindings and addonplacementscores of cluster.open-cluster-management.io.

Exit status: 0 when there is an answer, 2 for bad input, or when there is no such placement.";

#[derive(Debug, Args)]
pub struct Placement {
    /// The placement, NAMESPACE/NAME; without a namespace, of `default`
    #[arg(value_name = "PLACEMENT")]
    pub name: String,
    #[command(flatten)]
    pub hub: crate::args::Hub,
    #[command(flatten)]
    pub rules: crate::args::PlaceRules,
    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

const NODE_EXAMPLES: &str = "\
Examples:
  loadline explain node worker-1 --agent http://127.0.0.1:8081
      asks a running `loadline agent --http-bind-address 127.0.0.1:8081`

Exit status: 0 when there is an answer, 2 for bad input, when nobody answers, or when it is another node's agent.";

#[derive(Debug, Args)]
pub struct Node {
    /// The node
    #[arg(value_name = "NODE")]
    pub name: String,
    /// Where its agent serves /metrics
    #[arg(long, value_name = "URL")]
    pub agent: String,
    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

const EXAMPLES: &str = "\
Examples:
  loadline explain pod default/web-1 --scheduler http://127.0.0.1:10259
      asks a running `loadline scheduler --http-bind-address 127.0.0.1:10259`
  loadline explain pod default/web-1 --kubeconfig admin.kubeconfig
      reads the cluster; the account must be allowed to list and watch what the scheduler does

Exit status: 0 when there is an answer, 2 for bad input, when nobody answers, or when there is no such pod.";

#[derive(Debug, Args)]
pub struct Pod {
    /// The pod, NAMESPACE/NAME; without a namespace, of `default`
    #[arg(value_name = "POD")]
    pub name: String,
    /// Where a running scheduler serves /metrics
    #[arg(long, value_name = "URL", conflicts_with_all = ["kubeconfig", "config", "names", "policy", "requests_only"])]
    pub scheduler: Option<String>,
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    pub rules: RuleFlags,
    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}
