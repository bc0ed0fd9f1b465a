//! What do quotas leave?

use crate::resources::List;

/// A `ResourceQuota`, as far as it counts replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What may be used (`status.hard`).
    pub hard: List,
    /// What is used (`status.used`).
    pub used: List,
    /// Which pods it counts: those that every one of these holds for.
    pub scopes: Vec<Scope>,
}

/// One condition on the pods a quota counts. A plain `spec.scopes` entry is one with the operator `Exists`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// `PriorityClass`, `BestEffort`, `NotBestEffort`, …
    pub name: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// For `In` and `NotIn`.
    pub values: Vec<String>,
}

/// What the tightest quota leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The name of the quota.
    pub quota: String,
    /// The resource that ends first, as the quota names it.
    pub resource: String,
    /// How many replicas or sets.
    pub allows: i32,
}
