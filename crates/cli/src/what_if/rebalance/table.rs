//! The answer of `what-if rebalance` for people: per node that is over its line who goes, and why the others stay.

use crate::out::{Detail, bold};
use crate::table::{Align, Table};
use loadline_core::load::Metered;
use loadline_core::load::ratio::Ratio;
use loadline_core::rebalance::{Over, Plan, Stay};
use std::fmt::Write as _;

/// So many pods that stay are shown, unless everything is asked for.
const SHOWN: usize = 10;

/// All nodes, the worst first.
pub fn render(plan: &Plan, detail: Detail) -> String {
    if let Some(pause) = plan.pause {
        return format!("Nothing is moved: {pause}.\n");
    }
    if plan.nodes.is_empty() {
        return "No node is over its line: nothing is moved.\n".to_owned();
    }
    let nodes: Vec<String> = plan.nodes.iter().map(|over| node(plan, over, detail)).collect();
    nodes.join("\n")
}

fn node(plan: &Plan, over: &Over, detail: Detail) -> String {
    let show = |amount: i64| over.resource.rounded(amount);
    let going: Vec<_> = plan.moves.iter().filter(|one| one.from == over.node).collect();
    let what = match (&over.wait, going.len()) {
        (Some(wait), _) => format!("gives up nothing: {wait}"),
        (None, 0) => "gives up nothing".to_owned(),
        (None, 1) => "gives up 1 pod".to_owned(),
        (None, many) => format!("gives up {many} pods"),
    };
    let mut text = format!("{} {what}\n", bold(&over.node));
    let _ = writeln!(
        text,
        "  {} {} of {}, over its line {} since {}",
        over.resource,
        show(over.expected),
        show(over.allocatable),
        show(over.limit),
        loadline_api::time::text(over.since)
    );
    if !going.is_empty() {
        use Align::{Left, Right};
        let mut table = Table::new([
            ("POD", Left),
            ("TO", Left),
            ("USES", Right),
            ("AT MOST", Right),
            ("GAP", Right),
            ("AFTER", Right),
            ("THERE", Right),
            ("MARGIN", Right),
        ]);
        for one in going {
            let amount = |load: loadline_core::load::Load| quantity(one.resource, load.get(one.resource));
            table.row([
                one.pod.to_string(),
                one.to.to_string(),
                amount(one.uses),
                amount(one.high),
                amount(one.gap),
                amount(one.gap_after),
                quantity(one.resource, one.there),
                percent(one.margin),
            ]);
        }
        text.push_str(&table.render(2));
    }
    stays(over, detail, &mut text);
    text
}

/// Why the others stay; those that are just not needed are counted.
fn stays(over: &Over, detail: Detail, text: &mut String) {
    let wide = detail == Detail::Wide;
    let not_needed = over.stays.iter().filter(|(_, why)| *why == Stay::NotNeeded).count();
    let told: Vec<_> = over.stays.iter().filter(|(_, why)| wide || *why != Stay::NotNeeded).collect();
    if !told.is_empty() {
        let mut table = Table::new([("STAYS", Align::Left), ("BECAUSE", Align::Left)]);
        for (pod, why) in told.iter().take(detail.rows(SHOWN)) {
            table.row([pod.to_string(), why.to_string()]);
        }
        text.push_str(&table.render(2));
        let hidden = told.len().saturating_sub(detail.rows(SHOWN));
        if hidden > 0 {
            let _ = writeln!(text, "  and {hidden} more; -o wide shows all");
        }
    }
    if !wide && not_needed > 0 {
        let _ = writeln!(text, "  {not_needed} more may stay: {}", Stay::NotNeeded);
    }
}

fn quantity(resource: Metered, amount: i64) -> String {
    resource.rounded(amount).to_string()
}

/// `29%`, rounded down: a margin is never overstated.
fn percent(share: Ratio) -> String {
    format!("{}%", share.nano().div_euclid(10_000_000))
}
