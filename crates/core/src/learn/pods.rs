//! Which pods does a container run in, and up to when are they counted? 48 bytes each.
//!
//! The metrics API tells the same sample again until there is a newer one, so the newest of each pod is remembered.

use super::day::Mean;
use crate::ledger::Uid;

/// One pod.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pod {
    uid: [u64; 2],
    /// When its newest sample ended, in milliseconds since 1970.
    pub(super) newest: i64,
    pub(super) mean: Mean,
}

/// A `u128` would be aligned to sixteen bytes, and a pod take 64.
fn halves(uid: Uid) -> [u64; 2] {
    let half = |bits: u128| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
    [half(uid.0 >> 64), half(uid.0)]
}

/// The pods of one container of a workload, by identity.
#[derive(Clone, Debug, Default)]
pub(super) struct Pods(Vec<Pod>);

impl Pods {
    fn place(&self, uid: Uid) -> Result<usize, usize> {
        let uid = halves(uid);
        self.0.binary_search_by_key(&uid, |pod| pod.uid)
    }

    /// The pod, and up to when it was counted before, if it has not been counted up to that moment. From now on it is.
    pub(super) fn advance(&mut self, uid: Uid, at: i64) -> Option<(&mut Pod, Option<i64>)> {
        match self.place(uid) {
            Ok(i) => {
                let pod = &mut self.0[i];
                let last = pod.newest;
                (last < at).then(|| {
                    pod.newest = at;
                    (pod, Some(last))
                })
            }
            Err(i) => {
                if self.0.len() == self.0.capacity() {
                    // Few workloads have many pods: room for one more, or an eighth.
                    self.0.reserve_exact(1 + self.0.len() / 8);
                }
                self.0.insert(i, Pod { uid: halves(uid), newest: at, mean: Mean::default() });
                Some((&mut self.0[i], None))
            }
        }
    }

    pub(super) fn remove(&mut self, uid: Uid) {
        if let Ok(i) = self.place(uid) {
            self.0.remove(i);
        }
    }

    /// Forgets those that were last counted before that moment.
    pub(super) fn expire(&mut self, before: i64) {
        self.0.retain(|pod| pod.newest >= before);
        self.0.shrink_to(self.0.len() + self.0.len() / 8);
    }

    /// Allocated bytes, itself not included.
    pub(super) fn heap(&self) -> usize {
        self.0.capacity() * size_of::<Pod>()
    }
}
