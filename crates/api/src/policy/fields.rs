//! Fields of a document, each by its path; whatever is wrong is noted and reading goes on.

use crate::duration;
use crate::json::{Map, Tree};
use jiff::SignedDuration;
use loadline_core::load::policy::{Origin, Problem};
use loadline_core::load::ratio::Ratio;
use std::cell::RefCell;
use std::fmt::Write as _;

/// What was wrong so far.
#[derive(Debug)]
pub(crate) struct Notes {
    origin: Origin,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

impl Notes {
    pub(crate) fn new(origin: Origin) -> Self {
        Self { origin, problems: RefCell::default(), warnings: RefCell::default() }
    }

    /// Problems and warnings.
    pub(crate) fn take(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.problems.into_inner(), self.warnings.into_inner())
    }

    fn problem(&self, path: String, message: impl Into<String>) -> Problem {
        Problem { origin: self.origin, path, message: message.into() }
    }
}

/// An object of the document; empty where it is missing or no object.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    map: Option<&'a Map<'a>>,
    path: String,
    notes: &'a Notes,
}

impl<'a> Fields<'a> {
    /// The whole document, with the only fields it may have.
    pub(crate) fn root(value: &'a Tree<'a>, notes: &'a Notes, known: &[&str]) -> Self {
        if value.is_null() {
            notes.problems.borrow_mut().push(notes.problem(String::new(), expected("an object", value)));
        }
        Self::new(Some(value), String::new(), notes, known)
    }

    /// A spec that stands alone, as if it were in a document.
    pub(crate) fn spec(value: &'a Tree<'a>, notes: &'a Notes, known: &[&str]) -> Self {
        Self::new(Some(value), "spec".to_owned(), notes, known)
    }

    fn new(value: Option<&'a Tree<'a>>, path: String, notes: &'a Notes, known: &[&str]) -> Self {
        let fields = Self::any(value, path, notes);
        for name in fields.map.into_iter().flat_map(Map::keys) {
            if !known.contains(&name) {
                fields.wrong(name, &format!("unknown field, expected {}", known.join(", ")));
            }
        }
        fields
    }

    /// An object with any fields.
    fn any(value: Option<&'a Tree<'a>>, path: String, notes: &'a Notes) -> Self {
        let map = match value {
            None | Some(Tree::Null) => None,
            Some(Tree::Object(map)) => Some(map),
            Some(other) => {
                let problem = notes.problem(path.clone(), expected("an object", other));
                notes.problems.borrow_mut().push(problem);
                None
            }
        };
        Self { map, path, notes }
    }

    pub(crate) fn at(&self, name: &str) -> String {
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        path
    }

    /// Notes what is wrong with a field.
    pub(crate) fn wrong(&self, name: &str, message: &str) {
        self.notes.problems.borrow_mut().push(self.notes.problem(self.at(name), message));
    }

    /// Notes what is odd about a field.
    pub(crate) fn warn(&self, name: &str, message: &str) {
        self.notes.warnings.borrow_mut().push(self.notes.problem(self.at(name), message));
    }

    pub(crate) fn value(&self, name: &str) -> Option<&'a Tree<'a>> {
        self.map?.get(name).filter(|value| !value.is_null())
    }

    /// Is there anything?
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The names of all fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.map.into_iter().flat_map(Map::keys)
    }

    /// Checks that the document is what it should be.
    pub(crate) fn is(&self, (version, kind): (&str, &str)) {
        for (field, want) in [("apiVersion", version), ("kind", kind)] {
            let found = self.map.map(|map| map.get(field));
            if let Some(found) = found
                && found.and_then(Tree::as_str) != Some(want)
            {
                let found = found.map_or_else(|| "nothing".to_owned(), ToString::to_string);
                self.wrong(field, &format!("expected {want:?}, found {found}"));
            }
        }
    }

    fn read<T>(&self, name: &str, want: &str, read: impl FnOnce(&'a Tree<'a>) -> Option<T>) -> Option<T> {
        let value = self.value(name)?;
        let out = read(value);
        if out.is_none() {
            self.wrong(name, &expected(want, value));
        }
        out
    }

    /// An object with the only fields it may have.
    pub(crate) fn object(&self, name: &str, known: &[&str]) -> Self {
        Self::new(self.value(name), self.at(name), self.notes, known)
    }

    /// An object with any fields.
    pub(crate) fn open(&self, name: &str) -> Self {
        Self::any(self.value(name), self.at(name), self.notes)
    }

    /// A list of objects with the only fields they may have.
    pub(crate) fn list(&self, name: &str, known: &[&str]) -> impl Iterator<Item = Self> {
        let (path, notes) = (self.at(name), self.notes);
        for (i, _) in self.items(name).filter(|(_, item)| item.is_null()) {
            let problem = notes.problem(format!("{path}[{i}]"), expected("an object", &Tree::Null));
            notes.problems.borrow_mut().push(problem);
        }
        self.objects(name, known)
    }

    /// The same where nothing stands for an object without fields, as Go reads it: who uses it says whether that will do.
    pub(crate) fn objects(&self, name: &str, known: &[&str]) -> impl Iterator<Item = Self> {
        let (path, notes) = (self.at(name), self.notes);
        let _ = self.read(name, "a list", Tree::as_array);
        self.items(name).map(move |(i, item)| Self::new(Some(item), format!("{path}[{i}]"), notes, known))
    }

    fn items(&self, name: &str) -> impl Iterator<Item = (usize, &'a Tree<'a>)> + use<'a> {
        self.value(name).and_then(Tree::as_array).into_iter().flatten().enumerate()
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let items = self.read(name, "a list", Tree::as_array).into_iter().flatten().enumerate();
        items
            .filter_map(|(i, item)| {
                let text = item.as_str();
                if text.is_none() {
                    self.wrong(&format!("{name}[{i}]"), &expected("a string", item));
                }
                text.map(str::to_owned)
            })
            .collect()
    }

    /// A text, or an empty one.
    pub(crate) fn text(&self, name: &str) -> &'a str {
        self.word(name).unwrap_or_default()
    }

    /// A text, if it is there.
    pub(crate) fn word(&self, name: &str) -> Option<&'a str> {
        self.read(name, "a string", Tree::as_str)
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let word = self.word(name)?;
        let found = choices.iter().find(|(known, _)| *known == word).map(|(_, choice)| *choice);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
            self.wrong(name, &format!("expected {}, found {word:?}", words.join(" or ")));
        }
        found
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.read(name, "true or false", Tree::as_bool)
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.read(name, "a number", Tree::as_f64)
    }

    /// A share, exactly as it is written.
    pub(crate) fn ratio(&self, name: &str) -> Option<Ratio> {
        self.read(name, "a ratio such as 0.8", |value| value.as_f64().and_then(Ratio::from_f64))
    }

    /// A whole number, or 0.
    pub(crate) fn whole(&self, name: &str) -> i64 {
        self.read(name, "a whole number", Tree::as_i64).unwrap_or_default()
    }

    /// The same of a field that Go refuses to be `null`.
    pub(crate) fn duration_not_null(&self, name: &str) -> SignedDuration {
        if self.map.and_then(|map| map.get(name)).is_some_and(Tree::is_null) {
            self.wrong(name, &expected(TIME, &Tree::Null));
        }
        self.duration(name)
    }

    /// A time, or none at all.
    pub(crate) fn duration(&self, name: &str) -> SignedDuration {
        self.read(name, TIME, |value| value.as_str().and_then(duration::parse)).unwrap_or_default()
    }
}

const TIME: &str = "a time such as \"3m\" or \"1h30m\"";

/// What was expected and what was found; short values as they are.
fn expected(want: &str, found: &Tree<'_>) -> String {
    let mut message = format!("expected {want}, found ");
    let _ = match found {
        Tree::Null => write!(message, "nothing"),
        Tree::Array(_) => write!(message, "a list"),
        Tree::Object(_) => write!(message, "an object"),
        Tree::String(text) if text.chars().count() > 40 => write!(message, "a long text"),
        Tree::Bool(_) | Tree::Number(_) | Tree::String(_) => write!(message, "{found}"),
    };
    message
}
