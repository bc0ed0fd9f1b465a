//! What goes on in the cluster by itself: nodes are there, pods come, start and end, and whatever ends is made again.

use crate::floor::{CPU, MEMORY};
use crate::front::Front;
use crate::hands::Hands;
use crate::plan::Plan;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";
/// A pod that is asked to go takes so long, in milliseconds.
const GRACE: u64 = 2000;
/// A node that is gone is found to be, with its pods, after so many milliseconds.
const FOUND_GONE: u64 = 4000;

/// The cluster.
pub(crate) struct Cluster {
    front: Front,
    hands: Hands,
    plan: Plan,
    /// Of each place of a workload, the pod that has it, counted from one; none before it is due.
    generations: Vec<u64>,
    /// Since when pods are to go, and nodes are away.
    since: BTreeMap<String, u64>,
    owners: BTreeMap<String, String>,
}

impl Cluster {
    pub(crate) fn new(front: &Front, plan: &Plan) -> Self {
        Self {
            front: front.clone(),
            hands: Hands::new(front, "cluster"),
            generations: vec![0; plan.pods.len()],
            plan: plan.clone(),
            since: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(mut self) {
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.second().await;
        }
    }

    async fn second(&mut self) {
        let now = self.front.at();
        self.nodes(now).await;
        let pods = self.front.all("pods");
        let nodes: BTreeSet<String> =
            self.front.all("nodes").iter().map(|(path, _)| last(path).to_owned()).collect();
        let names: Vec<String> = nodes.iter().cloned().collect();
        self.front.floor().tick(now, &names, &pods);
        for (path, pod) in &pods {
            let node = pod["spec"]["nodeName"].as_str();
            let gone = node.is_some_and(|node| !nodes.contains(node));
            if gone || !pod["metadata"]["deletionTimestamp"].is_null() {
                let since = *self.since.entry(path.clone()).or_insert(now);
                let wait = if gone { FOUND_GONE } else { GRACE };
                if now >= since + wait {
                    self.since.remove(path);
                    self.hands.delete(path).await;
                }
                continue;
            }
            self.since.remove(path);
            let away = node.is_none_or(|node| self.front.floor().away.contains(node));
            if pod["status"]["phase"].as_str() == Some("Pending") && !away {
                let started =
                    json!({"startTime": crate::floor::time(now).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
                let state = json!({"running": {"startedAt": started["startTime"]}});
                let status = json!({
                    "phase": "Running", "startTime": started["startTime"],
                    "conditions": with_ready(&pod["status"]["conditions"]),
                    "containerStatuses": [{"name": "main", "ready": true, "restartCount": 0, "image": "app", "imageID": "", "state": state}],
                });
                self.hands.patch(&format!("{path}/status"), &json!({"status": status})).await;
            }
        }
        self.arrive(now, &pods).await;
    }

    /// Nodes are there unless they are away.
    async fn nodes(&mut self, now: u64) {
        let there = self.front.all("nodes");
        for node in 0..self.plan.nodes {
            let name = format!("n{node}");
            let path = format!("{NODES}/{name}");
            let away = self.front.floor().away.contains(&name);
            let exists = there.iter().any(|(known, _)| *known == path);
            if away {
                let since = *self.since.entry(path.clone()).or_insert(now);
                if exists && now >= since + FOUND_GONE {
                    self.hands.delete(&path).await;
                }
            } else {
                self.since.remove(&path);
                if !exists {
                    self.hands.create(NODES, &node_object(&name)).await;
                }
            }
        }
    }

    /// What is due and not there is made.
    async fn arrive(&mut self, now: u64, pods: &[(String, Arc<Value>)]) {
        for place in 0..self.plan.pods.len() {
            let arrival = self.plan.pods[place].clone();
            let name = format!("p{place}-{}", self.generations[place]);
            let path = format!("{PODS}/{name}");
            let there = self.generations[place] > 0 && pods.iter().any(|(known, _)| *known == path);
            if arrival.at > now || there {
                continue;
            }
            let workload = format!("w{}-{}", arrival.cpu_milli, arrival.memory_mib);
            let Some(owner) = self.owner(&workload).await else { continue };
            self.generations[place] += 1;
            let requests = json!({"cpu": format!("{}m", arrival.cpu_milli), "memory": format!("{}Mi", arrival.memory_mib)});
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": format!("p{place}-{}", self.generations[place]), "namespace": "default",
                    "labels": {"app": workload, "tier": "batch"},
                    "annotations": {"chaos/cpu": arrival.cpu_milli.to_string(), "chaos/memory": arrival.memory_mib.to_string()},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": workload, "uid": owner, "controller": true}],
                },
                "spec": {
                    "schedulerName": "loadline", "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
                },
            });
            self.hands.create(PODS, &pod).await;
        }
    }

    /// The uid of a workload, which is made if it is not there.
    async fn owner(&mut self, name: &str) -> Option<String> {
        if let Some(uid) = self.owners.get(name) {
            return Some(uid.clone());
        }
        let labels = json!({"app": name});
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app"}]}}},
        });
        self.hands.create("/apis/apps/v1/namespaces/default/replicasets", &set).await;
        let all = self.front.all("replicasets");
        let (_, made) = all.iter().find(|(path, _)| last(path) == name)?;
        let uid = made["metadata"]["uid"].as_str()?.to_owned();
        self.owners.insert(name.to_owned(), uid.clone());
        Some(uid)
    }
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The conditions of a pod, and that it is ready.
fn with_ready(conditions: &Value) -> Value {
    let mut all: Vec<Value> = conditions.as_array().cloned().unwrap_or_default();
    all.retain(|one| one["type"] != "Ready");
    all.push(json!({"type": "Ready", "status": "True"}));
    json!(all)
}

fn node_object(name: &str) -> Value {
    let has = json!({"cpu": format!("{CPU}m"), "memory": format!("{MEMORY}Mi"), "pods": "30"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}
