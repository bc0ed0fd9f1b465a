//! What of a member is looked at, and what is kept of it?

use crate::cluster::resource::{NODES, PODS};
use crate::cluster::watch::logged;
use crate::cluster::{Event, Resource, Watched};
use crate::sources::metrics_api::Measurements;
use loadline_api::json::{Skip, Tree};
use loadline_api::{self as api, Context, Error};
use loadline_core::member::Up;
use loadline_core::view::{NodeFacts, PodFacts};

/// What comes in.
#[derive(Debug)]
pub(super) enum Message {
    Node(Event<<Nodes as Watched>::Facts>),
    Pod(Event<<Pods as Watched>::Facts>),
    Measured(Measurements),
}

/// Nodes: what they have, and whether they are up.
#[derive(Debug)]
pub(super) struct Nodes;

impl Watched for Nodes {
    const RESOURCE: Resource = NODES;
    const SKIP: Skip = Skip::NOTHING.within(&[
        ("metadata", Skip::fields(&["annotations", "finalizers", "managedFields"])),
        ("spec", Skip::fields(&["configSource", "podCIDRs"])),
        (
            "status",
            Skip::fields(&[
                "addresses",
                "config",
                "daemonEndpoints",
                "features",
                "images",
                "nodeInfo",
                "runtimeHandlers",
                "volumesAttached",
                "volumesInUse",
            ]),
        ),
    ]);
    type Facts = Box<(NodeFacts, Up)>;

    fn read(object: &Tree<'_>) -> Result<Self::Facts, Error> {
        let facts = api::node::facts(object).map(logged)?;
        Ok(Box::new((facts, up(object))))
    }
}

/// Is it up? A node that nobody has heard of for a while says neither yes nor no, which is no; one that never said anything
/// of the kind is simulated, or about to say so.
fn up(node: &Tree<'_>) -> Up {
    let conditions = node["status"]["conditions"].as_array().unwrap_or_default();
    let ready = conditions.iter().find(|one| one["type"].as_str() == Some("Ready"));
    if ready.is_none_or(|one| one["status"].as_str() == Some("True")) { Up::Yes } else { Up::No }
}

/// Pods that are not over. Volumes are left out: nobody sums them up.
#[derive(Debug)]
pub(super) struct Pods;

impl Watched for Pods {
    const RESOURCE: Resource = PODS;
    const FIELDS: Option<&'static str> = Some("status.phase!=Succeeded,status.phase!=Failed");
    const SKIP: Skip = api::pod::SKIP_VOLUMES;
    type Facts = Box<PodFacts>;

    fn read(object: &Tree<'_>) -> Result<Self::Facts, Error> {
        let (facts, _) = api::pod::facts(object, &Context::new())?;
        Ok(Box::new(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_is_up_unless_it_says_otherwise_or_is_not_heard_of() {
        for (conditions, want) in [
            (json!([]), Up::Yes),
            (json!([{"type": "Ready", "status": "True"}]), Up::Yes),
            (
                json!([{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "False"}]),
                Up::No,
            ),
            (json!([{"type": "Ready", "status": "Unknown"}]), Up::No),
        ] {
            let node = json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}});
            assert_eq!(Nodes::read(&Tree::from(&node)).unwrap().1, want, "{node}");
        }
    }
}
