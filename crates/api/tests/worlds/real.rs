//! What does kube-scheduler make of a world?
//!
//! Worlds come one after another: nodes belong to the whole cluster. Before the pod is made that looks for a
//! place, the scheduler must know everything else, and before the next world it must have forgotten this one; its
//! log says what it has been told. The log also says how every node was scored, which nothing else tells.

use super::queue::Queue;
use super::{NAMESPACES, Objects, Outcome, State, World, classes, unnamed};
use futures::future::try_join_all;
use http::{Method, Request};
use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::time::{Duration, Instant};

/// How long the scheduler may take for one step.
const PATIENCE: Duration = Duration::from_mins(1);

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Flags for kube-scheduler: it is to be as it is everywhere, only quick to write and to say what it does.
const FLAGS: &[&str] = &[
    "--kube-api-qps=2000",
    "--kube-api-burst=4000",
    "--vmodule=schedule_one=10,eventhandlers=4,binder=5,preemption=5,executor=5,default_preemption=5",
];

/// A control plane with a scheduler; the file is its log.
pub struct Real {
    client: kube::Client,
    log: Log,
    _plane: ControlPlane,
}

/// The scheduler's log: what it said since the last world.
struct Log {
    file: File,
    rest: Vec<u8>,
    lines: Vec<String>,
}

impl Log {
    fn read(&mut self) {
        self.file.read_to_end(&mut self.rest).expect("the log is readable");
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.lines.push(String::from_utf8_lossy(&line).into_owned());
        }
    }

    /// Waits until it said something of each object, in the words `said`, as often as the object is named.
    async fn wait(&mut self, said: &str, of: &str, names: &[String]) {
        let started = Instant::now();
        loop {
            self.read();
            let wanted = format!("\"{said}\" {of}=");
            let about = |name: &String| {
                let object = format!("{wanted}\"{name}\"");
                let often = names.iter().filter(|other| *other == name).count();
                self.lines.iter().filter(|line| line.contains(&object)).take(often).count() == often
            };
            let missing: Vec<&String> = names.iter().filter(|name| !about(name)).collect();
            if missing.is_empty() {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "no {said:?} of {missing:?} in\n{}", self.lines.concat());
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until it said one of these things of a pod.
    async fn wait_any(&mut self, said: &[&str], name: &str) {
        let started = Instant::now();
        let wanted: Vec<String> = said.iter().map(|said| format!("\"{said}\" pod=\"{name}\"")).collect();
        loop {
            self.read();
            if self.lines.iter().any(|line| wanted.iter().any(|wanted| line.contains(wanted))) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "none of {wanted:?} in\n{}", self.lines.concat());
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn request(method: Method, path: &str, body: &Value) -> Request<Vec<u8>> {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    request.body(body).expect("a valid request")
}

fn full_name(object: &Value) -> String {
    let part = |key: &str| object["metadata"][key].as_str().expect("objects have names").to_owned();
    format!("{}/{}", part("namespace"), part("name"))
}

fn path(object: &Value) -> String {
    let part = |key: &str| object["metadata"][key].as_str().expect("objects have names").to_owned();
    format!("/api/v1/namespaces/{}/pods/{}", part("namespace"), part("name"))
}

/// Where objects of a kind are, and of a namespace if they are in one.
fn collection(kind: &str, namespace: Option<&str>) -> String {
    let (root, plural) = match kind {
        "PersistentVolume" => ("/api/v1", "persistentvolumes"),
        "PersistentVolumeClaim" => ("/api/v1", "persistentvolumeclaims"),
        "StorageClass" => ("/apis/storage.k8s.io/v1", "storageclasses"),
        "CSINode" => ("/apis/storage.k8s.io/v1", "csinodes"),
        "CSIDriver" => ("/apis/storage.k8s.io/v1", "csidrivers"),
        "CSIStorageCapacity" => ("/apis/storage.k8s.io/v1", "csistoragecapacities"),
        "PodDisruptionBudget" => ("/apis/policy/v1", "poddisruptionbudgets"),
        "Service" => ("/api/v1", "services"),
        "ReplicationController" => ("/api/v1", "replicationcontrollers"),
        "ReplicaSet" => ("/apis/apps/v1", "replicasets"),
        _ => ("/apis/apps/v1", "statefulsets"),
    };
    namespace.map_or_else(|| format!("{root}/{plural}"), |name| format!("{root}/namespaces/{name}/{plural}"))
}

fn collections(objects: &[Value]) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().expect("objects say what they are").to_owned();
    objects.iter().map(|o| collection(&text(&o["kind"]), o["metadata"]["namespace"].as_str())).collect()
}

/// How things are deleted when a world is over.
fn away() -> Value {
    json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
}

impl Objects {
    fn node_names(&self) -> Vec<String> {
        let name = |node: &Value| node["metadata"]["name"].as_str().expect("nodes have names").to_owned();
        self.nodes.iter().map(name).collect()
    }

    /// Full names of the pods in a state.
    fn those(&self, keep: fn(State) -> bool) -> Vec<String> {
        self.pods.iter().filter(|(state, _)| keep(*state)).map(|(_, pod)| full_name(pod)).collect()
    }
}

impl Real {
    /// Starts everything; none means "return", and the reason has been printed.
    pub async fn start_or_skip() -> Option<Self> {
        // Nobody here would let go of volumes that are protected.
        let unprotected = "--disable-admission-plugins=StorageObjectInUseProtection";
        let plane = ControlPlane::setup().apiserver(&[unprotected]).scheduler(FLAGS).start_or_skip()?;
        let access = kube::config::Kubeconfig::read_from(plane.kubeconfig()).expect("a kubeconfig");
        let options = kube::config::KubeConfigOptions::default();
        let mut config =
            kube::Config::from_custom_kubeconfig(access, &options).await.expect("a configuration");
        config.default_retry = false;
        let client = kube::Client::try_from(config).expect("a client");
        let file = File::open(plane.log("kube-scheduler").expect("a scheduler runs")).expect("it has a log");
        let real = Self { client, log: Log { file, rest: Vec::new(), lines: Vec::new() }, _plane: plane };
        for (name, labels) in NAMESPACES {
            let labels: BTreeMap<_, _> = labels.iter().copied().collect();
            let body = json!({"metadata": {"name": name, "labels": labels}});
            real.send(Method::POST, "/api/v1/namespaces", &body).await;
        }
        for body in classes() {
            real.send(Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &body).await;
        }
        Some(real)
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let answer: Result<Value, _> = self.client.request(request(method.clone(), path, body)).await;
        answer.unwrap_or_else(|error| unreachable!("{method} {path}: {error}\n{body}"))
    }

    async fn settle(&self, state: State, pod: &Value) -> Result<(), kube::Error> {
        let namespace = pod["metadata"]["namespace"].as_str().expect("pods have one");
        self.send(Method::POST, &format!("/api/v1/namespaces/{namespace}/pods"), pod).await;
        let mut status = json!({"status": pod["status"]});
        if let Some(phase) = state.over() {
            status["status"]["phase"] = phase.into();
        }
        if !status["status"].is_null() {
            self.send(Method::PATCH, &format!("{}/status", path(pod)), &status).await;
        }
        if state == State::Leaving {
            self.send(Method::DELETE, &path(pod), &json!({"gracePeriodSeconds": 3600})).await;
        }
        Ok(())
    }

    /// What the scheduler does with the pod of that world.
    pub async fn outcome(&mut self, world: &World, number: usize) -> Outcome {
        let prefix = format!("w{number}n");
        let objects = world.objects(&prefix);
        self.make(&objects).await;
        let seeker = full_name(&objects.pod);
        self.settle(State::There, &objects.pod).await.expect("the pod is made");
        let answer = self.answer(&path(&objects.pod), &seeker).await;
        let mut outcome = self.read(&answer, &prefix, &seeker).await;
        self.log.read();
        if let Outcome::Refused(why) = &outcome
            && let Some(node) = self.log.lines.iter().find_map(|line| cleared(line, &seeker))
        {
            let (why, victims) = (why.clone(), self.victims(world, &objects.pod, &node).await);
            outcome = Outcome::Preempts { why, node: node.replacen(&prefix, "@", 1), victims };
        }
        self.clear(&objects, &[full_name(&objects.pod)]).await;
        outcome
    }

    /// What it does with pods that come one after the other. Those that get no node go before the next one comes: they
    /// would be tried again at any time. So do those that were pushed away.
    pub async fn outcomes(&mut self, queue: &Queue, number: usize) -> Vec<Outcome> {
        let prefix = format!("q{number}n");
        let objects = queue.world.objects(&prefix);
        self.make(&objects).await;
        let (mut outcomes, mut placed) = (Vec::new(), Vec::new());
        // Nobody runs them, so only who is there matters.
        let mut there = World::default();
        for (at, pod) in queue.pods.iter().enumerate() {
            self.log.lines.clear();
            let object = World { pod: pod.clone(), ..World::default() }.objects(&prefix).pod;
            let name = full_name(&object);
            self.settle(State::There, &object).await.expect("the pod is made");
            let answer = self.answer(&path(&object), &name).await;
            let mut outcome = self.read(&answer, &prefix, &name).await;
            self.log.read();
            if let Outcome::Refused(why) = &outcome
                && let Some(node) = self.log.lines.iter().find_map(|line| cleared(line, &name))
            {
                let (why, victims) = (why.clone(), self.victims(&there, &object, &node).await);
                outcome = Outcome::Preempts { why, node: node.replacen(&prefix, "@", 1), victims };
            }
            if matches!(outcome, Outcome::Bound { .. }) {
                let started = World { pod: queue.started(at), ..World::default() }.objects(&prefix).pod;
                let status = json!({"status": started["status"]});
                self.send(Method::PATCH, &format!("{}/status", path(&object)), &status).await;
                for said in ["Add event for scheduled pod", "Update event for scheduled pod"] {
                    self.log.wait(said, "pod", std::slice::from_ref(&name)).await;
                }
                placed.push(name);
                there.pods.push(pod.clone());
            } else {
                self.send(Method::DELETE, &path(&object), &away()).await;
                self.log.wait("Delete event for unscheduled pod", "pod", &[name]).await;
            }
            if let Outcome::Preempts { victims, .. } = &outcome {
                for victim in victims {
                    let (space, name) = victim.split_once('/').expect("a full name");
                    let path = format!("/api/v1/namespaces/{space}/pods/{name}");
                    self.send(Method::DELETE, &path, &away()).await;
                }
                let gone: Vec<String> = victims.iter().cloned().collect();
                self.log.wait("Delete event for scheduled pod", "pod", &gone).await;
                placed.retain(|name| !victims.contains(name));
                there.pods.retain(|pod| !victims.contains(&format!("{}/{}", pod.namespace, pod.name)));
            }
            outcomes.push(outcome);
        }
        self.clear(&objects, &placed).await;
        outcomes
    }

    /// Makes everything but the pod, and waits until the scheduler knows of it.
    async fn make(&mut self, objects: &Objects) {
        self.log.lines.clear();
        // The log does not say when the scheduler hears of these. They come first, and it hears of everything else in
        // the meantime; who compares asks again where that was not enough.
        for object in objects.selecting.iter().chain(&objects.storage) {
            let path =
                collections(std::slice::from_ref(object)).pop_first().expect("one object is in one place");
            self.send(Method::POST, &path, object).await;
            if let Some(status) = object.get("status") {
                let name = object["metadata"]["name"].as_str().expect("objects have names");
                let status = json!({"status": status});
                self.send(Method::PATCH, &format!("{path}/{name}/status"), &status).await;
            }
        }
        let nodes = objects.nodes.iter().map(|n| async {
            self.send(Method::POST, "/api/v1/nodes", n).await;
            Ok::<_, kube::Error>(())
        });
        let pods = objects.pods.iter().map(|(state, pod)| self.settle(*state, pod));
        let (one, two) = futures::join!(try_join_all(nodes), try_join_all(pods));
        one.and(two).expect("the world is made");

        self.log.wait("Add event for node", "node", &objects.node_names()).await;
        self.log.wait("Add event for scheduled pod", "pod", &objects.those(|_| true)).await;
        let started = objects.pods.iter().filter(|(s, pod)| s.over().is_none() && !pod["status"].is_null());
        let mut updated = objects.those(|s| s == State::Leaving);
        updated.extend(started.map(|(_, pod)| full_name(pod)));
        self.log.wait("Update event for scheduled pod", "pod", &updated).await;
        let over = objects.those(|s| s.over().is_some());
        self.log.wait("Delete event for scheduled pod", "pod", &over).await;
    }

    /// Takes everything away, these pods too, and waits until the scheduler has forgotten it.
    async fn clear(&mut self, objects: &Objects, pods: &[String]) {
        let mut all = BTreeSet::from(["/api/v1/nodes".to_owned()]);
        let settled = objects.those(|_| true);
        let spaces = settled.iter().chain(pods).filter_map(|name| Some(name.split_once('/')?.0));
        all.extend(spaces.map(|name| format!("/api/v1/namespaces/{name}/pods")));
        all.extend(collections(&objects.selecting));
        all.extend(collections(&objects.storage));
        let gone = all.iter().map(|path| async {
            self.send(Method::DELETE, path, &away()).await;
            Ok::<_, kube::Error>(())
        });
        try_join_all(gone).await.expect("the world goes away");
        self.log.wait("Delete event for node", "node", &objects.node_names()).await;
        self.log.wait("Delete event for scheduled pod", "pod", &settled).await;
        // One that waits for volumes is assumed to be somewhere, and was never seen there.
        for name in pods {
            let said = ["Delete event for scheduled pod", "Delete event for unscheduled pod"];
            self.log.wait_any(&said, name).await;
        }
    }

    /// The pod once the scheduler has made up its mind. One whose volumes nobody binds has only its node assumed.
    async fn answer(&mut self, path: &str, name: &str) -> Value {
        let started = Instant::now();
        loop {
            let mut pod = self.send(Method::GET, path, &Value::Null).await;
            if pod["spec"]["nodeName"].is_string() || refusal(&pod).is_some() {
                return pod;
            }
            self.log.read();
            if let Some(node) = self.log.lines.iter().find_map(|line| assumed(line, name)) {
                pod["spec"]["nodeName"] = node.into();
                pod["assumed"] = true.into();
                return pod;
            }
            assert!(started.elapsed() < PATIENCE, "no answer for\n{pod}\n{}", self.log.lines.concat());
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn read(&mut self, pod: &Value, prefix: &str, name: &str) -> Outcome {
        if let Some(message) = refusal(pod) {
            return Outcome::Refused(unnamed(&without_devices(message), prefix));
        }
        if pod["assumed"].is_null() {
            self.log.wait("Successfully bound pod to node", "pod", &[name.to_owned()]).await;
        }
        let node = pod["spec"]["nodeName"].as_str().expect("it has a node").replacen(prefix, "@", 1);
        let totals: BTreeMap<String, i64> = self.log.lines.iter().filter_map(|l| total(l, prefix)).collect();
        let best = totals.values().max().copied().unwrap_or_default();
        assert!(
            totals.is_empty() || totals.get(&node) == Some(&best),
            "{node} is not the best of {totals:?}"
        );
        let volumes = self.log.lines.iter().filter_map(|line| given(line, prefix)).collect();
        let behind = totals.into_iter().map(|(n, total)| (n, best - total)).collect();
        Outcome::Bound { node, behind, volumes }
    }

    /// Who went, or is going already, from the node that is cleared for a pod. Those that are there are deleted in the
    /// background: waits for the end of that, and for the pod to be promised the node.
    async fn victims(&mut self, world: &World, pod: &Value, node: &str) -> BTreeSet<String> {
        let named = |line: &String| victim(line, node);
        let chosen: BTreeSet<String> = self.log.lines.iter().filter_map(named).collect();
        let name = |p: &super::Pod| format!("{}/{}", p.namespace, p.name);
        let leaving: BTreeSet<String> =
            world.pods.iter().filter(|p| p.state == State::Leaving).map(name).collect();
        if !chosen.is_subset(&leaving) {
            self.log.wait("Async Preemption finished completely", "preemptor", &[full_name(pod)]).await;
        }
        let started = Instant::now();
        loop {
            let now = self.send(Method::GET, &path(pod), &Value::Null).await;
            if now["status"]["nominatedNodeName"] == node {
                break;
            }
            assert!(started.elapsed() < PATIENCE, "{node} is not promised to\n{now}");
            tokio::time::sleep(PAUSE).await;
        }
        let mut gone: BTreeSet<String> = chosen.intersection(&leaving).cloned().collect();
        let spaces: BTreeSet<&str> = world.pods.iter().map(|p| &*p.namespace).collect();
        for space in spaces {
            let all = self.send(Method::GET, &format!("/api/v1/namespaces/{space}/pods"), &Value::Null).await;
            let all = all["items"].as_array().expect("a list");
            let going = all.iter().filter(|p| p["metadata"]["deletionTimestamp"].is_string());
            gone.extend(going.map(full_name).filter(|name| !leaving.contains(name)));
        }
        assert_eq!(gone, chosen, "who went, and who was to go");
        gone
    }

    /// What the plugins said of every node in the last world.
    pub fn scores(&self) -> String {
        self.log.lines.iter().filter(|line| line.contains("Plugin scored")).cloned().collect()
    }
}

/// The node a pod is assumed to be on, from a line that has it.
fn assumed(line: &str, pod: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("\"AssumePodVolumes\" pod=\"{pod}\" node=\""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// A claim and the volume it gets, from a line that has them.
fn given(line: &str, prefix: &str) -> Option<(String, String)> {
    let (_, rest) = line.split_once("\"AssumePodVolumes: GetBindVolumeToClaim\"")?;
    let (_, rest) = rest.split_once(" PV=\"")?;
    let (volume, rest) = rest.split_once('"')?;
    let (_, rest) = rest.split_once(" PVC=\"")?;
    let (claim, _) = rest.split_once('"')?;
    let (_, claim) = claim.split_once('/')?;
    Some((claim.replacen(prefix, "@", 1), volume.replacen(prefix, "@", 1)))
}

/// What a line says under that key, in quotes.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {key}=\""))?;
    Some(rest.split_once('"')?.0)
}

/// The node that is cleared for a pod, from a line that has it.
fn cleared(line: &str, pod: &str) -> Option<String> {
    let said = line.contains("\"the target node for the preemption is determined\"");
    let node = field(line, "node").filter(|_| said && field(line, "pod") == Some(pod));
    node.map(str::to_owned)
}

/// Who would have to go from that node, from a line that has it.
fn victim(line: &str, node: &str) -> Option<String> {
    let said = line.contains("\"Pod is a potential preemption victim on node\"");
    let pod = field(line, "pod").filter(|_| said && field(line, "node") == Some(node));
    pod.map(str::to_owned)
}

/// Why the pod got no node.
fn refusal(pod: &Value) -> Option<&str> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let scheduled = conditions.iter().find(|c| c["type"] == "PodScheduled" && c["status"] == "False")?;
    scheduled["message"].as_str()
}

/// What a message says but for claims of devices: no world has any, and the plugin that could let go of some says so. Where a
/// pod is held back before any node is looked at, that plugin has not prepared anything, and says that that was not found.
fn without_devices(message: &str) -> String {
    let message = message.strip_suffix(" not found").unwrap_or(message);
    message.replace(" no new claims to deallocate,", "").replace(" no new claims to deallocate", "")
}

/// A node and its total, from a line that has it.
fn total(line: &str, prefix: &str) -> Option<(String, i64)> {
    let (_, rest) = line.split_once("\"Calculated node's final score for pod\"")?;
    let (_, rest) = rest.split_once(" node=\"")?;
    let (node, rest) = rest.split_once('"')?;
    let (_, score) = rest.split_once("score=")?;
    Some((node.replacen(prefix, "@", 1), score.trim().parse().ok()?))
}
