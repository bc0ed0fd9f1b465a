//! `loadline explain node`: what does the agent of a node see, what did it do, and what would it do now?

use super::args::Node;
use super::{PATIENCE, get as ask};
use crate::component;
use crate::out::{self, Detail, Output};
use crate::table::{Align, Table};
use crate::what_if::protect::Answer;
use anyhow::{Result, bail};
use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use clap::ValueEnum as _;
use loadline_core::qos::audit::{Act, Audit};
use loadline_core::qos::metric::Resource;
use loadline_core::qos::{CpuQuota, Level};
use loadline_services::agent::explain::Look;
use loadline_services::agent::{self, Looked};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// So many acts are shown, unless everything is asked for.
const SHOWN: usize = 20;
/// Where a running agent is asked.
const PATH: &str = "/debug/explain/nodes";

/// Answers questions about the node of an agent, in any form of output.
pub fn router(looked: Looked) -> Router {
    let explain = move |Path(name): Path<String>, RawQuery(query): RawQuery| {
        let look = looked.last();
        async move {
            let form = query.as_deref().and_then(|query| query.strip_prefix("output="));
            let Ok(form) = form.map_or(Ok(Output::Json), |form| Output::from_str(form, true)) else {
                let expected = "expected ?output=table, wide, json or yaml\n";
                return (StatusCode::BAD_REQUEST, expected).into_response();
            };
            let Some(look) = look else {
                let why = "nothing has been looked at yet: not everything is read, or there are no rules\n";
                return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
            };
            if *look.snapshot.node.name != *name {
                let why = format!("this is the agent of node {}\n", look.snapshot.node.name);
                return (StatusCode::NOT_FOUND, why).into_response();
            }
            match out::text(&Explanation::of(&look), form) {
                Ok(text) => {
                    let kind =
                        if form == Output::Json { "application/json" } else { "text/plain; charset=utf-8" };
                    ([(header::CONTENT_TYPE, kind)], text).into_response()
                }
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")).into_response(),
            }
        }
    };
    Router::new().route(&format!("{PATH}/{{name}}"), get(explain))
}

/// What there is to say about a node.
struct Explanation {
    plan: Answer,
    audit: Arc<Audit>,
}

impl Explanation {
    fn of(look: &Look) -> Self {
        Self { plan: Answer::of(look), audit: look.audit.clone() }
    }

    /// Every act that is remembered with what came of it, the newest first; none: not measured yet.
    fn acts(&self) -> Vec<(&Act, Option<&BTreeMap<Resource, Level>>)> {
        let open: Vec<_> = self.audit.open().map(|act| (act, None)).collect();
        let closed = self.audit.closed().map(|closed| (&closed.act, Some(&closed.measured)));
        let mut all: Vec<_> = closed.chain(open).collect();
        all.sort_by_key(|(act, _)| std::cmp::Reverse(act.at));
        all
    }
}

/// What is told of an act, for each resource it is about.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    time: String,
    act: &'static str,
    pod: String,
    container: Option<String>,
    /// What the container was held to, in microseconds of CPU per period; -1 is as much as it wants.
    quota_us: Option<i64>,
    rule: String,
    resource: &'static str,
    predicted: f64,
    /// None if it was not measured, or not yet.
    measured: Option<f64>,
    pending: bool,
}

fn rows<'a>(act: &'a Act, measured: Option<&'a BTreeMap<Resource, Level>>) -> impl Iterator<Item = Row> + 'a {
    act.predicted.iter().map(move |(resource, predicted)| Row {
        time: act.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        act: act.kind.as_str(),
        pod: act.pod.to_string(),
        container: act.container.as_deref().map(str::to_owned),
        quota_us: act.quota.and_then(CpuQuota::us),
        rule: act.rule.to_string(),
        resource: resource.0,
        predicted: predicted.to_f64(),
        measured: measured.and_then(|all| all.get(resource)).map(|level| level.to_f64()),
        pending: measured.is_none(),
    })
}

impl out::Answer for Explanation {
    const KIND: &'static str = "NodeExplanation";

    fn table(&self, detail: Detail) -> String {
        let mut text = self.plan.table(detail);
        if !self.plan.warnings().is_empty() {
            text.push_str("\nWarnings:\n");
            for warning in self.plan.warnings() {
                let _ = writeln!(text, "  {warning}");
            }
        }
        let acts = self.acts();
        if acts.is_empty() {
            return text;
        }
        let mut table = Table::new([
            ("TIME", Align::Left),
            ("ACT", Align::Left),
            ("POD", Align::Left),
            ("CONTAINER", Align::Left),
            ("PREDICTED", Align::Right),
            ("MEASURED", Align::Right),
            ("ERROR", Align::Right),
            ("BECAUSE OF", Align::Left),
        ]);
        let shown = acts.into_iter().flat_map(|(act, measured)| rows(act, measured));
        for row in shown.take(detail.rows(SHOWN)) {
            let measured = match (row.measured, row.pending) {
                (Some(measured), _) => format!("{measured:.0}"),
                (None, true) => "not yet".to_owned(),
                (None, false) => "unknown".to_owned(),
            };
            let error =
                row.measured.map_or_else(String::new, |measured| format!("{:+.0}", measured - row.predicted));
            let container = row.container.unwrap_or_default();
            let predicted = format!("{:.0}", row.predicted);
            table.row([
                row.time,
                row.act.to_owned(),
                row.pod,
                container,
                predicted,
                measured,
                error,
                row.rule,
            ]);
        }
        text.push_str("\nLast acts, and what they released in millicores or bytes:\n");
        text.push_str(&table.render(2));
        text
    }

    fn document(&self) -> impl Serialize {
        let mut document = serde_json::to_value(self.plan.document()).unwrap_or_default();
        let acts: Vec<Row> =
            self.acts().into_iter().flat_map(|(act, measured)| rows(act, measured)).collect();
        if let Value::Object(fields) = &mut document {
            fields.insert("acts".to_owned(), json!(acts));
        }
        document
    }
}

/// What can be known of it without its agent.
async fn onlook(args: &Node) -> Result<()> {
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let look = agent::once(&cluster, &args.name, PATIENCE).await.map_err(anyhow::Error::msg)?;
    let Some(look) = look else { bail!("there is no node {}, or no rule of protection", args.name) };
    eprintln!(
        "warning: worked out from the rules and the metrics API of the cluster: what its agent measures and did, it alone knows"
    );
    out::print(&out::text(&Explanation::of(&look), args.output)?);
    Ok(())
}

/// Explains a node.
///
/// # Errors
/// Bad input, nobody answers, or it is another node's agent.
pub async fn run(args: &Node) -> Result<()> {
    let form = args.output.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let Some(agent) = &args.agent else { return onlook(args).await };
    let url = agent.trim_end_matches('/');
    let (status, body) = ask(&format!("{url}{PATH}/{}?output={form}", args.name), url).await?;
    let text = String::from_utf8_lossy(&body);
    if status != StatusCode::OK {
        bail!("{url}: {}", text.trim());
    }
    out::print(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::Answer as _;
    use jiff::Timestamp;
    use loadline_api::json::Tree;
    use loadline_api::qos::rules::node_qos;
    use loadline_core::qos::metric::Catalogue;
    use loadline_core::qos::policy::Policy;
    use loadline_core::qos::{self, NodeSnapshot};

    #[test]
    fn why_a_rule_is_in_error_is_said() {
        let rules = json!({
            "metadata": {"name": "overload"},
            "spec": {"rules": [{"name": "busy", "actionName": "slow-down", "metricRule": {"name": "cpu_total_utilization", "value": "70"}}]},
        });
        let (rules, _) = node_qos(&Tree::from(&rules)).unwrap();
        let policy = Policy::new(Catalogue::default(), &[rules], Vec::new(), &[]);
        let look = Look {
            policy: Arc::new(policy),
            snapshot: Arc::new(NodeSnapshot {
                now: Timestamp::UNIX_EPOCH,
                node: qos::Node::default(),
                series: Vec::new(),
                latest: Vec::new(),
                pods: Vec::new(),
                budgets: Vec::new(),
                state: qos::State::default(),
                options: qos::Options::default(),
            }),
            audit: Arc::new(Audit::new(1)),
        };
        let text = Explanation::of(&look).table(Detail::Brief);
        assert!(
            text.contains("Warnings:\n") && text.contains("  rule overload/busy: no sample of"),
            "{text}"
        );
    }
}
