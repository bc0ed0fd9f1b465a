//! Open Cluster Management's placement controller works on our harness: what a comparison with ours rests on.

use loadline_testkit::ocm::{self, Ocm};
use serde_json::{Value, json};

#[test]
fn the_placement_controller_selects_by_what_clusters_have() {
    let Some(plane) = ocm::plane_or_skip() else { return };
    let ocm = Ocm::install(&plane).unwrap();
    ocm.namespace("apps").unwrap();
    let set = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
    let object = |kind: &str, version: &str, namespace: Value, name: &str, spec: Value| {
        json!({"apiVersion": format!("{}/{version}", ocm::GROUP), "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    };
    ocm.create("managedclustersets", &object("ManagedClusterSet", "v1beta2", Value::Null, "all", set))
        .unwrap();
    let binding = json!({"clusterSet": "all"});
    let binding = object("ManagedClusterSetBinding", "v1beta2", json!("apps"), "all", binding);
    ocm.create("managedclustersetbindings", &binding).unwrap();
    for (name, cpu) in [("a", "2"), ("b", "8"), ("c", "5")] {
        let mut cluster =
            object("ManagedCluster", "v1", Value::Null, name, json!({"hubAcceptsClient": true}));
        cluster["status"] =
            json!({"capacity": {"cpu": cpu}, "allocatable": {"cpu": cpu}, "conditions": [], "version": {}});
        ocm.create("managedclusters", &cluster).unwrap();
    }
    let weighed = json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": [
        {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}, "weight": 1}]}});
    ocm.create("placements", &object("Placement", "v1beta1", json!("apps"), "p", weighed)).unwrap();

    let controller = ocm.controller().unwrap();
    controller.settle().unwrap();
    let decisions = ocm.all("placementdecisions").unwrap();
    let decision = decisions.iter().find(|one| one["metadata"]["name"] == "p-decision-1").unwrap();
    assert_eq!(decision["status"]["decisions"], json!([{"clusterName": "b", "reason": ""}]));
    let tables = controller.tables("apps", "p").unwrap();
    assert_eq!(tables["prioritizeResults"][0]["scores"], json!({"a": -100, "b": 100, "c": 0}), "{tables}");
    let port = controller.running().port();
    drop(controller);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());

    ocm.clear(&["apps"]).unwrap();
    assert_eq!(ocm.all("managedclusters").unwrap().len() + ocm.all("placementdecisions").unwrap().len(), 0);
}
