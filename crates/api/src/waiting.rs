//! Which pods wait in vain, and whose are they? Deployments, replica sets and pods, as far as that is asked.

use crate::context::{key, namespace};
use crate::json::{Map, Skip, Tree};
use crate::read::{Error, METADATA, controller, object};
use loadline_core::estimate::waiting::{Deployment, ReplicaSet, Unplaced};
use loadline_core::select::{LabelSelector, Selector};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The label the Deployment controller adds to the template of a replica set.
const HASH_LABEL: &str = "pod-template-hash";

/// What [`deployment`] and [`replica_set`] do not read. Of templates everything counts.
pub const SKIP: Skip = Skip::fields(&["status"]).within(&[("metadata", METADATA)]);

/// A Deployment.
///
/// # Errors
/// When the object is not what it should be.
pub fn deployment(value: &Tree<'_>) -> Result<Deployment, Error> {
    object("Deployment", value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        let at = spec.get("selector");
        let selector = LabelSelector::prepare(at.parse().as_ref()).unwrap_or_else(|error| {
            at.fail(error.to_string());
            Selector::nothing()
        });
        Deployment {
            key: key(&metadata),
            uid: metadata.get("uid").string().into(),
            selector,
            template: fingerprint(spec.get("template").value()),
        }
    })
}

/// A `ReplicaSet`.
///
/// # Errors
/// When the object is not what it should be.
pub fn replica_set(value: &Tree<'_>) -> Result<ReplicaSet, Error> {
    object("ReplicaSet", value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        ReplicaSet {
            key: key(&metadata),
            uid: metadata.get("uid").string().into(),
            owner: controller(&metadata).map(|owner| owner.uid),
            created: metadata.get("creationTimestamp").time(),
            template: fingerprint(spec.get("template").value()),
        }
    })
}

/// A pod the scheduler found no node for; `None` for all others, and for those nobody controls.
///
/// # Errors
/// When the object is not what it should be.
pub fn unplaced(value: &Tree<'_>) -> Result<Option<Unplaced>, Error> {
    object("Pod", value, |root| {
        let (metadata, status) = (root.get("metadata"), root.get("status"));
        if root.get("spec").get("nodeName").text().is_some() {
            return None;
        }
        let conditions = status.get("conditions");
        let condition = conditions.items().find(|at| at.get("type").text() == Some("PodScheduled"))?;
        let is = |field: &str, text: &str| condition.get(field).text() == Some(text);
        if !(is("status", "False") && is("reason", "Unschedulable")) {
            return None;
        }
        Some(Unplaced {
            namespace: namespace(metadata.get("namespace").text()).into(),
            uid: metadata.get("uid").string().into(),
            owner: controller(&metadata)?.uid,
            labels: metadata.get("labels").texts(),
            since: condition.get("lastTransitionTime").time(),
        })
    })
}

/// A number that is the same for the same pod template. The order of fields, fields that are empty and the label of
/// the Deployment controller do not matter. Good within one process only.
#[must_use]
pub fn fingerprint(template: &Tree<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash(template, Place::Template, &mut hasher);
    hasher.finish()
}

/// How deep we are, as far as the label is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Template,
    Metadata,
    Labels,
    Elsewhere,
}

impl Place {
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Template, "metadata") => Self::Metadata,
            (Self::Metadata, "labels") => Self::Labels,
            _ => Self::Elsewhere,
        }
    }
}

fn hash(value: &Tree<'_>, place: Place, to: &mut DefaultHasher) {
    match value {
        Tree::Null => 0_u8.hash(to),
        Tree::Bool(flag) => (1_u8, flag).hash(to),
        Tree::Number(number) => (2_u8, number.to_string()).hash(to),
        Tree::String(text) => (3_u8, text).hash(to),
        Tree::Array(items) => {
            (4_u8, items.len()).hash(to);
            for item in items {
                hash(item, Place::Elsewhere, to);
            }
        }
        Tree::Object(fields) => {
            // They come by name.
            let kept = fields.iter().filter(|(key, value)| counts(key, value, place));
            (5_u8, kept.clone().count()).hash(to);
            for (key, value) in kept {
                key.hash(to);
                hash(value, place.below(key), to);
            }
        }
    }
}

/// Is it there at all? Empty lists and objects are written by some servers and left out by others.
fn counts(key: &str, value: &Tree<'_>, place: Place) -> bool {
    if place == Place::Labels && key == HASH_LABEL {
        return false;
    }
    match value {
        Tree::Null => false,
        Tree::Array(items) => !items.is_empty(),
        Tree::Object(fields) => any(fields, place.below(key)),
        _ => true,
    }
}

fn any(fields: &Map<'_>, place: Place) -> bool {
    fields.iter().any(|(key, value)| counts(key, value, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn templates_are_told_apart_by_what_they_say() {
        let base = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "a:1"}]},
        });
        for (other, same, why) in [
            (base.clone(), true, "the same"),
            (
                json!({
                    "spec": {"containers": [{"image": "a:1", "name": "c", "env": []}]},
                    "metadata": {"creationTimestamp": null, "annotations": {}, "labels": {
                        "pod-template-hash": "5d8f", "app": "web"}},
                }),
                true,
                "another order, empty fields, the controller's label",
            ),
            (
                json!({
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "a:2"}]},
                }),
                false,
                "another image",
            ),
            (
                json!({
                    "metadata": {"labels": {"app": "web"}, "annotations": {"pod-template-hash": "x"}},
                    "spec": {"containers": [{"name": "c", "image": "a:1"}]},
                }),
                false,
                "the name means something among labels only",
            ),
            (
                json!({
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "a:1"}, {"name": "d"}]},
                }),
                false,
                "one more container",
            ),
        ] {
            assert_eq!(fingerprint(&Tree::from(&base)) == fingerprint(&Tree::from(&other)), same, "{why}");
        }
        let only = json!({"metadata": {"labels": {"pod-template-hash": "x"}}});
        assert_eq!(
            fingerprint(&Tree::from(&only)),
            fingerprint(&Tree::from(&json!({}))),
            "labels that are empty without it"
        );
    }

    #[test]
    fn a_deployment_and_its_replica_set_have_the_same_fingerprint() {
        let template = |hash: Option<&str>| {
            let mut labels = json!({"app": "web"});
            if let Some(hash) = hash {
                labels["pod-template-hash"] = json!(hash);
            }
            json!({"metadata": {"labels": labels}, "spec": {"containers": []}})
        };
        let made = deployment(&Tree::from(&json!({
            "metadata": {"namespace": "shop", "name": "web", "uid": "d"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template(None)},
        })))
        .unwrap();
        let set = replica_set(&Tree::from(&json!({
            "metadata": {
                "namespace": "shop", "name": "web-1", "uid": "r", "creationTimestamp": "2025-01-01T00:00:00Z",
                "ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "d", "controller": true}],
            },
            "spec": {"template": template(Some("5d8f"))},
        })))
        .unwrap();
        assert_eq!(made.template, set.template);
        assert_eq!(set.owner.as_deref(), Some("d"));
        assert!(set.created.is_some());
    }

    #[test]
    fn only_pods_no_node_was_found_for_wait() {
        let pod = |node: Option<&str>, status: &str, reason: &str| {
            json!({
                "metadata": {"namespace": "shop", "name": "p", "uid": "u", "labels": {"app": "web"},
                    "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}]},
                "spec": {"nodeName": node},
                "status": {"conditions": [
                    {"type": "Ready", "status": "False"},
                    {"type": "PodScheduled", "status": status, "reason": reason,
                        "lastTransitionTime": "2025-01-01T00:00:00Z"},
                ]},
            })
        };
        for (node, status, reason, waits) in [
            (None, "False", "Unschedulable", true),
            (Some("n"), "False", "Unschedulable", false),
            (None, "True", "Unschedulable", false),
            (None, "False", "SchedulingGated", false),
        ] {
            let read = unplaced(&Tree::from(&pod(node, status, reason))).unwrap();
            assert_eq!(read.is_some(), waits, "{node:?} {status} {reason}");
        }
        assert_eq!(
            unplaced(&Tree::from(&json!({"metadata": {"name": "p"}}))).unwrap(),
            None,
            "nothing said yet"
        );
        let mut orphan = pod(None, "False", "Unschedulable");
        orphan["metadata"]["ownerReferences"] = json!([]);
        assert_eq!(unplaced(&Tree::from(&orphan)).unwrap(), None, "no Deployment is asked about it");
    }
}
