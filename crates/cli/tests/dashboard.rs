//! `loadline dashboard` on a real kube-apiserver, with the account of `deploy/dashboard`, and with less.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/account.rs"]
mod account;
#[path = "common/service.rs"]
mod service;

use http::header::{AUTHORIZATION, COOKIE, HOST, LOCATION, SET_COOKIE};
use kube::client::Body;
use loadline_testkit::ControlPlane;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use service::until;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

const SHIPPED: &str = include_str!("../../../deploy/dashboard/dashboard.yaml");
const ACCOUNT: &str = "loadline-dashboard";
const WHO: &str = "system:serviceaccount:kube-system:loadline-dashboard";

/// A running dashboard.
struct Dashboard {
    child: Child,
    address: String,
    /// All it has said.
    log: Arc<Mutex<String>>,
}

impl Dashboard {
    fn start(kubeconfig: &str) -> Self {
        Self::with(&["--kubeconfig", kubeconfig, "--listen", "127.0.0.1:0"])
    }

    fn with(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["--log-format", "json", "-vv", "dashboard", "--scheduler-name", "default-scheduler"])
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let log = Arc::<Mutex<String>>::default();
        let keep = |log: &Mutex<String>, line: &str| log.lock().unwrap().extend([line, "\n"]);
        let mut line = lines.by_ref().inspect(|line| keep(&log, line));
        let line = line.find(|line| line.contains("\"listening\"")).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let (_, address) = said["fields"]["url"].as_str().unwrap().split_once("://").unwrap();
        let address = address.to_owned();
        // Read on, or what it says would hold it up.
        let heard = log.clone();
        std::thread::spawn(move || lines.for_each(|line| keep(&heard, &line)));
        Self { child, address, log }
    }

    fn port(&self) -> u16 {
        self.address.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Asks it to end, as a service manager would; all it has said by then.
    fn ended(mut self) -> String {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap();
        until("the end of the log", || {
            let log = self.log.lock().unwrap();
            log.contains("a request to terminate").then(|| log.clone())
        })
    }

    /// Status and document.
    fn get(&self, path: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A control plane that writes down what is asked of it, with two nodes and a pod that waits for one.
fn plane() -> Option<ControlPlane> {
    let plane = ControlPlane::setup().audited().start_or_skip()?;
    let has = json!({"cpu": "8", "memory": "32Gi", "pods": "110"});
    for name in ["n1", "n2"] {
        plane.add_node(name, &json!({}), &has).unwrap();
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {
        "containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}]}});
    until("the pod", || plane.create("/api/v1/namespaces/default/pods", &pod).ok());
    Some(plane)
}

/// What an account tried to change.
fn changes(plane: &ControlPlane, who: &str) -> BTreeSet<String> {
    let log = plane.audit().unwrap();
    let own = log.iter().filter(|line| line["user"]["username"] == who);
    own.map(|line| format!("{} {}", line["verb"], line["requestURI"])).collect()
}

/// Which sources have a problem, and what it is.
fn problems(shown: &Value) -> BTreeMap<String, String> {
    let sources = shown["sources"].as_array().unwrap().iter();
    sources
        .filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["problem"].as_str()?.to_owned())))
        .collect()
}

#[test]
fn a_read_only_account_shows_a_real_cluster_and_only_reads() {
    let Some(plane) = plane() else { return };
    let kubeconfig = account::least_privilege(&plane, SHIPPED, ACCOUNT);
    let dashboard = Dashboard::start(&kubeconfig);
    let shown = until("the cluster", || {
        let (_, shown) = dashboard.get("/api/v1/cluster");
        (shown["ready"] == true && shown["waitingPods"] == 1).then_some(shown)
    });
    let names: Vec<&str> =
        shown["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["n1", "n2"]);
    assert_eq!(shown["nodes"][0]["cpu"]["allocatable"], 8.0);
    // There is no metrics server: that is said, and nothing is made up.
    let problems = problems(&shown);
    assert_eq!(
        problems.keys().collect::<Vec<_>>(),
        ["measurements"],
        "what is shipped is enough: {problems:?}"
    );
    assert_eq!(shown["nodes"][0]["cpu"]["measured"], Value::Null);
    let (status, told) = dashboard.get("/api/v1/pods/default/web");
    assert_eq!(status, 200, "{told}");
    assert_eq!(told["now"]["nodes"].as_array().unwrap().len(), 2, "{told}");
    let (status, fleet) = dashboard.get("/api/v1/fleet");
    assert_eq!((status, &fleet["apis"][0]["there"]), (200, &json!(false)), "no hub: {fleet}");
    // What happens is told.
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "FailedScheduling",
        "action": "Scheduling", "type": "Warning", "note": "0/2 nodes", "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "x/y", "reportingInstance": "z", "regarding": {"kind": "Pod", "namespace": "default", "name": "web"}});
    plane.create("/apis/events.k8s.io/v1/namespaces/default/events", &event).unwrap();
    until("the event", || {
        let (_, page) = dashboard.get("/api/v1/happenings");
        page["items"].as_array()?.iter().any(|one| one["about"] == "default/web").then_some(())
    });
    drop(dashboard);
    assert_eq!(changes(&plane, WHO), BTreeSet::new(), "it only reads");
}

#[test]
fn an_account_that_is_denied_half_of_the_reads_is_told_so_and_sees_the_rest() {
    let Some(plane) = plane() else { return };
    // Every other rule is left out, but for the first, which has nodes and pods; and of its resources every other one after these.
    let half: Vec<String> = SHIPPED
        .split("\n---\n")
        .map(|text| {
            let mut object: Value = serde_saphyr::from_str(text).unwrap();
            if object["kind"] == "ClusterRole" {
                let rules = object["rules"].as_array().unwrap().clone();
                object["rules"] = rules.into_iter().step_by(2).collect();
                object["rules"][0]["resources"] = json!(["nodes", "pods", "persistentvolumes"]);
            }
            object.to_string()
        })
        .collect();
    let kubeconfig = account::least_privilege(&plane, &half.join("\n---\n"), ACCOUNT);
    let dashboard = Dashboard::start(&kubeconfig);
    let shown = until("the cluster", || {
        let (_, shown) = dashboard.get("/api/v1/cluster");
        (shown["ready"] == true && shown["nodes"].as_array()?.len() == 2).then_some(shown)
    });
    let problems = problems(&shown);
    for kind in ["namespaces", "persistentvolumeclaims", "services"] {
        assert!(problems.get(kind).is_some_and(|said| said.contains("forbidden")), "{kind} in {problems:?}");
    }
    assert!(!problems.contains_key("nodes") && !problems.contains_key("persistentvolumes"), "{problems:?}");
    let (status, told) = dashboard.get("/api/v1/pods/default/web");
    assert_eq!((status, told["now"]["nodes"].as_array().map(Vec::len)), (200, Some(2)), "{told}");
    assert_eq!(dashboard.get("/api/v1/fleet").0, 200);
}

/// A page beyond this machine, over TLS; and who trusts its certificate. What it shows does not matter: there is no cluster.
fn beyond(folder: &Path, token: &str) -> (Dashboard, kube::Client) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let cluster = json!({"name": "c", "cluster": {"server": "http://127.0.0.1:1"}});
    let context = json!({"name": "x", "context": {"cluster": "c", "user": "u"}});
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context],
        "users": [{"name": "u", "user": {}}], "current-context": "x"});
    let dashboard = Dashboard::with(&[
        "--kubeconfig",
        &write("kubeconfig", &kubeconfig.to_string()),
        "--listen",
        "0.0.0.0:0",
        "--cert",
        &write("tls.crt", &certificate.pem()),
        "--key",
        &write("tls.key", &key.serialize_pem()),
        "--token-file",
        &write("token", &format!("{token}\n")),
    ]);
    let port = dashboard.address.rsplit_once(':').unwrap().1;
    let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
    config.root_cert = Some(vec![certificate.der().to_vec()]);
    (dashboard, config.try_into().unwrap())
}

#[tokio::test]
async fn beyond_this_machine_a_token_opens_the_page_over_tls_and_a_cookie_keeps_it_open() {
    let folder = tempfile::tempdir().unwrap();
    let token = "sixteen-letters-or-more";
    let (dashboard, client) = beyond(folder.path(), token);
    let ask = async |path: &str, headers: &[(http::HeaderName, &str)]| {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let (mut parts, body) = request.into_parts();
        parts.headers.extend(headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())));
        client.send(http::Request::from_parts(parts, body)).await.unwrap()
    };
    // A name that leads to this machine is not enough here.
    for headers in [&[][..], &[(HOST, "localhost")], &[(AUTHORIZATION, "Bearer sixteen-letters-or-less")]] {
        for path in ["/", "/api/v1/cluster", "/?token=sixteen-letters-or-less"] {
            let answer = ask(path, headers).await;
            assert_eq!(answer.status(), 401, "{path} {headers:?}");
            assert_eq!(answer.headers().get(SET_COOKIE), None, "{path} {headers:?}");
        }
    }
    let opened = ask(&format!("/?token={token}"), &[]).await;
    assert_eq!(opened.status(), 303);
    assert_eq!(opened.headers()[LOCATION], "./", "without the token, which would be seen there");
    let cookie = opened.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    let (cookie, how) = cookie.split_once("; ").unwrap();
    assert_eq!(how, "HttpOnly; SameSite=Strict; Secure");
    let page = ask("/", &[(COOKIE, cookie)]).await;
    assert_eq!(
        (page.status().as_u16(), &page.headers()["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    assert_eq!(ask("/api/v1/cluster", &[(COOKIE, cookie)]).await.status(), 200);
    assert_eq!(ask("/api/v1/cluster", &[(AUTHORIZATION, &format!("Bearer {token}"))]).await.status(), 200);
    // Who speaks no TLS gets nothing.
    let mut plain = TcpStream::connect(("127.0.0.1", dashboard.port())).unwrap();
    write!(plain, "GET /?token={token} HTTP/1.0\r\n\r\n").unwrap();
    let mut told = Vec::new();
    let _ = plain.read_to_end(&mut told);
    assert!(!told.starts_with(b"HTTP"), "{told:?}");
}

#[tokio::test]
async fn a_token_is_in_no_line_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let token = "sixteen-letters-or-more";
    let (dashboard, client) = beyond(folder.path(), token);
    let bearer = format!("Bearer {token}");
    for (path, shown) in
        [(format!("/?token={token}"), ""), ("/api/v1/cluster".to_owned(), &bearer), (format!("/{token}"), "")]
    {
        let request = http::Request::get(path).header(AUTHORIZATION, shown).body(Body::empty()).unwrap();
        client.send(request).await.unwrap();
    }
    // Refused by its own parts, it is told what for.
    let wrong =
        http::Request::get("/").header(AUTHORIZATION, format!("{bearer}!")).body(Body::empty()).unwrap();
    assert_eq!(client.send(wrong).await.unwrap().status(), 401);
    let log = dashboard.ended();
    assert!(log.contains("\"listening\"") && log.contains("a request to terminate"), "{log}");
    assert!(!log.contains(token), "{log}");
}
