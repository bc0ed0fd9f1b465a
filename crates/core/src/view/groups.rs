//! Which pods are where? Pods that look the same to others are counted together.
//!
//! Spreading and affinity between pods ask for all pods with certain labels. Replicas share namespace, labels
//! and affinity, so pods are kept in groups, each with a count per node; a question costs as much as there are
//! groups that match, not pods.

use super::{Labels, NodeId, PodAffinity, PodTerm, PodView};
use crate::select::Selector;
use crate::select::label::{Op, Requirement};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What makes pods look the same to others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Looks {
    namespace: Arc<str>,
    labels: Labels,
    affinity: PodAffinity,
    anti_affinity: PodAffinity,
    terminating: bool,
}

/// Pods that look the same to others.
#[derive(Clone, Debug)]
pub struct Group {
    looks: Looks,
    /// How many on which node.
    nodes: BTreeMap<u32, u32>,
}

impl Group {
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.looks.namespace
    }

    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.looks.labels
    }

    /// Near which pods they want to be.
    #[must_use]
    pub fn affinity(&self) -> &PodAffinity {
        &self.looks.affinity
    }

    /// Away from which pods they want to be.
    #[must_use]
    pub fn anti_affinity(&self) -> &PodAffinity {
        &self.looks.anti_affinity
    }

    /// Are they being deleted?
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.looks.terminating
    }

    /// On which nodes, and how many on each.
    pub fn nodes(&self) -> impl Iterator<Item = (usize, u32)> {
        self.nodes.iter().map(|(node, count)| (*node as usize, *count))
    }
}

/// All groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    slots: Vec<Option<Arc<Group>>>,
    free: Vec<u32>,
    ids: FxHashMap<Looks, u32>,
    namespaces: FxHashMap<Arc<str>, Vec<u32>>,
    labels: FxHashMap<(Arc<str>, Arc<str>), Vec<u32>>,
    /// Groups that keep others away, by whom.
    repelling: Terms,
    /// Groups that like, dislike or need others near them, by whom.
    opinionated: Terms,
}

/// Groups by the labels their own terms ask for, so that a pod finds those that speak of it.
#[derive(Clone, Debug, Default)]
struct Terms {
    by: FxHashMap<(Arc<str>, Arc<str>), Vec<u32>>,
    /// Groups with a term that names no label value: it may speak of any pod.
    rest: Vec<u32>,
}

impl Terms {
    /// The labels one of which a pod must have for a term to speak of it; `None` if there are none such.
    fn handles(term: &PodTerm) -> Option<Vec<(Arc<str>, Arc<str>)>> {
        let named = |r: &&Requirement| matches!(r.op(), Op::Equals | Op::DoubleEquals | Op::In);
        let r = term.selector.requirements()?.iter().find(named)?;
        Some(r.values().iter().map(|v| (r.key().into(), v.as_str().into())).collect())
    }

    fn add<'a>(&mut self, id: u32, terms: impl Iterator<Item = &'a PodTerm>) {
        for term in terms {
            match Self::handles(term) {
                Some(handles) => handles.into_iter().for_each(|h| self.by.entry(h).or_default().push(id)),
                None => self.rest.push(id),
            }
        }
    }

    fn remove<'a>(&mut self, id: u32, terms: impl Iterator<Item = &'a PodTerm>) {
        for handle in terms.flat_map(|t| Self::handles(t).unwrap_or_default()) {
            if let Some(list) = self.by.get_mut(&handle) {
                list.retain(|i| *i != id);
                if list.is_empty() {
                    self.by.remove(&handle);
                }
            }
        }
        self.rest.retain(|i| *i != id);
    }

    /// Groups with a term that may speak of a pod with these labels, each once.
    fn about(&self, labels: &Labels) -> Vec<u32> {
        let mut out = self.rest.clone();
        if !self.by.is_empty() {
            for label in labels.shared() {
                out.extend(self.by.get(label).into_iter().flatten());
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }
}

fn opinions(looks: &Looks) -> impl Iterator<Item = &PodTerm> {
    let weighted =
        looks.affinity.preferred.iter().chain(&looks.anti_affinity.preferred).map(|(_, term)| term);
    looks.affinity.required.iter().chain(weighted)
}

impl Groups {
    pub(super) fn add(&mut self, pod: &PodView, node: NodeId) {
        let looks = looks(pod);
        let id = self.ids.get(&looks).copied().unwrap_or_else(|| self.make(looks));
        if let Some(Some(group)) = self.slots.get_mut(id as usize) {
            *Arc::make_mut(group).nodes.entry(node.0).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, pod: &PodView, node: NodeId) {
        let looks = looks(pod);
        let Some(id) = self.ids.get(&looks).copied() else { return };
        let Some(Some(group)) = self.slots.get_mut(id as usize) else { return };
        let nodes = &mut Arc::make_mut(group).nodes;
        if let Some(count) = nodes.get_mut(&node.0) {
            *count -= 1;
            if *count == 0 {
                nodes.remove(&node.0);
            }
        }
        if nodes.is_empty() {
            self.drop(id, &looks);
        }
    }

    fn make(&mut self, looks: Looks) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // More groups than u32 holds cannot exist: every one has a pod.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        self.ids.insert(looks.clone(), id);
        self.namespaces.entry(looks.namespace.clone()).or_default().push(id);
        for (k, v) in looks.labels.shared() {
            self.labels.entry((k.clone(), v.clone())).or_default().push(id);
        }
        self.repelling.add(id, looks.anti_affinity.required.iter());
        self.opinionated.add(id, opinions(&looks));
        self.slots[id as usize] = Some(Arc::new(Group { looks, nodes: BTreeMap::new() }));
        id
    }

    fn drop(&mut self, id: u32, looks: &Looks) {
        self.ids.remove(looks);
        let without = |list: &mut Vec<u32>| {
            list.retain(|i| *i != id);
            list.is_empty()
        };
        if self.namespaces.get_mut(&looks.namespace).is_some_and(without) {
            self.namespaces.remove(&looks.namespace);
        }
        for (k, v) in looks.labels.shared() {
            let label = (k.clone(), v.clone());
            if self.labels.get_mut(&label).is_some_and(without) {
                self.labels.remove(&label);
            }
        }
        self.repelling.remove(id, looks.anti_affinity.required.iter());
        self.opinionated.remove(id, opinions(looks));
        self.slots[id as usize] = None;
        self.free.push(id);
    }

    fn get(&self, id: u32) -> Option<&Group> {
        self.slots.get(id as usize).and_then(|g| g.as_deref())
    }

    /// Groups that may match a selector: the fewest some condition of it leaves.
    fn candidates<'a>(&'a self, selector: &Selector, namespace: Option<&str>) -> Vec<&'a [u32]> {
        let Some(requirements) = selector.requirements() else { return Vec::new() };
        let mut best: Option<(usize, Vec<&'a [u32]>)> = None;
        let mut offer = |lists: Vec<&'a [u32]>| {
            let size = lists.iter().map(|l| l.len()).sum();
            if best.as_ref().is_none_or(|(least, _)| size < *least) {
                best = Some((size, lists));
            }
        };
        if let Some(namespace) = namespace {
            offer(self.namespaces.get(namespace).map(Vec::as_slice).into_iter().collect());
        }
        for r in requirements {
            if matches!(r.op(), Op::Equals | Op::DoubleEquals | Op::In) {
                let list =
                    |v: &String| self.labels.get(&(r.key().into(), v.as_str().into())).map(Vec::as_slice);
                offer(r.values().iter().filter_map(list).collect());
            }
        }
        match best {
            Some((_, lists)) => lists,
            None => self.namespaces.values().map(Vec::as_slice).collect(),
        }
    }

    /// The groups of one namespace whose labels match.
    pub fn of_namespace<'a>(
        &'a self,
        namespace: &'a str,
        selector: &'a Selector,
    ) -> impl Iterator<Item = &'a Group> {
        self.matching(selector, Some(namespace)).filter(move |g| g.namespace() == namespace)
    }

    /// The groups whose labels match; with a namespace as a hint where to look, the caller still checks it.
    pub fn matching<'a>(
        &'a self,
        selector: &'a Selector,
        hint: Option<&str>,
    ) -> impl Iterator<Item = &'a Group> {
        let lists = self.candidates(selector, hint);
        lists.into_iter().flatten().filter_map(|id| self.get(*id)).filter(|g| selector.matches(g.labels()))
    }

    /// Groups that may keep a pod with these labels away.
    pub fn repelling(&self, labels: &Labels) -> impl Iterator<Item = &Group> {
        self.repelling.about(labels).into_iter().filter_map(|id| self.get(id))
    }

    /// Groups that may like, dislike or need a pod with these labels near them.
    pub fn opinionated(&self, labels: &Labels) -> impl Iterator<Item = &Group> {
        self.opinionated.about(labels).into_iter().filter_map(|id| self.get(id))
    }
}

fn looks(pod: &PodView) -> Looks {
    Looks {
        namespace: pod.key.namespace.clone(),
        labels: pod.labels.clone(),
        affinity: pod.wants.affinity.clone(),
        anti_affinity: pod.wants.anti_affinity.clone(),
        terminating: pod.terminating,
    }
}
