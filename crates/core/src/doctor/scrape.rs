//! Is often enough scraped for the rules? A range needs two samples to say anything, and four to survive a lost one.
//!
//! ```text
//! works at all      range ≥ 2 × interval
//! works for long    range ≥ 4 × interval
//! ```
//!
//! The interval of a series is that of the job that brings it, or of the rule that makes it. Only rules that metrics of the
//! policy are made of are looked at, and what those are made of.

use super::facts::{Facts, Prometheus, Recorded};
use super::{Finding, count, span};
use std::collections::{BTreeMap, BTreeSet};

const CHECK: &str = "scrape";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(prometheus) = facts.prometheus.read() else { return Vec::new() };
    let address = prometheus.address.trim_end_matches('/');
    let show = format!("curl {address}/api/v1/status/config");
    let (Some(rules), Some(jobs)) = (prometheus.rules.read(), prometheus.jobs.read()) else {
        let failed = prometheus.rules.failed().or(prometheus.jobs.failed());
        let Some(failed) = failed else { return Vec::new() };
        let what = format!("how often Prometheus scrapes is not known: {}", failed.message);
        return vec![Finding::ok(CHECK, what, show)];
    };
    let by_name: BTreeMap<&str, &Recorded> = rules.iter().map(|rule| (rule.name.as_str(), rule)).collect();
    let (mut out, mut looked_at) = (Vec::new(), 0);
    for rule in used(prometheus, &by_name) {
        for read in &rule.reads {
            // What brings it seldomest counts.
            let from_rule =
                by_name.get(read.metric.as_str()).map(|made| (made.every, format!("the rule {}", made.name)));
            let from_jobs =
                read.jobs.iter().filter_map(|job| Some((*jobs.get(job)?, format!("the job {job}"))));
            let Some((every, whence)) = from_rule.into_iter().chain(from_jobs).max() else { continue };
            looked_at += 1;
            let (range, enough) = (read.range, every.saturating_mul(4));
            if range >= enough {
                continue;
            }
            let what = format!(
                "{} looks back {} over {}, which {whence} brings every {}",
                rule.name,
                span(range),
                read.metric,
                span(every)
            );
            let fix = format!(
                "scrape every {} or more often, or look back {} in the rule",
                span(range / 4),
                span(enough)
            );
            let finding = if range < every.saturating_mul(2) {
                Finding::broken(CHECK, what).why(
                    "two samples are rarely within that range: the series has gaps, or is not there at all",
                )
            } else {
                Finding::warning(CHECK, what).why(
                    "one lost scrape, and fewer than two samples are within that range: the series has a gap",
                )
            };
            out.push(finding.fix(fix).show(show.clone()));
        }
    }
    for metric in facts.rules.metrics() {
        let (Some(rule), Some(window)) = (by_name.get(&*metric.name), metric.window) else { continue };
        if rule.every > window {
            let what = format!(
                "{} is evaluated every {}, but a value is good for {} by the policy",
                rule.name,
                span(rule.every),
                span(window)
            );
            out.push(
                Finding::broken(CHECK, what)
                    .why("values expire on nodes before there are new ones")
                    .fix("shorten the interval of the rule's group, or lengthen the period in the policy")
                    .show(format!("curl {address}/api/v1/rules?type=record")),
            );
        }
    }
    if out.is_empty() && looked_at > 0 {
        out.push(Finding::ok(
            CHECK,
            format!("{} of rules hold four samples or more", count(looked_at, "range")),
            show,
        ));
    }
    out
}

/// The rules that metrics of the policy are made of, each once.
fn used<'a>(prometheus: &'a Prometheus, by_name: &BTreeMap<&str, &'a Recorded>) -> Vec<&'a Recorded> {
    let mut open: Vec<&str> = prometheus.asked.iter().map(|asked| &*asked.metric).rev().collect();
    let (mut seen, mut out) = (BTreeSet::new(), Vec::new());
    while let Some(name) = open.pop() {
        let Some(rule) = by_name.get(name) else { continue };
        if seen.insert(name) {
            out.push(*rule);
            open.extend(rule.reads.iter().map(|read| read.metric.as_str()));
        }
    }
    out
}
