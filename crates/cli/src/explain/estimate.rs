//! `loadline explain estimate`: how many does a running estimator find room for, and why? In the words of `what-if estimate`.

use super::args::Estimate;
use crate::out::{self, Detail};
use crate::what_if::estimate::result::{EstimateResult, LoadResult, Most, NodeResult, Preempting};
use crate::what_if::estimate::table;
use anyhow::Result;
use jiff::Timestamp;
use loadline_api::estimator::pb;
use loadline_core::divide::Bound;
use loadline_manifests::{EstimateInput, Manifests};
use loadline_services::fleet::estimators::Question;
use loadline_services::fleet::estimators::once::{self, Answered, Way};
use serde::Serialize;
use std::collections::BTreeMap;

/// What an estimator answered, as programs read it. Field names are a promise.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    cluster: String,
    /// Where it was asked.
    estimator: String,
    /// What it answered to the question as a fleet scheduler asks it: everything that holds counts, load too where it does.
    answer: i32,
    /// How long ago it last heard of the cluster; `null` if it does not say.
    age_seconds: Option<i64>,
    #[serde(flatten)]
    estimate: EstimateResult,
}

impl out::Answer for Explained {
    const KIND: &'static str = "EstimateExplanation";

    fn table(&self, detail: Detail) -> String {
        let age = match self.age_seconds {
            Some(seconds) => format!(", last heard of {seconds} s ago"),
            None => String::new(),
        };
        let head = format!(
            "The estimator at {} answers {} for cluster {}{age}.\n",
            self.estimator, self.answer, self.cluster
        );
        head + &table::render(&self.estimate, detail)
    }

    fn document(&self) -> impl Serialize {
        self
    }
}

/// Where a figure comes from, of replicas or of sets.
struct Told {
    most: Most,
    by_load: Option<i32>,
    by_preempting: Option<i32>,
    by_nodes: Option<i32>,
    limited_by: String,
    age_seconds: Option<i64>,
    nodes: Vec<pb::NodeEstimate>,
    node_count: Option<i64>,
}

/// Asks and prints.
///
/// # Errors
/// Bad input, or nobody answers.
pub async fn run(args: &Estimate) -> Result<()> {
    let manifests = Manifests::gather(&args.files, EstimateInput::KINDS);
    let input = EstimateInput::read(manifests, Manifests::default(), Timestamp::now())?;
    let target = &input.question.target;
    let about = Bound { kind: target.kind.to_string(), key: target.key.clone(), ..Bound::default() };
    let question = Question { about, asks: input.question.asks.clone(), assumed: BTreeMap::new() };
    let way = Way {
        address: args.estimator.clone(),
        tls: args.transport.tls(),
        timeout: args.scheduler_estimator_timeout,
    };
    let told = told(once::ask(&way, &args.cluster, &question).await?);
    let mut warnings: Vec<String> = input.warnings.iter().map(ToString::to_string).collect();
    let explained = explained(args, target.to_string(), told, &mut warnings);
    crate::what_if::warn(&warnings);
    out::answer(&explained, args.output)
}

fn told(answered: Answered) -> Told {
    match answered {
        Answered::Replicas(told) => Told {
            most: Most::Replicas(told.max_replicas),
            by_load: told.by_load,
            by_preempting: told.by_preempting,
            by_nodes: told.by_nodes,
            limited_by: told.limited_by,
            age_seconds: told.age_seconds,
            nodes: told.nodes,
            node_count: told.node_count,
        },
        Answered::Sets(told) => Told {
            most: Most::Sets(told.max_sets),
            by_load: told.by_load,
            by_preempting: told.by_preempting,
            by_nodes: told.by_nodes,
            limited_by: told.limited_by,
            age_seconds: told.age_seconds,
            nodes: Vec::new(),
            node_count: None,
        },
    }
}

fn explained(args: &Estimate, workload: String, told: Told, warnings: &mut Vec<String>) -> Explained {
    let answer = told.most.count();
    let quota = (!told.limited_by.is_empty()).then_some(told.limited_by);
    // A quota that holds allows just what was answered.
    let held = |count: i32| told.most.with(if quota.is_some() { count.min(answer) } else { count });
    if told.by_nodes.is_none() {
        warnings.push(
            "this estimator does not say where its answer comes from; `loadline estimator` does".to_owned(),
        );
    }
    let more = told.node_count.unwrap_or_default() - i64::try_from(told.nodes.len()).unwrap_or(i64::MAX);
    if more > 0 {
        warnings.push(format!("{more} more nodes are counted and not shown"));
    }
    if let Some(quota) = &quota {
        warnings.push(format!("the quota {quota} allows no more"));
    }
    let load = told.by_load.map(|count| LoadResult {
        most: held(count),
        limited_by: quota.clone(),
        nodes: told.nodes.iter().filter_map(under_load).collect(),
    });
    let estimate = EstimateResult {
        workload,
        most: held(told.by_nodes.unwrap_or(answer)),
        limited_by: quota.clone(),
        quota: None,
        nodes: told.nodes.iter().map(|node| taking(node, node.replicas)).collect(),
        components: Vec::new(),
        load,
        preempting: told.by_preempting.map(|count| Preempting { most: held(count) }),
        warnings: warnings.clone(),
    };
    Explained {
        cluster: args.cluster.clone(),
        estimator: args.estimator.clone(),
        answer,
        age_seconds: told.age_seconds,
        estimate,
    }
}

/// A node that takes so many. Why none is of interest where there are none.
fn taking(node: &pb::NodeEstimate, replicas: i32) -> NodeResult {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let reason = text(&node.reason).filter(|_| replicas == 0);
    let limited_by = text(&node.limited_by).filter(|_| reason.is_none() && replicas == node.replicas);
    NodeResult { node: node.node.clone(), replicas, limited_by, reason, detail: None }
}

fn under_load(node: &pb::NodeEstimate) -> Option<NodeResult> {
    Some(taking(node, node.by_load?))
}
