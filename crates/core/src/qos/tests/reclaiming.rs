//! Page cache that is asked back (R23).

use super::*;
use crate::qos::gap::Category;

/// In tenths of a gibibyte, rounded down to a byte.
fn tenths(of_gibibyte: i64) -> i64 {
    of_gibibyte * GI / 10
}

/// A pod with so many gibibytes of memory, and so many tenths of one in page cache it has not used of late.
fn caching(name: &str, gibibytes: i64, reclaimable: Option<i64>) -> Pod {
    Pod { reclaimable: reclaimable.map(|of| Level::whole(tenths(of))), ..using(name, 0.1, gibibytes) }
}

fn ask_back(name: &str) -> Action {
    Action { name: name.into(), cool_down_seconds: 300, reclaim: true, ..Action::default() }
}

/// `pod bytes` of all that are asked, in order.
fn asked(plan: &Plan) -> Vec<(&str, i64)> {
    plan.steps.reclaims.iter().map(|one| (short(&one.pod), one.bytes)).collect()
}

/// The node uses 22 Gi and the line is at 20 Gi: 1.1 × 2 Gi = 2.2 Gi to the line.
fn over(pods: Vec<Pod>) -> NodeSnapshot {
    let used = Level::whole(22 * GI).to_f64();
    snapshot(&[("memory_total_usage", used)], pods)
}

fn at_20(actions: Vec<Action>, action: &str) -> Policy {
    policy(vec![rule("m", "memory_total_usage", 20 * GI, action)], actions)
}

/// Pods, what is asked of whom, and why.
type Case = (Vec<Pod>, Vec<(&'static str, i64)>, &'static str);

#[test]
fn page_cache_is_asked_back_in_the_order_of_memory_up_to_the_gap() {
    let gap = Level::whole(2 * GI).times(11, 10).nano() / Level::whole(1).nano();
    let gap = i64::try_from(gap).unwrap();
    let cases: Vec<Case> = vec![
        (
            vec![caching("small", 1, Some(9)), caching("large", 8, Some(15)), caching("middle", 4, Some(10))],
            // 1.5 Gi, then 0.7 Gi of the 1 Gi it has, then nothing is left to ask for.
            vec![("large", tenths(15)), ("middle", gap - tenths(15))],
            "min(reclaimable, what is left of the gap)",
        ),
        (vec![caching("a", 8, Some(50))], vec![("a", gap)], "never more than the gap"),
        (vec![caching("a", 8, Some(3))], vec![("a", tenths(3))], "never more than there is"),
        (
            vec![caching("a", 8, None), caching("b", 4, Some(0))],
            vec![],
            "unknown is not asked for, nothing neither",
        ),
    ];
    for (pods, expected, why) in cases {
        let plan = plan(&at_20(vec![ask_back("back")], "back"), &over(pods));
        assert_eq!(asked(&plan), expected, "{why}");
        assert!(plan.steps.writes.is_empty() && plan.steps.victims.is_empty(), "{why}");
    }
}

#[test]
fn what_is_asked_back_counts_for_nothing_until_it_is_measured() {
    let both = Action { evict: Some(Evict::default()), ..ask_back("both") };
    let pods = || vec![caching("a", 3, Some(30)), caching("b", 1, Some(10))];
    let with = plan(&at_20(vec![both], "both"), &over(pods()));
    let without = plan(&at_20(vec![evict("drop")], "drop"), &over(pods()));
    assert_eq!(asked(&with).len(), 1);
    assert_eq!(victims(&with), victims(&without), "whoever had to go still has to");
    let metric = "memory_total_usage";
    assert_eq!(
        gap(&with, Category::Evict, metric).to_bits(),
        gap(&without, Category::Evict, metric).to_bits()
    );
    assert_eq!(with.steps.targets.len(), 1, "it is no gap of its own");
}

#[test]
fn who_may_not_be_touched_is_not_asked() {
    let mut pods =
        vec![caching("system", 9, Some(5)), caching("going", 8, Some(5)), caching("other", 7, Some(5))];
    pods[0].priority_class = "system-node-critical".into();
    pods[1].deleted = Some(t(20));
    pods[2].opted_out = true;
    let now = over(pods);
    let planned = plan(&at_20(vec![ask_back("back")], "back"), &now);
    assert_eq!(asked(&planned), [], "8 Gi are on the way out, which is more than the gap");
    let now = NodeSnapshot { pods: vec![now.pods[0].clone(), now.pods[2].clone()], ..now };
    let planned = plan(&at_20(vec![ask_back("back")], "back"), &now);
    assert_eq!(asked(&planned), [("other", tenths(5))], "who must not be evicted loses nothing by it");
    let nobody = policy_for(
        vec![rule("m", "memory_total_usage", 20 * GI, "back")],
        vec![ask_back("back")],
        &[everybody(&["another"])],
    );
    assert_eq!(asked(&plan(&nobody, &now)), [], "nobody allowed it");
}

#[test]
fn only_rules_on_memory_that_are_over_their_line_ask() {
    let now = over(vec![caching("a", 8, Some(5))]);
    let cpu = policy(vec![rule("c", "cpu_total_usage", 6000, "back")], vec![ask_back("back")]);
    let busy = NodeSnapshot { series: vec![series("cpu_total_usage", 7000.0)], ..now.clone() };
    assert_eq!(asked(&plan(&cpu, &busy)), [], "page cache is no CPU");
    let policy = at_20(vec![ask_back("back")], "back");
    let calm = NodeSnapshot { series: vec![series("memory_total_usage", 1.0)], ..now.clone() };
    assert_eq!(asked(&plan(&policy, &calm)), [], "under the line");
    let dry = NodeSnapshot { options: Options { dry_run: true, ..Options::default() }, ..now.clone() };
    let planned = plan(&policy, &dry);
    assert_eq!(asked(&planned), [], "a preview does nothing");
    assert_eq!(planned.preview.map(|steps| steps.reclaims.len()), Some(1), "and says what it would do");
    let told: Vec<String> = plan(&policy, &now).events().into_iter().map(|event| event.message).collect();
    let text = format!("nq/m: the kernel is asked for {} bytes of page cache", tenths(5));
    assert!(told.contains(&text), "{told:?}");
}
