//! The answer of `what-if schedule` for people: per pod one line that says it, and a table that shows why.

use super::schedule_result::{LoadResult, NodeResult, PodResult, ScheduleResult};
use crate::out::bold;
use crate::table::{Align, Table};
use loadline_core::load::admit::Basis;
use std::fmt::Write as _;

/// Of more nodes than this, only so many are shown, unless everything is asked for.
pub const SHOWN: usize = 20;
/// So many nodes that would almost do are named.
const ALMOST: usize = 3;

/// All pods, in the order of deciding.
pub fn render(result: &ScheduleResult, wide: bool) -> String {
    if result.pods.is_empty() {
        return "Every pod has a node already: nothing to decide.\n".to_owned();
    }
    let pods: Vec<String> = result.pods.iter().map(|pod| pod_text(pod, wide)).collect();
    pods.join("\n")
}

fn pod_text(pod: &PodResult, wide: bool) -> String {
    let mut text = match (&pod.node, &pod.message) {
        (Some(node), _) => format!("{} → {}\n", bold(&pod.pod), bold(node)),
        (None, message) => {
            let why = message.as_deref().unwrap_or("no node will do");
            format!("{} → {} {why}\n", bold(&pod.pod), bold("nowhere:"))
        }
    };
    if pod.nodes.is_empty() {
        return text;
    }
    text.push_str(&nodes(&pod.nodes, wide));
    if pod.hidden > 0 {
        let _ = writeln!(text, "  and {} more nodes; -o wide shows all", pod.hidden);
    }
    if wide {
        text.push_str(&terms(&pod.nodes));
    }
    if pod.node.is_none() {
        let almost = pod.nodes.iter().filter_map(|node| Some((&node.node, node.counterfactual.as_ref()?)));
        for (node, sentence) in almost.take(ALMOST) {
            let _ = writeln!(text, "  {node} {sentence}");
        }
    }
    if let Some(plan) = &pod.preemption {
        let _ =
            writeln!(text, "  {} would fit if these were evicted: {}", plan.node, plan.victims.join(", "));
    }
    text
}

fn nodes(nodes: &[NodeResult], wide: bool) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("NODE", Left),
        ("FITS", Left),
        ("SCORE", Right),
        ("LOAD", Right),
        ("CPU%", Right),
        ("MEM%", Right),
        (if wide { "HOT" } else { "REASON" }, if wide { Right } else { Left }),
        (if wide { "REASON" } else { "" }, Left),
    ]);
    for node in nodes {
        let number = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let load = node.load.as_ref();
        let mut cells = vec![
            node.node.clone(),
            if node.fits { "yes" } else { "no" }.to_owned(),
            node.score.to_string(),
            number(node.scores.load.map(|score| score.r#final)),
            percent(load.map(|load| &load.cpu)),
            percent(load.map(|load| &load.memory)),
        ];
        if wide {
            cells.push(number(node.hot_value));
        }
        let remarks = node.warnings.iter().filter(|_| wide).map(|warning| format!("note: {warning}"));
        cells.push(node.reasons.iter().cloned().chain(remarks).collect::<Vec<_>>().join("; "));
        table.row(cells);
    }
    table.render(2)
}

/// What is expected to be used with the pod, in percent; a tilde where it rests on less than a fresh measurement.
fn percent(load: Option<&LoadResult>) -> String {
    let Some((load, percent)) = load.and_then(|load| Some((load, load.percent?))) else {
        return "-".to_owned();
    };
    let about = if load.basis == Basis::Measured { "" } else { "~" };
    format!("{about}{percent}")
}

/// Every metric of the policy, node by node.
fn terms(nodes: &[NodeResult]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        ("NODE", Left),
        ("METRIC", Left),
        ("VALUE", Right),
        ("LIMIT", Right),
        ("WEIGHT", Right),
        ("AGE", Right),
        ("SOURCE", Left),
    ]);
    for node in nodes {
        for term in &node.terms {
            let number =
                |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let word = |value: serde_json::Result<serde_json::Value>| {
                value.ok().and_then(|value| value.as_str().map(str::to_owned))
            };
            let source =
                word(serde_json::to_value(term.source)).or_else(|| word(serde_json::to_value(term.reason)));
            let note = term.note.map(|note| format!(" ({note})")).unwrap_or_default();
            table.row([
                node.node.clone(),
                term.metric.clone(),
                number(term.value),
                number(term.limit),
                number(term.weight),
                term.age_seconds.map_or_else(|| "-".to_owned(), |age| format!("{age}s")),
                format!("{}{note}", source.unwrap_or_default()),
            ]);
        }
    }
    table.render(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::what_if::schedule_result::Scores;

    fn node(name: String) -> NodeResult {
        NodeResult {
            node: name,
            fits: true,
            reasons: Vec::new(),
            details: Vec::new(),
            score: 50,
            scores: Scores {
                load: None,
                least_allocated: 50,
                balanced_allocation: None,
                taint_toleration: None,
                node_affinity: None,
                inter_pod_affinity: None,
                pod_topology_spread: None,
            },
            hot_value: None,
            terms: Vec::new(),
            load: None,
            counterfactual: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn nodes_that_are_not_shown_are_counted() {
        let pod = PodResult {
            pod: "default/web".to_owned(),
            node: Some("n0".to_owned()),
            message: None,
            nodes: vec![node("n0".to_owned())],
            hidden: 5,
            preemption: None,
            warnings: Vec::new(),
        };
        let text = render(&ScheduleResult::new(vec![pod], Vec::new()), false);
        assert!(
            text.ends_with("  n0    yes      50     -     -     -\n  and 5 more nodes; -o wide shows all\n"),
            "{text}"
        );
    }
}
