//! How are the selected divided into groups?
//!
//! Named groups take theirs in the order they are listed, the rest has no name; each is cut into pieces of one size. By
//! default everything is cut anew each time, by name, as everybody does: one cluster that goes shifts all boundaries
//! after it. Groups that are asked to keep their members only fill gaps.

use super::facts::{ClusterFacts, Entry, GROUP_INDEX_LABEL, GROUP_NAME_LABEL, Slice};
use super::prepare::{Prepared, percent};
use super::spec::{GroupSize, Placement, SortBy};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group of selected clusters; its index is its position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Empty for the rest.
    pub name: String,
    /// In the order they are published.
    pub entries: Vec<Entry>,
    /// The names of its slices.
    pub slices: Vec<Arc<str>>,
}

/// How many go into one group: a share is rounded up, exactly.
pub(super) fn size(size: &GroupSize, selected: usize) -> usize {
    let all = i64::try_from(selected).unwrap_or(i64::MAX);
    let wanted = match size {
        GroupSize::All => all,
        GroupSize::Count(count) => *count,
        GroupSize::Text(text) => {
            let share = percent(text).unwrap_or(100).clamp(0, 100);
            (share.saturating_mul(all) + 99) / 100
        }
    };
    usize::try_from(wanted).ok().filter(|wanted| (1..=selected).contains(wanted)).unwrap_or(selected)
}

/// One selected cluster.
pub(super) struct Member<'a> {
    pub cluster: &'a ClusterFacts,
    /// Its position in the order of names.
    pub rank: u32,
    pub total: i64,
}

/// Divides the selected. `before` is what was published last.
pub(super) fn divide(
    placement: &Placement,
    prepared: &Prepared,
    selected: &[Member<'_>],
    before: &[Arc<Slice>],
) -> Vec<Group> {
    let size = size(&placement.group_size, selected.len());
    let mut pool: Vec<&Member<'_>> = selected.iter().collect();
    match placement.sort_by {
        SortBy::Name => pool.sort_unstable_by_key(|member| member.rank),
        SortBy::Score => pool.sort_unstable_by_key(|member| (Reverse(member.total), member.rank)),
    }
    let known = if placement.extra.sticky { pieces(before) } else { Pieces::default() };
    let mut groups = Vec::new();
    for (rule, conditions) in placement.groups.iter().zip(&prepared.groups) {
        let taken: Vec<&Member<'_>>;
        (taken, pool) = pool.into_iter().partition(|member| conditions.hold(member.cluster));
        cut(&rule.name, &taken, size, &known, &mut groups);
    }
    cut("", &pool, size, &known, &mut groups);
    if groups.is_empty() {
        groups.push(Group::default());
    }
    let mut number = 0;
    for group in &mut groups {
        for _ in 0..group.entries.len().div_ceil(Slice::MOST).max(1) {
            number += 1;
            group.slices.push(placement.slice_name(number).into());
        }
    }
    groups
}

/// Which piece of which group each cluster was in.
#[derive(Default)]
struct Pieces<'a> {
    of: BTreeMap<&'a str, (&'a str, usize)>,
}

fn pieces(before: &[Arc<Slice>]) -> Pieces<'_> {
    let mut of = BTreeMap::new();
    for slice in before {
        let label = |key: &str| slice.labels.get(key).map_or("", String::as_str);
        let Ok(index) = label(GROUP_INDEX_LABEL).parse() else { continue };
        for entry in &slice.entries {
            of.insert(&*entry.cluster, (label(GROUP_NAME_LABEL), index));
        }
    }
    Pieces { of }
}

/// Cuts members, which are in their order, into pieces: those known first into theirs, the others into what is left
/// and then into new ones.
fn cut(name: &str, members: &[&Member<'_>], size: usize, known: &Pieces<'_>, groups: &mut Vec<Group>) {
    let entry = |member: &&Member<'_>| Entry {
        cluster: member.cluster.name.clone(),
        score: member.total,
        reason: String::new(),
    };
    let mut push = |piece: &[&Member<'_>]| {
        let entries = piece.iter().map(entry).collect();
        groups.push(Group { name: name.to_owned(), entries, slices: Vec::new() });
    };
    let piece = |member: &Member<'_>| {
        known.of.get(&*member.cluster.name).filter(|(group, _)| *group == name).map(|(_, index)| *index)
    };
    // Positions, so that each piece can be brought into order again.
    let mut kept: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut free = Vec::new();
    for (position, member) in members.iter().enumerate() {
        match piece(member).map(|index| kept.entry(index).or_default()) {
            Some(piece) if piece.len() < size => piece.push(position),
            _ => free.push(position),
        }
    }
    let mut free = free.into_iter().peekable();
    for mut piece in kept.into_values() {
        let gap = size - piece.len();
        piece.extend(free.by_ref().take(gap));
        piece.sort_unstable();
        push(&piece.into_iter().map(|position| members[position]).collect::<Vec<_>>());
    }
    while free.peek().is_some() {
        push(&free.by_ref().take(size).map(|position| members[position]).collect::<Vec<_>>());
    }
}
