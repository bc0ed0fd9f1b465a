//! Pods and everything that holds a pod template.

use serde_json::Value;

/// `Guaranteed`, `Burstable` or `BestEffort`, from the requests and limits of a pod's spec.
#[must_use]
pub fn qos_class(_spec: &Value) -> &'static str {
    "BestEffort"
}
