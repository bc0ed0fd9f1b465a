//! How is the hub told how much of a member is taken? As an annotation of its `ManagedCluster`, which our placements read
//! ([`super::fleet::cluster`]), and as an `AddOnPlacementScore`, which everybody's do.
//!
//! Both carry their time: the annotation when it was measured, the scores until when they hold. Whoever reads them late
//! knows that they are late.

use super::{GROUP, LOAD};
use crate::json::Tree;
use crate::recommendation::MANAGED_BY;
use jiff::{SignedDuration, Timestamp};
use loadline_core::member::{Summary, Taken};
use loadline_core::object::Key;
use loadline_core::resources::quantity;
use serde_json::{Map, Value, json};

/// What changes in a `ManagedCluster`, as a merge patch: one annotation.
#[must_use]
pub fn annotation(summary: &Summary) -> Value {
    let amounts = |of: fn(&Taken) -> Option<i64>| {
        let one = |(name, taken): (&String, &Taken)| {
            Some((name.clone(), json!(quantity(name, of(taken)?).to_string())))
        };
        Value::Object(summary.resources.iter().filter_map(one).collect::<Map<_, _>>())
    };
    let load = json!({
        "timestamp": stamp(summary.at),
        "requested": amounts(|taken| Some(taken.requested)),
        "measured": amounts(|taken| taken.measured),
    });
    json!({"metadata": {"annotations": {LOAD: load.to_string()}}})
}

/// An `AddOnPlacementScore` of ours, before there are scores in it: those are its status, which is written separately.
#[must_use]
pub fn score_object(key: &Key) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"),
        "kind": "AddOnPlacementScore",
        "metadata": {
            "name": &*key.name,
            "namespace": &*key.namespace,
            "labels": {MANAGED_BY.0: MANAGED_BY.1},
        },
    })
}

/// What changes in the status of one, as a merge patch that holds for the object with this identity only. Scores that are
/// not known are not in the list, and a merge patch replaces it: none of before stays.
#[must_use]
pub fn scores(uid: &str, summary: &Summary, validity: SignedDuration) -> Value {
    let scores: Vec<Value> =
        summary.scores().iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({
        "metadata": {"uid": uid},
        "status": {"scores": scores, "validUntil": stamp(summary.valid_until(validity))},
    })
}

/// Is it one of ours? Somebody else's of the same name is left alone.
#[must_use]
pub fn is_ours(object: &Tree<'_>) -> bool {
    object["metadata"]["labels"][MANAGED_BY.0].as_str() == Some(MANAGED_BY.1)
}

/// Whole seconds, as the API keeps times; cut off, so that nothing looks newer than it is.
fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ocm::fleet;
    use std::collections::BTreeMap;

    fn summary() -> Summary {
        let resource = |name: &str, allocatable, requested, measured| {
            (name.to_owned(), Taken { allocatable, requested, measured })
        };
        Summary {
            at: "2026-01-05T10:00:00.9Z".parse().unwrap(),
            nodes: 2,
            measured_nodes: 2,
            resources: BTreeMap::from([
                resource("cpu", 8000, 2000, Some(1600)),
                resource("memory", 16 << 30, 3 << 30, Some(4 << 30)),
                resource("nvidia.com/gpu", 8, 3, None),
            ]),
        }
    }

    #[test]
    fn our_placements_read_what_is_annotated() {
        let mut cluster = json!({"metadata": {"name": "m1"}});
        cluster["metadata"]["annotations"] = annotation(&summary())["metadata"]["annotations"].clone();
        let (read, warnings) = fleet::cluster(&Tree::from(&cluster)).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        let load = read.load.unwrap();
        assert_eq!(load.at, "2026-01-05T10:00:00Z".parse().unwrap(), "never newer than it is");
        let amounts = |of: &loadline_core::place::Resources| -> Vec<(String, f64)> {
            of.iter().map(|(name, amount)| (name.clone(), amount.float())).collect()
        };
        let gib = f64::from(1 << 30);
        let requested = [("cpu", 2.0), ("memory", 3.0 * gib), ("nvidia.com/gpu", 3.0)];
        assert_eq!(amounts(&load.requested), requested.map(|(name, amount)| (name.to_owned(), amount)));
        let measured = [("cpu", 1.6), ("memory", 4.0 * gib)];
        assert_eq!(amounts(&load.measured), measured.map(|(name, amount)| (name.to_owned(), amount)));
    }

    #[test]
    fn everybodys_placements_read_the_scores_and_until_when_they_hold() {
        let mut object = score_object(&Key::new("m1", "loadline"));
        let change = scores("u1", &summary(), SignedDuration::from_mins(5));
        assert_eq!(change["metadata"], json!({"uid": "u1"}), "of no other object, and nothing else of it");
        object["status"] = change["status"].clone();
        assert!(is_ours(&Tree::from(&object)));
        let ((cluster, name, read), warnings) = fleet::scores(&Tree::from(&object)).unwrap();
        assert_eq!((cluster.as_str(), name.as_str(), warnings.len()), ("m1", "loadline", 0));
        assert_eq!(read.valid_until, Some("2026-01-05T10:05:00Z".parse().unwrap()));
        let want = [
            ("cpuAvailable", -88),               // 6 cores: 12 − 100
            ("cpuFreeMeasured", 60),             // 200 × 6.4 ÷ 8 − 100
            ("cpuFreeRequested", 50),            // 200 × 6 ÷ 8 − 100
            ("memAvailable", -97),               // 13 GiB: 2.5 − 100, toward zero
            ("memoryFreeMeasured", 50),          // 200 × 12 ÷ 16 − 100
            ("memoryFreeRequested", 62),         // 200 × 13 ÷ 16 − 100 is 62.5
            ("nvidia.com/gpuFreeRequested", 25), // 200 × 5 ÷ 8 − 100
        ];
        assert_eq!(read.values, want.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn what_is_not_measured_is_not_written() {
        let mut summary = summary();
        for taken in summary.resources.values_mut() {
            taken.measured = None;
        }
        let text = annotation(&summary)["metadata"]["annotations"][LOAD].as_str().unwrap().to_owned();
        assert_eq!(
            text,
            r#"{"measured":{},"requested":{"cpu":"2","memory":"3Gi","nvidia.com/gpu":"3"},"timestamp":"2026-01-05T10:00:00Z"}"#
        );
        let names: Vec<String> = summary.scores().into_keys().collect();
        assert!(!names.iter().any(|name| name.contains("Measured")), "{names:?}");
    }

    #[test]
    fn an_object_without_our_label_is_somebody_elses() {
        let mut object = score_object(&Key::new("m1", "loadline"));
        object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "helm"});
        assert!(!is_ours(&Tree::from(&object)));
        assert!(!is_ours(&Tree::from(&json!({"metadata": {"name": "loadline"}}))));
    }
}
