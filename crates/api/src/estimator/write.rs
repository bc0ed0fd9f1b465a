//! How is a request written? In both forms, so that every server understands it.
//!
//! A server that knows only the other form would see a replica that asks for nothing and answer with the free places
//! of the whole cluster.

use super::generated::kubernetes as k8s;
use super::{Assumed, Component, Replica, pb};
use loadline_core::load::recommend::Target;
use loadline_core::resources::List;
use loadline_core::select::Toleration;
use loadline_core::select::label::Expression;
use loadline_core::select::node::NodeSelector;
use loadline_core::select::taint::Effect;
use prost::Message as _;
use std::collections::BTreeMap;

/// How many replicas would fit in that cluster?
#[must_use]
pub fn replicas_request(
    cluster: &str,
    replica: Option<&Replica>,
    assumed: &[Assumed],
) -> pb::MaxAvailableReplicasRequest {
    pb::MaxAvailableReplicasRequest {
        cluster: cluster.into(),
        replica_requirements: replica.map(Into::into),
        assumed_workloads: assumed.iter().map(Into::into).collect(),
        details: false,
    }
}

/// How many complete sets would fit in that cluster?
#[must_use]
pub fn sets_request(
    cluster: &str,
    namespace: &str,
    components: &[Component],
    assumed: &[Assumed],
) -> pb::MaxAvailableComponentSetsRequest {
    pb::MaxAvailableComponentSetsRequest {
        cluster: cluster.into(),
        components: components.iter().map(Into::into).collect(),
        namespace: namespace.into(),
        assumed_workloads: assumed.iter().map(Into::into).collect(),
        enough: None,
        details: false,
    }
}

impl From<&Replica> for pb::ReplicaRequirements {
    fn from(replica: &Replica) -> Self {
        let requests = amounts(&replica.requests);
        Self {
            node_claim: claim(replica),
            resource_request: requests.clone(),
            namespace: replica.namespace.clone(),
            priority_class_name: replica.priority_class.clone(),
            resource_request_bytes: requests,
            limits_bytes: replica.limits.as_ref().map(amounts).unwrap_or_default(),
            priority: replica.priority,
        }
    }
}

impl From<&Replica> for pb::ComponentReplicaRequirements {
    fn from(replica: &Replica) -> Self {
        let requests = amounts(&replica.requests);
        Self {
            node_claim: claim(replica),
            resource_request: requests.clone(),
            priority_class_name: replica.priority_class.clone(),
            resource_request_bytes: requests,
            limits_bytes: replica.limits.as_ref().map(amounts).unwrap_or_default(),
            priority: replica.priority,
        }
    }
}

impl From<&Component> for pb::Component {
    fn from(component: &Component) -> Self {
        Self {
            name: component.name.clone(),
            replica_requirements: Some(Box::new((&component.replica).into())),
            replicas: component.replicas,
        }
    }
}

impl From<&Assumed> for pb::AssumedWorkload {
    fn from(assumed: &Assumed) -> Self {
        Self {
            namespace: assumed.namespace.clone(),
            components: assumed.components.iter().map(Into::into).collect(),
            workload: assumed.workload.as_ref().map(|target| Box::new(target.into())),
        }
    }
}

impl From<&Target> for pb::ObjectReference {
    /// Versions do not matter; `v1` is one every reader takes.
    fn from(target: &Target) -> Self {
        let group = &target.group;
        Self {
            api_version: if group.is_empty() { "v1".into() } else { format!("{group}/v1") },
            kind: target.kind.to_string(),
            namespace: target.key.namespace.to_string(),
            name: target.key.name.to_string(),
        }
    }
}

fn amounts(list: &List) -> BTreeMap<String, Vec<u8>> {
    let one = |(name, amount): (&String, &loadline_core::quantity::Quantity)| {
        (name.clone(), k8s::Quantity { string: Some(amount.to_string()) }.encode_to_vec())
    };
    list.iter().map(one).collect()
}

fn claim(replica: &Replica) -> Option<pb::NodeClaim> {
    let affinity = replica.affinity.as_ref().map(|selector| affinity(selector).encode_to_vec());
    let tolerations: Vec<Vec<u8>> =
        replica.tolerations.iter().map(|given| toleration(given).encode_to_vec()).collect();
    let claim = pb::NodeClaim {
        node_affinity: affinity.clone(),
        node_selector: replica.selector.clone(),
        tolerations: tolerations.clone(),
        node_affinity_bytes: affinity,
        tolerations_bytes: tolerations,
    };
    (claim != pb::NodeClaim::default()).then_some(claim)
}

fn affinity(selector: &NodeSelector) -> k8s::NodeSelector {
    let all = |given: &[Expression]| given.iter().map(requirement).collect();
    let term = |term: &loadline_core::select::node::Term| k8s::NodeSelectorTerm {
        match_expressions: all(&term.match_expressions),
        match_fields: all(&term.match_fields),
    };
    k8s::NodeSelector { node_selector_terms: selector.node_selector_terms.iter().map(term).collect() }
}

fn requirement(given: &Expression) -> k8s::NodeSelectorRequirement {
    k8s::NodeSelectorRequirement {
        key: given.key.clone(),
        operator: given.operator.clone(),
        values: given.values.clone(),
    }
}

fn toleration(given: &Toleration) -> k8s::Toleration {
    k8s::Toleration {
        key: Some(given.key.clone()),
        operator: Some(given.operator.clone().into()),
        value: Some(given.value.clone()),
        effect: Some(given.effect.as_ref().map_or("", Effect::as_str).into()),
        toleration_seconds: given.toleration_seconds,
    }
}
