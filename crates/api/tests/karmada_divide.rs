//! We divide replicas as karmada-scheduler does: the same clusters, the same numbers, the same condition.
//!
//! The real scheduler, v1.18.2, decides about hundreds of random bindings in random fleets: first without estimators,
//! then with ones that answer from a table. Most have been decided about before; and those it has scheduled are changed
//! and decided about again. Each is asked of us twice. With `Options::upstream` the answers must be equal, and as we
//! would have them, equal or one of the differences in `docs/division-differences.md`, all of which must come up. As we would
//! have them, they must also be what a slow division says that was written from that document (`core/tests/division/oracle.rs`).
//!
//! | variable | meaning |
//! |---|---|
//! | `LOADLINE_FLEETS` | how many fleets with and without estimators each, 5 if not set |
//! | `LOADLINE_SEED` | their seed |

#[path = "fleets/answers.rs"]
mod answers;
#[path = "worlds/dice.rs"]
mod dice;
#[path = "fleets/generate.rs"]
mod generate;
#[path = "../../core/tests/division/oracle.rs"]
mod oracle;
#[path = "fleets/ours.rs"]
mod ours;
#[path = "fleets/rows.rs"]
mod rows;

use answers::Answers;
use dice::Dice;
use generate::CLUSTERS;
use loadline_core::divide::Opinion;
use loadline_testkit::karmada::{self, Channel, Decided, Decision, Karmada, Scheduler, Version};
use ours::{Question, reproduction, upstream};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::Instant;

/// Bindings decided about together.
const BATCH: usize = 50;

const SEED: u64 = 20_261_116;

/// Fleets with estimators, and as many without.
const FLEETS: usize = 5;

/// Flags with which the scheduler neither waits nor tries again what has failed.
const FLAGS: [&str; 3] = ["--kube-api-qps=1000", "--kube-api-burst=2000", "--rate-limiter-base-delay=600s"];

fn number<T: FromStr<Err: Debug>>(variable: &str, otherwise: T) -> T {
    env::var(variable).map_or(otherwise, |text| text.parse().expect("a whole number"))
}

/// What was compared, and what came of it.
#[derive(Default)]
struct Tally {
    compared: usize,
    equal: usize,
    /// Where we differ from Karmada, and so are compared with what the documents say alone.
    own: usize,
    /// How often each difference came up.
    rows: BTreeMap<&'static str, usize>,
    kinds: BTreeMap<String, usize>,
    faults: Vec<String>,
}

impl Tally {
    fn compare(
        &mut self,
        name: &str,
        fleet: &[Value],
        decided: &Decided,
        opinions: Option<&BTreeMap<String, Opinion>>,
    ) {
        let question = Question::new(fleet, &decided.binding, opinions);
        let theirs = &decided.decision;
        self.compared += 1;
        for kind in rows::kinds(&question, theirs) {
            *self.kinds.entry(kind).or_default() += 1;
        }
        let mut fault = |what: &str, ours: &Decision| {
            let again = reproduction(fleet, &decided.binding, &question);
            self.faults.push(format!("{name}, {what}:\n  karmada: {theirs:?}\n  ours:    {ours:?}\n{again}"));
        };
        let like = question.decision(upstream());
        if !rows::agree(&like, theirs) {
            let Some(row) = rows::always(&question, &like, theirs) else {
                fault("as Karmada does it", &like);
                return;
            };
            *self.rows.entry(row).or_default() += 1;
        }
        let own = question.decision(question.own());
        // What is ours no other program can judge: the documents do, through an oracle that knows nothing else.
        let documented = question.documented();
        if own != documented {
            let what = format!("as we do it, which should be\n  {documented:?}");
            fault(&what, &own);
            return;
        }
        if own == like {
            self.equal += 1;
            return;
        }
        self.own += 1;
        match rows::causes(&question) {
            None => fault("as we do it", &own),
            Some(causes) => {
                for row in causes {
                    *self.rows.entry(row).or_default() += 1;
                }
            }
        }
    }
}

/// Which fleet.
#[derive(Clone, Copy)]
struct Plan {
    seed: u64,
    at: usize,
    /// Its first cluster is being deleted; it stays so.
    leaves: bool,
}

/// One fleet: bindings, and what becomes of them.
fn tell(scheduler: &Scheduler<'_>, plan: Plan, answers: Option<&Answers>, tally: &mut Tally) {
    let Plan { seed, at, leaves } = plan;
    let dice = &mut Dice::new(seed, at);
    let mut fleet = generate::fleet(dice);
    if leaves {
        fleet[0]["metadata"]["finalizers"] = json!(["loadline.dev/stay"]);
        fleet[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    scheduler.change_fleet(&fleet).expect("the fleet is known");
    let mut batch = scheduler.batch("default").expect("bindings can be watched");
    let bindings: Vec<Value> = (0..BATCH).map(|n| generate::binding(&format!("b{at}-{n}"), dice)).collect();
    let mut opinions: BTreeMap<String, BTreeMap<String, Opinion>> = BTreeMap::new();
    if let Some(answers) = answers {
        for binding in &bindings {
            let (name, said) = (name(binding), ours::opinions(dice));
            answers.tell(&name, said.clone());
            opinions.insert(name, said);
        }
    }
    let decided = batch.create(&bindings).expect("all are decided about");
    for one in &decided {
        let name = name(&one.binding);
        tally.compare(&format!("seed {seed}, {name}"), &fleet, one, opinions.get(&name));
    }

    // What is duplicated would be looked at again if clusters changed.
    let other_fleet = dice.chance(50);
    let divided = |binding: &Value| {
        binding["spec"]["replicas"].as_i64() > Some(0)
            && binding["spec"]["placement"]["replicaScheduling"]["replicaSchedulingType"] == "Divided"
    };
    // One that is to be divided anew is so again and again, as the time it was asked for is in the future.
    let calm = |one: &&Decided| {
        one.decision.reason == "Success" && one.binding["spec"]["rescheduleTriggeredAt"].is_null()
    };
    let kept = decided.iter().filter(calm);
    let kept: Vec<String> =
        kept.filter(|one| !other_fleet || divided(&one.binding)).map(|one| name(&one.binding)).collect();
    let rested = batch.rest(&kept).expect("all come to rest");
    if other_fleet {
        for cluster in &mut fleet {
            cluster["status"] = generate::status(dice);
        }
        scheduler.change_fleet(&fleet).expect("the fleet is known");
    }
    let changed: Vec<Value> = rested.iter().map(|binding| generate::changed(binding, dice)).collect();
    for one in batch.change(&changed).expect("all are decided about") {
        let name = name(&one.binding);
        tally.compare(&format!("seed {seed}, {name} changed"), &fleet, &one, opinions.get(&name));
    }
    batch.clear().expect("bindings can be deleted");
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().expect("everything has a name").to_owned()
}

#[test]
fn replicas_are_divided_as_karmada_divides_them() {
    let Some(plane) = karmada::plane_or_skip() else { return };
    let started = Instant::now();
    let (seed, fleets) = (number("LOADLINE_SEED", SEED), number("LOADLINE_FLEETS", FLEETS));
    let karmada = Karmada::install(&plane).expect("Karmada's resources are taken");
    let answers = Answers::serve();
    for cluster in CLUSTERS {
        karmada.cluster(cluster, &json!({}), answers.port()).expect("a cluster is taken");
    }
    let mut tally = Tally::default();
    for estimators in [false, true] {
        let enabled = format!("--enable-scheduler-estimator={estimators}");
        let flags = [&[enabled.as_str()][..], &FLAGS].concat();
        let scheduler = karmada.scheduler(Version::V1_18, &Channel::Plain, &flags).expect("it starts");
        let first = if estimators { fleets } else { 0 };
        for at in first..first + fleets {
            let plan = Plan { seed, at, leaves: at + 1 == 2 * fleets };
            tell(&scheduler, plan, estimators.then_some(&answers), &mut tally);
        }
    }
    let Tally { compared, equal, own, rows, kinds, faults } = tally;
    println!("{compared} decisions, {equal} equal, {own} as we do it, in {:?}", started.elapsed());
    println!("rows: {rows:#?}\nkinds: {kinds:#?}");
    let shown = faults.iter().take(3).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(faults.is_empty(), "{} of {compared} differ\n{shown}", faults.len());
    if (seed, fleets) == (SEED, FLEETS) {
        assert!(compared >= 500, "{compared} decisions only");
        assert!(
            own >= 150,
            "{own} decisions differ from Karmada's and were compared with the documents only"
        );
        for row in rows::names() {
            let (times, least) = (rows.get(row).copied().unwrap_or(0), rows::least(row));
            assert!(times >= least, "{row} was the difference {times} times, expected {least}");
        }
        for (strategy, course) in rows::COURSES {
            let kind = format!("{strategy} {course}");
            assert!(kinds.contains_key(&kind), "nothing was divided {kind}");
        }
    }
}

/// The table in the documentation and the one this test goes by are the same.
#[test]
fn every_difference_is_documented() {
    let text = include_str!("../../../docs/division-differences.md");
    let told: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(told, rows::names().collect());
}
