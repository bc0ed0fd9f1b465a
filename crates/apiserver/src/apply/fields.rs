//! Which fields: sets of paths into an object, their `FieldsV1` wire form and how messages spell a path.

use crate::patch::words;
use serde_json::{Map, Number, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// One step of a path.
#[derive(Debug, Clone)]
pub(crate) enum Element {
    /// A field of an object or a key of a map.
    Field(String),
    /// The entry of a list with these key fields, in order of name.
    Key(Vec<(String, Value)>),
    /// The entry of a set with this value.
    Value(Value),
    /// The entry of a list at this place.
    Index(i64),
}

impl Element {
    /// A field by name.
    pub(crate) fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// Reads the wire form, for example `f:spec` or `k:{"name":"app"}`; `None` for forms of the future.
    fn parse(text: &str) -> Result<Option<Self>, String> {
        let Some((kind, rest)) = text.split_at_checked(2) else {
            return Err("key must be 2 characters long:".to_owned());
        };
        let json = || serde_json::from_str::<Value>(rest).map_err(|e| e.to_string());
        match kind {
            "f:" => Ok(Some(Self::field(rest))),
            "v:" => Ok(Some(Self::Value(json()?))),
            "k:" => match json()? {
                Value::Object(map) => {
                    let mut fields: Vec<_> = map.into_iter().collect();
                    fields.sort_by(|a, b| a.0.cmp(&b.0));
                    Ok(Some(Self::Key(fields)))
                }
                other => Err(format!("expected key fields, got {other}")),
            },
            "i:" => rest.parse().map(|i| Some(Self::Index(i))).map_err(|_| format!("bad index {rest}")),
            other if other.ends_with(':') => Ok(None),
            _ => Err(format!("missing colon: {text}")),
        }
    }

    fn wire(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(k, v)| format!("{}:{}", Value::from(k.as_str()), wire(v))).collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(value) => format!("v:{}", wire(value)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// A scalar as upstream writes it: whole floats lose their fraction, so 80.0 and 80 name the same entry.
fn wire(value: &Value) -> String {
    match value {
        Value::Number(n) => words::number(n),
        other => other.to_string(),
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => {
                for ((name, value), (other_name, other_value)) in a.iter().zip(b) {
                    let order = name.cmp(other_name).then_with(|| order(value, other_value));
                    if order.is_ne() {
                        return order;
                    }
                }
                a.len().cmp(&b.len())
            }
            (Self::Value(a), Self::Value(b)) => order(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields.iter().map(|(k, v)| format!("{k}={}", spell(v))).collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", spell(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn spell(value: &Value) -> String {
    match value {
        Value::String(s) => format!("{s:?}"),
        Value::Null => "null".to_owned(),
        other => words::plain(other),
    }
}

/// A total order of values: numbers by size whatever their form, then strings, booleans, lists, maps, null.
#[must_use]
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => order_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let by_entry = a.iter().zip(b).map(|(a, b)| order(a, b)).find(|o| o.is_ne());
            by_entry.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => order_maps(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn order_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
    }
}

fn order_maps(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    let sorted = |map: &Map<String, Value>| {
        let mut keys: Vec<String> = map.keys().cloned().collect();
        keys.sort_unstable();
        keys
    };
    let (keys, others) = (sorted(a), sorted(b));
    for (key, other) in keys.iter().zip(&others) {
        let order = key.cmp(other).then_with(|| order(&a[key], &b[other]));
        if order.is_ne() {
            return order;
        }
    }
    keys.len().cmp(&others.len())
}

/// Equality that takes 1 and 1.0 for the same number.
#[must_use]
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => order_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w)))
        }
        _ => a == b,
    }
}

/// A set of paths, kept as a tree. A path being in it says nothing about the paths above or below.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldSet {
    nodes: BTreeMap<Element, Branch>,
}

/// What a [`FieldSet`] knows below one element. Never empty: either a member or with members below.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Branch {
    /// Whether the path to here is itself in the set.
    pub member: bool,
    /// The paths below.
    pub below: FieldSet,
}

impl FieldSet {
    /// Adds a path; the empty one, which would be the whole object, is never in a set.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => self.nodes.entry(last.clone()).or_default().member = true,
            [first, rest @ ..] => self.nodes.entry(first.clone()).or_default().below.insert(rest),
        }
    }

    /// Adds everything a branch holds under one element.
    pub(crate) fn graft(&mut self, element: Element, branch: Branch) {
        if !branch.member && branch.below.is_empty() {
            return;
        }
        match self.nodes.entry(element) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(branch);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                let old = entry.get_mut();
                old.member |= branch.member;
                old.below = old.below.union(&branch.below);
            }
        }
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether a path of one element is in the set.
    #[must_use]
    pub(crate) fn has(&self, element: &Element) -> bool {
        self.nodes.get(element).is_some_and(|b| b.member)
    }

    /// Whether a path is in the set.
    #[must_use]
    pub(crate) fn contains(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.nodes.get(first).is_some_and(|b| b.below.contains(rest)),
        }
    }

    /// The paths below an element, if there are any.
    #[must_use]
    pub(crate) fn below(&self, element: &Element) -> Option<&FieldSet> {
        self.nodes.get(element).map(|b| &b.below).filter(|below| !below.is_empty())
    }

    /// The elements at the top and what is below them, in order.
    pub(crate) fn branches(&self) -> impl Iterator<Item = (&Element, &Branch)> {
        self.nodes.iter()
    }

    /// Paths in either set.
    #[must_use]
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (element, branch) in &other.nodes {
            out.graft(element.clone(), branch.clone());
        }
        out
    }

    /// Paths in this set that are not in the other.
    #[must_use]
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(|element, branch| match other.nodes.get(element) {
            None => branch.clone(),
            Some(gone) => {
                Branch { member: branch.member && !gone.member, below: branch.below.difference(&gone.below) }
            }
        })
    }

    /// Paths in this set that are neither in the other nor below a path that is.
    #[must_use]
    pub(crate) fn recursive_difference(&self, other: &Self) -> Self {
        self.combine(|element, branch| match other.nodes.get(element) {
            None => branch.clone(),
            Some(gone) if gone.member => Branch::default(),
            Some(gone) => {
                Branch { member: branch.member, below: branch.below.recursive_difference(&gone.below) }
            }
        })
    }

    /// Paths in both sets.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(|element, branch| match other.nodes.get(element) {
            None => Branch::default(),
            Some(also) => {
                Branch { member: branch.member && also.member, below: branch.below.intersection(&also.below) }
            }
        })
    }

    fn combine(&self, branch: impl Fn(&Element, &Branch) -> Branch) -> Self {
        let mut out = Self::default();
        for (element, old) in &self.nodes {
            out.graft(element.clone(), branch(element, old));
        }
        out
    }

    /// All paths, those ending at a level before those going deeper: the order of conflict messages.
    #[must_use]
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Vec<Element>, out: &mut Vec<Vec<Element>>) {
        for (element, _) in self.nodes.iter().filter(|(_, b)| b.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            out.push(path);
        }
        for (element, branch) in &self.nodes {
            prefix.push(element.clone());
            branch.below.collect(prefix, out);
            prefix.pop();
        }
    }

    /// Reads `FieldsV1`.
    ///
    /// # Errors
    /// A sentence saying what is not a field set.
    pub(crate) fn from_wire(value: &Value) -> Result<Self, String> {
        Ok(Self::read(value)?.below)
    }

    fn read(value: &Value) -> Result<Branch, String> {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => return Ok(Branch { member: true, below: Self::default() }),
            other => return Err(format!("expected an object of fields, got {other}")),
        };
        let mut branch = Branch::default();
        for (key, value) in map {
            if key == "." {
                branch.member = true;
            } else if let Some(element) = Element::parse(key)? {
                branch.below.graft(element, Self::read(value)?);
            }
        }
        branch.member |= branch.below.is_empty();
        Ok(branch)
    }

    /// Writes `FieldsV1`.
    #[must_use]
    pub(crate) fn to_wire(&self) -> Value {
        let mut out = Map::new();
        for (element, branch) in &self.nodes {
            let mut inner = match branch.below.to_wire() {
                Value::Object(inner) => inner,
                _ => Map::new(),
            };
            if branch.member && !inner.is_empty() {
                let mut own = Map::new();
                own.insert(".".to_owned(), Value::Object(Map::new()));
                own.append(&mut inner);
                inner = own;
            }
            out.insert(element.wire(), Value::Object(inner));
        }
        Value::Object(out)
    }
}

/// A path as messages spell it: `.spec.containers[name="app"].image`.
#[must_use]
pub(crate) fn spelled(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn element() -> impl Strategy<Value = Element> {
        prop_oneof![
            "[a-c]{1,2}".prop_map(Element::Field),
            ("[a-b]", 0..3).prop_map(|(name, port)| Element::Key(vec![
                ("name".to_owned(), json!(name)),
                ("port".to_owned(), json!(port))
            ])),
            "[a-c]".prop_map(|s| Element::Value(json!(s))),
            (0..3i64).prop_map(Element::Index),
        ]
    }

    fn paths() -> impl Strategy<Value = Vec<Vec<Element>>> {
        prop::collection::vec(prop::collection::vec(element(), 1..4), 0..8)
    }

    fn set(paths: &[Vec<Element>]) -> FieldSet {
        let mut out = FieldSet::default();
        for path in paths {
            out.insert(path);
        }
        out
    }

    proptest! {
        #[test]
        fn the_wire_form_reads_back_as_the_same_set(paths in paths()) {
            let set = set(&paths);
            prop_assert_eq!(FieldSet::from_wire(&set.to_wire()).unwrap(), set);
        }

        #[test]
        fn set_operations_agree_with_lists_of_paths(a in paths(), b in paths()) {
            let (left, right) = (set(&a), set(&b));
            let listed = |keep: &dyn Fn(&Vec<Element>) -> bool| {
                set(&a.iter().filter(|p| keep(p)).cloned().collect::<Vec<_>>())
            };
            let both: Vec<_> = a.iter().chain(&b).cloned().collect();
            prop_assert_eq!(left.union(&right), set(&both));
            prop_assert_eq!(left.intersection(&right), listed(&|p| b.contains(p)));
            prop_assert_eq!(left.difference(&right), listed(&|p| !b.contains(p)));
            prop_assert_eq!(left.recursive_difference(&right), listed(&|p| !b.iter().any(|q| p.starts_with(q))));
            prop_assert_eq!(set(&left.paths()), left);
        }
    }

    #[test]
    fn a_path_is_spelled_as_in_conflict_messages() {
        let key = |name: &str| Element::Key(vec![("name".to_owned(), json!(name))]);
        let cases = [
            (vec![Element::field("spec"), Element::field("replicas")], ".spec.replicas", "fields have dots"),
            (
                vec![Element::field("containers"), key("app"), Element::field("image")],
                ".containers[name=\"app\"].image",
                "entries show their key",
            ),
            (
                vec![Element::field("finalizers"), Element::Value(json!("a/b"))],
                ".finalizers[=\"a/b\"]",
                "so do those of sets",
            ),
            (vec![Element::field("x"), Element::Index(2)], ".x[2]", "or their place"),
        ];
        for (path, want, why) in cases {
            assert_eq!(spelled(&path), want, "{why}");
        }
    }

    #[test]
    fn what_is_not_a_field_set_is_refused_and_the_future_ignored() {
        assert!(FieldSet::from_wire(&json!({"x": {}})).is_err());
        assert!(FieldSet::from_wire(&json!({"k:[]": {}})).is_err());
        assert!(FieldSet::from_wire(&json!([])).is_err());
        assert!(FieldSet::from_wire(&json!({"z:new": {}})).unwrap().is_empty());
    }

    #[test]
    fn one_and_one_point_zero_name_the_same_entry() {
        assert_eq!(Element::Value(json!(1)), Element::Value(json!(1.0)));
        assert_eq!(Element::Value(json!(80.0)).wire(), "v:80");
    }
}
