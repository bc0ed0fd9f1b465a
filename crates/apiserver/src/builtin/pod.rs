//! Pods and everything that holds a pod template.

mod container;
pub(super) mod defaults;
pub(super) mod prepare;
pub(crate) mod resize;
pub(super) mod scheduling;
pub(super) mod update;
pub(super) mod validate;

use super::json::{entries, get, has, list, quantity};
use loadline_machinery::quantity::Quantity;
use serde_json::Value;

/// `Guaranteed`, `Burstable` or `BestEffort`, from the requests and limits of a pod's spec.
#[must_use]
pub(crate) fn qos_class(spec: &Value) -> &'static str {
    let mut requests = Totals::default();
    let mut limits = Totals::default();
    let mut guaranteed = true;
    let both = |named: &[String]| ["cpu", "memory"].iter().all(|r| named.iter().any(|n| n == r));
    if has(spec, "resources") {
        let resources = get(spec, "resources");
        requests.add(resources, "requests");
        let named = limits.add(resources, "limits");
        guaranteed = entries(resources, "limits").next().is_none() || both(&named);
    } else {
        for container in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
            let resources = get(container, "resources");
            requests.add(resources, "requests");
            let named = limits.add(resources, "limits");
            guaranteed &= both(&named);
        }
    }
    if requests.0.is_empty() && limits.0.is_empty() {
        return "BestEffort";
    }
    let covered = requests.0.iter().all(|(name, amount)| limits.get(name) == Some(*amount));
    if guaranteed && covered && requests.0.len() == limits.0.len() { "Guaranteed" } else { "Burstable" }
}

/// Sums of positive amounts of the resources that decide the class of service.
#[derive(Default)]
struct Totals(Vec<(String, Quantity)>);

impl Totals {
    /// Adds one list and returns which resources it named.
    fn add(&mut self, resources: &Value, key: &str) -> Vec<String> {
        let mut named = Vec::new();
        for (name, value) in entries(resources, key) {
            let amount = quantity(value);
            if !matches!(name.as_str(), "cpu" | "memory") || amount <= Quantity::ZERO {
                continue;
            }
            named.push(name.clone());
            match self.0.iter_mut().find(|(n, _)| n == name) {
                Some((_, total)) => *total = total.plus(amount),
                None => self.0.push((name.clone(), amount)),
            }
        }
        named
    }

    fn get(&self, name: &str) -> Option<Quantity> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, amount)| *amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_class_of_service_follows_requests_and_limits() {
        let full = json!({"cpu": "1", "memory": "1Gi"});
        for (spec, want, why) in [
            (json!({"containers": [{}]}), "BestEffort", "nothing asked"),
            (json!({"containers": [{"resources": {"requests": full}}]}), "Burstable", "no limits"),
            (
                json!({"containers": [{"resources": {"requests": full, "limits": full}}]}),
                "Guaranteed",
                "requests equal limits",
            ),
            (
                json!({"containers": [{"resources": {"requests": full, "limits": full}}, {}]}),
                "Burstable",
                "one container without limits",
            ),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "1000m", "memory": "1Gi"},
                                                     "limits": full}}]}),
                "Guaranteed",
                "amounts are compared, not spellings",
            ),
            (
                json!({"containers": [{}], "resources": {"requests": full, "limits": full}}),
                "Guaranteed",
                "amounts of the pod as a whole count alone",
            ),
        ] {
            assert_eq!(qos_class(&spec), want, "{why}");
        }
    }
}
