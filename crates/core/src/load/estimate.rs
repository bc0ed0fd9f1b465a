//! How much will this pod use?

use super::Load;
use std::sync::Arc;

/// What one container asks for; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ask {
    /// The container's name.
    pub name: Arc<str>,
    /// CPU in billionths of a core.
    pub cpu_nano: Option<i64>,
    /// Memory in bytes.
    pub memory_bytes: Option<i64>,
}

/// What a pod asks for, as far as its load can be foretold from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Asks {
    /// Its regular containers.
    pub containers: Vec<Ask>,
    /// What its sidecars ask for together.
    pub sidecars: Load,
    /// What its sandbox costs.
    pub overhead: Load,
    /// Its effective request as a whole, overhead included: what counts when nothing better is known.
    pub effective: Load,
}
