//! Who comes first? The first in the list is the first to be acted on.
//!
//! Users of the elastic part of the resource, then the lower priority, then the lower class (or class before priority),
//! then whoever the metric puts first, then the younger, then the key: the order is total.

use super::metric::Metric;
use super::pod::Pod;
use super::snapshot::Order;
use std::cmp::{Ordering, Reverse};

/// What decides before usage does: a pod of a lower tier is never spared for one of a higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tier(bool, i64, i64);

/// The tier of a pod, by that metric.
#[must_use]
pub fn tier(pod: &Pod, metric: Option<&Metric>, order: Order) -> Tier {
    let elastic = metric.is_some_and(|metric| (metric.elastic)(pod));
    let (priority, class) = (i64::from(pod.priority), pod.class as i64);
    match order {
        Order::PriorityFirst => Tier(!elastic, priority, class),
        Order::ClassFirst => Tier(!elastic, class, priority),
    }
}

/// The places of these pods in the order of that metric; without one, in the general order.
#[must_use]
pub fn sorted(pods: &[&Pod], metric: Option<&Metric>, order: Order) -> Vec<usize> {
    let mut ranked: Vec<(Tier, usize)> =
        pods.iter().enumerate().map(|(i, pod)| (tier(pod, metric, order), i)).collect();
    let by = metric.and_then(|metric| metric.compare);
    ranked.sort_unstable_by(|(tier_a, a), (tier_b, b)| {
        let (a, b) = (pods[*a], pods[*b]);
        tier_a
            .cmp(tier_b)
            .then_with(|| by.map_or(Ordering::Equal, |compare| compare(a, b)))
            .then_with(|| equals(a, b))
    });
    ranked.into_iter().map(|(_, i)| i).collect()
}

/// Who comes first of pods that are equal otherwise. Rarely asked, so it is kept out of the loop of the sort.
#[inline(never)]
fn equals(a: &Pod, b: &Pod) -> Ordering {
    age(a).cmp(&age(b)).then_with(|| a.key.cmp(&b.key))
}

/// The younger first; who has not started is the youngest.
fn age(pod: &Pod) -> (bool, Reverse<Option<jiff::Timestamp>>) {
    (pod.started.is_some(), Reverse(pod.started))
}
