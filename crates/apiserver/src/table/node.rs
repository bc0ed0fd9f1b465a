//! What does a node show?

use super::cells::{NONE, UNKNOWN, created, flag, list, map, name, text, text_or};
use super::columns::{AGE, Column, NAME, Printer};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

/// Nodes.
pub(super) const NODE: Printer = Printer::new(
    &[
        NAME,
        Column::text("Status", "Whether the node is ready and takes new pods."),
        Column::text("Roles", "Roles named by the node's labels."),
        AGE,
        Column::text("Version", "Version of the kubelet."),
        Column::text("Internal-IP", "First address of type InternalIP.").wide(),
        Column::text("External-IP", "First address of type ExternalIP.").wide(),
        Column::text("OS-Image", "Operating system as the node names it.").wide(),
        Column::text("Kernel-Version", "Version of the kernel.").wide(),
        Column::text("Container-Runtime", "Container runtime and its version.").wide(),
    ],
    cells,
);

fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let info = |field: &str| text_or(node, &format!("/status/nodeInfo/{field}"), UNKNOWN);
    let mut kernel = info("kernelVersion").to_owned();
    let architecture = text(node, "/status/nodeInfo/architecture");
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    vec![
        name(node),
        json!(status(node)),
        json!(roles(node)),
        created(node, now),
        json!(text(node, "/status/nodeInfo/kubeletVersion")),
        json!(address(node, "InternalIP")),
        json!(address(node, "ExternalIP")),
        json!(info("osImage")),
        json!(kernel),
        json!(info("containerRuntimeVersion")),
    ]
}

/// The last condition of a type counts when there are several.
fn status(node: &Value) -> String {
    let ready = list(node, "/status/conditions").iter().rfind(|c| text(c, "/type") == "Ready");
    let word = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match flag(node, "/spec/unschedulable") {
        Some(true) => format!("{word},SchedulingDisabled"),
        _ => word.to_owned(),
    }
}

fn roles(node: &Value) -> String {
    let roles: BTreeSet<&str> = map(node, "/metadata/labels")
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE_LABEL => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    match roles.len() {
        0 => NONE.to_owned(),
        _ => roles.into_iter().collect::<Vec<_>>().join(","),
    }
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    list(node, "/status/addresses")
        .iter()
        .find(|address| text(address, "/type") == kind)
        .map_or(NONE, |address| text(address, "/address"))
}
