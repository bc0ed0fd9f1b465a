//! What would have to be different, applied to the fleet and the placement themselves.

use super::*;
use proptest::prelude::*;

/// Clusters with so many points, some of them with a taint.
fn scored(clusters: &[(i32, bool)]) -> Fleet {
    let mut fleet = fleet((0..clusters.len()).map(|number| {
        let mut of = cluster(&format!("c{number}"));
        if clusters[number].1 {
            of.taints.push(taint("closed", Effect::NoSelect, Some(noon())));
        }
        of
    }));
    for (number, (points, _)) in clusters.iter().enumerate() {
        score(&mut fleet, number, *points);
    }
    fleet
}

fn score(fleet: &mut Fleet, cluster: usize, points: i32) {
    let scores = Scores { values: [("free".to_owned(), points)].into(), valid_until: None };
    fleet.set_scores(&format!("c{cluster}"), "load", scores);
}

/// By these points alone.
fn wish(count: Option<i32>) -> Placement {
    Placement { mode: "Exact".into(), ..placement("p", count, &[add_on("load", "free", 1)]) }
}

fn would(fleet: &mut Fleet, wish: &Placement) -> Vec<Counterfactual> {
    let report = report(fleet, wish, noon());
    fleet.counterfactuals(wish, &report, &NoCel, noon())
}

#[test]
fn taints_points_and_places_are_told_with_whom_they_would_get_in() {
    let clusters = [(50, false), (40, false), (40, false), (10, false), (45, true), (0, true)];
    let told: Vec<String> =
        would(&mut scored(&clusters), &wish(Some(2))).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            // c5 would be the last of all even then.
            "c4 would be selected if the taint closed:NoSelect were tolerated",
            "c2 would be selected if it had 1 point more",
            "c3 would be selected if it had 31 points more",
            "c2 would be selected if numberOfClusters were 3",
        ]
    );
    assert_eq!(would(&mut scored(&[(1, false)]), &wish(None)), [], "everybody is selected");
    let mut wrong = wish(Some(1));
    wrong.mode = "Random".into();
    assert_eq!(would(&mut scored(&clusters), &wrong), [], "nothing is decided at all");
}

#[test]
fn only_so_many_clusters_are_tried_whether_that_helps_or_not() {
    for (before, found) in [(3, true), (98, false)] {
        // Those before the last, c4 and c99, are closed and would not be selected anyway.
        let mut clusters = vec![(10, false)];
        clusters.extend(vec![(0, true); before]);
        clusters.push((90, true));
        let told = would(&mut scored(&clusters), &wish(Some(1)));
        assert_eq!(!told.is_empty(), found, "after {before}: {told:?}");
    }
}

proptest! {
    #[test]
    fn whatever_is_told_selects_the_cluster_once_it_is_done(
        clusters in prop::collection::vec((-30..30_i32, prop::bool::weighted(0.3)), 1..7),
        count in prop::option::of(0..6_i32),
        published in prop::collection::vec(0..7_usize, 0..3),
        margin in prop::option::of(0..20_i64),
    ) {
        let build = || {
            let mut fleet = scored(&clusters);
            let names: Vec<String> = published.iter().map(|number| format!("c{number}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            fleet.set_slice(slice("p", 1, &names));
            fleet
        };
        let mut wish = wish(count);
        wish.extra.margin = margin;
        for one in would(&mut build(), &wish) {
            let (mut fleet, mut wish) = (build(), wish.clone());
            let number: usize = one.cluster[1..].parse().expect("a number");
            match &one.change {
                Change::Tolerated(taint) => wish.tolerations.push(Toleration {
                    key: taint.key.clone(),
                    operator: "Exists".into(),
                    ..Toleration::default()
                }),
                Change::Points(more) => {
                    let more = i32::try_from(*more).expect("within the scale");
                    score(&mut fleet, number, clusters[number].0 + more);
                }
                Change::Count(count) => wish.count = Some(*count),
            }
            let then = decided(&mut fleet, &wish);
            prop_assert!(selected(&then).contains(&&*one.cluster), "{}: {:?}", one, selected(&then));
        }
    }
}
