//! The answer of `policy check`, as programs read it. Field names are a promise.

use super::Answer;
use jiff::SignedDuration;
use loadline_core::load::policy::{self, Figure};
use loadline_core::load::ratio::Ratio;
use loadline_core::qos::agree;
use serde::Serialize;

/// What follows from a policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyCheck<'a> {
    metrics: Vec<Metric<'a>>,
    hot_value: Vec<Bucket>,
    warnings: &'a [String],
    disagreements: Vec<Disagreement<'a>>,
}

/// A target above the line of a rule, on one node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Disagreement<'a> {
    node: &'a str,
    rule: String,
    resource: &'static str,
    target: Ratio,
    admitted: String,
    waterline: String,
    excess: String,
    message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metric<'a> {
    name: &'a str,
    period_seconds: Option<Seconds>,
    window_seconds: Option<Seconds>,
    limit: Option<f64>,
    weight: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Bucket {
    time_range_seconds: Seconds,
    count: i64,
}

/// A whole number, unless somebody wrote parts of a second.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Seconds {
    Whole(i64),
    Parts(f64),
}

impl From<SignedDuration> for Seconds {
    fn from(time: SignedDuration) -> Self {
        if time.subsec_nanos() == 0 { Self::Whole(time.as_secs()) } else { Self::Parts(time.as_secs_f64()) }
    }
}

pub fn of(answer: &Answer) -> PolicyCheck<'_> {
    let metrics = answer.rules.metrics().iter().map(|metric| Metric {
        name: &metric.name,
        period_seconds: metric.period.map(Seconds::from),
        window_seconds: metric.window.map(Seconds::from),
        limit: metric.limit.map(Figure::to_f64),
        weight: metric.weight.map(Figure::to_f64),
    });
    let buckets = answer.rules.policy().hot.iter();
    let bucket =
        |bucket: &policy::Bucket| Bucket { time_range_seconds: bucket.range.into(), count: bucket.count };
    PolicyCheck {
        metrics: metrics.collect(),
        hot_value: buckets.map(bucket).collect(),
        warnings: &answer.warnings,
        disagreements: answer.disagreements.iter().map(disagreement).collect(),
    }
}

fn disagreement((node, one): &(String, agree::Disagreement)) -> Disagreement<'_> {
    let amount = |amount: i64| one.resource.quantity(amount).to_string();
    Disagreement {
        node,
        rule: one.rule.to_string(),
        resource: one.resource.name(),
        target: one.target,
        admitted: amount(one.admitted),
        waterline: amount(one.waterline),
        excess: amount(one.excess()),
        message: one.to_string(),
    }
}
