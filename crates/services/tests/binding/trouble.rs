//! What when the hub misbehaves, or objects do?

use crate::world::{Decision, World, aggregated, deployment, weighted};
use loadline_apiserver::fault::{Action, Answer, Rule};
use loadline_services::cluster::connection::Verb;
use loadline_services::cluster::{Calls, lease};
use serde_json::{Value, json};

const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces/*/resourcebindings";

#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_to_a_write_the_decision_arrives_once_and_whole() {
    let object = format!("{BINDINGS}/*");
    let status = format!("{BINDINGS}/*/status");
    let table = [
        (Action::Answer(Answer::Conflict), &object, "somebody else wrote first"),
        (Action::Answer(Answer::Conflict), &status, "somebody else told something first"),
        (Action::Answer(Answer::Internal), &object, "the server is in trouble"),
        (Action::Answer(Answer::Internal), &status, "the server is in trouble after the first half"),
        (Action::DropRequest, &object, "the clusters never arrive"),
        (Action::DropAnswer, &object, "nobody hears that they did"),
        (Action::DropAnswer, &status, "nobody hears that the status did"),
    ];
    for (action, path, why) in table {
        let world = World::new().await;
        world.cluster("a", 10).await;
        world.faults.add(Rule::new(action).verb("patch").path(path).nth(1));
        let running = world.start(|_| {});
        world.create(&world.bindings(), &deployment("web", 2, "1", &aggregated())).await;
        let made = world.decided("web", |made| made.reason == "Success" && made.is_whole()).await;
        assert_eq!(made.pairs(), [("a", 2)], "{why}");
        assert_eq!(world.faults.log().len(), 1, "{why}: or nothing was tried");
        running.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_wrote_meanwhile_is_not_overwritten() {
    let world = World::new().await;
    world.cluster("a", 10).await;
    // Slow enough for others to come in between.
    let slow = Action::Delay(std::time::Duration::from_millis(300));
    world.faults.add(Rule::new(slow).verb("patch").path(&format!("{BINDINGS}/*")).nth(1));
    let running = world.start(|_| {});
    world.create(&world.bindings(), &deployment("web", 2, "1", &aggregated())).await;
    let sent = async {
        while world.faults.log().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, sent).await.expect("it is on its way");
    // Somebody scales it, and somebody else tells how far it is.
    world.change("web", &json!({"spec": {"replicas": 3}})).await;
    let told =
        json!({"conditions": [{"type": "FullyApplied", "status": "False", "reason": "r", "message": "m"}]});
    world.status(&world.bindings(), "web", &told).await;
    let made = world.decided("web", |made| made.pairs() == [("a", 3)]).await;
    let conditions = made.object["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["type"] == "FullyApplied"), "{conditions:?}");
    let revisions = world.all().await;
    assert_eq!(revisions[0]["spec"]["replicas"], 3);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_breaks_misses_nothing() {
    let world = World::new().await;
    world.cluster("a", 100).await;
    let running = world.start(|_| {});
    world.bind(&deployment("before", 1, "1", &aggregated())).await;
    world.faults.disconnect();
    world.create(&world.bindings(), &deployment("meanwhile", 1, "1", &aggregated())).await;
    world.server.end_watches();
    world.faults.reconnect();
    world.decided("meanwhile", |made| made.reason == "Success").await;
    world.faults.add(Rule::new(Action::ExpireWatch { after: 1 }));
    world.server.end_watches();
    for name in ["x", "y", "z"] {
        let made = world.bind(&deployment(name, 1, "1", &aggregated())).await;
        assert_eq!(made.reason, "Success");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_make_no_sense_are_told_so_and_others_are_unaffected() {
    let world = World::new().await;
    world.cluster("a", 100).await;
    // A cluster nobody can read is as if it were not there.
    let odd = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "odd"},
        "spec": {"resourceModels": [{"grade": -1}]}});
    world.create(&world.clusters(), &odd).await;
    let running = world.start(|_| {});
    let mut quantity = deployment("quantity", 1, "much", &aggregated());
    quantity["spec"]["replicaRequirements"]["resourceRequest"]["cpu"] = json!("much");
    let mut placeless = deployment("placeless", 1, "1", &Value::Null);
    placeless["spec"].as_object_mut().unwrap().remove("placement");
    let mut twofold = aggregated();
    twofold["clusterAffinity"] = json!({});
    twofold["clusterAffinities"] = json!([{"affinityName": "x"}]);
    let strange = json!({"replicaScheduling": {"replicaSchedulingType": "Sideways"}});
    for (binding, told) in [
        (quantity, "spec.replicaRequirements.resourceRequest.cpu"),
        (placeless, "the binding has no placement"),
        (deployment("twofold", 1, "1", &twofold), "clusterAffinity and clusterAffinities exclude each other"),
        (deployment("strange", 1, "1", &strange), "expected Duplicated or Divided"),
    ] {
        let made = world.bind(&binding).await;
        assert_eq!((made.status.as_str(), made.reason.as_str()), ("False", "SchedulerError"), "{told}");
        assert!(made.message.contains(told), "{told}: {}", made.message);
        assert_eq!(made.pairs(), []);
    }
    // They are not looked at again, whatever happens to clusters.
    world.count("patch", "/apis/work.karmada.io/**");
    world.count("get", "/apis/work.karmada.io/**");
    for free in [90, 101, 99, 102] {
        world.free("a", free).await;
    }
    let made = world.bind(&deployment("sound", 1, "1", &aggregated())).await;
    assert_eq!(made.pairs(), [("a", 1)]);
    for name in ["quantity", "placeless", "twofold", "strange"] {
        assert_eq!(world.about(name), [], "{name}: it was told once");
    }
    assert_eq!(world.about("sound").len(), 2, "the clusters and the status");
    // One that is mended is decided about like any other.
    let mended = json!({"spec": {"replicaRequirements": {"resourceRequest": {"cpu": "1"}}}});
    world.change("quantity", &mended).await;
    world.decided("quantity", |made| made.reason == "Success").await;
    running.end().await;
}

/// A placement that is weighted and spread like that.
fn spread(constraints: &Value) -> Value {
    let mut placement = weighted();
    placement["spreadConstraints"] = constraints.clone();
    json!({"placement": placement})
}

/// A placement with these weights.
fn weighing(list: &Value) -> Value {
    let mut placement = weighted();
    placement["replicaScheduling"]["weightPreference"] =
        json!({"dynamicWeight": null, "staticWeightList": list});
    json!({"placement": placement})
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_decided_about_and_then_makes_no_sense_keeps_its_clusters_and_is_told_so_once() {
    let world = World::new().await;
    world.cluster("a", 100).await;
    world.cluster("b", 10).await;
    let running = world.start(|_| {});
    let table = [
        ("quantity", json!({"replicaRequirements": {"resourceRequest": {"cpu": "much"}}})),
        ("placeless", json!({"placement": null})),
        (
            "twofold",
            json!({"placement": {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "x"}]}}),
        ),
        ("strange", json!({"placement": {"replicaScheduling": {"replicaSchedulingType": "Sideways"}}})),
        ("negative", json!({"replicas": -3})),
        ("overflowing", json!({"replicas": 3_000_000_000_i64})),
        ("contradictory", spread(&json!([{"spreadByField": "cluster", "minGroups": 5, "maxGroups": 2}]))),
        ("twice", spread(&json!([{"spreadByField": "region", "spreadByLabel": "rack", "minGroups": 1}]))),
        ("below", spread(&json!([{"spreadByField": "cluster", "minGroups": -1}]))),
        ("weightless", weighing(&json!([{"targetCluster": {"clusterNames": ["a"]}, "weight": 0}]))),
        ("nameless", json!({"placement": {"clusterAffinities": [{"affinityName": ""}]}})),
    ];
    for (name, _) in &table {
        let good = world.bind(&deployment(name, 2, "1", &weighted())).await;
        assert_eq!(good.reason, "Success");
        world.decided(name, Decision::is_whole).await;
    }
    world.count("patch", "/apis/work.karmada.io/**");
    world.count("get", "/apis/work.karmada.io/**");
    for (name, nonsense) in &table {
        let before = world.decided(name, |_| true).await.clusters;
        assert_eq!(before.iter().map(|(_, replicas)| replicas).sum::<i64>(), 2, "{name}: {before:?}");
        // It asks for more as well: whoever read only half of it would give it more.
        let mut spec = nonsense.clone();
        if spec["replicas"].is_null() {
            spec["replicas"] = json!(7);
        }
        world.change(name, &json!({"spec": spec})).await;
        let made = world.decided(name, |made| made.reason == "SchedulerError").await;
        assert_eq!((made.status.as_str(), &made.clusters), ("False", &before), "{name}: {}", made.message);
    }
    // Whatever happens elsewhere, nobody asks about them again.
    for free in [9, 8, 7] {
        world.free("b", free).await;
    }
    assert_eq!(world.bind(&deployment("sound", 1, "1", &aggregated())).await.reason, "Success");
    for (name, nonsense) in &table {
        assert_eq!(world.about(name).len(), 1, "{name}: its status, once: {:?}", world.about(name));
        assert_eq!(
            world.decided(name, |_| true).await.clusters.iter().map(|(_, n)| n).sum::<i64>(),
            2,
            "{nonsense}"
        );
    }
    // Whoever mends it gets what it asks for.
    let mended = json!({"spec": {"replicaRequirements": {"resourceRequest": {"cpu": "1"}}}});
    world.change("quantity", &mended).await;
    let made = world.decided("quantity", |made| made.reason == "Success" && made.is_whole()).await;
    assert_eq!(made.clusters.iter().map(|(_, replicas)| replicas).sum::<i64>(), 7);
    running.end().await;
}

/// What was asked of the hub: verb, resource and part.
fn asked(calls: &Calls) -> Vec<(Verb, &'static str, &'static str)> {
    calls.record().into_keys().map(|(call, _)| (call.verb, call.resource.plural, call.subresource)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_leads_and_the_other_goes_on_where_it_ended() {
    let world = World::new().await;
    world.cluster("a", 100).await;
    let start = |identity: &str| {
        let options = lease::Options::new("kube-system", "loadline-fleet");
        let (lease, calls) = (options.check(&options.lock(identity)).unwrap(), Calls::default());
        let counted = calls.clone();
        let running = world.start(move |options| (options.lease, options.calls) = (Some(lease), counted));
        (running, calls)
    };
    let (first, did) = start("first");
    world.bind(&deployment("one", 1, "1", &aggregated())).await;
    let (second, will_do) = start("second");
    world.bind(&deployment("two", 1, "1", &aggregated())).await;
    let writes =
        |calls: &Calls| asked(calls).iter().any(|(verb, of, _)| *verb == Verb::Patch && *of != "events");
    assert_eq!((writes(&did), writes(&will_do)), (true, false), "one that stands by writes nothing");
    first.end().await;
    world.count("patch", "/apis/work.karmada.io/**");
    world.bind(&deployment("three", 1, "1", &aggregated())).await;
    assert!(writes(&will_do));
    assert_eq!((world.about("one"), world.about("two")), (vec![], vec![]), "what was decided stays decided");
    second.end().await;
    // No more than the guide says it must be allowed.
    let bindings = ["resourcebindings", "clusterresourcebindings"];
    for (verb, of, part) in asked(&did).into_iter().chain(asked(&will_do)) {
        let allowed = match verb {
            Verb::List | Verb::Watch => of == "clusters" || bindings.contains(&of),
            Verb::Patch => bindings.contains(&of) || of == "events",
            Verb::Get => bindings.contains(&of) || ["leases", "services"].contains(&of),
            Verb::Create => ["events", "leases"].contains(&of),
            Verb::Update => of == "leases",
            Verb::Delete => false,
        };
        assert!(allowed, "{verb} {of}/{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn room_that_was_given_away_a_moment_ago_is_kept_by_who_comes_next() {
    let world = World::new().await;
    world.cluster("a", 10).await;
    let first = world.start(|_| {});
    let made = world.bind(&deployment("web", 1, "6", &aggregated())).await;
    assert_eq!(made.pairs(), [("a", 1)]);
    world.decided("web", Decision::is_whole).await;
    first.end().await;
    // The cluster does not show it yet. Another one takes over, and has nothing but what is written.
    let second = world.start(|_| {});
    let made = world.bind(&deployment("more", 1, "6", &aggregated())).await;
    assert_eq!((made.reason.as_str(), made.pairs()), ("Unschedulable", vec![]), "{made:?}");
    // Once it is to be seen there, what the cluster says of itself counts.
    let shown = json!({"aggregatedStatus": [{"clusterName": "a", "health": "Healthy", "status": {"readyReplicas": 1}}]});
    world.status(&world.bindings(), "web", &shown).await;
    world.free("a", 11).await;
    world.decided("more", |made| made.pairs() == [("a", 1)]).await;
    second.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn room_is_kept_where_somebody_else_moved_it() {
    let world = World::new().await;
    world.cluster("a", 10).await;
    world.cluster("b", 10).await;
    let running = world.start(|_| {});
    let made = world.bind(&deployment("web", 1, "6", &aggregated())).await;
    assert_eq!(made.pairs(), [("a", 1)]);
    world.decided("web", Decision::is_whole).await;
    world.change("web", &json!({"spec": {"clusters": [{"name": "b", "replicas": 1}]}})).await;
    world.decided("web", |made| made.pairs() == [("b", 1)] && made.is_whole()).await;
    let to = |cluster: &str| {
        let mut placement = aggregated();
        placement["clusterAffinity"] = json!({"clusterNames": [cluster]});
        placement
    };
    let made = world.bind(&deployment("there", 1, "6", &to("b"))).await;
    assert_eq!(
        (made.reason.as_str(), made.pairs()),
        ("Unschedulable", vec![]),
        "it is not to be seen in b yet"
    );
    let made = world.bind(&deployment("here", 1, "6", &to("a"))).await;
    assert_eq!(made.pairs(), [("a", 1)], "nothing is on its way there any more");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_finds_no_room_because_not_everything_was_tried_is_told_so() {
    let world = World::new().await;
    // Of pairs of regions, one cluster each, only y and z have room for ten, and they are the 78th that would be tried.
    let regions = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"].map(|region| (region, 2, 3));
    for (region, clusters, cpu) in regions.into_iter().chain([("y", 1, 5), ("z", 1, 5)]) {
        for number in 0..clusters {
            let spec = json!({"syncMode": "Push", "region": region});
            world.cluster_with(&format!("{region}-{number}"), cpu, &spec).await;
        }
    }
    let running = world.start(|_| {});
    let mut placement = weighted();
    let two = |field: &str| json!({"spreadByField": field, "minGroups": 2, "maxGroups": 2});
    placement["spreadConstraints"] = json!([two("region"), two("cluster")]);
    let made = world.bind(&deployment("web", 10, "1", &placement)).await;
    assert_eq!((made.reason.as_str(), made.pairs()), ("Unschedulable", vec![]), "{made:?}");
    assert!(made.message.contains("64 combinations of groups were tried"), "{}", made.message);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_to_be_told_is_cut_and_told_once() {
    let world = World::new().await;
    // Each cluster has a taint of its own, as long as a taint may be.
    for index in 0..200 {
        let taint = json!({"key": format!("k{index}.{}", "x".repeat(200)), "value": "v".repeat(63), "effect": "NoSchedule"});
        let object = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": format!("c{index}")}, "spec": {"syncMode": "Push", "taints": [taint]}});
        world.create(&world.clusters(), &object).await;
    }
    world.count("patch", &format!("{BINDINGS}/*/status"));
    let running = world.start(|_| {});
    let made = world.bind(&deployment("web", 1, "1", &aggregated())).await;
    assert_eq!((made.reason.as_str(), made.pairs()), ("NoClusterFit", vec![]));
    assert!(made.message.ends_with('…') && made.message.len() <= 32_768, "{} bytes", made.message.len());
    // Looked at again, it says the same.
    world.change("web", &json!({"spec": {"replicas": 2}})).await;
    let again = async {
        while running.metrics.decisions("NoClusterFit") < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::world::PATIENCE, again).await.expect("it is looked at again");
    assert_eq!(world.about("web").len(), 1, "{:?}", world.about("web"));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn room_is_kept_for_a_decision_nobody_heard_back_of() {
    for action in [Action::DropAnswer, Action::DropRequest] {
        let world = World::new().await;
        world.cluster("a", 10).await;
        // Two that do not both fit, and the first write is lost one way or the other.
        world.faults.add(Rule::new(action).verb("patch").path(&format!("{BINDINGS}/*")).nth(1));
        for name in ["one", "two"] {
            world.create(&world.bindings(), &deployment(name, 1, "6", &aggregated())).await;
        }
        let running = world.start(|options| options.patience = std::time::Duration::from_secs(1));
        let one = world.decided("one", Decision::is_whole).await;
        assert_eq!((one.reason.as_str(), one.pairs()), ("Success", vec![("a", 1)]), "{action:?}");
        // The other one tries again and again, and always finds the room taken.
        let tried = async {
            while running.metrics.decisions("Unschedulable") < 3 {
                assert_eq!(world.decided("two", |_| true).await.pairs(), [], "{action:?}");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(crate::world::PATIENCE, tried).await.expect("it tries");
        assert_eq!(world.faults.log().len(), 1, "{action:?}: or nothing was lost");
        running.end().await;
    }
}
