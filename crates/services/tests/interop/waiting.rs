//! Deployments with pods that wait for a node, in vain or not.

use jiff::{SignedDuration, Timestamp};
use loadline_testkit::ControlPlane;
use serde_json::{Value, json};

const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Makes the Deployments `web` and `bare`, which nobody has made pods for yet.
pub fn build(plane: &ControlPlane) {
    let web = deployment(plane, "web");
    deployment(plane, "bare");
    let new = replica_set(plane, &web, "web-new", "one");
    let old = replica_set(plane, &web, "web-old", "another");
    let minutes = |minutes: i64| Some(("Unschedulable", minutes));
    let pods = [
        ("long", &new, "web", minutes(120)),
        ("shorter", &new, "web", minutes(30)),
        ("gated", &new, "web", Some(("SchedulingGated", 120))),
        ("unseen", &new, "web", None),
        ("ending", &new, "web", minutes(120)),
        ("over", &new, "web", minutes(120)),
        ("other-labels", &new, "other", minutes(120)),
        ("other-set", &old, "web", minutes(120)),
    ];
    for (name, owner, app, waits) in pods {
        // Without a kubelet only this keeps a pod that is to go.
        let finalizers = if name == "ending" { vec!["example.com/hold"] } else { vec![] };
        let mut pod = json!({"metadata": {"name": name, "labels": {"app": app}, "finalizers": finalizers,
            "ownerReferences": [owner]}, "spec": {"containers": [{"name": "c", "image": "one"}]}});
        plane.create(PODS, &pod).expect("a pod");
        pod = json!({"status": {"phase": if name == "over" { "Failed" } else { "Pending" }}});
        if let Some((reason, minutes)) = waits {
            let since = Timestamp::now() - SignedDuration::from_mins(minutes);
            pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False", "reason": reason,
                "lastTransitionTime": since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}]);
        }
        plane.patch(&format!("{PODS}/{name}/status"), &pod).expect("what it waits for");
    }
    plane.delete(&format!("{PODS}/ending")).expect("a pod that is to go");
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

fn deployment(plane: &ControlPlane, name: &str) -> Value {
    let deployment = json!({"metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("one")}});
    plane.create("/apis/apps/v1/namespaces/default/deployments", &deployment).expect("a Deployment")
}

/// What refers to it.
fn replica_set(plane: &ControlPlane, deployment: &Value, name: &str, image: &str) -> Value {
    let mut template = template(image);
    template["metadata"]["labels"]["pod-template-hash"] = name.into();
    let labels = json!({"app": "web", "pod-template-hash": name});
    let set = json!({"metadata": {"name": name, "labels": labels, "ownerReferences": [owner("Deployment", deployment)]},
        "spec": {"selector": {"matchLabels": labels}, "template": template}});
    owner("ReplicaSet", &plane.create(SETS, &set).expect("a replica set"))
}

/// A reference to a controller.
pub fn owner(kind: &str, object: &Value) -> Value {
    let of = |field: &str| object["metadata"][field].clone();
    json!({"apiVersion": "apps/v1", "kind": kind, "name": of("name"), "uid": of("uid"), "controller": true})
}
