//! How many would fit? Questions over gRPC, answered from what is known of the member cluster named.

use super::Members;
use super::metrics::Metrics;
use axum::Router;
use std::sync::Arc;
use std::time::Duration;

/// What is counted, and how much one caller may ask for.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Do quotas bind? Upstream's gate `ResourceQuotaEstimate`.
    pub quotas: bool,
    /// Is room kept for what is said to be on its way? Upstream's gate `SchedulingOvercommitProtection`.
    pub assumed: bool,
    /// Is room kept for pods that have no node yet?
    pub pending: bool,
    /// Does the load line bind, too?
    pub load: bool,
    /// How many requests are worked on at once; more are refused.
    pub concurrency: usize,
    /// For how long one request is worked on, where its caller would wait longer.
    pub longest: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            quotas: true,
            assumed: true,
            pending: false,
            load: false,
            concurrency: 512,
            longest: Duration::from_secs(10),
        }
    }
}

/// The gRPC side: estimates, health and reflection.
pub fn routes(members: Arc<Members>, options: Options, metrics: Arc<Metrics>) -> Router {
    let _ = (members, options, metrics);
    Router::new()
}
