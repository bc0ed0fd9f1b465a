//! What do a load policy and the rules of agents come to together, and on which nodes?

use crate::kind::Kind;
use crate::manifest::Manifests;
use crate::problem::{Problem, Problems};
use crate::protect;
use loadline_api::node;
use loadline_core::load::policy::Rules;
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::policy::Policy;
use loadline_core::view::NodeFacts;

/// A load policy, and what else bears on how full nodes get.
#[derive(Debug)]
pub struct CheckInput {
    pub rules: Rules,
    /// What agents were asked for; nothing if no such object is there.
    pub policy: Policy,
    pub nodes: Vec<NodeFacts>,
    /// What is worth knowing about them.
    pub warnings: Vec<Problem>,
}

impl CheckInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &[
        Kind::LOAD_POLICY,
        Kind::LOAD_SETTINGS,
        Kind::NODE_QOS,
        Kind::POD_QOS,
        Kind::AVOIDANCE_ACTION,
        Kind::NODE_QOS_ENSURANCE_POLICY,
        Kind::POD_QOS_ENSURANCE_POLICY,
        Kind::SERVICE_POLICY,
        Kind::NODE,
    ];

    /// Takes everything; the defaults for a policy or settings that are not there.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests) -> Result<Self, Problems> {
        let catalogue = Catalogue::default();
        protect::bring_up_to_date(&mut manifests);
        protect::validate(&mut manifests, &catalogue);
        let rules = manifests.load_rules();
        let policy = protect::asked_for(&mut manifests, catalogue);
        let mut nodes = manifests.tolerant_all(Kind::NODE, node::facts);
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let (rules, warnings) = manifests.finish(Some(rules))?;
        Ok(Self { rules, policy, nodes, warnings })
    }
}
