//! The explanation of a pod for people: what was decided, and what every node says now.

use crate::out::{Detail, bold};
use crate::table::{Align, Table};
use serde_json::Value;
use std::fmt::Write as _;

/// Of more nodes than this, only so many are shown, unless everything is asked for.
pub const SHOWN: usize = 20;
/// So many nodes that would almost do are named.
const ALMOST: usize = 3;

pub fn render(answer: &Value, detail: Detail) -> String {
    let mut text = String::new();
    let pod = bold(&text_of(&answer["pod"]));
    let now = &answer["now"];
    let _ = match answer["node"].as_str() {
        Some(node) => writeln!(text, "{pod} is on {}", bold(node)),
        None if now.is_null() => writeln!(text, "{pod} is not there any more"),
        None => writeln!(text, "{pod} has no node"),
    };
    text.push_str(&decisions(&answer["decisions"]));
    text.push_str(&moves(&answer["moves"], &answer["pod"]));
    if now.is_null() {
        return text;
    }
    let who = if now["anotherLikeIt"] == true { "another one like it" } else { "it" };
    let _ = match now["node"].as_str() {
        Some(node) => writeln!(text, "\nNow {who} would go to {}:", bold(node)),
        None => writeln!(text, "\nNow {who} would wait: {}", text_of(&now["message"])),
    };
    let nodes: Vec<&Value> = now["nodes"].as_array().into_iter().flatten().collect();
    text.push_str(&table(&nodes));
    if let Some(more) = now["moreNodes"].as_u64().filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more nodes; -o wide shows all");
    }
    if detail == Detail::Wide {
        text.push_str(&scores(&nodes));
        text.push_str(&terms(&nodes));
    }
    if now["node"].is_null() {
        let almost = nodes.iter().filter_map(|node| Some((&node["node"], node["counterfactual"].as_str()?)));
        for (node, sentence) in almost.take(ALMOST) {
            let _ = writeln!(text, "  {} {sentence}", text_of(node));
        }
    }
    text
}

/// What is remembered.
fn decisions(all: &Value) -> String {
    let mut text = String::new();
    for one in all.as_array().into_iter().flatten() {
        let at = text_of(&one["at"]);
        let _ = match one["node"].as_str() {
            Some(node) => {
                let good = good(one);
                writeln!(text, "  {at}  sent to {node}{good}; {} nodes would have done", one["feasibleNodes"])
            }
            None => writeln!(text, "  {at}  had to wait: {}", text_of(&one["message"])),
        };
        let refused = one["refusedNodes"].as_object().filter(|refused| !refused.is_empty());
        if let Some(refused) = refused.filter(|_| one["node"].is_string()) {
            let rules: Vec<String> =
                refused.iter().map(|(rule, count)| format!("{count} by {rule}")).collect();
            let _ = writeln!(text, "    nodes refused: {}", rules.join(", "));
        }
        text.push_str(&lines(&one["load"]));
        for refusal in one["refusals"].as_array().into_iter().flatten() {
            let why = if refusal["reason"].is_null() { &refusal["rule"] } else { &refusal["reason"] };
            let _ = writeln!(text, "    not to {}: {}", text_of(&refusal["node"]), text_of(why));
        }
    }
    text
}

/// How good its node was, and the next one.
fn good(one: &Value) -> String {
    if one["score"].is_null() {
        return String::new();
    }
    let next = match one["next"]["node"].as_str() {
        Some(next) => format!(", next {next} with {}", one["next"]["score"]),
        None => String::new(),
    };
    format!(": score {}{next}", one["score"])
}

/// What its node came to with it, against its lines.
fn lines(load: &Value) -> String {
    let mut text = String::new();
    for resource in ["cpu", "memory"] {
        let line = &load[resource];
        let Some(limit) = line["limit"].as_str() else { continue };
        let term = |name: &str, word: &str| Some(format!("{} {word}", line[name].as_str()?));
        let coming = [
            term("measured", "measured"),
            term("pending", if line["measured"].is_null() { "expected of its pods" } else { "pending" }),
            term("incoming", "incoming"),
        ];
        let sum = coming.into_iter().flatten().collect::<Vec<_>>().join(" + ");
        let gone = term("departed", "departed").map(|gone| format!(" − {gone}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "    {resource}: {sum}{gone} ≤ {limit} ({} of {})",
            line["target"],
            text_of(&line["allocatable"])
        );
    }
    text
}

/// Who was moved: the pod itself, or one whose place it may have taken.
fn moves(all: &Value, asked: &Value) -> String {
    let mut text = String::new();
    for one in all.as_array().into_iter().flatten() {
        let [at, pod, from, message] = ["at", "pod", "from", "message"].map(|field| text_of(&one[field]));
        let who = if one["pod"] == *asked { String::new() } else { format!("in place of {pod}, which was ") };
        let _ = writeln!(text, "  {at}  {who}moved from {from}: {message}");
    }
    text
}

fn table(nodes: &[&Value]) -> String {
    use Align::{Left, Right};
    let mut table =
        Table::of(&[("NODE", Left), ("FITS", Left), ("SCORE", Right), ("LOAD", Right), ("REASON", Left)]);
    for node in nodes {
        let reasons: Vec<String> = node["reasons"].as_array().into_iter().flatten().map(text_of).collect();
        table.row(vec![
            text_of(&node["node"]),
            if node["fits"] == true { "yes" } else { "no" }.to_owned(),
            text_of(&node["score"]),
            text_of(&node["scores"]["load"]["final"]),
            reasons.join("; "),
        ]);
    }
    table.render(2)
}

/// What a node's score is made of besides its load, each from 0 to 100; a dash for what says nothing about this pod.
fn scores(nodes: &[&Value]) -> String {
    const PARTS: [(&str, &str); 7] = [
        ("LEAST", "leastAllocated"),
        ("BALANCED", "balancedAllocation"),
        ("TAINTS", "taintToleration"),
        ("NODE AFFINITY", "nodeAffinity"),
        ("POD AFFINITY", "interPodAffinity"),
        ("SPREAD", "podTopologySpread"),
        ("IMAGES", "imageLocality"),
    ];
    let parts = PARTS.map(|(title, _)| (title, Align::Right));
    let mut table = Table::of(&[&[("NODE", Align::Left)], &parts[..]].concat());
    for node in nodes {
        let parts = PARTS.iter().map(|(_, part)| text_of(&node["scores"][part]));
        table.row(std::iter::once(text_of(&node["node"])).chain(parts).collect::<Vec<_>>());
    }
    table.render(2)
}

/// Every metric of the policy, node by node.
fn terms(nodes: &[&Value]) -> String {
    use Align::{Left, Right};
    let mut table = Table::of(&[
        ("NODE", Left),
        ("METRIC", Left),
        ("VALUE", Right),
        ("LIMIT", Right),
        ("WEIGHT", Right),
        ("AGE", Right),
        ("SOURCE", Left),
    ]);
    for node in nodes {
        for term in node["terms"].as_array().into_iter().flatten() {
            let age = term["ageSeconds"].as_i64().map_or_else(|| "-".to_owned(), |age| format!("{age}s"));
            let source = if term["source"].is_null() { &term["reason"] } else { &term["source"] };
            table.row(vec![
                text_of(&node["node"]),
                text_of(&term["metric"]),
                text_of(&term["value"]),
                text_of(&term["limit"]),
                text_of(&term["weight"]),
                age,
                text_of(source),
            ]);
        }
    }
    table.render(2)
}

/// A value as text; a dash for nothing.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_what_was_decided_it_is_told_how_good_the_node_was_and_what_stood_against_its_lines() {
        let cpu = json!({"measured": "1700m", "pending": "400m", "incoming": "500m", "departed": "100m",
            "limit": "10300m", "allocatable": "16", "target": 0.65, "basis": "measured"});
        let memory = json!({"measured": null, "pending": "2Gi", "incoming": "1Gi", "limit": "8Gi", "allocatable": "16Gi",
            "target": 0.5, "basis": "estimates"});
        let decision = json!({"at": "2026-01-01T00:00:00Z", "scheduler": "loadline", "node": "node-07", "message": null,
            "feasibleNodes": 3, "refusedNodes": {"line": 2}, "score": 93, "next": {"node": "node-04", "score": 91},
            "load": {"cpu": cpu, "memory": memory},
            "refusals": [{"rule": "line", "node": "node-00", "reason": "cpu would pass the line"}, {"rule": "spread", "node": "node-01", "reason": null}]});
        let answer = json!({"pod": "shop/web", "node": "node-07", "decisions": [decision], "now": null});
        let text = render(&answer, Detail::Brief);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "  2026-01-01T00:00:00Z  sent to node-07: score 93, next node-04 with 91; 3 nodes would have done",
                "    nodes refused: 2 by line",
                "    cpu: 1700m measured + 400m pending + 500m incoming − 100m departed ≤ 10300m (0.65 of 16)",
                "    memory: 2Gi expected of its pods + 1Gi incoming ≤ 8Gi (0.5 of 16Gi)",
                "    not to node-00: cpu would pass the line",
                "    not to node-01: spread",
            ]
        );
    }
}
