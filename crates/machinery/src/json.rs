//! What does an object say, before it is facts? A tree over its text.
//!
//! A [`Tree`] lives while one object is read. Its strings are slices of the text wherever they have no escapes, so that
//! a watched object costs the lists of its fields and nothing else; fields nobody reads are not even built ([`Skip`]).

mod decode;
mod encode;
mod skip;
#[cfg(test)]
mod tests;

pub use skip::Skip;

use serde::de::DeserializeSeed;
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::ops::Index;

/// JSON, borrowed from its text or from a [`Value`].
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "what JSON has")]
pub enum Tree<'a> {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Array(Vec<Self>),
    Object(Map<'a>),
}

static NULL: Tree<'static> = Tree::Null;

impl<'a> Tree<'a> {
    /// Reads text, without the fields to skip.
    ///
    /// # Errors
    /// When the text is no JSON.
    pub fn parse(text: &'a [u8], skip: Skip) -> Result<Self, serde_json::Error> {
        let mut from = serde_json::Deserializer::from_slice(text);
        let tree = skip.deserialize(&mut from)?;
        from.end()?;
        Ok(tree)
    }

    /// The field of that name; none if there is no such field, or this is no object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    /// Is it `null`, or not there?
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Is it a list?
    #[must_use]
    pub fn is_array(&self) -> bool {
        matches!(self, Self::Array(_))
    }

    /// Has it fields?
    #[must_use]
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// A truth, if it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self { Some(*truth) } else { None }
    }

    /// A number, if it is one.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    /// A whole number that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// A number, as near as can be.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// A text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The items of a list, if it is one.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The fields of an object, if it is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Map<'a>> {
        if let Self::Object(fields) = self { Some(fields) } else { None }
    }
}

/// `tree["spec"]["nodeName"]`; what is not there is `null`.
impl<'a> Index<&str> for Tree<'a> {
    type Output = Tree<'a>;

    fn index(&self, key: &str) -> &Self {
        self.get(key).unwrap_or(&NULL)
    }
}

impl<'a> From<&'a Value> for Tree<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::String(Cow::Borrowed(text)),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                let field = |(key, value): (&'a String, &'a Value)| (Cow::Borrowed(&**key), value.into());
                Self::Object(Map::new(fields.iter().map(field).collect()))
            }
        }
    }
}

/// For what outlives the text.
impl From<&Tree<'_>> for Value {
    fn from(tree: &Tree<'_>) -> Self {
        match tree {
            Tree::Null => Self::Null,
            Tree::Bool(truth) => Self::Bool(*truth),
            Tree::Number(number) => Self::Number(number.clone()),
            Tree::String(text) => Self::String(text.clone().into_owned()),
            Tree::Array(items) => items.iter().map(Self::from).collect(),
            Tree::Object(fields) => {
                fields.iter().map(|(key, value)| (key.to_owned(), Self::from(value))).collect()
            }
        }
    }
}

/// The fields of an object by name, each once: problems are told in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map<'a>(Vec<Entry<'a>>);

pub(crate) type Entry<'a> = (Cow<'a, str>, Tree<'a>);

impl<'a> Map<'a> {
    /// Of fields of the same name, the last counts.
    pub(crate) fn new(mut fields: Vec<Entry<'a>>) -> Self {
        if !fields.is_sorted_by(|one, next| one.0 < next.0) {
            // What is equal stays in order.
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            fields.dedup_by(|next, one| {
                let again = next.0 == one.0;
                if again {
                    std::mem::swap(next, one);
                }
                again
            });
        }
        Self(fields)
    }

    /// Its fields, moved out.
    pub(crate) fn into_entries(self) -> Vec<Entry<'a>> {
        self.0
    }

    /// The field of that name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Tree<'a>> {
        let place = self.0.binary_search_by(|(name, _)| (**name).cmp(key)).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    /// Has it no fields?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All fields, by name.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tree<'a>)> + Clone {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// The names of all fields.
    #[must_use]
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(key, _)| &**key)
    }
}
