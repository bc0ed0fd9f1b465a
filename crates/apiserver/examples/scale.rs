//! How large and how fast: `cargo xtask bench apiserver`.
//!
//! Starts the server as a process of its own, so that its memory is its own, and loads it over HTTP: 5 000 nodes,
//! 100 000 pods of 2 KB, five watchers that read everything and one that stops reading. `-- --nodes 100 --pods 2000`
//! makes it smaller. `-- --peer` loads a real kube-apiserver with etcd in the same way, in the same run.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use loadline_apiserver::ApiServer;
use loadline_testkit::ControlPlane;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use std::io::BufRead as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;

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
    let (nodes, pods) = (number("--nodes", 5_000)?, number("--pods", 100_000)?);
    let server = Server::start()?;
    let ours = Target::plain(&server)?;
    println!("in-memory API server");
    runtime.block_on(async {
        measure(&ours, nodes, pods).await?;
        stalled_watcher(&ours).await
    })?;
    if args.iter().any(|a| a == "--peer") {
        drop(server);
        // Without its limits on requests, so that it is as fast as it can be.
        let flags = ["--enable-priority-and-fairness=false", "--max-mutating-requests-inflight=1000"];
        let plane = ControlPlane::setup().apiserver(&flags).start()?;
        println!("\nkube-apiserver with etcd");
        runtime.block_on(measure(&Target::real(&plane)?, nodes, pods))?;
    }
    Ok(())
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
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server under load: where it is and which processes it consists of.
struct Target {
    base: String,
    client: Sender,
    processes: Vec<u32>,
}

#[derive(Clone)]
struct Sender {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    token: String,
}

impl Target {
    fn plain(server: &Server) -> Result<Self, Error> {
        let client = Sender::new(None, String::new())?;
        Ok(Self { base: server.url.clone(), client, processes: vec![server.child.id()] })
    }

    fn real(plane: &ControlPlane) -> Result<Self, Error> {
        let client = Sender::new(Some(plane.ca_pem()), plane.token().to_owned())?;
        Ok(Self { base: plane.url().to_owned(), client, processes: processes_in(plane.folder())? })
    }

    /// Resident memory in MiB.
    fn resident(&self) -> Result<u64, Error> {
        let mut kib = 0;
        for id in &self.processes {
            let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
            let line = status.lines().find(|l| l.starts_with("VmRSS:")).ok_or("no VmRSS")?;
            kib += line.split_whitespace().nth(1).ok_or("no figure")?.parse::<u64>()?;
        }
        Ok(kib / 1024)
    }
}

/// Ids of the processes that run in a folder: the parts of a throw-away control plane.
fn processes_in(folder: &Path) -> Result<Vec<u32>, Error> {
    let parts = ["etcd", "kube-apiserver"];
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(id) = path.file_name().and_then(|n| n.to_str()?.parse::<u32>().ok()) else { continue };
        let here = std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        let mentions = std::fs::read(path.join("cmdline"))
            .is_ok_and(|c| String::from_utf8_lossy(&c).contains(&*folder.to_string_lossy()));
        if (here || mentions) && parts.contains(&name.trim()) {
            found.push(id);
        }
    }
    Ok(found)
}

impl Sender {
    fn new(ca_pem: Option<&str>, token: String) -> Result<Self, Error> {
        let mut roots = rustls::RootCertStore::empty();
        if let Some(pem) = ca_pem {
            roots.add(CertificateDer::from_pem_slice(pem.as_bytes())?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self { http: Client::builder(TokioExecutor::new()).build(connector), token })
    }

    async fn send(&self, method: Method, url: String, body: Bytes) -> Result<(u16, Incoming), Error> {
        let mut request =
            Request::builder().method(method).uri(url).header("content-type", "application/json");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let response = self.http.request(request.body(Full::new(body))?).await?;
        Ok((response.status().as_u16(), response.into_body()))
    }

    async fn create(&self, url: String, object: &Value) -> Result<(), Error> {
        let (code, body) = self.send(Method::POST, url, object.to_string().into()).await?;
        let body = body.collect().await?.to_bytes();
        if code == 201 { Ok(()) } else { Err(String::from_utf8_lossy(&body).into_owned().into()) }
    }

    /// Runs `count` creates from several clients and returns how many succeeded per second.
    async fn create_all(
        &self,
        count: usize,
        make: impl Fn(usize) -> (String, Value) + Send + Sync + 'static,
    ) -> Result<f64, Error> {
        let (next, make) = (Arc::new(AtomicUsize::new(0)), Arc::new(make));
        let start = Instant::now();
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..CLIENTS {
            let (sender, next, make) = (self.clone(), next.clone(), make.clone());
            clients.spawn(async move {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return Ok::<(), Error>(());
                    }
                    let (url, object) = make(i);
                    sender.create(url, &object).await?;
                }
            });
        }
        while let Some(done) = clients.join_next().await {
            done??;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        Ok(count as f64 / start.elapsed().as_secs_f64())
    }

    /// Counts the events of a watch until it ends.
    async fn count_events(self, url: String, seen: Arc<AtomicUsize>) -> Result<(), Error> {
        let (_, mut body) = self.send(Method::GET, url, Bytes::new()).await?;
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                seen.fetch_add(data.split(|b| *b == b'\n').count() - 1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

fn tell(what: &str, figure: &str) {
    println!("  {what:<52}{figure:>14}");
}

fn pod(i: usize, nodes: usize) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("pod-{i}"),
            "labels": {"app": format!("app-{}", i % 500), "tier": "web", "pod-template-hash": "5d8c7b9f4"},
            "annotations": {"filler": ""},
        },
        "spec": {
            "nodeName": format!("node-{}", i % nodes),
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

async fn measure(target: &Target, nodes: usize, pods: usize) -> Result<(), Error> {
    let (client, base) = (&target.client, &target.base);
    let empty = target.resident()?;
    tell("empty, resident", &format!("{empty} MiB"));
    for i in 0..NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("ns-{i}")}});
        client.create(format!("{base}/api/v1/namespaces"), &namespace).await?;
    }
    let seen: Vec<Arc<AtomicUsize>> = (0..WATCHERS).map(|_| Arc::default()).collect();
    for counter in &seen {
        let url = format!("{base}/api/v1/pods?watch=true&resourceVersion=0");
        tokio::spawn(client.clone().count_events(url, counter.clone()));
    }

    let url = base.clone();
    let rate = client
        .create_all(nodes, move |i| {
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("node-{i}"), "labels": {"zone": format!("z{}", i % 3)}},
                "status": {"capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
            });
            (format!("{url}/api/v1/nodes"), node)
        })
        .await?;
    tell(&format!("create {nodes} nodes"), &format!("{rate:.0}/s"));

    let url = base.clone();
    let rate = client
        .create_all(pods, move |i| {
            (format!("{url}/api/v1/namespaces/ns-{}/pods", i % NAMESPACES), pod(i, nodes))
        })
        .await?;
    tell(&format!("create {pods} pods, {CLIENTS} clients, {WATCHERS} watchers"), &format!("{rate:.0}/s"));
    let resident = target.resident()?;
    tell("resident with all of it", &format!("{resident} MiB"));
    let each = (resident.saturating_sub(empty) * 1024 * 10) / (nodes + pods) as u64;
    tell("that is, per object", &format!("{}.{} KiB", each / 10, each % 10));

    let deadline = Instant::now() + Duration::from_mins(2);
    while seen.iter().any(|s| s.load(Ordering::Relaxed) < pods) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let complete = seen.iter().filter(|s| s.load(Ordering::Relaxed) == pods).count();
    tell("watchers that saw every pod exactly once", &format!("{complete} of {WATCHERS}"));

    let start = Instant::now();
    let (_, body) = client.send(Method::GET, format!("{base}/api/v1/pods"), Bytes::new()).await?;
    let bytes = body.collect().await?.to_bytes().len();
    let what = format!("list {pods} pods ({} MiB)", bytes / 1024 / 1024);
    tell(&what, &format!("{} ms", start.elapsed().as_millis()));
    let start = Instant::now();
    let url = format!("{base}/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-7");
    let (_, body) = client.send(Method::GET, url, Bytes::new()).await?;
    body.collect().await?;
    tell("list the pods of one node", &format!("{} ms", start.elapsed().as_millis()));
    Ok(())
}

/// A watcher that stops reading while the world goes on: memory stays put, and it is told that it missed something.
async fn stalled_watcher(target: &Target) -> Result<(), Error> {
    let (client, base) = (&target.client, &target.base);
    let url = format!("{base}/api/v1/configmaps?watch=true&resourceVersion=0");
    let (_, mut body) = client.send(Method::GET, url, Bytes::new()).await?;
    let url = base.clone();
    let maps = 60_000;
    let before = target.resident()?;
    client
        .create_all(maps, move |i| {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{i}")},
                "data": {"x": "y".repeat(1800)},
            });
            (format!("{url}/api/v1/namespaces/ns-0/configmaps"), object)
        })
        .await?;
    let growth = target.resident()?.saturating_sub(before);
    tell(&format!("{maps} config maps of 2 KB, one watcher stalled"), &format!("+{growth} MiB"));
    let mut tail = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            tail = [tail.split_off(tail.len().saturating_sub(4096)), data.to_vec()].concat();
        }
    }
    let last = tail.split(|b| *b == b'\n').rfind(|l| !l.is_empty()).unwrap_or_default();
    let last: Value = serde_json::from_slice(last).unwrap_or_default();
    let told = format!("{} {}", last["type"].as_str().unwrap_or("nothing"), last["object"]["code"]);
    tell("what the stalled watcher was told in the end", &told);
    Ok(())
}
