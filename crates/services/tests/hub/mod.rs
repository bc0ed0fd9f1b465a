//! A hub in memory, a controller that runs on it, and somebody who watches what it publishes.

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::Faults;
use loadline_core::object::Key;
use loadline_services::Ctx;
use loadline_services::cluster::resource::{
    MANAGED_CLUSTER_SET_BINDINGS, MANAGED_CLUSTER_SETS, MANAGED_CLUSTERS, NAMESPACES, PLACEMENT_DECISIONS,
    PLACEMENTS,
};
use loadline_services::cluster::write::Patch;
use loadline_services::cluster::{Access, Calls, Cause, Connection, Resource, Writer};
use loadline_services::fleet::placement::{self, Asker, Options};
use loadline_services::serve::probes::Status;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::{Layer as _, ServiceExt as _};

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
/// Nobody tells a client that something it reads is different now; so it looks again, as scripts do.
const LOOK: Duration = Duration::from_millis(5);
/// Objects of this namespace are not the test's.
const BARRIER: &str = "barrier";
const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// A hub with the set `main`, to which the namespace `team` is bound.
pub struct Hub {
    server: ApiServer,
    pub client: Client,
    writer: Writer,
    /// Writes what is not counted.
    aside: Writer,
    log: Arc<Mutex<Vec<String>>>,
    status: Arc<Mutex<Status>>,
    barriers: AtomicUsize,
}

/// What a client may still write, and what it does when that is over.
#[derive(Clone)]
struct Budget {
    left: Arc<AtomicI64>,
    cut: Arc<AtomicBool>,
    /// Does the write that is cut still arrive?
    arrives: bool,
}

fn client(server: &ApiServer, log: &Arc<Mutex<Vec<String>>>, budget: Option<Budget>) -> Client {
    let (server, log) = (server.clone(), log.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (server, log, budget) = (server.clone(), log.clone(), budget.clone());
        async move {
            let path = request.uri().path().to_owned();
            let counts = request.method() != Method::GET && !path.contains("/events");
            let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "cut off");
            if counts && !path.contains(BARRIER) {
                log.lock().unwrap().push(format!("{} {path}", request.method()));
            }
            let mut last = false;
            if let Some(budget) = budget.filter(|_| counts) {
                let left = budget.left.fetch_sub(1, Ordering::SeqCst);
                last = left <= 0;
                if last {
                    budget.cut.store(true, Ordering::SeqCst);
                }
                if last && (left < 0 || !budget.arrives) {
                    return Err(gone());
                }
            }
            let answer = server.oneshot(request).await.map_err(|_| gone())?;
            if last { Err(gone()) } else { Ok(answer) }
        }
    });
    Client::new(service, "default")
}

impl Hub {
    pub async fn new() -> Self {
        let (server, log) = (ApiServer::default(), Arc::default());
        let client = client(&server, &log, None);
        let writer = Writer::new(Connection::new(client.clone()), "test");
        for definition in loadline_api::ocm::DEFINITIONS {
            writer.define(&serde_saphyr::from_str(definition).unwrap()).await.unwrap();
        }
        let aside = Writer::new(Connection::new(Client::new(server.clone(), "default")), "test");
        let hub = Self {
            aside,
            server,
            client,
            writer,
            log,
            status: Arc::default(),
            barriers: AtomicUsize::new(0),
        };
        for (namespace, set) in [("team", "main"), (BARRIER, BARRIER)] {
            hub.namespace(namespace).await;
            hub.create(MANAGED_CLUSTER_SETS, "", &json!({"metadata": {"name": set}})).await;
            let binding = json!({"metadata": {"name": set}, "spec": {"clusterSet": set}});
            hub.create(MANAGED_CLUSTER_SET_BINDINGS, namespace, &binding).await;
        }
        hub.create(PLACEMENTS, BARRIER, &json!({"metadata": {"name": BARRIER}, "spec": {}})).await;
        hub
    }

    pub async fn namespace(&self, name: &str) {
        self.create(NAMESPACES, "", &json!({"metadata": {"name": name}})).await;
    }

    /// Lets the team use a set.
    pub async fn bind(&self, set: &str) {
        let binding = json!({"metadata": {"name": set}, "spec": {"clusterSet": set}});
        self.create(MANAGED_CLUSTER_SET_BINDINGS, "team", &binding).await;
    }

    /// A cluster of the set `main`: with a `group` it has that label, with `cpu` that much of it.
    pub async fn cluster(&self, number: usize, with: &Value) {
        let name = format!("c{number:03}");
        let mut labels = json!({SET: "main"});
        if !with["group"].is_null() {
            labels["group"] = json!(format!("g{}", with["group"]));
        }
        let object =
            json!({"metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": true}});
        self.create(MANAGED_CLUSTERS, "", &object).await;
        if let Some(cpu) = with["cpu"].as_str() {
            let status = json!({"status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}});
            self.patch_status(MANAGED_CLUSTERS, "", &name, &status).await;
        }
    }

    pub async fn placement(&self, name: &str, spec: &Value) {
        self.create(PLACEMENTS, "team", &json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    /// The same; what the server has against it.
    pub async fn try_placement(&self, name: &str, spec: &Value) -> Result<(), String> {
        let object = json!({"apiVersion": PLACEMENTS.api_version(), "kind": PLACEMENTS.kind,
            "metadata": {"name": name}, "spec": spec});
        let created = self.writer.create(PLACEMENTS, "team", &object).await;
        created.map(drop).map_err(|failure| failure.to_string())
    }

    pub async fn create(&self, of: Resource, namespace: &str, object: &Value) {
        let mut object = object.clone();
        object["apiVersion"] = json!(of.api_version());
        object["kind"] = json!(of.kind);
        self.writer.create(of, namespace, &object).await.unwrap();
    }

    pub async fn patch(&self, of: Resource, namespace: &str, name: &str, change: &Value) {
        let key = Key::new(namespace, name);
        self.writer.patch(of.whole(), &key, Patch::Merge, change).await.unwrap();
    }

    pub async fn patch_status(&self, of: Resource, namespace: &str, name: &str, change: &Value) {
        let key = Key::new(namespace, name);
        self.writer.patch(of.status(), &key, Patch::Merge, change).await.unwrap();
    }

    /// The same; what the server has against it.
    pub async fn try_patch_status(
        &self,
        of: Resource,
        namespace: &str,
        name: &str,
        change: &Value,
    ) -> Result<(), String> {
        let written = self.writer.patch(of.status(), &Key::new(namespace, name), Patch::Merge, change).await;
        written.map(drop).map_err(|failure| failure.to_string())
    }

    pub async fn delete(&self, of: Resource, namespace: &str, name: &str) {
        let request = Request::delete(of.object(&Key::new(namespace, name))).body(Vec::new()).unwrap();
        self.client.request::<Value>(request).await.unwrap();
    }

    pub async fn get(&self, of: Resource, namespace: &str, name: &str) -> Option<Value> {
        let request = Request::get(of.object(&Key::new(namespace, name))).body(Vec::new()).unwrap();
        self.client.request(request).await.ok()
    }

    /// All of the team's.
    pub async fn list(&self, of: Resource) -> Vec<Value> {
        let request = Request::get(of.collection("team")).body(Vec::new()).unwrap();
        let list: Value = self.client.request(request).await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let found = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        if let Ok(found) = timeout(PATIENCE, found).await {
            return found;
        }
        let decisions = self.list(PLACEMENT_DECISIONS).await;
        let status = self.status.lock().unwrap().readiness();
        panic!("no {what}; {status:#?}; decisions {decisions:#?}; log {:?}", self.log());
    }

    /// The placement, once it says it has so many clusters.
    pub async fn settled(&self, name: &str, clusters: u64) -> Value {
        self.until(&format!("{clusters} clusters of {name}"), async || {
            let placement = self.get(PLACEMENTS, "team", name).await?;
            (placement["status"]["numberOfSelectedClusters"] == clusters).then_some(placement)
        })
        .await
    }

    /// Waits until what is said of a placement is about what it asks for now.
    pub async fn settled_generation(&self, name: &str) {
        self.until("a status of the newest generation", async || {
            let placement = self.get(PLACEMENTS, "team", name).await?;
            let observed = &placement["status"]["conditions"][0]["observedGeneration"];
            (*observed == placement["metadata"]["generation"]).then_some(())
        })
        .await;
    }

    /// Waits until these are what a placement has published.
    pub async fn selected(&self, name: &str, clusters: &[&str]) {
        let decision = format!("{name}-decision-1");
        self.until(&format!("{clusters:?} in {decision}"), async || {
            let decision = self.get(PLACEMENT_DECISIONS, "team", &decision).await?;
            (clusters_of(&decision) == clusters).then_some(())
        })
        .await;
    }

    /// Everything that was written, but for Events and what makes it quiet.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    pub fn writes(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    /// Waits until the controller has taken in whatever was written, and writes nothing any more: a cluster that comes now is
    /// published by a placement of its own, and nothing else is being written then, twice.
    pub async fn quiet(&self) {
        let mut before = None;
        loop {
            let number = self.barriers.fetch_add(1, Ordering::SeqCst);
            let name = format!("{BARRIER}-{number}");
            let labels = json!({SET: BARRIER});
            let object = json!({
                "apiVersion": MANAGED_CLUSTERS.api_version(), "kind": MANAGED_CLUSTERS.kind,
                "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": true},
            });
            self.aside.create(MANAGED_CLUSTERS, "", &object).await.unwrap();
            self.until("passing the barrier", async || {
                let placement = self.get(PLACEMENTS, BARRIER, BARRIER).await?;
                let idle = self.status.lock().unwrap().readiness().progress.contains("being written: 0");
                (placement["status"]["numberOfSelectedClusters"] == number + 1 && idle).then_some(())
            })
            .await;
            let now = Some(self.writes());
            if before == now {
                return;
            }
            before = now;
        }
    }

    /// Follows all decisions of the team from now on.
    pub async fn watch_decisions(&self) -> Following {
        let list: Value = {
            let request = Request::get(PLACEMENT_DECISIONS.collection("")).body(Vec::new()).unwrap();
            self.client.request(request).await.unwrap()
        };
        let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for item in list["items"].as_array().unwrap() {
            if item["metadata"]["namespace"] == "team" {
                known.insert(name(item), clusters_of(item));
            }
        }
        let from = list["metadata"]["resourceVersion"].as_str().unwrap();
        let path = format!("{}?watch=true&resourceVersion={from}", PLACEMENT_DECISIONS.collection(""));
        let request = Request::get(path).body(Vec::new()).unwrap();
        let mut lines = Box::pin(self.client.request_stream(request).await.unwrap());
        let task = tokio::spawn(async move {
            use futures::io::AsyncBufReadExt as _;
            let mut states = vec![union(&known)];
            let mut line = String::new();
            loop {
                line.clear();
                assert!(lines.read_line(&mut line).await.unwrap() > 0, "the watch ended");
                let event: Value = serde_json::from_str(&line).unwrap();
                let object = &event["object"];
                if name(object) == "end" {
                    return states;
                }
                if object["metadata"]["namespace"] != "team" {
                    continue;
                }
                match event["type"].as_str().unwrap() {
                    "DELETED" => drop(known.remove(&name(object))),
                    _ => drop(known.insert(name(object), clusters_of(object))),
                }
                states.push(union(&known));
            }
        });
        Following { task, writer: self.writer.clone() }
    }
}

fn union(known: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
    known.values().flatten().cloned().collect()
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

/// The clusters of a decision.
pub fn clusters_of(decision: &Value) -> Vec<String> {
    let all = decision["status"]["decisions"].as_array().cloned().unwrap_or_default();
    all.iter().map(|one| one["clusterName"].as_str().unwrap().to_owned()).collect()
}

/// Somebody who notes which clusters are published after every single change.
pub struct Following {
    task: JoinHandle<Vec<BTreeSet<String>>>,
    writer: Writer,
}

impl Following {
    /// All states so far.
    pub async fn stop(self) -> Vec<BTreeSet<String>> {
        let end = json!({"apiVersion": PLACEMENT_DECISIONS.api_version(), "kind": PLACEMENT_DECISIONS.kind,
            "metadata": {"name": "end"}});
        match self.writer.create(PLACEMENT_DECISIONS, BARRIER, &end).await {
            Err(failure) if failure.cause != Cause::AlreadyExists => panic!("{failure}"),
            _ => {}
        }
        timeout(PATIENCE, self.task).await.expect("the watch brings the end").unwrap()
    }
}

/// A controller that runs.
pub struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    pub asker: Asker,
    /// What it asked of the hub.
    pub calls: Calls,
    cut: Arc<AtomicBool>,
}

impl Running {
    pub fn start(hub: &Hub) -> Self {
        Self::with(hub, hub.client.clone(), Arc::default())
    }

    /// One that meets these faults; what it writes is not in the log.
    pub fn with_faults(hub: &Hub, faults: &Faults) -> Self {
        Self::with(hub, Client::new(faults.layer(hub.server.clone()), "default"), Arc::default())
    }

    /// One that is cut off when it wants to write once more than so often; what it writes then may arrive all the same.
    pub fn cut_after(hub: &Hub, writes: i64, arrives: bool) -> Self {
        let budget = Budget { left: Arc::new(AtomicI64::new(writes)), cut: Arc::default(), arrives };
        let cut = budget.cut.clone();
        Self::with(hub, client(&hub.server, &hub.log, Some(budget)), cut)
    }

    fn with(hub: &Hub, client: Client, cut: Arc<AtomicBool>) -> Self {
        let (asker, questions) = loadline_services::ask::channel();
        let calls = Calls::default();
        let options =
            Options { asked: questions, calls: calls.clone(), ..Options::new(Access::Client(client)) };
        let stop = CancellationToken::new();
        *hub.status.lock().unwrap() = options.status.clone();
        let ctx = Ctx::new("test", stop.clone());
        let task = tokio::spawn(async move { placement::run(ctx, options).await.unwrap() });
        Self { stop, task, asker, calls, cut }
    }

    pub async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
    }

    /// Waits until it is cut off, and kills it; or until it is done. Says whether it was cut off.
    pub async fn until_cut_or_settled(self, hub: &Hub) -> bool {
        let cut = hub
            .until("being cut, or a status", async || {
                if self.cut.load(Ordering::SeqCst) {
                    return Some(true);
                }
                let placement = hub.get(PLACEMENTS, "team", "web").await?;
                let observed = &placement["status"]["conditions"][0]["observedGeneration"];
                (*observed == placement["metadata"]["generation"]).then_some(false)
            })
            .await;
        self.task.abort();
        let _ = self.task.await;
        cut
    }
}
