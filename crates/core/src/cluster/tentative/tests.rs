use super::*;
use crate::cluster::{Options, Profile};
use crate::ledger::Sample;
use crate::load::Both;
use crate::load::policy::{self, Policy};
use crate::load::ratio::Ratio;
use crate::load::settings::Settings;
use crate::view::build::{Pod, node, pod};
use jiff::SignedDuration;
use proptest::prelude::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// Nodes of ten cores, half of which may be used, and so much of that is.
fn cluster(used_milli: &[(&str, i64)]) -> Cluster {
    let targets = Both { cpu: Ratio::from_f64(0.5), memory: None };
    let settings = Settings { targets, ..Settings::default() };
    let (rules, _) = policy::Rules::new(Policy::default(), settings).unwrap();
    let mut cluster = Cluster::new(Options { rules: Some(rules), ..Options::default() }, at(0));
    for (name, used) in used_milli {
        cluster.set_node(&node(name).cpu("10").memory("32Gi").facts());
        let usage = Load::new(used * 1_000_000, 0);
        cluster.sample(name, Sample { at: at(0), window: SignedDuration::from_secs(15), usage });
    }
    cluster
}

fn core(name: &str) -> Pod {
    pod(name).cpu("1").memory("1Gi")
}

const ALL: [&str; 2] = ["n1", "n2"];

fn passing(cluster: &mut Cluster, pod: Pod, names: &[&str], keep: Keep) -> Vec<bool> {
    let view = cluster.view(&pod.facts());
    let nodes = cluster.candidates(names.iter().copied());
    let wait = Wait::until(cluster.now() + SignedDuration::from_secs(5));
    let verdicts = cluster.filter(Question { profile: 0, pod: &view, nodes: &nodes, wait }, keep);
    verdicts.iter().map(|v| *v == Verdict::Passes).collect()
}

fn ranked(cluster: &mut Cluster, pod: Pod) -> Vec<u8> {
    let view = cluster.view(&pod.facts());
    let nodes = cluster.candidates(ALL.into_iter());
    let wait = Wait::until(cluster.now() + SignedDuration::from_secs(5));
    cluster.prioritize(Question { profile: 0, pod: &view, nodes: &nodes, wait })
}

/// Cores that may still come to each node.
fn room(cluster: &mut Cluster) -> Vec<i64> {
    cluster.board().head[0].iter().map(|nano| nano / 1_000_000_000).collect()
}

#[test]
fn each_rule_and_a_name_nobody_knows() {
    let mut cluster = cluster(&[("calm", 1000), ("full", 4500), ("hot", 9000), ("cool", 1000)]);
    cluster.cool("cool", at(60));
    let view = cluster.view(&core("p").facts());
    let nodes = cluster.candidates(["calm", "full", "hot", "cool", "gone"].into_iter());
    let asked = Question { profile: 0, pod: &view, nodes: &nodes, wait: Wait::until(at(5)) };
    let refused = |rule| Verdict::Refused(rule);
    let expected = [
        Verdict::Passes,
        refused(Filter::Line),
        refused(Filter::Threshold),
        refused(Filter::Cooling),
        Verdict::Unknown,
    ];
    assert_eq!(cluster.filter(asked, Keep::All), expected);
    assert_eq!(cluster.filter(asked, Keep::All), expected, "its own charge is not in its way");
}

#[test]
fn whatever_is_chosen_no_line_is_passed() {
    let mut cluster = cluster(&[("n1", 3000), ("n2", 2000)]);
    assert_eq!(room(&mut cluster), [2, 3]);
    let mut told = |name: &str| passing(&mut cluster, core(name), &ALL, Keep::All);
    assert_eq!([told("a"), told("b"), told("c")], [[true, true], [true, true], [false, true]]);
    assert_eq!(told("d"), [false, false], "all three may be on their way to n2");
    assert_eq!(told("c"), [false, true], "asked again it is not charged twice");
    assert_eq!(cluster.tentative_count(), 3, "who was refused everywhere is not on its way");

    // Two went to n1, one to n2.
    for (name, node) in [("a", "n1"), ("b", "n1"), ("c", "n2")] {
        cluster.set_pod(&core(name).on(node).facts());
    }
    assert_eq!((cluster.tentative_count(), room(&mut cluster)), (0, vec![0, 2]));
}

#[test]
fn a_reservation_ends_with_the_pod_its_time_or_the_node() {
    let mut cluster = cluster(&[("n1", 3000), ("n2", 2000)]);
    assert_eq!(ranked(&mut cluster, core("a")), [9, 10]);
    passing(&mut cluster, core("b"), &ALL, Keep::All);
    assert_eq!(room(&mut cluster), [0, 1]);
    let uid = cluster.view(&core("b").facts()).uid.clone();
    cluster.set_pod(&core("b").facts());
    assert_eq!(room(&mut cluster), [0, 1], "seen without a node: that was known");
    cluster.remove_pod(&uid);
    assert_eq!(room(&mut cluster), [1, 2]);
    assert_eq!(cluster.next_due().map(|due| due <= at(5)), Some(true));
    cluster.advance(at(5));
    assert_eq!((cluster.tentative_count(), room(&mut cluster)), (0, vec![2, 3]));

    passing(&mut cluster, core("c"), &ALL, Keep::All);
    cluster.remove_node("n1");
    cluster.set_node(&node("n3").cpu("10").memory("32Gi").facts());
    cluster.advance(at(60));
    let nodes = cluster.candidates(["n3", "n2"].into_iter());
    let heads = cluster.board().head[0].clone();
    let cores: Vec<i64> = nodes.iter().map(|n| heads[n.unwrap().index()] / 1_000_000_000).collect();
    assert_eq!(cores, [5, 3], "the number of a node that went says nothing of the next one's");
}

#[test]
fn a_pod_that_waits_to_be_bound_is_on_its_way_for_as_long_as_nobody_says_that_it_was_refused() {
    let old = Some("0/2 nodes are available: 2 Insufficient cpu.");
    let new = Some("0/2 nodes are available: 2 node(s) would pass the load line.");
    // What it was told before it was asked about, what is heard of it afterwards, and is it on its way then, from second 5 on?
    let table: [(_, &[Option<&str>], _, _); 7] = [
        (None, &[], false, "nobody knows it"),
        (None, &[None], true, "it is there"),
        (None, &[None, new], false, "refused"),
        (old, &[old], true, "as it was"),
        (old, &[old, new], false, "refused again"),
        (old, &[new], false, "refused again"),
        (old, &[None, old], true, "older news come late"),
    ];
    for (told, heard, stays, why) in table {
        let mut cluster = cluster(&[("n1", 3000), ("n2", 2000)]);
        let view = cluster.view(&core("a").facts());
        let nodes = cluster.candidates(ALL.into_iter());
        let wait = Wait { least: at(5), most: at(60), is_known: false, told };
        cluster.filter(Question { profile: 0, pod: &view, nodes: &nodes, wait }, Keep::All);
        for told in heard {
            cluster.waits(&view.uid, *told);
        }
        cluster.advance(at(4));
        assert_eq!(cluster.tentative_count(), 1, "{why}: not before its time");
        cluster.advance(at(15));
        assert_eq!(
            (cluster.tentative_count(), room(&mut cluster)[0]),
            if stays { (1, 1) } else { (0, 2) },
            "{why}"
        );
        cluster.advance(at(60));
        assert_eq!(
            (cluster.tentative_count(), room(&mut cluster)),
            (0, vec![2, 3]),
            "{why}: nobody waits for ever"
        );
        assert_eq!(cluster.tentative.next_end(), None, "{why}");
    }
}

#[test]
fn the_best_are_told_without_the_others() {
    let mut cluster = cluster(&[("n1", 4000), ("n2", 0), ("n3", 100)]);
    let names = ["n1", "n2", "n3"];
    assert_eq!(passing(&mut cluster, core("a"), &names, Keep::All), [true, true, true]);
    assert_eq!(passing(&mut cluster, core("a"), &names, Keep::Best), [false, true, true]);
    assert_eq!(room(&mut cluster), [1, 4, 3], "only where it may go");
}

#[test]
fn a_burst_prefers_one_after_the_other() {
    let mut cluster = cluster(&[("n1", 0), ("n2", 0)]);
    let bound: Vec<Vec<u8>> = (0..4)
        .map(|i| {
            let name = format!("p{i}");
            let levels = ranked(&mut cluster, core(&name));
            let node = if levels[0] >= levels[1] { "n1" } else { "n2" };
            cluster.set_pod(&core(&name).on(node).facts());
            levels
        })
        .collect();
    // The default policy: the second binding within a minute makes a node hot.
    assert_eq!(bound, [[10, 10], [10, 10], [9, 10], [9, 10]]);
}

#[test]
fn victims_release_what_nobody_has_measured_and_never_a_threshold() {
    let mut cluster = cluster(&[("n1", 1000), ("hot", 9000)]);
    for (name, node) in [("a", "n1"), ("b", "n1"), ("c", "hot")] {
        cluster.set_pod(&core(name).cpu("2").on(node).facts());
    }
    let big = cluster.view(&pod("big").cpu("2").memory("1Gi").facts());
    let victim = |cluster: &mut Cluster, name: &str| Uid::new(&cluster.view(&core(name).facts()).uid.clone());
    let (a, c) = (victim(&mut cluster, "a"), victim(&mut cluster, "c"));
    let nodes = cluster.candidates(["n1", "n1", "hot", "gone"].into_iter());
    let victims = [Vec::new(), vec![a], vec![c], vec![c]];
    let asked: Vec<_> = nodes.into_iter().zip(victims).collect();
    assert_eq!(cluster.allows_without(0, &big, &asked), [false, true, false, false]);
}

#[test]
fn who_asks_for_room_by_eviction_has_found_none_so_its_own_charge_is_not_in_its_way() {
    let mut cluster = cluster(&[("n1", 3000), ("n2", 2000)]);
    for (name, node) in [("a", "n1"), ("b", "n2")] {
        cluster.set_pod(&core(name).on(node).facts());
    }
    // By load it would do, and others refuse it.
    let view = cluster.view(&core("important").facts());
    assert_eq!(passing(&mut cluster, core("important"), &ALL, Keep::All), [true, true]);
    assert_eq!(room(&mut cluster), [0, 1]);
    let nodes = cluster.candidates(ALL.into_iter());
    let asked: Vec<_> = nodes.iter().map(|node| (*node, Vec::new())).collect();
    assert_eq!(cluster.allows_without(0, &view, &asked), [true, true]);
    assert_eq!((cluster.tentative_count(), room(&mut cluster)), (0, vec![1, 2]), "it goes nowhere now");
}

#[test]
fn a_pod_we_are_to_bind_is_charged_once() {
    let mut cluster = cluster(&[("n1", 3000), ("n2", 2000)]);
    let view = cluster.view(&core("a").facts());
    assert_eq!(ranked(&mut cluster, core("a")), [9, 10]);
    assert!(cluster.tentative(&view.uid).is_some());
    assert!(cluster.charge(&view, "n1"));
    assert_eq!((cluster.tentative_count(), room(&mut cluster)), (0, vec![1, 3]));
    cluster.unreserve(&view.uid);
    assert_eq!(room(&mut cluster), [2, 3]);
    assert!(!cluster.charge(&view, "gone"));

    assert!(cluster.charge(&view, "n1") && cluster.charge(&view, "n2"));
    assert_eq!(room(&mut cluster), [2, 2], "decided anew, it goes to the other node alone");
    assert!(!cluster.charge(&view, "gone"));
    assert_eq!(room(&mut cluster), [2, 2]);
    cluster.set_pod(&core("a").on("n2").facts());
    assert!(cluster.charge(&view, "n1"));
    assert_eq!(room(&mut cluster), [2, 2], "seen on a node, it stays there");
}

#[test]
fn each_pod_is_judged_by_the_rules_of_its_profile() {
    let rules = |share| {
        let targets = Both { cpu: Ratio::from_f64(share), memory: None };
        policy::Rules::new(Policy::default(), Settings { targets, ..Settings::default() }).unwrap().0
    };
    let mut cluster = cluster(&[("n1", 4500), ("n2", 1000)]);
    cluster.set_profiles([0.5, 0.9].map(|share| Profile::by(Some(rules(share)))).into());
    let view = cluster.view(&core("a").facts());
    let nodes = cluster.candidates(ALL.into_iter());
    for (profile, passes) in [(0, [false, true]), (1, [true, true])] {
        let asked = Question { profile, pod: &view, nodes: &nodes, wait: Wait::until(at(5)) };
        let found: Vec<bool> =
            cluster.filter(asked, Keep::All).iter().map(|v| *v == Verdict::Passes).collect();
        assert_eq!(found, passes, "5.5 of 10 are over 0.5 and not over 0.9");
        assert_eq!(cluster.prioritize(asked)[0] > 0, passes[0]);
        let asked: Vec<_> = nodes.iter().map(|node| (*node, Vec::new())).collect();
        assert_eq!(cluster.allows_without(profile, &view, &asked), passes);
    }
}

/// What another scheduler does with an answer, and what comes of it.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A new pod of so many tenths of a core; it takes one of the nodes told.
    Ask { tenths: i64, takes: usize, ranks: bool },
    /// One that was decided is seen bound.
    Bind(usize),
    /// One that was decided is gone.
    Delete(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1_i64..25, 0_usize..8, any::<bool>()).prop_map(|(tenths, takes, ranks)| Step::Ask { tenths, takes, ranks }),
        1 => (0_usize..8).prop_map(Step::Bind),
        1 => (0_usize..8).prop_map(Step::Delete),
    ]
}

proptest! {
    /// Whichever of the nodes told is taken, and however late that is seen, no node gets more than fits under its line,
    /// and in the end nothing is left of what was only possible.
    #[test]
    fn no_choice_passes_a_line(used in prop::collection::vec(0_i64..5500, 1..5), steps in prop::collection::vec(step(), 0..60)) {
        let names: Vec<String> = (0..used.len()).map(|i| format!("n{i}")).collect();
        let nodes: Vec<(&str, i64)> = names.iter().map(String::as_str).zip(used.iter().copied()).collect();
        let mut cluster = cluster(&nodes);
        let mut come = vec![0; names.len()];
        let mut decided: Vec<(Pod, usize, i64)> = Vec::new();
        for (i, step) in steps.into_iter().enumerate() {
            match step {
                Step::Ask { tenths, takes, ranks } => {
                    let new = || pod(&format!("p{i}")).cpu(&format!("{}m", tenths * 100)).memory("1Mi");
                    let all: Vec<&str> = names.iter().map(String::as_str).collect();
                    let told: Vec<usize> = passing(&mut cluster, new(), &all, Keep::All)
                        .into_iter().enumerate().filter(|(_, passes)| *passes).map(|(at, _)| at).collect();
                    if told.is_empty() {
                        continue;
                    }
                    if ranks {
                        let view = cluster.view(&new().facts());
                        let nodes = cluster.candidates(told.iter().map(|at| all[*at]));
                        let wait = Wait::until(cluster.now() + SignedDuration::from_secs(5));
                        let levels = cluster.prioritize(Question { profile: 0, pod: &view, nodes: &nodes, wait });
                        prop_assert!(levels.contains(&10), "one is the best");
                    }
                    let at = told[takes % told.len()];
                    come[at] += tenths * 100;
                    decided.push((new(), at, tenths * 100));
                }
                Step::Bind(which) if which < decided.len() => {
                    let (pod, at, _) = decided.swap_remove(which);
                    cluster.set_pod(&pod.on(&names[at]).facts());
                }
                Step::Delete(which) if which < decided.len() => {
                    let (pod, at, milli) = decided.swap_remove(which);
                    let uid = pod.facts().uid;
                    cluster.remove_pod(&uid);
                    come[at] -= milli;
                }
                Step::Bind(_) | Step::Delete(_) => {}
            }
            for (used, come) in used.iter().zip(&come) {
                prop_assert!(*come == 0 || used + come <= 5000, "{used}m + {come}m are under 5 cores");
            }
        }
        for (pod, at, _) in decided {
            cluster.set_pod(&pod.on(&names[at]).facts());
        }
        prop_assert_eq!(cluster.tentative_count(), 0);
        let left: Vec<i64> = cluster.board().head[0].iter().map(|nano| nano / 1_000_000).collect();
        let expected: Vec<i64> = used.iter().zip(&come).map(|(used, come)| 5000 - used - come).collect();
        prop_assert_eq!(left, expected);
    }
}

/// What happens between the two questions about a pod.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    /// One that was decided is seen bound.
    Bound(usize),
    /// A node is measured.
    Measured(usize, i64),
    /// A node goes, and perhaps another one comes in its place.
    Gone(usize, bool),
    /// Seconds pass.
    Passes(i64),
    /// Another pod is asked about.
    Asked,
    /// The pod itself is asked about again, with all nodes.
    AskedAgain,
    /// The pod is gone.
    Deleted,
    /// Other rules hold.
    Ruled(u8),
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        3 => Just(Between::Nothing),
        2 => (0_usize..8).prop_map(Between::Bound),
        2 => (0_usize..6, 0_i64..6000).prop_map(|(node, used)| Between::Measured(node, used)),
        1 => (0_usize..6, any::<bool>()).prop_map(|(node, another)| Between::Gone(node, another)),
        1 => (1_i64..8).prop_map(Between::Passes),
        1 => Just(Between::Asked),
        1 => Just(Between::AskedAgain),
        1 => Just(Between::Deleted),
        1 => (3_u8..9).prop_map(Between::Ruled),
    ]
}

fn sample(used_milli: i64, at: Timestamp) -> Sample {
    Sample { at, window: SignedDuration::from_secs(15), usage: Load::new(used_milli * 1_000_000, 0) }
}

proptest! {
    /// Asked without naming the nodes again, the answer is what it would be with their names, and so is all that follows from it.
    #[test]
    fn what_is_told_again_is_what_would_be_worked_out_anew(
        used in prop::collection::vec(0_i64..5500, 1..6),
        steps in prop::collection::vec((1_i64..25, between()), 1..40),
    ) {
        let names: Vec<String> = (0..used.len()).map(|i| format!("n{i}")).collect();
        let nodes: Vec<(&str, i64)> = names.iter().map(String::as_str).zip(used.iter().copied()).collect();
        let mut cluster = cluster(&nodes);
        let mut decided: Vec<(Pod, String)> = Vec::new();
        let ask = |cluster: &mut Cluster, pod: &Arc<PodView>, names: &[&String], ranks: bool| -> (Vec<bool>, Vec<u8>) {
            let nodes = cluster.candidates(names.iter().map(|name| name.as_str()));
            let wait = Wait::until(cluster.now() + SignedDuration::from_secs(5));
            let asked = Question { profile: 0, pod, nodes: &nodes, wait };
            if ranks {
                return (Vec::new(), cluster.prioritize(asked));
            }
            (cluster.filter(asked, Keep::All).iter().map(|v| *v == Verdict::Passes).collect(), Vec::new())
        };
        for (i, (tenths, between)) in steps.into_iter().enumerate() {
            let new = || pod(&format!("p{i}")).cpu(&format!("{}m", tenths * 100)).memory("1Mi");
            let all: Vec<&String> = names.iter().collect();
            let view = cluster.view(&new().facts());
            let (passing, _) = ask(&mut cluster, &view, &all, false);
            let told: Vec<&String> = all.iter().zip(&passing).filter(|(_, passes)| **passes).map(|(name, _)| *name).collect();
            let answer = cluster.told(&view.uid);
            prop_assert_eq!(answer.is_some(), !told.is_empty());
            let Some(answer) = answer else { continue };
            match between {
                Between::Bound(which) if which < decided.len() => {
                    let (pod, node) = decided.swap_remove(which);
                    cluster.set_pod(&pod.on(&node).facts());
                }
                Between::Measured(which, used) if which < names.len() => {
                    let now = cluster.now();
                    cluster.sample(&names[which], sample(used, now));
                }
                Between::Gone(which, another) if which < names.len() => {
                    cluster.remove_node(&names[which]);
                    if another {
                        cluster.set_node(&node("another").cpu("10").memory("32Gi").facts());
                    }
                }
                Between::Passes(seconds) => cluster.advance(cluster.now() + SignedDuration::from_secs(seconds)),
                Between::Asked => {
                    let other = cluster.view(&core(&format!("other-{i}")).facts());
                    ask(&mut cluster, &other, &all, false);
                }
                Between::AskedAgain => drop(ask(&mut cluster, &view, &all, false)),
                Between::Deleted => cluster.remove_pod(&view.uid),
                Between::Ruled(tenths) => {
                    let targets = Both { cpu: Ratio::from_f64(f64::from(tenths) / 10.0), memory: None };
                    let settings = Settings { targets, ..Settings::default() };
                    let rules = policy::Rules::new(Policy::default(), settings).unwrap().0;
                    cluster.set_profiles(vec![Profile::by(Some(rules))]);
                }
                Between::Nothing | Between::Bound(_) | Between::Measured(..) | Between::Gone(..) => {}
            }
            let mut anew = cluster.clone();
            let (_, expected) = ask(&mut anew, &view, &told, true);
            let again = cluster.prioritize_told(&view.uid, answer);
            prop_assert!(again.is_some() || !matches!(between, Between::Nothing), "it need not be worked out anew");
            prop_assert_eq!(cluster.prioritize_told(&view.uid, answer), None, "and is asked once");
            if let Some(again) = again {
                prop_assert_eq!(&again, &expected);
                // What is known afterwards is the same, and so is what others are told.
                let (mut one, mut other) = (cluster.clone(), anew.clone());
                prop_assert_eq!(&one.board().head, &other.board().head);
                prop_assert_eq!(&one.board().score, &other.board().score);
                prop_assert_eq!(one.tentative_count(), other.tentative_count());
                let next = one.view(&core("next").facts());
                prop_assert_eq!(ask(&mut one, &next, &all, true), ask(&mut other, &next, &all, true));
                for cluster in [&mut one, &mut other] {
                    cluster.remove_pod(&view.uid);
                    cluster.remove_pod(&next.uid);
                }
                prop_assert_eq!(&one.board().head, &other.board().head);
            } else {
                cluster = anew;
            }
            if let Some(best) = told.iter().zip(&expected).filter(|(_, level)| **level == 10).map(|(name, _)| *name).next() {
                decided.push((new(), best.clone()));
            }
        }
    }
}

#[test]
fn a_node_that_is_named_twice_is_named_again() {
    let mut cluster = cluster(&[("n1", 3000)]);
    let view = cluster.view(&core("a").facts());
    assert_eq!(passing(&mut cluster, core("a"), &["n1", "n1"], Keep::All), [true, true]);
    assert_eq!(cluster.told(&view.uid), None);
    passing(&mut cluster, core("a"), &["n1"], Keep::Best);
    assert_eq!(cluster.told(&view.uid), None, "nobody asks to compare these");
}
