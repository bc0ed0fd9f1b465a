//! Are the reference pages what the program says of itself, and do dashboards and alerts ask for what there is?

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/mod.rs"]
mod common;
#[path = "common/promql.rs"]
mod promql;
#[path = "common/service.rs"]
mod service;

use common::Up;
use loadline_testkit::Running;
use loadline_testkit::parts::find_or_skip;
use promql::Asked;
use serde_json::{Value, json};
use service::{Service, until};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The reference pages, made anew.
fn pages() -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let made =
        Command::new(env!("CARGO_BIN_EXE_loadline")).arg("reference").arg(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    read(folder.path())
}

/// The text of every file in a folder.
fn read(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let text = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    files.map(text).collect()
}

/// The labels of every metric of every component, from the page. Histograms are there as they are queried, too.
fn metrics() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let pages = pages();
    for line in pages["metrics.md"].lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let name = cells[0].trim_matches(['|', ' ', '`']);
        let labels = cells[3].split(", ").map(|label| label.trim_matches(['`', ' ']).to_owned());
        let labels: BTreeSet<String> = labels.filter(|label| !label.is_empty()).collect();
        let ends: &[&str] = if cells[1] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        for end in ends {
            let more = (*end == "_bucket").then(|| "le".to_owned());
            found.entry(format!("{name}{end}")).or_default().extend(labels.iter().cloned().chain(more));
        }
    }
    // Prometheus' own.
    found.insert("up".to_owned(), BTreeSet::new());
    found
}

/// Everything an expression asks for is there.
fn check(expression: &str, known: &BTreeMap<String, BTreeSet<String>>, place: &str) -> BTreeSet<String> {
    let Asked { metrics, grouped } = promql::asked(expression);
    assert!(!metrics.is_empty(), "{place}: no metric in {expression}");
    let mut all: BTreeSet<String> = ["job", "instance"].map(str::to_owned).into();
    for (metric, labels) in metrics {
        let has =
            known.get(&metric).unwrap_or_else(|| panic!("{place}: no component has {metric}: {expression}"));
        for label in labels {
            let is_there = has.contains(&label) || ["job", "instance"].contains(&label.as_str());
            assert!(is_there, "{place}: {metric} has no label {label}: {expression}");
        }
        all.extend(has.iter().cloned());
    }
    for label in grouped {
        assert!(all.contains(&label), "{place}: nothing in it has a label {label}: {expression}");
    }
    all
}

fn dashboards() -> Vec<(String, Value)> {
    let files = read(&top().join("deploy/grafana"));
    files.into_iter().map(|(name, text)| (name, serde_json::from_str(&text).unwrap())).collect()
}

/// Expressions of a dashboard, with what legends show.
fn targets(dashboard: &Value) -> Vec<(String, String, String)> {
    let mut out = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let text = |field: &str| target[field].as_str().unwrap().to_owned();
            out.push((panel["title"].as_str().unwrap().to_owned(), text("expr"), text("legendFormat")));
        }
    }
    out
}

/// The alerts, each with its expression.
fn alerts() -> Vec<Value> {
    let text = fs::read_to_string(top().join("deploy/prometheus/alerts.yaml")).unwrap();
    let rules: Value = serde_saphyr::from_str(&text).unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap()).cloned().collect()
}

#[test]
fn the_reference_pages_are_what_the_program_says_of_itself() {
    let (made, kept) = (pages(), read(&top().join("docs/reference")));
    let names = |pages: &BTreeMap<String, String>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&made), names(&kept), "run `cargo xtask codegen reference`");
    for (name, text) in &made {
        assert!(
            kept[name] == *text,
            "docs/reference/{name} is not fresh: run `cargo xtask codegen reference`"
        );
    }
}

#[test]
fn every_metric_has_a_text_and_a_name_of_its_component() {
    let pages = pages();
    let mut components = 0;
    for line in pages["metrics.md"].lines() {
        components += usize::from(line.starts_with("## "));
        if line.starts_with("| `") {
            let cells: Vec<&str> = line.split(" | ").collect();
            assert_eq!(cells.len(), 5, "{line}");
            assert!(cells[4].trim_end_matches([' ', '|']).len() > 5, "nothing is said of it: {line}");
        }
    }
    assert_eq!(components, 13, "twelve, and what every process has");
    assert!(metrics().len() > 130, "{} metrics only", metrics().len());
}

#[test]
fn dashboards_ask_for_what_there_is_and_say_what_they_show() {
    let known = metrics();
    let (mut uids, mut count) = (BTreeSet::new(), 0);
    for (file, dashboard) in dashboards() {
        assert_eq!(format!("{}.json", dashboard["uid"].as_str().unwrap()), file);
        assert!(uids.insert(dashboard["uid"].as_str().unwrap().to_owned()));
        assert!(dashboard["description"].as_str().unwrap().len() > 20);
        let variables: Vec<&str> = dashboard["templating"]["list"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v["name"].as_str().unwrap())
            .collect();
        assert_eq!(variables, ["datasource", "job", "instance"], "{file}");
        let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{file} {title}: an id twice");
            let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
            for x in at("x")..at("x") + at("w") {
                for y in at("y")..at("y") + at("h") {
                    assert!(x < 24 && taken.insert((x, y)), "{file} {title}: lies over another one");
                }
            }
            if panel["type"] != "row" {
                assert!(panel["description"].as_str().is_some_and(|text| text.len() > 10), "{file} {title}");
                assert_eq!(panel["datasource"]["uid"], "${datasource}", "{file} {title}");
            }
        }
        for (title, expression, legend) in targets(&dashboard) {
            let place = format!("{file} {title}");
            assert!(expression.contains("job=~\"$job\""), "{place}: not held to the jobs chosen");
            let labels = check(&expression, &known, &place);
            for shown in legend.split("{{").skip(1) {
                let label = shown.split("}}").next().unwrap().trim();
                assert!(labels.contains(label), "{place}: nothing has the label {label} of its legend");
            }
            count += 1;
        }
    }
    assert_eq!(uids.len(), 3);
    assert!(count > 80, "{count} expressions only");
}

#[test]
fn alerts_ask_for_what_there_is_and_lead_to_what_to_do() {
    let known = metrics();
    let guide = fs::read_to_string(top().join("docs/guide/monitoring.md")).unwrap();
    let tests = fs::read_to_string(top().join("deploy/prometheus/alerts_test.yaml")).unwrap();
    let tests: Value = serde_saphyr::from_str(&tests).unwrap();
    let mut cases: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for case in
        tests["tests"].as_array().unwrap().iter().flat_map(|test| test["alert_rule_test"].as_array().unwrap())
    {
        let fires = usize::from(!case["exp_alerts"].as_array().unwrap().is_empty());
        cases.entry(case["alertname"].as_str().unwrap()).or_default()[fires] += 1;
    }
    for alert in &alerts() {
        let name = alert["alert"].as_str().unwrap();
        check(alert["expr"].as_str().unwrap(), &known, name);
        assert!(
            ["critical", "warning", "info"].contains(&alert["labels"]["severity"].as_str().unwrap()),
            "{name}"
        );
        for field in ["summary", "description"] {
            assert!(alert["annotations"][field].as_str().unwrap().len() > 10, "{name} has no {field}");
        }
        let (page, part) = alert["annotations"]["runbook_url"].as_str().unwrap().split_once('#').unwrap();
        assert_eq!((page, part), ("docs/guide/monitoring.md", name.to_lowercase().as_str()));
        assert!(guide.contains(&format!("\n#### {name}\n")), "the guide says nothing of {name}");
        let [quiet, fires] = cases.remove(name).unwrap_or_default();
        assert!(
            quiet > 0 && fires > 0,
            "{name}: {fires} cases in which it fires, {quiet} in which it does not"
        );
    }
    assert!(cases.is_empty(), "tests of alerts there are not: {cases:?}");
}

#[test]
fn alerts_fire_when_they_should() {
    let Some(promtool) = find_or_skip("promtool") else { return };
    for args in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]] {
        let ran =
            Command::new(&promtool).args(args).current_dir(top().join("deploy/prometheus")).output().unwrap();
        let said = [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(ran.status.success(), "{said}");
    }
}

/// What Prometheus answers.
fn ask(port: u16, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// A text as part of a query.
fn escaped(text: &str) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap();
    text.bytes().flat_map(|byte| ['%', digit(byte >> 4), digit(byte & 15)]).collect()
}

#[test]
fn a_real_prometheus_scrapes_components_and_evaluates_every_expression() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let up = Up::start(&["--nodes", "3"]);
    let kubeconfig = up.kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let start = |command: &str, more: &[&str]| {
        Service::start(&[&[command, "--kubeconfig", kubeconfig], more].concat())
    };
    let elected = "--leader-elect";
    let services = [
        ("loadline-scheduler", start("scheduler", &["--scheduler-name", "observed", elected])),
        ("loadline-shadow", start("scheduler", &["--shadow"])),
        ("loadline-annotator", start("annotator", &[elected])),
        ("loadline-recommender", start("recommender", &[elected])),
        ("loadline-rebalance", start("rebalance", &[elected])),
    ];

    // What is served is on the page.
    let known = metrics();
    for (job, service) in &services {
        until("the metrics", || service.get("/metrics").contains("_api_requests_total").then_some(()));
        let text = service.get("/metrics");
        let names = text
            .lines()
            .filter(|line| line.starts_with("loadline_"))
            .map(|line| line.split(['{', ' ']).next().unwrap());
        for name in names {
            assert!(
                known.contains_key(name),
                "{job} serves {name}, which is not in docs/reference/metrics.md"
            );
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let scraped = services.iter().map(|(job, service)| {
        let target = service.url().replace("http://", "");
        json!({"job_name": job, "static_configs": [{"targets": [target]}]})
    });
    let config = json!({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [top().join("deploy/prometheus/alerts.yaml").canonicalize().unwrap()],
        "scrape_configs": scraped.collect::<Vec<_>>(),
    });
    let (config_file, data) = (folder.path().join("prometheus.yml"), folder.path().join("data"));
    fs::write(&config_file, config.to_string()).unwrap();
    let flags = |port: u16| {
        vec![
            format!("--config.file={}", config_file.display()),
            format!("--storage.tsdb.path={}", data.display()),
            "--log.level=error".to_owned(),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ]
    };
    let prometheus = Running::start("prometheus", &program, flags).unwrap();
    let port = prometheus.port();

    until("every target to be scraped", || {
        let answer = ask(port, "/api/v1/targets?state=active")?;
        let targets = answer["data"]["activeTargets"].as_array()?;
        let fine = targets.iter().filter(|target| target["health"] == "up").count();
        (fine == services.len()).then_some(())
    });
    let rules = until("every rule to be evaluated", || {
        let answer = ask(port, "/api/v1/rules?type=alert")?;
        let groups = answer["data"]["groups"].as_array()?.clone();
        let rules: Vec<Value> =
            groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).cloned().collect();
        rules.iter().all(|rule| rule["health"] != "unknown").then_some(rules)
    });
    assert_eq!(rules.len(), alerts().len());
    for rule in &rules {
        assert_eq!(rule["health"], "ok", "{}: {}", rule["name"], rule["lastError"]);
    }
    // Nothing is wrong with these, so nobody is called.
    let firing = ["LoadlineDown", "LoadlineConfigurationRefused", "LoadlineCertificateRefused"];
    for rule in rules.iter().filter(|rule| firing.contains(&rule["name"].as_str().unwrap())) {
        assert_eq!(rule["state"], "inactive", "{rule}");
    }

    // A rate has a value when its metric was scraped twice.
    until("more than 20 expressions to have a value", || (values(port) > 20).then_some(()));
}

/// How many expressions of the dashboards have a value by now. All of them must be ones that Prometheus understands.
fn values(port: u16) -> usize {
    let mut answered = 0;
    for (file, dashboard) in dashboards() {
        for (title, expression, _) in targets(&dashboard) {
            let expression = expression
                .replace("$job", "loadline.*")
                .replace("$instance", ".*")
                .replace("$__rate_interval", "1m");
            let answer = ask(port, &format!("/api/v1/query?query={}", escaped(&expression))).unwrap();
            assert_eq!(answer["status"], "success", "{file} {title}: {expression}: {answer}");
            answered += usize::from(!answer["data"]["result"].as_array().unwrap().is_empty());
        }
    }
    answered
}
