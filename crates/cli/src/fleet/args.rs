//! What can be said to `loadline fleet`.

use super::binding::{self, Bindings};
use super::placement::{self, Placements};
use super::publish::{self, Publish};
use crate::leader_election::LeaderElection;
use clap::parser::ValueSource;
use clap::{ArgGroup, ArgMatches, Args, Command, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  loadline fleet --api ocm --kubeconfig hub.kubeconfig
      in place of Open Cluster Management's placement controller
  loadline fleet --api ocm --leader-elect --http-bind-address 0.0.0.0:8095
      in the hub, one of several
  loadline fleet --publish --cluster-name m1 --kubeconfig hub.kubeconfig
      in the member m1: tells the hub how much of it is requested and used
  loadline fleet --publish --member m1=m1.kubeconfig --member m2=m2.kubeconfig
      in the hub, for two members
  loadline fleet --api karmada --kubeconfig karmada.kubeconfig --enable-scheduler-estimator
      in place of karmada-scheduler
  loadline fleet --api karmada --scheduler-name loadline --estimator m1=10.0.0.7:10352
      beside it, for policies that say schedulerName: loadline

What its account must be allowed with --api ocm:
  list, watch    managedclusters, managedclustersets, managedclustersetbindings, placements,
                 addonplacementscores, placementdecisions, all of cluster.open-cluster-management.io
  create, patch, delete
                 placementdecisions.cluster.open-cluster-management.io
  patch          placements/status, placementdecisions/status; update placements/finalizers
  create, patch  events.events.k8s.io
  get, create, update
                 leases.coordination.k8s.io, with --leader-elect
  create         tokenreviews.authentication.k8s.io, subjectaccessreviews.authorization.k8s.io, with --authorize-debug

What it must be allowed with --publish, in each member:
  list, watch    nodes, pods
  list           nodes.metrics.k8s.io
and in the hub:
  patch          managedclusters.cluster.open-cluster-management.io, those of the members
  get, create    addonplacementscores.cluster.open-cluster-management.io, in the namespaces of the members
  patch          addonplacementscores/status, there
  create, patch  events.events.k8s.io, with --leader-elect
  get, create, update
                 leases.coordination.k8s.io, with --leader-elect

What its account must be allowed with --api karmada:
  list, watch    clusters.cluster.karmada.io; resourcebindings, clusterresourcebindings of work.karmada.io
  get, patch     resourcebindings, clusterresourcebindings, and the status of both
  get            services, in the namespace of --scheduler-estimator-service-namespace
  create, patch  events.events.k8s.io
  get, create, update
                 leases.coordination.k8s.io, with --leader-elect

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["api", "publish"]))]
pub struct Fleet {
    /// Whose objects are decided
    #[arg(long, value_name = "API")]
    pub api: Option<Api>,
    /// Tell the hub how much of a member is requested and used, instead of deciding
    #[arg(long)]
    pub publish: bool,
    /// How to reach the hub; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Address of /healthz, /readyz and /metrics, such as 127.0.0.1:8095; none without
    #[arg(long, value_name = "ADDRESS")]
    pub http_bind_address: Option<SocketAddr>,

    #[command(flatten)]
    pub placements: Placements,
    #[command(flatten)]
    pub bindings: Bindings,
    #[command(flatten)]
    pub publishing: Publish,
    #[command(flatten)]
    pub election: LeaderElection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Api {
    /// Open Cluster Management: Placement → `PlacementDecision`
    Ocm,
    /// Karmada: `ResourceBinding` and `ClusterResourceBinding` → `spec.clusters`
    Karmada,
}

/// Flags are listed under what they are for, and those for something else than what is asked for would be without effect: says
/// which were given, all at once.
pub fn without_effect(command: &Command, given: &ArgMatches) -> Option<String> {
    const PARTS: [(&str, &str); 3] = [
        (placement::HEADING, "--api ocm"),
        (binding::HEADING, "--api karmada"),
        (publish::HEADING, "--publish"),
    ];
    let asked = match given.get_one::<Api>("api") {
        Some(Api::Ocm) => "--api ocm",
        Some(Api::Karmada) => "--api karmada",
        None => "--publish",
    };
    let of = |heading: Option<&str>| PARTS.iter().find(|(listed, _)| Some(*listed) == heading);
    let problem = |arg: &clap::Arg| {
        let (_, part) = of(arg.get_help_heading()).filter(|(_, part)| *part != asked)?;
        let is_given = given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        is_given.then(|| format!("--{} is for {part}", arg.get_long().unwrap_or_default()))
    };
    let problems: Vec<String> = command.get_arguments().filter_map(problem).collect();
    (!problems.is_empty()).then(|| format!("{}; {asked} was given", problems.join(", ")))
}
