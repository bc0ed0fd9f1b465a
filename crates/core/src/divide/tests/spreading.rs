use super::*;

/// Clusters as (name, free cores, region), a zone and a provider from the region's name, and a label.
fn placed(all: &[(&str, i64, &str)]) -> Vec<Member> {
    all.iter()
        .map(|(name, cores, region)| Member {
            region: (*region).into(),
            zones: vec![format!("{region}-1")],
            provider: if region.starts_with('n') { "acme".into() } else { "zeus".into() },
            labels: BTreeMap::from([("rack".to_owned(), format!("rack-{name}"))]),
            ..member(name, &[("cpu", &cores.to_string())])
        })
        .collect()
}

fn order(answer: &Answer) -> String {
    answer.feasible.iter().map(|c| &*c.name).collect::<Vec<_>>().join(" ")
}

#[test]
fn clusters_are_chosen_by_score_then_room_then_name() {
    let free = fleet(&[("a", 5), ("b", 9), ("c", 5), ("d", 1)]);
    let binding = cores(3, dynamic()).on(&[("d", 1)]);
    assert_eq!(order(&divide(&free, &binding, &Given::default())), "d b a c");
}

#[test]
fn by_cluster_the_first_are_exchanged_until_all_fit() {
    // d has one replica and comes first; then b, a, c.
    let free = fleet(&[("a", 5), ("b", 9), ("c", 5), ("d", 1)]);
    let limit =
        |replicas, min, max| cores(replicas, dynamic()).on(&[("d", 1)]).spread(&[(By::Cluster, min, max)]);
    for (why, binding, want) in [
        ("d and b: 2 + 9 ≥ 8", limit(8, 1, 2), "b:6 d:2"),
        // d and b have 2 + 9 = 11 < 12. From the last: nobody outside has more than b's 9; d's 2 go for a's 5.
        ("d goes for a: 5 + 9 ≥ 12", limit(12, 1, 2), "a:4 b:8"),
        ("5 + 9 < 15", limit(15, 1, 2), "Unschedulable: no enough resource when selecting 2 clusters"),
        ("one cluster: b", limit(9, 1, 1), "b:9"),
        (
            "more clusters than there are",
            limit(3, 5, 6),
            "Unschedulable: the number of feasible clusters is less than spreadConstraint.MinGroups",
        ),
    ] {
        assert_eq!(decided(&free, &binding), want, "{why}");
    }
    let everywhere = cores(99, Division::Duplicated).spread(&[(By::Cluster, 1, 2)]);
    assert_eq!(decided(&free, &everywhere), "a:99 b:99", "capacity only orders what is duplicated");
}

#[test]
fn row_10_no_maximum_is_no_limit() {
    let free = fleet(&[("a", 5), ("b", 5)]);
    let binding = cores(4, dynamic()).spread(&[(By::Cluster, 1, 0)]);
    assert_eq!(decided(&free, &binding), "a:2 b:2");
    assert_eq!(
        told(&with(&free, &binding, upstream())),
        "SchedulerError: no enough resource when selecting 0 clusters"
    );
    let duplicated = cores(4, Division::Duplicated).spread(&[(By::Cluster, 1, 0)]);
    assert_eq!(decided(&free, &duplicated), "a:4 b:4");
    assert_eq!(
        told(&with(&free, &duplicated, upstream())),
        "SchedulerError: no clusters available to schedule"
    );
}

#[test]
fn row_11_more_regions_than_clusters_allowed_cannot_be() {
    let free = placed(&[("a", 5, "north"), ("b", 5, "south")]);
    let binding = cores(4, dynamic()).spread(&[(By::Region, 2, 2), (By::Cluster, 1, 1)]);
    assert_eq!(
        decided(&free, &binding),
        "Unschedulable: at least 2 different in region do not go into at most 1 clusters"
    );
    assert_eq!(told(&with(&free, &binding, upstream())), "a:2 b:2", "Karmada takes two where one is allowed");
}

#[test]
fn by_region_the_best_regions_are_chosen_and_filled() {
    let free = placed(&[("n1", 4, "north"), ("n2", 3, "north"), ("s1", 9, "south"), ("w1", 1, "west")]);
    let spread = |replicas, regions: (i64, i64), clusters: (i64, i64)| {
        cores(replicas, dynamic())
            .spread(&[(By::Region, regions.0, regions.1), (By::Cluster, clusters.0, clusters.1)])
    };
    for (why, binding, want) in [
        // Share 4 each: north 4 ≥ 4, south 9 ≥ 4, west 1 < 4: 4000, 4000, 1000. North and south, n1 and s1, then n2.
        // 8 × 4/16 = 2, 8 × 3/16 = 1.5, 8 × 9/16 = 4.5: 3/3 = 9/9, fewer seats first.
        ("two regions, all their clusters", spread(8, (2, 2), (2, 9)), "n1:2 n2:2 s1:4"),
        ("two regions, two clusters: the first of each", spread(8, (2, 2), (2, 2)), "n1:2 s1:6"),
        // One region: the share is 8; north 7, south 8: south alone.
        ("one region", spread(8, (1, 1), (1, 9)), "s1:8"),
        ("one region with two clusters", spread(7, (1, 1), (2, 9)), "n1:4 n2:3"),
        (
            "four regions",
            spread(8, (4, 4), (4, 9)),
            "Unschedulable: the number of feasible region is less than spreadConstraint.MinGroups",
        ),
        (
            "one region with three clusters",
            spread(3, (1, 1), (3, 9)),
            "Unschedulable: the number of clusters is less than the cluster spreadConstraint.MinGroups",
        ),
    ] {
        assert_eq!(decided(&free, &binding), want, "{why}");
    }
    let everywhere =
        |max| cores(4, Division::Duplicated).spread(&[(By::Region, 1, 1), (By::Cluster, 1, max)]);
    // 4 fit in one cluster of north and in one of south: 1000 each; more clusters in north.
    assert_eq!(decided(&free, &everywhere(9)), "n1:4 n2:4");
    assert_eq!(decided(&free, &everywhere(1)), "n1:4");
}

#[test]
fn row_12_zones_providers_and_labels_count_and_compose() {
    let free = placed(&[("n1", 4, "north"), ("n2", 4, "north"), ("s1", 9, "south"), ("w1", 9, "west")]);
    let spread = |spread: &[(By, i64, i64)]| cores(4, dynamic()).spread(spread);
    for (why, binding, want) in [
        // Shares of 2 fit everywhere: 2000 each. North has more clusters, south comes before west; 4 × 4/13 and 4 × 9/13.
        ("by zone", spread(&[(By::Zone, 2, 2), (By::Cluster, 2, 2)]), "n1:1 s1:3"),
        ("by zone, no cluster constraint", spread(&[(By::Zone, 1, 1)]), "n1:2 n2:2"),
        ("two providers, two clusters", spread(&[(By::Provider, 2, 2), (By::Cluster, 2, 2)]), "n1:1 s1:3"),
        ("by label", spread(&[(By::Label("rack".into()), 3, 3)]), "n1:1 n2:1 s1:2"),
        // Both providers, so north and one of south and west; one cluster each.
        (
            "two providers in two regions",
            spread(&[(By::Provider, 2, 2), (By::Region, 2, 2), (By::Cluster, 2, 2)]),
            "n1:1 s1:3",
        ),
        (
            "one provider in two regions",
            spread(&[(By::Region, 2, 2), (By::Provider, 1, 1), (By::Cluster, 2, 2)]),
            "s1:2 w1:2",
        ),
        (
            "three providers",
            spread(&[(By::Provider, 3, 3)]),
            "Unschedulable: the number of feasible provider is less than spreadConstraint.MinGroups",
        ),
    ] {
        assert_eq!(decided(&free, &binding), want, "{why}");
    }
    let zone = spread(&[(By::Zone, 2, 2), (By::Cluster, 2, 2)]);
    assert_eq!(
        told(&with(&free, &zone, upstream())),
        "s1:2 w1:2",
        "zones are ignored, the roomiest are in two"
    );
    let alone = spread(&[(By::Zone, 2, 2)]);
    assert_eq!(
        told(&with(&free, &alone, upstream())),
        "SchedulerError: just support cluster and region spread constraint"
    );
}

#[test]
fn a_cluster_of_several_zones_stands_for_each_of_them() {
    let mut free = placed(&[("a", 4, "north"), ("b", 2, "south")]);
    free[0].zones = vec!["z1".into(), "z2".into(), "z1".into()];
    free[1].zones = vec!["z3".into()];
    let two = cores(4, dynamic()).spread(&[(By::Zone, 2, 2), (By::Cluster, 1, 1)]);
    assert_eq!(
        decided(&free, &two),
        "Unschedulable: at least 2 different in zone do not go into at most 1 clusters"
    );
    let two = cores(4, dynamic()).spread(&[(By::Zone, 2, 2)]);
    assert_eq!(decided(&free, &two), "a:4");
}

#[test]
fn row_13_groups_without_room_give_way_to_the_next_best() {
    // Shares of 5: n1 and n2 have 3 + 3 = 6 ≥ 5, south 5, west 4. Best north and south, 5000 each; of north only one
    // cluster may be had with two in all: 3 + 5 = 8 < 10.
    let free = placed(&[("n1", 3, "north"), ("n2", 3, "north"), ("s1", 5, "south"), ("w1", 5, "west")]);
    let binding = cores(10, dynamic()).spread(&[(By::Region, 2, 2), (By::Cluster, 2, 2)]);
    assert_eq!(decided(&free, &binding), "s1:5 w1:5");
    assert_eq!(
        told(&with(&free, &binding, upstream())),
        "Unschedulable: Clusters available replicas 8 are not enough to schedule.",
    );
    let more = Binding { replicas: 11, ..binding };
    assert_eq!(
        decided(&free, &more),
        "Unschedulable: Clusters available replicas 8 are not enough to schedule.",
        "none has room: the best is told"
    );
}

#[test]
fn row_14_a_spread_that_cannot_be_kept_waits_for_room() {
    let free = fleet(&[("a", 1)]);
    let binding = cores(4, dynamic()).spread(&[(By::Cluster, 1, 1)]);
    let answer = divide(&free, &binding, &Given::default());
    assert_eq!(answer.condition().reason, "Unschedulable");
    assert_eq!(answer.failure.map(|failure| failure.retry()), Some(Retry::Room));
    assert_eq!(with(&free, &binding, upstream()).condition().reason, "SchedulerError");
}

// 10 replicas in two regions and two clusters, 5 each. Regions of two clusters with 3 cores reach their share, and as they
// have more clusters they come first; but one cluster of each is all that may be chosen. Only `y` and `z`, with 5 in one
// cluster, have room, and they come last of all pairs: with 9 such regions as the 36 + 18 + 1 = 55th, with 11 as the
// 55 + 22 + 1 = 78th.
#[test]
fn where_not_every_combination_is_tried_the_answer_says_so() {
    let answer = |regions: usize| {
        let mut fleet = Vec::new();
        let mut add = |region: &str, number: usize, cores: &str| {
            let name = format!("{region}-{number}");
            fleet.push(Member { region: region.into(), ..member(&name, &[("cpu", cores)]) });
        };
        for region in &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"][..regions] {
            add(region, 1, "3");
            add(region, 2, "3");
        }
        add("y", 1, "5");
        add("z", 1, "5");
        let binding = cores(10, dynamic()).spread(&[(By::Region, 2, 2), (By::Cluster, 2, 2)]);
        divide(&fleet, &binding, &Given::default())
    };
    let found = answer(9);
    assert_eq!(found.warnings, [""; 0]);
    let targets: Vec<_> = found.clusters.iter().map(|target| (&*target.name, target.replicas)).collect();
    assert_eq!(targets, [("y-1", Some(5)), ("z-1", Some(5))]);
    let cut = answer(11);
    assert_eq!(cut.clusters, []);
    let told = cut.condition().message;
    assert!(told.ends_with(&format!(" ({})", cut.warnings[0])), "{told}");
    assert_eq!(
        cut.warnings,
        [
            "64 combinations of groups were tried and have no room for all replicas; there are more, which were not tried"
        ]
    );
}

// 2001 × 3 × 401 is more than the two million places of the table: the highest scores are taken, and that is told.
#[test]
fn where_there_are_too_many_groups_to_weigh_the_answer_says_so() {
    let one = |number: usize| {
        let name = format!("m{number:04}");
        Member { region: name.clone(), ..member(&name, &[("cpu", "1")]) }
    };
    let fleet: Vec<Member> = (0..2000).map(one).collect();
    let answer = |least: i64| {
        let replicas = i32::try_from(least).unwrap();
        let binding = cores(replicas, dynamic()).spread(&[(By::Region, 2, 0), (By::Cluster, least, 0)]);
        divide(&fleet, &binding, &Given::default())
    };
    let weighed = answer(300);
    assert_eq!((weighed.failure.is_none(), weighed.warnings.len()), (true, 0));
    let plain = answer(400);
    assert!(plain.failure.is_none());
    let told = "too many groups to weigh every combination: the highest scores are taken";
    assert_eq!(plain.warnings, [told]);
}
