//! Is something under way that others should let pass?

use std::sync::Arc;
use tokio::sync::watch;

/// How many requests are under way; clones share the count.
#[derive(Clone, Debug)]
pub(super) struct Busy(Arc<watch::Sender<usize>>);

/// One request; it is over when this is dropped, whatever became of it.
#[derive(Debug)]
pub(super) struct UnderWay(Busy);

impl Default for Busy {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Busy {
    pub fn begin(&self) -> UnderWay {
        self.0.send_if_modified(|count| {
            *count += 1;
            false
        });
        UnderWay(self.clone())
    }

    pub fn is(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits until nothing is under way.
    pub async fn over(&self) {
        // The sender is held by this very value.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // Only the last is news.
        self.0.0.send_if_modified(|count| {
            *count -= 1;
            *count == 0
        });
    }
}
