//! What is the cluster like right now? Nodes and pods as decisions see them: lean, by dense number.
//!
//! Objects become facts once, at the edge. [`Live`] folds them in, event by event, and holds a [`Snapshot`] that
//! is always current; a clone of the snapshot never changes, so a decision reads it without locks and gives the
//! same answer for the same snapshot. Nodes keep the number they got ([`NodeId`]): arrays indexed by it replace
//! maps. What order there is in answers comes from names, never from numbers.
//!
//! Pods that have ended hold nothing: they are not among the pods of their node.

use crate::select::Lookup;
use indexmap::IndexSet;
use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(any(test, feature = "test-util"))]
pub mod build;
mod facts;
pub mod groups;
pub mod images;
pub mod labels;
mod live;
pub mod siblings;
mod snapshot;
pub mod volumes;

pub use facts::{
    Budget, Hold, HostPort, NamespaceFacts, NodeFacts, Owner, Phase, PodAffinity, PodFacts, PodTerm, Spread,
    Volume, Wants,
};
pub(crate) use live::loads;
pub use live::{Live, Moved};
pub use snapshot::{Columns, NodeView, PodView, Snapshot};

/// The number of a node: its place in every column. Given out by [`Live`], and given out again when both the
/// node and its pods are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As a position in an array with one place per node.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The node at a position.
    #[must_use]
    pub fn at(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// Keeps one copy of every text: a hundred thousand pods share a few hundred labels.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    known: IndexSet<Arc<str>>,
}

impl Texts {
    /// The shared copy of a text.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.known.insert(new.clone());
        new
    }
}

/// Labels or annotations, sorted by key. Cloning shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// From a map, sharing texts.
    #[must_use]
    pub fn new(from: &BTreeMap<String, String>, texts: &mut Texts) -> Self {
        Self(from.iter().map(|(k, v)| (texts.share(k), texts.share(v))).collect())
    }

    /// From a map, as it is.
    #[must_use]
    pub fn plain(from: &BTreeMap<String, String>) -> Self {
        Self(from.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect())
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (&**k, &**v))
    }

    /// Keys and values as shared texts, sorted by key.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &(Arc<str>, Arc<str>)> {
        self.0.iter()
    }
}

impl Lookup for Labels {
    fn value(&self, key: &str) -> Option<&str> {
        self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|i| &*self.0[i].1)
    }
}

#[cfg(test)]
mod tests;
