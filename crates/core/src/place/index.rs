//! Which clusters have this label, and how much of that resource has each? The fleet by columns.
//!
//! A thousand placements ask ten thousand clusters the same few questions. Clusters have numbers; a condition is answered
//! for all of them at once, as a set of numbers, and a resource is a column of figures.

use super::facts::{ClusterFacts, Taint};
use super::prepare::Criterion;
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of a cluster, or of a name somebody mentioned that may become one.
pub(super) type Id = u32;

/// A number as a position.
pub(super) fn at(id: Id) -> usize {
    id as usize
}

/// Who has which value of which key.
#[derive(Clone, Debug, Default)]
struct Postings {
    keys: FxHashMap<String, BTreeMap<String, Vec<Id>>>,
}

impl Postings {
    fn change(&mut self, id: Id, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) {
        for (key, value) in old.iter().filter(|(key, value)| new.get(*key) != Some(value)) {
            let Some(values) = self.keys.get_mut(key) else { continue };
            if let Some(ids) = values.get_mut(value) {
                if let Ok(found) = ids.binary_search(&id) {
                    ids.remove(found);
                }
                if ids.is_empty() {
                    values.remove(value);
                }
            }
            if values.is_empty() {
                self.keys.remove(key);
            }
        }
        for (key, value) in new.iter().filter(|(key, value)| old.get(*key) != Some(value)) {
            let ids = self.keys.entry(key.clone()).or_default().entry(value.clone()).or_default();
            if let Err(free) = ids.binary_search(&id) {
                ids.insert(free, id);
            }
        }
    }

    /// Keeps those that meet the condition.
    fn keep(&self, rule: &Criterion, among: &mut FixedBitSet) {
        let mut hits = FixedBitSet::with_capacity(among.len());
        let mut hit = |ids: &[Id]| ids.iter().for_each(|id| hits.insert(at(*id)));
        if let Some(values) = self.keys.get(&rule.key) {
            if rule.values.is_empty() {
                for ids in values.values() {
                    hit(ids);
                }
            } else {
                for ids in rule.values.iter().filter_map(|value| values.get(value)) {
                    hit(ids);
                }
            }
        }
        if rule.wanted {
            among.intersect_with(&hits);
        } else {
            among.difference_with(&hits);
        }
    }
}

/// One resource of all clusters; [`f64::NAN`] where it is not known.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    allocatable: Vec<f64>,
    pub capacity: Vec<f64>,
    /// What is allocatable, where both are known.
    pub usable: Vec<f64>,
}

impl Column {
    fn grow(&mut self, size: usize) {
        for cells in [&mut self.allocatable, &mut self.capacity, &mut self.usable] {
            cells.resize(size, f64::NAN);
        }
    }
}

/// Which clusters have the very same taints? What these do is asked once for all of them.
#[derive(Clone, Debug, Default)]
struct Taintings {
    /// A number for each list of taints, and how many clusters have it.
    kinds: FxHashMap<Vec<Taint>, (u32, usize)>,
    /// Numbers nobody has any more.
    free: Vec<u32>,
    /// By the number of the cluster.
    of: Vec<u32>,
}

impl Taintings {
    fn change(&mut self, id: Id, old: &[Taint], new: &[Taint]) {
        if self.of.len() <= at(id) {
            self.of.resize(at(id) + 1, 0);
        }
        if old == new {
            return;
        }
        if let Some((number, count)) = self.kinds.get_mut(old) {
            *count -= 1;
            if *count == 0 {
                self.free.push(*number);
                self.kinds.remove(old);
            }
        }
        if new.is_empty() {
            return;
        }
        let next = self.free.pop().unwrap_or_else(|| self.most());
        let (number, count) = self.kinds.entry(new.to_vec()).or_insert((next, 0));
        if *number != next {
            self.free.push(next);
        }
        *count += 1;
        self.of[at(id)] = *number;
    }

    /// All numbers are below.
    fn most(&self) -> u32 {
        u32::try_from(self.kinds.len() + self.free.len()).expect("fewer than there are clusters")
    }
}

/// All clusters.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    ids: FxHashMap<Arc<str>, Id>,
    /// By number; shared with whoever must tell them later.
    names: Arc<Vec<Arc<str>>>,
    rows: Vec<Option<Arc<ClusterFacts>>>,
    /// By number, the position among all names in their order.
    ranks: Vec<u32>,
    /// Numbers by name.
    order: Vec<Id>,
    /// Those that are there and not leaving.
    pub present: FixedBitSet,
    pub tainted: FixedBitSet,
    taintings: Taintings,
    labels: Postings,
    claims: Postings,
    resources: FxHashMap<String, Column>,
}

impl Index {
    /// The number of a name, a new one if need be.
    pub fn id(&mut self, name: &Arc<str>) -> Id {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = Id::try_from(self.names.len()).expect("fewer than four billion clusters");
        self.ids.insert(name.clone(), id);
        Arc::make_mut(&mut self.names).push(name.clone());
        self.rows.push(None);
        let size = self.names.len();
        self.present.grow(size);
        self.tainted.grow(size);
        for column in self.resources.values_mut() {
            column.grow(size);
        }
        id
    }

    /// The number of a name somebody mentioned.
    pub fn find(&self, name: &str) -> Option<Id> {
        self.ids.get(name).copied()
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn name(&self, id: Id) -> &Arc<str> {
        &self.names[at(id)]
    }

    pub fn names(&self) -> &Arc<Vec<Arc<str>>> {
        &self.names
    }

    pub fn row(&self, id: Id) -> Option<&Arc<ClusterFacts>> {
        self.rows.get(at(id)).and_then(Option::as_ref)
    }

    /// All clusters there are.
    pub fn rows(&self) -> impl Iterator<Item = (Id, &Arc<ClusterFacts>)> {
        (0..).zip(&self.rows).filter_map(|(id, row)| Some((id, row.as_ref()?)))
    }

    /// Of a candidate, which is always there.
    pub fn cluster(&self, id: Id) -> &Arc<ClusterFacts> {
        self.rows[at(id)].as_ref().expect("candidates are present, and what is present has a row")
    }

    /// Brings names into their order, if there are new ones.
    pub fn settle(&mut self) {
        if self.order.len() == self.names.len() {
            return;
        }
        let all = 0..Id::try_from(self.names.len()).expect("fewer than four billion clusters");
        self.order = all.collect();
        self.order.sort_unstable_by(|a, b| self.names[at(*a)].cmp(&self.names[at(*b)]));
        self.ranks = vec![0; self.names.len()];
        for (rank, id) in (0..).zip(&self.order) {
            self.ranks[at(*id)] = rank;
        }
    }

    /// The position among all names in their order.
    pub fn rank(&self, id: Id) -> u32 {
        self.ranks[at(id)]
    }

    /// All numbers by name.
    pub fn by_name(&self) -> &[Id] {
        &self.order
    }

    /// Takes a new state of a cluster, or that it is gone; gives back the old one.
    pub fn set(&mut self, id: Id, new: Option<Arc<ClusterFacts>>) -> Option<Arc<ClusterFacts>> {
        let none = Arc::default();
        let old = self.rows[at(id)].take();
        let (was, is) = (old.as_ref().unwrap_or(&none), new.as_ref().unwrap_or(&none));
        self.labels.change(id, &was.labels, &is.labels);
        self.claims.change(id, &was.claims, &is.claims);
        self.present.set(at(id), new.as_ref().is_some_and(|cluster| !cluster.leaving));
        self.tainted.set(at(id), !is.taints.is_empty());
        self.taintings.change(id, &was.taints, &is.taints);
        for (amounts, allocatable) in [(&was.allocatable, true), (&was.capacity, false)] {
            for name in amounts.keys() {
                self.cell(name, id, allocatable, f64::NAN);
            }
        }
        for (amounts, allocatable) in [(&is.allocatable, true), (&is.capacity, false)] {
            for (name, amount) in amounts {
                self.cell(name, id, allocatable, amount.float());
            }
        }
        self.rows[at(id)] = new;
        old
    }

    /// The same number for clusters that have the very same taints.
    pub fn tainting(&self, id: Id) -> usize {
        at(self.taintings.of[at(id)])
    }

    /// All of these numbers are below.
    pub fn taintings(&self) -> usize {
        at(self.taintings.most())
    }

    fn cell(&mut self, name: &str, id: Id, allocatable: bool, value: f64) {
        let size = self.names.len();
        if !self.resources.contains_key(name) {
            let mut column = Column::default();
            column.grow(size);
            self.resources.insert(name.to_owned(), column);
        }
        let column = self.resources.get_mut(name).expect("it was put there if it was not");
        let cells = if allocatable { &mut column.allocatable } else { &mut column.capacity };
        cells[at(id)] = value;
        let known = !column.capacity[at(id)].is_nan();
        column.usable[at(id)] = if known { column.allocatable[at(id)] } else { f64::NAN };
    }

    /// A resource of all clusters, if any has it.
    pub fn column(&self, resource: &str) -> Option<&Column> {
        self.resources.get(resource)
    }

    /// Keeps those whose labels meet the condition.
    pub fn keep_labels(&self, rule: &Criterion, among: &mut FixedBitSet) {
        self.labels.keep(rule, among);
    }

    /// Keeps those whose claims meet the condition.
    pub fn keep_claims(&self, rule: &Criterion, among: &mut FixedBitSet) {
        self.claims.keep(rule, among);
    }
}

/// The numbers in a set.
pub(super) fn ids(set: &FixedBitSet) -> impl Iterator<Item = Id> + '_ {
    set.ones().map(|one| Id::try_from(one).expect("numbers of clusters are ids"))
}
