//! The answer of `what-if protect`, as programs read it. Field names are a promise.

use super::Answer;
use loadline_api::qos::{snapshot, write};
use loadline_core::qos::event::Event;
use loadline_core::qos::gap::{Category, Gap, Waterline};
use loadline_core::qos::policy::Strategy;
use loadline_core::qos::taint::{CONDITION, Closed};
use loadline_core::qos::{
    Blocked, Credited, Level, Mode, Reclaim, RuleReport, Steps, Unclosed, Victim, Write,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The whole answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtectResult<'a> {
    node: String,
    rules: Vec<RuleResult>,
    #[serde(flatten)]
    steps: StepsResult,
    taint: Value,
    preview: Option<StepsResult>,
    events: Vec<EventResult>,
    warnings: &'a [String],
    state: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleResult {
    rule: String,
    metric: &'static str,
    value: Value,
    action: String,
    strategy: &'static str,
    phase: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StepsResult {
    waterlines: Waterlines,
    gaps: Vec<GapResult>,
    mode: ModeResult,
    order: BTreeMap<&'static str, Vec<String>>,
    writes: Vec<WriteResult>,
    reclaims: Vec<Value>,
    victims: Vec<VictimResult>,
    credited: Vec<Value>,
    blocked: Vec<Value>,
    deferred: bool,
    protected: BTreeMap<String, &'static str>,
    unclosed: Vec<Value>,
    naive: NaiveResult,
}

type Lines = BTreeMap<&'static str, Vec<Value>>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Waterlines {
    evict: Lines,
    throttle_down: Lines,
    throttle_up: Lines,
    throttle_up_suppressed: Lines,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GapResult {
    category: &'static str,
    metric: &'static str,
    unit: &'static str,
    used: Value,
    waterline: Value,
    before: Value,
    after: Value,
    by_rule: Vec<Value>,
}

#[derive(Serialize)]
struct ModeResult {
    throttle: Option<&'static str>,
    evict: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WriteResult {
    category: &'static str,
    pod: String,
    container: String,
    quota_us: Option<i64>,
    period_us: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    release_millicores: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added_millicores: Option<Value>,
    metric: &'static str,
    rule: String,
    gap_before: Value,
    gap_after: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VictimResult {
    pod: String,
    metric: &'static str,
    rule: String,
    gap_before: Value,
    gap_after: Value,
    release: BTreeMap<&'static str, Value>,
    eviction: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NaiveResult {
    pods_disturbed: usize,
    released: BTreeMap<&'static str, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventResult {
    object: String,
    r#type: &'static str,
    reason: &'static str,
    message: String,
}

pub fn of(answer: &Answer) -> ProtectResult<'_> {
    let Answer { input, plan, warnings } = answer;
    let node = &*input.snapshot.node.name;
    ProtectResult {
        node: node.to_owned(),
        rules: plan.rules.iter().map(rule_result).collect(),
        steps: steps_result(&plan.steps),
        taint: taint(&plan.closed),
        preview: plan.preview.as_ref().map(steps_result),
        events: plan.events().iter().map(|event| event_result(event, node)).collect(),
        warnings,
        state: snapshot::render_state(&plan.as_planned()),
    }
}

fn rule_result(rule: &RuleReport) -> RuleResult {
    RuleResult {
        rule: rule.rule.to_string(),
        metric: rule.metric,
        value: number(rule.value),
        action: rule.action.to_string(),
        strategy: match rule.strategy {
            Strategy::Act => "None",
            Strategy::Preview => "Preview",
        },
        phase: rule.phase.as_str(),
    }
}

fn taint(closed: &Closed) -> Value {
    let status = if closed.present { "True" } else { "False" };
    json!({
        "present": closed.present,
        "nodeTaints": closed.taints,
        "condition": {
            "type": CONDITION, "status": status, "reason": closed.reason(), "message": closed.message,
        },
    })
}

fn event_result(event: &Event, node: &str) -> EventResult {
    EventResult {
        object: match &event.pod {
            Some(pod) => format!("Pod {pod}"),
            None => format!("Node {node}"),
        },
        r#type: if event.warning { "Warning" } else { "Normal" },
        reason: event.reason,
        message: event.message.clone(),
    }
}

/// Whole amounts as whole numbers.
fn number(level: Level) -> Value {
    let one = Level::whole(1).nano();
    match i64::try_from(level.nano() / one) {
        Ok(whole) if level.nano() % one == 0 => json!(whole),
        _ => json!(level.to_f64()),
    }
}

/// Unknown is null.
fn perhaps(level: Option<Level>) -> Value {
    level.map_or(Value::Null, number)
}

fn steps_result(steps: &Steps) -> StepsResult {
    let mode = |mode: Option<Mode>| mode.map(Mode::as_str);
    StepsResult {
        waterlines: Waterlines {
            evict: lines(&steps.targets, Category::Evict),
            throttle_down: lines(&steps.targets, Category::ThrottleDown),
            throttle_up: lines(&steps.targets, Category::ThrottleUp),
            throttle_up_suppressed: lines(&steps.suppressed, Category::ThrottleUp),
        },
        gaps: steps.targets.iter().map(gap).collect(),
        mode: ModeResult { throttle: mode(steps.mode_throttle), evict: mode(steps.mode_evict) },
        order: steps
            .order
            .iter()
            .map(|(metric, pods)| (*metric, pods.iter().map(ToString::to_string).collect()))
            .collect(),
        writes: steps.writes.iter().map(quota).collect(),
        reclaims: steps.reclaims.iter().map(reclaim).collect(),
        victims: steps.victims.iter().map(victim).collect(),
        credited: steps.credited.iter().map(credited).collect(),
        blocked: steps.blocked.iter().map(blocked).collect(),
        deferred: steps.deferred,
        protected: steps.protected.iter().map(|(pod, why)| (pod.to_string(), why.as_str())).collect(),
        unclosed: steps.unclosed.iter().map(unclosed).collect(),
        naive: NaiveResult {
            pods_disturbed: steps.naive.pods_disturbed,
            released: by_metric(&steps.naive.released),
        },
    }
}

/// The waterlines of a category, by metric.
fn lines(targets: &[Gap], category: Category) -> Lines {
    let of = |target: &Gap| {
        let values = target.bounds.iter().map(|bound| number(bound.value)).collect();
        (target.metric.name, values)
    };
    targets.iter().filter(|target| target.category == category).map(of).collect()
}

fn by_metric(levels: &BTreeMap<&'static str, Level>) -> BTreeMap<&'static str, Value> {
    levels.iter().map(|(metric, level)| (*metric, number(*level))).collect()
}

fn gap(target: &Gap) -> GapResult {
    let lowest = target.bounds.first();
    let by_rule = |bound: &Waterline| {
        json!({
            "rule": bound.rule.to_string(), "waterline": number(bound.value),
            "before": perhaps(bound.before), "after": perhaps(target.left(bound)),
        })
    };
    GapResult {
        category: target.category.as_str(),
        metric: target.metric.name,
        unit: target.metric.unit,
        used: perhaps(target.used),
        waterline: perhaps(lowest.map(|bound| bound.value)),
        before: perhaps(lowest.and_then(|bound| bound.before)),
        after: perhaps(target.gap()),
        by_rule: target.bounds.iter().map(by_rule).collect(),
    }
}

fn quota(write: &Write) -> WriteResult {
    let up = write.category == Category::ThrottleUp;
    WriteResult {
        category: write.category.as_str(),
        pod: write.pod.to_string(),
        container: write.container.to_string(),
        quota_us: write.quota.us(),
        period_us: write.period_us,
        release_millicores: (!up).then(|| number(write.moved)),
        added_millicores: up.then(|| number(write.moved)),
        metric: write.metric,
        rule: write.rule.to_string(),
        gap_before: perhaps(write.before),
        gap_after: perhaps(write.after),
    }
}

fn reclaim(one: &Reclaim) -> Value {
    json!({"pod": one.pod.to_string(), "bytes": one.bytes, "metric": one.metric, "rule": one.rule.to_string()})
}

fn victim(victim: &Victim) -> VictimResult {
    VictimResult {
        pod: victim.pod.to_string(),
        metric: victim.metric,
        rule: victim.rule.to_string(),
        gap_before: perhaps(victim.before),
        gap_after: perhaps(victim.after),
        release: by_metric(&victim.release),
        eviction: write::eviction(victim),
    }
}

fn credited(one: &Credited) -> Value {
    json!({"pod": one.pod.to_string(), "reason": one.reason.as_str(), "release": by_metric(&one.release)})
}

fn blocked(one: &Blocked) -> Value {
    json!({"pod": one.pod.to_string(), "reason": one.reason.as_str()})
}

fn unclosed(one: &Unclosed) -> Value {
    json!({
        "category": one.category.as_str(), "metric": one.metric, "left": number(one.left), "reason": one.reason,
    })
}
