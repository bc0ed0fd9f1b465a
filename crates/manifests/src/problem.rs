//! What is wrong with the input, and where?

use std::fmt;
use std::sync::Arc;

/// Where in the input an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as it was named; `stdin` for `-`.
    pub file: Arc<str>,
    /// The document in it, counted from 1; empty ones do not count. None when the file as a whole is meant.
    pub document: Option<usize>,
    /// The item, if the document is a list, counted from 0.
    pub item: Option<usize>,
}

impl Location {
    /// A file as a whole.
    #[must_use]
    pub fn file(name: impl Into<Arc<str>>) -> Self {
        Self { file: name.into(), document: None, item: None }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(number) = self.document {
            write!(f, ": document {number}")?;
        }
        if let Some(item) = self.item {
            write!(f, ", items[{item}]")?;
        }
        Ok(())
    }
}

/// Something wrong, or worth knowing, about the input. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where; none when it is about all of the input.
    pub location: Option<Location>,
    /// At which field, such as `spec.containers[0].name`; empty when it is about the whole object.
    pub path: String,
    /// What was expected, and what was found.
    pub message: String,
}

impl Problem {
    /// About a file, or about a document that could not even be read.
    pub fn at(location: Location, message: impl Into<String>) -> Self {
        Self { location: Some(location), path: String::new(), message: message.into() }
    }

    /// About all of the input.
    pub fn general(message: impl Into<String>) -> Self {
        Self { location: None, path: String::new(), message: message.into() }
    }

    /// The same with more to say.
    pub(crate) fn and(self, more: impl fmt::Display) -> Self {
        Self { message: format!("{}; {more}", self.message), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Why the input cannot be used: every problem there is, in the order of the input. Displays as one line each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Problems(Vec<Problem>);

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Problems {
    /// Sorts what was found in several rounds; what is about all of the input comes last.
    #[must_use]
    pub fn new(mut problems: Vec<Problem>) -> Self {
        let mut files: Vec<Arc<str>> = Vec::new();
        for location in problems.iter().filter_map(|problem| problem.location.as_ref()) {
            if !files.contains(&location.file) {
                files.push(location.file.clone());
            }
        }
        problems.sort_by_cached_key(|problem| {
            let location = problem.location.as_ref();
            let file = location.and_then(|found| files.iter().position(|file| *file == found.file));
            (location.is_none(), file, location.map(|found| (found.document, found.item)))
        });
        Self(problems)
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
