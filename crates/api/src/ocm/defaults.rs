//! What holds where an object does not say?
//!
//! The definitions have their defaults from here, and a server with these definitions writes them into every object.
//! Readers go by the same where nobody has: the definitions of others know fewer of them.

/// Who belongs to a `ManagedClusterSet`.
pub const SELECTOR_TYPE: &str = "ExclusiveClusterSetLabel";

/// `spec.sortBy` of a `Placement`, and so on below.
pub const SORT_BY: &str = "ClusterName";
pub const SCORE_RATE_LIMIT: &str = "1m";
pub const PRIORITIZER_MODE: &str = "Additive";
pub const WEIGHT: i32 = 1;
pub const SCORE_TYPE: &str = "BuiltIn";
pub const TOLERATION_OPERATOR: &str = "Equal";
pub const MAX_SKEW: i32 = 1;
pub const WHEN_UNSATISFIABLE: &str = "ScheduleAnyway";
pub const CLUSTERS_PER_DECISION_GROUP: &str = "100%";
