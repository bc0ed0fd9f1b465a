use super::*;
use crate::divide::summary::Stock;
use crate::select::taint::Effect;
use crate::view::NodeFacts;
use std::borrow::Cow;

fn ask(requests: &[(&str, &str)]) -> Ask {
    Ask { requests: list(requests), ..Ask::default() }
}

fn count(member: &Member, requests: &[(&str, &str)]) -> i32 {
    general::replicas(member, Some(&ask(requests)), &[], false).count
}

fn model(grade: i64, least: &[(&str, &str)]) -> Model {
    Model { grade, least: Stock::of(&list(least)) }
}

/// A cluster with so many nodes of each grade, and totals.
fn graded(models: Vec<Model>, grades: &[(i64, i64)], totals: &[(&str, &str)]) -> Member {
    let mut out = member("a", totals);
    out.models = models;
    if let Some(summary) = &mut out.summary {
        summary.grades = grades.to_vec();
    }
    out
}

/// The usual two: less than 2 cores, and 2 to 4.
fn usual() -> Vec<Model> {
    vec![
        model(0, &[("cpu", "0"), ("memory", "0")]),
        model(1, &[("cpu", "2"), ("memory", "4Gi")]),
        model(2, &[("cpu", "4"), ("memory", "8Gi")]),
    ]
}

#[test]
fn totals_are_divided_by_what_a_replica_asks_for() {
    let used =
        |allocatable: &[(&str, &str)], allocated: &[(&str, &str)], allocating: &[(&str, &str)]| Member {
            summary: Some(Summary::new(&list(allocatable), &list(allocated), &list(allocating))),
            ..member("a", &[])
        };
    let usual = used(
        &[("cpu", "100"), ("memory", "200Gi"), ("pods", "110")],
        &[("cpu", "40"), ("memory", "80Gi"), ("pods", "30")],
        &[("cpu", "10"), ("pods", "5")],
    );
    for (why, requests, want) in [
        ("(100 − 40 − 10) / 1 = 50", &[("cpu", "1")][..], 50),
        ("(200 − 80) / 8 = 15, less than 50 cores", &[("cpu", "1"), ("memory", "8Gi")], 15),
        ("110 − 30 − 5 = 75 places, 500 by cores", &[("cpu", "100m")], 75),
        ("in thousandths: 50 000 / 1500 = 33", &[("cpu", "1500m")], 33),
        ("a resource it does not have", &[("example.com/gpu", "1")], 0),
        ("a resource of which nothing is asked", &[("example.com/gpu", "0")], 75),
        ("nothing asked", &[], 75),
    ] {
        assert_eq!(count(&usual, requests), want, "{why}");
    }
    assert_eq!(general::replicas(&usual, None, &[], false).count, 75, "no requirements: places for pods");
    let full = used(&[("cpu", "9"), ("pods", "10")], &[("cpu", "9"), ("pods", "1")], &[]);
    assert_eq!(count(&full, &[("cpu", "1")]), 0, "nothing left");
    let over = used(&[("cpu", "9"), ("pods", "10")], &[("cpu", "19"), ("pods", "12")], &[]);
    assert_eq!(count(&over, &[("cpu", "1")]), 0, "more promised than there is");
    let silent = Member { summary: None, ..usual };
    let estimated = general::replicas(&silent, None, &[], false);
    assert_eq!((estimated.count, estimated.note.is_some()), (0, true), "a cluster that never said anything");
}

#[test]
fn row_6_models_are_counted_grade_by_grade() {
    let roomy = &[("cpu", "1000"), ("memory", "4000Gi")][..];
    for (why, grades, requests, want) in [
        ("3 × 2/1 + 2 × 4/1 = 14", &[(1, 3), (2, 2)][..], &[("cpu", "1")][..], 14),
        ("grade 1 has 2 cores, less than 3: 2 × 1", &[(1, 3), (2, 2)], &[("cpu", "3")], 2),
        (
            "memory binds: 3 × 4/3 + 2 × 8/3 = 3 + 4",
            &[(1, 3), (2, 2)],
            &[("cpu", "500m"), ("memory", "3Gi")],
            7,
        ),
        ("no node has more than 110 places: 2 × 110", &[(2, 2)], &[("cpu", "10m")], 220),
        ("grade 0 has nothing for sure", &[(0, 9)], &[("cpu", "1")], 0),
        ("a grade is counted twice", &[(1, 3), (1, 1)], &[("cpu", "1")], 8),
        ("a grade no model describes", &[(1, 3), (7, 100)], &[("cpu", "1")], 6),
    ] {
        assert_eq!(count(&graded(usual(), grades, roomy), requests), want, "{why}");
    }
    let many = graded(usual(), &[(2, i64::MAX)], roomy);
    assert_eq!(count(&many, &[("cpu", "1")]), 1100, "places of the totals, however many nodes");
    let scarce = graded(usual(), &[(2, 10)], &[("cpu", "1")]);
    assert_eq!(
        count(&scarce, &[("cpu", "1")]),
        40,
        "totals of what the models list do not count in addition"
    );
}

#[test]
fn row_6b_a_resource_the_models_do_not_list_is_bounded_by_the_totals() {
    let with_gpus = graded(usual(), &[(2, 5)], &[("cpu", "100"), ("example.com/gpu", "3")]);
    let asked = &[("cpu", "1"), ("example.com/gpu", "1")];
    assert_eq!(count(&with_gpus, asked), 3, "20 by models, 3 by the accelerators there are");
    assert_eq!(general::replicas(&with_gpus, Some(&ask(asked)), &[], true).count, 0, "as Karmada has it");
}

#[test]
fn malformed_models_fall_back_to_totals() {
    let negative = graded(usual(), &[(1, -3), (2, 2)], &[("cpu", "9")]);
    let estimated = general::replicas(&negative, Some(&ask(&[("cpu", "1")])), &[], false);
    assert_eq!(estimated.count, 9);
    assert!(estimated.note.is_some_and(|note| note.contains("grade 1 has -3 nodes")));
    let missing = graded(Vec::new(), &[(1, 3)], &[("cpu", "9")]);
    assert_eq!(count(&missing, &[("cpu", "1")]), 9, "counts without models");
    let uncounted = graded(usual(), &[], &[("cpu", "9")]);
    assert_eq!(count(&uncounted, &[("cpu", "1")]), 9, "models without counts");
    let minus = graded(vec![model(1, &[("cpu", "-4")])], &[(1, 3)], &[("cpu", "9")]);
    assert_eq!(count(&minus, &[("cpu", "1")]), 0, "less than nothing is nothing");
}

#[test]
fn what_is_on_its_way_is_placed_first() {
    let coming = |replicas, cpu: &str| Assumed {
        components: vec![Component { name: "x".into(), replicas, ask: ask(&[("cpu", cpu)]) }],
        ..Assumed::default()
    };
    let one = ask(&[("cpu", "1")]);
    let totals = member("a", &[("cpu", "10")]);
    assert_eq!(general::replicas(&totals, Some(&one), &[coming(3, "2")], false).count, 4, "10 − 3 × 2");
    // Three nodes of 4: two take one of 3 cores each and keep 1; the third keeps 4.
    let models = graded(usual(), &[(2, 3)], &[("cpu", "100")]);
    assert_eq!(general::replicas(&models, Some(&one), &[coming(2, "3")], false).count, 6, "1 + 1 + 4");
    // One node takes two of 2 cores and is full, the second one, and keeps 2.
    assert_eq!(general::replicas(&models, Some(&one), &[coming(3, "2")], false).count, 6, "0 + 2 + 4");
    assert_eq!(
        general::replicas(&models, Some(&one), &[coming(9, "3")], false).count,
        3,
        "what does not fit is left out"
    );
    let given = Given {
        assumed: Cow::Owned(BTreeMap::from([("a".to_owned(), vec![coming(9, "1")])])),
        ..Given::default()
    };
    let answer = divide(&fleet(&[("a", 10), ("b", 4)]), &cores(2, Division::Aggregated), &given);
    assert_eq!(told(&answer), "b:2", "10 − 9 = 1 in a");
}

#[test]
fn sets_need_room_for_all_their_pods() {
    let component =
        |replicas, requests: &[(&str, &str)]| Component { name: "x".into(), replicas, ask: ask(requests) };
    let sets =
        |member: &Member, components: &[Component]| general::sets(member, components, &[], false).count;
    let two = [component(1, &[("cpu", "2")]), component(3, &[("cpu", "1"), ("memory", "1Gi")])];
    let totals = member("a", &[("cpu", "26"), ("memory", "100Gi")]);
    assert_eq!(sets(&totals, &two), 5, "26 / (2 + 3)");
    assert_eq!(sets(&member("a", &[("cpu", "26"), ("memory", "7Gi")]), &two), 2, "7 / 3");
    assert_eq!(sets(&member("a", &[("cpu", "26")]), &two), 0, "no memory at all");
    assert_eq!(sets(&totals, &[component(0, &[("cpu", "1")])]), 1100, "no pods: places");
    assert_eq!(sets(&totals, &[component(4, &[])]), 275, "1100 / 4");
    // Three nodes of 4 cores: 2 + 1 + 1 fill the first, 1 goes to the second with the next 2 and 1; then 3 are left there
    // and 4 on the third: 2 and 1 more on the second, none; 2 on the third, 1 + 1, but the third 1 does not fit.
    let models = graded(usual(), &[(2, 3)], &[("cpu", "12"), ("memory", "24Gi")]);
    assert_eq!(sets(&models, &two), 2, "12 / 5 = 2 by totals, and both fit");
    let large = [component(1, &[("cpu", "3")])];
    assert_eq!(sets(&models, &large), 3, "one a node, 4 by totals");
    // Row 7: 1G against 4Gi, both in bytes.
    let decimal = [component(1, &[("memory", "1G")])];
    assert_eq!(sets(&member("a", &[("memory", "4194304Ki")]), &decimal), 4, "4 294 967 296 / 1 000 000 000");
    assert_eq!(general::sets(&Member { summary: None, ..totals }, &two, &[], false).count, 0);
}

#[test]
fn row_5_sets_are_counted_only_as_far_as_it_matters() {
    let models = graded(usual(), &[(2, 1_000_000_000)], &[("cpu", "4000000000"), ("memory", "8000000000Gi")]);
    let tiny = Component { name: "x".into(), replicas: 1, ask: ask(&[("cpu", "1m")]) };
    assert_eq!(general::sets(&models, &[tiny], &[], false).count, 1100, "and it ends");
}

#[test]
fn the_stories_are_decided_by_counting_nodes() {
    // A: 10 nodes of 8 cores, B: 2 of 16. By totals 80 / 12 = 6 and 32 / 12 = 2.
    let sizes = fleet(&[("A", 80), ("B", 32)]);
    // A: 10 nodes of 16 cores without the label, B: 2 with it. By totals 160 / 12 = 13 and 32 / 12 = 2.
    let labels = fleet(&[("A", 160), ("B", 32)]);
    let one = binding(1, &[("cpu", "12")], Division::Aggregated);
    let three = Binding { replicas: 3, ..one.clone() };
    let nodes = counted(&[("A", Ok(0)), ("B", Ok(2))]);
    for fleet in [sizes, labels] {
        let asked = |binding: &Binding, estimators: &[Estimator], mode| {
            let options = Options { mode, ..Options::default() };
            told(&divide(&fleet, binding, &Given { estimators, options, ..Given::default() }))
        };
        for mode in [Mode::AccurateFirst, Mode::Min] {
            assert_eq!(asked(&one, &[], mode), "A:1", "by totals: A, where the pod waits for ever");
            assert_eq!(asked(&one, std::slice::from_ref(&nodes), mode), "B:1", "by nodes: B");
            let short = "Unschedulable: Clusters available replicas 2 are not enough to schedule.";
            assert_eq!(asked(&three, std::slice::from_ref(&nodes), mode), short);
        }
        assert_eq!(asked(&one, std::slice::from_ref(&nodes), Mode::General), "A:1");
    }
}

#[test]
fn row_1_a_dead_estimator_loses_only_its_own_vote() {
    let fleet = fleet(&[("A", 80), ("B", 32)]);
    let one = binding(1, &[("cpu", "12")], Division::Aggregated);
    let estimators = [counted(&[("A", Err("connection refused")), ("B", Ok(2))])];
    let given = Given { estimators: &estimators, ..Given::default() };
    let answer = divide(&fleet, &one, &given);
    assert_eq!(told(&answer), "B:1", "confirmed comes before larger");
    let order: Vec<_> = answer.feasible.iter().map(|c| (&*c.name, c.allocatable, c.confirmed)).collect();
    assert_eq!(order, [("B", 2, true), ("A", 6, false)]);
    assert_eq!(
        answer.warnings,
        [
            "cluster A: scheduler-estimator failed: connection refused; only what the cluster says of itself is known"
        ]
    );
    // Three: the confirmed two are not enough, then A counts as well; 3 × 2/8 = 0.75 and 3 × 6/8 = 2.25.
    let three = Binding { replicas: 3, ..one.clone() };
    assert_eq!(told(&divide(&fleet, &three, &given)), "A:2 B:1");
    let given = Given { options: upstream(), ..given };
    assert_eq!(told(&divide(&fleet, &one, &given)), "A:1", "Karmada hears nobody then");
    // By its sums B has room for 32 / 12 = 2.
    let estimators = [counted(&[("A", Err("connection refused")), ("B", Ok(1))])];
    let only_b = Binding { replicas: 2, ..one }.placing(|placement| placement.affinity = Some(named(&["B"])));
    let answer = divide(&fleet, &only_b, &Given { estimators: &estimators, ..given });
    let want = "Unschedulable: Clusters available replicas 1 are not enough to schedule.";
    assert_eq!(told(&answer), want, "Karmada does not ask about clusters that were refused");
}

#[test]
fn row_2_who_counts_nodes_is_believed_even_if_it_says_more() {
    let fleet = fleet(&[("a", 4), ("b", 6)]);
    let estimators = [counted(&[("a", Ok(9)), ("b", Ok(-1))])];
    let numbers = |mode| {
        let options = Options { mode, ..Options::default() };
        let given = Given { estimators: &estimators, options, ..Given::default() };
        let answer = divide(&fleet, &cores(1, dynamic()), &given);
        let mut numbers: Vec<_> =
            answer.feasible.iter().map(|c| (c.name.to_string(), c.allocatable)).collect();
        numbers.sort();
        numbers.into_iter().map(|(_, count)| count).collect::<Vec<_>>()
    };
    assert_eq!(numbers(Mode::AccurateFirst), [9, 6], "-1 is no opinion");
    assert_eq!(numbers(Mode::Min), [4, 6]);
    assert_eq!(numbers(Mode::General), [4, 6]);
}

#[test]
fn odd_opinions_are_taken_for_what_they_can_mean() {
    let fleet = fleet(&[("a", 4), ("b", 4), ("c", 4), ("d", 4)]);
    let estimators = [counted(&[("a", Ok(-7)), ("b", Ok(i32::MAX)), ("d", Ok(0))])];
    let given = Given {
        estimators: &estimators,
        replaced: BTreeMap::from([("d".to_owned(), 3)]),
        ..Given::default()
    };
    let answer = divide(&fleet, &cores(9, dynamic()), &given);
    let seen: BTreeMap<_, _> =
        answer.feasible.iter().map(|c| (&*c.name, (c.allocatable, answer.estimates(c).count()))).collect();
    assert_eq!(seen["a"], (0, 2), "below -1: a quota already exceeded");
    assert_eq!(seen["b"], (9, 2), "nothing limits: as many as are wanted");
    assert_eq!(seen["c"], (4, 2), "not heard of");
    assert_eq!(seen["d"], (3, 1), "replaced by hand");
}

#[test]
fn row_25b_nobody_need_be_asked_where_numbers_do_not_matter() {
    let cluster = [(By::Cluster, 1, 1)];
    for (why, binding, want) in [
        ("by what fits", cores(3, dynamic()), true),
        ("aggregated", cores(3, Division::Aggregated), true),
        ("everywhere", cores(3, Division::Duplicated), false),
        ("some of them, the roomiest", cores(3, Division::Duplicated).spread(&cluster), true),
        ("written weights", cores(3, fixed(&[("a", 1)])).spread(&cluster), false),
        ("all the same", cores(3, Division::Weighted(None)).spread(&cluster), false),
        ("all the same of some", cores(3, fixed(&[])).spread(&cluster), true),
        ("no replicas", cores(0, dynamic()), false),
    ] {
        let placement = binding.placement.clone().expect("it has one");
        assert_eq!(needed(&binding, &placement), want, "{why}");
    }
}

#[test]
fn rows_8_and_9_a_summary_counts_what_can_take_pods() {
    let node = |cpu: &str, pods: &str| NodeFacts {
        allocatable: list(&[("cpu", cpu), ("memory", "8Gi"), ("pods", pods)]),
        ..NodeFacts::default()
    };
    let taint = Taint {
        key: "node.kubernetes.io/not-ready".into(),
        value: String::new(),
        effect: Effect::NoSchedule,
        time_added: None,
    };
    let cordoned = NodeFacts { unschedulable: true, ..node("64", "110") };
    let down = NodeFacts { taints: vec![taint], ..node("64", "110") };
    let nodes = [node("4", "10"), node("4", "110"), node("2", "110"), cordoned, down];
    let empty = List::new();
    let full = list(&[("pods", "10"), ("cpu", "1")]);
    let half = list(&[("pods", "1"), ("cpu", "1")]);
    let used = [&full, &half, &empty, &empty, &empty];
    let waiting = list(&[("cpu", "500m"), ("pods", "1")]);
    let summary = Summary::of(nodes.iter().zip(used), &waiting, &usual());
    // Row 9: 4 + 4 + 2, neither the cordoned nor the one that is down; − 1 − 1 − 0.5.
    assert_eq!(summary.total.get("cpu"), Some(10_000));
    assert_eq!(summary.free.get("cpu"), Some(7_500));
    assert_eq!(summary.free.get("pods"), Some(230 - 11 - 1));
    // Row 8: the first has no place left and no grade; the second has 3 cores left, the third 2: both at least 2.
    assert_eq!(summary.grades, [(1, 2)]);
}
