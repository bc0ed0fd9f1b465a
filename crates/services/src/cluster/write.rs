//! How is something written? One request each, with a deadline and our name on it.
//!
//! Nothing is tried again here: whoever asked decides by the [`Failure`], and finds out by reading whether a write whose
//! answer was lost has arrived. Writes name the object they mean by its identity wherever the API allows it, so that none
//! ever hits a successor of the same name. Where somebody else may be leading by now, nothing is sent.

use crate::cluster::connection::{Ask, Call, Cause, Connection, Failure, Media, Verb};
use crate::cluster::resource::{self, PODS, Resource};
use crate::cluster::watch::{Watched, decode};
use bytes::Bytes;
use http::Method;
use loadline_api::{Error, protobuf};
use loadline_core::object::{Key, Meta};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// No write may take longer.
pub const DEADLINE: Duration = Duration::from_secs(15);

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// Lists are replaced.
    Merge,
    /// Lists are merged by their keys.
    Strategic,
    /// Server-side apply: what is written is ours from then on, also what was somebody else's.
    Apply,
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// What is patched: an object, or a part of it that is written separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub resource: Resource,
    /// Such as `status`; empty for the object itself.
    pub subresource: &'static str,
}

impl Resource {
    /// The object itself.
    #[must_use]
    pub const fn whole(self) -> Part {
        Part { resource: self, subresource: "" }
    }

    /// Its status.
    #[must_use]
    pub const fn status(self) -> Part {
        Part { resource: self, subresource: "status" }
    }
}

/// May writes be sent now, and until when?
pub type Permit = Arc<dyn Fn() -> Option<Duration> + Send + Sync>;

/// An answer to a write: the object as it is now.
#[derive(Clone, Debug)]
pub struct Written(Bytes);

impl Written {
    /// What is kept of it; `None` if it is no object.
    #[must_use]
    pub fn read<W: Watched>(&self) -> Option<(Meta, Result<W::Facts, Error>)> {
        decode::object::<W>(&self.0).ok().map(|object| (object.meta, object.facts))
    }
}

/// Writes objects. Clones share their limits.
#[derive(Clone)]
pub struct Writer {
    connection: Connection,
    /// The name our writes are filed under.
    manager: Arc<str>,
    /// How long writing is allowed for; everything is without it.
    permit: Option<Permit>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("manager", &self.manager).finish_non_exhaustive()
    }
}

impl Writer {
    /// Writes under that name.
    #[must_use]
    pub fn new(connection: Connection, manager: &str) -> Self {
        Self { connection, manager: manager.into(), permit: None }
    }

    /// The same, sending nothing that is not permitted at that moment, and waiting for no answer longer than that.
    #[must_use]
    pub fn permitted(self, permit: Permit) -> Self {
        Self { permit: Some(permit), ..self }
    }

    /// The same, for writes that can wait: others are not held up by them.
    #[must_use]
    pub fn yielding(self) -> Self {
        Self { connection: self.connection.yielding(), ..self }
    }

    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// One object as it is now.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn get<W: Watched>(&self, key: &Key) -> Result<(Meta, Result<W::Facts, Error>), Failure> {
        let ask = Ask::read(Verb::Get, W::RESOURCE, W::RESOURCE.object(key)).accept(decode::media::<W>());
        let (call, path) = (ask.call, ask.path.clone());
        let answer = self.connection.call(ask, DEADLINE).await?;
        let object = decode::object::<W>(&answer);
        let failed = |message| Failure { call, path, cause: Cause::Malformed, message };
        object.map(|object| (object.meta, object.facts)).map_err(failed)
    }

    /// Creates an object in a namespace, or in none.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn create(&self, of: Resource, namespace: &str, object: &Value) -> Result<Written, Failure> {
        self.post(
            Call { verb: Verb::Create, resource: of, subresource: "" },
            of.collection(namespace),
            object,
        )
        .await
    }

    /// Patches an object. A uid or resource version in the patch makes it fail for any other.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn patch(&self, of: Part, key: &Key, how: Patch, change: &Value) -> Result<Written, Failure> {
        let Part { resource, subresource } = of;
        let mut path = resource.object(key);
        if !subresource.is_empty() {
            path = format!("{path}/{subresource}");
        }
        let force = if how == Patch::Apply { "&force=true" } else { "" };
        let path = format!("{path}?fieldManager={}{force}", self.manager);
        let call = Call { verb: Verb::Patch, resource, subresource };
        self.json(call, Method::PATCH, path, how.content_type(), change).await.map(Written)
    }

    /// Replaces an object; it must carry the resource version it was read at.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn update(&self, of: Resource, key: &Key, object: &Value) -> Result<Written, Failure> {
        let path = format!("{}?fieldManager={}", of.object(key), self.manager);
        let call = Call { verb: Verb::Update, resource: of, subresource: "" };
        self.json(call, Method::PUT, path, "application/json", object).await.map(Written)
    }

    /// Deletes the object with this identity; `grace` none leaves the time it gets to the object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn delete(&self, of: Resource, object: &Meta, grace: Option<i64>) -> Result<Written, Failure> {
        let mut options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": &*object.uid},
            "propagationPolicy": "Background",
        });
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = json!(grace);
        }
        let call = Call { verb: Verb::Delete, resource: of, subresource: "" };
        let path = of.object(&object.key);
        self.json(call, Method::DELETE, path, "application/json", &options).await.map(Written)
    }

    /// Binds a pod to a node.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn bind(&self, pod: &Meta, node: &str) -> Result<(), Failure> {
        let call = Call { verb: Verb::Create, resource: PODS, subresource: "binding" };
        let path = format!("{}/binding?fieldManager={}", PODS.object(&pod.key), self.manager);
        let (accept, content_type) = (Media::Protobuf, protobuf::MEDIA);
        let ask = Ask { call, method: Method::POST, path, content_type, accept, body: binding(pod, node) };
        self.send(ask).await.map(drop)
    }

    /// Asks a pod to go, as far as disruption budgets allow; `grace` none leaves the time it gets to the pod.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn evict(&self, pod: &Meta, grace: Option<i64>) -> Result<(), Failure> {
        let mut options = json!({"preconditions": {"uid": &*pod.uid}});
        if pod.uid.is_empty() {
            options = json!({});
        }
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = json!(grace);
        }
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": &*pod.key.name, "namespace": &*pod.key.namespace},
            "deleteOptions": options,
        });
        let call = Call { verb: Verb::Create, resource: PODS, subresource: "eviction" };
        self.post(call, format!("{}/eviction", PODS.object(&pod.key)), &eviction).await.map(drop)
    }

    /// Makes custom resources known to the server, unless they are already.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn define(&self, definition: &Value) -> Result<(), Failure> {
        match self.create(resource::DEFINITIONS, "", definition).await {
            Err(failure) if failure.cause != Cause::AlreadyExists => Err(failure),
            _ => Ok(()),
        }
    }

    async fn post(&self, call: Call, path: String, body: &Value) -> Result<Written, Failure> {
        let path = format!("{path}?fieldManager={}", self.manager);
        self.json(call, Method::POST, path, "application/json", body).await.map(Written)
    }

    async fn json(
        &self,
        call: Call,
        method: Method,
        path: String,
        content_type: &'static str,
        body: &Value,
    ) -> Result<Bytes, Failure> {
        let body = body.to_string().into_bytes();
        self.send(Ask { call, method, path, content_type, accept: Media::Json, body }).await
    }

    async fn send(&self, ask: Ask) -> Result<Bytes, Failure> {
        let deadline = match &self.permit {
            None => DEADLINE,
            Some(permit) => match permit() {
                Some(left) => left.min(DEADLINE),
                None => return Err(self.connection.not_leading(ask.call, ask.path)),
            },
        };
        self.connection.call(ask, deadline).await
    }
}

/// `Binding`, as every scheduler writes it: thousands a second, so in what costs the server least.
fn binding(pod: &Meta, node: &str) -> Vec<u8> {
    let message = protobuf::Writer::default;
    let metadata = message().text(1, &pod.key.name).text(3, &pod.key.namespace).text(5, &pod.uid);
    let target = message().text(1, "Node").text(3, node).text(5, "v1");
    protobuf::Writer::body("v1", "Binding", &message().message(1, &metadata).message(2, &target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::meta;
    use loadline_api::json::Skip;
    use loadline_api::protobuf::Envelope;

    #[test]
    fn a_binding_in_protobuf_says_what_it_would_in_json() {
        let pod = meta(&json!({"metadata": {"name": "web-1", "namespace": "shop", "uid": "u-1"}}));
        let body = binding(&pod, "node-7");
        let envelope = Envelope::read(&body).unwrap();
        assert_eq!((&*envelope.api_version, &*envelope.kind), ("v1", "Binding"));
        assert_eq!(
            Value::from(&envelope.object(Skip::NOTHING).unwrap()),
            json!({"metadata": {"name": "web-1", "namespace": "shop", "uid": "u-1"},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-7"}}),
        );
    }
}
