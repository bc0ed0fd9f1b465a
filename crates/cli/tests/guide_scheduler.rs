//! The page about the scheduler, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::Guide;
use service::until;

const PAGE: &str = include_str!("../../../docs/guide/scheduler.md");

#[test]
fn pods_of_two_schedulers_in_one_process_are_placed_and_a_wrong_configuration_changes_nothing() {
    let Some(guide) = Guide::start(PAGE, &["127.0.0.1:8090"]) else { return };
    let [up, scheduler, pods, explain, waits, second] = &guide.blocks()[..] else { panic!("six blocks") };
    let _up = guide.open(up);
    until("the cluster", || guide.folder().join("demo.kubeconfig").is_file().then_some(()));
    let _scheduler = guide.open(scheduler);
    let said = guide.run(pods);
    assert_eq!(said.matches("Successfully assigned default/web-").count(), 6, "{said}");
    let attempts = "scheduler_schedule_attempts_total{result=\"scheduled\",profile=\"loadline\"} 6";
    assert!(said.contains(attempts), "{said}");

    // Every metric of the policy with what it says, how old that is, and its limit, for every node. Pods may be placed before the
    // first figures of the nodes are written, so a reader may have to ask twice.
    let row = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], [node, "cpu_usage_avg_5m", value, "0.65", _, age, ..]
            if node.starts_with("node-0") && value.parse::<f64>().is_ok() && age.ends_with('s'))
    };
    let said = until("a figure of every node", || {
        let said = guide.run(explain);
        (said.lines().filter(row).count() == 3).then_some(said)
    });
    let (asked, read) = said.split_at(said.rfind("default/web-").unwrap());
    for (wanted, text) in [
        (" is on node-0", asked),
        ("sent to node-0", asked),
        ("3 nodes would have done", asked),
        ("Now another one like it would go to node-0", asked),
        ("NODE     FITS  SCORE  LOAD  REASON", asked),
        (" is on node-0", read),
        ("Now another one like it would go to node-0", read),
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in {text}");
    }
    assert!(!read.contains("sent to"), "whoever only reads the cluster remembers nothing: {read}");

    // A pod that waits: what would have to be different, and what each node would be worth.
    let said = guide.run(waits);
    for wanted in [
        "default/large has no node",
        "had to wait: 0/3 nodes are available: ",
        "Now it would wait: 0/3 nodes are available: ",
        "2 Insufficient cpu",
        "1 node(s) would pass the load line",
        "  node-01 would fit if the cpu target were ",
        "LEAST  BALANCED  TAINTS  NODE AFFINITY  POD AFFINITY  SPREAD  IMAGES",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is not in {said}");
    }
    let parts = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], [node, least, _, _, _, _, _, _]
            if node.starts_with("node-0") && least.parse::<i64>().is_ok())
    };
    assert_eq!(said.lines().filter(parts).count(), 3, "{said}");

    let said = guide.run(second);
    assert!(said.contains("pod/job condition met"), "{said}");
    assert!(said.contains("configuration: "), "the wrong one is told: {said}");
    let metrics = guide.get("127.0.0.1:8090", "/metrics");
    for wanted in [
        "scheduler_schedule_attempts_total{result=\"scheduled\",profile=\"batch\"} 1",
        "loadline_scheduler_configuration_failures_total 1",
        "scheduler_pending_pods{queue=\"unschedulable\"} 0",
        "scheduler_cache_size{type=\"nodes\"} 3",
    ] {
        assert!(metrics.contains(wanted), "{wanted} is not in {metrics}");
    }
    let ready = guide.get("127.0.0.1:8090", "/readyz");
    assert!(ready.contains("200 OK") && ready.contains("active"), "the last good one stays: {ready}");
}
