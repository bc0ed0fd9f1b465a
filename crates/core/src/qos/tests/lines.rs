//! Waterlines.

use super::*;
use crate::qos::gap::Category;

fn lines(plan: &Plan, category: Category, metric: &str) -> Vec<f64> {
    let of = |target: &&gap::Gap| target.category == category && target.metric.name == metric;
    let bounds = plan.steps.targets.iter().filter(of).flat_map(|target| &target.bounds);
    bounds.map(|bound| bound.value.to_f64()).collect()
}

#[test]
fn lines_of_all_objects_merge_by_action_and_metric_the_lowest_first() {
    let object = |name: &str, rules| NodeQos { name: name.into(), selector: None, rules };
    let both = Action { evict: Some(Evict::default()), ..throttle("both", 20, 10) };
    let objects = [
        object(
            "one",
            vec![rule("a", "cpu_total_usage", 6000, "drop"), rule("b", "cpu_total_usage", 6800, "both")],
        ),
        object(
            "two",
            vec![rule("a", "cpu_total_usage", 5500, "drop"), rule("c", "cpu_total_usage", 7800, "drop")],
        ),
    ];
    let actions = vec![evict("drop"), both];
    let policy = Policy::new(Catalogue::default(), &objects, actions, &[everybody(&["drop", "both"])]);
    let plan = plan(&policy, &snapshot(&[("cpu_total_usage", 7000.0)], vec![]));
    assert_eq!(lines(&plan, Category::Evict, "cpu_total_usage"), [5500.0, 6000.0, 6800.0]);
    assert_eq!(lines(&plan, Category::ThrottleDown, "cpu_total_usage"), [6800.0]);
    let befores: Vec<_> = plan.steps.targets[0].bounds.iter().map(|b| b.before.unwrap().to_f64()).collect();
    assert_eq!(befores, [1650.0, 1100.0, 220.0]);
}

#[test]
fn rules_for_other_nodes_do_not_count() {
    use crate::select::LabelSelector;
    let only = LabelSelector {
        match_labels: std::collections::BTreeMap::from([("pool".into(), "mixed".into())]),
        ..LabelSelector::default()
    };
    let object = NodeQos {
        name: "nq".into(),
        selector: Some(only),
        rules: vec![rule("a", "cpu_total_usage", 6000, "drop")],
    };
    let policy = Policy::new(Catalogue::default(), &[object], vec![evict("drop")], &[everybody(&["drop"])]);
    let mut now = snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 3.0)]);
    assert!(plan(&policy, &now).rules.is_empty());
    now.node.labels = Labels::plain(&std::collections::BTreeMap::from([("pool".into(), "mixed".into())]));
    assert_eq!(victims(&plan(&policy, &now)), ["a"]);
}

#[test]
fn any_action_closes_the_node_even_one_that_does_nothing_else() {
    let nothing = Action { name: "none".into(), cool_down_seconds: 60, ..Action::default() };
    let policy = policy(vec![rule("a", "cpu_total_usage", 6000, "none")], vec![nothing]);
    let plan = plan(&policy, &snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 3.0)]));
    assert!(plan.closed.present && plan.steps.targets.is_empty());
    assert_eq!((plan.steps.mode_throttle, plan.steps.mode_evict), (None, None));
}
