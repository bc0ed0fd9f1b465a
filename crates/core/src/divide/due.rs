//! Is there anything to decide? What makes a binding worth dividing again.

use super::{Binding, Division, Placement};

/// The placement of the last division, as it is remembered on the binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Applied {
    /// There was none.
    #[default]
    Never,
    /// Something is written that cannot be read: it counts as another placement.
    Unreadable,
    /// This one.
    Placement(Box<Placement>),
}

/// Why a binding is to be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The placement is another.
    Placement,
    /// The number of replicas is.
    Replicas,
    /// Somebody asked for it.
    Asked,
    /// It goes to every cluster that fits, and new ones may have come.
    Everywhere,
    /// A cluster it is on goes away.
    Leaving,
}

/// Why, the first reason that holds; `None` if all is as it should be.
#[must_use]
pub fn due(binding: &Binding, applied: &Applied, leaving: impl Fn(&str) -> bool) -> Option<Due> {
    let placement = binding.placement.as_ref()?;
    let same = match applied {
        Applied::Never | Applied::Unreadable => false,
        Applied::Placement(last) => same(last, placement, &binding.observed),
    };
    let duplicated = placement.division == Division::Duplicated;
    let sum = || binding.clusters.iter().map(|known| i64::from(known.replicas)).sum::<i64>();
    let other = || {
        if !binding.components.is_empty() {
            binding.clusters.is_empty()
        } else if duplicated {
            binding.clusters.iter().any(|known| known.replicas != binding.replicas)
        } else {
            sum() != i64::from(binding.replicas)
        }
    };
    if !same {
        Some(Due::Placement)
    } else if binding.is_workload() && other() {
        Some(Due::Replicas)
    } else if binding.is_fresh() {
        Some(Due::Asked)
    } else if !binding.is_workload() || duplicated {
        Some(Due::Everywhere)
    } else if binding.clusters.iter().any(|known| leaving(&known.name)) {
        Some(Due::Leaving)
    } else {
        None
    }
}

/// With affinity groups, only the one it is in counts: the others may change.
fn same(last: &Placement, now: &Placement, observed: &str) -> bool {
    if now.groups.is_empty() || last.groups.is_empty() {
        return last == now;
    }
    let group = |placement: &Placement| placement.groups.iter().position(|group| group.name == observed);
    let (Some(was), Some(is)) = (group(last), group(now)) else { return false };
    last.groups[was] == now.groups[is]
        && (&last.tolerations, &last.spread, &last.division) == (&now.tolerations, &now.spread, &now.division)
}
