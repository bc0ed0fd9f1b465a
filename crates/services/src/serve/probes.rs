//! Is a process alive, is it ready, and what does it count? `/healthz`, `/readyz` and `/metrics`, the same everywhere.

use crate::ctx::Metrics;
use arc_swap::ArcSwap;
use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use http::{StatusCode, header};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Is it ready, and how far is it?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    pub ready: bool,
    /// For people, in lines.
    pub progress: String,
}

/// How a component is, for whoever has a clone to ask.
#[derive(Clone, Debug, Default)]
pub struct Status(Arc<ArcSwap<Readiness>>);

impl Status {
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        Readiness::clone(&self.0.load())
    }

    pub(crate) fn set(&self, readiness: Readiness) {
        self.0.store(Arc::new(readiness));
    }
}

/// The same, and not ready once the end is near.
pub fn until(
    leaving: CancellationToken,
    readiness: impl Fn() -> Readiness + Send + Sync + 'static,
) -> impl Fn() -> Readiness + Send + Sync + 'static {
    move || {
        let Readiness { ready, progress } = readiness();
        if leaving.is_cancelled() {
            return Readiness { ready: false, progress: format!("ending\n{progress}") };
        }
        Readiness { ready, progress }
    }
}

/// Serves the three; `readiness` is asked each time.
pub fn router(readiness: impl Fn() -> Readiness + Send + Sync + 'static, metrics: Metrics) -> Router {
    let readiness = Arc::new(readiness);
    let ready = get(move || async move {
        let Readiness { ready, progress } = readiness();
        (if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, progress)
    });
    let scrape = get(move || async move {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        metrics.text().map(|text| ([(header::CONTENT_TYPE, kind)], text)).map_err(|error| {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write the metrics: {error}")).into_response()
        })
    });
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", ready)
        .route("/metrics", scrape)
}
