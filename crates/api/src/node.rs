//! What is known of a node?

use crate::json::{Skip, Tree};
use crate::read::{At, Error, Warning, tolerant};
use jiff::Timestamp;
use loadline_core::view::NodeFacts;
use loadline_core::view::images::ImageName;
use std::sync::Arc;

/// What [`facts`] does not read. Annotations stay: load rules go by them.
pub const SKIP: Skip = Skip::NOTHING.within(&[
    ("metadata", Skip::fields(&["finalizers", "managedFields"])),
    ("spec", Skip::fields(&["configSource", "podCIDRs"])),
    (
        "status",
        Skip::fields(&[
            "addresses",
            "conditions",
            "config",
            "daemonEndpoints",
            "declaredFeatures",
            "features",
            "images",
            "nodeInfo",
            "runtimeHandlers",
            "volumesAttached",
            "volumesInUse",
        ]),
    ),
]);

/// What [`facts`] and [`addresses`] do not read.
pub const SKIP_BUT_ADDRESSES: Skip = Skip::NOTHING.within(&[
    ("metadata", Skip::fields(&["finalizers", "managedFields"])),
    ("spec", Skip::fields(&["configSource", "podCIDRs"])),
    (
        "status",
        Skip::fields(&[
            "conditions",
            "config",
            "daemonEndpoints",
            "declaredFeatures",
            "features",
            "images",
            "nodeInfo",
            "runtimeHandlers",
            "volumesAttached",
            "volumesInUse",
        ]),
    ),
]);

/// What [`facts`] does not read, without conditions.
pub const SKIP_BUT_CONDITIONS: Skip = Skip::NOTHING.within(&[
    ("metadata", Skip::fields(&["finalizers", "managedFields"])),
    ("spec", Skip::fields(&["configSource", "podCIDRs"])),
    (
        "status",
        Skip::fields(&[
            "addresses",
            "config",
            "daemonEndpoints",
            "declaredFeatures",
            "features",
            "images",
            "nodeInfo",
            "runtimeHandlers",
            "volumesAttached",
            "volumesInUse",
        ]),
    ),
]);

/// What [`with_images`] does not read.
pub const SKIP_BUT_IMAGES: Skip = Skip::NOTHING.within(&[
    ("metadata", Skip::fields(&["finalizers", "managedFields"])),
    ("spec", Skip::fields(&["configSource", "podCIDRs"])),
    (
        "status",
        Skip::fields(&[
            "addresses",
            "conditions",
            "config",
            "daemonEndpoints",
            "declaredFeatures",
            "features",
            "nodeInfo",
            "runtimeHandlers",
            "volumesAttached",
            "volumesInUse",
        ]),
    ),
]);

/// By what a Node is reached within its cluster: internal addresses and names, without repetition. It may have none.
#[must_use]
pub fn addresses(value: &Tree<'_>) -> Vec<Arc<str>> {
    let mut out: Vec<Arc<str>> = Vec::new();
    for one in value["status"]["addresses"].as_array().into_iter().flatten() {
        let within = matches!(one["type"].as_str(), Some("InternalIP" | "InternalDNS" | "Hostname"));
        if let (true, Some(text)) = (within, one["address"].as_str())
            && !text.is_empty()
            && !out.iter().any(|known| **known == *text)
        {
            out.push(text.into());
        }
    }
    out
}

/// The facts of a Node. Limits on volumes are not in it: [`crate::Context::attach_limits`] has them.
///
/// A resource whose amount does not read is left out with a warning: what a node has is then unknown, which is
/// not the same as nothing.
///
/// # Errors
/// When anything else is not what it should be.
pub fn facts(value: &Tree<'_>) -> Result<(NodeFacts, Vec<Warning>), Error> {
    tolerant("Node", value, |node| {
        let (metadata, spec, status) = (node.get("metadata"), node.get("spec"), node.get("status"));
        NodeFacts {
            name: metadata.get("name").needed(),
            labels: metadata.get("labels").texts(),
            annotations: metadata.get("annotations").texts(),
            taints: spec.get("taints").list(),
            unschedulable: spec.get("unschedulable").flag(),
            allocatable: status.get("allocatable").known_amounts(),
            capacity: status.get("capacity").known_amounts(),
            ..NodeFacts::default()
        }
    })
}

/// The facts of a Node, and which images it has: for who chooses nodes by them.
///
/// # Errors
/// As [`facts`]. An image that does not read is one the node does not have.
pub fn with_images(value: &Tree<'_>) -> Result<(NodeFacts, Vec<Warning>), Error> {
    let (mut out, warnings) = facts(value)?;
    let images = value["status"]["images"].as_array().unwrap_or_default();
    out.images.reserve_exact(images.iter().map(|one| one["names"].as_array().map_or(0, <[_]>::len)).sum());
    for one in images {
        let size = one["sizeBytes"].as_i64().unwrap_or_default();
        let names = one["names"].as_array().into_iter().flatten().filter_map(Tree::as_str);
        out.images.extend(names.map(|name| (ImageName::held(name), size)));
    }
    Ok((out, warnings))
}

/// Annotation of a node: until when no pod is sent there, because load was just taken off it by force. Whoever takes the
/// load off writes it, and schedulers read it, as two processes that know each other only by the API server.
pub const COOLING: &str = "loadline.dev/cooling-until";

/// Until when a node is to be left alone, as its annotations say; what is no time is nothing.
#[must_use]
pub fn cooling_until(facts: &NodeFacts) -> Option<Timestamp> {
    facts.annotations.get(COOLING)?.parse().ok()
}

/// Is the node up, by its own account? None if it does not say. Placing pods goes by taints, not by this.
#[must_use]
pub fn is_ready(value: &Tree<'_>) -> Option<bool> {
    let conditions = value["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|c| c["type"].as_str() == Some("Ready"))?;
    match ready["status"].as_str()? {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// How many volumes each driver of a `CSINode` can attach; drivers that do not say can attach any number.
pub(crate) fn limits(csi_node: &At<'_, '_>) -> Vec<(String, i64)> {
    let spec = csi_node.get("spec");
    let drivers = spec.get("drivers");
    let limit = |driver: At<'_, '_>| {
        let count = driver.get("allocatable").get("count").int()?;
        Some((driver.get("name").string(), count))
    };
    drivers.items().filter_map(limit).collect()
}
