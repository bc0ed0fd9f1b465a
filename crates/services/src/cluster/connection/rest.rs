//! How many requests were answered with what, and how long did it take? Under the names that programs made with Kubernetes' Go
//! client use, so that dashboards made for these find it. What our own counters know better is in [`super::Calls`].

use crate::metrics::Registrar;
use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// Upper ends of buckets, in seconds, as that client has them.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCode {
    code: String,
    method: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByVerb {
    verb: String,
}

/// Counters of requests, as that client has them. Clones count together.
#[derive(Clone, Debug)]
pub struct Rest {
    requests: Family<ByCode, Counter>,
    duration: Family<ByVerb, Histogram, fn() -> Histogram>,
}

impl Default for Rest {
    fn default() -> Self {
        let buckets = (|| Histogram::new(BUCKETS)) as fn() -> Histogram;
        Self { requests: Family::default(), duration: Family::new_with_constructor(buckets) }
    }
}

/// A request that was sent; counted when it is dropped, also by somebody who waits no longer.
#[derive(Debug)]
pub(super) struct Sent<'a> {
    rest: &'a Rest,
    method: String,
    at: Instant,
    /// What it was answered with.
    pub code: Option<StatusCode>,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        let method = std::mem::take(&mut self.method);
        // So that client calls it.
        let code = self.code.map_or_else(|| "<error>".to_owned(), |code| code.as_str().to_owned());
        let took = self.at.elapsed().as_secs_f64();
        self.rest.duration.get_or_create(&ByVerb { verb: method.clone() }).observe(took);
        self.rest.requests.get_or_create(&ByCode { code, method }).inc();
    }
}

impl Rest {
    /// A request is sent. A watch is answered when it has begun.
    pub(super) fn begin(&self, method: &Method) -> Sent<'_> {
        Sent { rest: self, method: method.as_str().to_owned(), at: Instant::now(), code: None }
    }

    /// Shows them, under the names of that client: for a component that takes the place of a program made with it.
    pub fn register(&self, registry: &mut Registrar<'_>) {
        let mut own = registry.below("rest_client");
        own.register("requests", "Requests to API servers by HTTP method and code", self.requests.clone());
        own.register(
            "request_duration_seconds",
            "From a request to the beginning of its answer, by HTTP method",
            self.duration.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn requests_are_counted_as_kubernetes_go_client_does_and_those_without_an_answer_too() {
        let rest = Rest::default();
        rest.begin(&Method::POST).code = Some(StatusCode::CREATED);
        rest.begin(&Method::POST).code = Some(StatusCode::CONFLICT);
        drop(rest.begin(&Method::GET));
        let metrics = Metrics::default();
        metrics.register(|registry| rest.register(registry));
        let text = metrics.text().unwrap();
        for line in [
            "rest_client_requests_total{code=\"201\",method=\"POST\"} 1",
            "rest_client_requests_total{code=\"409\",method=\"POST\"} 1",
            "rest_client_requests_total{code=\"<error>\",method=\"GET\"} 1",
            "rest_client_request_duration_seconds_count{verb=\"POST\"} 2",
            "rest_client_request_duration_seconds_count{verb=\"GET\"} 1",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
        }
    }
}
