//! Volumes that are bound once their pod has a node, with the controllers of a real control plane.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_api::scheduler::{Configuration, SchedulerProfile};
use loadline_services::Ctx;
use loadline_services::cluster::Access;
use loadline_services::reload::Source;
use loadline_services::scheduler::{self, Options};
use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(50);

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const DRIVERS: &str = "/apis/storage.k8s.io/v1/csidrivers";
const CAPACITIES: &str = "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Nobody's going makes a volume.
const VAIN: &str = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";

/// A control plane with the controller that binds volumes, and our scheduler.
struct Stage {
    plane: ControlPlane,
    stop: CancellationToken,
    _runtime: Runtime,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Stage {
    fn start_or_skip() -> Option<Self> {
        let controllers = ["persistentvolume-binder-controller", "ephemeral-volume-controller"];
        let plane = ControlPlane::setup().controllers(&controllers).start_or_skip()?;
        for name in ["n1", "n2"] {
            let has = json!({"cpu": "8", "memory": "16Gi", "pods": "110"});
            plane.add_node(name, &json!({"host": name}), &has).unwrap();
        }
        let class = |name: &str, provisioner: &str| {
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
        };
        plane.create(CLASSES, &class("local", "kubernetes.io/no-provisioner")).unwrap();
        plane.create(CLASSES, &class("made", "disk.example.com")).unwrap();
        let (runtime, stop) = (Runtime::new().unwrap(), CancellationToken::new());
        let profiles = vec![SchedulerProfile::new("loadline", None)];
        let configuration = Configuration { profiles, ..Configuration::default() };
        let options = Options {
            configuration: Source::Fixed(Box::new(configuration)),
            ..Options::new(Access::Kubeconfig(plane.kubeconfig()))
        };
        runtime.spawn(scheduler::run(Ctx::new("test", stop.clone()), options));
        Some(Self { plane, stop, _runtime: runtime })
    }

    fn pod(&self, name: &str, claims: &[&str]) {
        let volumes: Vec<Value> =
            claims.iter().map(|c| json!({"name": c, "persistentVolumeClaim": {"claimName": c}})).collect();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "schedulerName": "loadline", "volumes": volumes, "containers": [{"name": "c", "image": "none"}]}});
        self.plane.create(PODS, &pod).unwrap();
    }

    fn claim(&self, name: &str, class: &str, size: &str) {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}}}});
        self.plane.create(CLAIMS, &claim).unwrap();
    }

    fn volume(&self, name: &str, class: &str, size: &str, host: &str, claim: Option<&Value>) {
        let on = json!([{"key": "host", "operator": "In", "values": [host]}]);
        let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size},
                "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/nowhere"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": on}]}}}});
        if let Some(claim) = claim {
            volume["metadata"]["annotations"] =
                json!({"pv.kubernetes.io/provisioned-by": "disk.example.com"});
            volume["spec"]["claimRef"] = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": "default", "name": claim["metadata"]["name"], "uid": claim["metadata"]["uid"]});
        }
        self.plane.create(VOLUMES, &volume).unwrap();
    }

    /// The object once it is as wanted.
    #[track_caller]
    fn wait(&self, path: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let object = self.plane.get(path).unwrap();
            if wanted(&object) {
                return object;
            }
            assert!(start.elapsed() < PATIENCE, "waited for {what}: {object}");
            std::thread::sleep(OFTEN);
        }
    }

    #[track_caller]
    fn is_on(&self, pod: &str, node: &str) {
        let pod = self.wait(&format!("{PODS}/{pod}"), "a node", |pod| pod["spec"]["nodeName"].is_string());
        assert_eq!(pod["spec"]["nodeName"], node);
    }

    #[track_caller]
    fn is_bound(&self, claim: &str, volume: &str) {
        let claim =
            self.wait(&format!("{CLAIMS}/{claim}"), "a volume", |claim| claim["status"]["phase"] == "Bound");
        assert_eq!(claim["spec"]["volumeName"], volume);
    }
}

fn refusal(pod: &Value) -> Option<&str> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let told = conditions.iter().find(|c| c["type"] == "PodScheduled" && c["status"] == "False")?;
    told["message"].as_str()
}

#[test]
fn a_pod_goes_where_its_volume_is_and_two_never_get_one() {
    let Some(stage) = Stage::start_or_skip() else { return };
    stage.volume("big", "local", "20Gi", "n2", None);
    stage.volume("small", "local", "5Gi", "n1", None);
    stage.claim("data", "local", "10Gi");
    stage.pod("db", &["data"]);
    stage.is_on("db", "n2");
    stage.is_bound("data", "big");

    // One volume is left; two ask for it at once.
    stage.claim("one", "local", "1Gi");
    stage.claim("two", "local", "1Gi");
    stage.pod("first", &["one"]);
    stage.pod("second", &["two"]);
    stage.is_on("first", "n1");
    stage.is_bound("one", "small");
    let waits = stage.wait(&format!("{PODS}/second"), "a refusal", |pod| refusal(pod).is_some());
    assert_eq!(
        refusal(&waits),
        Some(&*format!(
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. {VAIN}"
        ))
    );
    // Another one comes, and that is noticed.
    stage.volume("late", "local", "1Gi", "n2", None);
    stage.is_on("second", "n2");
    stage.is_bound("two", "late");

    // What is not there is said in the words people know.
    stage.pod("lost", &["nothing"]);
    let waits = stage.wait(&format!("{PODS}/lost"), "a refusal", |pod| refusal(pod).is_some());
    assert_eq!(
        refusal(&waits),
        Some("0/2 nodes are available: persistentvolumeclaim \"nothing\" not found.")
    );
    stage.volume("found", "local", "3Gi", "n1", None);
    stage.claim("nothing", "local", "2Gi");
    stage.is_on("lost", "n1");
}

#[test]
fn a_volume_is_made_for_the_node_that_was_chosen_and_for_another_if_it_cannot_be() {
    let Some(stage) = Stage::start_or_skip() else { return };
    let driver = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": {"name": "disk.example.com"}, "spec": {"storageCapacity": true}});
    stage.plane.create(DRIVERS, &driver).unwrap();
    stage.claim("data", "made", "5Gi");
    stage.pod("db", &["data"]);
    let waits = stage.wait(&format!("{PODS}/db"), "a refusal", |pod| refusal(pod).is_some());
    let said = format!("0/2 nodes are available: 2 node(s) did not have enough free storage. {VAIN}");
    assert_eq!(refusal(&waits), Some(&*said));
    let room = |host: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": host},
            "storageClassName": "made", "nodeTopology": {"matchLabels": {"host": host}}, "capacity": "10Gi"})
    };
    stage.plane.create(CAPACITIES, &room("n1")).unwrap();
    let path = format!("{CLAIMS}/data");
    let selected = |claim: &Value| claim["metadata"]["annotations"][SELECTED_NODE].clone();
    stage.wait(&path, "a node", |claim| selected(claim) == "n1");

    // Nobody is held up meanwhile.
    stage.pod("other", &[]);
    stage.wait(&format!("{PODS}/other"), "a node", |pod| pod["spec"]["nodeName"].is_string());
    let db = stage.plane.get(&format!("{PODS}/db")).unwrap();
    assert!(db["spec"]["nodeName"].is_null(), "its volume is not there yet: {db}");

    // It cannot be made there: who makes volumes takes the node off the claim.
    stage.plane.delete(&format!("{CAPACITIES}/n1")).unwrap();
    stage.plane.create(CAPACITIES, &room("n2")).unwrap();
    let refuse = json!({"metadata": {"annotations": {SELECTED_NODE: null}}});
    stage.plane.patch(&path, &refuse).unwrap();
    let claim = stage.wait(&path, "another node", |claim| selected(claim) == "n2");
    stage.volume("made-1", "made", "5Gi", "n2", Some(&claim));
    stage.is_on("db", "n2");
    stage.is_bound("data", "made-1");
}
