//! What is shown of a fleet? Field names are a promise; what is not known is `null`, never 0.

use crate::fleet::{binding, placement};
use jiff::Timestamp;
use loadline_core::divide::Member;
use loadline_core::place::{ClusterFacts, Resources, SATISFIED};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How many placements, and how many bindings, are shown; how many more there are is said.
const MOST: usize = 1_000;
/// Thousandths of a core in a core.
const MILLI: f64 = 1e3;

/// Everything at a glance.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    at: Timestamp,
    /// Why it is not known which kinds there are.
    problem: Option<String>,
    pub apis: Vec<Api>,
    /// By name.
    clusters: BTreeMap<String, Cluster>,
    placements: Vec<Placement>,
    more_placements: usize,
    bindings: Vec<Binding>,
    more_bindings: usize,
}

/// A project whose kinds a hub may have.
#[derive(Debug, Serialize)]
pub(super) struct Api {
    name: &'static str,
    group: &'static str,
    /// Does the hub have them?
    there: bool,
    kinds: Vec<Kind>,
}

#[derive(Debug, Serialize)]
struct Kind {
    #[serde(rename = "kind")]
    name: &'static str,
    count: usize,
    /// Why it cannot be read.
    problem: Option<String>,
}

impl Api {
    pub fn new(
        name: &'static str,
        group: &'static str,
        kinds: Option<Vec<(&'static str, usize, Option<&str>)>>,
    ) -> Self {
        let there = kinds.is_some();
        let kind = |(name, count, problem): (_, _, Option<&str>)| Kind {
            name,
            count,
            problem: problem.map(str::to_owned),
        };
        Self { name, group, there, kinds: kinds.unwrap_or_default().into_iter().map(kind).collect() }
    }
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    /// Who knows it.
    known_to: Vec<&'static str>,
    leaving: bool,
    /// What keeps placements away, `key=value:effect`.
    taints: Vec<String>,
    /// How old what is published of it is.
    age_seconds: Option<i64>,
    cpu: Amount,
    memory: Amount,
}

/// CPU in cores, memory in bytes.
#[derive(Debug, Default, Serialize)]
struct Amount {
    allocatable: Option<f64>,
    requested: Option<f64>,
    measured: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Placement {
    #[serde(rename = "placement")]
    name: String,
    selected: Vec<String>,
    /// Did it get what it wants? `null`: nobody said.
    satisfied: Option<bool>,
    message: Option<String>,
}

#[derive(Debug, Serialize)]
struct Binding {
    #[serde(rename = "binding")]
    name: String,
    kind: &'static str,
    scheduler: String,
    replicas: Option<i32>,
    clusters: Vec<Value>,
    /// Was it scheduled? `null`: nobody said.
    scheduled: Option<bool>,
    reason: Option<String>,
    message: Option<String>,
}

impl Shown {
    pub fn new(at: Timestamp, problem: Option<String>) -> Self {
        Self {
            at,
            problem,
            apis: Vec::new(),
            clusters: BTreeMap::new(),
            placements: Vec::new(),
            more_placements: 0,
            bindings: Vec::new(),
            more_bindings: 0,
        }
    }

    /// A cluster, as a placement sees it.
    pub fn managed(&mut self, facts: &ClusterFacts, now: Timestamp) {
        let cluster = self.clusters.entry(facts.name.to_string()).or_default();
        cluster.known_to.push("Open Cluster Management");
        cluster.leaving |= facts.leaving;
        cluster.taints.extend(facts.taints.iter().map(ToString::to_string));
        let load = facts.load.as_ref();
        cluster.age_seconds = load.map(|load| now.duration_since(load.at).as_secs().max(0));
        let amount = |name: &str| {
            let of = |all: &Resources| all.get(name).map(|amount| amount.float());
            Amount {
                allocatable: of(&facts.allocatable),
                requested: load.and_then(|load| of(&load.requested)),
                measured: load.and_then(|load| of(&load.measured)),
            }
        };
        (cluster.cpu, cluster.memory) = (amount("cpu"), amount("memory"));
    }

    /// A cluster, as a division sees it. What it says less than others is not taken from them.
    pub fn member(&mut self, member: &Member) {
        let cluster = self.clusters.entry(member.name.to_string()).or_default();
        cluster.known_to.push("Karmada");
        cluster.leaving |= member.deleting;
        let Some(summary) = &member.summary else { return };
        let fill = |amount: &mut Amount, name: &str, unit: f64| {
            let (total, free) = (summary.total.get(name), summary.free.get(name));
            amount.allocatable = amount.allocatable.or_else(|| Some(of(total?, unit)));
            amount.requested = amount.requested.or_else(|| Some(of(total? - free?, unit)));
        };
        fill(&mut cluster.cpu, "cpu", MILLI);
        fill(&mut cluster.memory, "memory", 1.0);
    }

    pub fn placements(&mut self, all: &[placement::Seen<'_>]) {
        self.more_placements = all.len().saturating_sub(MOST);
        for seen in all.iter().take(MOST) {
            let said = condition(&seen.status["conditions"], SATISFIED);
            self.placements.push(Placement {
                name: seen.key.to_string(),
                selected: seen.selected.iter().map(|&name| name.to_owned()).collect(),
                satisfied: said.and_then(status),
                message: said.and_then(|said| text(&said["message"])),
            });
        }
    }

    pub fn bindings<'a>(&mut self, all: impl Iterator<Item = binding::Seen<'a>>) {
        for seen in all {
            if self.bindings.len() == MOST {
                self.more_bindings += 1;
                continue;
            }
            let said = seen.facts.condition();
            self.bindings.push(Binding {
                name: seen.key.to_string(),
                kind: seen.kind,
                scheduler: seen.facts.scheduler.clone(),
                replicas: seen.facts.binding.as_ref().ok().map(|binding| binding.replicas),
                clusters: seen.facts.clusters.clone(),
                scheduled: said.and_then(status),
                reason: said.and_then(|said| text(&said["reason"])),
                message: match &seen.facts.binding {
                    Err(error) => Some(error.to_string()),
                    Ok(_) => said.and_then(|said| text(&said["message"])),
                },
            });
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn of(amount: i64, unit: f64) -> f64 {
    amount as f64 / unit
}

fn condition<'a>(all: &'a Value, name: &str) -> Option<&'a Value> {
    all.as_array()?.iter().find(|one| one["type"] == name)
}

fn status(condition: &Value) -> Option<bool> {
    match condition["status"].as_str()? {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}
