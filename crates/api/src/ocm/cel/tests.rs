use super::*;
use jiff::Timestamp;
use loadline_core::object::Key as PlacementKey;
use loadline_core::place::{Fleet, Members, Options, Placement, Predicate, Report, Scores};
use loadline_core::select::LabelSelector;

fn noon() -> Timestamp {
    "2025-01-01T12:00:00Z".parse().expect("a time")
}

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1", "labels": {"env": "prod", "version": "1.30.2"}},
        "spec": {"hubAcceptsClient": true},
        "status": {
            "version": {"kubernetes": "v1.30.2"},
            "allocatable": {"cpu": "15", "memory": "64Gi"},
            "clusterClaims": [{"name": "zone", "value": "eu-1"}, {"name": "limits", "value": "{\"pods\": [1, 250]}"}],
        },
    })
}

/// What is decided for that cluster, which has the score `cpu` of 90 in `demo`, and an expired one in `old`.
fn report(expressions: &[&str]) -> Report {
    let mut judge = CelJudge::new();
    let mut fleet = fleet();
    set(&mut fleet, &mut judge, &cluster());
    let scores = |until: &str| Scores {
        values: [("cpu".to_owned(), 90)].into(),
        valid_until: Some(until.parse().expect("a time")),
    };
    fleet.set_scores("c1", "demo", scores("2025-01-01T13:00:00Z"));
    fleet.set_scores("c1", "old", scores("2025-01-01T11:00:00Z"));
    fleet.set_placement(asking(expressions));
    fleet.report(&PlacementKey::new("ns1", "p"), &judge, noon()).expect("the placement is there")
}

/// Without clusters, and all may be selected.
fn fleet() -> Fleet {
    let mut fleet = Fleet::new(Options::default());
    fleet.set_set("global", Members::Labels(Some(LabelSelector::default())));
    fleet.bind("ns1", "global");
    fleet
}

/// A cluster is there, or is different.
fn set(fleet: &mut Fleet, judge: &mut CelJudge, object: &Value) {
    let object = Tree::from(object);
    let cluster = crate::ocm::fleet::cluster(&object).expect("a cluster").0;
    judge.set_cluster(&cluster, &object);
    fleet.set_cluster(cluster);
}

fn asking(expressions: &[&str]) -> Placement {
    let cel = expressions.iter().map(|expression| (*expression).to_owned()).collect();
    Placement {
        key: PlacementKey::new("ns1", "p"),
        predicates: vec![Predicate { cel, ..Predicate::default() }],
        ..Placement::default()
    }
}

/// How many clusters are selected; none if there was no reason to decide.
fn decided(fleet: &mut Fleet, judge: &CelJudge) -> Option<usize> {
    fleet.decide(judge, noon()).first().map(|outcome| outcome.selected.len())
}

#[test]
fn an_object_that_is_different_is_judged_anew() {
    let (mut fleet, mut judge) = (fleet(), CelJudge::new());
    fleet.set_placement(asking(&["managedCluster.metadata.annotations.open == 'yes'"]));
    let mut object = cluster();
    set(&mut fleet, &mut judge, &object);
    assert_eq!(decided(&mut fleet, &judge), Some(0));
    // Nobody but the expression reads annotations.
    object["metadata"]["annotations"] = json!({"open": "yes"});
    set(&mut fleet, &mut judge, &object);
    assert_eq!(decided(&mut fleet, &judge), Some(1));
    set(&mut fleet, &mut judge, &object.clone());
    assert_eq!(decided(&mut fleet, &judge), None, "read again, and still the same");
    object["metadata"]["annotations"]["open"] = json!("no");
    set(&mut fleet, &mut judge, &object);
    assert_eq!(decided(&mut fleet, &judge), Some(0));
}

#[test]
fn an_object_nobody_told_of_matches_nothing() {
    let (mut fleet, mut judge) = (fleet(), CelJudge::new());
    fleet.set_placement(asking(&["true"]));
    let mut object = cluster();
    fleet.set_cluster(crate::ocm::fleet::cluster(&Tree::from(&object)).expect("a cluster").0);
    assert_eq!(decided(&mut fleet, &judge), Some(0), "the judge does not know it");
    set(&mut fleet, &mut judge, &object);
    object["metadata"]["annotations"] = json!({"open": "yes"});
    fleet.set_cluster(crate::ocm::fleet::cluster(&Tree::from(&object)).expect("a cluster").0);
    assert_eq!(decided(&mut fleet, &judge), Some(0), "what it knows is another");
    set(&mut fleet, &mut judge, &object);
    fleet.remove_cluster("c1");
    judge.remove_cluster("c1");
    fleet.set_cluster(crate::ocm::fleet::cluster(&Tree::from(&object)).expect("a cluster").0);
    assert_eq!(decided(&mut fleet, &judge), Some(0), "it is gone");
}

#[test]
fn expressions_read_the_whole_object() {
    for (expression, want) in [
        ("true", true),
        ("false", false),
        (r#"managedCluster.metadata.labels["env"] == "prod""#, true),
        ("managedCluster.metadata.labels.env.startsWith('pr')", true),
        // A key that is not there is an error, and an error is no match.
        (r#"managedCluster.metadata.labels["team"] == "x""#, false),
        (r#"managedCluster.metadata.labels["team"] != "x""#, false),
        ("has(managedCluster.metadata.labels.team)", false),
        ("managedCluster.status.clusterClaims.exists(c, c.name == 'zone' && c.value.endsWith('-1'))", true),
        (
            "managedCluster.status.clusterClaims.filter(c, c.name == 'limits').all(c, c.value.parseJSON().pods[1] > 200)",
            true,
        ),
        ("quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity('32Gi'))", true),
        ("semver(managedCluster.metadata.labels.version).isLessThan(semver('1.31.0'))", true),
        ("managedCluster.scores('demo').filter(s, s.name == 'cpu').all(s, s.value > 80)", true),
        ("managedCluster.scores('demo').exists(s, s.value > 95)", false),
        ("managedCluster.scores('absent').all(s, s.value > 80)", false),
        // Row A23: expired is absent, not empty.
        ("managedCluster.scores('old').all(s, s.value > 80)", false),
        ("managedCluster.status.allocatable.cpu", false),
        ("'{'.parseJSON() == null", false),
    ] {
        let report = report(&[expression]);
        assert_eq!(report.outcome.selected.len() == 1, want, "{expression}: {:?}", report.clusters[0].why);
    }
}

#[test]
fn all_expressions_of_a_predicate_must_hold() {
    assert_eq!(report(&["true", "1 < 2"]).outcome.selected.len(), 1);
    let failed = report(&["true", "1 > 2"]);
    assert_eq!(
        failed.clusters[0].why.as_ref().unwrap().to_string(),
        "the predicate does not match: 1 > 2: false"
    );
}

#[test]
fn what_is_no_expression_is_told() {
    for (expression, want) in [
        ("managedCluster.", "Predicate:compilation failed: "),
        ("cluster.metadata.name == 'x'", "Predicate:compilation failed: undeclared reference to 'cluster'"),
        ("managedCluster.nonsense()", "Predicate:compilation failed: undeclared reference to 'nonsense'"),
        ("nonsense(1)", "Predicate:compilation failed: undeclared reference to 'nonsense'"),
        ("[1].all(x, y > 0)", "Predicate:compilation failed: undeclared reference to 'y'"),
    ] {
        let report = report(&[expression]);
        let condition =
            report.outcome.conditions.iter().find(|c| c.kind == "PlacementMisconfigured").unwrap();
        assert!(
            condition.status && condition.message.starts_with(want),
            "{expression}: {}",
            condition.message
        );
        assert!(!condition.message.contains('\n'), "{expression}");
    }
    let long = format!("'{}' == ''", "x".repeat(100_000));
    assert_eq!(report(&[&long]).outcome.conditions[1].reason, "Misconfigured");
}

#[test]
fn bombs_are_not_started() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let nest =
        |depth: usize| (0..depth).fold("true".to_owned(), |inner, n| format!("{ten}.all(x{n}, {inner})"));
    let double =
        |times: usize| (0..times).fold("'0123456789'".to_owned(), |text, _| format!("({text} + {text})"));
    for (expression, want) in [
        (nest(3), true),
        (nest(7), false),
        (nest(12), false),
        (format!("{}.size() > 0", double(3)), true),
        (
            format!("{ten}.map(a, {ten}.map(b, {ten}.map(c, {ten}.map(d, {ten}.map(e, a))))).size() > 0"),
            false,
        ),
        ("'aaaaaaaaaa'.replace('a', 'aaaaaaaaaa').size() == 100".to_owned(), true),
        (
            (0..12).fold("'aaaaaaaaaa'".to_owned(), |text, _| format!("{text}.replace('a', 'aaaaaaaaaa')"))
                + ".size() > 0",
            false,
        ),
    ] {
        let report = report(&[&expression]);
        let why = report.clusters[0].why.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!(report.outcome.selected.len() == 1, want, "{expression}: {why}");
        assert!(want || why.contains("more than 1000000"), "{why}");
    }
}

#[test]
fn many_costly_expressions_have_one_budget() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let costly = (0..4).fold("true".to_owned(), |inner, n| format!("{ten}.all(x{n}, {inner})"));
    let many: Vec<&str> = std::iter::repeat_n(costly.as_str(), 500).collect();
    let report = report(&many);
    let why = report.clusters[0].why.as_ref().unwrap().to_string();
    assert!(why.ends_with("all expressions may cost more than 10000000"), "{why}");
}

// As a controller written in Go sees a cluster: `[]` and `{}` are stored, but not read.
#[test]
fn what_is_empty_is_not_there_and_what_cannot_be_missing_is() {
    let seen = view(&Tree::from(&json!({
        "metadata": {"name": "c1", "labels": {"tier": ""}, "annotations": {}},
        "spec": {"taints": []},
        "status": {"clusterClaims": [], "capacity": {}, "allocatable": {"cpu": "1"}, "conditions": []},
    })));
    let want = json!({
        "metadata": {"name": "c1", "labels": {"tier": ""}},
        "spec": {"hubAcceptsClient": false},
        "status": {"allocatable": {"cpu": "1"}, "conditions": [], "version": {}},
    });
    assert_eq!(seen, want);
    for odd in [json!(null), json!({"metadata": 1, "spec": [], "status": "x"})] {
        assert_eq!(view(&Tree::from(&odd)), odd, "whoever reads it complains");
    }
}

#[test]
fn no_expression_is_nested_too_deep_to_be_read_or_judged() {
    let again = |part: &str, times: usize| part.repeat(times);
    // What it begins with, what is in the middle, what it ends with; how often that is good.
    let table = [
        ("(", "true", ")", 50),
        ("!", "true", "", 50),
        ("[", "1", "]", 50),
        ("1 + ", "1", "", 50),
        ("size(", "'a'", ")", 50),
        ("true ? (", "true", ") : true", 25),
        ("[1].all(x, ", "true", ")", 8),
        ("", "managedCluster", ".metadata", 50),
        ("", "managedCluster", "[0]", 50),
        ("true || ", "true", "", 50),
        ("true ? true : ", "true", "", 50),
        ("{1: ", "1", "}", 50),
        ("-", "1", "", 50),
    ];
    // As little as the threads of a runtime have.
    let judging = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let judge = CelJudge::new();
        for (open, middle, close, good) in table {
            let deep = |times: usize| format!("{}{middle}{}", again(open, times), again(close, times));
            let problem = judge.compiled(&deep(good)).err();
            assert_eq!(problem, None, "{open} {good}");
            for times in [100, 300, 2_000] {
                // Whatever is said of it, it is said.
                let _ = judge.compiled(&deep(times));
            }
        }
        let sum = |terms: usize| format!("{}1 > 0", again("1 + ", terms));
        for (terms, expected) in [(60, 1), (2_000, 0)] {
            assert_eq!(report(&[&sum(terms)]).outcome.selected.len(), expected, "{terms} terms");
        }
    });
    judging.unwrap().join().unwrap();
}
