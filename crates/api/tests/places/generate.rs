//! Fleets and placements by chance, as objects of the API.
//!
//! Everything here is accepted by the API server. Left to `listed` are the wishes that the two are known to take
//! differently; what is left to chance must come out equal.

use super::dice::Dice;
use jiff::{SignedDuration, Timestamp};
use loadline_testkit::ocm::GROUP;
use serde_json::{Map, Value, json};

/// Where placements are.
pub const NAMESPACES: [&str; 4] = ["red", "blue", "green", "plain"];

/// Clusters whose namespaces exist, so that they can have scores.
pub const SCORED: usize = 40;

/// The label that puts a cluster into an exclusive set.
const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// An object of the group.
#[expect(clippy::needless_pass_by_value, reason = "parts of a new object")]
pub fn object(kind: &str, version: &str, metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": kind, "metadata": metadata, "spec": spec})
}

/// The name of a cluster. They differ in length and first letter: order by bytes is not order by number.
pub fn cluster_name(number: usize) -> String {
    format!("{}{number}", ["c", "west-", "e-", "b"][number % 4])
}

/// A time so long ago.
fn ago(hours: i64) -> String {
    let then = Timestamp::now() - SignedDuration::from_hours(hours);
    then.round(jiff::Unit::Second).expect("a time of these days").to_string()
}

/// One of `0..=most`.
fn number(dice: &mut Dice, most: usize) -> i64 {
    i64::try_from(dice.range(0, most)).expect("a small one")
}

fn one<'a>(dice: &mut Dice, of: &[&'a str]) -> &'a str {
    dice.pick(of)
}

const REGIONS: &[&str] = &["east", "west", "north", "eastern"];
const TIERS: &[&str] = &["gold", "silver", ""];
const PLATFORMS: &[&str] = &["AWS", "GCP", "none of these, with spaces"];
const CPUS: &[&str] = &[
    "0",
    "1",
    "2",
    "4",
    "7",
    "8",
    "10",
    "15",
    "16",
    "30",
    "32",
    "33",
    "60",
    "64",
    "100",
    "0.3",
    "0.5",
    "12.5",
    "300m",
    "1500m",
    "7999m",
    "250000u",
    "100000000n",
    "1k",
    "2e1",
    "1E2",
    "3.7",
];
const MEMORIES: &[&str] = &[
    "0",
    "1Gi",
    "1.5Gi",
    "10Gi",
    "40Gi",
    "45Gi",
    "63194Mi",
    "69938Mi",
    "96Gi",
    "128Gi",
    "200Gi",
    "400Gi",
    "1Ti",
    "500M",
    "64G",
    "123456789",
    "1024Ki",
    "0.5Ti",
    "12e9",
    "3.3Gi",
];

/// A cluster. It carries a finalizer if it is to be caught while leaving.
pub fn cluster(dice: &mut Dice, number: usize, leaving: bool) -> Value {
    let mut labels = Map::new();
    if dice.chance(85) {
        labels.insert("region".into(), json!(one(dice, REGIONS)));
    }
    if dice.chance(60) {
        labels.insert("tier".into(), json!(one(dice, TIERS)));
    }
    if dice.chance(30) {
        labels.insert("gpu".into(), json!("true"));
    }
    if dice.chance(80) {
        labels.insert(SET.into(), json!(one(dice, &["blue-set", "red-set"])));
    }
    let finalizers = if leaving { json!(["loadline.dev/stays"]) } else { Value::Null };
    let metadata = json!({"name": cluster_name(number), "labels": labels, "finalizers": finalizers});
    let mut spec = json!({"hubAcceptsClient": dice.chance(80)});
    if dice.chance(40) {
        let taints = (0..dice.range(1, 2)).map(|_| taint(dice)).collect::<Vec<_>>();
        spec["taints"] = json!(taints);
    }
    let mut cluster = object("ManagedCluster", "v1", metadata, spec);
    cluster["status"] = status(dice);
    cluster
}

fn status(dice: &mut Dice) -> Value {
    let mut claims = Vec::new();
    let mut claim = |name: &str, value: &str| claims.push(json!({"name": name, "value": value}));
    if dice.chance(70) {
        claim("platform", one(dice, PLATFORMS));
        if dice.chance(15) {
            // Of duplicates the last holds.
            claim("platform", one(dice, PLATFORMS));
        }
    }
    if dice.chance(60) {
        claim("zone.loadline.dev", one(dice, &["z1", "z2", "z3"]));
    }
    if dice.chance(40) {
        claim("facts", one(dice, &["{\"n\": 2}", "{\"n\": 5}", "not json"]));
    }
    let amounts = |dice: &mut Dice| {
        let mut out = Map::new();
        if dice.chance(85) {
            out.insert("cpu".into(), json!(one(dice, CPUS)));
        }
        if dice.chance(85) {
            out.insert("memory".into(), json!(one(dice, MEMORIES)));
        }
        out
    };
    let (allocatable, capacity) = (amounts(dice), amounts(dice));
    let mut version = json!({});
    if dice.chance(70) {
        version["kubernetes"] = json!(one(dice, &["1.29.4", "v1.31.0", "1.33.1"]));
    }
    json!({"conditions": [], "allocatable": allocatable, "capacity": capacity, "clusterClaims": claims, "version": version})
}

fn taint(dice: &mut Dice) -> Value {
    let mut taint = json!({
        "key": one(dice, &["maintenance", "gpu", "cluster.open-cluster-management.io/unreachable"]),
        "effect": one(dice, &["NoSelect", "NoSelect", "PreferNoSelect", "NoSelectIfNew"]),
    });
    if dice.chance(50) {
        taint["value"] = json!(one(dice, &["yes", "a", ""]));
    }
    match dice.below(4) {
        0 => {}
        1 => taint["timeAdded"] = Value::Null,
        2 => taint["timeAdded"] = json!(ago(2)),
        _ => taint["timeAdded"] = json!(ago(240)),
    }
    taint
}

/// The sets, which are always the same.
pub fn sets() -> Vec<Value> {
    let set = |name: &str, selector: Value| {
        object(
            "ManagedClusterSet",
            "v1beta2",
            json!({ "name": name }),
            json!({ "clusterSelector": selector }),
        )
    };
    let by = |labels: Value| json!({"selectorType": "LabelSelector", "labelSelector": labels});
    vec![
        set("blue-set", json!({"selectorType": "ExclusiveClusterSetLabel"})),
        set("red-set", json!({"selectorType": "ExclusiveClusterSetLabel"})),
        set("west-set", by(json!({"matchLabels": {"region": "west"}}))),
        set(
            "not-gold",
            by(json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]})),
        ),
        set("none", json!({"selectorType": "LabelSelector"})),
        set("all", by(json!({}))),
    ]
}

/// Who may use which set: `plain` none at all, unless it is by a binding to a set that does not exist.
pub fn bindings(dice: &mut Dice) -> Vec<Value> {
    let mut out = Vec::new();
    let mut bind = |namespace: &str, set: &str| {
        let metadata = json!({"name": set, "namespace": namespace});
        out.push(object("ManagedClusterSetBinding", "v1beta2", metadata, json!({ "clusterSet": set })));
    };
    bind("red", "all");
    bind("red", "red-set");
    for set in ["blue-set", "west-set", "none"] {
        bind("blue", set);
    }
    bind("blue", "gone");
    for set in ["blue-set", "red-set", "west-set", "not-gold", "all"] {
        if dice.chance(50) {
            bind("green", set);
        }
    }
    bind("plain", "gone");
    out
}

/// Scores of clusters: `metrics` may have expired, `tenants` never.
pub fn scores(dice: &mut Dice, cluster: &str) -> Vec<Value> {
    let mut out = Vec::new();
    for name in ["metrics", "tenants"] {
        if !dice.chance(70) {
            continue;
        }
        let mut scores = Vec::new();
        for score in dice.some(&["cpu", "mem", "x"], 80) {
            scores.push(json!({"name": score, "value": number(dice, 200) - 100}));
        }
        let mut status = json!({ "scores": scores });
        match (name, dice.below(4)) {
            ("metrics", 0) => status["validUntil"] = json!(ago(1)),
            (_, 1) => status["validUntil"] = json!(ago(-48)),
            _ => {}
        }
        let mut one = object(
            "AddOnPlacementScore",
            "v1alpha1",
            json!({"name": name, "namespace": cluster}),
            Value::Null,
        );
        one.as_object_mut().expect("an object").remove("spec");
        one["status"] = status;
        out.push(one);
    }
    out
}

/// What others have published: it counts for balance, whoever it belongs to and whether the clusters exist or not.
pub fn foreign(dice: &mut Dice, clusters: usize) -> Vec<Value> {
    let one = |number: usize, dice: &mut Dice| {
        let decisions: Vec<Value> = (0..dice.range(1, 6))
            .map(|_| json!({"clusterName": cluster_name(dice.below(clusters + 2)), "reason": ""}))
            .collect();
        let metadata =
            json!({"name": format!("foreign-{number}"), "namespace": one(dice, &["red", "plain"])});
        let mut out = object("PlacementDecision", "v1beta1", metadata, Value::Null);
        out.as_object_mut().expect("an object").remove("spec");
        out["status"] = json!({ "decisions": decisions });
        out
    };
    (0..dice.range(0, 4)).map(|number| one(number, dice)).collect()
}

/// What a placement wants, by chance. What it selects may depend on what others selected only if `balanced`.
pub fn wish(dice: &mut Dice, balanced: bool) -> Value {
    let mut spec = json!({});
    if dice.chance(25) {
        spec["clusterSets"] =
            json!(dice.some(&["blue-set", "red-set", "west-set", "all", "gone", "none"], 40));
    }
    let limited = dice.chance(65);
    if limited {
        spec["numberOfClusters"] = match dice.below(12) {
            0 => json!(0),
            1 => json!(500),
            _ => json!(dice.range(1, 9)),
        };
    } else if dice.chance(20) {
        spec["numberOfClusters"] = Value::Null;
    }
    if dice.chance(55) {
        spec["predicates"] = json!(
            (0..dice.range(1, 2))
                .map(|_| json!({"requiredClusterSelector": selector(dice, true)}))
                .collect::<Vec<_>>()
        );
    }
    spec["prioritizerPolicy"] = policy(dice, balanced, limited);
    if dice.chance(50) {
        spec["tolerations"] = json!((0..dice.range(1, 3)).map(|_| toleration(dice)).collect::<Vec<_>>());
    }
    if dice.chance(40) {
        spec["decisionStrategy"] = json!({"groupStrategy": groups(dice)});
    }
    if !balanced && dice.chance(12) {
        spoil(dice, &mut spec);
    }
    spec
}

fn expression(dice: &mut Dice, keys: &[(&str, &[&str])]) -> Value {
    let (key, values) = keys[dice.below(keys.len())];
    match dice.below(4) {
        0 => json!({"key": key, "operator": "Exists"}),
        1 => json!({"key": key, "operator": "DoesNotExist"}),
        other => {
            let operator = if other == 2 { "In" } else { "NotIn" };
            let mut some = dice.some(values, 50);
            if some.is_empty() {
                some.push(values[0]);
            }
            json!({"key": key, "operator": operator, "values": some})
        }
    }
}

fn selector(dice: &mut Dice, cel: bool) -> Value {
    let labels: &[(&str, &[&str])] = &[("region", REGIONS), ("tier", TIERS), ("gpu", &["true"])];
    let claims: &[(&str, &[&str])] =
        &[("platform", &["AWS", "GCP"]), ("zone.loadline.dev", &["z1", "z2"]), ("missing", &["x"])];
    let mut out = json!({});
    if dice.chance(30) {
        out["labelSelector"] = json!({"matchLabels": {"region": one(dice, REGIONS)}});
    } else if dice.chance(50) {
        let some: Vec<Value> = (0..dice.range(1, 2)).map(|_| expression(dice, labels)).collect();
        out["labelSelector"] = json!({ "matchExpressions": some });
    }
    if dice.chance(35) {
        let some: Vec<Value> = (0..dice.range(1, 2)).map(|_| expression(dice, claims)).collect();
        out["claimSelector"] = json!({ "matchExpressions": some });
    }
    if cel && dice.chance(40) {
        let some: Vec<&str> = (0..dice.range(1, 2)).map(|_| one(dice, CEL)).collect();
        out["celSelector"] = json!({ "celExpressions": some });
    }
    out
}

const CEL: &[&str] = &[
    "managedCluster.metadata.labels['region'] == 'east'",
    "managedCluster.metadata.labels.region in ['east', 'west']",
    "managedCluster.metadata.labels.region.matches('^east')",
    "has(managedCluster.metadata.labels.gpu)",
    "!has(managedCluster.metadata.labels.gpu)",
    "managedCluster.metadata.labels.exists(k, k == 'tier')",
    "managedCluster.metadata.name.startsWith('c') || managedCluster.metadata.name.endsWith('3')",
    "managedCluster.status.clusterClaims.exists(c, c.name == 'platform' && c.value == 'AWS')",
    "managedCluster.status.clusterClaims.filter(c, c.name == 'facts').all(c, c.value.parseJSON().n > 3)",
    "managedCluster.scores('tenants').exists(s, s.name == 'x' && s.value >= 0)",
    "managedCluster.scores('tenants').filter(s, s.name == 'cpu').all(s, s.value > 10)",
    "quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity('4'))",
    "quantity(managedCluster.status.allocatable.memory).compareTo(quantity('45Gi')) >= 0",
    "semver(managedCluster.status.version.kubernetes).isLessThan(semver('1.31.0'))",
    "managedCluster.status.version.kubernetes.contains('1.3')",
    "has(managedCluster.status.version.kubernetes)",
    "!has(managedCluster.status.version.kubernetes)",
    "size(managedCluster.spec.taints) > 1",
    "!has(managedCluster.spec.taints)",
    "!has(managedCluster.spec.taints) || managedCluster.spec.taints.all(t, t.effect != 'NoSelect')",
    "managedCluster.spec.hubAcceptsClient",
    "managedCluster.metadata.name",
    "managedCluster.metadata.generation >= 1",
    "managedCluster.metadata.name.size() > 3 ? true : managedCluster.spec.hubAcceptsClient",
    "1 / 0 == 1 || true",
    "'x' in managedCluster.metadata.labels || managedCluster.status.capacity['cpu'] != '8'",
];

fn policy(dice: &mut Dice, balanced: bool, limited: bool) -> Value {
    let exact = dice.chance(40);
    let built_in = |name: &str, weight: i64| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight});
    let mut configurations = Vec::new();
    for _ in 0..dice.below(5) {
        let weight = number(dice, 20) - 10;
        configurations.push(match dice.below(5) {
            // Below zero it would swap clusters for ever, if there are any to swap.
            0 => built_in("Steady", if limited { weight.max(0) } else { weight }),
            1 => built_in("ResourceAllocatableCPU", weight),
            2 => built_in("ResourceAllocatableMemory", weight),
            _ => {
                let object = if balanced { "tenants" } else { one(dice, &["metrics", "tenants", "missing"]) };
                let add_on =
                    json!({"resourceName": object, "scoreName": one(dice, &["cpu", "mem", "x", "missing"])});
                json!({"scoreCoordinate": {"type": "AddOn", "addOn": add_on}, "weight": weight})
            }
        });
    }
    // A name nobody knows does no harm while it is switched off.
    if dice.chance(5) {
        configurations.push(built_in("Nobody", 0));
    }
    if balanced {
        let weight = 1 + number(dice, 9);
        if exact || dice.chance(40) {
            configurations.push(built_in("Balance", if dice.chance(20) { -weight } else { weight }));
        }
    } else if !exact || dice.chance(10) {
        configurations.push(built_in("Balance", 0));
    }
    let mut out = json!({ "configurations": configurations });
    match (exact, dice.below(3)) {
        (true, _) => out["mode"] = json!("Exact"),
        (false, 0) => out["mode"] = json!("Additive"),
        (false, 1) => out["mode"] = json!(""),
        _ => {}
    }
    out
}

fn toleration(dice: &mut Dice) -> Value {
    let mut out = json!({});
    let operator = one(dice, &["Exists", "Exists", "Equal", "Equal", "", "Odd"]);
    if operator != "Exists" || dice.chance(70) {
        out["key"] =
            json!(one(dice, &["maintenance", "gpu", "cluster.open-cluster-management.io/unreachable"]));
    }
    if operator != "Equal" || dice.chance(50) {
        out["operator"] = json!(operator);
    }
    if operator != "Exists" {
        out["value"] = json!(one(dice, &["yes", "a", ""]));
    }
    if dice.chance(30) {
        out["effect"] = json!(one(dice, &["NoSelect", "NoSelectIfNew", "PreferNoSelect"]));
    }
    if dice.chance(40) {
        // Either long over or lasting for days: no answer depends on the very second.
        out["tolerationSeconds"] =
            [json!(60), json!(0), json!(-5), json!(100_000), json!(10_000_000), Value::Null][dice.below(6)]
                .clone();
    }
    out
}

fn groups(dice: &mut Dice) -> Value {
    let mut out = json!({});
    match dice.below(5) {
        0 => {}
        1 => out["clustersPerDecisionGroup"] = json!(dice.range(1, 9)),
        2 => out["clustersPerDecisionGroup"] = [json!(0), json!(-3), json!(1000)][dice.below(3)].clone(),
        _ => out["clustersPerDecisionGroup"] = json!(format!("{}%", dice.range(1, 100))),
    }
    let names = ["west", "gold", "west"];
    let some: Vec<Value> = (0..dice.below(4))
        .map(|number| json!({"groupName": names[number], "groupClusterSelector": selector(dice, false)}))
        .collect();
    if !some.is_empty() {
        out["decisionGroups"] = json!(some);
    }
    out
}

/// Makes a mistake, one that the API server lets pass.
fn spoil(dice: &mut Dice, spec: &mut Value) {
    fn push(list: &mut Value, item: Value) {
        match list {
            Value::Array(items) => items.push(item),
            other => *other = json!([item]),
        }
    }
    let coordinate =
        |coordinate: Value, weight: i64| json!({"scoreCoordinate": coordinate, "weight": weight});
    let required = |selector: Value| json!({ "requiredClusterSelector": selector });
    let odd = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "region", "operator": operator, "values": values}]});
    let (predicates, weights) = ("predicates", "configurations");
    match dice.below(11) {
        0 => spec["prioritizerPolicy"]["mode"] = json!("Odd"),
        1 => push(
            &mut spec["prioritizerPolicy"][weights],
            coordinate(json!({"type": "BuiltIn", "builtIn": "Nobody"}), 3),
        ),
        // Not a mistake while it is switched off.
        2 => push(
            &mut spec["prioritizerPolicy"][weights],
            coordinate(json!({"type": "AddOn"}), number(dice, 1)),
        ),
        3 => push(&mut spec["tolerations"], json!({"operator": "Equal", "value": "a"})),
        4 => push(&mut spec["tolerations"], json!({"key": "gpu", "operator": "Exists", "value": "a"})),
        5 => push(&mut spec[predicates], required(json!({"labelSelector": odd("Like", json!(["x"]))}))),
        6 => push(&mut spec[predicates], required(json!({"labelSelector": odd("In", json!([]))}))),
        7 => push(&mut spec[predicates], required(json!({"claimSelector": odd("Exists", json!(["x"]))}))),
        8 => push(
            &mut spec[predicates],
            required(
                json!({"celSelector": {"celExpressions": [one(dice, &["managedCluster.", "nobody == 1", "1 +"])]}}),
            ),
        ),
        9 => push(
            &mut spec[predicates],
            required(json!({"labelSelector": {"matchLabels": {"not a key": "x"}}})),
        ),
        _ => {
            let group = json!({"groupName": "odd", "groupClusterSelector": {"labelSelector": odd("Like", json!(["x"]))}});
            push(&mut spec["decisionStrategy"]["groupStrategy"]["decisionGroups"], group);
        }
    }
}
