//! What is left of us in a cluster once our components are gone, and how does it go?
//!
//! Marks on nodes that nobody would ever take away again: annotations, taints, a condition; and in our namespace the leases and
//! the past of nodes. An annotation is ours if one of our components wrote it, which the server remembers; what people wrote to
//! tell us something stays, and so do the objects of our kinds. Where components of ours that mark nodes run in another namespace, the
//! marks are theirs as well, and stay.

use crate::cluster::connection::{Ask, Verb};
use crate::cluster::resource::{CONFIG_MAPS, LEASES, NODES, PODS};
use crate::cluster::write::{DEADLINE, Patch};
use crate::cluster::{Access, Cause, Connection, Failure, Resource, Writer};
use loadline_core::load::taints;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::taint::{self, CONDITION};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The beginning of the names of our components, under which they write, and of their leases.
const OURS: &str = "loadline-";
/// What the pods of all components bear.
const LABEL: &str = "app.kubernetes.io/name=loadline,app.kubernetes.io/component!=cleanup";
/// What the pods of those bear that leave marks on nodes.
const MARKING: &str =
    "app.kubernetes.io/name=loadline,app.kubernetes.io/component in (annotator,agent,rebalance)";
/// The taints of ours.
const TAINTS: [&str; 3] = [taint::KEY, taints::KEY, crate::rebalance::KEY];
/// How often a node is read again because somebody else wrote it meanwhile.
const TRIES: usize = 5;

/// Where, and how long components may take to end.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: Access,
    pub namespace: String,
    pub patience: Duration,
}

/// What was taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub nodes: usize,
    pub leases: usize,
    pub config_maps: usize,
    /// Pods elsewhere whose marks on nodes these may be, which is why all were left; none usually.
    pub left_to: Vec<String>,
}

/// Why something may be left.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Unreachable(String),
    #[error("{0}")]
    Refused(#[from] Failure),
    #[error("not in JSON: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error("still there, and would leave more: {}", .0.join(", "))]
    StillThere(Vec<String>),
}

/// Waits until our components are gone, then removes what they left.
///
/// # Errors
/// When they do not go, or the server refuses: everything up to then is removed, and the rest by the next try.
pub async fn run(options: &Options) -> Result<Removed, Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error::Unreachable)?;
    let connection = Connection::new(client).named("loadline-cleanup");
    let writer = Writer::new(connection.clone(), "loadline-cleanup");
    wait(&connection, options).await?;
    let mut removed = Removed { left_to: others(&connection, options).await?, ..Removed::default() };
    if removed.left_to.is_empty() {
        for node in list(&connection, NODES, "", "").await? {
            removed.nodes += usize::from(open(&connection, &writer, node).await?);
        }
    }
    for lease in list(&connection, LEASES, &options.namespace, "").await? {
        removed.leases += usize::from(drop_one(&writer, LEASES, &lease).await?);
    }
    let ours = "?labelSelector=app.kubernetes.io/managed-by%3Dloadline";
    for map in list(&connection, CONFIG_MAPS, &options.namespace, ours).await? {
        removed.config_maps += usize::from(drop_one(&writer, CONFIG_MAPS, &map).await?);
    }
    Ok(removed)
}

async fn wait(connection: &Connection, options: &Options) -> Result<(), Error> {
    let until = Instant::now() + options.patience;
    let query = chosen(LABEL);
    loop {
        let pods = list(connection, PODS, &options.namespace, &query).await?;
        if pods.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(Error::StillThere(pods.iter().map(|pod| meta(pod).key.to_string()).collect()));
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Pods in other namespaces that mark nodes, too.
async fn others(connection: &Connection, options: &Options) -> Result<Vec<String>, Error> {
    let pods = list(connection, PODS, "", &chosen(MARKING)).await?;
    let keys = pods.iter().map(|pod| meta(pod).key).filter(|key| *key.namespace != *options.namespace);
    Ok(keys.map(|key| key.to_string()).collect())
}

/// The query for what bears these labels.
fn chosen(labels: &str) -> String {
    format!("?labelSelector={}", labels.replace('!', "%21").replace('=', "%3D").replace(' ', "%20"))
}

async fn list(
    connection: &Connection,
    of: Resource,
    namespace: &str,
    query: &str,
) -> Result<Vec<Value>, Error> {
    let path = format!("{}{query}", of.collection(namespace));
    let answer = connection.call(Ask::read(Verb::List, of, path), DEADLINE).await?;
    let mut answer: Value = serde_json::from_slice(&answer)?;
    Ok(serde_json::from_value::<Option<Vec<Value>>>(answer["items"].take())?.unwrap_or_default())
}

/// Takes our marks from a node; says whether there were any.
async fn open(connection: &Connection, writer: &Writer, mut node: Value) -> Result<bool, Error> {
    let key = meta(&node).key;
    let mut found = false;
    for attempt in 1.. {
        let Some(patch) = unmark(&node) else { break };
        found = true;
        match writer.patch(NODES.whole(), &key, Patch::Merge, &patch).await {
            Ok(_) => break,
            Err(failure) if failure.cause == Cause::NotFound => return Ok(false),
            Err(failure) if failure.cause == Cause::Conflict && attempt < TRIES => {
                let query = format!("?fieldSelector=metadata.name%3D{}", key.name);
                let Some(again) = list(connection, NODES, "", &query).await?.pop() else {
                    return Ok(false);
                };
                node = again;
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    if has_condition(&node) {
        found = true;
        let gone = json!({"status": {"conditions": [{"$patch": "delete", "type": CONDITION}]}});
        writer.patch(NODES.status(), &key, Patch::Strategic, &gone).await?;
    }
    Ok(found)
}

/// Deletes an object if its name is one of ours; says whether it was.
async fn drop_one(writer: &Writer, of: Resource, object: &Value) -> Result<bool, Error> {
    let meta = meta(object);
    if !meta.key.name.starts_with(OURS) {
        return Ok(false);
    }
    match writer.delete(of, &meta, None).await {
        Err(failure) if failure.cause != Cause::NotFound => Err(failure.into()),
        _ => Ok(true),
    }
}

fn meta(object: &Value) -> Meta {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    Meta {
        key: Key::new(text("namespace"), text("name")),
        uid: text("uid").into(),
        revision: text("resourceVersion").parse().ok(),
    }
}

fn has_condition(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == CONDITION)
}

/// The patch after which nothing of ours is on the node; none if nothing is.
fn unmark(node: &Value) -> Option<Value> {
    let there = |name: &str| node["metadata"]["annotations"].get(name).is_some();
    let mut annotations = Map::new();
    for managed in node["metadata"]["managedFields"].as_array().into_iter().flatten() {
        if !managed["manager"].as_str().is_some_and(|manager| manager.starts_with(OURS)) {
            continue;
        }
        let written = managed["fieldsV1"]["f:metadata"]["f:annotations"].as_object();
        let written = written.into_iter().flatten().filter_map(|(field, _)| field.strip_prefix("f:"));
        annotations.extend(written.filter(|name| there(name)).map(|name| (name.to_owned(), Value::Null)));
    }
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is_ours = |taint: &Value| TAINTS.iter().any(|key| taint["key"] == *key);
    let (ours, others): (Vec<_>, Vec<_>) = taints.into_iter().partition(is_ours);
    if annotations.is_empty() && ours.is_empty() {
        return None;
    }
    let mut patch = json!({"metadata": {"annotations": annotations}});
    if !ours.is_empty() {
        patch["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"].clone();
        patch["spec"] = json!({"taints": others});
    }
    Some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_components_wrote_goes_and_what_people_wrote_stays() {
        let fields = |names: &[&str]| -> Value {
            let names = names.iter().map(|name| (format!("f:{name}"), json!({}))).collect::<Map<_, _>>();
            json!({"f:metadata": {"f:annotations": names}})
        };
        let node = json!({
            "metadata": {"name": "n1", "resourceVersion": "7",
                "annotations": {"cpu_usage_avg_5m": "0.1,now", "loadline.dev/preview": "true", "other": "x"},
                "managedFields": [
                    {"manager": "loadline-annotator", "fieldsV1": fields(&["cpu_usage_avg_5m", "gone_by_now"])},
                    {"manager": "kubectl-annotate", "fieldsV1": fields(&["loadline.dev/preview", "other"])},
                ]},
            "spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}, {"key": taint::KEY, "effect": "NoSchedule"}]},
        });
        assert_eq!(
            unmark(&node),
            Some(json!({
                "metadata": {"resourceVersion": "7", "annotations": {"cpu_usage_avg_5m": null}},
                "spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]},
            }))
        );
        assert_eq!(unmark(&json!({"metadata": {"name": "n2", "annotations": {"other": "x"}}})), None);
    }

    #[tokio::test]
    async fn marks_stay_while_components_elsewhere_may_have_made_them() {
        let server = loadline_apiserver::ApiServer::default();
        let client = kube::Client::new(server, "default");
        let create = async |path: &str, object: Value| {
            let request = http::Request::post(path).header("content-type", "application/json");
            let request = request.body(object.to_string().into_bytes()).expect("well-formed");
            client.request::<Value>(request).await.expect("created")
        };
        let hot = json!({"key": taints::KEY, "value": "over", "effect": "NoSchedule"});
        create("/api/v1/nodes", json!({"metadata": {"name": "n1"}, "spec": {"taints": [hot]}})).await;
        let leases = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases";
        for namespace in ["karmada-system", "loadline-system"] {
            create("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        }
        let pod = |component: &str| {
            let labels =
                json!({"app.kubernetes.io/name": "loadline", "app.kubernetes.io/component": component});
            json!({"metadata": {"name": component, "labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        };
        let there = "/api/v1/namespaces/loadline-system/pods";
        create(there, pod("annotator")).await;
        create(there, pod("estimator")).await;
        let clean = async || {
            create(leases, json!({"metadata": {"name": "loadline-fleet"}})).await;
            let options = Options {
                cluster: Access::Client(client.clone()),
                namespace: "karmada-system".to_owned(),
                patience: Duration::ZERO,
            };
            run(&options).await.expect("it can")
        };
        let left_to = vec!["loadline-system/annotator".to_owned()];
        assert_eq!(clean().await, Removed { leases: 1, left_to, ..Removed::default() });

        let gone = http::Request::delete(format!("{there}/annotator?gracePeriodSeconds=0"));
        client.request::<Value>(gone.body(Vec::new()).expect("well-formed")).await.expect("deleted");
        assert_eq!(
            clean().await,
            Removed { nodes: 1, leases: 1, ..Removed::default() },
            "an estimator marks none"
        );
    }

    #[test]
    fn a_condition_of_ours_is_seen() {
        let with = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "False"}]}});
        assert!(has_condition(&with(CONDITION)));
        assert!(!has_condition(&with("Ready")));
    }
}
