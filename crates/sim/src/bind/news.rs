//! What is new? Watches and measurements become messages to the one who decides.
//!
//! Measurements come from the metrics API and nowhere else, as in a real cluster: late, and sometimes not at all.

use crate::cluster::Meta;
use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A kind of object decisions depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Node,
    Pod,
    Namespace,
    PriorityClass,
    Claim,
    Volume,
    StorageClass,
    CsiNode,
    Budget,
}

impl Kind {
    pub const ALL: [Self; 9] = [
        Self::Node,
        Self::Pod,
        Self::Namespace,
        Self::PriorityClass,
        Self::Claim,
        Self::Volume,
        Self::StorageClass,
        Self::CsiNode,
        Self::Budget,
    ];

    fn resource(self) -> ApiResource {
        let (group, kind, plural) = match self {
            Self::Node => ("", "Node", "nodes"),
            Self::Pod => ("", "Pod", "pods"),
            Self::Namespace => ("", "Namespace", "namespaces"),
            Self::PriorityClass => ("scheduling.k8s.io", "PriorityClass", "priorityclasses"),
            Self::Claim => ("", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Volume => ("", "PersistentVolume", "persistentvolumes"),
            Self::StorageClass => ("storage.k8s.io", "StorageClass", "storageclasses"),
            Self::CsiNode => ("storage.k8s.io", "CSINode", "csinodes"),
            Self::Budget => ("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
        };
        let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        ApiResource {
            group: group.into(),
            version: "v1".into(),
            api_version,
            kind: kind.into(),
            plural: plural.into(),
        }
    }
}

/// An object as it came.
#[derive(Clone, Debug)]
pub struct Object {
    pub meta: Meta,
    /// All of it, its metadata included.
    pub value: Value,
}

impl Object {
    /// None if it is no object at all.
    pub fn read(answer: Value) -> Option<Self> {
        serde_json::from_value::<DynamicObject>(answer).ok().map(Self::from)
    }
}

impl From<DynamicObject> for Object {
    fn from(object: DynamicObject) -> Self {
        let DynamicObject { mut metadata, mut data, .. } = object;
        // The longest part of most objects, and nobody here looks at it.
        metadata.managed_fields = None;
        if let (Value::Object(fields), Ok(written)) = (&mut data, serde_json::to_value(&metadata)) {
            fields.insert("metadata".to_owned(), written);
        }
        Self { meta: metadata.into(), value: data }
    }
}

/// What is new.
#[derive(Clone, Debug)]
pub enum News {
    /// An object is there, as it is now.
    Set(Kind, Object),
    /// An object is gone.
    Gone(Kind, Meta),
    /// These and no others are there.
    All(Kind, Vec<Object>),
    /// What nodes and pods used.
    Figures { nodes: Vec<Value>, pods: Vec<Value> },
}

/// Starts everything that brings news.
pub fn gather(
    client: &Client,
    every: Duration,
    news: &mpsc::Sender<News>,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) {
    for kind in Kind::ALL {
        let (client, news, stop) = (client.clone(), news.clone(), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = follow(client, kind, news) => {}
            }
        });
    }
    let (client, news, stop) = (client.clone(), news.clone(), stop.clone());
    tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = measure(client, every, news) => {}
        }
    });
}

/// Ends when nobody listens any more.
async fn follow(client: Client, kind: Kind, news: mpsc::Sender<News>) {
    let api: Api<DynamicObject> = Api::all_with(client, &kind.resource());
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        let new = match event {
            Err(error) => {
                tracing::debug!(?kind, %error, "watching again");
                continue;
            }
            Ok(watcher::Event::Init) => {
                all.clear();
                continue;
            }
            Ok(watcher::Event::InitApply(object)) => {
                all.push(object.into());
                continue;
            }
            Ok(watcher::Event::InitDone) => News::All(kind, std::mem::take(&mut all)),
            Ok(watcher::Event::Apply(object)) => News::Set(kind, object.into()),
            Ok(watcher::Event::Delete(object)) => News::Gone(kind, object.metadata.into()),
        };
        if news.send(new).await.is_err() {
            return;
        }
    }
}

/// Ends when nobody listens any more. A failed request is made up for by the next.
async fn measure(client: Client, every: Duration, news: mpsc::Sender<News>) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // One that hangs is one that failed.
        let both = async { tokio::join!(items(&client, "nodes"), items(&client, "pods")) };
        let Ok((nodes, pods)) = tokio::time::timeout(every.max(PATIENCE), both).await else {
            tracing::debug!("no measurements: no answer in time");
            continue;
        };
        for error in [&nodes, &pods].into_iter().filter_map(|answer| answer.as_ref().err()) {
            tracing::debug!(%error, "no measurements");
        }
        let figures = News::Figures { nodes: nodes.unwrap_or_default(), pods: pods.unwrap_or_default() };
        if news.send(figures).await.is_err() {
            return;
        }
    }
}

/// How long measurements may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

async fn items(client: &Client, of: &str) -> Result<Vec<Value>, kube::Error> {
    let request = http::Request::get(format!("/apis/metrics.k8s.io/v1beta1/{of}"))
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    let mut answer: Value = client.request(request).await?;
    Ok(match answer["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}
