//! Which fields are not even built?
//!
//! Most of an object is of no use to us: who set which field, environment variables, probes, the images of a node. It is
//! passed over while the text is read. Each reader says beside itself what it does not read.

use super::{Entry, Map, Tree};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use std::borrow::Cow;
use std::fmt;

/// Fields that are skipped while decoding. Lists are looked through: a field of a container is within `containers`.
#[derive(Clone, Copy, Debug)]
pub struct Skip {
    pub(super) fields: &'static [&'static str],
    pub(super) within: &'static [(&'static str, Self)],
}

impl Skip {
    /// Everything is decoded.
    pub const NOTHING: Self = Self::fields(&[]);

    /// Who set which field. Often the longest part of an object.
    pub const MANAGED_FIELDS: Self = Self::NOTHING.within(&[("metadata", Self::fields(&["managedFields"]))]);

    /// These fields are skipped.
    #[must_use]
    pub const fn fields(fields: &'static [&'static str]) -> Self {
        Self { fields, within: &[] }
    }

    /// And of these, some of their own.
    #[must_use]
    pub const fn within(self, within: &'static [(&'static str, Self)]) -> Self {
        Self { within, ..self }
    }

    /// Is a field of that name skipped?
    pub(crate) fn skips(self, key: &str) -> bool {
        self.fields.contains(&key)
    }

    /// What is skipped of a field that is not.
    pub(crate) fn below(self, key: &str) -> Self {
        self.within.iter().find(|(name, _)| *name == key).map_or(Self::NOTHING, |(_, skip)| *skip)
    }
}

impl<'de> DeserializeSeed<'de> for Skip {
    type Value = Tree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Tree<'de>, D::Error> {
        let mut open = Open { items: Vec::with_capacity(16), fields: Vec::with_capacity(64) };
        Build { skip: self, open: &mut open }.deserialize(from)
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for Tree<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Skip::NOTHING.deserialize(from)
    }
}

/// Lists and objects that are not complete yet, one behind the other. Each is moved out once its size is known, so that
/// no list grows.
struct Open<'de> {
    items: Vec<Tree<'de>>,
    fields: Vec<Entry<'de>>,
}

struct Build<'o, 'de> {
    skip: Skip,
    open: &'o mut Open<'de>,
}

impl<'de> DeserializeSeed<'de> for Build<'_, 'de> {
    type Value = Tree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Tree<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_, 'de> {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let Self { skip, open } = self;
        let first = open.fields.len();
        while let Some(key) = map.next_key_seed(Key)? {
            if skip.skips(&key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value_seed(Build { skip: skip.below(&key), open })?;
            open.fields.push((key, value));
        }
        Ok(Tree::Object(Map::new(open.fields.drain(first..).collect())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree<'de>, A::Error> {
        let Self { skip, open } = self;
        let first = open.items.len();
        while let Some(item) = seq.next_element_seed(Build { skip, open })? {
            open.items.push(item);
        }
        Ok(Tree::Array(open.items.drain(first..).collect()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree<'de>, E> {
        Ok(Number::from_f64(value).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Owned(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Owned(value)))
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }
}

/// The name of a field.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Cow<'de, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(value))
    }
}
