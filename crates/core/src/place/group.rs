//! How are the selected divided into groups?
//!
//! Named groups take theirs in the order they are listed, the rest has no name; each is cut into pieces of one size. By
//! default everything is cut anew each time, by name, as everybody does: one cluster that goes shifts all boundaries
//! after it. Groups that are asked to keep their members only fill gaps.

use super::choose::Ranked;
use super::facts::{GROUP_INDEX_LABEL, GROUP_NAME_LABEL, Slice};
use super::index::{Id, Index, at};
use super::known::Known;
use super::prepare::{Prepared, percent};
use super::spec::{GroupSize, Placement, SortBy};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group of selected clusters; its index is its position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Empty for the rest.
    pub name: String,
    /// How many there are.
    pub clusters: usize,
    /// The names of its slices, which have them.
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub id: Id,
    pub total: i64,
}

/// The selected, divided.
pub(super) struct Parts {
    /// In the order they are published: those of the first group, of the second, and so on.
    pub members: Vec<Member>,
    pub groups: Vec<Group>,
}

/// Divides the selected. `before` is what was published last; `whole` says that everybody is selected whose row there is, and
/// that rows are in the order of names.
pub(super) fn divide(
    placement: &Placement,
    prepared: &Prepared,
    index: &Index,
    (selected, whole): (&[Ranked], bool),
    before: &[Arc<Known>],
) -> Parts {
    let size = size(&placement.group_size, selected.len());
    let mut pool = in_order(selected, placement.sort_by, index.len(), whole);
    let known = if placement.extra.sticky { pieces(before) } else { Pieces::default() };
    let mut out = Parts { members: Vec::new(), groups: Vec::new() };
    for (rule, conditions) in placement.groups.iter().zip(&prepared.groups) {
        let taken: Vec<Member>;
        (taken, pool) = pool.into_iter().partition(|member| conditions.hold(index.cluster(member.id)));
        out.cut(&rule.name, &taken, size, &known);
    }
    if out.members.is_empty() && known.of.is_empty() {
        out.take(pool, size);
    } else {
        out.cut("", &pool, size, &known);
    }
    if out.groups.is_empty() {
        out.groups.push(Group::default());
    }
    let mut number = 0;
    // Most are there already, under these very names.
    let mut there = before.iter().map(|known| &known.slice.key.name);
    for group in &mut out.groups {
        for _ in 0..group.clusters.div_ceil(Slice::MOST).max(1) {
            number += 1;
            let name = placement.slice_name(number);
            let known = there.next().filter(|known| ***known == *name);
            group.slices.push(known.cloned().unwrap_or_else(|| name.into()));
        }
    }
    out
}

/// The selected, in the order they are published.
fn in_order(selected: &[Ranked], by: SortBy, names: usize, whole: bool) -> Vec<Member> {
    let member = |one: &Ranked| Member { id: one.id, total: one.total };
    if whole && by == SortBy::Name {
        let mut all = vec![Member { id: 0, total: 0 }; selected.len()];
        for one in selected {
            all[at(one.row)] = member(one);
        }
        return all;
    }
    let mut all: Vec<&Ranked> = selected.iter().collect();
    match by {
        SortBy::Score => all.sort_unstable_by_key(|one| (Reverse(one.total), one.rank)),
        SortBy::Name if selected.len() < names / 16 => all.sort_unstable_by_key(|one| one.rank),
        // Where many of all names are selected, looking at each name is quicker than sorting.
        SortBy::Name => {
            let mut ranks: Vec<Option<&Ranked>> = vec![None; names];
            for one in selected {
                ranks[at(one.rank)] = Some(one);
            }
            return ranks.into_iter().flatten().map(member).collect();
        }
    }
    all.into_iter().map(member).collect()
}

/// Which piece of which group each cluster was in.
#[derive(Default)]
struct Pieces<'a> {
    of: FxHashMap<Id, (&'a str, usize)>,
}

fn pieces(before: &[Arc<Known>]) -> Pieces<'_> {
    let mut of = FxHashMap::default();
    for Known { slice, ids } in before.iter().map(|known| &**known) {
        let label = |key: &str| slice.labels.get(key).map_or("", String::as_str);
        let Ok(index) = label(GROUP_INDEX_LABEL).parse() else { continue };
        of.extend(ids.iter().map(|id| (*id, (label(GROUP_NAME_LABEL), index))));
    }
    Pieces { of }
}

impl Parts {
    fn push(&mut self, name: &str, piece: impl IntoIterator<Item = Member>) {
        let before = self.members.len();
        self.members.extend(piece);
        let clusters = self.members.len() - before;
        self.groups.push(Group { name: name.to_owned(), clusters, slices: Vec::new() });
    }

    /// Cuts all members there are, which have no group of a name, into pieces.
    fn take(&mut self, members: Vec<Member>, size: usize) {
        let group = |clusters| Group { name: String::new(), clusters, slices: Vec::new() };
        self.groups.extend(members.chunks(size.max(1)).map(|piece| group(piece.len())));
        self.members = members;
    }

    /// Cuts members, which are in their order, into pieces: those known first into theirs, the others into what is left
    /// and then into new ones.
    fn cut(&mut self, name: &str, members: &[Member], size: usize, known: &Pieces<'_>) {
        if known.of.is_empty() {
            members.chunks(size.max(1)).for_each(|piece| self.push(name, piece.iter().copied()));
            return;
        }
        let piece = |member: &Member| {
            known.of.get(&member.id).filter(|(group, _)| *group == name).map(|(_, index)| *index)
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
            self.push(name, piece.into_iter().map(|position| members[position]));
        }
        while free.peek().is_some() {
            let piece: Vec<usize> = free.by_ref().take(size).collect();
            self.push(name, piece.into_iter().map(|position| members[position]));
        }
    }
}
