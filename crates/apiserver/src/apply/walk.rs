//! Walking objects by shape: which fields one has, what changed between two, what is wrong with one.

use super::fields::{Branch, Element, FieldSet, same};
use super::shape::{Kind, List, Scalar, Shape};
use crate::patch::words;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A field that does not fit its schema: path and sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    path: String,
    why: String,
}

impl Problem {
    fn new(why: impl Into<String>) -> Self {
        Self { path: String::new(), why: why.into() }
    }

    fn under(mut self, element: &Element) -> Self {
        self.path.insert_str(0, &element.to_string());
        self
    }
}

/// Problems as upstream lists them.
pub(super) fn listed(problems: &[Problem]) -> String {
    let line = |p: &Problem| if p.path.is_empty() { p.why.clone() } else { format!("{}: {}", p.path, p.why) };
    match problems {
        [one] => line(one),
        many => many.iter().fold("errors:".to_owned(), |all, p| format!("{all}\n  {}", line(p))),
    }
}

/// Everything in a value that does not fit its shape. `None` for a list is as good as an empty one.
pub(super) fn problems(shape: Shape<'_>, value: &Value) -> Vec<Problem> {
    match (shape.kind(Some(value)), value) {
        (_, Value::Null) => Vec::new(),
        (Kind::Scalar(scalar), value) => scalar_problem(scalar, value).into_iter().collect(),
        (Kind::Map { .. }, Value::Object(map)) => {
            let mut out = Vec::new();
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            for key in keys {
                let element = Element::field(key.as_str());
                let Some(inner) = shape.field(key) else {
                    out.push(Problem::new("field not declared in schema").under(&element));
                    return out;
                };
                out.extend(problems(inner, &map[key]).into_iter().map(|p| p.under(&element)));
            }
            out
        }
        (Kind::List(list), Value::Array(items)) => list_problems(shape, list, items),
        (Kind::Map { .. }, other) => {
            vec![Problem::new(format!("expected map, got &{{{}}}", words::plain(other)))]
        }
        (Kind::List(_), other) => {
            vec![Problem::new(format!("expected list, got &{{{}}}", words::plain(other)))]
        }
    }
}

fn list_problems(shape: Shape<'_>, list: List<'_>, items: &[Value]) -> Vec<Problem> {
    let mut out = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let element = if list == List::Atomic {
            Element::Index(i64::try_from(at).unwrap_or(i64::MAX))
        } else {
            match shape.element(list, item) {
                Ok(element) => element,
                Err(why) => {
                    out.push(Problem::new(format!("element {at}: {why}")));
                    return out;
                }
            }
        };
        out.extend(problems(shape.items(), item).into_iter().map(|p| p.under(&element)));
        let spelled = element.to_string();
        if list != List::Atomic && !seen.insert(element) {
            out.push(Problem::new(format!("duplicate entries for key {spelled}")));
        }
    }
    out
}

fn scalar_problem(scalar: Scalar, value: &Value) -> Option<Problem> {
    let plain = || format!("&{{{}}}", words::plain(value));
    let why = match (scalar, value) {
        (Scalar::Text, Value::String(_))
        | (Scalar::Number, Value::Number(_))
        | (Scalar::Truth, Value::Bool(_))
        | (Scalar::Any, Value::String(_) | Value::Number(_) | Value::Bool(_)) => return None,
        (Scalar::Text, _) => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", words::literal(value))
        }
        (Scalar::Number, _) => format!("expected numeric (int or float), got {}", words::type_name(value)),
        (Scalar::Truth, _) => format!("expected boolean, got {}", plain()),
        (Scalar::Any, _) => format!("expected any scalar, got {}", plain()),
    };
    Some(Problem::new(why))
}

/// The fields of an object: its leaves, and the entries of its lists and maps.
pub(super) fn fields(shape: Shape<'_>, value: &Value) -> FieldSet {
    branch(shape, value).below
}

fn branch(shape: Shape<'_>, value: &Value) -> Branch {
    let mut out = Branch::default();
    match (shape.kind(Some(value)), value) {
        (Kind::Scalar(_) | Kind::Map { atomic: true } | Kind::List(List::Atomic), _) => out.member = true,
        (Kind::Map { .. }, Value::Object(map)) => {
            for (key, value) in map {
                let mut inner = branch(shape.field(key).unwrap_or(Shape::Deduced), value);
                let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                inner.member |= empty || !shape.names(key);
                out.below.graft(Element::field(key.as_str()), inner);
            }
        }
        (Kind::List(list), Value::Array(items)) => {
            let elements: Vec<Element> = items.iter().filter_map(|i| shape.element(list, i).ok()).collect();
            if elements.len() == items.len() {
                let mut count: BTreeMap<&Element, usize> = BTreeMap::new();
                for element in &elements {
                    *count.entry(element).or_default() += 1;
                }
                for (element, item) in elements.iter().zip(items) {
                    // Of entries that are there twice only the fact is owned: nobody could tell them apart.
                    let twice = count[element] > 1;
                    let mut inner = if twice { Branch::default() } else { branch(shape.items(), item) };
                    inner.member = true;
                    out.below.graft(element.clone(), inner);
                }
            }
        }
        _ => {}
    }
    out
}

/// What changed between two objects. No path is in more than one set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Changes {
    /// Forgets changes at and below the given fields.
    pub(super) fn without(self, fields: &FieldSet) -> Self {
        Self {
            added: self.added.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            removed: self.removed.recursive_difference(fields),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Own {
    Same,
    Added,
    Modified,
    Removed,
}

struct Difference {
    own: Own,
    below: Changes,
}

impl Difference {
    fn leaf(old: Option<&Value>, new: Option<&Value>) -> Self {
        let own = match (old, new) {
            (None, _) => Own::Added,
            (_, None) => Own::Removed,
            (Some(old), Some(new)) if same(old, new) => Own::Same,
            _ => Own::Modified,
        };
        Self { own, below: Changes::default() }
    }

    fn attach(self, element: &Element, to: &mut Changes) {
        let sets = [
            (&mut to.added, self.below.added, Own::Added),
            (&mut to.modified, self.below.modified, Own::Modified),
            (&mut to.removed, self.below.removed, Own::Removed),
        ];
        for (set, below, own) in sets {
            let member = self.own == own;
            if member || !below.is_empty() {
                set.graft(element.clone(), Branch { member, below });
            }
        }
    }
}

/// Compares two objects field by field.
///
/// # Errors
/// A sentence, when an entry of a list cannot be told from the others.
pub(super) fn compare(shape: Shape<'_>, old: &Value, new: &Value) -> Result<Changes, String> {
    Ok(difference(shape, Some(old), Some(new))?.below)
}

fn difference(shape: Shape<'_>, old: Option<&Value>, new: Option<&Value>) -> Result<Difference, String> {
    let (left, right) = (shape.kind(old), shape.kind(new));
    match (old, new) {
        (_, None) => by_kind(shape, left, old, new),
        (None, _) => by_kind(shape, right, old, new),
        _ if std::mem::discriminant(&left) == std::mem::discriminant(&right) => {
            by_kind(shape, right, old, new)
        }
        _ => {
            // A field that changed from a map to a list, say, is compared as both.
            let mut first = by_kind(shape, left, old, new)?;
            let second = by_kind(shape, right, old, new)?;
            let join = |a: &FieldSet, b: &FieldSet| a.union(b);
            first.below = Changes {
                added: join(&first.below.added, &second.below.added),
                modified: join(&first.below.modified, &second.below.modified),
                removed: join(&first.below.removed, &second.below.removed),
            };
            if first.own == Own::Same {
                first.own = second.own;
            }
            Ok(first)
        }
    }
}

fn by_kind(
    shape: Shape<'_>,
    kind: Kind<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Difference, String> {
    let mut below = Changes::default();
    match kind {
        Kind::Scalar(_) | Kind::Map { atomic: true } | Kind::List(List::Atomic) => {
            return Ok(Difference::leaf(old, new));
        }
        Kind::Map { .. } => {
            let (left, right) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            if left.is_none_or(serde_json::Map::is_empty) && right.is_none_or(serde_json::Map::is_empty) {
                return Ok(Difference::leaf(old, new));
            }
            for (key, old) in left.into_iter().flatten() {
                let inner = shape.field(key).unwrap_or(Shape::Deduced);
                let new = right.and_then(|r| r.get(key));
                difference(inner, Some(old), new)?.attach(&Element::field(key.as_str()), &mut below);
            }
            for (key, new) in right.into_iter().flatten() {
                if left.is_none_or(|l| !l.contains_key(key)) {
                    let inner = shape.field(key).unwrap_or(Shape::Deduced);
                    difference(inner, None, Some(new))?.attach(&Element::field(key.as_str()), &mut below);
                }
            }
        }
        Kind::List(list) => {
            let (left, right) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
            if left.is_none_or(Vec::is_empty) && right.is_none_or(Vec::is_empty) {
                return Ok(Difference::leaf(old, new));
            }
            let none = Vec::new();
            entries(shape, list, left.unwrap_or(&none), right.unwrap_or(&none), &mut below)?;
        }
    }
    let own = match (old, new) {
        (None, _) => Own::Added,
        (_, None) => Own::Removed,
        _ => Own::Same,
    };
    Ok(Difference { own, below })
}

/// Values by what identifies them.
type Grouped<'v> = BTreeMap<Element, Vec<&'v Value>>;

fn grouped<'v>(shape: Shape<'_>, list: List<'_>, items: &'v [Value]) -> Result<Grouped<'v>, String> {
    let mut out = Grouped::new();
    for (at, item) in items.iter().enumerate() {
        let element = shape.element(list, item).map_err(|why| format!("element {at}: {why}"))?;
        out.entry(element).or_default().push(item);
    }
    Ok(out)
}

fn entries(
    shape: Shape<'_>,
    list: List<'_>,
    old: &[Value],
    new: &[Value],
    below: &mut Changes,
) -> Result<(), String> {
    let left = grouped(shape, list, old)?;
    let right = grouped(shape, list, new)?;
    let all: BTreeSet<&Element> = left.keys().chain(right.keys()).collect();
    for element in all {
        let old = left.get(element).map_or(&[][..], Vec::as_slice);
        let new = right.get(element).map_or(&[][..], Vec::as_slice);
        let mark = |own| Difference { own, below: Changes::default() };
        match (old, new) {
            ([] | [_], [] | [_]) => {
                let (old, new) = (old.first().copied(), new.first().copied());
                difference(shape.items(), old, new)?.attach(element, below);
            }
            ([_, _, ..], [_, _, ..]) => {
                if old.len() != new.len() || !old.iter().zip(new).all(|(a, b)| same(a, b)) {
                    mark(Own::Modified).attach(element, below);
                }
            }
            ([_, _, ..], _) => {
                if let [new] = new {
                    difference(shape.items(), None, Some(new))?.attach(element, below);
                }
                mark(Own::Removed).attach(element, below);
            }
            (_, _) => {
                if let [old] = old {
                    difference(shape.items(), Some(old), None)?.attach(element, below);
                }
                mark(Own::Added).attach(element, below);
            }
        }
    }
    Ok(())
}
