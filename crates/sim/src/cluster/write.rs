//! How is something written? One request each, with a time limit and our name on it.

use super::{Kept, Key};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use std::time::Duration;

/// No write may take longer: what is behind it tries again.
const PATIENCE: Duration = Duration::from_secs(15);
/// The name our writes are filed under.
const MANAGER: &str = "loadline-sim";

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused, or could not be reached.
    #[error("cannot {step}")]
    Api {
        /// What was tried.
        step: String,
        /// Why it failed.
        #[source]
        source: Box<kube::Error>,
    },
    /// The server did not answer in time.
    #[error("cannot {step}: no answer within {PATIENCE:?}")]
    Slow {
        /// What was tried.
        step: String,
    },
}

impl Error {
    /// The HTTP code of a refusal.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source, .. } => match &**source {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Slow { .. } => None,
        }
    }

    /// Is the object not there (any more)?
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.code() == Some(404)
    }

    /// Did somebody else write first?
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patch {
    /// Lists are replaced.
    Merge,
    /// Lists are merged by their keys.
    Strategic,
}

/// Writes objects.
#[derive(Clone)]
pub struct Writer(Client);

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

impl Writer {
    pub(super) fn new(client: Client) -> Self {
        Self(client)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0
    }

    /// One object as it is now.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn get<T: Kept>(&self, key: &Key) -> Result<Value, Error> {
        self.send(Method::GET, &path::<T>(key), "application/json", &Value::Null).await
    }

    /// Creates an object in a namespace, or in none.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn create<T: Kept>(&self, namespace: &str, object: &Value) -> Result<Value, Error> {
        self.create_at(&collection::<T>(namespace), object).await
    }

    /// Creates an object below any path.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn create_at(&self, path: &str, object: &Value) -> Result<Value, Error> {
        self.send(Method::POST, path, "application/json", object).await
    }

    /// Replaces an object at any path.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn replace_at(&self, path: &str, object: &Value) -> Result<Value, Error> {
        self.send(Method::PUT, path, "application/json", object).await
    }

    /// Patches an object, or one of its subresources such as `/status`.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn patch<T: Kept>(&self, key: &Key, below: &str, patch: &Value) -> Result<Value, Error> {
        self.patch_as::<T>(key, below, Patch::Merge, patch).await
    }

    /// [`Writer::patch`] of a chosen type.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn patch_as<T: Kept>(
        &self,
        key: &Key,
        below: &str,
        how: Patch,
        patch: &Value,
    ) -> Result<Value, Error> {
        let media = match how {
            Patch::Merge => "application/merge-patch+json",
            Patch::Strategic => "application/strategic-merge-patch+json",
        };
        self.send(Method::PATCH, &format!("{}{below}", path::<T>(key)), media, patch).await
    }

    /// Patches at any path.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn patch_at(&self, path: &str, change: &Value) -> Result<Value, Error> {
        self.send(Method::PATCH, path, "application/merge-patch+json", change).await
    }

    /// Deletes the object with this identity; `grace` none leaves the time it gets to the object.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn delete<T: Kept>(&self, key: &Key, uid: &str, grace: Option<i64>) -> Result<Value, Error> {
        let mut options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        });
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = json!(grace);
        }
        self.send(Method::DELETE, &path::<T>(key), "application/json", &options).await
    }

    /// Binds a pod to a node.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn bind(&self, pod: &Key, uid: &str, node: &str) -> Result<(), Error> {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("/api/v1/namespaces/{}/pods/{}/binding", pod.namespace, pod.name);
        self.create_at(&path, &binding).await.map(drop)
    }

    /// Asks a pod to go, as far as disruption budgets allow.
    ///
    /// # Errors
    /// When the server refuses or does not answer.
    pub async fn evict(&self, pod: &Key, uid: &str) -> Result<(), Error> {
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        });
        let path = format!("/api/v1/namespaces/{}/pods/{}/eviction", pod.namespace, pod.name);
        self.create_at(&path, &eviction).await.map(drop)
    }

    async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> Result<Value, Error> {
        let step = || format!("{method} {path}");
        let fail = |source: kube::Error| Error::Api { step: step(), source: Box::new(source) };
        let writes = method != Method::DELETE && method != Method::GET;
        let query = if writes { format!("?fieldManager={MANAGER}") } else { String::new() };
        let body = if method == Method::GET { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("{path}{query}"))
            .header(http::header::CONTENT_TYPE, media)
            .header(http::header::ACCEPT, "application/json")
            .body(body)
            .map_err(|e| fail(kube::Error::HttpError(e)))?;
        match tokio::time::timeout(PATIENCE, self.0.request::<Value>(request)).await {
            Ok(answer) => answer.map_err(fail),
            Err(_) => Err(Error::Slow { step: step() }),
        }
    }
}

fn collection<T: Kept>(namespace: &str) -> String {
    let (group, version, _, plural) = T::KIND;
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    if namespace.is_empty() {
        format!("{root}/{plural}")
    } else {
        format!("{root}/namespaces/{namespace}/{plural}")
    }
}

fn path<T: Kept>(key: &Key) -> String {
    format!("{}/{}", collection::<T>(&key.namespace), key.name)
}
