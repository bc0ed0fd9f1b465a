//! Live load, and keeping still.

use super::*;

/// Ten CPUs, so many of them asked for and used, as of then.
fn loaded(name: &str, requested: &str, measured: &str, when: Timestamp) -> ClusterFacts {
    let load = ClusterLoad {
        at: when,
        requested: amounts(&[("cpu", requested)]),
        measured: amounts(&[("cpu", measured)]),
    };
    ClusterFacts { load: Some(load), ..sized(name, ["10", "10"], ["1", "1"]) }
}

fn ratio(source: Source) -> Placement {
    let mut wish = placement("p", Some(1), &[built_in("ResourceRatioCPU", 1)]);
    wish.extra.source = source;
    wish
}

#[test]
fn what_is_free_depends_on_the_source() {
    let mut fleet = fleet([loaded("a", "9", "1", at(-30)), loaded("b", "2", "8", at(-10))]);
    for (source, points, want) in [
        (Source::Static, [100, 100], "a"),
        // (10 − 9) / 10 and (10 − 2) / 10
        (Source::Requested, [-80, 60], "b"),
        // (10 − 1) / 10 and (10 − 8) / 10
        (Source::Measured, [80, -60], "a"),
    ] {
        let found = report(&mut fleet, &ratio(source), noon());
        assert_eq!(
            ["a", "b"].map(|name| raw(&found, name, "ResourceRatioCPU")),
            points.map(Some),
            "{source:?}"
        );
        assert_eq!(selected(&found.outcome), [want], "{source:?}");
        assert_eq!(found.source, source);
        let (age, wake) =
            if source == Source::Static { (None, None) } else { (Some(at(-30)), Some(at(270))) };
        assert_eq!(found.oldest_load, age, "{source:?}");
        assert_eq!(found.outcome.requeue_at, wake, "when the oldest is five minutes old");
    }
}

#[test]
fn a_load_nobody_knows_is_never_idle() {
    let unknown = ClusterFacts { load: None, ..loaded("none", "0", "0", noon()) };
    let no_cpu = ClusterFacts {
        load: Some(ClusterLoad { at: noon(), requested: Resources::new(), measured: Resources::new() }),
        ..loaded("nothing", "0", "0", noon())
    };
    let mut fleet = fleet([
        loaded("busy", "9", "9", noon()),
        loaded("old", "0", "0", at(-301)),
        loaded("future", "0", "0", at(1)),
        unknown,
        no_cpu,
    ]);
    let found = report(&mut fleet, &ratio(Source::Measured), noon());
    assert_eq!(selected(&found.outcome), ["busy"], "−80 is known, everything else may be worse");
    for name in ["old", "future", "none", "nothing"] {
        assert_eq!(raw(&found, name, "ResourceRatioCPU"), None, "{name}");
        assert_eq!(totals(&found)[name], 0, "100 balance − 100: {name}");
    }
    assert_eq!(found.outcome.warnings, ["the measured load of 4 clusters is unknown or too old"]);
    // Weighed the other way round, unknown is not the best either.
    let mut packed = ratio(Source::Measured);
    packed.configurations = vec![built_in("ResourceRatioCPU", -1)];
    assert_eq!(selected(&report(&mut fleet, &packed, noon()).outcome), ["busy"]);
    // On request it is in the middle, as everybody else does it.
    packed.configurations = vec![built_in("ResourceRatioCPU", 1)];
    packed.extra.missing = Some(Missing::Middle);
    assert_eq!(selected(&report(&mut fleet, &packed, noon()).outcome), ["future"]);
}

#[test]
fn a_cluster_is_not_given_up_for_a_few_points() {
    let exact = |margin| {
        let mut wish = placement("p", Some(1), &[add_on("demo", "x", 1)]);
        wish.mode = "Exact".to_owned();
        wish.extra.margin = margin;
        wish
    };
    let scored = |points: [i32; 2]| {
        let mut fleet = fleet([cluster("a"), cluster("b")]);
        for (name, value) in ["a", "b"].into_iter().zip(points) {
            fleet.set_scores(
                name,
                "demo",
                Scores { values: [("x".to_owned(), value)].into(), valid_until: None },
            );
        }
        fleet.set_slice(slice("p", 1, &["b"]));
        fleet
    };
    for (points, margin, want, ahead, why) in [
        ([11, 10], None, "a", 1, "any point decides"),
        ([10, 10], None, "a", 0, "and the name, if points do not"),
        ([11, 10], Some(20), "b", 19, "b would have to fall 19 points further"),
        ([30, 10], Some(20), "b", 0, "just as much is not more"),
        ([31, 10], Some(20), "a", 1, "more than the margin"),
        ([10, 10], Some(0), "a", 0, "no margin is no reason to stay"),
    ] {
        let outcome = decided(&mut scored(points), &exact(margin));
        assert_eq!((selected(&outcome), outcome.margin), (vec![want], Some(ahead)), "{why}");
    }
}

#[test]
fn a_cluster_stays_as_long_as_it_must() {
    let mut fleet = fleet([sized("a", ["1", "10"], ["1", "1"]), sized("b", ["9", "10"], ["1", "1"])]);
    let mut wish = placement("p", Some(1), &[built_in("ResourceRatioCPU", 5)]);
    wish.extra.dwell = Some(SignedDuration::from_mins(10));
    let first = decided(&mut fleet, &wish);
    assert_eq!(selected(&first), ["b"]);
    assert_eq!(first.writes[0].slice.since, [("b".into(), noon())].into());
    write(&mut fleet, &first);

    fleet.set_cluster(sized("a", ["10", "10"], ["1", "1"]));
    fleet.set_cluster(sized("b", ["1", "10"], ["1", "1"]));
    let early = report(&mut fleet, &wish, at(599));
    assert_eq!(selected(&early.outcome), ["b"]);
    assert!(early.clusters[0].held);
    assert_eq!(early.outcome.requeue_at, Some(at(600)), "then it may go");
    let later = report(&mut fleet, &wish, at(600)).outcome;
    assert_eq!((selected(&later), later.requeue_at), (vec!["a"], None));

    // What no longer will do goes at once.
    fleet.remove_cluster("b");
    assert_eq!(selected(&report(&mut fleet, &wish, at(1)).outcome), ["a"]);
}
