//! Which volumes come along with a pod, and where can they be reached?
//!
//! Volumes made on the node itself need nothing. Those behind a claim exist already, if the claim is bound, and
//! say which nodes reach them; placing pods whose volumes have yet to be found or made is not done here.

use crate::context::{Context, PersistentVolume, Standing};
use crate::read::At;
use loadline_core::select::label::{Expression, check_value};
use loadline_core::select::node::{NodeSelector, NodeTerm, Required};
use loadline_core::view::{Hold, PodFacts, Volume};
use std::collections::BTreeMap;

/// A volume of a pod, as its object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mention {
    /// Behind the claim of that name.
    Claim(String),
    /// Behind a claim of that name, made for this pod alone.
    Own(String),
    /// Written in the pod.
    Inline(Volume),
    /// Something we cannot do.
    Hold(Hold),
}

/// The volumes of a pod that matter for where it can go.
pub(super) fn read(spec: &At<'_, '_>, pod: &str) -> Vec<Mention> {
    spec.get("volumes").items().filter_map(|at| mention(&at, pod)).collect()
}

/// What the volumes are, by the claims and volumes there are.
pub(super) fn resolve(
    mentions: &[Mention],
    pod: &PodFacts,
    context: &Context,
    holds: &mut Vec<Hold>,
) -> Vec<Volume> {
    let mut out = Vec::new();
    for mention in mentions {
        let found = match mention {
            Mention::Claim(name) => claimed(name, None, pod, context),
            Mention::Own(name) => claimed(name, Some(&pod.uid), pod, context),
            Mention::Inline(volume) => Ok(volume.clone()),
            Mention::Hold(hold) => Err(hold.clone()),
        };
        match found {
            Ok(volume) => out.push(volume),
            Err(hold) => holds.push(hold),
        }
    }
    out
}

/// Disks that some pods cannot share on one node, by rules of their own.
const WITH_RULES: [&str; 4] = ["gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"];

fn mention(at: &At<'_, '_>, pod: &str) -> Option<Mention> {
    let name = at.get("name").string();
    if let Some(claim) = at.get("persistentVolumeClaim").some() {
        return Some(Mention::Claim(claim.get("claimName").string()));
    }
    if at.get("ephemeral").is_set() {
        return Some(Mention::Own(format!("{pod}-{name}")));
    }
    if let Some(kind) = WITH_RULES.into_iter().find(|kind| at.get(kind).is_set()) {
        let what = format!("a {kind} written in the pod (volume {name:?})");
        return Some(Mention::Hold(Hold::Unsupported(what)));
    }
    let (driver, handle) = attach(at)?;
    Some(Mention::Inline(Volume {
        id: format!("{driver}/{handle}").into(),
        driver: Some(driver.into()),
        ..Volume::default()
    }))
}

/// The volume behind a claim; behind one made for this pod, if its identity is given.
fn claimed(name: &str, made_for: Option<&str>, pod: &PodFacts, context: &Context) -> Result<Volume, Hold> {
    let invalid = |problem: &str| Err(Hold::Invalid(format!("PersistentVolumeClaim {name:?} {problem}")));
    let Some(claim) = context.claims.get(&(pod.key.namespace.to_string(), name.to_owned())) else {
        return invalid(if made_for.is_some() { "has not been created yet" } else { "does not exist" });
    };
    match claim.standing {
        Standing::Lost => return invalid("has lost its volume"),
        Standing::Leaving => return invalid("is being deleted"),
        Standing::Waiting | Standing::Bound => {}
    }
    if made_for.is_some_and(|uid| claim.owner.as_deref() != Some(uid)) {
        return invalid("was not made for this pod");
    }
    let Some(bound) = claim.volume.as_ref().filter(|_| claim.standing == Standing::Bound) else {
        let delayed = claim.class.as_ref().and_then(|class| context.storage.get(class)) == Some(&true);
        let why = if delayed && claim.volume.is_none() {
            "delayed volume binding (WaitForFirstConsumer)"
        } else {
            "a volume that is not bound yet"
        };
        return Err(Hold::Unsupported(format!("{why}, of PersistentVolumeClaim {name:?}")));
    };
    let Some(volume) = context.volumes.get(bound) else {
        return invalid(&format!("is bound to PersistentVolume {bound:?}, which does not exist"));
    };
    let id = match &volume.attached {
        Some((driver, handle)) => format!("{driver}/{handle}"),
        None => bound.clone(),
    };
    Ok(Volume {
        id: id.into(),
        driver: volume.attached.as_ref().map(|(driver, _)| driver.as_str().into()),
        reachable: reachable(volume),
        exclusive: claim.exclusive,
    })
}

/// Who attaches the volume of a `PersistentVolume`, and its name there.
pub(crate) fn attached(spec: &At<'_, '_>) -> Option<(String, String)> {
    let csi = spec.get("csi");
    match csi.get("driver").text() {
        Some(driver) => Some((driver.to_owned(), csi.get("volumeHandle").string())),
        None => attach(spec),
    }
}

/// Disks that were built into Kubernetes once, by the driver that attaches them now.
fn attach(spec: &At<'_, '_>) -> Option<(String, String)> {
    let (kind, driver, id) = [
        ("awsElasticBlockStore", "ebs.csi.aws.com", "volumeID"),
        ("azureDisk", "disk.csi.azure.com", "diskURI"),
        ("cinder", "cinder.csi.openstack.org", "volumeID"),
        ("gcePersistentDisk", "pd.csi.storage.gke.io", "pdName"),
        ("vsphereVolume", "csi.vsphere.vmware.com", "volumePath"),
    ]
    .into_iter()
    .find(|(kind, ..)| spec.get(kind).is_set())?;
    Some((driver.to_owned(), spec.get(kind).get(id).string()))
}

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
/// Labels that say where a volume is, and what they are called now.
const PLACES: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    (ZONE, ZONE),
    (REGION, REGION),
];

/// Which nodes reach the volume: those its node affinity allows, and of these
///
/// - those whose zone and region are among the ones in the volume's labels; an old label of the volume is
///   compared with the new one of the node where that lacks the old;
/// - those that have no such label at all: a cluster in one zone need not say so.
fn reachable(volume: &PersistentVolume) -> Required {
    let places = PLACES.iter().filter_map(|(key, now)| alternatives(&volume.labels, key, now));
    // Every way to meet all labels, as alternatives of conditions.
    let located = places.fold(None::<Vec<Vec<Expression>>>, |so_far, here| {
        let so_far = so_far.unwrap_or_else(|| vec![Vec::new()]);
        Some(so_far.iter().flat_map(|a| here.iter().map(move |b| [a.as_slice(), b].concat())).collect())
    });
    let Some(mut located) = located else {
        return Required::new(&BTreeMap::new(), volume.affinity.as_ref());
    };
    located.push(PLACES.iter().map(|(key, _)| condition(key, "DoesNotExist", Vec::new())).collect());
    // A term without conditions matches no node, and must not come to match one by what is added to it.
    let terms = volume.affinity.as_ref().map_or_else(
        || vec![NodeTerm::default()],
        |affinity| {
            affinity.node_selector_terms.iter().filter(|t| **t != NodeTerm::default()).cloned().collect()
        },
    );
    let both = terms.iter().flat_map(|term| {
        located.iter().map(|conditions| NodeTerm {
            match_expressions: [term.match_expressions.as_slice(), conditions].concat(),
            match_fields: term.match_fields.clone(),
        })
    });
    Required::new(&BTreeMap::new(), Some(&NodeSelector { node_selector_terms: both.collect() }))
}

/// How a node can match one label of a volume; none if the volume does not have it, or has nonsense.
fn alternatives(labels: &BTreeMap<String, String>, key: &str, now: &str) -> Option<Vec<Vec<Expression>>> {
    let values: Vec<String> = labels.get(key)?.split("__").map(|v| v.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        return None;
    }
    // What cannot be the value of a label is no node's.
    let values: Vec<String> = values.into_iter().filter(|v| check_value(v).is_ok()).collect();
    if values.is_empty() {
        return Some(Vec::new());
    }
    let mut out = vec![vec![condition(key, "In", values.clone())]];
    if key != now {
        out.push(vec![condition(key, "DoesNotExist", Vec::new()), condition(now, "In", values)]);
    }
    Some(out)
}

fn condition(key: &str, operator: &str, values: Vec<String>) -> Expression {
    Expression { key: key.to_owned(), operator: operator.to_owned(), values }
}
