//! What counts though the pod does not speak of it: images that are there already, and pods that belong with it.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "the worlds are small"
)]

use loadline_core::cycle::{Examined, Input, examine};
use loadline_core::object::Key;
use loadline_core::select::{LabelSelector, Selector};
use loadline_core::view::build::{Node, Pod, World, node, pod, world};
use loadline_core::view::siblings::Maker;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const MB: i64 = 1 << 20;
const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// What is found out about every node, by name.
fn found(world: World, pod: Pod) -> Vec<Examined> {
    let mut live = world.0;
    let facts = pod.facts();
    let view = live.view(&facts, facts.asks.effective);
    examine(&Input::new(live.snapshot()), &view)
}

fn selector(text: &str) -> Selector {
    serde_json::from_str::<LabelSelector>(text).expect("JSON").selector().expect("a valid selector")
}

/// Why, images of `a` and `b` with their sizes in megabytes, images of the pod, scores.
type Case<'a> = (&'a str, &'a [(&'a str, i64)], &'a [(&'a str, i64)], &'a [&'a str], Option<[i64; 4]>);

#[test]
fn images_count_by_size_and_by_how_many_nodes_have_them() {
    // Four nodes; `a` and `b` have some images.
    let cases: [Case<'_>; 10] = [
        ("nobody has it", &[("db:1", 900)], &[], &["web:1"], None),
        // 300 × 2/4 = 150; 100 × (150 - 23) ÷ (1000 - 23) = 12.99
        ("on two of four", &[("web:1", 300)], &[("web:1", 300)], &["web:1"], Some([12, 12, 0, 0])),
        // 92 × 1/4 = 23, and up to 23 is fetched quickly.
        ("too small to matter", &[("web:1", 92)], &[], &["web:1"], None),
        // 128 × 1/4 = 32; 100 × 9 ÷ 977 = 0.92
        ("too small to be worth one", &[("web:1", 128)], &[], &["web:1"], None),
        // 132 × 1/4 = 33; 100 × 10 ÷ 977 = 1.02
        ("just worth one", &[("web:1", 132)], &[], &["web:1"], Some([1, 0, 0, 0])),
        // 9000 × 1/4 = 2250, of which 1000 count.
        ("more than there is need for", &[("web:1", 9000)], &[], &["web:1"], Some([100, 0, 0, 0])),
        // 1000 × 1/4 = 250; 100 × (250 - 23) ÷ (2000 - 23) = 11.48
        ("of two containers, one", &[("web:1", 1000)], &[], &["web:1", "log:1"], Some([11, 0, 0, 0])),
        // 250 + 250; 100 × (500 - 23) ÷ (2000 - 23) = 24.12
        ("the same for both", &[("web:1", 1000)], &[], &["web:1", "web:1"], Some([24, 0, 0, 0])),
        // 400 × 2/4 = 200 and 800 × 2/4 = 400; 100 × 177 ÷ 977 = 18.1 and 100 × 377 ÷ 977 = 38.6
        ("of another size there", &[("web:1", 400)], &[("web:1", 800)], &["web:1"], Some([18, 38, 0, 0])),
        ("latest", &[("web:latest", 300)], &[("web:latest", 300)], &["web"], Some([12, 12, 0, 0])),
    ];
    for (why, on_a, on_b, asked, want) in cases {
        let with = |name: &str, images: &[(&str, i64)]| {
            images.iter().fold(node(name), |node, (image, mb)| node.image(image, mb * MB))
        };
        let world = world().node(with("a", on_a)).node(with("b", on_b)).node(node("c")).node(node("d"));
        let scores: Vec<Option<i64>> =
            found(world, pod("p").images(asked)).iter().map(|e| e.parts.images).collect();
        let want = want.map_or([None; 4], |want| want.map(Some));
        assert_eq!(scores, want, "{why}");
    }
}

#[test]
fn nodes_that_are_gone_do_not_have_images_any_more() {
    let mut world =
        world().node(node("a").image("web:1", 4000 * MB)).node(node("b").image("web:1", 4000 * MB));
    world.0.remove_node("b");
    let world = world.node(node("c"));
    // 4000 × 1/2 = 2000, of which 1000 count.
    let scores: Vec<_> = found(world, pod("p").images(&["web:1"])).iter().map(|e| e.parts.images).collect();
    assert_eq!(scores, [Some(100), Some(0)], "a, c");
}

fn placed(name: &str, zone: &str) -> Node {
    node(name).label(HOST, name).label(ZONE, zone)
}

fn web(name: &str) -> Pod {
    pod(name).label("app", "web")
}

#[test]
fn pods_of_a_service_are_spread_over_hosts_and_zones() {
    let base = || {
        let three = world().node(placed("a", "1")).node(placed("b", "1")).node(placed("c", "2"));
        three.pod(web("x").on("a")).pod(web("y").on("a")).pod(web("z").on("c"))
    };
    let scores = |world: World, pod: Pod| -> Vec<Option<i64>> {
        found(world, pod).iter().map(|e| e.parts.spread).collect()
    };
    assert_eq!(scores(base(), web("p")), [None; 3], "nothing says they belong together");

    // Three hosts weigh ln(3 + 2) = 1.609, two zones ln(2 + 2) = 1.386. A host counts with pods × weight + 3 - 1, a
    // zone with pods × weight + 5 - 1:
    //   a: 2 × 1.609 + 2 + 2 × 1.386 + 4 = 11.99, so 12
    //   b: 0 × 1.609 + 2 + 2 × 1.386 + 4 =  8.77, so  9
    //   c: 1 × 1.609 + 2 + 1 × 1.386 + 4 =  9.00, so  9
    // and of that 100 × (12 + 9 - each) ÷ 12.
    let served = || base().service("web", &[("app", "web")]);
    assert_eq!(scores(served(), web("p")), [Some(75), Some(100), Some(100)]);

    // A node without a zone is a third zone by weight, ln(3 + 2), and with four hosts ln(4 + 2) = 1.792; it is
    // scored by its host alone:
    //   a: 2 × 1.792 + 2 + 2 × 1.609 + 4 = 12.80, so 13
    //   b:             2 + 2 × 1.609 + 4 =  9.22, so  9
    //   c: 1 × 1.792 + 2 + 1 × 1.609 + 4 =  9.40, so  9
    //   d:             2                         =  2
    // and of that 100 × (13 + 2 - each) ÷ 13.
    let without = served().node(node("d").label(HOST, "d"));
    assert_eq!(scores(without, web("p")), [Some(15), Some(46), Some(46), Some(100)]);

    let leaving = served().pod(web("q").on("b").terminating()).pod(web("r").on("b").namespace("other"));
    assert_eq!(
        scores(leaving, web("p")),
        [Some(75), Some(100), Some(100)],
        "who leaves and who is elsewhere do not count"
    );
}

/// The labels a service asks for.
type Asked<'a> = &'a [(&'a str, &'a str)];

#[test]
fn pods_belong_together_by_services_and_by_who_made_them() {
    let made = |kind: &str, name: &str| web("p").label("tier", "front").label("rev", "7").owner(kind, name);
    let cases: [(&str, &[Asked<'_>], Pod, Option<&str>); 10] = [
        ("nobody selects it", &[], web("p"), None),
        ("a service", &[&[("app", "web")]], web("p"), Some("app=web")),
        ("a service for others", &[&[("app", "db")]], web("p"), None),
        ("a service that asks for more", &[&[("app", "web"), ("tier", "front")]], web("p"), None),
        ("a service that selects nobody", &[&[]], web("p"), None),
        (
            "two services",
            &[&[("app", "web")], &[("tier", "front"), ("app", "web")]],
            made("Job", "j"),
            Some("app=web,tier=front"),
        ),
        ("a replica set", &[], made("ReplicaSet", "rs"), Some("rev,tier in (back,front)")),
        (
            "a service and a stateful set",
            &[&[("app", "web")]],
            made("StatefulSet", "rs"),
            Some("app=web,rev=7"),
        ),
        ("a replica set nobody knows", &[], made("ReplicaSet", "other"), None),
        ("a replica set that selects nothing", &[], made("ReplicaSet", "none"), None),
    ];
    for (why, services, pod, want) in cases {
        let mut live = world().0;
        for (at, labels) in services.iter().enumerate() {
            let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            live.set_service(&Key::new("default", format!("s{at}")), &labels);
            live.set_service(&Key::new("other", format!("s{at}")), &[("rev".into(), "7".into())].into());
        }
        let several = r#"{"matchExpressions": [{"key": "rev", "operator": "Exists"},
            {"key": "tier", "operator": "In", "values": ["front", "back"]}]}"#;
        let key = |name: &str| Key::new("default", name);
        live.set_workload(Maker::ReplicaSet, &key("rs"), selector(several));
        live.set_workload(Maker::ReplicaSet, &key("none"), Selector::nothing());
        live.set_workload(Maker::StatefulSet, &key("rs"), selector(r#"{"matchLabels": {"rev": "7"}}"#));
        let facts = pod.facts();
        let view = live.view(&facts, facts.asks.effective);
        let found = live.snapshot().siblings().of(&view).map(|selector| selector.to_string());
        assert_eq!(found.as_deref(), want, "{why}");
    }
}

#[test]
fn who_is_gone_selects_nobody() {
    let mut live = world().0;
    let (service, set) = (Key::new("default", "web"), Key::new("default", "rs"));
    let facts = web("p").owner("ReplicaSet", "rs").facts();
    let view = live.view(&facts, facts.asks.effective);
    let labels = |text: &str| [("app".to_owned(), text.to_owned())].into();
    let mut said = Vec::new();
    let mut say = |live: &mut loadline_core::view::Live| {
        said.push(live.snapshot().siblings().of(&view).map_or("nobody".to_owned(), |s| s.to_string()));
    };
    live.set_service(&service, &labels("web"));
    live.set_service(&service, &labels("web"));
    say(&mut live);
    live.set_service(&service, &labels("db"));
    say(&mut live);
    live.set_service(&service, &labels("web"));
    live.remove_service(&service);
    say(&mut live);
    live.set_workload(Maker::ReplicaSet, &set, selector(r#"{"matchLabels": {"app": "web"}}"#));
    say(&mut live);
    live.remove_workload(Maker::ReplicaSet, &set);
    say(&mut live);
    assert_eq!(said, ["app=web", "nobody", "nobody", "app=web", "nobody"]);
}

/// By node, an image and its size in megabytes; then the images of the pod.
type Pulled = (Vec<Vec<(usize, i64)>>, Vec<usize>);

fn pulled() -> impl Strategy<Value = Pulled> {
    let images = proptest::collection::vec((0..5usize, prop_oneof![0..200i64, 200..6000i64]), 0..5);
    (proptest::collection::vec(images, 1..7), proptest::collection::vec(0..6usize, 1..5))
}

/// The score of every node, from the beginning each time.
fn slow_images((nodes, asked): &Pulled) -> Vec<i64> {
    // What a node says first of an image counts.
    let size = |at: usize, image: usize| nodes[at].iter().find(|(i, _)| *i == image).map(|(_, mb)| mb * MB);
    let of_node = |at: usize| {
        let mut sum = 0;
        for image in asked {
            let holders = (0..nodes.len()).filter(|at| size(*at, *image).is_some()).count();
            if let Some(bytes) = size(at, *image) {
                sum += (bytes as f64 * (holders as f64 / nodes.len() as f64)) as i64;
            }
        }
        let (low, high) = (23 * MB, 1000 * MB * asked.len() as i64);
        100 * (sum.max(low).min(high) - low) / (high - low)
    };
    (0..nodes.len()).map(of_node).collect()
}

/// A pod: its labels by number, its node, whether it leaves, whether it is elsewhere.
type Other = ((u8, u8), usize, bool, bool);

#[derive(Clone, Debug)]
struct Crowd {
    /// By node: does it say its host, and in which zone is it?
    nodes: Vec<(bool, Option<u8>)>,
    pods: Vec<Other>,
    /// Labels services ask for.
    services: Vec<(Option<u8>, Option<u8>)>,
    /// What the pod's replica set selects, if it is there.
    made: Option<(Option<u8>, bool)>,
    labels: (u8, u8),
    /// The zone the pod demands.
    demands: Option<u8>,
}

fn crowd() -> impl Strategy<Value = Crowd> {
    let labels = || (0..3u8, 0..3u8);
    let asked = || (proptest::option::of(0..3u8), proptest::option::of(0..3u8));
    let other = (labels(), 0..6usize, proptest::bool::weighted(0.1), proptest::bool::weighted(0.1));
    (
        proptest::collection::vec(
            (proptest::bool::weighted(0.9), proptest::option::weighted(0.8, 0..3u8)),
            1..6,
        ),
        proptest::collection::vec(other, 0..20),
        proptest::collection::vec(asked(), 0..4),
        proptest::option::of((proptest::option::of(0..3u8), any::<bool>())),
        labels(),
        proptest::option::weighted(0.2, 0..3u8),
    )
        .prop_map(|(nodes, pods, services, made, labels, demands)| Crowd {
            nodes,
            pods,
            services,
            made,
            labels,
            demands,
        })
}

impl Crowd {
    /// Are there conditions, and does a pod with these labels meet them all?
    fn belongs(&self, (app, tier): (u8, u8)) -> (bool, bool) {
        let (mut any, mut all) = (false, true);
        let (own_app, own_tier) = self.labels;
        for (asked_app, asked_tier) in &self.services {
            if asked_app.is_none_or(|a| a == own_app) && asked_tier.is_none_or(|t| t == own_tier) {
                any |= asked_app.is_some() || asked_tier.is_some();
                all &= asked_app.is_none_or(|a| a == app) && asked_tier.is_none_or(|t| t == tier);
            }
        }
        if let Some((asked, tier_not_zero)) = self.made {
            any |= asked.is_some() || tier_not_zero;
            all &= asked.is_none_or(|a| a == app) && (!tier_not_zero || tier != 0);
        }
        (any, all)
    }

    /// The score of every node, from the beginning each time; `None` for those the pod does not go to.
    fn slow(&self) -> Option<Vec<Option<i64>>> {
        if !self.belongs(self.labels).0 {
            return None;
        }
        let open = |at: &usize| self.demands.is_none() || self.nodes[*at].1 == self.demands;
        let on = |at: usize| {
            let counts = |(labels, node, leaves, elsewhere): &&Other| {
                node % self.nodes.len() == at && !leaves && !elsewhere && self.belongs(*labels).1
            };
            self.pods.iter().filter(counts).count() as f64
        };
        let nodes: Vec<usize> = (0..self.nodes.len()).filter(open).collect();
        let zones: BTreeSet<Option<u8>> = nodes.iter().map(|at| self.nodes[*at].1).collect();
        let host_weight = (nodes.len() as f64 + 2.0).ln();
        let zone_weight = (zones.len() as f64 + 2.0).ln();
        let raw: BTreeMap<usize, i64> = nodes
            .iter()
            .map(|at| {
                let (host, zone) = self.nodes[*at];
                let mut sum = 0.0;
                if host {
                    sum += on(*at) * host_weight + 2.0;
                }
                if zone.is_some() {
                    let near = nodes.iter().filter(|n| self.nodes[**n].1 == zone);
                    sum += near.map(|n| on(*n)).sum::<f64>() * zone_weight + 4.0;
                }
                (*at, sum.round() as i64)
            })
            .collect();
        let (least, most) = (raw.values().min().copied(), raw.values().max().copied().unwrap_or(0));
        let score = |raw: &i64| if most == 0 { 100 } else { 100 * (most + least.unwrap_or(0) - raw) / most };
        Some((0..self.nodes.len()).map(|at| raw.get(&at).map(score)).collect())
    }

    fn world(&self) -> World {
        let mut out = world();
        for (at, (host, zone)) in self.nodes.iter().enumerate() {
            let mut node = node(&format!("n{at}"));
            if *host {
                node = node.label(HOST, &format!("n{at}"));
            }
            if let Some(zone) = zone {
                node = node.label(ZONE, &zone.to_string());
            }
            out = out.node(node);
        }
        for (at, (labels, on, leaves, elsewhere)) in self.pods.iter().enumerate() {
            let mut pod = labelled(&format!("p{at}"), *labels).on(&format!("n{}", on % self.nodes.len()));
            if *leaves {
                pod = pod.terminating();
            }
            if *elsewhere {
                pod = pod.namespace("other");
            }
            out = out.pod(pod);
        }
        for (at, (app, tier)) in self.services.iter().enumerate() {
            let texts =
                [("app", app), ("tier", tier)].map(|(key, value)| (key, value.map(|v| v.to_string())));
            let labels: Vec<(&str, &str)> =
                texts.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))).collect();
            out = out.service(&format!("s{at}"), &labels);
        }
        if let Some((app, tier_not_zero)) = self.made {
            let labels: BTreeMap<String, String> =
                app.map(|a| ("app".to_owned(), a.to_string())).into_iter().collect();
            let not = r#"[{"key": "tier", "operator": "NotIn", "values": ["0"]}]"#;
            let text = format!(
                r#"{{"matchLabels": {}, "matchExpressions": {}}}"#,
                serde_json::to_string(&labels).expect("JSON"),
                if tier_not_zero { not } else { "[]" }
            );
            out.0.set_workload(Maker::ReplicaSet, &Key::new("default", "rs"), selector(&text));
        }
        out
    }

    fn pod(&self) -> Pod {
        let pod = labelled("new", self.labels).owner("ReplicaSet", "rs");
        match self.demands {
            Some(zone) => pod.selects(&[(ZONE, &zone.to_string())]),
            None => pod,
        }
    }
}

fn labelled(name: &str, (app, tier): (u8, u8)) -> Pod {
    pod(name).label("app", &app.to_string()).label("tier", &tier.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn images_are_scored_as_adding_up_says(pulled in pulled()) {
        let (nodes, asked) = &pulled;
        let mut world = world();
        for (at, images) in nodes.iter().enumerate() {
            let with = |node: Node, (image, mb): &(usize, i64)| node.image(&format!("i{image}:1"), mb * MB);
            world = world.node(images.iter().fold(node(&format!("n{at}")), with));
        }
        let names: Vec<String> = asked.iter().map(|image| format!("i{image}:1")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let scores: Vec<Option<i64>> = found(world, pod("p").images(&names)).iter().map(|e| e.parts.images).collect();
        let slow = slow_images(&pulled);
        let said = slow.iter().any(|score| *score > 0);
        prop_assert_eq!(scores, slow.iter().map(|score| said.then_some(*score)).collect::<Vec<_>>());
    }

    #[test]
    fn siblings_are_spread_as_counting_says(crowd in crowd()) {
        let found = found(crowd.world(), crowd.pod());
        let slow = crowd.slow();
        // Where it goes nowhere, nothing is compared.
        prop_assume!(found.iter().any(|e| e.rule.is_none()));
        for (at, node) in found.iter().enumerate().filter(|(_, e)| e.rule.is_none()) {
            let want = slow.as_ref().map(|scores| scores[at].expect("an open node has a score"));
            prop_assert_eq!(node.parts.spread, want, "n{}", at);
        }
    }
}
