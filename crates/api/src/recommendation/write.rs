//! How is what was learned written? As a Recommendation that crane's readers understand, with what it was learned from.

use super::{MESSAGE, MILLICORE};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use loadline_core::load::need::HOURS;
use loadline_core::load::recommend::{Advice, WorkloadRef};
use loadline_core::object::Key;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The annotation that holds the checkpoint of a workload.
pub const CHECKPOINT: &str = "loadline.dev/profile";
/// The annotation that says how much to believe it, from 0 to 1.
pub const CONFIDENCE: &str = "loadline.dev/confidence";
/// The annotation that says when in the day its containers use how much CPU.
pub const DAY: &str = "loadline.dev/day";
/// The label by which our objects are known, and its value.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "loadline");

/// What is recommended for a workload.
#[derive(Clone, Debug)]
pub struct Learned<'a> {
    pub target: &'a WorkloadRef,
    pub containers: BTreeMap<Arc<str>, Advice>,
    /// By container: the CPU used at most in each hour of the day, in UTC, in billionths of a core; `None` of hours nobody has
    /// seen.
    pub days: BTreeMap<Arc<str>, [Option<i64>; HOURS]>,
    /// The least of its containers', as text.
    pub confidence: String,
    pub checkpoint: &'a [u8],
    pub at: Timestamp,
}

/// Where the Recommendation of a workload is: beside it, under a name that is the same every time and no longer than names
/// may be.
#[must_use]
pub fn key(target: &WorkloadRef) -> Key {
    let whole = format!("{}/{}/{}", target.group, target.kind, target.key.name);
    let start: String = target.key.name.chars().take(200).collect();
    let hash = loadline_core::ledger::Uid::new(&whole).0 >> 96;
    let kind = target.kind.to_lowercase();
    Key::new(
        target.key.namespace.clone(),
        format!("loadline-{kind:.24}-{}-{hash:08x}", start.trim_end_matches(['.', '-'])),
    )
}

/// The whole object.
#[must_use]
pub fn object(learned: &Learned<'_>) -> Value {
    let Learned { target, .. } = learned;
    let key = key(target);
    let mut object = json!({
        "apiVersion": "analysis.crane.io/v1alpha1",
        "kind": "Recommendation",
        "metadata": {
            "name": &*key.name,
            "namespace": &*key.namespace,
            "labels": {
                MANAGED_BY.0: MANAGED_BY.1,
                "analysis.crane.io/recommendation-target-kind": &*target.kind,
                "analysis.crane.io/recommendation-target-namespace": &*key.namespace,
            },
        },
        "spec": {
            "targetRef": {
                "apiVersion": version(&target.group),
                "kind": &*target.kind,
                "namespace": &*target.key.namespace,
                "name": &*target.key.name,
            },
            "type": "Resource",
            // Read it, and leave the workload as it is.
            "adoptionType": "Status",
        },
    });
    // Labels have no more than 63 characters.
    if target.key.name.len() <= 63 {
        object["metadata"]["labels"]["analysis.crane.io/recommendation-target-name"] =
            json!(&*target.key.name);
    }
    let change = change(learned);
    for (part, fields) in [("metadata", "annotations"), ("status", "")] {
        match fields {
            "" => object[part] = change[part].clone(),
            fields => object[part][fields] = change[part][fields].clone(),
        }
    }
    object
}

/// What changes in an object that is there, as a merge patch.
#[must_use]
pub fn change(learned: &Learned<'_>) -> Value {
    let amounts = |advice: &Advice| {
        let mut amounts = Map::new();
        if let Some(nano) = advice.cpu_nano {
            amounts.insert("cpu".into(), json!(format!("{}m", nano.div_euclid(1_000_000))));
        }
        if let Some(bytes) = advice.memory_bytes {
            amounts.insert("memory".into(), json!(bytes.to_string()));
        }
        Value::Object(amounts)
    };
    let all = || learned.containers.iter();
    let targets: Vec<Value> =
        all().map(|(name, advice)| json!({"containerName": &**name, "target": amounts(advice)})).collect();
    let requests: Vec<Value> = all()
        .map(|(name, advice)| json!({"name": &**name, "resources": {"requests": amounts(advice)}}))
        .collect();
    // JSON is YAML, too.
    let value = json!({"resourceRequest": {"containers": targets}}).to_string();
    let patch = json!({"spec": {"template": {"spec": {"containers": requests}}}}).to_string();
    json!({
        "metadata": {"annotations": {
            MESSAGE: "Success",
            CONFIDENCE: learned.confidence,
            DAY: days(learned),
            CHECKPOINT: BASE64_STANDARD.encode(learned.checkpoint),
        }},
        "status": {
            "recommendedValue": value,
            "recommendedInfo": patch,
            "action": "Patch",
            "lastUpdateTime": crate::time::text(learned.at),
        },
    })
}

/// Millicores, rounded up: little is not nothing. Without any, the annotation goes.
fn days(learned: &Learned<'_>) -> Value {
    let milli =
        |nano: &Option<i64>| nano.map(|nano| nano.div_euclid(MILLICORE) + i64::from(nano % MILLICORE > 0));
    let known = learned.days.iter().filter(|(_, hours)| hours.iter().any(Option::is_some));
    let all: BTreeMap<&str, Vec<Option<i64>>> =
        known.map(|(name, hours)| (&**name, hours.iter().map(milli).collect())).collect();
    if all.is_empty() { Value::Null } else { json!(json!(all).to_string()) }
}

/// The version that a group has had for years; readers go by the group.
fn version(group: &str) -> String {
    match group {
        "" => "v1".to_owned(),
        "argoproj.io" => format!("{group}/v1alpha1"),
        _ => format!("{group}/v1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Skip, Tree};
    use crate::recommendation;

    #[test]
    fn what_is_written_is_what_readers_of_crane_read() {
        let target =
            WorkloadRef { group: "apps".into(), kind: "Deployment".into(), key: Key::new("shop", "web") };
        let advice = |cpu, memory| Advice { cpu_nano: cpu, memory_bytes: memory };
        let containers: BTreeMap<Arc<str>, Advice> = [
            ("app".into(), advice(Some(268_000_000), Some(396 << 20))),
            ("side".into(), advice(None, Some(1 << 20))),
        ]
        .into();
        let at = "2026-01-05T10:00:00Z".parse().expect("a time");
        let mut hours = [None; HOURS];
        (hours[9], hours[10]) = (Some(250_000_000), Some(1_400_000_000));
        hours[11] = Some(100_000);
        let learned = Learned {
            target: &target,
            containers: containers.clone(),
            days: [("app".into(), hours)].into(),
            confidence: "0.5".into(),
            checkpoint: b"\x01\xff",
            at,
        };
        let text = object(&learned).to_string();
        let tree = Tree::parse(text.as_bytes(), Skip::NOTHING).expect("JSON");
        let (read, warnings) = recommendation::read(&tree).expect("a recommendation");
        let read = read.expect("of resources");
        assert_eq!(
            (read.target, read.containers, read.success, read.updated),
            (target.clone(), containers, true, Some(at))
        );
        assert!(warnings.is_empty());
        let mut day = [1_400_000_000; HOURS];
        (day[9], day[11]) = (250_000_000, 1_000_000);
        assert_eq!(read.days.len(), 1, "of the other nothing is known");
        assert_eq!(
            read.days["app"].cpu_nano(),
            day,
            "unseen hours as the largest, little as a whole millicore"
        );
        assert_eq!(recommendation::checkpoint(&tree), Some(vec![1, 255]));
    }

    #[test]
    fn a_name_is_the_same_every_time_and_short_enough() {
        let of = |group: &str, kind: &str, name: &str| {
            key(&WorkloadRef { group: group.into(), kind: kind.into(), key: Key::new("shop", name) })
        };
        let web = of("apps", "Deployment", "web");
        assert_eq!(web, of("apps", "Deployment", "web"));
        assert!(web.name.starts_with("loadline-deployment-web-"), "{web}");
        assert_ne!(web, of("apps", "StatefulSet", "web"));
        assert_ne!(web, of("argoproj.io", "Deployment", "web"));
        let long = of("apps", "Deployment", &"x".repeat(253));
        assert!(long.name.len() <= 253 && !long.name.contains("--"), "{}", long.name);
    }
}
