//! Decisions one after the other, each seeing what the ones before it are about to publish, beside a slow version that knows
//! names and nothing else.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A cluster as the slow version knows it: region, CPU, and whether it is tainted.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Plain {
    region: usize,
    cpu: Option<u8>,
    tainted: bool,
}

/// A placement as the slow version knows it.
#[derive(Clone, Debug)]
struct Plan {
    region: Option<usize>,
    count: Option<usize>,
    balance: i64,
    steady: i64,
    cpu: i64,
    group: Option<usize>,
}

#[derive(Clone, Debug)]
enum Step {
    Cluster(usize, Plain),
    Gone(usize),
    Count(usize, Option<usize>),
    /// Somebody deletes the first slice of a placement.
    Lost(usize),
    /// From now on writes fail so: by turns, after so many of a decision, or not at all.
    Fail(Vec<Option<usize>>),
}

const REGIONS: [&str; 3] = ["east", "west", "north"];

fn plain() -> impl Strategy<Value = Plain> {
    (0..3_usize, proptest::option::weighted(0.9, 0..5_u8), prop::bool::weighted(0.1))
        .prop_map(|(region, cpu, tainted)| Plain { region, cpu, tainted })
}

fn plan() -> impl Strategy<Value = Plan> {
    let region = proptest::option::weighted(0.3, 0..3_usize);
    let count = proptest::option::weighted(0.6, 0..8_usize);
    let group = proptest::option::weighted(0.2, 1..150_usize);
    (region, count, -1..=2_i64, -1..=2_i64, -1..=2_i64, group).prop_map(
        |(region, count, balance, steady, cpu, group)| Plan { region, count, balance, steady, cpu, group },
    )
}

fn step(clusters: usize, plans: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..=clusters, plain()).prop_map(|(name, plain)| Step::Cluster(name, plain)),
        2 => (0..clusters).prop_map(Step::Gone),
        1 => (0..plans, proptest::option::of(0..9_usize)).prop_map(|(of, count)| Step::Count(of, count)),
        1 => (0..plans).prop_map(Step::Lost),
        3 => proptest::collection::vec(proptest::option::of(0..3_usize), 1..6).prop_map(Step::Fail),
    ]
}

fn worlds() -> impl Strategy<Value = (Vec<Plain>, Vec<Plan>, Vec<Step>)> {
    // Few, and so many that they fill several slices.
    prop_oneof![3 => 1..12_usize, 1 => 190..230_usize].prop_flat_map(|clusters| {
        (
            proptest::collection::vec(plain(), clusters),
            proptest::collection::vec(plan(), 1..6),
            proptest::collection::vec(step(clusters, 5), 0..6),
        )
    })
}

/// Everything the slow version knows: clusters by name, plans by name, and the slices of each plan by number.
#[derive(Default)]
struct Slow {
    clusters: BTreeMap<String, Plain>,
    plans: BTreeMap<String, Plan>,
    slices: BTreeMap<String, BTreeMap<usize, Vec<String>>>,
}

impl Slow {
    /// How often others have each cluster.
    fn times(&self, plan: &str) -> BTreeMap<&str, u32> {
        let mut times = BTreeMap::new();
        for (_, slices) in self.slices.iter().filter(|(owner, _)| *owner != plan) {
            slices.values().flatten().for_each(|name| *times.entry(name.as_str()).or_default() += 1);
        }
        times
    }

    #[expect(clippy::cast_possible_truncation, reason = "points are small, and whole when they are cut off")]
    fn points(&self, plan: &str, cluster: &str, survivors: &[&String], times: &BTreeMap<&str, u32>) -> i64 {
        let Plan { balance, steady, cpu, .. } = &self.plans[plan];
        let most = f64::from(times.values().copied().max().unwrap_or(0));
        let balanced = match times.get(cluster) {
            None => 100.0,
            Some(count) => 2.0 * (100.0 * (0.5 - f64::from(*count) / most)).trunc(),
        };
        let mut selected = self.slices.get(plan).into_iter().flat_map(BTreeMap::values).flatten();
        let stays = if selected.any(|one| one == cluster) { 100 } else { 0 };
        let free = |name: &str| self.clusters[name].cpu.map(f64::from);
        let all: Vec<f64> = survivors.iter().filter_map(|name| free(name)).collect();
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let span = all.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
        let by_cpu = match free(cluster) {
            None => 0.0,
            Some(_) if span == 0.0 => 100.0,
            Some(free) => (((free - least) / span - 0.5) * 2.0 * 100.0).trunc(),
        };
        balance * balanced as i64 + steady * stays + cpu * by_cpu as i64
    }

    /// Decides and publishes; gives the selected in their order.
    fn decide(&mut self, plan: &str) -> Vec<(String, i64)> {
        let Plan { region, count, group, .. } = self.plans[plan].clone();
        let survives = |of: &Plain| !of.tainted && region.is_none_or(|region| region == of.region);
        let survivors: Vec<&String> =
            self.clusters.iter().filter(|(_, of)| survives(of)).map(|(name, _)| name).collect();
        let times = self.times(plan);
        let points = |name: &String| (name.clone(), self.points(plan, name, &survivors, &times));
        let mut scored: Vec<(String, i64)> = survivors.iter().map(|name| points(name)).collect();
        scored.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        scored.truncate(count.unwrap_or(usize::MAX));
        let mut names: Vec<String> = scored.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        let size = group.filter(|size| *size <= names.len()).unwrap_or(names.len()).max(1);
        let parts = names.chunks(size).flat_map(|group| group.chunks(100)).map(<[String]>::to_vec);
        let mut slices: BTreeMap<usize, Vec<String>> = (1..).zip(parts).collect();
        slices.entry(1).or_default();
        self.slices.insert(plan.to_owned(), slices);
        scored
    }
}

/// What a write is about: the number of the slice, and who is in it afterwards.
fn written(write: &Write) -> (usize, Option<Vec<String>>) {
    let number = write.slice.key.name.rsplit('-').next().unwrap().parse().unwrap();
    let names = write.slice.entries.iter().map(|entry| entry.cluster.to_string()).collect();
    (number, (write.action != Action::Delete).then_some(names))
}

/// All that is due is decided, one after the other, and each counts as written for the next. Then it turns out which writes
/// failed, and after how many steps: those are taken back, and decided again.
fn round(fleet: &mut Fleet, slow: &mut Slow, fates: &[Option<usize>]) -> Result<usize, TestCaseError> {
    let due: Vec<Key> = fleet.due(noon()).cloned().collect();
    let mut jobs = Vec::new();
    for key in due {
        let before = (fleet.slices.own(&key), slow.slices.get(&*key.name).cloned().unwrap_or_default());
        let outcome = fleet.decide_one(&key, &NoCel, noon()).unwrap();
        fleet.assume(&outcome);
        let want = slow.decide(&key.name);
        let is: Vec<(String, i64)> =
            outcome.selected.iter().map(|one| (one.cluster.to_string(), one.total)).collect();
        prop_assert_eq!(is, want, "{}", key);
        prop_assert_eq!(&published(fleet, &key.name), &slow.slices[&*key.name], "{}", key);
        jobs.push((key, before, outcome));
    }
    prop_assert_eq!(fleet.due(noon()).count(), 0, "what is assumed is no reason to decide again");
    let count = jobs.len();
    for ((key, (engine, plain), outcome), fate) in jobs.into_iter().zip(fates) {
        let Some(after) = fate else { continue };
        let steps: Vec<&Write> =
            outcome.writes.iter().filter(|write| write.action != Action::None).take(*after).collect();
        // What there was comes back, and on top of it what was written.
        let now: Vec<Key> = fleet.slices.own(&key).iter().map(|known| known.slice.key.clone()).collect();
        for slice in &now {
            fleet.remove_slice(slice);
        }
        for known in &engine {
            fleet.set_slice(known.slice.clone());
        }
        let mut plain = plain;
        for write in steps {
            match written(write) {
                (number, Some(names)) => {
                    fleet.set_slice(write.slice.clone());
                    plain.insert(number, names);
                }
                (number, None) => {
                    fleet.remove_slice(&write.slice.key);
                    plain.remove(&number);
                }
            }
        }
        fleet.again(&key);
        slow.slices.insert(key.name.to_string(), plain);
    }
    Ok(count)
}

fn name(number: usize) -> String {
    format!("c{number:03}")
}

fn facts(number: usize, plain: Plain) -> ClusterFacts {
    let cpu = plain.cpu.map(|cpu| cpu.to_string());
    let amount = cpu.iter().map(|cpu| ("cpu", cpu.as_str())).collect::<Vec<_>>();
    ClusterFacts {
        allocatable: amounts(&amount),
        capacity: amounts(&amount),
        taints: if plain.tainted { vec![taint("x", Effect::NoSelect, None)] } else { Vec::new() },
        ..labelled(&name(number), &[("region", REGIONS[plain.region])])
    }
}

fn wish(plan: &str, of: &Plan) -> Placement {
    let small = |number: i64| i32::try_from(number).unwrap();
    let weights = [("Balance", of.balance), ("Steady", of.steady), ("ResourceAllocatableCPU", of.cpu)];
    let weights = weights.map(|(name, weight)| built_in(name, small(weight)));
    let region = of
        .region
        .map(|region| Predicate { labels: labels(&[("region", REGIONS[region])]), ..Predicate::default() });
    Placement {
        predicates: region.into_iter().collect(),
        mode: "Exact".into(),
        group_size: of.group.map_or(GroupSize::All, |size| GroupSize::Count(i64::try_from(size).unwrap())),
        ..placement(plan, of.count.map(|count| i32::try_from(count).unwrap()), &weights)
    }
}

/// What the fleet takes for published, by number of the slice.
fn published(fleet: &Fleet, plan: &str) -> BTreeMap<usize, Vec<String>> {
    let own = fleet.slices.own(&Key::new("ns1", plan));
    let number = |slice: &Slice| slice.key.name.rsplit('-').next().unwrap().parse().unwrap();
    let names = |slice: &Slice| slice.entries.iter().map(|entry| entry.cluster.to_string()).collect();
    own.iter().map(|known| (number(&known.slice), names(&known.slice))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn decisions_in_a_row_are_those_of_the_slow_version((clusters, plans, steps) in worlds()) {
        let mut fleet = fleet(clusters.iter().enumerate().map(|(number, plain)| facts(number, *plain)));
        let mut slow = Slow::default();
        slow.clusters.extend(clusters.iter().enumerate().map(|(number, plain)| (name(number), *plain)));
        for (number, plan) in plans.iter().enumerate() {
            let key = format!("p{number}");
            fleet.set_placement(wish(&key, plan));
            slow.plans.insert(key, plan.clone());
        }
        let mut fates = Vec::new();
        for step in std::iter::once(None).chain(steps.iter().map(Some)) {
            match step {
                None => {}
                Some(Step::Fail(how)) => fates.clone_from(how),
                Some(Step::Cluster(number, plain)) => {
                    fleet.set_cluster(facts(*number, *plain));
                    slow.clusters.insert(name(*number), *plain);
                }
                Some(Step::Gone(number)) => {
                    fleet.remove_cluster(&name(*number));
                    slow.clusters.remove(&name(*number));
                }
                Some(Step::Count(of, count)) => {
                    let key = format!("p{}", of % plans.len());
                    let plan = slow.plans.get_mut(&key).unwrap();
                    plan.count = *count;
                    fleet.set_placement(wish(&key, plan));
                }
                Some(Step::Lost(of)) => {
                    let key = format!("p{}", of % plans.len());
                    fleet.remove_slice(&Key::new("ns1", format!("{key}-decision-1")));
                    slow.slices.get_mut(&key).unwrap().remove(&1);
                }
            }
            round(&mut fleet, &mut slow, &fates)?;
            // Those that failed, once more; this time all goes well.
            round(&mut fleet, &mut slow, &[])?;
            prop_assert_eq!(fleet.due(noon()).count(), 0);
        }
    }
}

#[test]
fn slices_that_stay_as_they_are_are_the_very_same() {
    let many = |fleet: &mut Fleet| {
        let outcome = fleet.decide_one(&Key::new("ns1", "p"), &NoCel, noon()).unwrap();
        fleet.assume(&outcome);
        outcome
    };
    let mut fleet = fleet((0..350).map(|number| cluster(&name(number))));
    fleet.set_placement(placement("p", None, &[built_in("Balance", 0), built_in("Steady", 0)]));
    let first = many(&mut fleet);
    assert_eq!(first.writes.len(), 4);
    // The 150th goes: the first slice stays, the second to the fourth take one from the next.
    fleet.remove_cluster("c150");
    let second = many(&mut fleet);
    let shown: Vec<_> =
        second.writes.iter().map(|write| (write.action.as_str(), write.slice.entries.len())).collect();
    assert_eq!(shown, [("none", 100), ("patch", 100), ("patch", 100), ("patch", 49)]);
    assert!(Arc::ptr_eq(&first.writes[0].slice, &second.writes[0].slice));
}

#[test]
fn that_a_status_says_what_was_decided_is_no_reason_to_decide_anew() {
    let key = Key::new("ns1", "p");
    let wish = || placement("p", Some(1), &[]);
    // What is published has no fractions of seconds.
    let now = noon() + SignedDuration::from_millis(1);
    for scores in [true, false] {
        let mut fleet = fleet(["a", "b"].map(cluster));
        fleet.publish_scores(scores);
        fleet.set_placement(wish());
        let outcome = fleet.decide_one(&key, &NoCel, now).unwrap();
        fleet.assume(&outcome);
        let said = |satisfied: bool, updated: Option<Timestamp>| Status {
            conditions: vec![(SATISFIED.into(), satisfied, noon()), (MISCONFIGURED.into(), false, noon())],
            last_score_update: updated,
        };
        fleet.set_placement(Placement { status: said(true, scores.then(noon)), ..wish() });
        assert_eq!(fleet.due(now).count(), 0, "it says what was decided");
        // Others have more now; nobody was asked.
        fleet.set_slice(slice("other", 1, &["a"]));
        assert_eq!(fleet.due(now).count(), 0);
        fleet.set_placement(Placement { status: said(false, scores.then(noon)), ..wish() });
        assert_eq!(fleet.due(now).count(), 1, "somebody says something else");
        fleet.decide(&NoCel, now);
        fleet.set_placement(Placement { count: Some(2), status: said(true, scores.then(noon)), ..wish() });
        assert_eq!(fleet.due(now).count(), 1, "it asks for something else");
    }
}

#[test]
fn points_nobody_publishes_are_no_reason_to_decide_anew() {
    let key = Key::new("ns1", "p");
    let mut fleet = fleet([cluster("a")]);
    fleet.set_placement(placement("p", Some(1), &[]));
    let outcome = fleet.decide_one(&key, &NoCel, noon()).unwrap();
    fleet.assume(&outcome);
    assert_eq!(outcome.writes[0].slice.entries[0].score, 100);
    // The server dropped them: they are not published any more, and what was written is right.
    fleet.publish_scores(false);
    fleet.set_slice(slice("p", 1, &["a"]));
    assert_eq!(fleet.due(noon()).count(), 0);
    fleet.set_slice(slice("p", 1, &["a", "b"]));
    assert_eq!(fleet.due(noon()).count(), 1, "this is more than points");
}
