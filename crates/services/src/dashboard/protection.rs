//! What does the agent of a node see? Where each rule is, how far it is to its line, who comes first, and what was done: planned
//! again from what its last cycle knew, by the engine that acts. Field names are a promise.

use crate::agent::explain::Look;
use jiff::Timestamp;
use loadline_core::qos::audit::Act;
use loadline_core::qos::metric::Resource;
use loadline_core::qos::order::sorted;
use loadline_core::qos::policy::Strategy;
use loadline_core::qos::{Level, NodeSnapshot, Plan, Pod, RuleReport, plan};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How many acts are shown.
const SHOWN: usize = 20;

/// Who knew what it is worked out from.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum By {
    /// The agent itself.
    Agent,
    /// The metrics API; how long it has been like this is not known.
    Metrics,
}

#[derive(Serialize)]
struct Protection {
    by: By,
    at: Timestamp,
    rules: Vec<Rule>,
    orders: Vec<Order>,
    acts: Vec<Done>,
}

/// A line through a metric.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(rename = "rule")]
    name: String,
    metric: &'static str,
    /// What `line` and `used` are in.
    unit: &'static str,
    line: f64,
    /// `null`: not measured.
    used: Option<f64>,
    action: String,
    /// Does it only say what it would do?
    preview: bool,
    /// `null`: only its agent knows.
    phase: Option<&'static str>,
    /// How much is to be released, or may be given back; `null` while nothing is to be done, or nobody can tell.
    gap: Option<f64>,
    gap_unit: &'static str,
}

/// All pods of a node, the first to be acted on first.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    metric: &'static str,
    pods: Vec<Turn>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Turn {
    pod: String,
    /// Why it is left alone.
    protected: Option<&'static str>,
    /// May it be acted on for what is to be done now? `null` while nothing is.
    candidate: Option<bool>,
}

/// Something that was done, for one resource.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    at: Timestamp,
    act: &'static str,
    pod: String,
    container: Option<String>,
    rule: String,
    resource: &'static str,
    predicted: f64,
    /// What it released; `null`: not measured, or not yet.
    measured: Option<f64>,
    pending: bool,
}

/// What there is to say, of what an agent knew.
pub(super) fn document(look: &Look, by: By) -> Value {
    let snapshot = &*look.snapshot;
    let plan = plan(&look.policy, snapshot);
    let shown = Protection {
        by,
        at: snapshot.now,
        rules: plan.rules.iter().map(|rule| line(rule, &plan, (snapshot, by))).collect(),
        orders: orders(look, &plan),
        acts: acts(look),
    };
    serde_json::to_value(shown).unwrap_or_default()
}

fn line(report: &RuleReport, plan: &Plan, (snapshot, by): (&NodeSnapshot, By)) -> Rule {
    let series = snapshot.series.iter().filter(|series| *series.name == *report.metric);
    let bound = plan.steps.targets.iter().find_map(|gap| {
        let bound = gap.bounds.iter().find(|bound| bound.rule == report.rule)?;
        Some((gap.left(bound), gap.metric.unit))
    });
    let (gap, gap_unit) = bound.unwrap_or((None, report.unit));
    Rule {
        name: report.rule.to_string(),
        metric: report.metric,
        unit: report.unit,
        line: report.value.to_f64(),
        used: series.filter_map(|series| series.value).max().map(Level::to_f64),
        action: report.action.to_string(),
        preview: report.strategy == Strategy::Preview,
        phase: matches!(by, By::Agent).then(|| report.phase.as_str()),
        gap: gap.map(Level::to_f64),
        gap_unit,
    }
}

/// By every metric a rule of this node is about.
fn orders(look: &Look, plan: &Plan) -> Vec<Order> {
    let snapshot = &*look.snapshot;
    let pods: Vec<&Pod> = snapshot.pods.iter().filter(|pod| !pod.ended).collect();
    let mut out = Vec::<Order>::new();
    for rule in &plan.rules {
        if out.iter().any(|order| order.metric == rule.metric) {
            continue;
        }
        let metric = look.policy.catalogue().find(rule.metric);
        let may = plan.steps.order.get(rule.metric);
        let turn = |at: usize| {
            let key = &pods[at].key;
            Turn {
                pod: key.to_string(),
                protected: plan.steps.protected.get(key).map(|why| why.as_str()),
                candidate: may.map(|may| may.contains(key)),
            }
        };
        let order = sorted(&pods, metric.map(|metric| &**metric), snapshot.options.order);
        out.push(Order { metric: rule.metric, pods: order.into_iter().map(turn).collect() });
    }
    out
}

/// The newest first.
fn acts(look: &Look) -> Vec<Done> {
    let open = look.audit.open().map(|act| (act, None));
    let closed = look.audit.closed().map(|closed| (&closed.act, Some(&closed.measured)));
    let mut all: Vec<(&Act, Option<&BTreeMap<Resource, Level>>)> = closed.chain(open).collect();
    all.sort_by_key(|(act, _)| std::cmp::Reverse(act.at));
    let each = |(act, measured): (&Act, Option<&BTreeMap<Resource, Level>>)| {
        let one = |(resource, predicted): (&Resource, &Level)| Done {
            at: act.at,
            act: act.kind.as_str(),
            pod: act.pod.to_string(),
            container: act.container.as_deref().map(str::to_owned),
            rule: act.rule.to_string(),
            resource: resource.0,
            predicted: predicted.to_f64(),
            measured: measured.and_then(|all| all.get(resource)).map(|level| level.to_f64()),
            pending: measured.is_none(),
        };
        act.predicted.iter().map(one).collect::<Vec<_>>()
    };
    all.into_iter().flat_map(each).take(SHOWN).collect()
}
