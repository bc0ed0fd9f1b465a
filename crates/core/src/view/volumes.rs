//! Which volumes can still be had, and what do claims without one ask for?
//!
//! A claim whose class waits for the first pod that uses it gets its volume where that pod goes: one that is there
//! already, or one made to order. [`Storage`] has what that depends on. What was decided counts at once: two pods never
//! get one volume, also before anybody has seen the first decision written.

use crate::object::Key;
use crate::quantity::Quantity;
use crate::select::Selector;
use crate::select::node::Required;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A `PersistentVolumeClaim` that gets its volume once its pod has a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    pub key: Key,
    pub uid: Arc<str>,
    /// Its storage class.
    pub class: Arc<str>,
    /// How much it asks for.
    pub request: Option<Quantity>,
    /// How it is to be accessed, such as `ReadWriteOnce`: a volume must allow all of these.
    pub modes: Vec<Arc<str>>,
    /// Is a block device wanted, not a file system?
    pub block: bool,
    /// Which volumes will do; `None` for any.
    pub selector: Option<Selector>,
    /// Its `VolumeAttributesClass`; empty for none.
    pub attributes: Arc<str>,
    /// The node its volume is being made for.
    pub node: Option<Arc<str>>,
}

/// A `PersistentVolume` that a claim might get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistentVolume {
    pub name: Arc<str>,
    pub labels: BTreeMap<String, String>,
    pub class: Arc<str>,
    pub capacity: Quantity,
    pub modes: Vec<Arc<str>>,
    pub block: bool,
    pub attributes: Arc<str>,
    /// Which nodes can reach it.
    pub reachable: Required,
    /// Whose it is, or is meant to be: the claim and its identity, empty if only the name is given.
    pub claimed: Option<(Key, Arc<str>)>,
    /// Does it say that it can be had?
    pub available: bool,
    /// Is it being deleted?
    pub terminating: bool,
}

impl PersistentVolume {
    /// Is it this claim's, or meant for it?
    #[must_use]
    pub fn is_for(&self, claim: &Claim) -> bool {
        self.claimed.as_ref().is_some_and(|by| matches(by, claim))
    }
}

fn matches((key, uid): &(Key, Arc<str>), claim: &Claim) -> bool {
    *key == claim.key && (uid.is_empty() || *uid == claim.uid)
}

/// How volumes of a `StorageClass` come about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClass {
    pub name: Arc<str>,
    /// Who makes volumes; `None` if nobody does.
    pub provisioner: Option<Arc<str>>,
    /// For which nodes they can be made.
    pub reachable: Required,
}

/// A `CSIStorageCapacity`: how much can still be made for some nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    pub class: Arc<str>,
    /// For which nodes; `None` for no node.
    pub nodes: Option<Selector>,
    /// The largest volume that can be made, in bytes; `None` if nobody says.
    pub limit: Option<i64>,
}

/// A volume a pod got together with its node, not written yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub claim: Arc<Claim>,
    /// The volume it gets; `None` if one is made.
    pub volume: Option<Arc<str>>,
}

/// Everything claims can get volumes from.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    volumes: BTreeMap<Arc<str>, Arc<PersistentVolume>>,
    by_class: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    classes: BTreeMap<Arc<str>, StorageClass>,
    capacities: BTreeMap<Key, Capacity>,
    /// Drivers that say how much they can still make.
    tracked: BTreeSet<Arc<str>>,
    /// By the uid of a pod: its node, and what its claims get there.
    assumed: BTreeMap<Arc<str>, (Arc<str>, Vec<Planned>)>,
}

impl Storage {
    /// A volume is there.
    pub fn set_volume(&mut self, volume: PersistentVolume) {
        self.remove_volume(&volume.name);
        self.by_class.entry(volume.class.clone()).or_default().insert(volume.name.clone());
        self.volumes.insert(volume.name.clone(), Arc::new(volume));
    }

    /// A volume is gone.
    pub fn remove_volume(&mut self, name: &str) {
        let Some(old) = self.volumes.remove(name) else { return };
        if let Some(names) = self.by_class.get_mut(&old.class) {
            names.remove(name);
            if names.is_empty() {
                self.by_class.remove(&old.class);
            }
        }
    }

    /// A class is there.
    pub fn set_class(&mut self, class: StorageClass) {
        self.classes.insert(class.name.clone(), class);
    }

    /// A class is gone.
    pub fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    /// The driver says how much it can still make.
    pub fn track(&mut self, driver: Arc<str>) {
        self.tracked.insert(driver);
    }

    /// The driver does not say how much it can make.
    pub fn untrack(&mut self, driver: &str) {
        self.tracked.remove(driver);
    }

    /// So much can be made.
    pub fn set_capacity(&mut self, key: Key, capacity: Capacity) {
        self.capacities.insert(key, capacity);
    }

    /// Nobody says any more how much can be made.
    pub fn remove_capacity(&mut self, key: &Key) {
        self.capacities.remove(key);
    }

    /// The class of that name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&StorageClass> {
        self.classes.get(name)
    }

    /// The volume of that name.
    #[must_use]
    pub fn volume(&self, name: &str) -> Option<&Arc<PersistentVolume>> {
        self.volumes.get(name)
    }

    /// Does that driver say how much it can make?
    #[must_use]
    pub fn is_tracked(&self, driver: &str) -> bool {
        self.tracked.contains(driver)
    }

    /// How much can be made of that class.
    pub fn capacities<'a>(&'a self, class: &'a str) -> impl Iterator<Item = &'a Capacity> {
        self.capacities.values().filter(move |c| &*c.class == class)
    }

    /// The volumes of a class, by name.
    pub fn of_class(&self, class: &str) -> impl Iterator<Item = &Arc<PersistentVolume>> {
        self.by_class.get(class).into_iter().flatten().filter_map(|name| self.volumes.get(name))
    }

    /// What claims were given and nobody has seen yet: volumes by name.
    pub(crate) fn taken(&self) -> BTreeMap<&str, &Claim> {
        let planned = self.assumed.values().flat_map(|(_, planned)| planned);
        planned.filter_map(|p| Some((&**p.volume.as_ref()?, &*p.claim))).collect()
    }

    /// The node the volume of a claim is made for, as it says itself or as was decided.
    pub(crate) fn node_of<'a>(&'a self, claim: &'a Claim) -> Option<&'a str> {
        let decided = || {
            let is_it =
                |p: &Planned| p.volume.is_none() && p.claim.uid == claim.uid && p.claim.key == claim.key;
            let mut all = self.assumed.values();
            all.find(|(_, planned)| planned.iter().any(is_it)).map(|(node, _)| &**node)
        };
        claim.node.as_deref().or_else(decided)
    }

    /// What was decided for a pod that goes to this node counts from now on.
    pub(crate) fn assume(&mut self, pod: &Arc<str>, node: &Arc<str>, planned: Vec<Planned>) {
        self.assumed.insert(pod.clone(), (node.clone(), planned));
    }

    /// What was decided for a pod is written, or does not hold any more.
    pub(crate) fn forget(&mut self, pod: &str) {
        self.assumed.remove(pod);
    }

    /// Is something assumed for this pod?
    pub(crate) fn assumes(&self, pod: &str) -> bool {
        self.assumed.contains_key(pod)
    }
}

/// A disk written in a pod that some pods cannot share on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    /// Its kind, and what names it but its address.
    pub name: Arc<str>,
    /// Where it is; two disks of one name are the same if they have an address in common.
    pub addresses: Vec<Arc<str>>,
    /// Is it only read, and may others read it, too?
    pub shared: bool,
}

impl Disk {
    /// Can the two not be on one node?
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        self.name == other.name
            && !(self.shared && other.shared)
            && self.addresses.iter().any(|address| other.addresses.contains(address))
    }
}
