//! From an answer to an HTTP response.

use axum::body::Body;
use http::{HeaderValue, Response, header};

use super::{Answer, encode};
use crate::status::Status;

/// Writes an answer or a failure.
pub fn response(answer: Result<Answer, Status>) -> Response<Body> {
    let answer = answer.unwrap_or_else(|status| failure(&status));
    let (code, media, body, warnings) = match answer {
        Answer::Json(code, body, warnings) => (code, "application/json", Body::from(body), warnings),
        Answer::Special(media, body) => (200, media, Body::from(body), Vec::new()),
        Answer::Text(code, text) => (code, "text/plain; charset=utf-8", Body::from(text), Vec::new()),
        Answer::Stream(body) => (200, "application/json", body, Vec::new()),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if code == 429 {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
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
    Answer::Json(status.code, encode::to_bytes(&status.to_json()), Vec::new())
}

/// 404 for a path that is no part of the API at all: upstream answers in plain text.
pub fn unknown_path() -> Status {
    Status::new(404, "", "404 page not found")
}
