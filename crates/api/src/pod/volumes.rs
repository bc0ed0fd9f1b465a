//! Which volumes come along with a pod, and where can they be reached?
//!
//! Volumes made on the node itself need nothing. Those behind a claim exist already, if the claim is bound, and say
//! which nodes reach them. A claim that waits for its pod to have a node is handed on: its volume is found, or made,
//! together with the node. What keeps the pod from being placed is told in kube-scheduler's words, and the first that
//! it would find comes first.

use crate::context::{Claim, Context, PersistentVolume, Standing};
use crate::read::At;
use loadline_core::select::label::{Expression, check_value};
use loadline_core::select::node::{NodeSelector, NodeTerm, Required};
use loadline_core::view::volumes::Disk;
use loadline_core::view::{Hold, PodFacts, Volume, Wants};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A volume of a pod, as its object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mention {
    /// Behind the claim of that name.
    Claim(String),
    /// Behind a claim of that name, made for this pod alone.
    Own(String),
    /// Written in the pod: something to attach, a disk with rules of its own, or both.
    Inline(Box<(Option<Volume>, Option<Disk>)>),
}

/// The volumes of a pod that matter for where it can go.
pub(super) fn read(spec: &At<'_, '_>, pod: &str) -> Vec<Mention> {
    spec.get("volumes").items().filter_map(|at| mention(&at, pod)).collect()
}

/// What the volumes of a pod are, by the objects there are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Resolved {
    volumes: Vec<Volume>,
    claims: Vec<Arc<loadline_core::view::volumes::Claim>>,
    exclusive: Vec<Arc<str>>,
    disks: Vec<Disk>,
}

impl Resolved {
    /// Is it what the pod is known to want?
    pub fn is_in(&self, wants: &Wants) -> bool {
        self.volumes == wants.volumes
            && self.claims == wants.claims
            && self.exclusive == wants.exclusive
            && self.disks == wants.disks
    }

    pub fn put(self, wants: &mut Wants) {
        (wants.volumes, wants.claims) = (self.volumes, self.claims);
        (wants.exclusive, wants.disks) = (self.exclusive, self.disks);
    }
}

/// In which order what is wrong is found, over all claims of a pod.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Missing,
    Unfit,
    Unbound,
    WithoutVolume,
}

/// What the volumes are, by the claims and volumes there are.
pub(super) fn resolve(
    mentions: &[Mention],
    pod: &PodFacts,
    context: &Context,
    holds: &mut Vec<Hold>,
) -> Resolved {
    let mut out = Resolved::default();
    let mut problems: Vec<(Found, String)> = Vec::new();
    for mention in mentions {
        let (name, made_for) = match mention {
            Mention::Claim(name) => (name, None),
            Mention::Own(name) => (name, Some(&*pod.uid)),
            Mention::Inline(written) => {
                out.volumes.extend(written.0.clone());
                out.disks.extend(written.1.clone());
                continue;
            }
        };
        let Some(claim) = context.claims.get(&(pod.key.namespace.to_string(), name.to_owned())) else {
            problems.push(match made_for {
                None => (Found::Missing, format!("persistentvolumeclaim {name:?} not found")),
                Some(_) => (
                    Found::Unfit,
                    format!(
                        "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                    ),
                ),
            });
            continue;
        };
        let known: Arc<str> = format!("{}/{name}", pod.key.namespace).into();
        if claim.exclusive && made_for.is_none() && !out.exclusive.contains(&known) {
            out.exclusive.push(known);
        }
        problems.extend(out.claimed(claim, made_for, pod, context).err());
    }
    problems.sort_by_key(|(found, _)| *found);
    holds.extend(problems.into_iter().map(|(_, what)| Hold::Claim(what)));
    out
}

impl Resolved {
    /// Adds what is behind a claim that is there; one made for this pod, if its identity is given.
    fn claimed(
        &mut self,
        claim: &Claim,
        made_for: Option<&str>,
        pod: &PodFacts,
        context: &Context,
    ) -> Result<(), (Found, String)> {
        let class = claim.class.as_ref().and_then(|class| context.storage.get(class));
        let volume = claim.volume.as_ref().and_then(|name| context.volumes.get(name));
        // It counts for who attaches it whether it is bound or not.
        match volume {
            Some(volume) => self.volumes.push(found(volume)),
            None => self.volumes.extend(class.and_then(|class| {
                let driver = attacher(class.offer.provisioner.as_deref()?);
                let id = format!("{driver}/unbound {}/{}", claim.namespace, claim.name);
                Some(Volume { id: id.into(), driver: Some(driver.into()), ..Volume::default() })
            })),
        }
        let name = &claim.name;
        let bound = claim.volume.as_ref().filter(|_| claim.standing == Standing::Bound);
        let problem = match claim.standing {
            Standing::Lost => {
                let volume = claim.volume.as_deref().unwrap_or_default();
                Some(format!(
                    "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
                ))
            }
            Standing::Leaving => Some(format!("persistentvolumeclaim {name:?} is being deleted")),
            Standing::Waiting | Standing::Bound => {
                let foreign = made_for.is_some_and(|uid| claim.owner.as_deref() != Some(uid));
                foreign.then(|| {
                    let (space, key) = (&claim.namespace, &pod.key);
                    format!("PVC {space}/{name} was not created for pod {key} (pod is not owner)")
                })
            }
        };
        if let Some(problem) = problem {
            return Err((Found::Unfit, problem));
        }
        match (bound, volume) {
            (Some(_), Some(_)) => Ok(()),
            (Some(bound), None) => {
                Err((Found::WithoutVolume, format!("persistentvolume {bound:?} not found")))
            }
            (None, _) if claim.volume.is_none() && class.is_some_and(|class| class.delayed) => {
                // Mentioned twice it is still one claim.
                if !self.claims.iter().any(|known| known.key == claim.asks.key) {
                    self.claims.push(claim.asks.clone());
                }
                Ok(())
            }
            (None, _) => Err((Found::Unbound, "pod has unbound immediate PersistentVolumeClaims".to_owned())),
        }
    }
}

/// A volume that is there.
fn found(volume: &PersistentVolume) -> Volume {
    let id = match &volume.attached {
        Some((driver, handle)) => format!("{driver}/{handle}"),
        None => volume.name.clone(),
    };
    Volume {
        id: id.into(),
        driver: volume.attached.as_ref().map(|(driver, _)| driver.as_str().into()),
        reachable: volume.offer.reachable.clone(),
        zones: zones(volume),
    }
}

fn mention(at: &At<'_, '_>, pod: &str) -> Option<Mention> {
    if let Some(claim) = at.get("persistentVolumeClaim").some() {
        return Some(Mention::Claim(claim.get("claimName").string()));
    }
    if at.get("ephemeral").is_set() {
        return Some(Mention::Own(format!("{pod}-{}", at.get("name").string())));
    }
    let volume = attach(at).map(|(driver, handle)| Volume {
        id: format!("{driver}/{handle}").into(),
        driver: Some(driver.into()),
        ..Volume::default()
    });
    let disk = disk(at);
    (volume.is_some() || disk.is_some()).then(|| Mention::Inline(Box::new((volume, disk))))
}

/// Disks that some pods cannot share on one node, by rules of their own.
fn disk(at: &At<'_, '_>) -> Option<Disk> {
    let one = |kind: &str, field: &str| {
        let disk = at.get(kind).some()?;
        let addresses = vec![disk.get(field).shared()];
        // What Amazon attaches nobody shares.
        let shared = kind != "awsElasticBlockStore" && disk.get("readOnly").flag();
        Some(Disk { name: kind.into(), addresses, shared })
    };
    let ceph = || {
        let disk = at.get("rbd").some()?;
        let pool = disk.get("pool").text().unwrap_or("rbd").to_owned();
        Some(Disk {
            name: format!("rbd {pool}/{}", disk.get("image").string()).into(),
            addresses: disk.get("monitors").items().map(|at| at.shared()).collect(),
            shared: disk.get("readOnly").flag(),
        })
    };
    one("gcePersistentDisk", "pdName")
        .or_else(|| one("awsElasticBlockStore", "volumeID"))
        .or_else(|| one("iscsi", "iqn"))
        .or_else(ceph)
}

/// Who attaches the volume of a `PersistentVolume`, and its name there.
pub(crate) fn attached(spec: &At<'_, '_>) -> Option<(String, String)> {
    let csi = spec.get("csi");
    match csi.get("driver").text() {
        Some(driver) => Some((driver.to_owned(), csi.get("volumeHandle").string())),
        None => attach(spec),
    }
}

/// The driver that attaches what a provisioner makes; those once built in have successors.
fn attacher(provisioner: &str) -> &str {
    match provisioner {
        "kubernetes.io/aws-ebs" => "ebs.csi.aws.com",
        "kubernetes.io/azure-disk" => "disk.csi.azure.com",
        "kubernetes.io/cinder" => "cinder.csi.openstack.org",
        "kubernetes.io/gce-pd" => "pd.csi.storage.gke.io",
        "kubernetes.io/vsphere-volume" => "csi.vsphere.vmware.com",
        other => other,
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

/// Which nodes are where the volume is, by its labels:
///
/// - those whose zone and region are among the ones in the volume's labels; an old label of the volume is
///   compared with the new one of the node where that lacks the old;
/// - those that have no such label at all: a cluster in one zone need not say so.
fn zones(volume: &PersistentVolume) -> Required {
    let places = PLACES.iter().filter_map(|(key, now)| alternatives(&volume.labels, key, now));
    // Every way to meet all labels, as alternatives of conditions.
    let located = places.fold(None::<Vec<Vec<Expression>>>, |so_far, here| {
        let so_far = so_far.unwrap_or_else(|| vec![Vec::new()]);
        Some(so_far.iter().flat_map(|a| here.iter().map(move |b| [a.as_slice(), b].concat())).collect())
    });
    let Some(mut located) = located else { return Required::default() };
    located.push(PLACES.iter().map(|(key, _)| condition(key, "DoesNotExist", Vec::new())).collect());
    let terms = located
        .into_iter()
        .map(|match_expressions| NodeTerm { match_expressions, match_fields: Vec::new() })
        .collect();
    Required::new(&BTreeMap::new(), Some(&NodeSelector { node_selector_terms: terms }))
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
