//! The promises of protection, on random nodes.
//!
//! 3. No evict-and-return: a victim is not placed on the node that evicted it while that node cools.
//! 4. No action beyond the gap: the last throttled or evicted pod was needed.
//!
//! And what holds whatever is asked for: nobody is touched who may not be, quotas stay within their bounds, and the order
//! of pods in the snapshot changes nothing.

use jiff::{SignedDuration, Timestamp};
use loadline_core::cluster::{Cluster, Options as ClusterOptions};
use loadline_core::load::policy::{Policy as LoadPolicy, Rules};
use loadline_core::load::settings::Settings;
use loadline_core::object::Key;
use loadline_core::qos::gap::Category;
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::policy::{Action, Evict, NodeQos, Policy, Rule};
use loadline_core::qos::scope::Scope;
use loadline_core::qos::throttle::Step;
use loadline_core::qos::{
    Class, Container, CpuQuota, Level, Mode, Node, NodeSnapshot, Options, Plan, Planner, Pod, Series, State,
    plan,
};
use loadline_core::select::label::Expression;
use loadline_core::view::Labels;
use loadline_core::view::build::{node, pod as asking};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;

const MI: i64 = 1 << 20;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_735_689_600 + seconds).expect("a time in range")
}

/// Priority, millicores, mebibytes, request in millicores, quota in microseconds or none, is it leaving, minutes old.
type Given = (i32, i64, i64, i64, Option<i64>, bool, i64);

fn pods() -> impl Strategy<Value = Vec<Given>> {
    let quota = proptest::option::of(1_000..300_000_i64);
    let leaving = prop_oneof![9 => Just(false), 1 => Just(true)];
    let one = (-2..3_i32, 0..2000_i64, 0..2048_i64, 0..400_i64, quota, leaving, 0..100_i64);
    proptest::collection::vec(one, 1..14)
}

/// Metric (CPU or memory), line in percent of the node, what is done.
fn rules() -> impl Strategy<Value = Vec<(bool, i64, usize)>> {
    proptest::collection::vec((any::<bool>(), 20..95_i64, 0..3_usize), 1..5)
}

const ACTIONS: [&str; 3] = ["squeeze", "drop", "both"];

fn policy(rules: &[(bool, i64, usize)], step: i32) -> Policy {
    let rule = |(i, (cpu, line, action)): (usize, &(bool, i64, usize))| Rule {
        name: format!("r{i}").into(),
        metric: if *cpu { "cpu_total_usage" } else { "memory_total_usage" }.into(),
        value: Some(Level::whole(if *cpu { line * 80 } else { line * 16 * 1024 * MI / 100 })),
        avoid_after: 1,
        restore_after: 1,
        action: ACTIONS[*action].into(),
        ..Rule::default()
    };
    let object =
        NodeQos { name: "nq".into(), selector: None, rules: rules.iter().enumerate().map(rule).collect() };
    let step = Some(Step { percent: step, least_percent: 10 });
    let evict = Some(Evict::default());
    let action = |name: &str, throttle, evict| Action {
        name: name.into(),
        cool_down_seconds: 300,
        throttle,
        evict,
        ..Action::default()
    };
    let actions =
        vec![action("squeeze", step, None), action("drop", None, evict), action("both", step, evict)];
    // Those of a priority above 1 are never touched; those of 1 are not evicted by `drop`.
    let scope = |values: &str, allowed: &[&str]| Scope {
        name: values.into(),
        expressions: vec![Expression {
            key: "Priority".into(),
            operator: "In".into(),
            values: vec![values.to_owned()],
        }],
        allowed: allowed.iter().map(|name| (*name).into()).collect(),
        ..Scope::default()
    };
    let scopes = [scope("-2-0", &ACTIONS), scope("1", &["squeeze", "both"])];
    Policy::new(Catalogue::default(), &[object], actions, &scopes)
}

fn snapshot(given: &[Given], cpu: i64, memory: i64) -> NodeSnapshot {
    let pod = |(i, (priority, milli, mebi, request, quota, leaving, age)): (usize, &Given)| {
        let quota = quota.map_or(CpuQuota::Unlimited, CpuQuota::Us);
        // Nobody uses more than the quota lets through.
        let used = quota.level(100_000).map_or(Level::whole(*milli), |most| most.min(Level::whole(*milli)));
        Pod {
            key: Key::new("default", format!("p{i}")),
            uid: format!("u{i}").into(),
            priority: *priority,
            class: Class::Burstable,
            started: Some(at(-60 * age)),
            deleted: leaving.then(|| at(10)),
            cpu: Some(used),
            memory: Some(Level::whole(mebi * MI)),
            containers: vec![Container {
                name: "main".into(),
                usage: Some(used),
                quota,
                request: Some(Level::whole(*request)),
                ..Container::default()
            }],
            ..Pod::default()
        }
    };
    let sample = |name: &str, value: i64| Series {
        name: name.into(),
        labels: Labels::default(),
        value: Some(Level::whole(value)),
        at: at(0),
    };
    NodeSnapshot {
        now: at(0),
        node: Node {
            name: "n1".into(),
            cpu: Some(Level::whole(8000)),
            memory: Some(Level::whole(16 * 1024 * MI)),
            ..Node::default()
        },
        series: vec![
            sample("cpu_total_usage", cpu * 80),
            sample("memory_total_usage", memory * 16 * 1024 * MI / 100),
        ],
        latest: Vec::new(),
        pods: given.iter().enumerate().map(pod).collect(),
        budgets: Vec::new(),
        state: State::default(),
        options: Options { max_per_cycle: 0, ..Options::default() },
    }
}

/// Every step was needed when it was taken, frees something, and touches only who may be touched.
fn check(snapshot: &NodeSnapshot, found: &Plan) -> Result<(), TestCaseError> {
    let of = |key: &Key| snapshot.pods.iter().find(|pod| pod.key == *key).expect("a pod of the node");
    let mut touched = std::collections::BTreeSet::new();
    for write in &found.steps.writes {
        let (pod, container) = (of(&write.pod), &of(&write.pod).containers[0]);
        prop_assert!(pod.priority <= 1 && pod.deleted.is_none(), "{} may not be touched", write.pod);
        prop_assert!(touched.insert(write.pod.clone()), "one step a cycle");
        if found.steps.mode_throttle == Some(Mode::Precise) {
            prop_assert!(write.before.is_some_and(Level::is_open), "{} was not needed", write.pod);
        }
        prop_assert!(write.moved > Level::ZERO, "{} released nothing", write.pod);
        let new = write.quota.level(100_000).expect("a quota");
        prop_assert!(
            new >= Level::whole(10) && new >= container.request.expect("a request") - Level::whole(1)
        );
        prop_assert!(container.quota.level(100_000).is_none_or(|old| new < old), "throttling never raises");
    }
    let mut gone = std::collections::BTreeSet::new();
    for victim in &found.steps.victims {
        let pod = of(&victim.pod);
        prop_assert!(pod.priority <= 1 && pod.deleted.is_none(), "{} may not go", victim.pod);
        prop_assert!(gone.insert(victim.pod.clone()), "{} goes once", victim.pod);
        prop_assert!(victim.before.is_none_or(Level::is_open), "{} was not needed", victim.pod);
        prop_assert!(victim.release.values().any(|freed| *freed > Level::ZERO));
    }
    // What is left open had nobody left.
    for target in found.steps.targets.iter().filter(|target| target.category == Category::Evict) {
        if target.gap().is_some_and(Level::is_open) && !found.steps.deferred {
            prop_assert!(found.steps.unclosed.iter().any(|left| left.metric == target.metric.name));
        }
    }
    Ok(())
}

/// What is used and what was released, added up again from the snapshot alone, in billionths of a millicore or byte.
///
/// ```text
/// gap     = 1.1 × (used − line)                  the default excess is a tenth
/// evicted   releases what the pod uses, less what slowing it down has released already
/// slowed    releases what the container uses beyond its new quota
/// leaving   counts as gone before anything is done
/// ```
struct Books<'a> {
    snapshot: &'a NodeSnapshot,
    rules: &'a [(bool, i64, usize)],
    /// Of CPU and of memory.
    released: [i128; 2],
    /// What pods use now, by name.
    uses: std::collections::BTreeMap<Key, [i128; 2]>,
}

const SQUEEZES: [usize; 2] = [0, 2];
const DROPS: [usize; 2] = [1, 2];

impl<'a> Books<'a> {
    fn new(snapshot: &'a NodeSnapshot, rules: &'a [(bool, i64, usize)]) -> Self {
        let nano = |level: Option<Level>| level.map_or(0, Level::nano);
        let of = |pod: &Pod| (pod.key.clone(), [nano(pod.cpu), nano(pod.memory)]);
        let (leaving, staying): (Vec<&Pod>, Vec<&Pod>) =
            snapshot.pods.iter().partition(|pod| pod.deleted.is_some());
        let released = leaving.into_iter().map(of).fold([0, 0], |[a, b], (_, [c, d])| [a + c, b + d]);
        Self { snapshot, rules, released, uses: staying.into_iter().map(of).collect() }
    }

    /// The gap to a rule's line that is still open.
    fn gap(&self, (cpu, line, _): (bool, i64, usize)) -> i128 {
        let used = self.snapshot.series[usize::from(!cpu)].value.expect("measured").nano();
        let whole = if cpu { 8000 } else { 16 * 1024 * MI };
        let line = Level::whole(if cpu { line * 80 } else { whole * line / 100 }).nano();
        if used <= line { 0 } else { (used - line) * 11 / 10 - self.released[usize::from(!cpu)] }
    }

    /// The widest gap that lets this pod be acted on in one of these ways.
    fn needs(&self, pod: &Key, ways: [usize; 2]) -> i128 {
        let priority =
            self.snapshot.pods.iter().find(|known| known.key == *pod).expect("it is there").priority;
        let allowed = |action: usize| priority <= 0 || (priority == 1 && action != 1);
        let mine = self.rules.iter().filter(|(_, _, action)| ways.contains(action) && allowed(*action));
        mine.map(|rule| self.gap(*rule)).max().unwrap_or(0)
    }

    /// A container may use no more than that from now on.
    fn slow(&mut self, pod: &Key, to: Level) -> i128 {
        let uses = self.uses.get_mut(pod).expect("it is not leaving");
        let freed = (uses[0] - to.nano()).max(0);
        uses[0] -= freed;
        self.released[0] += freed;
        freed
    }

    fn evict(&mut self, pod: &Key) -> [i128; 2] {
        let freed = self.uses.remove(pod).expect("it is there, once");
        self.released = [self.released[0] + freed[0], self.released[1] + freed[1]];
        freed
    }
}

/// A quota is of whole microseconds, a hundredth of a millicore each here.
const ROUNDED: i128 = 10_000_000;

/// Promise 4 by [`Books`]: who was acted on was needed, by nobody's figures but the snapshot's; nobody who was needed was
/// left; and the plan says of itself what is so.
fn add_up(
    snapshot: &NodeSnapshot,
    rules: &[(bool, i64, usize)],
    found: &Plan,
) -> Result<usize, TestCaseError> {
    let mut books = Books::new(snapshot, rules);
    let (mut slack, mut acted) = (0, found.steps.victims.len());
    // Nobody can tell what slowing down does to memory: a rule that asks for it all the same is not about gaps.
    let precise = found.steps.mode_throttle == Some(Mode::Precise);
    for write in &found.steps.writes {
        acted += usize::from(precise);
        let needed = !precise || books.needs(&write.pod, SQUEEZES) > -slack;
        prop_assert!(needed, "{} was slowed down for nothing", write.pod);
        let freed = books.slow(&write.pod, write.quota.level(100_000).expect("a quota"));
        prop_assert!((freed - write.moved.nano()).abs() <= ROUNDED, "{freed} of {write:?}");
        slack += ROUNDED;
    }
    for victim in &found.steps.victims {
        prop_assert!(books.needs(&victim.pod, DROPS) > -slack, "{} went for nothing", victim.pod);
        let freed = books.evict(&victim.pod);
        for (name, freed) in ["cpu_total_usage", "memory_total_usage"].into_iter().zip(freed) {
            if let Some(told) = victim.release.get(name) {
                prop_assert!((freed - told.nano()).abs() <= ROUNDED, "{freed} of {name}: {victim:?}");
            }
        }
    }
    // Where a line is still passed, nobody is left whose end would help.
    for (cpu, line, action) in rules.iter().filter(|(_, _, action)| DROPS.contains(action)) {
        let open = books.gap((*cpu, *line, *action));
        for (pod, uses) in books.uses.iter().filter(|_| open > slack + 1_000) {
            let may = books.needs(pod, [*action; 2]) > slack + 1_000;
            prop_assert!(!may || uses[usize::from(!cpu)] == 0, "{pod} would have closed some of {open}");
        }
    }
    Ok(acted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // Promise 4.
    #[test]
    fn nobody_is_touched_who_was_not_needed(
        given in pods(), rules in rules(), (cpu, memory) in (10..100_i64, 10..100_i64), step in 5..60_i32,
    ) {
        let policy = policy(&rules, step);
        let mut now = snapshot(&given, cpu, memory);
        for planner in [Planner::Greedy, Planner::Minimal] {
            now.options.planner = planner;
            let found = plan(&policy, &now);
            check(&now, &found)?;
            // The same pods in another order are the same pods.
            let mut turned = now.clone();
            turned.pods.reverse();
            let again = plan(&policy, &turned);
            prop_assert_eq!(&found.steps.writes, &again.steps.writes);
            prop_assert_eq!(&found.steps.victims, &again.steps.victims);
        }
    }

    // Promise 4, for one line, as the plan itself tells it: without the last pod the gap would be open.
    #[test]
    fn the_last_one_was_needed(given in pods(), line in 20..90_i64, cpu in 30..100_i64, evicts in any::<bool>()) {
        let policy = policy(&[(true, line, usize::from(evicts))], 20);
        let found = plan(&policy, &snapshot(&given, cpu, 10));
        let Some(target) = found.steps.targets.first() else { return Ok(()) };
        let left = target.gap().expect("quantified");
        let last = if evicts {
            found.steps.victims.last().map(|victim| victim.release["cpu_total_usage"])
        } else {
            found.steps.writes.last().map(|write| write.moved)
        };
        if let Some(last) = last {
            prop_assert!((left + last).is_open(), "{left:?} are left, the last released {last:?}");
        }
    }

    // Promise 3.
    #[test]
    fn a_victim_is_not_sent_back_while_its_node_cools(
        given in pods(), line in 20..60_i64, cpu in 60..100_i64, wait in 0..400_i64,
    ) {
        let policy = policy(&[(true, line, 1)], 20);
        let found = plan(&policy, &snapshot(&given, cpu, 10));
        let rules = Rules::new(LoadPolicy::default(), Settings::default()).expect("valid settings").0;
        let mut cluster = Cluster::new(ClusterOptions { rules: Some(rules), ..ClusterOptions::default() }, at(0));
        // Two nodes: the one that was relieved is empty by all measures, the other all but full.
        cluster.set_node(&node("n1").cpu("64").memory("256Gi").facts());
        cluster.set_node(&node("n2").cpu("2").memory("2Gi").facts());
        if let Some(until) = found.closed.cools_until {
            cluster.cool("n1", until);
        }
        cluster.advance(at(wait));
        let cooling = found.closed.cools_until.is_some_and(|until| at(wait) < until);
        for (i, _) in found.steps.victims.iter().enumerate() {
            prop_assert!(found.closed.cools_until.is_some_and(|until| until >= at(0) + SignedDuration::from_secs(300)));
            let view = cluster.view(&asking(&format!("again-{i}")).cpu("100m").memory("64Mi").facts());
            let decision = cluster.decide(&view).decision().clone();
            let here = cluster.snapshot().find_node("n1").map(|node| node.id);
            if cooling {
                prop_assert_ne!(decision.node, here);
            } else {
                prop_assert_eq!(decision.node, here, "and may come back afterwards");
            }
        }
    }
}

// Promise 4, without believing a figure of the plan.
#[test]
fn releases_added_up_from_the_snapshot_show_that_everybody_was_needed() {
    let acted = Cell::new([0_usize; 2]);
    let worlds = (pods(), rules(), (10..100_i64, 10..100_i64), 5..60_i32);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let found = runner.run(&worlds, |(given, rules, (cpu, memory), step)| {
        let policy = policy(&rules, step);
        let mut now = snapshot(&given, cpu, memory);
        let mut counts = acted.get();
        for (planner, count) in [Planner::Greedy, Planner::Minimal].into_iter().zip(&mut counts) {
            now.options.planner = planner;
            *count += add_up(&now, &rules, &plan(&policy, &now))?;
        }
        acted.set(counts);
        Ok(())
    });
    found.unwrap_or_else(|why| panic!("{why}"));
    let acted = acted.get();
    println!("{acted:?} actions added up, greedy and minimal");
    assert!(acted.iter().all(|count| *count > 1_000), "{acted:?} actions only");
}

/// What the list of rules names, there is.
#[test]
fn every_rule_is_shown_by_a_test_that_exists() {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let list = std::fs::read_to_string(format!("{top}/docs/protection-rules.md")).unwrap();
    let mut code = String::new();
    for folder in [
        "crates/core/src/qos",
        "crates/core/src/qos/tests",
        "crates/core/src/qos/audit",
        "crates/core/src/qos/cgroup",
        "crates/core/src/qos/metric",
        "crates/core/tests",
        "crates/api/src/qos",
        "crates/services/src/agent/tests",
        "crates/services/tests",
        "crates/services/tests/definitions",
    ] {
        for file in std::fs::read_dir(format!("{top}/{folder}")).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                code.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    for number in 1..=34 {
        let row = format!("| R{number} |");
        let row = list.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("R{number} is missing"));
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        assert!(
            tests.split('`').skip(1).step_by(2).any(|name| name.contains('_')),
            "R{number} names no test"
        );
    }
    let names = list.split('`').skip(1).step_by(2).filter(|name| name.contains('_') && !name.contains('/'));
    let metrics = Catalogue::default();
    for name in names.filter(|name| metrics.find(name).is_none()) {
        assert!(code.contains(&format!("fn {name}(")), "there is no test {name}");
    }
}
