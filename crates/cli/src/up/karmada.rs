//! The hub as Karmada's: a `Cluster` for every member with what is free there now, and the controller that divides what is bound.
//!
//! Of Karmada's other controllers only what makes a division visible is played here: what a cluster was given is created there,
//! and how much of it is ready is told back.

mod story;

use super::hub::{add, sums};
use super::site::Site;
use crate::fleet::binding as flags;
use anyhow::{Context as _, Result};
use kube::api::{ListParams, Request};
use loadline_api::Context;
use loadline_api::json::Tree;
use loadline_core::divide::{self, Mode};
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_core::resources::List;
use loadline_core::view::Phase;
use loadline_services::cluster::connection::Cause;
use loadline_services::cluster::resource::{
    CLUSTER_RESOURCE_BINDINGS, DEPLOYMENTS, KARMADA_CLUSTERS, NODES, PODS, RESOURCE_BINDINGS, Resource,
};
use loadline_services::cluster::write::Patch;
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::fleet::binding;
use loadline_services::fleet::estimators::{self, Addresses};
use loadline_services::{Ctx, serve};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

pub use story::{MACHINES, SCHEDULER as BY_TOTALS};

/// Time between two looks at a member, or at what was bound.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What the controllers here need.
pub struct Setup<'a> {
    pub client: kube::Client,
    pub sites: &'a [Site],
    /// Where the estimator of all members listens.
    pub estimator: SocketAddr,
    /// Are the stories told in which totals mislead?
    pub totals: bool,
    pub stop: CancellationToken,
    /// Where the controller is asked why.
    pub bindings: (binding::explain::Asker, binding::explain::Asked),
}

/// Starts everything, and says where the controller can be asked why.
pub async fn start(setup: Setup<'_>, tasks: &mut JoinSet<()>, ctx: impl Fn() -> Ctx) -> Result<SocketAddr> {
    let Setup { client, sites, estimator, totals, stop, bindings: (asker, questions) } = setup;
    let writer = Writer::new(Connection::new(client.clone()), "loadline-up");
    for definition in definitions() {
        writer.define(&definition).await?;
    }
    for site in sites {
        let cluster = json!({"apiVersion": KARMADA_CLUSTERS.api_version(), "kind": KARMADA_CLUSTERS.kind,
            "metadata": {"name": site.name}, "spec": {"syncMode": "Push", "apiEndpoint": site.url}});
        writer.create(KARMADA_CLUSTERS, "", &cluster).await?;
        let mut member = Member::new(site);
        // Who decides before a cluster has said what it has would decide by nothing.
        member.tell(&writer).await;
        let (writer, stop) = (writer.clone(), stop.clone());
        tasks.spawn(async move {
            let mut ticks = interval(LOOK_EVERY);
            while stop.run_until_cancelled(ticks.tick()).await.is_some() {
                member.tell(&writer).await;
            }
        });
    }
    let members = sites.iter().map(Member::new).collect();
    let mut works = Works { hub: client.clone(), writer: writer.clone(), members, told: BTreeMap::new() };
    let until = stop.clone();
    tasks.spawn(async move {
        let mut ticks = interval(LOOK_EVERY);
        while until.run_until_cancelled(ticks.tick()).await.is_some() {
            works.look().await;
        }
    });

    let addresses = Addresses { shared: Some(estimator.to_string()), ..Addresses::default() };
    let options = binding::Options {
        estimators: Some(estimators::Options { addresses, ..estimators::Options::default() }),
        asked: questions,
        ..binding::Options::new(Access::Client(client.clone()))
    };
    let decides = binding::run(ctx(), options);
    tasks.spawn(async move { super::hub::ended("controller of bindings", decides.await) });
    if totals {
        let by_totals = divide::Options { mode: Mode::General, ..divide::Options::default() };
        let options = binding::Options {
            scheduler: BY_TOTALS.to_owned(),
            divide: by_totals,
            ..binding::Options::new(Access::Client(client))
        };
        let decides = binding::run(ctx(), options);
        tasks.spawn(async move { super::hub::ended("controller by totals", decides.await) });
        tasks.spawn(story::play(writer, stop.clone()));
    }
    let listening = serve::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, false).await?;
    let address = listening.address();
    tokio::spawn(serve::run(listening, flags::router(asker), stop));
    Ok(address)
}

/// Karmada's kinds, with whatever fields.
fn definitions() -> [Value; 3] {
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let scheduled = column("Scheduled", ".status.conditions[?(@.type==\"Scheduled\")].status");
    let bound = [scheduled, column("Clusters", ".spec.clusters[*].name")];
    let ready = [column("Ready", ".status.conditions[?(@.type==\"Ready\")].status")];
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let one = |of: Resource, scope: &str, columns: &[Value]| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", of.plural, of.group)},
            "spec": {
                "group": of.group, "scope": scope,
                "names": {"plural": of.plural, "singular": of.kind.to_lowercase(), "kind": of.kind,
                    "listKind": format!("{}List", of.kind)},
                "versions": [{"name": of.version, "served": true, "storage": true, "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}],
            },
        })
    };
    [
        one(KARMADA_CLUSTERS, "Cluster", &ready),
        one(RESOURCE_BINDINGS, "Namespaced", &bound),
        one(CLUSTER_RESOURCE_BINDINGS, "Cluster", &bound),
    ]
}

async fn list(client: &kube::Client, of: Resource) -> Result<Vec<Value>> {
    let list = Request::new(of.collection("")).list(&ListParams::default())?;
    let mut all = client.request::<Value>(list).await?;
    Ok(all["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

/// A member, as Karmada sees it.
struct Member {
    name: String,
    client: kube::Client,
    told: Value,
}

impl Member {
    fn new(site: &Site) -> Self {
        let client = kube::Client::new(site.server.clone(), "default");
        Self { name: site.name.clone(), client, told: Value::Null }
    }

    /// Keeps the status of its `Cluster` at what is there.
    async fn tell(&mut self, writer: &Writer) {
        let status =
            async { Ok(status(&list(&self.client, NODES).await?, &list(&self.client, PODS).await?)) };
        let Ok::<_, anyhow::Error>(status) = status.await else { return };
        if status == self.told {
            return;
        }
        let (key, patch) = (Key::new("", &*self.name), json!({"status": &status}));
        match writer.patch(KARMADA_CLUSTERS.status(), &key, Patch::Merge, &patch).await {
            Ok(_) => self.told = status,
            Err(failure) => {
                tracing::warn!(cluster = self.name, %failure, "status of the cluster not written");
            }
        }
    }
}

/// What a cluster with these nodes and pods says of itself: sums, which is all that Karmada knows without estimators.
fn status(nodes: &[Value], pods: &[Value]) -> Value {
    let mut allocatable = BTreeMap::new();
    for node in nodes {
        add(&mut allocatable, &node["status"]["allocatable"]);
    }
    let (mut allocated, mut allocating) = (List::new(), List::new());
    for pod in pods {
        let Ok((pod, _)) = loadline_api::pod::facts(&Tree::from(pod), &Context::new()) else { continue };
        if matches!(pod.phase, Phase::Succeeded | Phase::Failed) {
            continue;
        }
        let sums = if pod.node.is_some() { &mut allocated } else { &mut allocating };
        let one = ("pods".to_owned(), Quantity::from_milli(1000));
        for (name, amount) in pod.requests.into_iter().chain([one]) {
            let sum = sums.entry(name).or_default();
            *sum = sum.plus(amount);
        }
    }
    let served = |version: &str, kinds: &[(&str, &str)]| {
        let resources: Vec<Value> =
            kinds.iter().map(|(kind, name)| json!({"kind": kind, "name": name})).collect();
        json!({"groupVersion": version, "resources": resources})
    };
    json!({
        "apiEnablements": [
            served("apps/v1", &[("Deployment", "deployments"), ("ReplicaSet", "replicasets")]),
            served("v1", &[("ConfigMap", "configmaps"), ("Pod", "pods"), ("Service", "services")]),
        ],
        "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady",
            "message": "cluster is healthy and ready to accept workloads", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "nodeSummary": {"totalNum": nodes.len(), "readyNum": nodes.len()},
        "resourceSummary": {"allocatable": sums(allocatable), "allocated": sums(allocated), "allocating": sums(allocating)},
    })
}

/// What becomes of a division.
struct Works {
    hub: kube::Client,
    writer: Writer,
    members: Vec<Member>,
    /// How far clusters have come, as it was told last, by binding.
    told: BTreeMap<Key, Value>,
}

impl Works {
    /// Creates what clusters were given, and tells how much of it is ready.
    async fn look(&mut self) {
        let Ok(bindings) = list(&self.hub, RESOURCE_BINDINGS).await else { return };
        for binding in bindings {
            if let Err(error) = self.apply(&binding).await {
                tracing::warn!(%error, binding = %binding["metadata"]["name"], "what was bound is not in its clusters");
            }
        }
    }

    async fn apply(&mut self, binding: &Value) -> Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let bound = &binding["spec"]["resource"];
        let targets = binding["spec"]["clusters"].as_array().map_or(&[][..], Vec::as_slice);
        if bound["kind"] != DEPLOYMENTS.kind || targets.is_empty() {
            return Ok(());
        }
        let of = Key::new(text(&bound["namespace"]), text(&bound["name"]));
        let template = get(&self.hub, &of).await?.context("there is no such Deployment in the hub")?;
        let mut aggregated = Vec::new();
        for target in targets {
            let Some(member) = self.members.iter().find(|member| target["name"] == *member.name) else {
                continue;
            };
            let mut spec = template["spec"].clone();
            spec["replicas"] = target["replicas"].as_i64().unwrap_or_default().into();
            let writer = Writer::new(Connection::new(member.client.clone()), "loadline-up");
            let status = match get(&member.client, &of).await? {
                Some(known) if known["spec"]["replicas"] == spec["replicas"] => known["status"].clone(),
                Some(_) => {
                    let change = json!({"spec": {"replicas": spec["replicas"]}});
                    writer.patch(DEPLOYMENTS.whole(), &of, Patch::Merge, &change).await?;
                    Value::Null
                }
                None => {
                    let object = json!({"apiVersion": DEPLOYMENTS.api_version(), "kind": DEPLOYMENTS.kind,
                        "metadata": {"name": &*of.name, "labels": template["metadata"]["labels"]}, "spec": spec});
                    match writer.create(DEPLOYMENTS, &of.namespace, &object).await {
                        Err(failure) if failure.cause != Cause::AlreadyExists => return Err(failure.into()),
                        _ => Value::Null,
                    }
                }
            };
            let ready = status["readyReplicas"].as_i64().unwrap_or_default();
            let wanted = target["replicas"].as_i64().unwrap_or_default();
            let health = if ready >= wanted { "Healthy" } else { "Unhealthy" };
            aggregated.push(json!({"clusterName": member.name, "applied": true, "health": health,
                "status": {"replicas": wanted, "readyReplicas": ready}}));
        }
        let key = Key::new(text(&binding["metadata"]["namespace"]), text(&binding["metadata"]["name"]));
        let aggregated = Value::from(aggregated);
        if self.told.get(&key) != Some(&aggregated) {
            let change = json!({"status": {"aggregatedStatus": aggregated}});
            self.writer.patch(RESOURCE_BINDINGS.status(), &key, Patch::Merge, &change).await?;
            self.told.insert(key, aggregated);
        }
        Ok(())
    }
}

async fn get(client: &kube::Client, deployment: &Key) -> Result<Option<Value>> {
    let request = http::Request::get(DEPLOYMENTS.object(deployment)).body(Vec::new())?;
    match client.request::<Value>(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_says_what_its_nodes_have_and_its_pods_ask_for_in_sums() {
        let node = |cpu: &str| json!({"metadata": {"name": cpu}, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}});
        let pod = |name: &str, node: Option<&str>, phase: &str| {
            json!({"metadata": {"name": name, "namespace": "default"},
                "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]},
                "status": {"phase": phase}})
        };
        let pods = [
            pod("a", Some("n"), "Running"),
            pod("b", Some("n"), "Pending"),
            pod("c", None, "Pending"),
            pod("over", Some("n"), "Succeeded"),
        ];
        let summary = status(&[node("7900m"), node("8100m")], &pods)["resourceSummary"].take();
        let expected = json!({
            "allocatable": {"cpu": "16", "pods": "220"},
            "allocated": {"cpu": "3", "pods": "2"},
            "allocating": {"cpu": "1500m", "pods": "1"},
        });
        assert_eq!(summary, expected);
    }
}
