//! How is a request written? In both forms, so that every server understands it.
//!
//! A server that knows only the other form would see a replica that asks for nothing and answer with the free places
//! of the whole cluster.

use super::generated::kubernetes as k8s;
use super::pb;
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::resources::List;
use loadline_core::select::Toleration;
use loadline_core::select::label::Expression;
use loadline_core::select::node::NodeSelector;
use loadline_core::select::taint::Effect;
use prost::Message as _;
use std::collections::BTreeMap;

/// What one replica asks for, in the words of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Labels its node must have.
    pub selector: BTreeMap<String, String>,
    /// What else it demands of its node.
    pub affinity: Option<NodeSelector>,
    /// What it puts up with.
    pub tolerations: Vec<Toleration>,
    /// What it requests.
    pub requests: List,
    /// What it may not exceed, where known.
    pub limits: Option<List>,
    /// Whose quotas bind it; empty for none.
    pub namespace: String,
    /// The name of its priority class; empty for none.
    pub priority_class: String,
    /// What that class amounts to, where known.
    pub priority: Option<i32>,
}

impl Replica {
    /// So many of it, as a part of a set. The namespace is that of the set.
    #[must_use]
    pub fn component(&self, name: &str, replicas: i32) -> pb::Component {
        pb::Component { name: name.into(), replica_requirements: Some(Box::new(self.into())), replicas }
    }
}

/// Something assigned to the cluster, each replica once. Which workload it is may be left unsaid.
#[must_use]
pub fn assumed_workload(
    namespace: &str,
    workload: Option<&WorkloadRef>,
    components: Vec<pb::Component>,
) -> pb::AssumedWorkload {
    pb::AssumedWorkload {
        namespace: namespace.into(),
        components,
        workload: workload.map(|target| Box::new(target.into())),
    }
}

/// How many replicas would fit in that cluster?
#[must_use]
pub fn replicas_request(
    cluster: &str,
    replica: Option<&Replica>,
    assumed: &[pb::AssumedWorkload],
) -> pb::MaxAvailableReplicasRequest {
    pb::MaxAvailableReplicasRequest {
        cluster: cluster.into(),
        replica_requirements: replica.map(Into::into),
        assumed_workloads: assumed.to_vec(),
        details: false,
        nodes: false,
    }
}

/// How many complete sets would fit in that cluster?
#[must_use]
pub fn sets_request(
    cluster: &str,
    namespace: &str,
    components: &[pb::Component],
    assumed: &[pb::AssumedWorkload],
) -> pb::MaxAvailableComponentSetsRequest {
    pb::MaxAvailableComponentSetsRequest {
        cluster: cluster.into(),
        components: components.to_vec(),
        namespace: namespace.into(),
        assumed_workloads: assumed.to_vec(),
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

impl From<&WorkloadRef> for pb::ObjectReference {
    /// Versions do not matter; `v1` is one every reader takes.
    fn from(target: &WorkloadRef) -> Self {
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
    let term = |term: &loadline_core::select::node::NodeTerm| k8s::NodeSelectorTerm {
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
