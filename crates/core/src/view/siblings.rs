//! Which pods belong together though none of them says so? Those that the same services and workload select.

use super::{Labels, Owner, PodView, Texts};
use crate::object::Key;
use crate::select::label::Requirement;
use crate::select::{Lookup as _, Selector};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A kind of workload whose selector says which pods are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maker {
    ReplicationController,
    ReplicaSet,
    StatefulSet,
}

impl Maker {
    /// The kind of that name in that API group.
    #[must_use]
    pub fn named(group: &str, kind: &str) -> Option<Self> {
        match (group, kind) {
            ("", "ReplicationController") => Some(Self::ReplicationController),
            ("apps", "ReplicaSet") => Some(Self::ReplicaSet),
            ("apps", "StatefulSet") => Some(Self::StatefulSet),
            _ => None,
        }
    }

    fn of(owner: &Owner) -> Option<Self> {
        Self::named(&owner.group, &owner.kind)
    }
}

/// What services and workloads select.
#[derive(Clone, Debug, Default)]
pub struct Siblings {
    spaces: FxHashMap<Arc<str>, Space>,
}

/// A key and a value.
type Label = (Arc<str>, Arc<str>);

/// One namespace.
#[derive(Clone, Debug, Default)]
struct Space {
    services: BTreeMap<Arc<str>, Labels>,
    /// Names of services by the first label they ask for: a pod has few labels, a namespace may have many services.
    by_label: FxHashMap<Label, Vec<Arc<str>>>,
    workloads: FxHashMap<(Maker, Arc<str>), Selector>,
}

impl Space {
    fn forget(&mut self, service: &str) {
        let Some(gone) = self.services.remove(service) else { return };
        let Some(first) = gone.shared().next() else { return };
        if let Some(names) = self.by_label.get_mut(first) {
            names.retain(|name| **name != *service);
            if names.is_empty() {
                self.by_label.remove(first);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.services.is_empty() && self.workloads.is_empty()
    }
}

impl Siblings {
    /// A service selects pods with all these labels; one without any selects none.
    pub(super) fn set_service(&mut self, key: &Key, labels: &BTreeMap<String, String>, texts: &mut Texts) {
        let known = self.spaces.get(&key.namespace).and_then(|space| space.services.get(&key.name));
        let labels = Labels::new(labels, texts);
        if known == Some(&labels) {
            return;
        }
        self.remove_service(key);
        let Some(first) = labels.shared().next().cloned() else { return };
        let space = self.spaces.entry(key.namespace.clone()).or_default();
        space.by_label.entry(first).or_default().push(key.name.clone());
        space.services.insert(key.name.clone(), labels);
    }

    pub(super) fn remove_service(&mut self, key: &Key) {
        self.change(&key.namespace, |space| space.forget(&key.name));
    }

    /// A workload selects its pods like this.
    pub(super) fn set_workload(&mut self, maker: Maker, key: &Key, selector: Selector) {
        let space = self.spaces.entry(key.namespace.clone()).or_default();
        space.workloads.insert((maker, key.name.clone()), selector);
    }

    pub(super) fn remove_workload(&mut self, maker: Maker, key: &Key) {
        let name = (maker, key.name.clone());
        self.change(&key.namespace, |space| drop(space.workloads.remove(&name)));
    }

    pub(super) fn knows(&self, maker: Maker, key: &Key, selector: &Selector) -> bool {
        let space = self.spaces.get(&key.namespace);
        space.and_then(|space| space.workloads.get(&(maker, key.name.clone()))) == Some(selector)
    }

    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut Space)) {
        let Some(space) = self.spaces.get_mut(namespace) else { return };
        change(space);
        if space.is_empty() {
            self.spaces.remove(namespace);
        }
    }

    /// Selects the pods that belong with this one: what every service that selects it asks for, and what the workload
    /// that made it does. `None` if that is nothing.
    #[must_use]
    pub fn of(&self, pod: &PodView) -> Option<Selector> {
        let space = self.spaces.get(&pod.key.namespace)?;
        let mut asked: BTreeMap<&str, &str> = BTreeMap::new();
        if !space.by_label.is_empty() {
            let named = pod.labels.shared().filter_map(|label| space.by_label.get(label)).flatten();
            for labels in named.filter_map(|name| space.services.get(name)) {
                if labels.iter().all(|(key, value)| pod.labels.value(key) == Some(value)) {
                    asked.extend(labels.iter());
                }
            }
        }
        let made = pod.owner.as_ref().and_then(|owner| {
            let maker = Maker::of(owner).filter(|_| !space.workloads.is_empty())?;
            space.workloads.get(&(maker, owner.name.clone()))?.requirements()
        });
        let own = asked.into_iter().map(|(key, value)| Requirement::equals(key.to_owned(), value.to_owned()));
        let all: Vec<Requirement> = own.chain(made.into_iter().flatten().cloned()).collect();
        (!all.is_empty()).then(|| Selector::all(all))
    }
}
