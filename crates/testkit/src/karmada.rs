//! How does a test get Karmada's scheduler and estimator, to stand ours beside them?
//!
//! A real kube-apiserver takes the place of Karmada's own: it gets the custom resources the scheduler reads, as they
//! are in the pinned module, and for member clusters, which Karmada serves from a program of its own, a resource
//! that keeps whatever is put in. The order matters: [`Karmada::cluster`] for every member and then
//! [`Karmada::scheduler`], which connects to all estimators before it decides anything. A cluster it hears of later
//! is connected to at some time, and until then no estimator's answer counts.

mod batch;

pub use batch::{Batch, Decided};

use crate::ControlPlane;
use crate::control_plane::Error;
use crate::parts::{self, KARMADA_1_17, KARMADA_1_18, Module};
use crate::running::{PATIENCE, Running};
use crate::sources;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the scheduler looks for the Services of estimators.
const NAMESPACE: &str = "karmada-system";

/// The port by which the scheduler finds the entry of such a Service.
const ESTIMATOR_PORT: u16 = 10352;

/// What the scheduler lists and watches: it does not start before all of them are served.
const SERVED: &[&str] = &[
    "/apis/cluster.karmada.io/v1alpha1/clusters",
    "/apis/work.karmada.io/v1alpha2/resourcebindings",
    "/apis/work.karmada.io/v1alpha2/clusterresourcebindings",
];

/// A minor version of Karmada.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Speaks the older wire form only.
    V1_17,
    /// Speaks both.
    V1_18,
}

impl Version {
    /// All of them.
    pub const ALL: &[Self] = &[Self::V1_17, Self::V1_18];

    /// The module that pins it.
    #[must_use]
    pub fn module(self) -> &'static Module {
        match self {
            Self::V1_17 => &KARMADA_1_17,
            Self::V1_18 => &KARMADA_1_18,
        }
    }

    /// Its scheduler's row in the table of parts.
    #[must_use]
    pub fn scheduler(self) -> &'static str {
        match self {
            Self::V1_17 => "karmada-scheduler-1.17",
            Self::V1_18 => "karmada-scheduler-1.18",
        }
    }

    /// Its estimator's row.
    #[must_use]
    pub fn estimator(self) -> &'static str {
        match self {
            Self::V1_17 => "karmada-scheduler-estimator-1.17",
            Self::V1_18 => "karmada-scheduler-estimator-1.18",
        }
    }
}

/// How the scheduler and the estimators talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Without TLS.
    Plain,
    /// With TLS, both sides showing a certificate.
    Mutual(Pair),
}

/// Files for one side of a mutual TLS connection, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Who must have signed the other side's certificate.
    pub authority: PathBuf,
    /// This side's certificate.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Pair {
    /// The serving certificate of a control plane. It is made out for `localhost` and limits no usage, so it serves
    /// for either side.
    #[must_use]
    pub fn of(plane: &ControlPlane) -> Self {
        let file = |name: &str| plane.folder().join(name);
        Self { authority: plane.ca_file(), certificate: file("serving.crt"), key: file("serving.key") }
    }

    fn flags(&self, names: [&str; 3]) -> Vec<String> {
        let files = [&self.authority, &self.certificate, &self.key];
        names.iter().zip(files).map(|(name, file)| format!("--{name}={}", file.display())).collect()
    }
}

/// A control plane for a test with peers: none means "return", and the reason has been printed.
///
/// # Panics
/// As [`crate::Setup::start_or_skip`].
#[must_use]
pub fn plane_or_skip() -> Option<ControlPlane> {
    let rows = Version::ALL.iter().flat_map(|version| [version.scheduler(), version.estimator()]);
    parts::find_all(&rows.collect::<Vec<_>>()).map_err(|missing| parts::skip(&missing)).ok()?;
    ControlPlane::start_or_skip()
}

/// Starts Karmada's estimator for the cluster `name` behind `kubeconfig`, and waits until it listens.
///
/// It takes nodes in the order of their names; those that come later, in the order in which they come. It listens
/// once its lists have come, but counts their items a moment later: [`settle`] waits for that.
///
/// # Errors
/// When the program is missing or does not listen.
pub fn estimator(
    version: Version,
    kubeconfig: &Path,
    name: &str,
    channel: &Channel,
    flags: &[&str],
) -> Result<Running, Error> {
    let row = version.estimator();
    let program = parts::find(row)?;
    // By default its client streams the first list into a hash map, and nodes are first counted in another order with
    // every start. A plain list comes by name.
    Running::start(row, Path::new("env"), |port| {
        let mut all = vec![
            "KUBE_FEATURE_WatchListClient=false".into(),
            program.display().to_string(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--cluster-name={name}"),
            format!("--server-port={port}"),
            "--metrics-bind-address=0".into(),
            "--health-probe-bind-address=0".into(),
            // Says which nodes and pods it has heard of.
            "--v=3".into(),
        ];
        if let Channel::Mutual(pair) = channel {
            let names = ["grpc-client-ca-file", "grpc-auth-cert-file", "grpc-auth-key-file"];
            all.extend(pair.flags(names));
        }
        all.extend(flags.iter().map(|&flag| flag.to_owned()));
        all
    })
}

/// Waits until an [`estimator`] has counted everything that happened to nodes and pods up to now.
///
/// Every kind's events reach it in order, so it is enough to wait for one more of each: a node with nothing to give
/// and a pod on no node, which change no estimate and are gone afterwards.
///
/// # Errors
/// When the API server refuses them, or the estimator ends first or takes too long.
pub fn settle(estimator: &Running, plane: &ControlPlane) -> Result<(), Error> {
    static MARKS: AtomicU64 = AtomicU64::new(0);
    let name = format!("mark-{}", MARKS.fetch_add(1, Ordering::Relaxed));
    let (nodes, pods) = ("/api/v1/nodes", "/api/v1/namespaces/default/pods");
    plane.create(nodes, &json!({"metadata": {"name": name}}))?;
    let pod = json!({"metadata": {"name": name},
        "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "none"}]}});
    plane.create(pods, &pod)?;
    let wait = |node: &str, pod: &str| {
        let lines = [format!("\"{node}\" node=\"{name}\""), format!("\"{pod}\" pod=\"default/{name}\"")];
        estimator.wait_until(|said| lines.iter().all(|line| said.contains(line)))
    };
    wait("Add event for node", "Add event for scheduled pod")?;
    plane.delete(&format!("{nodes}/{name}"))?;
    plane.delete(&format!("{pods}/{name}?gracePeriodSeconds=0"))?;
    wait("Removed node in listed group from NodeTree", "Delete event for scheduled pod")
}

/// The bindings of the namespace `default`, as Karmada's own client library reads them: `bindings`, and `problems` that a
/// strict reader has with them. None means that the program is missing, and that has been printed.
///
/// # Errors
/// When the library cannot read them at all.
///
/// # Panics
/// As [`parts::find_or_skip`].
#[must_use]
pub fn read(plane: &ControlPlane) -> Option<Result<Value, Error>> {
    let program = parts::find_or_skip("karmada-reader")?;
    let mut reader = Command::new(program);
    reader.arg("--kubeconfig").arg(plane.kubeconfig());
    let step = "read bindings with Karmada's client library";
    let answer = reader.output().and_then(|output| {
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).map_err(io::Error::other);
        }
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    });
    Some(answer.map_err(Error::io(step)))
}

/// The folder of Karmada's own samples, in Go's module cache. None means that its programs are missing, and that has been printed.
///
/// # Errors
/// When Go cannot say where the module's files are.
///
/// # Panics
/// As [`parts::find_or_skip`].
#[must_use]
pub fn samples_or_skip() -> Option<Result<PathBuf, Error>> {
    parts::find_or_skip(Version::V1_18.scheduler())?;
    let newest = Version::V1_18.module();
    Some(sources::folder(newest, newest.upstream).map(|folder| folder.join("samples")))
}

/// A control plane that karmada-scheduler can work on.
#[derive(Clone, Copy, Debug)]
pub struct Karmada<'a> {
    plane: &'a ControlPlane,
}

impl<'a> Karmada<'a> {
    /// Adds what karmada-scheduler reads: of the newest version, whose resources suit the older one too.
    ///
    /// # Errors
    /// When Go cannot say where the module's files are, or the API server does not take them.
    pub fn install(plane: &'a ControlPlane) -> Result<Self, Error> {
        let karmada = Self { plane };
        let newest = Version::V1_18.module();
        let folder = sources::folder(newest, newest.upstream)?.join("charts/karmada/_crds/bases");
        for group in ["work", "policy"] {
            for (name, text) in
                resources(&folder.join(group)).map_err(Error::io("read Karmada's resources"))?
            {
                karmada.define(&name, &text)?;
            }
        }
        karmada.define("clusters.cluster.karmada.io", &clusters().to_string())?;
        karmada.wait_until_served()?;
        plane.create("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}))?;
        Ok(karmada)
    }

    fn define(self, name: &str, yaml: &str) -> Result<(), Error> {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        self.plane.apply(&path, yaml).map(drop)
    }

    /// A resource is served some time after it was defined, and no event tells when.
    fn wait_until_served(self) -> Result<(), Error> {
        self.plane.wait("kube-apiserver", || {
            SERVED
                .iter()
                .all(|path| self.plane.request("GET", path, None).is_ok_and(|reply| reply.status == 200))
        })
    }

    /// Registers a member cluster that is ready, runs Deployments, says of its resources what `summary` says
    /// (`allocatable`, `allocating`, `allocated`), and whose estimator listens on that port of this machine.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn cluster(&self, name: &str, summary: &Value, estimator: u16) -> Result<(), Error> {
        let service = json!({"metadata": {"name": format!("karmada-scheduler-estimator-{name}")},
            "spec": {"type": "ExternalName", "externalName": "localhost",
                "ports": [{"port": ESTIMATOR_PORT, "targetPort": estimator}]}});
        self.plane.create(&format!("/api/v1/namespaces/{NAMESPACE}/services"), &service)?;

        let list = "/apis/cluster.karmada.io/v1alpha1/clusters";
        let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {"syncMode": "Push"}});
        self.plane.create(list, &cluster)?;
        let enabled = json!([{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}]);
        let ready = json!({"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status =
            json!({"status": {"apiEnablements": enabled, "conditions": [ready], "resourceSummary": summary}});
        self.plane.patch(&format!("{list}/{name}/status"), &status)?;
        Ok(())
    }

    /// Says that the estimator of a registered cluster listens on another port now, for schedulers started later.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn move_estimator(&self, cluster: &str, estimator: u16) -> Result<(), Error> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services/karmada-scheduler-estimator-{cluster}");
        let change = json!({"spec": {"ports": [{"port": ESTIMATOR_PORT, "targetPort": estimator}]}});
        self.plane.patch(&path, &change).map(drop)
    }

    /// Starts karmada-scheduler, which asks the estimators of all registered clusters.
    ///
    /// # Errors
    /// When the program is missing or does not start.
    pub fn scheduler(
        &self,
        version: Version,
        channel: &Channel,
        flags: &[&str],
    ) -> Result<Scheduler<'a>, Error> {
        let row = version.scheduler();
        let running = Running::start(row, &parts::find(row)?, |port| {
            let mut all = vec![
                format!("--kubeconfig={}", self.plane.kubeconfig().display()),
                format!("--health-probe-bind-address=127.0.0.1:{port}"),
                "--metrics-bind-address=0".into(),
                "--leader-elect=false".into(),
                "--enable-scheduler-estimator".into(),
                // Says what each estimator answered.
                "--v=4".into(),
            ];
            // Without any of these flags it talks in plain text.
            if let Channel::Mutual(pair) = channel {
                let names = [
                    "scheduler-estimator-ca-file",
                    "scheduler-estimator-cert-file",
                    "scheduler-estimator-key-file",
                ];
                all.extend(pair.flags(names));
            }
            all.extend(flags.iter().map(|&flag| flag.to_owned()));
            all
        })?;
        Ok(Scheduler { plane: self.plane, running })
    }
}

/// A running karmada-scheduler.
#[derive(Debug)]
pub struct Scheduler<'a> {
    plane: &'a ControlPlane,
    running: Running,
}

/// What the scheduler made of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Replicas per cluster, by the clusters' names.
    pub clusters: Vec<(String, i64)>,
    /// Why it is scheduled or not: the reason of the condition `Scheduled`.
    pub reason: String,
    /// The same in words.
    pub message: String,
}

impl Scheduler<'_> {
    /// Makes a binding, such as [`deployment`] gives, and waits for the scheduler's first decision about it.
    ///
    /// # Errors
    /// When the API server refuses it, or the scheduler says nothing for minutes.
    pub fn bind(&self, binding: &Value) -> Result<Decision, Error> {
        let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = text("/metadata/name");
        let namespace =
            Some(text("/metadata/namespace")).filter(|name| !name.is_empty()).unwrap_or("default");
        let list = format!("/apis/work.karmada.io/v1alpha2/namespaces/{namespace}/resourcebindings");
        self.plane.create(&list, binding)?;
        // Without a resource version the first event is the object as it is, so nothing is missed in between.
        let path = format!("{list}?watch=1&fieldSelector=metadata.name%3D{name}");
        let events = self.plane.watch(&path, PATIENCE).map_err(Error::io("watch the binding"))?;
        for event in events {
            match event {
                Ok(event) => {
                    if let Some(decision) = decision(&event["object"]) {
                        return Ok(decision);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                Err(error) => return Err(Error::io("watch the binding")(error)),
            }
        }
        Err(self.running.failure(format!("has not decided about {namespace}/{name}")))
    }

    /// The process behind it.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Whether it has a connection to the estimator of that cluster.
    #[must_use]
    pub fn is_connected(&self, cluster: &str) -> bool {
        let made = format!("of cluster({cluster}) has been established");
        self.running.output().contains(&made)
    }
}

/// The decision in a binding's status. The clusters are written before the condition, so they are there with it.
fn decision(binding: &Value) -> Option<Decision> {
    let conditions = binding.pointer("/status/conditions")?.as_array()?;
    let scheduled = conditions.iter().find(|condition| condition["type"] == "Scheduled")?;
    let text = |field: &str| scheduled[field].as_str().unwrap_or_default().to_owned();
    let clusters = binding.pointer("/spec/clusters").and_then(Value::as_array);
    let mut clusters: Vec<(String, i64)> = clusters
        .into_iter()
        .flatten()
        .map(|target| {
            (target["name"].as_str().unwrap_or_default().to_owned(), target["replicas"].as_i64().unwrap_or(0))
        })
        .collect();
    clusters.sort();
    Some(Decision { clusters, reason: text("reason"), message: text("message") })
}

/// The binding of a Deployment in the namespace `default`: `requirements` of each replica (`resourceRequest`,
/// `nodeClaim`, …; null for none) and the `placement` of its policy.
#[must_use]
pub fn deployment(name: &str, replicas: i64, requirements: &Value, placement: &Value) -> Value {
    json!({
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        // The scheduler passes over bindings that no policy stands behind.
        "metadata": {"name": name, "namespace": "default",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "loadline"}},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name},
            "replicas": replicas,
            "replicaRequirements": requirements,
            "placement": placement,
        },
    })
}

/// The placement that divides replicas over as few clusters as possible.
#[must_use]
pub fn aggregated() -> Value {
    // No empty list in here: read back it is none, which the scheduler takes for a changed placement, and it decides
    // a second time.
    json!({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}})
}

/// The definitions in a folder, by name: the file `GROUP_PLURAL.yaml` holds the one called `PLURAL.GROUP`.
fn resources(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.split_once('_'));
        if let Some((group, plural)) = stem {
            all.push((format!("{plural}.{group}"), fs::read_to_string(&path)?));
        }
    }
    all.sort();
    Ok(all)
}

/// Member clusters, with whatever fields.
fn clusters() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusters.cluster.karmada.io"},
        "spec": {
            "group": "cluster.karmada.io",
            "scope": "Cluster",
            "names": {"plural": "clusters", "singular": "cluster", "kind": "Cluster", "listKind": "ClusterList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
                "subresources": {"status": {}}}],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_read_when_the_condition_is_there() {
        let mut binding =
            json!({"spec": {"clusters": [{"name": "b", "replicas": 2}, {"name": "a", "replicas": 1}]}});
        assert_eq!(decision(&binding), None, "clusters come first");
        binding["status"] = json!({"conditions": [{"type": "FullyApplied"}]});
        assert_eq!(decision(&binding), None, "another condition");
        binding["status"] =
            json!({"conditions": [{"type": "Scheduled", "reason": "Success", "message": "fine"}]});
        let clusters = vec![("a".to_owned(), 1), ("b".to_owned(), 2)];
        let expected = Decision { clusters, reason: "Success".into(), message: "fine".into() };
        assert_eq!(decision(&binding), Some(expected));
    }

    #[test]
    fn every_version_names_rows_of_its_module() {
        for version in Version::ALL {
            for name in [version.scheduler(), version.estimator()] {
                let row = parts::COMPONENTS.iter().find(|row| row.name == name).unwrap();
                assert_eq!(row.module.folder, version.module().folder, "{name}");
            }
        }
    }
}
