//! Points, one prioritizer after another.

use super::*;

/// A fleet in which other placements have selected `a` to `z` so often.
fn counted(counts: &[(&str, usize)]) -> Fleet {
    let mut fleet = fleet(counts.iter().map(|(name, _)| cluster(name)));
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
    for round in 0..most {
        let names: Vec<&str> =
            counts.iter().filter(|(_, count)| *count > round).map(|(name, _)| *name).collect();
        fleet.set_slice(slice(&format!("other{round}"), 1, &names));
    }
    fleet
}

#[test]
fn balance_prefers_what_others_have_not_selected() {
    // Row A1: 2 × trunc(100 × (0.5 − count ÷ most)), in floats. 2/5 is 18, since 0.5 − 0.4 is 0.09999999999999998.
    for (count, most, want) in [
        (0, 1, 100),
        (1, 1, -100),
        (1, 2, 0),
        (2, 2, -100),
        (1, 3, 32),
        (2, 3, -32),
        (1, 4, 50),
        (3, 4, -50),
        (1, 5, 60),
        (2, 5, 18),
        (3, 5, -18),
        (4, 5, -60),
        (1, 7, 70),
        (3, 7, 14),
    ] {
        let mut fleet = counted(&[("a", count), ("most", most)]);
        let report = report(&mut fleet, &placement("p", None, &[]), noon());
        assert_eq!(raw(&report, "a", "Balance"), Some(want), "{count} of {most}");
    }
}

#[test]
fn what_a_placement_selected_itself_does_not_count_against_it() {
    let mut fleet = fleet([cluster("a"), cluster("b")]);
    fleet.set_slice(slice("p", 1, &["a"]));
    let report = report(&mut fleet, &placement("p", None, &[]), noon());
    assert_eq!([raw(&report, "a", "Balance"), raw(&report, "b", "Balance")], [Some(100); 2]);
    assert_eq!([raw(&report, "a", "Steady"), raw(&report, "b", "Steady")], [Some(100), Some(0)]);
}

#[test]
fn clusters_nobody_may_select_count_for_balance_all_the_same() {
    let mut fleet = fleet([cluster("a")]);
    // Not labelled, in another namespace, and of a cluster that is not there: counted twice.
    let foreign = Slice {
        key: Key::new("other", "x-decision-1"),
        labels: BTreeMap::new(),
        ..slice("x", 1, &["gone", "gone", "a"])
    };
    fleet.set_slice(foreign);
    let report = report(&mut fleet, &placement("p", None, &[]), noon());
    assert_eq!(raw(&report, "a", "Balance"), Some(0), "1 of 2");
}

#[test]
fn allocatable_is_relative_and_needs_both_figures() {
    let only = |name: &str, allocatable: &[(&str, &str)], capacity: &[(&str, &str)]| ClusterFacts {
        allocatable: amounts(allocatable),
        capacity: amounts(capacity),
        ..cluster(name)
    };
    let both = |name: &str, cpu: &str| only(name, &[("cpu", cpu)], &[("cpu", "100")]);
    let cases = [
        // Row A4: no span.
        ("all alike have the most", vec![both("a", "4"), both("b", "4")], vec![Some(100); 2]),
        ("one alone has the most", vec![both("a", "0"), cluster("b")], vec![Some(100), None]),
        // Row A6: without capacity, the amount is not used, not even as a bound.
        (
            "capacity must be there",
            vec![both("a", "2"), only("b", &[("cpu", "9")], &[]), both("c", "4")],
            vec![Some(-100), None, Some(100)],
        ),
        ("nobody knows anything", vec![cluster("a")], vec![None]),
    ];
    for (why, clusters, want) in cases {
        let names: Vec<_> = clusters.iter().map(|cluster| cluster.name.clone()).collect();
        let mut fleet = fleet(clusters);
        let report =
            report(&mut fleet, &placement("p", None, &[built_in("ResourceAllocatableCPU", 1)]), noon());
        let points: Vec<_> = names.iter().map(|name| raw(&report, name, "ResourceAllocatableCPU")).collect();
        assert_eq!(points, want, "{why}");
        for found in &report.clusters {
            // Row A5: no data is the middle of the scale; the answer says that there is none.
            let total: i64 = found.scores.iter().map(|score| score.raw.unwrap_or(0)).sum();
            assert_eq!(found.total, Some(total), "{why}");
        }
    }
}

#[test]
fn row_a3_memory_is_scored_like_cpu() {
    // 5 of 2 to 10: (5 − 2) ÷ (10 − 2) = 0.375, and (0.375 − 0.5) × 2 × 100 = −25.
    let like = |name: &str, cpu: &str, memory: &str| sized(name, [cpu, "16"], [memory, "16Gi"]);
    let mut fleet = fleet([like("a", "2", "2Gi"), like("b", "5", "5Gi"), like("c", "10", "10Gi")]);
    for prioritizer in ["ResourceAllocatableCPU", "ResourceAllocatableMemory"] {
        let report = report(&mut fleet, &placement("p", None, &[built_in(prioritizer, 1)]), noon());
        let points = ["a", "b", "c"].map(|name| raw(&report, name, prioritizer));
        assert_eq!(points, [Some(-100), Some(-25), Some(100)], "{prioritizer}");
    }
}

#[test]
fn a_ratio_holds_within_its_scale_and_needs_a_capacity() {
    for (allocatable, capacity, want) in [
        ("0", "10", Some(-100)),
        ("4", "10", Some(-19)),
        // Row A7: more than all is all.
        ("15", "10", Some(100)),
        ("1", "0", None),
        ("0", "0", None),
    ] {
        let mut fleet = fleet([sized("a", [allocatable, capacity], ["1", "1"])]);
        let report = report(&mut fleet, &placement("p", None, &[built_in("ResourceRatioCPU", 1)]), noon());
        assert_eq!(raw(&report, "a", "ResourceRatioCPU"), want, "{allocatable} of {capacity}");
    }
}

#[test]
fn any_resource_can_be_weighed() {
    let gpus = |name: &str, free: &str| ClusterFacts {
        allocatable: amounts(&[("nvidia.com/gpu", free)]),
        capacity: amounts(&[("nvidia.com/gpu", "8")]),
        ..cluster(name)
    };
    let mut fleet = fleet([gpus("busy", "2"), gpus("idle", "8"), cluster("none")]);
    let configurations =
        [built_in("ResourceRationvidia.com/gpu", 2), built_in("ResourceAllocatablenvidia.com/gpu", 1)];
    let report = report(&mut fleet, &placement("p", Some(1), &configurations), noon());
    assert_eq!(selected(&report.outcome), ["idle"]);
    let of = |cluster| {
        configurations.each_ref().map(|one| match &one.coordinate {
            Some(Coordinate::BuiltIn(name)) => raw(&report, cluster, name),
            _ => None,
        })
    };
    assert_eq!([of("busy"), of("idle"), of("none")], [[Some(-50), Some(-100)], [Some(100); 2], [None; 2]]);
}

#[test]
fn scores_of_others_count_while_they_hold() {
    let mut fleet = fleet(["absent", "expired", "fresh", "other"].map(cluster));
    let scores =
        |name: &str, value, until| Scores { values: [(name.to_owned(), value)].into(), valid_until: until };
    fleet.set_scores("expired", "demo", scores("cpu", 90, Some(at(-1))));
    fleet.set_scores("fresh", "demo", scores("cpu", -7, Some(noon())));
    fleet.set_scores("other", "demo", scores("memory", 60, Some(at(90))));
    let mut wish = placement("p", None, &[add_on("demo", "cpu", 3)]);
    wish.mode = "Exact".to_owned();
    let found = report(&mut fleet, &wish, noon());
    let points = ["absent", "expired", "fresh", "other"].map(|name| raw(&found, name, "AddOn/demo/cpu"));
    assert_eq!(points, [None, None, Some(-7), None]);
    assert_eq!(totals(&found)["fresh"], -21);
    assert_eq!(found.outcome.warnings, ["AddOnPlacementScores expired/demo expired"]);
    let message = "AddOnPlacementScores expired/demo expired".to_owned();
    assert_eq!(found.outcome.code, Code::Warning { plugin: "AddOn/demo/cpu".into(), message });
    // Row A20: no retries; looked at again when the next one expires.
    assert_eq!(found.outcome.requeue_at, Some(noon()), "valid until and including noon");
    let later = report(&mut fleet, &wish, at(1));
    assert_eq!(raw(&later, "fresh", "AddOn/demo/cpu"), None, "a second after noon it is over");
    assert_eq!(later.outcome.requeue_at, Some(at(90)));
}

#[test]
fn what_expired_is_told_by_name_in_whatever_order_clusters_came() {
    for names in [["a", "b", "c"], ["c", "a", "b"]] {
        let mut fleet = fleet(names.map(cluster));
        for name in names {
            let past = Scores { values: [("cpu".to_owned(), 1)].into(), valid_until: Some(at(-1)) };
            fleet.set_scores(name, "demo", past);
        }
        let found = report(&mut fleet, &placement("p", None, &[add_on("demo", "cpu", 1)]), noon());
        assert_eq!(found.outcome.warnings, ["AddOnPlacementScores a/demo b/demo c/demo expired"]);
    }
}

#[test]
fn the_same_score_named_twice_counts_twice_and_a_built_in_once() {
    let mut fleet = fleet([cluster("a")]);
    fleet.set_scores("a", "demo", Scores { values: [("cpu".to_owned(), 10)].into(), valid_until: None });
    // Row A19: weights of the same score add up; of a built-in the last word holds.
    let configurations =
        [add_on("demo", "cpu", 2), add_on("demo", "cpu", 3), built_in("Balance", 7), built_in("Balance", 2)];
    let report = report(&mut fleet, &placement("p", None, &configurations), noon());
    assert_eq!(totals(&report)["a"], 5 * 10 + 2 * 100);
}

#[test]
fn weights_follow_the_mode() {
    let names = |report: &Report| {
        let scores = &report.clusters[0].scores;
        scores.iter().map(|score| format!("{} {}", score.name, score.weight)).collect::<Vec<_>>()
    };
    let cases: [(&str, Vec<Configuration>, &[&str]); 6] = [
        ("", vec![], &["Balance 1", "Steady 1"]),
        ("Additive", vec![built_in("Steady", 3)], &["Balance 1", "Steady 3"]),
        ("Additive", vec![built_in("Balance", 0)], &["Steady 1"]),
        ("Exact", vec![built_in("Steady", 3)], &["Steady 3"]),
        ("Exact", vec![], &[]),
        // Row A8: negative weights are fine; an unknown name that is switched off, too.
        (
            "Exact",
            vec![built_in("ResourceRatioCPU", -10), built_in("Nonsense", 0)],
            &["ResourceRatioCPU -10"],
        ),
    ];
    for (mode, configurations, want) in cases {
        let mut wish = placement("p", None, &configurations);
        wish.mode = mode.to_owned();
        let found = report(&mut fleet([cluster("a")]), &wish, noon());
        assert_eq!(names(&found), want, "{mode} {configurations:?}");
    }
}

#[test]
fn exact_without_anything_selects_by_name() {
    let mut wish = placement("p", Some(2), &[]);
    wish.mode = "Exact".to_owned();
    let mut fleet = fleet(["cluster10", "cluster2", "cluster1"].map(cluster));
    // Row A12: no chance in it.
    assert_eq!(selected(&decided(&mut fleet, &wish)), ["cluster1", "cluster10"], "in the order of bytes");
}

#[test]
fn a_taint_that_would_rather_not_have_us_counts_if_that_is_weighed() {
    let disliked = ClusterFacts { taints: vec![taint("old", Effect::PreferNoSelect, None)], ..cluster("a") };
    let mut fleet = fleet([disliked, cluster("b")]);
    // Row A11: no effect by itself.
    assert_eq!(selected(&decided(&mut fleet, &placement("p", Some(1), &[]))), ["a"]);
    let mut weighed = placement("p", Some(1), &[built_in("TaintPreference", 1)]);
    assert_eq!(selected(&decided(&mut fleet, &weighed)), ["b"]);
    weighed.tolerations = vec![Toleration { operator: "Exists".into(), ..Toleration::default() }];
    assert_eq!(selected(&decided(&mut fleet, &weighed)), ["a"], "tolerated, it is nothing");
}
