//! What can be said to `loadline explain`.

use crate::fleet::binding::{Transport, estimator};
use crate::out::Output;
use crate::scheduler::args::RuleFlags;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

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
    /// what would be written and who would be evicted, and why others are left alone. Without an agent to ask, the rules and
    /// the metrics API of the cluster are read and the same is worked out here; what the agent measures and did, it alone knows.
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
    /// said and how long ago, and what would be decided now. Without a controller to ask, the hub is read and it is worked out
    /// here by what clusters say of themselves; what was decided, and what estimators say, the controller alone knows.
    #[command(after_help = BINDING_EXAMPLES)]
    Binding(Binding),
    /// Say how many replicas of a workload an estimator finds room for in its cluster, and why
    ///
    /// Asks a running `loadline estimator` as a fleet scheduler does, and for its reasons as well: what each node takes, what
    /// ends first there, what the load line leaves, which quota holds. The same words as `what-if estimate`, about what the
    /// estimator knows. Karmada's own estimator answers, too, without reasons.
    #[command(after_help = ESTIMATE_EXAMPLES)]
    Estimate(Estimate),
}

const ESTIMATE_EXAMPLES: &str = "\
Examples:
  loadline explain estimate -f web.yaml --cluster m1 --estimator 127.0.0.1:10352
      asks a running `loadline estimator --cluster-name m1 --kubeconfig m1.kubeconfig`
  loadline explain estimate -f web.yaml --cluster m1 --estimator estimator.example:10352 \
        --scheduler-estimator-ca-file ca.crt --scheduler-estimator-cert-file tls.crt --scheduler-estimator-key-file tls.key
      the same over mutual TLS, by the flags of `loadline fleet`
  loadline explain estimate -f web.yaml --cluster m1 --estimator 127.0.0.1:10352 -o json
      for a program

The file holds one workload: a Deployment, StatefulSet, ReplicaSet, Job, PodTemplate or a binding of Karmada.

Exit status: 0 when there is an answer, 2 for bad input, or when nobody answers.";

#[derive(Debug, Args)]
pub struct Estimate {
    /// A file with the workload in YAML or JSON, or - for the standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// The cluster, by the name the estimator knows it by
    #[arg(long, value_name = "NAME")]
    pub cluster: String,
    /// Where the estimator listens
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub estimator: String,
    /// How long it may take
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = crate::args::duration)]
    pub scheduler_estimator_timeout: Duration,
    #[command(flatten)]
    pub transport: Transport,
    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

fn address(text: &str) -> Result<String, String> {
    match estimator(text) {
        Ok((None, address)) => Ok(address),
        _ => Err(format!("expected HOST:PORT, not {text:?}")),
    }
}

const BINDING_EXAMPLES: &str = "\
Examples:
  loadline explain binding shop/web-deployment --controller http://127.0.0.1:8095
      asks a running `loadline fleet --api karmada --http-bind-address 127.0.0.1:8095`
  loadline explain binding shop/web-deployment --kubeconfig hub.kubeconfig
      reads the hub; the account must be allowed to list and watch clusters and bindings

Exit status: 0 when there is an answer, 2 for bad input, when nobody answers, or when there is no such binding.";

#[derive(Debug, Args)]
pub struct Binding {
    /// The binding, NAMESPACE/NAME; NAME alone for a `ClusterResourceBinding`
    #[arg(value_name = "BINDING")]
    pub name: String,
    /// Where the controller serves /metrics
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    pub controller: Option<String>,
    /// How to reach the hub; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
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
  loadline explain node worker-1 --kubeconfig admin.kubeconfig
      reads the cluster; the account must be allowed to list and watch nodes, pods and the rules of agents

Exit status: 0 when there is an answer, 2 for bad input, when nobody answers, or when it is another node's agent.";

#[derive(Debug, Args)]
pub struct Node {
    /// The node
    #[arg(value_name = "NODE")]
    pub name: String,
    /// Where its agent serves /metrics
    #[arg(long, value_name = "URL", conflicts_with = "kubeconfig")]
    pub agent: Option<String>,
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
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
    /// The pod, NAMESPACE/NAME, or its name alone
    #[arg(value_name = "POD")]
    pub name: String,
    /// Its namespace, where its name says none; without, that of the kubeconfig's context, or `default`
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
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
