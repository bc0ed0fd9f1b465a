//! The hub of a fleet: it knows every cluster of `up` and how loaded it is, and placements there are decided live.
//!
//! It is an API server of its own with Open Cluster Management's kinds, and with Karmada's ([`super::karmada`]). Each member has a
//! `ManagedCluster`, whose status says what its nodes have; the publisher adds what is used of it, and the placement controller
//! decides five placements, those of the stories in `docs/guide/up.md`.

use super::karmada;
use super::site::Site;
use anyhow::{Context, Result};
use kube::api::{ListParams, Request};
use loadline_apiserver::{ApiServer, Config, listen};
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_services::cluster::resource::{
    MANAGED_CLUSTER_SET_BINDINGS, MANAGED_CLUSTER_SETS, MANAGED_CLUSTERS, NAMESPACES, NODES, PLACEMENTS,
};
use loadline_services::cluster::write::Patch;
use loadline_services::cluster::{Access, Connection, Resource, Writer};
use loadline_services::ctx::{Notice, Notices};
use loadline_services::dashboard::Beside;
use loadline_services::fleet::{binding, placement, publish};
use loadline_services::{Ctx, ask, dashboard};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// What kubectl calls it.
pub const NAME: &str = "hub";
/// Time between two looks at what the nodes of a member have.
const REGISTER_EVERY: Duration = Duration::from_secs(2);
/// Time between two sums of what is used of a member.
const PUBLISH_EVERY: Duration = Duration::from_secs(5);
/// News that may wait to be printed.
const WAITING: usize = 256;
/// How long open requests may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);
/// The set all members are in.
const SET: &str = "global";

/// Where a hub hears what dashboards want to know.
pub struct Asked {
    pub fleet: dashboard::fleet::Asked,
    /// Whoever else wants to know why asks there, too.
    pub bindings: (binding::explain::Asker, binding::explain::Asked),
}

/// What dashboards ask about a fleet, if there are several clusters, and where the hub hears of that.
pub fn asked(clusters: u16) -> (Beside, Asked) {
    let ((fleet, about_fleet), bindings) = (ask::channel(), ask::channel());
    let has_hub = clusters > 1;
    let beside = Beside {
        fleet: has_hub.then_some(fleet),
        bindings: has_hub.then(|| bindings.0.clone()),
        ..Beside::default()
    };
    (beside, Asked { fleet: about_fleet, bindings })
}

/// A running hub.
pub struct Hub {
    pub url: String,
    /// Where the controller of bindings is asked why.
    pub controller: SocketAddr,
    notices: Option<mpsc::Receiver<Notice>>,
    serving: JoinHandle<Result<(), listen::Error>>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Hub {
    /// Starts it, with a cluster for each site; an estimator answers for all of them. Where totals mislead, that is shown.
    pub async fn start(
        port: u16,
        sites: &[Site],
        estimator: SocketAddr,
        totals: bool,
        asked: Asked,
    ) -> Result<Self> {
        let server = ApiServer::new(Config::default());
        let listening = server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let (url, stop) = (listening.url(), CancellationToken::new());
        let serving = tokio::spawn(listening.serve(stop.clone().cancelled_owned()));
        let client = kube::Client::new(server, "default");
        let writer = Writer::new(Connection::new(client.clone()), "loadline-up");
        fill(&writer, sites).await.context("cannot fill the hub")?;

        let mut tasks = JoinSet::new();
        for site in sites {
            tasks.spawn(register(site.name.clone(), member(site), writer.clone(), stop.clone()));
        }
        let (sender, notices) = mpsc::channel(WAITING);
        let ctx = || Ctx { notices: Notices::to(sender.clone()), ..Ctx::new("up", stop.clone()) };
        let decides = placement::run(ctx(), placement::Options::new(Access::Client(client.clone())));
        tasks.spawn(async move { ended("placement controller", decides.await) });
        let members = sites.iter().map(|site| (site.name.clone(), Access::Client(member(site)))).collect();
        let told = publish::Options {
            every: PUBLISH_EVERY,
            ..publish::Options::new(Access::Client(client.clone()), members)
        };
        let publishes = publish::run(ctx(), told);
        tasks.spawn(async move { ended("publisher", publishes.await) });
        let options = dashboard::fleet::Options { hub: Access::Client(client.clone()) };
        let shows = dashboard::fleet::run(ctx(), options, asked.fleet);
        tasks.spawn(async move { ended("view of the fleet", shows.await) });
        let setup =
            karmada::Setup { client, sites, estimator, totals, stop: stop.clone(), bindings: asked.bindings };
        let controller = karmada::start(setup, &mut tasks, ctx).await.context("cannot fill the hub")?;
        Ok(Self { url, controller, notices: Some(notices), serving, tasks, stop })
    }

    /// What a person watching would want to know; there is one listener.
    pub fn notices(&mut self) -> Option<mpsc::Receiver<Notice>> {
        self.notices.take()
    }

    /// Ends it and waits for it.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        if let Ok(served) = tokio::time::timeout(GOODBYE, self.serving).await {
            served.context("the API server of the hub ended badly")??;
        }
        Ok(())
    }
}

pub(super) fn ended<E: std::fmt::Display>(what: &str, how: Result<(), E>) {
    if let Err(error) = how {
        tracing::error!(%error, "{what} ended");
    }
}

fn member(site: &Site) -> kube::Client {
    kube::Client::new(site.server.clone(), "default")
}

/// Kinds, clusters, their set and the placements.
async fn fill(writer: &Writer, sites: &[Site]) -> Result<()> {
    for definition in loadline_api::ocm::DEFINITIONS {
        writer.define(&serde_saphyr::from_str(definition)?).await?;
    }
    let everybody = json!({"selectorType": "LabelSelector", "labelSelector": {}});
    create(writer, MANAGED_CLUSTER_SETS, "", SET, json!({"clusterSelector": everybody})).await?;
    create(writer, MANAGED_CLUSTER_SET_BINDINGS, "default", SET, json!({"clusterSet": SET})).await?;
    for site in sites {
        // What others say of a cluster is in a namespace of its name.
        create(writer, NAMESPACES, "", &site.name, json!({})).await?;
        create(writer, MANAGED_CLUSTERS, "", &site.name, json!({"hubAcceptsClient": true})).await?;
    }
    for (number, (source, spec)) in (1..).zip(stories()) {
        let object = json!({
            "apiVersion": PLACEMENTS.api_version(), "kind": PLACEMENTS.kind,
            "metadata": {"name": format!("story-{number}"), "annotations": {loadline_api::ocm::LOAD_SOURCE: source}},
            "spec": spec,
        });
        writer.create(PLACEMENTS, "default", &object).await?;
    }
    Ok(())
}

async fn create(writer: &Writer, of: Resource, namespace: &str, name: &str, spec: Value) -> Result<()> {
    let object =
        json!({"apiVersion": of.api_version(), "kind": of.kind, "metadata": {"name": name}, "spec": spec});
    writer.create(of, namespace, &object).await?;
    Ok(())
}

/// What the five stories go by and ask for, of one cluster each: the one with the most room by share; with the most memory; with
/// both, weighed; one that stays where it is; and the one with the most GPUs left, by share. Nobody measures those: what pods
/// ask for counts.
fn stories() -> [(&'static str, Value); 5] {
    let one = |weights: &[(&str, i64)]| {
        let weigh = |(what, weight): &(&str, i64)| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": what}, "weight": weight});
        let configurations: Vec<Value> = weights.iter().map(weigh).collect();
        json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": configurations}})
    };
    [
        ("measured", one(&[("ResourceRatioCPU", 1), ("ResourceRatioMemory", 1)])),
        ("measured", one(&[("ResourceAllocatableMemory", 1)])),
        ("measured", one(&[("ResourceRatioCPU", 2), ("ResourceAllocatableMemory", 2)])),
        ("measured", one(&[("ResourceAllocatableCPU", 1), ("Steady", 3)])),
        ("requested", one(&[("ResourceRationvidia.com/gpu", 1)])),
    ]
}

/// Keeps the status of a `ManagedCluster` at what the nodes of the cluster have, as its agent would.
async fn register(name: String, member: kube::Client, writer: Writer, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(REGISTER_EVERY);
    let mut told = Value::Null;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let Ok(list) = Request::new(NODES.collection("")).list(&ListParams::default()) else { continue };
        let Ok(nodes) = member.request::<Value>(list).await else { continue };
        let status = status(nodes["items"].as_array().map_or(&[], Vec::as_slice));
        if status == told {
            continue;
        }
        let patch = json!({"status": &status});
        match writer.patch(MANAGED_CLUSTERS.status(), &Key::new("", &*name), Patch::Merge, &patch).await {
            Ok(_) => told = status,
            Err(failure) => tracing::warn!(cluster = name, %failure, "status of the cluster not written"),
        }
    }
}

fn status(nodes: &[Value]) -> Value {
    let (mut capacity, mut allocatable) = (BTreeMap::new(), BTreeMap::new());
    for node in nodes {
        add(&mut capacity, &node["status"]["capacity"]);
        add(&mut allocatable, &node["status"]["allocatable"]);
    }
    let available = json!({
        "type": "ManagedClusterConditionAvailable", "status": "True", "reason": "ManagedClusterAvailable",
        "message": "Managed cluster is available", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    json!({"capacity": sums(capacity), "allocatable": sums(allocatable), "conditions": [available], "version": {}})
}

pub(super) fn sums(sums: BTreeMap<String, Quantity>) -> BTreeMap<String, String> {
    sums.into_iter().map(|(name, sum)| (name, sum.to_string())).collect()
}

/// Adds what a node has.
pub(super) fn add(sums: &mut BTreeMap<String, Quantity>, more: &Value) {
    for (name, amount) in more.as_object().into_iter().flatten() {
        let Some(amount) = amount.as_str().and_then(|text| text.parse::<Quantity>().ok()) else { continue };
        let sum = sums.entry(name.clone()).or_default();
        *sum = sum.plus(amount);
    }
}
