//! Are targets of the scheduler above waterlines of agents?

use super::facts::Facts;
use super::{Finding, count};
use crate::qos::agree::{About, Disagreement, disagreements, told};
use crate::qos::policy::RuleName;
use std::collections::BTreeMap;
use std::sync::Arc;

const CHECK: &str = "lines";
const SHOW: &str = "loadline policy check POLICY.yaml NODEQOS.yaml NODES.yaml";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let (Some(policy), Some(nodes)) = (facts.lines.read(), facts.nodes.read()) else { return Vec::new() };
    if policy.is_empty() || nodes.is_empty() {
        return Vec::new();
    }
    let mut by_rule: BTreeMap<Arc<RuleName>, Vec<(&str, Disagreement)>> = BTreeMap::new();
    for node in nodes {
        for one in disagreements(&facts.rules, policy, &About::from(&node.facts)) {
            by_rule.entry(one.rule.clone()).or_default().push((node.name(), one));
        }
    }
    if by_rule.is_empty() {
        let what = format!("targets are below the lines of agents on {}", count(nodes.len(), "node"));
        return vec![Finding::ok(CHECK, what, SHOW)];
    }
    let finding = |(_, all): (Arc<RuleName>, Vec<(&str, Disagreement)>)| {
        let (node, worst) = all.iter().max_by_key(|(_, one)| one.excess())?;
        let finding = Finding::broken(CHECK, told(node, worst, all.len() - 1))
            .why("pods are sent to a node until the agent takes load off it again: they are evicted or slowed down in circles")
            .fix("lower the target (LoadSettings `targets`), or raise the line of the rule (NodeQOS)")
            .show(SHOW);
        Some(finding.about(all.iter().map(|(node, _)| *node)))
    };
    by_rule.into_iter().filter_map(finding).collect()
}
