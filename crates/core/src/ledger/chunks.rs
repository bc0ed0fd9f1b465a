//! A list that grows by whole chunks and never moves: no doubling, so memory follows what is held.

use std::ops::{Index, IndexMut};

/// Values by number, `N` to a chunk.
#[derive(Clone, Debug)]
pub(super) struct Chunks<T, const N: usize> {
    chunks: Vec<Vec<T>>,
}

impl<T, const N: usize> Chunks<T, N> {
    /// Holds nothing yet.
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * N + last.len())
    }

    /// Adds one at the end.
    pub(super) fn push(&mut self, value: T) {
        if self.chunks.last().is_none_or(|last| last.len() == N) {
            self.chunks.push(Vec::with_capacity(N));
        }
        self.chunks.last_mut().expect("one was added when there was none").push(value);
    }

    /// The one of that number, if there are so many.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / N)?.get(at % N)
    }

    /// All, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Allocated bytes, without what the values themselves hold elsewhere.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Vec<T>>()
            + self.chunks.iter().map(|c| c.capacity() * size_of::<T>()).sum::<usize>()
    }
}

impl<T, const N: usize> Index<usize> for Chunks<T, N> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.chunks[at / N][at % N]
    }
}

impl<T, const N: usize> IndexMut<usize> for Chunks<T, N> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at / N][at % N]
    }
}
