//! Acts, what came of them, and what that teaches.

use super::*;
use crate::object::Key;
use crate::qos::metric::Catalogue;
use crate::qos::metric::cpu::CPU;
use crate::qos::metric::memory::MEMORY;
use crate::qos::policy::{Action, Evict, NodeQos, Policy, Rule, RuleName};
use crate::qos::reclaim::Reclaim;
use crate::qos::scope::Scope;
use crate::qos::throttle::Step;
use crate::qos::{
    Container, CpuQuota, Level, Node, NodeSnapshot, Options, Plan, Pod, Reply, Results, Series, State, plan,
};
use crate::select::label::Expression;
use crate::view::Labels;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use std::sync::Arc;

const GI: i64 = 1 << 30;

fn t(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_735_689_600 + seconds).unwrap()
}

fn pod(name: &str, millicores: i64, gibibytes: i64) -> Pod {
    let usage = Some(Level::whole(millicores));
    let container =
        Container { name: "main".into(), usage, quota: CpuQuota::Unlimited, ..Container::default() };
    Pod {
        key: Key::new("default", name),
        uid: format!("uid-{name}").into(),
        started: Some(t(-3600)),
        cpu: usage,
        memory: Some(Level::whole(gibibytes * GI)),
        grace_seconds: Some(30),
        containers: vec![container],
        ..Pod::default()
    }
}

#[test]
fn page_cache_that_was_asked_back_is_measured_with_it_and_teaches_nothing() {
    let with_cache = |name: &str, gibibytes: i64, cache: i64| Pod {
        reclaimable: Some(Level::whole(cache * GI)),
        ..pod(name, 100, gibibytes)
    };
    let mut now = snapshot(vec![with_cache("a", 2, 3), with_cache("b", 2, 3)]);
    let asked = |name: &str| Reclaim {
        pod: Key::new("default", name),
        bytes: 2 * GI,
        metric: "memory_total_usage",
        rule: Arc::new(RuleName { object: "nq".into(), rule: "memory".into() }),
    };
    let policy = Policy::new(Catalogue::default(), &[], Vec::new(), &[]);
    let mut plan = plan(&policy, &now);
    plan.steps.reclaims = vec![asked("a"), asked("b")];
    let results = Results { reclaimed: [Key::new("default", "a")].into(), ..Results::default() };
    let mut audit = Audit::new(8);
    audit.note(policy.catalogue(), &now, &plan, &results);
    assert_eq!(audit.open().len(), 1, "of the other nobody was asked");
    (now.now, now.pods[0]) = (t(10), with_cache("a", 2, 2));
    let closed = audit.measure(policy.catalogue(), &now);
    assert_eq!((closed[0].act.kind, closed[0].measured[&MEMORY]), (Kind::Reclaimed, Level::whole(GI)));
    assert_eq!(closed[0].error(MEMORY), Some(-Level::whole(GI)));
    assert_eq!(audit.shortfalls(MEMORY, 8), Vec::<i64>::new(), "it counts for no gap");
}

/// A node of 8 cores and 32 Gi with 7 cores and 30 Gi in use.
fn snapshot(pods: Vec<Pod>) -> NodeSnapshot {
    let series = |name: &str, value| Series {
        name: name.into(),
        labels: Labels::default(),
        value: Some(Level::whole(value)),
        at: t(0),
    };
    NodeSnapshot {
        now: t(0),
        node: Node { cpu: Some(Level::whole(8000)), memory: Some(Level::whole(32 * GI)), ..Node::default() },
        series: vec![series("cpu_total_usage", 7000), series("memory_total_usage", 30 * GI)],
        latest: Vec::new(),
        pods,
        budgets: Vec::new(),
        state: State::default(),
        options: Options { excess: 0, ..Options::default() },
    }
}

/// The same pods or others, so many seconds later.
fn later(before: &NodeSnapshot, seconds: i64, pods: Vec<Pod>) -> NodeSnapshot {
    NodeSnapshot { now: t(seconds), pods, ..before.clone() }
}

/// Acts on any pod at the first sample above the line.
fn acting(metric: &str, line: i64, action: Action) -> Policy {
    let rule = Rule {
        name: "r".into(),
        metric: metric.into(),
        value: Some(Level::whole(line)),
        avoid_after: 1,
        restore_after: 1,
        action: action.name.clone(),
        ..Rule::default()
    };
    let everybody =
        Expression { key: "Namespace".into(), operator: "NotIn".into(), values: vec!["none".into()] };
    let scope = Scope {
        name: "s".into(),
        expressions: vec![everybody],
        allowed: vec![action.name.clone()],
        ..Scope::default()
    };
    let object = NodeQos { name: "nq".into(), selector: None, rules: vec![rule] };
    Policy::new(Catalogue::default(), &[object], vec![action], &[scope])
}

fn squeeze() -> Action {
    let throttle = Some(Step { percent: 20, least_percent: 10 });
    Action { name: "squeeze".into(), cool_down_seconds: 300, throttle, ..Action::default() }
}

fn drop() -> Action {
    Action { name: "drop".into(), cool_down_seconds: 300, evict: Some(Evict::default()), ..Action::default() }
}

/// Everything is written and every victim goes.
fn all_done(plan: &Plan) -> Results {
    let replies = plan.steps.victims.iter().map(|victim| (victim.pod.clone(), Reply::Granted));
    Results { replies: replies.collect(), ..Results::default() }
}

fn noted(policy: &Policy, now: &NodeSnapshot) -> Audit {
    let mut audit = Audit::new(10);
    let plan = plan(policy, now);
    assert_eq!(audit.note(&Catalogue::default(), now, &plan, &all_done(&plan)), []);
    audit
}

#[test]
fn a_container_that_is_slowed_down_released_what_it_uses_less() {
    // 7 000 used, the line at 6 800: the step of a fifth on 1 500 releases 300, enough for the gap of 200.
    let now = snapshot(vec![pod("a", 1500, 1)]);
    let policy = acting("cpu_total_usage", 6800, squeeze());
    for (uses, released, shortfall, why) in [
        (Some(1200), Some(300), Some(0), "as predicted"),
        (Some(1260), Some(240), Some(200_000_000), "a fifth is missing"),
        (Some(900), Some(600), Some(-1_000_000_000), "twice as much"),
        (Some(1800), Some(-300), Some(2_000_000_000), "it uses more than before"),
    ] {
        let mut audit = noted(&policy, &now);
        let act = audit.open().next().unwrap();
        assert_eq!((act.kind, act.predicted[&CPU]), (Kind::Throttled, Level::whole(300)), "{why}");
        let mut after = pod("a", 0, 1);
        after.containers[0].usage = uses.map(Level::whole);
        let closed = audit.measure(&Catalogue::default(), &later(&now, 10, vec![after]));
        assert_eq!(closed[0].measured.get(&CPU).copied(), released.map(Level::whole), "{why}");
        assert_eq!(closed[0].shortfall(CPU), shortfall, "{why}");
        assert_eq!(closed[0].error(CPU), released.map(|r: i64| Level::whole(r - 300)), "{why}");
        assert_eq!(audit.shortfalls(CPU, 5), shortfall.into_iter().collect::<Vec<_>>(), "{why}");
        assert_eq!(audit.open().len(), 0, "{why}");
    }
}

#[test]
fn what_cannot_be_measured_teaches_nothing() {
    let now = snapshot(vec![pod("a", 1500, 1)]);
    let policy = acting("cpu_total_usage", 6800, squeeze());
    let unknown = || {
        let mut pod = pod("a", 0, 1);
        pod.containers[0].usage = None;
        vec![pod]
    };
    let replaced = Pod { uid: "another".into(), ..pod("a", 100, 1) };
    let catalogue = Catalogue::default();
    for (seconds, pods, waits, why) in [
        (0, vec![pod("a", 1200, 1)], true, "the same moment shows nothing yet"),
        (10, unknown(), true, "the next look may know"),
        (61, unknown(), false, "nobody will know any more"),
        (10, Vec::new(), false, "it ended by itself, not because of its quota"),
        (10, vec![replaced], false, "that is another pod"),
    ] {
        let mut audit = noted(&policy, &now);
        let closed = audit.measure(&catalogue, &later(&now, seconds, pods));
        assert_eq!((closed.is_empty(), audit.open().len()), (waits, usize::from(waits)), "{why}");
        assert!(closed.iter().all(|closed| closed.shortfall(CPU).is_none()), "{why}");
        assert_eq!(audit.shortfalls(CPU, 5), Vec::<i64>::new(), "{why}");
        let tally = audit.tallies().get(&(Kind::Throttled, CPU)).copied().unwrap_or_default();
        assert_eq!((tally.measured, tally.unmeasured), (0, u64::from(!waits)), "{why}");
    }
}

#[test]
fn a_pod_that_is_gone_released_all_it_used() {
    // 30 Gi used, the line at 28 Gi: one pod of 3 Gi is enough.
    let now = snapshot(vec![pod("a", 1500, 3)]);
    let policy = acting("memory_total_usage", 28 * GI, drop());
    let catalogue = Catalogue::default();
    let mut audit = noted(&policy, &now);
    let act = audit.open().next().unwrap();
    assert_eq!((act.kind, act.predicted[&MEMORY]), (Kind::Evicted, Level::whole(3 * GI)));
    // It is given 30 seconds, and a minute more before nobody waits for it.
    assert_eq!(audit.measure(&catalogue, &later(&now, 20, vec![pod("a", 1500, 2)])), []);
    let closed = audit.clone().measure(&catalogue, &later(&now, 40, Vec::new()));
    assert_eq!(closed[0].measured[&MEMORY], Level::whole(3 * GI));
    assert_eq!(closed[0].shortfall(MEMORY), Some(0));
    // It never went, and gave up 1 of 3 Gi.
    let closed = audit.measure(&catalogue, &later(&now, 91, vec![pod("a", 1500, 2)]));
    assert_eq!(closed[0].measured[&MEMORY], Level::whole(GI));
    assert_eq!(closed[0].shortfall(MEMORY), Some(666_666_666));
}

#[test]
fn only_what_was_done_is_an_act() {
    let now = snapshot(vec![pod("a", 1500, 3)]);
    let catalogue = Catalogue::default();
    let evicting = plan(&acting("memory_total_usage", 28 * GI, drop()), &now);
    for (reply, acts) in [
        (Some(Reply::Granted), 1),
        (Some(Reply::Refused), 0),
        (Some(Reply::Failed(500)), 0),
        // It would have gone anyway.
        (Some(Reply::Gone), 0),
        (None, 0),
    ] {
        let mut audit = Audit::new(10);
        let replies = reply.map(|reply| (Key::new("default", "a"), reply)).into_iter().collect();
        audit.note(&catalogue, &now, &evicting, &Results { replies, ..Results::default() });
        assert_eq!(audit.open().len(), acts, "{reply:?}");
    }
    let throttling = plan(&acting("cpu_total_usage", 6800, squeeze()), &now);
    let unwritten = [(Key::new("default", "a"), Arc::from("main"))].into();
    let mut audit = Audit::new(10);
    audit.note(&catalogue, &now, &throttling, &Results { unwritten, ..Results::default() });
    assert_eq!(audit.open().len(), 0, "its quota stayed as it was");
}

#[test]
fn what_is_given_back_is_measured_and_teaches_nothing() {
    let mut before = pod("a", 500, 1);
    before.containers[0].quota = CpuQuota::Us(50_000);
    let mut now = snapshot(vec![before]);
    let policy = acting("cpu_total_usage", 7500, squeeze());
    let name = Arc::new(crate::qos::policy::RuleName { object: "nq".into(), rule: "r".into() });
    now.state.rules.insert(
        name.clone(),
        crate::qos::RuleState { active: true, last_triggered: Some(t(-1000)), ..Default::default() },
    );
    now.state.throttled.push(crate::qos::Throttled {
        pod: Key::new("default", "a"),
        uid: Arc::default(),
        container: "main".into(),
        original_us: -1,
        written_us: 50_000,
        unsure_us: Vec::new(),
        back_since: None,
        rules: vec![name],
    });
    let mut audit = noted(&policy, &now);
    assert_eq!(audit.open().next().map(|act| act.kind), Some(Kind::Restored));
    let closed = audit.measure(&Catalogue::default(), &later(&now, 10, vec![pod("a", 580, 1)]));
    assert_eq!(closed[0].measured[&CPU], Level::whole(80), "it uses so much more");
    assert_eq!(closed[0].shortfall(CPU), None, "what may be used need not be");
}

#[test]
fn the_record_is_bounded_and_its_sums_are_not_lost() {
    let policy = acting("cpu_total_usage", 6800, squeeze());
    let catalogue = Catalogue::default();
    let mut audit = Audit::new(3);
    let mut now = snapshot(vec![pod("a", 1500, 1)]);
    for cycle in 1..=10 {
        let plan = plan(&policy, &now);
        audit.note(&catalogue, &now, &plan, &all_done(&plan));
        // 300 are predicted, 240 released.
        now = later(&now, cycle * 10, vec![pod("a", 1260, 1)]);
        audit.measure(&catalogue, &now);
        now.pods = vec![pod("a", 1500, 1)];
        now.series[0].at = now.now;
        assert!(audit.open().len() <= 3 && audit.closed().len() <= 3);
    }
    let tally = audit.tallies()[&(Kind::Throttled, CPU)];
    assert_eq!((tally.measured, tally.unmeasured), (10, 0));
    assert_eq!(tally.predicted, Level::whole(3000));
    assert_eq!((tally.released, tally.off), (Level::whole(2400), Level::whole(600)));
    assert_eq!(audit.shortfalls(CPU, 2), [200_000_000; 2]);
    // Five pods at once: the two oldest make room, and are said not to be measured.
    let many: Vec<Pod> = ["a", "b", "c", "d", "e"].iter().map(|name| pod(name, 1000, 1)).collect();
    let now = NodeSnapshot { now: now.now + SignedDuration::from_secs(10), pods: many, ..now };
    let harder = acting("cpu_total_usage", 6000, squeeze());
    let mut now = now;
    now.series[0].at = now.now;
    let plan = plan(&harder, &now);
    assert_eq!(plan.steps.writes.len(), 5, "200 each for a gap of 1 000");
    let forgotten = audit.note(&catalogue, &now, &plan, &all_done(&plan));
    assert_eq!((forgotten.len(), audit.open().len()), (2, 3));
    assert_eq!(audit.tallies()[&(Kind::Throttled, CPU)].unmeasured, 2);
}

#[test]
fn the_excess_follows_what_is_missing_slowly() {
    const M: i64 = 1_000_000;
    for (excess, shortfalls, expected, why) in [
        (100 * M, vec![], 100 * M, "nothing is known, nothing moves"),
        (100 * M, vec![0], 87_500_000, "predictions hold: an eighth of the way to 0"),
        // A quarter is missing: wanted is 0.25 / 0.75 = 0.333, an eighth of the way there would be 0.029.
        (100 * M, vec![250 * M], 120 * M, "one step at most"),
        // 0.2 / 0.8 = 0.25 is wanted, and (0.25 − 0.2) / 8 = 0.00625.
        (200 * M, vec![200 * M; 5], 206_250_000, "the same again and again"),
        // 0 + (0.4 − 0) / 4 = 0.1; 0.1 / 0.9 = 0.111111111; (0.111111111 − 0.1) / 8 = 0.001388888.
        (100 * M, vec![0, 400 * M], 101_388_888, "a newer one counts a quarter"),
        (
            490 * M,
            vec![1000 * M; 3],
            491_250_000,
            "half as much more is the most: an eighth of the way to 0.5",
        ),
        (10 * M, vec![-5000 * M], 8_750_000, "more than predicted: never below nothing"),
    ] {
        assert_eq!(tuned(excess, &shortfalls), expected, "{why}");
    }
}

proptest! {
    #[test]
    fn the_excess_stays_within_its_bounds_and_moves_slowly(
        excess in 0..=LIMIT,
        shortfalls in prop::collection::vec(any::<i64>(), 0..50),
    ) {
        let next = tuned(excess, &shortfalls);
        prop_assert!((0..=LIMIT).contains(&next));
        prop_assert!((next - excess).abs() <= LIMIT / 25);
    }

    #[test]
    fn whatever_it_was_it_comes_within_its_bounds_and_never_leaves_the_way(
        excess in any::<i64>(),
        shortfalls in prop::collection::vec(any::<i64>(), 1..50),
    ) {
        let next = tuned(excess, &shortfalls);
        prop_assert!(next >= excess.min(0) && next <= excess.max(LIMIT));
    }

    #[test]
    fn the_same_shortfall_again_and_again_leads_to_what_closes_the_gap(missing in 0..300_000_000_i64) {
        let mut excess = 100_000_000;
        for _ in 0..300 {
            excess = tuned(excess, &[missing]);
        }
        // (1 + excess) × (1 − missing) is 1, but for the last steps that are too small to take.
        let whole = 1_000_000_000_i128;
        let taken = (whole + i128::from(excess)) * (whole - i128::from(missing)) / whole;
        prop_assert!((taken - whole).abs() < 1000, "{taken}");
    }
}
