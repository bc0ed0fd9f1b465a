//! The server: a tower service that answers requests from the store.
//!
//! Everything but reading the body and streaming a watch is synchronous: a request is taken apart
//! ([`crate::request`]), one function per verb answers it, and the answer is written out.

mod admit;
mod binding;
mod body;
mod collect;
mod convert;
mod definitions;
mod delete;
mod discovery;
mod encode;
mod eviction;
mod finish;
mod options;
mod patch;
mod read;
mod reviews;
mod rules;
mod scale;
mod watch;
mod write;

use crate::protobuf;
use crate::registry::{Registry, Resource};
use crate::request::{Path, Query, Target, Verb};
use crate::status::Status;
use crate::store::Store;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header};
use jiff::Timestamp;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::{Context, Poll};
use tokio_util::sync::CancellationToken;

pub(crate) use encode::Form;

/// How a server behaves.
#[derive(Clone)]
pub struct Config {
    /// Events each table remembers; a watcher further behind gets 410.
    pub log_capacity: usize,
    /// Largest request body in bytes.
    pub body_limit: usize,
    /// Token every request must carry; `None` lets everybody in.
    pub token: Option<String>,
    /// Where time comes from.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Seed of uids and generated names; `None` takes one from the clock.
    pub seed: Option<u64>,
    /// How often an idle watch sends a bookmark.
    pub bookmark_every: std::time::Duration,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token stays out of logs.
        f.debug_struct("Config")
            .field("log_capacity", &self.log_capacity)
            .field("body_limit", &self.body_limit)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            log_capacity: 20_000,
            body_limit: 3 * 1024 * 1024,
            token: None,
            clock: Arc::new(Timestamp::now),
            seed: None,
            bookmark_every: std::time::Duration::from_mins(1),
        }
    }
}

/// An in-memory Kubernetes API server. Cloning gives another handle to the same server.
#[derive(Clone)]
pub struct ApiServer(Arc<Inner>);

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the whole world: this ends up in logs.
        f.debug_struct("ApiServer").field("revision", &self.0.store.revision()).finish_non_exhaustive()
    }
}

struct Inner {
    config: Config,
    store: Arc<Store>,
    registry: RwLock<Arc<Registry>>,
    rng: Mutex<StdRng>,
    /// Addresses and node ports given to services so far.
    addresses: AtomicU32,
    node_ports: AtomicU32,
    /// Ends the watches that are open; another one follows it.
    watches: Mutex<CancellationToken>,
}

/// What a handler answers.
enum Answer {
    Json(u16, Bytes),
    /// JSON under a media type of its own, which discovery clients insist on.
    Special(&'static str, Bytes),
    Text(u16, String),
    /// A code and nothing else.
    Bare(u16),
    Stream(Body),
}

impl Answer {
    fn value(code: u16, value: &Value) -> Self {
        Self::Json(code, encode::to_bytes(value))
    }
}

/// One request for a resource, with what it refers to looked up.
struct Call {
    resource: Arc<Resource>,
    target: Target,
    query: Query,
    form: Form,
    content_type: String,
    user_agent: String,
    body: Bytes,
    /// What to tell the client beside the answer, be that a failure or not.
    warnings: RefCell<Vec<String>>,
}

impl Call {
    fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    fn subresource(&self) -> &str {
        self.target.subresource.as_deref().unwrap_or_default()
    }

    fn key(&self) -> crate::store::Key {
        crate::store::key(self.namespace(), self.name())
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl ApiServer {
    /// A server with the namespaces, priority classes and few other objects every cluster has.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let now = (config.clock)();
        let seed = config.seed.unwrap_or_else(|| now.as_microsecond().unsigned_abs());
        let store = Arc::new(Store::new(config.log_capacity));
        let registry = Arc::new(Registry::default());
        for resource in registry.all() {
            store.create_table(&resource.table, &resource.fields);
        }
        let server = Self(Arc::new(Inner {
            config,
            store,
            registry: RwLock::new(registry),
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            addresses: AtomicU32::new(0),
            node_ports: AtomicU32::new(0),
            watches: Mutex::default(),
        }));
        server.bootstrap();
        server
    }

    /// Ends every open watch, as a server does now and then. Clients may go on from where they were.
    pub fn end_watches(&self) {
        std::mem::take(&mut *self.watches()).cancel();
    }

    /// Does what a restart of kube-apiserver after a compaction of etcd does: every open watch ends, and what happened
    /// before is forgotten, so that a watch or a list from an older revision is answered 410. Objects stay, and
    /// revisions go on.
    pub fn restart(&self) {
        self.end_watches();
        self.0.store.compact();
    }

    fn watches(&self) -> MutexGuard<'_, CancellationToken> {
        self.0.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest `resourceVersion`, which counts writes.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.store.revision()
    }

    #[must_use]
    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.0.store
    }

    /// Whether requests must carry a token.
    #[must_use]
    pub fn requires_token(&self) -> bool {
        self.0.config.token.is_some()
    }

    fn bootstrap(&self) {
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.seed("/api/v1/namespaces", &object);
        }
        for (name, value, description) in [
            ("system-cluster-critical", 2_000_000_000, "Needed by the cluster; may move between nodes."),
            ("system-node-critical", 2_000_001_000, "Needed on its node; never moved."),
        ] {
            let object = json!({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                "value": value, "description": description,
            });
            self.seed("/apis/scheduling.k8s.io/v1/priorityclasses", &object);
        }
        // Whom servers beside this one may trust to have checked a client: nobody. They wait until it says so.
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {},
            "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        });
        self.seed("/api/v1/namespaces/kube-system/configmaps", &object);
        let object = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": [admit::SERVICES]},
        });
        self.seed("/apis/networking.k8s.io/v1/servicecidrs", &object);
    }

    /// Creates an object of the server's own; a failure here would be a defect a test shows.
    fn seed(&self, path: &str, object: &Value) {
        let Path::Resource(target) = Path::parse(path) else { return };
        let Some(resource) = self.registry().find(&target.group, &target.version, &target.plural).cloned()
        else {
            return;
        };
        let call = Call {
            resource,
            target,
            query: Query::default(),
            form: Form::Plain,
            content_type: "application/json".to_owned(),
            user_agent: "kube-apiserver".to_owned(),
            body: encode::to_bytes(object),
            warnings: RefCell::default(),
        };
        if let Err(status) = self.create_privileged(&call) {
            tracing::error!(%path, %status, "could not create a built-in object");
        }
    }

    fn registry(&self) -> Arc<Registry> {
        self.0.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn now(&self) -> Timestamp {
        (self.0.config.clock)()
    }

    /// Now as Kubernetes writes times: RFC 3339 in whole seconds.
    fn now_text(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    fn with_rng<T>(&self, f: impl FnOnce(&mut StdRng) -> T) -> T {
        f(&mut self.0.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers one request. Never fails: a failure is a `Status` in the response.
    pub async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: std::fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let mut warnings = Vec::new();
        let answer = match self.admit(&parts.headers, &Path::parse(parts.uri.path())) {
            Ok(()) => match body::read(body, self.0.config.body_limit).await {
                Ok(body) => self.route(&parts, body, &mut warnings),
                Err(status) => Err(status),
            },
            Err(status) => Err(status),
        };
        finish::response(answer, &warnings)
    }

    fn admit(&self, headers: &HeaderMap, path: &Path) -> Result<(), Status> {
        let Some(token) = &self.0.config.token else { return Ok(()) };
        if *path == Path::Health {
            return Ok(());
        }
        let given = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
        let given = given.and_then(|v| v.strip_prefix("Bearer ")).unwrap_or_default();
        if same_secret(given, token) { Ok(()) } else { Err(Status::new(401, "Unauthorized", "Unauthorized")) }
    }

    fn route(
        &self,
        parts: &http::request::Parts,
        body: Bytes,
        warnings: &mut Vec<String>,
    ) -> Result<Answer, Status> {
        let accept = parts.headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
        let path = Path::parse(parts.uri.path());
        let Path::Resource(target) = path else {
            return self.meta_path(&parts.method, &path, accept);
        };
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let registry = self.registry();
        let missing = || finish::no_such_resource(&registry, &target.group);
        let found = registry.find(&target.group, &target.version, &target.plural);
        let resource = found.cloned().ok_or_else(missing)?;
        if resource.namespaced && target.namespace.is_none() && target.name.is_some()
            || !resource.namespaced && target.namespace.is_some()
        {
            return Err(missing());
        }
        check_segments(&target)?;
        let text = |name: header::HeaderName| {
            let value = parts.headers.get(name).and_then(|v| v.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let form = encode::negotiate(accept, query.get("includeObject"))?;
        let (mut content_type, mut body) = (text(header::CONTENT_TYPE), body);
        let below = target.subresource.as_deref();
        if let Some(json) = protobuf::body_text(&content_type, &parts.method, &resource, below, &body)? {
            (content_type, body) = ("application/json".to_owned(), json);
        }
        let call = Call {
            warnings: RefCell::new(deprecation(&resource).into_iter().collect()),
            resource,
            target,
            form,
            content_type,
            user_agent: text(header::USER_AGENT),
            body,
            query,
        };
        let answer = self.dispatch(&parts.method, &call);
        *warnings = call.warnings.into_inner();
        answer
    }

    fn dispatch(&self, method: &Method, call: &Call) -> Result<Answer, Status> {
        let verb = Verb::of(method, &call.target, &call.query).ok_or_else(Status::method_not_allowed)?;
        if !call.subresource().is_empty() {
            return self.dispatch_below(verb, call);
        }
        // Without a namespace one may look at namespaced objects, but not touch them.
        let apart = call.resource.namespaced && call.namespace().is_none();
        if !call.resource.allows(verb.name())
            || apart && matches!(verb, Verb::Create | Verb::DeleteCollection) && !reviewed(&call.resource)
        {
            return Err(Status::method_not_allowed());
        }
        match verb {
            Verb::Get => self.get(call),
            Verb::List => self.list(call),
            Verb::Watch => self.watch(call),
            Verb::Create if reviewed(&call.resource) => self.review(call),
            Verb::Create if call.resource.plural == "bindings" => self.bind(call),
            Verb::Create if call.target.name.is_some() => Err(Status::method_not_allowed()),
            Verb::Create => self.create(call),
            Verb::Update => self.update(call),
            Verb::Patch => self.patch(call),
            Verb::Delete => self.delete(call),
            Verb::DeleteCollection => self.delete_collection(call),
        }
    }

    fn dispatch_below(&self, verb: Verb, call: &Call) -> Result<Answer, Status> {
        let Some(sub) = call.resource.subresource(call.subresource()) else {
            let known = matches!(call.subresource(), "status" | "scale");
            return Err(if call.resource.custom.is_some() && known {
                // Upstream has these paths for every custom resource, and finds nothing there.
                Status::not_found(call.resource.subject(), call.name())
            } else {
                finish::no_such_resource(&self.registry(), &call.resource.group)
            });
        };
        if !sub.verbs.iter().any(|v| v == verb.name()) {
            return Err(Status::method_not_allowed());
        }
        match (sub.name.as_str(), verb) {
            ("scale", Verb::Get) => self.get_scale(call),
            ("scale", Verb::Update | Verb::Patch) => self.write_scale(verb, call),
            ("binding", Verb::Create) => self.bind(call),
            ("eviction", Verb::Create) => self.evict(call),
            ("log", Verb::Get) => self.log(call),
            (_, Verb::Get) => self.get(call),
            (_, Verb::Update) => self.update(call),
            (_, Verb::Patch) => self.patch(call),
            _ => Err(Status::method_not_allowed()),
        }
    }
}

/// Whether objects of this kind are questions, answered and not stored.
fn reviewed(resource: &Resource) -> bool {
    resource.plural.ends_with("reviews")
}

/// Names that would lead astray as part of a path.
fn check_segments(target: &Target) -> Result<(), Status> {
    let parts = [("Name", target.name.as_deref()), ("Namespace", target.namespace.as_deref())];
    for (what, part) in parts {
        let Some(part) = part else { continue };
        let why = match part {
            "." | ".." => format!("may not be '{part}'"),
            _ if part.contains('%') => "may not contain '%'".to_owned(),
            _ => continue,
        };
        return Err(Status::bad_request(format!("{what} parameter invalid: {part:?}: {why}")));
    }
    Ok(())
}

/// What to warn users of a resource about.
fn deprecation(resource: &Resource) -> Option<String> {
    match &resource.custom {
        Some(custom) => custom.deprecation.clone(),
        None if resource.group.is_empty() && resource.plural == "endpoints" => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned())
        }
        None => None,
    }
}

/// Compares in time that depends only on the length.
fn same_secret(given: &str, want: &str) -> bool {
    let differs = given.bytes().zip(want.bytes()).fold(0, |acc, (a, b)| acc | (a ^ b));
    given.len() == want.len() && differs == 0
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.respond(request).await) })
    }
}
