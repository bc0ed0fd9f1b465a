//! How does a test get a real control plane of its own?
//!
//! etcd and kube-apiserver, on request kube-controller-manager and kube-scheduler, on free loopback ports and in a
//! temporary folder. Everything ends with the value, or with the process if that comes first (see [`crate::guard`]).

use crate::certs::{Certs, FRONT_PROXY};
use crate::guard::Guard;
use crate::http::{Client, Events, Reply};
use crate::node::Addresses;
use crate::parts::{self, Missing};
use crate::running::{self, free_ports};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Controllers that make Deployments, disruption budgets, owner references and namespace deletion work.
pub const WORKLOADS: &[&str] = &[
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "namespace-controller",
];

/// Stands for the folder of a control plane that is not there yet.
pub const FOLDER: &str = "{folder}";

/// What the in-memory API server is called among the servers.
const IN_MEMORY: &str = "apiserver";

/// The file of the audit log.
const AUDIT: &str = "audit.log";

/// Everything that changes something, once it is done, without the objects, but evictions with what they ask for. Bindings also when
/// they come, or one that was carried out by a server that was killed before it answered would be nowhere.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [
    {"level": "None", "verbs": ["get", "list", "watch"]},
    {"level": "None", "resources": [{"group": "", "resources": ["events"]}, {"group": "events.k8s.io"},
                                    {"group": "coordination.k8s.io"}]},
    {"level": "Request", "resources": [{"group": "", "resources": ["pods/binding"]}]},
    {"level": "Request", "omitStages": ["RequestReceived"],
     "resources": [{"group": "", "resources": ["pods/eviction"]}]},
    {"level": "Metadata", "omitStages": ["RequestReceived"]}]}"#;

/// The same with Events and leases: whether somebody even tried to write anything.
const AUDIT_POLICY_WHOLE: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [
    {"level": "None", "verbs": ["get", "list", "watch"]},
    {"level": "Metadata", "omitStages": ["RequestReceived"]}]}"#;

/// The bearer token of the one user, who may do everything.
const TOKEN: &str = "loadline-test-admin";

/// Why a real part does not do what a test needs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not on this machine.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The parts are there, but not what they need of this machine.
    #[error("needs {0}")]
    Machine(&'static str),
    /// A server did not get ready.
    #[error("{name} {what}; its last lines:\n{lines}")]
    NotReady {
        /// Which server.
        name: String,
        /// What happened instead.
        what: String,
        /// The end of its log.
        lines: String,
    },
    /// A file, port or process could not be had.
    #[error("cannot {step}: {source}")]
    Io {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// An API server did not take a request.
    #[error("{method} {path} is answered with {status}: {answer}")]
    Refused {
        /// The request's method.
        method: &'static str,
        /// What it was about.
        path: String,
        /// The HTTP status code.
        status: u16,
        /// The body of the answer.
        answer: String,
    },
    /// Keys or certificates could not be made.
    #[error("cannot make certificates: {0}")]
    Certs(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(crate) fn io(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { step, source }
    }

    fn certs(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Certs(Box::new(source))
    }

    pub(crate) fn is_port_taken(&self) -> bool {
        matches!(self, Self::NotReady { lines, .. } if lines.contains("address already in use"))
    }
}

/// What was started, for a test: none means "return", and the reason has been printed.
///
/// # Panics
/// When the parts are there and do not start, or are missing though `LOADLINE_REQUIRE_REAL=1`.
#[expect(clippy::panic, reason = "a part that does not start fails the calling test")]
pub(crate) fn or_skip<T>(started: Result<T, Error>) -> Option<T> {
    match started {
        Ok(started) => Some(started),
        Err(error @ (Error::Missing(_) | Error::Machine(_))) => {
            parts::skip(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// What to start besides etcd and kube-apiserver, and how.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    controllers: Vec<String>,
    scheduler: Option<Vec<String>>,
    scheduler_config: Option<String>,
    apiserver: Vec<String>,
    audit: Option<&'static str>,
    accounts: bool,
    tainted: bool,
    in_memory: Option<PathBuf>,
}

impl Setup {
    /// Starts the in-memory API server of this `loadline` in place of etcd and kube-apiserver. Nothing else changes:
    /// address and kubeconfig are where they are otherwise; the token is not looked at.
    #[must_use]
    pub fn in_memory(mut self, loadline: &Path) -> Self {
        self.in_memory = Some(loadline.to_owned());
        self
    }

    /// Also starts kube-controller-manager with exactly these controllers; [`WORKLOADS`] is the usual list.
    #[must_use]
    pub fn controllers(mut self, names: &[&str]) -> Self {
        self.controllers.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    /// Also starts kube-scheduler, with further flags such as `--config=FILE`.
    #[must_use]
    pub fn scheduler(mut self, flags: &[&str]) -> Self {
        self.scheduler = Some(flags.iter().map(|&flag| flag.to_owned()).collect());
        self
    }

    /// Also starts kube-scheduler, with a `KubeSchedulerConfiguration`. It must name a kubeconfig; [`FOLDER`] in it becomes
    /// this control plane's folder.
    #[must_use]
    pub fn scheduler_config(mut self, text: &str) -> Self {
        self.scheduler.get_or_insert_default();
        self.scheduler_config = Some(text.to_owned());
        self
    }

    /// Has kube-apiserver write down every request that changes something; see [`ControlPlane::audit`].
    #[must_use]
    pub fn audited(mut self) -> Self {
        self.audit = Some(AUDIT_POLICY);
        self
    }

    /// The same, with Events and leases.
    #[must_use]
    pub fn audited_whole(mut self) -> Self {
        self.audit = Some(AUDIT_POLICY_WHOLE);
        self
    }

    /// Pods get the token of their service account and the authority of the API server, as in every cluster. The
    /// controllers for that are started, too.
    #[must_use]
    pub fn service_accounts(mut self) -> Self {
        self.accounts = true;
        self.controllers(&["serviceaccount-controller", "root-ca-certificate-publisher-controller"])
    }

    /// Nodes bear taints by their conditions, as in every cluster: from their beginning until they are ready. The controller
    /// for that is started, too; it takes nodes of which it hears nothing for 50 s for lost.
    #[must_use]
    pub fn tainted_by_condition(mut self) -> Self {
        self.tainted = true;
        self.controllers(&["node-lifecycle-controller"])
    }

    /// Further flags for kube-apiserver.
    #[must_use]
    pub fn apiserver(mut self, flags: &[&str]) -> Self {
        self.apiserver.extend(flags.iter().map(|&flag| flag.to_owned()));
        self
    }

    /// The programs this setup runs.
    #[must_use]
    pub fn needs(&self) -> Vec<&'static str> {
        let mut needs = if self.in_memory.is_some() { vec![] } else { vec!["etcd", "kube-apiserver"] };
        if !self.controllers.is_empty() {
            needs.push("kube-controller-manager");
        }
        if self.scheduler.is_some() {
            needs.push("kube-scheduler");
        }
        needs
    }

    /// Starts everything and waits until it is ready.
    ///
    /// # Errors
    /// When a part is missing or a server does not get ready; the message shows the end of its log.
    pub fn start(&self) -> Result<ControlPlane, Error> {
        parts::find_all(&self.needs())?;
        running::with_free_ports(|| ControlPlane::try_start(self))
    }

    /// [`Setup::start`] for a test: none means "return", and the reason has been printed.
    ///
    /// # Panics
    /// When the parts are there and do not start, or are missing though `LOADLINE_REQUIRE_REAL=1`.
    #[must_use]
    pub fn start_or_skip(&self) -> Option<ControlPlane> {
        or_skip(self.start())
    }
}

/// A running control plane. Dropping it ends every process and removes its folder.
#[derive(Debug)]
pub struct ControlPlane {
    // Declared, and so dropped, before the folder they write to. The API server goes before its store.
    servers: Vec<Guard>,
    /// How kube-apiserver was started, to start it again.
    apiserver: Vec<String>,
    client: Client,
    port: u16,
    scheduler_port: u16,
    url: String,
    authority: String,
    folder: TempDir,
}

impl ControlPlane {
    /// A setup of etcd and kube-apiserver, to be extended.
    #[must_use]
    pub fn setup() -> Setup {
        Setup::default()
    }

    /// etcd and kube-apiserver for a test: none means "return", and the reason has been printed.
    ///
    /// # Panics
    /// As [`Setup::start_or_skip`].
    #[must_use]
    pub fn start_or_skip() -> Option<Self> {
        Self::setup().start_or_skip()
    }

    fn try_start(setup: &Setup) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("loadline-").tempdir();
        let folder = folder.map_err(Error::io("make a temporary folder"))?;
        let [etcd_port, etcd_peer, port, manager_port, scheduler_port] = free_ports()?;
        let certs = Certs::make(Addresses::of(port).server).map_err(Error::certs)?;
        let client = Client::new(&certs.authority_der, TOKEN).map_err(Error::certs)?;
        let in_memory = setup.in_memory.as_deref();
        let client = if in_memory.is_some() { client.plain_at(port) } else { client };
        let scheme = if in_memory.is_some() { "http" } else { "https" };
        let url = format!("{scheme}://127.0.0.1:{port}");
        let files = Files::write(folder.path(), &certs, &url).map_err(Error::io("write the credentials"))?;
        let mut plane = Self {
            servers: Vec::new(),
            apiserver: Vec::new(),
            client,
            port,
            scheduler_port,
            url,
            authority: certs.authority.clone(),
            folder,
        };

        if let Some(loadline) = in_memory {
            plane.start_in_memory(loadline)?;
            plane.start_clients(setup, &files, [manager_port, scheduler_port])?;
            return Ok(plane);
        }
        plane.run("etcd", &etcd_flags(&files, etcd_port, etcd_peer))?;
        plane.wait("etcd", || TcpStream::connect((Ipv4Addr::LOCALHOST, etcd_port)).is_ok())?;

        let mut flags = apiserver_flags(&files, etcd_port, port, setup);
        flags.extend_from_slice(&setup.apiserver);
        if let Some(text) = setup.audit {
            let policy = plane.folder.path().join("audit-policy.json");
            fs::write(policy, text).map_err(Error::io("write the audit policy"))?;
            flags.push(files.flag("audit-policy-file", "audit-policy.json"));
            flags.push(files.flag("audit-log-path", AUDIT));
            // Written before the answer: whoever was answered finds it there.
            flags.push("--audit-log-mode=blocking".into());
        }
        plane.apiserver = flags;
        plane.start_apiserver("kube-apiserver")?;
        plane.start_clients(setup, &files, [manager_port, scheduler_port])?;
        Ok(plane)
    }

    /// The in-memory API server. It asks for no token: client-go sends none without TLS.
    fn start_in_memory(&mut self, loadline: &Path) -> Result<(), Error> {
        let flags = ["apiserver".to_owned(), format!("--listen=127.0.0.1:{}", self.port)];
        let guard = Guard::start(IN_MEMORY, self.folder.path(), loadline, &flags);
        self.servers.insert(0, guard.map_err(Error::io("start a server"))?);
        self.wait(IN_MEMORY, || self.is_ok(self.port, "/readyz"))
    }

    /// Whoever works on the API server, as far as it was asked for.
    fn start_clients(
        &mut self,
        setup: &Setup,
        files: &Files,
        [manager_port, scheduler_port]: [u16; 2],
    ) -> Result<(), Error> {
        let plane = self;
        if !setup.controllers.is_empty() {
            let mut flags = client_flags(files, manager_port);
            flags.push(format!("--controllers={}", setup.controllers.join(",")));
            flags.push(files.flag("root-ca-file", "ca.crt"));
            plane.run("kube-controller-manager", &flags)?;
        }
        if let Some(more) = &setup.scheduler {
            let mut flags = client_flags(files, scheduler_port);
            let kubeconfig = files.kubeconfig.display();
            flags.push(format!("--authentication-kubeconfig={kubeconfig}"));
            flags.push(format!("--authorization-kubeconfig={kubeconfig}"));
            if let Some(text) = &setup.scheduler_config {
                let text = text.replace(FOLDER, &plane.folder.path().display().to_string());
                let written = fs::write(plane.folder.path().join("scheduler.yaml"), text);
                written.map_err(Error::io("write the configuration of kube-scheduler"))?;
                flags.push(files.flag("config", "scheduler.yaml"));
            }
            flags.extend_from_slice(more);
            plane.run("kube-scheduler", &flags)?;
        }
        if !setup.controllers.is_empty() {
            plane.wait("kube-controller-manager", || plane.is_ok(manager_port, "/healthz"))?;
        }
        if setup.scheduler.is_some() {
            plane.wait("kube-scheduler", || plane.is_ok(scheduler_port, "/healthz"))?;
        }
        Ok(())
    }

    fn run(&mut self, name: &'static str, flags: &[String]) -> Result<(), Error> {
        self.run_as(name, name, flags)
    }

    fn run_as(&mut self, name: &str, program: &'static str, flags: &[String]) -> Result<(), Error> {
        let program = parts::find(program)?;
        let guard =
            Guard::start(name, self.folder.path(), &program, flags).map_err(Error::io("start a server"))?;
        self.servers.insert(0, guard);
        Ok(())
    }

    fn start_apiserver(&mut self, name: &str) -> Result<(), Error> {
        let flags = self.apiserver.clone();
        self.run_as(name, "kube-apiserver", &flags)?;
        // Ready comes before the namespace that nearly every test uses.
        self.wait(name, || {
            self.is_ok(self.port, "/readyz") && self.is_ok(self.port, "/api/v1/namespaces/default")
        })
    }

    /// Kills kube-apiserver, does something while it is away, and starts it again at the same address. What was stored
    /// is still there.
    ///
    /// # Errors
    /// When it cannot be killed or does not get ready again.
    pub fn without_apiserver<T>(&mut self, meanwhile: impl FnOnce() -> T) -> Result<T, Error> {
        self.kill_apiserver()?;
        let out = meanwhile();
        self.start_apiserver_again()?;
        Ok(out)
    }

    /// Kills kube-apiserver, also in the middle of what others ask of it.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill_apiserver(&self) -> Result<(), Error> {
        // The newest is first.
        match self.apiservers().next() {
            Some(server) => server.kill().map_err(Error::io("kill a server")),
            None => Ok(()),
        }
    }

    /// Starts kube-apiserver after it was killed, at the same address.
    ///
    /// # Errors
    /// When it does not get ready.
    pub fn start_apiserver_again(&mut self) -> Result<(), Error> {
        // The name of the first keeps its log.
        let count = self.apiservers().count();
        self.start_apiserver(&format!("kube-apiserver-{}", count + 1))
    }

    fn apiservers(&self) -> impl Iterator<Item = &Guard> {
        self.servers.iter().filter(|guard| guard.name().starts_with("kube-apiserver"))
    }

    /// Looks until `ready` says yes, the server ends, or patience does.
    pub(crate) fn wait(&self, name: &str, ready: impl Fn() -> bool) -> Result<(), Error> {
        let Some(server) = self.servers.iter().find(|server| server.name() == name) else { return Ok(()) };
        running::wait(server, ready)
    }

    /// CPU time all its servers that run have used, in seconds; 0 where the system does not tell.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        let ticks = |server: &Guard| -> Option<f64> {
            let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid()?)).ok()?;
            // The name, in brackets, may have blanks; after it the 12th and 13th are its own and the kernel's, in hundredths.
            let fields = stat.rsplit(')').next()?.split_whitespace().skip(11).take(2);
            fields.map(|ticks| ticks.parse::<f64>().ok()).sum()
        };
        self.servers.iter().filter_map(ticks).sum::<f64>() / 100.0
    }

    /// For servers that show this control plane's certificate.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    fn is_ok(&self, port: u16, path: &str) -> bool {
        self.client.send(port, "GET", path, None).is_ok_and(|reply| reply.status == 200)
    }

    /// The port of the API server on this machine.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where pods of a [joined](crate::RealNode::start_joined) node reach the API server.
    #[must_use]
    pub fn address_for_pods(&self) -> SocketAddr {
        (Addresses::of(self.port).server, self.port).into()
    }

    /// The API server's address, such as `https://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The authority that signed the server's certificate, as PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.authority
    }

    /// The same as a file.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// The bearer token of a user who may do everything.
    #[must_use]
    pub fn token(&self) -> &str {
        TOKEN
    }

    /// A kubeconfig file with all of the above.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Where all files of this control plane are: a place for a test's own that goes with it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The log of one server, such as `kube-apiserver`.
    #[must_use]
    pub fn log(&self, name: &str) -> Option<PathBuf> {
        self.servers.iter().find(|server| server.name() == name).map(Guard::log)
    }

    /// What kube-apiserver wrote down of the requests that changed something, one object each, in the order they were
    /// answered; of bindings also, with `stage: RequestReceived`, that they came. Nothing unless it was [asked to](Setup::audited).
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn audit(&self) -> Result<Vec<Value>, Error> {
        let text = match fs::read_to_string(self.folder.path().join(AUDIT)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(Error::io("read the audit log"))?,
        };
        // The last line may not be complete yet.
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// What kube-scheduler counts, as a Prometheus reads it; it has to be [started](Setup::scheduler).
    ///
    /// # Errors
    /// When it cannot be reached or does not answer.
    pub fn scheduler_metrics(&self) -> io::Result<String> {
        let reply = self.client.send(self.scheduler_port, "GET", "/metrics", None)?;
        Ok(String::from_utf8_lossy(&reply.body).into_owned())
    }

    /// kubectl of the same version, pointed here, with its caches in this control plane's folder.
    ///
    /// # Errors
    /// When kubectl is not on this machine.
    pub fn kubectl(&self) -> Result<Command, Missing> {
        let mut kubectl = Command::new(parts::find("kubectl")?);
        kubectl
            .env("KUBECONFIG", self.kubeconfig())
            .env("KUBECACHEDIR", self.folder.path().join("kubectl-cache"));
        Ok(kubectl)
    }

    /// One request as the administrator; see [`Client::send`].
    ///
    /// # Errors
    /// When the server cannot be reached or does not answer.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<Reply> {
        self.client.send(self.port, method, path, body)
    }

    /// Makes an object: `path` is that of its list.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn create(&self, path: &str, object: &Value) -> Result<Value, Error> {
        demand("POST", path, self.request("POST", path, Some(object)))
    }

    /// Reads an object or a list.
    ///
    /// # Errors
    /// As [`ControlPlane::create`].
    pub fn get(&self, path: &str) -> Result<Value, Error> {
        demand("GET", path, self.request("GET", path, None))
    }

    /// Replaces an object, or its status, by one with the version that is replaced.
    ///
    /// # Errors
    /// As [`ControlPlane::create`].
    pub fn replace(&self, path: &str, object: &Value) -> Result<Value, Error> {
        demand("PUT", path, self.request("PUT", path, Some(object)))
    }

    /// Changes an object by a merge patch.
    ///
    /// # Errors
    /// As [`ControlPlane::create`].
    pub fn patch(&self, path: &str, change: &Value) -> Result<Value, Error> {
        demand("PATCH", path, self.request("PATCH", path, Some(change)))
    }

    /// Removes an object.
    ///
    /// # Errors
    /// As [`ControlPlane::create`].
    pub fn delete(&self, path: &str) -> Result<(), Error> {
        demand("DELETE", path, self.request("DELETE", path, None)).map(drop)
    }

    /// Makes or changes an object by server-side apply of a YAML text.
    ///
    /// # Errors
    /// As [`ControlPlane::create`].
    pub fn apply(&self, path: &str, yaml: &str) -> Result<Value, Error> {
        let query = format!("{path}?fieldManager=loadline-testkit&force=true");
        demand("PATCH", path, self.client.apply(self.port, &query, yaml))
    }

    /// The events of a watch, `path` with `watch=1` in its query; see [`Client::watch`].
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn watch(&self, path: &str, patience: Duration) -> io::Result<Events> {
        self.client.watch(self.port, path, patience)
    }

    /// A ready node without a kubelet, with so much to give; `labels` is a JSON object or null.
    ///
    /// # Errors
    /// As [`ControlPlane::create`].
    pub fn add_node(&self, name: &str, labels: &Value, allocatable: &Value) -> Result<(), Error> {
        self.create("/api/v1/nodes", &json!({"metadata": {"name": name, "labels": labels}}))?;
        let status = json!({"status": {"capacity": allocatable, "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}]}});
        self.patch(&format!("/api/v1/nodes/{name}/status"), &status)?;
        Ok(())
    }
}

/// The object in a reply, or why there is none.
pub(crate) fn demand(method: &'static str, path: &str, reply: io::Result<Reply>) -> Result<Value, Error> {
    let reply = reply.map_err(Error::io("ask a server"))?;
    match reply.status {
        200..=299 => Ok(reply.json()),
        status => {
            let answer = String::from_utf8_lossy(&reply.body).into_owned();
            Err(Error::Refused { method, path: path.to_owned(), status, answer })
        }
    }
}

/// What is written before any server starts.
struct Files {
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Files {
    fn write(folder: &Path, certs: &Certs, url: &str) -> io::Result<Self> {
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": folder.join("ca.crt")}}],
            "users": [{"name": "admin", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
            "current-context": "test",
        });
        let tokens = format!("{TOKEN},admin,admin,system:masters\n");
        // JSON is YAML, so every reader of kubeconfig files takes it.
        let files = [
            ("ca.crt", certs.authority.as_str()),
            ("serving.crt", &certs.serving),
            ("serving.key", &certs.serving_key),
            ("front-proxy.crt", &certs.proxy),
            ("front-proxy.key", &certs.proxy_key),
            ("accounts.pub", &certs.accounts_public),
            ("accounts.key", &certs.accounts_private),
            ("tokens.csv", &tokens),
            ("kubeconfig", &kubeconfig.to_string()),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text)?;
        }
        Ok(Self { folder: folder.to_owned(), kubeconfig: folder.join("kubeconfig") })
    }

    fn flag(&self, name: &str, file: &str) -> String {
        format!("--{name}={}", self.folder.join(file).display())
    }

    fn serving(&self, port: u16) -> [String; 4] {
        [
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={port}"),
            self.flag("tls-cert-file", "serving.crt"),
            self.flag("tls-private-key-file", "serving.key"),
        ]
    }
}

fn etcd_flags(files: &Files, port: u16, peer: u16) -> Vec<String> {
    let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
    vec![
        files.flag("data-dir", "etcd"),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        // Nothing here outlives the machine, so nothing needs to survive its crash.
        "--unsafe-no-fsync".into(),
    ]
}

fn apiserver_flags(files: &Files, etcd: u16, port: u16, setup: &Setup) -> Vec<String> {
    let mut flags = Vec::from(files.serving(port));
    flags.extend([
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        files.flag("cert-dir", "apiserver"),
        files.flag("token-auth-file", "tokens.csv"),
        files.flag("service-account-key-file", "accounts.pub"),
        files.flag("service-account-signing-key-file", "accounts.key"),
        "--service-account-issuer=https://loadline.test".into(),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=RBAC".into(),
        "--allow-privileged=true".into(),
        // Aggregated APIs: who asks for them is told by us, and believed because of the certificate.
        files.flag("requestheader-client-ca-file", "ca.crt"),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        files.flag("proxy-client-cert-file", "front-proxy.crt"),
        files.flag("proxy-client-key-file", "front-proxy.key"),
    ]);
    if !setup.tainted {
        // Nobody here would lift the taint of a fresh node.
        flags.push("--disable-admission-plugins=TaintNodesByCondition".into());
    }
    if !setup.accounts {
        // Pods need no service account.
        flags.push("--disable-admission-plugins=ServiceAccount".into());
    }
    flags
}

fn client_flags(files: &Files, port: u16) -> Vec<String> {
    let mut flags = Vec::from(files.serving(port));
    flags.extend([files.flag("kubeconfig", "kubeconfig"), "--leader-elect=false".into()]);
    flags
}
