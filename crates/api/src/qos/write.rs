//! What is written? The objects a plan comes to.

use loadline_core::qos::{Reply, Victim};
use serde_json::{Value, json};

/// The eviction of a pod, to post to its `eviction` subresource. Only this very pod: another of the same name stays.
#[must_use]
pub fn eviction(victim: &Victim) -> Value {
    let mut options = json!({"gracePeriodSeconds": victim.grace_seconds});
    if !victim.uid.is_empty() {
        options["preconditions"] = json!({"uid": &*victim.uid});
    }
    json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": &*victim.pod.name, "namespace": &*victim.pod.namespace},
        "deleteOptions": options,
    })
}

/// What the API server replied to an eviction, by the status of its answer.
#[must_use]
pub fn reply(status: u16) -> Reply {
    match status {
        200 | 201 => Reply::Granted,
        404 => Reply::Gone,
        // The uid is another one.
        409 => Reply::Replaced,
        429 => Reply::Refused,
        other => Reply::Failed(other),
    }
}

/// The status a reply is written down as.
#[must_use]
pub fn status(reply: Reply) -> u16 {
    match reply {
        Reply::Granted => 201,
        Reply::Gone => 404,
        Reply::Replaced => 409,
        Reply::Refused => 429,
        Reply::Failed(other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_as_what_it_means_and_written_as_it_was() {
        for (code, means) in [
            (201, Reply::Granted),
            (404, Reply::Gone),
            (409, Reply::Replaced),
            (429, Reply::Refused),
            (403, Reply::Failed(403)),
            (500, Reply::Failed(500)),
        ] {
            assert_eq!((reply(code), status(means)), (means, code));
        }
        assert_eq!(reply(200), Reply::Granted, "an answer without a new object");
    }

    #[test]
    fn every_status_is_read_as_the_same_again() {
        for code in 100..600 {
            assert_eq!(reply(status(reply(code))), reply(code), "{code}");
        }
    }
}
