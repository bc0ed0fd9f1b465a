//! What need not be worked out again.
//!
//! Nothing here changes an answer; it only comes sooner. Pods of one shape (replicas, mostly) get the same answer
//! from a node as long as the node did not change, so for each shape the answers of all nodes are kept, and only
//! nodes in the list of [`Changes`] are asked again.

use super::images::Held;
use super::preempt::InVain;
use super::prepare::Prepared;
use crate::view::labels::Domains;
use crate::view::{NodeId, PodView, Snapshot};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How many shapes are remembered.
const SHAPES: usize = 32;

/// Which nodes changed, in order. Whoever changes a node's view or its load says so here.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Changes forgotten before the first that is kept.
    base: u64,
    nodes: Vec<NodeId>,
    limit: usize,
}

impl Changes {
    /// Notes a change.
    pub fn note(&mut self, node: NodeId) {
        // Past a few per node, looking at every node again is cheaper than the list.
        if self.nodes.len() >= self.limit.max(1024) {
            self.base += self.nodes.len() as u64;
            self.nodes.clear();
        }
        self.nodes.push(node);
    }

    /// How long the list may grow; about the number of nodes is right.
    pub fn limit(&mut self, nodes: usize) {
        self.limit = nodes;
    }

    /// How many changes there were in all.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.base + self.nodes.len() as u64
    }

    /// What changed since then; `None` if that is forgotten.
    pub(crate) fn since(&self, then: u64) -> Option<&[NodeId]> {
        let skip = usize::try_from(then.checked_sub(self.base)?).ok()?;
        self.nodes.get(skip..)
    }
}

/// The places labels make, worked out once.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    version: u64,
    known: FxHashMap<Arc<str>, Arc<Domains>>,
}

impl Places {
    pub fn of(&mut self, at: &Snapshot, key: &str) -> Arc<Domains> {
        let version = at.labels().version();
        if self.version != version {
            self.version = version;
            self.known.clear();
        }
        if let Some(known) = self.known.get(key) {
            return known.clone();
        }
        let new = Arc::new(at.labels().domains(key));
        self.known.insert(key.into(), new.clone());
        new
    }
}

/// What one shape got from every node.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pod: Arc<PodView>,
    exempt: bool,
    with_load: bool,
    /// What the answers rest on beside the nodes in the list of changes.
    statics: (u64, u64, u64, usize),
    pub seen: u64,
    used: u64,
    pub ready: Prepared,
    /// By node: the rule it fails, or none.
    pub refused: Vec<Option<super::Filter>>,
    /// By node: the weighted scores it can compute alone.
    pub alone: Vec<i64>,
    /// Who has the images. That changes with every image a node fetches, so it is kept apart.
    pub images: Held,
    /// That nobody's going helps such a pod, of which priority, after how many changes that was found, and why.
    pub vain: Option<(u64, i32, InVain)>,
}

impl Shape {
    /// What was found before about a pod of that priority, if nothing has changed since.
    pub fn in_vain(&self, priority: i32, changes: Option<&Changes>) -> Option<&InVain> {
        let (seen, of, vain) = self.vain.as_ref()?;
        (*of == priority && changes.is_some_and(|changes| changes.count() == *seen)).then_some(vain)
    }
}

/// Remembers answers between decisions. Belongs to one cluster; a fresh one is always right, too.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    pub(super) places: Places,
    pub(super) shapes: Vec<Shape>,
    pub(super) feasible: Vec<u32>,
    /// Which shape was decided on last.
    pub(super) last: usize,
    clock: u64,
}

/// How to go on with a shape.
pub(super) enum Known<'a> {
    /// Only these nodes changed.
    Changed(usize, &'a [NodeId]),
    /// Nothing usable is known; this place is for the new shape.
    New,
}

impl Memo {
    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn find<'a>(&mut self, of: &Look<'_>, changes: Option<&'a Changes>) -> Known<'a> {
        self.clock += 1;
        let Some(changes) = changes else { return Known::New };
        let Some(at) = self.shapes.iter().position(|s| s.is(of)) else { return Known::New };
        let shape = &mut self.shapes[at];
        let same = shape.statics == statics(of.cluster);
        let Some(since) = changes.since(shape.seen).filter(|_| same) else {
            self.shapes.swap_remove(at);
            return Known::New;
        };
        shape.used = self.clock;
        shape.seen = changes.count();
        Known::Changed(at, since)
    }

    pub(super) fn keep(&mut self, of: &Look<'_>, seen: u64, ready: Prepared, width: usize) -> usize {
        // The oldest goes, and its columns are used again.
        let (mut refused, mut alone) = (Vec::new(), Vec::new());
        if self.shapes.len() >= SHAPES
            && let Some(oldest) = (0..self.shapes.len()).min_by_key(|i| self.shapes[*i].used)
        {
            let old = self.shapes.swap_remove(oldest);
            (refused, alone) = (old.refused, old.alone);
        }
        refused.clear();
        alone.clear();
        refused.resize(width, Some(super::Filter::Cordon));
        alone.resize(width, i64::MIN);
        self.shapes.push(Shape {
            pod: of.pod.clone(),
            exempt: of.exempt,
            with_load: of.with_load,
            statics: statics(of.cluster),
            seen,
            used: self.clock,
            ready,
            refused,
            alone,
            images: Held::default(),
            vain: None,
        });
        self.shapes.len() - 1
    }
}

/// What a shape is recognised by.
pub(super) struct Look<'a> {
    pub cluster: &'a Snapshot,
    pub pod: &'a Arc<PodView>,
    pub exempt: bool,
    pub with_load: bool,
}

fn statics(at: &Snapshot) -> (u64, u64, u64, usize) {
    (at.labels().version(), at.nominations(), at.taints_version(), at.width())
}

impl Shape {
    /// Is something promised to one of the two? That is in the way of every pod but itself.
    fn is_promised(&self, of: &Look<'_>) -> bool {
        let nominated = of.cluster.nominated();
        self.pod.uid != of.pod.uid
            && nominated.iter().any(|(_, p)| p.uid == self.pod.uid || p.uid == of.pod.uid)
    }

    fn is(&self, of: &Look<'_>) -> bool {
        let (a, b) = (&*self.pod, &**of.pod);
        self.exempt == of.exempt
            && self.with_load == of.with_load
            && a.key.namespace == b.key.namespace
            && a.estimate == b.estimate
            && a.nonzero == b.nonzero
            && a.requests == b.requests
            && (of.cluster.nominated().is_empty() || (a.priority == b.priority && !self.is_promised(of)))
            && a.labels == b.labels
            && (Arc::ptr_eq(&a.wants, &b.wants) || a.wants == b.wants)
            // Whether a claim is in use changes with pods elsewhere, and what claims can get with volumes.
            && b.wants.exclusive.is_empty()
            && b.wants.claims.is_empty()
    }
}
