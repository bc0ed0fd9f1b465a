//! Deployments, replica sets and disruption budgets, as far as their controllers look at them.

use super::{ObjectMeta, meta, resource};
use jiff::Timestamp;
use loadline_api::Error;
use loadline_api::json::Tree;
use loadline_core::select::{LabelSelector, Selector};
use loadline_services::cluster::{Resource, Watched};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A number, or a share such as `25%`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// So many.
    Count(i64),
    /// A percentage.
    Share(String),
}

impl Amount {
    /// How many of `total`, rounding shares down; nonsense counts as none.
    #[must_use]
    pub fn of_down(&self, total: i64) -> i64 {
        self.percent().map_or_else(|| self.count(), |percent| total.saturating_mul(percent) / 100)
    }

    /// How many of `total`, rounding shares up; nonsense counts as none.
    #[must_use]
    pub fn of_up(&self, total: i64) -> i64 {
        let up = |percent| total.saturating_mul(percent).saturating_add(99) / 100;
        self.percent().map_or_else(|| self.count(), up)
    }

    fn percent(&self) -> Option<i64> {
        match self {
            Self::Count(_) => None,
            Self::Share(text) => Some(text.strip_suffix('%').and_then(|n| n.parse().ok()).unwrap_or(0)),
        }
    }

    fn count(&self) -> i64 {
        if let Self::Count(count) = self { *count } else { 0 }
    }
}

/// One condition of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when the status holds.
    pub last_transition_time: Option<Timestamp>,
    /// When it was last confirmed; Deployments have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// The generation it speaks of; disruption budgets have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// How many pods of a replica set there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaSetStatus {
    /// Active pods.
    pub replicas: i64,
    /// Of these, with all labels of the template.
    pub fully_labeled_replicas: i64,
    /// Of these, ready.
    pub ready_replicas: i64,
    /// Of these, ready for long enough.
    pub available_replicas: i64,
    /// The generation this speaks of.
    pub observed_generation: i64,
}

/// A replica set.
#[derive(Clone, Debug, Default)]
pub struct ReplicaSet {
    pub meta: ObjectMeta,
    /// How many pods it wants.
    pub replicas: i64,
    /// Seconds a pod must be ready to count as available.
    pub min_ready_seconds: i64,
    /// What its pods are made from.
    pub template: Value,
    /// What it last said.
    pub status: ReplicaSetStatus,
}

/// How a Deployment replaces pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All old ones first.
    Recreate,
    /// Step by step.
    Rolling {
        /// How many more than wanted there may be.
        surge: Amount,
        /// How many fewer than wanted may be available.
        unavailable: Amount,
    },
}

impl Default for Strategy {
    fn default() -> Self {
        Self::Rolling { surge: Amount::Share("25%".into()), unavailable: Amount::Share("25%".into()) }
    }
}

/// How far a Deployment is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentStatus {
    /// The generation this speaks of.
    pub observed_generation: i64,
    /// Pods of all replica sets.
    pub replicas: i64,
    /// Pods of the newest.
    pub updated_replicas: i64,
    /// Ready ones.
    pub ready_replicas: i64,
    /// Ready for long enough.
    pub available_replicas: i64,
    /// Still missing.
    pub unavailable_replicas: i64,
    /// How often a name was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i64>,
    /// Available, progressing.
    pub conditions: Vec<Condition>,
}

/// A Deployment.
#[derive(Clone, Debug, Default)]
pub struct Deployment {
    pub meta: ObjectMeta,
    /// How many pods it wants.
    pub replicas: i64,
    /// Which replica sets and pods are its own, as written.
    pub selector: Value,
    /// What its pods are made from.
    pub template: Value,
    /// How it replaces pods.
    pub strategy: Strategy,
    /// Seconds a pod must be ready to count as available.
    pub min_ready_seconds: i64,
    /// Old replica sets to keep.
    pub history: i64,
    /// Seconds without progress after which it says so.
    pub progress_deadline: i64,
    /// Is it left alone for now?
    pub paused: bool,
    /// What it last said.
    pub status: DeploymentStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw<S: Default> {
    spec: RawSpec,
    status: S,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawSpec {
    replicas: Option<i64>,
    min_ready_seconds: i64,
    selector: Value,
    template: Value,
    strategy: RawStrategy,
    revision_history_limit: Option<i64>,
    progress_deadline_seconds: Option<i64>,
    paused: bool,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawStrategy {
    r#type: String,
    rolling_update: Option<RawRolling>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawRolling {
    max_surge: Option<Amount>,
    max_unavailable: Option<Amount>,
}

impl Watched for ReplicaSet {
    const RESOURCE: Resource = resource::REPLICA_SETS;
    type Facts = Self;

    fn read(object: &Tree<'_>) -> Result<Self, Error> {
        let (meta, Raw { spec, status }) = meta::read::<Raw<ReplicaSetStatus>>("ReplicaSet", object)?;
        Ok(Self {
            meta,
            replicas: spec.replicas.unwrap_or(1),
            min_ready_seconds: spec.min_ready_seconds,
            template: spec.template,
            status,
        })
    }
}

impl Watched for Deployment {
    const RESOURCE: Resource = resource::DEPLOYMENTS;
    type Facts = Self;

    fn read(object: &Tree<'_>) -> Result<Self, Error> {
        let (meta, Raw { spec, status }) = meta::read::<Raw<DeploymentStatus>>("Deployment", object)?;
        let rolling = spec.strategy.rolling_update.unwrap_or_default();
        let quarter = || Amount::Share("25%".into());
        let strategy = if spec.strategy.r#type == "Recreate" {
            Strategy::Recreate
        } else {
            Strategy::Rolling {
                surge: rolling.max_surge.unwrap_or_else(quarter),
                unavailable: rolling.max_unavailable.unwrap_or_else(quarter),
            }
        };
        Ok(Self {
            meta,
            replicas: spec.replicas.unwrap_or(1),
            selector: spec.selector,
            template: spec.template,
            strategy,
            min_ready_seconds: spec.min_ready_seconds,
            history: spec.revision_history_limit.unwrap_or(10),
            progress_deadline: spec.progress_deadline_seconds.unwrap_or(600),
            paused: spec.paused,
            status,
        })
    }
}

/// A disruption budget.
#[derive(Clone, Debug)]
pub struct Budget {
    pub meta: ObjectMeta,
    /// Which pods it protects.
    pub selector: Selector,
    /// How many must stay.
    pub min_available: Option<Amount>,
    /// How many may go.
    pub max_unavailable: Option<Amount>,
    /// Pods whose eviction was granted, and when.
    pub disrupted: BTreeMap<String, Timestamp>,
    /// What it last said, whole, to see whether anything changes.
    pub status: Value,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            meta: ObjectMeta::default(),
            selector: Selector::nothing(),
            min_available: None,
            max_unavailable: None,
            disrupted: BTreeMap::new(),
            status: Value::Null,
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawBudgetSpec {
    selector: Option<LabelSelector>,
    min_available: Option<Amount>,
    max_unavailable: Option<Amount>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawBudget {
    spec: RawBudgetSpec,
    status: Value,
}

impl Watched for Budget {
    const RESOURCE: Resource = resource::BUDGETS;
    type Facts = Self;

    fn read(object: &Tree<'_>) -> Result<Self, Error> {
        let (meta, RawBudget { spec, status }) = meta::read("PodDisruptionBudget", object)?;
        let disrupted = status.get("disruptedPods").and_then(|pods| BTreeMap::deserialize(pods).ok());
        Ok(Self {
            meta,
            // A selector that is not valid is for no pod, as in Kubernetes.
            selector: LabelSelector::prepare(spec.selector.as_ref()).unwrap_or_else(|_| Selector::nothing()),
            min_available: spec.min_available,
            max_unavailable: spec.max_unavailable,
            disrupted: disrupted.unwrap_or_default(),
            status,
        })
    }
}
