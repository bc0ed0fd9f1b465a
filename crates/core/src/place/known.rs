//! What is published, and by whom? All slices, with their clusters as numbers.
//!
//! A selection of ten thousand clusters is a hundred slices. They are held against what is decided each time, which must not
//! cost a look-up by name for each of them.

use super::facts::Slice;
use super::index::{Id, Index, at};
use crate::object::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A slice, and the numbers of its clusters in the same order.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub slice: Arc<Slice>,
    pub ids: Vec<Id>,
}

/// The place of a slice among those of a placement: by number, as far as names tell.
type Place = (usize, Arc<str>);

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Slices {
    all: BTreeMap<Key, Arc<Known>>,
    /// By the placement they belong to.
    owned: BTreeMap<Key, BTreeMap<Place, Arc<Known>>>,
    /// How often each cluster is in one.
    counts: Vec<u32>,
}

impl Slices {
    /// A slice is there, or is different; gives the placements that lose it and get it.
    pub fn set(&mut self, slice: Arc<Slice>, index: &mut Index) -> [Option<Key>; 2] {
        let same = |known: &Arc<Known>| Arc::ptr_eq(&known.slice, &slice) || known.slice == slice;
        if self.all.get(&slice.key).is_some_and(same) {
            return [None, None];
        }
        let before = self.remove(&slice.key);
        let ids: Vec<Id> = slice.entries.iter().map(|entry| index.id(&entry.cluster)).collect();
        self.counts.resize(index.len(), 0);
        for id in &ids {
            self.counts[at(*id)] = self.counts[at(*id)].saturating_add(1);
        }
        let (key, owner) = (slice.key.clone(), owner(&slice));
        let known = Arc::new(Known { slice, ids });
        if let Some(owner) = &owner {
            self.owned.entry(owner.clone()).or_default().insert(place(&key), known.clone());
        }
        self.all.insert(key, known);
        [before, owner]
    }

    /// A slice is gone; gives the placement it belonged to.
    pub fn remove(&mut self, key: &Key) -> Option<Key> {
        let known = self.all.remove(key)?;
        for id in &known.ids {
            self.counts[at(*id)] = self.counts[at(*id)].saturating_sub(1);
        }
        let owner = owner(&known.slice)?;
        if let Some(owned) = self.owned.get_mut(&owner) {
            owned.remove(&place(key));
            if owned.is_empty() {
                self.owned.remove(&owner);
            }
        }
        Some(owner)
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Known>> {
        self.all.get(key)
    }

    /// Those of a placement, by number.
    pub fn own(&self, placement: &Key) -> Vec<Arc<Known>> {
        self.owned.get(placement).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// How often each cluster is in a slice, as far as any has such a number.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }
}

fn owner(slice: &Slice) -> Option<Key> {
    Some(Key::new(slice.key.namespace.clone(), slice.placement()?))
}

fn place(key: &Key) -> Place {
    (key.name.len(), key.name.clone())
}
