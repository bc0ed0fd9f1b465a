//! What can be said to `loadline agent`.

use clap::{Args, ValueEnum};
use loadline_core::object::Key;
use loadline_core::qos;
use loadline_core::select::taint::Effect;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  loadline agent --kubeconfig admin.kubeconfig
      on a node, as root: says what the rules of the cluster would do here, and does nothing
  loadline agent --act --restore-on-exit
      throttles and evicts, and gives everything back when it ends
  loadline agent --act --host-root /host --http-bind-address 0.0.0.0:8081
      in a container that sees the node's file system there, as a DaemonSet
  loadline explain node worker-1 --agent http://127.0.0.1:8081
      what it sees, what it did, and what it would do now

What its account must be allowed:
  list, watch    nodes, pods, nodeqoss, podqoss and avoidanceactions.ensurance.crane.io
  get, patch     nodes, with --act
  patch          nodes/status, with --act
  create         pods/eviction, with --act
  create, patch  events.events.k8s.io
  create         customresourcedefinitions.apiextensions.k8s.io, with --create-definitions
deploy/agent/act.yaml grants it, but for the last.

What it reads on the node: /proc/stat, /proc/meminfo and what else rules are about; /sys/block;
the kubelet's cgroups below /sys/fs/cgroup. What it writes there: its journal, and quotas through
the socket of the container runtime or, with --actuator cgroup, in the kubelet's cgroups.

Exit status: 0 when it ended as asked, 2 for bad input or when it could not start.";

/// The flags.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Agent {
    /// How to reach the cluster; without, as the pod this runs in
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The node this is; without, the name of the machine
    #[arg(long, visible_alias = "hostname-override", value_name = "NAME", env = "NODE_NAME")]
    pub node_name: Option<String>,
    /// Throttle and evict as rules say; without, plans are told and nothing is changed
    #[arg(long, conflicts_with = "dry_run")]
    pub act: bool,
    /// Tell plans and change nothing, which is what happens without --act
    #[arg(long)]
    pub dry_run: bool,
    /// Time between two looks; one that would begin before the last has ended is left out
    #[arg(long, visible_alias = "collect-interval", value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub interval: Duration,
    /// How quotas are written
    #[arg(long, value_name = "HOW", default_value = "cri")]
    pub actuator: Actuator,
    /// The socket of the container runtime; without, the usual ones are tried
    #[arg(long, value_name = "SOCKET")]
    pub runtime_endpoint: Option<PathBuf>,
    /// Where the node's file system is
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    pub host_root: PathBuf,
    /// The cgroup the kubelet has its own below, as in its `--cgroup-root`
    #[arg(long, value_name = "CGROUP", default_value = "")]
    pub cgroup_root: String,
    /// Where the journal is kept: what was taken from whom, for the next agent to give back
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/loadline/agent")]
    pub state_dir: PathBuf,
    /// Give everything back at the end, instead of leaving it to the next agent
    #[arg(long)]
    pub restore_on_exit: bool,
    /// Make the kinds of rules known to the cluster if they are not
    #[arg(long)]
    pub create_definitions: bool,
    /// Network interfaces that count; without, all but the loopback
    #[arg(long = "interface", visible_alias = "ifaces", value_name = "NAME", value_delimiter = ',')]
    pub interfaces: Vec<String>,
    /// Count waiting for disks as busy, as crane's agent does; throttling never shortens it
    #[arg(long)]
    pub count_iowait: bool,
    /// The load policy the scheduler goes by, in its file: where that fills the node above a line of a rule, it is told;
    /// read again when it changes
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// How much more than the gap is taken, so that it does not open again at once
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = excess)]
    pub execute_excess: i64,
    /// Adapt that to how much earlier acts released of what they were expected to, up to 50 %
    #[arg(long)]
    pub tune_excess: bool,
    /// How far below its line giving back ends: figures of a real node are never steady
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = excess)]
    pub restore_margin: i64,
    /// Who goes first
    #[arg(long, value_name = "ORDER", default_value = "priority-first")]
    pub order: Order,
    /// How victims are found
    #[arg(long, value_name = "PLANNER", default_value = "greedy")]
    pub planner: Planner,
    /// How many pods may be evicted in one look; 0 for any number
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub max_evictions_per_cycle: usize,
    /// How many in an hour; 0 for any number
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub max_evictions_per_hour: usize,
    /// How old a pod must be to be evicted; any age without
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration)]
    pub min_pod_age: Option<Duration>,
    /// Whose pods are never touched; can be given several times
    #[arg(long = "protected-namespace", value_name = "NAMESPACE", default_value = "kube-system")]
    pub protected_namespaces: Vec<String>,
    /// The agent's own pod, which it never touches
    #[arg(long, value_name = "NAMESPACE/NAME", env = "LOADLINE_POD")]
    pub own_pod: Option<String>,
    /// How new pods are kept away from a node that has too much
    #[arg(long, value_name = "EFFECT", default_value = "PreferNoSchedule")]
    pub taint_effect: Taint,
    /// Address of /healthz, /readyz, /metrics and of `explain node`, such as 127.0.0.1:8081; none without
    #[arg(long, visible_alias = "bind-address", value_name = "ADDRESS")]
    pub http_bind_address: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Actuator {
    /// Through the container runtime, which remembers it
    Cri,
    /// Straight into the kernel's files
    Cgroup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// The lower priority, then the lower class
    PriorityFirst,
    /// The lower class, then the lower priority
    ClassFirst,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Planner {
    /// One after the other until it is enough
    Greedy,
    /// The fewest that are enough, none more important than needed
    Minimal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Taint {
    #[value(name = "PreferNoSchedule")]
    PreferNoSchedule,
    #[value(name = "NoSchedule")]
    NoSchedule,
}

impl Agent {
    /// How to plan.
    pub fn planning(&self) -> qos::Options {
        qos::Options {
            excess: self.execute_excess,
            restore_margin: self.restore_margin,
            order: match self.order {
                Order::PriorityFirst => qos::Order::PriorityFirst,
                Order::ClassFirst => qos::Order::ClassFirst,
            },
            planner: match self.planner {
                Planner::Greedy => qos::Planner::Greedy,
                Planner::Minimal => qos::Planner::Minimal,
            },
            max_per_cycle: self.max_evictions_per_cycle,
            max_per_hour: self.max_evictions_per_hour,
            min_age_seconds: self
                .min_pod_age
                .map_or(0, |age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX)),
            protected_namespaces: self.protected_namespaces.iter().map(|name| Arc::from(&**name)).collect(),
            agent: self.own_pod.as_deref().map(Key::parse),
            taint: match self.taint_effect {
                Taint::PreferNoSchedule => Effect::PreferNoSchedule,
                Taint::NoSchedule => Effect::NoSchedule,
            },
            dry_run: !self.act,
            ..qos::Options::default()
        }
    }
}

/// A time that is long enough to measure in.
fn interval(text: &str) -> Result<Duration, String> {
    let given = crate::args::duration(text)?;
    if given < Duration::from_secs(1) {
        return Err("expected one second or more: less is too short to measure in".to_owned());
    }
    Ok(given)
}

/// `10%`, `10` or nothing, in billionths.
fn excess(text: &str) -> Result<i64, String> {
    let expected = || format!("expected a percentage from 0 to 100, such as 10%, found {text:?}");
    let number = text.strip_suffix('%').unwrap_or(text);
    if number.is_empty() {
        return Ok(0);
    }
    let percent: f64 = number.parse().map_err(|_| expected())?;
    let level = qos::Level::from_f64(percent)
        .filter(|level| *level >= qos::Level::ZERO && *level <= qos::Level::whole(100));
    level.and_then(|level| i64::try_from(level.times(1, 100).nano()).ok()).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excess_is_a_percentage() {
        for (text, billionths) in [
            ("10%", Some(100_000_000)),
            ("10", Some(100_000_000)),
            ("0.5%", Some(5_000_000)),
            ("", Some(0)),
            ("100%", Some(1_000_000_000)),
        ] {
            assert_eq!(excess(text).ok(), billionths, "{text}");
        }
        for text in ["101%", "-1", "NaN", "inf", "ten", "10%%"] {
            assert!(excess(text).unwrap_err().contains("from 0 to 100"), "{text}");
        }
    }
}
