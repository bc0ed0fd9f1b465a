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

/// How long a component may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

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
    key_in(text, None, "default")
}

/// `namespace/name`, or a name in the namespace that was given, else in the usual one.
fn key_in(text: &str, given: Option<&str>, usual: &str) -> Result<Key> {
    let (own, name) = text.split_once('/').map_or((None, text), |(own, name)| (Some(own), name));
    let namespace = own.or(given).unwrap_or(usual);
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        bail!("expected NAMESPACE/NAME, found {text:?}");
    }
    if let Some(given) = given.filter(|given| *given != namespace) {
        bail!("{text:?} is not in the namespace {given:?}");
    }
    Ok(Key::new(namespace, name))
}

/// Explains a pod.
///
/// # Errors
/// Bad input, nobody answers, or there is no such pod.
pub async fn pod(args: &Pod) -> Result<()> {
    let given = args.namespace.as_deref();
    // Bad input is told before anything is asked.
    let mut pod = key_in(&args.name, given, "default")?;
    let most = if args.output == Output::Table { table::SHOWN } else { usize::MAX };
    let answer = if let Some(url) = &args.scheduler {
        ask(url, &pod, most).await?
    } else {
        let configuration = match &args.rules.config {
            Some(path) => config::read(path)?,
            None => flags(&args.rules, false)?,
        };
        let cluster = component::access(args.kubeconfig.as_deref()).await?;
        let (client, _) = cluster.connect().await.map_err(anyhow::Error::msg)?;
        pod = key_in(&args.name, given, client.default_namespace())?;
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

/// A scheduler at an address, to be asked as if it were in this process. Where it does not answer nothing is known of it.
pub fn remote(url: String) -> Asker {
    let (asker, mut questions) = loadline_services::ask::channel();
    tokio::spawn(async move {
        loop {
            let question = questions.next().await;
            let url = url.clone();
            tokio::spawn(async move {
                let answer = match &question.about {
                    Subject::Pod { pod, most } => ask(&url, pod, *most).await,
                    Subject::Decisions { .. } => Ok(None),
                };
                let answer = answer.unwrap_or_else(|error| {
                    tracing::warn!(error = format!("{error:#}"), "the scheduler was not asked");
                    None
                });
                question.answer(answer);
            });
        }
    });
    asker
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
    let asked = async {
        let answer = client.get(uri).await.with_context(|| format!("nobody answers at {given}"))?;
        let status = answer.status();
        let body =
            answer.into_body().collect().await.with_context(|| format!("{given} stopped answering"))?;
        Ok((status, body.to_bytes()))
    };
    let late = || format!("{given} does not answer within {} s", ANSWER.as_secs());
    tokio::time::timeout(ANSWER, asked).await.with_context(late)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_in_its_own_namespace_in_the_one_given_or_in_the_usual_one() {
        let key =
            |text, given| key_in(text, given, "shop").map(|key| key.to_string()).map_err(|e| e.to_string());
        assert_eq!(key("web", None).unwrap(), "shop/web");
        assert_eq!(key("web", Some("team")).unwrap(), "team/web");
        assert_eq!(key("team/web", None).unwrap(), "team/web");
        assert_eq!(key("team/web", Some("team")).unwrap(), "team/web");
        assert!(key("team/web", Some("shop")).unwrap_err().contains("not in the namespace \"shop\""));
        for text in ["", "/web", "a/", "a/b/c"] {
            assert!(key(text, None).unwrap_err().starts_with("expected NAMESPACE/NAME"), "{text:?}");
        }
    }

    // In tokio's time, which goes on when nobody has anything to do.
    #[tokio::test(start_paused = true)]
    async fn an_address_that_accepts_and_says_nothing_is_not_waited_for_for_ever() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let told = get(&format!("{url}/debug"), &url).await.unwrap_err().to_string();
        assert_eq!(told, format!("{url} does not answer within 30 s"));
    }
}
