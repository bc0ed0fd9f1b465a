//! What can be asked of every component while it runs, and changed? How much it logs, and what it uses. On its own machine only.

use crate::log;
use axum::Router;
use axum::extract::{DefaultBodyLimit, RawQuery};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{StatusCode, header};
use loadline_services::serve::{local, process};
use std::time::Duration;

/// Where the filter of the log is.
pub const LOG: &str = "/debug/log";
/// Where the process tells what it uses.
pub const PROCESS: &str = "/debug/process";
/// The longest filter, in bytes.
const LONGEST: usize = 4096;
/// How long a process is looked at, in seconds, at most.
const SECONDS: u64 = 60;

/// The same for all.
pub fn router() -> Router {
    let log = get(shown).put(set).layer(DefaultBodyLimit::max(LONGEST));
    local::only(Router::new().route(LOG, log).route(PROCESS, get(used)))
}

async fn shown() -> Response {
    match log::current() {
        Some(filter) => format!("{filter}\n").into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "there is no log\n").into_response(),
    }
}

async fn set(text: String) -> Response {
    match log::set(text.trim()) {
        Ok(()) => {
            tracing::info!(filter = text.trim(), "log filter changed");
            shown().await
        }
        Err(problems) => (StatusCode::BAD_REQUEST, problems.join("\n") + "\n").into_response(),
    }
}

async fn used(RawQuery(query): RawQuery) -> Response {
    let seconds = query.as_deref().map_or(Ok(1), |query| {
        query.strip_prefix("seconds=").and_then(|text| text.parse().ok()).filter(|s| *s <= SECONDS).ok_or(())
    });
    let Ok(seconds) = seconds else {
        let said = format!("expected ?seconds=NUMBER, {SECONDS} at most\n");
        return (StatusCode::BAD_REQUEST, said).into_response();
    };
    match process::look(Duration::from_secs(seconds)).await {
        Ok(process) => match serde_json::to_string(&process) {
            Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        },
        Err(error) => {
            (StatusCode::NOT_IMPLEMENTED, format!("this system does not tell: {error}\n")).into_response()
        }
    }
}
