//! What else is in the cluster? Namespaces, services and disruption budgets.

use crate::context::key;
use crate::json::{Skip, Tree};
use crate::read::{Error, Warning, object, tolerant};
use loadline_core::object::Key;
use loadline_core::select::{LabelSelector, Selector};
use loadline_core::view::{Budget, Labels, NamespaceFacts, Texts};
use std::collections::BTreeMap;

/// The facts of a Namespace. Its name is among its labels, as the API server sees to.
///
/// # Errors
/// When the object is not what it should be.
pub fn namespace_facts(value: &Tree<'_>, texts: &mut Texts) -> Result<NamespaceFacts, Error> {
    namespace_labels(value).map(|read| read.facts(texts))
}

/// A Namespace, before its labels are numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    pub name: String,
    pub labels: BTreeMap<String, String>,
}

impl Namespace {
    /// The same, with its labels among all others.
    #[must_use]
    pub fn facts(&self, texts: &mut Texts) -> NamespaceFacts {
        NamespaceFacts { name: self.name.as_str().into(), labels: Labels::new(&self.labels, texts) }
    }
}

/// Reads a Namespace. Its name is among its labels, as the API server sees to.
///
/// # Errors
/// When the object is not what it should be.
pub fn namespace_labels(value: &Tree<'_>) -> Result<Namespace, Error> {
    object("Namespace", value, |root| {
        let metadata = root.get("metadata");
        let name = metadata.get("name").needed();
        let mut labels = metadata.get("labels").texts();
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
        Namespace { name, labels }
    })
}

/// A Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    pub key: Key,
    /// The labels its pods have; without any it has no pods.
    pub selector: BTreeMap<String, String>,
}

/// What [`service`] does not read.
pub const SKIP_SERVICE: Skip = Skip::fields(&["status"]).within(&[
    ("metadata", Skip::fields(&["annotations", "finalizers", "labels", "managedFields"])),
    ("spec", Skip::fields(&["clusterIPs", "externalIPs", "ipFamilies", "loadBalancerSourceRanges", "ports"])),
]);

/// Reads a Service.
///
/// # Errors
/// When the object is not what it should be.
pub fn service(value: &Tree<'_>) -> Result<Service, Error> {
    object("Service", value, |root| Service {
        key: key(&root.get("metadata")),
        selector: root.get("spec").get("selector").texts(),
    })
}

/// The texts of a `ConfigMap`.
///
/// # Errors
/// When the object is not what it should be.
pub fn config_map(value: &Tree<'_>) -> Result<BTreeMap<String, String>, Error> {
    object("ConfigMap", value, |root| root.get("data").texts())
}

/// The budget of a `PodDisruptionBudget`. Without a selector it is for no pod, with an empty one for all of its
/// namespace; one whose status nobody has written yet allows no disruption.
///
/// A selector that is not valid is for no pod, with a warning, as in Kubernetes.
///
/// # Errors
/// When the object is not what it should be.
pub fn budget(value: &Tree<'_>) -> Result<(Budget, Vec<Warning>), Error> {
    tolerant("PodDisruptionBudget", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let chosen = spec.get("selector");
        let given: Option<LabelSelector> = chosen.parse();
        Budget {
            key: key(&metadata),
            selector: LabelSelector::prepare(given.as_ref()).unwrap_or_else(|e| {
                chosen.warn(e.to_string());
                Selector::nothing()
            }),
            allowed: status.get("disruptionsAllowed").int().unwrap_or_default(),
            disrupted: status.get("disruptedPods").entries().map(|(pod, _)| pod.into()).collect(),
        }
    })
}
