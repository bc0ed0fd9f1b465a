//! What was assigned to clusters and is not to be seen there yet? Else a burst of decisions would all count on the same
//! room.
//!
//! A promise is what a cluster got more than it had. It ends as the cluster's own status shows the replicas, when the
//! binding leaves the cluster or is gone, and in any case at its time: what never comes up must not hold room for ever.

use super::Previous;
use crate::object::Key;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One promise: of what, how many, until when.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Promise<T> {
    of: T,
    /// Replicas, or complete sets.
    count: i32,
    until: Timestamp,
}

/// Everything that is promised; `T` is what the owner knows of the workload.
#[derive(Clone, Debug)]
pub struct Promised<T> {
    clusters: BTreeMap<Arc<str>, BTreeMap<Key, Promise<T>>>,
    /// None is over before.
    soonest: Timestamp,
}

/// What was promised to a binding before: to take a promise back.
#[derive(Clone, Debug)]
pub struct Before<T> {
    binding: Key,
    promises: Vec<(Arc<str>, Promise<T>)>,
}

impl<T> Before<T> {
    /// Where something was promised.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.promises.iter().map(|(cluster, _)| cluster)
    }
}

impl<T> Default for Promised<T> {
    fn default() -> Self {
        Self { clusters: BTreeMap::new(), soonest: Timestamp::MAX }
    }
}

impl<T: Clone> Promised<T> {
    /// The binding had that many and gets this many, by cluster.
    pub fn assign(
        &mut self,
        binding: &Key,
        of: &T,
        was: &[Previous],
        is: &[(Arc<str>, i32)],
        until: Timestamp,
    ) -> Before<T> {
        let before = self.withdraw(binding);
        self.soonest = self.soonest.min(until);
        for (cluster, count) in is {
            let had = was.iter().find(|known| *known.name == **cluster).map_or(0, |known| known.replicas);
            let open = before.promises.iter().find(|(name, _)| name == cluster).map_or(0, |(_, p)| p.count);
            let count = open.saturating_add(count.saturating_sub(had));
            if count > 0 {
                let promise = Promise { of: of.clone(), count, until };
                self.clusters.entry(cluster.clone()).or_default().insert(binding.clone(), promise);
            }
        }
        before
    }

    /// It was not written after all: everything is as it was before.
    pub fn take_back(&mut self, before: Before<T>) {
        self.withdraw(&before.binding);
        for (cluster, promise) in before.promises {
            self.soonest = self.soonest.min(promise.until);
            self.clusters.entry(cluster).or_default().insert(before.binding.clone(), promise);
        }
    }

    /// The binding is gone.
    pub fn withdraw(&mut self, binding: &Key) -> Before<T> {
        let mut promises = Vec::new();
        self.clusters.retain(|cluster, all| {
            promises.extend(all.remove(binding).map(|promise| (cluster.clone(), promise)));
            !all.is_empty()
        });
        Before { binding: binding.clone(), promises }
    }

    /// The cluster shows what it got, but for so many. Says whether less is promised now.
    pub fn shown(&mut self, binding: &Key, cluster: &str, missing: i32) -> bool {
        let Some(all) = self.clusters.get_mut(cluster) else { return false };
        let Some(promise) = all.get_mut(binding) else { return false };
        let less = missing < promise.count;
        promise.count = promise.count.min(missing);
        if promise.count <= 0 {
            all.remove(binding);
            if all.is_empty() {
                self.clusters.remove(cluster);
            }
        }
        less
    }

    /// Forgets what has waited for too long; says where.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        let mut freed = Vec::new();
        // Asked all the time, and mostly there is nothing to do.
        if now < self.soonest {
            return freed;
        }
        let mut soonest = Timestamp::MAX;
        self.clusters.retain(|cluster, all| {
            let held = all.len();
            all.retain(|_, promise| promise.until > now);
            if all.len() < held {
                freed.push(cluster.clone());
            }
            soonest = all.values().map(|promise| promise.until).fold(soonest, Timestamp::min);
            !all.is_empty()
        });
        self.soonest = soonest;
        freed
    }

    /// What is on its way to a cluster, by binding: what, and how many.
    pub fn to(&self, cluster: &str) -> impl Iterator<Item = (&T, i32)> {
        self.clusters.get(cluster).into_iter().flat_map(|all| all.values().map(|p| (&p.of, p.count)))
    }

    /// Where something is promised.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.clusters.keys()
    }

    /// How many promises there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.clusters.values().map(BTreeMap::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Timestamp = Timestamp::constant(100, 0);

    fn had(replicas: i32) -> Vec<Previous> {
        vec![Previous { name: "a".into(), replicas }]
    }

    fn gets(replicas: i32) -> Vec<(Arc<str>, i32)> {
        vec![("a".into(), replicas)]
    }

    fn open(promised: &Promised<&str>) -> i32 {
        promised.to("a").map(|(_, count)| count).sum()
    }

    #[test]
    fn only_what_is_new_is_promised_and_it_adds_up() {
        let (web, mut promised) = (Key::new("shop", "web"), Promised::default());
        promised.assign(&web, &"web", &had(3), &gets(5), LATER);
        assert_eq!(open(&promised), 2, "three are there");
        promised.assign(&web, &"web", &had(5), &gets(6), LATER);
        assert_eq!(open(&promised), 3, "and none of the two has come");
        promised.assign(&web, &"web", &had(6), &gets(4), LATER);
        assert_eq!(open(&promised), 1, "scaled down before they came");
        promised.assign(&web, &"web", &had(4), &[], LATER);
        assert!(promised.is_empty(), "it left");
    }

    #[test]
    fn a_promise_ends_when_it_is_kept_taken_back_or_over() {
        let (web, mut promised) = (Key::new("shop", "web"), Promised::default());
        promised.assign(&web, &"web", &[], &gets(4), LATER);
        assert!(promised.shown(&web, "a", 3), "one is ready");
        assert_eq!(open(&promised), 3);
        assert!(!promised.shown(&web, "a", 4), "an older status promises nothing anew");
        let before = promised.assign(&web, &"web", &had(4), &gets(9), LATER);
        promised.take_back(before);
        assert_eq!(open(&promised), 3, "the write failed");
        assert!(promised.expire(Timestamp::constant(99, 0)).is_empty());
        assert_eq!(promised.expire(LATER), ["a".into()]);
        assert_eq!((promised.len(), promised.clusters().count()), (0, 0));
    }

    #[test]
    fn each_promise_is_over_at_its_own_time() {
        let at = |second| Timestamp::constant(second, 0);
        let mut promised = Promised::default();
        for (name, until) in [("late", 30), ("soon", 10), ("middle", 20)] {
            promised.assign(&Key::new("shop", name), &name, &[], &gets(1), at(until));
        }
        let mut left = Vec::new();
        for now in [9, 10, 19, 20, 30] {
            promised.expire(at(now));
            left.push(promised.len());
        }
        assert_eq!(left, [3, 2, 2, 1, 0]);
    }
}
