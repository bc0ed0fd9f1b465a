//! The page about the estimator, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::{Guide, Terminal};
use service::until;

const PAGE: &str = include_str!("../../../docs/guide/estimator.md");

/// Where `up` says that its estimator listens.
fn estimator(up: &Terminal) -> Option<String> {
    let said = up.said();
    let line = said.lines().find_map(|line| line.trim().strip_prefix("estimator "))?;
    Some(line.trim().split(',').next()?.to_owned())
}

/// How much room `up` says there is in a cluster, once it does.
fn room(up: &Terminal, cluster: &str) -> Option<String> {
    let said = up.said();
    let line = said.lines().rev().find_map(|line| line.split_once("room for pods of 1 cpu and 2Gi: "))?.1;
    let of = line.split(", ").find_map(|part| part.trim().strip_prefix(cluster))?;
    Some(of.trim().to_owned())
}

#[test]
fn three_clusters_say_how_many_would_fit_and_so_does_a_service_for_one_of_them() {
    let Some(guide) = Guide::start(PAGE, &["127.0.0.1:8097", "127.0.0.1:8098", "127.0.0.1:10353"]) else {
        return;
    };
    let blocks = guide.blocks();
    let [up, ask, reach, service, again] = &blocks[..] else { panic!("five blocks") };
    let up = guide.open(up);
    let address = until("the fleet", || estimator(&up));
    let most = until("the room", || room(&up, "member2"));
    assert!(most.parse::<u32>().unwrap() > 0);

    // Somebody else may have the usual port.
    let told = guide.run(&ask.replace("127.0.0.1:10352", &address));
    let fits = |told: &str| {
        told.split_whitespace().any(|word| word.trim_matches(|c: char| !c.is_ascii_digit()) == most)
    };
    assert!(fits(&told), "{most} would fit: {told}");

    guide.run(reach);
    let (_, port) = again.trim().rsplit_once(':').unwrap();
    let _service = guide.open(&service.replace("10353", port));
    until("the service", || guide.answers("127.0.0.1:8097").then_some(()));
    until("it is ready", || guide.get("127.0.0.1:8097", "/readyz").starts_with("HTTP/1.1 200").then_some(()));
    let told = guide.run(again);
    assert!(fits(&told), "{most} would fit: {told}");
    let metrics = until("the metrics", || Some(guide.get("127.0.0.1:8098", "/metrics")));
    // What the page lists.
    let (_, table) = PAGE.split_once("| metric | says |").unwrap();
    let names = table.split('`').filter(|word| word.starts_with("loadline_") || word.starts_with("karmada_"));
    let names: Vec<&str> = names.map(|name| name.split('{').next().unwrap()).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        let family = name.trim_end_matches("_total");
        assert!(metrics.contains(&format!("# TYPE {family}")), "{name} is not in {metrics}");
    }
}
