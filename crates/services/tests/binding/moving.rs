//! Replicas that have found no node are taken away and placed anew, if that was asked for.

use crate::serving::{Serving, cluster, members};
use crate::world::{World, aggregated, deployment};
use jiff::{SignedDuration, Timestamp};
use loadline_core::estimate::Waiting;
use loadline_core::estimate::waiting::{Deployment, ReplicaSet, Unplaced};
use loadline_core::object::Key;
use loadline_core::select::LabelSelector;
use loadline_services::estimator::server::Options as Serve;
use loadline_services::estimator::{Known, Members};
use loadline_services::fleet::binding::{Deschedule, Options};
use loadline_services::fleet::estimators::{self, Addresses};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Pods of the Deployment `web` that have waited for so many minutes.
fn waiting(minutes: &[i64]) -> Waiting {
    let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    let selector = LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() };
    let mut waiting = Waiting::new();
    waiting.set_deployment(Deployment {
        key: Key::new("default", "web"),
        uid: "d".into(),
        selector: selector.selector().expect("a selector"),
        template: 7,
    });
    waiting.set_replica_set(ReplicaSet {
        key: Key::new("default", "web-1"),
        uid: "rs".into(),
        owner: Some("d".into()),
        created: None,
        template: 7,
    });
    for (index, minutes) in minutes.iter().enumerate() {
        waiting.set_pod(Unplaced {
            namespace: "default".into(),
            uid: format!("p{index}").as_str().into(),
            owner: "rs".into(),
            labels: labels.clone(),
            since: Some(Timestamp::now() - SignedDuration::from_mins(*minutes)),
        });
    }
    waiting
}

/// Of a's four nodes two fell away after it was given four replicas: two wait, one of them for long enough.
fn fleet() -> Arc<Members> {
    let members = members(&["a", "b"]);
    members["a"].publish(Known {
        view: cluster(0, "1", &[]).publish(),
        waiting: waiting(&[10, 1]),
        ..Known::default()
    });
    members["b"].publish(Known { view: cluster(1, "1", &[]).publish(), ..Known::default() });
    members
}

/// Four replicas in a, of which two are ready.
async fn given(world: &World) {
    world.cluster("a", 0).await;
    world.cluster("b", 1).await;
    let mut binding = deployment("web", 4, "1", &aggregated());
    binding["metadata"]["annotations"] =
        json!({"policy.karmada.io/applied-placement": aggregated().to_string()});
    binding["spec"]["clusters"] = json!([{"name": "a", "replicas": 4}]);
    world.create(&world.bindings(), &binding).await;
    let ready = json!([{"clusterName": "a", "status": {"readyReplicas": 2}}]);
    world.status(&world.bindings(), "web", &json!({"aggregatedStatus": ready})).await;
}

fn passes(serving: &Serving, apply: bool) -> impl FnOnce(&mut Options) {
    let shared = Some(serving.address.to_string());
    move |options| {
        let addresses = Addresses { shared, ..Addresses::default() };
        options.estimators = Some(estimators::Options { addresses, ..estimators::Options::default() });
        let every = Duration::from_millis(200);
        options.deschedule = Some(Deschedule { apply, every, rate: 1000.0, ..Deschedule::default() });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waited_in_vain_is_placed_elsewhere_and_nobody_else_is() {
    let (world, serving) = (World::new().await, Serving::start(&fleet(), Serve::default()).await);
    given(&world).await;
    let running = world.start(passes(&serving, true));
    let made = world.decided("web", |made| made.pairs() == [("a", 3), ("b", 1)]).await;
    assert_eq!(made.reason, "Success");
    let told = "DescheduleBindingSucceed: Binding has been descheduled, 1 replica(s) in cluster(a), \
                1 total descheduled replica(s)";
    assert!(world.events("Deployment", "web", 2).await.contains(&told.to_owned()));
    running.end().await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_moves_nobody() {
    let (world, serving) = (World::new().await, Serving::start(&fleet(), Serve::default()).await);
    given(&world).await;
    world.count("patch", "/apis/work.karmada.io/**");
    let running = world.start(passes(&serving, false));
    // It has been looked at when the estimator was asked.
    let asked = async {
        while running.metrics.estimators.counted("answered") < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, asked).await.expect("passes are made");
    let clusters = world.all().await[0]["spec"]["clusters"].clone();
    assert_eq!(clusters, json!([{"name": "a", "replicas": 4}]));
    running.end().await;
    let written = world.about("web");
    assert!(written.iter().all(|one| one.path.ends_with("/status")), "{written:?}");
    serving.end().await;
}
