//! Any nodes, over any time.

use super::slow::{self, Law, Spot};
use super::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

type Nodes = BTreeMap<String, Spot>;

fn spots() -> impl Strategy<Value = Spot> {
    let load =
        prop::option::weighted(0.9, (0..130_i128, prop_oneof![Just(50), Just(65), Just(100), 1..100_i128]));
    let held = prop::option::of((1..=2_u8, -400..1_i64));
    (load, held, prop::bool::weighted(0.9)).prop_map(|(load, held, open)| Spot { load, held, open })
}

fn nodes() -> impl Strategy<Value = Nodes> {
    btree_map("[a-f]{1,2}", spots(), 0..14)
}

fn laws() -> impl Strategy<Value = Law> {
    (1..110_i128, 1..30_i128, 0..60_i128, 0..400_i64, 0..=100_usize).prop_map(
        |(soft, more, hysteresis, dwell, share)| Law { soft, hard: soft + more, hysteresis, dwell, share },
    )
}

fn options(law: Law) -> Options {
    let ratio = |p: i128| percent(i64::try_from(p).expect("small"));
    Options {
        soft: ratio(law.soft),
        hard: ratio(law.hard),
        hysteresis: ratio(law.hysteresis),
        dwell: SignedDuration::from_secs(law.dwell),
        share: percent(i64::try_from(law.share).expect("small")),
    }
}

fn facts(nodes: &Nodes) -> Vec<NodeHeat> {
    let one = |(name, spot): (&String, &Spot)| {
        let ratio = |p: i128| percent(i64::try_from(p).expect("small"));
        let heat = spot.load.and_then(|(value, limit)| Heat::new("m".into(), ratio(value), ratio(limit)));
        let grade = |g| if g == 2 { Grade::Over } else { Grade::High };
        let taint = spot.held.map(|(g, at)| LoadTaint { grade: grade(g), since: Some(t(at)) });
        NodeHeat { name: name.as_str().into(), heat, taint, takes_pods: spot.open }
    };
    nodes.iter().map(one).collect()
}

/// What each bears afterwards, as it reads off the node.
fn settle(nodes: &mut Nodes, changes: &[Change]) -> usize {
    let mut written = 0;
    for change in changes {
        written += usize::from(change.writes());
        let held = LoadTaint::of(&change.apply(&[])).map(|taint| {
            let at = taint.since.expect("ours has a time").as_second() - t(0).as_second();
            (if taint.grade == Grade::Over { 2 } else { 1 }, at)
        });
        nodes.get_mut(&*change.node).expect("it was given").held = held;
    }
    written
}

/// The seconds since the round before, and the loads.
type Round = (i64, Vec<Option<i128>>);

/// A cluster, round by round.
fn story() -> impl Strategy<Value = (Nodes, Vec<Round>)> {
    (nodes(), vec((1..200_i64, vec(prop::option::weighted(0.9, 0..130_i128), 14)), 1..20))
}

fn load(nodes: &mut Nodes, values: &[Option<i128>]) {
    for (spot, value) in nodes.values_mut().zip(values) {
        spot.load = value.map(|value| (value, spot.load.map_or(65, |(_, limit)| limit)));
    }
}

fn marked(nodes: &Nodes) -> usize {
    nodes.values().filter(|spot| spot.open && spot.held.is_some()).count()
}

proptest! {
    #[test]
    fn decisions_are_those_of_the_obvious_way(nodes in nodes(), law in laws()) {
        prop_assert_eq!(check(&options(law)), []);
        let want = slow::decide(&nodes, law, 0);
        let changes = decide(&facts(&nodes), &options(law), t(0));
        let got: BTreeMap<&str, &Change> = changes.iter().map(|c| (&*c.node, c)).collect();
        for (name, spot) in &nodes {
            let told = got.get(name.as_str());
            let grade = told.and_then(|c| c.after).map_or(0, |a| if a.grade == Grade::Over { 2 } else { 1 });
            prop_assert_eq!(grade, want[name], "{} of {:?}", name, told);
            prop_assert!(told.is_some() || spot.held.is_none(), "what has a taint is told of");
        }
    }

    #[test]
    fn the_order_in_which_nodes_are_given_does_not_matter(
        (nodes, keys) in nodes().prop_flat_map(|n| { let len = n.len(); (Just(n), vec(any::<u16>(), len)) }),
        law in laws(),
    ) {
        let facts = facts(&nodes);
        let mut mixed: Vec<_> = keys.into_iter().zip(facts.clone()).collect();
        mixed.sort_by_key(|(key, _)| *key);
        let mixed: Vec<_> = mixed.into_iter().map(|(_, node)| node).collect();
        prop_assert_eq!(decide(&facts, &options(law), t(0)), decide(&mixed, &options(law), t(0)));
    }

    /// Not even when taints of others' making were too many before.
    #[test]
    fn never_more_than_the_share_and_never_all((mut nodes, rounds) in story(), law in laws()) {
        let mut now = 0;
        for (pause, values) in rounds {
            now += pause;
            load(&mut nodes, &values);
            let changes = decide(&facts(&nodes), &options(law), t(now));
            settle(&mut nodes, &changes);
            let open = nodes.values().filter(|spot| spot.open).count();
            let most = if law.share == 0 { 0 } else { (open * law.share / 100).max(1) };
            prop_assert!(marked(&nodes) <= most, "{} of {}", marked(&nodes), open);
            prop_assert!(open == 0 || marked(&nodes) < open, "all {}", open);
        }
    }

    /// Nodes and options stay as they are, so nothing but load could change a taint.
    #[test]
    fn a_grade_is_never_left_downward_before_its_dwell_is_over((mut nodes, rounds) in story(), law in laws()) {
        for spot in nodes.values_mut() {
            spot.held = None;
        }
        let mut now = 0;
        for (pause, values) in rounds {
            now += pause;
            load(&mut nodes, &values);
            let changes = decide(&facts(&nodes), &options(law), t(now));
            for change in changes.iter().filter(|c| matches!(c.act, Act::Lower | Act::Remove)) {
                let since = change.before.and_then(|b| b.since).expect("ours has a time");
                prop_assert!(t(now) >= since + options(law).dwell, "{:?} at {}", change, now);
            }
            settle(&mut nodes, &changes);
        }
    }

    /// Once decided, loads that stay between where a grade is left and where it is entered change nothing, however
    /// they move and however long it takes.
    #[test]
    fn load_moving_within_the_hysteresis_moves_no_taint(
        mut nodes in nodes(),
        law in laws(),
        rounds in vec((1..1000_i64, vec(0..=1000_i128, 14)), 1..20),
    ) {
        nodes.retain(|_, spot| spot.open && spot.load.is_some());
        // Whatever dwell there was is over.
        let mut now = 1000;
        let first = decide(&facts(&nodes), &options(law), t(now));
        settle(&mut nodes, &first);
        for (pause, places) in rounds {
            now += pause;
            for (spot, place) in nodes.values_mut().zip(places) {
                let line = if spot.held.is_some_and(|(grade, _)| grade == 2) { law.hard } else { law.soft };
                // Against a limit of 10 000: from the exit to the line, both included.
                let (exit, entry) = (line * (100 - law.hysteresis), line * 100);
                spot.load = Some((exit + (entry - exit) * place / 1000, 10_000));
            }
            let changes = decide(&facts(&nodes), &options(law), t(now));
            prop_assert!(changes.iter().all(|c| !c.writes()), "{:?}", changes);
        }
    }

    /// More nodes are hot than may be marked, and they differ by less than the hysteresis: places are not swapped.
    #[test]
    fn noise_among_too_many_hot_nodes_moves_no_taint(
        rounds in vec((1..1000_i64, vec(0..11_i128, 14)), 2..20),
        count in 2..14_usize,
    ) {
        let law = Law { soft: 90, hard: 100, hysteresis: 10, dwell: 180, share: 30 };
        let mut nodes: Nodes = (0..count)
            .map(|i| (format!("n{i:02}"), Spot { load: None, held: None, open: true }))
            .collect();
        let mut now = 0;
        for (i, (pause, noise)) in rounds.into_iter().enumerate() {
            now += pause;
            for (spot, noise) in nodes.values_mut().zip(noise) {
                // 101 to 111 percent: 111 × 0.9 = 99.9.
                spot.load = Some((101 + noise, 100));
            }
            let changes = decide(&facts(&nodes), &options(law), t(now));
            let written = settle(&mut nodes, &changes);
            let most = (count * 3 / 10).max(1);
            prop_assert_eq!(written, if i == 0 { most } else { 0 });
            let spared = changes.iter().filter(|c| c.act == Act::Spare).count();
            prop_assert_eq!(spared, count - most, "everyone else is told");
        }
    }

    /// What is decided from the node objects alone is what one who was there all the time decides.
    #[test]
    fn a_new_process_decides_the_same((mut nodes, rounds) in story(), law in laws(), millis in 0..1000_i64) {
        let mut kept = facts(&nodes);
        let mut now = t(0);
        for (pause, values) in rounds {
            now += SignedDuration::from_secs(pause) + SignedDuration::from_millis(millis);
            load(&mut nodes, &values);
            let read = facts(&nodes);
            for (node, fresh) in kept.iter_mut().zip(&read) {
                node.heat.clone_from(&fresh.heat);
            }
            let (remembered, recomputed) = (decide(&kept, &options(law), now), decide(&read, &options(law), now));
            prop_assert_eq!(&remembered, &recomputed);
            for change in &remembered {
                let node = kept.iter_mut().find(|n| n.name == change.node).expect("it was given");
                node.taint = change.after;
            }
            settle(&mut nodes, &recomputed);
        }
    }

    /// Whatever the options, checked or not, and however large the figures.
    #[test]
    fn no_figures_are_too_large(
        figures in vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..30),
        (soft, hard, hysteresis, share) in (any::<i64>(), any::<i64>(), any::<i64>(), any::<i64>()),
        dwell in any::<i64>(),
    ) {
        let nodes: Vec<NodeHeat> = (0..).zip(figures).map(|(i, (value, limit, held)): (i32, _)| {
            let heat = Heat::new("m".into(), Ratio::from_nano(value), Ratio::from_nano(limit));
            node(&format!("n{i}"), heat, held.then(|| since(Grade::High, 0)))
        }).collect();
        let options = Options {
            soft: Ratio::from_nano(soft),
            hard: Ratio::from_nano(hard),
            hysteresis: Ratio::from_nano(hysteresis),
            dwell: SignedDuration::from_secs(dwell),
            share: Ratio::from_nano(share),
        };
        let changes = decide(&nodes, &options, t(0));
        prop_assert!(changes.iter().filter(|c| c.after.is_some()).count() < nodes.len().max(1));
        prop_assert!(changes.iter().all(|c| !c.because.to_string().is_empty()));
    }
}
