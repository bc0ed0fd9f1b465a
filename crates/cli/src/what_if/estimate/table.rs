//! The answer of `what-if estimate` for people: one line that says it, and why, node class by node class.

use super::result::{EstimateResult, Most, NodeResult};
use crate::out::{Detail, bold};
use crate::table::{Align, Table};
use loadline_core::estimate::UNCONSTRAINED;
use loadline_core::explain::Reason;
use loadline_core::load::Metered;
use loadline_core::resources::quantity;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Of more classes of nodes than this, only so many are shown.
const SHOWN: usize = 20;
/// So many names are written out; of more, the first and the last.
const NAMED: usize = 3;

/// The whole answer; wide lists every node.
pub fn render(result: &EstimateResult, detail: Detail) -> String {
    let mut text = format!("{}: {}\n", bold(&result.workload), answer(result));
    if let Some(load) = &result.load {
        let quota = load.limited_by.as_ref().map(|name| format!(", held by the quota {name}"));
        let _ = writeln!(text, "  under the load line: {}{}", number(load.most), quota.unwrap_or_default());
    }
    if let Some(preempting) = &result.preempting {
        let _ = writeln!(text, "  if pods of lower priority were evicted: {}", number(preempting.most));
    }
    let load = result.load.as_ref().map(|load| load.nodes.as_slice()).unwrap_or_default();
    text.push_str(&nodes(&result.nodes, load, detail));
    for part in &result.components {
        let each =
            if part.replicas == 1 { "1 in each set" } else { &format!("{} in each set", part.replicas) };
        let _ = writeln!(text, "  {}, {each}; {} if it came alone", part.name, count(part.max_replicas));
        for line in nodes(&part.nodes, &[], detail).lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// The answer in a sentence.
fn answer(result: &EstimateResult) -> String {
    let fits = match (result.most, result.most.count()) {
        (Most::Replicas(_), 0) => bold("no more replica fits"),
        (Most::Replicas(_), 1) => bold("1 more replica fits"),
        (Most::Replicas(_), UNCONSTRAINED) => bold("nothing limits replicas"),
        (Most::Replicas(_), many) => bold(&format!("{many} more replicas fit")),
        (Most::Sets(_), 0) => bold("no complete set fits"),
        (Most::Sets(_), 1) => bold("1 complete set fits"),
        (Most::Sets(_), UNCONSTRAINED) => bold("nothing limits sets"),
        (Most::Sets(_), many) => bold(&format!("{many} complete sets fit")),
    };
    let quota = result.quota.as_ref().filter(|quota| result.limited_by.as_ref() == Some(&quota.name));
    match quota {
        Some(quota) => format!("{fits}, held by the quota {} ({})", quota.name, quota.resource),
        None => fits,
    }
}

fn number(most: Most) -> String {
    count(most.count())
}

fn count(count: i32) -> String {
    if count == UNCONSTRAINED { "no limit".to_owned() } else { count.to_string() }
}

fn nodes(nodes: &[NodeResult], load: &[NodeResult], detail: Detail) -> String {
    match detail {
        Detail::Brief => classes(nodes, load),
        Detail::Wide => every(nodes, load),
    }
}

/// One line per node.
fn every(nodes: &[NodeResult], load: &[NodeResult]) -> String {
    use Align::{Left, Right};
    if nodes.is_empty() {
        return String::new();
    }
    let with_load = !load.is_empty();
    let mut table = Table::new([
        ("NODE", Left),
        ("REPLICAS", Right),
        (if with_load { "LOAD" } else { "WHY" }, if with_load { Right } else { Left }),
        (if with_load { "WHY" } else { "" }, Left),
    ]);
    for (at, node) in nodes.iter().enumerate() {
        let mut cells = vec![node.node.clone(), count(node.replicas)];
        if let Some(load) = load.get(at) {
            cells.push(count(load.replicas));
        }
        cells.push(why(node, load.get(at)));
        table.row(cells);
    }
    table.render(2)
}

/// What ends first, or why there is none; and where the load line takes something, what does so there.
fn why(node: &NodeResult, load: Option<&NodeResult>) -> String {
    let load = less(node, load).map(|load| (load.replicas, Why::of(load).to_string()));
    joined(&Why::of(node).to_string(), load)
}

/// What the load line leaves, if that is less.
fn less<'a>(node: &NodeResult, load: Option<&'a NodeResult>) -> Option<&'a NodeResult> {
    load.filter(|load| load.replicas < node.replicas)
}

fn joined(by_request: &str, load: Option<(i32, String)>) -> String {
    match load {
        Some((replicas, why)) => {
            format!("{by_request}; under the load line {}", with(&amount(replicas), &why))
        }
        None => by_request.to_owned(),
    }
}

fn amount(replicas: i32) -> String {
    if replicas == 0 { "none".to_owned() } else { count(replicas) }
}

/// `3, limited by cpu`, or just `3`.
fn with(amount: &str, why: &str) -> String {
    if why.is_empty() { amount.to_owned() } else { format!("{amount}, {why}") }
}

/// What stops one node, or many for like reasons.
struct Why<'a> {
    node: &'a NodeResult,
    /// Of many with different amounts, the most that is free.
    most: Option<i64>,
    /// Are the reasons not all the same, word for word?
    mixed: bool,
}

impl<'a> Why<'a> {
    fn of(node: &'a NodeResult) -> Self {
        Self { node, most: free(node), mixed: false }
    }

    /// Reasons are alike when they are about the same thing, whatever the amounts.
    fn alike(&self) -> (&'static str, &'a str) {
        match &self.node.detail {
            Some(Reason::DoesNotFit { resource, .. }) => ("free", resource),
            Some(Reason::NoHeadroom { resource, .. }) => ("head", resource),
            Some(Reason::OverThreshold { metric, .. } | Reason::LoadTooHigh { metric, .. }) => {
                ("over", metric)
            }
            _ => ("", self.node.reason.as_deref().or(self.node.limited_by.as_deref()).unwrap_or_default()),
        }
    }

    fn add(&mut self, node: &NodeResult) {
        self.mixed |= node.reason != self.node.reason;
        self.most = self.most.max(free(node));
    }
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.most.unwrap_or_default().max(0);
        match (&self.node.detail, &self.node.reason, &self.node.limited_by) {
            (Some(Reason::DoesNotFit { resource, asked, .. }), ..) if self.mixed => {
                let (asked, most) = (quantity(resource, *asked), quantity(resource, most));
                write!(f, "the pod asks for {asked} {resource}, but at most {most} is free")
            }
            (Some(Reason::NoHeadroom { resource, asked, .. }), ..) if self.mixed => {
                let metered = if resource == "cpu" { Metered::Cpu } else { Metered::Memory };
                let (asked, most) = (metered.quantity(*asked), metered.quantity(most));
                write!(
                    f,
                    "{asked} {resource} is expected to be used, but at most {most} may come under the load line"
                )
            }
            (_, Some(reason), _) if self.mixed => write!(f, "for example {reason}"),
            (_, Some(reason), _) => f.write_str(reason),
            (_, None, Some(resource)) => write!(f, "limited by {resource}"),
            (_, None, None) => Ok(()),
        }
    }
}

/// How much there is of what does not suffice.
fn free(node: &NodeResult) -> Option<i64> {
    match &node.detail {
        Some(Reason::DoesNotFit { free, .. } | Reason::NoHeadroom { free, .. }) => Some(*free),
        _ => None,
    }
}

/// Nodes that answer alike.
struct Class<'a> {
    own: Why<'a>,
    /// Under the load line, where that is less.
    load: Option<Why<'a>>,
    names: Vec<&'a str>,
}

/// Nodes that answer alike are one line; those that take most come first, then as nodes are filled.
fn classes(nodes: &[NodeResult], load: &[NodeResult]) -> String {
    let mut classes: Vec<Class<'_>> = Vec::new();
    let mut known = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        let under = less(node, load.get(at));
        let (own, load) = (Why::of(node), under.map(Why::of));
        let key = (node.replicas, own.alike(), load.as_ref().map(|load| (load.node.replicas, load.alike())));
        let place = *known.entry(key).or_insert_with(|| {
            classes.push(Class { own, load, names: Vec::new() });
            classes.len() - 1
        });
        let class = &mut classes[place];
        class.names.push(&node.node);
        class.own.add(node);
        if let (Some(load), Some(under)) = (&mut class.load, under) {
            load.add(under);
        }
    }
    let least = |class: &Class<'_>| class.load.as_ref().map_or(class.own.node, |load| load.node).replicas;
    classes.sort_by_key(|class| Reverse((class.own.node.replicas, least(class))));
    let mut text = String::new();
    for Class { own, load, names } in classes.iter().take(SHOWN) {
        let each = if own.node.replicas > 0 && names.len() > 1 { " each" } else { "" };
        let how_many = format!("{}{each}", amount(own.node.replicas));
        let load = load.as_ref().map(|load| (load.node.replicas, load.to_string()));
        let why = joined(&own.to_string(), load);
        let _ = writeln!(text, "  {}: {}", listed(names), with(&how_many, &why));
    }
    if classes.len() > SHOWN {
        let more: usize = classes.iter().skip(SHOWN).map(|class| class.names.len()).sum();
        let _ = writeln!(text, "  and {more} more nodes; -o wide shows all");
    }
    text
}

/// `2 nodes n1, n2`, `12 nodes n01 … n12`, `node n1`.
fn listed(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    match names.as_slice() {
        [one] => format!("node {one}"),
        few if few.len() <= NAMED => format!("{} nodes {}", few.len(), few.join(", ")),
        [first, .., last] => format!("{} nodes {first} … {last}", names.len()),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, replicas: i32, limited_by: Option<&str>, reason: Option<&str>) -> NodeResult {
        NodeResult {
            node: name.to_owned(),
            replicas,
            limited_by: limited_by.map(str::to_owned),
            reason: reason.map(str::to_owned),
            detail: None,
        }
    }

    #[test]
    fn nodes_that_answer_alike_are_one_line() {
        let all = [
            node("full", 0, None, Some("the node is cordoned")),
            node("b", 2, Some("cpu"), None),
            node("a", 2, Some("cpu"), None),
            node("c", 2, Some("memory"), None),
            node("n04", 3, Some("pods"), None),
            node("n01", 3, Some("pods"), None),
            node("n02", 3, Some("pods"), None),
            node("n03", 3, Some("pods"), None),
        ];
        assert_eq!(
            classes(&all, &[]),
            "  4 nodes n01 … n04: 3 each, limited by pods\n\
             \x20 2 nodes a, b: 2 each, limited by cpu\n\
             \x20 node c: 2, limited by memory\n\
             \x20 node full: none, the node is cordoned\n"
        );
    }

    #[test]
    fn the_load_line_is_told_where_it_takes_something() {
        let cpu = Some("cpu");
        let all = [
            node("a", 4, cpu, None),
            node("b", 4, cpu, None),
            node("c", 0, None, Some("no")),
            node("d", 2, cpu, None),
        ];
        let load = [
            node("a", 1, Some("memory"), None),
            node("b", 0, None, Some("too busy")),
            node("c", 0, None, Some("no")),
            node("d", 2, cpu, None),
        ];
        assert_eq!(
            classes(&all, &load),
            "  node a: 4, limited by cpu; under the load line 1, limited by memory\n\
             \x20 node b: 4, limited by cpu; under the load line none, too busy\n\
             \x20 node d: 2, limited by cpu\n\
             \x20 node c: none, no\n"
        );
    }
    #[test]
    fn of_many_that_have_too_little_the_most_is_told() {
        let lacking = |name: &str, resource: &str, free: i64| {
            let detail = Reason::DoesNotFit { resource: resource.to_owned(), asked: 12_000, free };
            NodeResult { detail: Some(detail.clone()), ..node(name, 0, None, Some(&detail.to_string())) }
        };
        let all = [
            lacking("a", "cpu", 8_000),
            lacking("b", "cpu", -500),
            lacking("c", "cpu", 250),
            lacking("d", "memory", 9),
        ];
        assert_eq!(
            classes(&all, &[]),
            "  3 nodes a, b, c: none, the pod asks for 12 cpu, but at most 8 is free\n\
             \x20 node d: none, the pod asks for 12000 memory, but only 9 is free\n"
        );
    }

    #[test]
    fn the_load_line_is_folded_alike() {
        let closed = |name: &str, free: i64| {
            let detail = Reason::NoHeadroom { resource: "cpu".to_owned(), asked: 2_000_000_000, free };
            NodeResult { detail: Some(detail.clone()), ..node(name, 0, None, Some(&detail.to_string())) }
        };
        let all = ["a", "b"].map(|name| node(name, 3, Some("pods"), None));
        assert_eq!(
            classes(&all, &[closed("a", 500_000_000), closed("b", -1)]),
            "  2 nodes a, b: 3 each, limited by pods; under the load line none, 2 cpu is expected to be used, but at most 500m may come under the load line\n"
        );
    }

    #[test]
    fn of_very_many_classes_the_fullest_are_left_out() {
        let all: Vec<NodeResult> =
            (1..=25).map(|i| node(&format!("n{i:02}"), i, Some("cpu"), None)).collect();
        let text = classes(&all, &[]);
        assert!(text.starts_with("  node n25: 25, limited by cpu\n"), "{text}");
        assert!(
            text.ends_with("  node n06: 6, limited by cpu\n  and 5 more nodes; -o wide shows all\n"),
            "{text}"
        );
    }
}
