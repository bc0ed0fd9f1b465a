use super::*;

#[test]
fn replicas_are_divided_as_the_strategy_says() {
    let free = fleet(&[("a", 5), ("b", 7), ("c", 9)]);
    for (why, binding, want) in [
        ("everyone gets all, capacity or not", cores(8, Division::Duplicated), "a:8 b:8 c:8"),
        ("9 of 1:2, c has no weight", cores(9, fixed(&[("a", 1), ("b", 2)])), "a:3 b:6"),
        ("9 of 1:3 is 2.25 and 6.75", cores(9, fixed(&[("a", 1), ("b", 3)])), "a:2 b:7"),
        ("weights overlook capacity", cores(100, fixed(&[("a", 1)])), "a:100"),
        ("the largest weight that matches", cores(8, fixed(&[("a", 1), ("a", 3), ("b", 1)])), "a:6 b:2"),
        ("no weight preference: all the same", cores(6, Division::Weighted(None)), "a:2 b:2 c:2"),
        ("no weight matches any cluster: all the same", cores(6, fixed(&[("x", 7)])), "a:2 b:2 c:2"),
        ("21 fit, 21 are wanted", cores(21, dynamic()), "a:5 b:7 c:9"),
        // 10 × 5/21 = 2.4, 10 × 7/21 = 3.3, 10 × 9/21 = 4.3: 2, 3, 4, and the tenth to 5/5 = 1 = 7/7 = 9/9: fewest seats.
        ("by what fits: 2.4, 3.3 and 4.3", cores(10, dynamic()), "a:3 b:3 c:4"),
        // 9 < 10 ≤ 9 + 7: c and b, 10 × 9/16 = 5.6 and 10 × 7/16 = 4.4.
        ("aggregated: 9 and 7 are enough for 10", cores(10, Division::Aggregated), "b:4 c:6"),
        ("aggregated: one is enough for 9", cores(9, Division::Aggregated), "c:9"),
        (
            "22 do not fit",
            cores(22, dynamic()),
            "Unschedulable: Clusters available replicas 21 are not enough to schedule.",
        ),
        (
            "22 do not fit",
            cores(22, Division::Aggregated),
            "Unschedulable: Clusters available replicas 21 are not enough to schedule.",
        ),
        ("scaled to nothing", cores(0, dynamic()), ""),
        ("scaled to nothing everywhere", cores(0, Division::Duplicated), ""),
    ] {
        assert_eq!(decided(&free, &binding), want, "{why}");
    }
}

#[test]
fn what_a_cluster_has_it_keeps_while_replicas_are_added() {
    let free = fleet(&[("a", 5), ("b", 7), ("c", 9)]);
    for (why, binding, want) in [
        // 4 more by 5:7:9: 0.95, 1.33, 1.71.
        ("2 + 4 more", cores(6, dynamic()).on(&[("a", 2)]), "a:3 b:1 c:2"),
        // a comes first as it has some; 5 ≥ 4.
        ("aggregated: where it is comes first", cores(6, Division::Aggregated).on(&[("a", 2)]), "a:6"),
        // 6 more: a's 5 are not enough, then c's 9: 6 × 5/14 = 2.1 and 6 × 9/14 = 3.9.
        ("aggregated: then the roomiest", cores(8, Division::Aggregated).on(&[("a", 2)]), "a:4 c:4"),
        (
            "only what fits is counted, not what it has",
            cores(24, dynamic()).on(&[("a", 2)]),
            "Unschedulable: Clusters available replicas 21 are not enough to schedule.",
        ),
        ("as many as wanted: nothing moves", cores(6, dynamic()).on(&[("a", 6)]), "a:6"),
        // Shares of 8 and 4 in 6: 4 and 2.
        ("fewer: everyone gives its share", cores(6, dynamic()).on(&[("a", 8), ("b", 4)]), "a:4 b:2"),
        // a has 8 ≥ 6.
        (
            "aggregated, fewer: the largest keep theirs",
            cores(6, Division::Aggregated).on(&[("a", 8), ("b", 4)]),
            "a:6",
        ),
        ("to nothing", cores(0, dynamic()).on(&[("a", 8), ("b", 4)]), ""),
        (
            "a cluster that is not there any more does not count",
            cores(3, Division::Aggregated).on(&[("x", 3)]),
            "c:3",
        ),
        // Fresh: 5 + 2, 7, 9, so 10 × 7/23 = 3.04, 3.04, 3.9.
        (
            "asked to divide anew: as if it were nowhere",
            cores(10, dynamic()).on(&[("a", 2)]).fresh(),
            "a:3 b:3 c:4",
        ),
        ("static weights have no memory", cores(9, fixed(&[("a", 1), ("b", 2)])).on(&[("c", 9)]), "a:3 b:6"),
        // Duplicated again: those that have some are still all.
        ("duplicated has none either", cores(2, Division::Duplicated).on(&[("c", 9)]), "a:2 b:2 c:2"),
    ] {
        assert_eq!(decided(&free, &binding), want, "{why}");
    }
}

#[test]
fn ties_follow_the_uid_of_the_bound_object() {
    let free = fleet(&[("a", 5), ("b", 5)]);
    // The hash of "a" is even, that of "b" odd.
    for (uid, want) in [("", "a:2 b:1"), ("a", "a:2 b:1"), ("b", "a:1 b:2")] {
        let mut binding = cores(3, Division::Weighted(None));
        binding.resource.uid = uid.into();
        assert_eq!(decided(&free, &binding), want, "{uid:?}");
    }
}

#[test]
fn what_runs_no_pods_goes_to_every_cluster_chosen() {
    let mut config = binding(0, &[], dynamic());
    config.resource.kind = "ConfigMap".into();
    config.resource.api_version = "v1".into();
    let kinds = BTreeSet::from(["ConfigMap".to_owned()]);
    let mut free = fleet(&[("a", 0), ("b", 0)]);
    for member in &mut free {
        member.apis = Arc::new(BTreeMap::from([("v1".to_owned(), kinds.clone())]));
        member.summary = None;
    }
    let answer = divide(&free, &config, &Given::default());
    assert_eq!(told(&answer), "a b");
    assert!(
        answer
            .feasible
            .iter()
            .all(|cluster| cluster.allocatable == i32::MAX && answer.estimates(cluster).count() == 0)
    );
    assert_eq!(answer.warnings, Vec::<String>::new(), "nobody was asked how much fits");
}

#[test]
fn empty_clusters_get_the_workload_if_that_is_asked_for() {
    let free = fleet(&[("a", 5), ("b", 7)]);
    let options = Options { empty: true, ..Options::default() };
    assert_eq!(told(&with(&free, &cores(3, Division::Aggregated), options)), "a:0 b:3");
    assert_eq!(told(&with(&free, &cores(0, dynamic()), options)), "a:0 b:0");
}

#[test]
fn sets_of_components_are_not_divided() {
    let component = |name: &str, replicas, cpu: &str| Component {
        name: name.into(),
        replicas,
        ask: Ask { requests: list(&[("cpu", cpu)]), ..Ask::default() },
    };
    let mut job = binding(0, &[], dynamic()).spread(&[(By::Cluster, 1, 1)]);
    job.components = vec![component("manager", 1, "2"), component("worker", 3, "1")];
    // A set takes 2 + 3 × 1 = 5 cores: a has room for one, b for three.
    let answer = divide(&fleet(&[("a", 9), ("b", 15)]), &job, &Given::default());
    assert_eq!(told(&answer), "b");
    assert_eq!(answer.clusters[0].components, [("manager".to_owned(), 1), ("worker".to_owned(), 3)]);
    let sets: Vec<_> = answer.feasible.iter().map(|c| (&*c.name, c.allocatable)).collect();
    assert_eq!(sets, [("b", 3), ("a", 1)]);
    assert_eq!(answer.shortfall, 0);
    // None fits anywhere.
    let nowhere = divide(&fleet(&[("a", 4), ("b", 4)]), &job, &Given::default());
    assert_eq!(told(&nowhere), "Unschedulable: Clusters available replicas 0 are not enough to schedule.");
    assert_eq!(nowhere.failure.map(|failure| failure.retry()), Some(Retry::Room));
}

#[test]
fn no_set_of_components_goes_where_none_fits() {
    let component = |name: &str, replicas, cpu: &str| Component {
        name: name.into(),
        replicas,
        ask: Ask { requests: list(&[("cpu", cpu)]), ..Ask::default() },
    };
    // A set takes 5 cores: it fits into b and d, not into a and c.
    let free = fleet(&[("a", 4), ("b", 5), ("c", 0), ("d", 10)]);
    let job = |division: Division, spread: &[(By, i64, i64)]| {
        let mut job = binding(0, &[], division).spread(spread);
        job.components = vec![component("manager", 1, "2"), component("worker", 3, "1")];
        job
    };
    let short = "Unschedulable: the number of feasible clusters is less than spreadConstraint.MinGroups";
    for (why, division, spread, want) in [
        ("one or two of them: both that have room", dynamic(), &[(By::Cluster, 1, 2)][..], "b d"),
        ("up to three: no third has room", dynamic(), &[(By::Cluster, 1, 3)], "b d"),
        ("three at least: there are two", dynamic(), &[(By::Cluster, 3, 4)], short),
        ("everywhere: wherever there is room", Division::Duplicated, &[], "b d"),
    ] {
        let answer = divide(&free, &job(division, spread), &Given::default());
        assert_eq!(told(&answer), want, "{why}");
        let refused: Vec<_> = answer.filtered.iter().map(|f| (&*f.name, f.reason.clone())).collect();
        assert_eq!(refused, [("a", Refusal::NoSet), ("c", Refusal::NoSet)], "{why}");
    }
    let there = job(dynamic(), &[(By::Cluster, 1, 2)]).on(&[("a", 0)]);
    assert_eq!(decided(&free, &there), "a d", "what is there stays, and the roomiest is added");
}

#[test]
fn tiers_are_filled_one_after_the_other() {
    let mut tiered = cores(6, dynamic());
    let tiered = tiered.placing(|placement| {
        placement.groups = vec![Group {
            name: "home".into(),
            affinity: named(&["a", "b"]),
            overflow: vec![named(&["c"]), named(&["d"])],
        }];
    });
    let wanting = |replicas, on: &[(&str, i32)]| Binding { replicas, ..tiered.clone() }.on(on);
    let free = fleet(&[("a", 2), ("b", 2), ("c", 3), ("d", 9)]);
    for (why, binding, want) in [
        ("4 fit at home, 2 go to c", wanting(6, &[]), "a:2 b:2 c:2"),
        ("4 + 3, 1 goes to d", wanting(8, &[]), "a:2 b:2 c:3 d:1"),
        ("3 stay at home: 2 × 2/4 each, the third to the first", wanting(3, &[]), "a:2 b:1"),
        ("fewer: the last tier is emptied first", wanting(4, &[("a", 2), ("b", 2), ("c", 2)]), "a:2 b:2"),
        (
            "16 fit",
            wanting(17, &[]),
            "Unschedulable: Clusters available replicas 16 are not enough to schedule.",
        ),
    ] {
        assert_eq!(decided(&free, &binding), want, "{why}");
    }
    let answer = divide(&free, &wanting(6, &[]), &Given::default());
    let tiers: Vec<_> = answer.feasible.iter().map(|c| (&*c.name, c.tier)).collect();
    assert_eq!(tiers, [("a", 0), ("b", 0), ("c", 1), ("d", 2)]);
    assert_eq!(answer.affinity.as_deref(), Some("home"));
    let some = with(&free, &wanting(17, &[]), partial());
    assert_eq!((told(&some).as_str(), some.shortfall), ("a:2 b:2 c:3 d:9", 1));
}

#[test]
fn affinity_groups_are_tried_in_order_from_the_observed_one() {
    let mut grouped = cores(4, dynamic());
    let grouped = grouped.placing(|placement| {
        let group = |name: &str, clusters: &[&str]| Group {
            name: name.into(),
            affinity: named(clusters),
            overflow: Vec::new(),
        };
        placement.groups = vec![group("near", &["a"]), group("far", &["b"])];
    });
    let free = fleet(&[("a", 2), ("b", 9)]);
    let answer = divide(&free, &grouped, &Given::default());
    assert_eq!((told(&answer).as_str(), answer.affinity.as_deref()), ("b:4", Some("far")));
    assert_eq!(
        answer.warnings,
        ["affinity group near: Clusters available replicas 2 are not enough to schedule."]
    );
    let few = |observed: &str| Binding { replicas: 2, observed: observed.into(), ..grouped.clone() };
    for (why, binding, want) in [
        ("the first will do", few(""), "a:2"),
        ("it stays in the group it is in", few("far"), "b:2"),
        ("unless asked to begin anew", few("far").fresh(), "a:2"),
        ("a group that is not there any more", few("gone"), "a:2"),
        (
            "all fail: the first failure is told",
            Binding { replicas: 10, ..grouped.clone() },
            "Unschedulable: Clusters available replicas 2 are not enough to schedule.",
        ),
    ] {
        assert_eq!(decided(&free, &binding), want, "{why}");
    }
}

#[test]
fn row_15_what_fits_is_placed_if_that_is_asked_for() {
    let free = fleet(&[("a", 5), ("b", 7)]);
    for (why, binding, want, left) in [
        ("12 of 15", cores(15, dynamic()), "a:5 b:7", 3),
        ("aggregated: all clusters, all full", cores(15, Division::Aggregated), "a:5 b:7", 3),
        ("2 kept and 12 more", cores(16, dynamic()).on(&[("a", 2)]), "a:7 b:7", 2),
        ("all of 12", cores(12, dynamic()), "a:5 b:7", 0),
        ("by cluster, one only: the roomiest", cores(9, dynamic()).spread(&[(By::Cluster, 1, 1)]), "b:7", 2),
    ] {
        let answer = with(&free, &binding, partial());
        assert_eq!((told(&answer).as_str(), answer.shortfall), (want, left), "{why}");
        assert!(answer.condition().status);
    }
    let answer = with(&free, &cores(15, dynamic()), partial());
    assert_eq!(
        answer.condition().message,
        "Binding has been scheduled successfully. 3 replicas are left over: Clusters available replicas 12 are not enough to schedule."
    );
    let none = with(&fleet(&[("a", 0)]), &cores(3, dynamic()), partial());
    assert_eq!(none.condition().reason, "Unschedulable", "nothing fits at all");
    let whole = with(&free, &cores(15, dynamic()), Options::default());
    assert_eq!(
        (whole.condition().reason, whole.shortfall),
        ("Unschedulable", 15),
        "all or nothing by default"
    );
}

#[test]
fn row_16_a_shortfall_waits_for_room_and_a_misfit_for_a_change() {
    for (failure, retry) in [
        (Failure::Short { available: 1 }, Retry::Room),
        (Failure::Spread(String::new()), Retry::Room),
        (Failure::no_fit(1, [Refusal::Api].iter()), Retry::Changed),
        (Failure::Error(String::new()), Retry::Changed),
    ] {
        assert_eq!(failure.retry(), retry, "{failure:?}");
    }
}

#[test]
fn row_17_targets_are_sorted_by_name_whatever_order_clusters_come_in() {
    let mut free = fleet(&[("c", 9), ("a", 9), ("b", 9)]);
    let binding = cores(3, Division::Duplicated).spread(&[(By::Cluster, 1, 2)]).on(&[("c", 3)]);
    assert_eq!(decided(&free, &binding), "a:3 c:3", "c is first chosen and last written");
    free.reverse();
    assert_eq!(decided(&free, &binding), "a:3 c:3");
}

#[test]
fn row_18_lost_capacity_moves_nothing_but_is_told() {
    let mut free = fleet(&[("a", 9), ("b", 9)]);
    free[0].summary = Some(Summary::new(&list(&[("cpu", "1"), ("pods", "110")]), &List::new(), &List::new()));
    let binding = cores(4, dynamic()).on(&[("a", 3), ("b", 1)]);
    let answer = divide(&free, &binding, &Given::default());
    assert_eq!(told(&answer), "a:3 b:1");
    assert_eq!(answer.warnings, ["cluster a: keeps 3 replicas, more than it could hold"]);
    // Anew: a has 1 + 3, b 9 + 1, so 4 × 4/14 = 1.1 and 2.9.
    let options = Options { rebalance: true, ..Options::default() };
    assert_eq!(told(&with(&free, &binding, options)), "a:1 b:3");
}

#[test]
fn row_19_what_it_has_is_not_added_once_it_asks_for_something_else() {
    // Two cores each now; a could hold 4 / 2 = 2 of them in all, b 6 / 2 = 3.
    let free = fleet(&[("a", 4), ("b", 6)]);
    let mut binding = binding(4, &[("cpu", "2")], dynamic()).on(&[("a", 2)]).fresh();
    let before = divide(&free, &binding, &Given::default());
    assert_eq!(before.feasible[0].available, 4, "2 more and the 2 it has");
    binding.changed = true;
    let answer = divide(&free, &binding, &Given::default());
    let room: Vec<_> = answer.feasible.iter().map(|c| (&*c.name, c.allocatable, c.available)).collect();
    assert_eq!(room, [("a", 0, 2), ("b", 3, 3)]);
    assert_eq!(told(&answer), "a:2 b:2", "4 × 2/5 = 1.6 and 2.4");
}

#[test]
fn row_32_an_empty_weight_preference_weighs_all_the_same_and_keeps_constraints() {
    let free = fleet(&[("a", 5), ("b", 7), ("c", 9)]);
    let empty = cores(6, fixed(&[])).spread(&[(By::Cluster, 1, 2)]);
    assert_eq!(decided(&free, &empty), "b:3 c:3");
    let none = cores(6, Division::Weighted(None)).spread(&[(By::Cluster, 1, 2)]);
    assert_eq!(decided(&free, &none), "a:2 b:2 c:2", "static weights look at no constraint");
    let some = cores(6, fixed(&[("a", 1), ("b", 1), ("c", 1)])).spread(&[(By::Cluster, 1, 2)]);
    assert_eq!(decided(&free, &some), "a:2 b:2 c:2");
}

#[test]
fn bad_input_is_an_answer() {
    let free = fleet(&[("a", 5), ("b", 7)]);
    let unknown = Division::Unknown { kind: "Divided".into(), preference: String::new() };
    let mut both = cores(1, dynamic());
    let both = both.placing(|placement| {
        placement.affinity = Some(Affinity::default());
        placement.groups = vec![Group::default()];
    });
    let spread = |spread: &[(By, i64, i64)]| cores(1, dynamic()).spread(spread);
    for (binding, want) in [
        (cores(-3, dynamic()), "SchedulerError: spec.replicas: expected 0 or more, found -3"),
        (
            cores(1, unknown),
            "SchedulerError: unsupported replica scheduling strategy, replicaSchedulingType: Divided, replicaDivisionPreference: , please try another scheduling strategy",
        ),
        (Binding { placement: None, ..cores(1, dynamic()) }, "SchedulerError: the binding has no placement"),
        (both, "SchedulerError: placement: clusterAffinity and clusterAffinities exclude each other"),
        (
            spread(&[(By::Cluster, 2, 1)]),
            "SchedulerError: spread constraint by cluster: maxGroups 1 is less than minGroups 2",
        ),
        (
            spread(&[(By::Cluster, -1, 1)]),
            "SchedulerError: spread constraint by cluster: minGroups and maxGroups must not be negative",
        ),
        (
            spread(&[(By::Cluster, 1, 1), (By::Cluster, 1, 2)]),
            "SchedulerError: spread constraint by cluster: given more than once",
        ),
        (
            spread(&[(By::Unsaid, 1, 1)]),
            "SchedulerError: spread constraint by nothing: expected spreadByField or spreadByLabel",
        ),
        // An empty affinity is every cluster.
        (cores(12, dynamic()).placing(|placement| placement.affinity = Some(Affinity::default())), "a:5 b:7"),
        (
            cores(1, dynamic()).placing(|placement| placement.affinity = Some(named(&["gone"]))),
            "NoClusterFit: 0/2 clusters are available: 2 cluster(s) did not match the placement cluster affinity constraint.",
        ),
        // Weights that cannot be, if admission let them pass: as if there were none.
        (cores(4, fixed(&[("a", 0), ("b", -7)])), "a:2 b:2"),
        (cores(i32::MAX, fixed(&[("a", i64::MAX), ("b", i64::MAX)])), "a:1073741824 b:1073741823"),
        (
            cores(i32::MAX, dynamic()),
            "Unschedulable: Clusters available replicas 12 are not enough to schedule.",
        ),
        // Where it never was, and fewer than none.
        (cores(2, dynamic()).on(&[("a", -5), ("a", 9), ("x", 1)]), "a:1 b:1"),
    ] {
        assert_eq!(decided(&free, &binding), want);
    }
    let twice = [fleet(&[("a", 5)]), fleet(&[("a", 7)])].concat();
    let answer = divide(&twice, &cores(5, dynamic()), &Given::default());
    assert_eq!((told(&answer).as_str(), answer.warnings.len()), ("a:5", 1));
}

#[test]
fn row_31_a_binding_is_due_when_something_about_it_changed() {
    use crate::divide::due::{Applied, Due, due};
    let settled = cores(4, dynamic()).on(&[("a", 3), ("b", 1)]);
    let placement = settled.placement.clone().expect("it has one");
    let applied = Applied::Placement(Box::new(placement.clone()));
    let everywhere = cores(4, Division::Duplicated).on(&[("a", 4)]);
    let same = Applied::Placement(Box::new(everywhere.placement.clone().expect("it has one")));
    let leaving = |name: &str| name == "gone";
    for (why, binding, applied, want) in [
        ("all is as it should be", settled.clone(), &applied, None),
        ("never divided", settled.clone(), &Applied::Never, Some(Due::Placement)),
        ("what is remembered cannot be read", settled.clone(), &Applied::Unreadable, Some(Due::Placement)),
        ("another placement", settled.clone(), &same, Some(Due::Placement)),
        (
            "5 are wanted, 4 assigned",
            Binding { replicas: 5, ..settled.clone() },
            &applied,
            Some(Due::Replicas),
        ),
        ("somebody asked", settled.clone().fresh(), &applied, Some(Due::Asked)),
        ("goes everywhere", everywhere.clone(), &same, Some(Due::Everywhere)),
        ("a cluster goes", settled.clone().on(&[("gone", 4)]), &applied, Some(Due::Leaving)),
        ("no placement, nothing to do", Binding { placement: None, ..settled.clone() }, &applied, None),
    ] {
        assert_eq!(due(&binding, applied, leaving), want, "{why}");
    }
}

#[test]
fn of_affinity_groups_only_the_observed_one_makes_a_binding_due() {
    use crate::divide::due::{Applied, Due, due};
    let group = |name: &str, cluster: &str| Group {
        name: name.into(),
        affinity: named(&[cluster]),
        overflow: Vec::new(),
    };
    let grouped = |groups: &[(&str, &str)]| Placement {
        groups: groups.iter().map(|(name, cluster)| group(name, cluster)).collect(),
        division: dynamic(),
        ..Placement::default()
    };
    let mut binding = cores(4, dynamic()).on(&[("a", 4)]);
    binding.observed = "near".into();
    binding.placement = Some(grouped(&[("near", "a"), ("far", "b")]));
    for (why, last, want) in [
        ("the other changed", grouped(&[("near", "a"), ("far", "x")]), None),
        ("this one changed", grouped(&[("near", "x"), ("far", "b")]), Some(Due::Placement)),
        ("there was none", Placement { division: dynamic(), ..Placement::default() }, Some(Due::Placement)),
    ] {
        assert_eq!(due(&binding, &Applied::Placement(Box::new(last)), |_| false), want, "{why}");
    }
}
