//! What two runs of the same step may differ in: names, ages, addresses, times, and the order of equals.

use regex::Regex;
use std::sync::LazyLock;

/// How a step's output is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All lines; the order does not matter.
    Lines,
    /// The header, then the rows in any order.
    Table,
    /// Only the last line: what comes before depends on how fast pods start.
    Last,
    /// Sections of text; events in any order.
    Describe,
    /// Names and types of fields: we do not repeat the descriptions of Kubernetes.
    Fields,
}

const MASKS: &[(&str, &str)] = &[
    // Names made from hashes and dice.
    (r"\bweb-[a-z0-9]{8,10}-[a-z0-9]{5}\b", "web-HASH-ID"),
    (r"\bweb-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b", "web-HASH"),
    (r"pod-template-hash=\S+", "pod-template-hash=HASH"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"containerd://[0-9a-f]{64}", "CONTAINER"),
    // Times and ages.
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( \w+)?( m=\S+)?", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b(\d+d)?(\d+h)?(\d+m)?\d+s\b( \(x\d+ over AGE\))?", "AGE"),
    (r"\b\d+m\b([^Ci]|$)", "AGE$1"),
    (r"resourceVersion: \S+", "resourceVersion: N"),
    (r"generation: \d+", "generation: N"),
    // Where a pod landed.
    (r"topology.kubernetes.io/zone=local-[abc]", "topology.kubernetes.io/zone=ZONE"),
    (r"\b10\.\d+\.\d+\.\d+\b", "IP"),
    // Folders of diff.
    (r"\S*/(LIVE|MERGED)-\d+/", "$1/"),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> =
    LazyLock::new(|| MASKS.iter().map(|(from, to)| (Regex::new(from).unwrap(), *to)).collect());
static SPACE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[ \t]{2,}|\t").unwrap());
static FIELD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\s*\w+\s*<[^>]*>").unwrap());
static NODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bnode-\d\d(/172\.18\.0\.\d+)?\b").unwrap());
static HOST: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b172\.18\.0\.\d+\b").unwrap());

pub fn apply(view: View, text: &str) -> String {
    let masked =
        COMPILED.iter().fold(text.to_owned(), |text, (from, to)| from.replace_all(&text, *to).into_owned());
    let mut lines: Vec<String> = masked.lines().map(squeeze).filter(|line| !is_noise(line)).collect();
    match view {
        View::Lines => {
            lines.sort();
            lines.dedup();
        }
        View::Table => {
            // Which node a pod is on is up to the order in which pods were made.
            let pods = lines.first().is_some_and(|head| head.contains("NOMINATED"));
            if pods {
                for line in &mut lines {
                    *line = NODE.replace_all(line, "NODE").into_owned();
                }
            }
            if let Some(rows) = lines.get_mut(1..) {
                rows.sort();
            }
        }
        View::Last => drop(lines.drain(..lines.len().saturating_sub(1))),
        View::Describe => lines = describe(&lines),
        View::Fields => lines.retain(|line| FIELD.is_match(line)),
    }
    lines.join("\n")
}

/// One space between columns, whatever their width, and none at the end.
fn squeeze(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let text = SPACE.replace_all(line.trim(), "  ");
    format!("{}{text}", &line[..indent])
}

/// What depends on how long something took.
fn is_noise(line: &str) -> bool {
    line.contains("will retry after")
        || line.starts_with("evicting pod")
        || line.chars().all(|c| "-= ".contains(c))
}

/// Sections stay in order; inside events, order and repetition do not matter.
fn describe(lines: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let mut events: Option<Vec<String>> = None;
    for line in lines {
        let line = NODE.replace_all(line, "NODE");
        let line = HOST.replace_all(&line, "HOST").into_owned();
        let top = !line.starts_with(' ');
        if top && let Some(mut seen) = events.take() {
            seen.sort();
            seen.dedup();
            out.append(&mut seen);
        }
        if line.starts_with("Events:") {
            events = Some(Vec::new());
        }
        match &mut events {
            Some(seen) => seen.push(line),
            None => out.push(line),
        }
    }
    let mut seen = events.unwrap_or_default();
    seen.sort();
    seen.dedup();
    out.append(&mut seen);
    out
}
