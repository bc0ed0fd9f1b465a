//! What is answered to whatever may come over the wire? On the in-memory API server, byte for byte.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use loadline_api::json::Tree;
use loadline_api::scheduler::{Configuration, SchedulerProfile};
use loadline_apiserver::ApiServer;
use loadline_core::cluster::Keep;
use loadline_core::load::Both;
use loadline_core::load::policy::{Policy, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::Settings;
use loadline_core::object::{Key, Meta};
use loadline_services::Ctx;
use loadline_services::cluster::resource::{NODES, PODS};
use loadline_services::cluster::{Access, Connection, Writer, lease};
use loadline_services::reload::Source;
use loadline_services::scheduler::extender::{self, LARGEST};
use loadline_services::scheduler::{self, Options, Phase, Status};
use loadline_services::serve;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running extender, and the cluster it knows.
struct Bench {
    ctx: Ctx,
    writer: Writer,
    address: SocketAddr,
    running: JoinHandle<Result<(), scheduler::Error>>,
}

impl Bench {
    /// `calm` has plenty of room, `full` too little for a pod of two cores, `hot` is over its threshold.
    async fn start(keep: Keep) -> Self {
        Self::start_with(keep, |server| Client::new(server, "default"), Source::Fixed(Box::default())).await
    }

    /// The same; the API server is reached by this client, and these rules hold.
    async fn start_with(
        keep: Keep,
        reach: impl FnOnce(ApiServer) -> Client,
        configuration: Source<Configuration>,
    ) -> Self {
        let server = ApiServer::default();
        let writer = Writer::new(Connection::new(Client::new(server.clone(), "default")), "test");
        for (name, used) in [("calm", "0.1"), ("full", "0.5"), ("hot", "0.9")] {
            let has = json!({"cpu": "10", "memory": "64Gi", "pods": "100"});
            let annotation = format!("{used},{}", Timestamp::now());
            let node = json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "annotations": {"cpu_usage_avg_5m": annotation}},
                "status": {"capacity": has, "allocatable": has}});
            writer.create(NODES, "", &node).await.unwrap();
        }
        let access = Access::Client(reach(server));
        let (ctx, address, status, running) = serve(access, keep, configuration).await;
        let ready = async {
            while status.phase() == Phase::Reading {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, ready).await.unwrap();
        Self { ctx, writer, address, running }
    }

    async fn post(&self, verb: &str, body: &Value) -> (u16, Value) {
        let (status, text) = send(self.address, "POST", verb, body.to_string().as_bytes()).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// A pod in the cluster that asks for so much; as kube-scheduler would send it.
    async fn pod(&self, name: &str, cpu: &str) -> Value {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i",
                "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]}});
        self.writer.create(PODS, "default", &pod).await.unwrap();
        self.get(name).await
    }

    async fn get(&self, name: &str) -> Value {
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.writer.connection().client().request(request).await.unwrap()
    }

    /// Will that node do for a new pod that asks for so much? It is not taken to be on its way.
    async fn has_room(&self, node: &str, cpu: &str) -> bool {
        let pod = json!({"metadata": {"name": "probe", "namespace": "default"}, "spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
        let (status, answer) = self.post("/filter", &json!({"Pod": pod, "NodeNames": [node]})).await;
        assert_eq!((status, &answer["Error"]), (200, &json!("")));
        answer["NodeNames"] == json!([node])
    }

    /// Waits until it will.
    async fn gets_room(&self, node: &str, cpu: &str) {
        let room = async {
            while !self.has_room(node, cpu).await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, room).await.unwrap_or_else(|_| panic!("{node} gets room for {cpu}"));
    }

    /// Sends a request and leaves it to the caller to hang up.
    async fn abandon(&self, verb: &str, body: &Value) -> TcpStream {
        let body = body.to_string();
        let head = format!("POST {verb} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        stream
    }

    /// Binds the pod, as whoever else may.
    async fn bind(&self, pod: &Value, node: &str) {
        self.writer.bind(&meta_of(pod), node).await.unwrap();
    }

    fn metric(&self, name: &str) -> String {
        let text = self.ctx.metrics.text().unwrap();
        text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>().join("\n")
    }

    async fn end(self) {
        self.ctx.stop.cancel();
        timeout(PATIENCE, self.running).await.expect("it ends").unwrap().unwrap();
    }
}

fn meta_of(object: &Value) -> Meta {
    let text = |field: &str| object["metadata"][field].as_str().unwrap();
    Meta { key: Key::new(text("namespace"), text("name")), uid: text("uid").into(), revision: None }
}

type Running = (Ctx, SocketAddr, Status, JoinHandle<Result<(), scheduler::Error>>);

async fn serve(cluster: Access, keep: Keep, configuration: Source<Configuration>) -> Running {
    serve_with(keep, Options { configuration, ..Options::new(cluster) }).await
}

async fn serve_with(keep: Keep, options: Options) -> Running {
    let ctx = Ctx::new("test", CancellationToken::new());
    let listening = serve::listen(([127, 0, 0, 1], 0).into(), None, false).await.unwrap();
    let address = listening.address();
    let extender = Some(extender::Options { listening, keep, reserve_for: Duration::from_mins(1) });
    let options = Options { extender, ..options };
    let status = options.status.clone();
    (ctx.clone(), address, status, tokio::spawn(scheduler::run(ctx, options)))
}

/// One request; its status and body.
async fn send(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> (u16, String) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    raw(address, &[head.as_bytes(), body].concat()).await
}

async fn raw(address: SocketAddr, bytes: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A request that is refused early may not be taken to its end.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_comes_is_answered_so_that_nothing_is_lost() {
    let bench = Bench::start(Keep::All).await;
    let pod = bench.pod("p", "2").await;
    let mut bad = pod.clone();
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("much");
    let asked =
        |pod: &Value, names: Value| json!({"Pod": pod, "Nodes": null, "NodeNames": names}).to_string();
    let good = asked(&pod, json!(["calm"]));

    // Method, path, body; status, and a text in the answer.
    let cases: Vec<(&str, &str, String, u16, &str)> = vec![
        ("GET", "/filter", String::new(), 405, "only POST"),
        ("PUT", "/bind", good.clone(), 405, "only POST"),
        ("POST", "/", good.clone(), 404, "/filter"),
        ("POST", "/filter/", good.clone(), 404, "/filter"),
        ("POST", "/filters", good.clone(), 404, "/filter"),
        ("POST", "/filter?x=y", good.clone(), 200, "\"NodeNames\":[\"calm\"]"),
        ("POST", "/filter", String::new(), 200, "\"Error\":\"the request cannot be read: EOF"),
        ("POST", "/filter", "garbage".into(), 200, "\"Error\":\"the request cannot be read"),
        ("POST", "/filter", "[]".into(), 200, "\"Error\":\"the request"),
        ("POST", "/filter", "{}".into(), 200, "\"Error\":\"the request lacks a pod"),
        ("POST", "/filter", asked(&pod, json!("calm")), 200, "\"Error\":\"the request cannot be read"),
        ("POST", "/filter", asked(&bad, json!(["calm"])), 200, "\"Error\":\"Pod default/p: spec.containers[0]"),
        ("POST", "/filter", asked(&pod, json!([])), 200, "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{}"),
        ("POST", "/filter", asked(&pod, Value::Null), 200, "\"NodeNames\":null,\"FailedNodes\":{},\
            \"FailedAndUnresolvableNodes\":{},\"Error\":\"the request lacks candidates: NodeNames or Nodes\""),
        ("POST", "/filter", asked(&pod, json!(["gone"])), 200, "\"NodeNames\":[],\"FailedNodes\":{\"gone\":\"node(s) were not known"),
        ("POST", "/prioritize", String::new(), 400, "the request cannot be read"),
        ("POST", "/prioritize", "{\"Pod\":7}".into(), 400, "Pod without a name"),
        ("POST", "/prioritize", asked(&pod, json!([])), 200, "[]"),
        ("POST", "/prioritize", asked(&pod, Value::Null), 400, "the request lacks candidates"),
        ("POST", "/prioritize", asked(&pod, json!(["gone"])), 200, "[{\"Host\":\"gone\",\"Score\":0}]"),
        ("POST", "/preempt", "null".into(), 400, "the request"),
        ("POST", "/preempt", json!({"Pod": pod}).to_string(), 200, "{\"NodeNameToMetaVictims\":{}}"),
        ("POST", "/bind", "{".into(), 200, "{\"Error\":\"the request cannot be read"),
        ("POST", "/bind", "{\"PodName\":\"p\"}".into(), 200, "{\"Error\":\"the request lacks PodNamespace"),
        ("POST", "/bind", json!({"PodName": "q", "PodNamespace": "default", "PodUID": "u", "Node": "calm"}).to_string(),
            200, "{\"Error\":\"pod default/q not bound"),
        ("POST", "/bind", json!({"PodName": "p", "PodNamespace": "default", "PodUID": "another", "Node": "calm"}).to_string(),
            200, "{\"Error\":\"pod default/p not bound: its uid is"),
        ("POST", "/bind", json!({"PodName": "p", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": "gone"}).to_string(),
            200, "{\"Error\":\"pod default/p not bound: node \\\"gone\\\" is not known"),
    ];
    for (method, path, body, status, text) in &cases {
        let (got, answer) = send(bench.address, method, path, body.as_bytes()).await;
        assert_eq!(got, *status, "{method} {path} {body}: {answer}");
        assert!(answer.contains(text), "{method} {path} {body}: {text:?} is not in {answer}");
    }
    let head = format!(
        "POST /filter HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        LARGEST + 1
    );
    let (status, _) = raw(bench.address, head.as_bytes()).await;
    assert_eq!(status, 413, "told before it is sent");
    let chunked =
        "POST /filter HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 24, " ".repeat(1 << 24));
    let (status, _) = raw(bench.address, format!("{chunked}{}", chunk.repeat(5)).as_bytes()).await;
    assert_eq!(status, 413, "and when nobody says how much comes");

    let counted = bench.metric("loadline_extender_requests_total");
    for wanted in [
        "{verb=\"filter\",code=\"200\"} 3",
        "{verb=\"filter\",code=\"405\"} 1",
        "{verb=\"filter\",code=\"413\"} 2",
        "{verb=\"filter\",code=\"error\"} 7",
        "{verb=\"prioritize\",code=\"400\"} 3",
        "{verb=\"unknown\",code=\"404\"} 3",
        "{verb=\"bind\",code=\"error\"} 5",
    ] {
        assert!(counted.contains(wanted), "{wanted} is not in\n{counted}");
    }
    assert!(bench.metric("loadline_extender_request_duration_seconds_count").contains("verb=\"preempt\"} 2"));

    // Ten megabytes of whole nodes are a question like any other.
    let large = |name: &str| json!({"metadata": {"name": name, "annotations": {"a": "x".repeat(5 << 20)}}});
    let asked = json!({"Pod": pod, "Nodes": {"items": [large("calm"), large("hot")]}});
    let (status, answer) = bench.post("/filter", &asked).await;
    assert_eq!((status, &answer["Error"], &answer["NodeNames"]), (200, &json!(""), &Value::Null));
    assert!(answer["Nodes"]["items"] == json!([large("calm")]), "the one that will do, as it was sent");
    assert!(answer["FailedAndUnresolvableNodes"]["hot"].is_string());
    bench.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_goes_through_all_verbs() {
    let bench = Bench::start(Keep::All).await;
    let pod = bench.pod("p", "2").await;
    let all = json!(["calm", "full", "hot", "gone"]);
    let asked = json!({"Pod": pod, "Nodes": null, "NodeNames": all});
    let expected = json!({
        "Nodes": null, "NodeNames": ["calm"], "Error": "",
        "FailedNodes": {"full": "node(s) would pass the load line",
                        "gone": "node(s) were not known to the load rules yet"},
        "FailedAndUnresolvableNodes": {"hot": "node(s) had a load over its threshold"},
    });
    assert_eq!(bench.post("/filter", &asked).await, (200, expected.clone()));
    assert_eq!(bench.post("/filter", &asked).await, (200, expected), "the same again");
    assert!(bench.metric("loadline_extender_tentative_reservations").ends_with(" 1"));

    let small = bench.pod("small", "100m").await;
    let asked = json!({"Pod": small, "NodeNames": ["hot", "full", "calm"]});
    let scores =
        json!([{"Host": "hot", "Score": 0}, {"Host": "full", "Score": 9}, {"Host": "calm", "Score": 10}]);
    assert_eq!(bench.post("/prioritize", &asked).await, (200, scores));

    // Whole nodes come back as they were sent.
    let node =
        |name: &str| json!({"metadata": {"name": name, "annotations": {"a": "b"}}, "status": {"x": [1]}});
    let asked = json!({"Pod": small, "Nodes": {"metadata": {}, "items": [node("hot"), node("calm")]}});
    let (status, answer) = bench.post("/filter", &asked).await;
    assert_eq!((status, &answer["Nodes"]["items"]), (200, &json!([node("calm")])));
    assert_eq!(answer["NodeNames"], Value::Null);

    // Bound by us; then it is no longer on its way.
    let bind =
        json!({"PodName": "p", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": "calm"});
    assert_eq!(bench.post("/bind", &bind).await, (200, json!({"Error": ""})));
    assert_eq!(bench.get("p").await["spec"]["nodeName"], "calm");
    assert_eq!(
        bench.post("/bind", &bind).await,
        (200, json!({"Error": ""})),
        "it is there, so nothing went wrong"
    );
    let elsewhere =
        json!({"PodName": "p", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": "full"});
    let (status, answer) = bench.post("/bind", &elsewhere).await;
    assert_eq!(status, 200);
    assert!(answer["Error"].as_str().unwrap().contains("not bound to full"), "{answer}");

    // The room of the one that is bound is released with it; the hot node stays hot, and nobody is added.
    let big = bench.pod("big", "4").await;
    let victims = |uid: &Value| json!({"Pods": [{"UID": uid}], "NumPDBViolations": 2});
    let uid = &pod["metadata"]["uid"];
    let asked = json!({"Pod": big, "NodeNameToMetaVictims": {
        "calm": victims(uid), "hot": victims(uid), "gone": victims(uid), "full": {"Pods": [], "NumPDBViolations": 0}}});
    let expected = json!({"NodeNameToMetaVictims": {"calm": victims(uid)}});
    assert_eq!(bench.post("/preempt", &asked).await, (200, expected.clone()));
    let whole = json!({"Pod": big, "NodeNameToVictims": {"calm": {"Pods": [pod], "NumPDBViolations": 2}}});
    assert_eq!(bench.post("/preempt", &whole).await, (200, expected));
    let asked = json!({"Pod": big, "NodeNameToMetaVictims": {"calm": victims(&small["metadata"]["uid"])}});
    assert_eq!(
        bench.post("/preempt", &asked).await.1,
        json!({"NodeNameToMetaVictims": {}}),
        "that would not help"
    );
    bench.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_question_about_a_pod_is_answered_alike_however_it_is_written() {
    let bench = Bench::start(Keep::All).await;
    let pod = bench.pod("p", "100m").await;
    // As kube-scheduler writes it, the answer is remembered; with a space behind the names it is not.
    let mut answers = Vec::new();
    for space in ["", " "] {
        let asked = |names: &Value| {
            format!("{{\"Pod\":{pod},\"Nodes\":null,\"NodeNames\":{names}{space}}}").into_bytes()
        };
        let all = json!(["full", "hot", "gone", "calm"]);
        let (_, told) = send(bench.address, "POST", "/filter", &asked(&all)).await;
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["NodeNames"], json!(["full", "calm"]));
        answers.push(send(bench.address, "POST", "/prioritize", &asked(&told["NodeNames"])).await);
        // Asked once more, or about others than were told, nobody remembers.
        answers.push(send(bench.address, "POST", "/prioritize", &asked(&told["NodeNames"])).await);
        answers.push(send(bench.address, "POST", "/prioritize", &asked(&all)).await);
    }
    let scores = r#"[{"Host":"full","Score":9},{"Host":"calm","Score":10}]"#;
    let all = r#"[{"Host":"full","Score":9},{"Host":"hot","Score":0},{"Host":"gone","Score":0},{"Host":"calm","Score":10}]"#;
    let expected = [scores, scores, all].map(|text| (200, text.to_owned()));
    assert_eq!(answers, [expected.clone(), expected].concat());
    assert!(bench.metric("loadline_extender_tentative_reservations").ends_with(" 1"));
    bench.end().await;
}

/// Bindings on their way to the API server: each waits to be told whether it arrives.
struct Held(mpsc::UnboundedReceiver<oneshot::Sender<bool>>);

impl Held {
    /// An API server behind which bindings are held, and so many questions about pods get lost.
    fn back(server: ApiServer, lost: usize) -> (Client, Self) {
        let (arrived, held) = mpsc::unbounded_channel();
        let lost = Arc::new(AtomicUsize::new(lost));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, arrived, lost) = (server.clone(), arrived.clone(), lost.clone());
            async move {
                let path = request.uri().path();
                if path.ends_with("/binding") {
                    let (decide, decided) = oneshot::channel();
                    arrived.send(decide).unwrap();
                    if decided.await != Ok(true) {
                        return Err(io::Error::other("cut"));
                    }
                } else if request.method() == Method::GET && path.contains("/pods/") {
                    let left =
                        lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                    if left.is_ok() {
                        return Err(io::Error::other("cut"));
                    }
                }
                server.oneshot(request).await.map_err(|never| match never {})
            }
        });
        (Client::new(service, "default"), Self(held))
    }

    /// The next one.
    async fn next(&mut self) -> oneshot::Sender<bool> {
        timeout(PATIENCE, self.0.recv()).await.expect("a binding").unwrap()
    }
}

/// An extender behind which bindings are held, with a pod of four cores that was asked about.
async fn holding(lost: usize) -> (Arc<Bench>, Held, Value) {
    let mut held = None;
    let reach = |server| {
        let (client, back) = Held::back(server, lost);
        held = Some(back);
        client
    };
    let bench = Bench::start_with(Keep::All, reach, Source::Fixed(Box::default())).await;
    let pod = bench.pod("p", "4").await;
    let asked = json!({"Pod": pod, "NodeNames": ["calm", "full"]});
    assert_eq!(bench.post("/filter", &asked).await.1["NodeNames"], json!(["calm"]));
    (Arc::new(bench), held.unwrap(), pod)
}

fn bind_to(pod: &Value, node: &str) -> Value {
    json!({"PodName": "p", "PodNamespace": "default", "PodUID": pod["metadata"]["uid"], "Node": node})
}

/// `calm` has room for five cores under its line, and for one beside a pod of four.
const ALONE: (&str, &str) = ("calm", "5");

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_was_bound_keeps_its_place_however_many_answers_are_lost() {
    for (arrives, why) in [(true, "it is there"), (false, "it never arrived")] {
        let (bench, mut held, pod) = holding(3).await;
        let bind = bind_to(&pod, "calm");
        let asker = tokio::spawn({
            let (bench, bind) = (bench.clone(), bind.clone());
            async move { bench.post("/bind", &bind).await }
        });
        let first = held.next().await;
        assert!(!bench.has_room(ALONE.0, ALONE.1).await, "its place is kept meanwhile");
        if arrives {
            // It arrives by the way of the answer that is lost.
            bench.bind(&pod, "calm").await;
        }
        first.send(false).unwrap();
        let (status, answer) = timeout(PATIENCE, asker).await.unwrap().unwrap();
        assert_eq!((status, answer["Error"] == ""), (200, arrives), "{why}: {answer}");
        if arrives {
            assert!(!bench.has_room(ALONE.0, ALONE.1).await, "{why}");
        } else {
            bench.gets_room(ALONE.0, ALONE.1).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bind_that_nobody_waits_for_any_more_is_ended_all_the_same() {
    let (bench, mut held, pod) = holding(0).await;
    let abandoned = bench.abandon("/bind", &bind_to(&pod, "calm")).await;
    let first = held.next().await;
    drop(abandoned);
    assert!(!bench.has_room(ALONE.0, ALONE.1).await, "it may still arrive");
    first.send(false).expect("it is waited for");
    bench.gets_room(ALONE.0, ALONE.1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_goes_to_another_node_after_all_is_charged_there_alone() {
    let (bench, mut held, pod) = holding(0).await;
    let abandoned = bench.abandon("/bind", &bind_to(&pod, "calm")).await;
    let first = held.next().await;
    drop(abandoned);
    assert!(!bench.has_room(ALONE.0, ALONE.1).await);
    // Whoever asked has given up and chosen again.
    let asker = tokio::spawn({
        let (bench, bind) = (bench.clone(), bind_to(&pod, "full"));
        async move { bench.post("/bind", &bind).await }
    });
    let second = held.next().await;
    bench.gets_room(ALONE.0, ALONE.1).await;
    assert!(!bench.has_room("full", "1").await);
    // What was asked first comes to nothing, which says nothing about the second.
    first.send(false).expect("it is waited for");
    second.send(true).unwrap();
    assert_eq!(timeout(PATIENCE, asker).await.unwrap().unwrap(), (200, json!({"Error": ""})));
    assert_eq!(bench.get("p").await["spec"]["nodeName"], "full");
    assert!(bench.has_room(ALONE.0, ALONE.1).await && !bench.has_room("full", "1").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_pod_is_judged_by_the_rules_of_the_scheduler_it_asks_for() {
    let line = |share| {
        let targets = Both { cpu: Ratio::from_f64(share), memory: None };
        let settings = Settings { targets, ..Settings::default() };
        Some(Rules::new(Policy::default(), settings).unwrap().0)
    };
    let profiles = vec![
        SchedulerProfile::new("strict", line(0.3)),
        SchedulerProfile::new("lenient", line(0.9)),
        SchedulerProfile::new("blind", None),
    ];
    let configuration = Configuration { profiles, ..Configuration::default() };
    let reach = |server| Client::new(server, "default");
    let bench = Bench::start_with(Keep::All, reach, Source::Fixed(Box::new(configuration))).await;
    for (scheduler, expected, why) in [
        ("strict", json!([]), "1 + 3 of 10 are over 0.3"),
        ("lenient", json!(["calm", "full"]), "5 + 3 are not over 0.9"),
        ("blind", json!(["calm", "full", "hot"]), "it does not look at load"),
        ("default-scheduler", json!([]), "of a name nobody knows: by the first"),
    ] {
        let pod = json!({"metadata": {"name": "probe", "namespace": "default"}, "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}});
        let asked = json!({"Pod": pod, "NodeNames": ["calm", "full", "hot"]});
        assert_eq!(bench.post("/filter", &asked).await.1["NodeNames"], expected, "{scheduler}: {why}");
    }
    bench.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_filter_alone_the_best_are_told_and_the_others_not_mentioned() {
    let bench = Bench::start(Keep::Best).await;
    let pod = bench.pod("p", "100m").await;
    let asked = json!({"Pod": pod, "NodeNames": ["full", "calm", "hot"]});
    let (_, answer) = bench.post("/filter", &asked).await;
    assert_eq!((&answer["NodeNames"], &answer["FailedNodes"]), (&json!(["calm"]), &json!({})));
    let asked = json!({"Pod": pod, "NodeNames": ["full", "hot"]});
    let (_, answer) = bench.post("/filter", &asked).await;
    assert_eq!(answer["NodeNames"], json!(["full"]), "the best of those there are");
    bench.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_that_stand_for_election_only_who_leads_answers() {
    let server = ApiServer::default();
    let client = || Client::new(server.clone(), "default");
    let writer = Writer::new(Connection::new(client()), "test");
    let has = json!({"cpu": "10", "memory": "64Gi", "pods": "100"});
    let annotation = format!("0.1,{}", Timestamp::now());
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "calm", "annotations": {"cpu_usage_avg_5m": annotation}},
        "status": {"capacity": has, "allocatable": has}});
    writer.create(NODES, "", &node).await.unwrap();
    let elected = |identity: &str| {
        let mut election = lease::Options::new("kube-system", "loadline-scheduler");
        election.settings.retry_period = Duration::from_millis(200);
        let lease = Some(election.check(&election.lock(identity)).unwrap());
        Options { lease, ..Options::new(Access::Client(client())) }
    };
    let until = async |status: &Status, phase: Phase| {
        let reached = async {
            while status.phase() != phase {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("it gets {phase:?}"));
    };
    let (leader, first, status, leading) = serve_with(Keep::All, elected("first")).await;
    until(&status, Phase::Active).await;
    let (standby, second, status, standing_by) = serve_with(Keep::All, elected("second")).await;
    until(&status, Phase::Standby).await;

    let pod = json!({"metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}});
    let asked = json!({"Pod": pod, "NodeNames": ["calm"]}).to_string();
    let bind = json!({"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "calm"}).to_string();
    let why = "another loadline leads, this one stands by";
    for (path, body, status) in [
        ("/filter", &asked, 200),
        ("/prioritize", &asked, 503),
        ("/preempt", &asked, 503),
        ("/bind", &bind, 200),
    ] {
        // It would be kept otherwise: whoever asks again may find the leader.
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        let (got, answer) = raw(second, format!("{head}{body}").as_bytes()).await;
        assert!(got == status && answer.contains(why), "{path}: {got} {answer}");
        assert!(status != 200 || answer.contains(&format!("\"Error\":\"{why}\"")), "{path}: {answer}");
    }
    let (_, answer) = send(first, "POST", "/filter", asked.as_bytes()).await;
    assert!(answer.contains("\"NodeNames\":[\"calm\"]"), "{answer}");

    leader.stop.cancel();
    timeout(PATIENCE, leading).await.expect("it ends").unwrap().unwrap();
    until(&status, Phase::Active).await;
    let (_, answer) = send(second, "POST", "/filter", asked.as_bytes()).await;
    assert!(answer.contains("\"NodeNames\":[\"calm\"]"), "{answer}");
    standby.stop.cancel();
    timeout(PATIENCE, standing_by).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn before_everything_is_read_pods_wait() {
    // Nobody is there.
    let config = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
    let (ctx, address, _, running) =
        serve(Access::Client(Client::try_from(config).unwrap()), Keep::All, Source::Fixed(Box::default()))
            .await;
    let pod =
        json!({"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}});
    assert!(loadline_api::pod::read(&Tree::from(&pod)).is_ok());
    let asked = json!({"Pod": pod, "NodeNames": ["calm"]}).to_string();
    let (status, answer) = send(address, "POST", "/filter", asked.as_bytes()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((status, &answer["Error"]), (200, &json!("loadline is still reading the cluster")));
    assert_eq!(answer["NodeNames"], Value::Null);
    assert_eq!(send(address, "POST", "/prioritize", asked.as_bytes()).await.0, 503);
    assert_eq!(send(address, "POST", "/preempt", asked.as_bytes()).await.0, 503);
    let bind = json!({"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n"}).to_string();
    let (status, answer) = send(address, "POST", "/bind", bind.as_bytes()).await;
    assert_eq!((status, answer.as_str()), (200, "{\"Error\":\"loadline is still reading the cluster\"}"));
    ctx.stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
}
