//! What can be said on the command line.

use crate::agent::args as agent;
use crate::annotator::args as annotator;
use crate::cleanup;
use crate::dashboard::args as dashboard;
use crate::doctor::args as doctor;
use crate::estimator::args as estimator;
use crate::explain::args as explain;
use crate::fleet::args as fleet;
use crate::out::{self, Output};
use crate::plugin::{self, Called};
use crate::rebalance::args as rebalance;
use crate::recommender::args as recommender;
use crate::replay::args as replay;
use crate::scheduler::args as scheduler;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

Local:
  up          Start a small Kubernetes on this machine: API server, nodes, workloads
  apiserver   Start only the API server

Services:
  scheduler   Give pods nodes in a real cluster, by what nodes really use
  annotator   Write on nodes how loaded they are, for schedulers that read it there
  recommender Learn what the pods of each workload really use, and recommend it
  rebalance   Move pods away from nodes that stay over their line, to where there is room
  agent       Keep the node it runs on from being overrun: throttle, evict, give back
  estimator   Answer how many replicas would fit in each cluster of a fleet
  fleet       Decide which clusters of a fleet get what, or tell the hub how loaded one is
  dashboard   Show a cluster in your browser: nodes and their lines, decisions and why

Questions:
  explain     Say why: where a pod is, what an agent does, whom a placement or binding gets
  doctor      Say what is wrong with a cluster or how Loadline is set up in it, and what to do
  what-if     Say what would be decided, and why
  replay      Say what would have happened under one policy or another
  policy      Say what a load policy means, or what is wrong with it
  config      Print what a scheduler's configuration comes to

Other:
  cleanup     Remove what components left in a cluster
  completion  Print a completion script for your shell
  version     Print the version, the commit it was made from, and how

Options:
{options}

New here? Start with `loadline up` and follow the three commands it prints.
`loadline help COMMAND` explains a command.
";

/// Load-aware scheduling for Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "loadline", help_template = HELP, version, disable_version_flag = true, max_term_width = 100)]
pub struct Loadline {
    #[command(flatten)]
    pub log: Log,
    #[command(subcommand)]
    pub command: Command,
}

impl Loadline {
    /// What was said on the command line; ends the process, and says why, where that makes no sense.
    pub fn read() -> Self {
        let mut command = Self::command();
        let mut words = std::env::args_os();
        let called = Called::by(&words.next().unwrap_or_default());
        if called == Called::Completion {
            let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
            out::print(&plugin::complete(&command, &words));
            std::process::exit(0);
        }
        if called == Called::Plugin {
            command = plugin::of_kubectl(command.help_template(plugin::said(HELP)));
        }
        let given = command.get_matches_mut();
        if let Some(("fleet", given)) = given.subcommand()
            && let Some(fleet) = command.find_subcommand_mut("fleet")
            && let Some(problems) = fleet::without_effect(fleet, given)
        {
            fleet.error(ErrorKind::ArgumentConflict, problems).exit();
        }
        let mut read =
            Self::from_arg_matches(&given).unwrap_or_else(|error| error.format(&mut command).exit());
        if let (Called::Plugin, Command::Explain(about)) = (called, &mut read.command) {
            // The others look where kubectl does anyway.
            let kubeconfig = match about {
                explain::Explain::Pod(pod) => Some(&mut pod.kubeconfig),
                explain::Explain::Node(node) => Some(&mut node.kubeconfig),
                explain::Explain::Binding(binding) => Some(&mut binding.kubeconfig),
                explain::Explain::Placement(_) | explain::Explain::Estimate(_) => None,
            };
            if let Some(kubeconfig) = kubeconfig {
                *kubeconfig = kubeconfig.take().or_else(plugin::kubeconfig);
            }
        }
        read
    }
}

#[derive(Debug, Args)]
pub struct Log {
    /// Tell more on stderr: once for what happens, twice for every decision
    #[arg(short, long, action = clap::ArgAction::Count, global = true, display_order = 100)]
    pub verbose: u8,
    /// How lines on stderr are written
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true, display_order = 101)]
    pub log_format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start a small Kubernetes on this machine: API server, nodes, workloads
    ///
    /// Nothing needs to be installed, and nothing outlives the command. Nodes are simulated: they register,
    /// run the pods bound to them and report what these use, but start no containers. Deployments roll out
    /// and scale, disruption budgets are kept, `kubectl drain` and `kubectl top` work.
    ///
    /// Annotations on a pod change how it is simulated: `loadline.dev/run-for: 10s` makes it succeed after
    /// ten seconds, `loadline.dev/stop-after: 5s` makes it linger for five when it is deleted,
    /// `loadline.dev/usage-cpu: 1500m` fixes the CPU it uses.
    ///
    /// Pods go where measured load leaves room, by crane's default policy or your own. Nodes protect themselves by the
    /// `NodeQOS`, `PodQOS` and `AvoidanceAction` objects you apply; without any, nothing is throttled or evicted.
    #[command(after_help = UP_EXAMPLES)]
    Up(Up),
    /// Start only the API server
    ///
    /// Kubernetes' API in memory, with nothing behind it: objects are stored, validated and watched, and no
    /// controller acts on them. Useful to test a controller of your own.
    #[command(after_help = APISERVER_EXAMPLES)]
    Apiserver(Apiserver),
    /// Give pods nodes in a real cluster, by what nodes really use
    ///
    /// A scheduler beside the one you have: pods that name it in `spec.schedulerName` go where measured load leaves room,
    /// by crane's policy files; all others are left alone. Each decision is charged to its node before the next one,
    /// and a pod that waits is told why, in kube-scheduler's words.
    ///
    /// With --shadow it only looks on and tells what it would have changed; with --extender it also answers
    /// kube-scheduler's questions about load. Pods that claim devices (`resourceClaims`) wait with that reason: leave them to
    /// kube-scheduler.
    #[command(after_help = scheduler::EXAMPLES)]
    Scheduler(Box<scheduler::Scheduler>),
    /// Write on nodes how loaded they are, for schedulers that read it there
    ///
    /// Does what crane's annotator does, in its format, for clusters of any size: load of five minutes, an hour and a day,
    /// and how many pods came of late (the hot value). Values come from the metrics API, from Prometheus, or from both;
    /// without Prometheus the longer ranges are kept in memory and marked until they are full. One patch carries everything
    /// that is due on a node, at a limited rate, stamped with the moment of the measurement.
    ///
    /// Nothing is invented: what no source knows is left to expire.
    #[command(after_help = annotator::EXAMPLES)]
    Annotator(Box<annotator::Annotator>),
    /// Learn what the pods of each workload really use, and recommend it
    ///
    /// Keeps, per workload and container, what its pods were measured to use: a decaying histogram of CPU, peaks of memory,
    /// the largest use by hour of the day, and kills for lack of memory. Published as `Recommendation` objects in crane's
    /// format, one per workload, which schedulers that read them charge a new replica with, from its second pod on. No
    /// workload is changed.
    ///
    /// What was learned is kept in the same objects, so a restart goes on where the last one ended.
    #[command(after_help = recommender::EXAMPLES)]
    Recommender(Box<recommender::Recommender>),
    /// Move pods away from nodes that stay over their line, to where there is room
    ///
    /// Load changes after pods were placed. A node that has been over its line for a while gives up pods, by the Eviction API
    /// and within disruption budgets: the least important first, and only those for which the same engine that schedules
    /// knows a node that stays under its line with the most the pod uses. Few are moved, none comes back, no two nodes
    /// swap pods, and every pod that stays has a reason. Without --act it only says what it would do.
    ///
    /// What was moved is written on the node before a pod is asked to go, so that nothing is forgotten or done twice,
    /// however it ends.
    #[command(after_help = rebalance::EXAMPLES)]
    Rebalance(Box<rebalance::Rebalance>),
    /// Keep the node it runs on from being overrun: throttle, evict, give back
    ///
    /// By the `NodeQOS`, `PodQOS` and `AvoidanceAction` objects of the cluster, in crane's format: when a metric of the node
    /// passes its waterline, the least important pods are slowed down or evicted, exactly as many and as far as needed; when
    /// it is over, they get everything back. Without --act it says what it would do, in Events and in `explain node`.
    ///
    /// Runs on each node, as root or with what is listed below. What it takes is written down before it is taken, so that the
    /// next agent gives it back, however this one ends. While the API server is away throttling goes on, and evictions wait.
    #[command(after_help = agent::EXAMPLES)]
    Agent(Box<agent::Agent>),
    /// Decide which clusters of a fleet get what, or tell the hub how loaded one is
    ///
    /// In the hub, with --api ocm, it decides Placements of Open Cluster Management, in place of its placement controller.
    /// Decisions are the same but for listed differences: no selected cluster is ever briefly missing from what is
    /// published, a mistake tears nothing down, and every cluster has a reason.
    ///
    /// With --api karmada it divides what Karmada binds over its clusters, in place of karmada-scheduler or beside it: by what
    /// estimators answer, each for itself, and by what was just promised.
    ///
    /// With --publish it tells the hub how much of a member is requested and used, so that placements can go by it.
    #[command(after_help = fleet::EXAMPLES)]
    Fleet(Box<fleet::Fleet>),
    /// Answer how many replicas would fit in each cluster of a fleet
    ///
    /// Speaks the gRPC protocol of Karmada's scheduler-estimator, so that Karmada's scheduler and descheduler can ask
    /// it unchanged: start it in place of `karmada-scheduler-estimator`, with the same flags. Every cluster is watched,
    /// and answers come from memory: node by node, with quotas, pods on their way and, if wanted, measured load.
    ///
    /// It answers for a cluster once everything there has been read, and goes on while its API server is away;
    /// `/readyz` and `/metrics` say how old that is.
    #[command(after_help = estimator::EXAMPLES)]
    Estimator(Box<estimator::Estimator>),
    /// Show a cluster in your browser: nodes and their lines, decisions and why
    ///
    /// A page of which every figure comes from the engines that decide: what each node is asked for, uses and will use, against
    /// its line; why a pod went where it went, and why not elsewhere; who was slowed down, sent away or moved; how old the data
    /// are. It reads and never writes.
    #[command(after_help = dashboard::EXAMPLES)]
    Dashboard(Box<dashboard::Dashboard>),
    /// Say why a pod is where it is, or what the agent of a node does
    #[command(subcommand)]
    Explain(explain::Explain),
    /// Say what is wrong with a cluster or how Loadline is set up in it, and what to do
    ///
    /// Looks once at everything Loadline stands on: are measurements arriving, which nodes match no series of Prometheus and
    /// why, do clocks agree, is what nodes bear still true, are targets above waterlines, may components do what they do, do two
    /// of them say different things. Each finding has what it is, why it matters, what to do, and a command that shows it.
    ///
    /// It reads and never writes. A read that is denied or fails is itself a finding, and stops no other.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(Box<doctor::Doctor>),
    /// Say what would be decided, and why
    ///
    /// Every engine answers from files: what `kubectl get -o yaml` or `-o json` prints, in any order. Nothing is
    /// changed anywhere, and no cluster is contacted unless you say `--live`.
    #[command(subcommand)]
    WhatIf(WhatIf),
    /// Say what would have happened under one policy or another
    ///
    /// Pods come, use what a real workload used, and leave; every five minutes nodes are measured; each pod is placed by the
    /// engines of production, under one policy after another. Told is how long nodes were asked for more than they have, what
    /// was not served, who waited, who was moved. No cluster is needed; the same seed gives the same answer.
    ///
    /// Workloads follow real series: built in, or from your files. Their replicas are up to 15 minutes apart and use up to 20 %
    /// more or less; they come evenly over the days but the last, live about a day, and ask for what their workload uses on
    /// average times an error as people make it. All that fits by requests may be placed, as kube-scheduler has it; where the
    /// rule of a policy allows no node, the best of them is taken.
    #[command(after_help = replay::after_help())]
    Replay(Box<replay::Replay>),
    /// Say what a load policy means, or what is wrong with it
    Policy {
        #[command(subcommand)]
        command: Policy,
    },
    /// Print what a scheduler's configuration comes to
    Config {
        #[command(subcommand)]
        command: Config,
    },
    /// Remove what components left in a cluster
    ///
    /// For the end: once no component runs any more, takes from nodes the annotations, taints and conditions they wrote, and
    /// deletes their leases and what they remembered of the past of nodes. Annotations of yours stay, and so do the objects of
    /// all kinds: rules, recommendations, placements. Helm runs it after `helm uninstall`.
    #[command(after_help = cleanup::EXAMPLES)]
    Cleanup(cleanup::Cleanup),
    /// Print a completion script for your shell
    #[command(after_help = "Example:\n  source <(loadline completion bash)")]
    Completion {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the version, the commit it was made from, and how
    Version,
    /// Write the reference pages to a folder
    #[command(hide = true)]
    Reference {
        /// Which folder
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Check a policy and print what follows from it
    ///
    /// A policy says which metrics of a node count: how often they are fetched and how long they are good,
    /// above which share of the node (0 to 1) no more pods come, how much each weighs in the score, and how
    /// many pods bound in a short time make a node hot. The format is that of crane's scheduler
    /// (`DynamicSchedulerPolicy`), read unchanged. What is Loadline's own is a second document in the same
    /// file (`LoadSettings`): targets, exceptions for some nodes, the zone crane writes its stamps in.
    ///
    /// Given the rules of node agents as well (`NodeQOS` with its `AvoidanceAction`) and the nodes, it says where a target
    /// is above the line of a rule: there, pods are sent to nodes that are emptied again.
    #[command(after_help = POLICY_EXAMPLES)]
    Check(PolicyCheck),
}

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Print a configuration with every default filled in
    ///
    /// Without a file, the configuration `loadline scheduler` goes by when nothing is said. What is printed can be given
    /// to `--config` as it is. Everything that is wrong with a file is said at once, each with its path.
    #[command(after_help = CONFIG_EXAMPLES)]
    Print(ConfigPrint),
}

const CONFIG_EXAMPLES: &str = "\
Examples:
  loadline config print > scheduler.yaml   to begin with
  loadline config print scheduler.yaml     what a file comes to

Two schedulers in one process, each with its own rules:
  apiVersion: loadline.dev/v1alpha1
  kind: SchedulerConfiguration
  profiles:
  - schedulerName: loadline
  - schedulerName: batch
    settings: {targets: {cpu: 0.9}}
    whenOverloaded: LeastBad
    leastBadAfter: 1m

Exit status: 0 when it is right, 2 when it is not.";

#[derive(Debug, Args)]
pub struct ConfigPrint {
    /// The file; - for the standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    pub output: crate::config::Format,
}

const POLICY_EXAMPLES: &str = "\
Examples:
  loadline policy check scenarios/policies/default.yaml   the values crane ships
  loadline policy check policy.yaml -o json               for scripts
  loadline policy check - < policy.yaml                   from elsewhere
  loadline policy check policy.yaml qos.yaml nodes.yaml   do the rules of node agents agree with it?

A policy with everything in it:
  apiVersion: scheduler.policy.crane.io/v1alpha1
  kind: DynamicSchedulerPolicy
  spec:
    syncPolicy: [{name: cpu_usage_avg_5m, period: 3m}]
    predicate: [{name: cpu_usage_avg_5m, maxLimitPecent: 0.65}]
    priority: [{name: cpu_usage_avg_5m, weight: 1}]
    hotValue: [{timeRange: 5m, count: 5}]
  ---
  apiVersion: loadline.dev/v1alpha1
  kind: LoadSettings
  spec:
    targets: {cpu: 0.8, memory: 0.8}

Exit status: 0 when the policy can be used, 1 when a target is above the line of a rule, 2 when it
cannot be used: every problem is a line on stderr.";

const UP_EXAMPLES: &str = "\
Examples:
  loadline up                                  ten nodes, and what there is to see in a minute
  loadline up --quiet-world                    the same nodes without anything on them
  loadline up --nodes 100 --for 5m             bounded, with a summary at the end
  loadline up --port 8080 --kubeconfig-out k   at a known place
  loadline up --workloads 16                   with something to watch
  loadline up --scenario overload --for 75s    a node is overrun, and protects itself
  loadline up --scheduler ./kube-scheduler     a stock scheduler beside ours
  loadline up --clusters 3                     a fleet, and an estimator for all of it
  loadline up --scenario totals                a fleet in which totals mislead
  loadline up --compare                        what does all of it change beside requests?
  loadline up --compare --workloads 16         and placing alone, with real workloads?
  loadline up --compare --scenario underrated  and learning what pods really use?

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

const APISERVER_EXAMPLES: &str = "\
Examples:
  loadline apiserver
  loadline apiserver --listen 0.0.0.0:8001 --token-file token

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

const PLACE_EXAMPLES: &str = "\
Read are Placement, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision
and AddOnPlacementScore.

Examples:
  loadline what-if place -f scenarios/placement/fleet.yaml scenarios/placement/free-share.yaml
  kubectl get mcl,mclset,mclsetbinding,placement,placementdecision -A -o yaml | loadline what-if place -f -

Exit status: 0 when everything was answered, 2 for bad input.";

const PROTECT_EXAMPLES: &str = "\
Read are Node, Pod, PriorityClass, NodeQOS, PodQOS, AvoidanceAction, PodDisruptionBudget and one
NodeSnapshot; also the older NodeQOSEnsurancePolicy, PodQOSEnsurancePolicy and ServicePolicy. Without
a snapshot the NodeMetrics and PodMetrics of the metrics API stand in.

Measured is what the snapshot says (usage in cores and bytes, quotas in microseconds):
  apiVersion: loadline.dev/v1alpha1
  kind: NodeSnapshot
  metadata: {name: n1}
  timestamp: \"2025-01-01T00:00:00Z\"
  node: {cpuCores: 8, memoryTotal: 34359738368}
  metrics: [{name: cpu_total_usage, value: 7500}]
  pods:
  - {name: a, cpuUsage: 2.0, containers: [{name: main, cpuUsage: 2.0, quotaUs: -1}]}

Examples:
  loadline what-if protect -f scenarios/protect/policy.yaml scenarios/protect/busy.yaml
  loadline what-if protect -f policy.yaml snapshot.yaml -o json | jq .victims
  loadline what-if protect --live --node worker-1

Exit status: 0 when it was answered, 2 for bad input.";

const SCHEDULE_EXAMPLES: &str = "\
Read are Node, Pod, NodeMetrics, PodMetrics, Recommendation, Event, PersistentVolume,
PersistentVolumeClaim, StorageClass, CSINode, CSIDriver, CSIStorageCapacity, PriorityClass,
Namespace, PodDisruptionBudget, Service, the workloads that own pods, and at most one
DynamicSchedulerPolicy and one LoadSettings.

Examples:
  kubectl get nodes,pods,events -A -o yaml | loadline what-if schedule -f -
  loadline what-if schedule -f cluster.yaml -f new-pods.yaml -o wide
  loadline what-if schedule -f cluster.yaml --now 2025-01-01T12:00:00Z -o json

Exit status: 0 when it was answered, also when a pod fits nowhere; 2 for bad input.";

const ESTIMATE_EXAMPLES: &str = "\
Asked about is one workload: a Deployment, StatefulSet, ReplicaSet, Job or PodTemplate, or a
ResourceBinding of Karmada. A workload that another one made only says who owns its pods; beside a
PodTemplate or ResourceBinding so do all others. Also read are Node, Pod, ResourceQuota,
PriorityClass, any number of AssumedWorkload, and everything `what-if schedule` reads.

What is on its way to the cluster and not to be seen there yet takes its place first:
  apiVersion: loadline.dev/v1alpha1
  kind: AssumedWorkload
  metadata: {name: promised, namespace: shop}
  spec:
    resource: {apiVersion: apps/v1, kind: Deployment, name: api}   # its pods count once
    components:
    - {name: api, replicas: 4, replicaRequirements: {resourceRequest: {cpu: \"2\"}}}

Examples:
  kubectl get nodes,pods,quota -A -o yaml | loadline what-if estimate -f - web.yaml
  loadline what-if estimate -f cluster.yaml -f web.yaml -o wide
  loadline what-if estimate -f cluster.yaml metrics.json web.yaml --load
  loadline what-if estimate --live -f web.yaml

Exit status: 0 when it was answered, also when nothing fits; 2 for bad input, or when the cluster
cannot be read.";

const DIVIDE_EXAMPLES: &str = "\
Divided is one ResourceBinding or ClusterResourceBinding of Karmada, or a Deployment, StatefulSet,
ReplicaSet or Job together with its PropagationPolicy, over every Cluster that is given. An
AssumedWorkload with `spec.cluster` is on its way there and takes its room first.

Examples:
  kubectl get clusters -o yaml | loadline what-if divide -f - web.yaml policy.yaml
  loadline what-if divide -f fleet.yaml binding.yaml --estimate member1=0 --estimate member2=4
  loadline what-if divide -f fleet.yaml binding.yaml --shortfall partial -o wide
  loadline what-if divide -f fleet.yaml binding.yaml -o json

Exit status: 0 when it was answered, also when no cluster will do; 2 for bad input.";

/// Which engine is asked.
#[derive(Debug, Subcommand)]
pub enum WhatIf {
    /// Say where pods without a node would go, node by node
    ///
    /// Pods are decided in the order of a scheduling queue: by priority, then by age, then by name. Each is charged
    /// to its node before the next is decided.
    #[command(after_help = SCHEDULE_EXAMPLES)]
    Schedule(Schedule),
    /// Say how many more replicas of a workload would really fit, node by node
    ///
    /// A total says little: ten nodes with 8 free cores each take no pod of 12. Counted is, node by node, what is
    /// free there of everything a replica requests and of places for pods, on nodes whose labels and taints let it
    /// in; then what quotas leave. Bindings with components are counted in complete sets, placed first fit.
    #[command(after_help = ESTIMATE_EXAMPLES)]
    Estimate(Estimate),
    /// Say which clusters of a fleet get how many replicas, and why these
    ///
    /// As Karmada's scheduler decides it: clusters that may have the workload at all, how many more replicas fit in
    /// each, which of them the spread constraints allow, and how the replicas are divided. How many fit is taken
    /// from what each cluster says of itself, or from you.
    #[command(after_help = DIVIDE_EXAMPLES)]
    Divide(Divide),
    /// Say which clusters placements would select, and what would be published
    ///
    /// Every Placement of the input is decided over the clusters of the sets its namespace is bound to: who is filtered
    /// and why, how many points the others have from where, and what is written in which order.
    /// Placements do not see what others of the same input select, only what is published.
    #[command(after_help = PLACE_EXAMPLES)]
    Place(Place),
    /// Say whom a node with too much load would throttle or evict, and what it would give back
    ///
    /// One cycle of the node agent, as if it had just measured what the snapshot says: where every rule is, how far
    /// it is to each waterline, who comes first, and every step with its reason and what it is expected to release. Beside
    /// it stands what acting on every pod would do. Nothing is changed anywhere; the state in the answer is that of the next snapshot.
    #[command(after_help = PROTECT_EXAMPLES)]
    Protect(Protect),
    /// Say which pods should leave nodes that are over their line, where each would go, and why the others stay
    ///
    /// A node that has been over its line for a while gives up pods until it is not: the least important first, and only
    /// those for which the scheduling engine knows a node that stays under its line with the most the pod uses. Each move
    /// is charged before the next is decided. Nothing is changed anywhere.
    #[command(after_help = REBALANCE_EXAMPLES)]
    Rebalance(Rebalance),
}

const REBALANCE_EXAMPLES: &str = "\
Read is everything `what-if schedule` reads, and at most one RebalanceSettings. A node and a pod may
be measured several times: how long a node has been over its line is seen from the times of its
NodeMetrics. What `kubectl get --raw` prints is one moment; --steady takes it for how it always was.

Examples:
  loadline what-if rebalance -f cluster.yaml -f metrics.yaml
  loadline what-if rebalance -f cluster.yaml -f metrics.yaml --steady -o wide
  loadline what-if rebalance -f cluster.yaml -f metrics.yaml -f settings.yaml -o json

Settings, with their defaults:
  apiVersion: loadline.dev/v1alpha1
  kind: RebalanceSettings
  spec:
    enabled: true
    slack: 0.1        # of a node's CPU, over its line, before any pod leaves
    margin: 0.05      # of a node, to be left under its line
    overFor: 5m       # so long must a node have been over its line
    highFor: 2h       # so far back the highest use of a pod is looked for
    dwell: 2h         # so long a pod stays where it was moved to
    warmUp: 10m       # so long a pod must have been there
    worth: 0.05       # of the gap, to be worth moving
    perNode: 4        # moves within an hour from a node,
    perWorkload: 2    # of a workload,
    perHour: 60       # and in all
    exempt: {namespaces: [kube-system]}
    landing: Planned  # Loadline's scheduler or extender places by load; Scheduled: another one does
    level: Now        # what is used where it goes; Hour: the highest of an hour, if that is more
    closing: Mark     # of nodes that gave up pods; Taint: for schedulers that know no mark

Exit status: 0 when it was answered, also when nothing is to be moved; 2 for bad input.";

/// Where the facts come from.
#[derive(Debug, Args)]
pub struct Input {
    /// A file of Kubernetes objects in YAML or JSON, a folder of such files, or - for the standard input; may be given
    /// several times
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// The time that is taken to be now, such as 2025-01-01T12:00:00Z, instead of the time it is
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub now: Option<jiff::Timestamp>,
}

#[derive(Debug, Args)]
pub struct Rebalance {
    #[command(flatten)]
    pub input: Input,
    /// Take what was measured for how it has been for long enough
    #[arg(long)]
    pub steady: bool,
    /// How the answer is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct Schedule {
    #[command(flatten)]
    pub input: Input,
    /// Decide every pod as if it were alone, instead of charging each before the next
    #[arg(long)]
    pub independent: bool,
    /// How the answer is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

/// Which cluster is read.
#[derive(Debug, Args)]
pub struct FromCluster {
    /// Read nodes, pods, quotas and priority classes (with --load measurements, too) from your cluster; the workload
    /// still comes from a file, and further objects may
    #[arg(long)]
    pub live: bool,
    /// The kubeconfig, instead of the one kubectl would use
    #[arg(long, value_name = "FILE", requires = "live")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in it, instead of the current one
    #[arg(long, value_name = "NAME", requires = "live")]
    pub context: Option<String>,
}

#[derive(Debug, Args)]
pub struct Estimate {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub from: FromCluster,
    /// Place pods that have no node yet before anything is counted
    #[arg(long)]
    pub pending: bool,
    /// Say also how many fit under the load line: by what nodes use, not only by what is requested
    #[arg(long)]
    pub load: bool,
    /// Say also how many would fit if pods of lower priority were evicted
    #[arg(long)]
    pub preempting: bool,
    /// How the answer is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct Divide {
    #[command(flatten)]
    pub input: Input,
    /// How many more replicas fit in a cluster, instead of what it says of itself, or beside it where the least counts; may be
    /// given several times
    #[arg(long = "estimate", value_name = "CLUSTER=N", value_parser = estimate)]
    pub estimates: Vec<(String, i32)>,
    /// Which estimate counts where there are several
    #[arg(long, value_name = "MODE", default_value = "accurate-first")]
    pub estimator_mode: EstimatorMode,
    /// Whose way it is divided
    #[arg(long, value_name = "MODE", default_value = "default")]
    pub mode: DivideMode,
    /// What happens when not all replicas fit
    #[arg(long, value_name = "POLICY", default_value = "fail")]
    pub shortfall: ShortfallPolicy,
    /// Clusters that get no replicas get the workload all the same
    #[arg(long)]
    pub empty_workload_propagation: bool,
    /// How the answer is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

/// Whose way replicas are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DivideMode {
    /// As documented in docs/division-differences.md
    Default,
    /// As Karmada v1.18 does, its defects included; the least estimate counts
    Upstream,
}

#[derive(Debug, Args)]
pub struct Protect {
    /// A file of Kubernetes objects in YAML or JSON, a folder of such files, or - for the standard input; may be given
    /// several times
    #[arg(short = 'f', long = "filename", value_name = "FILE", required_unless_present = "live", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// The time that is taken to be now, such as 2025-01-01T12:00:00Z, instead of the time of the measurements
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub now: Option<jiff::Timestamp>,
    /// Which node, where several were measured
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Read the node, its pods, what the metrics API says of them, and what was asked for from your cluster
    #[arg(long, requires = "node")]
    pub live: bool,
    /// The kubeconfig, instead of the one kubectl would use
    #[arg(long, value_name = "FILE", requires = "live")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in it, instead of the current one
    #[arg(long, value_name = "NAME", requires = "live")]
    pub context: Option<String>,
    /// How the answer is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

/// What a mistake in a placement leaves published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kept {
    /// The last good selection
    Retain,
    /// Nothing, as other controllers do
    Clear,
}

/// Which hub is read.
#[derive(Debug, Args)]
pub struct Hub {
    /// How to reach the hub; without, as kubectl does
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// How placements are decided.
#[derive(Debug, Args)]
pub struct PlaceRules {
    /// What a mistake in a placement leaves published
    #[arg(long, value_name = "WHAT", default_value = "retain")]
    pub on_misconfigured: Kept,
    /// Publish totals with the selected clusters
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub publish_scores: bool,
}

impl PlaceRules {
    /// As the engine takes them.
    pub fn options(&self) -> loadline_core::place::Options {
        use loadline_core::place::{OnMisconfigured, Options};
        let on_misconfigured = match self.on_misconfigured {
            Kept::Retain => OnMisconfigured::Retain,
            Kept::Clear => OnMisconfigured::Clear,
        };
        Options { on_misconfigured, publish_scores: self.publish_scores }
    }
}

#[derive(Debug, Args)]
pub struct Place {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub rules: PlaceRules,
    /// How the answer is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum EstimatorMode {
    /// That of estimators which count nodes; without one, what the cluster says of itself
    AccurateFirst,
    /// The smallest
    Min,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ShortfallPolicy {
    /// Nothing is decided
    Fail,
    /// What fits is placed, and the rest is told
    Partial,
}

#[derive(Clone, Debug, Args)]
pub struct Up {
    /// How many nodes to simulate
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub nodes: u32,
    /// End after this time, such as 30s or 5m, instead of waiting for Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Port of the API server on 127.0.0.1, of further clusters the ports after it; 0 picks free ones
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Where to write the kubeconfig, instead of a file in your cache folder that goes with the command
    #[arg(long, value_name = "PATH")]
    pub kubeconfig_out: Option<PathBuf>,
    /// Where to leave a link to the folders of the nodes, to look into them as into machines; up to 50 nodes have one
    #[arg(long, value_name = "LINK", conflicts_with_all = ["clusters", "compare"])]
    pub node_folders: Option<PathBuf>,
    /// What nodes look like and pods use follows from this number
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Make every third node busy, then create so many Deployments that use CPU as real workloads did
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub workloads: Option<u32>,
    /// Make something happen: `overload` drives one node over its lines, which throttles, evicts and gives back;
    /// `underrated` brings many replicas at once that use far more than they ask for; `bursts` lets workloads want much
    /// more than when they were placed; `totals` starts a fleet in which two workloads fit by the totals of a cluster
    /// and on none of its nodes. Unless something particular is asked for, `introduction` shows placement, protection
    /// and recovery in a minute
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<Scenario>,
    /// Let nothing happen by itself: nodes without pods
    #[arg(long, conflicts_with_all = ["scenario", "workloads", "compare"])]
    pub quiet_world: bool,
    /// Start this kube-scheduler beside ours, to compare: it places pods that name no scheduler, ours those with
    /// `schedulerName: loadline`
    #[arg(long, value_name = "PATH", conflicts_with_all = ["compare", "clusters"])]
    pub scheduler: Option<PathBuf>,
    /// A file with a load policy (`DynamicSchedulerPolicy`) and, if wanted, settings (`LoadSettings`)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Leave components out, to start them yourself against this cluster; may be given several times
    #[arg(long, value_name = "COMPONENT", value_delimiter = ',', conflicts_with = "compare")]
    pub without: Vec<Component>,
    /// Move pods away from nodes that stay over their line; without, it is only said which would be moved
    #[arg(long, conflicts_with = "compare")]
    pub rebalance: bool,
    /// Start so many member clusters, each with its own API server and nodes, and one estimator for all of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub clusters: u16,
    /// Run the same world twice, with and without looking at load, and say what that changed; without --scenario and
    /// --workloads, that of `bursts`, where pods are also moved and nodes protect themselves
    #[arg(long, conflicts_with_all = ["port", "kubeconfig_out", "clusters"])]
    pub compare: bool,
    /// How the comparison is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table", requires = "compare")]
    pub output: Output,
}

/// What `up` starts beside the API server, nodes and controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Component {
    Scheduler,
    Annotator,
    Recommender,
    Rebalance,
    Agent,
    Dashboard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// A rush of load on one node, of about a minute
    Overload,
    /// Many replicas at once that use far more than they ask for, half a minute after the first
    Underrated,
    /// Workloads that used little when they were placed want much more, half a minute after the start
    Bursts,
    /// A fleet of three clusters, and two workloads that fit in one of them only by its totals
    Totals,
    /// Placement, protection and recovery, in a minute
    Introduction,
}

#[derive(Debug, Args)]
pub struct Apiserver {
    /// Address and port; beyond this machine a token is required
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8001")]
    pub listen: SocketAddr,
    /// A file with the bearer token every request must carry
    #[arg(long, value_name = "PATH")]
    pub token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PolicyCheck {
    /// The files, YAML or JSON; - is the standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// How the answer is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Output,
}

fn estimate(text: &str) -> Result<(String, i32), String> {
    let expected = || format!("expected a cluster and a number, 0 or more, such as member1=3, not {text:?}");
    let (name, count) = text.rsplit_once('=').ok_or_else(expected)?;
    let count = count.parse().ok().filter(|count| *count >= 0).ok_or_else(expected)?;
    if name.is_empty() { Err(expected()) } else { Ok((name.to_owned(), count)) }
}

pub fn moment(text: &str) -> Result<jiff::Timestamp, String> {
    text.parse().map_err(|_| format!("expected a time such as 2025-01-01T12:00:00Z, not {text:?}"))
}

pub fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a time such as 30s, 5m or 1h30m, not {text:?}");
    delay(text).ok().filter(|time| !time.is_zero()).ok_or_else(expected)
}

/// A time that may be none.
pub fn delay(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok();
    let time = parsed.and_then(|time| Duration::try_from(time).ok());
    time.ok_or_else(|| format!("expected a time such as 0s, 30s or 5m, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Loadline::command().debug_assert();
    }

    #[test]
    fn every_command_is_in_the_grouped_help() {
        use clap::CommandFactory;
        for command in Loadline::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(HELP.contains(&format!("\n  {} ", command.get_name())), "{}", command.get_name());
        }
    }

    #[test]
    fn times_are_positive() {
        for (text, expected) in [
            ("30s", Some(30)),
            ("5m", Some(300)),
            ("1h30m", Some(5400)),
            ("0s", None),
            ("-3s", None),
            ("soon", None),
            ("30", None),
        ] {
            assert_eq!(duration(text).ok(), expected.map(Duration::from_secs), "{text}");
        }
    }
}
