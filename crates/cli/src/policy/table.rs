//! The answer of `policy check` for people: every metric, when a node is hot, and what holds for which nodes.

use super::Answer;
use crate::table::Align::Left;
use crate::table::Table;
use jiff::SignedDuration;
use loadline_core::load::policy::{Figure, Rules};
use loadline_core::load::settings::{Missing, Mode};
use loadline_core::load::{Both, Metered, ratio::Ratio};
use loadline_core::qos::agree::told;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The whole answer.
pub fn render(answer: &Answer) -> String {
    let Answer { rules, warnings, disagreements } = answer;
    let mut text = metrics(rules);
    if !rules.policy().hot.is_empty() {
        text.push('\n');
        text.push_str(&hot_value(rules));
    }
    text.push('\n');
    text.push_str(&targets(rules));
    text.push('\n');
    text.push_str(&settings(rules));
    if !disagreements.is_empty() {
        text.push_str("\nLines disagree: pods are sent to nodes that are emptied again\n");
        for (node, one) in disagreements {
            let _ = writeln!(text, "  {}", told(node, one, 0));
        }
    }
    if !warnings.is_empty() {
        text.push_str("\nWarnings:\n");
        for warning in warnings {
            let _ = writeln!(text, "  {warning}");
        }
    }
    text
}

fn metrics(rules: &Rules) -> String {
    let mut table =
        Table::new([("METRIC", Left), ("PERIOD", Left), ("WINDOW", Left), ("LIMIT", Left), ("WEIGHT", Left)]);
    for metric in rules.metrics() {
        let off = metric.limit.is_some_and(Figure::is_zero);
        table.row([
            metric.name.to_string(),
            time(metric.period),
            time(metric.window),
            if off { "off".to_owned() } else { figure(metric.limit) },
            figure(metric.weight),
        ]);
    }
    table.render(0)
}

fn time(time: Option<SignedDuration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{time:#}"))
}

fn figure(figure: Option<Figure>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| figure.to_f64().to_string())
}

fn hot_value(rules: &Rules) -> String {
    let mut table = Table::new([("HOT VALUE", Left), ("BINDINGS", Left), ("WITHIN", Left)]);
    for bucket in &rules.policy().hot {
        table.row(["+1".to_owned(), bucket.count.to_string(), time(Some(bucket.range))]);
    }
    table.render(0)
}

/// What holds for which nodes. In upstream mode all are alike.
fn targets(rules: &Rules) -> String {
    let [cpu, memory] = Metered::ALL;
    let target = |targets: Both<Option<Ratio>>, resource| {
        targets.get(resource).map_or_else(|| "-".to_owned(), |target: Ratio| target.to_string())
    };
    let own = if rules.mode() == Mode::Default { rules.settings().nodes.as_slice() } else { &[] };
    let mut table =
        Table::new([("NODES", Left), ("TARGET CPU", Left), ("TARGET MEMORY", Left), ("LIMITS", Left)]);
    for rule in own {
        let limits: Vec<String> = rule.thresholds.iter().map(|(m, limit)| format!("{m} {limit}")).collect();
        table.row([
            rule.selector.to_string(),
            target(rule.targets, cpu),
            target(rule.targets, memory),
            if limits.is_empty() { "-".to_owned() } else { limits.join(", ") },
        ]);
    }
    let (any, _) = rules.node(&BTreeMap::new(), &BTreeMap::new());
    table.row([
        if own.is_empty() { "all" } else { "others" }.to_owned(),
        target(any.targets, cpu),
        target(any.targets, memory),
        "as above".to_owned(),
    ]);
    table.render(0)
}

fn settings(rules: &Rules) -> String {
    let settings = rules.settings();
    let mode = match settings.mode {
        Mode::Default => "default",
        Mode::Upstream => "upstream",
    };
    let missing = match settings.missing {
        Missing::Estimate => "Estimate",
        Missing::Allow => "Allow",
        Missing::Deny => "Deny",
    };
    let zone = settings.time_zone.as_ref().and_then(|zone| zone.iana_name()).unwrap_or("UTC");
    format!("Mode {mode}, missing data {missing}, settle {:#}, stamps in {zone}\n", settings.settle)
}
