//! What was selected? A `PlacementDecision`, to read and to write.

use super::SELECTED_SINCE;
use crate::condition::message;
use crate::context::key;
use crate::json::Tree;
use crate::read::{At, Error, Warning, tolerant};
use jiff::Timestamp;
use loadline_core::place::{Condition, Entry, Group, Outcome, Placement, Slice};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads a `PlacementDecision`. No status is no clusters.
///
/// # Errors
/// When the object is not what it should be.
pub fn read(value: &Tree<'_>) -> Result<(Slice, Vec<Warning>), Error> {
    tolerant("PlacementDecision", value, |root| {
        let (metadata, status) = (root.get("metadata"), root.get("status"));
        let decisions = status.get("decisions");
        let entry = |at: At<'_, '_>| Entry {
            cluster: at.get("clusterName").string().into(),
            score: at.get("score").int().unwrap_or(0),
            reason: at.get("reason").string(),
        };
        Slice {
            key: key(&metadata),
            labels: metadata.get("labels").texts(),
            entries: decisions.items().map(entry).filter(|entry| !entry.cluster.is_empty()).collect(),
            since: since(&metadata),
        }
    })
}

fn since(metadata: &At<'_, '_>) -> BTreeMap<Arc<str>, Timestamp> {
    let annotations = metadata.get("annotations");
    let at = annotations.get(SELECTED_SINCE);
    let Some(text) = at.text() else { return BTreeMap::new() };
    let read = serde_json::from_str::<BTreeMap<String, Timestamp>>(text);
    let since = read.map_err(|error| at.warn(format!("{error}; it is left out"))).unwrap_or_default();
    since.into_iter().map(|(name, time)| (name.into(), time)).collect()
}

/// The complete object, on top of the one that is there, if any.
#[must_use]
pub fn render(slice: &Slice, placement: &Placement, there: Option<&Value>) -> Value {
    let fresh =
        || json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision"});
    let mut object = there.cloned().filter(Value::is_object).unwrap_or_else(fresh);
    let metadata = &mut object["metadata"];
    metadata["name"] = json!(&*slice.key.name);
    metadata["namespace"] = json!(&*slice.key.namespace);
    metadata["labels"] = json!(slice.labels);
    if metadata.get("ownerReferences").is_none() {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement",
            "name": &*placement.key.name,
            "uid": placement.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }]);
    }
    let annotations = metadata.get("annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    annotate(metadata, annotations, slice);
    object["status"] = json!({"decisions": entries(slice)});
    object
}

fn annotate(metadata: &mut Value, mut annotations: Map<String, Value>, slice: &Slice) {
    annotations.remove(SELECTED_SINCE);
    if let Some(since) = since_text(&slice.since) {
        annotations.insert(SELECTED_SINCE.to_owned(), Value::String(since));
    }
    match (annotations.is_empty(), metadata.as_object_mut()) {
        (false, _) => metadata["annotations"] = Value::Object(annotations),
        (true, Some(fields)) => drop(fields.remove("annotations")),
        (true, None) => {}
    }
}

/// The value of the annotation [`SELECTED_SINCE`], if there is one.
#[must_use]
pub fn since_text(since: &BTreeMap<Arc<str>, Timestamp>) -> Option<String> {
    let texts: BTreeMap<&str, String> =
        since.iter().map(|(name, time)| (&**name, time.to_string())).collect();
    (!texts.is_empty()).then(|| json!(texts).to_string())
}

/// The selected clusters as in the status of a `PlacementDecision`.
#[must_use]
pub fn entries(slice: &Slice) -> Value {
    Value::Array(slice.entries.iter().map(entry).collect())
}

fn entry(entry: &Entry) -> Value {
    let mut out = json!({"clusterName": &*entry.cluster, "reason": entry.reason});
    if entry.score != 0 {
        out["score"] = json!(entry.score);
    }
    out
}

/// The groups as in the status of a `Placement`.
#[must_use]
pub fn groups(groups: &[Group]) -> Value {
    let one = |(index, group): (usize, &Group)| {
        json!({
            "decisionGroupIndex": index,
            "decisionGroupName": group.name,
            "decisions": group.slices.iter().map(|name| &**name).collect::<Vec<_>>(),
            "clusterCount": group.clusters,
        })
    };
    Value::Array(groups.iter().enumerate().map(one).collect())
}

/// A condition as in the status of a `Placement`; of a message that is too long, its beginning.
#[must_use]
pub fn condition(condition: &Condition, placement: &Placement) -> Value {
    let mut out = json!({
        "type": condition.kind,
        "status": if condition.status { "True" } else { "False" },
        "reason": condition.reason,
        "message": message(&condition.message),
        "lastTransitionTime": crate::time::text(condition.since),
    });
    if let Some(generation) = placement.generation {
        out["observedGeneration"] = json!(generation);
    }
    out
}

/// What is told, as events.k8s.io tells it.
#[must_use]
pub fn events(outcome: &Outcome) -> Vec<Value> {
    let key = &outcome.placement;
    let version = "cluster.open-cluster-management.io/v1beta1";
    let refer = |kind: &str, name: &str| json!({"apiVersion": version, "kind": kind, "namespace": &*key.namespace, "name": name});
    let event = |event: &loadline_core::place::Event| {
        let mut out = json!({
            "type": if event.warning { "Warning" } else { "Normal" },
            "reason": event.reason,
            "action": event.action,
            "note": event.note.to_string(),
            "reportingController": "placement-controller",
            "regarding": refer("Placement", &key.name),
        });
        if let Some(slice) = &event.slice {
            out["related"] = refer("PlacementDecision", slice);
        }
        out
    };
    outcome.events.iter().map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_keeps_what_others_wrote() {
        let value = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
            "metadata": {"name": "p-decision-1", "namespace": "ns1", "uid": "u", "annotations": {"note": "kept"},
                "labels": {"cluster.open-cluster-management.io/placement": "p"}},
            "status": {"decisions": [{"clusterName": "a", "reason": "", "score": 120}, {"clusterName": "b", "reason": ""}]},
        });
        let (mut slice, warnings) = read(&Tree::from(&value)).unwrap();
        assert_eq!((slice.placement(), slice.entries.len(), warnings.len()), (Some("p"), 2, 0));
        slice.since = [("a".into(), "2025-01-01T00:00:00Z".parse().unwrap())].into();
        let written = render(&slice, &Placement::default(), Some(&value));
        assert_eq!(read(&Tree::from(&written)).unwrap().0, slice);
        assert_eq!(
            (&written["metadata"]["uid"], &written["metadata"]["annotations"]["note"]),
            (&json!("u"), &json!("kept"))
        );
        assert_eq!(written["status"], value["status"], "a score of 0 is left out");
        slice.since.clear();
        let again = render(&slice, &Placement::default(), Some(&written));
        assert_eq!(again["metadata"]["annotations"], json!({"note": "kept"}));
    }

    #[test]
    fn no_status_is_no_clusters() {
        // Row A13: absent and empty read alike.
        let (slice, _) = read(&Tree::from(&json!({"metadata": {"name": "p-decision-1"}}))).unwrap();
        assert!(slice.entries.is_empty());
        assert_eq!(render(&slice, &Placement::default(), None)["status"], json!({"decisions": []}));
    }
}
