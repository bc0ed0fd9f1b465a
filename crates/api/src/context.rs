//! What do pods and nodes refer to? Objects of their own that say what a name in a pod means.

use crate::json::Tree;
use crate::node;
use crate::read::{At, Error, object};
use loadline_core::object::Key;
use loadline_core::select::node::NodeSelector;
use loadline_core::view::NodeFacts;
use std::collections::BTreeMap;

/// The objects pods and nodes refer to. A second object of the same name replaces the first.
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub(crate) classes: BTreeMap<String, PriorityClass>,
    pub(crate) claims: BTreeMap<(String, String), Claim>,
    pub(crate) volumes: BTreeMap<String, PersistentVolume>,
    /// By name: is a volume bound only once its pod has a node?
    pub(crate) storage: BTreeMap<String, bool>,
    limits: BTreeMap<String, BTreeMap<String, i64>>,
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
}

/// A `StorageClass`, as far as it matters here.
#[derive(Clone, Debug, Default)]
pub struct StorageClass {
    pub name: String,
    /// Is a volume bound only once its pod has a node?
    pub delayed: bool,
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
        self.storage.insert(class.name, class.delayed);
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
        let old_class = annotations.get("volume.beta.kubernetes.io/storage-class");
        let (phase, modes) = (status.get("phase"), spec.get("accessModes"));
        Claim {
            namespace: namespace(metadata.get("namespace").text()),
            name: metadata.get("name").needed(),
            volume: spec.get("volumeName").text().map(str::to_owned),
            class: old_class.text().or(spec.get("storageClassName").text()).map(str::to_owned),
            standing: match phase.text() {
                Some("Lost") => Standing::Lost,
                _ if metadata.get("deletionTimestamp").is_set() => Standing::Leaving,
                Some("Bound") => Standing::Bound,
                // What the scheduler of Kubernetes goes by; files tend to have the phase only.
                _ if annotations.get("pv.kubernetes.io/bind-completed").is_set() => Standing::Bound,
                _ => Standing::Waiting,
            },
            exclusive: modes.items().any(|mode| mode.text() == Some("ReadWriteOncePod")),
            owner: crate::read::controller(&metadata).map(|owner| owner.uid.to_string()),
        }
    })
}

/// Reads a `PersistentVolume`.
///
/// # Errors
/// When the object is not what it should be.
pub fn volume(value: &Tree<'_>) -> Result<PersistentVolume, Error> {
    object("PersistentVolume", value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        PersistentVolume {
            labels: metadata.get("labels").texts(),
            affinity: spec.get("nodeAffinity").get("required").parse(),
            attached: crate::pod::volumes::attached(&spec),
            name: metadata.get("name").needed(),
        }
    })
}

/// Reads a `StorageClass`. Without it an unbound claim is just that; with it the reason is better.
///
/// # Errors
/// When the object is not what it should be.
pub fn storage_class(value: &Tree<'_>) -> Result<StorageClass, Error> {
    object("StorageClass", value, |root| StorageClass {
        delayed: root.get("volumeBindingMode").text() == Some("WaitForFirstConsumer"),
        name: root.get("metadata").get("name").needed(),
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
