//! `loadline up --clusters`, end to end: the real binary, a gRPC client as a fleet scheduler is one, kubectl's view.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;

use common::Up;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use loadline_api::estimator::service::estimator_client::EstimatorClient;
use loadline_api::estimator::{Replica, replicas_request};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use tonic::Code;
use tonic::transport::Channel;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);

/// Pods of one core and 2 GiB.
fn replica() -> Replica {
    Replica {
        requests: [("cpu", "1"), ("memory", "2Gi")].map(|(n, q)| (n.to_owned(), q.parse().unwrap())).into(),
        ..Replica::default()
    }
}

async fn ask(client: &EstimatorClient<Channel>, cluster: &str) -> Result<i32, tonic::Status> {
    let request = replicas_request(cluster, Some(&replica()), &[]);
    client.clone().max_available_replicas(request).await.map(|answer| answer.into_inner().max_replicas)
}

/// The value of a line of the greeting, such as `estimator   127.0.0.1:10352, gRPC`.
fn told<'a>(up: &'a Up, name: &str) -> &'a str {
    let line = up.greeting.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
    line.trim().split([',', ' ']).next().unwrap()
}

#[tokio::test]
async fn one_estimator_answers_for_every_cluster_and_follows_each() {
    let up = Up::start(&["--clusters", "3", "--nodes", "4", "--for", "10m"]);
    let address = format!("http://{}", told(&up, "estimator"));
    let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
    let client = EstimatorClient::new(channel);
    let mut before = Vec::new();
    for cluster in ["member1", "member2", "member3"] {
        before.push(ask(&client, cluster).await.unwrap());
    }
    assert!(before.iter().all(|room| *room > 3), "{before:?}");
    let unknown = ask(&client, "member4").await.unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
    assert!(unknown.message().contains("member4"), "{}", unknown.message());

    // Three pods in the second cluster: it has room for three fewer, the others for as many as before.
    let api: Api<Deployment> = Api::default_namespaced(common::client_for(&up.kubeconfig(), "member2").await);
    let web = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
            {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}]}}}});
    api.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap();
    let follows = async {
        // Nobody tells a client that an answer would be another now, so it asks again, as schedulers do.
        while ask(&client, "member2").await.unwrap() != before[1] - 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, follows).await.expect("the answer never followed the pods");
    assert_eq!(ask(&client, "member1").await.unwrap(), before[0]);
    assert_eq!(ask(&client, "member3").await.unwrap(), before[2]);
}

/// The cluster a story has selected, once it has.
async fn story(hub: &kube::Client, number: usize) -> String {
    let kind = GroupVersionKind::gvk("cluster.open-cluster-management.io", "v1beta1", "PlacementDecision");
    let api: Api<DynamicObject> = Api::default_namespaced_with(hub.clone(), &ApiResource::from_gvk(&kind));
    let decided = async {
        loop {
            let decision = api.get_opt(&format!("story-{number}-decision-1")).await.unwrap();
            let name = decision.and_then(|decision| {
                decision.data["status"]["decisions"][0]["clusterName"].as_str().map(str::to_owned)
            });
            if let Some(name) = name {
                return name;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, decided).await.expect("a story that is decided")
}

/// The clusters the first four have selected.
async fn stories(hub: &kube::Client) -> [String; 4] {
    [story(hub, 1).await, story(hub, 2).await, story(hub, 3).await, story(hub, 4).await]
}

#[tokio::test]
async fn placements_of_the_hub_move_with_load_and_the_pinned_one_stays() {
    let up = Up::start(&["--clusters", "3", "--nodes", "4", "--for", "10m"]);
    let hub = common::client_for(&up.kubeconfig(), "hub").await;
    let before = stories(&hub).await;
    // Every cluster that the first three have selected gets hot, one after the other; they always find another.
    let mut hot: Vec<String> = Vec::new();
    for _ in 0..2 {
        let now = stories(&hub).await;
        let next = now[..3].iter().find(|name| !hot.contains(name)).expect("one that is not hot").clone();
        let api: Api<Deployment> = Api::default_namespaced(common::client_for(&up.kubeconfig(), &next).await);
        let uses = json!({"loadline.dev/usage-cpu": "3", "loadline.dev/usage-memory": "12Gi"});
        let burner = json!({"metadata": {"name": "burner"}, "spec": {
            "replicas": 30, "selector": {"matchLabels": {"app": "burner"}},
            "template": {"metadata": {"labels": {"app": "burner"}, "annotations": uses}, "spec": {"containers": [
                {"name": "burner", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}}});
        api.create(&PostParams::default(), &serde_json::from_value(burner).unwrap()).await.unwrap();
        hot.push(next);
        let moved = async {
            while stories(&hub).await[..3].iter().any(|name| hot.contains(name)) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let told = tokio::time::timeout(PATIENCE, moved).await;
        assert!(told.is_ok(), "{hot:?} are hot, and still it is {:?}", stories(&hub).await);
    }
    assert_eq!(stories(&hub).await[3], before[3], "the fourth is pinned, hot or not");
}

#[tokio::test]
async fn the_fifth_story_leaves_a_cluster_whose_gpus_are_taken() {
    let up = Up::start(&["--clusters", "3", "--nodes", "4", "--for", "10m"]);
    let hub = common::client_for(&up.kubeconfig(), "hub").await;
    let before = story(&hub, 5).await;
    // Each has two nodes with 4 GPUs. Six of eight are asked for: a quarter is left, of the others all.
    let api: Api<Deployment> = Api::default_namespaced(common::client_for(&up.kubeconfig(), &before).await);
    let training = json!({"metadata": {"name": "training"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "training"}},
        "template": {"metadata": {"labels": {"app": "training"}}, "spec": {"containers": [
            {"name": "training", "image": "i", "resources": {"requests": {"cpu": "100m", "nvidia.com/gpu": "3"},
                "limits": {"nvidia.com/gpu": "3"}}}]}}}});
    api.create(&PostParams::default(), &serde_json::from_value(training).unwrap()).await.unwrap();
    let moved = async {
        while story(&hub, 5).await == before {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, moved).await.expect("it goes where GPUs are free");
}

/// Where a binding of the hub is, once it is somewhere.
async fn bound(hub: &kube::Client, name: &str) -> Vec<(String, i64)> {
    let kind = GroupVersionKind::gvk("work.karmada.io", "v1alpha2", "ResourceBinding");
    let api: Api<DynamicObject> = Api::default_namespaced_with(hub.clone(), &ApiResource::from_gvk(&kind));
    let somewhere = async {
        loop {
            let binding = api.get_opt(name).await.unwrap();
            let spec = binding.map(|mut binding| binding.data["spec"].take()).unwrap_or_default();
            if let Some(clusters) = spec["clusters"].as_array() {
                let one = |target: &Value| {
                    (target["name"].as_str().unwrap().to_owned(), target["replicas"].as_i64().unwrap())
                };
                return clusters.iter().map(one).collect();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, somewhere).await.expect("a binding that is divided")
}

/// Waits until the one pod of a Deployment there is as wanted.
async fn pod(up: &Up, cluster: &str, app: &str, wanted: impl Fn(&Pod) -> bool) {
    let api: Api<Pod> = Api::default_namespaced(common::client_for(&up.kubeconfig(), cluster).await);
    let params = ListParams::default().labels(&format!("app={app}"));
    let seen = async {
        loop {
            let pods = api.list(&params).await.unwrap().items;
            if let [pod] = &pods[..]
                && wanted(pod)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let told = tokio::time::timeout(PATIENCE, seen).await;
    assert!(told.is_ok(), "{app} in {cluster}: {:?}", api.list(&params).await.unwrap().items);
}

/// What `loadline explain binding` prints.
fn explain(up: &Up, name: &str, form: &str) -> String {
    let url = up.said("controller");
    let args = ["explain", "binding", name, "--controller", &url, "-o", form];
    let answer = Command::new(env!("CARGO_BIN_EXE_loadline")).args(args).output().unwrap();
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8_lossy(&answer.stdout).into_owned()
}

#[tokio::test]
async fn by_totals_two_workloads_go_where_no_node_takes_them_and_by_estimates_where_they_run() {
    let up = Up::start(&["--scenario", "totals", "--for", "10m"]);
    let hub = common::client_for(&up.kubeconfig(), "hub").await;
    let is_running = |pod: &Pod| pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Running");
    let waits = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|one| one.reason.as_deref() == Some("Unschedulable")))
    };
    for (app, by_estimates, by_totals) in
        [("solver", "member2", "member1"), ("labelled", "member2", "member3")]
    {
        assert_eq!(bound(&hub, &format!("{app}-deployment")).await, [(by_estimates.to_owned(), 1)], "{app}");
        pod(&up, by_estimates, app, is_running).await;
        let other = format!("{app}-by-totals");
        assert_eq!(bound(&hub, &format!("{other}-deployment")).await, [(by_totals.to_owned(), 1)], "{other}");
        pod(&up, by_totals, &other, waits).await;
    }

    // Why, in the controller's words. By totals 79 and 31.8 cpu are 6 and 2 replicas of 12, node by node none and 2; what others
    // of the story have got by then makes it less, never the other way round.
    let told: Value = serde_json::from_str(&explain(&up, "default/solver-deployment", "json")).unwrap();
    let counts = |cluster: &str| -> [i64; 2] {
        let feasible = told["decision"]["feasible"].as_array().unwrap();
        let one = feasible.iter().find(|one| one["name"] == cluster).unwrap();
        ["general-estimator", "scheduler-estimator"].map(|by| {
            let said = one["estimates"].as_array().unwrap().iter().find(|said| said["by"] == by).unwrap();
            said["count"].as_i64().unwrap()
        })
    };
    let ([by_totals, by_nodes], [other_by_totals, other_by_nodes]) = (counts("member1"), counts("member2"));
    assert!(by_totals > other_by_totals && other_by_totals >= 1, "totals would choose member1: {told}");
    assert!(by_nodes == 0 && other_by_nodes >= 1, "and no node there takes it: {told}");

    // The same in a table, for people.
    let table = explain(&up, "default/solver-deployment", "table");
    let line = |start: &str| {
        let found = table.lines().find(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("no {start} in {table}")).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(
        line("ResourceBinding")[..],
        ["ResourceBinding", "default/solver-deployment", "→", "member2", "1"]
    );
    let (at, why) = (told["decision"]["at"].as_str().unwrap(), told["decision"]["why"].as_str().unwrap());
    assert!(table.contains(&format!("  decided {at}: {why}\n")), "{table}");
    let said = |[general, accurate]: [i64; 2]| {
        format!("general-estimator {general}, scheduler-estimator {accurate} ")
    };
    // Cluster, replicas, what fits, score, estimates; what is blank is not there.
    let chosen = format!("member2 1 {other_by_nodes} 0 {}", said(counts("member2")));
    assert!(line("member2").join(" ").starts_with(&chosen), "{chosen}: {table}");
    let other = format!("member1 0 0 {}", said(counts("member1")));
    assert!(line("member1").join(" ").starts_with(&other), "{other}: {table}");
    assert_eq!(line("member3").join(" "), format!("member3 {}", refused(&told, "member3")), "{table}");
}

/// Why a cluster gets nothing, by the document.
fn refused(told: &Value, cluster: &str) -> String {
    let filtered = told["decision"]["filtered"].as_array().unwrap();
    let one = filtered.iter().find(|one| one["name"] == cluster).unwrap();
    one["reason"].as_str().unwrap().to_owned()
}
