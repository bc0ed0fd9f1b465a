//! The placement controller against the in-memory API server: what it publishes, when, and in which order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod hub;

use hub::{Hub, Running, clusters_of};
use jiff::{SignedDuration, Timestamp};
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_core::object::Key;
use loadline_core::place::{Placement, Toleration};
use loadline_services::ask::Unanswered;
use loadline_services::cluster::Calls;
use loadline_services::cluster::connection::Verb;
use loadline_services::cluster::resource::{
    ADD_ON_PLACEMENT_SCORES, EVENTS, MANAGED_CLUSTER_SETS, MANAGED_CLUSTERS, PLACEMENT_DECISIONS, PLACEMENTS,
};
use loadline_services::fleet::placement::Subject;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

fn condition<'a>(placement: &'a Value, kind: &str) -> &'a Value {
    let all = placement["status"]["conditions"].as_array().unwrap();
    all.iter().find(|condition| condition["type"] == kind).unwrap()
}

#[tokio::test]
async fn a_placement_is_decided_published_and_told() {
    let hub = Hub::new().await;
    for number in 0..3 {
        hub.cluster(number, &json!({})).await;
    }
    let running = Running::start(&hub);
    hub.placement("web", &json!({"numberOfClusters": 2})).await;
    let placement = hub.settled("web", 2).await;
    let decision = hub.get(PLACEMENT_DECISIONS, "team", "web-decision-1").await.unwrap();
    assert_eq!(clusters_of(&decision), ["c000", "c001"]);
    let label =
        |key: &str| &decision["metadata"]["labels"][format!("cluster.open-cluster-management.io/{key}")];
    assert_eq!(
        [label("placement"), label("decision-group-index"), label("decision-group-name")],
        ["web", "0", ""].map(|text| json!(text)).each_ref()
    );
    let owner = &decision["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["uid"], &owner["controller"], &owner["blockOwnerDeletion"]),
        (&placement["metadata"]["uid"], &json!(true), &json!(true))
    );
    assert_eq!(
        placement["status"]["decisionGroups"],
        json!([{"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["web-decision-1"], "clusterCount": 2}])
    );
    let (satisfied, right) =
        (condition(&placement, "PlacementSatisfied"), condition(&placement, "PlacementMisconfigured"));
    assert_eq!(
        (&satisfied["status"], &satisfied["reason"]),
        (&json!("True"), &json!("AllDecisionsScheduled"))
    );
    assert_eq!((&right["status"], &right["reason"]), (&json!("False"), &json!("Succeedconfigured")));
    let events = hub.until("three events", async || {
        let events = hub.list(EVENTS).await;
        (events.len() == 3).then_some(events)
    });
    let events = events.await;
    let mut told: Vec<(&str, &str, &str)> = events
        .iter()
        .map(|event| {
            let related = event["related"]["kind"].as_str().unwrap();
            assert_eq!(event["reportingController"], "placement-controller");
            assert_eq!(event["regarding"]["name"], "web");
            (event["reason"].as_str().unwrap(), event["action"].as_str().unwrap(), related)
        })
        .collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            ("DecisionCreate", "DecisionCreated", "PlacementDecision"),
            ("DecisionUpdate", "DecisionUpdated", "PlacementDecision"),
            ("ScoreUpdate", "ScoreUpdated", "PlacementDecision"),
        ]
    );
    running.end().await;
}

#[tokio::test]
async fn a_new_placement_costs_three_writes_however_many_come_at_once() {
    let hub = Hub::new().await;
    for number in 0..12 {
        hub.cluster(number, &json!({})).await;
    }
    // By OCM's own weights: each looks at what the others have.
    for number in 0..40 {
        hub.placement(&format!("p{number:02}"), &json!({"numberOfClusters": 3})).await;
    }
    let before = hub.writes();
    let running = Running::start(&hub);
    for number in 0..40 {
        hub.settled(&format!("p{number:02}"), 3).await;
    }
    hub.quiet().await;
    let written = hub.log()[before..].to_vec();
    let of = |what: &str| written.iter().filter(|line| line.contains(what)).count();
    assert_eq!(of("placementdecisions"), 80, "each is created and gets a status: {written:#?}");
    assert_eq!(written.len(), 120, "and so does the placement: {written:#?}");
    running.end().await;
}

#[tokio::test]
async fn what_no_placement_reads_changes_nothing_and_what_one_reads_changes_it() {
    let hub = Hub::new().await;
    for number in 0..4 {
        hub.cluster(number, &json!({"cpu": "8"})).await;
    }
    let running = Running::start(&hub);
    let by_cpu = json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": [
        {"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}, "weight": 1}]}});
    hub.placement("web", &by_cpu).await;
    hub.settled("web", 1).await;
    hub.quiet().await;
    let before = hub.writes();
    // A heartbeat: nothing a placement reads.
    let beat = json!({"status": {"conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True",
        "reason": "Beat", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    hub.patch_status(MANAGED_CLUSTERS, "", "c003", &beat).await;
    // Another cluster has more now.
    hub.patch_status(MANAGED_CLUSTERS, "", "c002", &json!({"status": {"allocatable": {"cpu": "16"}}})).await;
    hub.selected("web", &["c002"]).await;
    hub.quiet().await;
    // The two changes, the decision that follows, and in the status when scores were published, if that is another second.
    let written = hub.writes() - before;
    assert!((3..=4).contains(&written), "{:?}", &hub.log()[before..]);
    running.end().await;
}

#[tokio::test]
async fn a_mistake_tears_nothing_down_is_told_once_and_does_not_touch_others() {
    let hub = Hub::new().await;
    for number in 0..3 {
        hub.cluster(number, &json!({})).await;
    }
    let running = Running::start(&hub);
    hub.placement("good", &json!({})).await;
    hub.placement("bad", &json!({})).await;
    hub.settled("good", 3).await;
    hub.settled("bad", 3).await;
    let wrong = json!({"spec": {"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["managedCluster.("]}}}]}});
    hub.patch(PLACEMENTS, "team", "bad", &wrong).await;
    hub.until("the condition", async || {
        let bad = hub.get(PLACEMENTS, "team", "bad").await?;
        (condition(&bad, "PlacementMisconfigured")["status"] == "True").then_some(())
    })
    .await;
    hub.quiet().await;
    let before = hub.writes();
    // Others go on, and the wrong one is not tried again and again.
    hub.cluster(3, &json!({})).await;
    hub.settled("good", 4).await;
    hub.quiet().await;
    assert_eq!(hub.writes() - before, 3, "a cluster, a decision, a status: {:?}", &hub.log()[before..]);
    let kept = hub.get(PLACEMENT_DECISIONS, "team", "bad-decision-1").await.unwrap();
    assert_eq!(clusters_of(&kept), ["c000", "c001", "c002"], "what it had is kept");
    // Mended, it is decided at once.
    hub.patch(PLACEMENTS, "team", "bad", &json!({"spec": {"predicates": null}})).await;
    hub.settled("bad", 4).await;
    running.end().await;
}

#[tokio::test]
async fn placements_that_come_at_once_see_each_other() {
    // Each wants one of ten clusters, the one the fewest others have: twenty of them take each twice.
    let hub = Hub::new().await;
    for number in 0..10 {
        hub.cluster(number, &json!({})).await;
    }
    let balance = json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": [
        {"scoreCoordinate": {"builtIn": "Balance"}, "weight": 1}]}});
    for number in 0..20 {
        hub.placement(&format!("p{number:02}"), &balance).await;
    }
    let running = Running::start(&hub);
    hub.until("all of them", async || {
        let all = hub.list(PLACEMENT_DECISIONS).await;
        let mut counts = [0_usize; 10];
        for name in all.iter().flat_map(clusters_of) {
            counts[name[1..].parse::<usize>().unwrap()] += 1;
        }
        (counts == [2; 10]).then_some(())
    })
    .await;
    running.end().await;
}

#[tokio::test]
async fn a_score_that_expires_moves_the_decision() {
    let hub = Hub::new().await;
    let by_score = json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": [
        {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "load", "scoreName": "free"}}, "weight": 1}]}});
    for number in 0..2 {
        hub.cluster(number, &json!({})).await;
    }
    let running = Running::start(&hub);
    let until = Timestamp::now() + SignedDuration::from_secs(8);
    for (cluster, value, until) in [("c000", 10, None), ("c001", 90, Some(until))] {
        hub.namespace(cluster).await;
        let object = json!({"metadata": {"name": "load"}});
        hub.create(ADD_ON_PLACEMENT_SCORES, cluster, &object).await;
        let mut status = json!({"scores": [{"name": "free", "value": value}]});
        if let Some(until) = until {
            status["validUntil"] = json!(until.to_string());
        }
        hub.patch_status(ADD_ON_PLACEMENT_SCORES, cluster, "load", &json!({"status": status})).await;
    }
    hub.placement("web", &by_score).await;
    hub.selected("web", &["c001"]).await;
    // Nobody touches anything: time passes, and the score no longer counts.
    hub.selected("web", &["c000"]).await;
    running.end().await;
}

#[tokio::test]
async fn a_score_only_an_expression_reads_moves_the_decision() {
    let hub = Hub::new().await;
    for number in 0..2 {
        hub.cluster(number, &json!({})).await;
    }
    let told = async |cluster: &str, value: i64, until: Option<Timestamp>| {
        let mut status = json!({"scores": [{"name": "free", "value": value}]});
        if let Some(until) = until {
            status["validUntil"] = json!(until.to_string());
        }
        hub.patch_status(ADD_ON_PLACEMENT_SCORES, cluster, "load", &json!({"status": status})).await;
    };
    for (cluster, value) in [("c000", 10), ("c001", 90)] {
        hub.namespace(cluster).await;
        hub.create(ADD_ON_PLACEMENT_SCORES, cluster, &json!({"metadata": {"name": "load"}})).await;
        told(cluster, value, None).await;
    }
    let running = Running::start(&hub);
    let expression = r#"managedCluster.scores("load").exists(s, s.name == "free" && s.value > 50)"#;
    hub.placement("web", &json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [expression]}}}]})).await;
    hub.selected("web", &["c001"]).await;
    told("c000", 60, None).await;
    hub.selected("web", &["c000", "c001"]).await;
    hub.delete(ADD_ON_PLACEMENT_SCORES, "c001", "load").await;
    hub.selected("web", &["c000"]).await;
    // And it is over by itself.
    let until = Timestamp::now() + SignedDuration::from_secs(3);
    told("c000", 60, Some(until)).await;
    hub.selected("web", &[]).await;
    assert!(Timestamp::now() > until);
    running.end().await;
}

/// By how much each cluster was preferred.
async fn points(hub: &Hub, slice: usize) -> Option<(String, i64)> {
    let decision = hub.get(PLACEMENT_DECISIONS, "team", &format!("web-decision-{slice}")).await?;
    let one = decision["status"]["decisions"].get(0)?;
    Some((one["clusterName"].as_str()?.to_owned(), one["score"].as_i64()?))
}

#[tokio::test]
async fn points_are_published_with_decisions_the_best_first_and_only_so_often() {
    let hub = Hub::new().await;
    for (number, cpu) in [(0, "4"), (1, "16"), (2, "8")] {
        hub.cluster(number, &json!({"cpu": cpu})).await;
    }
    let running = Running::start(&hub);
    let began = Timestamp::now();
    let spec = json!({
        "sortBy": "Score", "scoreRateLimit": "8s",
        "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 1}},
        // As the seed writes it.
        "prioritizerPolicy": {"mode": "Exact", "configurations": [{"name": "ResourceAllocatableCPU", "weight": 1}]},
    });
    hub.placement("web", &spec).await;
    hub.settled("web", 3).await;
    // (8 − 4) / (16 − 4) of the way from −100 to 100 is −33.3.
    let all = [(1, "c001", 100), (2, "c002", -33), (3, "c000", -100)];
    for (slice, cluster, score) in all {
        let found = hub.until("points", async || points(&hub, slice).await).await;
        assert_eq!(found, (cluster.to_owned(), score), "slice {slice}");
    }
    // The order stays, the points do not: (9 − 4) / 12 is −16.7. Nobody touches anything after that.
    hub.patch_status(MANAGED_CLUSTERS, "", "c002", &json!({"status": {"allocatable": {"cpu": "9"}}})).await;
    hub.until("new points", async || (points(&hub, 2).await? == ("c002".to_owned(), -16)).then_some(()))
        .await;
    // When they were published is remembered to the second.
    assert!(Timestamp::now() >= began + SignedDuration::from_secs(7), "points alone wait for their time");
    // Who is selected never waits.
    let before = Timestamp::now();
    hub.patch(PLACEMENTS, "team", "web", &json!({"spec": {"scoreRateLimit": "1h"}})).await;
    hub.patch_status(MANAGED_CLUSTERS, "", "c000", &json!({"status": {"allocatable": {"cpu": "32"}}})).await;
    hub.until("the new best", async || (points(&hub, 1).await?.0 == "c000").then_some(())).await;
    assert!(Timestamp::now() < before + SignedDuration::from_hours(1));
    running.end().await;
}

#[tokio::test]
async fn whatever_is_wrong_with_a_placement_is_refused_or_told_and_others_go_on() {
    let hub = Hub::new().await;
    for number in 0..3 {
        hub.cluster(number, &json!({"cpu": "8"})).await;
    }
    let running = Running::start(&hub);
    hub.placement("good", &json!({})).await;
    hub.settled("good", 3).await;
    let selector = |key: &str, operator: &str| json!({"labelSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": ["b"]}]}});
    let group = json!({"groupName": "g", "groupClusterSelector": selector("a", "Sometimes")});
    let cases = [
        ("negative", json!({"numberOfClusters": -1})),
        ("mode", json!({"prioritizerPolicy": {"mode": "Random"}})),
        (
            "weight",
            json!({"prioritizerPolicy": {"configurations": [
            {"scoreCoordinate": {"builtIn": "Steady"}, "weight": 10_000_000_000_i64}]}}),
        ),
        ("size", json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "many"}}})),
        ("share", json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "150%"}}})),
        ("selector", json!({"predicates": [{"requiredClusterSelector": selector("a", "Sometimes")}]})),
        ("key", json!({"predicates": [{"requiredClusterSelector": selector("not a key", "In")}]})),
        ("group", json!({"decisionStrategy": {"groupStrategy": {"decisionGroups": [group]}}})),
    ];
    let mut told = 0;
    for (name, spec) in &cases {
        if let Err(refusal) = hub.try_placement(name, spec).await {
            // By the definition already, with where and what was expected.
            assert!(refusal.contains("spec."), "{name}: {refusal}");
            continue;
        }
        told += 1;
        let placement = hub
            .until(&format!("a condition of {name}"), async || {
                let placement = hub.get(PLACEMENTS, "team", name).await?;
                placement["status"]["conditions"].as_array()?;
                Some(placement)
            })
            .await;
        let wrong = condition(&placement, "PlacementMisconfigured");
        assert_eq!(wrong["status"], "True", "{name}: {placement}");
        assert_ne!(wrong["message"], "", "{name}: {placement}");
        let decision = hub.get(PLACEMENT_DECISIONS, "team", &format!("{name}-decision-1")).await;
        let selected = decision.as_ref().map(clusters_of).unwrap_or_default();
        assert_eq!(selected, Vec::<String>::new(), "{name}");
    }
    assert!(told >= 3, "some get past the definition: {told}");
    hub.quiet().await;
    let before = hub.writes();
    hub.cluster(3, &json!({})).await;
    hub.settled("good", 4).await;
    hub.quiet().await;
    assert_eq!(hub.writes() - before, 3, "a cluster, a decision, a status: {:?}", &hub.log()[before..]);
    running.end().await;
}

#[tokio::test]
async fn what_costs_much_or_is_odd_about_clusters_is_bounded_and_the_concern_of_nobody_else() {
    let hub = Hub::new().await;
    for number in 0..3 {
        hub.cluster(number, &json!({"cpu": "8"})).await;
    }
    hub.placement("good", &json!({})).await;
    let running = Running::start(&hub);
    hub.settled("good", 3).await;
    // Of ten thousand predicates the last is the one that matches.
    let one = |value: usize| json!({"requiredClusterSelector": {"labelSelector": {"matchLabels": {"group": value.to_string()}}}});
    let mut predicates: Vec<Value> = (0..9_999).map(one).collect();
    predicates.push(json!({}));
    hub.placement("many", &json!({"predicates": predicates})).await;
    hub.settled("many", 3).await;
    // A loop in a loop in a loop, which nobody runs.
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let loops = (0..8).fold("true".to_owned(), |inner, depth| format!("{ten}.all(x{depth}, {inner})"));
    hub.placement(
        "loops",
        &json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [loops]}}}]}),
    )
    .await;
    hub.settled_generation("loops").await;
    let placement = hub.get(PLACEMENTS, "team", "loops").await.unwrap();
    assert_eq!(
        condition(&placement, "PlacementSatisfied")["reason"],
        "NoManagedClusterMatched",
        "{placement}"
    );
    // Amounts nobody can read, none at all, and a claim that says two things; what the server refuses is nobody's concern either.
    let by_share = json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": [
        {"scoreCoordinate": {"builtIn": "ResourceRatioCPU"}, "weight": 1}]}});
    hub.placement("share", &by_share).await;
    hub.settled("share", 1).await;
    for status in [
        json!({"allocatable": {"cpu": "much"}, "capacity": {"cpu": "8"}}),
        json!({"allocatable": {"cpu": "4"}, "capacity": {"cpu": "0"}}),
        json!({"clusterClaims": [{"name": "zone", "value": "1"}, {"name": "zone", "value": "2"}]}),
    ] {
        let _refused = hub.try_patch_status(MANAGED_CLUSTERS, "", "c000", &json!({"status": status})).await;
    }
    hub.namespace("c001").await;
    hub.create(ADD_ON_PLACEMENT_SCORES, "c001", &json!({"metadata": {"name": "load"}})).await;
    let beyond = json!({"status": {"scores": [{"name": "free", "value": 1000}]}});
    let refused = hub.try_patch_status(ADD_ON_PLACEMENT_SCORES, "c001", "load", &beyond).await;
    assert!(refused.is_err_and(|why| why.contains("100")), "the definition has a scale");
    hub.quiet().await;
    let (before, read) = (hub.writes(), reads(&running.calls));
    hub.cluster(3, &json!({"cpu": "8"})).await;
    hub.settled("good", 4).await;
    hub.settled("many", 4).await;
    hub.quiet().await;
    let written = hub.log()[before..].to_vec();
    let about = |what: &str| written.iter().filter(|line| line.contains(what)).count();
    assert_eq!((about("/good"), about("/many")), (2, 2), "a decision and a status each: {written:#?}");
    assert!(about("/loops") <= 1, "how many do not match is told anew: {written:#?}");
    assert_eq!(reads(&running.calls), read, "nothing is read again");
    running.end().await;
}

#[tokio::test]
async fn a_toleration_that_ends_moves_the_decision() {
    let hub = Hub::new().await;
    hub.cluster(0, &json!({})).await;
    hub.cluster(1, &json!({})).await;
    let added = Timestamp::now();
    let taint = json!({"spec": {"taints": [{"key": "maintenance", "effect": "NoSelect", "timeAdded": added.to_string()}]}});
    hub.patch(MANAGED_CLUSTERS, "", "c000", &taint).await;
    let running = Running::start(&hub);
    hub.placement(
        "web",
        &json!({"tolerations": [{"key": "maintenance", "operator": "Exists", "tolerationSeconds": 8}]}),
    )
    .await;
    hub.selected("web", &["c000", "c001"]).await;
    hub.selected("web", &["c001"]).await;
    assert!(Timestamp::now() > added + SignedDuration::from_secs(8));
    running.end().await;
}

#[tokio::test]
async fn somebody_elses_placement_and_one_on_its_way_out_are_left_alone() {
    let hub = Hub::new().await;
    hub.cluster(0, &json!({})).await;
    hub.placement("web", &json!({})).await;
    let theirs = json!({"metadata": {"annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}}});
    hub.placement("theirs", &json!({})).await;
    hub.patch(PLACEMENTS, "team", "theirs", &theirs).await;
    hub.placement("leaving", &json!({})).await;
    hub.patch(PLACEMENTS, "team", "leaving", &json!({"metadata": {"finalizers": ["test.dev/held"]}})).await;
    hub.delete(PLACEMENTS, "team", "leaving").await;
    let running = Running::start(&hub);
    hub.settled("web", 1).await;
    hub.quiet().await;
    let names: BTreeSet<String> = hub
        .list(PLACEMENT_DECISIONS)
        .await
        .iter()
        .map(|decision| decision["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, BTreeSet::from(["web-decision-1".to_owned()]));
    running.end().await;
}

#[tokio::test]
async fn a_foreign_change_of_a_decision_is_mended_and_foreign_conditions_stay() {
    let hub = Hub::new().await;
    hub.cluster(0, &json!({})).await;
    let running = Running::start(&hub);
    hub.placement("web", &json!({})).await;
    hub.settled("web", 1).await;
    let foreign = json!({"type": "Seen", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let mut conditions =
        hub.get(PLACEMENTS, "team", "web").await.unwrap()["status"]["conditions"].as_array().unwrap().clone();
    conditions.push(foreign.clone());
    hub.patch_status(PLACEMENTS, "team", "web", &json!({"status": {"conditions": conditions}})).await;
    let nobody = json!({"status": {"decisions": []}});
    hub.patch_status(PLACEMENT_DECISIONS, "team", "web-decision-1", &nobody).await;
    hub.selected("web", &["c000"]).await;
    hub.cluster(1, &json!({})).await;
    let placement = hub.settled("web", 2).await;
    assert_eq!(condition(&placement, "Seen"), &foreign);
    hub.delete(PLACEMENT_DECISIONS, "team", "web-decision-1").await;
    hub.selected("web", &["c000", "c001"]).await;
    running.end().await;
}

/// 250 clusters in three slices change places all the time: groups by label, whose size changes too. Whoever reads the
/// decisions in the order they are written never misses a cluster that is selected throughout.
#[tokio::test]
async fn no_selected_cluster_is_ever_absent_while_decisions_are_rewritten() {
    let hub = Hub::new().await;
    for number in 0..250 {
        hub.cluster(number, &json!({"group": number % 3})).await;
    }
    let groups = |names: [&str; 2], size: i64| {
        let group = |name: &str| json!({"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": {"group": name}}}});
        json!({"decisionStrategy": {"groupStrategy": {
            "clustersPerDecisionGroup": size, "decisionGroups": names.map(group)}}})
    };
    hub.placement("web", &groups(["g0", "g1"], 100)).await;
    let running = Running::start(&hub);
    hub.settled("web", 250).await;
    let watcher = hub.watch_decisions().await;
    for round in 0_i64..12 {
        let names = if round % 2 == 0 { ["g1", "g0"] } else { ["g2", "g1"] };
        let spec = groups(names, 60 + 17 * (round % 4));
        hub.patch(PLACEMENTS, "team", "web", &json!({"spec": spec})).await;
        // Labels move clusters between groups while that is being written.
        for number in (round..250).step_by(25) {
            let label = json!({"metadata": {"labels": {"group": format!("g{}", (number + round) % 3)}}});
            hub.patch(MANAGED_CLUSTERS, "", &format!("c{number:03}"), &label).await;
        }
    }
    hub.quiet().await;
    let all: BTreeSet<String> = (0..250).map(|number| format!("c{number:03}")).collect();
    let states = watcher.stop().await;
    assert!(states.len() > 30, "there was something to see: {} states", states.len());
    for (number, state) in states.iter().enumerate() {
        let missing: Vec<&String> = all.difference(state).collect();
        assert!(missing.is_empty(), "after change {number}, {missing:?} are in no decision");
    }
    running.end().await;
}

/// The controller is cut off after every number of writes, as if it were killed there; the next one goes on. At no moment
/// is a cluster missing that was selected before and after, and in the end all is as if nothing had happened.
#[tokio::test]
async fn killed_between_any_two_writes_the_next_one_goes_on() {
    let groups = |order: [&str; 3]| {
        let group = |name: &str| json!({"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": {"group": name}}}});
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 4, "decisionGroups": order.map(group)}}})
    };
    for arrives in [false, true] {
        let mut ended = false;
        for writes in 0..40 {
            let hub = Hub::new().await;
            for number in 0..24 {
                hub.cluster(number, &json!({"group": number % 3})).await;
            }
            hub.placement("web", &groups(["g0", "g1", "g2"])).await;
            let running = Running::start(&hub);
            hub.settled("web", 24).await;
            running.end().await;
            let watcher = hub.watch_decisions().await;
            hub.patch(PLACEMENTS, "team", "web", &json!({"spec": groups(["g2", "g0", "g1"])})).await;
            let cut = Running::cut_after(&hub, writes, arrives);
            let was_cut = cut.until_cut_or_settled(&hub).await;
            let next = Running::start(&hub);
            hub.settled_generation("web").await;
            hub.quiet().await;
            next.end().await;
            for (number, state) in watcher.stop().await.iter().enumerate() {
                assert_eq!(state.len(), 24, "cut after {writes} writes, change {number}");
            }
            if !was_cut {
                assert!(writes > 6, "there was something to cut: {writes}");
                ended = true;
                break;
            }
        }
        assert!(ended, "every place to cut at was tried");
    }
}

#[tokio::test]
async fn a_set_that_makes_no_sense_is_the_problem_of_its_placements_alone() {
    let hub = Hub::new().await;
    hub.cluster(0, &json!({})).await;
    let running = Running::start(&hub);
    hub.placement("web", &json!({"clusterSets": ["main"]})).await;
    hub.settled("web", 1).await;
    let bad = json!({"metadata": {"name": "odd"}, "spec": {"clusterSelector": {"selectorType": "LabelSelector",
        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Sometimes"}]}}}});
    hub.create(MANAGED_CLUSTER_SETS, "", &bad).await;
    hub.bind("odd").await;
    hub.placement("wants", &json!({"clusterSets": ["odd"]})).await;
    hub.until("the condition", async || {
        let odd = hub.get(PLACEMENTS, "team", "wants").await?;
        let all = odd["status"]["conditions"].as_array()?;
        all.iter().any(|c| c["message"].as_str().is_some_and(|text| text.contains("odd"))).then_some(())
    })
    .await;
    hub.cluster(1, &json!({})).await;
    hub.settled("web", 2).await;
    running.end().await;
}

/// How often something was read.
fn reads(calls: &Calls) -> u64 {
    let all = calls.record().into_iter();
    all.filter(|((call, _), _)| matches!(call.verb, Verb::Get | Verb::List | Verb::Watch))
        .map(|(_, count)| count)
        .sum()
}

#[tokio::test]
async fn objects_that_make_no_sense_cost_no_requests_whatever_goes_on_around_them() {
    let hub = Hub::new().await;
    for number in 0..3 {
        hub.cluster(number, &json!({"cpu": "8"})).await;
    }
    // An expression that is none, a weight nobody knows, a set that cannot be read, a decision of nobody, a score of nobody.
    let wrong = json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": ["managedCluster.("]}}}]});
    let unknown = json!({"prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Luck"}, "weight": 1}]}});
    let odd = json!({"metadata": {"name": "odd"}, "spec": {"clusterSelector": {"selectorType": "LabelSelector",
        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Sometimes"}]}}}});
    hub.create(MANAGED_CLUSTER_SETS, "", &odd).await;
    hub.bind("odd").await;
    let of_nobody = json!({"metadata": {"name": "stray-decision-1",
        "labels": {"cluster.open-cluster-management.io/placement": "stray"}}});
    hub.create(PLACEMENT_DECISIONS, "team", &of_nobody).await;
    hub.namespace("nowhere").await;
    hub.create(ADD_ON_PLACEMENT_SCORES, "nowhere", &json!({"metadata": {"name": "load"}})).await;
    for (name, spec) in
        [("wrong", &wrong), ("unknown", &unknown), ("unset", &json!({"clusterSets": ["odd"]}))]
    {
        hub.placement(name, spec).await;
    }
    let by_cpu = json!({"clusterSets": ["main"], "numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact",
        "configurations": [{"scoreCoordinate": {"builtIn": "ResourceAllocatableCPU"}, "weight": 1}]}});
    hub.placement("good", &by_cpu).await;
    let running = Running::start(&hub);
    hub.settled("good", 1).await;
    for name in ["wrong", "unknown", "unset"] {
        hub.until(&format!("a condition of {name}"), async || {
            hub.get(PLACEMENTS, "team", name).await?["status"]["conditions"].as_array().map(drop)
        })
        .await;
    }
    hub.quiet().await;
    let (before, read) = (hub.writes(), reads(&running.calls));
    for round in 0..10 {
        let beat = json!({"status": {"conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True",
            "reason": "Beat", "message": round.to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        hub.patch_status(MANAGED_CLUSTERS, "", &format!("c00{}", round % 3), &beat).await;
    }
    hub.patch_status(MANAGED_CLUSTERS, "", "c002", &json!({"status": {"allocatable": {"cpu": "16"}}})).await;
    hub.selected("good", &["c002"]).await;
    hub.quiet().await;
    let written = hub.log()[before..].to_vec();
    let about = |what: &str| written.iter().filter(|line| line.contains(what)).count();
    for name in ["/wrong", "/unknown", "/unset", "/stray"] {
        assert_eq!(about(name), 0, "{name}: {written:#?}");
    }
    // Eleven changes of clusters, a decision, and when its points were published if that is another second.
    assert!((12..=13).contains(&written.len()), "{written:#?}");
    assert_eq!(reads(&running.calls), read, "nothing is read again");
    running.end().await;
}

/// In the time of the test, not of the machine: nothing here waits for anything outside.
#[tokio::test(start_paused = true)]
async fn what_a_hub_does_not_take_for_an_hour_is_tried_some_dozen_times() {
    let hub = Hub::new().await;
    hub.cluster(0, &json!({})).await;
    let faults = Faults::seeded(7);
    let status = format!("{}/status", PLACEMENTS.object(&Key::new("team", "bad")));
    faults.add(Rule::new(Action::Answer(Answer::Internal)).verb("patch").path(&status));
    hub.placement("bad", &json!({})).await;
    hub.placement("good", &json!({})).await;
    let running = Running::with_faults(&hub, &faults);
    hub.settled("good", 1).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    // 20 ms, twice as long each time up to 2 min: 13 in the first three minutes, then 28 or 29.
    let tried = faults.log().len();
    assert!((30..=50).contains(&tried), "{tried}");
    // Watches end now and then, and are begun again.
    assert!(reads(&running.calls) < 200, "{:?}", running.calls.record());
    // Others are decided meanwhile.
    hub.cluster(1, &json!({})).await;
    hub.settled("good", 2).await;
    running.end().await;
}

#[tokio::test]
async fn whoever_asks_is_told_why() {
    let hub = Hub::new().await;
    hub.cluster(0, &json!({})).await;
    hub.cluster(1, &json!({})).await;
    let taint = json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]}});
    hub.patch(MANAGED_CLUSTERS, "", "c001", &taint).await;
    let running = Running::start(&hub);
    hub.placement("web", &json!({})).await;
    hub.settled("web", 1).await;
    let there = |name: &str| Subject::There(Key::new("team", name));
    let report = running.asker.ask(there("web")).await.unwrap().unwrap();
    assert_eq!(report.clusters.len(), 2);
    assert!(running.asker.ask(there("nobody")).await.unwrap().is_none());
    // One that is not there, and stays so.
    let tolerant = Toleration { key: "gpu".into(), operator: "Exists".into(), ..Toleration::default() };
    let wish =
        Placement { key: Key::new("team", "new"), tolerations: vec![tolerant], ..Placement::default() };
    let report = running.asker.ask(Subject::Wished(Box::new(wish))).await.unwrap().unwrap();
    assert_eq!(report.outcome.selected.len(), 2);
    hub.quiet().await;
    assert!(hub.get(PLACEMENT_DECISIONS, "team", "new-decision-1").await.is_none());
    running.end().await;
}

#[tokio::test]
async fn nothing_is_said_before_everything_is_read() {
    let hub = Hub::new().await;
    hub.cluster(0, &json!({})).await;
    hub.placement("web", &json!({})).await;
    let faults = Faults::seeded(7);
    let lists = ADD_ON_PLACEMENT_SCORES.collection("");
    faults.add(Rule::new(Action::Answer(Answer::Internal)).verb("list").path(&lists));
    let running = Running::with_faults(&hub, &faults);
    let web = || Subject::There(Key::new("team", "web"));
    // The placement itself was read long before.
    hub.until("a list that fails", async || (!faults.log().is_empty()).then_some(())).await;
    assert_eq!(running.asker.ask(web()).await.map(drop), Err(Unanswered::TooEarly));
    faults.clear();
    hub.settled("web", 1).await;
    assert!(running.asker.ask(web()).await.unwrap().is_some());
    running.end().await;
}
