//! Policies that make no sense: a reason each, and nobody is touched for them.

use super::*;
use crate::select::LabelSelector;
use crate::select::label::Expression;

#[test]
fn what_cannot_be_used_is_left_out_and_said() {
    let good = || rule("good", "cpu_total_usage", 6000, "drop");
    let broken = LabelSelector {
        match_expressions: vec![Expression { key: "a".into(), operator: "Near".into(), values: vec![] }],
        ..LabelSelector::default()
    };
    let mut selecting = rule("r", "cpu_total_usage", 6000, "drop");
    selecting.selector = Some(broken);
    let mut unread = rule("r", "cpu_total_usage", 1, "drop");
    unread.value = None;
    for (bad, expected, phases_left) in [
        (rule("r", "cpu_fan_speed", 6000, "drop"), "there is no metric \"cpu_fan_speed\"", 1),
        (rule("r", "cpu_total_usage", 0, "drop"), "its value must be a quantity above 0", 1),
        (unread, "its value must be a quantity above 0", 1),
        (selecting, "\"Near\" is no operator", 1),
        (rule("r", "cpu_total_usage", 6000, "vanished"), "there is no AvoidanceAction \"vanished\"", 2),
        (rule("r", "cpu_total_utilization", 101, "drop"), "above 101 percent", 2),
        (rule("r", "cpu_total_usage", 4, "drop"), "is another unit meant?", 2),
        (good(), "there twice", 1),
    ] {
        let policy = policy(vec![good(), bad], vec![evict("drop")]);
        assert!(
            policy.warnings().iter().any(|w| w.contains(expected)),
            "{expected}: {:?}",
            policy.warnings()
        );
        let samples = [("cpu_total_usage", 6500.0), ("cpu_total_utilization", 81.25)];
        let plan = plan(&policy, &snapshot(&samples, vec![pod("a", 2.0), pod("b", 1.0)]));
        assert_eq!(plan.rules.len(), phases_left, "{expected}");
        assert!(plan.warnings.iter().any(|w| w.contains(expected)), "{expected}");
        assert!(!victims(&plan).is_empty(), "the others are not affected: {expected}");
    }
}

#[test]
fn a_rule_that_evicts_before_another_throttles_is_pointed_at() {
    let rules =
        vec![rule("e", "cpu_total_usage", 5000, "drop"), rule("t", "cpu_total_usage", 6000, "squeeze")];
    let policy = policy(rules, vec![evict("drop"), throttle("squeeze", 20, 10)]);
    assert_eq!(
        policy.warnings(),
        ["rule nq/e evicts at cpu_total_usage 5000 before rule nq/t throttles at 6000"]
    );
}

#[test]
fn pods_without_anything_known_are_left_alone() {
    let policy = policy(
        vec![rule("t", "cpu_total_usage", 5000, "squeeze"), rule("e", "cpu_total_usage", 6000, "drop")],
        vec![throttle("squeeze", 20, 10), evict("drop")],
    );
    let nothing = Pod { key: key("x"), ..Pod::default() };
    let plan = plan(&policy, &snapshot(&[("cpu_total_usage", 8000.0)], vec![nothing]));
    assert!(writes(&plan).is_empty() && victims(&plan).is_empty());
    assert_eq!(plan.steps.unclosed.len(), 2);
}

#[test]
fn a_node_that_does_not_say_how_much_it_has_makes_shares_imprecise() {
    let policy = policy(vec![rule("m", "memory_total_utilization", 80, "drop")], vec![evict("drop")]);
    let mut now = snapshot(&[("memory_total_utilization", 90.0)], vec![pod("a", 1.0), pod("b", 1.0)]);
    now.node.memory = None;
    let plan = plan(&policy, &now);
    assert_eq!((plan.steps.mode_evict, victims(&plan).len()), (Some(Mode::Paced), 1));
}
