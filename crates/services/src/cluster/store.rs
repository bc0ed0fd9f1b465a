//! What is there of one kind of object? By name, with identity and revision.
//!
//! A list names what is there, not what is gone; and a watch may miss that something went and came back under the same
//! name. So every object is remembered by name, with its identity and the list that last named it. Answers to our own
//! writes may overtake the watch, and come after it: an object is never replaced by an older state of itself.

use loadline_core::object::{Key, Meta};
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// What is remembered of an object.
#[derive(Clone, Debug)]
struct Entry<T> {
    uid: Box<str>,
    revision: Option<NonZeroU64>,
    /// The list that last named it.
    list: u32,
    value: T,
}

/// Every object of one kind that is there, by name, with a value of the owner's.
#[derive(Clone, Debug)]
pub struct Store<T> {
    /// By namespace, then name: a namespace is written once.
    namespaces: BTreeMap<Box<str>, BTreeMap<Box<str>, Entry<T>>>,
    count: usize,
    /// Which list this is.
    list: u32,
    /// The watch has told everything up to this revision.
    seen: u64,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { namespaces: BTreeMap::new(), count: 0, list: 0, seen: 0 }
    }
}

/// What became of an object that was applied.
#[derive(Debug, PartialEq, Eq)]
pub enum Applied<'s, T> {
    /// It is there; the value is the one of before if it was there before. Another of that name may have had to go.
    Kept { value: &'s mut T, replaced: Option<(Meta, T)> },
    /// It is older than what is known.
    Stale,
}

impl<T> Store<T> {
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What is remembered of an object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&T> {
        Some(&self.namespaces.get(&*key.namespace)?.get(&*key.name)?.value)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &Key) -> Option<&mut T> {
        Some(&mut self.namespaces.get_mut(&*key.namespace)?.get_mut(&*key.name)?.value)
    }

    /// Everything, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &T)> {
        self.namespaces.iter().flat_map(|(namespace, objects)| {
            objects.iter().map(move |(name, entry)| (&**namespace, &**name, &entry.value))
        })
    }

    /// The objects of one namespace, by name.
    pub fn within(&self, namespace: &str) -> impl Iterator<Item = &T> {
        self.namespaces.get(namespace).into_iter().flat_map(|objects| objects.values().map(|e| &e.value))
    }

    /// A list begins.
    pub fn list_started(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// An object is gone; its value, unless it was not there, or another of that name is by now.
    pub fn delete(&mut self, meta: &Meta) -> Option<T> {
        self.see(meta);
        let objects = self.namespaces.get_mut(&*meta.key.namespace)?;
        if objects.get(&*meta.key.name).is_none_or(|entry| *entry.uid != *meta.uid) {
            return None;
        }
        let entry = objects.remove(&*meta.key.name)?;
        self.count -= 1;
        if objects.is_empty() {
            self.namespaces.remove(&*meta.key.namespace);
        }
        Some(entry.value)
    }

    /// The list is complete, as of that revision: what it did not name is gone.
    pub fn listed(&mut self, revision: Option<u64>) -> Vec<(Meta, T)> {
        // A server restored from a backup counts from an older revision.
        self.seen = revision.unwrap_or(self.seen);
        let (list, mut gone) = (self.list, Vec::new());
        for (namespace, objects) in &mut self.namespaces {
            for (name, entry) in objects.extract_if(.., |_, entry| entry.list != list) {
                gone.push((meta(namespace, &name, &entry), entry.value));
            }
        }
        self.namespaces.retain(|_, objects| !objects.is_empty());
        self.count -= gone.len();
        gone
    }

    fn see(&mut self, meta: &Meta) {
        self.seen = self.seen.max(meta.revision.unwrap_or_default());
    }
}

impl<T: Default> Store<T> {
    /// An object is there, as a list or the watch says.
    pub fn apply(&mut self, meta: &Meta) -> Applied<'_, T> {
        self.see(meta);
        self.put(meta)
    }

    /// An object is there, as the answer to a write of our own says. What the watch is past already changes nothing.
    pub fn wrote(&mut self, meta: &Meta) -> Applied<'_, T> {
        if meta.revision.is_some_and(|revision| revision <= self.seen) {
            return Applied::Stale;
        }
        self.put(meta)
    }

    fn put(&mut self, new: &Meta) -> Applied<'_, T> {
        let Key { namespace, name } = &new.key;
        if !self.namespaces.contains_key(&**namespace) {
            self.namespaces.insert((&**namespace).into(), BTreeMap::new());
        }
        let Some(objects) = self.namespaces.get_mut(&**namespace) else { return Applied::Stale };
        let revision = new.revision.and_then(NonZeroU64::new);
        if !objects.contains_key(&**name) {
            let uid = (&*new.uid).into();
            objects.insert((&**name).into(), Entry { uid, revision, list: self.list, value: T::default() });
            self.count += 1;
        }
        let Some(entry) = objects.get_mut(&**name) else { return Applied::Stale };
        let same = *entry.uid == *new.uid;
        // What a list says first holds whatever was known: the server may have been restored from a backup.
        if same && entry.list == self.list && revision.is_some() && entry.revision > revision {
            return Applied::Stale;
        }
        let replaced = (!same).then(|| (meta(namespace, name, entry), std::mem::take(&mut entry.value)));
        if !same {
            entry.uid = (&*new.uid).into();
        }
        (entry.revision, entry.list) = (revision, self.list);
        Applied::Kept { value: &mut entry.value, replaced }
    }
}

fn meta<T>(namespace: &str, name: &str, entry: &Entry<T>) -> Meta {
    Meta {
        key: Key::new(namespace, name),
        uid: (&*entry.uid).into(),
        revision: entry.revision.map(NonZeroU64::get),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn meta(namespace: &str, name: &str, uid: &str) -> Meta {
        Meta { key: Key::new(namespace, name), uid: uid.into(), revision: None }
    }

    fn at(revision: u64) -> Meta {
        Meta { revision: Some(revision), ..meta("x", "a", "1") }
    }

    /// The uid of the other object of that name that had to go.
    fn set(store: &mut Store<()>, meta: &Meta) -> Option<String> {
        match store.apply(meta) {
            Applied::Kept { replaced, .. } => replaced.map(|(gone, ())| gone.uid.to_string()),
            Applied::Stale => panic!("nothing is known to be older"),
        }
    }

    #[test]
    fn what_a_list_does_not_name_is_gone() {
        let mut store = Store::default();
        store.list_started();
        for name in ["a", "b", "c"] {
            assert_eq!(set(&mut store, &meta("x", name, name)), None);
        }
        assert_eq!(store.listed(None), []);
        set(&mut store, &meta("x", "d", "d"));
        // A list that breaks off says nothing of what it did not get to.
        store.list_started();
        set(&mut store, &meta("x", "a", "a"));
        store.list_started();
        set(&mut store, &meta("x", "b", "b"));
        set(&mut store, &meta("x", "c", "other"));
        let gone: Vec<String> =
            store.listed(None).into_iter().map(|(gone, ())| gone.key.name.to_string()).collect();
        assert_eq!(gone, ["a", "d"]);
        assert_eq!(store.len(), 2);
    }

    #[test]
    fn another_of_the_same_name_replaces_the_first_and_is_not_taken_for_it() {
        let mut store = Store::default();
        set(&mut store, &meta("x", "a", "1"));
        assert_eq!(set(&mut store, &meta("x", "a", "2")).as_deref(), Some("1"));
        assert_eq!(store.delete(&meta("x", "a", "1")), None, "late events about the first");
        assert_eq!(store.delete(&meta("x", "a", "2")), Some(()));
        assert_eq!(store.delete(&meta("x", "a", "2")), None, "twice");
        assert!(store.is_empty() && store.namespaces.is_empty());
    }

    #[test]
    fn an_object_is_never_replaced_by_an_older_state_of_itself() {
        let mut store = Store::<u32>::default();
        let stale = |applied: Applied<'_, u32>| applied == Applied::Stale;
        assert!(!stale(store.wrote(&at(5))), "our own write, which the watch has not told yet");
        assert!(stale(store.apply(&at(4))), "the watch is behind it");
        assert!(!stale(store.apply(&at(5))), "the watch has caught up");
        assert!(!stale(store.apply(&at(7))));
        assert!(stale(store.wrote(&at(6))), "an answer that comes late");
        store.delete(&at(8));
        assert!(stale(store.wrote(&at(7))), "nor does it bring back what is gone");
        assert!(store.is_empty());
        // The server was restored from a backup: what its list says holds, though it counts from an older revision.
        store.apply(&at(9));
        store.list_started();
        assert!(!stale(store.apply(&at(3))));
        store.listed(Some(4));
        assert!(!stale(store.wrote(&at(5))));
    }

    #[test]
    fn a_value_stays_with_its_object() {
        let mut store = Store::<u32>::default();
        let Applied::Kept { value, .. } = store.apply(&at(1)) else { panic!("kept") };
        *value = 7;
        let Applied::Kept { value, replaced } = store.apply(&at(2)) else { panic!("kept") };
        assert_eq!((*value, replaced), (7, None));
        let other = Meta { uid: "2".into(), ..at(3) };
        let Applied::Kept { value, replaced } = store.apply(&other) else { panic!("kept") };
        assert_eq!((*value, replaced.map(|(_, value)| value)), (0, Some(7)), "another object, another value");
        assert_eq!(store.get(&other.key), Some(&0));
    }

    proptest! {
        /// Whatever was missed, after a complete list exactly what it names is there, and everything that was there
        /// before and is not has been told.
        #[test]
        fn after_a_list_exactly_what_it_names_is_there(
            before in prop::collection::vec(("[xy]", "[a-f]", "[12]", any::<bool>()), 0..30),
            listed in prop::collection::btree_map(("[xy]", "[a-f]"), "[12]", 0..12),
            broken in prop::collection::vec(("[xy]", "[a-f]", "[12]"), 0..6),
        ) {
            let mut store = Store::<()>::default();
            let mut alive: BTreeSet<String> = BTreeSet::new();
            let id = |m: &Meta| format!("{}/{}", m.key, m.uid);
            let set = |store: &mut Store<()>, alive: &mut BTreeSet<String>, meta: Meta| {
                if let Applied::Kept { replaced: Some((gone, ())), .. } = store.apply(&meta) {
                    assert!(alive.remove(&id(&gone)));
                }
                alive.insert(id(&meta));
            };
            for (namespace, name, uid, there) in &before {
                let meta = meta(namespace, name, uid);
                if *there {
                    set(&mut store, &mut alive, meta);
                } else if store.delete(&meta).is_some() {
                    prop_assert!(alive.remove(&id(&meta)));
                }
                prop_assert_eq!(store.len(), alive.len());
            }
            store.list_started();
            for (namespace, name, uid) in &broken {
                set(&mut store, &mut alive, meta(namespace, name, uid));
            }
            store.list_started();
            for ((namespace, name), uid) in &listed {
                set(&mut store, &mut alive, meta(namespace, name, uid));
            }
            for (gone, ()) in store.listed(None) {
                prop_assert!(alive.remove(&id(&gone)));
            }
            let named: BTreeSet<String> =
                listed.iter().map(|((namespace, name), uid)| format!("{namespace}/{name}/{uid}")).collect();
            prop_assert_eq!(&alive, &named);
            prop_assert_eq!(store.len(), named.len());
            prop_assert_eq!(store.iter().count(), named.len());
        }
    }
}
