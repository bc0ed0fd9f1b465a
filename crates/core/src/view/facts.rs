//! What is known of nodes and pods, read from their objects once, before they have a number.

use super::Labels;
use super::images::{ImageName, Images};
use super::volumes::{Claim, Disk};
use crate::load::estimate::Asks;
use crate::object::Key;
use crate::requests::NonZero;
use crate::resources::List;
use crate::select::node::{Preferred, Required};
use crate::select::{Lookup, Selector, Taint, Toleration};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who made a pod and would make it again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The API group, such as `apps`; empty for the core group.
    pub group: Arc<str>,
    /// `ReplicaSet`, `DaemonSet`, `Job`, …
    pub kind: Arc<str>,
    pub name: Arc<str>,
    pub uid: Arc<str>,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Not all containers run yet.
    #[default]
    Pending,
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// The node does not say.
    Unknown,
}

impl Phase {
    /// Is it over? Then the pod holds no resources.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// Which other pods, and how near is "together": one term of an affinity between pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodTerm {
    /// Pods of these namespaces; the pod's own is already among them if the term named none.
    pub namespaces: Vec<Arc<str>>,
    /// And of namespaces with such labels. A selector without conditions means every namespace.
    pub namespace_selector: Option<Selector>,
    /// Pods with such labels.
    pub selector: Selector,
    /// Nodes with the same value of this label are one place.
    pub topology_key: Arc<str>,
}

impl PodTerm {
    /// Does the term speak of pods of that namespace?
    pub fn covers<L: Lookup + ?Sized>(&self, namespace: &str, namespace_labels: &L) -> bool {
        self.namespaces.iter().any(|n| &**n == namespace)
            || self.namespace_selector.as_ref().is_some_and(|s| s.matches(namespace_labels))
    }
}

/// A liking for, or a dislike of, places where other pods are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodAffinity {
    /// Every one must hold.
    pub required: Vec<PodTerm>,
    /// Each adds its weight, 1 to 100.
    pub preferred: Vec<(i64, PodTerm)>,
}

impl PodAffinity {
    /// Does it say nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }
}

/// How evenly pods like this one are to be spread over places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many more one place may have than another.
    pub max_skew: i64,
    /// Nodes with the same value of this label are one place.
    pub topology_key: Arc<str>,
    /// Must it hold (`DoNotSchedule`), or is it liked (`ScheduleAnyway`)?
    pub hard: bool,
    /// Which pods are counted; `matchLabelKeys` are already in it.
    pub selector: Selector,
    /// With fewer places than this, the emptiest counts as holding none.
    pub min_domains: Option<i64>,
    /// Do only nodes count that the pod's node selector and affinity allow (`nodeAffinityPolicy: Honor`)?
    pub honor_affinity: bool,
    /// Do only nodes count whose taints the pod tolerates (`nodeTaintsPolicy: Honor`)?
    pub honor_taints: bool,
}

/// A port taken on the node itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// The address; empty or `0.0.0.0` for every one.
    pub ip: String,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The number.
    pub port: i32,
}

impl HostPort {
    /// Can the two not be on one node?
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        let any = |ip: &str| ip.is_empty() || ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (any(&self.ip) || any(&other.ip) || self.ip == other.ip)
    }
}

/// A volume that must come along. One that does not exist yet is there to be counted: it can be reached anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// What makes it this volume and no other; pods that share it attach it once.
    pub id: Arc<str>,
    /// Who attaches it, if attachments are counted.
    pub driver: Option<Arc<str>>,
    /// Which nodes can reach it.
    pub reachable: Required,
    /// Which nodes are in its zone.
    pub zones: Required,
}

/// Why a pod is not to be scheduled at all, whatever the nodes are like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Hold {
    /// Somebody holds it back by a scheduling gate of this name.
    Gate(String),
    /// It needs something we do not do; the text names it.
    Unsupported(String),
    /// It asks for something that is not there or not valid; the text says what.
    Invalid(String),
    /// A claim it uses is not there, or not ready for it; the text says so as kube-scheduler does.
    Claim(String),
}

/// What a pod wants of its node. Replicas share one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// What it demands of the node.
    pub required: Required,
    /// What it likes about nodes.
    pub preferred: Preferred,
    /// What it puts up with.
    pub tolerations: Vec<Toleration>,
    /// Near which pods.
    pub affinity: PodAffinity,
    /// Away from which pods.
    pub anti_affinity: PodAffinity,
    /// How evenly.
    pub spread: Vec<Spread>,
    /// Which ports of the node.
    pub ports: Vec<HostPort>,
    /// With which volumes.
    pub volumes: Vec<Volume>,
    /// Claims that get a volume where it goes; each once.
    pub claims: Vec<Arc<Claim>>,
    /// Claims only one pod in the cluster may use (`ReadWriteOncePod`), as `namespace/name`.
    pub exclusive: Vec<Arc<str>>,
    /// Disks some pods cannot share.
    pub disks: Vec<Disk>,
    /// Why not at all.
    pub holds: Vec<Hold>,
    /// Made of what; only pods that have no node yet are asked.
    pub images: Images,
}

impl Wants {
    /// Does it have volumes that matter for where it can go?
    #[must_use]
    pub fn has_volumes(&self) -> bool {
        !(self.volumes.is_empty()
            && self.claims.is_empty()
            && self.exclusive.is_empty()
            && self.disks.is_empty())
    }
}

/// What is known of a node.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// Is it cordoned?
    pub unschedulable: bool,
    /// What it has for pods.
    pub allocatable: List,
    /// What it has in all.
    pub capacity: List,
    /// How many volumes each driver can attach.
    pub attach_limits: BTreeMap<String, i64>,
    /// What it has been running, with sizes in bytes.
    pub images: Vec<(ImageName, i64)>,
}

/// What is known of a pod.
#[derive(Clone, Debug, Default)]
pub struct PodFacts {
    pub key: Key,
    /// Its identity; empty if not known.
    pub uid: Arc<str>,
    pub labels: BTreeMap<String, String>,
    /// Its effective requests, see [`crate::requests`].
    pub requests: List,
    /// What it counts as when scoring.
    pub nonzero: NonZero,
    /// What its load can be foretold from.
    pub asks: Arc<Asks>,
    pub priority: i32,
    /// May lower ones be evicted for it?
    pub preempts: bool,
    pub owner: Option<Owner>,
    /// Does a `DaemonSet` own it?
    pub daemon: bool,
    /// Where it is in its life.
    pub phase: Phase,
    /// Is it being deleted?
    pub terminating: bool,
    /// Since when it exists.
    pub created: Option<jiff::Timestamp>,
    /// Since when its node has known of it; none before that. Restarts do not change it.
    pub accepted: Option<jiff::Timestamp>,
    /// Since when all its containers and sidecars have been running: the latest first start. Far back
    /// ([`jiff::Timestamp::MIN`]) for those that have been restarted; none while one has never started.
    pub started: Option<jiff::Timestamp>,
    pub node: Option<String>,
    /// The node others were evicted from for it.
    pub nominated: Option<String>,
    /// What it wants of its node.
    pub wants: Arc<Wants>,
}

/// How many of some pods may be disrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub key: Key,
    /// Which pods; one without conditions means all of the namespace.
    pub selector: Selector,
    /// How many more may go now.
    pub allowed: i64,
    /// Pods already on their way out, by name: they are not counted again.
    pub disrupted: Vec<Arc<str>>,
}

/// A namespace and its labels, for terms that choose namespaces by label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceFacts {
    pub name: Arc<str>,
    pub labels: Labels,
}
