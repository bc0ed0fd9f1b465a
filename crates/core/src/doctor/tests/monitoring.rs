//! What is found about Prometheus: series that are nobody's, ranges that are too short.

use super::*;
use crate::load::join::Series;
use std::collections::BTreeMap;

const METRIC: &str = "cpu_usage_avg_5m";

fn series(whose: &str, at: Timestamp) -> Series {
    Series { whose: vec![whose.to_owned()], percent: "12.5".to_owned(), at }
}

/// A Prometheus that has these, a minute old.
fn with(whose: &[&str]) -> Known<Prometheus> {
    answers(Ok(whose.iter().map(|one| series(one, ago(60))).collect()))
}

fn answers(answer: Result<Vec<Series>, String>) -> Known<Prometheus> {
    let asked =
        Asked { metric: METRIC.into(), query: METRIC.to_owned(), is_series: true, answer, unlabelled: 0 };
    Known::Read(Prometheus {
        address: "http://prometheus:9090".to_owned(),
        asked: vec![asked],
        ..Prometheus::default()
    })
}

#[test]
fn a_node_that_lacks_one_metric_is_not_said_to_match_none() {
    let mut facts = healthy();
    facts.prometheus = with(&["n1", "n2"]);
    let memory = Asked {
        metric: "mem_usage_avg_5m".into(),
        query: "mem_usage_avg_5m".to_owned(),
        is_series: true,
        answer: Ok(vec![series("n1", ago(60))]),
        unlabelled: 0,
    };
    let Known::Read(prometheus) = &mut facts.prometheus else { panic!("it was read") };
    prometheus.asked.push(memory);
    let found = bad(&facts);
    let [one] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(one.what, "1 node has no series of mem_usage_avg_5m, though of other metrics: n2");
    assert!(one.command.contains("query=mem_usage_avg_5m"), "{}", one.command);
    assert_eq!(one.about, ["n2"]);
}

#[test]
fn nodes_that_match_no_series_and_why() {
    table([
        ("all match, by name or address", &|f| f.prometheus = with(&["n1:9100", "10.0.0.2"]), None),
        (
            "by the address of a pod",
            &|f| f.prometheus = with(&["n1", "10.244.0.7:9100"]),
            Some((
                Severity::Broken,
                "series",
                "1 node matches no series: n2; address: no series has the name n2 or the address 10.0.0.2; series of nobody there, such as \"10.244.0.7:9100\"",
            )),
        ),
        (
            "by a longer name",
            &|f| f.prometheus = with(&["n1", "N2.example.com:9100"]),
            Some((
                Severity::Broken,
                "series",
                "name: \"N2.example.com:9100\" is there, but the node is called n2",
            )),
        ),
        (
            "by a longer name that is one of its own",
            &|f| {
                f.prometheus = with(&["n1", "n2.example.com:9100"]);
                read(&mut f.nodes)[1].addresses.push("n2.example.com".into());
            },
            None,
        ),
        (
            "by an address of two",
            &|f| {
                f.prometheus = with(&["n1", "10.0.0.2:9100"]);
                read(&mut f.nodes)[0].addresses.push("10.0.0.2".into());
            },
            Some((Severity::Broken, "series", "address: 10.0.0.2 of n2 is the address of several nodes")),
        ),
        (
            "with more around the port",
            &|f| f.prometheus = with(&["n1", "http://n2:9100/metrics"]),
            Some((Severity::Broken, "series", "port: n2 is written \"http://n2:9100/metrics\" there")),
        ),
        (
            "not at all, but it is down",
            &|f| {
                f.prometheus = with(&["n1"]);
                read(&mut f.nodes)[1].ready = Some(false);
            },
            None,
        ),
    ]);
}

#[test]
fn a_prometheus_without_the_metric_or_that_does_not_answer() {
    table([
        (
            "it has no such series",
            &|f| f.prometheus = with(&[]),
            Some((Severity::Broken, "series", "Prometheus has no series for cpu_usage_avg_5m")),
        ),
        (
            "it refuses the question",
            &|f| f.prometheus = answers(Err("the query is refused: parse error".to_owned())),
            Some((Severity::Broken, "series", "does not answer for cpu_usage_avg_5m: the query is refused")),
        ),
        (
            "nobody answers",
            &|f| f.prometheus = Known::Failed(failed(Why::Failed)),
            Some((Severity::Broken, "series", "Prometheus cannot be asked: the server said so")),
        ),
        (
            "it has no such series yet, before anything is installed",
            &|f| {
                f.prometheus = with(&[]);
                f.preflight = true;
            },
            Some((Severity::Warning, "series", "Prometheus has no series for cpu_usage_avg_5m")),
        ),
        (
            "nobody answers, before anything is installed",
            &|f| {
                f.prometheus = Known::Failed(failed(Why::Failed));
                f.preflight = true;
            },
            Some((Severity::Broken, "series", "Prometheus cannot be asked: the server said so")),
        ),
        ("nobody asked", &|f| f.prometheus = Known::Unasked, None),
        (
            "labels that name nobody",
            &|f| {
                f.prometheus = with(&["n1", "n2"]);
                read(&mut f.prometheus).asked[0].unlabelled = 3;
            },
            Some((Severity::Warning, "series", "3 series of cpu_usage_avg_5m have no label")),
        ),
        (
            "two exporters on a node",
            &|f| f.prometheus = with(&["n1:9100", "n1:9101", "n2:9100"]),
            Some((Severity::Warning, "series", "1 series beyond the first of a node")),
        ),
        (
            "no amount",
            &|f| {
                let mut all = ["n1", "n2", "n2:9100"].map(|one| series(one, ago(60))).to_vec();
                all[1].percent = "NaN".to_owned();
                f.prometheus = answers(Ok(all));
            },
            Some((Severity::Warning, "series", "1 series is no amount")),
        ),
        (
            "older than the policy allows",
            &|f| {
                f.prometheus = answers(Ok(["n1", "n2"].map(|one| series(one, ago(481))).to_vec()));
            },
            Some((Severity::Broken, "series", "cpu_usage_avg_5m of 2 nodes is old, up to 8 min")),
        ),
        (
            "just not",
            &|f| f.prometheus = answers(Ok(["n1", "n2"].map(|one| series(one, ago(480))).to_vec())),
            None,
        ),
    ]);
}

/// A rule over a range of a series, which a job brings so often.
fn scraped(f: &mut Facts, range: i64, interval: i64) {
    f.prometheus = with(&["n1", "n2"]);
    let prometheus = read(&mut f.prometheus);
    let read = |metric: &str, range: i64, jobs: &[&str]| Ranged {
        metric: metric.to_owned(),
        range: SignedDuration::from_secs(range),
        jobs: jobs.iter().map(|job| (*job).to_owned()).collect(),
    };
    let rule = |name: &str, reads| Recorded {
        name: name.to_owned(),
        every: SignedDuration::from_secs(15),
        reads: vec![reads],
    };
    prometheus.rules = Known::Read(vec![
        rule(METRIC, read("cpu_usage_active", 300, &[])),
        rule("cpu_usage_active", read("node_cpu_seconds_total", range, &["node"])),
        rule("of_others", read("their_seconds_total", 1, &["theirs"])),
    ]);
    let jobs = [("node", interval), ("theirs", 600)];
    prometheus.jobs =
        Known::Read(jobs.map(|(name, every)| (name.to_owned(), SignedDuration::from_secs(every))).into());
}

#[test]
fn scraping_too_seldom_for_the_rules() {
    table([
        ("four samples", &|f| scraped(f, 240, 60), None),
        (
            "three samples",
            &|f| scraped(f, 240, 61),
            Some((
                Severity::Warning,
                "scrape",
                "cpu_usage_active looks back 4 min over node_cpu_seconds_total, which the job node brings every 61 s",
            )),
        ),
        ("two samples", &|f| scraped(f, 240, 120), Some((Severity::Warning, "scrape", "every 2 min"))),
        ("one sample", &|f| scraped(f, 240, 121), Some((Severity::Broken, "scrape", "every 2 min"))),
        (
            "a rule that is evaluated too seldom",
            &|f| {
                scraped(f, 240, 15);
                let rules = read(&mut read(&mut f.prometheus).rules);
                rules[0].every = SignedDuration::from_secs(481);
            },
            Some((Severity::Broken, "scrape", "is evaluated every 8 min, but a value is good for 8 min")),
        ),
        (
            "nobody says how often",
            &|f| {
                scraped(f, 240, 600);
                read(&mut f.prometheus).jobs = Known::Failed(failed(Why::Failed));
            },
            None,
        ),
        (
            "a job nobody knows",
            &|f| {
                scraped(f, 240, 600);
                read(&mut f.prometheus).jobs = Known::Read(BTreeMap::new());
            },
            None,
        ),
    ]);
}
