//! Which nodes have which labels? An index that answers for all nodes at once.
//!
//! A scan that asks every node about every condition is slow at thousands of nodes; here a condition costs as
//! much as there are nodes it matches.

use super::{Labels, NodeId};
use crate::select::label::{Op, Requirement};
use crate::select::node::Sets;
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The nodes by label.
#[derive(Clone, Debug, Default)]
pub struct Index {
    keys: FxHashMap<Arc<str>, BTreeMap<Arc<str>, Vec<u32>>>,
    names: FxHashMap<Arc<str>, u32>,
    present: FixedBitSet,
    version: u64,
}

/// The places one label makes of the nodes: nodes with the same value are one place.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    /// Node to place; [`Domains::NONE`] for nodes without the label.
    pub of: Vec<u32>,
    /// How many places there are.
    pub count: usize,
}

impl Domains {
    /// The place of a node without the label.
    pub const NONE: u32 = u32::MAX;

    /// The place of a node, as a position.
    #[must_use]
    pub fn place(&self, node: usize) -> Option<usize> {
        self.of.get(node).filter(|d| **d != Self::NONE).map(|d| *d as usize)
    }
}

impl Index {
    pub(crate) fn add(&mut self, id: NodeId, name: &Arc<str>, labels: &Labels) {
        self.version += 1;
        self.present.grow(id.index() + 1);
        self.present.insert(id.index());
        self.names.insert(name.clone(), id.0);
        for (key, value) in labels.shared() {
            let nodes = self.keys.entry(key.clone()).or_default().entry(value.clone()).or_default();
            if let Err(at) = nodes.binary_search(&id.0) {
                nodes.insert(at, id.0);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: NodeId, name: &str, labels: &Labels) {
        self.version += 1;
        self.present.set(id.index(), false);
        self.names.remove(name);
        for (key, value) in labels.shared() {
            let Some(values) = self.keys.get_mut(key) else { continue };
            if let Some(nodes) = values.get_mut(value) {
                nodes.retain(|n| *n != id.0);
                if nodes.is_empty() {
                    values.remove(value);
                }
            }
            if values.is_empty() {
                self.keys.remove(key);
            }
        }
    }

    /// Changes whenever an answer may.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The nodes that are there.
    #[must_use]
    pub fn present(&self) -> &FixedBitSet {
        &self.present
    }

    /// The places a label makes, numbered in the order of its values.
    #[must_use]
    pub fn domains(&self, key: &str) -> Domains {
        let mut of = vec![Domains::NONE; self.present.len()];
        let values = self.keys.get(key);
        for (nodes, place) in values.into_iter().flat_map(BTreeMap::values).zip(0u32..) {
            for node in nodes {
                of[*node as usize] = place;
            }
        }
        Domains { of, count: values.map_or(0, BTreeMap::len) }
    }

    fn mark(out: &mut FixedBitSet, nodes: &[u32]) {
        for node in nodes {
            out.insert(*node as usize);
        }
    }
}

impl Sets for Index {
    fn all(&self) -> FixedBitSet {
        self.present.clone()
    }

    fn having(&self, requirement: &Requirement) -> FixedBitSet {
        let empty = BTreeMap::new();
        let values = self.keys.get(requirement.key()).unwrap_or(&empty);
        let mut out = FixedBitSet::with_capacity(self.present.len());
        match requirement.op() {
            // Values asked for by name are looked up, however many there are.
            Op::Equals | Op::DoubleEquals | Op::In => {
                for value in requirement.values() {
                    Self::mark(&mut out, values.get(value.as_str()).map_or(&[][..], Vec::as_slice));
                }
            }
            _ => {
                if requirement.matches(&BTreeMap::new()) {
                    out.union_with(&self.present);
                    for nodes in values.values() {
                        for node in nodes {
                            out.set(*node as usize, false);
                        }
                    }
                }
                for (value, nodes) in values {
                    let one = BTreeMap::from([(requirement.key().to_owned(), value.to_string())]);
                    if requirement.matches(&one) {
                        Self::mark(&mut out, nodes);
                    }
                }
            }
        }
        out
    }

    fn named(&self, name: &str) -> FixedBitSet {
        let mut out = FixedBitSet::with_capacity(self.present.len());
        if let Some(node) = self.names.get(name) {
            out.insert(*node as usize);
        }
        out
    }
}
