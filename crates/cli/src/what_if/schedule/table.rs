//! The answer of `what-if schedule` for people: per pod one line that says it, and a table that shows why.

use super::{Answer, PodAnswer};
use crate::out::{Detail, bold};
use crate::table::{Align, Table};
use loadline_api::explain::finite;
use loadline_core::cluster::{NodeReport, ResourceReport};
use loadline_core::load::admit::Basis;
use loadline_core::load::need::Need;
use loadline_core::load::policy::Figure;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::term::{Term, Unknown};
use std::fmt::Write as _;

/// Of more nodes than this, only so many are shown, unless everything is asked for.
pub const SHOWN: usize = 20;
/// So many nodes that would almost do are named.
const ALMOST: usize = 3;

/// All pods, in the order of deciding.
pub fn render(answer: &Answer, detail: Detail) -> String {
    if answer.pods.is_empty() {
        return "Every pod has a node already: nothing to decide.\n".to_owned();
    }
    let pods: Vec<String> = answer.pods.iter().map(|pod| pod_text(pod, detail)).collect();
    pods.join("\n")
}

fn pod_text(pod: &PodAnswer, detail: Detail) -> String {
    let mut text = match (&pod.node, &pod.message) {
        (Some(node), _) => format!("{} → {}\n", bold(&pod.pod), bold(node)),
        (None, message) => {
            let why = message.as_deref().unwrap_or("no node will do");
            format!("{} → {} {why}\n", bold(&pod.pod), bold("nowhere:"))
        }
    };
    for warning in &pod.warnings {
        let _ = writeln!(text, "  note: {warning}");
    }
    if pod.nodes.is_empty() {
        return text;
    }
    text.push_str(&nodes(&pod.nodes, detail));
    if pod.hidden > 0 {
        let _ = writeln!(text, "  and {} more nodes; -o wide shows all", pod.hidden);
    }
    if detail == Detail::Wide {
        text.push_str(&terms(&pod.nodes));
    }
    if pod.node.is_none() {
        let almost = pod.nodes.iter().filter_map(|node| Some((&node.name, node.counterfactual.as_ref()?)));
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

fn nodes(nodes: &[NodeReport], detail: Detail) -> String {
    use Align::{Left, Right};
    let wide = detail == Detail::Wide;
    let mut columns = vec![
        ("NODE", Left),
        ("FITS", Left),
        ("SCORE", Right),
        ("LOAD", Right),
        ("CPU%", Right),
        ("MEM%", Right),
    ];
    // Where no day is known nobody has a need.
    let needs = nodes.iter().any(|node| node.need.is_some());
    if needs {
        columns.push(("NEED", Right));
    }
    if wide {
        columns.push(("HOT", Right));
    }
    columns.push(("REASON", Left));
    let mut table = Table::of(&columns);
    for node in nodes {
        let number = |number: Option<i64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        let mut cells = vec![
            node.name.to_string(),
            if node.fits { "yes" } else { "no" }.to_owned(),
            node.score.to_string(),
            number(node.load_score.map(|score| score.r#final)),
            share(node.lines.map(|lines| lines.cpu)),
            share(node.lines.map(|lines| lines.memory)),
        ];
        if needs {
            cells.push(node.need.map_or_else(|| "-".to_owned(), need));
        }
        if wide {
            cells.push(node.hot.map_or_else(|| "-".to_owned(), |hot| hot.to_string()));
        }
        let remarks = node.warnings.iter().filter(|_| wide).map(|warning| format!("note: {warning}"));
        let reasons = node.reasons.iter().map(ToString::to_string).chain(remarks);
        cells.push(reasons.collect::<Vec<_>>().join("; "));
        table.row(cells);
    }
    table.render(2)
}

/// The hour in which most is expected, what share of the node that is without the pod and with it, and the score.
fn need(need: Need) -> String {
    let share = |part: i64| need.capacity.and_then(|whole| percent(part, whole));
    let shares = share(need.before).zip(share(need.after));
    let shares = shares.map_or_else(|| "-".to_owned(), |(before, after)| format!("{before}→{after}%"));
    format!("{} ({shares} at {:02}h)", need.score, need.hour)
}

/// What is expected to be used with the pod, in percent of what is allocatable; a tilde where it rests on less than a
/// fresh measurement.
fn share(report: Option<ResourceReport>) -> String {
    let percent = report.and_then(|ResourceReport { line, incoming }| {
        let used = line.expected()?.saturating_add(incoming);
        let about = if line.basis == Basis::Measured { "" } else { "~" };
        Some(format!("{about}{}", percent(used, line.allocatable?)?))
    });
    percent.unwrap_or_else(|| "-".to_owned())
}

/// A share in whole percent, rounded up: load is never understated.
fn percent(part: i64, whole: i64) -> Option<i64> {
    let step = Ratio::ONE.nano() / 100;
    Ratio::of(part, whole)
        .map(|share| share.nano().div_euclid(step) + i64::from(share.nano().rem_euclid(step) != 0))
}

/// Every metric of the policy, node by node.
fn terms(nodes: &[NodeReport]) -> String {
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
            let number = |figure: Option<Figure>| {
                figure.and_then(finite).map_or_else(|| "-".to_owned(), |number| number.to_string())
            };
            table.row([
                node.name.to_string(),
                term.metric.to_string(),
                number(term.value),
                number(term.limit),
                number(term.weight),
                term.age_seconds.map_or_else(|| "-".to_owned(), |age| format!("{age}s")),
                source(term),
            ]);
        }
    }
    table.render(2)
}

/// Who says so, or why it is not known.
fn source(term: &Term) -> String {
    let unknown = |why: Unknown| match why {
        Unknown::Missing => "missing",
        Unknown::Malformed => "malformed",
        Unknown::Expired => "expired",
        Unknown::Future => "future",
        Unknown::Negative => "negative",
    };
    let source = term.source.map(|source| source.to_string());
    let source = source.or_else(|| term.reason.map(|why| unknown(why).to_owned())).unwrap_or_default();
    match term.note {
        Some(note) => format!("{source} ({note})"),
        None => source,
    }
}

#[cfg(test)]
mod tests {
    use super::super::decide;
    use super::*;
    use crate::args::{Input, Schedule};
    use crate::out::Output;
    use jiff::Timestamp;
    use loadline_manifests::{Manifests, ScheduleInput};
    use serde_json::json;

    fn text(nodes: usize, output: Output, detail: Detail) -> String {
        let node = |i: usize| {
            json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{i:02}")},
                "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
            })
        };
        let containers = json!([{"name": "main"}]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": containers}});
        let manifests =
            Manifests::from_values("test", (0..nodes).map(node).chain([pod]), ScheduleInput::KINDS);
        let input = ScheduleInput::read(manifests, Timestamp::UNIX_EPOCH).unwrap();
        let args = Schedule { input: Input { files: Vec::new(), now: None }, independent: false, output };
        render(&decide(input, &args), detail)
    }

    #[test]
    fn of_many_nodes_some_are_shown_and_the_others_counted() {
        let brief = text(SHOWN + 5, Output::Table, Detail::Brief);
        let rows = brief.lines().filter(|line| line.starts_with("  n")).count();
        assert_eq!(rows, SHOWN, "{brief}");
        assert!(brief.ends_with("\n  and 5 more nodes; -o wide shows all\n"), "{brief}");
        let all = text(SHOWN, Output::Table, Detail::Brief);
        assert!(!all.contains("more nodes"), "{all}");
        let wide = text(SHOWN + 5, Output::Wide, Detail::Wide);
        assert!(wide.contains("  n24 ") && !wide.contains("more nodes"), "{wide}");
    }
}
