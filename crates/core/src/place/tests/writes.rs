//! What is written, and in which order.

use super::super::index::Index;
use super::super::known::Known;
use super::super::write::{Wanted, steps};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

fn shown(outcome: &Outcome) -> Vec<String> {
    let show = |write: &Write| {
        let names: Vec<&str> = write.slice.entries.iter().map(|entry| &*entry.cluster).collect();
        format!("{} {} {}", write.action.as_str(), write.slice.key.name, names.join(","))
    };
    outcome.writes.iter().map(show).collect()
}

/// Groups of one cluster each, so that every cluster is a slice.
fn singles(names: &[&str]) -> (Fleet, Placement) {
    let wish = Placement { group_size: GroupSize::Count(1), ..placement("p", None, &[]) };
    (fleet(names.iter().map(|name| cluster(name))), wish)
}

#[test]
fn who_takes_a_cluster_is_written_before_who_gives_it() {
    let (mut fleet, wish) = singles(&["b", "c", "d"]);
    let outcome = decided(&mut fleet, &wish);
    assert_eq!(shown(&outcome), ["create p-decision-1 b", "create p-decision-2 c", "create p-decision-3 d"]);
    write(&mut fleet, &outcome);

    fleet.set_cluster(cluster("a"));
    let outcome = decided(&mut fleet, &wish);
    assert_eq!(
        shown(&outcome),
        ["create p-decision-4 d", "patch p-decision-3 c", "patch p-decision-2 b", "patch p-decision-1 a"],
        "everybody moves down: the last takes first"
    );
    write(&mut fleet, &outcome);

    fleet.remove_cluster("a");
    assert_eq!(
        shown(&decided(&mut fleet, &wish)),
        ["patch p-decision-1 b", "patch p-decision-2 c", "patch p-decision-3 d", "delete p-decision-4 d"],
        "everybody moves up: the first takes first, and what is not needed goes last"
    );
}

#[test]
fn slices_that_take_from_each_other_have_both_for_a_moment() {
    let (mut fleet, wish) = singles(&["a", "b"]);
    let labels =
        |index: &str| texts(&[(PLACEMENT_LABEL, "p"), (GROUP_INDEX_LABEL, index), (GROUP_NAME_LABEL, "")]);
    fleet.set_slice(Slice { labels: labels("0"), ..slice("p", 1, &["b"]) });
    fleet.set_slice(Slice { labels: labels("1"), ..slice("p", 2, &["a"]) });
    assert_eq!(
        shown(&decided(&mut fleet, &wish)),
        ["patch p-decision-1 a,b", "patch p-decision-2 b", "patch p-decision-1 a"]
    );
}

#[test]
fn what_is_right_is_left_alone() {
    let (mut fleet, wish) = singles(&["a"]);
    let first = decided(&mut fleet, &wish);
    write(&mut fleet, &first);
    let wish = Placement { status: Status { last_score_update: Some(noon()), ..Status::default() }, ..wish };
    assert_eq!(shown(&decided(&mut fleet, &wish)), ["none p-decision-1 a"]);
    // Labels are replaced as a whole, also those somebody else has added.
    let mut labels = fleet.slices.get(&Key::new("ns1", "p-decision-1")).unwrap().slice.labels.clone();
    labels.insert("team".into(), "x".into());
    fleet.set_slice(Slice { labels, entries: first.writes[0].slice.entries.clone(), ..slice("p", 1, &[]) });
    let outcome = report(&mut fleet, &wish, at(3600)).outcome;
    assert_eq!(outcome.writes[0].slice.labels.len(), 3);
    assert_eq!(outcome.writes[0].action, Action::Patch);
}

#[test]
fn an_object_of_the_right_name_without_labels_is_taken_over() {
    let (mut fleet, wish) = singles(&["a"]);
    fleet.set_slice(Slice { labels: BTreeMap::new(), ..slice("p", 1, &["z"]) });
    assert_eq!(shown(&decided(&mut fleet, &wish)), ["patch p-decision-1 a"]);
}

#[test]
fn points_alone_are_published_only_so_often() {
    let mut fleet = fleet([sized("a", ["1", "10"], ["1", "1"])]);
    let mut wish = placement("p", None, &[built_in("ResourceRatioCPU", 1), built_in("Steady", 0)]);
    let first = decided(&mut fleet, &wish);
    assert_eq!((first.last_score_update, members(&first, &first.groups[0])[0].score), (Some(noon()), 20));
    write(&mut fleet, &first);
    wish.status.last_score_update = first.last_score_update;

    fleet.set_cluster(sized("a", ["9", "10"], ["1", "1"]));
    let early = report(&mut fleet, &wish, at(59)).outcome;
    assert_eq!(shown(&early), ["none p-decision-1 a"], "held back within the minute");
    assert_eq!((early.requeue_at, early.last_score_update), (Some(at(60)), Some(noon())));
    let later = report(&mut fleet, &wish, at(60)).outcome;
    assert_eq!(shown(&later), ["patch p-decision-1 a"]);
    assert_eq!((later.last_score_update, later.writes[0].slice.entries[0].score), (Some(at(60)), 180));
    // Anything else is published at once, with fresh points.
    fleet.set_cluster(cluster("b"));
    let at_once = report(&mut fleet, &wish, at(1)).outcome;
    assert_eq!(
        (shown(&at_once).as_slice(), at_once.last_score_update),
        (&["patch p-decision-1 a,b".to_owned()][..], Some(at(1)))
    );
}

#[test]
fn points_are_not_published_if_nobody_wants_them() {
    let mut fleet = Fleet::new(Options { publish_scores: false, ..Options::default() });
    fleet.set_set("global", Members::Labels(Some(LabelSelector::default())));
    fleet.bind("ns1", "global");
    fleet.set_cluster(cluster("a"));
    let outcome = decided(&mut fleet, &placement("p", None, &[]));
    assert_eq!((outcome.writes[0].slice.entries[0].score, outcome.last_score_update), (0, None));
    assert_eq!(outcome.selected.iter().map(|chosen| chosen.total).collect::<Vec<_>>(), [100]);
}

/// Slices of these clusters, in the order of their numbers.
fn slices(parts: &[Vec<u8>]) -> Vec<Slice> {
    let one = |(number, names): (usize, &Vec<u8>)| {
        let names: Vec<String> = names.iter().map(u8::to_string).collect();
        slice("p", number + 1, &names.iter().map(String::as_str).collect::<Vec<_>>())
    };
    parts.iter().enumerate().map(one).collect()
}

/// Twelve clusters, each in one of five parts or in none.
fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    proptest::collection::vec(0..6_usize, 12).prop_map(|places| {
        let mut parts = vec![Vec::new(); 5];
        for (name, place) in (0..).zip(places) {
            if let Some(part) = parts.get_mut(place) {
                part.push(name);
            }
        }
        while parts.last().is_some_and(Vec::is_empty) {
            parts.pop();
        }
        parts
    })
}

proptest! {
    // Property 4: in exactly one slice at rest, in at least one at every instant.
    #[test]
    fn a_selected_cluster_is_never_absent(old in parts(), new in parts()) {
        let there: Vec<Slice> = slices(&old);
        let wanted = slices(&new);
        let mut index = Index::default();
        let mut known = |slice: &Slice| {
            let ids = slice.entries.iter().map(|entry| index.id(&entry.cluster)).collect();
            Arc::new(Known { slice: Arc::new(slice.clone()), ids })
        };
        let known_there: Vec<Arc<Known>> = there.iter().map(&mut known).collect();
        let with_old = |slice: &Slice| {
            let old = known_there.iter().find(|old| old.slice.key == slice.key).cloned();
            let same = old.clone().filter(|old| *old.slice == *slice);
            Wanted { new: same.unwrap_or_else(|| known(slice)), old }
        };
        let known_wanted: Vec<Wanted> = wanted.iter().map(with_old).collect();
        let names = |slices: &mut dyn Iterator<Item = &Slice>| -> BTreeSet<Arc<str>> {
            slices.flat_map(|slice| &slice.entries).map(|entry| entry.cluster.clone()).collect()
        };
        let before = names(&mut there.iter());
        let after = names(&mut wanted.iter());
        let stay: BTreeSet<_> = before.intersection(&after).cloned().collect();
        let mut now: BTreeMap<String, Slice> = there.iter().map(|slice| (slice.key.name.to_string(), slice.clone())).collect();
        let mut deleting = false;
        for step in steps(&known_wanted, &known_there, 12) {
            match step.action {
                Action::Create | Action::Patch => {
                    prop_assert!(!deleting, "deletions come last");
                    // A new object is there without a status first.
                    now.insert(step.slice.key.name.to_string(), (*step.slice).clone());
                }
                Action::Delete => {
                    deleting = true;
                    now.remove(&*step.slice.key.name);
                }
                Action::None => prop_assert_eq!(now.get(&*step.slice.key.name), Some(&*step.slice)),
            }
            let seen = names(&mut now.values());
            prop_assert!(stay.is_subset(&seen), "{:?} missing", stay.difference(&seen));
        }
        let rest: Vec<Slice> = now.into_values().collect();
        prop_assert_eq!(rest, wanted);
    }
}
