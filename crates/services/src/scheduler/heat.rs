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
use loadline_core::qos::agree::About;
use loadline_core::select::Lookup;
use loadline_core::view::Snapshot;
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

impl Node {
    /// How much of what there is for pods is used.
    fn share(&self, sample: Sample, r: Metered) -> Option<Ratio> {
        Ratio::of(sample.usage.get(r), self.allocatable.get(r)?)
    }

    /// The first resource of which more is used than its target says: how much, and the target.
    fn over(&self, sample: Sample) -> Option<(Metered, Ratio, Ratio)> {
        Metered::ALL.into_iter().find_map(|r| {
            let (share, target) = (self.share(sample, r)?, self.targets.get(r)?);
            (share > target).then_some((r, share, target))
        })
    }
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
    pub fn set<L: Lookup + ?Sized>(&mut self, name: &str, about: &About<'_, L>, rules: &Rules) {
        let node = self.nodes.entry(name.to_owned()).or_default();
        node.allocatable = about.allocatable;
        node.targets = rules.node(about.labels, about.annotations).0.targets;
    }

    /// The same for all there are, by other rules. What was measured last is held against these at once; for how long
    /// nodes were hot until now stays what it was.
    pub fn judge_by(&mut self, rules: &Rules, nodes: &Snapshot) {
        for view in nodes.nodes().filter(|view| view.present) {
            self.set(&view.name, &About::from(view), rules);
        }
        for node in self.nodes.values_mut() {
            node.hot = node.newest.is_some_and(|newest| node.over(newest).is_some());
        }
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
        let over = node.over(sample);
        let shares = Metered::ALL.into_iter().filter_map(|r| Some((node.share(sample, r)?, r)));
        let highest = shares.max();
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
                let share = node.share(node.newest?, r)?;
                Some(Peak { node: name.clone(), resource: r.name().to_owned(), share })
            })
        });
        shares.max_by(|a, b| a.share.cmp(&b.share).then_with(|| b.node.cmp(&a.node)))
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
        let allocatable = Both { cpu: Some(10_000_000_000), memory: Some(10 << 30) };
        let none: BTreeMap<String, String> = BTreeMap::new();
        let about = About { labels: &none, annotations: &none, allocatable, capacity: allocatable };
        heat.set("a", &about, &Rules::default());
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
