//! Who goes, and who stays.

use super::*;
use crate::qos::evict::Block;
use crate::qos::gap::Category;
use crate::qos::snapshot::Missing;
use crate::select::LabelSelector;
use crate::view::{Budget, Owner};
use std::collections::BTreeMap;

#[expect(clippy::cast_precision_loss, reason = "a small number of gibibytes")]
fn gi(gibibytes: f64) -> f64 {
    gibibytes * GI as f64
}

fn drop_at(metric: &str, value: i64) -> Policy {
    policy(vec![rule("a", metric, value, "drop")], vec![evict("drop")])
}

fn cpu_at(value: i64) -> Policy {
    drop_at("cpu_total_usage", value)
}

#[test]
fn only_as_many_as_needed_go_and_memory_comes_before_cpu() {
    let rules =
        vec![rule("c", "cpu_total_usage", 6000, "drop"), rule("m", "memory_total_usage", 20 * GI, "drop")];
    let policy = policy(rules, vec![evict("drop")]);
    let samples = [("cpu_total_usage", 6500.0), ("memory_total_usage", gi(22.0))];
    // Memory: 1.1 × 2 Gi = 2.2 Gi, so b goes; it frees 0.5 cores of the 1.1 × 0.5 cores as well, and for the rest a goes.
    let pods = vec![using("a", 1.5, 1), using("b", 0.5, 3), using("c", 0.4, 1)];
    let plan = plan(&policy, &snapshot(&samples, pods));
    assert_eq!(victims(&plan), ["b", "a"]);
    let first = &plan.steps.victims[0];
    assert_eq!((first.metric, first.rule.to_string().as_str()), ("memory_total_usage", "nq/m"));
    assert_eq!(first.release["cpu_total_usage"], mc(500.0), "credited to every metric");
    let second = &plan.steps.victims[1];
    assert_eq!((second.before, second.after), (Some(mc(50.0)), Some(mc(-1450.0))));
}

// R30.
#[test]
fn what_can_be_reclaimed_is_no_relief() {
    let pods = vec![
        Pod { unreclaimable: Some(Level::whole(GI)), ..using("cache", 0.1, 8) },
        using("heap", 0.1, 2),
        using("small", 0.1, 1),
    ];
    let plan =
        plan(&drop_at("memory_total_usage", 20 * GI), &snapshot(&[("memory_total_usage", gi(22.0))], pods));
    // 2.2 Gi: the largest comes first but brings only 1 Gi; the next brings the rest.
    assert_eq!(victims(&plan), ["cache", "heap"]);
}

// R27.
#[test]
fn who_is_on_the_way_out_counts_already() {
    let mut now = snapshot(
        &[("cpu_total_usage", 7000.0)],
        vec![pod("t", 0.8), pod("e", 0.2), pod("a", 0.2), pod("b", 0.1)],
    );
    now.pods[0].deleted = Some(t(20));
    now.state.evictions.push(Eviction {
        pod: key("e"),
        uid: "uid-e".into(),
        at: t(-10),
        reply: Reply::Granted,
        grace_seconds: Some(30),
    });
    let policy = cpu_at(6000);
    let planned = plan(&policy, &now);
    // 1.1 × 1000 = 1100; 800 and 200 are going; 100 are left, for which a goes and b stays.
    assert_eq!(victims(&planned), ["a"]);
    let credited: Vec<_> = planned
        .steps
        .credited
        .iter()
        .map(|c| (short(&c.pod), c.reason.as_str(), c.release["cpu_total_usage"].to_f64()))
        .collect();
    assert_eq!(credited, [("t", "Terminating", 800.0), ("e", "Evicted", 200.0)]);
    // Past its own time and thirty seconds a pod is stuck: no relief. It is not asked again either while it is going.
    now.now = t(51);
    now.series[0].at = t(51);
    let stuck = plan(&policy, &now);
    assert_eq!(victims(&stuck), ["a", "e", "b"], "what we asked for 61 seconds ago is asked for again");
    assert!(stuck.steps.credited.is_empty());
    assert_eq!(stuck.steps.unclosed.len(), 1);
}

#[test]
fn another_pod_of_the_same_name_is_another_pod() {
    let mut now = snapshot(&[("cpu_total_usage", 6500.0)], vec![pod("a", 2.0)]);
    now.state.evictions.push(Eviction {
        pod: key("a"),
        uid: "before".into(),
        at: t(-10),
        reply: Reply::Granted,
        grace_seconds: None,
    });
    assert_eq!(victims(&plan(&cpu_at(6000), &now)), ["a"]);
}

// R28.
#[test]
fn who_frees_nothing_stays() {
    let mut unknown = pod("unknown", 0.0);
    unknown.cpu = None;
    let pods = vec![pod("idle", 0.0), unknown, pod("busy", 2.0)];
    let plan = plan(&cpu_at(6000), &snapshot(&[("cpu_total_usage", 6500.0)], pods));
    assert_eq!(victims(&plan), ["busy"]);
}

/// Why, what was asked, who goes, why one stays, how many are credited.
type Case = (&'static str, Vec<Eviction>, &'static [&'static str], Option<Block>, usize);

// R29.
#[test]
fn what_the_api_server_said_counts() {
    let asked =
        |reply, at| Eviction { pod: key("a"), uid: Arc::default(), at: t(at), reply, grace_seconds: None };
    let cases: [Case; 7] = [
        (
            "refused by a budget: not now",
            vec![asked(Reply::Refused, -10)],
            &["b"],
            Some(Block::DisruptionBudget),
            0,
        ),
        ("and asked again later", vec![asked(Reply::Refused, -31)], &["a"], None, 0),
        (
            "later still the second time",
            vec![asked(Reply::Refused, -80), asked(Reply::Refused, -40)],
            &["b"],
            Some(Block::DisruptionBudget),
            0,
        ),
        ("gone already: credited, not counted", vec![asked(Reply::Gone, -10)], &[], None, 1),
        ("another pod by now", vec![asked(Reply::Replaced, -10)], &[], None, 1),
        (
            "forbidden: not credited, not asked at once",
            vec![asked(Reply::Failed(403), -10)],
            &["b"],
            Some(Block::EvictionFailed),
            0,
        ),
        ("broken: the same", vec![asked(Reply::Failed(500), -10)], &["b"], Some(Block::EvictionFailed), 0),
    ];
    for (why, evictions, expected, blocked, credited) in cases {
        let mut now = snapshot(&[("cpu_total_usage", 6500.0)], vec![pod("a", 1.0), pod("b", 0.9)]);
        now.state.evictions = evictions;
        let plan = plan(&cpu_at(6000), &now);
        assert_eq!(victims(&plan), expected, "{why}");
        assert_eq!(plan.steps.blocked.first().map(|b| b.reason), blocked, "{why}");
        assert_eq!(plan.steps.credited.len(), credited, "{why}");
    }
}

fn budget(allowed: i64, app: &str) -> Budget {
    let selector = LabelSelector {
        match_labels: BTreeMap::from([("app".into(), app.into())]),
        ..LabelSelector::default()
    };
    Budget {
        key: key(app),
        selector: selector.selector().expect("a valid selector"),
        allowed,
        disrupted: vec![],
    }
}

fn of_app(name: &str, cores: f64, app: &str) -> Pod {
    Pod { labels: Labels::plain(&BTreeMap::from([("app".into(), app.into())])), ..pod(name, cores) }
}

#[test]
fn a_budget_spares_a_pod_and_the_next_one_is_tried() {
    let pods =
        vec![of_app("w1", 1.0, "web"), of_app("w2", 0.9, "web"), of_app("d", 0.8, "db"), pod("b", 0.7)];
    let mut now = snapshot(&[("cpu_total_usage", 7500.0)], pods);
    now.budgets = vec![budget(1, "web"), budget(0, "db")];
    // 1.1 × 1500 = 1650: w1 uses up its budget, w2 and d must stay, b goes.
    let planned = plan(&cpu_at(6000), &now);
    assert_eq!(victims(&planned), ["w1", "b"]);
    let blocked: Vec<_> = planned.steps.blocked.iter().map(|b| (short(&b.pod), b.reason.as_str())).collect();
    assert_eq!(blocked, [("w2", "DisruptionBudget"), ("d", "DisruptionBudget")]);
    now.budgets = vec![budget(5, "web"), budget(5, "web")];
    let two = plan(&cpu_at(6000), &now);
    assert_eq!(two.steps.blocked[0].reason, Block::SeveralBudgets, "the API server refuses these");
}

// R34.
#[test]
fn limits_cut_the_plan_short_and_say_so() {
    let pods: Vec<Pod> = (0..8).map(|i| pod(&format!("p{i}"), 0.5)).collect();
    let now = snapshot(&[("cpu_total_usage", 8000.0)], pods);
    let evicted = |ago: i64| Eviction {
        pod: key("x"),
        uid: Arc::default(),
        at: t(-ago),
        reply: Reply::Granted,
        grace_seconds: None,
    };
    // 1.1 × 3000 = 3300: seven are needed.
    for (why, change, expected) in [
        ("five in a cycle", Box::new(|_: &mut NodeSnapshot| ()) as Box<dyn Fn(&mut NodeSnapshot)>, 5),
        ("any number", Box::new(|s| s.options.max_per_cycle = 0), 7),
        ("nobody in the first three cycles", Box::new(|s| s.state.cycles = Some(2)), 0),
        ("then they go", Box::new(|s| s.state.cycles = Some(3)), 5),
        (
            "so many in an hour",
            Box::new(move |s| {
                s.options.max_per_hour = 4;
                s.state.evictions = vec![evicted(3599), evicted(3600), evicted(10)];
            }),
            2,
        ),
    ] {
        let mut now = now.clone();
        change(&mut now);
        let plan = plan(&cpu_at(5000), &now);
        assert_eq!(victims(&plan).len(), expected, "{why}");
        assert_eq!(plan.steps.deferred, expected < 7, "{why}");
        let open = plan.steps.unclosed.first().map(|left| left.reason);
        assert_eq!(open, (expected < 7).then_some("a limit on evictions was reached"), "{why}");
    }
}

// R34.
#[test]
fn too_young_to_go() {
    let mut young = pod("young", 2.0);
    young.started = Some(t(-30));
    let mut now = snapshot(&[("cpu_total_usage", 6500.0)], vec![young, pod("old", 1.0)]);
    now.options.min_age_seconds = 60;
    let plan = plan(&cpu_at(6000), &now);
    assert_eq!(victims(&plan), ["old"]);
    assert_eq!(plan.steps.blocked[0].reason, Block::TooYoung);
}

// R34.
#[test]
fn of_equals_one_of_each_owner_goes_first() {
    let owned = |name: &str, cores: f64, owner: &str| Pod {
        owner: Some(Owner {
            group: "apps".into(),
            kind: "ReplicaSet".into(),
            name: owner.into(),
            uid: owner.into(),
        }),
        ..pod(name, cores)
    };
    let pods = vec![owned("a1", 1.0, "a"), owned("a2", 0.9, "a"), owned("b1", 0.8, "b"), pod("c", 0.1)];
    let mut now = snapshot(&[("cpu_total_usage", 7500.0)], pods);
    // 1.1 × 1500 = 1650: a1 and b1 make 1800, though a2 uses more than b1.
    assert_eq!(victims(&plan(&cpu_at(6000), &now)), ["a1", "b1"]);
    // Planned again in the same cycle, after a1 went: its owner has lost one already.
    let mut again = now.clone();
    again.state.evictions = vec![Eviction {
        pod: key("a1"),
        uid: "uid-a1".into(),
        at: again.now,
        reply: Reply::Granted,
        grace_seconds: None,
    }];
    assert_eq!(victims(&plan(&cpu_at(6000), &again)), ["b1"]);
    again.state.evictions[0].at = t(-10);
    assert_eq!(victims(&plan(&cpu_at(6000), &again)), ["a2"], "that was another cycle");
    // There is nobody of equal rank: then it is the same owner again.
    now.pods[2].priority = 10;
    now.pods[3].priority = 10;
    assert_eq!(victims(&plan(&cpu_at(6000), &now)), ["a1", "a2"]);
}

// R33.
#[test]
fn what_is_slowed_down_has_less_left_to_free() {
    let rules =
        vec![rule("t", "cpu_total_usage", 5000, "squeeze"), rule("e", "cpu_total_usage", 6000, "drop")];
    let policy = policy(rules, vec![throttle("squeeze", 50, 0), evict("drop")]);
    let plan = plan(&policy, &snapshot(&[("cpu_total_usage", 8000.0)], vec![pod("a", 2.0), pod("b", 1.0)]));
    // Throttled: 1000 + 500. Evict: 1.1 × 2000 − 1500 = 700, of which a still brings 1000.
    assert_eq!(victims(&plan), ["a"]);
    assert_eq!(plan.steps.victims[0].release["cpu_total_usage"], mc(1000.0));
    assert!((gap(&plan, Category::Evict, "cpu_total_usage") + 300.0).abs() < 1e-9);
}

// R31.
#[test]
fn nobody_can_tell_so_one_at_a_time() {
    let policy = drop_at("disk_utilization", 90);
    let now = snapshot(&[("disk_utilization", 95.0)], vec![pod("a", 1.0), pod("b", 2.0)]);
    let first = plan(&policy, &now);
    assert_eq!((victims(&first), first.steps.mode_evict), (vec!["a"], Some(Mode::Paced)));
    assert!(!first.steps.deferred, "that is the pace, no limit was reached");
    // While it is going, nobody else goes.
    let then = next(&now, &first, 10, &[("disk_utilization", 95.0)]);
    assert!(victims(&plan(&policy, &then)).is_empty());
    let mut gone = then.clone();
    gone.pods.remove(0);
    assert_eq!(victims(&plan(&policy, &gone)), ["b"]);
    let mut all = now.clone();
    all.options.missing_evict = Missing::ActAll;
    assert_eq!(victims(&plan(&policy, &all)), ["a", "b"]);
}

#[test]
fn the_grace_is_the_shortest_any_action_gives_else_the_pods_own() {
    let mut quick = evict("quick");
    quick.evict = Some(Evict { grace_seconds: Some(5) });
    let mut slow = evict("slow");
    slow.evict = Some(Evict { grace_seconds: Some(9) });
    let rules =
        |names: &[&str]| names.iter().map(|n| rule(n, "cpu_total_usage", 6000, n)).collect::<Vec<_>>();
    let mut own = pod("a", 2.0);
    own.grace_seconds = Some(77);
    let now = snapshot(&[("cpu_total_usage", 6500.0)], vec![own]);
    let all = vec![quick, slow, evict("drop")];
    for (names, expected) in [(&["quick", "slow", "drop"][..], 5), (&["slow", "drop"], 9), (&["drop"], 77)] {
        let plan = plan(&policy(rules(names), all.clone()), &now);
        assert_eq!(plan.steps.victims[0].grace_seconds, expected, "{names:?}");
    }
}

#[test]
fn acting_on_everybody_is_worse() {
    let pods = vec![pod("a", 2.0), pod("b", 1.5), pod("c", 1.0)];
    let plan = plan(&cpu_at(6000), &snapshot(&[("cpu_total_usage", 6500.0)], pods));
    assert_eq!(victims(&plan), ["a"]);
    let naive = &plan.steps.naive;
    assert_eq!((naive.pods_disturbed, naive.released["cpu_total_usage"]), (3, mc(4500.0)));
}
