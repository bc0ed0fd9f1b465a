//! What is known of a pod?

mod images;
mod resources;
mod skip;
mod start;
pub(crate) mod volumes;
mod wants;

pub(crate) use skip::CONTAINERS;
pub use skip::{SKIP, SKIP_BUT_BINDING, SKIP_VOLUMES};

use crate::context::{Context, key};
use crate::json::Tree;
use crate::read::{At, Error, Warning, controller, tolerant};
use jiff::Timestamp;
use loadline_core::load::estimate::Asks;
use loadline_core::object::Key;
use loadline_core::requests::{self, Options};
use loadline_core::resources::List;
use loadline_core::view::{Hold, PodFacts};
use std::sync::Arc;
use volumes::Mention;

/// The facts of a Pod, with what the objects it refers to say.
///
/// What keeps the pod from being placed, but not from being counted, is a [`Hold`] and no error: a claim that is
/// missing, a demand that cannot be met, a feature we do not have.
///
/// # Errors
/// When the object is not what it should be.
pub fn facts(value: &Tree<'_>, context: &Context) -> Result<(PodFacts, Vec<Warning>), Error> {
    let (mut pod, warnings) = read(value)?;
    pod.resolve(context);
    Ok((pod.facts, warnings))
}

/// A Pod as its object says, and what it refers to. That can be looked up again when the others change, without the
/// object.
#[derive(Clone, Debug)]
pub struct Pod {
    /// Without priority, volumes and what holds it until it is resolved.
    pub facts: PodFacts,
    /// What holds it, before and after what its priority class may add.
    holds: [Vec<Hold>; 2],
    priority: Priority,
    volumes: Vec<Mention>,
    /// Who is to place it.
    pub scheduler: String,
    /// Counts changes of what is wanted.
    pub generation: i64,
    /// Why it has no node, as it was told last.
    pub unschedulable: Option<String>,
}

impl Pod {
    /// Is it held by a gate somebody closed?
    #[must_use]
    pub fn is_gated(&self) -> bool {
        self.holds.iter().flatten().any(|hold| matches!(hold, Hold::Gate(_)))
    }

    /// The names of the claims it uses, in its namespace.
    pub fn claims(&self) -> impl Iterator<Item = &str> {
        self.volumes.iter().filter_map(|mention| match mention {
            Mention::Claim(name) | Mention::Own(name) => Some(name.as_str()),
            Mention::Inline(..) => None,
        })
    }

    /// Works out what it means, by the objects there are. May be done again.
    pub fn resolve(&mut self, context: &Context) {
        let [mut holds, late] = self.holds.clone();
        let facts = &mut self.facts;
        (facts.priority, facts.preempts) = self.priority.resolve(context, &mut holds);
        holds.extend(late);
        let volumes = volumes::resolve(&self.volumes, facts, context, &mut holds);
        if facts.wants.holds != holds || !volumes.is_in(&facts.wants) {
            let wants = Arc::make_mut(&mut facts.wants);
            volumes.put(wants);
            wants.holds = holds;
        }
    }
}

/// The node a Pod was bound to, and when; `None` if it was not, or nobody says when. The API server writes both at once.
#[must_use]
pub fn bound(value: &Tree<'_>) -> Option<(String, Timestamp)> {
    let node = value["spec"]["nodeName"].as_str().filter(|name| !name.is_empty())?;
    let conditions = value["status"]["conditions"].as_array()?;
    let scheduled = conditions.iter().find(|c| c["type"].as_str() == Some("PodScheduled"))?;
    (scheduled["status"].as_str() == Some("True")).then_some(())?;
    Some((node.to_owned(), scheduled["lastTransitionTime"].as_str()?.parse().ok()?))
}

/// Reads a Pod.
///
/// # Errors
/// When the object is not what it should be.
pub fn read(value: &Tree<'_>) -> Result<(Pod, Vec<Warning>), Error> {
    tolerant("Pod", value, unresolved)
}

fn unresolved(pod: &At<'_, '_>) -> Pod {
    let (metadata, spec, status) = (pod.get("metadata"), pod.get("spec"), pod.get("status"));
    let mut holds = gates(&spec);
    let asked = resources::read(&spec, &status, &mut holds);
    let mut facts = PodFacts {
        key: key(&metadata),
        uid: metadata.get("uid").string().into(),
        requests: requests::requests(&asked, Options::default()),
        nonzero: requests::nonzero(&asked, Options::default()),
        asks: Arc::new(Asks::of(&asked)),
        owner: controller(&metadata),
        daemon: metadata
            .get("ownerReferences")
            .items()
            .any(|owner| owner.get("kind").text() == Some("DaemonSet")),
        phase: status.get("phase").parse().unwrap_or_default(),
        terminating: metadata.get("deletionTimestamp").is_set(),
        created: metadata.get("creationTimestamp").time(),
        accepted: status.get("startTime").time(),
        started: start::started(&spec, &status),
        node: spec.get("nodeName").text().map(str::to_owned),
        nominated: status.get("nominatedNodeName").text().map(str::to_owned),
        labels: metadata.get("labels").texts(),
        ..PodFacts::default()
    };
    let priority = Priority::read(&spec);
    facts.priority = priority.written.unwrap_or_default();
    let mut late = Vec::new();
    let mut wants = wants::read(&spec, &facts, &mut late);
    if facts.node.is_none() {
        wants.images = images::read(&spec);
    }
    facts.wants = Arc::new(wants);
    Pod {
        volumes: volumes::read(&spec, &facts.key.name),
        holds: [holds, late],
        priority,
        scheduler: spec.get("schedulerName").string(),
        generation: metadata.get("generation").int().unwrap_or_default(),
        unschedulable: unschedulable(&status),
        facts,
    }
}

/// The message of the condition that says that it fits nowhere. That it is not to be placed yet is said by the same
/// condition, and by the API server: then nobody has looked for a node.
fn unschedulable(status: &At<'_, '_>) -> Option<String> {
    let conditions = status.get("conditions");
    let is = |at: &At<'_, '_>, field: &str, text: &str| at.get(field).text() == Some(text);
    let told = conditions.items().find(|at| is(at, "type", "PodScheduled") && is(at, "status", "False"))?;
    (!is(&told, "reason", "SchedulingGated")).then(|| told.get("message").string())
}

/// A pod as a template makes it, before it has a name.
pub(crate) struct Template {
    /// What follows from the template: labels, what it asks for and wants. Volumes are not in it.
    pub facts: PodFacts,
    /// What it may not exceed.
    pub limits: List,
    /// Its priority, if that is known, as far as others may be evicted for it.
    pub priority: Option<i32>,
    /// The name of its priority class; empty for none.
    pub priority_class: String,
    /// Why it would not be placed.
    pub holds: Vec<Hold>,
}

/// What is known of the pods of a template.
pub(crate) fn template(at: &At<'_, '_>, namespace: &str, context: &Context) -> Template {
    let (metadata, spec) = (at.get("metadata"), at.get("spec"));
    let mut holds = gates(&spec);
    let asked = resources::read(&spec, &at.get("status"), &mut holds);
    let class = spec.get("priorityClassName");
    let written = spec.get("priority").int32();
    let mut facts = PodFacts {
        key: Key::new(namespace, ""),
        labels: metadata.get("labels").texts(),
        requests: requests::requests(&asked, Options::default()),
        nonzero: requests::nonzero(&asked, Options::default()),
        asks: Arc::new(Asks::of(&asked)),
        ..PodFacts::default()
    };
    let never = spec.get("preemptionPolicy").text() == Some("Never");
    let priority = written.or_else(|| context.priority(class.text())).filter(|_| !never);
    facts.priority = priority.unwrap_or_default();
    facts.wants = Arc::new(wants::read(&spec, &facts, &mut holds));
    let limits = requests::limits(&asked, Options::default());
    Template { facts, limits, priority, priority_class: class.string(), holds }
}

/// Gates somebody closed, and what we cannot do.
fn gates(spec: &At<'_, '_>) -> Vec<Hold> {
    let gates = spec.get("schedulingGates");
    let mut holds: Vec<Hold> = gates.items().map(|gate| Hold::Gate(gate.get("name").string())).collect();
    let mut unsupported = |what: String| holds.push(Hold::Unsupported(what));
    for claim in spec.get("resourceClaims").items() {
        unsupported(format!("dynamic resource allocation (resource claim {:?})", claim.get("name").string()));
    }
    // Its name until Kubernetes 1.35 and since 1.36.
    for field in ["workloadRef", "schedulingGroup"] {
        if spec.get(field).is_set() {
            unsupported(format!("scheduling pods as a group (spec.{field})"));
        }
    }
    // Which kubelets can do these, nodes declare since Kubernetes 1.36; others would turn the pod away once it is there.
    let containers = [spec.get("initContainers"), spec.get("containers")];
    let restarts_all = |rule: At<'_, '_>| rule.get("action").text() == Some("RestartAllContainers");
    let rules_of = |container: At<'_, '_>| container.get("restartPolicyRules").items().any(restarts_all);
    if containers.iter().any(|list| list.items().any(rules_of)) {
        unsupported("nodes that declare that they restart all containers (restartPolicyRules)".to_owned());
    }
    let own_users = spec.get("hostUsers").is_set() && !spec.get("hostUsers").flag();
    if spec.get("hostNetwork").flag() && own_users {
        unsupported("nodes that declare users of their own in the host's network (hostUsers)".to_owned());
    }
    holds
}

/// What a pod says about its priority.
#[derive(Clone, Debug, Default)]
struct Priority {
    class: Option<String>,
    written: Option<i32>,
    /// May others be evicted for it, if it says so itself?
    preempts: Option<bool>,
}

impl Priority {
    fn read(spec: &At<'_, '_>) -> Self {
        Self {
            class: spec.get("priorityClassName").text().map(str::to_owned),
            written: spec.get("priority").int32(),
            preempts: spec.get("preemptionPolicy").text().map(|policy| policy != "Never"),
        }
    }

    /// The priority, and whether others may be evicted for it. What is written counts; the API server copies it from
    /// the class, and so do we where that has not happened yet.
    fn resolve(&self, context: &Context, holds: &mut Vec<Hold>) -> (i32, bool) {
        let class = context.class(self.class.as_deref());
        if let (None, None, Some(name)) = (&class, self.written, &self.class) {
            holds.push(Hold::Invalid(format!("spec.priorityClassName: there is no PriorityClass {name:?}")));
        }
        let preempts = match (self.preempts, self.written, &class) {
            (Some(preempts), ..) => preempts,
            // Written without a policy: the API server has been there, and the policy is the usual one.
            (None, None, Some(class)) => class.preempts,
            (None, ..) => true,
        };
        (self.written.or(class.map(|c| c.value)).unwrap_or_default(), preempts)
    }
}

/// Does this init container keep running beside the others?
fn is_sidecar(init_container: &At<'_, '_>) -> bool {
    init_container.get("restartPolicy").text() == Some("Always")
}
