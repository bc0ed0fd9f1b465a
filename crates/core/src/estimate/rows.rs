//! Which nodes are alike in everything? Nodes of one kind with the same free resources share a row.
//!
//! Rows are kept by column, in blocks that readers share: a scan reads numbers side by side, a change copies one
//! block at most.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

/// Rows in a block.
pub(super) const SIZE: usize = 128;

/// So many rows, by column.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// The kind of the nodes in each row.
    pub kinds: [u32; SIZE],
    /// How many nodes share each row; none if the row is not in use.
    pub counts: [u32; SIZE],
    /// What is free there, by resource; less than nothing where more is promised than there is. Resources that
    /// are not here are zero.
    pub free: Vec<[i64; SIZE]>,
}

impl Block {
    fn new() -> Self {
        Self { kinds: [0; SIZE], counts: [0; SIZE], free: Vec::new() }
    }

    pub fn free(&self, resource: usize, at: usize) -> i64 {
        self.free.get(resource).map_or(0, |column| column[at])
    }

    fn is(&self, at: usize, kind: u32, free: &[i64]) -> bool {
        let width = self.free.len().max(free.len());
        self.kinds[at] == kind
            && self.counts[at] > 0
            && (0..width).all(|r| self.free(r, at) == free.get(r).copied().unwrap_or(0))
    }
}

/// All rows, as readers see them.
pub(super) type Blocks = Vec<Arc<Block>>;

/// What is free in a row, by resource.
pub(super) fn free(blocks: &Blocks, row: u32, resource: usize) -> i64 {
    let row = row as usize;
    blocks.get(row / SIZE).map_or(0, |block| block.free(resource, row % SIZE))
}

/// All rows, and which is which.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub blocks: Blocks,
    /// By hash of kind and free resources; rarely more than one.
    known: FxHashMap<u64, Vec<u32>>,
    unused: Vec<u32>,
    used: u32,
}

impl Rows {
    /// One more node of that kind with that much free. Returns its row.
    pub fn enter(&mut self, kind: u32, free: &[i64]) -> u32 {
        let hash = hash(kind, free.iter().copied());
        let same = self.known.get(&hash).into_iter().flatten().copied().find(|row| {
            self.blocks.get(*row as usize / SIZE).is_some_and(|b| b.is(*row as usize % SIZE, kind, free))
        });
        if let Some(row) = same {
            if let Some(block) = self.blocks.get_mut(row as usize / SIZE) {
                Arc::make_mut(block).counts[row as usize % SIZE] += 1;
            }
            return row;
        }
        let row = self.unused.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        if row as usize / SIZE >= self.blocks.len() {
            self.blocks.push(Arc::new(Block::new()));
        }
        if let Some(block) = self.blocks.get_mut(row as usize / SIZE) {
            let (block, at) = (Arc::make_mut(block), row as usize % SIZE);
            if block.free.len() < free.len() {
                block.free.resize(free.len(), [0; SIZE]);
            }
            for (resource, column) in block.free.iter_mut().enumerate() {
                column[at] = free.get(resource).copied().unwrap_or(0);
            }
            block.kinds[at] = kind;
            block.counts[at] = 1;
        }
        self.known.entry(hash).or_default().push(row);
        row
    }

    /// One node less in that row.
    pub fn leave(&mut self, row: u32) {
        let at = row as usize % SIZE;
        let Some(block) = self.blocks.get_mut(row as usize / SIZE).map(Arc::make_mut) else { return };
        block.counts[at] = block.counts[at].saturating_sub(1);
        if block.counts[at] > 0 {
            return;
        }
        let hash = hash(block.kinds[at], block.free.iter().map(|column| column[at]));
        if let Some(rows) = self.known.get_mut(&hash) {
            rows.retain(|known| *known != row);
            if rows.is_empty() {
                self.known.remove(&hash);
            }
        }
        self.unused.push(row);
    }

    /// How many rows are in use.
    pub fn count(&self) -> usize {
        self.used as usize - self.unused.len()
    }
}

/// Zeros say nothing, so that a vector and the same with zeros behind are one.
fn hash(kind: u32, free: impl Iterator<Item = i64>) -> u64 {
    let mut hasher = FxHasher::default();
    kind.hash(&mut hasher);
    for (resource, amount) in free.enumerate().filter(|(_, amount)| *amount != 0) {
        (resource, amount).hash(&mut hasher);
    }
    hasher.finish()
}
