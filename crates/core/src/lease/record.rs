//! What does the record of a Lease say? `spec` of `coordination.k8s.io/v1`, with the names it has on the wire.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use serde::{Deserialize, Serialize, Serializer};
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
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "micros")]
    pub acquire_time: Option<Timestamp>,
    /// When the holder last said that it is there.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "micros")]
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

/// As `MicroTime` has it. Readers insist on six digits.
#[expect(clippy::ref_option, reason = "serde calls it so")]
fn micros<S: Serializer>(time: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => to.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")),
        None => to.serialize_none(),
    }
}

/// Cuts what the wire does not carry, so that what is read back equals what was written.
pub(super) fn to_micros(time: Timestamp) -> Timestamp {
    let cut = TimestampRound::new().smallest(Unit::Microsecond).mode(RoundMode::Floor);
    time.round(cut).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_record_is_written_as_the_api_has_it() {
        let wire = json!({"holderIdentity": "host_1", "leaseDurationSeconds": 15, "acquireTime": "2024-05-06T07:08:09.000000Z",
            "renewTime": "2024-05-06T07:08:09.100200Z", "leaseTransitions": 3});
        let record: Record = serde_json::from_value(wire.clone()).unwrap();
        assert_eq!(record.holder(), Some("host_1"));
        assert_eq!(serde_json::to_value(&record).unwrap(), wire);
        let coordinated = json!({"strategy": "OldestEmulationVersion", "preferredHolder": "other"});
        let record: Record = serde_json::from_value(coordinated.clone()).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), coordinated, "and nothing else");
    }

    #[test]
    fn nobody_holds_what_names_nobody() {
        for wire in [json!({}), json!({"holderIdentity": null}), json!({"holderIdentity": ""})] {
            let record: Record = serde_json::from_value(wire.clone()).unwrap();
            assert_eq!(record.holder(), None, "{wire}");
        }
    }

    #[test]
    fn a_duration_that_says_nothing_is_unknown() {
        let own = Duration::from_secs(15);
        for (seconds, expected) in [(Some(6), 6), (None, 15), (Some(0), 15), (Some(-1), 15)] {
            let record = Record { lease_duration_seconds: seconds, ..Record::default() };
            assert_eq!(record.lease_duration(own), Duration::from_secs(expected), "{seconds:?}");
        }
    }
}
