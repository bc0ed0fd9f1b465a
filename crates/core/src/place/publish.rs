//! What is published: the selected as groups and slices, or what is kept when it could not be decided.

use super::choose::Ranked;
use super::decide::Cycle;
use super::facts::{GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PLACEMENT_LABEL, Slice};
use super::fleet::OnMisconfigured;
use super::group::{Group, Member, divide};
use super::pick::{Picks, Since};
use super::write::{Write, keep, steps};
use crate::object::Key;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
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
    pub fn keep(&self, own: &[Arc<Slice>]) -> Published {
        let placement = self.placement();
        let last_score_update = placement.status.last_score_update;
        if own.is_empty() || self.fleet.options.on_misconfigured == OnMisconfigured::Clear {
            let groups = vec![Group { slices: vec![placement.slice_name(1).into()], ..Group::default() }];
            let writes = steps(self.slices(&groups, &Since::new()), &self.there(own, &groups));
            return Published { groups, writes, last_score_update, held_until: None };
        }
        Published { groups: published(own), writes: keep(own), last_score_update, held_until: None }
    }

    /// Divides the selected and says what is to be written.
    pub fn publish(&self, own: &[Arc<Slice>], picks: &Picks, mut since: Since) -> Published {
        let placement = self.placement();
        let index = &self.fleet.index;
        let member =
            |one: &Ranked| Member { cluster: index.cluster(one.id), rank: one.rank, total: one.total };
        let members: Vec<Member<'_>> = picks.chosen.iter().map(member).collect();
        let groups = divide(placement, &self.row.prepared, &members, own);
        if placement.extra.dwell.is_some() {
            for member in &members {
                since.entry(member.cluster.name.clone()).or_insert(self.now);
            }
        }
        let wanted = self.slices(&groups, &since);
        let last_score_update = placement.status.last_score_update;
        let held_until = self.held_until(&wanted, own);
        if held_until.is_some() {
            return Published { groups, writes: keep(own), last_score_update, held_until };
        }
        let writes = steps(wanted, &self.there(own, &groups));
        let written = self.fleet.options.publish_scores && writes.iter().any(|write| write.status);
        let last_score_update = if written { Some(self.now) } else { last_score_update };
        Published { groups, writes, last_score_update, held_until }
    }

    /// Only points are different, and they were published a moment ago: until when they are held back.
    fn held_until(&self, wanted: &[Slice], own: &[Arc<Slice>]) -> Option<Timestamp> {
        let placement = self.placement();
        let limit = placement.score_rate.unwrap_or(SignedDuration::from_mins(1));
        let end = placement.status.last_score_update?.checked_add(limit).ok()?;
        let held = self.now < end && self.fleet.options.publish_scores && points_only(wanted, own);
        held.then_some(end)
    }

    /// The slices of these groups.
    fn slices(&self, groups: &[Group], since: &Since) -> Vec<Slice> {
        let Key { namespace, name } = &self.placement().key;
        let mut out = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let mut parts = group.entries.chunks(Slice::MOST);
            for slice in &group.slices {
                let mut entries = parts.next().unwrap_or_default().to_vec();
                if !self.fleet.options.publish_scores {
                    for entry in &mut entries {
                        entry.score = 0;
                    }
                }
                let dated = |cluster: &Arc<str>| Some((cluster.clone(), *since.get(cluster)?));
                out.push(Slice {
                    key: Key::new(namespace.clone(), slice.clone()),
                    labels: [
                        (PLACEMENT_LABEL.to_owned(), name.to_string()),
                        (GROUP_INDEX_LABEL.to_owned(), index.to_string()),
                        (GROUP_NAME_LABEL.to_owned(), group.name.clone()),
                    ]
                    .into(),
                    since: entries.iter().filter_map(|entry| dated(&entry.cluster)).collect(),
                    entries,
                });
            }
        }
        out
    }

    /// What is there: the placement's own, and others that have the name of one that is wanted.
    fn there(&self, own: &[Arc<Slice>], groups: &[Group]) -> Vec<Arc<Slice>> {
        let known: BTreeSet<&str> = own.iter().map(|slice| &*slice.key.name).collect();
        let names = groups.iter().flat_map(|group| &group.slices).filter(|name| !known.contains(&***name));
        let namespace = &self.placement().key.namespace;
        let others = names.filter_map(|name| self.fleet.slice(&Key::new(namespace.clone(), name.clone())));
        own.iter().cloned().chain(others).collect()
    }
}

/// Do only points, or the order, differ from what is published?
fn points_only(wanted: &[Slice], own: &[Arc<Slice>]) -> bool {
    /// Who is in which group, and since when.
    fn members<'a>(
        slices: impl Iterator<Item = &'a Slice>,
    ) -> BTreeMap<&'a str, (&'a str, Option<Timestamp>)> {
        let mut out = BTreeMap::new();
        for slice in slices {
            let group = slice.labels.get(GROUP_INDEX_LABEL).map_or("", String::as_str);
            for entry in &slice.entries {
                out.insert(&*entry.cluster, (group, slice.since.get(&entry.cluster).copied()));
            }
        }
        out
    }
    let old: BTreeMap<&str, &Arc<Slice>> = own.iter().map(|slice| (&*slice.key.name, slice)).collect();
    let same = |slice: &Slice| old.get(&*slice.key.name).is_some_and(|old| old.labels == slice.labels);
    wanted.len() == own.len()
        && wanted.iter().all(same)
        && wanted.iter().zip(own).any(|(new, _)| old.get(&*new.key.name).is_some_and(|old| ***old != *new))
        && members(wanted.iter()) == members(own.iter().map(|slice| &**slice))
}

/// The groups as they are published.
fn published(own: &[Arc<Slice>]) -> Vec<Group> {
    let mut groups: BTreeMap<(usize, &str), Group> = BTreeMap::new();
    for slice in own {
        let label = |key: &str| slice.labels.get(key).map_or("", String::as_str);
        let index = label(GROUP_INDEX_LABEL).parse().unwrap_or(0);
        let group = groups.entry((index, label(GROUP_NAME_LABEL))).or_default();
        label(GROUP_NAME_LABEL).clone_into(&mut group.name);
        group.slices.push(slice.key.name.clone());
        group.entries.extend(slice.entries.iter().cloned());
    }
    groups.into_values().collect()
}
