//! What is to be written, and in which order, so that no selected cluster is ever briefly absent?
//!
//! Slices are written one by one. A cluster that moves from one to another is in both for a moment or in none, and in
//! none means: torn down. So who takes a cluster is written before who gives it. Where slices take from each other in a
//! circle, one of them first takes what it will have on top of what it has.

use super::facts::{Entry as Chosen, Slice};
use super::index::{Id, at};
use super::known::Known;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is done with a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is new.
    Create,
    /// It is there, but different.
    Patch,
    /// It is there and right.
    None,
    /// It is there, and nobody wants it.
    Delete,
}

impl Action {
    /// Its name in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Patch => "patch",
            Self::None => "none",
            Self::Delete => "delete",
        }
    }
}

/// One step. Creating takes two calls, one for the object and one for its status; both come before the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What is done.
    pub action: Action,
    /// With what; the state afterwards, or the last one.
    pub slice: Arc<Slice>,
    /// Is more than the labels different?
    pub status: bool,
}

/// A slice that is to be published, and the one of that name that is there.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The very same as `old` where that is right.
    pub new: Arc<Known>,
    pub old: Option<Arc<Known>>,
}

impl Wanted {
    /// Is anything to be done about it?
    pub fn is_other(&self) -> bool {
        self.old.as_ref().is_none_or(|old| !Arc::ptr_eq(old, &self.new))
    }

    /// Does it take or give clusters? One in which only points are others does not.
    fn moves(&self) -> bool {
        self.is_other() && self.old.as_ref().is_none_or(|old| old.ids != self.new.ids)
    }
}

/// The steps from the slices that are there to those that are wanted. Every slice of either is in one of them. So many names
/// have numbers.
pub(super) fn steps(wanted: &[Wanted], there: &[Arc<Known>], names: usize) -> Vec<Write> {
    let mut out = Vec::with_capacity(wanted.len());
    for (number, union) in order(wanted, there, names) {
        let Wanted { new, old } = &wanted[number];
        let (Some(old), new) = (old.as_ref().map(|old| &old.slice), &new.slice) else {
            out.push(Write { action: Action::Create, slice: new.slice.clone(), status: true });
            continue;
        };
        let right = !wanted[number].is_other();
        let status = !right && (old.entries != new.entries || old.since != new.since);
        if union {
            let slice = Arc::new(both(old, new));
            out.push(Write { action: Action::Patch, slice, status: true });
        } else if status || (!right && old.labels != new.labels) {
            out.push(Write { action: Action::Patch, slice: new.clone(), status });
        } else {
            out.push(Write { action: Action::None, slice: old.clone(), status: false });
        }
    }
    // Names are different; where all of them are wanted, nothing is left over.
    if wanted.iter().filter(|one| one.old.is_some()).count() < there.len() {
        let names: FxHashSet<&str> = wanted.iter().map(|one| &*one.new.slice.key.name).collect();
        let unwanted = there.iter().filter(|known| !names.contains(&*known.slice.key.name));
        let delete =
            |known: &Arc<Known>| Write { action: Action::Delete, slice: known.slice.clone(), status: false };
        out.extend(unwanted.map(delete));
    }
    out
}

/// Keeps what is there as it is.
pub(super) fn keep(there: &[Arc<Known>]) -> Vec<Write> {
    let none = |known: &Arc<Known>| Write { action: Action::None, slice: known.slice.clone(), status: false };
    there.iter().map(none).collect()
}

/// The old entries with the new ones, each cluster once; the new word holds.
fn both(old: &Slice, new: &Slice) -> Slice {
    let has: BTreeSet<&str> = new.entries.iter().map(|entry| &*entry.cluster).collect();
    let kept = old.entries.iter().filter(|entry| !has.contains(&*entry.cluster)).cloned();
    let mut entries: Vec<Chosen> = new.entries.iter().cloned().chain(kept).collect();
    entries.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    let mut since = old.since.clone();
    since.extend(new.since.clone());
    Slice { entries, since, ..new.clone() }
}

/// Who has a cluster now; mostly one does.
struct Holders {
    /// By the number of the cluster: the position of the slice and one, or 0 for nobody.
    first: Vec<u32>,
    more: FxHashMap<Id, Vec<u32>>,
}

/// A slice that goes; it is deleted last and holds on to its clusters until then.
const LEAVING: u32 = u32::MAX;

impl Holders {
    /// Slices that stay as they are give nothing; `position` says which are wanted and whether they move.
    fn of(there: &[Arc<Known>], names: usize, position: impl Fn(&Known) -> Option<(u32, bool)>) -> Self {
        let mut out = Self { first: vec![0; names], more: FxHashMap::default() };
        for known in there {
            let holder = match position(known) {
                Some((_, false)) => continue,
                Some((number, true)) => number + 1,
                None => LEAVING,
            };
            for id in &known.ids {
                match &mut out.first[at(*id)] {
                    free @ 0 => *free = holder,
                    _ => out.more.entry(*id).or_default().push(holder),
                }
            }
        }
        out
    }

    /// The wanted slices that have a cluster now, by position.
    fn get(&self, id: Id) -> impl Iterator<Item = u32> + Clone {
        let more = if self.more.is_empty() { None } else { self.more.get(&id) };
        let all = std::iter::once(&self.first[at(id)]).chain(more.into_iter().flatten()).copied();
        all.filter(|holder| *holder != 0 && *holder != LEAVING).map(|holder| holder - 1)
    }
}

/// The order of writing, by position in `wanted`; with `true`, the union of old and new is written, and the slice comes
/// again later.
fn order(wanted: &[Wanted], there: &[Arc<Known>], names: usize) -> Vec<(usize, bool)> {
    let moved: Vec<bool> = wanted.iter().map(Wanted::moves).collect();
    if !moved.contains(&true) {
        return (0..wanted.len()).map(|number| (number, false)).collect();
    }
    let position: FxHashMap<&str, (u32, bool)> = (0..)
        .zip(wanted.iter().zip(&moved))
        .map(|(number, (one, moved))| (&*one.new.slice.key.name, (number, *moved)))
        .collect();
    let holders = Holders::of(there, names, |known| position.get(&*known.slice.key.name).copied());
    // Takers before givers.
    let mut givers: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); wanted.len()];
    let mut waits: Vec<usize> = vec![0; wanted.len()];
    for (taker, one) in wanted.iter().enumerate().filter(|(number, _)| moved[*number]) {
        // Clusters that come from one slice mostly come together.
        let mut last = None;
        for id in &one.new.ids {
            let from = holders.get(*id).map(at);
            if from.clone().any(|holder| holder == taker) {
                continue;
            }
            for giver in from {
                if last != Some(giver) && givers[taker].insert(giver) {
                    waits[giver] += 1;
                }
                last = Some(giver);
            }
        }
    }
    let mut ready: BTreeSet<usize> = (0..wanted.len()).filter(|number| waits[*number] == 0).collect();
    let mut open: BTreeSet<usize> = (0..wanted.len()).collect();
    let mut out = Vec::with_capacity(wanted.len());
    while let Some(first) = open.first().copied() {
        if let Some(next) = ready.pop_first() {
            open.remove(&next);
            out.push((next, false));
            relieve(next, &mut givers, &mut waits, &mut ready);
        } else {
            let next = circle(first, &open, &givers);
            out.push((next, true));
            relieve(next, &mut givers, &mut waits, &mut ready);
        }
    }
    out
}

/// A slice has taken: who gave to it no longer waits for that.
fn relieve(taker: usize, givers: &mut [BTreeSet<usize>], waits: &mut [usize], ready: &mut BTreeSet<usize>) {
    for giver in std::mem::take(&mut givers[taker]) {
        waits[giver] -= 1;
        if waits[giver] == 0 {
            ready.insert(giver);
        }
    }
}

/// One of a circle. Everybody open waits for somebody open: going from each to whom it waits for, one comes back.
fn circle(first: usize, open: &BTreeSet<usize>, givers: &[BTreeSet<usize>]) -> usize {
    let mut seen = BTreeSet::new();
    let mut here = first;
    while seen.insert(here) {
        let taker = open.iter().copied().find(|taker| givers[*taker].contains(&here));
        here = taker.unwrap_or(here);
    }
    here
}
