//! What is published: the selected as groups and slices, or what is kept when it could not be decided.

use super::decide::Cycle;
use super::facts::{Entry, GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PLACEMENT_LABEL, Slice};
use super::fleet::OnMisconfigured;
use super::group::{Group, Member, Parts, divide};
use super::index::Id;
use super::known::Known;
use super::pick::{Picks, Since};
use super::write::{Wanted, Write, keep, steps};
use crate::object::Key;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is to be published.
pub(super) struct Published {
    pub groups: Vec<Group>,
    pub writes: Vec<Write>,
    /// When totals were last published, this time included.
    pub last_score_update: Option<Timestamp>,
    /// Until when something is held back.
    pub held_until: Option<Timestamp>,
}

impl Cycle<'_> {
    /// It could not be decided: what is there stays. Only where nothing is there, nothing is published.
    pub fn keep(&self, own: &[Arc<Known>]) -> Published {
        let placement = self.placement();
        let last_score_update = placement.status.last_score_update;
        if own.is_empty() || self.fleet.options.on_misconfigured == OnMisconfigured::Clear {
            let groups = vec![Group { slices: vec![placement.slice_name(1).into()], ..Group::default() }];
            let nobody = Parts { members: Vec::new(), groups };
            let writes = self.steps(&self.slices(&nobody, &Since::new(), own), own);
            return Published { groups: nobody.groups, writes, last_score_update, held_until: None };
        }
        Published { groups: published(own), writes: keep(own), last_score_update, held_until: None }
    }

    /// Divides the selected and says what is to be written.
    pub fn publish(&self, own: &[Arc<Known>], (picks, whole): (&Picks, bool), mut since: Since) -> Published {
        let (placement, index) = (self.placement(), &self.fleet.index);
        let parts = divide(placement, &self.row.prepared, index, (&picks.chosen, whole), own);
        if placement.extra.dwell.is_some() {
            for member in &parts.members {
                since.entry(index.name(member.id).clone()).or_insert(self.now);
            }
        }
        let wanted = self.slices(&parts, &since, own);
        let groups = parts.groups;
        let last_score_update = placement.status.last_score_update;
        let held_until = self.held_until(&wanted, own);
        if held_until.is_some() {
            return Published { groups, writes: keep(own), last_score_update, held_until };
        }
        let writes = self.steps(&wanted, own);
        let written = self.fleet.options.publish_scores && writes.iter().any(|write| write.status);
        let last_score_update = if written { Some(self.now) } else { last_score_update };
        Published { groups, writes, last_score_update, held_until }
    }

    /// Only points are different, and they were published a moment ago: until when they are held back.
    fn held_until(&self, wanted: &[Wanted], own: &[Arc<Known>]) -> Option<Timestamp> {
        let placement = self.placement();
        let limit = placement.score_rate.unwrap_or(SignedDuration::from_mins(1));
        let end = placement.status.last_score_update?.checked_add(limit).ok()?;
        let held = self.now < end && self.fleet.options.publish_scores && points_only(wanted, own);
        held.then_some(end)
    }

    /// The slices of these groups. One that is there already, and right, is the very same.
    fn slices(&self, parts: &Parts, since: &Since, own: &[Arc<Known>]) -> Vec<Wanted> {
        let Key { namespace, name } = &self.placement().key;
        let mut members = parts.members.as_slice();
        let mut there = own.iter();
        let mut out = Vec::with_capacity(own.len());
        for (index, group) in parts.groups.iter().enumerate() {
            let labels: BTreeMap<String, String> = [
                (PLACEMENT_LABEL.to_owned(), name.to_string()),
                (GROUP_INDEX_LABEL.to_owned(), index.to_string()),
                (GROUP_NAME_LABEL.to_owned(), group.name.clone()),
            ]
            .into();
            let mut of_group;
            (of_group, members) = members.split_at(group.clusters);
            for slice in &group.slices {
                let part;
                (part, of_group) = of_group.split_at(of_group.len().min(Slice::MOST));
                let old = there.next().filter(|known| known.slice.key.name == *slice);
                let key = || Key::new(namespace.clone(), slice.clone());
                let old = old.or_else(|| self.fleet.slices.get(&key()));
                let same = old.filter(|old| self.is_right(old, &labels, part, since));
                let new = same.cloned().unwrap_or_else(|| Arc::new(self.slice(key(), &labels, part, since)));
                out.push(Wanted { new, old: old.cloned() });
            }
        }
        out
    }

    /// Is a slice as it should be?
    fn is_right(
        &self,
        known: &Known,
        labels: &BTreeMap<String, String>,
        part: &[Member],
        since: &Since,
    ) -> bool {
        let Known { slice, ids } = known;
        let same = |((id, entry), member): ((&Id, &Entry), &Member)| {
            *id == member.id && entry.score == self.score_told(member) && entry.reason.is_empty()
        };
        let dated = |entry: &Entry| slice.since.get(&entry.cluster) == since.get(&entry.cluster);
        ids.len() == part.len()
            && ids.iter().zip(&slice.entries).zip(part).all(same)
            && slice.labels == *labels
            && (since.is_empty() && slice.since.is_empty()
                || slice.since.len() == part.len() && slice.entries.iter().all(dated))
    }

    fn slice(&self, key: Key, labels: &BTreeMap<String, String>, part: &[Member], since: &Since) -> Known {
        let index = &self.fleet.index;
        let entry = |member: &Member| Entry {
            cluster: index.name(member.id).clone(),
            score: self.score_told(member),
            reason: String::new(),
        };
        let entries: Vec<Entry> = part.iter().map(entry).collect();
        let dated = |cluster: &Arc<str>| Some((cluster.clone(), *since.get(cluster)?));
        let since = entries.iter().filter_map(|entry| dated(&entry.cluster)).collect();
        let ids = part.iter().map(|member| member.id).collect();
        Known { slice: Arc::new(Slice { key, labels: labels.clone(), entries, since }), ids }
    }

    /// The points that are published.
    fn score_told(&self, member: &Member) -> i64 {
        if self.fleet.options.publish_scores { member.total } else { 0 }
    }

    /// What is to be written, given the placement's own slices; others that have the name of one that is wanted are there, too.
    fn steps(&self, wanted: &[Wanted], own: &[Arc<Known>]) -> Vec<Write> {
        let is_own = |old: &Arc<Known>| old.slice.placement() == Some(&self.placement().key.name);
        let others = wanted.iter().filter_map(|one| one.old.as_ref()).filter(|old| !is_own(old));
        let there: Vec<Arc<Known>> = own.iter().chain(others).cloned().collect();
        steps(wanted, &there, self.fleet.index.len())
    }
}

/// Do only points, or the order, differ from what is published?
fn points_only(wanted: &[Wanted], own: &[Arc<Known>]) -> bool {
    /// Who is in which group, and since when.
    fn members<'a>(
        slices: impl Iterator<Item = &'a Arc<Known>>,
    ) -> BTreeMap<Id, (&'a str, Option<Timestamp>)> {
        let mut out = BTreeMap::new();
        for Known { slice, ids } in slices.map(|known| &**known) {
            let group = slice.labels.get(GROUP_INDEX_LABEL).map_or("", String::as_str);
            let since = |entry: &Entry| slice.since.get(&entry.cluster).copied();
            out.extend(ids.iter().zip(&slice.entries).map(|(id, entry)| (*id, (group, since(entry)))));
        }
        out
    }
    let labels = |one: &Wanted| one.old.as_ref().is_some_and(|old| old.slice.labels == one.new.slice.labels);
    let mut others = wanted.iter().filter(|one| one.is_other()).peekable();
    wanted.len() == own.len() && others.peek().is_some() && wanted.iter().all(labels) && {
        // Slices that stay as they are have the same members before and after.
        let (old, new): (Vec<_>, Vec<_>) = others.map(|one| (one.old.as_ref(), &one.new)).unzip();
        members(new.into_iter()) == members(old.into_iter().flatten())
    }
}

/// The groups as they are published.
fn published(own: &[Arc<Known>]) -> Vec<Group> {
    let mut groups: BTreeMap<(usize, &str), Group> = BTreeMap::new();
    for Known { slice, ids } in own.iter().map(|known| &**known) {
        let label = |key: &str| slice.labels.get(key).map_or("", String::as_str);
        let index = label(GROUP_INDEX_LABEL).parse().unwrap_or(0);
        let group = groups.entry((index, label(GROUP_NAME_LABEL))).or_default();
        label(GROUP_NAME_LABEL).clone_into(&mut group.name);
        group.slices.push(slice.key.name.clone());
        group.clusters += ids.len();
    }
    groups.into_values().collect()
}
