//! Small worlds in few words, for tests: `world().node(node("n1").cpu("4")).pod(pod("web").on("n1")).snapshot()`.
//!
//! Texts that do not parse end the test: they are mistakes in the test itself.

#![expect(clippy::missing_panics_doc, reason = "the module says when builders panic")]

use super::images::{ImageName, Images};
use super::{Live, NodeFacts, Owner, Phase, PodFacts, Snapshot, Wants};
use crate::load::Load;
use crate::load::estimate::Asks;
use crate::object::Key;
use crate::quantity::Quantity;
use crate::requests::{ASSUMED, NonZero};
use crate::select::node::{NodeSelector, Preferred, Required, WeightedTerm};
use crate::select::taint::Effect;
use crate::select::{Taint, Toleration};
use std::sync::Arc;

/// An empty world.
#[must_use]
pub fn world() -> World {
    World::default()
}

/// A node with 110 places for pods and nothing else.
#[must_use]
pub fn node(name: &str) -> Node {
    let node = Node(NodeFacts { name: name.into(), ..NodeFacts::default() });
    node.has("pods", "110")
}

/// A pending pod in the namespace `default` that asks for nothing.
#[must_use]
pub fn pod(name: &str) -> Pod {
    Pod(PodFacts {
        key: Key::new("default", name),
        uid: format!("uid-{name}").into(),
        preempts: true,
        ..PodFacts::default()
    })
}

/// Nodes and pods, folded into a view as they come.
#[derive(Clone, Debug, Default)]
pub struct World(pub Live);

impl World {
    /// With one more node.
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        self.0.set_node(&node.facts());
        self
    }

    /// With one more pod.
    #[must_use]
    pub fn pod(mut self, pod: Pod) -> Self {
        let facts = pod.facts();
        let view = self.0.view(&facts, facts.asks.effective);
        self.0.set_pod(view, facts.node.as_deref());
        self
    }

    /// With a service in the namespace `default` that selects by these labels.
    #[must_use]
    pub fn service(mut self, name: &str, labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        self.0.set_service(&Key::new("default", name), &labels);
        self
    }

    /// As it is now.
    #[must_use]
    pub fn snapshot(mut self) -> Snapshot {
        self.0.snapshot().clone()
    }
}

/// A node under construction.
#[derive(Clone, Debug)]
pub struct Node(NodeFacts);

impl Node {
    /// With so much of a resource.
    #[must_use]
    pub fn has(mut self, resource: &str, amount: &str) -> Self {
        self.0.allocatable.insert(resource.into(), amount.parse().expect("tests write valid quantities"));
        self
    }

    /// With so much CPU.
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.has("cpu", amount)
    }

    /// With so much memory.
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.has("memory", amount)
    }

    /// With a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.labels.insert(key.into(), value.into());
        self
    }

    /// With an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0.annotations.insert(key.into(), value.into());
        self
    }

    /// With a taint.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: Effect) -> Self {
        self.0.taints.push(Taint { key: key.into(), value: value.into(), effect, time_added: None });
        self
    }

    /// With an image of so many bytes.
    #[must_use]
    pub fn image(mut self, name: &str, bytes: i64) -> Self {
        self.0.images.push((ImageName::held(name), bytes));
        self
    }

    /// The facts; capacity is what is allocatable unless said otherwise.
    #[must_use]
    pub fn facts(mut self) -> NodeFacts {
        if self.0.capacity.is_empty() {
            self.0.capacity = self.0.allocatable.clone();
        }
        self.0
    }

    /// Closed for new pods.
    #[must_use]
    pub fn cordoned(mut self) -> Self {
        self.0.unschedulable = true;
        self
    }
}

/// A pod under construction.
#[derive(Clone, Debug)]
pub struct Pod(PodFacts);

impl Pod {
    /// One that is as these facts say so far.
    #[must_use]
    pub fn of(facts: PodFacts) -> Self {
        Self(facts)
    }

    /// Asking for so much of a resource.
    #[must_use]
    pub fn asks(mut self, resource: &str, amount: &str) -> Self {
        self.0.requests.insert(resource.into(), amount.parse().expect("tests write valid quantities"));
        self
    }

    /// Asking for so much CPU.
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.asks("cpu", amount)
    }

    /// Asking for so much memory.
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.asks("memory", amount)
    }

    /// In another namespace.
    #[must_use]
    pub fn namespace(mut self, name: &str) -> Self {
        self.0.key.namespace = name.into();
        self
    }

    /// With a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.labels.insert(key.into(), value.into());
        self
    }

    /// Running on that node.
    #[must_use]
    pub fn on(mut self, node: &str) -> Self {
        self.0.node = Some(node.into());
        self.phase(Phase::Running)
    }

    #[must_use]
    pub fn phase(mut self, phase: Phase) -> Self {
        self.0.phase = phase;
        self
    }

    /// Being deleted.
    #[must_use]
    pub fn terminating(mut self) -> Self {
        self.0.terminating = true;
        self
    }

    /// With that priority.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.0.priority = priority;
        self
    }

    /// Existing since then.
    #[must_use]
    pub fn created(mut self, at: jiff::Timestamp) -> Self {
        self.0.created = Some(at);
        self
    }

    /// Made by that object.
    #[must_use]
    pub fn owner(mut self, kind: &str, name: &str) -> Self {
        self.0.owner = Some(Owner {
            group: "apps".into(),
            kind: kind.into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
        });
        self
    }

    /// Demanding labels of its node.
    #[must_use]
    pub fn selects(self, labels: &[(&str, &str)]) -> Self {
        let labels = labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        self.wanting(|w| w.required = Required::new(&labels, None))
    }

    /// Demanding by affinity.
    #[must_use]
    pub fn requires(self, affinity: &NodeSelector) -> Self {
        self.wanting(|w| w.required = Required::new(&std::collections::BTreeMap::new(), Some(affinity)))
    }

    /// Liking some nodes better.
    #[must_use]
    pub fn prefers(self, terms: &[WeightedTerm]) -> Self {
        self.wanting(|w| w.preferred = Preferred::new(terms).expect("tests write valid preferences"))
    }

    /// Putting up with a taint.
    #[must_use]
    pub fn tolerates(self, toleration: Toleration) -> Self {
        self.wanting(|w| w.tolerations.push(toleration))
    }

    /// Made of these images, a container each.
    #[must_use]
    pub fn images(self, names: &[&str]) -> Self {
        let images = Images {
            names: names.iter().map(|name| ImageName::asked(name)).collect(),
            containers: u32::try_from(names.len()).unwrap_or(u32::MAX),
        };
        self.wanting(|w| w.images = images)
    }

    fn wanting(mut self, change: impl FnOnce(&mut Wants)) -> Self {
        change(Arc::make_mut(&mut self.0.wants));
        self
    }

    /// The facts, counting as one container when scoring.
    #[must_use]
    pub fn facts(self) -> PodFacts {
        let mut facts = self.0;
        let asked = &facts.requests;
        let effective = Load::new(
            asked
                .get("cpu")
                .and_then(Quantity::nano_value)
                .map_or(0, |n| i64::try_from(n).unwrap_or(i64::MAX)),
            asked.get("memory").map_or(0, Quantity::value),
        );
        facts.asks = Arc::new(Asks { effective, ..Asks::default() });
        facts.nonzero = NonZero {
            cpu_milli: asked.get("cpu").map_or(ASSUMED.cpu_milli, Quantity::milli_value),
            memory_bytes: asked.get("memory").map_or(ASSUMED.memory_bytes, Quantity::value),
        };
        facts
    }
}
