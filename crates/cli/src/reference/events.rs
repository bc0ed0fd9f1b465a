//! Which Events does each component write? Those it may: the list is the one that recorders are held to.

use super::cell;
use loadline_services::cluster::events::Severity;
use loadline_services::cluster::events::known::{KNOWN, Known};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Events

What components tell on objects, as `kubectl describe` and `kubectl get events` show it. What happens again is counted in the
series of the first Event. Telling never holds up doing: Events that cannot be sent are counted
(`loadline_<component>_events_dropped_total`, `loadline_<component>_events_failed_total`).
";

/// The page.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut last = None;
    for known in KNOWN {
        if last != Some(known.by) {
            let title = known.by.map_or_else(|| "Whoever can lead".to_owned(), |by| format!("`{by}`"));
            let _ = write!(
                page,
                "\n## {title}\n\n| reason | type | on | what it means | what to do |\n|---|---|---|---|---|\n"
            );
            last = Some(known.by);
        }
        let _ = writeln!(page, "{}", row(known));
    }
    page
}

fn row(known: &Known) -> String {
    let severity = match known.severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    };
    format!(
        "| `{}` | {severity} | {} | {} | {} |",
        known.reason,
        known.about,
        cell(known.means),
        cell(known.advice)
    )
}
