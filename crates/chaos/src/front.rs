//! What stands before the API server: it notes every write that is carried out, answers what a metrics server would, and is
//! where components die.

mod flaws;

use crate::dice::Dice;
use crate::floor::Floor;
use crate::history::Entry;
use crate::plan::{Flaw, Plan};
use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use loadline_apiserver::ApiServer;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tower::{Service, ServiceExt as _};

/// The server, and everything noted of it. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    pub server: ApiServer,
    noted: Arc<Mutex<Noted>>,
    pub floor: Arc<Mutex<Floor>>,
    pub start: Instant,
    flaws: Arc<[Flaw]>,
    wire: Arc<Mutex<Wire>>,
    /// A server nobody else sees.
    aside: ApiServer,
}

#[derive(Debug, Default)]
struct Noted {
    history: Vec<Entry>,
    /// Everything that was ever written and is there, by path.
    objects: BTreeMap<String, Arc<Value>>,
}

/// What happens to requests on their way.
#[derive(Debug)]
pub(crate) struct Wire {
    /// In how many of a hundred cases writes of a component arrive twice.
    pub doubled: BTreeMap<String, u64>,
    /// In how many of a hundred cases they arrive late, and by how many milliseconds.
    pub late: BTreeMap<String, (u64, u64)>,
    dice: Dice,
    /// What has been asked once.
    asked: BTreeSet<String>,
}

/// Which of two answers a component hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    First,
    Second,
}

impl Wire {
    /// Does this write arrive twice?
    fn twice(&mut self, who: &str) -> Option<Heard> {
        let percent = self.doubled.get(who).copied()?;
        let (hit, second) = (self.dice.roll() % 100 < percent, self.dice.once_in(2));
        hit.then_some(if second { Heard::Second } else { Heard::First })
    }

    /// By how much is this write late?
    fn late(&mut self, who: &str) -> Option<Duration> {
        let (percent, by) = self.late.get(who).copied()?;
        (self.dice.roll() % 100 < percent).then(|| Duration::from_millis(by))
    }
}

/// Is a component alive?
#[derive(Debug, Default)]
pub(crate) struct Life {
    state: Mutex<State>,
    died: Notify,
    stops: Notify,
}

#[derive(Debug, Default)]
struct State {
    dead: bool,
    /// At the next write: before (`false`) or after the server has seen it.
    at_write: Option<bool>,
    /// The same, at the next write that is no lease.
    at_act: Option<bool>,
    /// Is it asked to end?
    stopped: bool,
}

impl Life {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn kill(&self) {
        self.lock().dead = true;
        self.died.notify_one();
    }

    pub(crate) fn kill_at_write(&self, after: bool) {
        self.lock().at_write = Some(after);
    }

    pub(crate) fn kill_at_act(&self, after: bool) {
        self.lock().at_act = Some(after);
    }

    /// Asks it to end.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.stops.notify_one();
    }

    pub(crate) async fn stops(&self) {
        self.stops.notified().await;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.lock().dead
    }

    pub(crate) async fn died(&self) {
        self.died.notified().await;
    }

    fn ends_at(&self, path: &str, after: bool) -> bool {
        let mut state = self.lock();
        let acts = state.at_act == Some(after) && !path.contains("/leases/");
        if state.at_write != Some(after) && !acts {
            return false;
        }
        (state.at_write, state.at_act) = (None, None);
        drop(state);
        self.kill();
        true
    }
}

impl Front {
    pub(crate) fn new((server, aside): (ApiServer, ApiServer), plan: &Plan, start: Instant) -> Self {
        let flaws = &plan.flaws;
        let mut floor = Floor::default();
        floor.lie = flaws.contains(&Flaw::MeasuredIdle).then_some(0);
        let (noted, floor) = (Arc::default(), Arc::new(Mutex::new(floor)));
        let wire = Wire {
            doubled: BTreeMap::new(),
            late: BTreeMap::new(),
            dice: Dice::new(plan.seed),
            asked: BTreeSet::new(),
        };
        let (flaws, wire) = (flaws.as_slice().into(), Arc::new(Mutex::new(wire)));
        Self { server, noted, floor, start, flaws, wire, aside }
    }

    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaws.contains(&flaw)
    }

    pub(crate) fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has nobody asked this before?
    fn first_of(&self, what: &str) -> bool {
        self.wire().asked.insert(what.to_owned())
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn floor(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For one start of a component.
    pub(crate) fn door(&self, who: &str, identity: &str, life: Arc<Life>) -> Door {
        Door { front: self.clone(), who: who.into(), identity: identity.into(), life }
    }

    /// Milliseconds since the beginning.
    pub(crate) fn at(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn note(&self, entry: Entry) {
        let mut noted = self.noted();
        if entry.after.is_null() {
            noted.objects.remove(&entry.path);
        } else {
            noted.objects.insert(entry.path.clone(), Arc::new(entry.after.clone()));
        }
        noted.history.push(entry);
    }

    /// What there is of one kind, such as `pods`, by path.
    pub(crate) fn all(&self, plural: &str) -> Vec<(String, Arc<Value>)> {
        let of = |path: &str| path.rsplit('/').nth(1) == Some(plural);
        let noted = self.noted();
        noted
            .objects
            .iter()
            .filter(|(path, _)| of(path))
            .map(|(path, one)| (path.clone(), one.clone()))
            .collect()
    }

    pub(crate) fn history(&self) -> Vec<Entry> {
        std::mem::take(&mut self.noted().history)
    }

    /// What was last written there.
    fn known(&self, path: &str) -> Value {
        self.noted().objects.get(path).map(|object| (**object).clone()).unwrap_or_default()
    }

    async fn read(&self, path: &str) -> Value {
        let request = Request::get(path).body(Body::empty());
        let Ok(request) = request else { return Value::Null };
        let Ok(response) = self.server.clone().oneshot(request).await;
        if !response.status().is_success() {
            return Value::Null;
        }
        read(response.into_body()).await.1
    }
}

/// One start of a component's way to the server.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    front: Front,
    who: Arc<str>,
    identity: Arc<str>,
    life: Arc<Life>,
}

impl Door {
    async fn pass(self, request: Request<kube::client::Body>) -> Response<Body> {
        if self.life.is_dead() {
            return std::future::pending().await;
        }
        let path = request.uri().path().to_owned();
        if path.starts_with("/apis/metrics.k8s.io/") {
            return self.front.floor().measured(&path);
        }
        let request = match self.aside(&path, request.map(Body::new)).await {
            Ok(response) => return response,
            Err(request) => request,
        };
        let verb = match *request.method() {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => {
                let Ok(response) = self.front.server.clone().oneshot(request).await;
                return self.blurred(response);
            }
        };
        let (head, body) = request.into_parts();
        let (body, _) = read(body).await;
        let item = split(&path).0.unwrap_or_default();
        if let Some(answer) = self.instead(verb, &path, &item, &body) {
            return answer;
        }
        if self.life.ends_at(&path, false) {
            return std::future::pending().await;
        }
        let (first, body) = self.before(&path, body);
        if let Some(first) = first {
            self.write(verb, &path, self.front.at(), Request::from_parts(head.clone(), first.into())).await;
        }
        let sent = self.front.at();
        let late = self.front.wire().late(&self.who);
        if let Some(by) = late {
            // It is on its way, whatever becomes of who sent it.
            let (door, at, request) = (self.clone(), path.clone(), Request::from_parts(head, body.into()));
            let arrives = tokio::spawn(async move {
                sleep(by).await;
                door.write(verb, &at, sent, request).await
            });
            let Ok(response) = arrives.await else { return std::future::pending().await };
            return response;
        }
        let twice = self.front.wire().twice(&self.who);
        let again = twice.is_some().then(|| Request::from_parts(head.clone(), body.clone().into()));
        let mut response = self.write(verb, &path, sent, Request::from_parts(head, body.into())).await;
        if let Some(again) = again {
            let second = self.write(verb, &path, sent, again).await;
            if twice == Some(Heard::Second) {
                response = second;
            }
        }
        if self.life.ends_at(&path, true) {
            return std::future::pending().await;
        }
        response
    }

    /// Has a write carried out, and notes it.
    async fn write(
        &self,
        verb: &'static str,
        path: &str,
        sent: u64,
        request: Request<Body>,
    ) -> Response<Body> {
        let (item, subresource) = split(path);
        let before = item.as_deref().map(|item| self.front.known(item)).unwrap_or_default();
        let Ok(response) = self.front.server.clone().oneshot(request).await;
        let (head, body) = response.into_parts();
        let (bytes, answer) = read(body).await;
        if head.status.is_success() {
            let (path, after) = if let Some(item) = item {
                // The answer to the others is the object itself.
                let asks = verb == "delete" || matches!(subresource.as_str(), "binding" | "eviction");
                let after = if asks { self.front.read(&item).await } else { answer };
                (item, after)
            } else {
                let name = answer["metadata"]["name"].as_str().unwrap_or_default();
                (format!("{path}/{name}"), answer)
            };
            self.front.note(Entry {
                at: self.front.at(),
                sent,
                who: self.who.to_string(),
                identity: self.identity.to_string(),
                verb,
                path,
                subresource,
                before,
                after,
            });
        }
        Response::from_parts(head, Body::from(bytes))
    }
}

impl Service<Request<kube::client::Body>> for Door {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        self.clone().pass(request).map(Ok).boxed()
    }
}

async fn read(body: Body) -> (Bytes, Value) {
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let value = serde_json::from_slice(&bytes).unwrap_or_default();
    (bytes, value)
}

/// The object a path is of, if it names one, and the part of it.
fn split(path: &str) -> (Option<String>, String) {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let base = if parts.first() == Some(&"api") { 2 } else { 3 };
    let base = if parts.get(base) == Some(&"namespaces") && parts.len() > base + 2 { base + 2 } else { base };
    if parts.len() < base + 2 {
        return (None, String::new());
    }
    (Some(format!("/{}", parts[..base + 2].join("/"))), parts[base + 2..].join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_apart() {
        let table = [
            ("/api/v1/nodes", None, ""),
            ("/api/v1/nodes/n1", Some("/api/v1/nodes/n1"), ""),
            ("/api/v1/nodes/n1/status", Some("/api/v1/nodes/n1"), "status"),
            ("/api/v1/namespaces/default/pods", None, ""),
            (
                "/api/v1/namespaces/default/pods/a/binding",
                Some("/api/v1/namespaces/default/pods/a"),
                "binding",
            ),
            ("/api/v1/namespaces/default", Some("/api/v1/namespaces/default"), ""),
            ("/apis/apps/v1/namespaces/default/replicasets", None, ""),
            ("/apis/g/v1/things/t/status", Some("/apis/g/v1/things/t"), "status"),
        ];
        for (path, item, sub) in table {
            assert_eq!(split(path), (item.map(str::to_owned), sub.to_owned()), "{path}");
        }
    }
}
