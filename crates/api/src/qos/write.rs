//! What is written? The objects a plan comes to.

use loadline_core::qos::Victim;
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
