//! Arithmetic written out, and what must hold whatever the cluster is like.

use super::*;
use crate::view::build::{node, pod};
use crate::view::{Phase, PodFacts};
use proptest::prelude::*;
use std::collections::BTreeMap;

const GI: i64 = 1 << 30;

fn now() -> Timestamp {
    "2026-01-05T10:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

/// A pod that has been running for an hour.
fn running(name: &str, node: &str, cpu: &str, memory: &str) -> PodFacts {
    PodFacts { started: Some(ago(3600)), ..pod(name).on(node).cpu(cpu).memory(memory).facts() }
}

fn uses(cpu_milli: i64, memory_gi: i64, at: Timestamp) -> Sample {
    let usage = Load::new(cpu_milli * 1_000_000, memory_gi * GI);
    Sample { at, window: SignedDuration::from_secs(15), usage }
}

/// Two nodes of 4 cores and 8 GiB.
fn two() -> Member {
    let mut member = Member::new();
    for name in ["n1", "n2"] {
        member.set_node(&node(name).cpu("4").memory("8Gi").facts(), Up::Yes);
    }
    member
}

fn summary(member: &Member) -> Summary {
    member.summary(now(), &Rules::default())
}

fn taken(member: &Member, resource: &str) -> (i64, i64, Option<i64>) {
    let Taken { allocatable, requested, measured } = summary(member).resources[resource];
    (allocatable, requested, measured)
}

#[test]
fn what_pods_on_nodes_ask_for_and_what_nodes_use_is_summed_up() {
    let mut member = two();
    member.set_pod(&running("a", "n1", "1500m", "2Gi"), now());
    member.set_pod(&running("b", "n2", "500m", "1Gi"), now());
    member.set_pod(&pod("waits").cpu("3").facts(), now());
    member.set_pod(&pod("over").on("n1").cpu("3").phase(Phase::Succeeded).facts(), now());
    member.sample("n1", uses(700, 3, ago(20)), now());
    member.sample("n2", uses(900, 1, ago(30)), now());
    assert_eq!(taken(&member, "cpu"), (8000, 2000, Some(1600)));
    assert_eq!(taken(&member, "memory"), (16 * GI, 3 * GI, Some(4 * GI)));
    assert_eq!(taken(&member, "pods"), (220, 2, None), "pods are counted, not measured");
    assert_eq!(summary(&member).at, ago(30), "as old as the oldest measurement");
}

#[test]
fn any_resource_a_node_has_comes_through() {
    let mut member = Member::new();
    let gpus = node("n1").cpu("4").has("nvidia.com/gpu", "8").has("example.com/bandwidth", "40G");
    member.set_node(&gpus.has("hugepages-2Mi", "0").has("attachable-volumes-aws-ebs", "25").facts(), Up::Yes);
    let asking = pod("train").on("n1").asks("nvidia.com/gpu", "3").asks("example.com/bandwidth", "10G");
    member.set_pod(&asking.facts(), now());
    assert_eq!(taken(&member, "nvidia.com/gpu"), (8, 3, None));
    assert_eq!(taken(&member, "example.com/bandwidth"), (40_000_000_000, 10_000_000_000, None));
    let listed: Vec<String> = summary(&member).resources.into_keys().collect();
    assert_eq!(listed, ["cpu", "example.com/bandwidth", "nvidia.com/gpu", "pods"], "nobody has the rest");
}

#[test]
fn use_is_not_known_until_enough_is_measured_and_then_stands_for_all() {
    let mut member = Member::new();
    for i in 0..5 {
        member.set_node(&node(&format!("n{i}")).cpu("4").memory("8Gi").facts(), Up::Yes);
    }
    for i in 0..3 {
        member.sample(&format!("n{i}"), uses(1000, 2, ago(10)), now());
    }
    let one = summary(&member);
    assert_eq!((one.nodes, one.measured_nodes, one.is_measured()), (5, 3, false), "3 of 5 are not 80 %");
    assert_eq!(one.at, now(), "nothing measured is in it");
    member.sample("n3", uses(1001, 2, ago(10)), now());
    // 4001 thousandths of 16 cores; of 20 cores that is 5001.25, rounded up.
    assert_eq!(taken(&member, "cpu"), (20_000, 0, Some(5002)));
    assert_eq!(taken(&member, "memory").2, Some(10 * GI));
}

#[test]
fn a_measurement_counts_for_half_of_its_time() {
    let mut member = two();
    let rules = Rules { validity: SignedDuration::from_secs(100), ..Rules::default() };
    member.sample("n1", uses(700, 3, ago(0)), now());
    member.sample("n2", uses(900, 1, ago(50)), now());
    assert!(member.summary(now(), &rules).is_measured());
    let later = now() + SignedDuration::from_secs(1);
    assert!(!member.summary(later, &rules).is_measured(), "of n2 it is 51 s old");
    let from_ahead = now() + SignedDuration::from_mins(5);
    member.sample("n2", uses(900, 1, from_ahead), now());
    member.sample("n2", uses(800, 1, later), later);
    let both = member.summary(later, &rules).resources["cpu"].measured;
    assert_eq!(both, Some(1500), "what was stamped ahead did not hide what came after");
}

#[test]
fn a_pod_that_just_came_counts_before_it_is_measured() {
    let mut member = two();
    for name in ["n1", "n2"] {
        member.sample(name, uses(500, 1, ago(20)), now());
    }
    let fresh = PodFacts { started: Some(ago(5)), ..pod("new").on("n1").cpu("2").memory("1Gi").facts() };
    member.set_pod(&fresh, now());
    assert_eq!(taken(&member, "cpu"), (8000, 2000, Some(3000)), "1000 measured, 2000 on their way");
    // The next window has seen it run from its beginning: what is measured is all there is.
    for name in ["n1", "n2"] {
        member.sample(name, uses(600, 1, now() + SignedDuration::from_secs(11)), now());
    }
    assert_eq!(taken(&member, "cpu").2, Some(1200));
    member.remove_pod(&fresh.uid, now());
    assert_eq!(taken(&member, "cpu").1, 0);
}

#[test]
fn a_node_that_is_down_is_full_and_a_cordoned_one_is_not_there() {
    let mut member = two();
    member.set_pod(&running("a", "n1", "1", "1Gi"), now());
    member.set_pod(&running("b", "n2", "1", "1Gi"), now());
    for name in ["n1", "n2"] {
        member.sample(name, uses(500, 1, ago(20)), now());
    }
    let n2 = || node("n2").cpu("4").memory("8Gi");
    member.set_node(&n2().facts(), Up::No);
    assert_eq!(taken(&member, "cpu"), (8000, 5000, Some(4500)), "4000 of n2, and what is on n1");
    member.set_node(&n2().cordoned().facts(), Up::Yes);
    assert_eq!(taken(&member, "cpu"), (4000, 1000, Some(500)));
    member.set_node(&n2().cordoned().facts(), Up::No);
    assert_eq!(taken(&member, "cpu").0, 4000, "cordoned and down is not there either");
    member.set_node(&node("n1").cpu("4").memory("8Gi").facts(), Up::No);
    assert_eq!(taken(&member, "cpu"), (4000, 4000, Some(4000)), "nothing is up, and that is known");
    assert_eq!(summary(&member).scores()["cpuFreeMeasured"], -100);
}

#[test]
fn a_node_that_comes_back_has_its_pods_and_a_new_one_does_not_have_those_of_another() {
    let mut member = two();
    member.set_pod(&running("early", "n3", "1", "1Gi"), now());
    assert_eq!(taken(&member, "cpu"), (8000, 0, None), "its node is not there yet");
    member.set_node(&node("n3").cpu("4").facts(), Up::Yes);
    assert_eq!(taken(&member, "cpu"), (12_000, 1000, None));
    member.remove_node("n3");
    assert_eq!(taken(&member, "cpu"), (8000, 0, None));
    member.remove_pod("uid-early", now());
    member.set_node(&node("n4").cpu("2").facts(), Up::Yes);
    assert_eq!(taken(&member, "cpu"), (10_000, 0, None));
    // Told again, as after a list, nothing counts twice.
    for _ in 0..2 {
        member.set_pod(&running("a", "n4", "1", "1Gi"), now());
    }
    assert_eq!(taken(&member, "cpu").1, 1000);
}

fn of(name: &str, allocatable: i64, requested: i64, measured: Option<i64>) -> Summary {
    let resources = BTreeMap::from([(name.to_owned(), Taken { allocatable, requested, measured })]);
    Summary { at: now(), nodes: 1, measured_nodes: 1, resources }
}

#[test]
fn shares_are_half_percents_rounded_down() {
    for (all, taken, want, why) in [
        (8000, 0, 100, "all of it is free"),
        (8000, 1, 99, "200 × 7999 ÷ 8000 is 199.975"),
        (8000, 2000, 50, "200 × 0.75 is 150"),
        (8000, 4000, 0, "half of it"),
        (3, 2, -34, "200 ÷ 3 is 66.7"),
        (8000, 7999, -100, "200 ÷ 8000 is 0.025"),
        (8000, 8000, -100, "nothing is free"),
        (8000, 9000, -100, "more is asked for than there is"),
        (i64::MAX, i64::MAX / 4, 50, "no overflow: 200 × 0.75"),
    ] {
        let scores = of("example.com/x", all, taken, Some(taken)).scores();
        let expected = [("example.com/xFreeMeasured", want), ("example.com/xFreeRequested", want)]
            .map(|(n, v)| (n.into(), v));
        assert_eq!(scores, BTreeMap::from(expected), "{why}");
    }
}

#[test]
fn what_is_available_is_on_the_scale_of_the_add_on() {
    // 200 × cores ÷ 100 − 100, and 200 × MiB ÷ 1048576 − 100, cut off toward zero.
    for (name, score, all, taken, want, why) in [
        ("cpu", "cpuAvailable", 16_000, 6_000, -80, "10 cores: 20 − 100"),
        ("cpu", "cpuAvailable", 60_100, 0, 20, "60.1 cores: 20.2"),
        ("cpu", "cpuAvailable", 25_300, 0, -49, "25.3 cores: −49.4, toward zero"),
        ("cpu", "cpuAvailable", 500_000, 0, 100, "more than a hundred"),
        ("cpu", "cpuAvailable", 4000, 5000, -100, "less than none"),
        ("memory", "memAvailable", 256 * GI, 0, -50, "200 × 262144 ÷ 1048576 is 50"),
        ("memory", "memAvailable", 8 * GI, 0, -98, "200 × 8192 ÷ 1048576 is 1.56: −98.4, toward zero"),
    ] {
        assert_eq!(of(name, all, taken, None).scores().get(score), Some(&want), "{why}");
    }
    assert!(!of("nvidia.com/gpu", 8, 0, None).scores().keys().any(|name| name.ends_with("Available")));
}

#[test]
fn what_is_not_known_has_no_score() {
    let scores = of("cpu", 8000, 2000, None).scores();
    let names: Vec<&str> = scores.keys().map(String::as_str).collect();
    assert_eq!(names, ["cpuAvailable", "cpuFreeRequested"]);
    assert!(Member::new().summary(now(), &Rules::default()).scores().is_empty());
}

#[test]
fn a_summary_is_told_first_when_it_changes_and_before_it_expires() {
    let rules = Rules {
        validity: SignedDuration::from_secs(100),
        min_change: Ratio::from_nano(10_000_000),
        ..Rules::default()
    };
    let at = |seconds: i64, summary: Summary| Summary {
        at: now() + SignedDuration::from_secs(seconds),
        ..summary
    };
    let told = of("cpu", 8000, 2000, Some(1000));
    for (seconds, new, want, why) in [
        (10, at(5, told.clone()), None, "nothing is different"),
        (10, at(5, of("cpu", 8000, 2000, Some(1079))), None, "79 ÷ 8000 is less than a hundredth"),
        (10, at(5, of("cpu", 8000, 2000, Some(1080))), Some(Due::Changed), "exactly a hundredth"),
        (10, at(5, of("cpu", 8000, 1920, Some(1000))), Some(Due::Changed), "less is a change, too"),
        (10, at(5, of("cpu", 8000, 2000, None)), Some(Due::Changed), "it is not known any more"),
        (10, at(5, of("cpu", 16_000, 4000, Some(2000))), Some(Due::Changed), "twice as large, as full"),
        (10, at(5, of("memory", 8000, 2000, Some(1000))), Some(Due::Changed), "another resource"),
        (49, at(45, told.clone()), None, "less than half of its time is over"),
        (50, at(45, told.clone()), Some(Due::Renewal), "half of it is"),
        (50, told.clone(), None, "there is nothing newer to tell"),
        (100, told.clone(), None, "it has expired itself"),
        (100, of("cpu", 8000, 8000, Some(8000)), None, "so has this"),
    ] {
        let now = now() + SignedDuration::from_secs(seconds);
        assert_eq!(due(Some(&told), &new, now, &rules), want, "{why}");
    }
    assert_eq!(due(None, &told, now(), &rules), Some(Due::First));
    let any = Rules { min_change: Ratio::ZERO, ..rules };
    assert_eq!(due(Some(&told), &at(5, told.clone()), now(), &any), None, "nothing is no change");
    assert_eq!(due(Some(&told), &of("cpu", 8000, 2001, Some(1000)), now(), &any), Some(Due::Changed));
}

/// A cluster of a few nodes: what each has, whether it is up, what is asked there, what it is measured to use if it is.
type Nodes = Vec<(i64, bool, i64, Option<i64>)>;

fn nodes() -> impl Strategy<Value = Nodes> {
    let one = (1_i64..64_000, any::<bool>(), 0_i64..80_000, proptest::option::of(0_i64..80_000));
    proptest::collection::vec(one, 1..6)
}

fn built(nodes: &Nodes) -> Member {
    let mut member = Member::new();
    for (i, (cpu, up, asked, used)) in nodes.iter().enumerate() {
        let name = format!("n{i}");
        let up = if *up { Up::Yes } else { Up::No };
        member.set_node(&node(&name).cpu(&format!("{cpu}m")).memory(&format!("{cpu}Mi")).facts(), up);
        member.set_pod(&running(&format!("p{i}"), &name, &format!("{asked}m"), "1Mi"), now());
        if let Some(used) = used {
            member.sample(&name, uses(*used, 0, ago(20)), now());
        }
    }
    member
}

proptest! {
    #[test]
    fn scores_are_in_range_and_only_of_what_is_known(nodes in nodes()) {
        let one = summary(&built(&nodes));
        let scores = one.scores();
        prop_assert!(scores.values().all(|score| (WORST..=BEST).contains(score)), "{:?}", scores);
        prop_assert_eq!(scores.contains_key("cpuFreeMeasured"), one.resources["cpu"].measured.is_some());
        // With nothing measured where something is up, use is unknown however much is down.
        let up = nodes.iter().any(|(_, up, ..)| *up);
        if up && nodes.iter().all(|(_, up, _, used)| !up || used.is_none()) {
            prop_assert!(!one.is_measured());
        }
    }

    #[test]
    fn more_load_never_scores_better(all in 1_i64..=i64::MAX, taken in 0_i64..=i64::MAX, more in 0_i64..=i64::MAX) {
        let (less, more) = (taken.min(more), taken.max(more));
        for name in ["cpu", "memory", "nvidia.com/gpu"] {
            let (light, heavy) = (of(name, all, less, Some(less)).scores(), of(name, all, more, Some(more)).scores());
            for (score, points) in &heavy {
                prop_assert!(light[score] >= *points, "{score}: {light:?} {heavy:?}");
            }
        }
    }

    #[test]
    fn a_node_that_goes_down_never_makes_a_cluster_look_idler(nodes in nodes(), which in any::<proptest::sample::Index>()) {
        let mut nodes = nodes;
        let i = which.index(nodes.len());
        // What asks for more than a node has, or uses more, is relieved by its end.
        for (cpu, _, asked, used) in &mut nodes {
            (*asked, *used) = ((*asked).min(*cpu), Some(used.unwrap_or_default().min(*cpu)));
        }
        let before = summary(&built(&nodes));
        nodes[i].1 = false;
        let after = summary(&built(&nodes));
        prop_assert!(after.resources["cpu"].requested >= before.resources["cpu"].requested);
        for score in ["cpuFreeRequested", "cpuFreeMeasured"] {
            prop_assert!(after.scores()[score] <= before.scores()[score], "{score}");
        }
    }

    #[test]
    fn what_was_told_is_never_told_again_unless_time_has_passed(nodes in nodes()) {
        let one = summary(&built(&nodes));
        let rules = Rules { min_change: Ratio::ZERO, ..Rules::default() };
        prop_assert_eq!(due(Some(&one), &one, now(), &rules), None);
    }
}
