//! What does Prometheus know of nodes, and how is it set up? Asked as the annotator asks it.

use crate::annotator::Monitoring;
use crate::sources::prometheus::Client;
use futures::future::join_all;
use loadline_api::prometheus::{Query, read, recording_rules, scrape_intervals};
use loadline_core::doctor::{Asked, Failed, Known, Prometheus, Recorded, Why};
use loadline_core::load::policy::Rules;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Everything a Prometheus is asked, or why it cannot be.
pub(super) async fn ask(how: Option<&Monitoring>, rules: &Rules, deadline: Duration) -> Known<Prometheus> {
    let Some(how) = how else { return Known::Unasked };
    answered(how, rules, Instant::now() + deadline).await.into()
}

async fn answered(how: &Monitoring, rules: &Rules, until: Instant) -> Result<Prometheus, Failed> {
    let away = |message: String| Failed { why: Why::Failed, message };
    let client = Client::new(how.target.clone()).await.map_err(away)?;
    let options = how.options(rules);
    let client = &client;
    let series = join_all(options.queries.iter().map(|(metric, query)| async move {
        let text = query.text();
        let body = client.query(&text, left(until)).await?;
        let read = read(&body, how.label.as_deref()).map_err(|error| error.to_string());
        let (answer, unlabelled) = match read {
            Ok(answer) => (Ok(answer.series), answer.unlabelled),
            Err(problem) => (Err(problem), 0),
        };
        let is_series = matches!(query, Query::Rule { .. });
        let query = if is_series { metric.to_string() } else { text };
        Ok::<_, String>(Asked { metric: metric.clone(), query, is_series, answer, unlabelled })
    }));
    let (asked, recorded, jobs) = tokio::join!(series, recorded(client, until), jobs(client, until));
    // If it cannot be reached for one, it cannot be for the others.
    let asked: Result<Vec<Asked>, String> = asked.into_iter().collect();
    Ok(Prometheus {
        address: how.target.address.to_string(),
        asked: asked.map_err(away)?,
        rules: recorded.map_err(away).into(),
        jobs: jobs.map_err(away).into(),
    })
}

async fn recorded(client: &Client, until: Instant) -> Result<Vec<Recorded>, String> {
    let body = client.get("rules?type=record", left(until)).await?;
    let mut rules = recording_rules(&body).map_err(|error| error.to_string())?;
    let made: Vec<String> = rules.iter().map(|rule| rule.name.clone()).collect();
    // Which jobs bring a series only the series knows.
    let mut brought: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for read in rules.iter().flat_map(|rule| &rule.reads).filter(|read| !made.contains(&read.metric)) {
        brought.entry(read.metric.clone()).or_default();
    }
    let asked = brought.into_keys().take(MOST).map(|metric| async move {
        let body = client.query(&format!("group by (job) ({metric})"), left(until)).await.ok()?;
        let answer = read(&body, Some("job")).ok()?;
        Some((metric, answer.series.into_iter().flat_map(|one| one.whose).collect::<Vec<_>>()))
    });
    let brought: BTreeMap<String, Vec<String>> = join_all(asked).await.into_iter().flatten().collect();
    for read in rules.iter_mut().flat_map(|rule| &mut rule.reads) {
        read.jobs = brought.get(&read.metric).cloned().unwrap_or_default();
    }
    Ok(rules)
}

/// So many series are asked about at most: somebody's thousand rules are none of ours.
const MOST: usize = 50;

async fn jobs(client: &Client, until: Instant) -> Result<BTreeMap<String, jiff::SignedDuration>, String> {
    let body = client.get("status/config", left(until)).await?;
    scrape_intervals(&body).map_err(|error| error.to_string())
}

/// How long there still is.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}
