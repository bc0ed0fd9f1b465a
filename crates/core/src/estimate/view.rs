//! The cluster's free resources at one moment, and the questions it answers.

use super::asked::Asked;
use super::chunks::Chunks;
use super::field::Field;
use super::kinds::{Kind, Kinds, Open};
use super::owners::Owners;
use super::rows::{Block, Blocks, SIZE, free};
use super::{Answer, Ask, Component, Given, NodeAnswer, Quota, Room, UNCONSTRAINED, Unwanted, quota};
use crate::object::Key;
use crate::resources::{Amounts, Names, Resource};
use crate::view::{PodFacts, Wants};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// No row, no kind: the node is not there.
pub(super) const NONE: u32 = u32::MAX;

/// What readers see of a node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub name: Arc<str>,
    pub kind: u32,
    pub row: u32,
    /// What its pods request, by priority, lowest first.
    pub by_priority: Arc<[(i32, Amounts)]>,
}

impl Node {
    pub fn new(name: Arc<str>) -> Self {
        Self { name, kind: NONE, row: NONE, by_priority: Arc::default() }
    }
}

/// A pod without a node.
#[derive(Debug)]
pub(super) struct Pending {
    pub key: Key,
    pub priority: i32,
    pub created: Option<jiff::Timestamp>,
    pub requests: Amounts,
    pub wants: Arc<Wants>,
}

impl Pending {
    pub fn of(facts: &PodFacts, requests: Amounts) -> Self {
        Self {
            key: facts.key.clone(),
            priority: facts.priority,
            created: facts.created,
            requests,
            wants: facts.wants.clone(),
        }
    }
}

/// The cluster's free resources at one moment. A clone shares everything and never changes.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub(super) names: Arc<Names>,
    pub(super) kinds: Arc<Kinds>,
    pub(super) blocks: Blocks,
    pub(super) nodes: Chunks<Node>,
    /// How much more load each node takes; `None` if nothing is known of load.
    pub(super) rooms: Option<Chunks<Option<Arc<Room>>>>,
    pub(super) pending: Chunks<Option<Arc<Pending>>>,
    pub(super) owners: Owners,
    pub(super) quotas: Arc<BTreeMap<Arc<str>, Vec<Arc<Quota>>>>,
    /// Nodes in the order in which they are filled, worked out when first asked for.
    pub(super) order: Arc<OnceLock<Vec<u32>>>,
    pub(super) node_count: usize,
    pub(super) pod_count: usize,
    pub(super) pending_count: usize,
    pub(super) row_count: usize,
}

impl View {
    /// How many nodes there are.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.node_count
    }

    /// How many pods that are not over are known, with or without a node.
    #[must_use]
    pub fn pod_count(&self) -> usize {
        self.pod_count
    }

    /// How many pods wait for a node.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.pending_count
    }

    /// How many kinds of nodes there are: nodes with the same labels, taints and cordon are of one.
    #[must_use]
    pub fn kind_count(&self) -> usize {
        self.kinds.count()
    }

    /// How many classes of nodes there are: nodes of one kind with the same free resources are of one.
    #[must_use]
    pub fn class_count(&self) -> usize {
        self.row_count
    }

    /// How many replicas would fit.
    ///
    /// # Errors
    /// When the answer is not wanted any more.
    pub fn replicas(&self, ask: &Ask, given: &Given<'_>) -> Result<Answer, Unwanted> {
        let empty = given.assumed.is_empty() && !(given.pending && self.pending_count > 0);
        let by_nodes = if empty { self.sum(ask, given)? } else { self.field(given)?.sum(ask, given)? };
        let by_load = self.field_with_load(given)?.map(|mut field| field.sum(ask, given)).transpose()?;
        let by_preempting = match ask.priority.filter(|_| given.preempting) {
            Some(priority) => {
                let field = Field::new(self, given)?.without_below(self, priority);
                Some(field.occupied(self, given)?.sum(ask, given)?)
            }
            None => None,
        };
        let by_quota = if given.quotas { quota::replicas(self, ask, given.assumed) } else { None };
        Ok(Answer::of(by_nodes, by_quota, by_load, by_preempting))
    }

    /// The nodes with everything that is on its way placed.
    fn field(&self, given: &Given<'_>) -> Result<Field<'_>, Unwanted> {
        Field::new(self, given)?.occupied(self, given)
    }

    /// The same under the load line; `None` if it is not asked about or nothing is known of it.
    fn field_with_load(&self, given: &Given<'_>) -> Result<Option<Field<'_>>, Unwanted> {
        if !given.load || self.rooms.is_none() {
            return Ok(None);
        }
        Field::new(self, given)?.with_load(self).occupied(self, given).map(Some)
    }

    /// How many complete sets would fit, their components placed in the order given, each on the first node that
    /// takes it.
    ///
    /// # Errors
    /// When the answer is not wanted any more.
    pub fn sets(
        &self,
        namespace: &str,
        components: &[Component],
        given: &Given<'_>,
    ) -> Result<Answer, Unwanted> {
        let by_quota =
            if given.quotas { quota::sets(self, namespace, components, given.assumed) } else { None };
        let by_nodes = self.field(given)?.sets(components, given)?;
        let by_load = self.field_with_load(given)?.map(|field| field.sets(components, given)).transpose()?;
        Ok(Answer::of(by_nodes, by_quota, by_load, None))
    }

    /// What every node takes, in the order in which nodes are filled: by turns from each zone, by name within one.
    ///
    /// # Errors
    /// When the answer is not wanted any more.
    pub fn nodes(&self, ask: &Ask, given: &Given<'_>) -> Result<Vec<NodeAnswer>, Unwanted> {
        let by_load = self.field_with_load(given)?.map(|mut field| field.answers(ask, given)).transpose()?;
        let mut answers = self.field(given)?.answers(ask, given)?;
        for (answer, by_load) in answers.iter_mut().zip(by_load.into_iter().flatten()) {
            answer.by_load = Some(by_load.replicas);
            if answer.reason.is_none() {
                answer.reason = by_load.reason;
            }
        }
        Ok(answers)
    }

    /// Nodes that are there, in the order in which they are filled.
    pub(super) fn order(&self) -> &[u32] {
        self.order.get_or_init(|| {
            let mut zones: BTreeMap<(&str, &str), Vec<(&str, u32)>> = BTreeMap::new();
            for (node, at) in self.nodes.iter().zip(0..).filter(|(node, _)| node.row != NONE) {
                let zone = self.kinds.get(node.kind).map_or(("", ""), Kind::zone);
                zones.entry(zone).or_default().push((&node.name, at));
            }
            let mut zones: Vec<_> = zones.into_values().collect();
            for zone in &mut zones {
                zone.sort_unstable();
            }
            let longest = zones.iter().map(Vec::len).max().unwrap_or(0);
            (0..longest)
                .flat_map(|i| zones.iter().filter_map(move |zone| zone.get(i)))
                .map(|(_, at)| *at)
                .collect()
        })
    }

    /// The plain case: nothing on its way, so nodes that are alike are counted at once.
    fn sum(&self, ask: &Ask, given: &Given<'_>) -> Result<i32, Unwanted> {
        let asked = Asked::of(&ask.requests, &self.names);
        if !(given.wanted)() {
            return Err(Unwanted);
        }
        if asked.unknown.is_some() {
            return Ok(0);
        }
        let mut sum = 0_i64;
        match self.kinds.open(&ask.required, &ask.tolerations) {
            Open::Kinds(open) => {
                for block in &self.blocks {
                    sum = sum.saturating_add(total(block, &asked, |kind| open.contains(kind as usize)));
                }
            }
            open @ Open::Each(_) => {
                for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.row != NONE) {
                    if at % 1024 == 1023 && !(given.wanted)() {
                        return Err(Unwanted);
                    }
                    if self.kinds.allows(&open, &ask.required, node.kind, &node.name) {
                        let of = |resource: usize| free(&self.blocks, node.row, resource);
                        sum = sum.saturating_add(fit(&asked, of));
                    }
                }
            }
        }
        Ok(held(sum))
    }
}

impl Answer {
    fn of(
        by_nodes: i32,
        by_quota: Option<quota::Allowance>,
        by_load: Option<i32>,
        by_preempting: Option<i32>,
    ) -> Self {
        let quota = by_quota.as_ref().map_or(UNCONSTRAINED, |bound| bound.allows);
        let most = by_nodes.min(quota).min(by_load.unwrap_or(UNCONSTRAINED));
        Self { most, by_nodes, by_quota, by_load, by_preempting }
    }
}

/// How many replicas all rows of a block take together.
fn total(block: &Block, asked: &Asked, open: impl Fn(u32) -> bool) -> i64 {
    let Some(pods) = block.free.get(Resource::PODS.index()) else { return 0 };
    // Column after column: what limits a row is only looked at further while anything fits at all.
    let mut fits = [0_i64; SIZE];
    let mut any = false;
    for (i, fit) in fits.iter_mut().enumerate() {
        if block.counts[i] > 0 && pods[i] > 0 && open(block.kinds[i]) {
            *fit = pods[i];
            any = true;
        }
    }
    if !any {
        return 0;
    }
    for (resource, amount) in &asked.amounts {
        let Some(column) = block.free.get(*resource) else { return 0 };
        for (fit, free) in fits.iter_mut().zip(column) {
            // Dividing is slow; mostly it is enough to see that so many fit.
            if *fit > 0 && fit.checked_mul(*amount).is_none_or(|all| all > *free) {
                *fit = (*free).max(0) / amount;
            }
        }
    }
    fits.iter()
        .zip(&block.counts)
        .fold(0_i64, |sum, (fit, count)| sum.saturating_add(fit.saturating_mul(i64::from(*count))))
}

/// How many replicas so much takes.
fn fit(asked: &Asked, free: impl Fn(usize) -> i64) -> i64 {
    let mut fit = free(Resource::PODS.index()).max(0);
    for (resource, amount) in &asked.amounts {
        if fit == 0 {
            break;
        }
        fit = fit.min(free(*resource).max(0) / amount);
    }
    fit
}

/// As an answer: never beyond what one can be.
pub(super) fn held(count: i64) -> i32 {
    i32::try_from(count).unwrap_or(UNCONSTRAINED)
}
