//! The answer of `what-if divide` for people: who gets how many first, then why the others do not.

use super::Answer;
use crate::out::{Detail, bold};
use crate::table::{Align, Table};
use loadline_core::divide::{self, Feasible};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Of more clusters that get nothing than this, only so many are shown.
const SHOWN: usize = 20;

/// The whole answer; wide lists every cluster and every estimate.
pub fn render(answer: &Answer, detail: Detail) -> String {
    let Answer { workload, divided, .. } = answer;
    let mut text = format!("{}: {}\n", bold(workload), bold(&sentence(divided)));
    let others = others(divided);
    let shown = others.len().min(detail.rows(SHOWN));
    let mut rows = Rows::new(divided, detail);
    for target in &divided.clusters {
        let gets = target.replicas.map_or_else(|| "yes".to_owned(), |replicas| replicas.to_string());
        rows.add(&target.name, gets, "");
    }
    for (name, why) in &others[..shown] {
        rows.add(name, "-".to_owned(), why);
    }
    if !divided.clusters.is_empty() || !others.is_empty() {
        text.push_str(&rows.table.render(2));
    }
    if others.len() > shown {
        let _ = writeln!(text, "  and {} more clusters; -o wide shows all", others.len() - shown);
    }
    text
}

/// The answer in a sentence.
fn sentence(divided: &divide::Answer) -> String {
    let condition = divided.condition();
    if !condition.status {
        return format!("{}, {}", condition.reason, condition.message.trim_end_matches('.'));
    }
    let clusters = match divided.clusters.iter().filter(|target| target.replicas != Some(0)).count() {
        0 => return "no replicas, no clusters".to_owned(),
        1 => "1 cluster".to_owned(),
        many => format!("{many} clusters"),
    };
    let group = divided.affinity.as_ref().map(|name| format!(" of the group {name}")).unwrap_or_default();
    let replicas: i64 = divided.clusters.iter().filter_map(|target| target.replicas).map(i64::from).sum();
    match replicas {
        0 => format!("{clusters}{group}"),
        1 => format!("1 replica in {clusters}{group}"),
        many if divided.shortfall > 0 => {
            format!("{many} replicas in {clusters}{group}, {} more do not fit", divided.shortfall)
        }
        many => format!("{many} replicas in {clusters}{group}"),
    }
}

/// Clusters that get nothing, and why.
fn others(divided: &divide::Answer) -> Vec<(&str, String)> {
    let decided = divided.condition().status;
    let chosen = |name: &str| divided.clusters.iter().any(|target| &*target.name == name);
    let why_not = |cluster: &Feasible| match (decided, cluster.available) {
        (false, _) => "",
        (true, ..=0) => "nothing fits",
        (true, _) => "not chosen",
    };
    let feasible = divided.feasible.iter().filter(|cluster| !chosen(&cluster.name));
    let feasible = feasible.map(|cluster| (&*cluster.name, why_not(cluster).to_owned()));
    let filtered = divided.filtered.iter().map(|cluster| (&*cluster.name, cluster.reason.to_string()));
    feasible.chain(filtered).collect()
}

/// The table in the making.
struct Rows<'a> {
    divided: &'a divide::Answer,
    feasible: BTreeMap<&'a str, &'a Feasible>,
    /// Is there more than one tier?
    tiers: bool,
    wide: bool,
    table: Table,
}

impl<'a> Rows<'a> {
    fn new(divided: &'a divide::Answer, detail: Detail) -> Self {
        use Align::{Left, Right};
        let tiers = divided.feasible.iter().any(|cluster| cluster.tier > 0);
        let wide = detail == Detail::Wide;
        let mut columns = vec![("CLUSTER", Left), ("REPLICAS", Right), ("FIT", Right), ("HAS", Right)];
        if tiers {
            columns.push(("TIER", Right));
        }
        if wide {
            columns.extend([("SCORE", Right), ("ESTIMATES", Left)]);
        }
        columns.push(("WHY NOT", Left));
        let feasible = divided.feasible.iter().map(|cluster| (&*cluster.name, cluster)).collect();
        Self { divided, feasible, tiers, wide, table: Table::of(&columns) }
    }

    fn add(&mut self, name: &str, gets: String, why: &str) {
        let known = self.feasible.get(name).copied();
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![name.to_owned(), gets];
        cells.push(or_dash(known.filter(|c| c.allocatable != i32::MAX).map(|c| c.allocatable.to_string())));
        cells.push(or_dash(known.map(|c| (c.available - i64::from(c.allocatable)).max(0).to_string())));
        if self.tiers {
            cells.push(or_dash(known.map(|c| c.tier.to_string())));
        }
        if self.wide {
            cells.push(or_dash(known.map(|c| c.score.to_string())));
            cells.push(or_dash(known.map(|c| estimates(self.divided, c)).filter(|text| !text.is_empty())));
        }
        cells.push(why.to_owned());
        self.table.row(cells);
    }
}

/// What each estimator said, by name.
fn estimates(divided: &divide::Answer, cluster: &Feasible) -> String {
    let by_name: BTreeMap<&str, Option<i32>> =
        divided.estimates(cluster).map(|(name, count)| (&**name, count)).collect();
    let one = |(name, count): (&str, Option<i32>)| match count {
        Some(count) => format!("{name} {count}"),
        None => format!("{name} -"),
    };
    by_name.into_iter().map(one).collect::<Vec<_>>().join(", ")
}
