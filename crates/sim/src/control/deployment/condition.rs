//! What does a Deployment say about itself?

use super::World;
use crate::cluster::{Condition, DeploymentStatus};
use jiff::Timestamp;

/// No deadline at all, as the API writes it.
const NEVER: i64 = i32::MAX as i64;

/// The status after looking at everything. `created` is a replica set made in this step; `rolls` is false
/// while the Deployment is paused, resized or deleted, when progress is not judged.
pub fn status(world: &World<'_>, created: Option<&str>, rolls: bool, now: Timestamp) -> DeploymentStatus {
    let d = world.deployment;
    let sum = |field: fn(&crate::cluster::ReplicaSetStatus) -> i64| -> i64 {
        world.all().map(|set| field(&set.status)).sum()
    };
    let available = sum(|s| s.available_replicas);
    let wanted: i64 = world.all().map(|set| set.replicas).sum();
    let mut status = DeploymentStatus {
        observed_generation: d.meta.generation,
        replicas: sum(|s| s.replicas),
        updated_replicas: world.new.map_or(0, |new| new.status.replicas),
        ready_replicas: sum(|s| s.ready_replicas),
        available_replicas: available,
        unavailable_replicas: (wanted - available).max(0),
        collision_count: d.status.collision_count,
        conditions: d.status.conditions.clone(),
    };
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let (state, reason, message) = if available >= d.replicas - world.slack().1 {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set(&mut status, "Available", (state, reason, message.to_owned()), now);
    if !d.meta.is_deleted() && has_deadline(world) {
        pausing(world, &mut status, now);
        if rolls {
            progress(world, created, &mut status, now);
        }
    }
    status
}

fn has_deadline(world: &World<'_>) -> bool {
    world.deployment.progress_deadline != NEVER
}

fn pausing(world: &World<'_>, status: &mut DeploymentStatus, now: Timestamp) {
    let said = find(status, "Progressing").map(|c| c.reason.clone()).unwrap_or_default();
    if said == "ProgressDeadlineExceeded" {
        return;
    }
    let paused = said == "DeploymentPaused";
    let saying = match (world.deployment.paused, paused) {
        (true, false) => ("Unknown", "DeploymentPaused", "Deployment is paused".to_owned()),
        (false, true) => ("Unknown", "DeploymentResumed", "Deployment is resumed".to_owned()),
        _ => return,
    };
    set(status, "Progressing", saying, now);
}

fn progress(world: &World<'_>, created: Option<&str>, status: &mut DeploymentStatus, now: Timestamp) {
    let before = &world.deployment.status;
    let name = world.new.map(|new| &*new.meta.id.key.name);
    let what = match name.or(created) {
        Some(name) => format!("ReplicaSet {name:?}"),
        None => format!("Deployment {:?}", world.deployment.meta.id.key.name),
    };
    if let Some(created) = created {
        let message = format!("Created new replica set {created:?}");
        set(status, "Progressing", ("True", "NewReplicaSetCreated", message), now);
    } else if let (Some(name), None) = (name, find(status, "Progressing")) {
        let message = format!("Found new replica set {name:?}");
        set(status, "Progressing", ("True", "FoundNewReplicaSet", message), now);
    }
    let done = find(status, "Progressing").is_some_and(|c| c.reason == "NewReplicaSetAvailable")
        && status.replicas == status.updated_replicas;
    if done {
        return;
    }
    if is_complete(world, status) {
        let message = format!("{what} has successfully progressed.");
        set(status, "Progressing", ("True", "NewReplicaSetAvailable", message), now);
    } else if moved(before, status) {
        let message = format!("{what} is progressing.");
        let saying = ("True", "ReplicaSetUpdated", message);
        // The time of the last progress is what the deadline counts from, so it is renewed each time.
        let since = find(status, "Progressing").filter(|c| c.status == "True");
        let since = since.and_then(|c| c.last_transition_time);
        status.conditions.retain(|c| c.r#type != "Progressing");
        set(status, "Progressing", saying, now);
        if let (Some(since), Some(last)) = (since, status.conditions.last_mut()) {
            last.last_transition_time = Some(since);
        }
    } else if is_late(world, status, now) {
        let message = format!("{what} has timed out progressing.");
        set(status, "Progressing", ("False", "ProgressDeadlineExceeded", message), now);
    }
}

fn moved(before: &DeploymentStatus, now: &DeploymentStatus) -> bool {
    let old = |s: &DeploymentStatus| s.replicas - s.updated_replicas;
    now.updated_replicas > before.updated_replicas
        || old(now) < old(before)
        || now.ready_replicas > before.ready_replicas
        || now.available_replicas > before.available_replicas
}

/// Are exactly the wanted pods there, all new and available?
pub fn is_complete(world: &World<'_>, status: &DeploymentStatus) -> bool {
    let wanted = world.deployment.replicas;
    status.updated_replicas == wanted
        && status.replicas == wanted
        && status.available_replicas == wanted
        && status.observed_generation >= world.deployment.meta.generation
}

fn is_late(world: &World<'_>, status: &DeploymentStatus, now: Timestamp) -> bool {
    seconds_left(world, status, now).is_some_and(|left| left < 0)
}

fn seconds_left(world: &World<'_>, status: &DeploymentStatus, now: Timestamp) -> Option<i64> {
    let condition = find(status, "Progressing")?;
    if matches!(condition.reason.as_str(), "NewReplicaSetAvailable" | "ProgressDeadlineExceeded") {
        return None;
    }
    let passed = now.duration_since(condition.last_update_time?).as_secs();
    Some(world.deployment.progress_deadline - passed)
}

/// Seconds until lack of progress becomes a failure.
pub fn look_again(world: &World<'_>, status: &DeploymentStatus, now: Timestamp) -> Option<i64> {
    if !has_deadline(world) || world.deployment.paused {
        return None;
    }
    seconds_left(world, status, now).map(|left| left.max(0) + 1)
}

fn find<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|c| c.r#type == kind)
}

fn set(
    status: &mut DeploymentStatus,
    kind: &str,
    (state, reason, message): (&str, &str, String),
    now: Timestamp,
) {
    let before = find(status, kind);
    if before.is_some_and(|c| c.status == state && c.reason == reason) {
        return;
    }
    let since = before.filter(|c| c.status == state).and_then(|c| c.last_transition_time);
    let condition = Condition {
        r#type: kind.to_owned(),
        status: state.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: Some(since.unwrap_or(now)),
        last_update_time: Some(now),
        observed_generation: None,
    };
    status.conditions.retain(|c| c.r#type != kind);
    status.conditions.push(condition);
}
