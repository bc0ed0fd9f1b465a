//! What can be learned from a pod's object? Whose it is, and what was killed for lack of memory.

use crate::json::{Skip, Tree};
use crate::read::{At, Error, controller, object};
use jiff::Timestamp;
use loadline_core::view::Owner;

/// What [`pod`] does not read.
pub const SKIP: Skip = Skip::NOTHING.within(&[
    ("metadata", Skip::fields(&["annotations", "labels", "managedFields"])),
    (
        "spec",
        Skip::fields(&[
            "affinity",
            "ephemeralContainers",
            "tolerations",
            "topologySpreadConstraints",
            "volumes",
        ])
        .within(crate::pod::CONTAINERS),
    ),
    ("status", Skip::fields(&["conditions", "ephemeralContainerStatuses", "hostIPs", "podIPs"])),
]);

/// A pod, as far as something is learned from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    pub controller: Option<Owner>,
    pub kills: Vec<Kill>,
}

/// A container was killed for lack of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    pub container: String,
    pub at: Timestamp,
    /// What it had: its limit, else what it asked for.
    pub memory_bytes: i64,
}

/// Reads a Pod.
///
/// # Errors
/// When the object is not what it should be.
pub fn pod(value: &Tree<'_>) -> Result<Pod, Error> {
    object("Pod", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let containers = spec.get("containers");
        let memory = |name: &str| {
            let container = containers.items().find(|c| c.get("name").text() == Some(name))?;
            let resources = container.get("resources");
            let of = |kind: &str| {
                let amounts = resources.get(kind);
                amounts.get("memory").some()?.amount().ok().map(|amount| amount.value())
            };
            of("limits").or_else(|| of("requests")).filter(|bytes| *bytes > 0)
        };
        let statuses = status.get("containerStatuses");
        let kill = |one: At<'_, '_>| {
            let name = one.get("name").string();
            ["state", "lastState"].into_iter().find_map(|state| {
                let state = one.get(state);
                let ended = state.get("terminated");
                (ended.get("reason").text() == Some("OOMKilled")).then_some(())?;
                Some(Kill {
                    at: ended.get("finishedAt").time()?,
                    memory_bytes: memory(&name)?,
                    container: name.clone(),
                })
            })
        };
        Pod { controller: controller(&metadata), kills: statuses.items().filter_map(kill).collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_kill_for_lack_of_memory_is_told_with_what_the_container_had() {
        let ended =
            |reason: &str| json!({"terminated": {"reason": reason, "finishedAt": "2026-01-05T10:00:00Z"}});
        let object = json!({
            "metadata": {"name": "p", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": true}]},
            "spec": {"containers": [
                {"name": "a", "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "512Mi"}}},
                {"name": "b", "resources": {"requests": {"memory": "512Mi"}}},
                {"name": "c"}, {"name": "d", "resources": {"limits": {"memory": "1Gi"}}}]},
            "status": {"containerStatuses": [
                {"name": "a", "state": {"running": {}}, "lastState": ended("OOMKilled")},
                {"name": "b", "state": ended("OOMKilled")},
                {"name": "c", "state": ended("OOMKilled")},
                {"name": "d", "state": ended("Error")}]},
        });
        let text = object.to_string();
        let whole = pod(&Tree::parse(text.as_bytes(), Skip::NOTHING).expect("JSON")).expect("a pod");
        let told: Vec<_> =
            whole.kills.iter().map(|kill| (&*kill.container, kill.memory_bytes >> 20)).collect();
        assert_eq!(told, [("a", 1024), ("b", 512)], "of what has no figure nothing is made up");
        assert_eq!(whole.controller.as_ref().map(|owner| &*owner.name), Some("web-1"));
        let sparing = pod(&Tree::parse(text.as_bytes(), SKIP).expect("JSON")).expect("a pod");
        assert_eq!(sparing, whole, "what is skipped is not read");
    }
}
