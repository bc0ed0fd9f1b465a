//! Other projects' programs, unmodified, at work on `loadline apiserver`: kube-scheduler, kube-controller-manager with
//! all its controllers, Karmada's scheduler and Open Cluster Management's placement controller.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_testkit::karmada::{self, Channel, Karmada, Version};
use loadline_testkit::ocm::{self, Ocm};
use loadline_testkit::{ControlPlane, Setup, parts};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(1);

const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

fn in_memory() -> Setup {
    ControlPlane::setup().in_memory(Path::new(env!("CARGO_BIN_EXE_loadline")))
}

/// Looks until there is an answer; what was seen last is told when there never is one.
fn until<T>(plane: &ControlPlane, what: &str, path: &str, found: impl Fn(&Value) -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        let seen = plane.get(path).unwrap();
        if let Some(found) = found(&seen) {
            return found;
        }
        if started.elapsed() > PATIENCE {
            let logs = ["kube-scheduler", "kube-controller-manager"].map(|name| {
                let log = plane.log(name).and_then(|log| std::fs::read_to_string(log).ok());
                let log = log.unwrap_or_default();
                let lines: Vec<&str> = log.lines().filter(|line| line.starts_with(['E', 'W'])).collect();
                format!("{name}:\n{}", lines[lines.len().saturating_sub(15)..].join("\n"))
            });
            panic!("waited in vain for {what}: {seen}\n{}", logs.join("\n"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The nodes of all pods with that label, once there are so many and each has one.
fn nodes_of(plane: &ControlPlane, app: &str, count: usize) -> Vec<String> {
    let path = format!("{PODS}?labelSelector=app%3D{app}");
    until(plane, &format!("{count} pods of {app} on nodes"), &path, |pods| {
        let pods = pods["items"].as_array()?;
        let nodes: Vec<String> =
            pods.iter().filter_map(|pod| Some(pod["spec"]["nodeName"].as_str()?.to_owned())).collect();
        (nodes.len() == count && pods.len() == count).then_some(nodes)
    })
}

fn template(app: &str, cpu: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [
        {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}]}})
}

/// Four nodes of 4 cpu, and everything Kubernetes itself would run.
fn cluster() -> Option<ControlPlane> {
    let plane = in_memory().controllers(&["*"]).scheduler(&[]).start_or_skip()?;
    for index in 0..4 {
        let room = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
        let name = format!("node-{index}");
        plane.add_node(&name, &json!({"kubernetes.io/hostname": name}), &room).unwrap();
    }
    Some(plane)
}

#[test]
fn kube_controller_manager_makes_pods_and_kube_scheduler_binds_them() {
    let Some(plane) = cluster() else { return };
    let selects = |app: &str| json!({"matchLabels": {"app": app}});
    // Three that do not fit twice on a node of 4 cpu: kube-scheduler has counted.
    let web = json!({"metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": selects("web"), "template": template("web", "2500m")}});
    plane.create("/apis/apps/v1/namespaces/default/deployments", &web).unwrap();
    let nodes = nodes_of(&plane, "web", 3);
    assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), 3, "{nodes:?}");

    // A fourth and a fifth: one node is left, and the other pod is told why it waits.
    let scale = json!({"spec": {"replicas": 5}});
    plane.patch("/apis/apps/v1/namespaces/default/deployments/web/scale", &scale).unwrap();
    let why = until(&plane, "one pod that waits", &format!("{PODS}?labelSelector=app%3Dweb"), |pods| {
        let pods = pods["items"].as_array().filter(|pods| pods.len() == 5)?;
        let placed = pods.iter().filter(|pod| pod["spec"]["nodeName"].is_string()).count();
        let mut waits = pods.iter().filter_map(|pod| pod.pointer("/status/conditions/0/message")?.as_str());
        let why = waits.next()?.to_owned();
        (placed == 4).then_some(why)
    });
    assert!(why.contains("0/4 nodes are available: 4 Insufficient cpu"), "{why}");

    // A member of every family of controllers, each through its own kind.
    let set = json!({"metadata": {"name": "db"}, "spec": {"serviceName": "db", "replicas": 1,
        "selector": selects("db"), "template": template("db", "100m")}});
    plane.create("/apis/apps/v1/namespaces/default/statefulsets", &set).unwrap();
    let every = json!({"metadata": {"name": "every"},
        "spec": {"selector": selects("every"), "template": template("every", "100m")}});
    plane.create("/apis/apps/v1/namespaces/default/daemonsets", &every).unwrap();
    let mut once = template("once", "100m");
    once["spec"]["restartPolicy"] = json!("Never");
    let job = json!({"metadata": {"name": "once"}, "spec": {"template": once}});
    plane.create("/apis/batch/v1/namespaces/default/jobs", &job).unwrap();
    // One that is late: nobody has to wait for the next minute. A second one would have to wait for the first to end.
    let mut often = template("often", "100m");
    often["spec"]["restartPolicy"] = json!("Never");
    let jobs = "/apis/batch/v1/namespaces/default/cronjobs";
    let cron = json!({"metadata": {"name": "often"}, "spec": {"schedule": "* * * * *",
        "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": {"template": often}}}});
    plane.create(jobs, &cron).unwrap();
    let before = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(2);
    let last = json!({"status": {"lastScheduleTime": before.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}});
    plane.patch(&format!("{jobs}/often/status"), &last).unwrap();
    let service =
        json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    plane.create("/api/v1/namespaces/default/services", &service).unwrap();
    assert_eq!(nodes_of(&plane, "db", 1).len(), 1);
    assert_eq!(nodes_of(&plane, "every", 4).iter().collect::<BTreeSet<_>>().len(), 4, "one on each node");
    assert_eq!(nodes_of(&plane, "once", 1).len(), 1);
    assert_eq!(nodes_of(&plane, "often", 1).len(), 1);
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    until(&plane, "a slice of the service", slices, |slices| slices["items"].get(0).map(drop));
}

#[test]
fn every_newer_kind_is_listed_watched_and_written_by_its_controller() {
    let Some(plane) = cluster() else { return };
    // The newer version of autoscalers: the controller tells that it cannot measure.
    let scaler = json!({"metadata": {"name": "web"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody"}}});
    let path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    plane.create(path, &scaler).unwrap();
    let why = until(&plane, "a condition of the autoscaler", &format!("{path}/web"), |scaler| {
        Some(scaler.pointer("/status/conditions/0/reason")?.as_str()?.to_owned())
    });
    assert_eq!(why, "FailedGetScale");

    // Ranges of service addresses: found ready, and held.
    until(&plane, "a ready range", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", |range| {
        let is_ready = range.pointer("/status/conditions/0/status")? == "True";
        (is_ready && range.pointer("/metadata/finalizers/0").is_some()).then_some(())
    });

    // An admission policy: the controller has looked at its expressions, by the schema this server publishes.
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]);
    let policy = json!({"metadata": {"name": "odd"}, "spec": {"matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "object.spec.replicas > 'one'"}]}});
    plane.create(policies, &policy).unwrap();
    let warning = until(&plane, "a checked policy", &format!("{policies}/odd"), |policy| {
        Some(policy.pointer("/status/typeChecking/expressionWarnings/0/warning")?.as_str()?.to_owned())
    });
    assert!(warning.contains("found no matching overload"), "{warning}");

    // Devices: a claim is made from its template, a device is allocated from a slice, the pod goes to its node.
    let devices = "/apis/resource.k8s.io/v1";
    plane
        .create(&format!("{devices}/deviceclasses"), &json!({"metadata": {"name": "gpu"}, "spec": {}}))
        .unwrap();
    let slice = json!({"metadata": {"name": "node-2"}, "spec": {"driver": "gpu.example.com", "nodeName": "node-2",
        "pool": {"name": "node-2", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "one"}]}});
    plane.create(&format!("{devices}/resourceslices"), &slice).unwrap();
    let request = json!([{"name": "one", "exactly": {"deviceClassName": "gpu"}}]);
    let template_of =
        json!({"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": request}}}});
    plane.create(&format!("{devices}/namespaces/default/resourceclaimtemplates"), &template_of).unwrap();
    let pod = json!({"metadata": {"name": "learner", "labels": {"app": "learner"}}, "spec": {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}]}});
    plane.create(PODS, &pod).unwrap();
    assert_eq!(nodes_of(&plane, "learner", 1), ["node-2"]);
    let claims = plane.get(CLAIMS).unwrap();
    let device = claims.pointer("/items/0/status/allocation/devices/results/0").unwrap();
    assert_eq!((&device["pool"], &device["device"]), (&json!("node-2"), &json!("one")), "{claims}");
    assert_eq!(claims["items"][0]["status"]["reservedFor"][0]["name"], "learner", "{claims}");

    // Nothing either of them lists is missing.
    for name in ["kube-scheduler", "kube-controller-manager"] {
        let log = std::fs::read_to_string(plane.log(name).unwrap()).unwrap();
        let missing: Vec<&str> =
            log.lines().filter(|line| line.contains("could not find the requested resource")).collect();
        assert!(missing.is_empty(), "{name}: {missing:#?}");
    }
}

#[test]
fn karmada_scheduler_divides_bindings() {
    let rows = Version::ALL.iter().map(|version| version.scheduler());
    if let Err(missing) = parts::find_all(&rows.collect::<Vec<_>>()) {
        return parts::skip(&missing);
    }
    let plane = in_memory().start().unwrap();
    let karmada = Karmada::install(&plane).unwrap();
    let sums = |cpu: &str| json!({"allocatable": {"cpu": cpu, "memory": "640Gi", "pods": "1100"}});
    karmada.cluster("a", &sums("80"), 1).unwrap();
    karmada.cluster("b", &sums("32"), 1).unwrap();
    let weighted = json!({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"}}});
    for (version, name) in Version::ALL.iter().zip(["older", "newer"]) {
        let flags = ["--enable-scheduler-estimator=false"];
        let scheduler = karmada.scheduler(*version, &Channel::Plain, &flags).unwrap();
        // Room for ⌊80/3⌋ = 26 and ⌊32/3⌋ = 10: of twelve 8.7 and 3.3, so 8 and 3, and one more for the heavier.
        let asks = json!({"resourceRequest": {"cpu": "3"}});
        let decision = scheduler.bind(&karmada::deployment(name, 12, &asks, &weighted)).unwrap();
        assert_eq!(
            decision.clusters,
            [("a".to_owned(), 9), ("b".to_owned(), 3)],
            "{version:?}: {decision:?}"
        );
        assert_eq!(decision.reason, "Success");
    }
}

#[test]
fn ocms_placement_controller_selects_clusters() {
    if parts::find_or_skip("ocm-placement").is_none() {
        return;
    }
    let plane = in_memory().start().unwrap();
    let ocm = Ocm::install(&plane).unwrap();
    ocm.namespace("apps").unwrap();
    let object = |kind: &str, version: &str, namespace: Value, name: &str, spec: Value| {
        json!({"apiVersion": format!("{}/{version}", ocm::GROUP), "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    };
    let set = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
    ocm.create("managedclustersets", &object("ManagedClusterSet", "v1beta2", Value::Null, "all", set))
        .unwrap();
    let binding =
        object("ManagedClusterSetBinding", "v1beta2", json!("apps"), "all", json!({"clusterSet": "all"}));
    ocm.create("managedclustersetbindings", &binding).unwrap();
    for (name, cpu) in [("a", "2"), ("b", "8"), ("c", "5")] {
        let mut cluster =
            object("ManagedCluster", "v1", Value::Null, name, json!({"hubAcceptsClient": true}));
        cluster["status"] =
            json!({"capacity": {"cpu": cpu}, "allocatable": {"cpu": cpu}, "conditions": [], "version": {}});
        ocm.create("managedclusters", &cluster).unwrap();
    }
    let weighed = json!({"numberOfClusters": 2, "prioritizerPolicy": {"mode": "Exact", "configurations": [
        {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}, "weight": 1}]}});
    ocm.create("placements", &object("Placement", "v1beta1", json!("apps"), "p", weighed)).unwrap();
    ocm.controller().unwrap().settle().unwrap();
    let decisions = ocm.all("placementdecisions").unwrap();
    let decision = decisions.iter().find(|one| one["metadata"]["name"] == "p-decision-1").unwrap();
    let names: Vec<&Value> =
        decision["status"]["decisions"].as_array().unwrap().iter().map(|one| &one["clusterName"]).collect();
    assert_eq!(names, [&json!("b"), &json!("c")], "{decision}");
}
