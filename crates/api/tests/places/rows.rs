//! Every row of `docs/placement-differences.md`, shown: what the controller makes of it, and what we do.

use super::generate::{cluster_name, object};
use super::ours::{Objects, Ours};
use super::{Result, written};
use loadline_core::place::{Code, Options, Outcome};
use loadline_testkit::ocm::{Ocm, path};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Clusters that everybody may select; one more has a taint.
const CLUSTERS: usize = 100;

/// What both made of a placement.
pub struct Seen {
    /// None if the controller said nothing.
    theirs: Option<Result>,
    ours: Result,
    outcome: Arc<Outcome>,
}

impl Seen {
    fn theirs(&self) -> &Result {
        self.theirs.as_ref().expect("the controller said something")
    }

    fn clusters(result: &Result) -> Vec<&str> {
        result.slices.iter().flat_map(|slice| &slice.clusters).map(String::as_str).collect()
    }

    fn misconfigured(&self) -> bool {
        matches!(self.outcome.code, Code::Misconfigured(_))
    }
}

/// One difference.
pub struct Row {
    /// What the document calls it.
    pub name: &'static str,
    /// What is wished before, if that matters.
    first: Option<fn() -> Value>,
    wish: fn() -> Value,
    show: fn(&Seen),
}

fn region(name: &str) -> Value {
    json!({"requiredClusterSelector": {"labelSelector": {"matchLabels": {"region": name}}}})
}

fn odd() -> Value {
    json!({"labelSelector": {"matchExpressions": [{"key": "region", "operator": "Like", "values": ["e"]}]}})
}

fn exact(configurations: &[Value]) -> Value {
    json!({"numberOfClusters": 1, "prioritizerPolicy": {"mode": "Exact", "configurations": configurations}})
}

fn built_in(name: &str, weight: i64) -> Value {
    json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight})
}

fn long() -> String {
    "x".repeat(80)
}

pub const ROWS: [Row; 18] = [
    Row {
        name: "retained",
        first: Some(|| json!({})),
        wish: || json!({"prioritizerPolicy": {"mode": "Odd"}}),
        show: |seen| {
            assert_eq!((seen.theirs().selected, Seen::clusters(seen.theirs()).len()), (0, 0));
            assert_eq!((seen.ours.selected, Seen::clusters(&seen.ours).len()), (100, 100));
        },
    },
    Row {
        name: "at-once",
        first: None,
        wish: || json!({"predicates": [region("nowhere")], "tolerations": [{"operator": "Equal"}]}),
        show: |seen| {
            assert!(!seen.theirs().misconfigured.status);
            assert!(seen.misconfigured());
        },
    },
    Row {
        name: "words",
        first: None,
        wish: || json!({"predicates": [{"requiredClusterSelector": odd()}]}),
        show: |seen| {
            let both = [&seen.theirs().misconfigured, &seen.ours.misconfigured];
            assert!(both.iter().all(|said| said.status && said.message.starts_with("Predicate:")));
            assert_ne!(both[0].message, both[1].message);
        },
    },
    Row {
        name: "why-none",
        first: None,
        wish: || json!({"predicates": [region("nowhere")]}),
        show: |seen| {
            let said = &seen.theirs().satisfied;
            assert_eq!(seen.ours.satisfied.reason, said.reason);
            let more = format!("{}; 101 candidates: 101 rejected by Predicate", said.message);
            assert_eq!(seen.ours.satisfied.message, more);
        },
    },
    Row {
        name: "percent",
        first: None,
        wish: || json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "7%"}}}),
        show: |seen| {
            assert_eq!((seen.theirs().groups[0].clusters, seen.ours.groups[0].clusters), (8, 7));
        },
    },
    Row {
        name: "bad-group",
        first: Some(|| json!({})),
        wish: || {
            let group = json!({"groupName": "odd", "groupClusterSelector": odd()});
            json!({"decisionStrategy": {"groupStrategy": {"decisionGroups": [group]}}})
        },
        show: |seen| {
            let theirs = seen.theirs();
            assert!(theirs.satisfied.status && theirs.misconfigured.status);
            assert_eq!((theirs.selected, theirs.slices.len()), (100, 0), "all at once, and nothing is left");
            assert!(seen.misconfigured() && !seen.ours.satisfied.status);
            assert_eq!(Seen::clusters(&seen.ours).len(), 100);
        },
    },
    Row {
        name: "negative-count",
        first: None,
        wish: || json!({"numberOfClusters": -1}),
        show: |seen| {
            assert_eq!(seen.theirs, None, "it falls over");
            assert!(seen.misconfigured());
        },
    },
    Row {
        name: "bad-set",
        first: None,
        wish: || json!({"clusterSets": ["bad"]}),
        show: |seen| {
            assert_eq!(seen.theirs, None);
            assert_eq!(seen.ours.satisfied.reason, "NotAllDecisionsScheduled");
            assert!(seen.ours.satisfied.message.starts_with("ManagedClusterSet bad: "));
        },
    },
    Row {
        name: "long-name",
        first: None,
        wish: || json!({}),
        show: |seen| {
            assert_eq!(seen.theirs, None);
            assert!(seen.misconfigured());
        },
    },
    Row {
        name: "claim-values",
        first: None,
        wish: || {
            let claim = json!({"key": "facts", "operator": "In", "values": [long()]});
            json!({"predicates": [{"requiredClusterSelector": {"claimSelector": {"matchExpressions": [claim]}}}]})
        },
        show: |seen| {
            assert!(seen.theirs().misconfigured.status);
            assert_eq!(Seen::clusters(&seen.ours), [cluster_name(1)]);
        },
    },
    Row {
        name: "expired",
        first: None,
        wish: || {
            let cel = "managedCluster.scores('metrics').exists(s, s.value > 0)";
            json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [cel]}}}]})
        },
        show: |seen| {
            assert_eq!(Seen::clusters(seen.theirs()), [cluster_name(0)]);
            assert_eq!(seen.ours.selected, 0);
        },
    },
    Row {
        name: "newer-functions",
        first: None,
        wish: || {
            let cel = "semver('v1.31.0', true).isLessThan(semver('1.32.0'))";
            json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [cel]}}}]})
        },
        show: |seen| {
            assert!(seen.theirs().misconfigured.message.contains("found no matching overload for 'semver'"));
            assert_eq!(seen.ours.selected, 100);
        },
    },
    Row {
        name: "ratio",
        first: None,
        wish: || exact(&[built_in("ResourceRatioCPU", 1)]),
        show: |seen| {
            let message = ":incorrect builtin prioritizer: ResourceRatioCPU";
            assert_eq!(seen.theirs().misconfigured.message, message);
            // Of those with all 10 of 10 cpu free, the first by name: b19.
            assert_eq!(Seen::clusters(&seen.ours), [cluster_name(19)]);
        },
    },
    Row {
        name: "spread",
        first: None,
        wish: || {
            let term = json!({"topologyKey": "region", "topologyKeyType": "Label", "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule"});
            json!({"numberOfClusters": 4, "spreadPolicy": {"spreadConstraints": [term]}})
        },
        show: |seen| {
            let even = |result: &Result| {
                let number =
                    |name: &str| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>();
                let of = |name: &&str| number(name).expect("a number") % 2 == 0;
                Seen::clusters(result).iter().filter(|name| of(name)).count()
            };
            assert_eq!((even(seen.theirs()), even(&seen.ours)), (0, 2), "even ones are in the east");
        },
    },
    Row {
        name: "long-toleration",
        first: None,
        wish: || json!({"tolerations": [{"key": "slow", "operator": "Exists", "tolerationSeconds": 10_000_000_000_i64}]}),
        show: |seen| assert_eq!((seen.theirs().selected, seen.ours.selected), (100, 101)),
    },
    Row {
        name: "stray-add-on",
        first: None,
        wish: || {
            let mut stray = built_in("ResourceAllocatableCPU", -1);
            stray["scoreCoordinate"]["addOn"] = json!({"resourceName": "metrics", "scoreName": "cpu"});
            exact(&[built_in("ResourceAllocatableCPU", 3), stray])
        },
        show: |seen| {
            // 3 − 1 is for the most, −1 alone for the least.
            let (most, least) = (cluster_name(19), cluster_name(0));
            assert_eq!(
                (Seen::clusters(seen.theirs()), Seen::clusters(&seen.ours)),
                (vec![&*most], vec![&*least])
            );
        },
    },
    Row {
        name: "totals",
        first: None,
        wish: || exact(&[built_in("ResourceAllocatableCPU", 3)]),
        show: |seen| {
            assert_eq!(Seen::clusters(seen.theirs()), Seen::clusters(&seen.ours));
            assert_eq!(seen.outcome.writes[0].slice.entries[0].score, 300);
        },
    },
    Row {
        name: "zero",
        first: None,
        wish: || json!({"numberOfClusters": 0}),
        show: |seen| {
            assert_eq!(seen.ours.satisfied.reason, seen.theirs().satisfied.reason);
            let message = "No ManagedCluster matches any of the cluster predicate";
            assert_eq!(seen.theirs().satisfied.message, message, "though all do");
            let message = "numberOfClusters is 0, so no cluster is selected; 100 of 101 match";
            assert_eq!(seen.ours.satisfied.message, message);
        },
    },
];

/// The name of a row's placement.
fn placement_name(row: &Row) -> String {
    if row.name == "long-name" { format!("long-{}", long()) } else { row.name.to_owned() }
}

/// Where the placements are.
const NAMESPACE: &str = "rows";

fn build(ocm: Ocm<'_>) {
    let create = |plural: &str, object: &Value| ocm.create(plural, object).expect("accepted");
    for name in [NAMESPACE.to_owned(), cluster_name(0)] {
        ocm.namespace(&name).expect("a namespace");
    }
    for number in 0..=CLUSTERS {
        let labels = json!({"region": if number % 2 == 0 { "east" } else { "west" }});
        let mut spec = json!({"hubAcceptsClient": true});
        if number == CLUSTERS {
            spec["taints"] =
                json!([{"key": "slow", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]);
        }
        let mut cluster =
            object("ManagedCluster", "v1", json!({"name": cluster_name(number), "labels": labels}), spec);
        let claims = if number == 1 { json!([{"name": "facts", "value": long()}]) } else { json!([]) };
        cluster["status"] = json!({"conditions": [], "version": {}, "clusterClaims": claims,
            "allocatable": {"cpu": (number % 10 + 1).to_string()}, "capacity": {"cpu": "10"}});
        create("managedclusters", &cluster);
    }
    let odd = odd()["labelSelector"].take();
    for (name, selector) in [("all", json!({})), ("bad", odd)] {
        let spec = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": selector}});
        create("managedclustersets", &object("ManagedClusterSet", "v1beta2", json!({ "name": name }), spec));
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        let binding = object("ManagedClusterSetBinding", "v1beta2", metadata, json!({ "clusterSet": name }));
        create("managedclustersetbindings", &binding);
    }
    let mut scores = object(
        "AddOnPlacementScore",
        "v1alpha1",
        json!({"name": "metrics", "namespace": cluster_name(0)}),
        json!(null),
    );
    scores.as_object_mut().expect("an object").remove("spec");
    scores["status"] =
        json!({"scores": [{"name": "cpu", "value": 50}], "validUntil": "2026-01-01T00:00:00Z"});
    create("addonplacementscores", &scores);
}

fn with_set(mut spec: Value) -> Value {
    if spec.get("clusterSets").is_none() {
        spec["clusterSets"] = json!(["all"]);
    }
    spec
}

/// Shows all rows.
pub fn show(ocm: Ocm<'_>) {
    build(ocm);
    for row in &ROWS {
        if let Some(first) = row.first {
            let metadata = json!({"name": placement_name(row), "namespace": NAMESPACE});
            ocm.create("placements", &object("Placement", "v1beta1", metadata, with_set(first())))
                .expect("accepted");
        }
    }
    let controller = ocm.controller().expect("the controller");
    controller.settle().expect("settled");
    drop(controller);
    for row in &ROWS {
        let name = placement_name(row);
        let list = path("placements", Some(NAMESPACE));
        if row.first.is_some() {
            let change = json!({"spec": (row.wish)()});
            ocm.plane().patch(&format!("{list}/{name}"), &change).expect("accepted");
        } else {
            let metadata = json!({"name": name, "namespace": NAMESPACE});
            let placement = object("Placement", "v1beta1", metadata, with_set((row.wish)()));
            ocm.create("placements", &placement).expect("accepted");
        }
    }
    let all = |plural: &str| ocm.all(plural).expect("a list");
    let here = |plural: &str| {
        let of = all(plural).into_iter();
        of.filter(|one| one["metadata"]["namespace"] == NAMESPACE).collect::<Vec<Value>>()
    };
    let objects = Objects {
        clusters: all("managedclusters"),
        sets: all("managedclustersets"),
        bindings: all("managedclustersetbindings"),
        scores: all("addonplacementscores"),
        placements: here("placements"),
        decisions: here("placementdecisions"),
    };
    let mut ours = Ours::new(&objects, Options::default());
    ours.settle_once();
    let controller = ocm.controller().expect("the controller");
    controller.settle().expect("settled");
    let mut theirs: BTreeMap<_, _> = written(&here("placements"), &here("placementdecisions"));
    for row in &ROWS {
        let key = (NAMESPACE.to_owned(), placement_name(row));
        println!("{}", row.name);
        (row.show)(&Seen {
            theirs: theirs.remove(&key),
            ours: ours.result(&key),
            outcome: ours.outcome(&key),
        });
    }
}
