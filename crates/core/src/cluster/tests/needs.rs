//! What nodes are expected to need, in decisions.

use super::*;
use crate::load::estimate::{Asks, ContainerAsk};
use crate::load::need::{Day, Need};
use crate::load::recommend::Advice;
use crate::load::settings::{Line, Mode, Scored};
use crate::view::Phase;

const CORE: i64 = 1_000_000_000;

/// A workload uses a core all day but for one hour.
fn advise(cluster: &mut Cluster, workload: &str, hour: usize, cores: i64) {
    let mut hours = [CORE; 24];
    hours[hour] = cores * CORE;
    let owner = pod("any").owner("ReplicaSet", workload).facts().owner.unwrap();
    cluster.recommend(Recommendation {
        target: WorkloadRef::of(&"default".into(), &owner),
        containers: [("main".into(), Advice { cpu_nano: Some(2 * CORE), memory_bytes: None })].into(),
        days: [("main".into(), Day::new(hours.into_iter().enumerate()).unwrap())].into(),
        success: true,
        name: format!("default/{workload}").into(),
        ..Recommendation::default()
    });
    cluster.reestimate();
}

/// A pod of a workload that asks for a core.
fn of(name: &str, workload: &str) -> PodFacts {
    let asks = Asks {
        containers: vec![ContainerAsk { name: "main".into(), cpu_nano: Some(CORE), memory_bytes: Some(GI) }],
        effective: Load::new(CORE, GI),
        ..Default::default()
    };
    let facts = pod(name).cpu("1").memory("1Gi").owner("ReplicaSet", workload).facts();
    PodFacts { asks: Arc::new(asks), ..facts }
}

fn on(node: &str, facts: PodFacts) -> PodFacts {
    PodFacts { node: Some(node.into()), phase: Phase::Running, started: Some(at(-60)), ..facts }
}

/// Two nodes of ten cores: on the first somebody is busy at 9, on the second at 21. Neither is now.
fn two_nodes(settings: Settings) -> Cluster {
    let mut cluster = cluster(settings);
    for (name, cpu) in [("n1", 2000), ("n2", 2100)] {
        cluster.set_node(&big(name).facts());
        cluster.sample(name, sample(0, cpu));
    }
    cluster.set_pod(&on("n1", of("morning", "morning")));
    cluster.set_pod(&on("n2", of("evening", "evening")));
    cluster
}

/// Where a pod goes, and what the nodes were said to need.
fn asked(cluster: &mut Cluster, facts: &PodFacts) -> (String, Vec<Option<Need>>) {
    let view = cluster.view(facts);
    let mut decided = cluster.decide(&view);
    let node = decided.node().unwrap().name.to_string();
    (node, decided.report().nodes.iter().map(|node| node.need).collect())
}

#[test]
fn a_pod_goes_where_the_day_has_room_though_another_node_is_idler_now() {
    let mut cluster = two_nodes(settings(0.9));
    let coming = of("new", "web");
    let (node, needs) = asked(&mut cluster, &coming);
    assert_eq!((node.as_str(), needs), ("n1", vec![None, None]), "nothing is known: by what is used now");
    advise(&mut cluster, "morning", 9, 6);
    advise(&mut cluster, "evening", 21, 6);
    advise(&mut cluster, "web", 9, 3);
    let (node, needs) = asked(&mut cluster, &coming);
    assert_eq!(node, "n2");
    let of = |hour, before, after, score| Need {
        score,
        hour,
        before: before * CORE,
        after: after * CORE,
        capacity: Some(10 * CORE),
    };
    // The arithmetic is that of the term's own tests.
    assert_eq!(needs, [Some(of(9, 6, 9, 60)), Some(of(21, 6, 7, 71))]);
    cluster.forget_recommendation("default/web");
    let (_, needs) = asked(&mut cluster, &coming);
    assert_eq!(
        needs.iter().flatten().map(|need| (need.hour, need.after)).collect::<Vec<_>>(),
        [(9, 7 * CORE), (21, 7 * CORE)],
        "one of which no day is known needs the core it asks for all day"
    );
}

#[test]
fn upstream_mode_and_who_says_so_know_no_need() {
    let switched = |mode, need| Settings { mode, need, ..settings(0.9) };
    for settings in [switched(Mode::Upstream, Scored::Yes), switched(Mode::Default, Scored::No)] {
        let mut without = two_nodes(settings.clone());
        let mut with = two_nodes(settings);
        for (workload, hour) in [("morning", 9), ("evening", 21), ("web", 9)] {
            advise(&mut with, workload, hour, 6);
        }
        let facts = of("new", "other");
        let total = |cluster: &mut Cluster| {
            let view = cluster.view(&facts);
            let report = cluster.decide(&view).report();
            report.nodes.iter().map(|node| (node.need, node.parts)).collect::<Vec<_>>()
        };
        assert_eq!(total(&mut with), total(&mut without));
        assert!(total(&mut with).iter().all(|(need, parts)| need.is_none() && parts.need.is_none()));
    }
}

#[test]
fn who_arrives_is_reserved_or_leaves_changes_what_is_needed() {
    let mut cluster = two_nodes(settings(0.9));
    advise(&mut cluster, "web", 9, 3);
    let at_nine = |cluster: &mut Cluster, node: &str| {
        cluster.snapshot().find_node(node).unwrap().needs.cpu_nano()[9] / CORE
    };
    assert_eq!(at_nine(&mut cluster, "n1"), 1, "as requested");
    let view = cluster.view(&of("new", "web"));
    let decided = cluster.decide(&view);
    let node = decided.node().unwrap().name.to_string();
    let _ = decided.reserve();
    assert_eq!(at_nine(&mut cluster, &node), 4, "reserved");
    cluster.set_pod(&on(&node, of("new", "web")));
    assert_eq!(at_nine(&mut cluster, &node), 4, "and seen there, once");
    advise(&mut cluster, "web", 9, 5);
    assert_eq!(at_nine(&mut cluster, &node), 6, "more was learned of it");
    cluster.set_pod(&PodFacts { terminating: true, ..on(&node, of("new", "web")) });
    assert_eq!(at_nine(&mut cluster, &node), 1, "it leaves");
    cluster.remove_pod("uid-new");
    assert_eq!(at_nine(&mut cluster, &node), 1);
    assert_eq!(cluster.snapshot().days(), 0);
}

#[test]
fn replicas_are_asked_about_again_once_more_is_learned_of_them() {
    let mut cluster = two_nodes(settings(0.9));
    advise(&mut cluster, "morning", 9, 6);
    advise(&mut cluster, "evening", 21, 6);
    let waiting = cluster.view(&of("waiting", "web"));
    for (hour, node) in [(9, "n2"), (21, "n1"), (9, "n2")] {
        advise(&mut cluster, "web", hour, 3);
        assert_eq!(asked(&mut cluster, &of("new", "web")).0, node, "busy at {hour}");
        // One that came before it was learned, too.
        let view = cluster.advised(&waiting);
        assert_eq!(&*cluster.decide(&view).node().unwrap().name, node, "busy at {hour}");
        assert!(Arc::ptr_eq(&cluster.advised(&view), &view), "nothing is new of it");
    }
}

#[test]
fn the_cpu_line_is_for_pods_of_which_no_day_is_known_unless_the_settings_say_always() {
    // Both use 5.5 of 10 cores, of which 6 may be used; a pod is expected to use 2.
    for (line, learned) in [(Line::Unlearned, true), (Line::Always, false)] {
        let mut cluster = cluster(Settings { line, ..settings(0.6) });
        for name in ["n1", "n2"] {
            cluster.set_node(&big(name).facts());
            cluster.sample(name, sample(0, 5500));
        }
        advise(&mut cluster, "web", 9, 3);
        let fits = |cluster: &mut Cluster, facts: &PodFacts| {
            let view = cluster.view(facts);
            let mut decided = cluster.decide(&view);
            let fits = decided.node().is_some();
            let told = decided
                .report()
                .nodes
                .iter()
                .all(|node| node.fits == fits && node.reasons.is_empty() == fits);
            assert!(told, "every node says the same as the decision");
            fits
        };
        assert_eq!(fits(&mut cluster, &of("new", "web")), learned, "{line:?}");
        assert!(!fits(&mut cluster, &of("other", "other")), "5.5 + 1 > 6: {line:?}");
        // The limit of the policy, 0.65 of capacity, is for all.
        for (seconds, name) in [(300, "n1"), (300, "n2")] {
            cluster.advance(at(seconds));
            cluster.sample(name, Sample { window: SignedDuration::from_secs(300), ..sample(seconds, 7000) });
        }
        assert!(!fits(&mut cluster, &of("new", "web")), "{line:?}");
        // Memory has its line whatever is known: 0.9 × 32 GiB, 4 of which are used.
        let mut large = of("large", "web");
        Arc::make_mut(&mut large.asks).containers[0].memory_bytes = Some(26 * GI);
        assert!(!fits(&mut cluster, &large), "{line:?}");
    }
}
