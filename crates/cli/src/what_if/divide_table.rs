//! The answer of `what-if divide` for people: who gets how many first, then why the others do not.

use super::divide_result::{DivideResult, FeasibleResult};
use crate::out::bold;
use crate::table::{Align, Table};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Of more clusters that get nothing than this, only so many are shown.
const SHOWN: usize = 20;

/// The whole answer; wide lists every cluster and every estimate.
pub fn render(result: &DivideResult, wide: bool) -> String {
    use Align::{Left, Right};
    let mut text = format!("{}: {}\n", bold(&result.workload), bold(&answer(result)));
    let tiers = result.feasible.iter().any(|cluster| cluster.tier > 0);
    let mut columns = vec![("CLUSTER", Left), ("REPLICAS", Right), ("FIT", Right), ("HAS", Right)];
    if tiers {
        columns.push(("TIER", Right));
    }
    if wide {
        columns.extend([("SCORE", Right), ("ESTIMATES", Left)]);
    }
    columns.push(("WHY NOT", Left));
    let mut table = Table::of(&columns);
    let feasible: BTreeMap<&str, &FeasibleResult> =
        result.feasible.iter().map(|cluster| (cluster.name.as_str(), cluster)).collect();
    let row = |name: &str, gets: String, why: &str| {
        let known = feasible.get(name);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![name.to_owned(), gets];
        cells.push(or_dash(known.filter(|c| c.allocatable != i32::MAX).map(|c| c.allocatable.to_string())));
        cells.push(or_dash(known.map(|c| (c.available - i64::from(c.allocatable)).max(0).to_string())));
        if tiers {
            cells.push(or_dash(known.map(|c| c.tier.to_string())));
        }
        if wide {
            cells.push(or_dash(known.map(|c| c.score.to_string())));
            cells.push(or_dash(known.map(|c| estimates(c)).filter(|text| !text.is_empty())));
        }
        cells.push(why.to_owned());
        cells
    };
    for target in &result.clusters {
        let gets = target.replicas.map_or_else(|| "yes".to_owned(), |replicas| replicas.to_string());
        table.row(row(&target.name, gets, ""));
    }
    let chosen = |name: &str| result.clusters.iter().any(|target| target.name == name);
    let others = result.feasible.iter().filter(|cluster| !chosen(&cluster.name));
    let others = others.map(|cluster| (cluster.name.as_str(), why_not(result, cluster)));
    let filtered = result.filtered.iter().map(|cluster| (cluster.name.as_str(), cluster.reasons.join("; ")));
    let others: Vec<(&str, String)> = others.chain(filtered).collect();
    let shown = if wide { others.len() } else { SHOWN };
    for (name, why) in others.iter().take(shown) {
        table.row(row(name, "-".to_owned(), why));
    }
    if !result.clusters.is_empty() || !others.is_empty() {
        text.push_str(&table.render(2));
    }
    if others.len() > shown {
        let _ = writeln!(text, "  and {} more clusters; -o wide shows all", others.len() - shown);
    }
    text
}

/// The answer in a sentence.
fn answer(result: &DivideResult) -> String {
    let condition = &result.condition;
    if condition.status == "False" {
        return format!("{}, {}", condition.reason, condition.message.trim_end_matches('.'));
    }
    let clusters = match result.clusters.iter().filter(|target| target.replicas != Some(0)).count() {
        0 => return "no replicas, no clusters".to_owned(),
        1 => "1 cluster".to_owned(),
        many => format!("{many} clusters"),
    };
    let group = result.affinity.as_ref().map(|name| format!(" of the group {name}")).unwrap_or_default();
    let replicas: i64 = result.clusters.iter().filter_map(|target| target.replicas).map(i64::from).sum();
    match replicas {
        0 => format!("{clusters}{group}"),
        1 => format!("1 replica in {clusters}{group}"),
        many if result.shortfall > 0 => {
            format!("{many} replicas in {clusters}{group}, {} more do not fit", result.shortfall)
        }
        many => format!("{many} replicas in {clusters}{group}"),
    }
}

fn why_not(result: &DivideResult, cluster: &FeasibleResult) -> String {
    if result.condition.status == "False" {
        return String::new();
    }
    if cluster.available <= 0 { "nothing fits".to_owned() } else { "not chosen".to_owned() }
}

fn estimates(cluster: &FeasibleResult) -> String {
    let one = |(name, count): (&String, &Option<i32>)| match count {
        Some(count) => format!("{name} {count}"),
        None => format!("{name} -"),
    };
    cluster.estimates.iter().map(one).collect::<Vec<_>>().join(", ")
}
