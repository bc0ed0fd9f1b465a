//! What does an agent know of its node, and what would it do? What its last cycle knew, for whoever asks.

use loadline_core::qos::NodeSnapshot;
use loadline_core::qos::audit::Audit;
use loadline_core::qos::policy::Policy;
use std::sync::{Arc, Mutex, PoisonError};

/// What the last cycle knew. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Looked(Arc<Mutex<Option<Look>>>);

/// What one cycle knew of a node: enough to plan it again.
#[derive(Clone, Debug)]
pub struct Look {
    pub policy: Arc<Policy>,
    pub snapshot: Arc<NodeSnapshot>,
    /// What was done before, and what came of it.
    pub audit: Arc<Audit>,
}

impl Looked {
    /// What the last cycle knew; none before the first.
    #[must_use]
    pub fn last(&self) -> Option<Look> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn keep(&self, look: Look) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(look);
    }

    /// There is nothing to look at any more: what was there once says nothing about now.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
