//! Rules that only say what they would do, and what they did before.

use super::restoring::name;
use super::*;

/// Slows down above 6000 millicores by a fifth, or only says so.
fn squeeze(strategy: policy::Strategy) -> Policy {
    let rule = Rule { strategy, ..rule("a", "cpu_total_usage", 6000, "squeeze") };
    policy(vec![rule], vec![throttle("squeeze", 20, 10)])
}

#[test]
fn a_rule_that_is_switched_to_preview_leaves_what_it_did_as_it_is() {
    let (acts, says) = (squeeze(policy::Strategy::Act), squeeze(policy::Strategy::Preview));
    let mut now = snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 2.0)]);
    let first = plan(&acts, &now);
    assert_eq!(writes(&first), [("a", 160_000)]);
    now.pods[0].containers[0].quota = CpuQuota::Us(160_000);
    now.node.taints = first.closed.taints.clone();
    // Long under the line, and longer than any cool-down.
    let mut last = first;
    for _ in 0..3 {
        now = next(&now, &last, 1000, &[("cpu_total_usage", 3000.0)]);
        last = plan(&says, &now);
        assert_eq!(writes(&last), [], "what it took stays taken");
        assert!(last.closed.present && last.closed.unchanged, "{}", last.closed.message);
        assert_eq!(last.closed.taints, now.node.taints);
        assert!(!last.preview.as_ref().unwrap().writes.is_empty(), "what would be given back is shown");
    }
    assert_eq!(last.as_planned().throttled.len(), 1, "it is remembered");

    // It acts again, or is deleted: it gives back, and opens the node.
    now = next(&now, &last, 10, &[("cpu_total_usage", 3000.0)]);
    let again = plan(&acts, &now);
    assert_eq!(writes(&again), [("a", 192_000)], "in steps");
    assert!(!again.closed.present && !again.closed.unchanged, "it has cooled long ago");
    let deleted = plan(&policy(vec![], vec![]), &now);
    assert_eq!(writes(&deleted), [("a", -1)], "at once, as with every rule that is deleted");
    assert!(!deleted.closed.present);
}

#[test]
fn a_rule_that_is_switched_to_preview_does_not_hold_what_another_did() {
    let both = |strategy| {
        let a = Rule { strategy, ..rule("a", "cpu_total_usage", 6000, "squeeze") };
        policy(vec![a, rule("b", "cpu_total_usage", 6500, "squeeze")], vec![throttle("squeeze", 20, 10)])
    };
    // Only b has acted: a was over its line, and only said so.
    let mut now = snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 2.0)]);
    let says = both(policy::Strategy::Preview);
    let first = plan(&says, &now);
    assert_eq!(first.as_planned().throttled[0].rules, [name("b")]);
    now.pods[0].containers[0].quota = CpuQuota::Us(160_000);
    now.node.taints = first.closed.taints.clone();
    now = next(&now, &first, 1000, &[("cpu_total_usage", 3000.0)]);
    let then = plan(&says, &now);
    assert_eq!(writes(&then), [("a", 192_000)]);
    assert!(!then.closed.present, "the rule that closed it has cooled");
}

#[test]
fn what_was_only_said_closes_no_node_when_the_rule_is_to_act_or_is_deleted() {
    let now = snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 2.0)]);
    let mut slow = rule("a", "cpu_total_usage", 6000, "squeeze");
    slow.restore_after = 3;
    let says = Rule { strategy: policy::Strategy::Preview, ..slow.clone() };
    let with = |rules: Vec<Rule>| policy(rules, vec![throttle("squeeze", 20, 10)]);
    let then = next(&now, &plan(&with(vec![says]), &now), 10, &[("cpu_total_usage", 5000.0)]);
    for (why, rules) in [("it is to act", vec![slow]), ("it is deleted", vec![])] {
        let plan = plan(&with(rules), &then);
        assert!(!plan.closed.present, "{why}: {}", plan.closed.message);
    }
}
