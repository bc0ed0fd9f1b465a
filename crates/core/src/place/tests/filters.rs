//! Who will do.

use super::*;
use crate::select::label::Expression;

fn expression(key: &str, operator: &str, values: &[&str]) -> Expression {
    Expression {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    }
}

#[test]
fn a_cluster_must_match_one_predicate_with_all_its_parts() {
    let claimed = |name: &str, labels: &[(&str, &str)], claims: &[(&str, &str)]| ClusterFacts {
        claims: texts(claims),
        ..labelled(name, labels)
    };
    let clusters = || {
        [
            claimed("east-eks", &[("region", "east")], &[("product", "EKS")]),
            claimed("east-gke", &[("region", "east")], &[("product", "GKE")]),
            claimed("west-eks", &[("region", "west")], &[("product", "EKS")]),
            claimed("plain", &[], &[]),
        ]
    };
    let by_label = |pairs| Predicate { labels: labels(pairs), ..Predicate::default() };
    let rule = |key: &str, operator: &str, values: &[&str]| Predicate {
        labels: LabelSelector {
            match_expressions: vec![expression(key, operator, values)],
            ..Default::default()
        },
        ..Predicate::default()
    };
    let claim = |operator: &str, values: &[&str]| Predicate {
        claims: vec![expression("product", operator, values)],
        ..Predicate::default()
    };
    let both = Predicate { labels: labels(&[("region", "east")]), ..claim("In", &["EKS"]) };
    let long = "x".repeat(300);
    let cases: Vec<(&str, Vec<Predicate>, &[&str])> = vec![
        ("no predicate: everything", vec![], &["east-eks", "east-gke", "plain", "west-eks"]),
        ("an empty one, too", vec![Predicate::default()], &["east-eks", "east-gke", "plain", "west-eks"]),
        ("by label", vec![by_label(&[("region", "east")])], &["east-eks", "east-gke"]),
        ("parts of one are all needed", vec![both.clone()], &["east-eks"]),
        ("any of several", vec![both, by_label(&[("region", "west")])], &["east-eks", "west-eks"]),
        ("absent keys match NotIn", vec![rule("region", "NotIn", &["east"])], &["plain", "west-eks"]),
        ("absent keys match DoesNotExist", vec![rule("region", "DoesNotExist", &[])], &["plain"]),
        (
            "present keys match Exists",
            vec![rule("region", "Exists", &[])],
            &["east-eks", "east-gke", "west-eks"],
        ),
        ("claims alike", vec![claim("NotIn", &["EKS"])], &["east-gke", "plain"]),
        (
            "a claim may be anything",
            vec![claim("In", &[&long, "of any length, even so", "GKE"])],
            &["east-gke"],
        ),
    ];
    for (why, predicates, want) in cases {
        let wish = Placement { predicates, ..placement("p", None, &[]) };
        assert_eq!(selected(&decided(&mut fleet(clusters()), &wish)), want, "{why}");
    }
}

#[test]
fn the_answer_says_what_did_not_match() {
    let mut fleet = fleet([labelled("a", &[("region", "east")])]);
    let predicates = vec![Predicate { labels: labels(&[("region", "west")]), ..Predicate::default() }];
    let found = report(&mut fleet, &Placement { predicates, ..placement("p", None, &[]) }, noon());
    assert_eq!(why(&found, "a"), "the predicate does not match: label region=west");
    assert_eq!(found.clusters[0].why.as_ref().unwrap().filter(), Some("Predicate"));
}

#[test]
fn ten_thousand_predicates_are_answered() {
    let mut fleet = fleet((0..100).map(|n| labelled(&format!("c{n:03}"), &[("n", &n.to_string())])));
    let predicates =
        (0..10_000).map(|n| Predicate { labels: labels(&[("n", &n.to_string())]), ..Predicate::default() });
    let wish = Placement { predicates: predicates.skip(50).collect(), ..placement("p", None, &[]) };
    assert_eq!(decided(&mut fleet, &wish).selected.len(), 50);
}

fn tolerates(key: &str, operator: &str, value: &str, effect: &str, seconds: Option<i64>) -> Toleration {
    let [key, operator, value, effect] = [key, operator, value, effect].map(str::to_owned);
    Toleration { key, operator, value, effect, seconds }
}

#[test]
fn every_taint_must_be_tolerated() {
    use Effect::{NoSelect, NoSelectIfNew, PreferNoSelect};
    let gpu = || Taint { value: "a100".into(), ..taint("gpu", NoSelect, Some(noon())) };
    let any = tolerates("", "Exists", "", "", None);
    let cases = vec![
        ("no taint", vec![], vec![], false, true),
        ("not tolerated", vec![gpu()], vec![], false, false),
        ("everything tolerated", vec![gpu(), taint("x", NoSelect, None)], vec![any.clone()], false, true),
        ("equal value", vec![gpu()], vec![tolerates("gpu", "", "a100", "", None)], false, true),
        ("another value", vec![gpu()], vec![tolerates("gpu", "Equal", "h100", "", None)], false, false),
        (
            "an empty value is only an empty value",
            vec![gpu()],
            vec![tolerates("gpu", "Equal", "", "", None)],
            false,
            false,
        ),
        ("any value", vec![gpu()], vec![tolerates("gpu", "Exists", "", "NoSelect", None)], false, true),
        (
            "another effect",
            vec![gpu()],
            vec![tolerates("gpu", "Exists", "", "NoSelectIfNew", None)],
            false,
            false,
        ),
        // Row A18: an operator nobody knows never matches, and nobody minds.
        ("an unknown operator", vec![gpu()], vec![tolerates("gpu", "Like", "a100", "", None)], false, false),
        (
            "one of two",
            vec![gpu(), taint("x", NoSelect, None)],
            vec![tolerates("gpu", "Exists", "", "", None)],
            false,
            false,
        ),
        ("preferring is not minding", vec![taint("x", PreferNoSelect, None)], vec![], false, true),
        ("new to it", vec![taint("x", NoSelectIfNew, None)], vec![], false, false),
        ("not new to it", vec![taint("x", NoSelectIfNew, None)], vec![], true, true),
        ("not new, but tainted otherwise", vec![taint("x", NoSelect, None)], vec![], true, false),
        (
            "an unknown effect keeps away",
            vec![taint("x", Effect::Other("Later".into()), None)],
            vec![],
            true,
            false,
        ),
    ];
    for (why, taints, tolerations, chosen, want) in cases {
        let mut fleet = fleet([ClusterFacts { taints, ..cluster("a") }]);
        if chosen {
            fleet.set_slice(slice("p", 1, &["a"]));
        }
        let wish = Placement { tolerations, ..placement("p", None, &[]) };
        assert_eq!(decided(&mut fleet, &wish).selected.len() == 1, want, "{why}");
    }
}

#[test]
fn a_toleration_lasts_until_its_deadline() {
    // Row A10: the time limit holds for NoSelectIfNew, too.
    for effect in [Effect::NoSelect, Effect::NoSelectIfNew] {
        for (added, seconds, now, want) in [
            (Some(0), None, 1_000_000, Some(None)),
            (Some(0), Some(300), 299, Some(Some(300))),
            (Some(0), Some(300), 300, None),
            (Some(0), Some(0), 0, None),
            (Some(0), Some(-5), 0, None),
            (Some(0), Some(i64::MAX), 0, Some(None)),
            (None, Some(300), 0, None),
            (None, None, 0, Some(None)),
        ] {
            let taints = vec![taint("x", effect.clone(), added.map(at))];
            let mut fleet = fleet([ClusterFacts { taints, ..cluster("a") }]);
            let wish = Placement {
                tolerations: vec![tolerates("x", "Exists", "", "", seconds)],
                ..placement("p", None, &[])
            };
            let found = report(&mut fleet, &wish, at(now));
            let passes = found.outcome.selected.len() == 1;
            let got = passes.then_some(found.outcome.requeue_at);
            assert_eq!(got, want.map(|deadline| deadline.map(at)), "{effect:?} {added:?} {seconds:?} {now}");
        }
    }
}

#[test]
fn only_clusters_that_are_selected_are_looked_at_again() {
    let tainted = |name: &str, added| ClusterFacts {
        taints: vec![taint("x", Effect::NoSelect, Some(at(added)))],
        ..cluster(name)
    };
    let mut fleet = fleet([tainted("a", 10), tainted("b", 0)]);
    let wish = Placement {
        tolerations: vec![tolerates("x", "Exists", "", "", Some(60))],
        ..placement("p", Some(1), &[])
    };
    let outcome = decided(&mut fleet, &wish);
    assert_eq!(
        (selected(&outcome).as_slice(), outcome.requeue_at),
        (&["a"][..], Some(at(70))),
        "not 60: b is not selected"
    );
}

#[test]
fn candidates_come_through_bound_sets() {
    let mut fleet = Fleet::new(Options::default());
    fleet.set_set("blue", Members::Exclusive);
    fleet.set_set("labelled", Members::Labels(Some(labels(&[("tier", "gold")]))));
    fleet.set_set("nobody", Members::Labels(None));
    fleet.set_set("everybody", Members::Labels(Some(LabelSelector::default())));
    fleet.set_cluster(labelled("a", &[(SET_LABEL, "blue")]));
    fleet.set_cluster(labelled("b", &[(SET_LABEL, "red"), ("tier", "gold")]));
    fleet.set_cluster(ClusterFacts { leaving: true, ..labelled("c", &[(SET_LABEL, "blue")]) });
    for (bound, listed, want) in [
        (&["blue"][..], &[][..], &["a"][..]),
        (&["blue", "labelled"], &[], &["a", "b"]),
        (&["blue", "labelled"], &["labelled", "elsewhere"], &["b"]),
        (&["nobody"], &[], &[]),
        (&["everybody", "blue"], &[], &["a", "b"]),
        (&["blue", "missing"], &["missing"], &[]),
    ] {
        for set in bound {
            fleet.bind("ns1", set);
        }
        let cluster_sets = listed.iter().map(|set| (*set).to_owned()).collect();
        let outcome = decided(&mut fleet, &Placement { cluster_sets, ..placement("p", None, &[]) });
        assert_eq!(selected(&outcome), want, "{bound:?} {listed:?}");
        for set in bound {
            fleet.unbind("ns1", set);
        }
    }
}
