//! What does a pod really ask for? Effective requests and limits of a whole pod.
//!
//! Per resource, in this order:
//!
//! 1. Containers run together, so they add up.
//! 2. Sidecars (init containers that restart always) keep running, so they add to the containers.
//! 3. While an init container runs, it and the sidecars started before it are there: the pod needs at least
//!    the largest such sum.
//! 4. What the pod asks for as a whole replaces the result, for CPU, memory and huge pages.
//! 5. The overhead of the sandbox comes on top; on limits only where there is one.
//!
//! While a resize is under way a container counts with the largest of what is written (spec), granted
//! (allocated) and in force (actual). If the node can never grant the resize (`Infeasible`), what is written
//! does not count. Limits know only written and in force.
//!
//! The structs mirror the few fields of a Pod that matter, under their JSON names.

use crate::quantity::Quantity;
use crate::resources::List;
use crate::wire::or_default;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A pod, as far as its resources go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// What is wanted.
    #[serde(deserialize_with = "or_default")]
    pub spec: Spec,
    /// What is.
    #[serde(deserialize_with = "or_default")]
    pub status: Status,
}

/// The wanted containers and resources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Spec {
    /// Containers that run together.
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    /// Containers that run before, and sidecars, in start order.
    #[serde(deserialize_with = "or_default")]
    pub init_containers: Vec<Container>,
    /// Resources of the pod as a whole.
    pub resources: Option<Requirements>,
    /// What the sandbox around the containers costs.
    #[serde(deserialize_with = "or_default")]
    pub overhead: List,
}

/// One wanted container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Its name, which its status repeats.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it asks for.
    #[serde(deserialize_with = "or_default")]
    pub resources: Requirements,
    /// `Always` makes a sidecar of an init container.
    pub restart_policy: Option<String>,
}

impl Container {
    fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirements {
    /// What is set aside.
    #[serde(deserialize_with = "or_default")]
    pub requests: List,
    /// What may not be exceeded.
    #[serde(deserialize_with = "or_default")]
    pub limits: List,
}

/// What the node reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// One per container, found by name.
    #[serde(deserialize_with = "or_default")]
    pub container_statuses: Vec<ContainerStatus>,
    /// One per init container.
    #[serde(deserialize_with = "or_default")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Where a pending resize is told.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<Condition>,
    /// In force for the pod as a whole.
    pub resources: Option<Requirements>,
    /// Granted to the pod as a whole.
    #[serde(deserialize_with = "or_default")]
    pub allocated_resources: List,
}

/// What the node reports of one container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Which container.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// In force.
    pub resources: Option<Requirements>,
    /// Granted.
    #[serde(deserialize_with = "or_default")]
    pub allocated_resources: List,
}

/// A condition of the pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// What it is about.
    #[serde(deserialize_with = "or_default", rename = "type")]
    pub kind: String,
    /// Why it is so.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
}

/// What resources of the pod as a whole do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodLevel {
    /// They are not looked at (before Kubernetes 1.34).
    Ignored,
    /// They replace the sum of the containers, as written (1.34 and 1.35).
    Written,
    /// The same, and they can be resized in place (1.36).
    #[default]
    Resizable,
}

/// Where amounts may come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Only what is written in the spec.
    Spec,
    /// Also what the status reports, for resizes in place.
    #[default]
    SpecAndStatus,
}

/// Whether the sandbox counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overhead {
    /// It does.
    #[default]
    Included,
    /// It does not.
    Excluded,
}

/// How to count. The default is what the scheduler of Kubernetes 1.36 does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Spec alone or status too.
    pub source: Source,
    /// The pod as a whole.
    pub pod_level: PodLevel,
    /// The sandbox.
    pub overhead: Overhead,
}

impl Options {
    fn resizes_pod(self) -> bool {
        self.source == Source::SpecAndStatus && self.pod_level == PodLevel::Resizable
    }
}

/// What a pod counts as when scores are computed: every container that does not ask for CPU or memory is
/// taken to need a little, so that such pods spread, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZero {
    /// CPU in thousandths.
    pub cpu_milli: i64,
    pub memory_bytes: i64,
}

impl NonZero {
    /// The sum, held within `i64`.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_add(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }

    /// The difference, held within `i64`.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            cpu_milli: self.cpu_milli.saturating_sub(other.cpu_milli),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes),
        }
    }
}

/// What a container that does not say is taken to need when scoring.
pub const ASSUMED: NonZero = NonZero { cpu_milli: 100, memory_bytes: 200 << 20 };

/// Amounts while they are added up: their names stay where they are.
pub(crate) type Sum<'a> = BTreeMap<&'a str, Quantity>;

/// The requests of the whole pod.
#[must_use]
pub fn requests(pod: &Pod, rules: Options) -> List {
    owned(effective(pod, rules))
}

/// The same, for who only looks.
pub(crate) fn effective(pod: &Pod, rules: Options) -> Sum<'_> {
    requests_assuming(pod, rules, &[])
}

/// The limits of the whole pod. A resource without an entry is not limited.
#[must_use]
pub fn limits(pod: &Pod, rules: Options) -> List {
    let count = Count { kind: Kind::Limits, pod, rules, assumed: &[] };
    let mut total = count.containers();
    if let (true, Some(whole)) = (rules.pod_level != PodLevel::Ignored, &pod.spec.resources) {
        replace(&mut total, &whole.limits, count.pod_in_force(whole).as_ref());
    }
    if rules.overhead == Overhead::Included {
        for (name, extra) in &pod.spec.overhead {
            if let Some(limit) = total.get_mut(name.as_str()).filter(|limit| !limit.is_zero()) {
                *limit = limit.plus(*extra);
            }
        }
    }
    owned(total)
}

/// The requests for scoring: with [`ASSUMED`] amounts where a container says nothing, unless the pod as a
/// whole already does.
#[must_use]
pub fn nonzero(pod: &Pod, rules: Options) -> NonZero {
    let whole = rules.pod_level != PodLevel::Ignored && pod_level(pod).is_some();
    let said = if whole { effective(pod, rules) } else { Sum::new() };
    let mut assumed = vec![
        ("cpu", Quantity::from_milli(ASSUMED.cpu_milli)),
        ("memory", Quantity::new(ASSUMED.memory_bytes, crate::quantity::Format::DecimalSi)),
    ];
    assumed.retain(|(name, _)| !said.contains_key(name));
    let total = requests_assuming(pod, rules, &assumed);
    NonZero {
        cpu_milli: total.get("cpu").map_or(0, Quantity::milli_value),
        memory_bytes: total.get("memory").map_or(0, Quantity::value),
    }
}

fn requests_assuming<'a>(pod: &'a Pod, rules: Options, assumed: &[(&'a str, Quantity)]) -> Sum<'a> {
    let count = Count { kind: Kind::Requests, pod, rules, assumed };
    let mut total = count.containers();
    if rules.pod_level != PodLevel::Ignored
        && let Some(whole) = pod_level(pod)
    {
        replace(&mut total, &whole.requests, count.pod_in_force(whole).as_ref());
    }
    if rules.overhead == Overhead::Included {
        add(&mut total, borrowed(&pod.spec.overhead));
    }
    total
}

fn borrowed(list: &List) -> impl Iterator<Item = (&str, Quantity)> {
    list.iter().map(|(name, amount)| (name.as_str(), *amount))
}

fn owned(sum: Sum<'_>) -> List {
    let mut out = List::new();
    out.extend(sum.into_iter().map(|(name, amount)| (name.to_owned(), amount)));
    out
}

/// The resources of the pod as a whole, if they request something that can be requested so.
fn pod_level(pod: &Pod) -> Option<&Requirements> {
    pod.spec.resources.as_ref().filter(|whole| whole.requests.keys().any(|name| is_pod_level(name)))
}

/// Can this be asked for by a pod as a whole?
fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn replace<'a>(total: &mut Sum<'a>, written: &'a List, in_force: Option<&Sum<'a>>) {
    for (name, amount) in borrowed(written).filter(|(name, _)| is_pod_level(name)) {
        // What is written but not in force counts as nothing, yet stays mentioned.
        let amount = in_force.map_or(amount, |sum| sum.get(name).copied().unwrap_or_default());
        total.insert(name, amount);
    }
}

/// Will the node never grant the pending resize? The first such condition decides.
fn is_infeasible(pod: &Pod) -> bool {
    let pending = pod.status.conditions.iter().find(|c| c.kind == "PodResizePending");
    pending.is_some_and(|c| c.reason == "Infeasible")
}

#[derive(Clone, Copy)]
enum Kind {
    Requests,
    Limits,
}

impl Kind {
    fn of(self, from: &Requirements) -> &List {
        match self {
            Self::Requests => &from.requests,
            Self::Limits => &from.limits,
        }
    }
}

/// One way of adding up one pod.
struct Count<'a, 's> {
    kind: Kind,
    pod: &'a Pod,
    rules: Options,
    /// Stands in for what a container does not mention.
    assumed: &'s [(&'a str, Quantity)],
}

impl<'a> Count<'a, '_> {
    fn containers(&self) -> Sum<'a> {
        let reported = self.reported();
        let mut total = Sum::new();
        for container in &self.pod.spec.containers {
            add(&mut total, self.container(container, reported.get(container.name.as_str()).copied()));
        }
        let (mut sidecars, mut starting) = (Sum::new(), Sum::new());
        for container in &self.pod.spec.init_containers {
            if container.is_sidecar() {
                let own = self.container(container, reported.get(container.name.as_str()).copied());
                add(&mut total, own.clone());
                add(&mut sidecars, own);
            } else {
                // An init container that ends cannot be resized: its status does not matter.
                let mut own = self.container(container, None);
                add(&mut own, sidecars.clone());
                raise(&mut starting, own);
            }
        }
        raise(&mut total, starting);
        total
    }

    fn reported(&self) -> BTreeMap<&'a str, &'a ContainerStatus> {
        let status = &self.pod.status;
        let all = status.container_statuses.iter().chain(&status.init_container_statuses);
        let mut out = BTreeMap::new();
        if self.rules.source == Source::SpecAndStatus {
            out.extend(all.map(|s| (s.name.as_str(), s)));
        }
        out
    }

    fn container(&self, container: &'a Container, reported: Option<&'a ContainerStatus>) -> Sum<'a> {
        let written = self.kind.of(&container.resources);
        let mut own = match reported.and_then(|s| Some((s.resources.as_ref()?, &s.allocated_resources))) {
            Some((actual, granted)) => self.in_force(written, self.kind.of(actual), granted),
            None => sum(written),
        };
        for (name, amount) in self.assumed {
            own.entry(name).or_insert(*amount);
        }
        own
    }

    fn pod_in_force(&self, whole: &'a Requirements) -> Option<Sum<'a>> {
        let actual = self.pod.status.resources.as_ref().filter(|_| self.rules.resizes_pod())?;
        let granted = &self.pod.status.allocated_resources;
        Some(self.in_force(self.kind.of(whole), self.kind.of(actual), granted))
    }

    fn in_force(&self, written: &'a List, actual: &'a List, granted: &'a List) -> Sum<'a> {
        let mut out = if is_infeasible(self.pod) { Sum::new() } else { sum(written) };
        raise(&mut out, borrowed(actual));
        if matches!(self.kind, Kind::Requests) {
            raise(&mut out, borrowed(granted));
        }
        out
    }
}

fn sum(list: &List) -> Sum<'_> {
    let mut out = Sum::new();
    out.extend(borrowed(list));
    out
}

fn add<'a>(total: &mut Sum<'a>, more: impl IntoIterator<Item = (&'a str, Quantity)>) {
    for (name, amount) in more {
        total.entry(name).and_modify(|have| *have = have.plus(amount)).or_insert(amount);
    }
}

fn raise<'a>(total: &mut Sum<'a>, other: impl IntoIterator<Item = (&'a str, Quantity)>) {
    for (name, amount) in other {
        // On a tie what was there stays, and with it its style.
        let have = total.entry(name).or_insert(amount);
        if amount > *have {
            *have = amount;
        }
    }
}
