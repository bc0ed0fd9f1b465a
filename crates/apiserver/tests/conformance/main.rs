//! Does our server answer like a real kube-apiserver?
//!
//! Every case of `cases/*.txt` (see [`script`] for the language) runs against our server, and what it answers must
//! equal what a real kube-apiserver answered when `recorded/*.json` was made, except for what `intended.md` lists.
//! Where the real parts are on the machine the cases also run against them, which must still answer as recorded.
//!
//! `LOADLINE_RECORD=1` writes the record anew. `-- --recorded` leaves the real server out; other words select cases
//! by their name.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on fails by panicking"
)]

mod http;
mod mask;
mod record;
mod run;
mod script;

use crate::http::Server;
use crate::record::Record;
use crate::script::Area;
use loadline_apiserver::ApiServer;
use loadline_testkit::ControlPlane;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cases that run at the same time.
const LANES: usize = 8;

/// Most differences that may be meant.
const MOST_INTENDED: usize = 12;

/// What the real control plane does on its own, and ours without controllers.
const CONTROLLERS: &[&str] =
    &["garbage-collector-controller", "namespace-controller", "disruption-controller"];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        println!("conformance: test");
        return ExitCode::SUCCESS;
    }
    let filter: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let mut areas: Vec<Area> =
        record::scripts().iter().map(|(name, text)| script::parse(name, text)).collect();
    for area in &mut areas {
        let name = area.name.clone();
        area.cases.retain(|case| {
            filter.is_empty() || filter.iter().any(|word| format!("{name}/{}", case.name).contains(*word))
        });
    }
    let count: usize = areas.iter().map(|area| area.cases.len()).sum();
    if count == 0 {
        return ExitCode::SUCCESS;
    }
    if filter.is_empty() {
        told(count);
    }
    let recording = std::env::var_os("LOADLINE_RECORD").is_some_and(|value| value == "1");
    let plane = (recording || !words.iter().any(|word| word == "--recorded"))
        .then(|| ControlPlane::setup().controllers(CONTROLLERS).start_or_skip())
        .flatten();
    let mut recorded = Record::new();
    for area in &areas {
        recorded.extend(record::load(&area.name));
    }

    let mut good = true;
    if let Some(plane) = &plane {
        let port = plane.url().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap();
        let real = play(&Server::secure(port, plane.ca_pem(), plane.token()), &areas);
        if recording {
            for area in areas.iter().filter(|area| !area.cases.is_empty()) {
                write(area, &real, &recorded);
                recorded.extend(record::load(&area.name));
            }
        }
        good &= report("kube-apiserver", &recorded, &real, &areas, false);
    }
    let ours = play(&our_server(), &areas);
    good &= report("ours", &recorded, &ours, &areas, true);
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How much is compared is told to who reads about it.
fn told(count: usize) {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let text = std::fs::read_to_string(readme).unwrap();
    assert!(
        text.contains(&format!(" in {count} cases")),
        "README.md tells another number than {count} cases"
    );
}

/// Starts our server on a thread of its own, which ends with the process.
fn our_server() -> Server {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let server = ApiServer::default();
            let listening = server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
            sender.send(listening.address().port()).unwrap();
            listening.serve(std::future::pending()).await.unwrap();
        });
    });
    Server::plain(receiver.recv().unwrap())
}

/// Runs all cases against one server.
fn play(server: &Server, areas: &[Area]) -> Record {
    let cases: Vec<(&str, &script::Case)> =
        areas.iter().flat_map(|area| area.cases.iter().map(|case| (area.name.as_str(), case))).collect();
    let next = AtomicUsize::new(0);
    let record = Mutex::new(Record::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some((area, case)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at =
                        cases.iter().position(|(_, other)| std::ptr::eq(*other, *case)).unwrap_or_default();
                    let answers = run::run(server, case, &format!("conf{at:03}"));
                    record.lock().unwrap().insert(((*area).to_owned(), case.name.clone()), answers);
                }
            });
        }
    });
    record.into_inner().unwrap()
}

/// Writes the record of an area; cases left out by a filter keep what they have.
fn write(area: &Area, real: &Record, recorded: &Record) {
    let all = record::scripts().into_iter().find(|(name, _)| *name == area.name);
    let all = all.map(|(name, text)| script::parse(&name, &text)).unwrap();
    let mut cases: Vec<(&str, &[Value])> = Vec::new();
    for case in &all.cases {
        let key = (area.name.clone(), case.name.clone());
        assert!(!cases.iter().any(|(name, _)| *name == case.name), "two cases are called {}", case.name);
        cases.extend(
            real.get(&key).or(recorded.get(&key)).map(|answers| (case.name.as_str(), answers.as_slice())),
        );
    }
    record::save(&area.name, &cases);
}

/// Says how many cases are the same; `false` when one differs and should not, or should and does not.
fn report(who: &str, recorded: &Record, got: &Record, areas: &[Area], ours: bool) -> bool {
    let intended = record::intended();
    assert!(intended.len() <= MOST_INTENDED, "intended.md lists {} differences", intended.len());
    let (mut same, mut meant, mut wrong) = (0, 0, 0);
    let all: Vec<Area> = record::scripts().iter().map(|(name, text)| script::parse(name, text)).collect();
    for entry in &intended {
        let named =
            |area: &Area| area.cases.iter().any(|case| entry.case == format!("{}/{}", area.name, case.name));
        assert!(all.iter().any(named), "intended.md names a case that does not exist: {}", entry.case);
    }
    for area in areas {
        for case in &area.cases {
            let key = (area.name.clone(), case.name.clone());
            let title = format!("{}/{}", area.name, case.name);
            let Some(want) = recorded.get(&key) else {
                println!("{who}: {title}: not recorded, run with LOADLINE_RECORD=1");
                wrong += 1;
                continue;
            };
            let listed = intended.iter().find(|entry| ours && entry.case == title);
            let all = record::differences(want, &got[&key]);
            let (covered, other): (Vec<_>, Vec<_>) =
                all.iter().partition(|difference| listed.is_some_and(|entry| entry.covers(&difference.path)));
            for difference in &other {
                println!(
                    "{who}: {title}\n    {} {}\n    recorded {}\n    got      {}",
                    request(case, &difference.path),
                    difference.path,
                    short(&difference.want),
                    short(&difference.got)
                );
            }
            match (listed, other.is_empty(), covered.is_empty()) {
                (Some(_), true, true) => {
                    println!("{who}: {title}: intended.md says it differs, but it does not");
                    wrong += 1;
                }
                (_, false, _) => wrong += 1,
                (_, true, false) => meant += 1,
                (None, true, true) => same += 1,
            }
        }
    }
    let against = if wrong > 0 { format!(", {wrong} differ") } else { String::new() };
    println!("conformance, {who} against the record: {same} same, {meant} intended differences{against}");
    wrong == 0
}

/// A value, or as much of it as one wants to read.
fn short(value: &Value) -> String {
    let text = value["body"]["message"].as_str().map_or_else(
        || value.to_string(),
        |message| format!("{} {} {message}", value["code"], value["body"]["reason"]),
    );
    if text.chars().count() > 600 { text.chars().take(600).chain("…".chars()).collect() } else { text }
}

/// The request of the step a path starts with.
fn request(case: &script::Case, path: &str) -> String {
    let step = path.split('/').nth(1).and_then(|step| step.parse::<usize>().ok());
    let step = step.and_then(|step| case.steps.get(step - 1));
    step.map(|step| format!("{} {}", step.method, step.path)).unwrap_or_default()
}
