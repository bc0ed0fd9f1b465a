//! In upstream mode we decide as crane's own plugin does: the same nodes refused in the same words, the same scores.
//!
//! `vectors/core/crane.jsonl.gz` holds what the compiled plugin answered in two thousand small worlds
//! (it reads the clock itself, so stamps are of the year 2000 or 9000). All are compared in every
//! run. What differs on purpose is in `docs/load-rules.md`: of a pod that nothing was decided about before, nothing.

use flate2::read::GzDecoder;
use jiff::Timestamp;
use loadline_api::json::Tree;
use loadline_api::{Context, pod, policy};
use loadline_core::cluster::{Cluster, NodeReport, Options};
use loadline_core::load::policy::Rules;
use loadline_core::view::build::node;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/core/crane.jsonl.gz");

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct World {
    policy: Value,
    #[serde(default)]
    daemon_set: bool,
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    refused: Option<String>,
    score: i64,
}

fn recorded() -> Vec<World> {
    let file = File::open(RECORDED).expect("it is there");
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines.map(|line| serde_json::from_str(&line.expect("text")).expect("a world")).collect()
}

fn rules(world: &World) -> Rules {
    let settings = json!({"apiVersion": "loadline.dev/v1alpha1", "kind": "LoadSettings",
        "spec": {"mode": "upstream", "timeZone": "Asia/Shanghai"}});
    policy::rules(Some(&Tree::from(&world.policy)), Some(&Tree::from(&settings))).expect("crane takes it").0
}

/// Why a node is refused, in the words of the first reason, and its score by load.
fn ours(world: &World) -> Vec<(Option<String>, i64)> {
    let now: Timestamp = "2026-01-31T12:00:00Z".parse().expect("a time");
    let mut cluster = Cluster::new(Options { rules: Some(rules(world)), ..Options::default() }, now);
    for (at, given) in world.nodes.iter().enumerate() {
        let mut one = node(&format!("n{at}")).cpu("8").memory("16Gi");
        for (key, value) in &given.annotations {
            one = one.annotation(key, value);
        }
        cluster.set_node(&one.facts());
    }
    let owners =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
    let owners = if world.daemon_set { owners } else { json!([]) };
    let asking = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "p", "ownerReferences": owners},
        "spec": {"containers": [{"name": "main", "image": "none"}]}});
    let (facts, _) = pod::facts(&Tree::from(&asking), &Context::new()).expect("a pod");
    let view = cluster.view(&facts);
    let report = cluster.decide(&view).report();
    let mut found = report.nodes;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let said = |one: &NodeReport| {
        (one.reasons.first().map(ToString::to_string), one.load_score.expect("a score").r#final)
    };
    found.iter().map(said).collect()
}

/// How often each way through crane's code was taken.
#[derive(Debug, Default)]
struct Tally {
    nodes: usize,
    refused: usize,
    daemon: usize,
    expired: usize,
    /// A value that only Go's way of reading floats takes, or refuses.
    odd: usize,
    malformed: usize,
    hot: usize,
    best: usize,
    worst: usize,
    between: usize,
}

impl Tally {
    fn note(&mut self, world: &World, node: &Node) {
        self.nodes += 1;
        self.refused += usize::from(node.refused.is_some());
        self.daemon += usize::from(world.daemon_set);
        for (key, text) in &node.annotations {
            let fields: Vec<&str> = text.split(',').collect();
            let plain = |figure: &str| figure.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            match fields[..] {
                [_, stamp] if stamp.starts_with("200") => self.expired += 1,
                [figure, stamp] if stamp.starts_with('9') && stamp.ends_with('Z') => {
                    self.odd += usize::from(!plain(figure) || figure.is_empty());
                    self.hot += usize::from(key == "node_hot_value" && plain(figure));
                }
                _ => self.malformed += 1,
            }
        }
        match node.score {
            100.. => self.best += 1,
            ..=0 => self.worst += 1,
            _ => self.between += 1,
        }
    }
}

#[test]
fn every_recorded_world_gets_the_answer_cranes_plugin_gave() {
    let worlds = recorded();
    let (mut tally, mut faults) = (Tally::default(), Vec::new());
    for (number, world) in worlds.iter().enumerate() {
        for (at, (node, ours)) in world.nodes.iter().zip(ours(world)).enumerate() {
            tally.note(world, node);
            if ours != (node.refused.clone(), node.score) {
                let policy = &world.policy["spec"];
                faults.push(format!(
                    "world {number}, node {at}\n  {policy}\n  {:?}\n  crane: {:?}, {}\n  ours:  {ours:?}",
                    node.annotations, node.refused, node.score
                ));
            }
        }
    }
    let shown = faults.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(faults.is_empty(), "{} of {} nodes differ\n{shown}", faults.len(), tally.nodes);
    println!("{} worlds: {tally:?}", worlds.len());
    let Tally { nodes, refused, daemon, expired, odd, malformed, hot, best, worst, between } = tally;
    for (what, seen, least) in [
        ("nodes", nodes, 8000),
        ("refused", refused, 2500),
        ("asked for a pod of a daemon set", daemon, 350),
        ("expired annotations", expired, 5000),
        ("figures only Go reads, or does not", odd, 2000),
        ("annotations that are no value and time", malformed, 5000),
        ("hot values", hot, 2500),
        ("the best score", best, 70),
        ("the worst score", worst, 1500),
        ("scores between", between, 5500),
    ] {
        assert!(seen >= least, "{what}: {seen} only");
    }
}
