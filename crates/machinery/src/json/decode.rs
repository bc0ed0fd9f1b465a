//! How do things that know how to read themselves read a part of a tree? As they would read a [`serde_json::Value`],
//! with the same words about what is wrong.

use super::{Map, Tree};
use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Error;

impl<'de> IntoDeserializer<'de, Error> for &'de Tree<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Tree<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Tree::Null => visitor.visit_unit(),
            Tree::Bool(truth) => visitor.visit_bool(*truth),
            Tree::Number(number) => number.deserialize_any(visitor),
            Tree::String(text) => visitor.visit_borrowed_str(text),
            Tree::Array(items) => {
                let mut seq = SeqDeserializer::new(items.iter());
                let out = visitor.visit_seq(&mut seq)?;
                match SeqAccess::size_hint(&seq) {
                    Some(0) => Ok(out),
                    _ => Err(Error::invalid_length(items.len(), &"fewer elements in array")),
                }
            }
            Tree::Object(fields) => visitor.visit_map(map(fields)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// A variant is a text, or an object with the variant as its only field.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let found = match self {
            Tree::String(text) => return visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Tree::Object(fields) if fields.0.len() == 1 => {
                return visitor.visit_enum(MapAccessDeserializer::new(map(fields)));
            }
            Tree::Object(_) => {
                return Err(Error::invalid_value(Unexpected::Map, &"map with a single key"));
            }
            Tree::Null => Unexpected::Unit,
            Tree::Bool(truth) => Unexpected::Bool(*truth),
            Tree::Number(number) => number_found(number),
            Tree::Array(_) => Unexpected::Seq,
        };
        Err(Error::invalid_type(found, &"string or map"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

fn number_found(number: &serde_json::Number) -> Unexpected<'static> {
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(whole), _, _) => Unexpected::Unsigned(whole),
        (None, Some(whole), _) => Unexpected::Signed(whole),
        (None, None, float) => Unexpected::Float(float.unwrap_or(f64::NAN)),
    }
}

type Entries<'de, 'a> = std::iter::Map<
    std::slice::Iter<'de, super::Entry<'a>>,
    fn(&'de super::Entry<'a>) -> (BorrowedStrDeserializer<'de, Error>, &'de Tree<'a>),
>;

fn map<'de, 'a>(fields: &'de Map<'a>) -> MapDeserializer<'de, Entries<'de, 'a>, Error> {
    MapDeserializer::new(fields.0.iter().map(|(key, value)| (BorrowedStrDeserializer::new(key), value)))
}
