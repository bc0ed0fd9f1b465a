//! Who writes without ever failing: what people, workload controllers and kubelets write.

use crate::front::{Door, Front, Life};
use http::Request;
use serde_json::Value;
use std::sync::Arc;
use tower::Service as _;

/// A pair of them.
#[derive(Clone, Debug)]
pub(crate) struct Hands(Door);

impl Hands {
    pub(crate) fn new(front: &Front, who: &str) -> Self {
        Self(front.door(who, who, Arc::<Life>::default()))
    }

    /// Sends one request; says whether it was carried out.
    async fn send(&self, method: &str, path: &str, kind: &str, body: &Value) -> bool {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request =
            Request::builder().method(method).uri(path).header("content-type", kind).body(bytes.into());
        let Ok(request) = request else { return false };
        let Ok(response) = self.0.clone().call(request).await;
        response.status().is_success()
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> bool {
        self.send("POST", path, "application/json", object).await
    }

    pub(crate) async fn patch(&self, path: &str, change: &Value) -> bool {
        self.send("PATCH", path, "application/merge-patch+json", change).await
    }

    pub(crate) async fn delete(&self, path: &str) -> bool {
        self.send("DELETE", &format!("{path}?gracePeriodSeconds=0"), "application/json", &Value::Null).await
    }
}
