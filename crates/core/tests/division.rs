//! The way replicas are divided by default, against a slow, obvious division that was written from the documents and shares
//! no code with it.
//!
//! Karmada is the judge of `Options::upstream` (`crates/api/tests/karmada_divide.rs`). Where the default way differs from that
//! on purpose, no other program says what is right: `division/oracle.rs` does.

mod division {
    pub mod oracle;
}

use division::oracle::{Expected, Question, expected};
use jiff::Timestamp;
use loadline_core::divide::{
    Affinity, Binding, Bound, By, Division, Estimator, Given, Group, Member, Mode, Opinion, Options,
    Placement, Previous, Shortfall, Spread, Summary, Weights, divide,
};
use loadline_core::estimate::{Ask, Component};
use loadline_core::object::Key;
use loadline_core::resources::List;
use loadline_core::select::label::Expression;
use loadline_core::select::taint::{Effect, Operator};
use loadline_core::select::{LabelSelector, Taint, Toleration};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NAMES: [&str; 7] = ["m0", "m1", "m2", "m3", "m4", "m5", "m6"];
const TIER: &str = "tier";

/// A cluster as it may be, and what an estimator says of it.
#[derive(Clone, Debug)]
struct Shape {
    cores: i64,
    region: usize,
    zones: Vec<usize>,
    tier: Option<usize>,
    tainted: bool,
    deleting: bool,
    serves: bool,
    opinions: [Option<Result<i32, ()>>; 2],
    replaced: Option<i32>,
}

#[derive(Clone, Debug)]
struct World {
    shapes: Vec<Shape>,
    binding: Binding,
    options: Options,
}

fn list(amounts: &[(&str, i64)]) -> List {
    let one =
        |(name, amount): &(&str, i64)| ((*name).to_owned(), amount.to_string().parse().expect("a quantity"));
    amounts.iter().map(one).collect()
}

fn shape() -> impl Strategy<Value = Shape> {
    let opinion = || {
        prop_oneof![
            4 => Just(None),
            4 => (-1..12_i32).prop_map(|count| Some(Ok(count))),
            1 => Just(Some(Err(()))),
        ]
    };
    let place =
        (0..4_usize, prop::collection::vec(0..3_usize, 0..3), prop::option::weighted(0.8, 0..2_usize));
    let odd = (prop::bool::weighted(0.15), prop::bool::weighted(0.05), prop::bool::weighted(0.95));
    let replaced = prop::option::weighted(0.1, 0..15_i32);
    (0..12_i64, place, odd, [opinion(), opinion()], replaced).prop_map(
        |(cores, (region, zones, tier), (tainted, deleting, serves), opinions, replaced)| Shape {
            cores,
            region,
            zones,
            tier,
            tainted,
            deleting,
            serves,
            opinions,
            replaced,
        },
    )
}

fn affinity() -> impl Strategy<Value = Affinity> {
    let names = || prop::collection::vec(select(&NAMES[..]), 1..5);
    let texts = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let expression = |key: &str, operator: &str, values: &[&str]| Expression {
        key: key.into(),
        operator: operator.into(),
        values: values.iter().map(ToString::to_string).collect(),
    };
    let operators = select(&["In", "NotIn", "Exists", "DoesNotExist"][..]);
    prop_oneof![
        3 => names().prop_map(move |names| Affinity { names: texts(names), ..Affinity::default() }),
        1 => names().prop_map(move |names| Affinity { exclude: texts(names), ..Affinity::default() }),
        1 => Just(Affinity::default()),
        1 => (operators.clone(), any::<bool>()).prop_map(move |(operator, gold)| {
            let values: &[&str] = if operator.ends_with("In") { &["gold"] } else { &[] };
            let rule = expression(TIER, operator, values);
            let labels = if gold {
                let match_labels = [(TIER.to_owned(), "gold".to_owned())].into();
                LabelSelector { match_labels, ..LabelSelector::default() }
            } else {
                LabelSelector { match_expressions: vec![rule], ..LabelSelector::default() }
            };
            Affinity { labels: Some(labels), ..Affinity::default() }
        }),
        1 => (operators, select(&[("region", "north"), ("zone", "z1"), ("provider", "acme")][..])).prop_map(
            move |(operator, (key, value))| {
                let values: &[&str] = if operator.ends_with("In") { &[value] } else { &[] };
                Affinity { fields: Some(vec![expression(key, operator, values)]), ..Affinity::default() }
            }
        ),
    ]
}

fn division() -> impl Strategy<Value = Division> {
    let fixed = prop::collection::vec((affinity(), 0..4_i64), 0..3);
    let weights = (fixed, prop::bool::weighted(0.2));
    prop_oneof![
        2 => Just(Division::Duplicated),
        5 => Just(Division::Aggregated),
        5 => Just(Division::Weighted(Some(Weights { fixed: Vec::new(), dynamic: true }))),
        1 => Just(Division::Weighted(None)),
        2 => weights.prop_map(|(fixed, dynamic)| Division::Weighted(Some(Weights { fixed, dynamic }))),
        1 => Just(Division::Unknown { kind: "Divided".into(), preference: String::new() }),
    ]
}

fn spreads() -> impl Strategy<Value = Vec<Spread>> {
    let by = prop_oneof![
        4 => Just(By::Cluster),
        4 => Just(By::Region),
        2 => Just(By::Zone),
        2 => Just(By::Provider),
        1 => Just(By::Label(TIER.into())),
    ];
    let one = (by, 0..4_i64, prop_oneof![2 => Just(0_i64), 5 => 1..5_i64])
        .prop_map(|(by, min, max)| Spread { by, min, max: if max > 0 { max.max(min) } else { 0 } });
    let wild = (select(&[By::Cluster, By::Region, By::Unsaid][..]), -1..3_i64, -1..3_i64)
        .prop_map(|(by, min, max)| vec![Spread { by, min, max }]);
    prop_oneof![19 => prop::collection::vec(one, 0..4), 1 => wild]
}

fn groups() -> impl Strategy<Value = Vec<Group>> {
    let group =
        (affinity(), prop_oneof![Just(Vec::new()).boxed(), prop::collection::vec(affinity(), 1..3).boxed()]);
    prop_oneof![
        3 => Just(Vec::new()),
        2 => prop::collection::vec(group, 1..4).prop_map(|groups| {
            let named = |(at, (affinity, overflow)): (usize, (Affinity, Vec<Affinity>))| {
                Group { name: format!("g{at}"), affinity, overflow }
            };
            groups.into_iter().enumerate().map(named).collect()
        }),
    ]
}

fn placement() -> impl Strategy<Value = Placement> {
    let tolerant = prop::bool::weighted(0.4);
    (prop::option::of(affinity()), groups(), tolerant, spreads(), division()).prop_map(
        |(affinity, groups, tolerant, spread, division)| Placement {
            // Now and then both, which is an error.
            affinity: affinity.filter(|one| groups.is_empty() || one.exclude.len() == 4),
            groups,
            tolerations: if tolerant {
                vec![Toleration { key: "slow".into(), operator: Operator::Exists, ..Toleration::default() }]
            } else {
                Vec::new()
            },
            spread,
            division,
        },
    )
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

fn binding() -> impl Strategy<Value = Binding> {
    let clusters = prop::collection::vec((select(&NAMES[..]), 0..9_i32), 0..5);
    let evicting = prop::collection::btree_set(select(&NAMES[..]), 0..2);
    let replicas = prop_oneof![1 => Just(0), 1 => Just(-1), 20 => 1..25_i32];
    let anew = prop_oneof![3 => Just(None), 1 => Just(Some((2, 1))), 1 => Just(Some((1, 2)))];
    let parts = prop_oneof![9 => Just(0_usize), 1 => 1..3_usize];
    let same = prop::bool::weighted(0.2);
    let asks = prop::bool::weighted(0.9);
    let more = (
        anew,
        parts,
        same,
        asks,
        prop::bool::weighted(0.1),
        "[a-d]{0,2}",
        select(&["", "g0", "g1", "gone"][..]),
    );
    (clusters, evicting, replicas, placement(), more).prop_map(
        |(clusters, evicting, replicas, placement, (anew, parts, same, asks, changed, uid, observed))| {
            let mut known: Vec<Previous> = Vec::new();
            for (name, replicas) in clusters {
                if !known.iter().any(|one| one.name == name) {
                    known.push(Previous { name: name.into(), replicas });
                }
            }
            let assigned: i32 = known.iter().map(|one| one.replicas).sum();
            let ask = || Ask { requests: list(&[("cpu", 1)]), ..Ask::default() };
            let part = |at: usize| Component { name: format!("c{at}"), replicas: 2, ask: ask() };
            Binding {
                resource: Bound {
                    api_version: "apps/v1".into(),
                    kind: "Deployment".into(),
                    key: Key::new("default", "web"),
                    uid,
                },
                replicas: if same && assigned > 0 { assigned } else { replicas },
                ask: asks.then(ask),
                components: (0..parts).map(part).collect(),
                clusters: known,
                evicting: evicting.into_iter().map(str::to_owned).collect(),
                rescheduled: anew.map(|(asked, _)| at(asked)),
                scheduled: anew.map(|(_, done)| at(done)),
                observed: observed.into(),
                changed,
                placement: Some(placement),
            }
        },
    )
}

fn worlds() -> impl Strategy<Value = World> {
    let mode = select(&[Mode::AccurateFirst, Mode::AccurateFirst, Mode::Min, Mode::General][..]);
    let options = (mode, any::<bool>(), prop::bool::weighted(0.2), prop::bool::weighted(0.2)).prop_map(
        |(mode, partial, empty, rebalance)| Options {
            mode,
            shortfall: if partial { Shortfall::Partial } else { Shortfall::Fail },
            empty,
            rebalance,
            upstream: false,
        },
    );
    (prop::collection::vec(shape(), 0..NAMES.len()), binding(), options)
        .prop_map(|(shapes, binding, options)| World { shapes, binding, options })
}

impl World {
    fn members(&self) -> Vec<Member> {
        let one = |(shape, name): (&Shape, &&str)| {
            let taint = Taint {
                key: "slow".into(),
                value: "yes".into(),
                effect: Effect::NoSchedule,
                time_added: None,
            };
            let kind = if shape.serves { "Deployment" } else { "StatefulSet" };
            let tier = shape.tier.map(|tier| (TIER.to_owned(), ["gold", "tin"][tier].to_owned()));
            Member {
                name: (*name).into(),
                labels: tier.into_iter().collect(),
                provider: ["acme", "acme", "zeus", ""][shape.region].into(),
                region: ["north", "south", "east", ""][shape.region].into(),
                zones: shape.zones.iter().map(|zone| format!("z{zone}")).collect(),
                taints: if shape.tainted { vec![taint] } else { Vec::new() },
                deleting: shape.deleting,
                apis: Arc::new([("apps/v1".to_owned(), BTreeSet::from([kind.to_owned()]))].into()),
                summary: Some(Summary::new(
                    &list(&[("cpu", shape.cores), ("pods", 10)]),
                    &List::new(),
                    &List::new(),
                )),
                models: Vec::new(),
            }
        };
        // Not in their order.
        self.shapes.iter().zip(&NAMES).rev().map(one).collect()
    }

    fn estimators(&self) -> Vec<Estimator> {
        let said = |which: usize| {
            let opinions = self.shapes.iter().zip(&NAMES).filter_map(|(shape, name)| {
                let opinion = shape.opinions[which]?;
                let opinion = opinion.map_or_else(|()| Opinion::Failed("gone".into()), Opinion::Count);
                Some(((*name).to_owned(), opinion))
            });
            Estimator { name: format!("e{which}").into(), opinions: opinions.collect() }
        };
        vec![said(0), said(1)]
    }

    /// By the sums: a core each and a place each, ten places in all; a set has two of each part.
    fn sums(&self) -> BTreeMap<String, i32> {
        let parts = i64::try_from(self.binding.components.len()).expect("few");
        let fits = |shape: &Shape| match parts {
            0 if self.binding.ask.is_none() => 10,
            0 => shape.cores.min(10),
            parts => shape.cores.min(10) / (2 * parts),
        };
        let fits = |shape: &Shape| i32::try_from(fits(shape)).expect("few");
        self.shapes.iter().zip(&NAMES).map(|(shape, name)| ((*name).to_owned(), fits(shape))).collect()
    }

    fn replaced(&self) -> BTreeMap<String, i32> {
        let named = self.shapes.iter().zip(&NAMES);
        named.filter_map(|(shape, name)| Some(((*name).to_owned(), shape.replaced?))).collect()
    }
}

/// What the engine says, in the words of the oracle; and whether it gave up looking for better groups.
fn answered(world: &World) -> (Expected, bool) {
    let (members, estimators) = (world.members(), world.estimators());
    let given = Given {
        estimators: &estimators,
        replaced: world.replaced(),
        options: world.options,
        ..Given::default()
    };
    let answer = divide(&members, &world.binding, &given);
    let condition = answer.condition();
    let cut = answer.warnings.iter().any(|warning| warning.contains("which were not tried"));
    let found = Expected {
        clusters: answer
            .clusters
            .iter()
            .map(|target| (target.name.to_string(), target.replicas.map(i64::from)))
            .collect(),
        reason: condition.reason,
        message: condition.message,
        shortfall: answer.shortfall.into(),
        affinity: answer.affinity.clone(),
        feasible: answer
            .feasible
            .iter()
            .map(|one| (one.name.to_string(), one.tier, i64::from(one.allocatable), one.available))
            .collect(),
    };
    (found, cut)
}

fn wanted(world: &World) -> Expected {
    let (members, estimators) = (world.members(), world.estimators());
    expected(&Question {
        members: &members,
        binding: &world.binding,
        sums: world.sums(),
        estimators: &estimators,
        replaced: world.replaced(),
        options: world.options,
    })
}

/// What kind of case it was, to see that all kinds come up.
fn kinds(world: &World, found: &Expected) -> Vec<String> {
    let placement = world.binding.placement.as_ref().expect("it has one");
    let strategy = match &placement.division {
        Division::Duplicated => "duplicated",
        Division::Aggregated => "aggregated",
        Division::Weighted(Some(weights)) if weights.dynamic => "by room",
        Division::Weighted(_) => "by weights",
        Division::Unknown { .. } => "unknown",
    };
    let by = |by: &By| match by {
        By::Cluster => "cluster",
        By::Region => "region",
        By::Zone => "zone",
        By::Provider => "provider",
        By::Label(_) => "label",
        By::Unsaid => "nothing",
    };
    let mut out = vec![format!("{strategy}: {}", found.reason)];
    let spread =
        placement.spread.iter().map(|spread| format!("spread by {}: {}", by(&spread.by), found.reason));
    out.extend(spread);
    if placement.groups.iter().any(|group| !group.overflow.is_empty()) {
        out.push(format!("tiers: {}", found.reason));
    }
    if !world.binding.components.is_empty() {
        out.push(format!("sets: {}", found.reason));
    }
    if found.shortfall > 0 && found.reason == "Success" {
        out.push("partly".to_owned());
    }
    out
}

#[test]
fn the_default_way_is_the_documented_one() {
    const CASES: u32 = 6_000;
    let (seen, cut) = (RefCell::new(BTreeMap::<String, usize>::new()), RefCell::new(0_usize));
    let mut runner = TestRunner::new(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let compared = runner.run(&worlds(), |world| {
        let (found, gave_up) = answered(&world);
        if gave_up {
            *cut.borrow_mut() += 1;
            return Ok(());
        }
        prop_assert_eq!(&found, &wanted(&world));
        for kind in kinds(&world, &found) {
            *seen.borrow_mut().entry(kind).or_default() += 1;
        }
        Ok(())
    });
    compared.unwrap_or_else(|why| panic!("{why}"));
    let (seen, cut) = (seen.into_inner(), cut.into_inner());
    println!("{CASES} worlds, {cut} of them with too many combinations to try: {seen:#?}");
    assert!(cut * 50 < CASES as usize, "{cut} searches were cut short");
    for (kind, least) in [
        ("duplicated: Success", 100),
        ("aggregated: Success", 400),
        ("aggregated: Unschedulable", 100),
        ("by room: Success", 400),
        ("by room: Unschedulable", 100),
        ("by weights: Success", 100),
        ("unknown: SchedulerError", 20),
        ("spread by cluster: Success", 200),
        ("spread by region: Success", 100),
        ("spread by region: Unschedulable", 50),
        ("spread by zone: Success", 40),
        ("spread by provider: Success", 40),
        ("spread by label: Success", 20),
        ("tiers: Success", 100),
        ("sets: Success", 40),
        ("partly", 40),
        ("aggregated: NoClusterFit", 20),
    ] {
        let count = seen.get(kind).copied().unwrap_or(0);
        assert!(count >= least, "{kind} came up {count} times, expected {least}");
    }
}
