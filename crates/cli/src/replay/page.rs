//! One page for people who were not there: the table, and plots as SVG. Nothing is loaded from anywhere.

use super::table::{gained, percent};
use super::{Answer, PolicyAnswer};
use loadline_replay::HOUR;
use loadline_replay::compare::Row;
use loadline_replay::figures::Protection;
use std::fmt::Write;

const COLOURS: [&str; 8] =
    ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999", "#222255"];
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 260.0;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn colour(place: usize) -> &'static str {
    COLOURS[place % COLOURS.len()]
}

/// The whole page.
pub fn render(answer: &Answer, rows: &[Row]) -> String {
    let title = format!("Replay of {}: {} pods in {} days", escape(&answer.data), answer.pods, answer.days);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<style>\
         body{{font:15px/1.4 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}\
         table{{border-collapse:collapse}}td,th{{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}}\
         td:first-child,th:first-child{{text-align:left}}svg{{width:100%;height:auto}}text{{font-size:12px}}</style>\n\
         <h1>{title}</h1>\n"
    );
    let _ = writeln!(
        page,
        "<p>Nodes of {} cores, seeds {:?}. The first {} is not counted.</p>",
        answer.node_cores,
        answer.seeds,
        if answer.left_out == 24 { "day".to_owned() } else { format!("part of {} h", answer.left_out) }
    );
    for note in &answer.notes {
        let _ = writeln!(page, "<p>{}</p>", escape(note));
    }
    page += &figures(answer);
    page += "<h2>Nodes' time over 100 %</h2>\n";
    page += &bars(answer);
    if let Some(seed) = answer.seeds.first() {
        let _ = writeln!(page, "<h2>The fullest node, hour by hour (seed {seed})</h2>");
        page += &course(answer, rows, *seed);
    }
    page + "</html>\n"
}

fn figures(answer: &Answer) -> String {
    let protection = |one: &PolicyAnswer| one.mean.as_ref().and_then(|mean| mean.protection);
    let is_protected = answer.policies.iter().any(|one| protection(one).is_some());
    let mut columns =
        vec!["nodes", "over 100 %", "over target", "not served", "p99 use", "pending", "moved", "disturbed"];
    if is_protected {
        columns.extend(["slowed", "by all"]);
    }
    if answer.violations.is_some() {
        columns.push("capacity gained");
    }
    let mut text = format!("<table><tr><th>policy<th>{}</tr>\n", columns.join("<th>"));
    for one in &answer.policies {
        let name = escape(&one.policy);
        let about = escape(one.about);
        let Some(mean) = &one.mean else {
            let _ = writeln!(
                text,
                "<tr><td title=\"{about}\">{name}<td colspan={}>no number of nodes is enough</tr>",
                columns.len()
            );
            continue;
        };
        let mut cells = vec![
            mean.nodes.to_string(),
            percent(mean.over_full),
            percent(mean.over_target),
            percent(mean.not_served),
            percent(mean.p99_use),
            mean.pods_pending.to_string(),
            mean.moves.to_string(),
            mean.pods_disturbed.to_string(),
        ];
        if is_protected {
            let of = |count: fn(&Protection) -> usize| {
                protection(one).map_or_else(|| "-".to_owned(), |found| count(&found).to_string())
            };
            cells.extend([of(|found| found.pods_slowed), of(|found| found.pods_slowed_by_all)]);
        }
        if answer.violations.is_some() {
            cells.push(gained(one));
        }
        let _ = writeln!(text, "<tr><td title=\"{about}\">{name}<td>{}</tr>", cells.join("<td>"));
    }
    text + "</table>\n"
}

/// One bar a policy, a dot a seed.
#[expect(clippy::cast_precision_loss, reason = "a few policies")]
fn bars(answer: &Answer) -> String {
    let runs = answer.policies.iter().flat_map(|one| one.runs.iter().flatten());
    let most = runs.map(|figures| figures.over_full).fold(1e-4, f64::max);
    let height = 24.0 * answer.policies.len() as f64 + 10.0;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n");
    let x = |share: f64| 190.0 + share / most * (WIDTH - 290.0);
    for (place, one) in answer.policies.iter().enumerate() {
        let y = 24.0 * place as f64 + 5.0;
        let _ = write!(
            svg,
            "<text x=\"180\" y=\"{}\" text-anchor=\"end\">{}</text>",
            y + 14.0,
            escape(&one.policy)
        );
        let Some(mean) = &one.mean else {
            svg.push('\n');
            continue;
        };
        let end = x(mean.over_full);
        let _ = write!(
            svg,
            "<rect x=\"190\" y=\"{y}\" width=\"{:.1}\" height=\"18\" fill=\"{}\"/>",
            end - 190.0,
            colour(place)
        );
        for run in one.runs.iter().flatten() {
            let _ = write!(svg, "<circle cx=\"{:.1}\" cy=\"{}\" r=\"3\"/>", x(run.over_full), y + 9.0);
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\">{}</text>",
            WIDTH - 80.0,
            y + 14.0,
            percent(mean.over_full)
        );
    }
    svg + "</svg>\n"
}

/// One line a policy: the use of the fullest node, the largest of each hour.
#[expect(clippy::cast_precision_loss, reason = "hours of some weeks")]
fn course(answer: &Answer, rows: &[Row], seed: u64) -> String {
    let lines: Vec<(usize, Vec<u32>)> = answer
        .policies
        .iter()
        .enumerate()
        .filter_map(|(place, one)| {
            let row = rows.iter().find(|row| row.seed == seed && row.policy.to_string() == one.policy)?;
            Some((
                place,
                row.course
                    .chunks(HOUR)
                    .map(|hour| hour.iter().map(|[worst, _]| *worst).max().unwrap_or(0))
                    .collect(),
            ))
        })
        .collect();
    let most = lines.iter().flat_map(|(_, line)| line).copied().max().unwrap_or(0).max(1000);
    let hours = lines.iter().map(|(_, line)| line.len()).max().unwrap_or(0).max(2);
    let x = |hour: usize| 40.0 + hour as f64 / (hours - 1) as f64 * (WIDTH - 50.0);
    let y = |share: f64| HEIGHT - 20.0 - share / f64::from(most) * (HEIGHT - 30.0);
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\">\n", HEIGHT + 24.0);
    for (share, name) in [
        (0.0, "0 %".to_owned()),
        (answer.target * 1000.0, percent(answer.target)),
        (1000.0, "100 %".to_owned()),
    ] {
        let _ = writeln!(
            svg,
            "<line x1=\"40\" x2=\"{WIDTH}\" y1=\"{0:.1}\" y2=\"{0:.1}\" stroke=\"#bbb\"/><text x=\"0\" y=\"{1:.1}\" textLength=\"36\">{name}</text>",
            y(share),
            y(share) + 4.0
        );
    }
    for day in 0..=hours / 24 {
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{}\">day {}</text>", x(day * 24), HEIGHT - 4.0, day + 1);
    }
    for (place, line) in &lines {
        let points: Vec<String> = line
            .iter()
            .enumerate()
            .map(|(hour, share)| format!("{:.1},{:.1}", x(hour), y(f64::from(*share))))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.2\" points=\"{}\"/>",
            colour(*place),
            points.join(" ")
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>",
            40 + place * 110,
            HEIGHT + 16.0,
            colour(*place),
            escape(&answer.policies[*place].policy)
        );
    }
    svg + "</svg>\n"
}
