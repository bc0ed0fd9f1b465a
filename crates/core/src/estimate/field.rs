//! Nodes side by side, to be filled on paper: what is on its way is placed before anything is counted.

use super::asked::{self, Asked};
use super::kinds::{Kinds, Open};
use super::rows::free;
use super::view::{View, held};
use super::{Ask, Assumed, Component, Given, NodeAnswer, Room, Unwanted};
use crate::explain::Reason;
use crate::load::recommend::WorkloadRef;
use crate::load::{Load, Metered};
use crate::object::Key;
use crate::resources::{Amounts, List, Names, Resource};
use crate::select::Toleration;
use crate::select::node::Required;
use std::sync::Arc;

/// How many steps are taken between questions whether the answer is still wanted.
const STEPS: u32 = 4096;

/// A copy of what is free, by column, nodes in the order in which they are filled.
#[derive(Clone)]
pub(super) struct Field<'v> {
    names: &'v Names,
    kinds: &'v Kinds,
    nodes: Vec<(&'v Arc<str>, u32)>,
    /// By resource, then by node; the load line's resources come last, if it is asked about.
    free: Vec<Vec<i64>>,
    /// Where the columns of the load line begin, and why nothing may come to some nodes.
    line: Option<(usize, Vec<Option<Reason>>)>,
    steps: u32,
}

/// Something to be placed, resolved once.
#[derive(Clone)]
pub(super) struct Item<'a> {
    required: &'a Required,
    open: Open,
    /// Position and amount, `pods` first: it is what ends first where nothing else is asked.
    pub costs: Vec<(usize, i64)>,
    possible: bool,
}

impl<'v> Field<'v> {
    pub fn new(view: &'v View, given: &Given<'_>) -> Result<Self, Unwanted> {
        if !(given.wanted)() {
            return Err(Unwanted);
        }
        let order = view.order();
        let nodes: Vec<_> = order.iter().filter_map(|at| view.nodes.get(*at as usize)).collect();
        let column = |r: usize| nodes.iter().map(|node| free(&view.blocks, node.row, r)).collect();
        Ok(Self {
            names: &view.names,
            kinds: &view.kinds,
            free: (0..view.names.len()).map(column).collect(),
            nodes: nodes.into_iter().map(|node| (&node.name, node.kind)).collect(),
            line: None,
            steps: 0,
        })
    }

    /// The load line binds, too.
    pub fn with_load(mut self, view: &View) -> Self {
        let rooms: Vec<Option<&Room>> = view
            .order()
            .iter()
            .map(|at| view.rooms.as_ref().and_then(|rooms| rooms.get(*at as usize)?.as_deref()))
            .collect();
        let start = self.free.len();
        for resource in Metered::ALL {
            self.free.push(rooms.iter().map(|room| room.map_or(0, |room| room.head.get(resource))).collect());
        }
        let closed = |room: Option<&Room>| match room {
            None => Some(Reason::UnknownLoad),
            Some(room) => room.closed.clone(),
        };
        self.line = Some((start, rooms.into_iter().map(closed).collect()));
        self
    }

    /// As if pods below that priority were gone.
    pub fn without_below(mut self, view: &View, priority: i32) -> Self {
        for (i, at) in view.order().iter().enumerate() {
            let Some(node) = view.nodes.get(*at as usize) else { continue };
            for (_, sum) in node.by_priority.iter().take_while(|(level, _)| *level < priority) {
                for (resource, amount) in sum.iter() {
                    if let Some(column) = self.free.get_mut(resource.index()) {
                        column[i] = column[i].saturating_add(amount);
                    }
                }
            }
        }
        self
    }

    /// With everything that is on its way placed: first pods without a node, if they count, then what is assumed.
    pub fn occupied(mut self, view: &View, given: &Given<'_>) -> Result<Self, Unwanted> {
        if given.pending {
            let mut pods: Vec<_> = view.pending.iter().flatten().collect();
            pods.sort_by(|a, b| {
                b.priority.cmp(&a.priority).then(a.created.cmp(&b.created)).then(a.key.cmp(&b.key))
            });
            for pod in pods {
                let load = pod_load(&pod.requests);
                let costs =
                    pod.requests.iter().filter(|(_, n)| *n > 0).map(|(r, n)| (r.index(), n)).collect();
                let item = self.item(&pod.wants.required, &pod.wants.tolerations, costs, load);
                self.place(&item, 1, given)?;
            }
        }
        for assumed in given.assumed {
            let left = remaining(view, assumed);
            for (component, replicas) in assumed.components.iter().zip(left) {
                let item = self.resolve(&component.ask);
                // What does not fit is not deducted: it is not going to be there.
                self.place(&item, replicas, given)?;
            }
        }
        Ok(self)
    }

    pub fn resolve<'a>(&self, ask: &'a Ask) -> Item<'a> {
        let asked = Asked::of(&ask.requests, self.names);
        let mut costs = vec![(Resource::PODS.index(), 1)];
        costs.extend(asked.amounts);
        let mut item = self.item(&ask.required, &ask.tolerations, costs, asked::load(ask));
        item.possible = asked.unknown.is_none();
        item
    }

    fn item<'a>(
        &self,
        required: &'a Required,
        tolerations: &[Toleration],
        mut costs: Vec<(usize, i64)>,
        load: Load,
    ) -> Item<'a> {
        if let Some((start, _)) = &self.line {
            let loads = Metered::ALL.into_iter().enumerate().map(|(i, r)| (start + i, load.get(r).max(0)));
            costs.extend(loads);
        }
        Item { required, open: self.kinds.open(required, tolerations), costs, possible: true }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// May it go to this node, however much is free there?
    fn allows(&self, item: &Item<'_>, at: usize) -> bool {
        let (name, kind) = self.nodes[at];
        item.possible
            && self.line.as_ref().is_none_or(|(_, closed)| closed[at].is_none())
            && self.kinds.allows(&item.open, item.required, kind, name)
    }

    /// How many of it this node takes.
    pub fn fit(&self, item: &Item<'_>, at: usize) -> i64 {
        if !self.allows(item, at) {
            return 0;
        }
        self.room(item, at).0
    }

    /// How many fit by what is free, and which position ends first.
    fn room(&self, item: &Item<'_>, at: usize) -> (i64, usize) {
        let mut best = (i64::MAX, 0);
        for (position, amount) in &item.costs {
            let free = self.free.get(*position).map_or(0, |column| column[at]);
            // Nothing asked is bound only by a line that is passed already.
            let fit = match (*amount, free) {
                (_, ..0) => 0,
                (0, _) => continue,
                (amount, free) => free / amount,
            };
            best = best.min((fit, *position));
        }
        best
    }

    pub fn take(&mut self, costs: &[(usize, i64)], at: usize, count: i64) {
        for (position, amount) in costs {
            if let Some(column) = self.free.get_mut(*position) {
                column[at] = column[at].saturating_sub(amount.saturating_mul(count));
            }
        }
    }

    pub fn free(&self, position: usize, at: usize) -> i64 {
        self.free.get(position).map_or(0, |column| column[at])
    }

    /// Is the answer still wanted? Asked at every so many steps.
    pub fn step(&mut self, given: &Given<'_>) -> Result<(), Unwanted> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) && !(given.wanted)() {
            return Err(Unwanted);
        }
        Ok(())
    }

    /// Places so many on the first nodes that take them; as many as fit.
    fn place(&mut self, item: &Item<'_>, count: i64, given: &Given<'_>) -> Result<(), Unwanted> {
        let mut left = count;
        for at in 0..self.len() {
            if left <= 0 {
                break;
            }
            self.step(given)?;
            let here = self.fit(item, at).min(left);
            if here > 0 {
                self.take(&item.costs, at, here);
                left -= here;
            }
        }
        Ok(())
    }

    /// How many replicas all nodes take together.
    pub fn sum(&mut self, ask: &Ask, given: &Given<'_>) -> Result<i32, Unwanted> {
        let item = self.resolve(ask);
        let mut sum = 0_i64;
        for at in 0..self.len() {
            self.step(given)?;
            sum = sum.saturating_add(self.fit(&item, at));
        }
        Ok(held(sum))
    }

    /// What each node takes, and why no more.
    pub fn answers(&mut self, ask: &Ask, given: &Given<'_>) -> Result<Vec<NodeAnswer>, Unwanted> {
        let item = self.resolve(ask);
        let unknown = Asked::of(&ask.requests, self.names).unknown;
        let mut answers = Vec::with_capacity(self.len());
        for at in 0..self.len() {
            self.step(given)?;
            let (name, kind) = self.nodes[at];
            let mut answer = NodeAnswer {
                node: name.to_string(),
                replicas: 0,
                limited_by: None,
                reason: self.kinds.get(kind).and_then(|kind| kind.refuses(name, ask)),
                by_load: None,
            };
            if answer.reason.is_none() {
                self.explain(&item, unknown.as_ref(), at, &mut answer);
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    fn explain(&self, item: &Item<'_>, unknown: Option<&(String, i64)>, at: usize, answer: &mut NodeAnswer) {
        if let Some((resource, asked)) = unknown {
            answer.limited_by = Some(resource.clone());
            answer.reason = Some(Reason::DoesNotFit { resource: resource.clone(), asked: *asked, free: 0 });
            return;
        }
        if let Some((_, closed)) = &self.line
            && let Some(reason) = &closed[at]
        {
            answer.reason = Some(reason.clone());
            return;
        }
        let (count, by) = self.room(item, at);
        answer.replicas = held(count);
        let asked = item.costs.iter().find(|(position, _)| *position == by).map_or(0, |(_, amount)| *amount);
        let line = self.line.as_ref().map_or(usize::MAX, |(start, _)| *start);
        if by >= line {
            let resource = if by == line { Metered::Cpu } else { Metered::Memory };
            answer.limited_by = Some(resource.name().to_owned());
            if count == 0 {
                let free = self.free(by, at);
                answer.reason =
                    Some(Reason::NoHeadroom { resource: resource.name().to_owned(), asked, free });
            }
            return;
        }
        let Some(resource) = Resource::all().nth(by) else { return };
        let resource = self.names.name(resource).to_owned();
        if count == 0 {
            let free = self.free(by, at);
            answer.reason = Some(Reason::DoesNotFit { resource: resource.clone(), asked, free });
        }
        answer.limited_by = Some(resource);
    }

    pub fn items<'a>(&self, components: &'a [Component]) -> Vec<(Item<'a>, i64)> {
        let one = |component: &'a Component| (self.resolve(&component.ask), i64::from(component.replicas));
        components.iter().filter(|component| component.replicas > 0).map(one).collect()
    }
}

/// What a pod that only says what it requests will use.
fn pod_load(requests: &Amounts) -> Load {
    Load {
        cpu_nano: requests.get(Resource::CPU).saturating_mul(1_000_000),
        memory_bytes: requests.get(Resource::MEMORY),
    }
}

/// What a workload with a name but no kind may be.
const KINDS: [(&str, &str); 4] =
    [("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "ReplicaSet"), ("batch", "Job")];

/// The pods of an assumed workload that are on nodes already, by what they request.
///
/// Karmada's schedulers do not say what it is, but name the component of a plain workload after it.
fn there(view: &View, assumed: &Assumed) -> Vec<(Amounts, u32)> {
    match (&assumed.workload, assumed.components.as_slice()) {
        (Some(workload), _) => view.owners.pods(workload),
        (None, [Component { name, .. }]) if !name.is_empty() => {
            let key = Key::new(assumed.namespace.as_str(), name.as_str());
            let target = |(group, kind): (&str, &str)| WorkloadRef {
                group: group.into(),
                kind: kind.into(),
                key: key.clone(),
            };
            KINDS.into_iter().flat_map(|kind| view.owners.pods(&target(kind))).collect()
        }
        (None, _) => Vec::new(),
    }
}

/// How many replicas of each component are not to be seen on nodes yet. Pods that are count against the component
/// that requests the same, and those that no component requests the same as, against any.
pub(super) fn remaining(view: &View, assumed: &Assumed) -> Vec<i64> {
    let mut left: Vec<i64> = assumed.components.iter().map(|c| i64::from(c.replicas.max(0))).collect();
    let mut pods = there(view, assumed);
    if pods.is_empty() {
        return left;
    }
    let amounts = |list: &List| view.names.find_all(list).map(|all| all.with(Resource::PODS, 1));
    let wanted: Vec<_> = assumed.components.iter().map(|c| amounts(&c.ask.requests)).collect();
    for same in [true, false] {
        for (requests, count) in &mut pods {
            for (left, wanted) in left.iter_mut().zip(&wanted) {
                if !same || wanted.as_ref() == Some(requests) {
                    let gone = (*left).min(i64::from(*count));
                    *left -= gone;
                    *count -= u32::try_from(gone).unwrap_or(0);
                }
            }
        }
    }
    left
}
