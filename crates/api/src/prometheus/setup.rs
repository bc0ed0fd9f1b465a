//! How is a Prometheus set up? Its recording rules, and how often its jobs are scraped, as far as its API tells.

use super::{Refused, open};
use jiff::SignedDuration;
use loadline_core::doctor::{Ranged, Recorded};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is scraped how often if nothing is said.
const USUAL: SignedDuration = SignedDuration::from_mins(1);

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    /// Seconds.
    #[serde(default)]
    interval: f64,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    name: String,
    query: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The recording rules in an answer of `/api/v1/rules`. Which jobs bring what they read is not in it.
///
/// # Errors
/// When it is no such answer, and what the server says of it.
pub fn recording_rules(body: &[u8]) -> Result<Vec<Recorded>, Refused> {
    let (Groups { groups }, _) = open::<Groups>(body)?;
    let mut out = Vec::new();
    for group in groups {
        let every = SignedDuration::try_from_secs_f64(group.interval).unwrap_or(USUAL);
        for rule in group.rules.into_iter().filter(|rule| rule.kind == "recording") {
            out.push(Recorded { reads: ranges(&rule.query), name: rule.name, every });
        }
    }
    Ok(out)
}

#[derive(Deserialize)]
struct Shown {
    yaml: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    global: Scraped,
    scrape_configs: Vec<Scraped>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Scraped {
    job_name: String,
    scrape_interval: Option<String>,
}

/// How often each job is scraped, by an answer of `/api/v1/status/config`.
///
/// # Errors
/// When it is no such answer, and what the server says of it.
pub fn scrape_intervals(body: &[u8]) -> Result<BTreeMap<String, SignedDuration>, Refused> {
    let (Shown { yaml }, _) = open::<Shown>(body)?;
    let yaml = if yaml.trim().is_empty() { "{}" } else { &yaml };
    let config: Config = serde_saphyr::from_str(yaml)
        .map_err(|error| Refused::Other(error.to_string().lines().next().unwrap_or_default().to_owned()))?;
    let span = |one: &Scraped| one.scrape_interval.as_deref().and_then(duration);
    let global = span(&config.global).unwrap_or(USUAL);
    Ok(config.scrape_configs.iter().map(|one| (one.job_name.clone(), span(one).unwrap_or(global))).collect())
}

/// A span as Prometheus writes it: `1h30m`, `15s`, `1d`.
fn duration(text: &str) -> Option<SignedDuration> {
    let (mut rest, mut sum) = (text.trim(), SignedDuration::ZERO);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, millis) = [
            ("ms", 1),
            ("s", 1_000),
            ("m", 60_000),
            ("h", 3_600_000),
            ("d", 86_400_000),
            ("w", 604_800_000),
            ("y", 31_536_000_000),
        ]
        .into_iter()
        .find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        sum = sum.checked_add(SignedDuration::from_millis(number.checked_mul(millis)?))?;
    }
    Some(sum)
}

/// The series an expression reads over some time: `name{…}[range]`. Subqueries are not.
fn ranges(query: &str) -> Vec<Ranged> {
    let (mut out, mut name, mut rest): (Vec<Ranged>, &str, &str) = (Vec::new(), "", query);
    while let Some(c) = rest.chars().next() {
        match c {
            '"' | '\'' | '`' => {
                rest = quoted(rest);
                name = "";
            }
            '{' => rest = braced(rest),
            '[' => {
                let end = rest.find(']').map_or(rest.len(), |end| end + 1);
                let range = duration(rest[1..end].trim_end_matches(']'));
                if let (Some(range), false) = (range, name.is_empty()) {
                    out.push(Ranged { metric: name.to_owned(), range, jobs: Vec::new() });
                }
                (name, rest) = ("", &rest[end..]);
            }
            c if is_name(c) => {
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                (name, rest) = rest.split_at(end);
            }
            c => {
                if !c.is_whitespace() {
                    name = "";
                }
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// What follows a quoted text.
fn quoted(text: &str) -> &str {
    let mut chars = text.char_indices();
    let Some((_, mark)) = chars.next() else { return text };
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if mark != '`' => drop(chars.next()),
            c if c == mark => return &text[at + c.len_utf8()..],
            _ => {}
        }
    }
    ""
}

/// What follows matchers.
fn braced(text: &str) -> &str {
    let mut rest = &text[1..];
    while let Some(c) = rest.chars().next() {
        match c {
            '}' => return &rest[1..],
            '"' | '\'' | '`' => rest = quoted(rest),
            c => rest = &rest[c.len_utf8()..],
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Vec<(String, i64)> {
        ranges(query).into_iter().map(|one| (one.metric, one.range.as_secs())).collect()
    }

    #[test]
    fn ranges_are_found_behind_matchers_and_subqueries_are_not() {
        for (query, expected) in [
            ("avg_over_time(cpu_usage_active[5m])", vec![("cpu_usage_active", 300)]),
            (
                r#"100 * (1 - avg without (cpu, mode) (irate(node_cpu_seconds_total{mode="idle"}[4m])))"#,
                vec![("node_cpu_seconds_total", 240)],
            ),
            (r#"rate(a{b="x]}[1m]"} [1h30m])"#, vec![("a", 5_400)]),
            ("rate(a[1m]) / rate(b:c_d[2m] offset 1h)", vec![("a", 60), ("b:c_d", 120)]),
            ("max_over_time(rate(a[1m])[1h:1m])", vec![("a", 60)]),
            ("node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes", vec![]),
            (r#"label_replace(x, "a[5m]", "", "", "")"#, vec![]),
            ("a[", vec![]),
            (r#"a{b="unfinished"#, vec![]),
        ] {
            let expected: Vec<(String, i64)> = expected.into_iter().map(|(a, b)| (a.to_owned(), b)).collect();
            assert_eq!(read(query), expected, "{query}");
        }
    }

    #[test]
    fn spans_are_those_of_prometheus() {
        for (text, seconds) in [
            ("15s", Some(15)),
            ("1h30m", Some(5_400)),
            ("1d", Some(86_400)),
            ("1w", Some(604_800)),
            ("", None),
            ("5", None),
            ("m", None),
            ("1x", None),
        ] {
            assert_eq!(duration(text), seconds.map(SignedDuration::from_secs), "{text}");
        }
        assert_eq!(duration("250ms"), Some(SignedDuration::from_millis(250)));
    }

    #[test]
    fn jobs_have_their_own_interval_or_that_of_all() {
        let yaml = "global:\n  scrape_interval: 30s\n  external_labels: {a: b}\nscrape_configs:\n- job_name: node\n  scrape_interval: 2m\n- job_name: other\n";
        let body = serde_json::json!({"status": "success", "data": {"yaml": yaml}}).to_string();
        let jobs = scrape_intervals(body.as_bytes()).unwrap();
        let seconds: Vec<(&str, i64)> =
            jobs.iter().map(|(name, every)| (name.as_str(), every.as_secs())).collect();
        assert_eq!(seconds, [("node", 120), ("other", 30)]);
        let nothing = scrape_intervals(br#"{"status": "success", "data": {"yaml": ""}}"#);
        assert!(nothing.is_ok_and(|jobs| jobs.is_empty()));
        assert!(scrape_intervals(b"<html>").is_err());
    }

    #[test]
    fn rules_are_read_with_their_interval() {
        let body = br#"{"status": "success", "data": {"groups": [{"name": "g", "interval": 15, "rules": [
            {"name": "a", "query": "rate(b[4m])", "type": "recording"}, {"name": "c", "query": "d > 1", "type": "alerting"}]}]}}"#;
        let rules = recording_rules(body).unwrap();
        assert_eq!(rules.len(), 1);
        assert_eq!((&*rules[0].name, rules[0].every.as_secs(), rules[0].reads.len()), ("a", 15, 1));
    }
}
