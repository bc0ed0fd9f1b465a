//! `loadline agent` on a real node: real processes in real cgroups are slowed down by a real container runtime, and get
//! everything back.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/protected.rs"]
mod protected;
#[path = "common/service.rs"]
mod service;

use loadline_testkit::{ControlPlane, RealNode};
use protected::{Stage, UNLIMITED};
use service::until;

#[test]
fn a_node_over_its_line_is_brought_below_it_and_everything_comes_back() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let stage = Stage::new(&plane, &node);
    // 300 + 2 × 600 = 1500 of 2000 millicores.
    stage.run("shop", "300", false);
    stage.run("batch-a", "600", true);
    stage.run("batch-b", "600", true);
    for name in ["shop", "batch-a", "batch-b"] {
        assert_eq!(stage.quota(name), UNLIMITED, "{name}");
    }
    let agent = stage.agent(&["--act"]);
    agent.until("rules: there are none");
    // A step takes 40 %: both go from 600 to 360, which is 1020 and 1.1 × 20 too much; then one more step of one of them.
    stage.throttle_above(1000, 40);
    until("both are slowed down", || {
        let below = |name: &str| (1..60_000).contains(&stage.quota(name));
        (below("batch-a") && below("batch-b")).then_some(())
    });
    until("the node is below its line", || (stage.used_milli() < 1000.0).then_some(()));
    assert_eq!(stage.quota("shop"), UNLIMITED, "nobody allowed that");
    assert!(stage.is_tainted());
    stage.until_journal_equals_cgroups(&["batch-a", "batch-b"]);

    // With the others gone there is room for all that is left.
    stage.delete("shop");
    stage.delete("batch-b");
    until("what is left has everything back", || (stage.quota("batch-a") == UNLIMITED).then_some(()));
    until("the node is open again", || (!stage.is_tainted()).then_some(()));
    assert_eq!(stage.journal()["state"]["throttled"].as_array().unwrap().len(), 0);
}
