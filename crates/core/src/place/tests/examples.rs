//! The four placements of the design, with their arithmetic.

use super::*;

/// The fleet all four are decided over.
fn five() -> Fleet {
    fleet([
        sized("alpha", ["15", "18"], ["63194Mi", "69938Mi"]),
        sized("bravo", ["30", "40"], ["96Gi", "128Gi"]),
        sized("charlie", ["7", "10"], ["45Gi", "50Gi"]),
        sized("delta", ["60", "100"], ["200Gi", "400Gi"]),
        sized("echo", ["8", "8"], ["10Gi", "40Gi"]),
    ])
}

fn expect(report: &Report, want: [i64; 5], why: &str) {
    let names = ["alpha", "bravo", "charlie", "delta", "echo"];
    let want: BTreeMap<&str, i64> = names.into_iter().zip(want).collect();
    assert_eq!(totals(report), want, "{why}");
}

fn first() -> Placement {
    placement("placement1", Some(3), &[built_in("ResourceRatioCPU", 1), built_in("ResourceRatioMemory", 1)])
}

#[test]
fn points_of_resources_are_as_in_the_table() {
    let mut fleet = five();
    let resources =
        ["ResourceRatioCPU", "ResourceRatioMemory", "ResourceAllocatableCPU", "ResourceAllocatableMemory"];
    let all = placement("all", None, &resources.map(|name| built_in(name, 1)));
    let report = report(&mut fleet, &all, noon());
    for (cluster, want) in [
        // 15/18 = .8333 → 66; 63194/69938 = .9036 → 80; (15−7)/(60−7) = .1509 → −69; (61.7−10)/190 = .2722 → −45
        ("alpha", [66, 80, -69, -45]),
        // 30/40 and 96/128 are .75 → 50; 23/53 = .434 → −13; 86/190 = .4526 → −9
        ("bravo", [50, 50, -13, -9]),
        // 7/10 is 39, not 40: A1; 45/50 = .9 → 80; the least CPU; 35/190 = .1842 → −63
        ("charlie", [39, 80, -100, -63]),
        // 60/100 is 19, not 20: A1; 200/400 = .5 → 0; the most of both
        ("delta", [19, 0, 100, 100]),
        // 8/8 → 100; 10/40 = .25 → −50; 1/53 = .0189 → −96; the least memory
        ("echo", [100, -50, -96, -100]),
    ] {
        assert_eq!(resources.map(|name| raw(&report, cluster, name)), want.map(Some), "{cluster}");
    }
}

#[test]
fn example_1_selects_the_three_with_the_largest_free_share() {
    let report = report(&mut five(), &first(), noon());
    // Balance 100, Steady 0 for all: 100 + ratio CPU + ratio memory.
    expect(
        &report,
        [246, 200, 219, 119, 150],
        "100 + 66 + 80, 100 + 50 + 50, 100 + 39 + 80, 100 + 19 + 0, 100 + 100 − 50",
    );
    assert_eq!(selected(&report.outcome), ["alpha", "charlie", "bravo"]);
    let published = members(&report.outcome, &report.outcome.groups[0]);
    let published: Vec<_> = published.iter().map(|entry| &*entry.cluster).collect();
    assert_eq!(published, ["alpha", "bravo", "charlie"], "published by name");
}

#[test]
fn example_2_selects_the_one_with_the_most_memory_whatever_others_selected() {
    let mut fleet = five();
    let second = placement("placement2", Some(1), &[built_in("ResourceAllocatableMemory", 1)]);
    let alone = report(&mut fleet, &second, noon());
    expect(&alone, [55, 91, 37, 200, 0], "100 + allocatable memory");
    assert_eq!(selected(&alone.outcome), ["delta"]);

    let outcome = decided(&mut fleet, &first());
    write(&mut fleet, &outcome);
    let after = report(&mut fleet, &second, noon());
    expect(&after, [-145, -109, -163, 200, 0], "balance is −100 for alpha, bravo and charlie: 1 of 1");
    assert_eq!(selected(&after.outcome), ["delta"]);
}

#[test]
fn example_3_follows_the_load() {
    let mut fleet = five();
    let third = placement(
        "placement3",
        Some(2),
        &[built_in("ResourceRatioCPU", 2), built_in("ResourceAllocatableMemory", 2)],
    );
    let before = report(&mut fleet, &third, noon());
    expect(&before, [142, 182, 52, 338, 100], "100 + 2 × ratio CPU + 2 × allocatable memory");
    assert_eq!(selected(&before.outcome), ["delta", "bravo"]);
    write(&mut fleet, &before.outcome);

    fleet.set_cluster(sized("alpha", ["33", "36"], ["126388Mi", "139876Mi"]));
    let after = report(&mut fleet, &third, noon());
    let totals = totals(&after);
    // 33/36 → 83, (123.4−10)/190 → 19: 100 + 166 + 38; bravo keeps 100 steady: 100 + 100 + 100 − 18.
    assert_eq!((totals["alpha"], totals["bravo"], totals["delta"]), (304, 282, 438));
    assert_eq!(selected(&after.outcome), ["delta", "alpha"]);
}

#[test]
fn example_4_stays_whatever_the_load() {
    let mut fleet = five();
    let mut fourth =
        placement("placement4", Some(4), &[built_in("ResourceAllocatableCPU", 1), built_in("Steady", 3)]);
    fourth.mode = "Exact".to_owned();
    let before = report(&mut fleet, &fourth, noon());
    expect(&before, [-69, -13, -100, 100, -96], "allocatable CPU alone");
    assert_eq!(selected(&before.outcome), ["delta", "bravo", "alpha", "echo"]);
    write(&mut fleet, &before.outcome);

    fleet.set_cluster(sized("charlie", ["500", "512"], ["45Gi", "50Gi"]));
    let after = report(&mut fleet, &fourth, noon());
    // Allocatable CPU is −97, −91, 100, −78, −100 now; 300 on top for those selected.
    expect(&after, [203, 209, 100, 222, 200], "3 × 100 > 200, the span of what else counts");
    assert_eq!(selected(&after.outcome), ["delta", "bravo", "alpha", "echo"]);
}
