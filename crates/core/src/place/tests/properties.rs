//! What holds for every fleet and every placement.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
struct World {
    clusters: Vec<ClusterFacts>,
    others: Vec<Vec<usize>>,
    wish: Placement,
}

const BUILT_IN: [&str; 6] = [
    "Balance",
    "Steady",
    "ResourceAllocatableCPU",
    "ResourceAllocatableMemory",
    "ResourceRatioCPU",
    "ResourceRatioMemory",
];

fn some_cluster(number: usize) -> impl Strategy<Value = ClusterFacts> {
    let amount = || proptest::option::of(0..40_u32);
    (amount(), amount(), 0..3_usize, 0..3_usize, prop::bool::weighted(0.2)).prop_map(
        move |(cpu, memory, region, zone, tainted)| {
            let mut of = labelled(
                &format!("c{number}"),
                &[("region", ["east", "west", "north"][region]), ("zone", ["1", "2", "3"][zone])],
            );
            for (name, free) in [("cpu", cpu), ("memory", memory)] {
                if let Some(free) = free {
                    of.allocatable.extend(amounts(&[(name, &free.to_string())]));
                    of.capacity.extend(amounts(&[(name, "40")]));
                }
            }
            if tainted {
                of.taints.push(taint("x", Effect::NoSelect, Some(noon())));
            }
            of
        },
    )
}

fn some_wish() -> impl Strategy<Value = Placement> {
    let configurations = proptest::collection::vec((0..BUILT_IN.len(), -10..=10_i32), 0..5);
    (any::<bool>(), proptest::option::of(0..8_i32), configurations, any::<bool>(), any::<bool>()).prop_map(
        |(exact, count, configurations, east, tolerant)| {
            let configurations: Vec<_> =
                configurations.into_iter().map(|(name, weight)| built_in(BUILT_IN[name], weight)).collect();
            let mut wish = placement("p", count, &configurations);
            wish.mode = if exact { "Exact" } else { "Additive" }.to_owned();
            if east {
                wish.predicates
                    .push(Predicate { labels: labels(&[("region", "east")]), ..Predicate::default() });
            }
            if tolerant {
                wish.tolerations.push(Toleration { operator: "Exists".into(), ..Toleration::default() });
            }
            wish
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    (1..8_usize)
        .prop_flat_map(|count| {
            let clusters: Vec<_> = (0..count).map(some_cluster).collect();
            let others = proptest::collection::vec(proptest::collection::vec(0..count, 0..4), 0..4);
            (clusters, others, some_wish())
        })
        .prop_map(|(clusters, others, wish)| World { clusters, others, wish })
}

impl World {
    fn fleet(&self) -> Fleet {
        let mut fleet = fleet(self.clusters.clone());
        for (number, names) in self.others.iter().enumerate() {
            let names: Vec<String> = names.iter().map(|n| format!("c{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            fleet.set_slice(slice(&format!("other{number}"), 1, &names));
        }
        fleet
    }

    /// The weight of a prioritizer.
    fn weight(&self, name: &str) -> i32 {
        let default = i32::from(self.wish.mode == "Additive" && ["Balance", "Steady"].contains(&name));
        let named = self.wish.configurations.iter().rev().find(|one| **one == built_in(name, one.weight));
        named.map_or(default, |one| one.weight)
    }
}

fn set_of(outcome: &Outcome) -> BTreeSet<String> {
    outcome.selected.iter().map(|chosen| chosen.cluster.to_string()).collect()
}

proptest! {
    // Property 1: permuting input lists never changes output.
    #[test]
    fn order_of_input_does_not_matter(world in world(), turn in 0..8_usize) {
        let mut turned = world.clone();
        turned.clusters.reverse();
        let by = turn % turned.clusters.len();
        turned.clusters.rotate_left(by);
        turned.others.reverse();
        let one = report(&mut world.fleet(), &world.wish, noon());
        // Other placements have other names then, which nobody looks at.
        let two = report(&mut turned.fleet(), &world.wish, noon());
        prop_assert_eq!(one, two);
    }

    // Property 2: a second cycle on its own output selects the same, if staying is not minded.
    #[test]
    fn deciding_again_changes_nothing(world in world()) {
        prop_assume!(world.weight("Steady") >= 0);
        let mut fleet = world.fleet();
        let first = decided(&mut fleet, &world.wish);
        write(&mut fleet, &first);
        let second = decided(&mut fleet, &world.wish);
        prop_assert_eq!(set_of(&first), set_of(&second));
    }

    // Property 3: selected ⊆ survivors ⊆ candidates, and as many as asked for if there are.
    #[test]
    fn as_many_are_selected_as_asked_for(world in world()) {
        let found = report(&mut world.fleet(), &world.wish, noon());
        prop_assert_eq!(found.clusters.len(), world.clusters.len());
        let survivors: BTreeSet<String> =
            found.clusters.iter().filter(|c| c.total.is_some()).map(|c| c.cluster.to_string()).collect();
        let selected = set_of(&found.outcome);
        prop_assert!(selected.is_subset(&survivors));
        let wanted = world.wish.count.map_or(survivors.len(), |count| usize::try_from(count).unwrap());
        prop_assert_eq!(selected.len(), wanted.min(survivors.len()));
        prop_assert_eq!(found.outcome.unscheduled, wanted - selected.len());
    }

    // Property 5: asking for more keeps everybody.
    #[test]
    fn asking_for_more_keeps_everybody(world in world(), more in 1..5_i32) {
        prop_assume!(world.weight("Steady") >= 0 && world.wish.count.is_some());
        let mut fleet = world.fleet();
        let first = decided(&mut fleet, &world.wish);
        write(&mut fleet, &first);
        let larger = Placement { count: world.wish.count.map(|count| count + more), ..world.wish.clone() };
        let second = decided(&mut fleet, &larger);
        prop_assert!(set_of(&first).is_subset(&set_of(&second)));
    }

    // Property 6: negating every weight of an exact policy reverses the order.
    #[test]
    fn negative_weights_turn_the_order_round(world in world()) {
        let exact = Placement { mode: "Exact".into(), count: None, ..world.wish.clone() };
        let mut negated = exact.clone();
        for one in &mut negated.configurations {
            one.weight = -one.weight;
        }
        let (one, two) = (report(&mut world.fleet(), &exact, noon()), report(&mut world.fleet(), &negated, noon()));
        let (one, two) = (totals(&one), totals(&two));
        for (name, total) in &one {
            prop_assert_eq!(*total, -two[name]);
        }
    }

    // Property 7: a steady weight above the span of everything else pins.
    #[test]
    fn a_heavy_steady_pins(world in world(), cpu in proptest::collection::vec(0..40_u32, 8)) {
        let mut wish = placement("p", world.wish.count, &[built_in("ResourceAllocatableCPU", 1), built_in("Steady", 3)]);
        wish.mode = "Exact".to_owned();
        let mut fleet = world.fleet();
        let first = decided(&mut fleet, &wish);
        write(&mut fleet, &first);
        for (cluster, cpu) in world.clusters.iter().zip(cpu) {
            let mut changed = cluster.clone();
            changed.allocatable.extend(amounts(&[("cpu", &cpu.to_string())]));
            changed.capacity.extend(amounts(&[("cpu", "40")]));
            fleet.set_cluster(changed);
        }
        prop_assert_eq!(set_of(&first), set_of(&decided(&mut fleet, &wish)));
    }

    // Property 8: more free is never worth less.
    #[test]
    fn more_free_is_never_worth_less(world in world(), more in 1..40_u32) {
        let wish = placement("p", None, &BUILT_IN.map(|name| built_in(name, 1)));
        let tolerant = Toleration { operator: "Exists".into(), ..Toleration::default() };
        let wish = Placement { tolerations: vec![tolerant], ..wish };
        let mut fleet = world.fleet();
        let before = report(&mut fleet, &wish, noon());
        let Some(cluster) = world.clusters.iter().find(|one| one.allocatable.contains_key("cpu")) else { return Ok(()) };
        let mut larger = cluster.clone();
        let free = cluster.allocatable["cpu"].float();
        larger.allocatable.extend(amounts(&[("cpu", &format!("{}", free + f64::from(more)))]));
        fleet.set_cluster(larger);
        let after = report(&mut fleet, &wish, noon());
        for name in ["ResourceAllocatableCPU", "ResourceRatioCPU"] {
            prop_assert!(raw(&after, &cluster.name, name) >= raw(&before, &cluster.name, name));
        }
    }

    // Property 9: tolerated until the deadline, and not at it.
    #[test]
    fn a_deadline_is_kept_to_the_moment(added in -1000..1000_i64, seconds in 1..1000_i64) {
        let tainted = ClusterFacts { taints: vec![taint("x", Effect::NoSelect, Some(at(added)))], ..cluster("a") };
        let mut fleet = fleet([tainted]);
        let toleration = Toleration { operator: "Exists".into(), seconds: Some(seconds), ..Toleration::default() };
        let wish = Placement { tolerations: vec![toleration], ..placement("p", None, &[]) };
        let deadline = at(added + seconds);
        let before = report(&mut fleet, &wish, deadline - SignedDuration::from_nanos(1)).outcome;
        prop_assert_eq!((before.selected.len(), before.requeue_at), (1, Some(deadline)));
        prop_assert_eq!(report(&mut fleet, &wish, deadline).outcome.selected.len(), 0);
    }

    // Property 10: with a required term, no place is ahead of its siblings by more than it may be.
    #[test]
    fn required_spread_is_never_more_uneven_than_it_may_be(world in world(), skew in 1..3_i64, both in any::<bool>()) {
        let term = |key: &str| Constraint { key: key.into(), kind: TopologyKind::Label, max_skew: skew, required: true };
        let mut wish = Placement { spread: vec![term("region")], predicates: vec![], ..world.wish.clone() };
        if both {
            wish.spread.push(term("zone"));
        }
        let found = report(&mut world.fleet(), &wish, noon());
        let chosen = set_of(&found.outcome);
        let survivors: Vec<&ClusterFacts> = world.clusters.iter()
            .filter(|c| found.clusters.iter().any(|f| f.cluster == c.name && f.total.is_some())).collect();
        for depth in 1..=wish.spread.len() {
            let place = |c: &ClusterFacts| ["region", "zone"][..depth].iter().map(|key| c.labels[*key].clone()).collect::<Vec<_>>();
            let mut counts: BTreeMap<Vec<String>, i64> = survivors.iter().map(|c| (place(c), 0)).collect();
            for one in survivors.iter().filter(|c| chosen.contains(&*c.name)) {
                *counts.entry(place(one)).or_default() += 1;
            }
            for (here, count) in &counts {
                let siblings = counts.iter().filter(|(there, _)| there[..depth - 1] == here[..depth - 1]);
                let least = siblings.map(|(_, count)| *count).min().unwrap();
                prop_assert!(count - least <= skew, "{:?}: {:?}", here, counts);
            }
        }
    }
}
