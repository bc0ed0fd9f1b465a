//! How hot are the nodes? What was measured, held against the targets, whether decisions look at it or not.
//!
//! A node is hot while its newest measurement is over its target in CPU or memory. Each measurement speaks for
//! its window:
//!
//! > node-seconds = Σ windows of the measurements that are over a target

use loadline_core::ledger::Sample;
use loadline_core::load::policy::Rules;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::{Both, Metered};
use loadline_core::quantity::Quantity;
use loadline_core::resources::List;
use std::collections::BTreeMap;

/// The highest share of what a node has for pods that was ever measured on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    pub node: String,
    /// Which resource, `cpu` or `memory`.
    pub resource: String,
    pub share: Ratio,
}

#[derive(Debug, Default)]
struct Node {
    allocatable: Both<Option<i64>>,
    targets: Both<Option<Ratio>>,
    newest: Option<Sample>,
    hot: bool,
}

/// What a node has, and what its rules are read from.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub name: &'a str,
    pub allocatable: &'a List,
    pub labels: &'a BTreeMap<String, String>,
    pub annotations: &'a BTreeMap<String, String>,
}

/// All nodes.
#[derive(Debug, Default)]
pub struct Heat {
    nodes: BTreeMap<String, Node>,
    millis: i128,
    peak: Option<Peak>,
}

impl Heat {
    /// A node is there, and this is what it has.
    pub fn set(&mut self, about: &About<'_>, rules: &Rules) {
        let node = self.nodes.entry(about.name.to_owned()).or_default();
        let has = |r: Metered| about.allocatable.get(r.name()).map(|q| amount(r, q));
        node.allocatable = Both { cpu: has(Metered::Cpu), memory: has(Metered::Memory) };
        node.targets = rules.node(about.labels, about.annotations).0.targets;
    }

    /// A node is gone.
    pub fn remove(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// A node was measured; what to say if it crossed its target. One measured already, or unknown, changes nothing.
    pub fn feel(&mut self, name: &str, sample: Sample) -> Option<String> {
        let node = self.nodes.get_mut(name)?;
        if node.newest.is_some_and(|newest| newest.at >= sample.at) {
            return None;
        }
        node.newest = Some(sample);
        let mut over = None;
        let mut highest: Option<(Ratio, Metered)> = None;
        for r in Metered::ALL {
            let Some(share) = node.allocatable.get(r).and_then(|a| Ratio::of(sample.usage.get(r), a)) else {
                continue;
            };
            highest = highest.max(Some((share, r)));
            if let Some(target) = node.targets.get(r).filter(|target| share > *target) {
                over = over.or(Some((r, share, target)));
            }
        }
        if let Some((share, r)) = highest
            && self.peak.as_ref().is_none_or(|peak| share > peak.share)
        {
            self.peak = Some(Peak { node: name.to_owned(), resource: r.name().to_owned(), share });
        }
        let was = std::mem::replace(&mut node.hot, over.is_some());
        if over.is_some() {
            self.millis += sample.window.as_millis();
        }
        match (over, highest) {
            (Some((r, share, target)), _) if !was => {
                Some(format!("hot, {} {r} over its target {}", percent(share), percent(target)))
            }
            (None, Some((share, r))) if was => Some(format!("cooled, {} {r}", percent(share))),
            _ => None,
        }
    }

    /// Was the node over a target when it was last measured?
    #[must_use]
    pub fn is_hot(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| node.hot)
    }

    /// How many nodes are hot.
    #[must_use]
    pub fn hot(&self) -> usize {
        self.nodes.values().filter(|node| node.hot).count()
    }

    /// Seconds above target, summed over nodes.
    #[must_use]
    pub fn node_seconds(&self) -> u64 {
        u64::try_from(self.millis / 1000).unwrap_or(u64::MAX)
    }

    /// The worst that was measured.
    #[must_use]
    pub fn peak(&self) -> Option<&Peak> {
        self.peak.as_ref()
    }

    /// The node that has least left, by the newest measurements.
    #[must_use]
    pub fn hottest(&self) -> Option<Peak> {
        let shares = self.nodes.iter().flat_map(|(name, node)| {
            Metered::ALL.into_iter().filter_map(move |r| {
                let share = Ratio::of(node.newest?.usage.get(r), node.allocatable.get(r)?)?;
                Some(Peak { node: name.clone(), resource: r.name().to_owned(), share })
            })
        });
        shares.max_by(|a, b| a.share.cmp(&b.share).then_with(|| b.node.cmp(&a.node)))
    }
}

fn amount(resource: Metered, quantity: &Quantity) -> i64 {
    match resource {
        Metered::Cpu => loadline_core::load::estimate::nanocores(quantity),
        Metered::Memory => quantity.value(),
    }
}

/// `72%`, rounded down.
fn percent(share: Ratio) -> String {
    format!("{}%", share.nano().div_euclid(10_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::{SignedDuration, Timestamp};
    use loadline_core::load::Load;

    fn sample(second: i64, cpu_milli: i64, gibibytes: i64) -> Sample {
        Sample {
            at: Timestamp::from_second(second).expect("small"),
            window: SignedDuration::from_secs(5),
            usage: Load::new(cpu_milli * 1_000_000, gibibytes << 30),
        }
    }

    /// 10 CPUs and 10 GiB, of which crane's policy lets 65 % be used.
    fn heat() -> Heat {
        let mut heat = Heat::default();
        let amounts = [("cpu", "10"), ("memory", "10Gi")];
        let allocatable = amounts.map(|(name, text)| (name.to_owned(), text.parse().expect("a quantity")));
        let (allocatable, none) = (allocatable.into(), BTreeMap::new());
        let about = About { name: "a", allocatable: &allocatable, labels: &none, annotations: &none };
        heat.set(&about, &Rules::default());
        heat
    }

    #[test]
    fn a_node_is_hot_for_the_windows_in_which_it_was_over_a_target() {
        let mut heat = heat();
        let hot = "hot, 65% cpu over its target 65%";
        let table = [
            (sample(5, 6500, 1), None, 0, "at the target is not over it"),
            (sample(10, 6501, 1), Some(hot), 5, "a thousandth more is"),
            (sample(10, 9000, 1), None, 5, "the same moment counts once"),
            (sample(15, 7000, 1), None, 10, "it stays hot, which is no news"),
            (sample(20, 2000, 1), Some("cooled, 20% cpu"), 10, "it cooled"),
            (sample(25, 2000, 7), Some("hot, 70% memory over its target 65%"), 15, "memory counts, too"),
        ];
        for (sample, crossed, seconds, why) in table {
            assert_eq!(heat.feel("a", sample).as_deref(), crossed, "{why}");
            assert_eq!(heat.node_seconds(), seconds, "{why}");
        }
        let peak = Peak { node: "a".into(), resource: "cpu".into(), share: Ratio::from_nano(700_000_000) };
        assert_eq!(heat.peak(), Some(&peak));
        assert!(heat.is_hot("a") && heat.hot() == 1);
        heat.remove("a");
        assert!(!heat.is_hot("a"), "nothing is known of a node that is gone");
        assert_eq!(heat.feel("a", sample(30, 9999, 1)), None);
    }
}
