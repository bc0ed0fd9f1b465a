//! The page about the shadow, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::Guide;
use serde_json::Value;
use service::until;

const PAGE: &str = include_str!("../../../docs/guide/shadow.md");

#[test]
fn what_the_shadow_would_have_done_is_told_and_nothing_is_written() {
    let Some(guide) = Guide::start(PAGE, &["127.0.0.1:8090"]) else { return };
    let [up, by_requests, shadow, look] = &guide.blocks()[..] else { panic!("four terminals") };
    let _up = guide.open(up);
    until("the cluster", || guide.folder().join("demo.kubeconfig").is_file().then_some(()));
    let (_by_requests, shadow) = (guide.open(by_requests), guide.open(shadow));
    let said = guide.run(look);
    let on_hot: u64 =
        said.lines().find_map(|line| line.parse().ok()).expect("how many of web are on node-00");
    assert!(on_hot > 0, "by requests some land on the busy node: {said}");
    // It is brought up to date once a second.
    let report = until("all pods to be counted", || {
        let answer = guide.get("127.0.0.1:8090", "/debug/shadow");
        let report: Value = serde_json::from_str(answer.lines().last()?).ok()?;
        let counted = report["podsSame"].as_u64()? + report["podsElsewhere"].as_u64()?;
        (counted == 15).then_some(report)
    });
    assert_eq!(report["shadow"]["podsOnHotNodes"], 3, "none but those that name it: {report}");
    assert_eq!(report["actual"]["podsOnHotNodes"].as_u64(), Some(3 + on_hot), "{report}");

    let metrics = guide.get("127.0.0.1:8090", "/metrics");
    let calls: Vec<&str> = metrics.lines().filter(|line| line.contains("verb=\"")).collect();
    assert!(calls.len() > 5, "{metrics}");
    for call in calls {
        let reads = call.contains("verb=\"list\"") || call.contains("verb=\"watch\"");
        assert!(reads, "it only reads: {call}");
    }
    let printed = shadow.end();
    assert!(
        printed.contains("and wrote nothing.") && printed.contains("node-seconds over target"),
        "{printed}"
    );
}
