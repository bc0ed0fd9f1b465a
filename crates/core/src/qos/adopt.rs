//! What did an agent take whose notes are lost? Whatever containers have less of than they were promised.

use super::pod::{Container, CpuQuota, Pod};
use super::state::Throttled;

/// Containers that are held to less than their specification says, as if they had been slowed down by rules that are gone:
/// they get it back at once.
///
/// Only for an agent that knows there was another before it, and not what that one did: others lower quotas, too.
#[must_use]
pub fn adopt(pods: &[Pod]) -> Vec<Throttled> {
    let of_pod = |pod: &Pod| {
        let less = pod.containers.iter().filter_map(|container| {
            let original_us = promised(container)?;
            let CpuQuota::Us(written_us) = container.quota else { return None };
            let is_less = original_us == -1 || written_us < original_us;
            is_less.then(|| Throttled {
                pod: pod.key.clone(),
                uid: pod.uid.clone(),
                container: container.name.clone(),
                original_us,
                written_us,
                unsure_us: Vec::new(),
                back_since: None,
                rules: Vec::new(),
            })
        });
        less.collect::<Vec<_>>()
    };
    pods.iter().filter(|pod| !pod.ended).flat_map(of_pod).collect()
}

/// What a kubelet writes: `limit × period`, at least a millisecond; -1 without a limit. None if that is not known.
fn promised(container: &Container) -> Option<i64> {
    let Some(limit) = container.limit.or(container.elastic) else { return Some(-1) };
    let us = limit.times(container.period_us.into(), 1000).nano() / 1_000_000_000;
    i64::try_from(us).ok().filter(|us| *us > 0).map(|us| us.max(1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Key;
    use crate::qos::level::Level;

    #[test]
    fn less_than_promised_is_given_back_and_nothing_else() {
        for (limit, quota, original, why) in [
            (None, CpuQuota::Us(20_000), Some(-1), "no limit, but held back"),
            (None, CpuQuota::Unlimited, None, "no limit and not held back"),
            (Some(500), CpuQuota::Us(20_000), Some(50_000), "500m of 100 ms are 50 ms"),
            (Some(500), CpuQuota::Us(50_000), None, "has what it was promised"),
            (Some(500), CpuQuota::Us(60_000), None, "has more: somebody else's"),
            (Some(500), CpuQuota::Unlimited, None, "has more: somebody else's"),
            (Some(500), CpuQuota::Unknown, None, "nobody knows"),
            (Some(5), CpuQuota::Us(1_000), None, "5m would be 500 µs, the kernel takes no less than 1 000"),
        ] {
            let container = Container {
                name: "main".into(),
                limit: limit.map(Level::whole),
                quota,
                ..Container::default()
            };
            let pod = Pod { key: Key::new("default", "a"), containers: vec![container], ..Pod::default() };
            let found: Vec<i64> =
                adopt(std::slice::from_ref(&pod)).iter().map(|one| one.original_us).collect();
            assert_eq!(found, original.into_iter().collect::<Vec<_>>(), "{why}");
            assert_eq!(adopt(&[Pod { ended: true, ..pod }]), [], "{why}, but over");
        }
    }
}
