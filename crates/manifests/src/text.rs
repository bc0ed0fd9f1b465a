//! What does the text of a file say? Documents one after another, in YAML or JSON, each read by itself.
//!
//! A long file is cut into documents and a long list into its items before they are read, side by side. What cannot
//! be read so is read as a whole: cutting never changes what is said.

mod block;
mod json;
pub mod split;
#[cfg(test)]
mod tests;
pub mod yaml;

use crate::parallel;
use serde_json::{Map, Value};
use split::Piece;

/// What a document says, or what keeps it from being read.
pub type Document = Result<Value, String>;

/// The documents of a file, in their order; those that say nothing are left out.
pub fn documents(text: &str) -> Vec<Document> {
    documents_by(text, yaml::read)
}

/// The same, each document of YAML and each item of a list read by the one that is given.
pub fn documents_by(text: &str, read: fn(Piece<'_>) -> Document) -> Vec<Document> {
    let mut plans = Vec::new();
    let mut parts = Vec::new();
    for piece in split::documents(text) {
        let (plan, pieces) = plan(piece);
        plans.push(plan);
        parts.extend(pieces);
    }
    let mut parts = parallel::map(parts, |part| part.read(read)).into_iter();
    plans.into_iter().flat_map(|plan| plan.join(&mut parts)).collect()
}

/// The same without shortcuts: every document by a complete parser.
#[cfg(any(test, feature = "test-util"))]
pub fn complete_documents(text: &str) -> Vec<Document> {
    let read = |piece: Piece<'_>| match plan(piece) {
        (_, parts) if matches!(parts.as_slice(), [Part::Json(_)]) => json::read(piece),
        _ => vec![yaml::complete(piece)],
    };
    split::documents(text).into_iter().flat_map(read).collect()
}

/// One document of ours, in YAML.
///
/// # Errors
/// What is wrong with it.
pub fn document(text: &str) -> Document {
    yaml::read(Piece { line: 1, depth: 0, text })
}

/// A part of a file that can be read by itself.
enum Part<'a> {
    Yaml(Piece<'a>),
    /// Any number of values.
    Json(Piece<'a>),
}

impl Part<'_> {
    fn read(self, yaml: fn(Piece<'_>) -> Document) -> Vec<Document> {
        match self {
            Self::Yaml(piece) => vec![yaml(piece)],
            Self::Json(piece) => json::read(piece),
        }
    }
}

/// How a document is put together from its parts.
enum Plan<'a> {
    /// The next part holds whole documents.
    Whole,
    /// A list: all of it, what it says beside its items, and how many of the next parts these are.
    List(Piece<'a>, Map<String, Value>, usize),
}

fn plan(piece: Piece<'_>) -> (Plan<'_>, Vec<Part<'_>>) {
    if piece.text.trim_start().starts_with(['{', '[']) {
        return (Plan::Whole, vec![Part::Json(piece)]);
    }
    let list = split::items(piece);
    let frame = list.as_ref().and_then(|list| block::parse(&list.frame));
    if let (Some(list), Some(Value::Object(frame))) = (list, frame) {
        let plan = Plan::List(piece, frame, list.items.len());
        return (plan, list.items.into_iter().map(Part::Yaml).collect());
    }
    (Plan::Whole, vec![Part::Yaml(piece)])
}

impl Plan<'_> {
    fn join(self, parts: &mut impl Iterator<Item = Vec<Document>>) -> Vec<Document> {
        let Self::List(whole, mut frame, count) = self else { return parts.next().unwrap_or_default() };
        let items: Vec<Option<Value>> = parts.take(count).flatten().map(only_item).collect();
        match items.into_iter().collect() {
            Some(items) => {
                frame.insert("items".to_owned(), Value::Array(items));
                vec![Ok(Value::Object(frame))]
            }
            // An item may refer to another one. Read as a whole, it is right or its error is.
            None => vec![yaml::complete(whole)],
        }
    }
}

/// What is in a sequence of one.
fn only_item(item: Document) -> Option<Value> {
    match item {
        Ok(Value::Array(mut items)) if items.len() == 1 => items.pop(),
        _ => None,
    }
}
