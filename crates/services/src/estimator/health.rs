//! Is it alive, is it ready, and how far is it?
//!
//! Ready means: every cluster has been read completely, or cannot be read at all; and one can. A cluster that is
//! broken must not take the others with it; asked about it, the server answers `UNAVAILABLE` and says why.

use super::{Member, Members};
use crate::ctx::Metrics;
use crate::serve::probes::{self, Readiness};
use crate::serve::{Leaving, Stopping};
use axum::Router;
use futures::future::select_all;
use futures::stream::{BoxStream, StreamExt as _, unfold};
use jiff::Timestamp;
use loadline_api::estimator::service::estimator_server;
use std::fmt::Write as _;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{self, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// Is there something to answer from, and nothing more to come soon?
#[must_use]
pub fn ready(members: &Members) -> bool {
    let settled = |member: &Arc<Member>| member.known().is_some() || member.status().problem.is_some();
    members.values().all(settled) && members.values().any(|member| member.known().is_some())
}

/// The HTTP side: `/healthz`, `/readyz` and `/metrics`.
pub fn router(members: Arc<Members>, metrics: Metrics, leaving: CancellationToken) -> Router {
    let readiness = move || Readiness { ready: ready(&members), progress: progress(&members) };
    probes::router(probes::until(leaving, readiness), metrics)
}

/// One line per cluster.
fn progress(members: &Members) -> String {
    let mut out = String::new();
    for (name, member) in members {
        let status = member.status();
        let state = if member.known().is_some() { "ready" } else { "not ready" };
        let _ = write!(out, "{name}: {state}");
        if !status.progress.is_empty() {
            let _ = write!(out, ", {}", status.progress);
        }
        if let Some(heard) = status.heard {
            let _ =
                write!(out, ", heard of {} s ago", Timestamp::now().duration_since(heard).as_secs().max(0));
        }
        if let Some(problem) = &status.problem {
            let _ = write!(out, ", {problem}");
        }
        out.push('\n');
    }
    out
}

/// The gRPC health service: about the whole server (no name), the estimator by the name of its service, and one
/// cluster by that name, a slash and the cluster's.
#[derive(Clone, Debug)]
pub(super) struct Health {
    members: Arc<Members>,
}

impl Health {
    pub(super) fn new(members: Arc<Members>) -> Self {
        Self { members }
    }

    pub(super) fn service(self) -> HealthServer<Self> {
        HealthServer::new(self)
    }

    /// `None` for what nobody knows.
    fn status(&self, service: &str) -> Option<ServingStatus> {
        let ready = match service.strip_prefix(estimator_server::SERVICE_NAME) {
            _ if service.is_empty() => ready(&self.members),
            Some("") => ready(&self.members),
            Some(cluster) => self.members.get(cluster.strip_prefix('/')?)?.known().is_some(),
            None => return None,
        };
        Some(if ready { ServingStatus::Serving } else { ServingStatus::NotServing })
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

/// What tells that nobody is to ask here any more, as early as that is known.
fn stopping<T>(request: &Request<T>) -> CancellationToken {
    let leaving = request.extensions().get::<Leaving>().map(|leaving| &leaving.0);
    let stopping = request.extensions().get::<Stopping>().map(|stopping| &stopping.0);
    leaving.or(stopping).cloned().unwrap_or_default()
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let status = self.status(&request.get_ref().service);
        let status = status.ok_or_else(|| Status::not_found("there is no such service"))?;
        let ending = stopping(&request).is_cancelled();
        Ok(Response::new(response(if ending { ServingStatus::NotServing } else { status })))
    }

    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let watching = Watching {
            changes: self.members.values().map(|member| member.changes()).collect(),
            stop: stopping(&request),
            health: self.clone(),
            service: request.into_inner().service,
            told: None,
        };
        Ok(Response::new(unfold(watching, Watching::next).boxed()))
    }
}

/// Somebody who wants to know whenever health changes.
struct Watching {
    health: Health,
    service: String,
    changes: Vec<watch::Receiver<u64>>,
    stop: CancellationToken,
    told: Option<ServingStatus>,
}

impl Watching {
    /// Waits until there is something new to tell. The last is that the server stops.
    async fn next(mut self) -> Option<(Result<HealthCheckResponse, Status>, Self)> {
        loop {
            let ending = self.stop.is_cancelled();
            let now = self.health.status(&self.service).unwrap_or(ServingStatus::ServiceUnknown);
            let now = if ending { ServingStatus::NotServing } else { now };
            if self.told != Some(now) {
                self.told = Some(now);
                return Some((Ok(response(now)), self));
            }
            if ending {
                return None;
            }
            let stop = self.stop.clone();
            stop.run_until_cancelled(self.changed()).await;
        }
    }

    async fn changed(&mut self) {
        if self.changes.is_empty() {
            std::future::pending::<()>().await;
        }
        let any = self.changes.iter_mut().map(|change| Box::pin(change.changed()));
        let _ = select_all(any).await;
    }
}
