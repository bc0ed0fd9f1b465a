//! The answer of `what-if estimate` for people: one line that says it, and why, node class by node class.

use std::fmt::Write as _;

use loadline_core::estimate::UNCONSTRAINED;

use super::estimate_result::{EstimateResult, Most, NodeResult};
use crate::out::bold;
use crate::table::{Align, Table};

/// So many names are written out; of more, the first and the last.
const NAMED: usize = 3;

/// The whole answer; wide lists every node.
pub fn render(result: &EstimateResult, wide: bool) -> String {
    let mut text = format!("{}: {}\n", bold(&result.workload), answer(result));
    if let Some(load) = &result.load {
        let quota = load.limited_by.as_ref().map(|name| format!(", held by the quota {name}"));
        let _ = writeln!(text, "  under the load line: {}{}", number(load.most), quota.unwrap_or_default());
    }
    if let Some(preempting) = &result.preempting {
        let _ = writeln!(text, "  if pods of lower priority were evicted: {}", number(preempting.most));
    }
    let load = result.load.as_ref().map(|load| load.nodes.as_slice()).unwrap_or_default();
    text.push_str(&nodes(&result.nodes, load, wide));
    for part in &result.components {
        let each =
            if part.replicas == 1 { "1 in each set" } else { &format!("{} in each set", part.replicas) };
        let _ = writeln!(text, "  {}, {each}; {} if it came alone", part.name, count(part.max_replicas));
        for line in nodes(&part.nodes, &[], wide).lines() {
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

fn nodes(nodes: &[NodeResult], load: &[NodeResult], wide: bool) -> String {
    if wide { every(nodes, load) } else { classes(nodes, load) }
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
    let own = |node: &NodeResult| match (&node.reason, &node.limited_by) {
        (Some(reason), _) => reason.clone(),
        (None, Some(resource)) => format!("limited by {resource}"),
        (None, None) => String::new(),
    };
    let by_request = own(node);
    match load.filter(|load| load.replicas < node.replicas) {
        Some(load) => {
            format!("{by_request}; under the load line {}", with(&amount(load.replicas), &own(load)))
        }
        None => by_request,
    }
}

fn amount(replicas: i32) -> String {
    if replicas == 0 { "none".to_owned() } else { count(replicas) }
}

/// `3, limited by cpu`, or just `3`.
fn with(amount: &str, why: &str) -> String {
    if why.is_empty() { amount.to_owned() } else { format!("{amount}, {why}") }
}

/// Nodes that answer alike are one line, in the order of their first; those that take something come first.
fn classes(nodes: &[NodeResult], load: &[NodeResult]) -> String {
    struct Class<'a> {
        first: &'a NodeResult,
        load: Option<&'a NodeResult>,
        why: String,
        names: Vec<&'a str>,
    }
    let mut classes: Vec<Class<'_>> = Vec::new();
    let mut known = std::collections::BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        let load = load.get(at);
        let why = why(node, load);
        let key = (node.replicas, load.map(|load| load.replicas), why.clone());
        let place = *known.entry(key).or_insert_with(|| {
            classes.push(Class { first: node, load, why, names: Vec::new() });
            classes.len() - 1
        });
        classes[place].names.push(&node.node);
    }
    classes.sort_by_key(|class| {
        (std::cmp::Reverse(class.first.replicas), std::cmp::Reverse(class.load.map(|load| load.replicas)))
    });
    let mut text = String::new();
    for Class { first, why, names, .. } in classes {
        let each = if names.len() > 1 && first.replicas > 0 { " each" } else { "" };
        let _ = writeln!(
            text,
            "  {}: {}",
            listed(names),
            with(&format!("{}{each}", amount(first.replicas)), &why)
        );
    }
    text
}

/// `2 nodes n1, n2`, `12 nodes n01 … n12`, `node n1`.
fn listed(mut names: Vec<&str>) -> String {
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
}
