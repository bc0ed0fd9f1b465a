mod written;

use super::*;
use crate::cycle::Filter;
use crate::load::policy::Policy;
use crate::load::ratio::Ratio;
use crate::load::score::Hot;
use crate::load::settings::{Missing, Settings};
use crate::load::{Both, Metered};
use crate::view::build::{Node, Pod, node, pod};
use jiff::SignedDuration;

const GI: i64 = 1 << 30;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn settings(cpu: f64) -> Settings {
    Settings {
        targets: Both { cpu: Ratio::from_f64(cpu), memory: Ratio::from_f64(0.9) },
        ..Settings::default()
    }
}

fn cluster(settings: Settings) -> Cluster {
    let (rules, _) = Rules::new(Policy::default(), settings).unwrap();
    Cluster::new(Options { rules: Some(rules), ..Options::default() }, at(0))
}

fn big(name: &str) -> Node {
    node(name).cpu("10").memory("32Gi")
}

fn sample(seconds: i64, cpu_milli: i64) -> Sample {
    Sample {
        at: at(seconds),
        window: SignedDuration::from_secs(15),
        usage: Load::new(cpu_milli * 1_000_000, 4 * GI),
    }
}

/// Schedules a pod; says where.
fn place(cluster: &mut Cluster, pod: Pod) -> Option<String> {
    let view = cluster.view(&pod.facts());
    let node = cluster.decide(&view).reserve().node?;
    Some(cluster.snapshot()[node].name.to_string())
}

/// The hot value of a node, which is known and a whole number.
fn hot(cluster: &mut Cluster, id: NodeId) -> i64 {
    match cluster.load(id).unwrap().hot {
        Some(Hot::Count(count)) => count,
        other => panic!("{other:?}"),
    }
}

// Promise 2, D6, A2: the incident of the real-time proposal.
#[test]
fn a_burst_fills_a_node_up_to_its_target_and_no_further() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    cluster.set_node(&big("n2").facts());
    for name in ["n1", "n2"] {
        cluster.sample(name, sample(0, 2000));
    }
    // Each node has 10 cores × 0.5 − 2 measured = 3 cores of room: 6 pods of 500m, 12 in all.
    let placed: Vec<_> =
        (0..20).map(|i| place(&mut cluster, pod(&format!("p{i:02}")).cpu("500m").memory("1Gi"))).collect();
    assert_eq!(placed.iter().flatten().count(), 12);
    for name in ["n1", "n2"] {
        assert_eq!(placed.iter().flatten().filter(|n| *n == name).count(), 6, "{name}");
    }
    let last = cluster.view(&pod("late").cpu("500m").memory("1Gi").facts());
    let mut decided = cluster.decide(&last);
    assert_eq!(decided.decision().refused[Filter::Line.index()], 2);
    assert_eq!(decided.message(), "0/2 nodes are available: 2 node(s) would pass the load line.");
}

#[test]
fn what_was_pending_is_not_counted_again_once_it_is_measured() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    cluster.sample("n1", sample(0, 2000));
    assert!(place(&mut cluster, pod("a").cpu("3").memory("1Gi")).is_some(), "2 + 3 = 5, equality passes");
    assert!(place(&mut cluster, pod("b").cpu("1m").memory("1Gi")).is_none());
    let mut bound = pod("a").cpu("3").memory("1Gi").on("n1").facts();
    bound.started = Some(at(10));
    cluster.set_pod(&bound);
    cluster.advance(at(20));
    assert!(
        place(&mut cluster, pod("b").cpu("1m").memory("1Gi")).is_none(),
        "running, but the sample is older"
    );
    cluster.advance(at(40));
    cluster.sample("n1", sample(40, 3500));
    let id = cluster.live.id("n1").unwrap();
    let line = cluster.load(id).unwrap().lines.get(Metered::Cpu);
    assert_eq!((line.measured, line.pending), (Some(3_500_000_000), 0), "it uses half of what it asked for");
    assert!(place(&mut cluster, pod("b").cpu("1500m").memory("1Gi")).is_some(), "3.5 + 1.5 = 5");
}

// A7, D5, promise 1.
#[test]
fn without_measurements_the_pods_are_added_up_instead() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    cluster.set_pod(&pod("old").cpu("4").memory("1Gi").on("n1").facts());
    assert!(place(&mut cluster, pod("a").cpu("1001m").memory("1Gi")).is_none(), "4 + 1.001 > 5");
    assert!(place(&mut cluster, pod("a").cpu("1").memory("1Gi")).is_some());
    for (missing, fits) in [(Missing::Allow, true), (Missing::Deny, false)] {
        let mut cluster = self::cluster(Settings { missing, ..settings(0.5) });
        cluster.set_node(&big("n1").facts());
        cluster.set_pod(&pod("old").cpu("4").memory("1Gi").on("n1").facts());
        assert_eq!(place(&mut cluster, pod("a").cpu("2").memory("1Gi")).is_some(), fits, "{missing:?}");
    }
}

#[test]
fn a_sample_grows_old_by_time_alone() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    cluster.sample("n1", sample(0, 5000));
    assert_eq!(place(&mut cluster, pod("a").cpu("1").memory("1Gi")), None);
    cluster.advance(at(300));
    assert_eq!(place(&mut cluster, pod("a").cpu("1").memory("1Gi")), None, "5 minutes old is still used");
    cluster.advance(at(301));
    assert!(place(&mut cluster, pod("a").cpu("1").memory("1Gi")).is_some(), "now only estimates are left");
}

#[test]
fn a_decision_that_is_not_carried_out_is_taken_back_at_once_or_after_fifteen_minutes() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    let full = || pod("a").cpu("5").memory("1Gi");
    assert!(place(&mut cluster, full()).is_some());
    assert_eq!(place(&mut cluster, pod("b").cpu("1").memory("1Gi")), None);
    cluster.unreserve("uid-a");
    assert!(place(&mut cluster, pod("b").cpu("5").memory("1Gi")).is_some());
    cluster.advance(at(15 * 60 - 1));
    assert_eq!(place(&mut cluster, pod("c").cpu("1").memory("1Gi")), None);
    cluster.advance(at(15 * 60));
    assert!(place(&mut cluster, pod("c").cpu("5").memory("1Gi")).is_some());
}

#[test]
fn news_older_than_our_decision_does_not_undo_it() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    assert!(place(&mut cluster, pod("a").cpu("5").memory("1Gi")).is_some());
    cluster.set_pod(&pod("a").cpu("5").memory("1Gi").facts());
    assert_eq!(place(&mut cluster, pod("b").cpu("1").memory("1Gi")), None, "still charged");
}

// A15.
#[test]
fn pods_of_daemon_sets_pass_whatever_the_load_and_count_as_load() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    cluster.sample("n1", sample(0, 9000));
    assert_eq!(place(&mut cluster, pod("a").cpu("100m").memory("1Gi")), None);
    let mut facts = pod("d").cpu("100m").memory("1Gi").facts();
    facts.daemon = true;
    let view = cluster.view(&facts);
    assert!(cluster.decide(&view).reserve().node.is_some());
    let id = cluster.live.id("n1").unwrap();
    assert_eq!(cluster.load(id).unwrap().lines.get(Metered::Cpu).pending, 100_000_000);
}

// Promise 3.
#[test]
fn a_node_that_was_relieved_is_left_alone_until_it_has_cooled() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    cluster.cool("n1", at(60));
    assert_eq!(place(&mut cluster, pod("a").cpu("1").memory("1Gi")), None);
    cluster.advance(at(60));
    assert!(place(&mut cluster, pod("a").cpu("1").memory("1Gi")).is_some());
}

#[test]
fn the_less_loaded_node_wins_even_if_more_is_promised_there() {
    let mut cluster = cluster(settings(0.8));
    cluster.set_node(&big("busy").facts());
    cluster.set_node(&big("idle").facts());
    cluster.set_pod(&Pod::on(pod("promised").cpu("4").memory("8Gi"), "idle").facts());
    cluster.advance(at(100));
    cluster.sample("busy", sample(100, 6000));
    cluster.sample("idle", sample(100, 200));
    assert_eq!(place(&mut cluster, pod("a").cpu("1").memory("1Gi")).as_deref(), Some("idle"));
}

// D2, A14.
#[test]
fn recent_bindings_make_a_node_hot_and_it_cools_by_itself() {
    let mut cluster = cluster(settings(0.9));
    cluster.set_node(&big("n1").facts());
    let id = cluster.live.id("n1").unwrap();
    for i in 0..5 {
        place(&mut cluster, pod(&format!("p{i}")).cpu("10m").memory("10Mi")).unwrap();
    }
    assert_eq!(hot(&mut cluster, id), 3, "5 ÷ 5 in five minutes + 5 ÷ 2 in one");
    cluster.advance(at(60));
    assert_eq!(hot(&mut cluster, id), 1, "one minute is over");
    cluster.advance(at(300));
    assert_eq!(hot(&mut cluster, id), 0);
}

#[test]
fn bindings_that_make_no_node_hot_any_more_are_forgotten() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    // One binding every ten seconds for a day, and the longest range of crane's policy is five minutes.
    for i in 0..8640 {
        cluster.advance(at(10 * i));
        cluster.bound(&format!("p{i}"), "n1", at(10 * i));
    }
    let id = cluster.live.id("n1").unwrap();
    assert!(hot(&mut cluster, id) > 0, "those of the last minutes count");
    let kept = cluster.bindings.len();
    assert!(
        (30..=36).contains(&kept),
        "five minutes of them, and a minute until they are looked through: {kept}"
    );
}

#[test]
fn a_report_gives_every_term_and_what_would_have_to_change() {
    let mut cluster = cluster(settings(0.65));
    cluster.set_node(&big("n1").facts());
    cluster.sample("n1", sample(0, 6000));
    let view = cluster.view(&pod("a").cpu("1").memory("1Gi").facts());
    let report = cluster.decide(&view).report();
    let n1 = &report.nodes[0];
    assert!(!n1.fits);
    assert_eq!(
        n1.reasons.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["cpu would pass the line: 6 measured + 0 pending + 1 incoming is over 6500m (0.65 of 10)"]
    );
    assert_eq!(n1.counterfactual.as_ref().unwrap().to_string(), "would fit if the cpu target were 0.70");
    assert_eq!(n1.terms.len(), 6);
    assert_eq!(report.decision.node, None);
}

#[test]
fn a_decision_says_what_it_rested_on_and_one_node_for_each_rule() {
    let mut cluster = cluster(settings(0.65));
    for name in ["n1", "n2", "n3", "n4"] {
        cluster.set_node(&big(name).facts());
    }
    let mut cordoned = big("n5").facts();
    cordoned.unschedulable = true;
    cluster.set_node(&cordoned);
    for (name, milli) in [("n1", 6000), ("n2", 2000), ("n3", 3000), ("n4", 6200)] {
        cluster.sample(name, sample(0, milli));
    }
    let view = cluster.view(&pod("a").cpu("1").memory("1Gi").facts());
    let mut decided = cluster.decide(&view);
    let grounds = decided.grounds();
    let report = decided.report();
    let score = |name: &str| report.nodes.iter().find(|node| &*node.name == name).unwrap().score;
    assert_eq!(grounds.score, Some(score("n2")));
    assert_eq!(grounds.next, Some(("n3".into(), score("n3"))));
    let cpu = grounds.lines.unwrap().cpu;
    assert_eq!((cpu.line.measured, cpu.incoming), (Some(2_000_000_000), 1_000_000_000));
    assert_eq!(cpu.line.limit(), Some(6_500_000_000), "0.65 of 10");
    let told = grounds.refused.iter().map(|one| (one.rule, one.reason.as_ref().unwrap().to_string()));
    let told: Vec<_> = told.collect();
    assert_eq!(told[0], (Filter::Cordon, "the node is cordoned".to_owned()));
    assert_eq!(told[1].0, Filter::Line);
    assert!(told[1].1.starts_with("cpu would pass the line: 6"), "{told:?}");
    assert_eq!(told.len(), 2, "one of n1 and n4: {told:?}");
    // Nothing of a pod that fits nowhere but why not.
    let giant = cluster.view(&pod("b").cpu("9").memory("1Gi").facts());
    let grounds = cluster.decide(&giant).grounds();
    assert_eq!((grounds.score, grounds.next, grounds.lines), (None, None, None));
    assert_eq!(grounds.refused.len(), 2);
}

// D10: evicting is planned only where it surely helps.
#[test]
fn a_pending_pod_may_be_pushed_off_the_line_a_measured_one_may_not() {
    for (why, measured, helps) in [
        ("its load is yet to come, and goes with it", 0, true),
        ("its load was measured and may stay", 100, false),
    ] {
        let mut cluster = cluster(settings(0.5));
        cluster.set_node(&big("n1").facts());
        let mut low = pod("low").cpu("4").memory("1Gi").on("n1").facts();
        low.started = Some(at(-50));
        cluster.set_pod(&low);
        cluster.advance(at(measured));
        cluster.sample("n1", sample(measured - 50, if measured == 0 { 0 } else { 4000 }));
        let high = cluster.view(&pod("high").cpu("2").memory("1Gi").priority(10).facts());
        let mut decided = cluster.decide(&high);
        assert_eq!(decided.decision().node, None, "{why}: 4 + 2 > 5");
        assert_eq!(decided.preempt().is_some(), helps, "{why}");
    }
}

// A13.
#[test]
fn metrics_are_shares_of_capacity_and_the_line_one_of_allocatable() {
    let mut cluster = cluster(settings(0.5));
    let mut facts = big("n1").facts();
    facts.capacity.insert("cpu".into(), "20".parse().unwrap());
    cluster.set_node(&facts);
    cluster.sample("n1", sample(0, 4000));
    let id = cluster.live.id("n1").unwrap();
    let load = cluster.load(id).unwrap();
    let mean = load.terms.terms.iter().find(|t| &*t.metric == "cpu_usage_avg_5m").unwrap();
    assert_eq!(
        mean.value.and_then(crate::load::policy::Figure::ratio),
        Ratio::from_f64(0.2),
        "4 of 20 cores"
    );
    assert_eq!(load.lines.get(Metered::Cpu).head(), 1_000_000_000, "10 allocatable × 0.5 − 4");
}

// A17.
#[test]
fn a_pod_that_others_were_evicted_for_has_its_room() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    let mut first = pod("first").cpu("4").memory("1Gi").priority(10).facts();
    first.nominated = Some("n1".into());
    cluster.set_pod(&first);
    for (why, priority, fits) in [
        ("lower: 4 + 2 > 5", 0, false),
        ("equal: whoever was promised goes first", 10, false),
        ("higher: does not wait for lower ones", 20, true),
    ] {
        let view = cluster.view(&pod("other").cpu("2").memory("1Gi").priority(priority).facts());
        assert_eq!(cluster.decide(&view).node().is_some(), fits, "{why}");
    }
    let view = cluster.view(&first);
    assert!(cluster.decide(&view).reserve().node.is_some(), "its own promise is not in its way");
}

#[test]
fn a_new_node_is_not_hot_because_of_one_that_is_gone() {
    let mut cluster = cluster(settings(0.9));
    cluster.set_node(&big("old").facts());
    for i in 0..4 {
        place(&mut cluster, pod(&format!("p{i}")).cpu("10m").memory("10Mi")).unwrap();
    }
    let id = cluster.live.id("old").unwrap();
    assert!(hot(&mut cluster, id) > 0);
    cluster.remove_node("old");
    for i in 0..4 {
        cluster.remove_pod(&format!("uid-p{i}"));
    }
    cluster.set_node(&big("new").facts());
    assert_eq!(cluster.live.id("new"), Some(id), "it has the number of the one that is gone");
    assert_eq!(hot(&mut cluster, id), 0);
}

// D3: a clock that runs ahead does not shut out what is right.
#[test]
fn a_sample_from_the_future_waits_until_its_time_has_come() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    let id = cluster.live.id("n1").unwrap();
    assert_eq!(cluster.sample("n1", sample(3600, 0)), Some(Taken::Ignored(Ignored::Ahead)));
    let reasons: Vec<_> = cluster.load(id).unwrap().terms.terms.iter().map(|t| t.reason).collect();
    assert_eq!(reasons[0], Some(crate::load::term::Unknown::Future), "said as it is");
    cluster.sample("n1", sample(0, 4900));
    let line = cluster.load(id).unwrap().lines.get(Metered::Cpu);
    assert_eq!(line.measured, Some(4_900_000_000), "the right one is used");
    // Time that passes does not bring it in before its own has come: right ones go on being newer.
    cluster.advance(at(15));
    assert_eq!(cluster.sample("n1", sample(15, 3100)), Some(Taken::Newest));
    let line = cluster.load(id).unwrap().lines.get(Metered::Cpu);
    assert_eq!(line.measured, Some(3_100_000_000), "and the next right one, too");
    cluster.advance(at(3569));
    assert_eq!(cluster.load(id).unwrap().lines.get(Metered::Cpu).measured, None, "too old by now");
    cluster.advance(at(3570));
    assert_eq!(cluster.load(id).unwrap().lines.get(Metered::Cpu).measured, Some(0), "30 s ahead is believed");
}

#[test]
fn a_recommendation_that_comes_later_changes_what_is_pending_and_goes_with_it() {
    use crate::load::recommend::{Advice, Form, Recommendation, WorkloadRef};
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    let mut facts = pod("web").cpu("4").memory("1Gi").owner("StatefulSet", "web").on("n1").facts();
    facts.asks = Arc::new(crate::load::estimate::Asks {
        containers: vec![crate::load::estimate::ContainerAsk {
            name: "main".into(),
            cpu_nano: Some(4_000_000_000),
            memory_bytes: Some(GI),
        }],
        effective: Load::new(4_000_000_000, GI),
        ..Default::default()
    });
    cluster.set_pod(&facts);
    let id = cluster.live.id("n1").unwrap();
    let pending = |cluster: &mut Cluster| {
        cluster.reestimate();
        cluster.load(id).unwrap().lines.get(Metered::Cpu).pending
    };
    assert_eq!(pending(&mut cluster), 4_000_000_000, "by request");
    cluster.recommend(Recommendation {
        target: WorkloadRef::of(&facts.key.namespace, facts.owner.as_ref().unwrap()),
        containers: [("main".into(), Advice { cpu_nano: Some(1_500_000_000), memory_bytes: None })].into(),
        success: true,
        message: None,
        updated: None,
        name: "default/web-advice".into(),
        shape: Form::Value,
    });
    assert_eq!(pending(&mut cluster), 1_500_000_000, "as recommended");
    cluster.forget_recommendation("default/web-advice");
    assert_eq!(pending(&mut cluster), 4_000_000_000, "by request again");
}

/// Two profiles: crane's policy with a line of half a node, and one of nine tenths.
fn two_profiles() -> Cluster {
    let rules = |cpu: f64| Rules::new(Policy::default(), settings(cpu)).unwrap().0;
    let mut cluster = Cluster::new(Options::default(), at(0));
    cluster.set_node(&big("n1").facts());
    cluster.sample("n1", sample(0, 2000));
    cluster.set_profiles(vec![Profile::by(Some(rules(0.5))), Profile::by(Some(rules(0.9)))]);
    cluster
}

#[test]
fn profiles_judge_by_their_own_rules_and_share_one_account() {
    let mut cluster = two_profiles();
    let first = cluster.view(&pod("a").cpu("3").memory("1Gi").facts());
    assert!(cluster.decide_by(0, &first).reserve().node.is_some(), "2 + 3 = 10 × 0.5");
    let second = cluster.view(&pod("b").cpu("4").memory("1Gi").facts());
    let strict = cluster.decide_by(0, &second).decision().clone();
    assert_eq!(strict.refused[Filter::Line.index()], 1, "2 + 3 + 4 > 10 × 0.5");
    assert!(cluster.decide_by(1, &second).reserve().node.is_some(), "2 + 3 + 4 = 10 × 0.9");
    let third = cluster.view(&pod("c").cpu("1m").memory("1Gi").facts());
    for profile in [0, 1, 7] {
        assert!(cluster.decide_by(profile, &third).decision().node.is_none(), "both see what both placed");
    }
}

#[test]
fn profiles_can_be_exchanged_and_what_is_known_stays() {
    let mut cluster = two_profiles();
    let big_one = cluster.view(&pod("a").cpu("7").memory("1Gi").facts());
    assert!(cluster.decide(&big_one).decision().node.is_none(), "2 + 7 > 5");
    cluster.set_profiles(Vec::new());
    assert_eq!(cluster.profiles(), 2, "none at all is no wish");
    let rules = Rules::new(Policy::default(), settings(0.9)).unwrap().0;
    cluster.set_profiles(vec![Profile::by(Some(rules))]);
    assert!(cluster.decide(&big_one).decision().node.is_some(), "2 + 7 = 10 × 0.9");
    // What was measured gets old for whoever asks, whichever profile asked first.
    let due = cluster.next_due();
    assert!(due.is_some_and(|due| due > at(0)), "{due:?}");
}

#[test]
fn of_several_profiles_the_longest_time_to_settle_holds_for_all() {
    let profile = |settle: i64| {
        let settings = Settings { settle: SignedDuration::from_secs(settle), ..settings(0.5) };
        Profile::by(Some(Rules::new(Policy::default(), settings).unwrap().0))
    };
    // The pod has run since 0, the window of the sample is from 25 to 40. By 10 s it is settled since 10, by 60 s not
    // before 60.
    let table = [
        (vec![10], 0, "one that is settled soon"),
        (vec![60], 2_000_000_000, "one that takes long"),
        (vec![10, 60], 2_000_000_000, "the longer is the second"),
        (vec![60, 10], 2_000_000_000, "the longer is the first"),
    ];
    for (settles, pending, why) in table {
        let mut cluster = cluster(settings(0.5));
        cluster.set_profiles(settles.into_iter().map(profile).collect());
        cluster.set_node(&big("n1").facts());
        let mut runs = pod("a").cpu("2").memory("1Gi").on("n1").facts();
        runs.started = Some(at(0));
        cluster.set_pod(&runs);
        cluster.advance(at(40));
        cluster.sample("n1", sample(40, 2000));
        let id = cluster.live.id("n1").unwrap();
        cluster.refresh();
        for judge in &cluster.judges {
            assert_eq!(judge.loads[id.index()].lines.get(Metered::Cpu).pending, pending, "{why}");
        }
    }
}

#[test]
fn the_least_bad_node_is_the_one_that_would_be_over_by_least() {
    let mut cluster = cluster(settings(0.5));
    for (name, used) in [("n1", 6000), ("n2", 5500), ("n3", 5500), ("n4", 100)] {
        cluster.set_node(&big(name).facts());
        cluster.sample(name, sample(0, used));
    }
    cluster.cool("n4", at(60));
    let new = cluster.view(&pod("a").cpu("1").memory("1Gi").facts());
    let mut decided = cluster.decide(&new);
    assert_eq!(decided.decision().node, None, "three are over the line and n4 is left alone");
    let found = decided.least_bad().expect("only load is in the way");
    assert_eq!(found.excess, Ratio::from_f64(0.15), "5.5 + 1 − 5 = 1.5 of 10, n2 and n3 alike");
    decided.reserve_anyway(found);
    assert_eq!(&*cluster.snapshot()[found.node].name, "n2");
    let next = cluster.view(&pod("b").cpu("1").memory("1Gi").facts());
    let found = cluster.decide(&next).least_bad().expect("still");
    assert_eq!(&*cluster.snapshot()[found.node].name, "n3", "n2 has one more on its way");
}

#[test]
fn nobody_is_put_where_more_than_load_is_in_the_way() {
    let mut cluster = cluster(settings(0.5));
    cluster.set_node(&big("n1").facts());
    cluster.sample("n1", sample(0, 6000));
    let huge = cluster.view(&pod("huge").cpu("11").memory("1Gi").facts());
    assert_eq!(cluster.decide(&huge).least_bad(), None, "it asks for more than there is");
    cluster.sample("n1", sample(15, 100));
    cluster.advance(at(15));
    let small = cluster.view(&pod("small").cpu("1").memory("1Gi").facts());
    assert_eq!(cluster.decide(&small).least_bad(), None, "it has a node");
}

#[test]
fn unknown_load_is_taken_last_of_all() {
    let rules = Settings { missing: Missing::Deny, ..settings(0.5) };
    let mut cluster = cluster(rules);
    cluster.set_node(&big("a").facts());
    cluster.set_node(&big("b").facts());
    let new = cluster.view(&pod("p").cpu("1").memory("1Gi").facts());
    let found = cluster.decide(&new).least_bad().expect("load alone, by not being known");
    assert_eq!((found.excess, &*cluster.snapshot()[found.node].name), (None, "a"));
    cluster.sample("b", sample(0, 9000));
    let found = cluster.decide(&new).least_bad().expect("load alone");
    assert_eq!(
        (found.excess, &*cluster.snapshot()[found.node].name),
        (Ratio::from_f64(0.5), "b"),
        "9 + 1 − 5"
    );
}

// A node that measures 0.33333 of 10 cores and a billionth uses 3.3333 cores and a third of a billionth: one billionth more.
#[test]
fn a_share_that_is_not_whole_counts_as_one_more() {
    for (share, whole, want, why) in [
        (0.5, 10, 5, "exactly"),
        (0.5, 11, 6, "5.5"),
        (0.33333, 10_000_000_000, 3_333_300_000, "exactly, in billionths of a core"),
        (0.33333, 10_000_000_001, 3_333_300_001, "and a third"),
        (0.0, 7, 0, "nothing"),
        (1.0, i64::MAX, i64::MAX, "everything there can be"),
        (2.0, i64::MAX, i64::MAX, "no more than can be said"),
    ] {
        assert_eq!(loads::ceil_of(Ratio::from_f64(share).unwrap(), whole), want, "{why}");
    }
}
