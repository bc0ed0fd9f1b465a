//! `loadline explain`: why is a pod where it is, or nowhere? Asked of a running scheduler, or worked out from the cluster. And
//! what does the agent of a node see and do, what does an estimator answer? Asked of these.

pub mod args;
pub mod binding;
pub mod estimate;
pub mod node;
mod table;

use crate::out::{self, Detail, Output};
use crate::scheduler::flags;
use crate::{component, config};
use anyhow::{Context as _, Result, bail};
use args::Pod;
use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing;
use http_body_util::BodyExt as _;
use loadline_core::object::Key;
use loadline_services::reload::Source;
use loadline_services::scheduler::Options;
use loadline_services::scheduler::explain::{Asker, REMEMBERED, Subject, once};
use loadline_services::serve::local;
use serde_json::Value;
use std::time::Duration;

/// Where a running scheduler is asked.
const PATH: &str = "/debug/explain";
/// How long reading a cluster may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Answers questions about pods.
pub fn router(asker: Asker) -> Router {
    let explain = move |Path((namespace, name)): Path<(String, String)>, RawQuery(query): RawQuery| {
        let asker = asker.clone();
        async move {
            let nodes = query.as_deref().and_then(|query| query.strip_prefix("nodes="));
            let most = nodes.map_or(Ok(usize::MAX), str::parse);
            let Ok(most) = most else {
                return (StatusCode::BAD_REQUEST, "expected ?nodes=NUMBER\n").into_response();
            };
            match asker.ask(Subject::Pod { pod: Key::new(namespace, name), most }).await {
                Ok(Some(answer)) => json(&answer),
                Ok(None) => {
                    (StatusCode::NOT_FOUND, "no such pod, or not everything is read yet\n").into_response()
                }
                Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
            }
        }
    };
    Router::new().route(&format!("{PATH}/pods/{{namespace}}/{{name}}"), routing::get(explain))
}

/// Where the newest decisions are.
const DECISIONS: &str = "/debug/decisions";

/// Tells what was decided of late, a line each, the newest first; to this machine only.
pub fn decisions(asker: Asker) -> Router {
    let dump = move |RawQuery(query): RawQuery| {
        let asker = asker.clone();
        async move {
            let most = query.as_deref().map(|query| query.strip_prefix("most=").map(str::parse));
            let most = match most {
                None => REMEMBERED,
                Some(Some(Ok(most))) => most,
                Some(_) => return (StatusCode::BAD_REQUEST, "expected ?most=NUMBER\n").into_response(),
            };
            match asker.ask(Subject::Decisions { most }).await {
                Ok(answer) => {
                    let all = answer.as_ref().and_then(Value::as_array).into_iter().flatten();
                    let mut lines = String::new();
                    for one in all {
                        lines.push_str(&one.to_string());
                        lines.push('\n');
                    }
                    ([(header::CONTENT_TYPE, "application/jsonl")], lines).into_response()
                }
                Err(problem) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")).into_response(),
            }
        }
    };
    local::only(Router::new().route(DECISIONS, routing::get(dump)))
}

fn json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// `namespace/name`, or a name in `default`.
pub fn key(text: &str) -> Result<Key> {
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        bail!("expected NAMESPACE/NAME, found {text:?}");
    }
    Ok(Key::new(namespace, name))
}

/// Explains a pod.
///
/// # Errors
/// Bad input, nobody answers, or there is no such pod.
pub async fn pod(args: &Pod) -> Result<()> {
    let pod = key(&args.name)?;
    let most = if args.output == Output::Table { table::SHOWN } else { usize::MAX };
    let answer = if let Some(url) = &args.scheduler {
        ask(url, &pod, most).await?
    } else {
        let configuration = match &args.rules.config {
            Some(path) => config::read(path)?,
            None => flags(&args.rules, false)?,
        };
        let cluster = component::access(args.kubeconfig.as_deref()).await?;
        let configuration = Source::Fixed(Box::new(configuration));
        let options = Options { configuration, ..Options::new(cluster) };
        once(options, pod.clone(), most, PATIENCE).await?
    };
    let Some(answer) = answer else { bail!("there is no pod {pod}, or it is over") };
    match args.output {
        Output::Table => out::print(&table::render(&answer, Detail::Brief)),
        Output::Wide => out::print(&table::render(&answer, Detail::Wide)),
        Output::Json => out::line(&serde_json::to_string_pretty(&answer)?),
        Output::Yaml => out::print(&serde_saphyr::to_string(&answer)?),
    }
    Ok(())
}

/// Asks a running scheduler.
async fn ask(url: &str, pod: &Key, most: usize) -> Result<Option<Value>> {
    let url = url.trim_end_matches('/');
    let (status, body) = get(&format!("{url}{PATH}/pods/{pod}?nodes={most}"), url).await?;
    match status {
        StatusCode::OK => Ok(Some(serde_json::from_slice(&body)?)),
        StatusCode::NOT_FOUND => Ok(None),
        _ => bail!("{url}: {status}: {}", String::from_utf8_lossy(&body).trim()),
    }
}

/// What a component answers at an address, which is below the one that was given.
async fn get(address: &str, given: &str) -> Result<(StatusCode, bytes::Bytes)> {
    let uri: http::Uri = address
        .parse()
        .with_context(|| format!("expected a URL such as http://127.0.0.1:10259, found {given:?}"))?;
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .build_http::<http_body_util::Empty<bytes::Bytes>>();
    let answer = client.get(uri).await.with_context(|| format!("nobody answers at {given}"))?;
    let status = answer.status();
    let body = answer.into_body().collect().await.with_context(|| format!("{given} stopped answering"))?;
    Ok((status, body.to_bytes()))
}
