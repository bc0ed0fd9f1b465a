//! Policies that make no sense: a reason each, and nobody is touched for them.

use super::*;
use crate::qos::policy::Strategy;
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
fn of_two_objects_that_contradict_each_other_both_count_and_neither_more_than_it_must() {
    let object = |name: &str, one: Rule| NodeQos { name: name.into(), selector: None, rules: vec![one] };
    let gentle = || object("gentle", rule("t", "cpu_total_usage", 7000, "squeeze"));
    let strict = || object("strict", rule("e", "cpu_total_usage", 6000, "drop"));
    let of = |objects: &[NodeQos]| {
        let actions = vec![evict("drop"), throttle("squeeze", 20, 10)];
        Policy::new(Catalogue::default(), objects, actions, &[everybody(&["drop", "squeeze"])])
    };
    let pods = || vec![pod("a", 2.0), pod("b", 1.5), pod("c", 1.0)];
    // Over both lines by 200 and 1200. Throttling comes first: 1.1 × 200 = 220 by 20 % of 2000; evicting has 1.1 × 1200 = 1320
    // to find, and whoever uses most is enough.
    let now = snapshot(&[("cpu_total_usage", 7200.0)], pods());
    for objects in [[gentle(), strict()], [strict(), gentle()]] {
        let policy = of(&objects);
        let told = "rule strict/e evicts at cpu_total_usage 6000 before rule gentle/t throttles at 7000";
        assert_eq!(policy.warnings(), [told]);
        let plan_ = plan(&policy, &now);
        assert_eq!(victims(&plan_), ["a"], "one is enough for the line that is lower");
        assert!(writes(&plan_).len() <= 1, "{:?}", writes(&plan_));
        assert!(plan_.warnings.iter().any(|warning| warning == told));
        // Between the lines only the one that is passed counts.
        let between = plan(&policy, &snapshot(&[("cpu_total_usage", 6500.0)], pods()));
        assert_eq!((victims(&between), writes(&between)), (vec!["a"], vec![]));
    }

    // One only looks on at the same line at which the other acts: the act is that of the one alone.
    let mut looks_on = rule("p", "cpu_total_usage", 6000, "drop");
    looks_on.strategy = Strategy::Preview;
    let alone = plan(&of(&[strict()]), &now);
    for objects in
        [[object("looks", looks_on.clone()), strict()], [strict(), object("looks", looks_on.clone())]]
    {
        let both = plan(&of(&objects), &now);
        assert_eq!((victims(&both), writes(&both)), (victims(&alone), writes(&alone)));
    }
    let preview = plan(&of(&[object("looks", looks_on)]), &now);
    assert_eq!((victims(&preview), writes(&preview)), (vec![], vec![]), "alone it touches nobody");

    // Whether nodes that both are for exist is not known: it is said where it would matter.
    let only =
        LabelSelector { match_labels: [("pool".into(), "batch".into())].into(), ..LabelSelector::default() };
    let elsewhere = NodeQos { selector: Some(only), ..strict() };
    let policy = of(&[gentle(), elsewhere]);
    assert!(
        policy.warnings()[0].ends_with("throttles at 7000, on nodes both are for"),
        "{:?}",
        policy.warnings()
    );
    assert_eq!(victims(&plan(&policy, &now)), Vec::<&str>::new(), "the node is not in that pool");
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
