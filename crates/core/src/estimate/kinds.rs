//! Which nodes are alike to every claim? Nodes with the same labels, taints and cordon are of one kind.
//!
//! A label whose value is the node's own name (`kubernetes.io/hostname`, as a rule) would make every node a kind of
//! its own. Such labels are kept apart, as *own* keys of the kind; a claim that speaks of one is put to every node.

use super::Ask;
use crate::explain::Reason;
use crate::select::node::Required;
use crate::select::taint::{self, Compare};
use crate::select::{Lookup, Taint, Toleration};
use crate::view::labels::Index as LabelIndex;
use crate::view::{Labels, NodeFacts, NodeId, Texts};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What nodes of one kind have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    /// Their labels, but for those in `own`.
    pub labels: Labels,
    /// The labels that hold each node's own name.
    pub own: Arc<[Arc<str>]>,
    pub taints: Arc<[Taint]>,
    pub unschedulable: bool,
}

impl Kind {
    pub fn of(facts: &NodeFacts, texts: &mut Texts) -> Self {
        let (own, common): (BTreeMap<_, _>, BTreeMap<_, _>) = facts
            .labels
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .partition(|(_, value)| *value == facts.name);
        Self {
            labels: Labels::new(&common, texts),
            own: own.keys().map(|key| texts.share(key)).collect(),
            taints: facts.taints.iter().cloned().map(|taint| Taint { time_added: None, ..taint }).collect(),
            unschedulable: facts.unschedulable,
        }
    }

    /// Region and zone: nodes are filled by turns from each.
    pub fn zone(&self) -> (&str, &str) {
        let label = |keys: [&str; 2]| keys.into_iter().find_map(|key| self.labels.value(key)).unwrap_or("");
        (
            label(["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"]),
            label(["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"]),
        )
    }

    /// Why a replica cannot go to this node, however much is free there.
    pub fn refuses(&self, name: &str, ask: &Ask) -> Option<Reason> {
        let labels = Whole { kind: self, name };
        if self.unschedulable && !taint::tolerates_cordon(&ask.tolerations) {
            Some(Reason::Cordoned)
        } else if let Some(taint) = taint::repelling(&self.taints, &ask.tolerations, Compare::Off) {
            Some(Reason::Untolerated { taint: taint.clone() })
        } else if !ask.required.matches_selector(&labels) {
            Some(Reason::SelectorMismatch)
        } else if !ask.required.matches_affinity(name, &labels) {
            Some(match ask.required.errors().first() {
                Some(problem) => Reason::InvalidAffinity { problem: problem.to_string() },
                None => Reason::AffinityMismatch,
            })
        } else {
            None
        }
    }
}

/// All labels of one node.
struct Whole<'a> {
    kind: &'a Kind,
    name: &'a str,
}

impl Lookup for Whole<'_> {
    fn value(&self, key: &str) -> Option<&str> {
        self.kind
            .labels
            .value(key)
            .or_else(|| self.kind.own.iter().any(|own| &**own == key).then_some(self.name))
    }
}

/// The kinds there are, by number. A number is given out again when no node is of that kind any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds {
    list: Vec<Option<(Kind, u32)>>,
    known: FxHashMap<Kind, u32>,
    unused: Vec<u32>,
    labels: LabelIndex,
    /// How many kinds keep a label apart.
    own: BTreeMap<Arc<str>, u32>,
}

/// Which nodes a claim allows.
#[derive(Clone, Debug)]
pub(super) enum Open {
    /// Those of these kinds.
    Kinds(FixedBitSet),
    /// Each has to be asked, those of these kinds only.
    Each(FixedBitSet),
}

impl Kinds {
    pub fn get(&self, kind: u32) -> Option<&Kind> {
        self.list.get(kind as usize)?.as_ref().map(|(kind, _)| kind)
    }

    /// How many kinds there are.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Is this node of that kind already? Then nothing has to change.
    pub fn is(&self, number: u32, kind: &Kind) -> bool {
        self.get(number) == Some(kind)
    }

    /// One more node of that kind.
    pub fn enter(&mut self, kind: Kind) -> u32 {
        if let Some(known) = self.known.get(&kind).copied() {
            if let Some(Some((_, nodes))) = self.list.get_mut(known as usize) {
                *nodes += 1;
            }
            return known;
        }
        let number = self.unused.pop().unwrap_or_else(|| {
            self.list.push(None);
            NodeId::at(self.list.len() - 1).0
        });
        self.labels.add(NodeId(number), &name(number), &kind.labels);
        for key in kind.own.iter() {
            *self.own.entry(key.clone()).or_default() += 1;
        }
        self.known.insert(kind.clone(), number);
        self.list[number as usize] = Some((kind, 1));
        number
    }

    /// One node less of that kind.
    pub fn leave(&mut self, number: u32) {
        let Some(place) = self.list.get_mut(number as usize) else { return };
        if let Some((_, nodes)) = place
            && *nodes > 1
        {
            *nodes -= 1;
            return;
        }
        let Some((kind, _)) = place.take() else { return };
        self.labels.remove(NodeId(number), &name(number), &kind.labels);
        for key in kind.own.iter() {
            if let Some(kinds) = self.own.get_mut(key) {
                *kinds -= 1;
                if *kinds == 0 {
                    self.own.remove(key);
                }
            }
        }
        self.known.remove(&kind);
        self.unused.push(number);
    }

    /// Which nodes these demands and tolerations allow.
    pub fn open(&self, required: &Required, tolerations: &[Toleration]) -> Open {
        let cordoned = taint::tolerates_cordon(tolerations);
        let mut open = FixedBitSet::with_capacity(self.list.len());
        let each = required.has_fields() || required.keys().any(|key| self.own.contains_key(key));
        let matching = if each { None } else { required.nodes(&self.labels) };
        for (number, kind) in self.list.iter().enumerate() {
            let Some((kind, _)) = kind else { continue };
            let allowed = matching.as_ref().is_none_or(|kinds| kinds.contains(number))
                && (cordoned || !kind.unschedulable)
                && taint::repelling(&kind.taints, tolerations, Compare::Off).is_none();
            open.set(number, allowed);
        }
        if each { Open::Each(open) } else { Open::Kinds(open) }
    }

    /// Does a claim, already put to the kinds, allow this node?
    pub fn allows(&self, open: &Open, required: &Required, kind: u32, name: &str) -> bool {
        match open {
            Open::Kinds(kinds) => kinds.contains(kind as usize),
            Open::Each(kinds) => {
                kinds.contains(kind as usize)
                    && self.get(kind).is_some_and(|kind| required.matches(name, &Whole { kind, name }))
            }
        }
    }
}

/// Kinds have no names; the index of labels wants one.
fn name(number: u32) -> Arc<str> {
    number.to_string().into()
}
