//! The obvious way: every node and every pod looked at anew for every question.

use crate::estimate::{Answer, Ask, Assumed, Component, UNCONSTRAINED};
use crate::resources::{Amounts, Names, Resource};
use crate::select::taint::{Compare, repelling, tolerates_cordon};
use crate::view::{NodeFacts, PodFacts};
use std::collections::BTreeMap;

/// Everything there is.
#[derive(Clone, Debug, Default)]
pub struct Slow {
    pub nodes: BTreeMap<String, NodeFacts>,
    pub pods: BTreeMap<String, PodFacts>,
}

/// What is free on one node, and the node.
struct Spot<'a> {
    facts: &'a NodeFacts,
    free: Amounts,
}

impl Slow {
    fn spots<'a>(&'a self, names: &mut Names) -> Vec<Spot<'a>> {
        let mut zones: BTreeMap<(String, String), Vec<&NodeFacts>> = BTreeMap::new();
        for node in self.nodes.values() {
            let label = |key: &str| node.labels.get(key).cloned().unwrap_or_default();
            let zone = (label("topology.kubernetes.io/region"), label("topology.kubernetes.io/zone"));
            zones.entry(zone).or_default().push(node);
        }
        let longest = zones.values().map(Vec::len).max().unwrap_or(0);
        let order = (0..longest).flat_map(|i| zones.values().filter_map(move |zone| zone.get(i).copied()));
        let spot = |facts: &'a NodeFacts| {
            let mut free = names.amounts(&facts.allocatable);
            for pod in
                self.pods.values().filter(|p| p.node.as_ref() == Some(&facts.name) && !p.phase.is_over())
            {
                free.sub(&names.amounts(&pod.requests).with(Resource::PODS, 1));
            }
            Spot { facts, free }
        };
        order.map(spot).collect()
    }

    pub fn replicas(&self, ask: &Ask, assumed: &[Assumed]) -> i64 {
        let names = &mut Names::new();
        let mut spots = self.spots(names);
        for component in assumed.iter().flat_map(|a| &a.components) {
            place(&mut spots, component, names);
        }
        spots.iter().map(|spot| fit(spot, ask, names)).sum::<i64>().min(i64::from(UNCONSTRAINED))
    }

    pub fn sets(&self, components: &[Component]) -> i64 {
        let names = &mut Names::new();
        let mut spots = self.spots(names);
        if spots.is_empty() {
            return 0;
        }
        if components.iter().all(|c| c.replicas == 0) {
            return i64::from(UNCONSTRAINED);
        }
        let mut sets = 0;
        while components.iter().all(|component| place(&mut spots, component, names) == 0) {
            sets += 1;
        }
        sets
    }
}

fn fit(spot: &Spot<'_>, ask: &Ask, names: &mut Names) -> i64 {
    let closed = spot.facts.unschedulable && !tolerates_cordon(&ask.tolerations);
    if closed
        || repelling(&spot.facts.taints, &ask.tolerations, Compare::Off).is_some()
        || !ask.required.matches(&spot.facts.name, &spot.facts.labels)
    {
        return 0;
    }
    let asked = names.amounts(&ask.requests).with(Resource::PODS, 1);
    let mut count = 0;
    while asked.iter().all(|(r, amount)| amount <= 0 || amount * (count + 1) <= spot.free.get(r)) {
        count += 1;
    }
    count
}

/// Places a component's replicas; returns how many found no node.
fn place(spots: &mut [Spot<'_>], component: &Component, names: &mut Names) -> i64 {
    let asked = names.amounts(&component.ask.requests).with(Resource::PODS, 1);
    let mut left = i64::from(component.replicas);
    for spot in spots {
        let here = fit(spot, &component.ask, names).min(left);
        for _ in 0..here {
            spot.free.sub(&asked);
        }
        left -= here;
    }
    left
}

/// The answer with only the nodes counted.
pub fn nodes(answer: &Answer) -> i64 {
    i64::from(answer.by_nodes)
}
