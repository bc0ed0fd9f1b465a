//! We divide replicas as karmada-scheduler does: the same clusters, the same numbers, the same condition.
//!
//! The real scheduler, v1.18.2, decides about hundreds of random bindings in random fleets: first without estimators,
//! then with ones that answer from a table. Most have been decided about before; and those it has scheduled are changed
//! and decided about again. Each is asked of us twice. With [`Options::upstream`] the answers must be equal, and as we
//! would have them, equal or one of the differences in `docs/division-differences.md`, all of which must come up.
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
#[path = "fleets/ours.rs"]
mod ours;
#[path = "fleets/rows.rs"]
mod rows;

use answers::Answers;
use dice::Dice;
use generate::CLUSTERS;
use loadline_core::divide::{Opinion, Options};
use loadline_testkit::karmada::{self, Channel, Decided, Karmada, Scheduler, Version};
use ours::{Question, reproduction, upstream};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::time::Instant;

/// Bindings decided about together.
const BATCH: usize = 60;

const SEED: u64 = 20_261_116;

/// Flags with which the scheduler neither waits nor tries again what has failed.
const FLAGS: [&str; 3] = ["--kube-api-qps=1000", "--kube-api-burst=2000", "--rate-limiter-base-delay=600s"];

fn number(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).map_or(otherwise, |text| text.parse().expect("a whole number"))
}

/// What was compared, and what came of it.
#[derive(Default)]
struct Tally {
    compared: usize,
    equal: usize,
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
        let like = question.decision(upstream());
        let mut fault = |what: &str, ours: &dyn std::fmt::Debug| {
            let again = reproduction(fleet, &decided.binding, &question);
            self.faults.push(format!("{name}, {what}:\n  karmada: {theirs:?}\n  ours:    {ours:?}\n{again}"));
        };
        let known = if rows::agree(&like, theirs) { None } else { rows::always(&question, &like, theirs) };
        if known.is_none() && !rows::agree(&like, theirs) {
            fault("as Karmada does it", &like);
            return;
        }
        let own = question.decision(Options::default());
        if rows::agree(&own, theirs) || known.is_some() && own == like {
            self.equal += usize::from(known.is_none());
            *self.rows.entry(known.unwrap_or("equal")).or_default() += 1;
            return;
        }
        match rows::wanted(&question, &own, theirs).as_slice() {
            [] => fault("as we do it", &own),
            [row] => *self.rows.entry(row).or_default() += 1,
            _ => *self.rows.entry("several").or_default() += 1,
        }
    }
}

/// One fleet: bindings, and what becomes of them.
fn tell(scheduler: &Scheduler<'_>, seed: u64, at: usize, answers: Option<&Answers>, tally: &mut Tally) {
    let dice = &mut Dice::new(seed, at);
    let mut fleet = generate::fleet(dice);
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
    let (seed, fleets) = (number("LOADLINE_SEED", SEED), number("LOADLINE_FLEETS", 5));
    let fleets = usize::try_from(fleets).expect("a few");
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
            tell(&scheduler, seed, at, estimators.then_some(&answers), &mut tally);
        }
    }
    let Tally { compared, equal, rows, kinds, faults } = tally;
    println!("{compared} decisions, {equal} equal, in {:?}", started.elapsed());
    println!("rows: {rows:#?}\nkinds: {kinds:#?}");
    let shown = faults.iter().take(3).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(faults.is_empty(), "{} of {compared} differ\n{shown}", faults.len());
}
