//! `loadline policy`: what a load policy means, or what is wrong with it.

use crate::args::PolicyCheck as Args;
use crate::documents;
use crate::out::{self, Output, Refused};
use crate::rules;
use crate::table::table;
use anyhow::Result;
use jiff::SignedDuration;
use loadline_api::policy;
use loadline_core::load::policy::{Figure, Rules};
use loadline_core::load::settings::{Missing, Mode};
use loadline_core::load::{Both, Metered, ratio::Ratio};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What `-o json` and `-o yaml` print.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyCheck<'a> {
    api_version: &'static str,
    kind: &'static str,
    metrics: Vec<Metric<'a>>,
    hot_value: Vec<Bucket>,
    warnings: Vec<String>,
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

/// Checks a policy and prints what follows from it.
pub fn check(args: &Args) -> Result<()> {
    let kinds = [policy::POLICY, policy::SETTINGS];
    let read = documents::read(std::slice::from_ref(&args.file), &kinds).map_err(Refused::new)?;
    let mut problems = Vec::new();
    let has_policy = read.objects.iter().any(|o| o.kind == policy::POLICY.1);
    if let (false, Some(any)) = (has_policy, read.objects.first()) {
        let what = format!("expected a {}, found none", policy::POLICY.1);
        let place = documents::Place { number: None, item: None, ..any.place.clone() };
        problems.push(documents::Problem { place, path: String::new(), what });
    }
    let (rules, warnings) = match rules::read(&read.objects) {
        Ok(answer) if problems.is_empty() => answer,
        answer => {
            problems.extend(answer.err().unwrap_or_default());
            return Err(Refused::new(problems).into());
        }
    };
    // There is one file, and the path says which document is meant.
    let told = |w: &documents::Problem| match w.path.as_str() {
        "" => w.what.clone(),
        path => format!("{path}: {}", w.what),
    };
    let warnings: Vec<String> = warnings.iter().map(told).collect();
    match args.output {
        Output::Table | Output::Wide => out::print(&tables(&rules, &warnings)),
        format => out::document(format, &answer(&rules, warnings))?,
    }
    Ok(())
}

fn answer(rules: &Rules, warnings: Vec<String>) -> PolicyCheck<'_> {
    let metrics = rules.metrics().iter().map(|metric| Metric {
        name: &metric.name,
        period_seconds: metric.period.map(Seconds::from),
        window_seconds: metric.window.map(Seconds::from),
        limit: metric.limit.map(Figure::to_f64),
        weight: metric.weight.map(Figure::to_f64),
    });
    let buckets = rules.policy().hot.iter();
    PolicyCheck {
        api_version: "loadline.dev/v1alpha1",
        kind: "PolicyCheck",
        metrics: metrics.collect(),
        hot_value: buckets.map(|b| Bucket { time_range_seconds: b.range.into(), count: b.count }).collect(),
        warnings,
    }
}

fn tables(rules: &Rules, warnings: &[String]) -> String {
    let text = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
    let time = |time: Option<SignedDuration>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:#}"));
    let figure = |figure: Option<Figure>| figure.map_or_else(|| "-".to_owned(), |f| f.to_f64().to_string());

    let mut rows = vec![text(&["METRIC", "PERIOD", "WINDOW", "LIMIT", "WEIGHT"])];
    for metric in rules.metrics() {
        let limit =
            if metric.limit.is_some_and(Figure::is_zero) { "off".to_owned() } else { figure(metric.limit) };
        rows.push(vec![
            metric.name.to_string(),
            time(metric.period),
            time(metric.window),
            limit,
            figure(metric.weight),
        ]);
    }
    let mut out = table(&rows);

    if !rules.policy().hot.is_empty() {
        let mut rows = vec![text(&["HOT VALUE", "BINDINGS", "WITHIN"])];
        for bucket in &rules.policy().hot {
            rows.push(vec!["+1".to_owned(), bucket.count.to_string(), time(Some(bucket.range))]);
        }
        out.push('\n');
        out.push_str(&table(&rows));
    }

    let (any, _) = rules.node(&BTreeMap::new(), &BTreeMap::new());
    let target = |targets: Both<Option<Ratio>>, resource| {
        targets.get(resource).map_or_else(|| "-".to_owned(), |target: Ratio| target.to_string())
    };
    let mut rows = vec![text(&["NODES", "TARGET CPU", "TARGET MEMORY", "LIMITS"])];
    let [cpu, memory] = Metered::ALL;
    // In upstream mode all nodes are alike.
    for rule in rules.settings().nodes.iter().filter(|_| rules.mode() == Mode::Default) {
        let limits: Vec<String> = rule.thresholds.iter().map(|(m, limit)| format!("{m} {limit}")).collect();
        let limits = if limits.is_empty() { "-".to_owned() } else { limits.join(", ") };
        rows.push(vec![
            rule.selector.to_string(),
            target(rule.targets, cpu),
            target(rule.targets, memory),
            limits,
        ]);
    }
    let others = if rows.len() == 1 { "all" } else { "others" };
    rows.push(vec![others.into(), target(any.targets, cpu), target(any.targets, memory), "as above".into()]);
    out.push('\n');
    out.push_str(&table(&rows));

    let settings = rules.settings();
    let mode = match settings.mode {
        Mode::Default => "default",
        Mode::Upstream => "upstream",
    };
    let missing = match settings.missing {
        Missing::Estimate => "Estimate",
        Missing::Allow => "Allow",
        Missing::Deny => "Deny",
    };
    let zone = settings.time_zone.as_ref().and_then(|zone| zone.iana_name()).unwrap_or("UTC");
    let _ = writeln!(
        out,
        "\nMode {mode}, missing data {missing}, settle {:#}, stamps in {zone}",
        settings.settle
    );
    if !warnings.is_empty() {
        out.push_str("\nWarnings:\n");
        for warning in warnings {
            let _ = writeln!(out, "  {warning}");
        }
    }
    out
}
