//! Protection and scheduling together, each knowing the other only by the API server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;

use common::{metered, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use loadline_apiserver::ApiServer;
use loadline_sim::node::Folders;
use loadline_sim::{Options, World};
use serde_json::{Value, json};
use std::time::Duration;

/// A world of one node, whose agent looks into a folder or is told what is used.
async fn start(server: &ApiServer, folders: bool) -> World {
    let sink = metered(server);
    let often = Duration::from_millis(50);
    // A kernel counts in hundredths of a second: between two looks there have to be many.
    let looks = if folders { Duration::from_secs(1) } else { often };
    let folders = folders.then(|| Folders::new(often).unwrap());
    let protect = Some(looks);
    let options =
        Options { nodes: 1, figures: often, measure: often, protect, folders, ..Options::default() };
    World::start(Client::new(server.clone(), "default"), &options, sink).await.unwrap()
}

async fn apply(client: &Client, kind: &str, plural: &str, name: &str, spec: Value) {
    let kind = GroupVersionKind::gvk("ensurance.crane.io", "v1alpha1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let mut object = DynamicObject::new(name, &resource);
    object.data = json!({"spec": spec});
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// A pod that takes all of its limit at once: a tenth of what it wants, which is what it starts with, is more.
fn template(app: &str, limit_milli: i64) -> Value {
    json!({
        "metadata": {"labels": {"app": app}, "annotations": {"loadline.dev/usage-cpu": "2000"}},
        "spec": {"containers": [{"name": "main", "image": "simulated", "resources": {
            "requests": {"cpu": "10m"}, "limits": {"cpu": format!("{limit_milli}m")},
        }}]},
    })
}

#[tokio::test]
async fn a_victim_comes_back_to_its_node_only_once_that_has_cooled() {
    a_victim_comes_back_only_once_its_node_has_cooled(false).await;
}

#[tokio::test]
async fn the_agent_of_real_nodes_does_the_same_in_the_folder_of_a_simulated_one() {
    a_victim_comes_back_only_once_its_node_has_cooled(true).await;
}

async fn a_victim_comes_back_only_once_its_node_has_cooled(folders: bool) {
    let server = ApiServer::default();
    let client = Client::new(server.clone(), "default");
    let mut world = start(&server, folders).await;
    let mut notices = world.notices().unwrap();
    let cools = json!({"coolDownSeconds": 3, "eviction": {"terminationGracePeriodSeconds": 0}});
    apply(&client, "AvoidanceAction", "avoidanceactions", "evict", cools).await;
    let batch = json!({"labelSelector": {"matchLabels": {"app": "batch"}}, "allowedActions": ["evict"]});
    apply(&client, "PodQOS", "podqoss", "batch", batch).await;
    let line = json!({
        "name": "full", "actionName": "evict", "avoidanceThreshold": 1, "restoreThreshold": 1,
        "metricRule": {"name": "cpu_total_utilization", "value": "85"},
    });
    let rules = json!({"nodeQualityProbe": {"nodeLocalGet": {}}, "rules": [line]});
    apply(&client, "NodeQOS", "nodeqoss", "one-line", rules).await;

    let (pods, nodes): (Api<Pod>, Api<Node>) =
        (Api::default_namespaced(client.clone()), Api::all(client.clone()));
    let node = nodes.list(&ListParams::default()).await.unwrap().items.remove(0);
    let cpus: i64 = node.status.unwrap().capacity.unwrap()["cpu"].0.parse().unwrap();
    // 55 % of the node and 32 %: both fit, and together they are over the line.
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "batch"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "batch"}}, "template": template("batch", cpus * 320),
        },
    });
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    let mut shop = template("shop", cpus * 550);
    shop["metadata"]["name"] = json!("shop");
    pods.create(&PostParams::default(), &serde_json::from_value(shop).unwrap()).await.unwrap();

    // It goes, and who comes for it is told to wait.
    let events: Api<Event> = Api::default_namespaced(client.clone());
    let told = |reason: &'static str, words: &'static str| {
        let events = events.clone();
        let fits = move |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.message.as_ref().is_some_and(|message| message.contains(words))
        };
        async move { events.list(&ListParams::default()).await.unwrap().items.into_iter().find(fits) }
    };
    let victim =
        until("a victim", async || told("Evicted", "one-line/full").await?.involved_object.name).await;
    assert!(victim.starts_with("batch-"), "{victim}");
    let cools = "1 node(s) were cooling down";
    let waits = until("the successor to wait", async || told("FailedScheduling", cools).await).await;
    let successor = waits.involved_object.name.unwrap();
    assert_ne!(successor, victim);

    // Nothing but time helps it. Once it is back, it may have to go again at once: events tell for good.
    until("the successor to be placed", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let placed = |event: &&Event| {
            event.reason.as_deref() == Some("Scheduled")
                && event.involved_object.name.as_ref() == Some(&successor)
        };
        all.iter().find(placed).map(drop)
    })
    .await;
    let said: Vec<String> = std::iter::from_fn(|| notices.try_recv().ok()).map(|n| n.to_string()).collect();
    let place = |words: &str| said.iter().position(|line| line.contains(words));
    let (closed, evicted) = (place("closed: one-line/full"), place("evicted from"));
    assert!(closed.is_some() && closed < evicted, "the mark comes before the victim goes: {said:#?}");
    let back = place(&format!("scheduler default/{successor}: to "));
    assert!(back.is_some() && evicted < back, "{said:#?}");
    world.stop().await;
}
