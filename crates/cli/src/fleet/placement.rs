//! `loadline fleet --api ocm`: which clusters placements select.

use super::args::Fleet;
use crate::args::PlaceRules;
use crate::component;
use anyhow::{Context, Result, anyhow};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use clap::Args;
use loadline_api::json::Tree;
use loadline_api::ocm::{self, debug};
use loadline_core::object::Key;
use loadline_core::place::Placement;
use loadline_services::ask;
use loadline_services::cluster::resource::PLACEMENTS;
use loadline_services::cluster::{Connection, lease};
use loadline_services::fleet::placement::{self, Asker, Options, Subject};
use loadline_services::serve::authorize::{Authorizer, Refusal};
use serde_json::{Value, json};

/// Where placements are asked about, as with OCM.
const PATH: &str = "/debug/placements/";
/// The largest placement somebody may ask about, in bytes; as with OCM.
const LARGEST: usize = 1 << 20;

/// What its flags are listed under.
pub const HEADING: &str = "Placements (--api ocm)";

/// The flags of `--api ocm`.
#[derive(Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct Placements {
    #[command(flatten)]
    pub rules: PlaceRules,
    /// Answer at /debug/placements/ only who shows a token of the hub that may get placements (to POST: create them)
    #[arg(long)]
    pub authorize_debug: bool,
}

pub async fn run(args: &Fleet) -> Result<()> {
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-placement", &identity)?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let (asker, questions) = ask::channel();
    let place = args.placements.rules.options();
    let options = Options { place, lease, asked: questions, ..Options::new(cluster) };
    let gate = if args.placements.authorize_debug {
        let (client, _) = options.cluster.connect().await.map_err(|problem| anyhow!(problem))?;
        Some(Authorizer::new(Connection::new(client).named(placement::COMPONENT)))
    } else {
        None
    };
    let (status, why) = (options.status.clone(), router(asker, gate));
    let start = |ctx| placement::run(ctx, options);
    component::run_with(&identity, args.http_bind_address, move || status.readiness(), why, start).await
}

/// Answers as OCM's debug endpoint does, for placements that are there (`GET`) and for any other (`POST`). Without a gate, who
/// may reach the address may ask.
fn router(asker: Asker, gate: Option<Authorizer>) -> Router {
    let answer = move |request: Request<Body>| {
        let (asker, gate) = (asker.clone(), gate.clone());
        async move {
            match answer(&asker, gate.as_ref(), request).await {
                Ok(document) => said(StatusCode::OK, &document),
                Err((status, error)) => said(status, &json!({"error": error})),
            }
        }
    };
    Router::new().route(PATH, any(answer.clone())).route(&format!("{PATH}{{*which}}"), any(answer))
}

fn said(status: StatusCode, document: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

/// The document, or why there is none.
async fn answer(
    asker: &Asker,
    gate: Option<&Authorizer>,
    request: Request<Body>,
) -> Result<Value, (StatusCode, String)> {
    let (headers, verb) =
        (request.headers().clone(), if request.method() == Method::POST { "create" } else { "get" });
    let (key, about) = match *request.method() {
        Method::GET => {
            let which = request.uri().path().strip_prefix(PATH).unwrap_or_default();
            let Some((namespace, name)) = which.split_once('/').filter(|(_, name)| !name.contains('/'))
            else {
                let expected = format!("expected {PATH}NAMESPACE/NAME, found {PATH}{which}");
                return Err((StatusCode::BAD_REQUEST, expected));
            };
            let key = Key::new(namespace, name);
            (key.clone(), Subject::There(key))
        }
        // Whatever the path says, the object says which one it is.
        Method::POST => {
            let wish = wish(request.into_body()).await.map_err(|why| (StatusCode::BAD_REQUEST, why))?;
            (wish.key.clone(), Subject::Wished(Box::new(wish)))
        }
        _ => {
            let refusal = format!("method {} not allowed", request.method());
            return Err((StatusCode::METHOD_NOT_ALLOWED, refusal));
        }
    };
    if let Some(gate) = gate {
        gate.admit(&headers, verb, PLACEMENTS, &key).await.map_err(|why| refused(why, verb, &key))?;
    }
    match asker.ask(about).await {
        Ok(Some(report)) => Ok(debug::document(&key, &report)),
        Ok(None) => Err((StatusCode::NOT_FOUND, format!("placement '{}' not found", key.name))),
        Err(problem) => Err((StatusCode::SERVICE_UNAVAILABLE, problem.to_string())),
    }
}

/// In the words of OCM's endpoint.
fn refused(why: Refusal, verb: &str, key: &Key) -> (StatusCode, String) {
    match why {
        Refusal::Unknown => {
            (StatusCode::UNAUTHORIZED, "user information not found in request context".to_owned())
        }
        Refusal::Forbidden(reason) => {
            let whom =
                format!("user does not have permission to {verb} placements in namespace {}", key.namespace);
            (StatusCode::FORBIDDEN, format!("{whom}: {reason}"))
        }
        Refusal::Failed(problem) => (StatusCode::INTERNAL_SERVER_ERROR, problem),
    }
}

/// The placement somebody sent.
async fn wish(body: Body) -> Result<Placement, String> {
    let bytes = to_bytes(body, LARGEST).await.map_err(|error| format!("expected at most 1 MiB: {error}"))?;
    let object: Value = serde_json::from_slice(&bytes).map_err(|error| format!("expected JSON: {error}"))?;
    ocm::placement::read(&Tree::from(&object)).map(|(wish, _)| wish).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_core::place::{ClusterFacts, Fleet, Members, NoCel};
    use loadline_core::select::LabelSelector;

    /// An engine with two clusters and a placement, which answers as a controller does.
    fn controller() -> Asker {
        let (asker, mut questions) = ask::channel();
        let mut fleet = Fleet::default();
        fleet.set_set("all", Members::Labels(Some(LabelSelector::default())));
        fleet.bind("team", "all");
        for name in ["c0", "c1"] {
            fleet.set_cluster(ClusterFacts { name: name.into(), ..ClusterFacts::default() });
        }
        fleet.set_placement(Placement { key: Key::new("team", "web"), ..Placement::default() });
        tokio::spawn(async move {
            loop {
                let question: ask::Question<Subject, _> = questions.next().await;
                let now = jiff::Timestamp::UNIX_EPOCH;
                let report = match question.about.clone() {
                    Subject::There(key) => fleet.report(&key, &NoCel, now),
                    Subject::Wished(wish) => Some(fleet.report_wish(*wish, &NoCel, now)),
                };
                question.answer(report);
            }
        });
        asker
    }

    #[tokio::test]
    async fn a_placement_is_explained_whether_it_is_there_or_only_wished_for() {
        let asker = controller();
        let ask = async |method: Method, path: &str, body: String| {
            let uri = format!("{PATH}{path}");
            let request =
                Request::builder().method(method).uri(uri).body(Body::from(body)).expect("a request");
            answer(&asker, None, request).await.map_err(|(status, error)| (status.as_u16(), error))
        };
        let there = ask(Method::GET, "team/web", String::new()).await.expect("an answer");
        assert_eq!(there["aggregatedScores"].as_array().map(Vec::len), Some(2));
        let wish = json!({"metadata": {"name": "new", "namespace": "team"}, "spec": {"numberOfClusters": 1}});
        let wished = ask(Method::POST, "any/path", wish.to_string()).await.expect("an answer");
        assert_eq!(wished["placement"]["metadata"]["name"], "new");
        assert_eq!(wished["decisionGroups"][0]["clusterCount"], 1);
        let homeless = json!({"metadata": {"name": "new"}, "spec": {}}).to_string();
        let wished = ask(Method::POST, "", homeless).await.expect("an answer");
        assert_eq!(wished["placement"]["metadata"]["namespace"], "default");
        let wrong = [
            (Method::GET, "team/nobody", String::new(), 404, "placement 'nobody' not found"),
            (Method::GET, "web", String::new(), 400, "expected /debug/placements/NAMESPACE/NAME"),
            (Method::GET, "a/b/c", String::new(), 400, "expected /debug/placements/NAMESPACE/NAME"),
            (Method::PUT, "team/web", String::new(), 405, "method PUT not allowed"),
            (Method::POST, "", "{".to_owned(), 400, "expected JSON"),
            (Method::POST, "", json!({"spec": {}}).to_string(), 400, "metadata"),
            (Method::POST, "", "x".repeat(LARGEST + 1), 400, "1 MiB"),
        ];
        for (method, path, body, status, text) in wrong {
            let (found, error) = ask(method, path, body).await.expect_err("a refusal");
            assert_eq!(found, status, "{error}");
            assert!(error.contains(text), "{error}");
        }
    }
}
