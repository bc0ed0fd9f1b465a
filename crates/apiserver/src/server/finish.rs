//! From an answer to an HTTP response.

use super::{Answer, encode};
use crate::registry::Registry;
use crate::status::Status;
use axum::body::Body;
use http::{HeaderValue, Response, header};

/// Writes an answer or a failure.
pub(super) fn response(answer: Result<Answer, Status>, warnings: &[String]) -> Response<Body> {
    let retry = answer.as_ref().err().and_then(|s| s.details.as_ref()?.retry_after_seconds);
    let answer = answer.unwrap_or_else(|status| failure(&status));
    let (code, media, body) = match answer {
        Answer::Json(code, body) => (code, "application/json", Body::from(body)),
        Answer::Special(media, body) => (200, media, Body::from(body)),
        Answer::Text(code, text) => (code, "text/plain; charset=utf-8", Body::from(text)),
        Answer::Stream(body) => (200, "application/json", body),
        Answer::Bare(code) => (code, "", Body::empty()),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if !media.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Some(seconds) = retry {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
    response
}

fn failure(status: &Status) -> Answer {
    if *status == unknown_path() {
        return Answer::Text(404, "404 page not found\n".to_owned());
    }
    if *status == malformed_path() {
        return Answer::Text(400, "400 Bad Request".to_owned());
    }
    Answer::Json(status.code, encode::to_bytes(&status.to_json()))
}

/// 400 for a path with a broken escape, which upstream's HTTP library refuses in plain text.
pub(super) fn malformed_path() -> Status {
    Status::new(400, "", "400 Bad Request")
}

/// 404 for a resource that is not there. Groups of definitions are served by somebody else upstream, who says it in
/// plain text, as does everybody about groups that do not exist.
pub(super) fn no_such_resource(registry: &Registry, group: &str) -> Status {
    let built_in = registry.all().any(|r| r.group == group && r.custom.is_none());
    if built_in { Status::no_such_resource() } else { unknown_path() }
}

/// 404 for a path that is no part of the API at all: upstream answers in plain text.
pub(super) fn unknown_path() -> Status {
    Status::new(404, "", "404 page not found")
}
