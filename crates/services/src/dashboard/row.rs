//! What is shown of a node? Field names are a promise; what is not known is `null`, never 0.

use jiff::Timestamp;
use loadline_core::cluster::Cluster;
use loadline_core::ledger::Uid;
use loadline_core::load::admit::{Basis, Line};
use loadline_core::load::board::Closed;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::score::Hot;
use loadline_core::load::{Load, Metered};
use loadline_core::object::Key;
use loadline_core::resources::{Amounts, Resource};
use loadline_core::view::{NodeId, PodView};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// Billionths of a core in a core.
const NANO: f64 = 1e9;
/// Thousandths of a core in a core.
const MILLI: f64 = 1e3;
/// Taints by which the control plane says that a node does not answer.
const NOT_READY: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// One node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub name: String,
    pub ready: bool,
    pub cordoned: bool,
    /// Why load keeps pods off it, whatever the pod.
    pub closed: Option<&'static str>,
    pub cooling_until: Option<Timestamp>,
    pub hot_value: Option<Hot>,
    /// Of the load rules, 0 to 100.
    pub score: Option<i64>,
    pub pods: usize,
    pub pending_pods: u32,
    pub cpu: Amount,
    pub memory: Amount,
}

/// One resource: CPU in cores, memory in bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Amount {
    pub allocatable: Option<f64>,
    pub requested: f64,
    pub measured: Option<f64>,
    pub arriving: f64,
    pub departing: f64,
    /// The most that may be used.
    pub line: Option<f64>,
    pub age_seconds: Option<i64>,
    pub basis: Basis,
}

impl Amount {
    /// What will be used when everything assigned has arrived, as a share of what there is.
    pub fn expected_share(&self) -> Option<f64> {
        let expected = (self.measured? + self.arriving - self.departing).max(0.0);
        Some(expected / self.allocatable.filter(|all| *all > 0.0)?)
    }

    pub fn measured_share(&self) -> Option<f64> {
        Some(self.measured? / self.allocatable.filter(|all| *all > 0.0)?)
    }

    /// Is more used, or about to be, than may be?
    pub fn is_over(&self) -> bool {
        match (self.line, self.expected()) {
            (Some(line), Some(expected)) => expected > line,
            _ => false,
        }
    }

    /// What will be used when everything assigned has arrived, measured or added up.
    fn expected(&self) -> Option<f64> {
        let known = self.measured.or(Some(0.0).filter(|_| self.basis == Basis::Estimates))?;
        Some((known + self.arriving - self.departing).max(0.0))
    }
}

impl Row {
    pub fn amount(&self, resource: Metered) -> &Amount {
        match resource {
            Metered::Cpu => &self.cpu,
            Metered::Memory => &self.memory,
        }
    }

    /// What there is to say about a node.
    pub fn of(cluster: &mut Cluster, id: NodeId, now: Timestamp) -> Self {
        let by_load = cluster.is_load_aware();
        let closed = cluster.board().closed.get(id.index()).copied().unwrap_or_default();
        let figures = cluster.figures(id);
        let load = cluster.load(id).filter(|_| by_load);
        let said = load.map(|load| (load.hot, load.score.r#final, load.lines));
        let cooling_until = load.and_then(|load| load.cooling_until).or(figures.cooling_until);
        let age = figures.newest.map(|newest| now.duration_since(newest.at).as_secs().max(0));
        let node = cluster.node(id);
        let amount = |resource: Metered| {
            // Where nobody draws a line, what was measured is shown all the same.
            let bare = Line {
                measured: figures.newest.map(|newest| newest.usage.get(resource)),
                pending: figures.pending.get(resource),
                departed: figures.departed.get(resource),
                allocatable: node.allocatable_load[resource as usize],
                target: None,
                basis: if figures.newest.is_some() { Basis::Measured } else { Basis::Nothing },
            };
            let line = said.map_or(bare, |(_, _, lines)| lines.get(resource));
            Amount {
                allocatable: line.allocatable.or(bare.allocatable).map(|all| unit(resource, all)),
                requested: requested(resource, &node.requested),
                measured: line.measured.map(|used| unit(resource, used)),
                arriving: unit(resource, line.pending),
                departing: unit(resource, line.departed),
                line: line.limit().map(|most| unit(resource, most)),
                age_seconds: age.filter(|_| line.measured.is_some()),
                basis: line.basis,
            }
        };
        Self {
            name: node.name.to_string(),
            ready: !node.taints.iter().any(|taint| NOT_READY.contains(&&*taint.key)),
            cordoned: node.unschedulable,
            closed: match closed {
                Closed::No => None,
                Closed::Threshold => Some("threshold"),
                Closed::Unknown => Some("unknown"),
                Closed::Cooling => Some("cooling"),
            },
            cooling_until: cooling_until.filter(|until| *until > now),
            hot_value: said.and_then(|(hot, ..)| hot),
            score: said.map(|(_, score, _)| score),
            pods: node.pods.len(),
            pending_pods: figures.pending_pods,
            cpu: amount(Metered::Cpu),
            memory: amount(Metered::Memory),
        }
    }
}

/// One pod of a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodRow {
    pod: String,
    uid: String,
    priority: i32,
    /// `Kind/name` of who made it.
    workload: Option<String>,
    /// Is it so new that what it uses cannot be in the measurement of its node yet?
    arriving: bool,
    cpu: Used,
    memory: Used,
}

#[derive(Debug, Serialize)]
struct Used {
    requested: f64,
    measured: Option<f64>,
}

/// The pods of a node: the least important first, and of those alike the one that uses most.
pub(super) fn pods(cluster: &Cluster, id: NodeId, used: &HashMap<Key, Load>) -> Vec<PodRow> {
    let node = cluster.node(id);
    let arriving = cluster.arriving(id);
    let cpu = |pod: &PodView| used.get(&pod.key).map_or(0, |load| load.cpu_nano);
    let mut pods: Vec<_> = node.pods.iter().collect();
    pods.sort_by(|a, b| (a.priority, -cpu(a), &a.key).cmp(&(b.priority, -cpu(b), &b.key)));
    let row = |pod: &Arc<PodView>| {
        let of = |resource: Metered| Used {
            requested: requested(resource, &pod.requests),
            measured: used.get(&pod.key).map(|load| unit(resource, load.get(resource))),
        };
        PodRow {
            pod: pod.key.to_string(),
            uid: pod.uid.to_string(),
            priority: pod.priority,
            workload: pod.owner.as_ref().map(|owner| format!("{}/{}", owner.kind, owner.name)),
            arriving: arriving.contains(&Uid::new(&pod.uid)),
            cpu: of(Metered::Cpu),
            memory: of(Metered::Memory),
        }
    };
    pods.into_iter().map(row).collect()
}

/// The targets of the rules that hold for nodes that say nothing else.
#[derive(Debug, Default, Serialize)]
pub(super) struct Targets {
    pub cpu: Option<f64>,
    pub memory: Option<f64>,
}

pub(super) fn share(ratio: Ratio) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let (share, one) = (ratio.nano() as f64, Ratio::ONE.nano() as f64);
    share / one
}

/// An amount as the ledger has it, as people read it.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn unit(resource: Metered, amount: i64) -> f64 {
    match resource {
        Metered::Cpu => amount as f64 / NANO,
        Metered::Memory => amount as f64,
    }
}

/// An amount as requests have it, as people read it.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn requested(resource: Metered, amounts: &Amounts) -> f64 {
    match resource {
        Metered::Cpu => amounts.get(Resource::CPU) as f64 / MILLI,
        Metered::Memory => amounts.get(Resource::MEMORY) as f64,
    }
}
