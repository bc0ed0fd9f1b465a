//! What does a cluster say about itself? Totals, what is taken, and how many nodes there are of which size.
//!
//! A summary of our own counts only nodes that can take pods; one from elsewhere counts all of them.

use crate::quantity::Quantity;
use crate::resources::List;
use crate::view::NodeFacts;
use std::collections::BTreeMap;

/// Amounts by resource: CPU in thousandths, the rest in bytes or pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    /// What nearly everybody asks for, at hand: a fleet's summaries do not fit into a cache.
    usual: [Option<i64>; USUAL.len()],
    /// Sorted by name.
    others: Vec<(Box<str>, i64)>,
}

const USUAL: [&str; 3] = ["cpu", "memory", "pods"];

/// Where it is kept.
fn usual(name: &str) -> Option<usize> {
    // Written out, names are compared as the numbers their few bytes make.
    match name {
        "cpu" => Some(0),
        "memory" => Some(1),
        "pods" => Some(2),
        _ => None,
    }
}

impl Stock {
    /// From quantities.
    #[must_use]
    pub fn of(list: &List) -> Self {
        list.iter().map(|(name, quantity)| (name.as_str(), amount(name, quantity))).collect()
    }

    /// How much, if it is listed.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<i64> {
        match usual(name) {
            Some(at) => self.usual[at],
            // A handful of entries: looking through them is quicker than anything clever.
            None => self.others.iter().find(|(known, _)| **known == *name).map(|(_, amount)| *amount),
        }
    }

    /// All of it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        let usual = USUAL.into_iter().zip(self.usual).filter_map(|(name, amount)| Some((name, amount?)));
        usual.chain(self.others.iter().map(|(name, amount)| (&**name, *amount)))
    }
}

impl<'a> FromIterator<(&'a str, i64)> for Stock {
    fn from_iter<I: IntoIterator<Item = (&'a str, i64)>>(items: I) -> Self {
        let mut out = Self::default();
        let mut others: BTreeMap<&str, i64> = BTreeMap::new();
        for (name, amount) in items {
            match usual(name) {
                Some(at) => out.usual[at] = Some(amount),
                None => drop(others.insert(name, amount)),
            }
        }
        out.others = others.into_iter().map(|(name, amount)| (name.into(), amount)).collect();
        out
    }
}

/// The unit of a resource is that of its name, whatever way the amount is written.
pub(super) fn amount(name: &str, quantity: &Quantity) -> i64 {
    if name == "cpu" { quantity.milli_value() } else { quantity.value() }
}

/// How nodes that are not ready are marked.
const DOWN: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// What a cluster has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// In all.
    pub total: Stock,
    /// Neither taken nor waited for; negative where more is.
    pub free: Stock,
    /// How many nodes there are of each grade.
    pub grades: Vec<(i64, i64)>,
}

/// Nodes of one size: at least that much of each resource is free there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub grade: i64,
    /// The least free.
    pub least: Stock,
}

impl Model {
    /// From quantities.
    #[must_use]
    pub fn new(grade: i64, least: &List) -> Self {
        Self { grade, least: Stock::of(least) }
    }
}

impl Summary {
    /// From what there is, what pods on nodes request and what pods without a node do.
    #[must_use]
    pub fn new(allocatable: &List, allocated: &List, allocating: &List) -> Self {
        let free = |(name, all): (&String, &Quantity)| {
            let taken = |list: &List| list.get(name).copied().unwrap_or(Quantity::ZERO);
            (name.clone(), all.minus(taken(allocated)).minus(taken(allocating)))
        };
        Self {
            total: Stock::of(allocatable),
            free: Stock::of(&allocatable.iter().map(free).collect()),
            grades: Vec::new(),
        }
    }

    /// The summary of a cluster: nodes with what their pods request, and what pods without a node do.
    ///
    /// A node that is not ready or is cordoned counts for nothing. One without a place left for a pod has no grade, and
    /// only that one.
    #[must_use]
    pub fn of<'a>(
        nodes: impl IntoIterator<Item = (&'a NodeFacts, &'a List)>,
        waiting: &List,
        models: &[Model],
    ) -> Self {
        let (mut allocatable, mut allocated) = (List::new(), List::new());
        let mut grades: BTreeMap<i64, i64> = BTreeMap::new();
        for (node, requested) in nodes {
            if node.unschedulable || node.taints.iter().any(|taint| DOWN.contains(&taint.key.as_str())) {
                continue;
            }
            add(&mut allocatable, &node.allocatable);
            add(&mut allocated, requested);
            let free = Self::new(&node.allocatable, requested, &List::new()).free;
            if free.get("pods").is_some_and(|pods| pods > 0)
                && let Some(grade) = grade(&free, models)
            {
                *grades.entry(grade).or_default() += 1;
            }
        }
        Self { grades: grades.into_iter().collect(), ..Self::new(&allocatable, &allocated, waiting) }
    }
}

/// The smallest, over all resources, of the last grade whose least is there.
fn grade(free: &Stock, models: &[Model]) -> Option<i64> {
    let mut models: Vec<_> = models.iter().collect();
    models.sort_by_key(|model| model.grade);
    let names = models.first()?.least.iter().map(|(name, _)| name);
    let last = |name: &str| {
        let there = free.get(name).unwrap_or(0);
        let enough = |model: &&&Model| model.least.get(name).is_some_and(|least| least <= there);
        models.iter().rev().find(enough).map(|model| model.grade)
    };
    names.map(last).collect::<Option<Vec<_>>>()?.into_iter().min()
}

fn add(sum: &mut List, more: &List) {
    for (name, amount) in more {
        let known = sum.entry(name.clone()).or_insert(Quantity::ZERO.with_format(amount.format()));
        *known = known.plus(*amount);
    }
}
