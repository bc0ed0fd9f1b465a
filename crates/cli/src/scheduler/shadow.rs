//! `loadline scheduler --shadow`: what we would have done, served while it runs and printed at the end.

use super::readiness;
use crate::table::{Align, Table};
use crate::{component, out};
use anyhow::Result;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use loadline_services::scheduler::Options;
use loadline_services::scheduler::shadow::{self, Report, Reported, World};
use std::fmt::Write as _;
use std::net::SocketAddr;

/// So many pods that would have gone elsewhere are shown.
const SHOWN: usize = 10;

pub async fn run(identity: &str, address: Option<SocketAddr>, options: Options) -> Result<()> {
    let (status, reported) = (options.status.clone(), Reported::default());
    let served = reported.clone();
    let report = get(move || async move {
        let text = serde_json::to_string(&served.get()).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        Ok::<_, StatusCode>(([(header::CONTENT_TYPE, "application/json")], text))
    });
    let more = Router::new().route("/debug/shadow", report);
    let start = |ctx| shadow::run(ctx, options, reported.clone());
    component::run_with(identity, address, move || readiness(&status), more, start).await?;
    out::print(&render(&reported.get()));
    Ok(())
}

fn render(report: &Report) -> String {
    use Align::{Left, Right};
    let mut text = String::new();
    let looked = report.since.zip(report.until).map(|(since, until)| until.duration_since(since).as_secs());
    let _ = writeln!(text, "Looked on for {} s and wrote nothing.\n", looked.unwrap_or_default());
    let mut table = Table::new([("", Left), ("ACTUAL", Right), ("LOADLINE", Right)]);
    let number = |of: fn(&World) -> String| [of(&report.actual), of(&report.shadow)];
    for (what, [actual, ours]) in [
        ("node-seconds over target", number(|world| world.node_seconds_over_target.to_string())),
        ("nodes over target now", number(|world| world.hot_nodes.to_string())),
        ("pods on such nodes now", number(|world| world.pods_on_hot_nodes.to_string())),
        (
            "highest share of a node",
            number(|world| {
                world.peak_percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent}%"))
            }),
        ),
    ] {
        table.row([what.to_owned(), actual, ours]);
    }
    text.push_str(&table.render(0));
    let Report { pods_same, pods_elsewhere, pods_waiting, .. } = report;
    let _ = writeln!(
        text,
        "\nNew pods: {pods_same} to the same node, {pods_elsewhere} elsewhere, {pods_waiting} would wait."
    );
    if !report.differences.is_empty() {
        let mut table = Table::new([("POD", Left), ("ACTUAL", Left), ("LOADLINE", Left)]);
        for one in report.differences.iter().take(SHOWN) {
            table.row([one.pod.clone(), one.actual.clone(), one.shadow.clone()]);
        }
        let _ = write!(text, "\n{}", table.render(0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use loadline_services::scheduler::shadow::Elsewhere;

    #[test]
    fn the_report_says_what_would_have_changed() {
        let at = |second| Some(Timestamp::from_second(second).expect("small"));
        let pair = |one: u64| World {
            node_seconds_over_target: one,
            hot_nodes: 2,
            pods_on_hot_nodes: 7,
            peak_percent: Some(91),
            peak_node: Some("n1".to_owned()),
        };
        let elsewhere = |pod: &str| Elsewhere { pod: pod.into(), actual: "n1".into(), shadow: "n2".into() };
        let report = Report {
            since: at(0),
            until: at(90),
            pods_same: 3,
            pods_elsewhere: 1,
            pods_waiting: 2,
            actual: pair(150),
            shadow: World { peak_percent: None, ..pair(0) },
            differences: [elsewhere("default/web-1")].into(),
        };
        let expected = "\
Looked on for 90 s and wrote nothing.

                          ACTUAL  LOADLINE
node-seconds over target     150         0
nodes over target now          2         2
pods on such nodes now         7         7
highest share of a node      91%         -

New pods: 3 to the same node, 1 elsewhere, 2 would wait.

POD            ACTUAL  LOADLINE
default/web-1  n1      n2
";
        assert_eq!(render(&report), expected);
    }
}
