//! How much CPU may a container take? What the kernel's controller would hold it to: microseconds per period.
//!
//! A node writes the limit of a container there when it starts it, or nothing. Whoever protects the node may write less
//! and give it back; like the kernel, this remembers the last that was written, and forgets it with the pod.

use crate::cluster::Container;
use loadline_core::qos::{CpuQuota, PERIOD_US};
use std::collections::{BTreeMap, HashMap};
use std::sync::{PoisonError, RwLock};

/// What was written since containers started, by pod and container.
#[derive(Debug, Default)]
pub struct Quotas(RwLock<HashMap<String, BTreeMap<String, CpuQuota>>>);

impl Quotas {
    /// What a container is held to.
    pub fn get(&self, uid: &str, container: &Container) -> CpuQuota {
        let written = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let written = written.get(uid).and_then(|of_pod| of_pod.get(&container.name)).copied();
        written.unwrap_or_else(|| limit(container))
    }

    /// Holds a container to something else.
    pub fn set(&self, uid: &str, container: &str, quota: CpuQuota) {
        let mut written = self.0.write().unwrap_or_else(PoisonError::into_inner);
        written.entry(uid.to_owned()).or_default().insert(container.to_owned(), quota);
    }

    /// The pod is gone, and its containers with it.
    pub fn forget(&self, uid: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

/// What a node writes when it starts a container: `limit × period`.
fn limit(container: &Container) -> CpuQuota {
    let milli = container.resources.limits.get("cpu").map(loadline_core::quantity::Quantity::milli_value);
    milli.map_or(CpuQuota::Unlimited, |milli| CpuQuota::from_us(milli.saturating_mul(PERIOD_US / 1000)))
}

/// What may be taken at most, in thousandths of a CPU: `quota / period`; none without an end.
pub fn milli(quota: CpuQuota) -> Option<i64> {
    quota.us().filter(|us| *us > 0).map(|us| (us / (PERIOD_US / 1000)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(limit: Option<&str>) -> Container {
        let mut c = Container { name: "main".into(), ..Container::default() };
        if let Some(limit) = limit {
            c.resources.limits.insert("cpu".into(), limit.parse().expect("a quantity"));
        }
        c
    }

    #[test]
    fn a_container_is_held_to_what_was_written_last_else_to_its_limit() {
        let quotas = Quotas::default();
        for (limit, us, milli_, why) in [
            (None, Some(-1), None, "no limit, no end"),
            (Some("1500m"), Some(150_000), Some(1500), "1.5 CPUs of 100 ms are 150 ms"),
            (Some("0"), Some(-1), None, "a limit of nothing is none"),
        ] {
            let got = quotas.get("u", &container(limit));
            assert_eq!((got.us(), milli(got)), (us, milli_), "{why}");
        }
        let limited = container(Some("2"));
        quotas.set("u", "main", CpuQuota::Us(50_000));
        assert_eq!(quotas.get("u", &limited), CpuQuota::Us(50_000));
        assert_eq!(quotas.get("other", &limited), CpuQuota::Us(200_000), "another pod of that name");
        quotas.set("u", "main", CpuQuota::Unlimited);
        assert_eq!(quotas.get("u", &limited), CpuQuota::Unlimited, "given back, and more than its limit");
        quotas.forget("u");
        assert_eq!(quotas.get("u", &limited), CpuQuota::Us(200_000));
    }
}
