//! Who was selected? By number: an outcome that is kept for every placement must not hold on to ten thousand names one by one.

use super::choose::Ranked;
use super::index::{Id, Index, at};
use std::fmt;
use std::sync::Arc;

/// A selected cluster and its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen<'a> {
    pub cluster: &'a str,
    pub total: i64,
}

/// The selected clusters, in an order.
#[derive(Clone, Default)]
pub struct Selected {
    /// All names there were, by number; shared.
    names: Arc<Vec<Arc<str>>>,
    of: Vec<(Id, i64)>,
}

impl Selected {
    pub(super) fn new(index: &Index, chosen: &[Ranked]) -> Self {
        Self { names: index.names().clone(), of: chosen.iter().map(|one| (one.id, one.total)).collect() }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.of.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Chosen<'_>> {
        self.of.iter().map(|(id, total)| Chosen { cluster: &self.names[at(*id)], total: *total })
    }
}

impl fmt::Debug for Selected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The same clusters with the same points, whatever their numbers are.
impl PartialEq for Selected {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Selected {}
