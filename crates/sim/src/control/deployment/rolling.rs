//! How large is each replica set to be? Rolling updates, and changes of the wanted number during one.
//!
//! With `wanted` replicas, a surge of `s` and `m` that may be missing: there are never more than `wanted + s`
//! pods, and never fewer than `wanted - m` available ones on our account. The new set grows into the room
//! above, the old ones shrink by what is available beyond the floor.

use super::{DESIRED, MAX, Plan, World};
use crate::cluster::{ReplicaSet, Strategy};
use std::sync::Arc;

/// Sets the size of a replica set, and notes what the size was decided for.
pub fn scale(world: &World<'_>, plan: &mut Plan, set: &ReplicaSet, replicas: i64) {
    let notes = [(DESIRED, world.deployment.replicas), (MAX, world.most())];
    let notes = notes.map(|(name, value)| (name, value.to_string()));
    let stale = |(name, value): &&(&str, String)| set.meta.annotation(name) != Some(value.as_str());
    let annotations: Vec<_> =
        notes.iter().filter(stale).map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    if replicas == set.replicas && annotations.is_empty() {
        return;
    }
    let change = plan.changes.entry(set.meta.id.key.clone()).or_default();
    change.annotations.extend(annotations);
    if replicas != set.replicas {
        change.replicas = Some(replicas);
    }
}

/// The size a new replica set starts with.
pub fn first_size(world: &World<'_>) -> i64 {
    grown(world, 0)
}

fn grown(world: &World<'_>, now: i64) -> i64 {
    let wanted = world.deployment.replicas;
    if matches!(world.deployment.strategy, Strategy::Recreate) {
        return wanted;
    }
    let total: i64 = world.all().map(|set| set.replicas).sum();
    let room = (world.most() - total).max(0);
    now + room.min((wanted - now).max(0))
}

/// Sizes the new replica set; says whether it changed.
pub fn grow_new(world: &World<'_>, new: &ReplicaSet, plan: &mut Plan) -> bool {
    let wanted = world.deployment.replicas;
    let size = if new.replicas > wanted { wanted } else { grown(world, new.replicas) };
    scale(world, plan, new, size);
    size != new.replicas
}

/// Shrinks old replica sets: first by what is broken anyway, then by what can be missed.
pub fn shrink_old(world: &World<'_>, plan: &mut Plan) {
    let total: i64 = world.all().map(|set| set.replicas).sum();
    let floor = world.deployment.replicas - world.slack().1;
    let coming = world.new.map_or(0, |new| new.replicas - new.status.available_replicas);
    let mut broken_room = total - floor - coming;
    if broken_room <= 0 {
        return;
    }
    let mut sizes: Vec<(&Arc<ReplicaSet>, i64)> =
        world.old.iter().filter(|set| set.replicas > 0).map(|set| (*set, set.replicas)).collect();
    for (set, size) in &mut sizes {
        let broken = (set.replicas - set.status.available_replicas).clamp(0, broken_room);
        *size -= broken;
        broken_room -= broken;
    }
    let available: i64 = world.all().map(|set| set.status.available_replicas).sum();
    let mut room = (available - floor).max(0);
    for (_, size) in &mut sizes {
        let down = room.min(*size);
        *size -= down;
        room -= down;
    }
    for (set, size) in sizes {
        if size != set.replicas {
            scale(world, plan, set, size);
        }
    }
}

/// Has the wanted number changed since the sizes were decided?
pub fn is_resized(world: &World<'_>) -> bool {
    let wanted = world.deployment.replicas;
    let mut active = world.all().filter(|set| set.replicas > 0);
    active.any(|set| {
        let noted = set.meta.annotation(DESIRED).and_then(|n| n.parse::<i64>().ok());
        noted.is_some_and(|noted| noted != wanted)
    })
}

/// Spreads a new wanted number over the replica sets there are.
pub fn resize(world: &World<'_>, plan: &mut Plan) {
    let wanted = world.deployment.replicas;
    let active: Vec<_> = world.all().filter(|set| set.replicas > 0).collect();
    let alone = match active.as_slice() {
        [] => world.new.or(world.old.last().copied()),
        [one] => Some(*one),
        _ => None,
    };
    if let Some(set) = alone {
        scale(world, plan, set, wanted);
        return;
    }
    let settled = |set: &&Arc<ReplicaSet>| {
        let noted = set.meta.annotation(DESIRED).and_then(|n| n.parse().ok());
        set.replicas == wanted && noted == Some(wanted) && set.status.available_replicas == wanted
    };
    if world.new.as_ref().is_some_and(settled) {
        for set in world.old.iter().filter(|set| set.replicas > 0) {
            scale(world, plan, set, 0);
        }
        return;
    }
    if matches!(world.deployment.strategy, Strategy::Rolling { .. }) {
        in_proportion(world, active, plan);
    }
}

/// Every set grows or shrinks by its share of the whole; what rounding leaves goes to the first.
fn in_proportion(world: &World<'_>, mut active: Vec<&Arc<ReplicaSet>>, plan: &mut Plan) {
    let wanted = world.deployment.replicas;
    if wanted == 0 {
        for set in active {
            scale(world, plan, set, 0);
        }
        return;
    }
    let most = world.most();
    let total: i64 = active.iter().map(|set| set.replicas).sum();
    let to_add = most - total;
    // Largest first; among equals the newest grows first, the oldest shrinks first.
    active.sort_by(|a, b| {
        let age = (a.meta.created, &a.meta.id.key).cmp(&(b.meta.created, &b.meta.id.key));
        b.replicas.cmp(&a.replicas).then(if to_add > 0 { age.reverse() } else { age })
    });
    let mut added = 0;
    let mut sizes = Vec::with_capacity(active.len());
    for set in active {
        let share = if to_add == 0 { 0 } else { share(set, most, to_add, added) };
        added += share;
        sizes.push((set, set.replicas + share));
    }
    if let Some((_, first)) = sizes.first_mut() {
        *first = (*first + to_add - added).max(0);
    }
    for (set, size) in sizes {
        scale(world, plan, set, size);
    }
}

/// The part of `to_add` that one set gets, after `added` went to others.
fn share(set: &ReplicaSet, most: i64, to_add: i64, added: i64) -> i64 {
    let noted = set.meta.annotation(MAX).and_then(|n| n.parse::<i64>().ok());
    let before = noted.filter(|n| *n > 0).unwrap_or(most).max(1);
    // Rounded to the nearest, halves up.
    let size = (2 * set.replicas * most + before).div_euclid(2 * before);
    let (share, allowed) = (size - set.replicas, to_add - added);
    if to_add > 0 { share.min(allowed) } else { share.max(allowed) }
}
