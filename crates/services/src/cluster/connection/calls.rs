//! What was asked of API servers, how often, and what became of it?
//!
//! The record of one process is what its account must be allowed: a verb on a resource that was never called need not be
//! granted.

use super::Cause;
use crate::cluster::Resource;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is done to objects, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        })
    }
}

/// What is asked, as RBAC sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    pub verb: Verb,
    pub resource: Resource,
    /// Such as `status`; empty for the object itself.
    pub subresource: &'static str,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Done,
    Forbidden,
    NotFound,
    Conflict,
    Expired,
    TooManyRequests,
    Rejected,
    ServerError,
    Unreachable,
    Timeout,
    NotLeading,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Expired => "expired",
            Self::TooManyRequests => "too_many_requests",
            Self::Rejected => "rejected",
            Self::ServerError => "server_error",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::NotLeading => "not_leading",
        }
    }
}

impl From<Cause> for Outcome {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Unauthorized | Cause::Forbidden => Self::Forbidden,
            Cause::NotFound => Self::NotFound,
            Cause::AlreadyExists | Cause::Conflict => Self::Conflict,
            Cause::Expired => Self::Expired,
            Cause::TooManyRequests { .. } | Cause::Budget => Self::TooManyRequests,
            Cause::Invalid | Cause::Rejected { .. } => Self::Rejected,
            Cause::Server { .. } => Self::ServerError,
            Cause::Unreachable | Cause::Malformed => Self::Unreachable,
            Cause::Timeout => Self::Timeout,
            Cause::NotLeading => Self::NotLeading,
        }
    }
}

/// Counters of requests. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<Mutex<BTreeMap<(Call, Outcome), u64>>>);

impl Calls {
    /// Of what is served.
    pub const LABELS: [&str; 4] = ["verb", "group", "resource", "outcome"];

    pub(super) fn count(&self, call: Call, outcome: Outcome) {
        *self.lock().entry((call, outcome)).or_default() += 1;
    }

    /// Everything that was asked, with what became of it and how often.
    #[must_use]
    pub fn record(&self) -> BTreeMap<(Call, Outcome), u64> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Call, Outcome), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Calls {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Requests to API servers by verb, resource (with subresource) and outcome";
        let mut metric = encoder.encode_descriptor("api_requests", help, None, MetricType::Counter)?;
        for ((call, outcome), count) in self.record() {
            let verb = call.verb.to_string();
            let resource = match call.subresource {
                "" => call.resource.plural.to_owned(),
                below => format!("{}/{below}", call.resource.plural),
            };
            let labels = [
                ("verb", verb.as_str()),
                ("group", call.resource.group),
                ("resource", &resource),
                ("outcome", outcome.as_str()),
            ];
            ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
