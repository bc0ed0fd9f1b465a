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
pub mod pod;
pub mod rules;
pub mod snapshot;
#[cfg(feature = "schema")]
pub mod types;
pub mod write;

use crate::read::At;
use loadline_core::qos::policy::RuleName;

/// The API group of all of them.
pub const GROUP: &str = "ensurance.crane.io";

pub const VERSION: &str = "ensurance.crane.io/v1alpha1";

/// Of a node: `true` if its agent is to change nothing, and only say what it would do.
pub const PREVIEW: &str = "loadline.dev/preview";
/// Of a pod: `false` if it must not be evicted.
pub const OPT_OUT: &str = "loadline.dev/evict";
/// The same in the words of the cluster autoscaler, which people know.
pub const OPT_OUT_OF_OTHERS: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
/// How the elastic share of CPU begins among the resources of a container.
/// CPU others leave, which pods may ask for.
pub const ELASTIC_CPU: &str = "gocrane.io/cpu";
/// And that of memory.
const ELASTIC_MEMORY: &str = "gocrane.io/memory";

/// A rule by the name it has in snapshots and answers.
fn rule_name(at: &At<'_, '_>) -> RuleName {
    let name = at.needed();
    let Some((object, rule)) = name.split_once('/') else {
        at.fail(format!("expected a rule such as nodeqos/rule, found {name:?}"));
        return RuleName { object: "".into(), rule: name.into() };
    };
    RuleName { object: object.into(), rule: rule.into() }
}

/// The definitions of all kinds, in YAML, as they are applied to a cluster.
pub const DEFINITIONS: [&str; 3] = [
    include_str!("../../../deploy/crds/avoidanceactions.yaml"),
    include_str!("../../../deploy/crds/nodeqoss.yaml"),
    include_str!("../../../deploy/crds/podqoss.yaml"),
];
