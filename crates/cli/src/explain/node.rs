//! `loadline explain node`: what does the agent of a node see, what did it do, and what would it do now?

use super::args::Node;
use super::get as ask;
use crate::out::{self, Output};
use crate::what_if::protect::Answer;
use anyhow::{Result, bail};
use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use clap::ValueEnum as _;
use loadline_services::agent::Looked;

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
            match out::text(&Answer::of(&look), form) {
                Ok(text) => {
                    let kind = if form == Output::Json { "application/json" } else { "text/plain; charset=utf-8" };
                    ([(header::CONTENT_TYPE, kind)], text).into_response()
                }
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")).into_response(),
            }
        }
    };
    Router::new().route(&format!("{PATH}/{{name}}"), get(explain))
}

/// Explains a node.
///
/// # Errors
/// Bad input, nobody answers, or it is another node's agent.
pub async fn run(args: &Node) -> Result<()> {
    let form = args.output.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let url = args.agent.trim_end_matches('/');
    let (status, body) = ask(&format!("{url}{PATH}/{}?output={form}", args.name), url).await?;
    let text = String::from_utf8_lossy(&body);
    if status != StatusCode::OK {
        bail!("{url}: {}", text.trim());
    }
    out::print(&text);
    Ok(())
}
