//! Server-side apply: who owns which field, and what happens when two managers disagree.
//!
//! Every write goes through here: [`update`] records who changed what, [`apply`] merges a configuration and refuses to
//! take fields from others. Ownership lives in `metadata.managedFields` and nowhere else.

pub(crate) mod fields;
mod last;
mod managers;
mod merge;
pub(crate) mod scale;
mod shape;
#[cfg(test)]
mod tests;
mod walk;

use crate::schema::View;
use crate::status::{Cause, Details, Status};
use fields::{Element, FieldSet};
use managers::{Entry, Id, Managers, Operation};
use serde_json::{Value, json};
use shape::Shape;

/// Owns what was there before anybody applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who writes, to what, and when.
#[derive(Debug, Clone)]
pub(crate) struct Write<'a> {
    /// Name of the field manager.
    pub manager: &'a str,
    /// Group and version the request is in, for example `apps/v1`.
    pub api_version: &'a str,
    /// Kind of the object, for example `Deployment`.
    pub kind: &'a str,
    /// Subresource written to; empty for the object itself.
    pub subresource: &'a str,
    /// Now, as RFC 3339 in whole seconds: `2026-01-02T03:04:05Z`.
    pub time: String,
    /// Fields this endpoint never changes, as dotted paths such as `status` or `metadata.labels`: they are never owned
    /// through it.
    pub reset: &'a [&'a str],
    /// Whether the kind is built in. Upstream keeps those in structs whose mandatory fields are always present, which
    /// shows in what a creator owns.
    pub builtin: bool,
}

/// Brings `metadata.managedFields` up to date for a create, update or patch that turned `live` into `new`.
///
/// Call it after decoding and defaulting, before the strategy of the kind prepares the object. Never fails: like
/// upstream, an object whose ownership cannot be told loses its `managedFields`.
pub(crate) fn update(view: Option<View<'_>>, live: Option<&Value>, new: &mut Value, write: &Write<'_>) {
    let mut managers = known_managers(live, new, write);
    forget(new);
    let stored = live.is_some_and(|l| l.pointer("/metadata/uid").is_some_and(|uid| uid != ""));
    if managers.entries.is_empty() && stored {
        // Nobody is tracked yet: that starts with the first apply.
        return;
    }
    let shape = Shape::root(view, write.builtin);
    let created = live.is_none();
    let mut live = starting_point(view, live, write);
    if created && write.builtin {
        shape::add_nulls(&mut live, new);
    }
    if record(shape, &live, new, &mut managers, write.manager, write).is_ok() {
        managers.write(new);
    }
}

/// Merges an applied configuration into the live object and returns the result, `managedFields` included.
///
/// The caller decodes, defaults and validates the result like any other write.
///
/// # Errors
/// 409 when another manager owns a field that would change, unless forced; 400 for a configuration of the wrong version
/// or with `managedFields`; 500 when it does not fit the schema.
pub(crate) fn apply(
    view: Option<View<'_>>,
    live: Option<&Value>,
    config: &Value,
    write: &Write<'_>,
    force: bool,
) -> Result<Value, Status> {
    check_config(config, write)?;
    let shape = Shape::root(view, write.builtin);
    let mut managers = live
        .map_or_else(|| Ok(Managers::default()), Managers::of)
        .map_err(|why| plain(format!("failed to decode managed fields: {why}")))?;
    let created = live.is_none();
    let live = starting_point(view, live, write);
    if managers.entries.is_empty() && !created {
        let mut empty = starting_point(view, None, write);
        if write.builtin {
            shape::add_nulls(&mut empty, &live);
        }
        record(shape, &empty, &live, &mut managers, BEFORE_FIRST_APPLY, write)
            .map_err(|why| plain(format!("failed to create manager for existing fields: {why}")))?;
    }
    let problems = walk::problems(shape, config);
    if !problems.is_empty() {
        let (object, list) = (named(config), walk::listed(&problems));
        return Err(plain(format!("failed to create typed patch object ({object}): {list}")));
    }
    let kubectl = write.manager == last::KUBECTL;
    let request = Request { shape, live: &live, created, config, write };
    let mut outcome = request.merged(managers.clone(), force)?;
    if let Err(conflicts) = &mut outcome
        && kubectl
        && let Some(allowed) = last::still_applied(shape, &live, write.api_version)
    {
        conflicts.retain(|c| !allowed.contains(&c.path));
        if conflicts.is_empty() {
            outcome = request.merged(managers, true)?;
        }
    }
    let (mut object, managers) = outcome.map_err(|conflicts| conflict(&conflicts))?;
    if kubectl {
        last::renew(&mut object, config);
    }
    managers.write(&mut object);
    Ok(object)
}

/// Takes back new times in `metadata.managedFields` if nothing else changed: such a write stores nothing.
///
/// Returns whether the two are now the same.
pub(crate) fn keep_times(old: &Value, new: &mut Value) -> bool {
    let timeless = |object: &Value| {
        let mut copy = object.clone();
        let list = copy.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        list.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|entry| {
            entry.remove("time");
        });
        copy
    };
    let same = timeless(old) == timeless(new);
    if same && old != new {
        new.clone_from(old);
    }
    same
}

/// The managers a write starts from: those it brings itself, or those of the live object.
fn known_managers(live: Option<&Value>, new: &Value, write: &Write<'_>) -> Managers {
    let of_live = || live.and_then(|l| Managers::of(l).ok()).unwrap_or_default();
    if !write.subresource.is_empty() {
        return of_live();
    }
    if managers::asks_to_forget(new) {
        return Managers::default();
    }
    match Managers::of(new) {
        Ok(managers) if !managers.entries.is_empty() => managers,
        // Clients that do not know the field would otherwise delete it by accident.
        _ => of_live(),
    }
}

fn forget(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
}

/// The live object without its managers, or what there is before one exists.
fn starting_point(view: Option<View<'_>>, live: Option<&Value>, write: &Write<'_>) -> Value {
    match (live, view) {
        (Some(live), _) => {
            let mut live = live.clone();
            forget(&mut live);
            live
        }
        (None, Some(view)) if write.builtin => shape::zero(view),
        (None, _) => json!({"apiVersion": write.api_version, "kind": write.kind}),
    }
}

/// Fields nobody ever owns.
fn untracked() -> FieldSet {
    let mut set = FieldSet::default();
    for top in ["apiVersion", "kind", "metadata"] {
        set.insert(&[Element::field(top)]);
    }
    for name in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert(&[Element::field("metadata"), Element::field(name)]);
    }
    set
}

fn reset_fields(write: &Write<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    for path in write.reset {
        set.insert(&path.split('.').map(Element::field).collect::<Vec<_>>());
    }
    set
}

/// Gives what changed to `manager` and takes it from everybody else.
fn record(
    shape: Shape<'_>,
    live: &Value,
    new: &Value,
    managers: &mut Managers,
    manager: &str,
    write: &Write<'_>,
) -> Result<(), String> {
    prepare(shape, managers, write);
    let reset = reset_fields(write);
    let changes = walk::compare(shape, live, new)?.without(&reset);
    let touched = changes.modified.union(&changes.added);
    managers.take(&touched.union(&changes.removed));
    let own = touched.recursive_difference(&reset).difference(&untracked());
    if !own.is_empty() {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        let id = Id::new(manager, Operation::Update, write.api_version, write.subresource);
        let fields = match managers.entries.get(&id) {
            Some(entry) => own.union(&entry.fields),
            None => own,
        };
        let entry = Entry { version: write.api_version.to_owned(), time: Some(write.time.clone()), fields };
        managers.entries.insert(id, entry);
    }
    managers.cap();
    Ok(())
}

/// Forgets managers of other groups and reads the rest under today's schema.
fn prepare(shape: Shape<'_>, managers: &mut Managers, write: &Write<'_>) {
    let group = |version: &str| version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    managers.entries.retain(|_, entry| group(&entry.version) == group(write.api_version));
    for entry in managers.entries.values_mut() {
        entry.fields = merge::reconciled(shape, &entry.fields);
    }
}

/// A field somebody else owns.
struct Conflict {
    owner: Id,
    path: Vec<Element>,
}

type Outcome = Result<(Value, Managers), Vec<Conflict>>;

/// A configuration and what it is applied to.
struct Request<'a> {
    shape: Shape<'a>,
    live: &'a Value,
    created: bool,
    config: &'a Value,
    write: &'a Write<'a>,
}

impl Request<'_> {
    /// Merges and settles ownership; the inner error lists conflicts.
    fn merged(&self, mut managers: Managers, force: bool) -> Result<Outcome, Status> {
        let Self { shape, live, config, write, .. } = *self;
        prepare(shape, &mut managers, write);
        let reset = reset_fields(write);
        let manager = if write.manager.is_empty() { "unknown" } else { write.manager };
        let id = Id::new(manager, Operation::Apply, write.api_version, write.subresource);
        let before = managers.entries.remove(&id);
        let empty = (self.created && write.builtin).then(|| merge::without_nulls(live));
        let merged = merge::merge(shape, Some(empty.as_ref().unwrap_or(live)), Some(config))
            .map_err(|why| plain(format!("failed to merge config: {why}")))?
            .unwrap_or_else(|| json!({}));
        let applied = walk::fields(shape, config).recursive_difference(&reset);
        let object = match &before {
            Some(entry) if !entry.fields.is_empty() => {
                let others = managers.entries.values().fold(applied.clone(), |all, e| all.union(&e.fields));
                pruned(shape, &merged, &entry.fields, &others)
            }
            _ => merged,
        };
        let changes = walk::compare(shape, live, &object)
            .map_err(|why| plain(format!("failed to compare objects: {why}")))?
            .without(&reset);
        let touched = changes.modified.union(&changes.added);
        let mut conflicts = Vec::new();
        for (owner, entry) in &managers.entries {
            let paths = entry.fields.intersection(&touched).paths();
            conflicts.extend(paths.into_iter().map(|path| Conflict { owner: owner.clone(), path }));
        }
        if !force && !conflicts.is_empty() {
            return Ok(Err(conflicts));
        }
        managers.take(&touched.union(&changes.removed));
        let unchanged = fields::same(live, &object);
        let own = applied.difference(&untracked());
        if !own.is_empty() {
            // As upstream: who applies what is already there gets no time, or keeps the one it had.
            let before = before.and_then(|entry| entry.time);
            let time = if unchanged { before } else { Some(write.time.clone()) };
            managers.entries.insert(id, Entry { version: write.api_version.to_owned(), time, fields: own });
        }
        Ok(Ok((object, managers)))
    }
}

/// The merged object without what this manager applied last time, does not apply now, and nobody else owns.
fn pruned(shape: Shape<'_>, merged: &Value, last: &FieldSet, owned: &FieldSet) -> Value {
    let named = |set: &FieldSet| merge::with_named(shape, set);
    let all = named(&walk::fields(shape, merged));
    let last = named(last);
    let stripped = merge::remove(shape, merged, &last);
    let kept = named(&walk::fields(shape, &stripped)).union(&named(owned));
    let with_owned = merge::remove(shape, merged, &all.difference(&kept));
    let gone = all.difference(&named(&walk::fields(shape, &with_owned))).intersection(&last);
    merge::remove(shape, merged, &gone)
}

fn check_config(config: &Value, write: &Write<'_>) -> Result<(), Status> {
    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != write.api_version || text("kind") != write.kind {
        return Err(Status::bad_request(format!("invalid object type: {}", gvk(config))));
    }
    if config.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// Group, version and kind as Go prints them.
fn gvk(config: &Value) -> String {
    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
    let version = text("apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={}", text("kind"))
}

fn named(config: &Value) -> String {
    let text = |path: &str| config.pointer(path).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}; {}", text("/metadata/namespace"), text("/metadata/name"), gvk(config))
}

/// An error upstream does not classify: 500 without a reason.
fn plain(message: String) -> Status {
    Status::new(500, "", message)
}

fn conflict(conflicts: &[Conflict]) -> Status {
    let message = match conflicts {
        [one] => format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            one.owner.spelled(),
            fields::spelled(&one.path)
        ),
        many => {
            let mut lines = Vec::new();
            let mut owner = None;
            for conflict in many {
                if owner != Some(&conflict.owner) {
                    lines.push(format!("conflicts with {}:", conflict.owner.spelled()));
                    owner = Some(&conflict.owner);
                }
                lines.push(format!("- {}", fields::spelled(&conflict.path)));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    let causes = conflicts.iter().map(|c| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {}", c.owner.spelled()),
        field: fields::spelled(&c.path),
    });
    let mut status = Status::new(409, "Conflict", message);
    status.details = Some(Box::new(Details { causes: causes.collect(), ..Details::default() }));
    status
}
