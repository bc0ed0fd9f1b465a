//! Who may be touched, and who comes first.

use super::*;
use crate::qos::candidate::{Protection, protection};
use crate::qos::order::sorted;
use crate::qos::snapshot::Order;
use crate::view::Owner;

// R18.
#[test]
fn some_pods_are_never_touched_and_some_never_evicted() {
    let daemon = Owner { group: "apps".into(), kind: "DaemonSet".into(), name: "d".into(), uid: "d".into() };
    let options = Options { agent: Some(key("agent")), ..Options::default() };
    for (expected, pod) in [
        (Some(Protection::MirrorPod), Pod { origin: Origin::Mirror, ..pod("a", 1.0) }),
        (Some(Protection::StaticPod), Pod { origin: Origin::File, ..pod("a", 1.0) }),
        (Some(Protection::CriticalPriority), Pod { priority: 2_000_000_000, ..pod("a", 1.0) }),
        (None, Pod { priority: 1_999_999_999, ..pod("a", 1.0) }),
        (
            Some(Protection::CriticalPriority),
            Pod { priority_class: "system-node-critical".into(), ..pod("a", 1.0) },
        ),
        (Some(Protection::Agent), pod("agent", 1.0)),
        (Some(Protection::ProtectedNamespace), Pod { key: Key::new("kube-system", "a"), ..pod("a", 1.0) }),
        (Some(Protection::TerminalPhase), Pod { ended: true, deleted: Some(t(0)), ..pod("a", 1.0) }),
        (Some(Protection::Terminating), Pod { deleted: Some(t(0)), opted_out: true, ..pod("a", 1.0) }),
        (Some(Protection::DaemonSet), Pod { owner: Some(daemon.clone()), ..pod("a", 1.0) }),
        (Some(Protection::OptedOut), Pod { opted_out: true, ..pod("a", 1.0) }),
        (None, pod("a", 1.0)),
    ] {
        assert_eq!(protection(&pod, &options), expected);
    }
    let rules =
        vec![rule("t", "cpu_total_usage", 5000, "squeeze"), rule("e", "cpu_total_usage", 6000, "drop")];
    let policy = policy(rules, vec![throttle("squeeze", 20, 0), evict("drop")]);
    let pods = vec![
        Pod { owner: Some(daemon), ..pod("daemon", 1.0) },
        Pod { opted_out: true, ..pod("shy", 1.0) },
        Pod { origin: Origin::Mirror, ..pod("mirror", 1.0) },
    ];
    let plan = plan(&policy, &snapshot(&[("cpu_total_usage", 8000.0)], pods));
    assert_eq!(writes(&plan), [("daemon", 80_000), ("shy", 80_000)], "slowed down they may be");
    assert!(victims(&plan).is_empty());
    assert_eq!(plan.steps.unclosed.len(), 2, "and what is left is said");
    assert_eq!(plan.steps.order["cpu_total_usage"].len(), 2);
}

// §9, R19 and R20.
#[test]
fn the_first_difference_decides() {
    let base = || pod("m", 1.0);
    let elastic = Pod { elastic_cpu: Some(mc(4000.0)), ..base() };
    let cases: [(&str, Pod, Pod); 9] = [
        ("elastic first, whatever its priority", Pod { priority: 100, ..elastic.clone() }, base()),
        ("the lower priority", Pod { priority: -1, class: Class::Guaranteed, ..base() }, base()),
        ("the lower class", base(), Pod { class: Class::Burstable, cpu: Some(mc(3000.0)), ..base() }),
        ("no class is below all", Pod { class: Class::Unset, ..base() }, base()),
        ("the larger usage", Pod { cpu: Some(mc(1001.0)), started: Some(t(-9000)), ..base() }, base()),
        ("unknown usage is the least", base(), Pod { cpu: None, ..base() }),
        (
            "the smaller share of an elastic limit",
            Pod { elastic_cpu: Some(mc(4000.0)), started: Some(t(-9000)), ..elastic.clone() },
            Pod { elastic_cpu: Some(mc(2000.0)), ..elastic.clone() },
        ),
        ("the younger", Pod { started: Some(t(-1)), key: key("z"), ..base() }, base()),
        ("who has not started is the youngest", Pod { started: None, key: key("z"), ..base() }, base()),
    ];
    let catalogue = Catalogue::default();
    let cpu = catalogue.find("cpu_total_usage").unwrap();
    for (why, first, second) in cases {
        for (pods, expected) in [([&first, &second], [0, 1]), ([&second, &first], [1, 0])] {
            assert_eq!(sorted(&pods, Some(cpu), Order::PriorityFirst), expected, "{why}");
        }
    }
    let (a, b) = (pod("a", 1.0), pod("b", 1.0));
    assert_eq!(sorted(&[&b, &a], Some(cpu), Order::PriorityFirst), [1, 0], "then the name");
    let low = Pod { priority: -5, class: Class::Guaranteed, ..pod("low", 1.0) };
    assert_eq!(sorted(&[&a, &low], Some(cpu), Order::PriorityFirst), [1, 0]);
    assert_eq!(sorted(&[&a, &low], Some(cpu), Order::ClassFirst), [0, 1]);
}

#[test]
fn the_order_of_pods_in_the_snapshot_does_not_matter() {
    let pods: Vec<Pod> = (0..20)
        .map(|i: i32| Pod { priority: i % 3, ..pod(&format!("p{i}"), f64::from(i % 5) / 2.0) })
        .collect();
    let policy = policy(vec![rule("a", "cpu_total_usage", 3000, "drop")], vec![evict("drop")]);
    let forward = plan(&policy, &snapshot(&[("cpu_total_usage", 7000.0)], pods.clone()));
    let backward = plan(&policy, &snapshot(&[("cpu_total_usage", 7000.0)], pods.into_iter().rev().collect()));
    assert_eq!(victims(&forward), victims(&backward));
    assert_eq!(forward.steps.order, backward.steps.order);
}
