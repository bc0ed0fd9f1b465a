//! What a replay says happened is what happened: figures worked out again from who was where, by code that shares nothing with
//! the accounting of the engine.

#![expect(clippy::cast_precision_loss, reason = "amounts of small worlds")]

use loadline_core::rebalance::Settings;
use loadline_replay::STEP_MINUTES;
use loadline_replay::compare::{Comparison, Nodes};
use loadline_replay::figures::Figures;
use loadline_replay::policy::{Moving, Placing, Policy};
use loadline_replay::run::{Options, Outcome, Visit, run};
use loadline_replay::trace::Series;
use loadline_replay::trace::built_in::Data;
use loadline_replay::world::{Plan, World, draw};
use std::collections::{BTreeMap, BTreeSet};

const NODE: i64 = 4_000;

fn series(data: &str) -> Vec<Series> {
    Data::find(data).map(|data| data.series()).unwrap_or_default()
}

fn world(data: &str, seed: u64, nodes: usize) -> World {
    let plan = Plan { pods: 70, days: 2, replicas: 3, largest_milli: NODE, seed, ..Plan::default() };
    World { nodes: vec![NODE; nodes], ..draw(&series(data), &plan) }
}

fn replay(world: &World, policy: Policy) -> Outcome {
    run(world, policy, Options::default(), |_| {})
}

/// Every way to place, and every way to move after some of them.
fn every_policy() -> impl Iterator<Item = Policy> {
    let placed = Placing::ALL.into_iter().map(Policy::placing);
    let moved = [Placing::Requests, Placing::Line, Placing::Learned, Placing::Day];
    placed.chain(moved.into_iter().flat_map(|placing| {
        [Moving::Plain, Moving::Rebalance].map(|moving| Policy { moving, ..Policy::placing(placing) })
    }))
}

/// Cell by cell, from the visits alone.
fn slowly(world: &World, outcome: &Outcome) -> Figures {
    let mut used: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    for visit in &outcome.visits {
        let pod = &world.pods[visit.pod];
        let series = &world.workloads[pod.workload].series;
        for step in visit.from..visit.to {
            let sample = series[(step + pod.shift) % series.len()];
            *used.entry((visit.node, step)).or_default() += i64::from(sample) * i64::from(pod.scale) / 1000;
        }
    }
    let cells: Vec<(usize, usize, i64)> = (0..world.nodes.len())
        .flat_map(|node| world.counted.clone().map(move |step| (node, step)))
        .map(|(node, step)| (node, step, used.get(&(node, step)).copied().unwrap_or(0)))
        .collect();
    let share = |count: usize| count as f64 / cells.len() as f64;
    let wanted: i64 = cells.iter().map(|(.., milli)| milli).sum();
    let too_much: i64 = cells.iter().map(|(.., milli)| (milli - NODE).max(0)).sum();
    let mut sorted: Vec<i64> = cells.iter().map(|(.., milli)| *milli).collect();
    sorted.sort_unstable();
    // The first that 99 of 100 do not exceed.
    let rank = sorted
        .iter()
        .position(|milli| sorted.iter().filter(|m| **m <= *milli).count() * 100 >= sorted.len() * 99);
    let full: BTreeSet<(usize, usize)> =
        cells.iter().filter(|(.., milli)| *milli > NODE).map(|(node, step, _)| (*node, *step)).collect();
    let mut disturbed = BTreeSet::new();
    let (mut moves, mut late, mut late_steps) = (0, 0, 0);
    for (place, pod) in world.pods.iter().enumerate() {
        let visits: Vec<_> = outcome.visits.iter().filter(|visit| visit.pod == place).collect();
        let crowded = |visit: &&&loadline_replay::run::Visit| {
            (visit.from..visit.to).any(|step| full.contains(&(visit.node, step)))
        };
        if visits.len() > 1 || visits.iter().any(|visit| crowded(&visit)) {
            disturbed.insert(place);
        }
        moves += visits.len().saturating_sub(1);
        let begins = visits.iter().map(|visit| visit.from).min().unwrap_or(pod.leaves);
        late += usize::from(begins > pod.arrives);
        late_steps += begins - pod.arrives;
    }
    let life: usize = world.pods.iter().map(|pod| pod.leaves - pod.arrives).sum();
    Figures {
        nodes: world.nodes.len(),
        mean_use: wanted as f64 / (cells.len() as f64 * NODE as f64),
        over_target: share(cells.iter().filter(|(.., milli)| *milli > NODE * 65 / 100).count()),
        over_full: share(full.len()),
        not_served: too_much as f64 / wanted as f64,
        p99_use: rank.map_or(0, |rank| sorted[rank]) as f64 / NODE as f64,
        peak_use: sorted[sorted.len() - 1] as f64 / NODE as f64,
        pods_pending: late,
        pending_hours: late_steps as f64 / 12.0,
        moves,
        moves_per_pod_day: moves as f64 / (life as f64 / 288.0),
        pods_disturbed: disturbed.len(),
        pods: world.pods.len(),
        protection: None,
    }
}

fn assert_close(a: &Figures, b: &Figures, what: &str) {
    let floats = |f: &Figures| {
        [
            f.mean_use,
            f.over_target,
            f.over_full,
            f.not_served,
            f.p99_use,
            f.peak_use,
            f.pending_hours,
            f.moves_per_pod_day,
        ]
    };
    for (a, b) in floats(a).into_iter().zip(floats(b)) {
        // Shares of nodes are kept in millionths.
        assert!((a - b).abs() < 2e-6, "{what}: {a} is not {b}");
    }
    let counts = |f: &Figures| [f.nodes, f.pods_pending, f.moves, f.pods_disturbed, f.pods];
    assert_eq!(counts(a), counts(b), "{what}");
}

#[test]
fn figures_are_those_of_who_was_where() {
    let crowded = world("bitbrains", 3, 5);
    for policy in every_policy() {
        let outcome = replay(&crowded, policy);
        assert_close(&outcome.figures, &slowly(&crowded, &outcome), &policy.to_string());
    }
}

#[test]
fn no_node_ever_has_more_asked_of_it_than_it_has_and_nobody_is_in_two_places() {
    let world = world("google", 5, 4);
    for policy in every_policy() {
        let outcome = replay(&world, policy);
        let mut asked: BTreeMap<(usize, usize), i64> = BTreeMap::new();
        let mut there = BTreeSet::new();
        for visit in &outcome.visits {
            let pod = &world.pods[visit.pod];
            assert!(pod.arrives <= visit.from && visit.to <= pod.leaves, "{policy}: {visit:?}");
            for step in visit.from..visit.to {
                *asked.entry((visit.node, step)).or_default() += pod.request_milli;
                assert!(there.insert((visit.pod, step)), "{policy}: {visit:?} is twice there");
            }
        }
        assert!(asked.values().all(|milli| *milli <= NODE), "{policy}");
    }
}

#[test]
fn the_same_seed_gives_the_same_answer_and_another_one_another() {
    for name in ["requests", "learned+rebalance", "day", "oracle"] {
        let policy = name.parse().unwrap();
        let of = |seed| replay(&world("planetlab", seed, 4), policy);
        assert_eq!(of(1), of(1), "{name}");
        assert_ne!(of(1).figures, of(2).figures, "{name}");
    }
}

#[test]
fn use_that_never_changes_moves_nobody() {
    let flat = [Series { name: "flat".into(), milli: vec![300; 288] }];
    let plan = Plan { pods: 60, days: 2, error: 0.0, ..Plan::default() };
    let world = World { nodes: vec![NODE; 8], ..draw(&flat, &plan) };
    for name in ["requests", "crane", "line", "learned", "day", "oracle"] {
        let Figures { over_target, moves, .. } =
            replay(&world, format!("{name}+rebalance").parse().unwrap()).figures;
        assert_eq!((over_target, moves), (0.0, 0), "{name}");
    }
}

/// Within the dwell time nobody goes back, and nobody else goes the other way.
#[test]
fn two_nodes_never_swap_pods_over_a_whole_replay() {
    let dwell = usize::try_from(Settings::default().dwell.as_mins()).unwrap() / STEP_MINUTES;
    let mut moves = 0;
    for (data, seed) in [("bitbrains", 1), ("bitbrains", 4), ("google", 2)] {
        let world = world(data, seed, 5);
        for name in ["requests+rebalance", "crane+rebalance", "line+rebalance", "day-growth+rebalance"] {
            let outcome = replay(&world, name.parse().unwrap());
            // A visit that begins when another one of the same pod ends is a move: when, from where, to where.
            let mut made: Vec<(usize, usize, usize)> = Vec::new();
            for visit in &outcome.visits {
                let next = |other: &&Visit| other.pod == visit.pod && other.from == visit.to;
                made.extend(outcome.visits.iter().find(next).map(|next| (visit.to, visit.node, next.node)));
            }
            assert_eq!(made.len(), outcome.figures.moves, "{data} {seed} {name}");
            moves += made.len();
            for (at, from, to) in &made {
                let back = |other: &&(usize, usize, usize)| {
                    (other.1, other.2) == (*to, *from) && (*at..*at + dwell).contains(&other.0)
                };
                let back = made.iter().find(back);
                assert_eq!(back, None, "{data} {seed} {name}: {from} to {to} at {at}, and back");
            }
        }
    }
    assert!(moves > 50, "{moves}: there is something to swap");
}

#[test]
fn more_budget_never_makes_overload_worse_by_more_than_noise() {
    let worlds: Vec<World> = (1..=3)
        .map(|seed| {
            let plan = Plan { pods: 300, days: 3, seed, ..Plan::default() };
            let world = draw(&series("bitbrains"), &plan);
            World { nodes: vec![16_000; world.nodes_for(0.25, 16_000)], ..world }
        })
        .collect();
    let with = |budget: u32| {
        let options = Options { budget: Some(budget), ..Options::default() };
        let policy = "line+rebalance".parse().unwrap();
        let all = worlds.iter().map(|world| run(world, policy, options, |_| {}).figures);
        all.fold((0.0, 0), |(over, moves), f| (over + f.over_full / worlds.len() as f64, moves + f.moves))
    };
    let found: Vec<(f64, usize)> = [0, 1, 4, 16, 64].map(with).into();
    assert_eq!(found[0].1, 0, "no budget, no moves");
    assert!(found.is_sorted_by_key(|(_, moves)| *moves), "{found:?}: a larger budget is made use of");
    for (at, (over, _)) in found.iter().enumerate() {
        let best = found[..at].iter().map(|(over, _)| *over).fold(f64::MAX, f64::min);
        // A tenth, and a quarter of a percent of nodes' time: moving one pod more or less changes everything after.
        assert!(*over <= best * 1.1 + 0.0025, "{found:?}");
    }
    assert!(found[4].0 < found[0].0 / 2.0, "{found:?}: and it is worth it");
}

#[test]
fn looking_ahead_waits_for_load_that_is_known_to_pass() {
    let plan = Plan { pods: 300, days: 3, ..Plan::default() };
    let world = draw(&series("bitbrains"), &plan);
    let world = World { nodes: vec![16_000; world.nodes_for(0.3, 16_000)], ..world };
    let moves = |look_ahead| {
        let options = Options { look_ahead, ..Options::default() };
        run(&world, "line+rebalance".parse().unwrap(), options, |_| {}).figures.moves
    };
    let (without, with) = (moves(false), moves(true));
    assert!(0 < with && with < without, "{with} {without}");
}

#[test]
fn protection_slows_down_some_of_those_acting_on_all_would_and_changes_nothing_else() {
    let world = world("bitbrains", 3, 5);
    let (without, with) =
        (replay(&world, "line".parse().unwrap()), replay(&world, "line+protection".parse().unwrap()));
    assert_eq!(with.visits, without.visits, "nobody is placed otherwise for it");
    let (alone, figures) = (without.figures, with.figures);
    let protection = figures.protection.unwrap();
    assert!(alone.over_full > 0.0 && protection.over_full < alone.over_full, "{protection:?}");
    assert!(
        0 < protection.pods_slowed && protection.pods_slowed < protection.pods_slowed_by_all,
        "{protection:?}"
    );
    assert!(
        figures.pods_disturbed < alone.pods_disturbed,
        "{} {}",
        figures.pods_disturbed,
        alone.pods_disturbed
    );
    assert!(figures.not_served >= alone.not_served, "agents withhold more than is missing");
    assert_eq!(
        (figures.over_full, figures.p99_use),
        (alone.over_full, alone.p99_use),
        "what is wanted is wanted"
    );
    let policy: Policy = "crane+rebalance+protection".parse().unwrap();
    assert_eq!((policy.moving, policy.protection), (Moving::Rebalance, true));
    assert_eq!(policy.to_string(), "crane+rebalance+protection");
}

#[test]
fn whoever_knows_the_future_does_better_than_requests() {
    let (mut requests, mut oracle) = (0.0, 0.0);
    for seed in 1..=3 {
        let plan = Plan { pods: 400, days: 3, seed, ..Plan::default() };
        let world = draw(&series("bitbrains"), &plan);
        let world = World { nodes: vec![16_000; world.nodes_for(0.2, 16_000)], ..world };
        let of = |name: &str| replay(&world, name.parse().unwrap()).figures.over_full;
        requests += of("requests");
        oracle += of("oracle");
    }
    assert!(oracle < requests, "{oracle} {requests}");
}

#[test]
fn a_policy_is_known_by_the_name_it_shows() {
    for policy in every_policy() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let told = "best".parse::<Policy>().unwrap_err();
    assert!(told.starts_with("no policy \"best\"; there are requests, crane, "), "{told}");
}

#[test]
fn as_few_nodes_as_are_enough_are_found() {
    use loadline_replay::fewest::{Enough, fewest};
    let world = world("google", 2, 1);
    let (policy, enough) = ("requests".parse().unwrap(), Enough { over_full: 0.01 });
    let with = |nodes| {
        let world = World { nodes: vec![NODE; nodes], ..world.clone() };
        let figures = replay(&world, policy).figures;
        // One of 70 is more than 1 %.
        figures.over_full <= 0.01 && figures.pods_pending == 0
    };
    let found = fewest(&world, NODE, 40, policy, (Options::default(), enough), |_| {}).unwrap().figures.nodes;
    assert!(with(found) && !with(found - 1), "{found}");
    let nowhere = fewest(&world, NODE, 1, policy, (Options::default(), enough), |_| {});
    assert_eq!(nowhere, None, "one node does not take them");
}

#[test]
fn a_world_that_could_neither_be_held_nor_waited_for_is_refused_before_it_is_replayed() {
    let series = series("google");
    let policies = [Policy::placing(Placing::Requests)];
    let plan = Plan { pods: 20, days: 2, ..Plan::default() };
    let ask = |nodes, node_milli| {
        let comparison = Comparison {
            recorded: None,
            series: &series,
            policies: &policies,
            seeds: &[1],
            plan,
            nodes,
            node_milli,
            options: Options::default(),
        };
        comparison.rows(1, |_| {}).map(|rows| rows.len())
    };
    assert_eq!(ask(Nodes::Fixed(10), NODE), Ok(1));
    for (nodes, node_milli) in [
        (Nodes::Fixed(1_000_000), NODE),
        (Nodes::Density(1e-9), NODE),
        (Nodes::Density(1e-300), NODE),
        (Nodes::Density(0.01), 1),
    ] {
        let refused = ask(nodes, node_milli).unwrap_err();
        assert!(refused.nodes.saturating_mul(refused.steps) > 50_000_000, "{nodes:?}: {refused:?}");
        let word = refused.to_string();
        assert!(word.contains("are too much to replay, 86805 would not be"), "{word}");
    }
}
