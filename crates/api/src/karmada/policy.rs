//! What does a policy place, and where?

use super::placement::{Written, placement};
use crate::json::Tree;
use crate::read::{Error, Warning, tolerant};
use loadline_core::divide::{Bound, Placement};
use loadline_core::select::{LabelSelector, Selector};
use std::collections::BTreeMap;

/// A policy, with the defaults admission gives it.
#[derive(Clone, Debug)]
pub struct Policy {
    pub name: String,
    /// Its namespace, if it has one: it places only what is there.
    pub namespace: Option<String>,
    /// Where to.
    pub placement: Placement,
    selectors: Vec<Resources>,
}

/// What is placed.
#[derive(Clone, Debug)]
struct Resources {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    labels: Selector,
}

/// Reads a `PropagationPolicy` or `ClusterPropagationPolicy`.
///
/// # Errors
/// When the object is not what it should be.
pub fn policy(value: &Tree<'_>) -> Result<(Policy, Vec<Warning>), Error> {
    let kind = value["kind"].as_str().unwrap_or("PropagationPolicy");
    tolerant(kind, value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        let selectors = spec.get("resourceSelectors");
        let resources = selectors.items().map(|at| {
            let labels = at.get("labelSelector");
            let selector: Option<LabelSelector> = labels.parse();
            let selector = selector.map_or(Ok(Selector::everything()), |selector| selector.selector());
            Resources {
                api_version: at.get("apiVersion").needed(),
                kind: at.get("kind").needed(),
                namespace: at.get("namespace").string(),
                name: at.get("name").string(),
                labels: selector.unwrap_or_else(|problem| {
                    labels.fail(problem.to_string());
                    Selector::nothing()
                }),
            }
        });
        let namespaced = kind == "PropagationPolicy";
        Policy {
            name: metadata.get("name").needed(),
            namespace: namespaced.then(|| metadata.get("namespace").text().unwrap_or("default").to_owned()),
            selectors: resources.collect(),
            placement: placement(&spec.get("placement"), Written::Admitted),
        }
    })
}

impl Policy {
    /// Is it about this object, which has these labels?
    #[must_use]
    pub fn is_about(&self, bound: &Bound, labels: &BTreeMap<String, String>) -> bool {
        let or_any = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
        self.namespace.as_ref().is_none_or(|space| **space == *bound.key.namespace)
            && self.selectors.iter().any(|one| {
                one.api_version == bound.api_version
                    && one.kind == bound.kind
                    && or_any(&one.namespace, &bound.key.namespace)
                    // A name makes labels unnecessary.
                    && if one.name.is_empty() { one.labels.matches(labels) } else { *one.name == *bound.key.name }
            })
    }
}
