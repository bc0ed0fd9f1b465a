//! The annotator against the in-memory API server and a Prometheus that says what the test wants it to, over a socket.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use loadline_core::load::policy::{Policy, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::Settings;
use loadline_core::load::{publish, taints};
use loadline_core::object::{Key, Meta};
use loadline_services::Ctx;
use loadline_services::annotator::history;
use loadline_services::annotator::{self, Metrics, Monitoring, Options};
use loadline_services::cluster::{Access, Connection, Writer, lease};
use loadline_services::reload::Source;
use loadline_services::serve::probes::Status;
use loadline_services::sources::metrics_api;
use loadline_services::sources::prometheus::{Auth, Target};
use serde_json::{Value, from_value, json};
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(100);

/// How the Prometheus of the test behaves.
#[derive(Clone, Debug, Default)]
enum Mood {
    #[default]
    Answers,
    /// Takes the question, and no more.
    Hangs,
    /// Says that, with that status.
    Says(u16, String),
}

/// A Prometheus with series by the first metric a query names.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    mood: Mood,
    series: HashMap<String, Vec<Value>>,
    asked: Vec<String>,
    headers: Vec<HeaderMap>,
}

impl Fake {
    async fn start(&self) -> Target {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/prom/api/v1/query", post(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Target::new(&format!("http://{address}/prom/")).unwrap()
    }

    fn set(&self, metric: &str, series: &[(&str, &str)], at: Timestamp) {
        let second = at.as_second();
        let value = |(instance, percent): &(&str, &str)| json!({"metric": {"__name__": metric, "instance": instance}, "value": [second + 3, percent]});
        let stamp = |(instance, _): &(&str, &str)| json!({"metric": {"instance": instance, "loadline_stamp": "1"}, "value": [second + 3, second.to_string()]});
        let all = series.iter().map(value).chain(series.iter().map(stamp)).collect();
        self.0.lock().unwrap().series.insert(metric.to_owned(), all);
    }

    fn feels(&self, mood: Mood) {
        self.0.lock().unwrap().mood = mood;
    }
}

async fn answer(State(fake): State<Fake>, headers: HeaderMap, body: String) -> Response {
    let form: HashMap<String, String> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let mood = {
        let mut inside = fake.0.lock().unwrap();
        inside.asked.push(form["query"].clone());
        inside.headers.push(headers);
        inside.mood.clone()
    };
    match mood {
        Mood::Hangs => std::future::pending().await,
        Mood::Says(status, text) => (StatusCode::from_u16(status).unwrap(), text).into_response(),
        Mood::Answers => {
            let metric = form["query"].split('{').next().unwrap().to_owned();
            let result = fake.0.lock().unwrap().series.get(&metric).cloned().unwrap_or_default();
            let data = json!({"resultType": "vector", "result": result});
            json!({"status": "success", "data": data}).to_string().into_response()
        }
    }
}

/// A cluster in memory with an annotator.
struct World {
    server: ApiServer,
    client: Client,
    nodes: Api<Node>,
    metrics: Metrics,
    status: Status,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn monitoring(target: Target) -> Monitoring {
    Monitoring {
        target,
        every: OFTEN,
        timeout: Duration::from_secs(30),
        label: None,
        matchers: Vec::new(),
        expressions: Vec::new(),
    }
}

impl World {
    /// With these nodes, each with its addresses, of 4 CPUs and 8 GiB.
    async fn start(nodes: &[(&str, &[&str])], adjust: impl FnOnce(&mut Options)) -> Self {
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "default");
        let api: Api<Node> = Api::all(client.clone());
        for (name, addresses) in nodes {
            let addresses: Vec<Value> =
                addresses.iter().map(|address| json!({"type": "InternalIP", "address": address})).collect();
            let has = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
            let status = json!({"addresses": addresses, "capacity": has, "allocatable": has});
            let node = from_value(json!({"metadata": {"name": name}, "status": status})).unwrap();
            api.create(&PostParams::default(), &node).await.unwrap();
        }
        Self::begin(server, adjust)
    }

    /// The same cluster with another annotator, after the first has ended.
    async fn restarted(self, adjust: impl FnOnce(&mut Options)) -> Self {
        let server = self.server.clone();
        self.end().await;
        Self::begin(server, adjust)
    }

    fn begin(server: ApiServer, adjust: impl FnOnce(&mut Options)) -> Self {
        let client = Client::new(server.clone(), "default");
        let nodes = Api::all(client.clone());
        let measure = metrics_api::Options { every: OFTEN, of: metrics_api::Of::Nodes };
        let mut options =
            Options { measure: Some(measure), rate: 1000.0, ..Options::new(Access::Client(client.clone())) };
        adjust(&mut options);
        let (metrics, status, stop) =
            (options.metrics.clone(), options.status.clone(), CancellationToken::new());
        let ctx = Ctx::new("test", stop.clone());
        let task = tokio::spawn(async move { annotator::run(ctx, options).await.unwrap() });
        Self { server, client, nodes, metrics, status, stop, task }
    }

    fn measured(&self, node: &str, cpu: &str, memory: &str, at: Timestamp) {
        self.measured_over(Duration::from_secs(15), node, cpu, memory, at);
    }

    fn measured_over(&self, window: Duration, node: &str, cpu: &str, memory: &str, at: Timestamp) {
        measured_over(&self.server, window, node, cpu, memory, at);
    }

    /// Waits until the annotations of a node are as wanted.
    async fn annotated(&self, node: &str, what: &str, wanted: impl Fn(&BTreeMap<String, String>) -> bool) {
        let fits = |object: Option<&Node>| {
            object.and_then(|node| node.metadata.annotations.as_ref()).is_some_and(&wanted)
        };
        let came = timeout(PATIENCE, await_condition(self.nodes.clone(), node, fits)).await;
        if came.is_err() {
            let seen = self.nodes.get(node).await.unwrap().metadata.annotations;
            panic!("{what}: {node} never was like that, but {seen:?}; {:?}", self.status.readiness());
        }
    }

    /// Waits until the taints of a node are these.
    async fn tainted(&self, node: &str, wanted: Option<&str>) {
        let fits = |object: Option<&Node>| {
            object.is_some_and(|node| taint(node).filter(|text| !text.is_empty()).as_deref() == wanted)
        };
        let came = timeout(PATIENCE, await_condition(self.nodes.clone(), node, fits)).await;
        if came.is_err() {
            let seen = taint(&self.nodes.get(node).await.unwrap());
            panic!("{node} never had {wanted:?}, but {seen:?}; {:?}", self.status.readiness());
        }
    }

    /// Waits until readiness says that.
    async fn says(&self, what: &str) {
        let said = async {
            while !self.status.readiness().progress.contains(what) {
                tokio::time::sleep(OFTEN / 4).await;
            }
        };
        let said = timeout(PATIENCE, said).await;
        assert!(said.is_ok(), "never said {what:?}, but {:?}", self.status.readiness());
    }

    async fn event(&self, reason: &str) -> Event {
        let events: Api<Event> = Api::all(self.client.clone());
        let found = async {
            loop {
                let all = events.list(&ListParams::default()).await.unwrap();
                if let Some(event) =
                    all.items.into_iter().find(|event| event.reason.as_deref() == Some(reason))
                {
                    return event;
                }
                tokio::time::sleep(OFTEN / 4).await;
            }
        };
        timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("no Event {reason}"))
    }

    async fn bind(&self, pod: &str, node: &str) {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let object =
            json!({"metadata": {"name": pod}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let created = pods.create(&PostParams::default(), &from_value(object).unwrap()).await.unwrap();
        let uid = created.metadata.uid.unwrap().as_str().into();
        let meta = Meta { key: Key::new("default", pod), uid, revision: None };
        Writer::new(Connection::new(self.client.clone()), "test").bind(&meta, node).await.unwrap();
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
    }
}

fn stamped(share: &str, at: Timestamp) -> String {
    format!("{share},{}", at.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_get_what_both_sources_know_stamped_when_it_was_measured() {
    let fake = Fake::default();
    let now = Timestamp::now();
    let [measured, evaluated] = [40, 20].map(|ago| now - SignedDuration::from_secs(ago));
    fake.set("cpu_usage_avg_5m", &[("10.0.0.1:9100", "99"), ("10.0.0.2:9100", "43.012")], evaluated);
    fake.set("cpu_usage_max_avg_1h", &[("10.0.0.1:9100", "70"), ("[fd00::3]:9100", "12.5")], evaluated);
    fake.set(
        "cpu_usage_max_avg_1d",
        &[("a", "80"), ("a", "81"), ("10.9.9.9:9100", "100"), ("b", "NaN")],
        evaluated,
    );
    let target = fake.start().await;
    let nodes: [(&str, &[&str]); 4] =
        [("a", &["10.0.0.1"]), ("b", &["10.0.0.2"]), ("c", &["fd00::3"]), ("d", &[])];
    let world = World::start(&nodes, |options| options.prometheus = Some(monitoring(target))).await;
    world.measured("a", "1", "2Gi", measured);

    let (short, hour, day) = ("cpu_usage_avg_5m", "cpu_usage_max_avg_1h", "cpu_usage_max_avg_1d");
    world
        .annotated("a", "our own mean, and monitoring's maxima", |a| {
            // 1 of 4 CPUs and 2 of 8 GiB; of two series the larger.
            a.get(short) == Some(&stamped("0.25000", measured))
                && a.get("mem_usage_avg_5m") == Some(&stamped("0.25000", measured))
                && a.get(hour) == Some(&stamped("0.70000", evaluated))
                && a.get(day) == Some(&stamped("0.81000", evaluated))
        })
        .await;
    world
        .annotated("b", "what only monitoring knows", |a| {
            a.get(short) == Some(&stamped("0.43012", evaluated))
        })
        .await;
    world.annotated("c", "an address of IPv6", |a| a.get(hour) == Some(&stamped("0.12500", evaluated))).await;
    let b = world.nodes.get("b").await.unwrap().metadata.annotations.unwrap();
    assert!(!b.contains_key(day), "what is no number is not written: {b:?}");
    let d = world.nodes.get("d").await.unwrap().metadata.annotations.unwrap_or_default();
    assert!(d.is_empty(), "nobody knows anything of it: {d:?}");
    world.says("nodes: 1 fresh, 2 late, 1 unknown").await;
    let text = world.status.readiness().progress;
    assert!(text.contains("prometheus: answered") && text.contains("metrics API: answered"), "{text}");
    world.end().await;
    let asked = fake.0.lock().unwrap().asked.clone();
    let first: std::collections::BTreeSet<&String> = asked.iter().collect();
    assert_eq!(first.len(), 6, "one question per metric, whatever the number of nodes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prometheus_that_hangs_holds_up_neither_other_sources_nor_the_hot_value() {
    let fake = Fake::default();
    fake.feels(Mood::Hangs);
    let target = fake.start().await;
    let world = World::start(&[("a", &[])], |options| options.prometheus = Some(monitoring(target))).await;
    let now = Timestamp::now();
    world.measured("a", "1", "2Gi", now);
    world.annotated("a", "measured", |a| a.contains_key("cpu_usage_avg_5m")).await;
    for pod in ["p1", "p2"] {
        world.bind(pod, "a").await;
    }
    // Two within a minute make it hotter by one.
    world.annotated("a", "hot", |a| a.get("node_hot_value").is_some_and(|text| text.starts_with("1,"))).await;
    assert!(!fake.0.lock().unwrap().asked.is_empty(), "it was asked all the time");
    // A pod that goes does not undo that it came.
    let pods: Api<Pod> = Api::default_namespaced(world.client.clone());
    pods.delete("p1", &DeleteParams::default().grace_period(0)).await.unwrap();
    for pod in ["p3", "p4", "p5"] {
        world.bind(pod, "a").await;
    }
    // ⌊5 ÷ 5⌋ of five minutes and ⌊5 ÷ 2⌋ of one.
    world
        .annotated("a", "hotter", |a| a.get("node_hot_value").is_some_and(|text| text.starts_with("3,")))
        .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_answers_nonsense_is_told_and_comes_back_by_itself() {
    let fake = Fake::default();
    let target = fake.start().await;
    let world = World::start(&[("a", &["10.0.0.1"])], |options| {
        options.prometheus = Some(monitoring(target));
        options.measure = None;
    })
    .await;
    let html = "<html><title>Bad Gateway</title></html>".to_owned();
    let refused = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#.to_owned();
    let huge = "x".repeat(17 << 20);
    for (mood, told) in [
        (Mood::Says(502, html.clone()), "answered 502 Bad Gateway"),
        (Mood::Says(200, html), "not an answer of Prometheus"),
        (Mood::Says(400, refused), "the query is refused: parse error"),
        (Mood::Says(401, String::new()), "answered 401 Unauthorized"),
        (Mood::Says(200, huge), "larger than 16 MiB"),
    ] {
        fake.feels(mood);
        world.says(told).await;
    }
    assert_eq!(world.nodes.get("a").await.unwrap().metadata.annotations, None, "nothing was invented");
    let now = Timestamp::now();
    fake.set("cpu_usage_avg_5m", &[("10.0.0.1", "50")], now);
    fake.feels(Mood::Answers);
    world.annotated("a", "recovered", |a| a.get("cpu_usage_avg_5m") == Some(&stamped("0.50000", now))).await;
    world.says("nodes: 1 late").await;
    let failed = annotator::ByOutcome { source: "prometheus", outcome: "failed" };
    assert!(world.metrics.queries.get_or_create(&failed).get() >= 5);
    world.end().await;
}

/// `limit 0.5` is crane's policy with another first limit; `fewer` is it without the metric of a day.
fn parse(text: &str) -> Result<Rules, String> {
    let mut policy = Policy::default();
    match text.strip_prefix("limit ").and_then(|limit| limit.parse().ok()) {
        Some(limit) => policy.predicates[0].limit = limit,
        None if text == "fewer" => {
            policy.sync.retain(|sync| !sync.name.ends_with("1d"));
            policy.priorities.retain(|priority| !priority.name.ends_with("1d"));
        }
        None => return Err(format!("{text:?} is no policy")),
    }
    Rules::new(policy, Settings::default()).map(|(rules, _)| rules).map_err(|_| "refused".to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_followed_as_it_changes_and_the_last_good_one_stays() {
    let map = |text: &str| json!({"data": {"policy.yaml": text}});
    let source = Source::ConfigMap { key: Key::new("default", "load"), entry: None, parse: parse.into() };
    let world = World::start(&[("a", &[])], |options| options.policy = source).await;
    world.says("there is no ConfigMap default/load").await;
    world.measured("a", "1", "2Gi", Timestamp::now());
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    let mut object = map("limit 0.5");
    object["metadata"] = json!({"name": "load"});
    maps.create(&PostParams::default(), &from_value(object).unwrap()).await.unwrap();
    let day = "cpu_usage_max_avg_1d";
    let first = publish::fingerprint(&parse("limit 0.5").unwrap());
    world
        .annotated("a", "by the first", |a| a.get(publish::POLICY) == Some(&first) && a.contains_key(day))
        .await;
    world
        .annotated("a", "a range that is not full is marked", |a| {
            a.get(publish::WARMING_UP).is_some_and(|marked| marked.contains(day))
        })
        .await;

    let change = |text: &str| {
        let (maps, change) = (maps.clone(), Patch::Merge(map(text)));
        async move { maps.patch("load", &PatchParams::default(), &change).await.unwrap() }
    };
    change("rubbish").await;
    world.says("policy: the last good one is in force; \"rubbish\" is no policy").await;
    let told = world.event("PolicyRefused").await;
    assert_eq!(told.regarding.and_then(|about| about.name).as_deref(), Some("load"));
    assert!(world.status.readiness().ready, "it goes on by the last good one");

    change("fewer").await;
    let fewer = publish::fingerprint(&parse("fewer").unwrap());
    world
        .annotated("a", "what left the policy is taken away", |a| {
            !a.contains_key(day) && a.get(publish::POLICY) == Some(&fewer)
        })
        .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hours_peak_survives_a_restart_and_what_is_damaged_costs_nothing_but_itself() {
    let keep = |options: &mut Options| options.history = Some(history::Options::new("default"));
    let world = World::start(&[("a", &[]), ("b", &[])], keep).await;
    let now = Timestamp::now();
    // Five minutes at 3 of 4 CPUs, a quarter of an hour ago; then little.
    let peak = now - SignedDuration::from_mins(15);
    world.measured_over(Duration::from_mins(5), "a", "3", "1Gi", peak);
    let (hour, short) = ("cpu_usage_max_avg_1h", "cpu_usage_avg_5m");
    world.annotated("a", "the peak", |a| a.get(hour) == Some(&stamped("0.75000", peak))).await;
    let world = world.restarted(keep).await;
    let later = now - SignedDuration::from_secs(10);
    world.measured("a", "1", "1Gi", later);
    world.measured("b", "1", "1Gi", later);
    world
        .annotated("a", "the peak of before, as of now", |a| {
            a.get(hour) == Some(&stamped("0.75000", later))
                && a.get(short) == Some(&stamped("0.25000", later))
        })
        .await;
    let marked = |a: &BTreeMap<String, String>| a.get(publish::WARMING_UP).cloned().unwrap_or_default();
    world.annotated("a", "an hour is not full", |a| marked(a).contains(hour)).await;
    world
        .annotated("b", "nothing of before is known", |a| {
            a.get(hour).is_none_or(|text| text.starts_with("0.25"))
        })
        .await;

    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    let name = "loadline-load-history-0";
    let (client, server) = (world.client.clone(), world.server.clone());
    world.end().await;
    let damaged = json!({"data": {"history": "AAAA"}});
    maps.patch(name, &PatchParams::default(), &Patch::Merge(damaged)).await.unwrap();
    // Measured before it begins: what it finds first is all it knows, whoever is faster.
    let newest = now - SignedDuration::from_secs(5);
    measured_over(&server, Duration::from_secs(15), "a", "2", "1Gi", newest);
    let world = World::begin(server, keep);
    world.annotated("a", "it begins anew", |a| a.get(short) == Some(&stamped("0.50000", newest))).await;
    world.end().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let kept = maps.get(name).await.unwrap().data.unwrap();
    assert_ne!(kept["history"], "AAAA", "and keeps what it knows");
}

fn measured_over(server: &ApiServer, window: Duration, node: &str, cpu: &str, memory: &str, at: Timestamp) {
    let usage =
        BTreeMap::from([("cpu".to_owned(), cpu.to_owned()), ("memory".to_owned(), memory.to_owned())]);
    server.set_node_metrics(node, &usage, Sample { at, window });
}

/// Taints that come and go at once, of every node but one.
fn quick() -> taints::Options {
    taints::Options { dwell: SignedDuration::ZERO, share: Ratio::ONE, ..taints::Options::default() }
}

fn taint(node: &Node) -> Option<String> {
    let taints = node.spec.as_ref()?.taints.as_ref()?;
    let all: Vec<String> = taints
        .iter()
        .map(|taint| format!("{}={}:{}", taint.key, taint.value.clone().unwrap_or_default(), taint.effect))
        .collect();
    Some(all.join(" "))
}

const HIGH: &str = "loadline.dev/load=high:PreferNoSchedule";
const OVER: &str = "loadline.dev/load=over:NoSchedule";

#[tokio::test(flavor = "multi_thread")]
async fn hot_nodes_are_tainted_beside_what_others_wrote_and_all_is_taken_back_at_the_end() {
    let nodes: [(&str, &[&str]); 4] = [("calm", &[]), ("high", &[]), ("over", &[]), ("foreign", &[])];
    let world = World::start(&nodes, |options| options.taints = Some(quick())).await;
    let foreign = json!({"spec": {"taints": [{"key": "team", "value": "a", "effect": "PreferNoSchedule"}]}});
    world.nodes.patch("foreign", &PatchParams::default(), &Patch::Merge(foreign)).await.unwrap();
    // Of a limit of 0.65: 0.5 is 77 %, 0.6 is 92 %, 0.8 is 123 %.
    let now = Timestamp::now();
    for (node, cpu) in [("calm", "2"), ("high", "2400m"), ("over", "3200m"), ("foreign", "3200m")] {
        world.measured(node, cpu, "1Gi", now);
    }
    world.tainted("high", Some(HIGH)).await;
    world.tainted("over", Some(OVER)).await;
    world.tainted("foreign", Some(&format!("team=a:PreferNoSchedule {OVER}"))).await;
    assert_eq!(taint(&world.nodes.get("calm").await.unwrap()), None);
    world.says("taints: 1 high, 2 over, 0 spared").await;
    let told = world.event("LoadTaintAdded").await.note.unwrap();
    assert!(told.contains("cpu_usage_avg_5m 0."), "it says by which figure: {told}");

    let nodes = world.nodes.clone();
    world.end().await;
    for (node, left) in [("high", None), ("over", None), ("foreign", Some("team=a:PreferNoSchedule"))] {
        let seen = taint(&nodes.get(node).await.unwrap()).filter(|text| !text.is_empty());
        assert_eq!(seen.as_deref(), left, "{node}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_ends_leaves_taints_to_the_next_one() {
    let stands = |name: &str| {
        let lease = lease::Options::new("kube-system", "loadline-annotator");
        let checked = lease.check(&lease.lock(name)).unwrap();
        move |options: &mut Options| (options.taints, options.lease) = (Some(quick()), Some(checked))
    };
    let nodes: [(&str, &[&str]); 2] = [("calm", &[]), ("over", &[])];
    let world = World::start(&nodes, stands("first")).await;
    let now = Timestamp::now();
    world.measured("calm", "2", "1Gi", now);
    world.measured("over", "3200m", "1Gi", now);
    world.tainted("over", Some(OVER)).await;
    let before = world.nodes.get("over").await.unwrap();
    let world = world.restarted(stands("second")).await;
    world.says("taints: 0 high, 1 over, 0 spared").await;
    let after = world.nodes.get("over").await.unwrap();
    let since = |node: &Node| node.spec.as_ref().unwrap().taints.clone();
    assert_eq!(since(&after), since(&before), "it was there all the time");
    let told: Api<Event> = Api::all(world.client.clone());
    let told = told.list(&ListParams::default()).await.unwrap().items;
    assert!(told.iter().all(|event| event.reason.as_deref() != Some("LoadTaintRemoved")), "{told:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taints_of_a_run_that_was_killed_are_taken_up_by_the_next_or_taken_away_without_the_flag() {
    for keeps in [true, false] {
        let nodes: [(&str, &[&str]); 3] = [("calm", &[]), ("over", &[]), ("unknown", &[])];
        let world = World::start(&nodes, |options| options.taints = keeps.then(quick)).await;
        // What a run left behind that could not say goodbye.
        let left = json!({"spec": {"taints": [{"key": "loadline.dev/load", "value": "over", "effect": "NoSchedule"}]}});
        for node in ["calm", "over", "unknown"] {
            world.nodes.patch(node, &PatchParams::default(), &Patch::Merge(&left)).await.unwrap();
        }
        let now = Timestamp::now();
        world.measured("calm", "1", "1Gi", now);
        world.measured("over", "3200m", "1Gi", now);
        world.tainted("calm", None).await;
        world.tainted("unknown", None).await;
        world.tainted("over", keeps.then_some(OVER)).await;
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_the_share_of_nodes_is_tainted_and_the_hottest_are() {
    let names: Vec<String> = (0..10).map(|i| format!("n{i}")).collect();
    let nodes: Vec<(&str, &[&str])> = names.iter().map(|name| (&**name, &[][..])).collect();
    let share = Ratio::from_nano(300_000_000);
    let world =
        World::start(&nodes, |options| options.taints = Some(taints::Options { share, ..quick() })).await;
    let now = Timestamp::now();
    // Further apart than the hysteresis, so that it does not matter who is heard of first.
    for (i, name) in names.iter().enumerate() {
        world.measured(name, if i < 7 { "2700m" } else { "3900m" }, "1Gi", now);
    }
    world.says("taints: 0 high, 3 over, 7 spared").await;
    for name in ["n7", "n8", "n9"] {
        world.tainted(name, Some(OVER)).await;
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_come_from_files_and_are_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (token, pair) = (folder.path().join("token"), folder.path().join("pair"));
    std::fs::write(&token, "first\n").unwrap();
    std::fs::write(&pair, "me:open:sesame\n").unwrap();
    let fake = Fake::default();
    let target = fake.start().await;
    let client = |auth| {
        let target = Target { auth, ..target.clone() };
        async move { loadline_services::sources::prometheus::Client::new(target).await.unwrap() }
    };
    let bearer = client(Auth::Bearer(token.clone())).await;
    bearer.query("up", PATIENCE).await.unwrap();
    std::fs::write(&token, "second").unwrap();
    bearer.query("up", PATIENCE).await.unwrap();
    client(Auth::Basic(pair.clone())).await.query("up", PATIENCE).await.unwrap();
    let seen: Vec<String> = fake
        .0
        .lock()
        .unwrap()
        .headers
        .iter()
        .map(|all| all["authorization"].to_str().unwrap().to_owned())
        .collect();
    // base64 of `me:open:sesame`.
    assert_eq!(seen, ["Bearer first", "Bearer second", "Basic bWU6b3BlbjpzZXNhbWU="]);
    std::fs::remove_file(&token).unwrap();
    let problem = bearer.query("up", PATIENCE).await.unwrap_err();
    assert!(problem.contains("token") && !problem.contains("second"), "{problem}");
}
