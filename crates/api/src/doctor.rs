//! What is looked at to say what is wrong with a cluster? Nodes, leases, definitions of kinds, whoever runs containers, and what a
//! server says of itself, as far as findings are about them.

use crate::json::{Skip, Tree};
use crate::node;
use crate::read::{At, Error, Warning, object, tolerant};
use jiff::Timestamp;
use loadline_core::doctor::{Definition, Lease, Node, Server, Workload};
use loadline_core::lease::Record;
use loadline_core::object::Key;
use loadline_core::qos::taint::CONDITION;

/// What [`node()`] does not read of the nodes of a list.
pub const NODES: Skip = Skip::NOTHING.within(&[(
    "items",
    Skip::NOTHING.within(&[
        ("metadata", Skip::fields(&["finalizers", "managedFields"])),
        ("spec", Skip::fields(&["configSource", "podCIDRs"])),
        (
            "status",
            Skip::fields(&[
                "config",
                "daemonEndpoints",
                "declaredFeatures",
                "features",
                "images",
                "nodeInfo",
                "runtimeHandlers",
                "volumesAttached",
                "volumesInUse",
            ]),
        ),
    ]),
)]);

/// What is read of no list.
pub const LISTED: Skip = Skip::NOTHING.within(&[("items", Skip::MANAGED_FIELDS)]);

/// What [`definition`] does not read: schemas are the longest part by far.
pub const DEFINITION: Skip = Skip::NOTHING.within(&[
    ("metadata", Skip::fields(&["annotations", "managedFields"])),
    ("spec", Skip::NOTHING.within(&[("versions", Skip::fields(&["schema", "additionalPrinterColumns"]))])),
]);

/// A node.
///
/// # Errors
/// When it is not what it should be.
pub fn node(value: &Tree<'_>) -> Result<(Node, Vec<Warning>), Error> {
    let (facts, warnings) = node::facts(value)?;
    let conditions = value["status"]["conditions"].as_array().unwrap_or_default();
    let said = conditions.iter().find(|one| one["type"].as_str() == Some(CONDITION));
    let node = Node {
        addresses: node::addresses(value),
        ready: node::is_ready(value),
        created: value["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse().ok()),
        cooling: node::cooling_until(&facts),
        interference: said.and_then(|one| match one["status"].as_str()? {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }),
        facts,
    };
    Ok((node, warnings))
}

/// A lease.
///
/// # Errors
/// When it is not what it should be.
pub fn lease(value: &Tree<'_>) -> Result<(Lease, Vec<Warning>), Error> {
    tolerant("Lease", value, |root| {
        let record: Record = root.get("spec").some().and_then(|at| at.parse()).unwrap_or_default();
        Lease {
            key: key(root),
            holder: record.holder().map(str::to_owned),
            renewed: record.renew_time,
            seconds: record.lease_duration_seconds.map(i64::from),
        }
    })
}

/// A definition of a kind.
///
/// # Errors
/// When it is not what it should be.
pub fn definition(value: &Tree<'_>) -> Result<(Definition, Vec<Warning>), Error> {
    tolerant("CustomResourceDefinition", value, |root| {
        let (spec, status) = (root.get("spec"), root.get("status"));
        let (versions, conditions) = (spec.get("versions"), status.get("conditions"));
        let served = versions.items().filter(|at| at.get("served").flag());
        let mut out = Definition {
            name: root.get("metadata").get("name").needed(),
            served: served.map(|at| at.get("name").string()).collect(),
            ..Definition::default()
        };
        for one in conditions.items() {
            let holds = one.get("status").text() == Some("True");
            match one.get("type").text() {
                Some("Established") => out.established = holds,
                Some("NamesAccepted") if !holds => {
                    out.trouble = Some(one.get("message").text().unwrap_or("its names are taken").to_owned());
                }
                _ => {}
            }
        }
        // In a file, as it is shipped, nobody has judged it yet.
        out.established |= !conditions.is_set();
        out
    })
}

/// Whoever runs containers: a Deployment or a `DaemonSet`.
///
/// # Errors
/// When it is not what it should be.
pub fn workload(kind: &str, value: &Tree<'_>) -> Result<(Workload, Vec<Warning>), Error> {
    tolerant(kind, value, |root| {
        let (spec, status) = (root.get("spec"), root.get("status"));
        let template = spec.get("template");
        let pod = template.get("spec");
        let containers = pod.get("containers");
        let daemons = status.get("desiredNumberScheduled").int();
        Workload {
            kind: kind.to_owned(),
            key: key(root),
            replicas: spec.get("replicas").int().or(daemons).unwrap_or(1),
            account: pod.get("serviceAccountName").text().unwrap_or("default").to_owned(),
            images: containers.items().map(|at| at.get("image").string()).collect(),
            words: containers
                .items()
                .map(|at| [at.get("command").strings(), at.get("args").strings()].concat())
                .collect(),
        }
    })
}

/// What a server says at `/version`, and the clocks at that moment.
///
/// # Errors
/// When it is not what it should be.
pub fn server(value: &Tree<'_>, clock: Option<(Timestamp, Timestamp)>) -> Result<Server, Error> {
    object("Version", value, |root| {
        // Some say `30+`.
        let number = |field: &str| {
            let text = root.get(field).string();
            let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        };
        Server {
            version: root.get("gitVersion").needed(),
            number: number("major").zip(number("minor")),
            clock,
        }
    })
}

/// Is what a review of access was about allowed? None if it does not say.
#[must_use]
pub fn allowed(review: &Tree<'_>) -> Option<bool> {
    review["status"]["allowed"].as_bool()
}

fn key(root: &At<'_, '_>) -> Key {
    let metadata = root.get("metadata");
    Key::new(metadata.get("namespace").string(), metadata.get("name").needed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_node_says_whether_it_is_up_and_what_its_agent_says() {
        let read = |conditions: Value| {
            let object = json!({"metadata": {"name": "n", "creationTimestamp": "2025-01-01T00:00:00Z",
                "annotations": {"loadline.dev/cooling-until": "2025-01-01T12:00:00Z"}},
                "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "conditions": conditions}});
            node(&Tree::from(&object)).unwrap().0
        };
        let up = read(json!([{"type": "Ready", "status": "True"}, {"type": CONDITION, "status": "False"}]));
        assert_eq!((up.ready, up.interference), (Some(true), Some(false)));
        assert_eq!((up.addresses.len(), up.cooling.is_some(), up.created.is_some()), (1, true, true));
        let silent = read(json!([]));
        assert_eq!((silent.ready, silent.interference), (None, None), "unknown is not no");
    }

    #[test]
    fn a_definition_is_established_if_it_says_so_or_nobody_judged_it() {
        let read = |status: Value| {
            let object = json!({"metadata": {"name": "a.b"}, "status": status, "spec": {"versions": [
                {"name": "v1", "served": true}, {"name": "v0", "served": false}]}});
            definition(&Tree::from(&object)).unwrap().0
        };
        let with = |kind: &str, status: &str| {
            read(json!({"conditions": [{"type": kind, "status": status, "message": "taken by c.d"}]}))
        };
        assert_eq!((read(json!({})).established, read(json!({})).served), (true, vec!["v1".to_owned()]));
        assert!(with("Established", "True").established);
        let refused = with("NamesAccepted", "False");
        assert_eq!((refused.established, refused.trouble.as_deref()), (false, Some("taken by c.d")));
    }

    #[test]
    fn versions_are_numbers_even_with_a_plus() {
        for (minor, expected) in [("30", Some((1, 30))), ("30+", Some((1, 30))), ("", None), ("x", None)] {
            let object = json!({"major": "1", "minor": minor, "gitVersion": "v1.30.0"});
            assert_eq!(server(&Tree::from(&object), None).unwrap().number, expected, "{minor}");
        }
    }

    #[test]
    fn who_runs_what_is_read_with_its_account() {
        let object = json!({"metadata": {"name": "s", "namespace": "kube-system"}, "spec": {"replicas": 2, "template": {
            "spec": {"serviceAccountName": "a", "containers": [{"image": "i", "command": ["/loadline"], "args": ["agent"]}]}}}});
        let (read, _) = workload("Deployment", &Tree::from(&object)).unwrap();
        assert_eq!((read.replicas, &*read.account, &*read.key.to_string()), (2, "a", "kube-system/s"));
        assert_eq!(read.words, [["/loadline", "agent"]]);
    }
}
