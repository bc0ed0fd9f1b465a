//! What do pods and nodes refer to? Objects of their own that say what a name in a pod means.

use crate::json::Tree;
use crate::node;
use crate::read::{At, Error, object};
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_core::select::Selector;
use loadline_core::select::label::{Expression, LabelSelector};
use loadline_core::select::node::{NodeSelector, NodeTerm, Required};
use loadline_core::view::NodeFacts;
use loadline_core::view::volumes::{self, Capacity, Storage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The objects pods and nodes refer to. A second object of the same name replaces the first.
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub(crate) classes: BTreeMap<String, PriorityClass>,
    pub(crate) claims: BTreeMap<(String, String), Claim>,
    pub(crate) volumes: BTreeMap<String, PersistentVolume>,
    pub(crate) storage: BTreeMap<String, StorageClass>,
    limits: BTreeMap<String, BTreeMap<String, i64>>,
    drivers: BTreeMap<String, CsiDriver>,
    capacities: BTreeMap<Key, Capacity>,
}

/// A `PriorityClass`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityClass {
    pub name: String,
    /// The priority of its pods.
    pub value: i32,
    /// Does it hold for pods that name none?
    pub global_default: bool,
    /// May others be evicted for its pods?
    pub preempts: bool,
}

/// A `PersistentVolumeClaim`, as far as it matters here.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    pub namespace: String,
    pub name: String,
    /// The volume it has or waits for.
    pub volume: Option<String>,
    pub class: Option<String>,
    pub standing: Standing,
    /// May only one pod use it?
    pub exclusive: bool,
    /// The identity of its controller: claims made for one pod belong to it alone.
    pub owner: Option<String>,
    /// What it asks for, as long as it has no volume.
    pub asks: Arc<volumes::Claim>,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It waits for a volume.
    #[default]
    Waiting,
    /// The volume has been tied to it for good.
    Bound,
    /// Its volume is gone.
    Lost,
    /// It is being deleted.
    Leaving,
}

/// A `PersistentVolume`, as far as it matters here.
#[derive(Clone, Debug, Default)]
pub struct PersistentVolume {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub affinity: Option<NodeSelector>,
    /// Who attaches it, and its name there.
    pub attached: Option<(String, String)>,
    /// What it is to claims that have no volume yet.
    pub offer: volumes::PersistentVolume,
}

/// A `StorageClass`, as far as it matters here.
#[derive(Clone, Debug, Default)]
pub struct StorageClass {
    pub name: String,
    /// Is a volume bound only once its pod has a node?
    pub delayed: bool,
    /// How its volumes come about.
    pub offer: volumes::StorageClass,
}

/// A `CSIDriver`, as far as it matters here.
#[derive(Clone, Debug, Default)]
pub struct CsiDriver {
    pub name: String,
    /// Does it say how much it can still make?
    pub tracked: bool,
}

/// A `CSIStorageCapacity`.
#[derive(Clone, Debug, Default)]
pub struct StorageCapacity {
    pub key: Key,
    pub capacity: Capacity,
}

/// A `CSINode`: how many volumes each driver can attach to the node of that name.
#[derive(Clone, Debug, Default)]
pub struct CsiNode {
    pub name: String,
    pub limits: BTreeMap<String, i64>,
}

impl Context {
    /// Nothing to refer to.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a `PriorityClass`.
    ///
    /// # Errors
    /// When the object is not what it should be.
    pub fn priority_class(&mut self, value: &Tree<'_>) -> Result<(), Error> {
        self.set_priority_class(priority_class(value)?);
        Ok(())
    }

    /// A `PriorityClass` is there.
    pub fn set_priority_class(&mut self, class: PriorityClass) {
        self.classes.insert(class.name.clone(), class);
    }

    /// Forgets a `PriorityClass`.
    pub fn remove_priority_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    /// Adds a `PersistentVolumeClaim`.
    ///
    /// # Errors
    /// When the object is not what it should be.
    pub fn claim(&mut self, value: &Tree<'_>) -> Result<(), Error> {
        self.set_claim(claim(value)?);
        Ok(())
    }

    /// A `PersistentVolumeClaim` is there.
    pub fn set_claim(&mut self, claim: Claim) {
        self.claims.insert((claim.namespace.clone(), claim.name.clone()), claim);
    }

    /// Forgets a `PersistentVolumeClaim`.
    pub fn remove_claim(&mut self, namespace: &str, name: &str) {
        self.claims.remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// The claim of that key.
    #[must_use]
    pub fn find_claim(&self, key: &Key) -> Option<&Claim> {
        self.claims.get(&(key.namespace.to_string(), key.name.to_string()))
    }

    /// The volume of that name.
    #[must_use]
    pub fn find_volume(&self, name: &str) -> Option<&PersistentVolume> {
        self.volumes.get(name)
    }

    /// Adds a `PersistentVolume`.
    ///
    /// # Errors
    /// When the object is not what it should be.
    pub fn volume(&mut self, value: &Tree<'_>) -> Result<(), Error> {
        self.set_volume(volume(value)?);
        Ok(())
    }

    /// A `PersistentVolume` is there.
    pub fn set_volume(&mut self, volume: PersistentVolume) {
        self.volumes.insert(volume.name.clone(), volume);
    }

    /// Forgets a `PersistentVolume`.
    pub fn remove_volume(&mut self, name: &str) {
        self.volumes.remove(name);
    }

    /// Adds a `StorageClass`.
    ///
    /// # Errors
    /// When the object is not what it should be.
    pub fn storage_class(&mut self, value: &Tree<'_>) -> Result<(), Error> {
        self.set_storage_class(storage_class(value)?);
        Ok(())
    }

    /// A `StorageClass` is there.
    pub fn set_storage_class(&mut self, class: StorageClass) {
        self.storage.insert(class.name.clone(), class);
    }

    /// Forgets a `StorageClass`.
    pub fn remove_storage_class(&mut self, name: &str) {
        self.storage.remove(name);
    }

    /// Adds a `CSINode`, which says how many volumes its node can attach.
    ///
    /// # Errors
    /// When the object is not what it should be.
    pub fn csi_node(&mut self, value: &Tree<'_>) -> Result<(), Error> {
        self.set_csi_node(csi_node(value)?);
        Ok(())
    }

    /// A `CSINode` is there.
    pub fn set_csi_node(&mut self, node: CsiNode) {
        self.limits.insert(node.name, node.limits);
    }

    /// Forgets a `CSINode`.
    pub fn remove_csi_node(&mut self, name: &str) {
        self.limits.remove(name);
    }

    /// Adds a `CSIDriver`.
    ///
    /// # Errors
    /// When the object is not what it should be.
    pub fn csi_driver(&mut self, value: &Tree<'_>) -> Result<(), Error> {
        let driver = csi_driver(value)?;
        self.drivers.insert(driver.name.clone(), driver);
        Ok(())
    }

    /// Adds a `CSIStorageCapacity`.
    ///
    /// # Errors
    /// When the object is not what it should be.
    pub fn storage_capacity(&mut self, value: &Tree<'_>) -> Result<(), Error> {
        let StorageCapacity { key, capacity } = storage_capacity(value)?;
        self.capacities.insert(key, capacity);
        Ok(())
    }

    /// Tells what claims without a volume can get.
    pub fn offer(&self, storage: &mut Storage) {
        self.volumes.values().for_each(|volume| storage.set_volume(volume.offer.clone()));
        self.storage.values().for_each(|class| storage.set_class(class.offer.clone()));
        for driver in self.drivers.values().filter(|driver| driver.tracked) {
            storage.track(driver.name.as_str().into());
        }
        for (key, capacity) in &self.capacities {
            storage.set_capacity(key.clone(), capacity.clone());
        }
    }

    /// How many volumes each driver can attach to that node.
    #[must_use]
    pub fn attach_limits(&self, node: &str) -> BTreeMap<String, i64> {
        self.limits.get(node).cloned().unwrap_or_default()
    }

    /// Adds to a node what other objects say about it.
    pub fn complete(&self, node: &mut NodeFacts) {
        node.attach_limits = self.attach_limits(&node.name);
    }

    /// The class of that name, or the one for pods that name none.
    pub(crate) fn class(&self, name: Option<&str>) -> Option<PriorityClass> {
        let Some(name) = name else {
            // Of several, the lowest holds, as in the API server.
            let default = self.classes.values().filter(|c| c.global_default).min_by_key(|c| c.value);
            return default.cloned();
        };
        let system =
            |value| PriorityClass { name: name.into(), value, global_default: false, preempts: true };
        // These two are always there, also where nobody listed them.
        let built_in = match name {
            "system-cluster-critical" => Some(system(2_000_000_000)),
            "system-node-critical" => Some(system(2_000_001_000)),
            _ => None,
        };
        self.classes.get(name).cloned().or(built_in)
    }

    /// The priority of pods that name that class, or none; `None` if there is no such class.
    pub(crate) fn class_value(&self, name: Option<&str>) -> Option<i32> {
        self.class(name).map(|class| class.value)
    }

    /// The priority of pods that name that class, or none, as far as others may be evicted for them: `None` where
    /// that is not known or never happens.
    pub(crate) fn priority(&self, name: Option<&str>) -> Option<i32> {
        match self.class(name) {
            Some(class) => class.preempts.then_some(class.value),
            None => name.is_none().then_some(0),
        }
    }
}

/// Reads a `PriorityClass`.
///
/// # Errors
/// When the object is not what it should be.
pub fn priority_class(value: &Tree<'_>) -> Result<PriorityClass, Error> {
    object("PriorityClass", value, |root| PriorityClass {
        name: root.get("metadata").get("name").needed(),
        value: root.get("value").int32().unwrap_or_default(),
        global_default: root.get("globalDefault").flag(),
        preempts: root.get("preemptionPolicy").text() != Some("Never"),
    })
}

/// Reads a `PersistentVolumeClaim`.
///
/// # Errors
/// When the object is not what it should be.
pub fn claim(value: &Tree<'_>) -> Result<Claim, Error> {
    object("PersistentVolumeClaim", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let annotations = metadata.get("annotations");
        let (phase, modes) = (status.get("phase"), modes(&spec));
        let class = class(&metadata, &spec);
        Claim {
            namespace: namespace(metadata.get("namespace").text()),
            name: metadata.get("name").needed(),
            volume: spec.get("volumeName").text().map(str::to_owned),
            standing: match phase.text() {
                Some("Lost") => Standing::Lost,
                _ if metadata.get("deletionTimestamp").is_set() => Standing::Leaving,
                Some("Bound") => Standing::Bound,
                // What the scheduler of Kubernetes goes by; files tend to have the phase only.
                _ if annotations.get("pv.kubernetes.io/bind-completed").is_set() => Standing::Bound,
                _ => Standing::Waiting,
            },
            exclusive: modes.iter().any(|mode| **mode == *"ReadWriteOncePod"),
            owner: crate::read::controller(&metadata).map(|owner| owner.uid.to_string()),
            asks: Arc::new(volumes::Claim {
                key: key(&metadata),
                uid: metadata.get("uid").shared(),
                class: class.as_deref().unwrap_or_default().into(),
                request: amount(&spec.get("resources").get("requests")),
                modes,
                block: spec.get("volumeMode").text() == Some("Block"),
                selector: selector(&spec.get("selector")),
                attributes: spec.get("volumeAttributesClassName").shared(),
                node: annotations.get(SELECTED_NODE).text().map(Into::into),
            }),
            class,
        }
    })
}

/// Reads a `PersistentVolume`.
///
/// # Errors
/// When the object is not what it should be.
pub fn volume(value: &Tree<'_>) -> Result<PersistentVolume, Error> {
    object("PersistentVolume", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let (name, labels) = (metadata.get("name").needed(), metadata.get("labels").texts());
        let affinity: Option<NodeSelector> = spec.get("nodeAffinity").get("required").parse();
        let (claim, phase) = (spec.get("claimRef").some(), status.get("phase"));
        let claimed = claim.map(|claim| {
            let by = Key::new(claim.get("namespace").string(), claim.get("name").string());
            (by, claim.get("uid").shared())
        });
        PersistentVolume {
            offer: volumes::PersistentVolume {
                name: name.as_str().into(),
                labels: labels.clone(),
                class: class(&metadata, &spec).unwrap_or_default().into(),
                capacity: amount(&spec.get("capacity")).unwrap_or_default(),
                modes: modes(&spec),
                block: spec.get("volumeMode").text() == Some("Block"),
                attributes: spec.get("volumeAttributesClassName").shared(),
                reachable: Required::new(&BTreeMap::new(), affinity.as_ref()),
                // Files tend to have no status.
                available: phase.text().map_or(claimed.is_none(), |phase| phase == "Available"),
                claimed,
                terminating: metadata.get("deletionTimestamp").is_set(),
            },
            attached: crate::pod::volumes::attached(&spec),
            affinity,
            labels,
            name,
        }
    })
}

/// The node a volume is made for, written on the claim by whoever places its pod.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

fn class(metadata: &At<'_, '_>, spec: &At<'_, '_>) -> Option<String> {
    let annotations = metadata.get("annotations");
    let old = annotations.get("volume.beta.kubernetes.io/storage-class");
    old.text().or(spec.get("storageClassName").text()).map(str::to_owned)
}

fn modes(spec: &At<'_, '_>) -> Vec<Arc<str>> {
    spec.get("accessModes").items().map(|mode| mode.shared()).collect()
}

fn amount(of: &At<'_, '_>) -> Option<Quantity> {
    of.get("storage").some()?.amount().ok()
}

/// A selector; one that is not valid selects nothing.
fn selector(at: &At<'_, '_>) -> Option<Selector> {
    let written: LabelSelector = at.parse()?;
    Some(written.selector().unwrap_or_else(|_| Selector::nothing()))
}

/// Reads a `StorageClass`.
///
/// # Errors
/// When the object is not what it should be.
pub fn storage_class(value: &Tree<'_>) -> Result<StorageClass, Error> {
    object("StorageClass", value, |root| {
        let name = root.get("metadata").get("name").needed();
        let term = |term: At<'_, '_>| NodeTerm {
            match_expressions: term
                .get("matchLabelExpressions")
                .items()
                .map(|at| Expression {
                    key: at.get("key").string(),
                    operator: "In".to_owned(),
                    values: at.get("values").strings(),
                })
                .collect(),
            match_fields: Vec::new(),
        };
        let terms: Vec<NodeTerm> = root.get("allowedTopologies").items().map(term).collect();
        let allowed = (!terms.is_empty()).then_some(NodeSelector { node_selector_terms: terms });
        let provisioner = root.get("provisioner");
        StorageClass {
            delayed: root.get("volumeBindingMode").text() == Some("WaitForFirstConsumer"),
            offer: volumes::StorageClass {
                name: name.as_str().into(),
                provisioner: provisioner.text().filter(|by| *by != NO_PROVISIONER).map(Into::into),
                reachable: Required::new(&BTreeMap::new(), allowed.as_ref()),
            },
            name,
        }
    })
}

/// Says of a class that nobody makes its volumes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Reads a `CSIDriver`.
///
/// # Errors
/// When the object is not what it should be.
pub fn csi_driver(value: &Tree<'_>) -> Result<CsiDriver, Error> {
    object("CSIDriver", value, |root| CsiDriver {
        name: root.get("metadata").get("name").needed(),
        tracked: root.get("spec").get("storageCapacity").flag(),
    })
}

/// Reads a `CSIStorageCapacity`.
///
/// # Errors
/// When the object is not what it should be.
pub fn storage_capacity(value: &Tree<'_>) -> Result<StorageCapacity, Error> {
    object("CSIStorageCapacity", value, |root| {
        let bytes = |field: &str| root.get(field).some()?.amount().ok().map(|amount| amount.value());
        StorageCapacity {
            key: key(&root.get("metadata")),
            capacity: Capacity {
                class: root.get("storageClassName").shared(),
                nodes: selector(&root.get("nodeTopology")),
                // The size of one volume says more than what is left in all.
                limit: bytes("maximumVolumeSize").or_else(|| bytes("capacity")),
            },
        }
    })
}

/// Reads a `CSINode`.
///
/// # Errors
/// When the object is not what it should be.
pub fn csi_node(value: &Tree<'_>) -> Result<CsiNode, Error> {
    object("CSINode", value, |root| CsiNode {
        name: root.get("metadata").get("name").needed(),
        limits: node::limits(root).into_iter().collect(),
    })
}

/// The namespace written, or the one that is meant by none.
pub(crate) fn namespace(written: Option<&str>) -> String {
    written.unwrap_or("default").to_owned()
}

/// The key of an object that is in a namespace.
pub(crate) fn key(metadata: &At<'_, '_>) -> Key {
    Key::new(namespace(metadata.get("namespace").text()), metadata.get("name").needed())
}
