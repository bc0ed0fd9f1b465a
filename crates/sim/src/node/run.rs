//! The loops of all simulated nodes: register, send heartbeats, run pods, report figures.

use super::address::Addresses;
use super::folder::Keeper;
use super::life::{self, Site, Stage};
use super::quota::Quotas;
use super::usage::{Figures, Meter, Sink};
use super::{PodFigures, Shape, Use, next};
use crate::cluster::{Cluster, Failure, Key, Patch, Pod, resource};
use crate::observe::Observer;
use crate::tell::{About, Event, Teller};
use crate::world::{Counts, Options};
use futures::StreamExt;
use jiff::Timestamp;
use loadline_core::view::Phase;
use loadline_services::cluster::events::Severity;
use loadline_services::cluster::queue::{self as work, Queue};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Pods looked at, and requests under way, at a time.
const WORKERS: usize = 8;
/// Heartbeats between two full reports of a node's conditions, as kubelets do every five minutes.
const BEATS_PER_REPORT: u64 = 30;
/// The namespace of the leases of nodes.
const LEASES: &str = "kube-node-lease";

/// All simulated nodes.
#[derive(Debug)]
pub struct Kubelets {
    cluster: Arc<Cluster>,
    shapes: HashMap<String, Shape>,
    addresses: Addresses,
    queue: Arc<Queue>,
    tell: Teller,
    counts: Arc<Counts>,
    options: Options,
    quotas: Arc<Quotas>,
    meter: Mutex<Meter>,
    sink: Sink,
    observer: Arc<Observer>,
}

impl Kubelets {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        options: &Options,
        (sink, observer): (Sink, Arc<Observer>),
        tell: Teller,
        counts: Arc<Counts>,
    ) -> Arc<Self> {
        let shapes = options.shapes();
        let quotas = Arc::<Quotas>::default();
        let kubelets = Arc::new(Self {
            shapes: shapes.map(|shape| (shape.name.clone(), shape)).collect(),
            addresses: Addresses::default(),
            queue: Arc::default(),
            tell,
            counts,
            options: options.clone(),
            meter: Mutex::new(Meter::new(options.seed, options.pace, quotas.clone())),
            quotas,
            sink,
            observer,
            cluster,
        });
        kubelets.listen();
        kubelets
    }

    /// Registers every node, then keeps all of them going until told to stop.
    ///
    /// # Errors
    /// When a node cannot be registered.
    pub(crate) async fn start(
        self: &Arc<Self>,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let mut registered =
            futures::stream::iter(self.shapes.values()).map(|s| self.register(s)).buffer_unordered(WORKERS);
        while let Some(result) = registered.next().await {
            result?;
        }
        drop(registered);
        let kubelets = self.clone();
        work::run("node", &self.queue, WORKERS, (tasks, stop), move |key| {
            let kubelets = kubelets.clone();
            async move { kubelets.look(&key).await }
        });
        for beat in [Beat::Heartbeat, Beat::Figures] {
            let (kubelets, stop) = (self.clone(), stop.clone());
            tasks.spawn(async move { kubelets.beat(beat, &stop).await });
        }
        // Whoever looks into a node finds its folder as soon as there is the node.
        if let Some(folders) = self.options.folders()
            && let Some(keeper) = Keeper::new(self.clone(), folders.clone()).begin().await
        {
            tasks.spawn(keeper.run(stop.clone()));
        }
        Ok(())
    }

    fn listen(self: &Arc<Self>) {
        let kubelets = Arc::downgrade(self);
        self.cluster.pods.listen(move |old, new| {
            let Some(kubelets) = kubelets.upgrade() else { return };
            match (old, new) {
                (_, Some(pod)) if pod.node.as_ref().is_some_and(|n| kubelets.shapes.contains_key(n)) => {
                    kubelets.queue.add(pod.meta.id.key.clone());
                }
                (Some(pod), None) => {
                    kubelets.addresses.take_back(&pod.meta.id.uid);
                    kubelets.quotas.forget(&pod.meta.id.uid);
                }
                _ => {}
            }
        });
        let kubelets = Arc::downgrade(self);
        self.cluster.nodes.listen(move |old, new| {
            let (Some(kubelets), Some(old), None) = (kubelets.upgrade(), old, new) else { return };
            let name = &*old.meta.id.key.name;
            if kubelets.shapes.contains_key(name) {
                kubelets.tell.notice("node", name, "deleted; its pods go with it");
                let pods = kubelets.cluster.pods.all();
                for pod in pods.iter().filter(|pod| pod.node.as_deref() == Some(name)) {
                    kubelets.queue.add(pod.meta.id.key.clone());
                }
            }
        });
    }

    async fn register(&self, shape: &Shape) -> Result<(), Failure> {
        let now = Timestamp::now();
        let key = Key::new("", shape.name.as_str());
        match self.cluster.write.create(resource::NODES, "", &shape.object(now)).await {
            Ok(answer) => self.cluster.nodes.wrote(&answer),
            // From an earlier run against the same server: it gets its kubelet back.
            Err(error) if error.is_conflict() => {
                let status = json!({"status": shape.status(now)});
                let patched =
                    self.cluster.write.patch(resource::NODES.status(), &key, Patch::Strategic, &status).await;
                self.cluster.nodes.wrote(&patched?);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn look(&self, key: &Key) -> Result<Option<Duration>, Failure> {
        let Some(pod) = self.cluster.pods.get(key) else { return Ok(None) };
        let Some(shape) = pod.node.as_ref().and_then(|name| self.shapes.get(name)) else { return Ok(None) };
        if let Some(ip) = &pod.ip {
            self.addresses.keep(&pod.meta.id.uid, ip);
        }
        if self.cluster.nodes.get(&Key::new("", shape.name.as_str())).is_none() {
            return self.remove(&pod, shape).await;
        }
        match next(&pod, self.options.start_after, Timestamp::now()) {
            Stage::Start => self.run(&pod, shape).await,
            Stage::Succeed => {
                let patch = life::succeeded(&pod, Timestamp::now());
                self.say(&pod, &patch).await?;
                self.counts.succeeded.add();
                Ok(None)
            }
            Stage::Remove => self.remove(&pod, shape).await,
            Stage::Wait(time) => Ok(Some(time)),
            Stage::Rest => Ok(None),
        }
    }

    async fn run(&self, pod: &Pod, shape: &Shape) -> Result<Option<Duration>, Failure> {
        let host_ip = shape.ip();
        let pod_ip = if pod.host_network {
            Some(host_ip.clone())
        } else {
            self.addresses.give(&shape.pod_net(), &pod.meta.id.uid)
        };
        // Full: pods that end give their addresses back.
        let Some(pod_ip) = pod_ip else { return Ok(Some(Duration::from_secs(5))) };
        let site = Site { host_ip: &host_ip, pod_ip: &pod_ip, now: Timestamp::now() };
        self.say(pod, &life::running(pod, &site)).await?;
        self.counts.started.add();
        for container in &pod.containers {
            self.event(pod, shape, "Started", format!("Started container {}", container.name));
        }
        Ok(None)
    }

    /// Patches the status of a pod; one that is gone or replaced is none of our business any more.
    async fn say(&self, pod: &Pod, patch: &Value) -> Result<(), Failure> {
        let key = &pod.meta.id.key;
        match self.cluster.write.patch(resource::PODS.status(), key, Patch::Strategic, patch).await {
            Ok(answer) => self.cluster.pods.wrote(&answer),
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn remove(&self, pod: &Pod, shape: &Shape) -> Result<Option<Duration>, Failure> {
        if pod.phase == Phase::Running {
            for container in &pod.containers {
                self.event(pod, shape, "Killing", format!("Stopping container {}", container.name));
            }
        }
        match self.cluster.write.delete(resource::PODS, &pod.meta.id, Some(0)).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error),
            Ok(_) => self.counts.stopped.add(),
            Err(_) => {}
        }
        Ok(None)
    }

    fn event(&self, pod: &Pod, shape: &Shape, reason: &'static str, note: String) {
        let about = About { resource: resource::PODS, meta: &pod.meta };
        let severity = Severity::Normal;
        self.tell
            .event(&about, Event { component: "kubelet", host: Some(&shape.name), severity, reason, note });
    }

    async fn beat(&self, beat: Beat, stop: &CancellationToken) {
        let every = match beat {
            Beat::Heartbeat => self.options.heartbeat,
            Beat::Figures => self.options.figures,
        };
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for count in 0_u64.. {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            match beat {
                Beat::Heartbeat => self.heartbeat(count, stop).await,
                Beat::Figures => self.report(every),
            }
        }
    }

    async fn heartbeat(&self, count: u64, stop: &CancellationToken) {
        let shapes = futures::stream::iter(self.shapes.values());
        let all = shapes.for_each_concurrent(WORKERS, async |shape| {
            if let Err(error) = self.beat_one(shape, count).await {
                tracing::debug!(node = shape.name, %error, "heartbeat missed");
            }
        });
        tokio::select! {
            () = stop.cancelled() => {}
            () = all => {}
        }
    }

    async fn beat_one(&self, shape: &Shape, count: u64) -> Result<(), Failure> {
        let key = Key::new("", shape.name.as_str());
        let Some(node) = self.cluster.nodes.get(&key) else { return Ok(()) };
        let now = Timestamp::now();
        let spec = json!({
            "holderIdentity": shape.name, "leaseDurationSeconds": 40,
            "renewTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        });
        let lease = Key::new(LEASES, shape.name.as_str());
        let renew = json!({"spec": spec});
        match self.cluster.write.patch(resource::LEASES.whole(), &lease, Patch::Merge, &renew).await {
            Err(error) if error.is_not_found() => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": shape.name, "namespace": LEASES, "ownerReferences": [{
                        "apiVersion": "v1", "kind": "Node", "name": shape.name, "uid": &*node.meta.id.uid,
                    }]},
                    "spec": spec,
                });
                self.cluster.write.create(resource::LEASES, LEASES, &lease).await?;
            }
            other => drop(other?),
        }
        if count.is_multiple_of(BEATS_PER_REPORT) && count > 0 {
            let conditions = shape.conditions(now);
            let seen = conditions.as_array().into_iter().flatten();
            let seen: Vec<Value> = seen
                .map(|c| json!({"type": c["type"], "lastHeartbeatTime": c["lastHeartbeatTime"]}))
                .collect();
            let patch = json!({"status": {"conditions": seen}});
            self.cluster.write.patch(resource::NODES.status(), &key, Patch::Strategic, &patch).await?;
        }
        Ok(())
    }

    /// What a node has.
    pub(crate) fn capacity(&self, node: &str) -> Option<Use> {
        let shape = self.shapes.get(node)?;
        Some(Use { cpu_milli: shape.cpus * 1000, memory_bytes: shape.gibibytes << 30 })
    }

    /// What containers are held to.
    pub(crate) fn quotas(&self) -> &Arc<Quotas> {
        &self.quotas
    }

    /// What a node looks like.
    pub(crate) fn shape(&self, node: &str) -> Option<&Shape> {
        self.shapes.get(node)
    }

    /// The pod that figures are of, if it is still there.
    pub(crate) fn pod(&self, figures: &PodFigures) -> Option<Arc<Pod>> {
        self.cluster.pods.get(&figures.key).filter(|pod| pod.meta.id.uid == figures.uid)
    }

    fn report(&self, window: Duration) {
        let figures = self.measure(Timestamp::now(), window);
        self.sink.take(&figures);
        self.observer.measured(&figures);
    }

    /// What everything uses at a time.
    pub(crate) fn measure(&self, at: Timestamp, window: Duration) -> Figures {
        let mut pods = self.cluster.pods.all();
        pods.retain(|pod| pod.phase == Phase::Running);
        let nodes = self.cluster.nodes.all();
        let ours = nodes.iter().filter_map(|node| self.shapes.get(&*node.meta.id.key.name));
        let ours = ours.map(|shape| (shape.name.as_str(), shape.cpus * 1000));
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        let (figures, complaints) = meter.read(ours, &pods, (at, window));
        drop(meter);
        for complaint in complaints {
            self.tell.notice("node", complaint.pod, complaint.what);
        }
        figures
    }
}

#[derive(Clone, Copy, Debug)]
enum Beat {
    Heartbeat,
    Figures,
}
