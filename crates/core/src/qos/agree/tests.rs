use super::*;
use crate::load::policy::Policy as LoadPolicy;
use crate::load::settings::Settings;
use crate::qos::metric::Catalogue;
use crate::qos::policy::{Action, Evict, NodeQos, Rule};
use crate::qos::throttle::Step;
use crate::select::LabelSelector;
use proptest::prelude::*;

const GI: i64 = 1 << 30;
const CORE: i64 = 1_000_000_000;

/// Rules with these targets for every node.
fn targets(cpu: Option<i64>, memory: Option<i64>) -> Rules {
    let percent = |percent: Option<i64>| percent.map(|p| Ratio::from_nano(p * 10_000_000));
    let settings =
        Settings { targets: Both { cpu: percent(cpu), memory: percent(memory) }, ..Settings::default() };
    Rules::new(LoadPolicy::empty(), settings).expect("targets within 0..1").0
}

fn rule(metric: &str, value: i64, action: &str) -> Rule {
    Rule {
        name: "line".into(),
        metric: metric.into(),
        value: Some(Level::whole(value)),
        avoid_after: 1,
        restore_after: 1,
        action: action.into(),
        ..Rule::default()
    }
}

fn policy(rule: Rule, selector: Option<LabelSelector>) -> Policy {
    let action = |name: &str, throttle, evict| Action {
        name: name.into(),
        cool_down_seconds: 300,
        throttle,
        evict,
        ..Action::default()
    };
    let actions = vec![
        action("slow", Some(Step::DEFAULT), None),
        action("drop", None, Some(Evict::default())),
        action("close", None, None),
    ];
    let object = NodeQos { name: "nq".into(), selector, rules: vec![rule] };
    Policy::new(Catalogue::default(), &[object], actions, &[])
}

type Map = BTreeMap<String, String>;

fn about<'a>(map: &'a Map, bare: &'a Map, allocatable: (i64, i64), capacity: (i64, i64)) -> About<'a, Map> {
    let amounts = |(milli, gibibytes): (i64, i64)| Both {
        cpu: (milli > 0).then_some(milli * 1_000_000),
        memory: (gibibytes > 0).then_some(gibibytes * GI),
    };
    About { labels: map, annotations: bare, allocatable: amounts(allocatable), capacity: amounts(capacity) }
}

/// Target in percent, metric, line; what a node has for pods and in all, in thousandths of a core and gibibytes (0: it does
/// not say); what is let in and the line, if they disagree.
type Case = (i64, &'static str, i64, (i64, i64), (i64, i64), Option<(i64, i64)>, &'static str);

#[test]
fn a_target_above_a_line_is_told_with_both_figures() {
    let m = 1_000_000;
    let cases: [Case; 12] = [
        // 0.8 × 7500m = 6000m; 70 % × 8000m = 5600m
        (
            80,
            "cpu_total_utilization",
            70,
            (7500, 30),
            (8000, 32),
            Some((6000 * m, 5600 * m)),
            "400m too many",
        ),
        // 0.8 × 7000m = 5600m
        (80, "cpu_total_utilization", 70, (7000, 30), (8000, 32), None, "equal is agreement"),
        // 0.8 × 7001m = 5600.8m
        (
            80,
            "cpu_total_utilization",
            70,
            (7001, 30),
            (8000, 32),
            Some((5_600_800_000, 5600 * m)),
            "0.8m more is not",
        ),
        // The share is larger, the amount is not: 0.72 × 7000m = 5040m against 5600m.
        (72, "cpu_total_utilization", 70, (7000, 30), (8000, 32), None, "shares are of different amounts"),
        (
            80,
            "cpu_total_usage",
            5999,
            (7500, 30),
            (8000, 32),
            Some((6000 * m, 5999 * m)),
            "a line in millicores",
        ),
        (80, "cpu_total_usage", 6000, (7500, 30), (8000, 32), None, "and one that is not passed"),
        (80, "cpu_total_usage", 5999, (7500, 30), (0, 0), Some((6000 * m, 5999 * m)), "needs no capacity"),
        (80, "cpu_total_utilization", 10, (7500, 30), (0, 0), None, "a share of nobody knows what"),
        (80, "cpu_total_usage", 100, (0, 0), (8000, 32), None, "nobody knows what is let in"),
        // 0.8 × 30Gi = 24Gi; 70 % × 32Gi = 22.4Gi
        (
            80,
            "memory_total_utilization",
            70,
            (7500, 30),
            (8000, 32),
            Some((24 * GI, 224 * GI / 10)),
            "memory",
        ),
        (80, "memory_total_usage", 24 * GI, (7500, 30), (8000, 32), None, "memory in bytes, equal"),
        (80, "cpu_load_1_min", 1, (7500, 30), (8000, 32), None, "targets are about CPU and memory"),
    ];
    let bare = Map::new();
    for (target, metric, line, allocatable, capacity, expected, why) in cases {
        let rules = targets(Some(target), Some(target));
        let found = disagreements(
            &rules,
            &policy(rule(metric, line, "drop"), None),
            &about(&bare, &bare, allocatable, capacity),
        );
        let figures: Vec<_> = found.iter().map(|one| (one.admitted, one.waterline)).collect();
        assert_eq!(figures, expected.into_iter().collect::<Vec<_>>(), "{why}");
    }
}

#[test]
fn only_rules_that_take_load_off_this_node_count() {
    let (bare, rules) = (Map::new(), targets(Some(80), None));
    let low = |action| rule("cpu_total_utilization", 10, action);
    let pool = |value: &str| LabelSelector {
        match_labels: [("pool".to_owned(), value.to_owned())].into(),
        ..LabelSelector::default()
    };
    let series = LabelSelector { match_labels: [("disk".to_owned(), "a".to_owned())].into(), ..pool("x") };
    let preview = Rule { strategy: crate::qos::policy::Strategy::Preview, ..low("drop") };
    let labelled = Rule { selector: Some(series), ..low("drop") };
    let memory = rule("memory_total_utilization", 10, "drop");
    for (rule, selector, expected, why) in [
        (low("drop"), None, 1, "evicts"),
        (low("slow"), None, 1, "slows down"),
        (low("close"), None, 0, "only closes the node"),
        (low("absent"), None, 0, "there is no such action"),
        (preview, None, 0, "only says what it would do"),
        (labelled, None, 0, "looks at series no node has"),
        (memory, None, 0, "there is no target for memory"),
        (low("drop"), Some(pool("batch")), 1, "is for this node"),
        (low("drop"), Some(pool("web")), 0, "is for other nodes"),
    ] {
        let labels = Map::from([("pool".to_owned(), "batch".to_owned())]);
        let found =
            disagreements(&rules, &policy(rule, selector), &about(&labels, &bare, (8000, 32), (8000, 32)));
        assert_eq!(found.len(), expected, "{why}");
    }
}

#[test]
fn a_node_may_have_a_target_of_its_own() {
    let bare = Map::new();
    let own = Map::from([("loadline.dev/target-cpu".to_owned(), "0.9".to_owned())]);
    let asked = policy(rule("cpu_total_utilization", 70, "drop"), None);
    let rules = targets(Some(60), None);
    let node = about(&bare, &own, (8000, 32), (8000, 32));
    let found = disagreements(&rules, &asked, &node);
    let [one] = &found[..] else { unreachable!("0.9 is above 70 %: {found:?}") };
    assert_eq!(
        one.to_string(),
        "pods come until 7200m of cpu are used (target 0.9), but rule nq/line acts above 5600m (70%): 1600m too many"
    );
    let node = About { annotations: &bare, ..node };
    assert_eq!(disagreements(&rules, &asked, &node), [], "0.6 is not");
}

#[test]
fn memory_is_told_in_bytes_and_other_nodes_are_counted() {
    let one = Disagreement {
        rule: Arc::new(RuleName { object: "nq".into(), rule: "line".into() }),
        resource: Metered::Memory,
        target: Ratio::from_nano(800_000_000),
        admitted: 24 * GI,
        waterline: 22 * GI,
        percent: None,
    };
    let text = "on n1, pods come until 24Gi of memory are used (target 0.8), but rule nq/line acts above 22Gi: 2Gi too many";
    assert_eq!(told("n1", &one, 0), text);
    assert_eq!(told("n1", &one, 1), format!("{text}; so on one more node"));
    assert_eq!(told("n1", &one, 11), format!("{text}; so on 11 more nodes"));
}

proptest! {
    /// A node that is so many times as large disagrees as well, by so many times as much.
    #[test]
    fn size_does_not_matter_to_shares(
        target in 1_i64..=100, line in 1_i64..=100, kept in 0_i64..=50, cores in 1_i64..=64, times in 1_i64..=16,
    ) {
        let bare = Map::new();
        let (rules, asked) = (targets(Some(target), None), policy(rule("cpu_total_utilization", line, "drop"), None));
        let look = |times: i64| {
            let cpu = |share: i64| Both { cpu: Some(times * cores * CORE / 100 * share), memory: None };
            let node = About { labels: &bare, annotations: &bare, allocatable: cpu(100 - kept), capacity: cpu(100) };
            disagreements(&rules, &asked, &node)
        };
        let (one, many) = (look(1), look(times));
        prop_assert_eq!(one.len(), many.len());
        for (one, many) in one.iter().zip(&many) {
            prop_assert_eq!(one.admitted * times, many.admitted);
            prop_assert_eq!(one.waterline * times, many.waterline);
        }
        // Said by multiplying out: target × (100 − kept) is more than line × 100.
        prop_assert_eq!(!one.is_empty(), target * (100 - kept) > line * 100);
    }

    /// A higher target, or a lower line, never makes a disagreement go away.
    #[test]
    fn more_is_never_less(
        target in 1_i64..=99, line in 2_i64..=100_000, allocatable in 1_i64..=64_000, more in 0_i64..=1,
    ) {
        let bare = Map::new();
        let look = |target, line| {
            let node = about(&bare, &bare, (allocatable, 0), (0, 0));
            let found = disagreements(&targets(Some(target), None), &policy(rule("cpu_total_usage", line, "drop"), None), &node);
            found.first().map(Disagreement::excess)
        };
        let before = look(target, line);
        prop_assert!(look(target + more, line) >= before);
        prop_assert!(look(target, line - more) >= before);
    }
}
