//! Random fleets: what must hold whatever they are.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct World {
    members: Vec<Member>,
    binding: Binding,
    estimators: Vec<Estimator>,
    options: Options,
}

fn spreads() -> impl Strategy<Value = Vec<(By, i64, i64)>> {
    let by = prop_oneof![Just(By::Cluster), Just(By::Region), Just(By::Zone), Just(By::Provider)];
    prop::collection::vec((by, 0..3_i64, 0..4_i64), 0..3)
}

fn divisions() -> impl Strategy<Value = Division> {
    prop_oneof![
        1 => Just(Division::Duplicated),
        3 => Just(Division::Aggregated),
        3 => Just(dynamic()),
        1 => Just(Division::Weighted(None)),
        1 => Just(fixed(&[])),
        1 => Just(fixed(&[("m0", 1), ("m1", 3), ("m2", 2)])),
    ]
}

type Facts = (i64, usize, usize, bool, Option<Result<i32, ()>>);

fn worlds() -> impl Strategy<Value = World> {
    let opinion =
        prop_oneof![Just(None), (-1..12_i32).prop_map(|count| Some(Ok(count))), Just(Some(Err(()))),];
    let members =
        prop::collection::vec((0..12_i64, 0..3_usize, 0..2_usize, prop::bool::weighted(0.1), opinion), 0..7);
    let previous = prop::collection::vec((0..8_usize, 0..9_i32), 0..4);
    let options = (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.2));
    (
        members,
        previous,
        0..20_i32,
        divisions(),
        spreads(),
        options,
        any::<bool>(),
        "[a-d]{0,2}",
        any::<bool>(),
    )
        .prop_map(
            |(
                facts,
                previous,
                replicas,
                division,
                spread,
                (min, some, empty, upstream),
                fresh,
                uid,
                tiers,
            )| {
                let (members, opinions): (Vec<_>, Vec<_>) = facts.iter().enumerate().map(one).unzip();
                let mut binding = cores(replicas, division).spread(&spread);
                let previous: BTreeMap<String, i32> =
                    previous.into_iter().map(|(i, replicas)| (format!("m{i}"), replicas)).collect();
                binding.clusters =
                    previous.into_iter().map(|(name, replicas)| Previous { name, replicas }).collect();
                binding.resource.uid = uid;
                if tiers {
                    let group = Group {
                        name: "g".into(),
                        affinity: named(&["m0", "m1", "m2"]),
                        overflow: vec![Affinity::default()],
                    };
                    binding.placing(|placement| placement.groups = vec![group]);
                }
                World {
                    members,
                    binding: if fresh { binding.fresh() } else { binding },
                    estimators: vec![Estimator {
                        name: "scheduler-estimator".into(),
                        opinions: opinions.into_iter().flatten().collect(),
                    }],
                    options: Options {
                        mode: if min { Mode::Min } else { Mode::AccurateFirst },
                        shortfall: if some { Shortfall::Partial } else { Shortfall::Fail },
                        empty,
                        upstream,
                        ..Options::default()
                    },
                }
            },
        )
}

fn one((i, (cores, region, zone, tainted, opinion)): (usize, &Facts)) -> (Member, Option<(String, Opinion)>) {
    let name = format!("m{i}");
    let taint = Taint {
        key: "gone".into(),
        value: String::new(),
        effect: crate::select::taint::Effect::NoSchedule,
        time_added: None,
    };
    let member = Member {
        region: ["north", "south", ""][*region].into(),
        zones: vec![format!("z{zone}")],
        provider: if region % 2 == 0 { "acme".into() } else { "zeus".into() },
        taints: if *tainted { vec![taint] } else { Vec::new() },
        ..member(&name, &[("cpu", &cores.to_string())])
    };
    let opinion = opinion
        .map(|opinion| (name, opinion.map_or_else(|()| Opinion::Failed("gone".into()), Opinion::Count)));
    (member, opinion)
}

impl World {
    fn answer(&self) -> Answer {
        let given = Given { estimators: &self.estimators, options: self.options, ..Given::default() };
        divide(&self.members, &self.binding, &given)
    }

    fn by_capacity(&self) -> bool {
        let division = &self.binding.placement.as_ref().expect("it has one").division;
        *division == Division::Aggregated || *division == dynamic()
    }

    fn has(&self, name: &str) -> i64 {
        self.binding.clusters.iter().find(|known| known.name == name).map_or(0, |known| known.replicas.into())
    }
}

fn assigned(answer: &Answer) -> i64 {
    answer.clusters.iter().filter_map(|target| target.replicas).map(i64::from).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_assigned_beyond_what_fits(world in worlds()) {
        let answer = world.answer();
        if world.by_capacity() {
            for target in &answer.clusters {
                let cluster = answer.feasible.iter().find(|c| c.name == target.name).expect("it is feasible");
                let replicas = i64::from(target.replicas.unwrap_or(0));
                prop_assert!(replicas <= cluster.available.max(world.has(&target.name)), "{target:?} {cluster:?}");
            }
        }
    }

    #[test]
    fn all_are_assigned_or_the_rest_is_told(world in worlds()) {
        let answer = world.answer();
        let division = &world.binding.placement.as_ref().expect("it has one").division;
        prop_assert!(answer.shortfall >= 0);
        if *division == Division::Duplicated {
            let all = answer.clusters.iter().all(|t| [Some(world.binding.replicas), Some(0)].contains(&t.replicas));
            prop_assert!(all || !world.binding.placement.as_ref().expect("it has one").groups.is_empty());
        } else {
            prop_assert_eq!(assigned(&answer) + i64::from(answer.shortfall), i64::from(world.binding.replicas));
        }
        prop_assert_eq!(answer.failure.is_some(), !answer.condition().status);
        prop_assert!(answer.failure.is_none() || answer.clusters.is_empty());
    }

    #[test]
    fn what_was_decided_is_decided_again(world in worlds()) {
        let answer = world.answer();
        let division = world.binding.placement.as_ref().expect("it has one").division.clone();
        if !(answer.failure.is_none() && answer.shortfall == 0 && division != Division::Duplicated) {
            return Ok(());
        }
        // Nothing is asked anew, nobody's room has changed, and what was placed is not there yet: the same again. With
        // constraints another cluster may become the better one, now that some have replicas.
        let plain = world.binding.placement.as_ref().is_some_and(|p| p.spread.is_empty() && p.groups.is_empty());
        if !(plain) {
            return Ok(());
        }
        let mut next = world.clone();
        next.binding.rescheduled = None;
        let target = |t: &Target| Previous { name: t.name.to_string(), replicas: t.replicas.unwrap_or(0) };
        next.binding.clusters = answer.clusters.iter().map(target).collect();
        prop_assert_eq!(next.answer().clusters, answer.clusters);
    }

    #[test]
    fn the_order_of_clusters_does_not_matter(world in worlds(), turn in 0..7_usize) {
        let mut other = world.clone();
        if !other.members.is_empty() {
            let by = turn % other.members.len();
            other.members.rotate_left(by);
            other.members.reverse();
        }
        prop_assert_eq!(other.answer(), world.answer());
    }

    #[test]
    fn constraints_are_kept(world in worlds()) {
        let answer = world.answer();
        let placement = world.binding.placement.as_ref().expect("it has one");
        if !(answer.failure.is_none() && !world.options.upstream && !world.options.empty) {
            return Ok(());
        }
        let keeps = matches!(&placement.division, Division::Duplicated | Division::Aggregated) || world.by_capacity();
        if !(keeps) {
            return Ok(());
        }
        for spread in placement.spread.iter().filter(|spread| spread.max > 0) {
            let value = |target: &Target| {
                let member = world.members.iter().find(|m| m.name == target.name).expect("it is there");
                match spread.by {
                    By::Region => member.region.clone(),
                    By::Zone => member.zones[0].clone(),
                    By::Provider => member.provider.clone(),
                    _ => member.name.to_string(),
                }
            };
            let different: BTreeSet<String> = answer.clusters.iter().map(value).collect();
            prop_assert!(i64::try_from(different.len()).expect("few") <= spread.max, "{:?}", answer.clusters);
        }
    }

    #[test]
    fn one_more_replica_takes_none_away(world in worlds()) {
        // Webster's promise, kept by the whole where clusters are not chosen anew.
        let plain = world.binding.placement.as_ref().is_some_and(|p| p.spread.is_empty() && p.division == dynamic());
        if !(plain && world.binding.clusters.is_empty()) {
            return Ok(());
        }
        let (few, mut more) = (world.answer(), world.clone());
        more.binding.replicas += 1;
        let more = more.answer();
        if !(few.failure.is_none() && more.failure.is_none()) {
            return Ok(());
        }
        let count = |answer: &Answer, name: &str| {
            answer.clusters.iter().find(|t| &*t.name == name).and_then(|t| t.replicas).unwrap_or(0)
        };
        for target in &few.clusters {
            prop_assert!(count(&few, &target.name) <= count(&more, &target.name));
        }
    }
}

/// Every node of every grade for itself, one replica after the other, on the first node that takes it.
fn node_by_node(grades: &[(i64, i64)], coming: &[(i32, i64)], each: i64) -> i64 {
    let mut nodes: Vec<(i64, i64)> = Vec::new();
    for (cores, count) in grades {
        nodes.extend((0..*count).map(|_| (1000 * cores, 110)));
    }
    let mut place = |cost: i64| {
        let found = nodes.iter_mut().find(|(cpu, pods)| *cpu >= cost && *pods > 0);
        found.map(|(cpu, pods)| (*cpu -= cost, *pods -= 1)).is_some()
    };
    for (replicas, cost) in coming {
        for _ in 0..*replicas {
            place(*cost);
        }
    }
    let mut count = 0;
    while place(each) {
        count += 1;
    }
    count
}

proptest! {
    #[test]
    fn models_by_runs_are_models_node_by_node(
        counts in prop::collection::vec(0..6_i64, 1..5),
        coming in prop::collection::vec((0..7_i32, 1..5_000_i64), 0..4),
        each in 50..5_000_i64,
    ) {
        // Grade g has at least 2g cores; nothing is scarce in total.
        let grades: Vec<(i64, i64)> = counts.iter().zip(0..).map(|(count, grade)| (2 * grade, *count)).collect();
        let mut cluster = member("a", &[("cpu", "100000")]);
        cluster.models = grades.iter().map(|(cores, _)| {
            Model::new(*cores, &list(&[("cpu", &cores.to_string())]))
        }).collect();
        if let Some(summary) = &mut cluster.summary {
            summary.grades.clone_from(&grades);
        }
        let ask = |milli: i64| Ask { requests: list(&[("cpu", &format!("{milli}m"))]), ..Ask::default() };
        let assumed: Vec<Assumed> = coming.iter().map(|(replicas, milli)| Assumed {
            components: vec![Component { name: "x".into(), replicas: *replicas, ask: ask(*milli) }],
            ..Assumed::default()
        }).collect();
        let most = 1100 - coming.iter().map(|(replicas, _)| i64::from(*replicas)).sum::<i64>();
        let ours = general::replicas(&cluster, Some(&ask(each)), &assumed, false).count;
        prop_assert_eq!(i64::from(ours), node_by_node(&grades, &coming, each).min(most));
        // A set of one replica is the same, as far as sets are counted.
        let set = [Component { name: "x".into(), replicas: 1, ask: ask(each) }];
        let sets = general::sets(&cluster, &set, &assumed, false).count;
        prop_assert_eq!(sets.min(100), ours.min(100));
    }
}
