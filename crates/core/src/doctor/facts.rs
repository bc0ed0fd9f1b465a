//! What was read, at one moment?

use super::permissions::{Component, Permission};
use crate::ledger::Sample;
use crate::load::join::Series;
use crate::load::policy::Rules;
use crate::load::recommend::Recommendation;
use crate::object::Key;
use crate::qos::policy::Policy;
use crate::view::NodeFacts;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The account may not.
    Denied,
    /// Nobody serves it.
    Missing,
    /// Nobody answers, or not in time, or not as one should.
    Failed,
}

/// A read that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub why: Why,
    /// What was said, or went wrong on the way.
    pub message: String,
}

/// What came of a read.
#[derive(Clone, Debug, Default)]
pub enum Known<T> {
    /// Nobody asked.
    #[default]
    Unasked,
    Failed(Failed),
    Read(T),
}

impl<T> Known<T> {
    /// What was read, if it was.
    #[must_use]
    pub fn read(&self) -> Option<&T> {
        match self {
            Self::Read(value) => Some(value),
            Self::Unasked | Self::Failed(_) => None,
        }
    }

    /// Why it was not read, if it was asked for.
    #[must_use]
    pub fn failed(&self) -> Option<&Failed> {
        match self {
            Self::Failed(failed) => Some(failed),
            Self::Unasked | Self::Read(_) => None,
        }
    }
}

impl<T> From<Result<T, Failed>> for Known<T> {
    fn from(result: Result<T, Failed>) -> Self {
        result.map_or_else(Self::Failed, Self::Read)
    }
}

/// Everything that was read, and by what it is judged.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The time here.
    pub now: Timestamp,
    /// Is it asked whether Loadline can be installed, rather than how it does?
    pub preflight: bool,
    /// Components that are not to be installed.
    pub without: BTreeSet<Component>,
    /// The load policy that is meant to hold.
    pub rules: Rules,
    pub server: Known<Server>,
    pub nodes: Known<Vec<Node>>,
    /// What the metrics API says of nodes, by name.
    pub metrics: Known<Vec<(String, Sample)>>,
    pub leases: Known<Vec<Lease>>,
    /// Of the kinds in [`super::KINDS`] those that are there.
    pub definitions: Known<Vec<Definition>>,
    pub recommendations: Known<Vec<Recommendation>>,
    /// What agents were asked for.
    pub lines: Known<Policy>,
    /// Deployments and daemon sets.
    pub workloads: Known<Vec<Workload>>,
    /// What the accounts of components in the cluster may or may not do.
    pub permissions: Known<Vec<Permission>>,
    /// The same of the account that asks, where it is to run a component.
    pub own: Known<Vec<Permission>>,
    pub prometheus: Known<Prometheus>,
    pub certificates: Vec<Certificate>,
}

/// An API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Such as `v1.34.2`.
    pub version: String,
    /// Major and minor; none if they are no numbers.
    pub number: Option<(u32, u32)>,
    /// What its clock said, if it told, and what ours said half-way between question and answer.
    pub clock: Option<(Timestamp, Timestamp)>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub facts: NodeFacts,
    /// By what it is reached within the cluster.
    pub addresses: Vec<Arc<str>>,
    /// As it says; none if it does not.
    pub ready: Option<bool>,
    pub created: Option<Timestamp>,
    /// Until when it is to be left alone, as its cooling mark says.
    pub cooling: Option<Timestamp>,
    /// Does its agent say that it interferes? None if nobody said.
    pub interference: Option<bool>,
}

/// By how much clocks seem to differ by the resolution of a `Date` header and the way of an answer, and a bit more.
pub(super) const NEAR: SignedDuration = SignedDuration::from_secs(5);

/// How long a node may take until it is measured everywhere.
const YOUNG: SignedDuration = SignedDuration::from_mins(5);

impl Node {
    pub(super) fn name(&self) -> &str {
        &self.facts.name
    }

    /// Has it just come?
    fn is_young(&self, now: Timestamp) -> bool {
        self.created.is_some_and(|at| now.duration_since(at) <= YOUNG)
    }
}

impl Facts {
    /// Of which nodes is it to be expected that they are measured? Not of one that is down, or that has just come, unless
    /// all have.
    pub(super) fn expects(&self) -> impl Fn(&Node) -> bool + use<> {
        let now = self.now;
        let all_young = self.nodes.read().into_iter().flatten().all(|node| node.is_young(now));
        move |node| node.ready != Some(false) && (all_young || !node.is_young(now))
    }
}

impl Facts {
    /// What time it is by the API server's clock, if that is told and not nearly the one here.
    pub(super) fn by_server(&self) -> Option<Timestamp> {
        let (theirs, ours) = self.server.read()?.clock?;
        let off = theirs.duration_since(ours);
        if off.abs() <= NEAR { None } else { self.now.checked_add(off).ok() }
    }
}

/// A lease: a node says that it lives, or one of several that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub key: Key,
    pub holder: Option<String>,
    pub renewed: Option<Timestamp>,
    pub seconds: Option<i64>,
}

impl Lease {
    /// Where nodes have theirs.
    const NODES: &str = "kube-node-lease";

    pub(super) fn is_of_node(&self) -> bool {
        &*self.key.namespace == Self::NODES
    }

    /// Does its holder still renew it? Twice the time it is good for is left for clocks that differ.
    pub(super) fn is_held(&self, now: Timestamp) -> bool {
        let good = SignedDuration::from_secs(self.seconds.unwrap_or(15).max(1).saturating_mul(2));
        self.holder.is_some() && self.renewed.is_some_and(|at| now.duration_since(at) <= good)
    }
}

/// A `CustomResourceDefinition`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Such as `nodeqoss.ensurance.crane.io`.
    pub name: String,
    /// The versions it serves.
    pub served: Vec<String>,
    pub established: bool,
    /// What its conditions say against it, if anything.
    pub trouble: Option<String>,
}

/// Something that runs containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Such as `Deployment`.
    pub kind: String,
    pub key: Key,
    /// How many pods it wants.
    pub replicas: i64,
    /// Its service account.
    pub account: String,
    pub images: Vec<String>,
    /// The command and arguments of each container.
    pub words: Vec<Vec<String>>,
}

/// What one Prometheus knows.
#[derive(Clone, Debug, Default)]
pub struct Prometheus {
    /// Where it is, for commands.
    pub address: String,
    /// What was answered for each metric of the policy.
    pub asked: Vec<Asked>,
    /// The recording rules it has, and what they read.
    pub rules: Known<Vec<Recorded>>,
    /// How often each job is scraped.
    pub jobs: Known<BTreeMap<String, SignedDuration>>,
}

/// What was answered for one metric.
#[derive(Clone, Debug)]
pub struct Asked {
    pub metric: Arc<str>,
    /// What was asked.
    pub query: String,
    /// Is it a series by its name, rather than an expression?
    pub is_series: bool,
    pub answer: Result<Vec<Series>, String>,
    /// Series without any label that names a node.
    pub unlabelled: usize,
}

/// A recording rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub name: String,
    /// How often it is evaluated.
    pub every: SignedDuration,
    pub reads: Vec<Ranged>,
}

/// A series that a rule reads over some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranged {
    pub metric: String,
    pub range: SignedDuration,
    /// The jobs that bring it; none for what rules make, and where it is not known.
    pub jobs: Vec<String>,
}

/// A certificate, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Where it is from: an address or a file.
    pub from: String,
    /// From when to when it is good.
    pub good: Result<(Timestamp, Timestamp), String>,
}
