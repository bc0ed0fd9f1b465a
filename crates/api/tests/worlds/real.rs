//! What does kube-scheduler make of a world?
//!
//! Worlds come one after another: nodes belong to the whole cluster. Before the pod is made that looks for a
//! place, the scheduler must know everything else, and before the next world it must have forgotten this one; its
//! log says what it has been told. The log also says how every node was scored, which nothing else tells.

use super::{CLASSES, NAMESPACES, Outcome, State, World};
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
const FLAGS: &[&str] =
    &["--kube-api-qps=2000", "--kube-api-burst=4000", "--vmodule=schedule_one=10,eventhandlers=4"];

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

    /// Waits until it said something of each object, in the words `said`.
    async fn wait(&mut self, said: &str, of: &str, names: &[String]) {
        let started = Instant::now();
        loop {
            self.read();
            let wanted = format!("\"{said}\" {of}=");
            let about = |name: &String| {
                let object = format!("{wanted}\"{name}\"");
                self.lines.iter().any(|line| line.contains(&object))
            };
            let missing: Vec<&String> = names.iter().filter(|name| !about(name)).collect();
            if missing.is_empty() {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "no {said:?} of {missing:?} in\n{}", self.lines.concat());
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

/// Where services and workloads of a namespace are, by kind.
fn collection(kind: &str, namespace: &str) -> String {
    let (root, plural) = match kind {
        "Service" => ("/api/v1", "services"),
        "ReplicationController" => ("/api/v1", "replicationcontrollers"),
        "ReplicaSet" => ("/apis/apps/v1", "replicasets"),
        _ => ("/apis/apps/v1", "statefulsets"),
    };
    format!("{root}/namespaces/{namespace}/{plural}")
}

fn collections(objects: &[Value]) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().expect("objects say what they are").to_owned();
    objects.iter().map(|o| collection(&text(&o["kind"]), &text(&o["metadata"]["namespace"]))).collect()
}

impl Real {
    /// Starts everything; none means "return", and the reason has been printed.
    pub async fn start_or_skip() -> Option<Self> {
        let plane = ControlPlane::setup().scheduler(FLAGS).start_or_skip()?;
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
        for (name, value) in CLASSES {
            let body = json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"});
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
        if let Some(phase) = state.over() {
            let status = json!({"status": {"phase": phase}});
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
        self.log.lines.clear();

        // The log does not say when the scheduler hears of these. They come first, and it hears of everything else in
        // the meantime; who compares asks again where that was not enough.
        for object in &objects.selecting {
            let path =
                collections(std::slice::from_ref(object)).pop_first().expect("one object is in one place");
            self.send(Method::POST, &path, object).await;
        }
        let nodes = objects.nodes.iter().map(|n| async {
            self.send(Method::POST, "/api/v1/nodes", n).await;
            Ok::<_, kube::Error>(())
        });
        let pods = objects.pods.iter().map(|(state, pod)| self.settle(*state, pod));
        let (one, two) = futures::join!(try_join_all(nodes), try_join_all(pods));
        one.and(two).expect("the world is made");

        let names: Vec<String> = world.nodes.iter().map(|n| n.name.replacen('@', &prefix, 1)).collect();
        let those = |keep: fn(State) -> bool| -> Vec<String> {
            objects.pods.iter().filter(|(state, _)| keep(*state)).map(|(_, pod)| full_name(pod)).collect()
        };
        self.log.wait("Add event for node", "node", &names).await;
        self.log.wait("Add event for scheduled pod", "pod", &those(|_| true)).await;
        self.log.wait("Update event for scheduled pod", "pod", &those(|s| s == State::Leaving)).await;
        let over = those(|s| s.over().is_some());
        self.log.wait("Delete event for scheduled pod", "pod", &over).await;

        let seeker = full_name(&objects.pod);
        self.settle(State::There, &objects.pod).await.expect("the pod is made");
        let answer = self.answer(&path(&objects.pod)).await;
        let outcome = self.read(&answer, &prefix, &seeker).await;

        let away = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let mut all = vec!["/api/v1/nodes".to_owned()];
        let mut spaces: Vec<&str> = world.pods.iter().chain([&world.pod]).map(|p| &*p.namespace).collect();
        spaces.sort_unstable();
        spaces.dedup();
        all.extend(spaces.iter().map(|name| format!("/api/v1/namespaces/{name}/pods")));
        all.extend(collections(&objects.selecting));
        let gone = all.iter().map(|path| async {
            self.send(Method::DELETE, path, &away).await;
            Ok::<_, kube::Error>(())
        });
        try_join_all(gone).await.expect("the world goes away");
        self.log.wait("Delete event for node", "node", &names).await;
        self.log.wait("Delete event for scheduled pod", "pod", &those(|_| true)).await;
        let bound = matches!(outcome, Outcome::Bound { .. });
        let last = if bound { "Delete event for scheduled pod" } else { "Delete event for unscheduled pod" };
        self.log.wait(last, "pod", &[seeker]).await;
        outcome
    }

    /// The pod once the scheduler has made up its mind.
    async fn answer(&self, path: &str) -> Value {
        let started = Instant::now();
        loop {
            let pod = self.send(Method::GET, path, &Value::Null).await;
            if pod["spec"]["nodeName"].is_string() || refusal(&pod).is_some() {
                return pod;
            }
            assert!(started.elapsed() < PATIENCE, "no answer for\n{pod}\n{}", self.log.lines.concat());
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn read(&mut self, pod: &Value, prefix: &str, name: &str) -> Outcome {
        if let Some(message) = refusal(pod) {
            return Outcome::Refused(places(message).to_owned());
        }
        self.log.wait("Successfully bound pod to node", "pod", &[name.to_owned()]).await;
        let node = pod["spec"]["nodeName"].as_str().expect("it has a node").replacen(prefix, "@", 1);
        let totals: BTreeMap<String, i64> = self.log.lines.iter().filter_map(|l| total(l, prefix)).collect();
        let best = totals.values().max().copied().unwrap_or_default();
        assert!(
            totals.is_empty() || totals.get(&node) == Some(&best),
            "{node} is not the best of {totals:?}"
        );
        Outcome::Bound { node, behind: totals.into_iter().map(|(n, total)| (n, best - total)).collect() }
    }

    /// What the plugins said of every node in the last world.
    pub fn scores(&self) -> String {
        self.log.lines.iter().filter(|line| line.contains("Plugin scored")).cloned().collect()
    }
}

/// Why the pod got no node.
fn refusal(pod: &Value) -> Option<&str> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let scheduled = conditions.iter().find(|c| c["type"] == "PodScheduled" && c["status"] == "False")?;
    scheduled["message"].as_str()
}

/// What a message says of places: its first sentence. What follows is about taking others away from there.
fn places(message: &str) -> &str {
    message.find(". ").map_or(message, |end| &message[..=end])
}

/// A node and its total, from a line that has it.
fn total(line: &str, prefix: &str) -> Option<(String, i64)> {
    let (_, rest) = line.split_once("\"Calculated node's final score for pod\"")?;
    let (_, rest) = rest.split_once(" node=\"")?;
    let (node, rest) = rest.split_once('"')?;
    let (_, score) = rest.split_once("score=")?;
    Some((node.replacen(prefix, "@", 1), score.trim().parse().ok()?))
}
