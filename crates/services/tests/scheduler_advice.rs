//! The scheduler and Recommendations that come and go, on the in-memory API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Api, Client};
use loadline_api::recommendation;
use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use loadline_services::Ctx;
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::scheduler::{self, Options};
use loadline_services::sources::metrics_api;
use serde_json::{Value, from_value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(100);

/// What became of a pod: its node, or why it has none.
async fn fate(pods: &Api<Pod>, name: &str) -> Result<String, String> {
    let decided = async {
        loop {
            let pod = pods.get(name).await.unwrap();
            if let Some(node) = pod.spec.and_then(|spec| spec.node_name) {
                return Ok(node);
            }
            let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
            if let Some(waits) =
                conditions.into_iter().find(|c| c.type_ == "PodScheduled" && c.status == "False")
            {
                return Err(waits.message.unwrap_or_default());
            }
            tokio::time::sleep(OFTEN / 4).await;
        }
    };
    timeout(PATIENCE, decided).await.unwrap_or_else(|_| panic!("nothing became of {name}"))
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}])
}

/// A Deployment `web` and its replica set, which says its uid.
async fn web(client: &Client) -> String {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let object = from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap();
    let uid = deployments.create(&PostParams::default(), &object).await.unwrap().metadata.uid.unwrap();
    let sets: Api<ReplicaSet> = Api::default_namespaced(client.clone());
    let owners = owner("Deployment", "web", &uid);
    let object =
        from_value(json!({"metadata": {"name": "web-5d4f", "ownerReferences": owners}, "spec": spec}))
            .unwrap();
    sets.create(&PostParams::default(), &object).await.unwrap().metadata.uid.unwrap()
}

/// A replica of the replica set with that uid; it asks for next to nothing.
fn replica(name: &str, set: &str) -> Value {
    let owner = owner("ReplicaSet", "web-5d4f", set);
    json!({
        "metadata": {"name": name, "labels": {"pod-template-hash": "5d4f"}, "ownerReferences": owner},
        "spec": {"schedulerName": "loadline", "containers": [{"name": "app", "image": "i",
            "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}]},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_comes_later_is_noticed_and_what_is_no_longer_recommended_lets_pods_in() {
    let server = ApiServer::default();
    let client = Client::new(server.clone(), "default");
    let has = json!({"cpu": "4", "memory": "8Gi", "pods": "1000"});
    let node = json!({"metadata": {"name": "n"}, "status": {"capacity": has, "allocatable": has}});
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &from_value(node).unwrap()).await.unwrap();
    // Two of four CPUs are used, and 0.65 of four is 2.6: there is room for 600m.
    let usage = BTreeMap::from([("cpu".to_owned(), "2".to_owned()), ("memory".to_owned(), "1Gi".to_owned())]);
    let sample = Sample { at: Timestamp::now(), window: Duration::from_secs(15) };
    server.set_node_metrics("n", &usage, sample);

    let stop = CancellationToken::new();
    let measure = metrics_api::Options { every: OFTEN, ..metrics_api::Options::default() };
    let options = Options { measure, ..Options::new(Access::Client(client.clone())) };
    let running = tokio::spawn(scheduler::run(Ctx::new("test", stop.clone()), options));
    let set = web(&client).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let create = async |name: &str| {
        pods.create(&PostParams::default(), &from_value(replica(name, &set)).unwrap()).await.unwrap();
        fate(&pods, name).await
    };
    assert_eq!(create("web-first").await, Ok("n".to_owned()), "it counts with what it asks for");

    let definition: Value = serde_saphyr::from_str(recommendation::DEFINITION).unwrap();
    Writer::new(Connection::new(client.clone()), "test").define(&definition).await.unwrap();
    let value = json!({"resourceRequest": {"containers": [{"containerName": "app", "target": {"cpu": "700m", "memory": "64Mi"}}]}});
    let advice = json!({
        "apiVersion": "analysis.crane.io/v1alpha1", "kind": "Recommendation", "metadata": {"name": "web"},
        "spec": {"type": "Resource", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
        "status": {"recommendedValue": value.to_string()},
    });
    let kind = GroupVersionKind::gvk("analysis.crane.io", "v1alpha1", "Recommendation");
    let all: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind));
    all.create(&PostParams::default(), &from_value(advice).unwrap()).await.unwrap();

    // It is asked for again now and then; from some replica on, it counts.
    let noticed = async {
        for number in 0.. {
            let name = format!("web-{number}");
            match create(&name).await {
                Ok(_) => tokio::time::sleep(OFTEN).await,
                Err(why) => return (name, why),
            }
        }
        unreachable!("there are many numbers")
    };
    let (waiting, why) = timeout(PATIENCE, noticed).await.expect("it is noticed");
    assert!(why.contains("would pass the load line"), "{why}");

    all.delete("web", &DeleteParams::default()).await.unwrap();
    let bound = async {
        while pods.get(&waiting).await.unwrap().spec.unwrap().node_name.is_none() {
            tokio::time::sleep(OFTEN / 4).await;
        }
    };
    timeout(PATIENCE, bound).await.expect("it is let in, by its own request");
    stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
}
