//! The page about the agent, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::Guide;
use serde_json::Value;
use service::until;

const PAGE: &str = include_str!("../../../docs/guide/agent.md");

#[test]
fn a_node_protects_itself_says_why_and_gives_everything_back() {
    let Some(guide) = Guide::start(PAGE, &["127.0.0.1:8081"]) else { return };
    let [up, agent, pods, look, calm] = &guide.blocks()[..] else { panic!("five blocks") };
    let _up = guide.open(up);
    until("the cluster", || guide.folder().join("demo.kubeconfig").is_file().then_some(()));
    until("its node", || guide.folder().join("demo-nodes/node-00/cri.sock").exists().then_some(()));
    let _agent = guide.open(agent);
    let said = guide.run(pods);
    assert_eq!(said.matches("condition met").count(), 3, "{said}");

    let said = guide.run(look);
    for wanted in ["mixed/cpu", "cpu_total_utilization", "squeeze", "default/large", "Last acts", "throttled"]
    {
        assert!(said.contains(wanted), "{wanted:?} is not in {said}");
    }
    // The order of the seed: by use, and only who may be touched.
    let order = said.lines().find_map(|line| line.trim().strip_prefix("order by cpu_total_utilization: "));
    let order: Vec<&str> = order.unwrap_or_else(|| panic!("{said}")).split(", ").collect();
    assert_eq!(order, ["default/large", "default/small"], "{said}");
    assert!(said.lines().any(|line| line.trim().starts_with("protected: default/shop (")), "{said}");
    // Exactly as many as it takes: the gap is closed by the large one, and nobody else is told of.
    let told: Vec<&str> = said.lines().filter(|line| line.contains("Throttled")).collect();
    assert!(!told.is_empty() && told.iter().all(|line| line.contains("pod/large")), "{said}");
    let (_, gap) = told[0].rsplit_once("gap ").unwrap_or_else(|| panic!("{told:?}"));
    let (before, after) = gap.split_once(" → ").unwrap_or_else(|| panic!("{told:?}"));
    let figure = |text: &str| text.trim().parse::<f64>().unwrap();
    assert!(figure(before) > 0.0 && figure(after) <= 0.0, "{told:?}");
    let journal: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let taken = journal["state"]["throttled"].as_array().unwrap();
    assert_eq!(taken[0]["pod"], "default/large", "{journal}");
    assert_eq!(taken.len(), 1, "nobody else has less than before: {journal}");

    let said = guide.run(calm);
    let figure = |name: &str| {
        let line = said
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{name} is not in {said}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(figure("loadline_agent_throttled_total") >= 1.0, "{said}");
    assert!(figure("loadline_agent_restored_total") >= 1.0, "{said}");
    assert!(figure("loadline_agent_release_predicted{act=\"throttled\",resource=\"cpu\"}") > 0.0, "{said}");
}
