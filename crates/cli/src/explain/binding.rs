//! `loadline explain binding`: which clusters does a binding of Karmada get, how many replicas each, and why? Asked of a
//! running controller.

use super::args::Binding;
use super::{PATIENCE, get};
use crate::component;
use crate::out::{self, Output};
use crate::table::{Align, Table};
use anyhow::{Result, bail};
use axum::http::StatusCode;
use loadline_core::object::Key;
use loadline_services::fleet::binding;
use serde_json::Value;
use std::fmt::Write as _;

/// Where a running controller is asked.
const PATH: &str = "/debug/explain/bindings";

/// Explains a binding.
///
/// # Errors
/// Bad input, nobody answers, or there is no such binding.
pub async fn run(args: &Binding) -> Result<()> {
    let answer = match &args.controller {
        Some(url) => asked(url.trim_end_matches('/'), &args.name).await?,
        None => onlook(args).await?,
    };
    let Some(answer) = answer else { bail!("there is no binding {}", args.name) };
    match args.output {
        Output::Table | Output::Wide => out::print(&table(&answer)),
        Output::Json => out::line(&serde_json::to_string_pretty(&answer)?),
        Output::Yaml => out::print(&serde_saphyr::to_string(&answer)?),
    }
    Ok(())
}

/// What a running controller says.
async fn asked(url: &str, name: &str) -> Result<Option<Value>> {
    let (status, body) = get(&format!("{url}{PATH}/{name}"), url).await?;
    match status {
        StatusCode::OK => Ok(Some(serde_json::from_slice(&body)?)),
        StatusCode::NOT_FOUND => Ok(None),
        _ => bail!("{url}: {status}: {}", String::from_utf8_lossy(&body).trim()),
    }
}

/// What can be known of it without a controller.
async fn onlook(args: &Binding) -> Result<Option<Value>> {
    let key = match args.name.split_once('/') {
        Some(_) => super::key(&args.name)?,
        None => Key::new("", args.name.as_str()),
    };
    let hub = component::access(args.kubeconfig.as_deref()).await?;
    binding::once(&hub, &key, PATIENCE).await.map_err(anyhow::Error::msg)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn table(answer: &Value) -> String {
    let mut out = format!("{} → {}\n", text(&answer["binding"]), targets(&answer["clusters"]));
    if answer["ours"] == false {
        let _ = writeln!(
            out,
            "  left alone: it wants to be scheduled by {}, or is suspended",
            text(&answer["scheduler"])
        );
    }
    if let Some(condition) = answer["condition"].as_object() {
        let _ = writeln!(out, "  {}: {}", text(&condition["reason"]), text(&condition["message"]));
    }
    // The last decision says why it is where it is; without one, what would be decided now.
    let (when, shown) = match &answer["decision"] {
        Value::Null => ("now", &answer["now"]),
        decision => (text(&decision["at"]), decision),
    };
    let why = shown["why"].as_str().map_or_else(String::new, |why| format!(": {why}"));
    let _ = writeln!(out, "  decided {when}{why}");
    let mut rows = Table::new([
        ("CLUSTER", Align::Left),
        ("GETS", Align::Right),
        ("FITS", Align::Right),
        ("SCORE", Align::Right),
        ("ESTIMATES", Align::Left),
        ("WHY NOT", Align::Left),
    ]);
    let gets = |name: &Value| {
        let target = items(&shown["targets"]).iter().find(|target| target["name"] == *name);
        target.map_or_else(String::new, |target| replicas(&target["replicas"]))
    };
    for one in items(&shown["feasible"]) {
        let estimates: Vec<String> = items(&one["estimates"]).iter().map(estimate).collect();
        rows.row([
            text(&one["name"]).to_owned(),
            gets(&one["name"]),
            one["available"].to_string(),
            one["score"].to_string(),
            estimates.join(", "),
            String::new(),
        ]);
    }
    for one in items(&shown["filtered"]) {
        let blank = String::new;
        rows.row([
            text(&one["name"]).to_owned(),
            blank(),
            blank(),
            blank(),
            blank(),
            text(&one["reason"]).to_owned(),
        ]);
    }
    out += &rows.render(2);
    for warning in items(&shown["warnings"]) {
        let _ = writeln!(out, "  {}", text(warning));
    }
    let now = &answer["now"];
    if now["wouldChange"] == true {
        let why = now["why"].as_str().unwrap_or("something changed");
        let _ = writeln!(out, "  now it would get {}: {why}", targets(&now["targets"]));
    }
    for sentence in items(&now["would"]) {
        let _ = writeln!(out, "  {}", text(sentence));
    }
    out
}

/// What one estimator said, and how long ago.
fn estimate(one: &Value) -> String {
    let said = match (&one["count"], one["problem"].as_str()) {
        (_, Some(problem)) => problem.to_owned(),
        (Value::Null, None) => "no opinion".to_owned(),
        (count, None) => count.to_string(),
    };
    let age = one["ageSeconds"].as_f64().map_or_else(String::new, |age| format!(" ({age:.0} s ago)"));
    format!("{} {said}{age}", text(&one["by"]))
}

fn targets(clusters: &Value) -> String {
    let one = |target: &Value| format!("{} {}", text(&target["name"]), replicas(&target["replicas"]));
    let all: Vec<String> = items(clusters).iter().map(|target| one(target).trim_end().to_owned()).collect();
    if all.is_empty() { "nowhere".to_owned() } else { all.join(", ") }
}

/// What has no replicas is there or not.
fn replicas(count: &Value) -> String {
    count.as_i64().map_or_else(String::new, |count| count.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_gets_how_many_who_does_not_and_what_each_estimator_said() {
        let answer = json!({
            "binding": "ResourceBinding shop/web-deployment", "scheduler": "loadline", "ours": true,
            "clusters": [{"name": "b", "replicas": 3}],
            "condition": {"reason": "Success", "message": "Binding has been scheduled successfully."},
            "decision": {
                "at": "2026-01-01T00:00:00Z", "why": "replicas changed",
                "targets": [{"name": "b", "replicas": 3}],
                "feasible": [{"name": "b", "available": 7, "score": 100, "estimates": [
                    {"by": "general-estimator", "count": 26},
                    {"by": "scheduler-estimator", "count": 7, "ageSeconds": 2.2}]}],
                "filtered": [{"name": "a", "reason": "cluster(s) had untolerated taint"}], "warnings": [],
            },
            "now": {"wouldChange": true, "why": "replicas changed", "targets": [{"name": "b", "replicas": 4}],
                "would": ["a would get 2 if the taint {gpu:NoSchedule} were tolerated"]},
        });
        let expected = [
            "ResourceBinding shop/web-deployment → b 3",
            "  Success: Binding has been scheduled successfully.",
            "  decided 2026-01-01T00:00:00Z: replicas changed",
            "  CLUSTER  GETS  FITS  SCORE  ESTIMATES                                              WHY NOT",
            "  b           3     7    100  general-estimator 26, scheduler-estimator 7 (2 s ago)",
            "  a                                                                                  cluster(s) had untolerated taint",
            "  now it would get b 4: replicas changed",
            "  a would get 2 if the taint {gpu:NoSchedule} were tolerated",
        ];
        assert_eq!(table(&answer).lines().map(str::trim_end).collect::<Vec<_>>(), expected);
    }
}
