//! How fast are clusters asked who waits there?

use super::*;
use crate::cluster::{Connection, Event};
use crate::ctx::Clock;
use crate::fleet::binding::Metrics;
use crate::fleet::binding::state::Settings;
use crate::fleet::binding::watched::Message;
use crate::fleet::estimators::{self, Addresses};
use jiff::Timestamp;
use loadline_api::Context;
use loadline_api::json::Tree;
use loadline_core::divide;

const COUNT: usize = 40;

/// Deployments that each lack a replica in a cluster of its own.
fn state(now: Now) -> State {
    let minute = Duration::from_mins(1);
    let settings = Settings {
        scheduler: "loadline".to_owned(),
        divide: divide::Options::default(),
        estimators: true,
        pulling: true,
        promise: minute,
        patience: minute,
    };
    let mut state = State::new(settings, Metrics::default());
    let placement = json!({"replicaScheduling":
        {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}});
    for number in 0..COUNT {
        let (name, cluster) = (format!("web-{number}"), format!("member-{number}"));
        let object = json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": 1, "resourceVersion": "9",
                "labels": {"propagationpolicy.karmada.io/permanent-id": "some"},
                "annotations": {"policy.karmada.io/applied-placement": placement.to_string()}},
            "spec": {"schedulerName": "loadline", "replicas": 2, "placement": placement,
                "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": name},
                "clusters": [{"name": cluster, "replicas": 2}]},
            "status": {"aggregatedStatus": [{"clusterName": cluster, "status": {"readyReplicas": 1}}]},
        });
        let tree = Tree::from(&object);
        let facts = loadline_api::karmada::scheduling(&tree, &Context::new());
        let event = Event::Applied(loadline_api::object::meta(&tree), Ok(Box::new(facts)));
        state.take(Message::Binding(event), now);
    }
    state
}

/// How many questions were asked by then, in seconds from the beginning of a pass.
async fn asked(rate: f64, seconds: &[u64]) -> Vec<u64> {
    let begin = Now { clock: Timestamp::UNIX_EPOCH, at: Instant::now() };
    let state = state(begin);
    // Nobody listens there, which is soon known.
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let addresses = Addresses { shared: Some(nowhere.to_string()), ..Addresses::default() };
    let options = estimators::Options { addresses, ..estimators::Options::default() };
    let hub = Connection::new(kube::Client::new(loadline_apiserver::ApiServer::default(), "default"));
    let metrics = estimators::Metrics::default();
    let (estimators, _recovered) = Estimators::new(options, hub.clone(), metrics.clone(), Clock::default());
    let writer = Writer::new(hub, "test");
    let every = Duration::from_mins(2);
    let mut passes = Passes::new(Deschedule { every, rate, ..Deschedule::default() }, begin.at);
    let (mut counts, mut at) = (Vec::new(), begin.at + every);
    for until in seconds {
        let until = begin.at + every + Duration::from_secs(*until);
        while at <= until {
            // Again and again, as whatever else happens wakes it.
            loop {
                passes.go_on(&state, &estimators, &writer, Now { at, ..begin });
                if passes.under_way.is_empty() {
                    break;
                }
                while passes.under_way.join_next().await.is_some() {}
            }
            at += Duration::from_millis(100);
        }
        counts.push(metrics.counted("failed") + metrics.counted("answered"));
    }
    counts
}

#[tokio::test]
async fn no_more_are_asked_in_a_second_than_was_allowed() {
    let table = [
        (1.0, [2, 7, 32], "two to begin with, as after every pause, and then one a second"),
        (5.0, [6, 31, 40], "six, and then five a second, until nobody is left"),
        (1000.0, [40, 40, 40], "all at once, and nobody twice in one pass"),
    ];
    for (rate, want, why) in table {
        assert_eq!(asked(rate, &[0, 5, 30]).await, want, "{rate} a second: {why}");
    }
}
