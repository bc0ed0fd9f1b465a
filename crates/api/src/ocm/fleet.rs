//! What is the fleet like? Clusters, their sets, who may use these, and scores of others.

use super::{LOAD, defaults};
use crate::json::{Skip, Tree};
use crate::read::{At, Error, Warning, object, tolerant};
use loadline_core::place::{ClusterFacts, ClusterLoad, Effect, Members, Resources, Scores, Taint};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Reads a `ManagedCluster`. Of its status, what does not read is not known, with a warning.
///
/// # Errors
/// When the object is not what it should be.
pub fn cluster(value: &Tree<'_>) -> Result<(ClusterFacts, Vec<Warning>), Error> {
    tolerant("ManagedCluster", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        let (taints, claims) = (spec.get("taints"), status.get("clusterClaims"));
        let claim = |at: At<'_, '_>| Some((at.get("name").text()?.to_owned(), at.get("value").string()));
        ClusterFacts {
            name: metadata.get("name").needed().into(),
            labels: metadata.get("labels").texts(),
            claims: claims.items().filter_map(claim).collect(),
            taints: taints.items().map(|at| taint(&at)).collect(),
            capacity: amounts(&status.get("capacity")),
            allocatable: amounts(&status.get("allocatable")),
            load: load(&metadata),
            leaving: metadata.get("deletionTimestamp").is_set(),
            fingerprint: fingerprint(value),
        }
    })
}

/// As good as never the same for two objects. Good within one process only.
fn fingerprint(object: &Tree<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash(object, &mut hasher);
    hasher.finish()
}

fn hash(tree: &Tree<'_>, to: &mut DefaultHasher) {
    match tree {
        Tree::Null => 0_u8.hash(to),
        Tree::Bool(truth) => (1_u8, truth).hash(to),
        Tree::Number(number) => (2_u8, number).hash(to),
        Tree::String(text) => (3_u8, text).hash(to),
        Tree::Array(items) => {
            (4_u8, items.len()).hash(to);
            for item in items {
                hash(item, to);
            }
        }
        Tree::Object(fields) => {
            5_u8.hash(to);
            for (name, value) in fields.iter() {
                name.hash(to);
                hash(value, to);
            }
        }
    }
}

fn taint(at: &At<'_, '_>) -> Taint {
    Taint {
        key: at.get("key").needed(),
        value: at.get("value").string(),
        effect: Effect::from(at.get("effect").needed().as_str()),
        time_added: at.get("timeAdded").time(),
    }
}

/// Amounts by resource; what does not read is not known.
fn amounts(at: &At<'_, '_>) -> Resources {
    let mut out = Resources::new();
    for (name, at) in at.entries() {
        let text = match at.value() {
            Tree::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        match (at.amount(), text.parse()) {
            (Ok(_), Ok(amount)) => drop(out.insert(name.to_owned(), amount)),
            (Err(problem), _) => at.warn(format!("{}; it is left out", problem.problem)),
            (_, Err(error)) => at.warn(format!("{error}; it is left out")),
        }
    }
    out
}

/// How much is taken, if the annotation says so.
fn load(metadata: &At<'_, '_>) -> Option<ClusterLoad> {
    let annotations = metadata.get("annotations");
    let at = annotations.get(LOAD);
    let text = at.text()?;
    let parsed = Tree::parse(text.as_bytes(), Skip::NOTHING);
    let parsed = parsed.map_err(|error| at.warn(format!("{error}; it is left out"))).ok()?;
    at.attempt(&parsed, |at| {
        let time = at.get("timestamp");
        let Some(when) = time.time() else {
            time.warn("expected when it was summed up, found nothing; the load is left out");
            return None;
        };
        Some(ClusterLoad {
            at: when,
            requested: amounts(&at.get("requested")),
            measured: amounts(&at.get("measured")),
        })
    })?
}

/// Reads a `ManagedClusterSet`: its name and who is in it.
///
/// # Errors
/// When the object is not what it should be.
pub fn set(value: &Tree<'_>) -> Result<(String, Members), Error> {
    object("ManagedClusterSet", value, |root| {
        let spec = root.get("spec");
        let chosen = spec.get("clusterSelector");
        let selector = chosen.get("labelSelector");
        let members = match chosen.get("selectorType").text().unwrap_or(defaults::SELECTOR_TYPE) {
            "ExclusiveClusterSetLabel" | "LegacyClusterSetLabel" => Members::Exclusive,
            "LabelSelector" => Members::Labels(selector.some().and_then(|at| at.parse())),
            other => Members::Unknown(other.to_owned()),
        };
        (root.get("metadata").get("name").needed(), members)
    })
}

/// Reads a `ManagedClusterSetBinding`: the namespace and the set it may use, which is the name of the binding.
///
/// # Errors
/// When the object is not what it should be.
pub fn binding(value: &Tree<'_>) -> Result<((String, String), Vec<Warning>), Error> {
    tolerant("ManagedClusterSetBinding", value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        let name = metadata.get("name").needed();
        let set = spec.get("clusterSet");
        if let Some(other) = set.text().filter(|other| *other != name) {
            set.warn(format!("expected the name of the binding, {name}, found {other:?}; the name holds"));
        }
        (crate::context::namespace(metadata.get("namespace").text()), name)
    })
}

/// The cluster scores are of, the name of their object, and the scores.
pub type Scored = (String, String, Scores);

/// Reads an `AddOnPlacementScore`. A score beyond its range counts as it is, with a warning.
///
/// # Errors
/// When the object is not what it should be.
pub fn scores(value: &Tree<'_>) -> Result<(Scored, Vec<Warning>), Error> {
    tolerant("AddOnPlacementScore", value, |root| {
        let (metadata, status) = (root.get("metadata"), root.get("status"));
        let list = status.get("scores");
        let mut values = BTreeMap::new();
        for at in list.items() {
            let value = at.get("value");
            let Some(number) = value.int32() else { continue };
            if !(-100..=100).contains(&number) {
                value.warn(format!("expected -100 to 100, found {number}; it counts as it is"));
            }
            values.insert(at.get("name").needed(), number);
        }
        let scores = Scores { values, valid_until: status.get("validUntil").time() };
        (metadata.get("namespace").needed(), metadata.get("name").needed(), scores)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_cluster_is_read_with_what_is_taken_of_it() {
        let load = r#"{"timestamp": "2025-01-01T00:00:00Z", "requested": {"cpu": "7"}, "measured": {"cpu": "many"}}"#;
        let value = json!({
            "metadata": {"name": "c1", "labels": {"x": "y"}, "annotations": {LOAD: load}, "deletionTimestamp": "2025-01-01T00:00:00Z"},
            "spec": {"taints": [{"key": "gpu", "value": "a100", "effect": "NoSelect", "timeAdded": null}]},
            "status": {
                "allocatable": {"cpu": 15, "memory": "63194Mi", "odd": "lots", "less": "-1"},
                "capacity": {"cpu": "18"},
                "clusterClaims": [{"name": "zone", "value": "1"}, {"name": "zone", "value": "2"}],
            },
        });
        let (cluster, warnings) = cluster(&Tree::from(&value)).unwrap();
        assert!(cluster.leaving);
        assert_eq!(cluster.taints[0].to_string(), "gpu=a100:NoSelect");
        assert_eq!(cluster.claims["zone"], "2", "of duplicates the last holds");
        assert_eq!(cluster.allocatable.keys().collect::<Vec<_>>(), ["cpu", "memory"]);
        let load = cluster.load.unwrap();
        assert_eq!((load.requested.len(), load.measured.len()), (1, 0));
        assert_eq!(warnings.len(), 3, "{warnings:?}");
    }

    #[test]
    fn a_set_says_who_is_in_it() {
        let set =
            |spec: Value| set(&Tree::from(&json!({"metadata": {"name": "s"}, "spec": spec}))).unwrap().1;
        assert_eq!(set(json!({})), Members::Exclusive);
        assert_eq!(set(json!({"clusterSelector": {"selectorType": "LabelSelector"}})), Members::Labels(None));
        let everything = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
        assert_eq!(set(everything), Members::Labels(Some(loadline_core::select::LabelSelector::default())));
        assert_eq!(
            set(json!({"clusterSelector": {"selectorType": "Magic"}})),
            Members::Unknown("Magic".into())
        );
    }

    #[test]
    fn a_score_beyond_its_range_counts_and_is_told() {
        let value = json!({"metadata": {"name": "demo", "namespace": "c1"}, "status": {
            "scores": [{"name": "a", "value": 150}, {"name": "b", "value": -100}], "validUntil": "2025-01-01T00:00:00Z"}});
        let ((cluster, name, scores), warnings) = scores(&Tree::from(&value)).unwrap();
        assert_eq!((cluster.as_str(), name.as_str(), scores.values["a"]), ("c1", "demo", 150));
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn the_name_of_a_binding_is_the_set() {
        let value = json!({"metadata": {"name": "blue", "namespace": "ns1"}, "spec": {"clusterSet": "red"}});
        let ((namespace, set), warnings) = binding(&Tree::from(&value)).unwrap();
        assert_eq!((namespace.as_str(), set.as_str(), warnings.len()), ("ns1", "blue", 1));
    }
}
