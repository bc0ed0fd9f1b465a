//! Where can a Prometheus scrape the simulated nodes?

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use loadline_sim::node::Exporters;
use std::net::SocketAddr;
use std::sync::Arc;

/// A page per node as node-exporter has it, and `/targets`, which says where these are.
pub fn router(exporters: Arc<Exporters>, served_at: SocketAddr) -> Router {
    let targets = {
        let exporters = exporters.clone();
        get(move || async move {
            ([(header::CONTENT_TYPE, "application/json")], exporters.targets(served_at).to_string())
        })
    };
    Router::new().route("/targets", targets).route(Exporters::PAGE, get(page)).with_state(exporters)
}

async fn page(Path(node): Path<String>, State(exporters): State<Arc<Exporters>>) -> impl IntoResponse {
    // Every node is a target of its own: thousands of idle connections would be kept for pages of a few lines.
    let headers = [(header::CONTENT_TYPE, "text/plain; version=0.0.4"), (header::CONNECTION, "close")];
    match exporters.page(&node) {
        Some(page) => (StatusCode::OK, headers, page),
        None => (StatusCode::NOT_FOUND, headers, format!("no node {node}, or not measured yet\n")),
    }
}
