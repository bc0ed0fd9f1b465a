//! A hub in memory, and what happens in it.

use futures::TryStreamExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::{Action, Faults, Injected, Rule};
use loadline_services::Ctx;
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::fleet::binding::{self, Metrics, Options};
use loadline_services::serve::probes::Status;
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

/// Generous: a busy machine must not fail a test.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A hub in memory. The controller reaches it through faults, the test does not.
pub struct World {
    pub server: ApiServer,
    pub faults: Faults,
    pub client: Client,
}

/// A controller that runs.
pub struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    pub status: Status,
    pub metrics: Metrics,
}

impl Running {
    pub async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
    }
}

/// A kind with whatever fields, as Karmada's are served: their status is written apart, and conditions may say only so much.
fn definition(group: &str, version: &str, plural: &str, kind: &str, scope: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut condition = open.clone();
    condition["properties"] = json!({"message": {"type": "string", "maxLength": 32768}});
    let mut status = open.clone();
    status["properties"] = json!({"conditions": {"type": "array", "items": condition}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": status}}}}],
        },
    })
}

impl World {
    pub async fn new() -> Self {
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "default");
        let writer = Writer::new(Connection::new(client.clone()), "test");
        for definition in [
            definition("cluster.karmada.io", "v1alpha1", "clusters", "Cluster", "Cluster"),
            definition("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding", "Namespaced"),
            definition(
                "work.karmada.io",
                "v1alpha2",
                "clusterresourcebindings",
                "ClusterResourceBinding",
                "Cluster",
            ),
        ] {
            writer.define(&definition).await.unwrap();
        }
        Self { server, faults: Faults::seeded(7), client }
    }

    pub fn start(&self, change: impl FnOnce(&mut Options)) -> Running {
        let client = Client::new(self.faults.layer(self.server.clone()), "default");
        let mut options = Options { scheduler: "loadline".into(), ..Options::new(Access::Client(client)) };
        change(&mut options);
        let (status, metrics, stop) =
            (options.status.clone(), options.metrics.clone(), CancellationToken::new());
        let ctx = Ctx::new("test", stop.clone());
        let task = tokio::spawn(async move { binding::run(ctx, options).await.unwrap() });
        Running { stop, task, status, metrics }
    }

    pub fn bindings(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("work.karmada.io", "v1alpha2", "ResourceBinding");
        Api::default_namespaced_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    pub fn cluster_bindings(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("work.karmada.io", "v1alpha2", "ClusterResourceBinding");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    pub fn clusters(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("cluster.karmada.io", "v1alpha1", "Cluster");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    /// A cluster that runs Deployments and says that so much cpu is free.
    pub async fn cluster(&self, name: &str, cpu: u32) {
        self.cluster_with(name, cpu, &json!({"syncMode": "Push"})).await;
    }

    /// The same, with whatever else is said of it.
    pub async fn cluster_with(&self, name: &str, cpu: u32, spec: &Value) {
        let object = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": spec});
        self.create(&self.clusters(), &object).await;
        let apis = json!([
            {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]},
            {"groupVersion": "rbac.authorization.k8s.io/v1", "resources": [{"kind": "ClusterRole", "name": "clusterroles"}]}]);
        let ready = json!([{"type": "Ready", "status": "True"}]);
        self.status(&self.clusters(), name, &json!({"apiEnablements": apis, "conditions": ready})).await;
        self.free(name, cpu).await;
    }

    /// So much cpu is free there.
    pub async fn free(&self, cluster: &str, cpu: u32) {
        let summary = json!({"allocatable": {"cpu": cpu.to_string(), "memory": "640Gi", "pods": "1000"}});
        self.status(&self.clusters(), cluster, &json!({"resourceSummary": summary})).await;
    }

    pub async fn create(&self, api: &Api<DynamicObject>, object: &Value) -> DynamicObject {
        let object = serde_json::from_value(object.clone()).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn status(&self, api: &Api<DynamicObject>, name: &str, status: &Value) {
        let change = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &change).await.unwrap();
    }

    pub async fn change(&self, name: &str, change: &Value) {
        self.bindings().patch(name, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    }

    /// Binds that, and waits for the first decision.
    pub async fn bind(&self, binding: &Value) -> Decision {
        let name = binding["metadata"]["name"].as_str().unwrap().to_owned();
        self.create(&self.bindings(), binding).await;
        self.decided(&name, |_| true).await
    }

    /// Waits until a decision is as wanted.
    pub async fn decided(&self, name: &str, wanted: impl Fn(&Decision) -> bool) -> Decision {
        decided(&self.bindings(), name, wanted).await
    }

    pub async fn all(&self) -> Vec<Value> {
        let all = self.bindings().list(&ListParams::default()).await.unwrap();
        all.items.iter().map(|object| serde_json::to_value(object).unwrap()).collect()
    }

    /// Counts requests of that verb below a path from now on.
    pub fn count(&self, verb: &str, path: &str) {
        self.faults.add(Rule::new(Action::Delay(Duration::ZERO)).verb(verb).path(path));
    }

    /// Those that were counted, or hit by a fault, about that object.
    pub fn about(&self, name: &str) -> Vec<Injected> {
        let end = format!("/{name}");
        let about = |path: &str| path.ends_with(&end) || path.contains(&format!("{end}/"));
        self.faults.log().into_iter().filter(|injected| about(&injected.path)).collect()
    }

    /// Events about an object, as `reason: note`.
    pub async fn events(&self, kind: &str, name: &str, count: usize) -> Vec<String> {
        let gvk = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk));
        let (kind, name) = (kind.to_owned(), name.to_owned());
        let read = |all: Vec<Value>| -> Vec<String> {
            let about = all
                .into_iter()
                .filter(|e| e["regarding"]["kind"] == *kind && e["regarding"]["name"] == *name);
            about
                .map(|e| format!("{}: {}", e["reason"].as_str().unwrap(), e["note"].as_str().unwrap()))
                .collect()
        };
        let found = async {
            let mut seen = Vec::new();
            let mut stream = pin!(watcher(api, watcher::Config::default()).applied_objects());
            while let Some(event) = stream.try_next().await.unwrap() {
                seen.push(serde_json::to_value(event).unwrap());
                let told = read(seen.clone());
                if told.len() >= count {
                    return told;
                }
            }
            panic!("the watch ended")
        };
        timeout(PATIENCE, found).await.expect("it is told")
    }
}

/// What a binding was given, and what is told of it.
#[derive(Clone, Debug)]
pub struct Decision {
    pub clusters: Vec<(String, i64)>,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub object: Value,
}

impl Decision {
    /// What is in an object; `None` if nothing is told yet.
    pub fn of(object: &Value) -> Option<Self> {
        let conditions = object["status"]["conditions"].as_array()?;
        let told = conditions.iter().find(|condition| condition["type"] == "Scheduled")?;
        let clusters = object["spec"]["clusters"].as_array().cloned().unwrap_or_default();
        let text = |field: &str| told[field].as_str().unwrap_or_default().to_owned();
        let one = |c: &Value| (c["name"].as_str().unwrap().to_owned(), c["replicas"].as_i64().unwrap_or(0));
        Some(Self {
            clusters: clusters.iter().map(one).collect(),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            object: object.clone(),
        })
    }

    /// Is it about the state the object is in? Then nothing more is written about it.
    pub fn is_whole(&self) -> bool {
        self.object["status"]["schedulerObservedGeneration"] == self.object["metadata"]["generation"]
    }

    pub fn pairs(&self) -> Vec<(&str, i64)> {
        self.clusters.iter().map(|(name, count)| (name.as_str(), *count)).collect()
    }
}

pub async fn decided(api: &Api<DynamicObject>, name: &str, wanted: impl Fn(&Decision) -> bool) -> Decision {
    let mut last = None;
    let found = async {
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut stream = pin!(watcher(api.clone(), config).applied_objects());
        while let Some(object) = stream.try_next().await.unwrap() {
            let decision = Decision::of(&serde_json::to_value(object).unwrap());
            if let Some(found) = decision.as_ref().filter(|decision| wanted(decision)) {
                return found.clone();
            }
            last = decision;
        }
        panic!("the watch ended")
    };
    let found = timeout(PATIENCE, found).await.ok();
    found.unwrap_or_else(|| panic!("{name} was never decided about as wanted: {last:?}"))
}

/// The binding of a Deployment: so many replicas of so much cpu.
pub fn deployment(name: &str, replicas: i64, cpu: &str, placement: &Value) -> Value {
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": name, "namespace": "default",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "some"}},
        "spec": {
            "schedulerName": "loadline",
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name, "uid": format!("uid-{name}")},
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": cpu}},
            "placement": placement,
        },
    })
}

/// As few clusters as possible.
pub fn aggregated() -> Value {
    json!({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}})
}

/// By how many fit.
pub fn weighted() -> Value {
    json!({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"}}})
}

/// All of them to every cluster.
pub fn duplicated() -> Value {
    json!({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}})
}
