//! Which Kubernetes objects are in these files, and what is wrong with them?
//!
//! A file is what `kubectl get -o yaml` or `-o json` prints, or what `kubectl apply` takes: documents one after
//! another, lists unwrapped. Everything is looked at before anything is answered: [`read`] gives either all objects
//! or all problems. What is *wanted* (the spec of a pod) must be right; what was only *observed* (a node's status, a
//! metric) may be anything, since production is like that: what cannot be read there is left out, with a warning.

mod block;
mod check;
mod json;
mod split;
#[cfg(test)]
mod tests;
mod yaml;

use self::split::Piece;
use serde_json::{Map, Value};
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where in the input something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named; `stdin` for `-`.
    pub file: Arc<str>,
    /// The document in it, counted from 1; empty ones do not count. None when it is about the file.
    pub number: Option<usize>,
    /// The item, if the document is a list, counted from 0.
    pub item: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(number) = self.number {
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
    /// Where.
    pub place: Place,
    /// At which field, such as `spec.containers[0].name`; empty when it is about the whole document.
    pub path: String,
    /// What was expected, and what was found.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)
    }
}

/// An object and where it was found.
#[derive(Clone, Debug)]
pub struct Document {
    /// Where.
    pub place: Place,
    /// Its API version, such as `apps/v1`.
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The whole object.
    pub value: Value,
}

impl Document {
    /// A problem with a field of this object.
    pub fn problem(&self, path: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem { place: self.place.clone(), path: path.into(), what: what.into() }
    }
}

/// An API version and a kind.
pub type Kind = (&'static str, &'static str);

/// All that was read.
#[derive(Debug, Default)]
pub struct Documents {
    /// The objects, in the order of the files.
    pub objects: Vec<Document>,
    /// What was left out or overlooked.
    pub warnings: Vec<Problem>,
}

/// Reads files; `-` is the standard input. Objects of other than the given kinds are problems.
///
/// # Errors
/// Every problem there is, in the order of the files; never an empty list.
pub fn read(files: &[PathBuf], kinds: &[Kind]) -> Result<Documents, Vec<Problem>> {
    let (read, problems) = scan(files, kinds);
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

/// Like [`read`], for who has more to say about objects: those that are fine, and every problem with the others.
pub fn scan(files: &[PathBuf], kinds: &[Kind]) -> (Documents, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut objects = Vec::new();
    let mut found = false;
    for file in files {
        let name: Arc<str> = if is_stdin(file) { "stdin".into() } else { file.to_string_lossy().into() };
        let place = |number| Place { file: name.clone(), number, item: None };
        let text = match contents(file) {
            Ok(text) => text,
            Err(what) => {
                problems.push(Problem { place: place(None), path: String::new(), what });
                continue;
            }
        };
        for (index, document) in parse(&text).into_iter().enumerate() {
            found = true;
            let place = place(Some(index + 1));
            match document {
                Ok(value) => unwrap(&place, value, kinds, &mut objects, &mut problems),
                Err(what) => problems.push(Problem { place, path: String::new(), what }),
            }
        }
    }
    if !found && problems.is_empty() {
        let file = files.first().map_or_else(String::new, |file| file.to_string_lossy().into_owned());
        let place = Place { file: file.into(), number: None, item: None };
        let what = "expected Kubernetes objects, found nothing".to_owned();
        problems.push(Problem { place, path: String::new(), what });
    }
    check_all(objects, kinds, problems)
}

/// Like [`scan`], of objects that came from elsewhere as values, lists among them.
pub fn from_values(name: &str, values: Vec<Value>, kinds: &[Kind]) -> (Documents, Vec<Problem>) {
    let (mut problems, mut objects) = (Vec::new(), Vec::new());
    let place = Place { file: name.into(), number: None, item: None };
    for value in values {
        unwrap(&place, value, kinds, &mut objects, &mut problems);
    }
    check_all(objects, kinds, problems)
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

/// One part of a file that can be read by itself.
struct Part<'a> {
    piece: Piece<'a>,
    read: fn(Piece<'_>) -> Vec<Result<Value, String>>,
    values: Vec<Result<Value, String>>,
}

/// How parts make up the file.
enum Plan<'a> {
    /// The next part holds whole documents.
    Documents,
    /// A list: its frame, and how many of the next parts are its items.
    List(Piece<'a>, Map<String, Value>, usize),
}

/// The documents of a file in their order, each with its value or what stops it from being read.
fn parse(text: &str) -> Vec<Result<Value, String>> {
    let mut plans = Vec::new();
    let mut parts = Vec::new();
    for piece in split::documents(text) {
        let json = piece.text.trim_start().starts_with(['{', '[']);
        let list = if json { None } else { split::items(piece) };
        let frame = list.as_ref().and_then(|list| block::parse(&list.frame));
        if let (Some(list), Some(Value::Object(frame))) = (list, frame) {
            plans.push(Plan::List(piece, frame, list.items.len()));
            parts.extend(list.items.into_iter().map(|piece| Part { piece, read: yaml::one, values: vec![] }));
        } else {
            plans.push(Plan::Documents);
            parts.push(Part { piece, read: if json { yaml::json } else { yaml::one }, values: vec![] });
        }
    }
    side_by_side(&mut parts, |part| part.values = (part.read)(part.piece));
    let mut parts = parts.into_iter();
    let mut documents = Vec::new();
    for plan in plans {
        match plan {
            Plan::Documents => documents.extend(parts.next().into_iter().flat_map(|part| part.values)),
            Plan::List(whole, mut frame, count) => {
                let items = parts.by_ref().take(count).flat_map(|part| part.values);
                if let Some(items) = items.map(sole).collect::<Option<Vec<_>>>() {
                    frame.insert("items".to_owned(), Value::Array(items));
                    documents.push(Ok(Value::Object(frame)));
                } else {
                    // An item may refer to another one. Read as a whole, it is right or its error is.
                    documents.extend(yaml::one(whole));
                }
            }
        }
    }
    documents
}

/// What is in a sequence of one.
fn sole(item: Result<Value, String>) -> Option<Value> {
    match item {
        Ok(Value::Array(mut items)) if items.len() == 1 => items.pop(),
        _ => None,
    }
}

/// Takes lists apart and finds out what each object is.
fn unwrap(
    place: &Place,
    mut value: Value,
    kinds: &[Kind],
    objects: &mut Vec<Document>,
    problems: &mut Vec<Problem>,
) {
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let of_list = text(&value, "kind").filter(|kind| kind.ends_with("List")).zip(text(&value, "apiVersion"));
    let Some((list, version)) = of_list else {
        match identify(place, value, kinds) {
            Ok(object) => objects.push(object),
            Err(problem) => problems.push(problem),
        }
        return;
    };
    let items = match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        None | Some(Value::Null) => Vec::new(),
        Some(other) => {
            let what = format!("expected a list, found {}", check::found(&other));
            problems.push(Problem { place: place.clone(), path: "items".to_owned(), what });
            return;
        }
    };
    let kind = list.trim_end_matches("List");
    for (index, mut item) in items.into_iter().enumerate() {
        let place = Place { item: Some(index), ..place.clone() };
        // In a list of one kind, the API server leaves out what the list has said.
        if let (Value::Object(fields), false) = (&mut item, kind.is_empty()) {
            fields.entry("kind").or_insert_with(|| kind.into());
            fields.entry("apiVersion").or_insert_with(|| version.clone().into());
        }
        match identify(&place, item, kinds) {
            Ok(object) => objects.push(object),
            Err(problem) => problems.push(problem),
        }
    }
}

fn identify(place: &Place, value: Value, kinds: &[Kind]) -> Result<Document, Problem> {
    let problem = |path: &str, what| Problem { place: place.clone(), path: path.to_owned(), what };
    if !value.is_object() {
        let what = format!("expected a Kubernetes object, found {}", check::found(&value));
        return Err(problem("", what));
    }
    let text = |field: &str, example: &str| match value.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
        None => {
            Err(problem(field, format!("expected {example}, found nothing; is this a Kubernetes object?")))
        }
        Some(other) => Err(problem(field, format!("expected {example}, found {}", check::found(other)))),
    };
    let kind = text("kind", "a kind such as Pod")?;
    let version = text("apiVersion", "an API version such as v1")?;
    if let Some((version, kind)) = kinds.iter().find(|known| **known == (version, kind)).copied() {
        return Ok(Document { place: place.clone(), api_version: version, kind, value });
    }
    let versions: Vec<&str> = kinds.iter().filter(|known| known.1 == kind).map(|known| known.0).collect();
    if versions.is_empty() {
        let mut names: Vec<&str> = kinds.iter().map(|known| known.1).collect();
        names.dedup();
        let what = format!("unknown kind {kind}, expected one of {}", names.join(", "));
        return Err(problem("kind", what));
    }
    let what = format!("unknown API version {version:?} of {kind}, expected {}", versions.join(" or "));
    Err(problem("apiVersion", what))
}

/// An object on its way through the checks.
struct Checked {
    object: Document,
    findings: check::Findings,
}

fn check_all(
    objects: Vec<Document>,
    kinds: &[Kind],
    mut problems: Vec<Problem>,
) -> (Documents, Vec<Problem>) {
    let schemas = check::Schemas::of(kinds);
    let mut checked: Vec<Checked> =
        objects.into_iter().map(|object| Checked { object, findings: check::Findings::default() }).collect();
    side_by_side(&mut checked, |one| {
        one.findings = schemas.check((one.object.api_version, one.object.kind), &mut one.object.value);
    });
    let mut read = Documents { objects: Vec::with_capacity(checked.len()), warnings: Vec::new() };
    for Checked { object, findings } in checked {
        let fine = findings.problems.is_empty();
        problems.extend(findings.problems.into_iter().map(|(path, what)| object.problem(path, what)));
        read.warnings.extend(findings.warnings.into_iter().map(|(path, what)| object.problem(path, what)));
        if fine {
            read.objects.push(object);
        }
    }
    (read, sorted(problems))
}

/// In the order of the input, although they were found in several rounds.
pub fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    let mut files: Vec<Arc<str>> = Vec::new();
    for problem in &problems {
        if !files.contains(&problem.place.file) {
            files.push(problem.place.file.clone());
        }
    }
    problems.sort_by_cached_key(|problem| {
        let place = &problem.place;
        (files.iter().position(|file| *file == place.file), place.number, place.item)
    });
    problems
}

/// Does something to each of many, on all cores.
pub fn side_by_side<T: Send>(work: &mut [T], each: impl Fn(&mut T) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = (work.len() / (threads * 8)).clamp(1, 256);
    let rest = Mutex::new(work.chunks_mut(share));
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(some) = next() {
            some.iter_mut().for_each(&each);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
}
