//! What the dashboard says of a fleet, on the in-memory API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kube::Client;
use loadline_apiserver::ApiServer;
use loadline_core::object::Key;
use loadline_services::cluster::resource::{
    MANAGED_CLUSTER_SET_BINDINGS, MANAGED_CLUSTER_SETS, MANAGED_CLUSTERS, PLACEMENTS,
};
use loadline_services::cluster::write::Patch;
use loadline_services::cluster::{Access, Connection, Resource, Writer};
use loadline_services::dashboard::{self, Beside, Guard, Happenings, fleet};
use loadline_services::{Ctx, ask};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt as _;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(3);
const OFTEN: Duration = Duration::from_millis(50);

struct Looked {
    router: axum::Router,
    _stop: DropGuard,
}

impl Looked {
    /// Looks at a hub.
    fn at(client: Client) -> Self {
        let stop = CancellationToken::new();
        let (fleet, asked) = ask::channel();
        let options = fleet::Options { hub: Access::Client(client) };
        tokio::spawn(fleet::run(Ctx::new("test", stop.clone()), options, asked));
        let beside = Beside { fleet: Some(fleet), ..Beside::default() };
        let router = dashboard::router(ask::channel().0, Happenings::default(), Guard::default(), beside);
        Self { router, _stop: stop.drop_guard() }
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let request = Request::get(path).header(header::HOST, "localhost").body(Body::empty()).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn until(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let look = async {
            loop {
                let (_, answer) = self.get(path).await;
                if holds(&answer) {
                    return answer;
                }
                tokio::time::sleep(OFTEN).await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("never: {what}"))
    }
}

async fn create(writer: &Writer, of: Resource, namespace: &str, name: &str, spec: Value) {
    let object =
        json!({"apiVersion": of.api_version(), "kind": of.kind, "metadata": {"name": name}, "spec": spec});
    writer.create(of, namespace, &object).await.unwrap();
}

/// A hub with two clusters, of which `b` has more memory, and a placement that wants the one with most.
async fn hub() -> Client {
    let client = Client::new(ApiServer::default(), "default");
    let writer = Writer::new(Connection::new(client.clone()), "test");
    for definition in loadline_api::ocm::DEFINITIONS {
        writer.define(&serde_saphyr::from_str(definition).unwrap()).await.unwrap();
    }
    let everybody = json!({"selectorType": "LabelSelector", "labelSelector": {}});
    create(&writer, MANAGED_CLUSTER_SETS, "", "all", json!({"clusterSelector": everybody})).await;
    create(&writer, MANAGED_CLUSTER_SET_BINDINGS, "default", "all", json!({"clusterSet": "all"})).await;
    for (name, memory) in [("a", "8Gi"), ("b", "32Gi"), ("c", "64Gi")] {
        let mut spec = json!({"hubAcceptsClient": true});
        if name == "c" {
            spec["taints"] = json!([{"key": "away", "value": "yes", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]);
        }
        create(&writer, MANAGED_CLUSTERS, "", name, spec).await;
        let has = json!({"cpu": "4", "memory": memory});
        let status =
            json!({"status": {"capacity": has, "allocatable": has, "version": {}, "conditions": []}});
        writer.patch(MANAGED_CLUSTERS.status(), &Key::new("", name), Patch::Merge, &status).await.unwrap();
    }
    let most =
        json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableMemory"}, "weight": 1});
    let policy = json!({"mode": "Exact", "configurations": [most]});
    create(
        &writer,
        PLACEMENTS,
        "default",
        "most",
        json!({"numberOfClusters": 1, "prioritizerPolicy": policy}),
    )
    .await;
    client
}

#[tokio::test]
async fn clusters_and_placements_are_shown_and_kinds_that_are_not_there_are_said() {
    let looked = Looked::at(hub().await);
    let shown = looked
        .until("/api/v1/fleet", "the placement", |shown| {
            shown["placements"][0]["placement"] == "default/most"
        })
        .await;
    let (ocm, karmada) = (&shown["apis"][0], &shown["apis"][1]);
    assert_eq!((&ocm["there"], &karmada["there"]), (&json!(true), &json!(false)));
    assert_eq!((&karmada["name"], &karmada["kinds"]), (&json!("Karmada"), &json!([])));
    assert_eq!(shown["clusters"]["b"]["memory"]["allocatable"], json!(32.0 * 1024.0 * 1024.0 * 1024.0));
    // Nobody publishes what is used: that is not nothing.
    assert_eq!(
        shown["clusters"]["b"]["cpu"],
        json!({"allocatable": 4.0, "requested": null, "measured": null})
    );
    assert_eq!(shown["clusters"]["b"]["ageSeconds"], Value::Null);
    assert_eq!(shown["clusters"]["c"]["taints"], json!(["away=yes:NoSelect"]));
    assert_eq!(shown["bindings"], json!([]));
}

#[tokio::test]
async fn a_placement_is_explained_cluster_by_cluster() {
    let looked = Looked::at(hub().await);
    let told = looked
        .until("/api/v1/fleet/placements/default/most", "b is selected", |told| {
            told["selected"] == json!(["b"])
        })
        .await;
    let of = |name: &str| {
        let all = told["clusters"].as_array().unwrap();
        all.iter().find(|one| one["cluster"] == name).cloned().unwrap_or_else(|| panic!("{name} in {told}"))
    };
    assert!(of("b")["total"].as_i64() > of("a")["total"].as_i64(), "{told}");
    assert!(of("a")["reason"].is_string(), "{told}");
    assert_eq!(of("c")["filteredBy"], "TaintToleration");
    assert_eq!(told["published"], json!([]), "nobody decides here");
    let (status, told) = looked.get("/api/v1/fleet/placements/default/none").await;
    assert_eq!((status, told["error"].is_string()), (StatusCode::NOT_FOUND, true));
    assert_eq!(looked.get("/api/v1/fleet/bindings/default/none").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_cluster_that_is_no_hub_says_so() {
    let looked = Looked::at(Client::new(ApiServer::default(), "default"));
    let (status, shown) = looked.get("/api/v1/fleet").await;
    assert_eq!(status, StatusCode::OK);
    let there: Vec<bool> =
        shown["apis"].as_array().unwrap().iter().map(|api| api["there"].as_bool().unwrap()).collect();
    assert_eq!((there, &shown["problem"]), (vec![false, false], &Value::Null));
}
