//! The scheduler tells whoever drew a line below its targets, on the in-memory API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use loadline_apiserver::ApiServer;
use loadline_core::object::Key;
use loadline_services::Ctx;
use loadline_services::agent::definitions;
use loadline_services::agent::watched::{ACTIONS, NODE_QOS};
use loadline_services::cluster::resource::NODES;
use loadline_services::cluster::write::Patch;
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::scheduler::{self, Options};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread")]
async fn a_line_below_the_target_becomes_an_event_on_its_object_and_a_gauge() {
    let client = Client::new(ApiServer::default(), "default");
    let writer = Writer::new(Connection::new(client.clone()), "test");
    for definition in definitions() {
        writer.define(&definition).await.unwrap();
    }
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "allocatable": {"cpu": "7500m", "memory": "30Gi", "pods": "110"},
    }});
    writer.create(NODES, "", &node).await.unwrap();
    let drop = json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": "AvoidanceAction",
        "metadata": {"name": "drop"}, "spec": {"eviction": {}}});
    writer.create(ACTIONS, "", &drop).await.unwrap();
    let rule = json!({"name": "cpu", "actionName": "drop", "metricRule": {"name": "cpu_total_utilization", "value": 60}});
    let lines = json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": "NodeQOS", "metadata": {"name": "all"},
        "spec": {"nodeQualityProbe": {"nodeLocalGet": {}}, "rules": [rule.clone()]}});
    writer.create(NODE_QOS, "", &lines).await.unwrap();

    let stop = CancellationToken::new();
    let options = Options::new(Access::Client(client.clone()));
    let metrics = options.metrics.clone();
    let running = tokio::spawn(scheduler::run(Ctx::new("test", stop.clone()), options));
    let events: Api<Event> = Api::all(client.clone());
    let event = async {
        loop {
            let all = events.list(&ListParams::default()).await.unwrap().items;
            if let Some(event) = all.into_iter().find(|e| e.reason.as_deref() == Some("LinesDisagree")) {
                return event;
            }
            tokio::time::sleep(OFTEN).await;
        }
    };
    let event = timeout(PATIENCE, event).await.expect("it is told");
    // 0.65 × 7500m = 4875m; 60 % × 8000m = 4800m
    let words = "on n1, pods come until 4875m of cpu are used (target 0.65), but rule all/cpu acts above 4800m (60%): 75m too many";
    assert_eq!(event.note.as_deref(), Some(words));
    let regarding = event.regarding.unwrap();
    assert_eq!((regarding.kind.as_deref(), regarding.name.as_deref()), (Some("NodeQOS"), Some("all")));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let until = async |count: i64| {
        let waiting = async {
            while metrics.lines_disagree.get() != count {
                tokio::time::sleep(OFTEN).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{count} nodes disagree"));
    };
    until(1).await;
    let mut higher = rule;
    higher["metricRule"]["value"] = json!(70);
    let patch = json!({"spec": {"rules": [higher]}});
    writer.patch(NODE_QOS.whole(), &Key::new("", "all"), Patch::Merge, &patch).await.unwrap();
    until(0).await;
    stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
}
