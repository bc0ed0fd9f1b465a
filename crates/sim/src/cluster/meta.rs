//! What every object has: an identity, labels, owners.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as wire;
use loadline_api::json::Tree;
use loadline_api::{Error, Problem};
use loadline_core::object::{Key, Meta};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The controller an object belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `ReplicaSet`, `Deployment`, …
    pub kind: String,
    pub name: String,
    pub uid: Arc<str>,
}

/// The part of an object's metadata that simulated nodes and controllers look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMeta {
    pub id: Meta,
    /// Counts changes of what is wanted.
    pub generation: i64,
    /// Since when it exists.
    pub created: Option<Timestamp>,
    /// When it must be gone, if it is being deleted.
    pub deleted: Option<Timestamp>,
    /// Seconds it was given to end.
    pub grace: Option<i64>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The controller it belongs to.
    pub owner: Option<Owner>,
}

impl ObjectMeta {
    /// Is it being deleted?
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.deleted.is_some()
    }

    /// Does it belong to the controller with this identity?
    #[must_use]
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| *owner.uid == *uid)
    }

    /// An annotation's value.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }
}

impl From<wire::ObjectMeta> for ObjectMeta {
    fn from(from: wire::ObjectMeta) -> Self {
        let owners = from.owner_references.unwrap_or_default();
        let owner = owners.into_iter().find(|o| o.controller == Some(true));
        let id = Meta {
            key: Key::new(from.namespace.unwrap_or_default(), from.name.unwrap_or_default()),
            uid: from.uid.unwrap_or_default().into(),
            revision: from.resource_version.and_then(|v| v.parse().ok()),
        };
        Self {
            id,
            generation: from.generation.unwrap_or(0),
            created: from.creation_timestamp.map(|t| t.0),
            deleted: from.deletion_timestamp.map(|t| t.0),
            grace: from.deletion_grace_period_seconds,
            labels: from.labels.unwrap_or_default(),
            annotations: from.annotations.unwrap_or_default(),
            owner: owner.map(|o| Owner { kind: o.kind, name: o.name, uid: o.uid.into() }),
        }
    }
}

/// The metadata of an object, and the rest of it as something that knows how to read itself.
pub(super) fn read<T: DeserializeOwned>(kind: &str, object: &Tree<'_>) -> Result<(ObjectMeta, T), Error> {
    let failed = |error: serde_json::Error| Error {
        object: kind.to_owned(),
        problems: vec![Problem { path: String::new(), problem: error.to_string() }],
    };
    let meta = wire::ObjectMeta::deserialize(&object["metadata"]).map_err(failed)?;
    Ok((meta.into(), T::deserialize(object).map_err(failed)?))
}
