//! What do placements say? The objects of Open Cluster Management, to and from the facts of core.
//!
//! | object | read as | module |
//! |---|---|---|
//! | `Placement`, `v1beta1` and the older `v1alpha1` with `name` | [`loadline_core::place::Placement`] | [`placement`] |
//! | `ManagedCluster`, its sets and their bindings, its scores | facts of a fleet | [`fleet`] |
//! | how much of a member is taken, told to the hub | [`loadline_core::member::Summary`], written | [`published`] |
//! | `PlacementDecision` | [`loadline_core::place::Slice`], both ways | [`decision`] |
//! | what OCM's debug endpoint answers | made of a [`loadline_core::place::Report`] | [`debug`] |
//! | expressions of predicates | answers of a [`loadline_core::place::Judge`] | [`cel`] |
//!
//! What a schema refuses ([`DEFINITIONS`]) is for whoever holds the object against it; here everything is read that can
//! be, and the engine says what is wrong with the rest.

pub mod cel;
pub mod debug;
pub mod decision;
pub mod defaults;
pub mod fleet;
pub mod placement;
pub mod published;
#[cfg(feature = "schema")]
pub mod types;

/// The API group of all of them.
pub const GROUP: &str = "cluster.open-cluster-management.io";

/// Somebody else decides this placement.
pub const DISABLED: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

/// Of a placement: what resource scores take for free; `static`, `requested` or `measured`.
pub const LOAD_SOURCE: &str = "loadline.dev/load-source";
/// Of a placement: how old a published load may be, such as `5m`.
pub const LOAD_MAX_AGE: &str = "loadline.dev/load-max-age";
/// Of a placement: what a cluster without data counts; `middle` or `worst`.
pub const MISSING_DATA: &str = "loadline.dev/missing-data";
/// Of a placement: by how many points a cluster must be better to displace one that is selected.
pub const MARGIN: &str = "loadline.dev/margin";
/// Of a placement: how long a cluster stays selected at least, such as `10m`.
pub const MIN_DWELL: &str = "loadline.dev/min-dwell";
/// Of a placement: `true` if clusters keep their group.
pub const STICKY_GROUPS: &str = "loadline.dev/sticky-groups";
/// Of a cluster: how much of it is taken, as JSON: `{"timestamp", "requested": {}, "measured": {}}`.
pub const LOAD: &str = "loadline.dev/load";
/// Of a decision: since when each cluster is selected, as JSON.
pub const SELECTED_SINCE: &str = "loadline.dev/selected-since";

/// The definitions of all kinds, in YAML, as they are applied to a cluster. Everything here agrees with them.
pub const DEFINITIONS: [&str; 6] = [
    include_str!("../../../deploy/crds/addonplacementscores.yaml"),
    include_str!("../../../deploy/crds/managedclusters.yaml"),
    include_str!("../../../deploy/crds/managedclustersetbindings.yaml"),
    include_str!("../../../deploy/crds/managedclustersets.yaml"),
    include_str!("../../../deploy/crds/placementdecisions.yaml"),
    include_str!("../../../deploy/crds/placements.yaml"),
];
