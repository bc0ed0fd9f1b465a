//! How is it shown? A page that is part of the program, and documents for it. Everything here reads.
//!
//! A browser runs pages of anybody beside this one. So requests are answered only if they name a host this is served as,
//! pages of others cannot read answers (no CORS), and whoever listens beyond loopback wants a token.

use super::{Asker, Beside, Happenings, Subject, fleet, protection};
use crate::agent::Looked;
use crate::ask::Unanswered;
use crate::fleet::binding;
use crate::scheduler::explain;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use loadline_core::object::Key;
use serde_json::{Value, json};
use std::io::Write as _;
use std::str::FromStr;
use std::sync::Arc;

/// The page, as it is built from `web/`.
const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/dist/index.html"));
/// What the page may do beside what it says itself (which scripts and styles are its own): ask where it came from, and be in
/// nobody's frame.
const POLICY: &str =
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// How many happenings an answer has at most.
const MOST_HAPPENINGS: usize = 2_000;
/// How many nodes an explanation has if nobody says.
const USUAL_NODES: usize = 20;
/// And at most.
const MOST_NODES: usize = 1_000;
/// What is shorter is not worth packing, in bytes.
const LONG: usize = 4096;
/// The cookie that carries the token, so that a page opened with one stays open.
const COOKIE: &str = "loadline-token";

/// Who may look.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Without one, only requests that name a loopback host are answered.
    pub token: Option<Arc<str>>,
    /// Is it served with TLS, so that the token is to be sent no other way?
    pub tls: bool,
}

/// The page and its documents. Where there is a way to whoever decides, they are asked first: they remember what they decided.
pub fn router(asker: Asker, happenings: Happenings, guard: Guard, beside: Beside) -> Router {
    let Beside { scheduler, fleet, bindings, agents } = beside;
    let cluster = {
        let asker = asker.clone();
        get(async move || answered(asker.ask(Subject::Cluster).await))
    };
    let history = {
        let asker = asker.clone();
        get(async move || answered(asker.ask(Subject::History).await))
    };
    let node = {
        let asker = asker.clone();
        get(async move |Path(name): Path<String>| {
            let mut answer = asker.ask(Subject::Node(name.clone())).await;
            if let Ok(Some(Value::Object(shown))) = &mut answer
                && let Some(look) = agents.get(&*name).and_then(Looked::last)
            {
                shown.insert("protection".to_owned(), protection::document(&look, protection::By::Agent));
            }
            answered(answer)
        })
    };
    let pod = get(async move |Path((namespace, name)): Path<(String, String)>, RawQuery(query): RawQuery| {
        match number(query.as_deref(), "nodes") {
            Ok(most) => {
                let (pod, most) = (Key::new(namespace, name), most.unwrap_or(USUAL_NODES).min(MOST_NODES));
                if let Some(scheduler) = scheduler
                    && let Ok(Some(told)) =
                        scheduler.ask(explain::Subject::Pod { pod: pod.clone(), most }).await
                {
                    return document(&told);
                }
                answered(asker.ask(Subject::Pod { pod, most }).await)
            }
            Err(expected) => problem(StatusCode::BAD_REQUEST, &expected),
        }
    });
    let happened = get(async move |RawQuery(query): RawQuery| {
        let query = query.as_deref();
        match (number(query, "since"), number(query, "limit")) {
            (Ok(since), Ok(limit)) => {
                let limit = limit.unwrap_or(MOST_HAPPENINGS).min(MOST_HAPPENINGS);
                let page = happenings.since(since.unwrap_or(0), limit);
                document(&serde_json::to_value(page).unwrap_or_default())
            }
            (Err(expected), _) | (_, Err(expected)) => problem(StatusCode::BAD_REQUEST, &expected),
        }
    });
    let nothing = async || problem(StatusCode::NOT_FOUND, "there is nothing here");
    Router::new()
        .route("/", get(page))
        .route("/api/v1/cluster", cluster)
        .route("/api/v1/history", history)
        .route("/api/v1/nodes/{name}", node)
        .route("/api/v1/pods/{namespace}/{name}", pod)
        .route("/api/v1/happenings", happened)
        .merge(of_fleet(fleet, bindings))
        .route("/api/{*rest}", get(nothing))
        .layer(middleware::from_fn(packed))
        .layer(middleware::from_fn_with_state(guard, guarded))
}

/// Other things to ask the same process. Who listens on loopback answers only by its names here, too: a page of somebody else
/// could reach them under a name of its own. Elsewhere monitoring asks, by whatever name.
pub fn beside(others: Router, is_loopback: bool) -> Router {
    let named = Guard::default();
    if is_loopback { others.layer(middleware::from_fn_with_state(named, guarded)) } else { others }
}

/// What there is to say about a fleet.
fn of_fleet(fleet: Option<fleet::Asker>, bindings: Option<binding::explain::Asker>) -> Router {
    let Some(asker) = fleet else {
        // There is no fleet to show; an error would stand in every browser's console.
        return Router::new().route("/api/v1/fleet", get(async || document(&Value::Null)));
    };
    let all = {
        let asker = asker.clone();
        get(async move || answered(asker.ask(fleet::Subject::Fleet).await))
    };
    let placement = {
        let asker = asker.clone();
        get(async move |Path((namespace, name)): Path<(String, String)>| {
            answered(asker.ask(fleet::Subject::Placement(Key::new(namespace, name))).await)
        })
    };
    let explain = async move |key: Key| {
        if let Some(bindings) = &bindings
            && let Ok(Some(told)) = bindings.ask(key.clone()).await
        {
            return document(&told);
        }
        answered(asker.ask(fleet::Subject::Binding(key)).await)
    };
    let binding = {
        let explain = explain.clone();
        get(async move |Path((namespace, name)): Path<(String, String)>| {
            explain(Key::new(namespace, name)).await
        })
    };
    let cluster_binding = get(async move |Path(name): Path<String>| explain(Key::new("", name)).await);
    Router::new()
        .route("/api/v1/fleet", all)
        .route("/api/v1/fleet/placements/{namespace}/{name}", placement)
        .route("/api/v1/fleet/bindings/{namespace}/{name}", binding)
        .route("/api/v1/fleet/bindings/{name}", cluster_binding)
}

/// A number somebody may have asked with.
fn number<N: FromStr>(query: Option<&str>, name: &str) -> Result<Option<N>, String> {
    let mut all = query.unwrap_or_default().split('&').filter_map(|one| one.split_once('='));
    let given = all.find(|(key, _)| *key == name).map(|(_, value)| value);
    given
        .map(|value| value.parse().map_err(|_| format!("expected {name}=NUMBER, found {value:?}")))
        .transpose()
}

async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, PAGE).into_response()
}

fn answered(answer: Result<Option<Value>, Unanswered>) -> Response {
    match answer {
        Ok(Some(answer)) => document(&answer),
        Ok(None) => problem(StatusCode::NOT_FOUND, "there is no such object, or not everything is read yet"),
        Err(unanswered) => problem(StatusCode::SERVICE_UNAVAILABLE, &unanswered.to_string()),
    }
}

fn document(value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, value.to_string()).into_response()
}

fn problem(status: StatusCode, what: &str) -> Response {
    (status, document(&json!({"error": what}))).into_response()
}

/// Lets in who may look, and says to browsers that nobody else may use the answers.
async fn guarded(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    // HTTP/2 names the host in the address itself.
    let named = request.uri().authority().map(|authority| authority.as_str().to_owned());
    let path = request.uri().path().to_owned();
    let mut response = match guard.verdict(request.headers(), named.as_deref(), request.uri().query()) {
        Verdict::Welcome => next.run(request).await,
        // The token goes out of the address, where it would be seen, into a cookie.
        Verdict::WithToken(token) => {
            let secure = if guard.tls { "; Secure" } else { "" };
            // No path is said of either: behind a prefix both are of that.
            let cookie = format!("{COOKIE}={token}; HttpOnly; SameSite=Strict{secure}");
            let here = path.rsplit('/').next().unwrap_or_default();
            let headers = [
                (header::LOCATION, format!("./{here}")),
                (header::SET_COOKIE, cookie),
                (header::CACHE_CONTROL, "no-store".to_owned()),
            ];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Verdict::Stranger => problem(
            StatusCode::UNAUTHORIZED,
            "expected the token of this dashboard: open /?token=TOKEN, or send it as a bearer token",
        ),
        Verdict::OtherHost => problem(
            StatusCode::MISDIRECTED_REQUEST,
            "this is served as localhost only, and not by another name",
        ),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Long answers go packed to whoever takes that: of thousands of nodes they are megabytes, every two seconds.
async fn packed(request: Request, next: Next) -> Response {
    let takes = takes_gzip(request.headers());
    let response = next.run(request).await;
    if !takes {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return problem(StatusCode::INTERNAL_SERVER_ERROR, "the answer broke off");
    };
    if body.len() < LONG {
        return Response::from_parts(parts, body.into());
    }
    // It may take some milliseconds, in which others are answered.
    let text = body.clone();
    let Ok(Ok(packed)) = tokio::task::spawn_blocking(move || gzip(&text)).await else {
        return Response::from_parts(parts, body.into());
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(parts, packed.into())
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    let mut each = all.flat_map(|all| all.split(',')).map(|one| one.split_once(';').unwrap_or((one, "")));
    each.any(|(name, how)| name.trim().eq_ignore_ascii_case("gzip") && !matches!(how.trim(), "q=0" | "q=0.0"))
}

fn gzip(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::with_capacity(text.len() / 8), Compression::fast());
    packed.write_all(text)?;
    packed.finish()
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Welcome,
    WithToken(Arc<str>),
    Stranger,
    OtherHost,
}

impl Guard {
    fn verdict(&self, headers: &HeaderMap, named: Option<&str>, query: Option<&str>) -> Verdict {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let Some(token) = &self.token else {
            // A page of somebody else whose name leads to loopback says that name here.
            let hosts = [named, text(header::HOST)];
            let is_here = hosts.iter().any(Option::is_some) && hosts.into_iter().flatten().all(is_loopback);
            return if is_here { Verdict::Welcome } else { Verdict::OtherHost };
        };
        let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let mut cookies = text(header::COOKIE).into_iter().flat_map(|all| all.split(';'));
        let cookie = cookies.find_map(|one| one.trim().strip_prefix(COOKIE)?.strip_prefix('='));
        if [bearer, cookie].into_iter().flatten().any(|given| same(given, token)) {
            return Verdict::Welcome;
        }
        let given =
            query.into_iter().flat_map(|all| all.split('&')).find_map(|one| one.strip_prefix("token="));
        match given {
            Some(given) if same(given, token) => Verdict::WithToken(token.clone()),
            _ => Verdict::Stranger,
        }
    }
}

/// Are they the same? Takes as long for one that is nearly right as for one that is not.
fn same(given: &str, token: &str) -> bool {
    let difference = given.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && difference == 0
}

/// Does a `Host` name this machine, to itself?
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn without_a_token_only_who_names_this_machine_is_answered() {
        let guard = Guard::default();
        for (host, welcome) in [
            ("127.0.0.1:8100", true),
            ("localhost:8100", true),
            ("LOCALHOST", true),
            ("[::1]:8100", true),
            ("127.9.9.9", true),
            ("evil.example:8100", false),
            ("127.0.0.1.evil.example", false),
            ("192.0.2.1:8100", false),
            ("", false),
        ] {
            let verdict = guard.verdict(&headers(&[(header::HOST, host)]), None, None);
            assert_eq!(verdict == Verdict::Welcome, welcome, "{host:?}: {verdict:?}");
            let verdict = guard.verdict(&HeaderMap::new(), Some(host), None);
            assert_eq!(verdict == Verdict::Welcome, welcome, "HTTP/2 to {host:?}: {verdict:?}");
        }
        assert_eq!(guard.verdict(&HeaderMap::new(), None, None), Verdict::OtherHost, "no host at all");
        let both = headers(&[(header::HOST, "evil.example")]);
        assert_eq!(guard.verdict(&both, Some("localhost"), None), Verdict::OtherHost, "both must be");
    }

    #[test]
    fn who_takes_packed_answers_says_so() {
        for (said, takes) in [
            ("gzip, deflate, br, zstd", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(&headers(&[(header::ACCEPT_ENCODING, said)])), takes, "{said:?}");
        }
    }

    #[test]
    fn with_a_token_who_has_it_is_answered_by_any_name() {
        let guard = Guard { token: Some("s3cret".into()), ..Guard::default() };
        for (why, given, query, verdict) in [
            ("nothing given", vec![], None, Verdict::Stranger),
            ("bearer", vec![(header::AUTHORIZATION, "Bearer s3cret")], None, Verdict::Welcome),
            ("wrong bearer", vec![(header::AUTHORIZATION, "Bearer s3cre")], None, Verdict::Stranger),
            ("cookie", vec![(header::COOKIE, "a=b; loadline-token=s3cret")], None, Verdict::Welcome),
            (
                "cookie of another name",
                vec![(header::COOKIE, "xloadline-token=s3cret")],
                None,
                Verdict::Stranger,
            ),
            ("address", vec![], Some("token=s3cret"), Verdict::WithToken("s3cret".into())),
            ("wrong in the address", vec![], Some("token=s3crets"), Verdict::Stranger),
            ("localhost is not enough", vec![(header::HOST, "localhost")], None, Verdict::Stranger),
        ] {
            assert_eq!(guard.verdict(&headers(&given), None, query), verdict, "{why}");
        }
    }
}
