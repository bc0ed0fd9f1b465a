//! The figures of all nodes, column by column, for readers that must not wait and writers that must not either.
//!
//! Nodes come in blocks of 64. A snapshot shares the blocks; who writes to a shared one copies it first, so a
//! snapshot costs one count and a change after it one block.

use super::time::moment;
use super::{Figures, Sample};
use crate::load::Load;
use crate::view::NodeId;
use jiff::SignedDuration;
use std::sync::Arc;

/// How many nodes a [`Block`] holds.
pub const BLOCK: usize = 64;

/// Stands for "no such moment" in the columns of moments.
pub const UNKNOWN: i64 = i64::MIN;

/// The figures of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) at: i64,
    pub(super) window: i64,
    pub(super) usage: Load,
    pub(super) pending: Load,
    pub(super) departed: Load,
    pub(super) assigned: Load,
    pub(super) pods: u32,
    pub(super) pending_pods: u32,
    pub(super) cooling: i64,
}

impl Row {
    pub(super) const EMPTY: Self = Self {
        at: UNKNOWN,
        window: 0,
        usage: Load::ZERO,
        pending: Load::ZERO,
        departed: Load::ZERO,
        assigned: Load::ZERO,
        pods: 0,
        pending_pods: 0,
        cooling: UNKNOWN,
    };

    /// The beginning of the newest sample.
    pub(super) fn edge(&self) -> Option<i64> {
        (self.at != UNKNOWN).then(|| self.at.saturating_sub(self.window))
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            newest: (self.at != UNKNOWN).then(|| Sample {
                at: moment(self.at),
                window: SignedDuration::from_nanos(self.window),
                usage: self.usage,
            }),
            pending: self.pending,
            departed: self.departed,
            assigned: self.assigned,
            pods: self.pods,
            pending_pods: self.pending_pods,
            cooling_until: (self.cooling != UNKNOWN).then(|| moment(self.cooling)),
        }
    }
}

/// The figures of 64 nodes. Moments are nanoseconds since 1970, CPU is in nanocores, memory in bytes.
#[derive(Clone, Debug)]
pub struct Block {
    /// When the newest sample ended; [`UNKNOWN`] without one, and then `cpu` and `memory` mean nothing.
    pub at: [i64; BLOCK],
    /// Over how many nanoseconds it was averaged.
    pub window: [i64; BLOCK],
    /// CPU measured.
    pub cpu: [i64; BLOCK],
    /// Memory measured.
    pub memory: [i64; BLOCK],
    /// CPU of pods the measurement cannot contain.
    pub pending_cpu: [i64; BLOCK],
    /// Memory of pods the measurement cannot contain.
    pub pending_memory: [i64; BLOCK],
    /// CPU in the measurement of pods that are gone.
    pub departed_cpu: [i64; BLOCK],
    /// Memory in the measurement of pods that are gone.
    pub departed_memory: [i64; BLOCK],
    /// CPU estimated of all pods assigned.
    pub assigned_cpu: [i64; BLOCK],
    /// Memory estimated of all pods assigned.
    pub assigned_memory: [i64; BLOCK],
    /// How many pods are assigned.
    pub pods: [u32; BLOCK],
    /// How many of them are pending.
    pub pending_pods: [u32; BLOCK],
    /// Until when the node cools; [`UNKNOWN`] if it does not.
    pub cooling: [i64; BLOCK],
}

impl Block {
    const EMPTY: Self = Self {
        at: [UNKNOWN; BLOCK],
        window: [0; BLOCK],
        cpu: [0; BLOCK],
        memory: [0; BLOCK],
        pending_cpu: [0; BLOCK],
        pending_memory: [0; BLOCK],
        departed_cpu: [0; BLOCK],
        departed_memory: [0; BLOCK],
        assigned_cpu: [0; BLOCK],
        assigned_memory: [0; BLOCK],
        pods: [0; BLOCK],
        pending_pods: [0; BLOCK],
        cooling: [UNKNOWN; BLOCK],
    };

    fn row(&self, i: usize) -> Row {
        Row {
            at: self.at[i],
            window: self.window[i],
            usage: Load::new(self.cpu[i], self.memory[i]),
            pending: Load::new(self.pending_cpu[i], self.pending_memory[i]),
            departed: Load::new(self.departed_cpu[i], self.departed_memory[i]),
            assigned: Load::new(self.assigned_cpu[i], self.assigned_memory[i]),
            pods: self.pods[i],
            pending_pods: self.pending_pods[i],
            cooling: self.cooling[i],
        }
    }

    fn set(&mut self, i: usize, row: &Row) {
        self.at[i] = row.at;
        self.window[i] = row.window;
        self.cpu[i] = row.usage.cpu_nano;
        self.memory[i] = row.usage.memory_bytes;
        self.pending_cpu[i] = row.pending.cpu_nano;
        self.pending_memory[i] = row.pending.memory_bytes;
        self.departed_cpu[i] = row.departed.cpu_nano;
        self.departed_memory[i] = row.departed.memory_bytes;
        self.assigned_cpu[i] = row.assigned.cpu_nano;
        self.assigned_memory[i] = row.assigned.memory_bytes;
        self.pods[i] = row.pods;
        self.pending_pods[i] = row.pending_pods;
        self.cooling[i] = row.cooling;
    }
}

/// The figures of all nodes at one moment. Cloning shares them; later events do not show.
#[derive(Clone, Debug, Default)]
pub struct AllFigures {
    blocks: Arc<Vec<Arc<Block>>>,
}

impl AllFigures {
    /// The figures of a node; of one never heard of, those of a node without pods and samples.
    #[must_use]
    pub fn figures(&self, id: NodeId) -> Figures {
        self.row(id.index()).figures()
    }

    /// All figures, column by column: the node of number `n` is at `n % 64` in block `n / 64`.
    #[must_use]
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = &Block> {
        self.blocks.iter().map(|b| &**b)
    }

    pub(super) fn row(&self, i: usize) -> Row {
        self.blocks.get(i / BLOCK).map_or(Row::EMPTY, |b| b.row(i % BLOCK))
    }

    /// Makes room for that many nodes.
    pub(super) fn grow(&mut self, nodes: usize) {
        let blocks = nodes.div_ceil(BLOCK);
        if blocks > self.blocks.len() {
            Arc::make_mut(&mut self.blocks).resize_with(blocks, || Arc::new(Block::EMPTY));
        }
    }

    /// Writes a row; does that change anything?
    pub(super) fn put(&mut self, i: usize, row: &Row) -> bool {
        if self.row(i) == *row {
            return false;
        }
        self.grow(i + 1);
        Arc::make_mut(&mut Arc::make_mut(&mut self.blocks)[i / BLOCK]).set(i % BLOCK, row);
        true
    }

    pub(super) fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Arc<Block>>()
            + self.blocks.len() * (size_of::<Block>() + 2 * size_of::<usize>())
    }
}
