//! How are objects read? Field by field, with the path at hand, every problem noted.
//!
//! Objects come as JSON and may be of any shape. [`At`] is a place in one; what is read there is what was
//! expected, or nothing and a [`Problem`]. Fields that are missing or `null` are not problems, as everywhere in
//! Kubernetes. In the end there is either the answer or an [`Error`] with all problems at once.

use crate::json::{Map, Skip, Tree};
use jiff::Timestamp;
use loadline_core::quantity::Quantity;
use loadline_core::resources::List;
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, such as `spec.containers[0].name`.
    pub path: String,
    /// What is wrong, and what was expected.
    pub problem: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.problem),
            path => write!(f, "{path}: {}", self.problem),
        }
    }
}

/// Why an object cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Error {
    /// Which one: its kind, namespace and name, as far as they can be read.
    pub object: String,
    /// Everything that is wrong with it; at least one.
    pub problems: Vec<Problem>,
}

/// Something wrong that does not keep the object from being used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Which object, as in [`Error`].
    pub object: String,
    /// What is wrong, and where.
    pub problem: Problem,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.problem)
    }
}

/// Reads an object of that kind.
pub(crate) fn object<T>(
    kind: &str,
    value: &Tree<'_>,
    read: impl FnOnce(&At<'_, '_>) -> T,
) -> Result<T, Error> {
    tolerant(kind, value, read).map(|(out, _)| out)
}

/// Reads an object of that kind, some problems of which are only worth a warning.
pub(crate) fn tolerant<T>(
    kind: &str,
    value: &Tree<'_>,
    read: impl FnOnce(&At<'_, '_>) -> T,
) -> Result<(T, Vec<Warning>), Error> {
    let notes = RefCell::default();
    let root = At { value, step: Step::Root, notes: &notes };
    if value.is_null() {
        root.wrong("an object");
    }
    let out = read(&root);
    let Notes { problems, warnings } = notes.into_inner();
    let object = name(kind, value);
    if !problems.is_empty() {
        return Err(Error { object, problems });
    }
    let warnings =
        warnings.into_iter().map(|problem| Warning { object: object.clone(), problem }).collect::<Vec<_>>();
    Ok((out, warnings))
}

/// `Pod default/web`, `Node n1`.
fn name(kind: &str, value: &Tree<'_>) -> String {
    let part = |key: &str| value["metadata"][key].as_str().unwrap_or_default();
    match (part("namespace"), part("name")) {
        ("", "") => format!("{kind} without a name"),
        ("", name) => format!("{kind} {name}"),
        (namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}

#[derive(Default)]
struct Notes {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p Step<'p>, &'p str),
    Item(&'p Step<'p>, usize),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            // Names of resources and labels have dots of their own.
            Self::Key(up, key) if key.contains(['.', '/']) => write!(f, "{up}[{key}]"),
            Self::Key(up, key) => write!(f, "{up}.{key}"),
            Self::Item(up, i) => write!(f, "{up}[{i}]"),
        }
    }
}

static NULL: Tree<'static> = Tree::Null;

/// A place in an object: what is there and how to get there.
#[derive(Clone, Copy)]
pub(crate) struct At<'v, 'p> {
    value: &'v Tree<'v>,
    step: Step<'p>,
    notes: &'p RefCell<Notes>,
}

impl<'v, 'p> At<'v, 'p> {
    /// The field of that name; one that is missing reads as `null`.
    pub(crate) fn get<'q>(&'q self, key: &'q str) -> At<'v, 'q>
    where
        'p: 'q,
    {
        if !matches!(self.value, Tree::Null | Tree::Object(_)) {
            self.wrong("an object");
        }
        At {
            value: self.value.get(key).unwrap_or(&NULL),
            step: Step::Key(&self.step, key),
            notes: self.notes,
        }
    }

    /// Is there anything?
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// This place, if there is anything.
    pub(crate) fn some(self) -> Option<Self> {
        self.is_set().then_some(self)
    }

    /// Notes what is wrong here; the object cannot be used.
    pub(crate) fn fail(&self, problem: impl Into<String>) {
        let problem = self.problem(problem);
        let problems = &mut self.notes.borrow_mut().problems;
        // A field may be read more than once.
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// Notes what is wrong here; the object can be used all the same.
    pub(crate) fn warn(&self, problem: impl Into<String>) {
        let problem = self.problem(problem);
        self.notes.borrow_mut().warnings.push(problem);
    }

    /// Reads something written in here that the object can be used without: problems become warnings. None if
    /// there are any.
    pub(crate) fn attempt<'i, T>(
        &self,
        inner: &'i Tree<'i>,
        read: impl FnOnce(&At<'i, '_>) -> T,
    ) -> Option<T> {
        let notes = RefCell::default();
        let out = read(&At { value: inner, step: self.step, notes: &notes });
        let Notes { problems, warnings } = notes.into_inner();
        let fine = problems.is_empty();
        self.notes.borrow_mut().warnings.extend(problems.into_iter().chain(warnings));
        fine.then_some(out)
    }

    /// What is there.
    pub(crate) fn value(&self) -> &'v Tree<'v> {
        self.value
    }

    /// A problem here, not noted yet.
    pub(crate) fn problem(&self, problem: impl Into<String>) -> Problem {
        Problem { path: self.step.to_string(), problem: problem.into() }
    }

    fn wrong(&self, expected: &str) {
        let found = match self.value {
            Tree::Null => "nothing",
            Tree::Bool(_) => "a boolean",
            Tree::Number(_) => "a number",
            Tree::String(_) => "a string",
            Tree::Array(_) => "a list",
            Tree::Object(_) => "an object",
        };
        self.fail(format!("expected {expected}, found {found}"));
    }

    /// What `read` makes of the value; none for `null`, none and a problem if it makes nothing.
    fn read<T>(&self, expected: &str, read: impl FnOnce(&'v Tree<'v>) -> Option<T>) -> Option<T> {
        if self.value.is_null() {
            return None;
        }
        let out = read(self.value);
        if out.is_none() {
            self.wrong(expected);
        }
        out
    }

    /// The items of a list.
    pub(crate) fn items<'q>(&'q self) -> impl Iterator<Item = At<'v, 'q>>
    where
        'p: 'q,
    {
        let list = self.read("a list", Tree::as_array).into_iter().flatten();
        list.enumerate().map(|(i, value)| At { value, step: Step::Item(&self.step, i), notes: self.notes })
    }

    /// The entries of a map.
    pub(crate) fn entries<'q>(&'q self) -> impl Iterator<Item = (&'v str, At<'v, 'q>)>
    where
        'p: 'q,
        'v: 'q,
    {
        let map = self.read("an object", Tree::as_object).into_iter().flat_map(Map::iter);
        map.map(|(key, value)| (key, At { value, step: Step::Key(&self.step, key), notes: self.notes }))
    }

    /// Tells which fields nobody reads: a misspelt one would say nothing.
    pub(crate) fn only(&self, known: &[&str]) {
        for (name, at) in self.entries().filter(|(name, _)| !known.contains(name)) {
            let near = known.iter().find(|known| known.starts_with(name) || name.starts_with(**known));
            let hint = near.map_or_else(String::new, |near| format!("; is {near} meant?"));
            at.warn(format!("unknown field, overlooked{hint}"));
        }
    }

    /// A text, as long as it is not empty: Kubernetes does not tell empty from missing.
    pub(crate) fn text(&self) -> Option<&'v str> {
        self.read("a string", Tree::as_str).filter(|text| !text.is_empty())
    }

    /// A text, perhaps an empty one.
    pub(crate) fn string(&self) -> String {
        self.text().unwrap_or_default().to_owned()
    }

    /// A text, perhaps an empty one, for many to have.
    pub(crate) fn shared(&self) -> Arc<str> {
        self.text().map(Into::into).unwrap_or_default()
    }

    /// A text that must be there.
    pub(crate) fn needed(&self) -> String {
        if self.value.is_null() || self.value.as_str() == Some("") {
            self.fail("must not be empty");
        }
        self.string()
    }

    /// A whole number.
    pub(crate) fn int(&self) -> Option<i64> {
        self.read("a whole number", Tree::as_i64)
    }

    /// A whole number of 32 bits.
    pub(crate) fn int32(&self) -> Option<i32> {
        self.read("a whole number of 32 bits", |v| v.as_i64().and_then(|n| i32::try_from(n).ok()))
    }

    pub(crate) fn number(&self) -> Option<f64> {
        self.read("a number", Tree::as_f64)
    }

    /// A switch, off unless given.
    pub(crate) fn flag(&self) -> bool {
        self.read("true or false", Tree::as_bool).unwrap_or_default()
    }

    /// A moment.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        self.read("a time such as 2025-01-31T12:00:00Z", |v| v.as_str()?.parse().ok())
    }

    /// Texts by name: labels, annotations, a node selector.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        out.extend(self.entries().map(|(key, at)| (key.to_owned(), at.string())));
        out
    }

    /// A list of texts.
    pub(crate) fn strings(&self) -> Vec<String> {
        self.items().map(|at| at.string()).collect()
    }

    /// Something that knows how to read itself.
    pub(crate) fn parse<T: Deserialize<'v>>(&self) -> Option<T> {
        // Reading a list as a struct would succeed, by position; nothing in Kubernetes is written so.
        if self.value.is_null() || self.value.is_array() {
            return self.read("an object", |_| None);
        }
        T::deserialize(self.value).map_err(|e| self.fail(e.to_string())).ok()
    }

    /// A list of things that know how to read themselves.
    pub(crate) fn list<T: Deserialize<'v>>(&self) -> Vec<T> {
        self.items().filter_map(|at| at.parse()).collect()
    }

    /// An amount, or what is wrong with it. There is always something wrong with `null`.
    pub(crate) fn amount(&self) -> Result<Quantity, Problem> {
        if self.value.is_null() {
            return Err(self.problem("expected a quantity, found nothing"));
        }
        let amount = Quantity::deserialize(self.value).map_err(|e| self.problem(e.to_string()))?;
        if amount.is_negative() {
            return Err(self.problem(format!("quantity {amount} must not be negative")));
        }
        Ok(amount)
    }

    /// Amounts by resource. What is wrong with one leaves out that one, and is told.
    pub(crate) fn amounts(&self, mut tell: impl FnMut(Problem)) -> List {
        let mut out = List::new();
        for (name, at) in self.entries() {
            match at.amount() {
                Ok(amount) => drop(out.insert(name.to_owned(), amount)),
                Err(problem) => tell(problem),
            }
        }
        out
    }

    /// Amounts by resource. What is wrong with one leaves out that one, with a warning.
    pub(crate) fn known_amounts(&self) -> List {
        self.amounts(|problem| self.notes.borrow_mut().warnings.push(problem))
    }
}

/// What of the metadata of most objects is long and not read.
pub(crate) const METADATA: Skip = Skip::fields(&["annotations", "finalizers", "managedFields"]);

/// The controller among the owners of an object.
pub(crate) fn controller(metadata: &At<'_, '_>) -> Option<loadline_core::view::Owner> {
    let owners = metadata.get("ownerReferences");
    let found = owners.items().find(|at| at.get("controller").flag())?;
    Some(loadline_core::view::Owner {
        group: group(found.get("apiVersion").text().unwrap_or_default()).into(),
        kind: found.get("kind").shared(),
        name: found.get("name").shared(),
        uid: found.get("uid").shared(),
    })
}

/// The group of an API version: `apps` of `apps/v1`, nothing of `v1`.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}
