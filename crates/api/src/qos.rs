//! When is a node in trouble, and who may be disturbed for it? The objects of crane's ensurance group.
//!
//! | object | says | short name |
//! |---|---|---|
//! | `NodeQOS` | which figures of which nodes must stay below which line, and what is done if one does not | `nq` |
//! | `PodQOS` | to which pods it may be done | `pq` |
//! | `AvoidanceAction` | what is done: throttle, evict, or only keep new pods away | `avoid` |
//!
//! What is not well-formed is refused by the schemas in [`DEFINITIONS`], so that no webhook is needed. Objects of older
//! versions are brought up to date by [`older`].

pub mod older;
#[cfg(feature = "schema")]
pub mod types;

/// The API group of all of them.
pub const GROUP: &str = "ensurance.crane.io";

/// The definitions of all kinds, in YAML, as they are applied to a cluster.
pub const DEFINITIONS: [&str; 3] = [
    include_str!("../../../deploy/crds/avoidanceactions.yaml"),
    include_str!("../../../deploy/crds/nodeqoss.yaml"),
    include_str!("../../../deploy/crds/podqoss.yaml"),
];
