//! Who waits for news of a table, and who is woken first? Whoever has waited longest: with one thread, the same requests
//! wake the same watchers in the same order each time, so that a run can be repeated. tokio's `watch` wakes by chance.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// Rings for everybody who waits.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: AtomicU64,
    gone: AtomicBool,
    waiting: Notify,
}

impl Bell {
    /// How often it has rung.
    pub(super) fn rung(&self) -> u64 {
        self.rung.load(Ordering::SeqCst)
    }

    /// Waits until it has rung more often than that; `false` when it never will again.
    pub(super) async fn rings(&self, heard: u64) -> bool {
        loop {
            let next = self.waiting.notified();
            tokio::pin!(next);
            // In the queue before looking, so that nothing is missed in between.
            next.as_mut().enable();
            if self.gone.load(Ordering::SeqCst) {
                return false;
            }
            if self.rung() != heard {
                return true;
            }
            next.await;
        }
    }
}

/// The table's end of it: when it is gone, nobody waits any more.
#[derive(Debug, Default)]
pub(super) struct News(Arc<Bell>);

impl News {
    pub(super) fn bell(&self) -> Arc<Bell> {
        self.0.clone()
    }

    pub(super) fn ring(&self) {
        self.0.rung.fetch_add(1, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }
}

impl Drop for News {
    fn drop(&mut self) {
        self.0.gone.store(true, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }
}
