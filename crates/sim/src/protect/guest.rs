//! Which pods are on a node, as whoever protects it sees them?

use crate::cluster::{Kept, Meta};
use loadline_api::qos::pod;
use loadline_core::qos;
use serde::de::Error as _;
use serde_json::{Value, json};

/// A pod, as far as protection looks at it.
#[derive(Debug)]
pub struct Guest {
    pub meta: Meta,
    /// Nothing is measured of it yet.
    pub pod: qos::Pod,
    pub node: Option<String>,
}

impl Kept for Guest {
    const KIND: (&'static str, &'static str, &'static str, &'static str) = ("", "v1", "Pod", "pods");

    fn read(meta: Meta, mut data: Value) -> Result<Self, serde_json::Error> {
        let owner = meta.owner.as_ref().map(
            |owner| json!({"controller": true, "kind": owner.kind, "name": owner.name, "uid": owner.uid}),
        );
        data["metadata"] = json!({
            "name": meta.key.name, "namespace": meta.key.namespace, "uid": meta.uid,
            "labels": meta.labels, "annotations": meta.annotations,
            "deletionTimestamp": meta.deleted.map(|at| at.to_string()),
            "ownerReferences": Vec::from_iter(owner),
        });
        let ((pod, node), warnings) = pod::read(&data).map_err(serde_json::Error::custom)?;
        for warning in warnings {
            tracing::debug!(%warning, "a pod is odd");
        }
        Ok(Self { meta, pod, node })
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
