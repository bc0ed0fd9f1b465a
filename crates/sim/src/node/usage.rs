//! How much does a pod use? A wave around a share of what it asks for, the same for the same seed.
//!
//! Every container has a level between 30 % and 70 % of its request and swings around it by up to 20 % with a
//! period of one to five minutes; memory follows at a quarter of the swing. Containers that ask for nothing
//! are taken to ask for a little. Real traces replace this model later; the way figures travel stays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loadline_core::quantity::Quantity;

use super::dice;
use crate::cluster::{Container, Pod};

/// What a container that asks for nothing is taken to ask for.
const ASSUMED: Use = Use { cpu_milli: 50, memory_bytes: 64 << 20 };
/// What a node uses without pods.
const IDLE: Use = Use { cpu_milli: 60, memory_bytes: 400 << 20 };

/// An amount of CPU and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
}

impl Use {
    fn plus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli + other.cpu_milli,
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }

    /// As Kubernetes quantities, in whole KiB as nodes measure.
    fn quantities(self) -> BTreeMap<String, String> {
        let memory = Quantity::from_bytes(self.memory_bytes >> 10 << 10);
        BTreeMap::from([
            ("cpu".to_owned(), Quantity::from_milli(self.cpu_milli).to_string()),
            ("memory".to_owned(), memory.to_string()),
        ])
    }
}

/// What all nodes and pods used, taken at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// When.
    pub at: Timestamp,
    /// Over which time before that.
    pub window: Duration,
    /// Per node.
    pub nodes: Vec<NodeFigures>,
    /// Per pod.
    pub pods: Vec<PodFigures>,
}

/// What one node used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFigures {
    /// Its name.
    pub name: String,
    /// Quantities by resource name.
    pub usage: BTreeMap<String, String>,
}

/// What one pod used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFigures {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Quantities by resource name, by container.
    pub containers: BTreeMap<String, BTreeMap<String, String>>,
}

/// Where figures go, such as a metrics API.
#[derive(Clone)]
pub struct Sink(Arc<dyn Fn(&Figures) + Send + Sync>);

impl Sink {
    /// Calls `take` with every set of figures.
    pub fn new(take: impl Fn(&Figures) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Drops all figures.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    pub(crate) fn take(&self, figures: &Figures) {
        (self.0)(figures);
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

/// What a container uses at a time.
fn container(seed: u64, pod: &Pod, c: &Container, now: Timestamp) -> Use {
    let asked = |name: &str, assumed: i64, of: fn(&Quantity) -> i64| {
        let asked = c.resources.requests.get(name).map(of).filter(|n| *n > 0);
        asked.unwrap_or(assumed)
    };
    let cpu = asked("cpu", ASSUMED.cpu_milli, Quantity::milli_value);
    let memory = asked("memory", ASSUMED.memory_bytes, Quantity::value);
    let roll = dice(seed, &format!("{}/{}", pod.meta.key, c.name));
    let part = |shift: u32, range: u64| i64::try_from((roll >> shift) % range).unwrap_or(0);
    let level = 300 + part(0, 401);
    let period = 60 + part(16, 241);
    let swing = wave(now.as_second() + part(32, 1024), period);
    Use {
        cpu_milli: permille(cpu, level + swing / 5).max(1),
        memory_bytes: permille(memory, level + swing / 20).max(1 << 20),
    }
}

/// A triangle between -1000 and 1000.
fn wave(second: i64, period: i64) -> i64 {
    let x = second.rem_euclid(period) * 4000 / period;
    match x {
        0..=999 => x,
        1000..=2999 => 2000 - x,
        _ => x - 4000,
    }
}

fn permille(of: i64, share: i64) -> i64 {
    i64::try_from(i128::from(of) * i128::from(share) / 1000).unwrap_or(i64::MAX)
}

/// What all running pods and the given nodes use at a time.
pub fn figures<'a>(
    seed: u64,
    nodes: impl IntoIterator<Item = &'a str>,
    pods: &[Arc<Pod>],
    (at, window): (Timestamp, Duration),
) -> Figures {
    let mut totals: BTreeMap<&str, Use> = nodes.into_iter().map(|name| (name, IDLE)).collect();
    let mut out = Vec::new();
    for pod in pods {
        let Some(total) = pod.node.as_deref().and_then(|node| totals.get_mut(node)) else { continue };
        let uses = pod.containers.iter().map(|c| (c.name.clone(), container(seed, pod, c, at)));
        let mut containers = BTreeMap::new();
        for (name, used) in uses {
            *total = total.plus(used);
            containers.insert(name, used.quantities());
        }
        let key = &pod.meta.key;
        out.push(PodFigures { namespace: key.namespace.clone(), name: key.name.clone(), containers });
    }
    let nodes = totals.into_iter();
    let nodes = nodes.map(|(name, used)| NodeFigures { name: name.to_owned(), usage: used.quantities() });
    Figures { at, window, nodes: nodes.collect(), pods: out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Key, Meta};

    fn pod(name: &str, milli: i64) -> Arc<Pod> {
        let mut c = Container { name: "main".into(), ..Container::default() };
        c.resources.requests.insert("cpu".into(), Quantity::from_milli(milli));
        Arc::new(Pod {
            meta: Meta { key: Key::new("default", name), ..Meta::default() },
            node: Some("node-00".into()),
            containers: vec![c],
            ..Pod::default()
        })
    }

    #[test]
    fn the_wave_stays_in_its_bounds_and_reaches_them() {
        let values: Vec<i64> = (-500..500).map(|second| wave(second, 100)).collect();
        assert_eq!((values.iter().min(), values.iter().max()), (Some(&-1000), Some(&1000)));
    }

    #[test]
    fn a_container_uses_between_a_tenth_and_nine_tenths_of_its_request() {
        for second in 0..2000 {
            let now = Timestamp::from_second(second).unwrap();
            let pod = pod(&format!("p{}", second % 17), 1000);
            let used = container(1, &pod, &pod.containers[0], now);
            assert!((100..=900).contains(&used.cpu_milli), "{used:?}");
        }
    }

    #[test]
    fn figures_are_the_same_for_the_same_seed_and_leave_out_pods_elsewhere() {
        let now = (Timestamp::from_second(1000).unwrap(), Duration::from_secs(15));
        let pods = [pod("a", 1000), pod("b", 500)];
        let take = |seed| figures(seed, ["node-00"], &pods, now);
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
        assert_eq!(take(1).pods.len(), 2);
        assert!(figures(1, ["node-01"], &pods, now).pods.is_empty());
    }
}
