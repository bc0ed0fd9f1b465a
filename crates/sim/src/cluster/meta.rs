//! What every object has: a name, an identity, owners.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use std::fmt;

/// Where an object is found. The namespace is empty for what is not in one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// A key from its parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// The controller an object belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// `ReplicaSet`, `Deployment`, …
    pub kind: String,
    pub name: String,
    /// Its identity.
    pub uid: String,
}

/// The part of an object's metadata that decisions look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Where it is found.
    pub key: Key,
    /// Its identity: an object of the same name later is another one.
    pub uid: String,
    /// Which write this is; grows with every write to any object.
    pub revision: u64,
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

impl Meta {
    /// Is it being deleted?
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.deleted.is_some()
    }

    /// Does it belong to the controller with this identity?
    #[must_use]
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.uid == uid)
    }

    /// An annotation's value.
    #[must_use]
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }
}

impl From<ObjectMeta> for Meta {
    fn from(from: ObjectMeta) -> Self {
        let owners = from.owner_references.unwrap_or_default();
        let owner = owners.into_iter().find(|o| o.controller == Some(true));
        Self {
            key: Key::new(from.namespace.unwrap_or_default(), from.name.unwrap_or_default()),
            uid: from.uid.unwrap_or_default(),
            revision: from.resource_version.and_then(|v| v.parse().ok()).unwrap_or(0),
            generation: from.generation.unwrap_or(0),
            created: from.creation_timestamp.map(|t| t.0),
            deleted: from.deletion_timestamp.map(|t| t.0),
            grace: from.deletion_grace_period_seconds,
            labels: from.labels.unwrap_or_default(),
            annotations: from.annotations.unwrap_or_default(),
            owner: owner.map(|o| Owner { kind: o.kind, name: o.name, uid: o.uid }),
        }
    }
}
