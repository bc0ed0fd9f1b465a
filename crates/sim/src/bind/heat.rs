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
use loadline_core::view::NodeFacts;
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

/// All nodes.
#[derive(Debug, Default)]
pub struct Heat {
    nodes: BTreeMap<String, Node>,
    millis: i128,
    peak: Option<Peak>,
}

/// What a measurement changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Felt {
    /// Is less of something used than before?
    pub relief: bool,
    /// What to say if the node crossed its target.
    pub crossed: Option<String>,
}

impl Heat {
    /// A node is there, and this is what it has.
    pub fn set(&mut self, facts: &NodeFacts, rules: &Rules) {
        let node = self.nodes.entry(facts.name.clone()).or_default();
        let has = |r: Metered| facts.allocatable.get(r.name()).map(|q| amount(r, q));
        node.allocatable = Both { cpu: has(Metered::Cpu), memory: has(Metered::Memory) };
        node.targets = rules.node(&facts.labels, &facts.annotations).0.targets;
    }

    /// A node is gone.
    pub fn remove(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// A node was measured. One measured already, or unknown, changes nothing.
    pub fn feel(&mut self, name: &str, sample: Sample) -> Felt {
        let Some(node) = self.nodes.get_mut(name) else { return Felt::default() };
        if node.newest.is_some_and(|newest| newest.at >= sample.at) {
            return Felt::default();
        }
        let less = |newest: Sample| Metered::ALL.iter().any(|r| sample.usage.get(*r) < newest.usage.get(*r));
        let relief = node.newest.is_none_or(less);
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
        let crossed = match (over, highest) {
            (Some((r, share, target)), _) if !was => {
                Some(format!("hot, {} {r} over its target {}", percent(share), percent(target)))
            }
            (None, Some((share, r))) if was => Some(format!("cooled, {} {r}", percent(share))),
            _ => None,
        };
        Felt { relief, crossed }
    }

    /// Was the node over a target when it was last measured?
    pub fn is_hot(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| node.hot)
    }

    /// How many nodes are hot.
    pub fn hot(&self) -> usize {
        self.nodes.values().filter(|node| node.hot).count()
    }

    /// Seconds above target, summed over nodes.
    pub fn node_seconds(&self) -> u64 {
        u64::try_from(self.millis / 1000).unwrap_or(u64::MAX)
    }

    /// The worst that was measured.
    pub fn peak(&self) -> Option<&Peak> {
        self.peak.as_ref()
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
        let facts = NodeFacts { name: "a".into(), allocatable: allocatable.into(), ..NodeFacts::default() };
        heat.set(&facts, &Rules::default());
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
            assert_eq!(heat.feel("a", sample).crossed.as_deref(), crossed, "{why}");
            assert_eq!(heat.node_seconds(), seconds, "{why}");
        }
        let peak = Peak { node: "a".into(), resource: "cpu".into(), share: Ratio::from_nano(700_000_000) };
        assert_eq!(heat.peak(), Some(&peak));
        assert!(heat.is_hot("a") && heat.hot() == 1);
        heat.remove("a");
        assert!(!heat.is_hot("a"), "nothing is known of a node that is gone");
        assert_eq!(heat.feel("a", sample(30, 9999, 1)), Felt::default());
    }

    #[test]
    fn less_use_of_anything_is_a_relief() {
        let mut heat = heat();
        for (sample, relief, why) in [
            (sample(5, 3000, 3), true, "before, nothing was known"),
            (sample(10, 3000, 3), false, "the same"),
            (sample(15, 4000, 2), true, "less memory"),
            (sample(20, 5000, 2), false, "more CPU"),
            (sample(25, 4999, 2), true, "less CPU"),
        ] {
            assert_eq!(heat.feel("a", sample).relief, relief, "{why}");
        }
    }
}
