//! How much will this pod use?
//!
//! Per container and resource, the first that is known counts:
//!
//! 1. what was recommended for it, see [`super::recommend`]
//! 2. what it asks for
//! 3. the floor: what to expect of containers that say nothing, normally nothing
//!
//! These add up over the regular containers; sidecars and sandbox come on top with what they ask for. If nothing
//! was recommended for any container, the effective request of the whole pod counts instead: there, init
//! containers and requests of the pod as a whole have their say, too.

use super::recommend::{Advice, Recommendation};
use super::{Load, Metered};
use crate::quantity::Quantity;
use crate::requests::{self, Container, Options, Pod};
use crate::resources::List;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What one container asks for; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContainerAsk {
    /// The container's name.
    pub name: Arc<str>,
    /// CPU in billionths of a core.
    pub cpu_nano: Option<i64>,
    pub memory_bytes: Option<i64>,
}

impl ContainerAsk {
    fn new(container: &Container) -> Self {
        let (cpu_nano, memory_bytes) = amounts(&container.resources.requests);
        Self { name: container.name.as_str().into(), cpu_nano, memory_bytes }
    }

    /// One of the two.
    #[must_use]
    pub fn get(&self, resource: Metered) -> Option<i64> {
        match resource {
            Metered::Cpu => self.cpu_nano,
            Metered::Memory => self.memory_bytes,
        }
    }
}

/// What a pod asks for, as far as its load can be foretold from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Asks {
    pub containers: Vec<ContainerAsk>,
    /// What its sidecars ask for together.
    pub sidecars: Load,
    /// What its sandbox costs.
    pub overhead: Load,
    /// Its effective request as a whole, overhead included: what counts when nothing better is known.
    pub effective: Load,
}

impl Asks {
    /// What that pod asks for. Fractions of a billionth or of a byte count whole.
    #[must_use]
    pub fn of(pod: &Pod) -> Self {
        let sidecars =
            pod.spec.init_containers.iter().filter(|c| c.restart_policy.as_deref() == Some("Always"));
        let all = requests::effective(pod, Options::default());
        Self {
            containers: pod.spec.containers.iter().map(ContainerAsk::new).collect(),
            sidecars: sidecars.map(|c| load(&c.resources.requests)).fold(Load::ZERO, Load::plus),
            overhead: load(&pod.spec.overhead),
            effective: Load::new(
                all.get("cpu").map_or(0, nanocores),
                all.get("memory").map_or(0, Quantity::value),
            ),
        }
    }
}

/// CPU in billionths of a core, rounded up, held within `i64`.
#[must_use]
pub fn nanocores(cpu: &Quantity) -> i64 {
    let limit = if cpu.is_negative() { i64::MIN } else { i64::MAX };
    cpu.nano_value().and_then(|n| i64::try_from(n).ok()).unwrap_or(limit)
}

fn amounts(list: &List) -> (Option<i64>, Option<i64>) {
    (list.get("cpu").map(nanocores), list.get("memory").map(Quantity::value))
}

/// What is not in the list is not asked for.
fn load(list: &List) -> Load {
    let (cpu, memory) = amounts(list);
    Load::new(cpu.unwrap_or(0), memory.unwrap_or(0))
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// It was recommended.
    Recommendation,
    /// It was asked for.
    Request,
    /// Nobody said anything; the floor was taken.
    None,
}

/// Where the figures of one container come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sources {
    /// The container's name.
    pub container: Arc<str>,
    pub cpu: Source,
    pub memory: Source,
}

impl Sources {
    /// One of the two.
    #[must_use]
    pub fn get(&self, resource: Metered) -> Source {
        match resource {
            Metered::Cpu => self.cpu,
            Metered::Memory => self.memory,
        }
    }
}

/// What a pod is expected to use, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Estimate {
    /// So much.
    pub load: Load,
    /// Where it comes from, per regular container in their order.
    pub sources: Vec<Sources>,
}

/// What one container is expected to use of a resource, and who says so.
pub(super) fn expected(
    ask: &ContainerAsk,
    recommended: Option<&Advice>,
    resource: Metered,
    floor: Load,
) -> (i64, Source) {
    let first = recommended.and_then(|r| r.get(resource)).map(|amount| (amount, Source::Recommendation));
    let second = || ask.get(resource).map(|amount| (amount, Source::Request));
    first.or_else(second).unwrap_or((floor.get(resource), Source::None))
}

/// What a pod is expected to use. The floor is per container that says nothing, [`Load::ZERO`] unless configured.
#[must_use]
pub fn estimate(asks: &Asks, recommended: Option<&Recommendation>, floor: Load) -> Estimate {
    let mut total = asks.sidecars.plus(asks.overhead);
    let mut any = false;
    let mut sources = Vec::with_capacity(asks.containers.len());
    for ask in &asks.containers {
        let target = recommended.and_then(|r| r.containers.get(&ask.name));
        let pick = |resource: Metered| expected(ask, target, resource, floor);
        let ((cpu, from_cpu), (memory, from_memory)) = (pick(Metered::Cpu), pick(Metered::Memory));
        total = total.plus(Load::new(cpu, memory));
        any |= from_cpu == Source::Recommendation || from_memory == Source::Recommendation;
        sources.push(Sources { container: ask.name.clone(), cpu: from_cpu, memory: from_memory });
    }
    let load = match (any, floor) {
        (true, _) => total,
        (false, Load::ZERO) => asks.effective,
        // The effective request knows nothing of the floor.
        (false, _) => asks.effective.max(total),
    };
    Estimate { load, sources }
}

#[cfg(test)]
mod tests;
