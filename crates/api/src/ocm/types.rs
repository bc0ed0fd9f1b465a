//! How are the objects of Open Cluster Management written? Their definitions are made of these types.
//!
//! They say what the API server takes, not what it means; [`super::placement`], [`super::fleet`] and
//! [`super::decision`] read objects. What upstream leaves open, such as the names of prioritizers, is open here too; what
//! differs on purpose is a second spelling for prioritizers and no negative number of clusters.

#![expect(clippy::duplicated_attributes, reason = "columns of one table have the same type")]

use super::defaults;
use crate::schema::parts::{Condition, IntOrString, LabelSelector, Quantity, Requirement, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What keeps a cluster away is named like a label.
const TAINT_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// The same language, written as upstream writes it for topologies.
const TOPOLOGY_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// Two to 63 characters.
const GROUP_NAME: &str = "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$";
/// A share of all clusters or a number of them.
const GROUP_SIZE: &str = "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$";

/// Nothing: the kind is only a status.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, CustomResource)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1alpha1",
    kind = "AddOnPlacementScore",
    doc = "Scores somebody gives a cluster; the namespace is the name of the cluster.",
    plural = "addonplacementscores",
    status = "AddOnPlacementScoreStatus",
    namespaced
)]
pub struct AddOnPlacementScoreSpec {}

/// The scores.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnPlacementScoreStatus {
    /// How the scores came about.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// One score per name.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scores: Option<Vec<Score>>,
    /// Until when they count; forever if it is not said.
    pub valid_until: Option<Time>,
}

/// One score.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Score {
    /// What was measured.
    pub name: String,
    /// How good the cluster is at it.
    #[schemars(range(min = -100, max = 100))]
    pub value: i32,
}

/// What the fleet knows and wants of a cluster.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1",
    kind = "ManagedCluster",
    doc = "A member of the fleet.",
    plural = "managedclusters",
    shortname = "mcl",
    shortname = "mcls",
    status = "ManagedClusterStatus",
    printcolumn(name = "Hub Accepted", type_ = "boolean", json_path = ".spec.hubAcceptsClient"),
    printcolumn(
        name = "Managed Cluster URLs",
        type_ = "string",
        json_path = ".spec.managedClusterClientConfigs[*].url"
    ),
    printcolumn(
        name = "Joined",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ManagedClusterJoined\")].status"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ManagedClusterConditionAvailable\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ManagedClusterSpec {
    /// Whether it may join.
    pub hub_accepts_client: Option<bool>,
    /// How often it must say that it is there.
    #[schemars(extend("default" = 60))]
    pub lease_duration_seconds: Option<i32>,
    /// Where its API server is.
    pub managed_cluster_client_configs: Option<Vec<ClientConfig>>,
    /// What keeps placements away from it.
    pub taints: Option<Vec<Taint>>,
}

/// How a cluster is reached.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// Its address.
    pub url: Option<String>,
    /// Who signs its certificates.
    #[schemars(extend("format" = "byte"))]
    pub ca_bundle: Option<String>,
}

/// What keeps placements away from a cluster unless they tolerate it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What it is about.
    #[schemars(length(min = 1, max = 316), regex(pattern = TAINT_KEY))]
    pub key: String,
    /// Which of several.
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// Whom it keeps away.
    pub effect: Effect,
    /// Since when.
    pub time_added: Option<Time>,
}

/// Whom a taint keeps away: everybody, everybody if there is a choice, or newcomers.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Effect {
    NoSelect,
    PreferNoSelect,
    NoSelectIfNew,
}

/// What a cluster says of itself.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// What its nodes offer to pods, whether taken or not.
    pub allocatable: Option<BTreeMap<String, Quantity>>,
    /// What its nodes have.
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// What else it says of itself.
    pub cluster_claims: Option<Vec<Claim>>,
    /// Whether it has joined and is there.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// What it runs.
    pub version: Option<Version>,
}

/// Something a cluster says of itself.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Claim {
    /// What it is about.
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// What it is.
    #[schemars(length(min = 1, max = 1024))]
    pub value: Option<String>,
}

/// What a cluster runs.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Version {
    /// Its version of Kubernetes.
    pub kubernetes: Option<String>,
}

/// Which set a namespace may use.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSetBinding",
    doc = "A set a namespace may use; the binding has the name of the set.",
    plural = "managedclustersetbindings",
    shortname = "mclsetbinding",
    shortname = "mclsetbindings",
    status = "ConditionsOnly",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    namespaced
)]
pub struct ManagedClusterSetBindingSpec {
    /// The name of the set.
    #[schemars(length(min = 1))]
    pub cluster_set: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct ConditionsOnly {
    /// What is so, since when and why.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// Who belongs to a set.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {"clusterSelector": {"selectorType": defaults::SELECTOR_TYPE}}))]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta2",
    kind = "ManagedClusterSet",
    doc = "Clusters that are used together.",
    plural = "managedclustersets",
    shortname = "mclset",
    shortname = "mclsets",
    status = "ConditionsOnly",
    printcolumn(
        name = "Empty",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ClusterSetEmpty\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct ManagedClusterSetSpec {
    /// Who belongs to it.
    #[schemars(extend("default" = {"selectorType": defaults::SELECTOR_TYPE}))]
    pub cluster_selector: Option<SetSelector>,
    /// Namespaces that every member gets.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub managed_namespaces: Option<Vec<ManagedNamespace>>,
}

/// Who belongs to a set.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetSelector {
    /// By the label that names one set, or by any labels.
    #[schemars(extend("default" = defaults::SELECTOR_TYPE))]
    pub selector_type: SelectorType,
    /// By which labels; nobody belongs to the set if they are not said, everybody if nothing is asked.
    pub label_selector: Option<LabelSelector>,
}

/// By the label that names one set, or by any labels.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum SelectorType {
    ExclusiveClusterSetLabel,
    LabelSelector,
}

/// A namespace that every member gets.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct ManagedNamespace {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// Nothing: the kind is only a status.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, CustomResource)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "PlacementDecision",
    doc = "Clusters a placement has selected, at most 100 of them in one object.",
    plural = "placementdecisions",
    status = "PlacementDecisionStatus",
    namespaced
)]
pub struct PlacementDecisionSpec {}

/// Who was selected.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct PlacementDecisionStatus {
    /// The clusters, by name.
    pub decisions: Option<Vec<Decision>>,
}

/// A cluster that was selected.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The cluster.
    pub cluster_name: String,
    /// Why.
    pub reason: String,
    /// Its score, if it is not zero.
    pub score: Option<i64>,
}

/// Which clusters are wanted.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "Placement",
    doc = "A wish for clusters.",
    plural = "placements",
    status = "PlacementStatus",
    printcolumn(
        name = "Succeeded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"PlacementSatisfied\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"PlacementSatisfied\")].reason"
    ),
    printcolumn(
        name = "SelectedClusters",
        type_ = "integer",
        json_path = ".status.numberOfSelectedClusters"
    ),
    namespaced
)]
pub struct PlacementSpec {
    /// From which sets, among those bound to the namespace; from all of them if none is named.
    pub cluster_sets: Option<Vec<String>>,
    /// How many; all that qualify if it is not said.
    #[schemars(range(min = 0))]
    pub number_of_clusters: Option<i32>,
    /// Who qualifies; one of these must hold.
    pub predicates: Option<Vec<Predicate>>,
    /// Who is better.
    pub prioritizer_policy: Option<PrioritizerPolicy>,
    /// Taints that are put up with.
    pub tolerations: Option<Vec<Toleration>>,
    /// How they are to be spread.
    pub spread_policy: Option<SpreadPolicy>,
    /// How the answer is grouped.
    pub decision_strategy: Option<DecisionStrategy>,
    /// By what the answer is sorted.
    #[schemars(extend("default" = defaults::SORT_BY))]
    pub sort_by: Option<SortBy>,
    /// How often scores are published at most, such as `1m`.
    #[schemars(regex(pattern = "^[0-9]+[hms]$"), extend("default" = defaults::SCORE_RATE_LIMIT))]
    pub score_rate_limit: Option<String>,
}

/// What a cluster must be like.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Predicate {
    /// All of it must hold.
    pub required_cluster_selector: Option<ClusterSelector>,
}

/// What a cluster must be like: all of it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSelector {
    /// Its labels.
    pub label_selector: Option<LabelSelector>,
    /// What it says of itself.
    pub claim_selector: Option<ClaimSelector>,
    /// Expressions over the cluster.
    pub cel_selector: Option<CelSelector>,
}

/// What clusters must say of themselves.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSelector {
    /// All of these must hold.
    pub match_expressions: Option<Vec<Requirement>>,
}

/// Expressions over the cluster.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelSelector {
    /// All of these must be true.
    pub cel_expressions: Option<Vec<String>>,
}

/// Who is better.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct PrioritizerPolicy {
    /// `Exact`: only the prioritizers that are named count. `Additive`: the others count as they do by default.
    #[schemars(extend("default" = defaults::PRIORITIZER_MODE))]
    pub mode: Option<String>,
    /// Prioritizers and their weights.
    pub configurations: Option<Vec<PrioritizerConfig>>,
}

/// How much a prioritizer counts. It is named by a coordinate, or by a name as the first version had it; the coordinate
/// wins.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("anyOf" = [{"required": ["scoreCoordinate"]}, {"required": ["name"]}]))]
pub struct PrioritizerConfig {
    /// The prioritizer, as the first version named it.
    pub name: Option<String>,
    /// The prioritizer.
    pub score_coordinate: Option<ScoreCoordinate>,
    /// Its score is multiplied with this; zero disables it.
    #[schemars(range(min = -10, max = 10), extend("default" = defaults::WEIGHT))]
    pub weight: Option<i32>,
}

/// Where a score comes from.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreCoordinate {
    /// From here, or from somebody else.
    #[schemars(extend("default" = defaults::SCORE_TYPE))]
    pub r#type: ScoreType,
    /// The prioritizer that is built in.
    pub built_in: Option<String>,
    /// The score that somebody else gives.
    pub add_on: Option<AddOn>,
}

/// From here, or from somebody else.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum ScoreType {
    BuiltIn,
    AddOn,
}

/// A score that somebody else gives.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOn {
    /// The object in the namespace of the cluster.
    pub resource_name: String,
    /// The score in it.
    pub score_name: String,
}

/// A taint that is put up with.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// What the taint is about; anything if it is not said.
    #[schemars(length(max = 316), regex(pattern = TAINT_KEY))]
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    #[schemars(extend("default" = defaults::TOLERATION_OPERATOR))]
    pub operator: Option<String>,
    /// The value of the taint.
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
    /// The effect of the taint; any if it is not said.
    pub effect: Option<Effect>,
    /// For how long; forever if it is not said.
    pub toleration_seconds: Option<i64>,
}

/// How clusters are to be spread.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadPolicy {
    /// At most eight, the first being the most important.
    #[schemars(length(max = 8))]
    pub spread_constraints: Option<Vec<SpreadConstraint>>,
}

/// Evenly over one topology.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// The label or claim whose values tell the parts apart.
    #[schemars(length(max = 316), regex(pattern = TOPOLOGY_KEY))]
    pub topology_key: String,
    /// Whether it is a label or a claim.
    pub topology_key_type: TopologyKeyType,
    /// How much more one part may have than another.
    #[schemars(range(min = 1), extend("default" = defaults::MAX_SKEW))]
    pub max_skew: Option<i32>,
    /// What counts more, if both cannot be had: the number of clusters or the spread.
    #[schemars(extend("default" = defaults::WHEN_UNSATISFIABLE))]
    pub when_unsatisfiable: Option<WhenUnsatisfiable>,
}

/// Whether a topology is told by a label or a claim.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum TopologyKeyType {
    Label,
    Claim,
}

/// What counts more, if both cannot be had: the number of clusters or the spread.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum WhenUnsatisfiable {
    DoNotSchedule,
    ScheduleAnyway,
}

/// How the answer is grouped.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionStrategy {
    /// Named groups, and the size of the others.
    pub group_strategy: Option<GroupStrategy>,
}

/// Named groups, and the size of the others.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupStrategy {
    /// Named groups; a cluster belongs to the first that takes it.
    pub decision_groups: Option<Vec<DecisionGroup>>,
    /// How many clusters a group has at most: a number of them, or a share of all.
    #[schemars(extend("default" = defaults::CLUSTERS_PER_DECISION_GROUP, "pattern" = GROUP_SIZE))]
    pub clusters_per_decision_group: Option<IntOrString>,
}

/// A group with a name.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionGroup {
    /// The name, which becomes a label.
    #[schemars(regex(pattern = GROUP_NAME))]
    pub group_name: String,
    /// Who belongs to it.
    pub group_cluster_selector: GroupSelector,
}

/// Who belongs to a group.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupSelector {
    /// By labels.
    pub label_selector: Option<LabelSelector>,
    /// By what clusters say of themselves.
    pub claim_selector: Option<ClaimSelector>,
}

/// By what an answer is sorted.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum SortBy {
    ClusterName,
    Score,
}

/// What was decided.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStatus {
    /// Over all groups.
    pub number_of_selected_clusters: Option<i32>,
    /// The groups.
    pub decision_groups: Option<Vec<DecidedGroup>>,
    /// Whether the wish is fulfilled, and whether it can be understood.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// When scores were last published.
    pub last_score_update_time: Option<Time>,
}

/// A group of selected clusters.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecidedGroup {
    /// Which one.
    pub decision_group_index: Option<i32>,
    /// Its name, if it has one.
    pub decision_group_name: Option<String>,
    /// The names of the decisions that hold its clusters.
    pub decisions: Option<Vec<String>>,
    /// How many clusters it has.
    pub cluster_count: Option<i32>,
}
