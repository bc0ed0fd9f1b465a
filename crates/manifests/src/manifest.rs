//! Which objects are in these files, and what is wrong with them?

mod decode;
mod folder;
#[cfg(test)]
mod tests;

pub(crate) use decode::read_all;

use crate::kind::{self, Kind};
use crate::problem::{Location, Problem, Problems};
use crate::shape::{Findings, Shapes, found};
use crate::{parallel, text};
use loadline_api::json::Tree;
use loadline_core::object::Key;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// An object as it was written, and where.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub location: Location,
    pub kind: Kind,
    /// The whole object.
    pub value: Value,
}

impl Manifest {
    /// A problem with a field of this object.
    pub fn problem(&self, path: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { location: Some(self.location.clone()), path: path.into(), message: message.into() }
    }

    /// What readers read.
    pub(crate) fn tree(&self) -> Tree<'_> {
        Tree::from(&self.value)
    }

    /// Namespace and name, as far as they are given.
    pub(crate) fn key(&self) -> Key {
        let metadata = &self.value["metadata"];
        let part = |key: &str| metadata[key].as_str().unwrap_or_default();
        Key::new(part("namespace"), part("name"))
    }

    /// The same, with the namespace that is meant where none is given.
    pub(crate) fn full_key(&self) -> Key {
        let key = self.key();
        if key.namespace.is_empty() { Key::new("default", key.name) } else { key }
    }
}

/// Everything that was read: objects that can be used, and what is wrong with the others.
///
/// Problems and warnings are gathered until everything has been looked at; an input such as
/// [`ScheduleInput`](crate::ScheduleInput) then takes the objects and gives either the answer or all problems at once.
#[derive(Debug, Default)]
pub struct Manifests {
    pub(crate) objects: Vec<Manifest>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

impl Manifests {
    /// Reads files; `-` is the standard input. Objects of other than the given kinds are problems, and so is no object
    /// at all.
    #[must_use]
    pub fn read(files: &[PathBuf], kinds: &[Kind]) -> Self {
        let mut reader = Reader::new(kinds);
        reader.files(files);
        reader.finish(Some(first(files)))
    }

    /// Reads files and folders as people have them, such as all of a cluster: objects of kinds that do not matter are
    /// skipped, with one line that says so, and so are files of a folder that belong to the tools that make objects. An
    /// input without any that does matter is a problem.
    #[must_use]
    pub fn gather(paths: &[PathBuf], kinds: &[Kind]) -> Self {
        let mut reader = Reader { skips: true, ..Reader::new(kinds) };
        for path in paths {
            match folder::files(path) {
                Ok(found) => {
                    reader.files(&found.files);
                    reader.leave(found.left);
                }
                Err(message) => {
                    let location = Location::file(path.to_string_lossy());
                    reader.problems.push(Problem::at(location, message));
                }
            }
        }
        reader.finish(Some(first(paths)))
    }

    /// Reads a text as if it were the file of that name.
    #[must_use]
    pub fn parse(name: &str, text: &str, kinds: &[Kind]) -> Self {
        let mut reader = Reader::new(kinds);
        reader.file(&Location::file(name), text);
        reader.finish(Some(name.to_owned()))
    }

    /// The same by the complete parser alone, to say how much faster the reader of what kubectl prints is.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn parse_completely(name: &str, text: &str, kinds: &[Kind]) -> Self {
        let mut reader = Reader::new(kinds);
        reader.documents(&Location::file(name), text::documents_by(text, text::yaml::complete));
        reader.finish(Some(name.to_owned()))
    }

    /// Takes objects, and lists of them, that came from elsewhere as values.
    #[must_use]
    pub fn from_values(name: &str, values: impl IntoIterator<Item = Value>, kinds: &[Kind]) -> Self {
        let mut reader = Reader::new(kinds);
        let location = Location::file(name);
        for value in values {
            reader.document(&location, value);
        }
        reader.finish(None)
    }

    /// The objects that can be used, in the order of the files.
    #[must_use]
    pub fn objects(&self) -> &[Manifest] {
        &self.objects
    }

    /// What was left out or overlooked.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Adds what was read elsewhere.
    pub fn extend(&mut self, more: Self) {
        self.objects.extend(more.objects);
        self.problems.extend(more.problems);
        self.warnings.extend(more.warnings);
    }

    /// Adds what was read elsewhere, but for objects that are here already: these are what somebody asks about.
    pub fn supplement(&mut self, mut more: Self) {
        let here: BTreeSet<(&str, Key)> =
            self.objects.iter().map(|object| (object.kind.name, object.full_key())).collect();
        more.objects.retain(|object| !here.contains(&(object.kind.name, object.full_key())));
        self.extend(more);
    }

    /// Notes what is worth knowing.
    pub fn warn(&mut self, warning: Problem) {
        self.warnings.push(warning);
    }

    /// Notes a problem if no object is of that kind. What could not be read may have been one.
    pub fn require(&mut self, kind: Kind, message: impl Into<String>) {
        let missing = !self.objects.iter().any(|object| object.kind == kind);
        if let (true, true, Some(any)) = (missing, self.problems.is_empty(), self.objects.first()) {
            let file = Location::file(any.location.file.clone());
            self.problems.push(Problem::at(file, message));
        }
    }

    /// Keeps objects about which there is no problem, and notes what was found about all.
    fn keep_fine(&mut self, checked: Vec<(Manifest, Findings)>) {
        for (object, Findings { problems, warnings }) in checked {
            let fine = problems.is_empty();
            self.problems.extend(problems.into_iter().map(|(path, message)| object.problem(path, message)));
            self.warnings.extend(warnings.into_iter().map(|(path, message)| object.problem(path, message)));
            if fine {
                self.objects.push(object);
            }
        }
    }

    /// Takes problems that need not be anybody's for warnings: those objects are left out.
    pub(crate) fn forgive(&mut self, may: impl Fn(&Problem) -> bool) {
        let forgiven = self.problems.extract_if(.., |problem| may(problem));
        self.warnings.extend(forgiven.map(|problem| problem.and("it is left out")));
    }

    /// Nothing, unless something is wrong.
    ///
    /// # Errors
    /// Every problem found so far.
    pub fn check(&self) -> Result<(), Problems> {
        if self.problems.is_empty() { Ok(()) } else { Err(Problems::new(self.problems.clone())) }
    }
}

fn first(paths: &[PathBuf]) -> String {
    paths.first().map_or_else(String::new, |path| path.to_string_lossy().into_owned())
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn contents(file: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = if is_stdin(file) {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ())
    } else if file.is_dir() {
        return Err("expected a file, found a folder".to_owned());
    } else {
        std::fs::read(file).map(|found| bytes = found)
    };
    read.map_err(|error| format!("cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("expected text in UTF-8, found something else at byte {at}")
    })
}

/// Documents on their way to being objects.
struct Reader<'a> {
    kinds: &'a [Kind],
    objects: Vec<Manifest>,
    problems: Vec<Problem>,
    /// Was there any document?
    found: bool,
    /// May there be objects of other kinds?
    skips: bool,
    /// How many there were, by kind; and files that are no objects, by name.
    skipped: BTreeMap<String, usize>,
}

impl<'a> Reader<'a> {
    fn new(kinds: &'a [Kind]) -> Self {
        Self {
            kinds,
            objects: Vec::new(),
            problems: Vec::new(),
            found: false,
            skips: false,
            skipped: BTreeMap::new(),
        }
    }

    fn files(&mut self, files: &[PathBuf]) {
        for file in files {
            let name = if is_stdin(file) { "stdin".into() } else { file.to_string_lossy() };
            let location = Location::file(name);
            match contents(file) {
                Ok(text) => self.file(&location, &text),
                Err(message) => self.problems.push(Problem::at(location, message)),
            }
        }
    }

    /// Counts files that were not read.
    fn leave(&mut self, files: BTreeMap<String, usize>) {
        for (name, count) in files {
            self.found = true;
            *self.skipped.entry(name).or_default() += count;
        }
    }

    fn file(&mut self, file: &Location, text: &str) {
        self.documents(file, text::documents(text));
    }

    fn documents(&mut self, file: &Location, documents: Vec<text::Document>) {
        for (index, document) in documents.into_iter().enumerate() {
            self.found = true;
            let location = Location { document: Some(index + 1), ..file.clone() };
            match document {
                Ok(value) => self.document(&location, value),
                Err(message) => self.problems.push(Problem::at(location, message)),
            }
        }
    }

    /// Takes lists apart.
    fn document(&mut self, location: &Location, mut value: Value) {
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
        let of_list = text(&value, "kind").filter(|kind| kind.ends_with("List"));
        let Some((list, version)) = of_list.zip(text(&value, "apiVersion")) else {
            return self.object(location.clone(), value);
        };
        let items = match value.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            None | Some(Value::Null) => Vec::new(),
            Some(other) => {
                let message = format!("expected a list, found {}", found(&other));
                let path = "items".to_owned();
                return self.problems.push(Problem { path, ..Problem::at(location.clone(), message) });
            }
        };
        let kind = list.trim_end_matches("List");
        for (index, mut item) in items.into_iter().enumerate() {
            // In a list of one kind, the API server leaves out what the list has said.
            if let (Value::Object(fields), false) = (&mut item, kind.is_empty()) {
                fields.entry("kind").or_insert_with(|| kind.into());
                fields.entry("apiVersion").or_insert_with(|| version.clone().into());
            }
            self.object(Location { item: Some(index), ..location.clone() }, item);
        }
    }

    fn object(&mut self, location: Location, value: Value) {
        let found = identify(&value).and_then(|(version, name)| {
            if self.skips && kind::is_another(self.kinds, version, name) {
                *self.skipped.entry(name.to_owned()).or_default() += 1;
                return Ok(None);
            }
            kind::find(self.kinds, version, name).map(Some)
        });
        match found {
            Ok(Some(kind)) => self.objects.push(Manifest { location, kind, value }),
            Ok(None) => {}
            Err((path, message)) => {
                let path = path.to_owned();
                self.problems.push(Problem { path, ..Problem::at(location, message) });
            }
        }
    }

    /// The one line about objects that do not matter. Where there is nothing else, that is a problem of the file that is
    /// named.
    fn tell_skipped(&mut self, file: Option<String>) -> Option<Problem> {
        let all: Vec<String> = self.skipped.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let all = Some(all.join(", ")).filter(|all| !all.is_empty())?;
        if !self.objects.is_empty() || !self.problems.is_empty() {
            return Some(Problem::general(format!("skipped, as they do not matter here: {all}")));
        }
        let message = format!("expected objects of the kinds {}, found only {all}", kind::names(self.kinds));
        self.problems.push(Problem::at(Location::file(file.unwrap_or_default()), message));
        None
    }

    /// Checks every object. An input without any document is a problem of the file that is named.
    fn finish(mut self, file: Option<String>) -> Manifests {
        if let (false, true, Some(file)) = (self.found, self.problems.is_empty(), &file) {
            let message = "expected Kubernetes objects, found nothing";
            self.problems.push(Problem::at(Location::file(file.as_str()), message));
        }
        let warning = self.tell_skipped(file);
        let shapes = Shapes::of(self.kinds);
        let checked = parallel::map(self.objects, |mut object| {
            let findings = shapes.check(object.kind, &mut object.value);
            (object, findings)
        });
        let warnings = warning.into_iter().collect();
        let mut all = Manifests { problems: self.problems, warnings, ..Manifests::default() };
        all.keep_fine(checked);
        all
    }
}

/// The API version and kind of an object, or what is wrong with what it says: a path and a sentence.
fn identify(value: &Value) -> Result<(&str, &str), (&'static str, String)> {
    if !value.is_object() {
        return Err(("", format!("expected a Kubernetes object, found {}", found(value))));
    }
    let text = |field: &'static str, example: &str| match value.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
        None => Err((field, format!("expected {example}, found nothing; is this a Kubernetes object?"))),
        Some(other) => Err((field, format!("expected {example}, found {}", found(other)))),
    };
    let name = text("kind", "a kind such as Pod")?;
    let version = text("apiVersion", "an API version such as v1")?;
    Ok((version, name))
}
