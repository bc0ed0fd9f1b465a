//! Affinity and tolerations answer as recorded from Kubernetes.

mod recorded;

use loadline_core::select::node::{NodeSelector, Preferred, Required, WeightedTerm};
use loadline_core::select::taint::Compare;
use loadline_core::select::{Taint, Toleration};
use serde::Deserialize;
use std::collections::BTreeMap;

type Labels = BTreeMap<String, String>;

fn digits<T>(tried: &[T], f: impl Fn(&T) -> bool) -> String {
    tried.iter().map(|t| if f(t) { '1' } else { '0' }).collect()
}

#[derive(Deserialize)]
struct AffinityFile {
    nodes: Vec<Node>,
    cases: Vec<AffinityCase>,
}

#[derive(Deserialize)]
struct Node {
    name: String,
    labels: Labels,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AffinityCase {
    #[serde(default)]
    node_selector: Labels,
    required: Option<NodeSelector>,
    #[serde(default)]
    preferred: Vec<WeightedTerm>,
    r#match: String,
    score: Option<Vec<i64>>,
}

#[test]
fn every_recorded_affinity_demands_and_likes_the_same_nodes() {
    let file: AffinityFile = recorded::read("node-affinity.json");
    assert!(file.cases.len() >= 100);
    for c in &file.cases {
        let who = format!("{:?} {:?} {:?}", c.node_selector, c.required, c.preferred);
        let required = Required::new(&c.node_selector, c.required.as_ref());
        assert_eq!(
            digits(&file.nodes, |n| required.matches(&n.name, &n.labels)),
            c.r#match.replace('e', "0"),
            "{who}"
        );
        if c.r#match.contains('e') {
            assert!(!required.errors().is_empty(), "{who} is not valid");
        }
        let preferred = Preferred::new(&c.preferred);
        let scores = preferred.ok().map(|p| file.nodes.iter().map(|n| p.score(&n.name, &n.labels)).collect());
        assert_eq!(scores, c.score, "{who}");
    }
}

#[derive(Deserialize)]
struct TolerationFile {
    taints: Vec<Taint>,
    cases: Vec<TolerationCase>,
}

#[derive(Deserialize)]
struct TolerationCase {
    toleration: Toleration,
    off: String,
    on: String,
}

#[test]
fn every_recorded_toleration_tolerates_the_same_taints() {
    let file: TolerationFile = recorded::read("toleration.json");
    for c in &file.cases {
        let got = |compare| digits(&file.taints, |t| c.toleration.tolerates(t, compare));
        assert_eq!(
            (got(Compare::Off), got(Compare::On)),
            (c.off.clone(), c.on.clone()),
            "{:?}",
            c.toleration
        );
    }
}
