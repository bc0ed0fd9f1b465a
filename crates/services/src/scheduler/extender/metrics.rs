//! What has been asked, how long did answers take, and who may be about to arrive?

use crate::ctx::Ctx;
use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    verb: &'static str,
    /// The status; `error` for 200 with an `Error` in it.
    code: &'static str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    verb: &'static str,
}

/// Seconds, from what an easy question takes to where kube-scheduler gives up; a millisecond is what an answer may take.
const SECONDS: [f64; 13] =
    [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0];

/// What is counted.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    requests: Family<Asked, Counter>,
    seconds: Family<Of, Histogram, fn() -> Histogram>,
    pub tentative: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            tentative: Gauge::default(),
        }
    }
}

impl Metrics {
    pub fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let mut own = registry.below("loadline_extender");
            own.register("requests", "Questions of another scheduler, answered", self.requests.clone());
            own.register(
                "request_duration_seconds",
                "From the whole request to its answer",
                self.seconds.clone(),
            );
            own.register(
                "tentative_reservations",
                "Pods charged to every node another scheduler may have chosen for them",
                self.tentative.clone(),
            );
        });
    }

    pub fn count(&self, verb: &'static str, status: StatusCode, told_an_error: bool, took: Duration) {
        let code = match status {
            StatusCode::OK if told_an_error => "error",
            StatusCode::OK => "200",
            StatusCode::BAD_REQUEST => "400",
            StatusCode::NOT_FOUND => "404",
            StatusCode::METHOD_NOT_ALLOWED => "405",
            StatusCode::PAYLOAD_TOO_LARGE => "413",
            _ => "503",
        };
        self.requests.get_or_create(&Asked { verb, code }).inc();
        self.seconds.get_or_create(&Of { verb }).observe(took.as_secs_f64());
    }
}
