//! What was assigned to clusters and is not to be seen there yet? Else a burst of decisions would all count on the same
//! room.
//!
//! A promise is what a cluster got more than it had. It ends as the cluster's own status shows the replicas, when the
//! binding leaves the cluster or is gone, and in any case at its time: what never comes up must not hold room for ever.
//!
//! In a burst many ask for the same. Their promises to a cluster are kept added up, so that a decision costs what it changes,
//! however much is promised already.

use super::Previous;
use crate::object::Key;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many different ones are compared to find one that asks for the same.
const COMPARED: usize = 16;

/// Workloads may ask for the same.
pub trait Alike {
    /// Could one stand for the other where only what is asked for counts?
    fn is_alike(&self, other: &Self) -> bool;
}

/// One promise: of what, how many, until when.
#[derive(Clone, Debug)]
struct Promise<T> {
    of: Arc<T>,
    /// Replicas, or complete sets.
    count: i32,
    until: Timestamp,
}

/// What is promised to one cluster.
#[derive(Clone, Debug)]
struct Coming<T> {
    promises: BTreeMap<Key, Promise<T>>,
    /// The same added up; of some that are alike there may be several sums.
    sums: Vec<(Arc<T>, i64)>,
}

/// Everything that is promised; `T` is what the owner knows of the workload.
#[derive(Clone, Debug)]
pub struct Promised<T> {
    clusters: BTreeMap<Arc<str>, Coming<T>>,
    /// Where something is promised to a binding.
    bindings: BTreeMap<Key, BTreeSet<Arc<str>>>,
    /// Where it is something else than when this was last asked.
    changed: BTreeSet<Arc<str>>,
    /// None is over before.
    soonest: Timestamp,
}

/// What was promised to a binding before: to take a promise back.
#[derive(Clone, Debug)]
pub struct Before<T> {
    binding: Key,
    promises: Vec<(Arc<str>, Promise<T>)>,
}

/// As far as there is time.
fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX })
}

impl<T> Before<T> {
    /// The clock was set by so much; see [`Promised::shift`].
    pub fn shift(&mut self, by: SignedDuration) {
        for (_, promise) in &mut self.promises {
            promise.until = later(promise.until, by);
        }
    }

    /// Where something was promised.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.promises.iter().map(|(cluster, _)| cluster)
    }
}

impl<T> Default for Promised<T> {
    fn default() -> Self {
        Self {
            clusters: BTreeMap::new(),
            bindings: BTreeMap::new(),
            changed: BTreeSet::new(),
            soonest: Timestamp::MAX,
        }
    }
}

impl<T> Default for Coming<T> {
    fn default() -> Self {
        Self { promises: BTreeMap::new(), sums: Vec::new() }
    }
}

impl<T: Alike> Coming<T> {
    fn add(&mut self, of: &Arc<T>, count: i32) {
        match self.sums.iter_mut().rev().take(COMPARED).find(|(known, _)| known.is_alike(of)) {
            Some((_, sum)) => *sum += i64::from(count),
            None => self.sums.push((of.clone(), count.into())),
        }
    }

    fn subtract(&mut self, of: &T, count: i32) {
        let mut left = i64::from(count);
        for (_, sum) in self.sums.iter_mut().rev().filter(|(known, _)| known.is_alike(of)) {
            let less = left.min(*sum);
            (*sum, left) = (*sum - less, left - less);
            if left == 0 {
                break;
            }
        }
        self.sums.retain(|(_, sum)| *sum > 0);
    }
}

impl<T: Alike> Promised<T> {
    /// The binding had that many and gets this many, by cluster.
    pub fn assign(
        &mut self,
        binding: &Key,
        of: &Arc<T>,
        was: &[Previous],
        is: &[(Arc<str>, i32)],
        until: Timestamp,
    ) -> Before<T> {
        let before = self.withdraw(binding);
        for (cluster, count) in is {
            let had = was.iter().find(|known| *known.name == **cluster).map_or(0, |known| known.replicas);
            let open = before.promises.iter().find(|(name, _)| name == cluster).map_or(0, |(_, p)| p.count);
            let count = open.saturating_add(count.saturating_sub(had));
            if count > 0 {
                self.put(cluster, binding, Promise { of: of.clone(), count, until });
            }
        }
        before
    }

    /// It was not written after all: everything is as it was before.
    pub fn take_back(&mut self, before: Before<T>) {
        self.withdraw(&before.binding);
        for (cluster, promise) in before.promises {
            self.put(&cluster, &before.binding, promise);
        }
    }

    fn put(&mut self, cluster: &Arc<str>, binding: &Key, promise: Promise<T>) {
        self.soonest = self.soonest.min(promise.until);
        self.changed.insert(cluster.clone());
        self.bindings.entry(binding.clone()).or_default().insert(cluster.clone());
        let coming = self.clusters.entry(cluster.clone()).or_default();
        coming.add(&promise.of, promise.count);
        coming.promises.insert(binding.clone(), promise);
    }

    /// The binding is gone.
    pub fn withdraw(&mut self, binding: &Key) -> Before<T> {
        let clusters = self.bindings.remove(binding).unwrap_or_default();
        let promises = clusters
            .into_iter()
            .filter_map(|cluster| Some((cluster.clone(), self.remove(&cluster, binding)?)));
        Before { binding: binding.clone(), promises: promises.collect() }
    }

    fn remove(&mut self, cluster: &Arc<str>, binding: &Key) -> Option<Promise<T>> {
        let coming = self.clusters.get_mut(cluster)?;
        let promise = coming.promises.remove(binding)?;
        coming.subtract(&promise.of, promise.count);
        self.changed.insert(cluster.clone());
        if coming.promises.is_empty() {
            self.clusters.remove(cluster);
        }
        Some(promise)
    }

    /// No more is promised there; it may be elsewhere.
    fn forget(&mut self, cluster: &Arc<str>, binding: &Key) {
        self.remove(cluster, binding);
        if let Some(clusters) = self.bindings.get_mut(binding) {
            clusters.remove(cluster);
            if clusters.is_empty() {
                self.bindings.remove(binding);
            }
        }
    }

    /// The cluster shows what it got, but for so many. Says whether less is promised now.
    pub fn shown(&mut self, binding: &Key, cluster: &str, missing: i32) -> bool {
        let Some((name, _)) = self.clusters.get_key_value(cluster) else { return false };
        let name = name.clone();
        let Some(coming) = self.clusters.get_mut(cluster) else { return false };
        let Some(promise) = coming.promises.get_mut(binding) else { return false };
        if missing >= promise.count {
            return false;
        }
        if missing <= 0 {
            self.forget(&name, binding);
            return true;
        }
        let (of, less) = (promise.of.clone(), promise.count - missing);
        promise.count = missing;
        coming.subtract(&of, less);
        self.changed.insert(name);
        true
    }

    /// Forgets what has waited for too long; says where.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        // Asked all the time, and mostly there is nothing to do.
        if now < self.soonest {
            return Vec::new();
        }
        let all = || {
            self.clusters
                .iter()
                .flat_map(|(cluster, coming)| coming.promises.iter().map(move |one| (cluster, one)))
        };
        let over: Vec<(Arc<str>, Key)> = all()
            .filter(|(_, (_, promise))| promise.until <= now)
            .map(|(cluster, (binding, _))| (cluster.clone(), binding.clone()))
            .collect();
        for (cluster, binding) in &over {
            self.forget(cluster, binding);
        }
        let left = self.clusters.values().flat_map(|coming| coming.promises.values());
        self.soonest = left.map(|promise| promise.until).min().unwrap_or(Timestamp::MAX);
        let mut freed: Vec<Arc<str>> = over.into_iter().map(|(cluster, _)| cluster).collect();
        freed.dedup();
        freed
    }

    /// The clock was set by so much: promises are of times that go by, and end as much earlier or later by the clock.
    pub fn shift(&mut self, by: SignedDuration) {
        for coming in self.clusters.values_mut() {
            for promise in coming.promises.values_mut() {
                promise.until = later(promise.until, by);
            }
        }
        self.soonest = later(self.soonest, by);
    }

    /// What is on its way to a cluster: what, and how many, those that are alike together.
    pub fn to(&self, cluster: &str) -> impl Iterator<Item = (&Arc<T>, i32)> {
        let sums = self.clusters.get(cluster).into_iter().flat_map(|coming| &coming.sums);
        sums.map(|(of, sum)| (of, i32::try_from(*sum).unwrap_or(i32::MAX)))
    }

    /// Where something else is on its way than when this was last asked.
    pub fn changed(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.changed)
    }

    /// Is anything promised to that binding?
    #[must_use]
    pub fn holds(&self, binding: &Key) -> bool {
        self.bindings.contains_key(binding)
    }

    /// How many promises there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bindings.values().map(BTreeSet::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bindings.is_empty()
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

    impl Alike for &str {
        /// Those whose names begin alike.
        fn is_alike(&self, other: &Self) -> bool {
            self.as_bytes().first() == other.as_bytes().first()
        }
    }

    fn open(promised: &Promised<&str>) -> i32 {
        promised.to("a").map(|(_, count)| count).sum()
    }

    #[test]
    fn only_what_is_new_is_promised_and_it_adds_up() {
        let (web, mut promised) = (Key::new("shop", "web"), Promised::default());
        promised.assign(&web, &Arc::new("web"), &had(3), &gets(5), LATER);
        assert_eq!(open(&promised), 2, "three are there");
        promised.assign(&web, &Arc::new("web"), &had(5), &gets(6), LATER);
        assert_eq!(open(&promised), 3, "and none of the two has come");
        promised.assign(&web, &Arc::new("web"), &had(6), &gets(4), LATER);
        assert_eq!(open(&promised), 1, "scaled down before they came");
        promised.assign(&web, &Arc::new("web"), &had(4), &[], LATER);
        assert!(promised.is_empty(), "it left");
    }

    #[test]
    fn a_promise_ends_when_it_is_kept_taken_back_or_over() {
        let (web, mut promised) = (Key::new("shop", "web"), Promised::default());
        promised.assign(&web, &Arc::new("web"), &[], &gets(4), LATER);
        assert!(promised.shown(&web, "a", 3), "one is ready");
        assert_eq!(open(&promised), 3);
        assert!(!promised.shown(&web, "a", 4), "an older status promises nothing anew");
        let before = promised.assign(&web, &Arc::new("web"), &had(4), &gets(9), LATER);
        promised.take_back(before);
        assert_eq!(open(&promised), 3, "the write failed");
        assert!(promised.expire(Timestamp::constant(99, 0)).is_empty());
        assert_eq!(promised.expire(LATER), ["a".into()]);
        assert_eq!((promised.len(), promised.clusters.len()), (0, 0));
    }

    #[test]
    fn each_promise_is_over_at_its_own_time() {
        let at = |second| Timestamp::constant(second, 0);
        let mut promised = Promised::default();
        for (name, until) in [("late", 30), ("soon", 10), ("middle", 20)] {
            promised.assign(&Key::new("shop", name), &Arc::new(name), &[], &gets(1), at(until));
        }
        let mut left = Vec::new();
        for now in [9, 10, 19, 20, 30] {
            promised.expire(at(now));
            left.push(promised.len());
        }
        assert_eq!(left, [3, 2, 2, 1, 0]);
    }

    #[test]
    fn a_clock_that_is_set_makes_no_promise_shorter_or_longer() {
        let at = |second| Timestamp::constant(second, 0);
        let mut promised = Promised::default();
        promised.assign(&Key::new("shop", "a"), &Arc::new("a"), &[], &gets(1), at(10));
        promised.assign(&Key::new("shop", "b"), &Arc::new("b"), &[], &gets(1), at(20));
        // At 5 an hour forward: 5 and 15 seconds are left.
        promised.shift(SignedDuration::from_hours(1));
        assert!(promised.expire(at(3609)).is_empty());
        assert_eq!((promised.expire(at(3610)).len(), promised.len()), (1, 1));
        // At 3612 two hours back: 8 seconds are left.
        promised.shift(SignedDuration::from_hours(-2));
        assert!(promised.expire(at(3619 - 7200)).is_empty());
        assert_eq!((promised.expire(at(3620 - 7200)).len(), promised.len()), (1, 0));
        promised.shift(SignedDuration::MIN);
        assert!(promised.expire(Timestamp::MAX).is_empty(), "none is left");
    }

    /// The same, kept as one list and added up when asked.
    type Slow = BTreeMap<(&'static str, &'static str), (i32, i64)>;

    /// What is promised to a cluster by the first letter of the name, and who of the slow version is meant.
    fn added_up(slow: &Slow, cluster: &str) -> BTreeMap<u8, i64> {
        let mut sums = BTreeMap::new();
        for ((at, binding), (count, _)) in slow {
            if *at == cluster {
                *sums.entry(binding.as_bytes()[0]).or_default() += i64::from(*count);
            }
        }
        sums
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Assign { binding: usize, gets: [i32; 3], until: i64 },
        Undone { binding: usize, gets: [i32; 3], until: i64 },
        Withdraw { binding: usize },
        Shown { binding: usize, cluster: usize, missing: i32 },
        Expire { now: i64 },
    }

    const NAMES: [&str; 6] = ["a1", "a2", "b1", "b2", "b3", "c1"];
    const CLUSTERS: [&str; 3] = ["x", "y", "z"];

    fn step() -> impl proptest::strategy::Strategy<Value = Step> {
        use proptest::prelude::*;
        let (binding, gets, until) = (0..NAMES.len(), prop::array::uniform3(0..4), 0..50_i64);
        let assign = (binding.clone(), gets, until.clone());
        prop_oneof![
            4 => assign.clone().prop_map(|(binding, gets, until)| Step::Assign { binding, gets, until }),
            1 => assign.prop_map(|(binding, gets, until)| Step::Undone { binding, gets, until }),
            1 => binding.clone().prop_map(|binding| Step::Withdraw { binding }),
            2 => (binding, 0..CLUSTERS.len(), 0..4)
                .prop_map(|(binding, cluster, missing)| Step::Shown { binding, cluster, missing }),
            1 => until.prop_map(|now| Step::Expire { now }),
        ]
    }

    fn assign(slow: &mut Slow, binding: usize, gets: [i32; 3], until: i64) {
        let before = slow.clone();
        slow.retain(|(_, of), _| *of != NAMES[binding]);
        for (cluster, count) in CLUSTERS.into_iter().zip(gets) {
            let open = before.get(&(cluster, NAMES[binding])).map_or(0, |(count, _)| *count);
            if open + count > 0 {
                slow.insert((cluster, NAMES[binding]), (open + count, until));
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn sums_are_those_of_all_promises_and_every_change_is_told(
            steps in proptest::collection::vec(step(), 1..60),
        ) {
            let at = |second| Timestamp::constant(second, 0);
            let (mut promised, mut slow) = (Promised::<&str>::default(), Slow::new());
            for step in steps {
                let before = slow.clone();
                let gets = |gets: [i32; 3]| -> Vec<(Arc<str>, i32)> {
                    CLUSTERS.into_iter().map(Arc::from).zip(gets).filter(|(_, count)| *count > 0).collect()
                };
                match step {
                    Step::Assign { binding, gets: count, until } => {
                        // Clusters it no longer gets are left; what is still open elsewhere stays.
                        let left: Vec<_> = CLUSTERS.iter().zip(count).filter(|(_, count)| *count == 0).collect();
                        for (cluster, _) in left {
                            slow.remove(&(*cluster, NAMES[binding]));
                        }
                        assign(&mut slow, binding, count, until);
                        promised.assign(&Key::new("", NAMES[binding]), &Arc::new(NAMES[binding]), &[], &gets(count), at(until));
                    }
                    Step::Undone { binding, gets: count, until } => {
                        let key = Key::new("", NAMES[binding]);
                        let before = promised.assign(&key, &Arc::new(NAMES[binding]), &[], &gets(count), at(until));
                        promised.take_back(before);
                    }
                    Step::Withdraw { binding } => {
                        slow.retain(|(_, of), _| *of != NAMES[binding]);
                        promised.withdraw(&Key::new("", NAMES[binding]));
                    }
                    Step::Shown { binding, cluster, missing } => {
                        let key = (CLUSTERS[cluster], NAMES[binding]);
                        if let Some((count, _)) = slow.get_mut(&key) {
                            *count = (*count).min(missing);
                        }
                        slow.retain(|_, (count, _)| *count > 0);
                        promised.shown(&Key::new("", NAMES[binding]), CLUSTERS[cluster], missing);
                    }
                    Step::Expire { now } => {
                        slow.retain(|_, (_, until)| *until > now);
                        promised.expire(at(now));
                    }
                }
                proptest::prop_assert_eq!(promised.len(), slow.len());
                proptest::prop_assert_eq!(promised.is_empty(), slow.is_empty());
                let changed = promised.changed();
                for cluster in CLUSTERS {
                    let mut sums = BTreeMap::<u8, i64>::new();
                    for (of, count) in promised.to(cluster) {
                        *sums.entry(of.as_bytes()[0]).or_default() += i64::from(count);
                    }
                    proptest::prop_assert_eq!(&sums, &added_up(&slow, cluster), "{}", cluster);
                    let differs = added_up(&slow, cluster) != added_up(&before, cluster);
                    proptest::prop_assert!(!differs || changed.contains(cluster), "{} changed", cluster);
                }
            }
        }
    }
}
