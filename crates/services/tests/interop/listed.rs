//! Where we differ from Karmada's estimator on purpose: every row of `docs/estimator-differences.md`, shown.
//!
//! Every difference has nodes of its own, told apart by the label `case`.

use super::ask::Asker;
use super::waiting::owner;
use loadline_api::estimator::{Replica, assumed_workload, pb, replicas_request, sets_request};
use loadline_core::resources::List;
use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tonic::{Code, Status};

/// What somebody said.
pub type Said = Result<i32, Code>;

/// An answer, without the words of a refusal.
pub fn said(answer: Result<i32, Status>) -> Said {
    answer.map_err(|status| status.code())
}

/// All three, to be asked the same. Both of theirs mind quotas, the newer also what is on its way.
pub struct Stage<'a> {
    pub ours: &'a Asker,
    /// 1.17.
    pub old: &'a Asker,
    /// 1.18.
    pub new: &'a Asker,
}

impl Stage<'_> {
    fn show(&self, asked: impl Fn(&Asker) -> Result<i32, Status>, theirs: [Said; 2], ours: Said, why: &str) {
        let found = [self.old, self.new].map(|asker| said(asked(asker)));
        assert_eq!(found, theirs, "1.17 and 1.18 are not as listed any more: {why}");
        assert_eq!(said(asked(self.ours)), ours, "ours: {why}");
    }

    fn replicas(&self, replica: &Replica, theirs: Said, ours: Said, why: &str) {
        let ask = |asker: &Asker| asker.replicas(replicas_request("member", Some(replica), &[]));
        self.show(ask, [theirs; 2], ours, why);
    }
}

/// One difference.
pub struct Difference {
    /// What the document calls it.
    pub name: &'static str,
    /// Makes what is needed to show it.
    pub prepare: fn(&ControlPlane),
    pub show: fn(&Stage<'_>),
}

/// All of them. The last keeps theirs busy for good.
pub const DIFFERENCES: [Difference; 14] = [
    Difference { name: "negative", prepare: |plane| four_cores(plane, "negative"), show: negative },
    Difference { name: "huge", prepare: |plane| four_cores(plane, "huge"), show: huge },
    Difference { name: "overflow", prepare: many_places, show: overflow },
    Difference { name: "codes", prepare: |_| {}, show: codes },
    Difference { name: "sidecars", prepare: with_a_sidecar, show: sidecars },
    Difference { name: "pod-resources", prepare: with_pod_resources, show: pod_resources },
    Difference { name: "resized", prepare: with_a_resized_pod, show: resized },
    Difference { name: "quota-overdrawn", prepare: an_overdrawn_quota, show: quota_overdrawn },
    Difference { name: "quota-scopes", prepare: a_scoped_quota, show: quota_scopes },
    Difference {
        name: "quota-namespace",
        prepare: |plane| four_cores(plane, "quota-namespace"),
        show: quota_namespace,
    },
    Difference { name: "assumed-there", prepare: with_a_pod_of_a_workload, show: assumed_there },
    Difference {
        name: "assumed-partly",
        prepare: |plane| four_cores(plane, "assumed-partly"),
        show: assumed_partly,
    },
    Difference { name: "order", prepare: two_zones, show: order },
    Difference {
        name: "zero-replicas",
        prepare: |plane| four_cores(plane, "zero-replicas"),
        show: zero_replicas,
    },
];

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A node for one difference: 4 cores, 4 GiB, 10 places.
fn four_cores(plane: &ControlPlane, case: &str) {
    node(plane, case, case, &json!({"cpu": "4", "memory": "4Gi", "pods": "10"}), "");
}

fn node(plane: &ControlPlane, name: &str, case: &str, allocatable: &Value, zone: &str) {
    let mut labels = json!({"case": case});
    if !zone.is_empty() {
        labels["topology.kubernetes.io/zone"] = zone.into();
    }
    plane.add_node(name, &labels, allocatable).expect("a node");
}

fn pod(plane: &ControlPlane, case: &str, owners: &[Value], mut spec: Value) {
    spec["nodeName"] = case.into();
    let pod = json!({"metadata": {"name": case, "ownerReferences": owners}, "spec": spec});
    plane.create(PODS, &pod).expect("a pod");
}

fn container(name: &str, cpu: &str) -> Value {
    json!({"name": name, "image": "none", "resources": {"requests": {"cpu": cpu}}})
}

/// What goes to the nodes of one difference, in a namespace without quotas.
fn asks(case: &str, requests: &[(&str, &str)]) -> Replica {
    let one = |(name, amount): &(&str, &str)| ((*name).to_owned(), amount.parse().expect("a quantity"));
    Replica {
        selector: BTreeMap::from([("case".to_owned(), case.to_owned())]),
        requests: requests.iter().map(one).collect::<List>(),
        namespace: "free".into(),
        ..Replica::default()
    }
}

/// A request below zero counts as none with them: 10 places are left.
fn negative(stage: &Stage<'_>) {
    let replica = asks("negative", &[("cpu", "-1")]);
    stage.replicas(&replica, Ok(10), Err(Code::InvalidArgument), "it cannot be what was meant");
}

/// 10^18 cores are 10^21 thousandths, which is more than 64 bits hold; what is left of it is below zero.
fn huge(stage: &Stage<'_>) {
    stage.replicas(&asks("huge", &[("cpu", "1E")]), Ok(10), Ok(0), "nobody has so much");
}

fn many_places(plane: &ControlPlane) {
    node(plane, "overflow", "overflow", &json!({"cpu": "4", "pods": "3000000000"}), "");
}

/// 3 000 000 000 − 2^32 = −1 294 967 296.
fn overflow(stage: &Stage<'_>) {
    stage.replicas(&asks("overflow", &[]), Ok(-1_294_967_296), Ok(i32::MAX), "as many as can be said");
}

fn codes(stage: &Stage<'_>) {
    let unknown = [Err(Code::Unknown); 2];
    let elsewhere = |asker: &Asker| asker.replicas(replicas_request("elsewhere", None, &[]));
    stage.show(elsewhere, unknown, Err(Code::InvalidArgument), "a cluster that is not here");
    let of = |kind: &str| pb::UnschedulableReplicasRequest {
        cluster: "member".into(),
        resource: Some(pb::ObjectReference {
            api_version: "apps/v1".into(),
            kind: kind.into(),
            namespace: "default".into(),
            name: "absent".into(),
        }),
        unschedulable_threshold: 0,
    };
    let absent = |asker: &Asker| asker.unschedulable(of("Deployment"));
    stage.show(absent, unknown, Err(Code::NotFound), "a Deployment that is not there");
    let other = |asker: &Asker| asker.unschedulable(of("StatefulSet"));
    stage.show(other, unknown, Err(Code::Unimplemented), "another kind");
    // They read the amount of the old form together with the message.
    let amounts = BTreeMap::from([("cpu".to_owned(), b"\x0a\x02no".to_vec())]);
    let required = pb::ReplicaRequirements {
        resource_request: amounts.clone(),
        resource_request_bytes: amounts,
        ..pb::ReplicaRequirements::default()
    };
    let malformed = |asker: &Asker| {
        let request = pb::MaxAvailableReplicasRequest {
            cluster: "member".into(),
            replica_requirements: Some(required.clone()),
            ..pb::MaxAvailableReplicasRequest::default()
        };
        asker.replicas(request)
    };
    let theirs = [Err(Code::Internal), Err(Code::Internal)];
    stage.show(malformed, theirs, Err(Code::InvalidArgument), "an amount that is none");
}

fn with_a_sidecar(plane: &ControlPlane) {
    four_cores(plane, "sidecars");
    let mut sidecar = container("s", "1");
    sidecar["restartPolicy"] = "Always".into();
    pod(plane, "sidecars", &[], json!({"containers": [container("c", "1")], "initContainers": [sidecar]}));
}

// Row 20: what pods really take.
fn sidecars(stage: &Stage<'_>) {
    stage.replicas(
        &asks("sidecars", &[("cpu", "1")]),
        Ok(3),
        Ok(2),
        "theirs 4 − max(1, 1), ours 4 − (1 + 1): it runs as long as the pod",
    );
}

fn with_pod_resources(plane: &ControlPlane) {
    four_cores(plane, "pod-resources");
    let spec = json!({"containers": [container("c", "1")], "resources": {"requests": {"cpu": "3"}}});
    pod(plane, "pod-resources", &[], spec);
}

// Row 20: what pods really take.
fn pod_resources(stage: &Stage<'_>) {
    let why = "theirs 4 − 1, ours 4 − 3: the pod as a whole asks for 3";
    stage.replicas(&asks("pod-resources", &[("cpu", "1")]), Ok(3), Ok(1), why);
}

fn with_a_resized_pod(plane: &ControlPlane) {
    four_cores(plane, "resized");
    pod(plane, "resized", &[], json!({"containers": [container("c", "1")]}));
    let now = json!({"name": "c", "image": "none", "imageID": "", "ready": true, "restartCount": 0,
        "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "3"}}});
    let status = json!({"status": {"phase": "Running", "containerStatuses": [now]}});
    plane.patch(&format!("{PODS}/resized/status"), &status).expect("what it has");
}

// Row 20: what pods really take.
fn resized(stage: &Stage<'_>) {
    let why = "theirs 4 − 1, ours 4 − 3: it is to shrink, and has not yet";
    stage.replicas(&asks("resized", &[("cpu", "1")]), Ok(3), Ok(1), why);
}

fn quota(plane: &ControlPlane, namespace: &str, spec: &Value, used: &str) {
    plane.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).expect("a namespace");
    let list = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    plane.create(&list, &json!({"metadata": {"name": "q"}, "spec": spec})).expect("a quota");
    let status = json!({"status": {"hard": spec["hard"], "used": {"cpu": used}}});
    plane.patch(&format!("{list}/q/status"), &status).expect("what is used of it");
}

fn an_overdrawn_quota(plane: &ControlPlane) {
    four_cores(plane, "quota-overdrawn");
    quota(plane, "overdrawn", &json!({"hard": {"cpu": "4"}}), "5");
}

// Row 3: used > hard.
fn quota_overdrawn(stage: &Stage<'_>) {
    let replica = Replica { namespace: "overdrawn".into(), ..asks("quota-overdrawn", &[("cpu", "1")]) };
    stage.replicas(&replica, Ok(-1), Ok(0), "(4 − 5) / 1, which to a scheduler is no opinion");
}

fn a_scoped_quota(plane: &ControlPlane) {
    four_cores(plane, "quota-scopes");
    quota(plane, "scoped", &json!({"hard": {"cpu": "2"}, "scopes": ["NotBestEffort"]}), "0");
}

// Row 26: scopes other than the priority class.
fn quota_scopes(stage: &Stage<'_>) {
    let replica = Replica { namespace: "scoped".into(), ..asks("quota-scopes", &[("cpu", "1")]) };
    stage.replicas(&replica, Ok(4), Ok(2), "whoever requests something is not best effort, and 2 are left");
}

// Row 27: an empty namespace.
fn quota_namespace(stage: &Stage<'_>) {
    let replica = Replica { namespace: String::new(), ..asks("quota-namespace", &[("cpu", "1")]) };
    stage.replicas(&replica, Ok(-1), Ok(4), "theirs finds the overdrawn quota, whose namespace nobody named");
}

fn with_a_pod_of_a_workload(plane: &ControlPlane) {
    four_cores(plane, "assumed-there");
    let labels = json!({"app": "there"});
    let spec = json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"containers": [container("c", "1")]}}});
    let deployment = json!({"metadata": {"name": "there"}, "spec": spec});
    let apps = "/apis/apps/v1/namespaces/default";
    let made = plane.create(&format!("{apps}/deployments"), &deployment).expect("a Deployment");
    let set = json!({"metadata": {"name": "there-1", "ownerReferences": [owner("Deployment", &made)]}, "spec": spec});
    let made = plane.create(&format!("{apps}/replicasets"), &set).expect("a replica set");
    pod(plane, "assumed-there", &[owner("ReplicaSet", &made)], json!({"containers": [container("c", "1")]}));
}

// Row 22: what is on its way and has come is counted twice.
fn assumed_there(stage: &Stage<'_>) {
    let replica = asks("assumed-there", &[("cpu", "1")]);
    let components = vec![replica.component("there", 1)];
    let assumed = [assumed_workload("default", None, components)];
    let ask = |asker: &Asker| asker.replicas(replicas_request("member", Some(&replica), &assumed));
    let why = "4 − 1 that is there; 1.18 takes 1 more off for the same pod, 1.17 does not know of it";
    stage.show(ask, [Ok(3), Ok(2)], Ok(3), why);
}

// Row 23: what does not fit completely.
fn assumed_partly(stage: &Stage<'_>) {
    let cpu = asks("assumed-partly", &[("cpu", "2")]).component("large", 3);
    let memory = asks("assumed-partly", &[("memory", "1Gi")]).component("small", 1);
    let assumed = [assumed_workload("default", None, vec![cpu, memory])];
    let replica = asks("assumed-partly", &[("memory", "1Gi")]);
    let ask = |asker: &Asker| asker.replicas(replicas_request("member", Some(&replica), &assumed));
    let why = "2 of 3 large fit; 1.18 then forgets the small one, ours takes off what fits: 4 GiB − 1";
    stage.show(ask, [Ok(4), Ok(4)], Ok(3), why);
}

fn two_zones(plane: &ControlPlane) {
    node(plane, "order-1", "order", &json!({"cpu": "3", "pods": "10"}), "z");
    node(plane, "order-2", "order", &json!({"cpu": "2", "pods": "10"}), "a");
}

fn order(stage: &Stage<'_>) {
    let set = [
        asks("order", &[("cpu", "2")]).component("first", 1),
        asks("order", &[("cpu", "3")]).component("second", 1),
    ];
    let ask = |asker: &Asker| asker.sets(sets_request("member", "free", &set, &[]));
    let why = "theirs fills the zone that came first (3 − 2 leaves no 3), ours the one with the first name";
    stage.show(ask, [Ok(0), Ok(0)], Ok(1), why);
}

// Row 4: sets without pods.
fn zero_replicas(stage: &Stage<'_>) {
    let set = [asks("zero-replicas", &[("cpu", "1")]).component("none", 0)];
    let request = || sets_request("member", "free", &set, &[]);
    assert_eq!(said(stage.ours.sets(request())), Ok(i32::MAX), "nothing limits how often nothing fits");
    for theirs in [stage.old, stage.new] {
        // It counts to 2^31, and would go on when nobody waits any more.
        let late = said(theirs.sets_within(request(), Duration::from_secs(1)));
        assert!(matches!(late, Err(Code::DeadlineExceeded | Code::Cancelled)), "{late:?}");
    }
}
