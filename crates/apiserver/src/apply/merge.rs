//! Putting an applied configuration into an object, and taking fields out of one.

use super::fields::{Branch, Element, FieldSet};
use super::shape::{Kind, List, Shape};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Merges a configuration into an object: its leaves win, nothing is removed, lists keep the order of the configuration.
///
/// # Errors
/// A sentence, when an entry of a list cannot be told from the others.
pub(super) fn merge(
    shape: Shape<'_>,
    live: Option<&Value>,
    config: Option<&Value>,
) -> Result<Option<Value>, String> {
    let kind = if config.is_some() { shape.kind(config) } else { shape.kind(live) };
    let leaf = || config.or(live).cloned();
    match kind {
        Kind::Scalar(_) | Kind::Map { atomic: true } | Kind::List(List::Atomic) => Ok(leaf()),
        Kind::Map { .. } => {
            let (left, right) = (live.and_then(Value::as_object), config.and_then(Value::as_object));
            if left.is_none_or(Map::is_empty) && right.is_none_or(Map::is_empty) {
                return Ok(leaf());
            }
            let mut out = Map::new();
            for (key, value) in left.into_iter().flatten() {
                let inner = shape.field(key).unwrap_or(Shape::Deduced);
                if let Some(merged) = merge(inner, Some(value), right.and_then(|r| r.get(key)))? {
                    out.insert(key.clone(), merged);
                }
            }
            for (key, value) in right.into_iter().flatten() {
                if left.is_none_or(|l| !l.contains_key(key)) {
                    let inner = shape.field(key).unwrap_or(Shape::Deduced);
                    if let Some(merged) = merge(inner, None, Some(value))? {
                        out.insert(key.clone(), merged);
                    }
                }
            }
            Ok((!out.is_empty()).then_some(Value::Object(out)))
        }
        Kind::List(list) => {
            let (left, right) = (live.and_then(Value::as_array), config.and_then(Value::as_array));
            if left.is_none_or(Vec::is_empty) && right.is_none_or(Vec::is_empty) {
                return Ok(leaf());
            }
            let none = Vec::new();
            let out = merge_list(shape, list, left.unwrap_or(&none), right.unwrap_or(&none))?;
            Ok((!out.is_empty()).then_some(Value::Array(out)))
        }
    }
}

/// Weaves two lists: entries of the configuration in its order, others where the live list had them.
fn merge_list(
    shape: Shape<'_>,
    list: List<'_>,
    live: &[Value],
    config: &[Value],
) -> Result<Vec<Value>, String> {
    let name = |items: &[Value]| -> Result<Vec<Element>, String> {
        let named = items.iter().enumerate();
        named
            .map(|(at, item)| shape.element(list, item).map_err(|why| format!("element {at}: {why}")))
            .collect()
    };
    let (left, right) = (name(live)?, name(config)?);
    let mut in_config: BTreeSet<&Element> = BTreeSet::new();
    if let Some(twice) = right.iter().find(|element| !in_config.insert(element)) {
        return Err(format!("duplicate entries for key {twice}"));
    }
    // Entries that are live more than once are not merged with: the configuration replaces them.
    let mut live_of: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (element, item) in left.iter().zip(live) {
        live_of.entry(element).and_modify(|one| *one = None).or_insert(Some(item));
    }
    let merged =
        |at: usize| merge(shape.items(), live_of.get(&right[at]).copied().flatten(), Some(&config[at]));
    let mut shared = right.iter().filter(|e| live_of.contains_key(e));
    let mut next_shared = shared.next();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::new();
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if l < left.len() && r < right.len() {
            if left[l] == right[r] {
                done.insert(&right[r]);
                out.extend(merged(r)?);
                l += 1;
                r += 1;
                next_shared = shared.next();
                continue;
            }
            if in_config.contains(&left[l]) && next_shared.is_some_and(|next| *next != left[l]) {
                l += 1;
                continue;
            }
        }
        if l < left.len() {
            if !in_config.contains(&left[l]) {
                out.extend(merge(shape.items(), Some(&live[l]), None)?);
                l += 1;
                continue;
            }
            if done.contains(&left[l]) {
                l += 1;
            }
        }
        if r < right.len() {
            done.insert(&right[r]);
            out.extend(merged(r)?);
            if next_shared.is_some_and(|next| *next == right[r]) {
                next_shared = shared.next();
            }
            r += 1;
        }
    }
    Ok(out)
}

/// An object without the given fields and entries.
///
/// A container that loses all it has becomes null in a custom resource; in a built-in kind it goes, because the struct
/// behind it does not tell the two apart.
pub(super) fn remove(shape: Shape<'_>, value: &Value, gone: &FieldSet) -> Value {
    match (shape.kind(Some(value)), value) {
        (Kind::Scalar(_), _) => value.clone(),
        (Kind::Map { atomic: false }, Value::Object(map)) => {
            let mut out = Map::new();
            for (key, value) in map {
                let element = Element::field(key.as_str());
                if gone.has(&element) {
                    continue;
                }
                let Some(below) = gone.below(&element) else {
                    out.insert(key.clone(), value.clone());
                    continue;
                };
                let kept = remove(shape.field(key).unwrap_or(Shape::Deduced), value, below);
                if !(kept.is_null() && shape.is_builtin()) {
                    out.insert(key.clone(), kept);
                }
            }
            if out.is_empty() { Value::Null } else { Value::Object(out) }
        }
        (Kind::List(list), Value::Array(items)) if list != List::Atomic => {
            let mut out = Vec::new();
            for item in items {
                let Ok(element) = shape.element(list, item) else {
                    out.push(item.clone());
                    continue;
                };
                if gone.has(&element) {
                    continue;
                }
                out.push(match gone.below(&element) {
                    Some(below) => remove(shape.items(), item, below),
                    None => item.clone(),
                });
            }
            if out.is_empty() { Value::Null } else { Value::Array(out) }
        }
        _ => Value::Null,
    }
}

/// The set with every field the schema names on the way to a member: they go when all below them goes.
pub(super) fn with_named(shape: Shape<'_>, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::default();
    for (element, branch) in set.branches() {
        let named = matches!(element, Element::Field(name) if shape.names(name)) && !branch.below.is_empty();
        let inner = below(shape, element);
        let branch = Branch { member: branch.member || named, below: with_named(inner, &branch.below) };
        out.graft(element.clone(), branch);
    }
    out
}

/// The set as it reads under today's schema: what has become atomic since is owned as a whole.
pub(super) fn reconciled(shape: Shape<'_>, set: &FieldSet) -> FieldSet {
    let mut out = FieldSet::default();
    for (element, branch) in set.branches() {
        let inner = below(shape, element);
        let whole = !branch.below.is_empty()
            && matches!(inner, Shape::Known(_))
            && matches!(inner.kind(None), Kind::Map { atomic: true } | Kind::List(List::Atomic));
        let branch = if whole {
            Branch { member: true, below: FieldSet::default() }
        } else {
            Branch { member: branch.member, below: reconciled(inner, &branch.below) }
        };
        out.graft(element.clone(), branch);
    }
    out
}

fn below<'a>(shape: Shape<'a>, element: &Element) -> Shape<'a> {
    match element {
        Element::Field(name) => shape.field(name).unwrap_or(Shape::Deduced),
        _ => shape.items(),
    }
}

/// A copy without nulls in maps.
pub(super) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, v)| !v.is_null());
            Value::Object(kept.map(|(k, v)| (k.clone(), without_nulls(v))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}
