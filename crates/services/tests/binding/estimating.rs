//! Estimators on real sockets: one that is dead, hangs or talks nonsense loses its own vote and nobody else's.

use crate::serving::{Serving, cluster, members, publish};
use crate::signing::{Authority, Files};
use crate::world::{Decision, PATIENCE, World, aggregated, deployment};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use loadline_services::estimator::Members;
use loadline_services::estimator::server::Options as Serve;
use loadline_services::fleet::binding::Options;
use loadline_services::fleet::estimators::transport::Servers;
use loadline_services::fleet::estimators::{self, Addresses, Tls};
use loadline_services::serve::{Clients, Limits};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Clusters a and b of the first story: ten nodes of 8 cpu, two of 16. By sums 6 replicas of 12 fit in a, by nodes none.
pub fn story() -> Arc<Members> {
    let members = members(&["a", "b"]);
    publish(&members, "a", &cluster(10, "8", &[]));
    publish(&members, "b", &cluster(2, "16", &[]));
    members
}

async fn story_world() -> World {
    let world = World::new().await;
    world.cluster("a", 80).await;
    world.cluster("b", 32).await;
    world
}

/// Asks one estimator for all clusters.
fn asking(address: SocketAddr) -> impl FnOnce(&mut Options) {
    move |options| {
        let addresses = Addresses { shared: Some(address.to_string()), ..Addresses::default() };
        options.estimators = Some(estimators::Options { addresses, ..estimators::Options::default() });
    }
}

/// Somebody who listens, and does that with every connection.
pub async fn listener<F>(each: fn(tokio::net::TcpStream) -> F) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listening = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listening.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listening.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(each(stream));
        }
    });
    (address, count)
}

/// Takes connections and says nothing.
pub async fn hung(stream: tokio::net::TcpStream) {
    let _held = stream;
    std::future::pending::<()>().await;
}

/// Talks, but no gRPC.
async fn garbage(mut stream: tokio::net::TcpStream) {
    let _ = stream.write_all(b"220 mail.example ESMTP\r\n").await;
    std::future::pending::<()>().await;
}

/// Where nobody listens.
pub async fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_counted_not_sums() {
    let (world, serving) = (story_world().await, Serving::start(&story(), Serve::default()).await);
    let running = world.start(asking(serving.address));
    let one = world.bind(&deployment("large", 1, "12", &aggregated())).await;
    assert_eq!(one.pairs(), [("b", 1)], "by sums it would be a, where it would wait for ever");
    let three = world.bind(&deployment("three", 3, "12", &aggregated())).await;
    // One of b's two places is promised.
    assert_eq!(three.message, "Clusters available replicas 1 are not enough to schedule.");
    running.end().await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_dead_hangs_or_talks_nonsense_loses_only_its_own_vote() {
    let (world, serving) = (story_world().await, Serving::start(&story(), Serve::default()).await);
    for name in ["dead", "garbage", "hung"] {
        world.cluster(name, 80).await;
    }
    let fixed = [
        ("a", serving.address),
        ("b", serving.address),
        ("dead", nowhere().await),
        ("garbage", listener(garbage).await.0),
        ("hung", listener(hung).await.0),
    ];
    let fixed = fixed.map(|(name, address)| (name.to_owned(), address.to_string())).into();
    let (asker, questions) = loadline_services::ask::channel();
    let running = world.start(|options| {
        options.asked = questions;
        options.estimators = Some(estimators::Options {
            addresses: Addresses { fixed, ..Addresses::default() },
            timeout: Duration::from_secs(5),
            ..estimators::Options::default()
        });
    });
    let made = world.bind(&deployment("large", 1, "12", &aggregated())).await;
    assert_eq!(
        made.pairs(),
        [("b", 1)],
        "the three say of themselves that six fit; b is known to take two: {made:?}"
    );
    assert_eq!(made.reason, "Success");
    for name in ["dead", "garbage", "hung"] {
        assert!(made.message.contains(&format!("{name}: ")), "{name} is named: {}", made.message);
    }
    assert!(made.message.contains("hung: no answer within 5s"), "{}", made.message);

    let key = loadline_core::object::Key::new("default", "large");
    let told = asker.ask(key).await.unwrap().unwrap();
    let feasible = told["decision"]["feasible"].as_array().unwrap();
    let of = |name: &str| feasible.iter().find(|one| one["name"] == name).unwrap().clone();
    let accurate = |name: &str| {
        let estimates = of(name)["estimates"].as_array().unwrap().clone();
        estimates.into_iter().find(|one| one["by"] == "scheduler-estimator").unwrap()
    };
    assert_eq!((accurate("a")["count"].clone(), accurate("b")["count"].clone()), (json!(0), json!(2)));
    assert!(accurate("b")["ageSeconds"].as_f64().unwrap() >= 0.0);
    assert_eq!(accurate("dead")["count"], json!(null));
    assert!(accurate("hung")["problem"].as_str().unwrap().contains("no answer"));
    assert_eq!((of("b")["confirmed"].clone(), of("hung")["confirmed"].clone()), (json!(true), json!(false)));
    assert_eq!(told["now"]["wouldChange"], false, "{told}");
    running.end().await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hangs_is_not_waited_for_again_and_again() {
    let (world, serving) = (story_world().await, Serving::start(&story(), Serve::default()).await);
    world.cluster("hung", 80).await;
    let (address, connections) = listener(hung).await;
    let running = world.start(|options| {
        let fixed = [("hung".to_owned(), address.to_string())].into();
        let addresses =
            Addresses { fixed, shared: Some(serving.address.to_string()), ..Addresses::default() };
        let timeout = Duration::from_secs(2);
        options.estimators =
            Some(estimators::Options { addresses, timeout, ..estimators::Options::default() });
    });
    for index in 0..40 {
        world.create(&world.bindings(), &deployment(&format!("w-{index}"), 1, "1", &aggregated())).await;
    }
    for index in 0..40 {
        let made = world.decided(&format!("w-{index}"), |_| true).await;
        assert_eq!(made.reason, "Success");
        assert!(!made.pairs().contains(&("hung", 1)), "others are known to have room: {made:?}");
    }
    let metrics = &running.metrics.estimators;
    assert!(metrics.counted("withheld") > 0, "somebody must have gone on without it");
    // Three in a row, and once in a while since.
    assert!(connections.load(Ordering::Relaxed) < 20, "{connections:?} of 40 asked it");
    let told = async {
        while !running.status.readiness().progress.contains("estimator of hung: no answer within 2s") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, told).await.unwrap_or_else(|_| panic!("{:?}", running.status.readiness()));
    running.end().await;
    serving.end().await;
}

/// A placement that means these clusters alone.
fn only(clusters: &[&str]) -> Value {
    let mut placement = aggregated();
    placement["clusterAffinity"] = json!({"clusterNames": clusters});
    placement
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_takes_its_time_holds_up_only_those_that_may_go_to_its_cluster() {
    let (world, serving) = (story_world().await, Serving::start(&story(), Serve::default()).await);
    world.cluster("slow", 80).await;
    let (address, connections) = listener(hung).await;
    let running = world.start(|options| {
        let fixed = [("slow".to_owned(), address.to_string())].into();
        let addresses =
            Addresses { fixed, shared: Some(serving.address.to_string()), ..Addresses::default() };
        // Longer than the test.
        let timeout = 10 * PATIENCE;
        options.estimators =
            Some(estimators::Options { addresses, timeout, ..estimators::Options::default() });
    });
    world.create(&world.bindings(), &deployment("stuck", 1, "1", &only(&["slow"]))).await;
    let asked = async {
        while connections.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, asked).await.expect("it is asked");
    let made = world.bind(&deployment("elsewhere", 1, "1", &only(&["a"]))).await;
    assert_eq!(made.pairs(), [("a", 1)]);
    // One that may go to both waits for the one, and whoever comes after it and may take its room waits for that.
    world.create(&world.bindings(), &deployment("either", 1, "1", &only(&["a", "slow"]))).await;
    world.create(&world.bindings(), &deployment("later", 1, "1", &only(&["a"]))).await;
    let made = world.bind(&deployment("apart", 1, "1", &only(&["b"]))).await;
    assert_eq!(made.pairs(), [("b", 1)]);
    let decided: Vec<Value> =
        world.all().await.into_iter().filter(|binding| Decision::of(binding).is_some()).collect();
    let mut names: Vec<&str> = decided.iter().map(|b| b["metadata"]["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["apart", "elsewhere"]);
    running.end().await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_comes_back_is_noticed_by_who_waits_for_it() {
    let world = World::new().await;
    world.cluster("a", 0).await;
    let address = nowhere().await;
    let running = world.start(asking(address));
    // It says of itself that nothing is free, and nobody can be asked.
    let made = world.bind(&deployment("web", 1, "1", &aggregated())).await;
    assert_eq!(made.reason, "Unschedulable", "{made:?}");
    for index in 0..3 {
        world.bind(&deployment(&format!("more-{index}"), 1, "100", &aggregated())).await;
    }
    let members = story();
    let metrics = loadline_services::ctx::Metrics::default();
    let counts = loadline_services::estimator::metrics::Metrics::new(&members, &metrics);
    let router = loadline_services::estimator::server::routes(members, Serve::default(), counts);
    let listening = loadline_services::serve::listen(address, None, false).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    tokio::spawn(loadline_services::serve::run(listening, router, stop.clone()));
    let made = world.decided("web", |made| made.reason == "Success").await;
    assert_eq!(made.pairs(), [("a", 1)]);
    running.end().await;
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_gets_what_nodes_have_and_no_more() {
    let (world, serving) = (World::new().await, Serving::start(&story(), Serve::default()).await);
    // By sums there would be room for all.
    world.cluster("a", 1000).await;
    world.cluster("b", 1000).await;
    let running = world.start(asking(serving.address));
    for index in 0..60 {
        world.create(&world.bindings(), &deployment(&format!("w-{index}"), 1, "5", &aggregated())).await;
    }
    let mut placed = Vec::new();
    let deciding = async {
        for index in 0..60 {
            placed.extend(world.decided(&format!("w-{index}"), |_| true).await.clusters);
        }
    };
    timeout(PATIENCE, deciding).await.expect("all are decided about");
    let on = |name: &str| {
        placed.iter().filter(|(cluster, _)| cluster == name).map(|(_, count)| count).sum::<i64>()
    };
    assert_eq!((on("a"), on("b")), (10, 6), "10 × ⌊8/5⌋ and 2 × ⌊16/5⌋");
    let metrics = &running.metrics.estimators;
    assert!(metrics.counted("reused") > 0, "who was given nothing since is not asked the same again");
    running.end().await;
    serving.end().await;
}

/// Of two templates: one of 12 cpu and two of 2, in one cluster.
fn set(name: &str) -> Value {
    let mut placement = aggregated();
    placement["spreadConstraints"] = json!([{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]);
    let mut binding = deployment(name, 0, "1", &placement);
    let spec = binding["spec"].as_object_mut().unwrap();
    spec.remove("replicas");
    spec.remove("replicaRequirements");
    let part = |name: &str, replicas: i64, cpu: &str| {
        json!({"name": name, "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": cpu}}})
    };
    spec.insert("components".to_owned(), json!([part("leader", 1, "12"), part("worker", 2, "2")]));
    binding
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_of_several_templates_go_where_nodes_take_whole_ones_and_no_room_is_promised_twice() {
    let (world, serving) = (story_world().await, Serving::start(&story(), Serve::default()).await);
    let running = world.start(asking(serving.address));
    // By sums five sets of 16 fit in a and two in b; by nodes none in a, and one on each node of b.
    for name in ["first", "second"] {
        let made = world.bind(&set(name)).await;
        assert_eq!(made.reason, "Success", "{name}: {}", made.message);
        let parts = json!([{"name": "leader", "replicas": 1}, {"name": "worker", "replicas": 2}]);
        assert_eq!(made.object["spec"]["clusters"], json!([{"name": "b", "components": parts}]), "{name}");
    }
    // Nothing is to be seen of the two in b, and yet there is no room for a third.
    let made = world.bind(&set("third")).await;
    assert_eq!((made.reason.as_str(), made.pairs()), ("Unschedulable", vec![]), "{}", made.message);
    assert!(running.metrics.estimators.counted("answered") > 0);
    world.bindings().delete("first", &DeleteParams::default()).await.unwrap();
    let made = world.decided("third", |made| made.reason == "Success").await;
    assert_eq!(
        made.object["spec"]["clusters"][0]["name"], "b",
        "what was promised to the first is free again"
    );
    running.end().await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn estimators_are_found_by_service_and_talked_to_with_certificates_on_both_sides() {
    let authority = Authority::new("fleet");
    let theirs = Files::new(&authority.sign("estimator"), &authority);
    let ours = Files::new(&authority.sign("scheduler"), &authority);
    let tls = theirs.tls(Clients::Required);
    let serving = Serving::with(&story(), Serve::default(), Some(tls), Limits::default()).await;
    let world = story_world().await;
    let services: Api<k8s_openapi::api::core::v1::Service> =
        Api::namespaced(world.client.clone(), "karmada-system");
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "karmada-system"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    for name in ["a", "b"] {
        let service = json!({"metadata": {"name": format!("karmada-scheduler-estimator-{name}")},
            "spec": {"type": "ExternalName", "externalName": "localhost",
                "ports": [{"port": 10352, "targetPort": serving.address.port()}]}});
        services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    }
    let start = |identity: bool, servers: Servers| {
        let identity = identity.then(|| (ours.path("tls.crt"), ours.path("tls.key")));
        world.start(|options| {
            let tls = Some(Tls { servers, identity });
            options.estimators = Some(estimators::Options { tls, ..estimators::Options::default() });
        })
    };
    let bound = |made: &Decision| made.pairs() == [("b", 1)] && made.message.ends_with("successfully.");
    let running = start(true, Servers::SignedBy(ours.path("ca.crt")));
    let made = world.bind(&deployment("mutual", 1, "12", &aggregated())).await;
    assert!(bound(&made), "{made:?}");
    running.end().await;
    let running = start(true, Servers::Anyone);
    let made = world.bind(&deployment("unverified", 1, "12", &aggregated())).await;
    assert!(bound(&made), "{made:?}");
    running.end().await;
    // Without our certificate we are not let in, and it is told.
    let running = start(false, Servers::SignedBy(ours.path("ca.crt")));
    let made = world.bind(&deployment("stranger", 1, "12", &aggregated())).await;
    assert!(made.message.contains("Without estimates of a: "), "{made:?}");
    running.end().await;
    serving.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_estimator_with_a_certificate_that_has_ended_or_is_for_another_host_is_not_believed() {
    let authority = Authority::new("fleet");
    let (good, world) = ((2000, 4096), story_world().await);
    for (index, (hosts, years, why)) in [
        (&["localhost", "127.0.0.1"][..], (2000, 2001), "xpired"),
        (&["another.example"], good, "not valid for name"),
        (&["localhost", "127.0.0.1"], good, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let files = Files::new(&authority.sign_for("estimator", hosts, years), &authority);
        let tls = files.tls(|_| Clients::Anyone);
        let serving = Serving::with(&story(), Serve::default(), Some(tls), Limits::default()).await;
        let servers = Servers::SignedBy(files.path("ca.crt"));
        let running = world.start(|options| {
            asking(serving.address)(options);
            let asked = options.estimators.as_mut().expect("estimators are asked");
            asked.tls = Some(Tls { servers, identity: None });
        });
        let made = world.bind(&deployment(&format!("w{index}"), 1, "12", &aggregated())).await;
        if why.is_empty() {
            assert!(made.message.ends_with("successfully."), "{made:?}");
        } else {
            assert!(
                made.message.contains("Without estimates of a: ") && made.message.contains(why),
                "{made:?}"
            );
        }
        running.end().await;
        serving.end().await;
    }
}
