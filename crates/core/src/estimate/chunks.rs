//! A list whose copy is cheap, and stays cheap to change afterwards.

use std::sync::Arc;

/// How many items share their fate: writing one copies so many if a reader still has them.
const SIZE: usize = 64;

/// Items in chunks that clones share. Writing after cloning copies one chunk, not the list.
#[derive(Clone, Debug)]
pub(super) struct Chunks<T> {
    chunks: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Clone> Chunks<T> {
    pub fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / SIZE)?.get(at % SIZE)
    }

    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        Arc::make_mut(self.chunks.get_mut(at / SIZE)?).get_mut(at % SIZE)
    }

    /// Returns where it is.
    pub fn push(&mut self, item: T) -> usize {
        if self.len.is_multiple_of(SIZE) {
            self.chunks.push(Arc::new(Vec::with_capacity(SIZE)));
        }
        if let Some(last) = self.chunks.last_mut() {
            Arc::make_mut(last).push(item);
        }
        self.len += 1;
        self.len - 1
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}
