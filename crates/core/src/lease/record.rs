//! What does the record of a Lease say? `spec` of `coordination.k8s.io/v1`, with the names it has on the wire.

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// `metadata.resourceVersion`: which version of the object a write replaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Revision(pub String);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who holds the lease, and since when.
///
/// Times are informative: they come from the writer's clock, and nobody judges anything by them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Who leads. None or empty: nobody does, and anybody may take it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_identity: Option<String>,
    /// How long others wait after they have seen the record change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i32>,
    /// When the holder became the holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<Timestamp>,
    /// When the holder last said that it is there. Microseconds on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_time: Option<Timestamp>,
    /// How often the holder has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_transitions: Option<i32>,
    /// Set by coordinated leader election, and left as it is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_holder: Option<String>,
    /// Set by coordinated leader election, and left as it is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
}

impl Record {
    /// Who leads, if anybody does.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// How long others wait; `unknown` where the record does not say.
    pub(super) fn lease_duration(&self, unknown: Duration) -> Duration {
        let seconds = self.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        seconds.filter(|seconds| *seconds > 0).map_or(unknown, Duration::from_secs)
    }

    /// Is this what `other` wrote, whatever coordinated leader election has added since?
    pub(super) fn is_writing_of(&self, other: &Self) -> bool {
        let written = |record: &Self| Self { preferred_holder: None, strategy: None, ..record.clone() };
        written(self) == written(other)
    }
}

/// Cuts what the wire does not carry, so that what is read back equals what was written.
pub(super) fn to_micros(time: Timestamp) -> Timestamp {
    use jiff::{RoundMode, TimestampRound};
    let cut = TimestampRound::new().smallest(Unit::Microsecond).mode(RoundMode::Floor);
    time.round(cut).unwrap_or(time)
}
