//! Fleets and bindings by chance. Numbers are small, so that clusters are often equally good and often full.

use crate::dice::Dice;
use serde_json::{Value, json};

/// The clusters of every fleet.
pub const CLUSTERS: [&str; 8] = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];

const ENV: &str = "env";
const ENVS: [&str; 3] = ["prod", "test", "dev"];
const REGIONS: [&str; 3] = ["r1", "r2", "r3"];
const ZONES: [&str; 3] = ["z1", "z2", "z3"];
const PROVIDERS: [&str; 2] = ["p1", "p2"];
const TAINTS: [&str; 2] = ["maintenance", "special"];
const GROUPS: [&str; 3] = ["near", "far", "anywhere"];
const GPU: &str = "example.com/gpu";

/// Long after every division.
const LATER: &str = "2099-01-01T00:00:00Z";

/// Before every division.
const EARLIER: &str = "2020-01-01T00:00:00Z";

/// All clusters of a fleet, status included.
pub fn fleet(dice: &mut Dice) -> Vec<Value> {
    CLUSTERS.iter().map(|name| cluster(name, dice)).collect()
}

fn cluster(name: &str, dice: &mut Dice) -> Value {
    let mut labels = json!({});
    if dice.chance(80) {
        labels[ENV] = json!(dice.pick(&ENVS));
    }
    let mut spec = json!({"syncMode": "Push"});
    if dice.chance(90) {
        spec["provider"] = json!(dice.pick(&PROVIDERS));
    }
    if dice.chance(90) {
        spec["region"] = json!(dice.pick(&REGIONS));
    }
    let zones = dice.some(&ZONES, 45);
    if !zones.is_empty() {
        spec["zones"] = json!(zones);
    }
    if dice.chance(20) {
        let effect = dice.pick(&["NoSchedule", "NoExecute", "PreferNoSchedule"]);
        let mut taint = json!({"key": dice.pick(&TAINTS), "effect": effect});
        if dice.chance(50) {
            taint["value"] = json!("yes");
        }
        spec["taints"] = json!([taint]);
    }
    if dice.chance(40) {
        spec["resourceModels"] = models(dice);
    }
    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": name, "labels": labels}, "spec": spec, "status": status(dice)})
}

/// Three sizes of nodes.
fn models(dice: &mut Dice) -> Value {
    let grade = |grade: usize, cpu: usize, memory: usize| {
        let range = |name: &str, min: String, max: String| json!({"name": name, "min": min, "max": max});
        json!({"grade": grade, "ranges": [range("cpu", cpu.to_string(), (cpu * 2 + 1).to_string()),
            range("memory", format!("{memory}Gi"), format!("{}Gi", memory * 2 + 1))]})
    };
    let step = dice.range(1, 3);
    json!([grade(0, 0, 0), grade(1, step, 2 * step), grade(2, 2 * step, 8)])
}

/// What a cluster says of itself.
pub fn status(dice: &mut Dice) -> Value {
    let mut apis = Vec::new();
    if dice.chance(92) {
        let kinds = json!([{"kind": "Deployment", "name": "deployments"}]);
        apis.push(json!({"groupVersion": "apps/v1", "resources": kinds}));
    }
    if dice.chance(90) {
        apis.push(json!({"groupVersion": "v1", "resources": [{"kind": "ConfigMap", "name": "configmaps"}]}));
    }
    let mut status = json!({"apiEnablements": apis});
    if dice.chance(95) {
        let mut all = json!({"cpu": dice.range(0, 24).to_string(), "memory": format!("{}Gi", dice.range(4, 64)),
            "pods": dice.pick(&["0", "5", "20", "110"])});
        if dice.chance(40) {
            all[GPU] = json!(dice.range(0, 8).to_string());
        }
        let part = |dice: &mut Dice, most: usize| {
            json!({"cpu": format!("{}m", dice.range(0, most * 1000)), "memory": format!("{}Mi", dice.range(0, most * 1024)),
                "pods": dice.range(0, most).to_string()})
        };
        let mut summary = json!({"allocatable": all});
        if dice.chance(50) {
            summary["allocated"] = part(dice, 4);
        }
        if dice.chance(30) {
            summary["allocating"] = part(dice, 2);
        }
        if dice.chance(60) {
            let count = |grade: usize, dice: &mut Dice| json!({"grade": grade, "count": dice.range(0, 4)});
            summary["allocatableModelings"] = json!([count(0, dice), count(1, dice), count(2, dice)]);
        }
        status["resourceSummary"] = summary;
    }
    status
}

/// A binding, with all that was decided before.
pub fn binding(name: &str, dice: &mut Dice) -> Value {
    let mut spec = json!({"placement": placement(dice)});
    let mut resource =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name});
    if dice.chance(80) {
        resource["uid"] = json!(format!("uid-{}", dice.below(1000)));
    }
    match dice.below(10) {
        0 => {
            resource["apiVersion"] = json!("v1");
            resource["kind"] = json!("ConfigMap");
        }
        1 => {
            let part = |name: &str, dice: &mut Dice| json!({"name": name, "replicas": dice.range(1, 3), "replicaRequirements": requirements(dice)});
            spec["components"] = json!([part("manager", dice), part("worker", dice)]);
            // What several templates make up mostly belongs together.
            if dice.chance(60) {
                let one = json!({"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1});
                spec["placement"]["spreadConstraints"] = json!([one]);
            }
        }
        _ => {
            spec["replicas"] = json!(replicas(dice));
            if dice.chance(85) {
                spec["replicaRequirements"] = requirements(dice);
            }
        }
    }
    spec["resource"] = resource;
    if dice.chance(50) {
        let most = dice.pick(&[&0, &3, &12]);
        let some = dice.some(&CLUSTERS, 40);
        let mut before: Vec<Value> =
            some.iter().map(|name| json!({"name": name, "replicas": dice.range(0, *most)})).collect();
        if dice.chance(5) {
            before.push(json!({"name": "gone", "replicas": 2}));
        }
        // The order in which they are written breaks ties when the number shrinks.
        if dice.chance(50) {
            before.reverse();
        }
        if spec["replicas"].is_number() && dice.chance(15) {
            let sum: i64 = before.iter().filter_map(|one| one["replicas"].as_i64()).sum();
            spec["replicas"] = json!(sum);
        }
        spec["clusters"] = json!(before);
    }
    if dice.chance(15) {
        spec["gracefulEvictionTasks"] = json!([eviction(dice.pick(&CLUSTERS))]);
    }
    let mut status = json!({});
    let grouped = spec["placement"]["clusterAffinities"].is_array();
    if grouped && dice.chance(40) {
        status["schedulerObservingAffinityName"] = json!(dice.pick(&GROUPS));
    }
    if dice.chance(if status == json!({}) { 12 } else { 50 }) {
        spec["rescheduleTriggeredAt"] = json!(LATER);
        status["lastScheduledTime"] = json!(EARLIER);
        if spec["replicas"].is_number() && dice.chance(15) {
            spec["replicas"] = json!(0);
        }
    }
    let mut binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": name, "namespace": "default",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "loadline"}}, "spec": spec});
    if status != json!({}) {
        binding["status"] = status;
    }
    binding
}

fn replicas(dice: &mut Dice) -> usize {
    match dice.below(10) {
        0 => 0,
        1 => 1,
        2 => dice.range(20, 60),
        _ => dice.range(2, 20),
    }
}

fn requirements(dice: &mut Dice) -> Value {
    let mut request = json!({"cpu": dice.pick(&["250m", "500m", "1", "2", "5"])});
    if dice.chance(40) {
        request["memory"] = json!(dice.pick(&["512Mi", "1Gi", "3G", "6Gi"]));
    }
    if dice.chance(12) {
        request[GPU] = json!("1");
    }
    let mut wanted = json!({"resourceRequest": request});
    if dice.chance(10) {
        // Sums and models know nothing of nodes.
        wanted["nodeClaim"] = json!({"nodeSelector": {"disk": "fast"}});
    }
    wanted
}

fn eviction(cluster: &str) -> Value {
    json!({"fromCluster": cluster, "reason": "TaintUntolerated", "producer": "TaintManager"})
}

fn placement(dice: &mut Dice) -> Value {
    let mut placement = json!({});
    match dice.below(10) {
        0..=3 => {}
        4..=6 => placement["clusterAffinity"] = affinity(dice),
        _ => placement["clusterAffinities"] = groups(dice),
    }
    if dice.chance(30) {
        placement["clusterTolerations"] = match dice.below(3) {
            0 => json!([{"operator": "Exists"}]),
            1 => json!([{"key": TAINTS[0], "operator": "Exists", "effect": "NoSchedule"}]),
            _ => json!([{"key": TAINTS[1], "value": "yes"}]),
        };
    }
    if dice.chance(55) {
        placement["spreadConstraints"] = spread(dice);
    }
    if let Some(strategy) = strategy(dice) {
        placement["replicaScheduling"] = strategy;
    }
    placement
}

/// Not empty.
fn names(dice: &mut Dice) -> Vec<&'static str> {
    let mut some = dice.some(&CLUSTERS, 50);
    some.push(dice.pick(&CLUSTERS));
    some
}

fn affinity(dice: &mut Dice) -> Value {
    match dice.below(7) {
        0 | 1 => json!({"clusterNames": names(dice)}),
        2 => json!({"exclude": names(dice)}),
        3 => json!({"labelSelector": {"matchLabels": {ENV: dice.pick(&ENVS)}}}),
        4 => {
            let operator = dice.pick(&["In", "NotIn"]);
            json!({"labelSelector": {"matchExpressions": [{"key": ENV, "operator": operator, "values": ["prod", "dev"]}]}})
        }
        5 => {
            let (key, value) = *dice.pick(&[&("region", "r1"), &("provider", "p2"), &("zone", "z1")]);
            let operator = dice.pick(&["In", "NotIn"]);
            json!({"fieldSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": [value]}]}})
        }
        _ => {
            let key = dice.pick(&["region", "zone"]);
            let operator = dice.pick(&["Exists", "DoesNotExist"]);
            json!({"fieldSelector": {"matchExpressions": [{"key": key, "operator": operator}]}})
        }
    }
}

fn groups(dice: &mut Dice) -> Value {
    let count = dice.range(1, 3);
    let groups: Vec<Value> = GROUPS[..count]
        .iter()
        .map(|name| {
            let mut group = affinity(dice);
            group["affinityName"] = json!(name);
            if dice.chance(35) {
                let tiers = dice.range(1, 2);
                let tier = |at: usize, dice: &mut Dice| {
                    let mut tier = affinity(dice);
                    tier["affinityName"] = json!(format!("{name}-{at}"));
                    tier
                };
                group["overflowAffinities"] = (0..tiers).map(|at| tier(at, dice)).collect();
            }
            group
        })
        .collect();
    json!(groups)
}

fn spread(dice: &mut Dice) -> Value {
    let limit = |by: &str, least: usize, most: usize, dice: &mut Dice| {
        let min = dice.range(least, most);
        let mut limit = json!({"spreadByField": by, "minGroups": min});
        if dice.chance(88) {
            limit["maxGroups"] = json!(min.max(1) + dice.range(0, 3));
        }
        limit
    };
    let mut all = Vec::new();
    match dice.below(10) {
        0..=3 => {}
        4..=7 => all.push(limit("region", 1, 3, dice)),
        8 => all.push(limit("zone", 1, 3, dice)),
        _ => all.push(limit("provider", 1, 2, dice)),
    }
    if all.is_empty() || dice.chance(85) {
        all.push(limit("cluster", 0, 4, dice));
    }
    if dice.chance(4) {
        all = vec![json!({"spreadByLabel": ENV, "minGroups": 1, "maxGroups": 2})];
    }
    if dice.chance(50) {
        all.reverse();
    }
    json!(all)
}

/// None for no strategy at all.
fn strategy(dice: &mut Dice) -> Option<Value> {
    let divided = |preference: &str| json!({"replicaSchedulingType": "Divided", "replicaDivisionPreference": preference});
    let mut weighted = divided("Weighted");
    match dice.below(20) {
        0 => return None,
        1..=3 => return Some(json!({"replicaSchedulingType": "Duplicated"})),
        4..=9 => return Some(divided("Aggregated")),
        10..=14 => weighted["weightPreference"] = json!({"dynamicWeight": "AvailableReplicas"}),
        15 => {}
        // Nothing is said about weights, in so many words.
        16 => weighted["weightPreference"] = json!({}),
        17 => return Some(json!({"replicaSchedulingType": "Divided"})),
        _ => {
            let rules = dice.range(1, 3);
            let rule = |dice: &mut Dice| json!({"targetCluster": affinity(dice), "weight": dice.range(1, 4)});
            let rules: Vec<Value> = (0..rules).map(|_| rule(dice)).collect();
            weighted["weightPreference"] = json!({"staticWeightList": rules});
            if dice.chance(20) {
                weighted["weightPreference"]["dynamicWeight"] = json!("AvailableReplicas");
            }
        }
    }
    Some(weighted)
}

/// What may happen to a binding that was scheduled, as the programs and people around the scheduler write it.
pub fn changed(binding: &Value, dice: &mut Dice) -> Value {
    let mut new = binding.clone();
    let spec = &mut new["spec"];
    let whole = spec["components"].is_array() && dice.chance(60);
    match if whole { 7 } else { dice.below(10) } {
        0..=4 if spec["replicas"].is_number() => spec["replicas"] = json!(replicas(dice)),
        5 => spec["rescheduleTriggeredAt"] = json!(LATER),
        6 => {
            let before = spec["placement"]["clusterAffinities"].take();
            spec["placement"] = placement(dice);
            if before.is_array() && dice.chance(50) {
                spec["placement"]["clusterAffinities"] = before;
                spec["placement"].as_object_mut().expect("an object").remove("clusterAffinity");
            }
        }
        // One of its clusters is left behind.
        7 | 8 if spec["clusters"].as_array().is_some_and(|all| !all.is_empty()) => {
            let clusters = spec["clusters"].as_array_mut().expect("clusters");
            // In which order Karmada writes them is chance, and not ours.
            let names = clusters.iter().map(|cluster| cluster["name"].as_str());
            let (first, _) = names.enumerate().min_by_key(|(_, name)| *name).expect("there is one");
            let left = clusters.remove(first);
            spec["gracefulEvictionTasks"] = json!([eviction(left["name"].as_str().expect("a name"))]);
        }
        _ => spec["replicaRequirements"] = requirements(dice),
    }
    new
}
