//! What is to be written, and in which order, so that no selected cluster is ever briefly absent?
//!
//! Slices are written one by one. A cluster that moves from one to another is in both for a moment or in none, and in
//! none means: torn down. So who takes a cluster is written before who gives it. Where slices take from each other in a
//! circle, one of them first takes what it will have on top of what it has.

use super::facts::{Entry as Chosen, Slice};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
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

/// The steps from the slices that are there to those that are wanted. Every slice of either is in one of them.
pub(super) fn steps(wanted: Vec<Slice>, there: &[Arc<Slice>]) -> Vec<Write> {
    let old: BTreeMap<&str, &Arc<Slice>> = there.iter().map(|slice| (&*slice.key.name, slice)).collect();
    let names: BTreeSet<Arc<str>> = wanted.iter().map(|slice| slice.key.name.clone()).collect();
    let wanted: Vec<Arc<Slice>> = wanted.into_iter().map(Arc::new).collect();
    let mut out = Vec::with_capacity(wanted.len());
    // Slices that stay as they are take nothing and give nothing.
    let differs = |slice: &Slice| old.get(&*slice.key.name).is_none_or(|old| old.entries != slice.entries);
    let changed: Vec<bool> = wanted.iter().map(|slice| differs(slice)).collect();
    // Nor do those in which only points are others.
    let same = |(a, b): (&Chosen, &Chosen)| Arc::ptr_eq(&a.cluster, &b.cluster) || a.cluster == b.cluster;
    let stays = |slice: &Slice| {
        old.get(&*slice.key.name).is_some_and(|old| {
            old.entries.len() == slice.entries.len() && old.entries.iter().zip(&slice.entries).all(same)
        })
    };
    let moved: Vec<bool> =
        wanted.iter().zip(&changed).map(|(slice, changed)| *changed && !stays(slice)).collect();
    for (number, union) in order(&wanted, there, &moved) {
        let new = &wanted[number];
        let Some(old) = old.get(&*new.key.name) else {
            out.push(Write { action: Action::Create, slice: new.clone(), status: true });
            continue;
        };
        let status = changed[number] || old.since != new.since;
        if union {
            let slice = Arc::new(both(old, new));
            out.push(Write { action: Action::Patch, slice, status: true });
        } else if status || old.labels != new.labels {
            out.push(Write { action: Action::Patch, slice: new.clone(), status });
        } else {
            out.push(Write { action: Action::None, slice: (*old).clone(), status: false });
        }
    }
    let unwanted = there.iter().filter(|slice| !names.contains(&slice.key.name));
    out.extend(unwanted.map(|slice| Write { action: Action::Delete, slice: slice.clone(), status: false }));
    out
}

/// Keeps what is there as it is.
pub(super) fn keep(there: &[Arc<Slice>]) -> Vec<Write> {
    let none = |slice: &Arc<Slice>| Write { action: Action::None, slice: slice.clone(), status: false };
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

/// The order of writing, by position in `wanted`; with `true`, the union of old and new is written, and the slice comes
/// again later.
fn order(wanted: &[Arc<Slice>], there: &[Arc<Slice>], moved: &[bool]) -> Vec<(usize, bool)> {
    if !moved.contains(&true) {
        return (0..wanted.len()).map(|number| (number, false)).collect();
    }
    let position: BTreeMap<&str, usize> =
        wanted.iter().enumerate().map(|(number, slice)| (&*slice.key.name, number)).collect();
    // Who has a cluster now; mostly one does. Slices that go are deleted last and hold on to theirs until then.
    let mut holders: FxHashMap<&str, (Option<usize>, Vec<Option<usize>>)> = FxHashMap::default();
    for slice in there {
        let number = position.get(&*slice.key.name).copied();
        if number.is_some_and(|number| !moved[number]) {
            continue;
        }
        for entry in &slice.entries {
            match holders.entry(&entry.cluster) {
                Entry::Vacant(free) => drop(free.insert((number, Vec::new()))),
                Entry::Occupied(mut held) => held.get_mut().1.push(number),
            }
        }
    }
    // Takers before givers.
    let mut givers: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); wanted.len()];
    let mut waits: Vec<usize> = vec![0; wanted.len()];
    for (taker, slice) in wanted.iter().enumerate().filter(|(number, _)| moved[*number]) {
        for entry in &slice.entries {
            let Some((first, more)) = holders.get(&*entry.cluster) else { continue };
            let mut from = std::iter::once(first).chain(more).flatten();
            if from.clone().any(|holder| *holder == taker) {
                continue;
            }
            for giver in from.by_ref() {
                if givers[taker].insert(*giver) {
                    waits[*giver] += 1;
                }
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
