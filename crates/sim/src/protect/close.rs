//! How does a node say that it has too much? A condition and a taint, and until when it is left alone.

use crate::bind::COOLING;
use crate::cluster::{Cluster, Error, Key, Node, Patch};
use jiff::Timestamp;
use loadline_core::qos::Options;
use loadline_core::qos::taint::{CONDITION, Closed, KEY};
use serde_json::{Value, json};

/// How often is tried while others change the node, too.
const TRIES: usize = 3;

/// Makes the node say it. Tells whether it did not say so before.
pub async fn say(cluster: &Cluster, node: &Node, closed: &Closed, now: Timestamp) -> Result<bool, Error> {
    let key = &node.meta.key;
    let changed = node.taints.iter().any(|taint| taint.key == KEY) != closed.present;
    let mark = closed.cools_until.map(whole);
    if !changed && node.meta.annotation(COOLING) == mark.as_deref() {
        return Ok(false);
    }
    if changed {
        // The taint comes last: while it is not as it should be, all of this is done again.
        let condition = json!({
            "type": CONDITION, "status": if closed.present { "True" } else { "False" },
            "reason": closed.reason(), "message": closed.message,
            "lastHeartbeatTime": whole(now), "lastTransitionTime": whole(now),
        });
        let patch = json!({"status": {"conditions": [condition]}});
        cluster.write.patch_as::<Node>(key, "/status", Patch::Strategic, &patch).await?;
    }
    mark_node(cluster, key, closed.present, mark.as_deref()).await?;
    Ok(changed)
}

/// Others' taints stay as they are, also those that come meanwhile.
async fn mark_node(cluster: &Cluster, key: &Key, present: bool, mark: Option<&str>) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        let now = cluster.write.get::<Node>(key).await?;
        let mut taints: Vec<Value> = now["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let there = taints.iter().any(|taint| taint["key"] == KEY);
        let mut patch = json!({"metadata": {
            "resourceVersion": now["metadata"]["resourceVersion"], "annotations": {COOLING: mark},
        }});
        if there != present {
            taints.retain(|taint| taint["key"] != KEY);
            if present {
                taints.push(json!({"key": KEY, "effect": Options::default().taint}));
            }
            patch["spec"] = json!({"taints": taints});
        }
        match cluster.write.patch::<Node>(key, "", &patch).await {
            Ok(answer) => {
                cluster.nodes.wrote(answer);
                return Ok(());
            }
            Err(error) if error.is_conflict() && tries < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

/// In whole seconds, as the API server keeps times.
fn whole(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
