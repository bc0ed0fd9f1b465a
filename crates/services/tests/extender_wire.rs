//! What is answered to whatever may come over the wire? On the in-memory API server, byte for byte.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::Timestamp;
use kube::Client;
use loadline_api::json::Tree;
use loadline_apiserver::ApiServer;
use loadline_core::cluster::Keep;
use loadline_services::Ctx;
use loadline_services::cluster::resource::{NODES, PODS};
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::scheduler::extender::{self, LARGEST};
use loadline_services::scheduler::{self, Options, Phase, Status};
use loadline_services::serve;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

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
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "default");
        let writer = Writer::new(Connection::new(client.clone()), "test");
        for (name, used) in [("calm", "0.1"), ("full", "0.5"), ("hot", "0.9")] {
            let has = json!({"cpu": "10", "memory": "64Gi", "pods": "100"});
            let annotation = format!("{used},{}", Timestamp::now());
            let node = json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "annotations": {"cpu_usage_avg_5m": annotation}},
                "status": {"capacity": has, "allocatable": has}});
            writer.create(NODES, "", &node).await.unwrap();
        }
        let (ctx, address, status, running) = serve(Access::Client(client), keep).await;
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

    fn metric(&self, name: &str) -> String {
        let text = self.ctx.metrics.text().unwrap();
        text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>().join("\n")
    }

    async fn end(self) {
        self.ctx.stop.cancel();
        timeout(PATIENCE, self.running).await.expect("it ends").unwrap().unwrap();
    }
}

async fn serve(
    cluster: Access,
    keep: Keep,
) -> (Ctx, SocketAddr, Status, JoinHandle<Result<(), scheduler::Error>>) {
    let ctx = Ctx::new("test", CancellationToken::new());
    let listening = serve::listen(([127, 0, 0, 1], 0).into(), None, false).await.unwrap();
    let address = listening.address();
    let extender = Some(extender::Options { listening, keep, reserve_for: Duration::from_mins(1) });
    let options = Options { extender, ..Options::new(cluster) };
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
        ("POST", "/filter", asked(&pod, Value::Null), 200, "\"NodeNames\":[]"),
        ("POST", "/filter", asked(&pod, json!(["gone"])), 200, "\"NodeNames\":[],\"FailedNodes\":{\"gone\":\"node(s) were not known"),
        ("POST", "/prioritize", String::new(), 400, "the request cannot be read"),
        ("POST", "/prioritize", "{\"Pod\":7}".into(), 400, "Pod without a name"),
        ("POST", "/prioritize", asked(&pod, json!([])), 200, "[]"),
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
        "{verb=\"filter\",code=\"200\"} 4",
        "{verb=\"filter\",code=\"405\"} 1",
        "{verb=\"filter\",code=\"413\"} 2",
        "{verb=\"filter\",code=\"error\"} 6",
        "{verb=\"prioritize\",code=\"400\"} 2",
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
async fn before_everything_is_read_pods_wait() {
    // Nobody is there.
    let config = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
    let (ctx, address, _, running) =
        serve(Access::Client(Client::try_from(config).unwrap()), Keep::All).await;
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
