//! What does a pod want of its node?
//!
//! A demand that is not valid cannot be met: it holds the pod. A liking that is not valid does, too, as in
//! Kubernetes.

use super::is_sidecar;
use crate::read::At;
use loadline_core::select::label::Expression;
use loadline_core::select::node::{NodeAffinity, Preferred, Required};
use loadline_core::select::{LabelSelector, Selector};
use loadline_core::view::{Hold, HostPort, PodAffinity, PodFacts, PodTerm, Spread, Wants};
use std::collections::BTreeMap;

/// Everything but volumes and holds.
pub(super) fn read(spec: &At<'_, '_>, pod: &PodFacts, holds: &mut Vec<Hold>) -> Wants {
    let affinity = spec.get("affinity");
    let node = affinity.get("nodeAffinity");
    let wanted: NodeAffinity = node.parse().unwrap_or_default();
    let selector = spec.get("nodeSelector").texts();
    let preferred = Preferred::new(&wanted.preferred).unwrap_or_else(|e| {
        holds.push(Hold::Invalid(node.problem(e.to_string()).to_string()));
        Preferred::default()
    });
    Wants {
        // What is not valid about it matches no node, and who asks a node is told why.
        required: Required::new(&selector, wanted.required.as_ref()),
        preferred,
        tolerations: spec.get("tolerations").list(),
        affinity: pod_affinity(&affinity.get("podAffinity"), pod, holds),
        anti_affinity: pod_affinity(&affinity.get("podAntiAffinity"), pod, holds),
        spread: spread(&spec.get("topologySpreadConstraints"), pod, holds),
        ports: ports(spec),
        ..Wants::default()
    }
}

fn pod_affinity(at: &At<'_, '_>, pod: &PodFacts, holds: &mut Vec<Hold>) -> PodAffinity {
    let required = at.get("requiredDuringSchedulingIgnoredDuringExecution");
    let preferred = at.get("preferredDuringSchedulingIgnoredDuringExecution");
    let mut out = PodAffinity::default();
    for term in required.items() {
        out.required.extend(pod_term(&term, pod, holds));
    }
    for weighted in preferred.items() {
        let weight = weighted.get("weight").int().unwrap_or_default();
        let term = pod_term(&weighted.get("podAffinityTerm"), pod, holds);
        out.preferred.extend(term.map(|term| (weight, term)));
    }
    out
}

fn pod_term(at: &At<'_, '_>, pod: &PodFacts, holds: &mut Vec<Hold>) -> Option<PodTerm> {
    let chosen = at.get("namespaceSelector");
    let mut namespaces: Vec<_> = at.get("namespaces").strings();
    if namespaces.is_empty() && !chosen.is_set() {
        namespaces.push(pod.key.namespace.to_string());
    }
    let namespace_selector = match chosen.some() {
        Some(chosen) => Some(selector(&chosen, &[], pod, holds)?),
        None => None,
    };
    let keys = [("In", at.get("matchLabelKeys").strings()), ("NotIn", at.get("mismatchLabelKeys").strings())];
    Some(PodTerm {
        namespaces: namespaces.into_iter().map(Into::into).collect(),
        namespace_selector,
        selector: selector(&at.get("labelSelector"), &keys, pod, holds)?,
        topology_key: at.get("topologyKey").string().into(),
    })
}

fn spread(at: &At<'_, '_>, pod: &PodFacts, holds: &mut Vec<Hold>) -> Vec<Spread> {
    let mut out = Vec::new();
    for one in at.items() {
        let mut invalid = |at: &At<'_, '_>, expected: &str| {
            holds.push(Hold::Invalid(at.problem(format!("expected {expected}")).to_string()));
        };
        let (skew, when) = (one.get("maxSkew"), one.get("whenUnsatisfiable"));
        let max_skew = skew.int().unwrap_or_default();
        if max_skew < 1 {
            invalid(&skew, "a number above zero");
        }
        let hard = when.text() == Some("DoNotSchedule");
        if !hard && when.text() != Some("ScheduleAnyway") {
            invalid(&when, "DoNotSchedule or ScheduleAnyway");
        }
        let keys = [("In", one.get("matchLabelKeys").strings())];
        let Some(selector) = selector(&one.get("labelSelector"), &keys, pod, holds) else { continue };
        out.push(Spread {
            max_skew,
            topology_key: one.get("topologyKey").string().into(),
            hard,
            selector,
            min_domains: one.get("minDomains").int(),
            honor_affinity: one.get("nodeAffinityPolicy").text() != Some("Ignore"),
            honor_taints: one.get("nodeTaintsPolicy").text() == Some("Honor"),
        });
    }
    out
}

/// A selector of pods like this one: further labels are to be as the pod itself has them, or not so. None and a
/// hold when it is not valid. One that is not there matches nothing, whatever the further labels.
fn selector(
    at: &At<'_, '_>,
    keys: &[(&str, Vec<String>)],
    pod: &PodFacts,
    holds: &mut Vec<Hold>,
) -> Option<Selector> {
    let mut given: Option<LabelSelector> = at.parse();
    if let Some(given) = &mut given {
        for (operator, keys) in keys {
            keys.iter().filter_map(|key| own(key, operator, &pod.labels)).for_each(|own| {
                // The API server may have put it there already.
                if !given.match_expressions.contains(&own) {
                    given.match_expressions.push(own);
                }
            });
        }
    }
    let ready = LabelSelector::prepare(given.as_ref());
    ready.map_err(|e| holds.push(Hold::Invalid(at.problem(e.to_string()).to_string()))).ok()
}

fn own(key: &str, operator: &str, labels: &BTreeMap<String, String>) -> Option<Expression> {
    let value = labels.get(key)?;
    Some(Expression { key: key.to_owned(), operator: operator.to_owned(), values: vec![value.clone()] })
}

/// Ports of the node the containers and sidecars take. On the network of the node, every port is one.
fn ports(spec: &At<'_, '_>) -> Vec<HostPort> {
    let host = spec.get("hostNetwork").flag();
    let (regular, init) = (spec.get("containers"), spec.get("initContainers"));
    let mut out = Vec::new();
    for container in init.items().filter(is_sidecar).chain(regular.items()) {
        for at in container.get("ports").items() {
            let written = at.get("hostPort").int32().unwrap_or_default();
            let inside = at.get("containerPort").int32().unwrap_or_default();
            let port = if host && written == 0 { inside } else { written };
            if port > 0 {
                let protocol = at.get("protocol").text().unwrap_or("TCP").to_owned();
                out.push(HostPort { ip: at.get("hostIP").string(), protocol, port });
            }
        }
    }
    out
}
