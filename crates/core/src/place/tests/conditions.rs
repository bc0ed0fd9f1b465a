//! What is said: conditions, events, and what a mistake leaves alone.

use super::*;
use crate::select::label::Expression;

fn satisfied(outcome: &Outcome) -> (bool, &str, &str) {
    let found = condition(outcome, SATISFIED);
    (found.status, found.reason, &found.message)
}

#[test]
fn satisfaction_is_told_by_the_first_row_that_holds() {
    let empty = || Fleet::new(Options::default());
    let tainted =
        |name: &str| ClusterFacts { taints: vec![taint("down", Effect::NoSelect, None)], ..cluster(name) };
    let east = Predicate { labels: labels(&[("region", "east")]), ..Predicate::default() };
    let any = placement("p", None, &[]);
    let cases: Vec<(Fleet, Placement, (bool, &str, &str))> = vec![
        (
            empty(),
            any.clone(),
            (
                false,
                "NoManagedClusterSetBindings",
                "No valid ManagedClusterSetBindings found in placement namespace",
            ),
        ),
        (
            fleet([]),
            Placement { cluster_sets: vec!["z".into(), "a".into()], ..any.clone() },
            (false, "NoIntersection", "None of ManagedClusterSets [z,a] is bound to placement namespace"),
        ),
        (
            fleet([]),
            any.clone(),
            (
                false,
                "AllManagedClusterSetsEmpty",
                "All ManagedClusterSets [global] have no member ManagedCluster",
            ),
        ),
        (
            fleet([
                labelled("a", &[("region", "east")]),
                cluster("b"),
                ClusterFacts { labels: texts(&[("region", "east")]), ..tainted("c") },
            ]),
            Placement { predicates: vec![east.clone()], tolerations: vec![], count: Some(3), ..any.clone() },
            (false, "NotAllDecisionsScheduled", "2 cluster decisions unscheduled"),
        ),
        (
            fleet([cluster("b"), ClusterFacts { labels: texts(&[("region", "east")]), ..tainted("c") }]),
            Placement { predicates: vec![east], ..any.clone() },
            (
                false,
                "NoManagedClusterMatched",
                "No ManagedCluster matches any of the cluster predicate; 2 candidates: 1 rejected by Predicate, 1 by TaintToleration (down)",
            ),
        ),
        // Row A21: none are asked for, none are selected, and that is what it says.
        (
            fleet([cluster("a")]),
            Placement { count: Some(0), ..any.clone() },
            (
                false,
                "NoManagedClusterMatched",
                "numberOfClusters is 0, so no cluster is selected; 1 of 1 match",
            ),
        ),
        (fleet([cluster("a")]), any, (true, "AllDecisionsScheduled", "All cluster decisions scheduled")),
    ];
    for (mut fleet, wish, want) in cases {
        let outcome = decided(&mut fleet, &wish);
        assert_eq!(satisfied(&outcome), want);
        let fine = condition(&outcome, MISCONFIGURED);
        assert_eq!((fine.status, fine.reason), (false, "Succeedconfigured"));
    }
}

#[test]
fn a_mistake_is_told_at_once_and_nothing_is_given_up() {
    let any = placement("p", None, &[]);
    let tolerating = |toleration| Placement { tolerations: vec![toleration], ..any.clone() };
    let weighing = |configuration| Placement { configurations: vec![configuration], ..any.clone() };
    let rule =
        |operator: &str| Expression { key: "region".into(), operator: operator.into(), values: vec![] };
    let matching =
        |operator: &str| LabelSelector { match_expressions: vec![rule(operator)], ..Default::default() };
    let cases: Vec<(Placement, &str)> = vec![
        (tolerating(Toleration::default()), "TaintToleration:If the key is empty, operator must be Exists."),
        (
            tolerating(Toleration { operator: "Exists".into(), value: "x".into(), ..Default::default() }),
            "TaintToleration:If the operator is Exists, the value should be empty.",
        ),
        (Placement { mode: "Precise".into(), ..any.clone() }, ":incorrect prioritizer policy mode: Precise"),
        (weighing(built_in("Nonsense", 1)), ":incorrect builtin prioritizer: Nonsense"),
        (weighing(built_in("ResourceRatio", 1)), ":incorrect builtin prioritizer: ResourceRatio"),
        (weighing(Configuration { coordinate: None, weight: 1 }), ":scoreCoordinate field is required"),
        (
            weighing(Configuration { coordinate: Some(Coordinate::AddOn(None)), weight: 1 }),
            ":addOn should not be empty",
        ),
        (
            Placement { group_size: GroupSize::Text("5".into()), ..any.clone() },
            ":5 invalid type: string is not a percentage",
        ),
        // Row A21: less than none cannot be asked for.
        (Placement { count: Some(-1), ..any.clone() }, ":numberOfClusters must not be negative, not -1"),
        (
            Placement {
                predicates: vec![Predicate { cel: vec!["x".into()], ..Default::default() }],
                ..any.clone()
            },
            "Predicate:compilation failed: expressions are not supported here",
        ),
        (
            Placement {
                predicates: vec![Predicate { labels: matching("Like"), ..Default::default() }],
                ..any.clone()
            },
            "Predicate:predicates[0]: \"Like\" is no operator for region, expected In, NotIn, Exists or DoesNotExist",
        ),
        (
            Placement {
                predicates: vec![Predicate { claims: vec![rule("In")], ..Default::default() }],
                ..any.clone()
            },
            "Predicate:predicates[0]: operator in on label \"region\" takes at least one value, not 0 values",
        ),
        (
            Placement {
                groups: vec![GroupRule { labels: matching("Near"), ..Default::default() }],
                ..any.clone()
            },
            ":decisionGroups[0]: \"Near\" is no operator for region, expected In, NotIn, Exists or DoesNotExist",
        ),
    ];
    for (wish, want) in cases {
        // Row A14: what is published stays; where nothing is, nothing is published.
        let mut fleet = fleet([cluster("a"), cluster("b")]);
        let fresh = decided(&mut fleet, &wish);
        let found = condition(&fresh, MISCONFIGURED);
        assert_eq!((found.status, found.reason, found.message.as_str()), (true, "Misconfigured", want));
        assert_eq!(fresh.writes.len(), 1, "{want}");
        assert_eq!(
            (fresh.writes[0].action, fresh.writes[0].slice.entries.len()),
            (Action::Create, 0),
            "{want}"
        );

        fleet.set_slice(slice("p", 1, &["a", "gone"]));
        fleet.set_slice(slice("p", 2, &["b"]));
        let kept = decided(&mut fleet, &wish);
        assert!(kept.selected.is_empty(), "{want}");
        assert!(kept.writes.iter().all(|write| write.action == Action::None), "{want}");
        assert_eq!(kept.writes.len(), 2, "{want}");
        assert_eq!(kept.number_selected(), 3, "{want}");
        assert!(satisfied(&kept).2.ends_with("3 clusters selected before are kept"), "{want}");
        assert!(kept.events.iter().any(|event| event.warning), "{want}");
    }
}

#[test]
fn what_is_switched_off_is_no_mistake() {
    let add_on = |weight| Configuration { coordinate: Some(Coordinate::AddOn(None)), weight };
    let cases: [(Vec<Configuration>, bool, &str); 5] = [
        (vec![built_in("Nonsense", 0)], true, "a name nobody knows"),
        (vec![add_on(0)], true, "a score nobody named"),
        (vec![built_in("Nonsense", 1), built_in("Nonsense", 0)], true, "the last weight holds"),
        (vec![add_on(2), add_on(0)], true, "for these, too"),
        (vec![built_in("Nonsense", 0), built_in("Nonsense", 1)], false, "switched on in the end"),
    ];
    for (configurations, fine, why) in cases {
        let wish = Placement { configurations, ..placement("p", None, &[]) };
        let outcome = decided(&mut fleet([cluster("a")]), &wish);
        assert_eq!(condition(&outcome, MISCONFIGURED).status, !fine, "{why}");
    }
}

#[test]
fn a_mistake_empties_everything_only_on_request() {
    let options = Options { on_misconfigured: OnMisconfigured::Clear, ..Options::default() };
    let mut fleet = Fleet::new(options);
    fleet.set_slice(slice("p", 1, &["a"]));
    fleet.set_slice(slice("p", 2, &["b"]));
    let outcome = decided(&mut fleet, &Placement { count: Some(-1), ..placement("p", None, &[]) });
    let steps: Vec<_> =
        outcome.writes.iter().map(|write| (write.action, write.slice.entries.len())).collect();
    assert_eq!(steps, [(Action::Patch, 0), (Action::Delete, 1)]);
}

#[test]
fn a_mistake_shows_without_any_cluster() {
    let outcome = decided(&mut fleet([]), &Placement { mode: "Precise".into(), ..placement("p", None, &[]) });
    assert_eq!(satisfied(&outcome).1, "AllManagedClusterSetsEmpty");
    assert!(condition(&outcome, MISCONFIGURED).status);
}

#[test]
fn a_set_that_cannot_be_read_stops_only_those_who_use_it() {
    let mut fleet = fleet([cluster("a")]);
    fleet.set_set("broken", Members::Unknown("Magic".into()));
    let wish = placement("p", None, &[]);
    assert_eq!(selected(&decided(&mut fleet, &wish)), ["a"], "not bound here");
    fleet.bind("ns1", "broken");
    fleet.set_slice(slice("p", 1, &["a"]));
    let outcome = decided(&mut fleet, &wish);
    let (status, reason, message) = satisfied(&outcome);
    assert_eq!((status, reason), (false, "NotAllDecisionsScheduled"));
    assert!(message.starts_with("ManagedClusterSet broken: selectorType \"Magic\""), "{message}");
    assert_eq!(outcome.writes[0].action, Action::None, "what is published stays");
    let other = Placement { cluster_sets: vec!["global".into()], ..wish };
    assert_eq!(selected(&decided(&mut fleet, &other)), ["a"], "not used by this one");
}

#[test]
fn a_long_name_cannot_be_a_label() {
    let outcome = decided(&mut fleet([cluster("a")]), &placement(&"p".repeat(64), None, &[]));
    let message = &condition(&outcome, MISCONFIGURED).message;
    assert!(message.contains("no longer than 63 characters"), "{message}");
}

#[test]
fn a_condition_keeps_its_date_until_it_turns() {
    let mut fleet = fleet([cluster("a")]);
    let mut wish = placement("p", None, &[]);
    wish.status.conditions = vec![(SATISFIED.into(), true, at(-100)), (MISCONFIGURED.into(), true, at(-100))];
    let outcome = decided(&mut fleet, &wish);
    assert_eq!(condition(&outcome, SATISFIED).since, at(-100));
    assert_eq!(condition(&outcome, MISCONFIGURED).since, noon(), "it was true and is not any more");
}

#[test]
fn a_placement_somebody_else_decides_is_left_alone() {
    let mut fleet = fleet([cluster("a")]);
    fleet.set_slice(slice("p", 1, &["b"]));
    let outcome = decided(
        &mut fleet,
        &Placement { disabled: true, mode: "Precise".into(), ..placement("p", None, &[]) },
    );
    assert!(outcome.disabled);
    assert_eq!(outcome, Outcome { placement: Key::new("ns1", "p"), disabled: true, ..Outcome::default() });
}

#[test]
fn what_is_done_is_told() {
    let mut fleet = fleet([cluster("a"), cluster("b")]);
    let wish = placement("p", None, &[]);
    let told = |outcome: &Outcome| {
        outcome
            .events
            .iter()
            .map(|event| format!("{} {} {}", event.reason, event.action, event.note))
            .collect::<Vec<_>>()
    };
    let first = decided(&mut fleet, &wish);
    assert_eq!(
        told(&first),
        [
            "DecisionCreate DecisionCreated Decision p-decision-1 is created with placement p in namespace ns1",
            "DecisionUpdate DecisionUpdated Decision p-decision-1 is updated with placement p in namespace ns1",
            "ScoreUpdate ScoreUpdated a:100 b:100 ",
        ]
    );
    write(&mut fleet, &first);
    let steady =
        Placement { status: Status { last_score_update: Some(noon()), ..Status::default() }, ..wish };
    assert_eq!(
        told(&decided(&mut fleet, &steady)),
        [""; 0],
        "100 more points for staying are not told at once"
    );
    fleet.set_slice(slice("p", 2, &["b"]));
    let last = told(&decided(&mut fleet, &steady));
    assert_eq!(
        last[2],
        "DecisionDelete DecisionDeleted Decision p-decision-2 is deleted with placement p in namespace ns1"
    );
}

#[test]
fn a_warning_is_told_with_what_is_written() {
    let mut fleet = fleet([cluster("a")]);
    fleet.set_scores("a", "demo", Scores { valid_until: Some(at(-1)), ..Scores::default() });
    let outcome = decided(&mut fleet, &placement("p", None, &[add_on("demo", "x", 1)]));
    let update = outcome.events.iter().find(|event| event.reason == "DecisionUpdate").unwrap();
    assert!(update.warning);
    assert!(
        update
            .note
            .to_string()
            .ends_with("in namespace ns1: AddOnPlacementScores a/demo expired in plugin AddOn/demo/x")
    );
}

#[test]
fn points_are_told_within_a_thousand_bytes() {
    let names: Vec<String> = (0..500).map(|n| format!("cluster{n:04}")).collect();
    let mut fleet = fleet(names.iter().map(|name| cluster(name)));
    let outcome = decided(&mut fleet, &placement("p", Some(1), &[]));
    let score = outcome.events.iter().find(|event| event.reason == "ScoreUpdate").unwrap();
    // 62 × "cluster0000:100 " of 16 bytes are 992; one more would be 1008.
    assert_eq!(score.note.to_string().len(), 62 * 16 + 6);
    assert!(score.note.to_string().ends_with("cluster0061:100 ......"));
}
