//! What is in the cluster now? Lists read page by page; nothing is watched, nothing is changed.

use crate::args::{FromCluster, Hub};
use crate::block_on;
use anyhow::{Context as _, Result, anyhow};
use kube::api::{ListParams, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use loadline_manifests::{EstimateInput, Kind, Location, Manifests, PlaceInput, Problem, ProtectInput};
use serde_json::Value;
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, interval_at};

/// Objects per page.
const PAGE: u32 = 500;
/// After so long, and then again and again, it is told how far we are.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the API server answers when a list changed too much between two pages.
const GONE: u16 = 410;

/// Pods that are over take no room, and there may be many.
const NOT_OVER: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// A list and where it is.
struct List<'f> {
    what: &'static str,
    path: &'static str,
    /// Which of them.
    fields: Option<&'f str>,
    missing: Missing,
}

/// What if nobody serves a list? Not every cluster measures load, and few have recommendations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fails,
    IsTold,
    IsFine,
}

impl List<'_> {
    const fn of(what: &'static str, path: &'static str) -> Self {
        Self { what, path, fields: None, missing: Missing::Fails }
    }
}

const LISTS: [List<'static>; 4] = [
    List::of("nodes", "/api/v1/nodes"),
    List { fields: Some(NOT_OVER), ..List::of("pods", "/api/v1/pods") },
    List::of("quotas", "/api/v1/resourcequotas"),
    List::of("priority classes", "/apis/scheduling.k8s.io/v1/priorityclasses"),
];
const OWNERS: List<'static> = List::of("replica sets", "/apis/apps/v1/replicasets");
const LOAD: [List<'static>; 2] = [
    List { missing: Missing::IsTold, ..List::of("measurements", "/apis/metrics.k8s.io/v1beta1/nodes") },
    List {
        missing: Missing::IsFine,
        ..List::of("recommendations", "/apis/analysis.crane.io/v1alpha1/recommendations")
    },
];

const FLEET: [List<'static>; 6] = [
    List::of("placements", "/apis/cluster.open-cluster-management.io/v1beta1/placements"),
    List::of("clusters", "/apis/cluster.open-cluster-management.io/v1/managedclusters"),
    List::of("sets", "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets"),
    List::of("bindings", "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersetbindings"),
    List::of("decisions", "/apis/cluster.open-cluster-management.io/v1beta1/placementdecisions"),
    List {
        missing: Missing::IsFine,
        ..List::of("scores", "/apis/cluster.open-cluster-management.io/v1alpha1/addonplacementscores")
    },
];

/// All that placements are decided by.
///
/// # Errors
/// As [`read`].
pub async fn fleet(from: &Hub) -> Result<Manifests> {
    let client = client(from.kubeconfig.as_deref(), from.context.clone()).await?;
    let lists: Vec<&List<'_>> = FLEET.iter().collect();
    let mut live = Manifests::default();
    for (list, pages) in all(&client, &lists).await? {
        let more = Manifests::from_values(&format!("hub: {}", list.what), pages, PlaceInput::KINDS);
        more.check()?;
        live.extend(more);
    }
    Ok(live)
}

/// What is in a cluster, if that is asked for. With broken files, nobody waits for a cluster.
///
/// # Errors
/// When the cluster cannot be read, or holds what cannot be understood.
pub fn read(from: &FromCluster, load: bool, files: &Manifests) -> Result<Manifests> {
    if !from.live || files.check().is_err() {
        return Ok(Manifests::default());
    }
    let mut lists: Vec<&List<'_>> = LISTS.iter().collect();
    // Who owns a pod only matters to what is on its way or recommended.
    if load || files.objects().iter().any(|object| object.kind == Kind::ASSUMED_WORKLOAD) {
        lists.push(&OWNERS);
    }
    if load {
        lists.extend(&LOAD);
    }
    let found = block_on(async {
        let client = client(from.kubeconfig.as_deref(), from.context.clone()).await?;
        all(&client, &lists).await
    })?;
    gathered(found, EstimateInput::KINDS)
}

/// A node, its pods, what was measured of them, and what was asked for.
///
/// # Errors
/// As [`read`].
pub fn node(kubeconfig: Option<&Path>, context: Option<String>, name: &str) -> Result<Manifests> {
    let (named, on) = (format!("metadata.name={name}"), format!("spec.nodeName={name},{NOT_OVER}"));
    let asked = |what, path| List { missing: Missing::IsTold, ..List::of(what, path) };
    let lists = [
        List { fields: Some(&named), ..List::of("nodes", "/api/v1/nodes") },
        List { fields: Some(&on), ..List::of("pods", "/api/v1/pods") },
        List::of("priority classes", "/apis/scheduling.k8s.io/v1/priorityclasses"),
        List::of("disruption budgets", "/apis/policy/v1/poddisruptionbudgets"),
        List { fields: Some(&named), ..asked("measurements of nodes", "/apis/metrics.k8s.io/v1beta1/nodes") },
        asked("measurements of pods", "/apis/metrics.k8s.io/v1beta1/pods"),
        asked("NodeQOS", "/apis/ensurance.crane.io/v1alpha1/nodeqoss"),
        asked("PodQOS", "/apis/ensurance.crane.io/v1alpha1/podqoss"),
        asked("AvoidanceAction", "/apis/ensurance.crane.io/v1alpha1/avoidanceactions"),
    ];
    let lists: Vec<&List<'_>> = lists.iter().collect();
    let found = block_on(async { all(&client(kubeconfig, context).await?, &lists).await })?;
    gathered(found, ProtectInput::KINDS)
}

/// The objects of these lists. What may be missing and is, is told.
fn gathered(found: Vec<(&List<'_>, Vec<Value>)>, kinds: &[Kind]) -> Result<Manifests> {
    let mut live = Manifests::default();
    for (list, pages) in found {
        if pages.is_empty() && list.missing == Missing::IsTold {
            let message = format!("the cluster has no {} ({})", list.what, list.path);
            live.warn(Problem::at(Location::file("cluster"), message));
        }
        let more = Manifests::from_values(&format!("cluster: {}", list.what), pages, kinds);
        more.check()?;
        live.extend(more);
    }
    Ok(live)
}

async fn client(kubeconfig: Option<&Path>, context: Option<String>) -> Result<Client> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    // The client's errors tell their causes themselves.
    let config = if let Some(path) = kubeconfig {
        let shown = path.display();
        std::fs::File::open(path).with_context(|| format!("cannot read the kubeconfig {shown}"))?;
        let wrong = |error| anyhow!("cannot use the kubeconfig {shown}: {error}");
        let read = Kubeconfig::read_from(path).map_err(wrong)?;
        Config::from_custom_kubeconfig(read, &options).await.map_err(wrong)?
    } else {
        let found = Config::from_kubeconfig(&options).await;
        found.map_err(|error| anyhow!("cannot use your kubeconfig: {error}"))?
    };
    Client::try_from(config).context("cannot talk to the cluster")
}

/// Every list, page by page; one that may be missing and is has no page.
async fn all<'a>(client: &Client, lists: &[&'a List<'a>]) -> Result<Vec<(&'a List<'a>, Vec<Value>)>> {
    let so_far = Cell::new(("", 0));
    let work = async {
        let mut found = Vec::new();
        for list in lists {
            let pages = pages(client, list, &so_far).await;
            let wrong = |error| anyhow!("cannot read the {} of the cluster: {}", list.what, cause(&error));
            let pages = pages.map_err(wrong)?;
            found.push((*list, pages));
        }
        Ok(found)
    };
    let mut work = std::pin::pin!(work);
    let mut tick = interval_at(Instant::now() + PATIENCE, PATIENCE);
    loop {
        tokio::select! {
            found = &mut work => return found,
            _ = tick.tick() => {
                let (what, count) = so_far.get();
                eprintln!("reading the cluster: {count} {what} so far");
            }
        }
    }
}

async fn pages(
    client: &Client,
    list: &List<'_>,
    so_far: &Cell<(&'static str, usize)>,
) -> kube::Result<Vec<Value>> {
    let whole = ListParams { field_selector: list.fields.map(str::to_owned), ..ListParams::default() };
    let mut params = whole.clone().limit(PAGE);
    let mut pages = Vec::new();
    so_far.set((list.what, 0));
    loop {
        let request = Request::new(list.path).list(&params).map_err(kube::Error::BuildRequest)?;
        let page: Value = match client.request(request).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if list.missing != Missing::Fails && is_missing(status.code) => {
                return Ok(Vec::new());
            }
            Err(kube::Error::Api(status)) if status.code == GONE && params.continue_token.is_some() => {
                // Once more, in one piece.
                params = whole.clone();
                pages.clear();
                so_far.set((list.what, 0));
                continue;
            }
            Err(error) => return Err(error),
        };
        let (_, count) = so_far.get();
        so_far.set((list.what, count + page["items"].as_array().map_or(0, Vec::len)));
        let next = page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
        pages.push(page);
        match next {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(pages),
        }
    }
}

/// What is behind an error: layers above it only say that there is one.
fn cause(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return status.message.clone();
    }
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Nobody serves it, or nobody does at the moment.
fn is_missing(code: u16) -> bool {
    code == 404 || code == 503
}
