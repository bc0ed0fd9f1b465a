//! How large and how fast: `cargo xtask bench apiserver`.
//!
//! Starts the server as a process of its own, so that its memory is its own, and loads it over HTTP: 5 000 nodes,
//! 100 000 pods of 2 KB, five watchers that read everything and one that stops reading.
//! `-- --pods 10000` makes it smaller.

use std::io::BufRead as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use loadline_apiserver::ApiServer;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error + Send + Sync>;
type Http = Client<HttpConnector, Full<Bytes>>;

const NAMESPACES: usize = 100;
const WATCHERS: usize = 5;
const CLIENTS: usize = 32;
const POD_BYTES: usize = 2048;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Runtime::new()?;
    if args.first().is_some_and(|a| a == "serve") {
        return runtime.block_on(serve());
    }
    let number = |flag: &str, default: usize| -> Result<usize, Error> {
        let at = args.iter().position(|a| a == flag);
        at.and_then(|i| args.get(i + 1)).map_or(Ok(default), |v| Ok(v.parse()?))
    };
    runtime.block_on(measure(number("--nodes", 5_000)?, number("--pods", 100_000)?))
}

async fn serve() -> Result<(), Error> {
    let listening = ApiServer::default().listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    println!("{}", listening.url());
    listening.serve(std::future::pending()).await?;
    Ok(())
}

/// The server in a process of its own; killed when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Result<Self, Error> {
        let mut child = Command::new(std::env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        let stdout = child.stdout.take().ok_or("the server's output is piped")?;
        std::io::BufReader::new(stdout).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }

    /// Resident memory in MiB.
    fn resident(&self) -> Result<u64, Error> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        let kib: u64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
        Ok(kib / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn send(http: &Http, method: Method, url: String, body: Bytes) -> Result<(u16, Incoming), Error> {
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", "application/json")
        .body(Full::new(body))?;
    let response = http.request(request).await?;
    Ok((response.status().as_u16(), response.into_body()))
}

async fn create(http: &Http, url: String, object: &Value) -> Result<(), Error> {
    let (code, body) = send(http, Method::POST, url, object.to_string().into()).await?;
    let body = body.collect().await?.to_bytes();
    if code == 201 { Ok(()) } else { Err(String::from_utf8_lossy(&body).into_owned().into()) }
}

/// Runs `count` creates from several clients and returns how many succeeded per second.
async fn create_all(
    http: &Http,
    count: usize,
    make: impl Fn(usize) -> (String, Value) + Send + Sync + 'static,
) -> Result<f64, Error> {
    let (next, make) = (Arc::new(AtomicUsize::new(0)), Arc::new(make));
    let start = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (http, next, make) = (http.clone(), next.clone(), make.clone());
        clients.spawn(async move {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= count {
                    return Ok::<(), Error>(());
                }
                let (url, object) = make(i);
                create(&http, url, &object).await?;
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

fn pod(i: usize) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("pod-{i}"),
            "labels": {"app": format!("app-{}", i % 500), "tier": "web", "pod-template-hash": "5d8c7b9f4"},
            "annotations": {"filler": ""},
        },
        "spec": {
            "nodeName": format!("node-{}", i % 5_000),
            "containers": [{
                "name": "main", "image": "registry.example/app:1.2.3",
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            }],
        },
    });
    let filler = POD_BYTES.saturating_sub(pod.to_string().len());
    pod["metadata"]["annotations"]["filler"] = json!("x".repeat(filler));
    pod
}

/// Reads a watch to its end or until `stop` events were seen.
async fn count_events(http: Http, url: String, seen: Arc<AtomicUsize>) -> Result<(), Error> {
    let (_, mut body) = send(&http, Method::GET, url, Bytes::new()).await?;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            seen.fetch_add(data.split(|b| *b == b'\n').count() - 1, Ordering::Relaxed);
        }
    }
    Ok(())
}

async fn measure(nodes: usize, pods: usize) -> Result<(), Error> {
    let server = Server::start()?;
    let base = server.url.clone();
    let http: Http = Client::builder(TokioExecutor::new()).build_http();
    println!("{:<52}{:>12}", "empty server, resident", format!("{} MiB", server.resident()?));

    for i in 0..NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("ns-{i}")}});
        create(&http, format!("{base}/api/v1/namespaces"), &namespace).await?;
    }
    let seen: Vec<Arc<AtomicUsize>> = (0..WATCHERS).map(|_| Arc::default()).collect();
    for counter in &seen {
        let url = format!("{base}/api/v1/pods?watch=true&resourceVersion=0");
        tokio::spawn(count_events(http.clone(), url, counter.clone()));
    }

    let url = base.clone();
    let rate = create_all(&http, nodes, move |i| {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("node-{i}"), "labels": {"zone": format!("z{}", i % 3)}},
            "status": {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
        });
        (format!("{url}/api/v1/nodes"), node)
    })
    .await?;
    println!("{:<52}{:>12}", format!("create {nodes} nodes"), format!("{rate:.0}/s"));

    let url = base.clone();
    let rate = create_all(&http, pods, move |i| {
        (format!("{url}/api/v1/namespaces/ns-{}/pods", i % NAMESPACES), pod(i))
    })
    .await?;
    let what = format!("create {pods} pods, {CLIENTS} clients, {WATCHERS} watchers");
    println!("{what:<52}{:>12}", format!("{rate:.0}/s"));
    println!("{:<52}{:>12}", "resident with all of it", format!("{} MiB", server.resident()?));

    let deadline = Instant::now() + Duration::from_mins(1);
    while seen.iter().any(|s| s.load(Ordering::Relaxed) < pods) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let complete = seen.iter().filter(|s| s.load(Ordering::Relaxed) == pods).count();
    println!("{:<52}{:>12}", "watchers that saw every pod exactly once", format!("{complete} of {WATCHERS}"));

    let start = Instant::now();
    let (_, body) = send(&http, Method::GET, format!("{base}/api/v1/pods"), Bytes::new()).await?;
    let bytes = body.collect().await?.to_bytes().len();
    let what = format!("list {pods} pods ({} MiB)", bytes / 1024 / 1024);
    println!("{what:<52}{:>12}", format!("{} ms", start.elapsed().as_millis()));
    let start = Instant::now();
    let url = format!("{base}/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-7");
    let (_, body) = send(&http, Method::GET, url, Bytes::new()).await?;
    body.collect().await?;
    println!("{:<52}{:>12}", "list the pods of one node", format!("{} ms", start.elapsed().as_millis()));

    stalled_watcher(&server, &http, &base).await
}

/// A watcher that stops reading while the world goes on: memory stays put, and it is told that it missed something.
async fn stalled_watcher(server: &Server, http: &Http, base: &str) -> Result<(), Error> {
    let (_, mut body) = send(
        http,
        Method::GET,
        format!("{base}/api/v1/configmaps?watch=true&resourceVersion=0"),
        Bytes::new(),
    )
    .await?;
    let url = base.to_owned();
    let maps = 60_000;
    let make = move |i: usize| {
        let name = format!("map-{i}");
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "y".repeat(1800)},
        });
        (format!("{url}/api/v1/namespaces/ns-0/configmaps"), object)
    };
    let before = server.resident()?;
    create_all(http, maps, make).await?;
    let growth = server.resident()?.saturating_sub(before);
    println!(
        "{:<52}{:>12}",
        format!("{maps} config maps of 2 KB, one watcher stalled"),
        format!("+{growth} MiB")
    );
    let mut tail = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            tail = [tail.split_off(tail.len().saturating_sub(4096)), data.to_vec()].concat();
        }
    }
    let last = tail.split(|b| *b == b'\n').rfind(|l| !l.is_empty()).unwrap_or_default();
    let last: Value = serde_json::from_slice(last).unwrap_or_default();
    println!(
        "{:<52}{:>12}",
        "what the stalled watcher was told in the end",
        format!("{} {}", last["type"].as_str().unwrap_or("nothing"), last["object"]["code"])
    );
    Ok(())
}
