//! Groups, and slices of at most a hundred.

use super::*;

/// `index name count slices…` of every group.
fn shown(outcome: &Outcome) -> Vec<String> {
    let show = |(index, group): (usize, &Group)| {
        let slices: Vec<&str> =
            group.slices.iter().map(|name| name.rsplit('-').next().unwrap_or_default()).collect();
        format!("{index} {} {} in {}", group.name, group.clusters, slices.join(","))
    };
    outcome.groups.iter().enumerate().map(show).collect()
}

#[test]
fn named_groups_come_first_and_all_are_cut_to_size() {
    // 320 selected: 10 west, 10 east, 300 others; 150 in a group, 100 in a slice.
    let regions = |n: usize| match n {
        0..10 => "west",
        10..20 => "east",
        _ => "north",
    };
    let mut fleet = fleet((0..320).map(|n| labelled(&format!("c{n:03}"), &[("region", regions(n))])));
    let group =
        |name: &str| GroupRule { name: name.into(), labels: labels(&[("region", name)]), claims: vec![] };
    let wish = Placement {
        groups: vec![group("west"), group("east"), group("south")],
        group_size: GroupSize::Count(150),
        ..placement("p", None, &[])
    };
    let outcome = decided(&mut fleet, &wish);
    // Row A16: slices count from 1, groups from 0.
    assert_eq!(shown(&outcome), ["0 west 10 in 1", "1 east 10 in 2", "2  150 in 3,4", "3  150 in 5,6"]);
    let second = &outcome.writes.iter().find(|write| &*write.slice.key.name == "p-decision-4").unwrap().slice;
    assert_eq!(second.entries.len(), 50);
    // Row A17: spelled so.
    let labels = [
        ("cluster.open-cluster-management.io/decision-group-index", "2"),
        ("cluster.open-cluster-management.io/decision-group-name", ""),
        ("cluster.open-cluster-management.io/placement", "p"),
    ];
    assert_eq!(second.labels, texts(&labels));
}

#[test]
fn the_first_group_that_matches_takes_a_cluster() {
    let mut fleet = fleet([labelled("a", &[("x", "1"), ("y", "1")]), labelled("b", &[("y", "1")])]);
    let group = |name: &str| GroupRule {
        name: format!("{name}{name}"),
        labels: labels(&[(name, "1")]),
        claims: vec![],
    };
    let wish = Placement { groups: vec![group("x"), group("y")], ..placement("p", None, &[]) };
    assert_eq!(shown(&decided(&mut fleet, &wish)), ["0 xx 1 in 1", "1 yy 1 in 2"]);
}

#[test]
fn sizes_are_counts_or_shares_rounded_up_exactly() {
    let text = |share: &str| GroupSize::Text(share.to_owned());
    for (size, selected, want) in [
        (GroupSize::All, 7, 7),
        (GroupSize::Count(3), 7, 3),
        (GroupSize::Count(0), 7, 7),
        (GroupSize::Count(-2), 7, 7),
        (GroupSize::Count(9), 7, 7),
        (text("100%"), 7, 7),
        (text("50%"), 7, 4),
        (text("1%"), 7, 1),
        (text("0%"), 7, 7),
        // Row A2: as floats these are one more.
        (text("7%"), 100, 7),
        (text("14%"), 100, 14),
        (text("28%"), 100, 28),
        (text("55%"), 100, 55),
        (text("56%"), 100, 56),
    ] {
        assert_eq!(super::super::group::size(&size, selected), want, "{size:?} of {selected}");
    }
}

#[test]
fn nobody_selected_is_one_empty_slice() {
    let outcome = decided(&mut fleet([]), &placement("p", None, &[]));
    assert_eq!(shown(&outcome), ["0  0 in 1"]);
    // Row A13: published as an empty list; reading, there is no difference to none.
    assert_eq!(outcome.writes.len(), 1);
    assert_eq!(outcome.writes[0].slice.entries, []);
}

#[test]
fn by_score_the_best_are_in_the_first_groups() {
    let mut fleet = fleet([
        sized("a", ["1", "10"], ["1", "1"]),
        sized("b", ["9", "10"], ["1", "1"]),
        sized("c", ["5", "10"], ["1", "1"]),
    ]);
    let mut wish = placement("p", None, &[built_in("ResourceRatioCPU", 1)]);
    wish.group_size = GroupSize::Count(2);
    let groups = |outcome: &Outcome| {
        let names = |group: &Group| {
            members(outcome, group).iter().map(|entry| entry.cluster.to_string()).collect::<String>()
        };
        outcome.groups.iter().map(names).collect::<Vec<_>>()
    };
    assert_eq!(groups(&decided(&mut fleet, &wish)), ["ab", "c"]);
    wish.sort_by = SortBy::Score;
    let outcome = decided(&mut fleet, &wish);
    assert_eq!(groups(&outcome), ["bc", "a"]);
    assert_eq!(members(&outcome, &outcome.groups[0])[0].score, 180, "100 balance, 80 for nine of ten");
}

#[test]
fn groups_keep_their_members_on_request() {
    // Row A15: by default a cluster that goes shifts all boundaries after it.
    let names = ["a", "b", "c", "d", "e", "f"];
    let before = |sticky: bool| {
        let mut fleet = fleet(names.map(cluster));
        let mut wish = Placement { group_size: GroupSize::Count(2), ..placement("p", None, &[]) };
        wish.extra.sticky = sticky;
        let outcome = decided(&mut fleet, &wish);
        write(&mut fleet, &outcome);
        fleet.remove_cluster("a");
        (fleet, wish)
    };
    let groups = |outcome: &Outcome| {
        let names = |group: &Group| {
            members(outcome, group).iter().map(|entry| entry.cluster.to_string()).collect::<String>()
        };
        outcome.groups.iter().map(names).collect::<Vec<_>>()
    };
    let (mut fleet, wish) = before(false);
    assert_eq!(groups(&decided(&mut fleet, &wish)), ["bc", "de", "f"]);
    let (mut fleet, wish) = before(true);
    let outcome = decided(&mut fleet, &wish);
    assert_eq!(groups(&outcome), ["b", "cd", "ef"]);
    write(&mut fleet, &outcome);
    fleet.set_cluster(cluster("aa"));
    fleet.set_cluster(cluster("g"));
    assert_eq!(groups(&decided(&mut fleet, &wish)), ["aab", "cd", "ef", "g"], "gaps are filled first");
}
