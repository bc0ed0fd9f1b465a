//! The spread policy.

use super::*;

fn term(key: &str, required: bool, max_skew: i64) -> Constraint {
    Constraint { key: key.into(), kind: TopologyKind::Label, max_skew, required }
}

/// A cluster somewhere, with so many points from elsewhere.
fn somewhere(fleet: &mut Fleet, name: &str, points: i32, region: &str, zone: &str) {
    fleet.set_cluster(labelled(name, &[("region", region), ("zone", zone)]));
    fleet.set_scores(name, "demo", Scores { values: [("x".to_owned(), points)].into(), valid_until: None });
}

#[test]
fn the_example_of_the_proposal_picks_the_other_region() {
    // Row A22.
    let mut fleet = fleet([]);
    for (name, points, region, zone) in [
        ("c1", 50, "east", "1a"),
        ("c2", 50, "east", "1a"),
        ("c3", 0, "east", "1b"),
        ("c4", 0, "west", "1a"),
        ("c5", 50, "west", "1a"),
    ] {
        somewhere(&mut fleet, name, points, region, zone);
    }
    let mut wish =
        placement("p", Some(2), &[add_on("demo", "x", 1), built_in("Balance", 0), built_in("Steady", 0)]);
    wish.spread = vec![term("region", false, 1), term("zone", true, 1)];
    let found = report(&mut fleet, &wish, noon());
    assert_eq!(selected(&found.outcome), ["c1", "c5"]);
    let figures = |pairs: &[(std::sync::Arc<str>, i64)]| {
        pairs.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    let [first, second] = found.rounds.as_slice() else { panic!("two rounds: {:?}", found.rounds) };
    assert_eq!(figures(&first.raw), "c1 0, c2 0, c3 0, c4 0, c5 0", "everywhere is empty");
    assert_eq!((figures(&first.totals).as_str(), &*first.picked), ("c1 50, c2 50, c3 0, c4 0, c5 50", "c1"));
    // c2 would be the second in its zone. c3: region fullest, zone emptiest; c4 and c5: region emptiest, one zone only.
    assert_eq!(figures(&second.raw), "c3 63, c4 4032, c5 4032");
    assert_eq!(figures(&second.normalised), "c3 -100, c4 100, c5 100");
    assert_eq!((figures(&second.totals).as_str(), &*second.picked), ("c3 -200, c4 200, c5 250", "c5"));
    assert_eq!(found.outcome.unscheduled, 0);
}

#[test]
fn a_required_term_leaves_clusters_unselected_rather_than_uneven() {
    let mut fleet = fleet([]);
    for (name, region) in [("a", "east"), ("b", "east"), ("c", "east"), ("d", "west")] {
        somewhere(&mut fleet, name, 0, region, "");
    }
    fleet.set_cluster(cluster("e"));
    let wish = Placement { spread: vec![term("region", true, 1)], ..placement("p", None, &[]) };
    let found = report(&mut fleet, &wish, noon());
    assert_eq!(
        selected(&found.outcome),
        ["a", "d", "b"],
        "west has no more, so east may have one more than it"
    );
    assert_eq!(found.outcome.unscheduled, 2, "all five were wanted");
    assert_eq!(why(&found, "e"), "it lacks region, which clusters must be spread by");
    assert_eq!(condition(&found.outcome, SATISFIED).reason, "NotAllDecisionsScheduled");
}

#[test]
fn a_wished_term_lets_clusters_without_the_key_in() {
    let mut fleet = fleet([]);
    somewhere(&mut fleet, "a", 0, "east", "");
    somewhere(&mut fleet, "b", 0, "east", "");
    fleet.set_cluster(cluster("c"));
    let wish = Placement { spread: vec![term("region", false, 1)], ..placement("p", Some(3), &[]) };
    let outcome = decided(&mut fleet, &wish);
    assert_eq!((outcome.selected.len(), outcome.unscheduled), (3, 0));
}

#[test]
fn claims_spread_as_labels_do() {
    let claimed = |name: &str, zone: &str| ClusterFacts { claims: texts(&[("zone", zone)]), ..cluster(name) };
    let mut fleet = fleet([claimed("a", "1"), claimed("b", "1"), claimed("c", "2")]);
    let spread = vec![Constraint { kind: TopologyKind::Claim, ..term("zone", true, 1) }];
    assert_eq!(
        selected(&decided(&mut fleet, &Placement { spread, ..placement("p", Some(2), &[]) })),
        ["a", "c"]
    );
}

#[test]
fn the_weight_is_two_unless_said_and_nothing_in_exact_mode() {
    let mut fleet = fleet([]);
    // b is worth 100 more than c, which the other region makes up for: 2 × 200 > 100.
    for (name, points, region) in [("a", 100, "east"), ("b", 100, "east"), ("c", 0, "west")] {
        somewhere(&mut fleet, name, points, region, "");
    }
    let spread = vec![term("region", false, 1)];
    let points = add_on("demo", "x", 1);
    for (mode, more, want) in [
        ("Additive", vec![], ["a", "c"]),
        ("Additive", vec![built_in("Spread", 0)], ["a", "b"]),
        ("Exact", vec![], ["a", "b"]),
        ("Exact", vec![built_in("Spread", 1)], ["a", "c"]),
    ] {
        let configurations: Vec<_> = std::iter::once(points.clone()).chain(more).collect();
        let wish = Placement {
            mode: mode.into(),
            spread: spread.clone(),
            ..placement("p", Some(2), &configurations)
        };
        assert_eq!(selected(&decided(&mut fleet, &wish)), want, "{mode} {configurations:?}");
    }
}
