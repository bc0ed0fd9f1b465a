//! What is known of a fleet: clusters, the sets they are in, who may use these, scores, and what was published.

use super::amount::Resources;
use crate::object::Key;
use crate::select::LabelSelector;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The label that puts a cluster into one set and no other.
pub const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
/// The label that says to which placement a slice belongs.
pub const PLACEMENT_LABEL: &str = "cluster.open-cluster-management.io/placement";
/// The label with the number of the group a slice belongs to.
pub const GROUP_INDEX_LABEL: &str = "cluster.open-cluster-management.io/decision-group-index";
/// The label with the name of the group a slice belongs to.
pub const GROUP_NAME_LABEL: &str = "cluster.open-cluster-management.io/decision-group-name";

/// A member of the fleet (`ManagedCluster`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterFacts {
    /// Its name, also the namespace of its scores.
    pub name: Arc<str>,
    pub labels: BTreeMap<String, String>,
    /// What it says of itself; of two claims of one name the last holds.
    pub claims: BTreeMap<String, String>,
    /// What keeps placements away.
    pub taints: Vec<Taint>,
    /// What its nodes have.
    pub capacity: Resources,
    /// What its nodes have for pods, whether taken or not.
    pub allocatable: Resources,
    /// What is taken, if somebody publishes it.
    pub load: Option<ClusterLoad>,
    /// Is it being deleted? Then it is no candidate.
    pub leaving: bool,
    /// Of the whole object, and another one whenever anything in it is another: what a [`super::Judge`] reads of it
    /// beyond these facts may then have changed.
    pub fingerprint: u64,
}

/// How much of a cluster is taken, as last published.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterLoad {
    /// When it was summed up.
    pub at: Timestamp,
    /// What its pods ask for.
    pub requested: Resources,
    /// What its pods use.
    pub measured: Resources,
}

/// What a taint of a cluster does to placements that do not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// They do not select the cluster, and give it up.
    NoSelect,
    /// They would rather not select it; nobody is kept away by it.
    PreferNoSelect,
    /// They do not select it anew, but keep it.
    NoSelectIfNew,
    /// One we do not know; it keeps away as `NoSelect` does.
    Other(String),
}

impl Effect {
    /// The name in the API.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::NoSelect => "NoSelect",
            Self::PreferNoSelect => "PreferNoSelect",
            Self::NoSelectIfNew => "NoSelectIfNew",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for Effect {
    fn from(name: &str) -> Self {
        match name {
            "NoSelect" => Self::NoSelect,
            "PreferNoSelect" => Self::PreferNoSelect,
            "NoSelectIfNew" => Self::NoSelectIfNew,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// A taint of a cluster. Displays as `key=value:effect`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Taint {
    pub key: String,
    /// Its value, perhaps empty.
    pub value: String,
    /// What it does.
    pub effect: Effect,
    /// Since when it is there. Without it, any limited toleration is over.
    pub time_added: Option<Timestamp>,
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{}", self.effect.as_str())
    }
}

/// Which clusters a set has (`ManagedClusterSet`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Those whose label [`SET_LABEL`] names the set.
    Exclusive,
    /// Those that match; none at all matches nothing, an empty one everything.
    Labels(Option<LabelSelector>),
    /// A way of choosing we do not know.
    Unknown(String),
}

/// Scores somebody else gives a cluster (`AddOnPlacementScore`, in the namespace of the cluster).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// By name, nominally -100 to 100.
    pub values: BTreeMap<String, i32>,
    /// Until and including when they hold; for ever if not said.
    pub valid_until: Option<Timestamp>,
}

impl Scores {
    /// Are they past their time?
    #[must_use]
    pub fn expired(&self, now: Timestamp) -> bool {
        self.valid_until.is_some_and(|until| now > until)
    }
}

/// A part of a published selection (`PlacementDecision`), with at most [`Slice::MOST`] clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    pub key: Key,
    pub labels: BTreeMap<String, String>,
    /// The clusters.
    pub entries: Vec<Entry>,
    /// Since when each cluster is selected; kept only for placements that ask for a minimum dwell.
    pub since: BTreeMap<Arc<str>, Timestamp>,
}

impl Slice {
    /// How many clusters one slice holds at most.
    pub const MOST: usize = 100;

    /// The placement it says it belongs to.
    #[must_use]
    pub fn placement(&self) -> Option<&str> {
        self.labels.get(PLACEMENT_LABEL).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Is another one the same, whatever its points are?
    pub(super) fn is_but_for_points(&self, other: &Self) -> bool {
        let same =
            |(one, other): (&Entry, &Entry)| one.cluster == other.cluster && one.reason == other.reason;
        self.key == other.key
            && self.labels == other.labels
            && self.since == other.since
            && self.entries.len() == other.entries.len()
            && self.entries.iter().zip(&other.entries).all(same)
    }
}

/// One selected cluster as published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub cluster: Arc<str>,
    /// Its total; 0 where totals are not published.
    pub score: i64,
    /// Always empty, but others may have written something.
    pub reason: String,
}
