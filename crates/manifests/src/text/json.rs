//! What does JSON text say? As `serde_json` reads it, but a key given twice is refused instead of overwritten.

use super::split::Piece;
use super::{Document, yaml};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// JSON that cannot be read is tried as YAML, of which it may be another form, up to this size.
const SECOND_TRY: usize = 1 << 20;

/// Values one after another, up to the first that cannot be read.
pub fn read(piece: Piece<'_>) -> Vec<Document> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(piece.text).into_iter::<Once>() {
        match value {
            Ok(Once(value)) => values.push(Ok(value)),
            Err(error) => {
                if piece.text.len() <= SECOND_TRY
                    && let Ok(value) = yaml::complete(piece)
                {
                    return vec![Ok(value)];
                }
                values.push(Err(piece.wrong(error.line(), error.column(), &error.to_string())));
                break;
            }
        }
    }
    values
}

/// A value in which no object had a key twice.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Once, E> {
        Ok(Once(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Once, E> {
        Ok(Once(Value::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Once, E> {
        Ok(Once(Value::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Once, E> {
        Ok(Once(Value::from(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Once, E> {
        Ok(Once(Value::String(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Once, E> {
        Ok(Once(Value::String(value)))
    }

    fn visit_unit<E>(self) -> Result<Once, E> {
        Ok(Once(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Once, A::Error> {
        let mut items = Vec::new();
        while let Some(Once(item)) = from.next_element()? {
            items.push(item);
        }
        Ok(Once(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Once, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            let Once(value) = from.next_value()?;
            match fields.entry(key) {
                serde_json::map::Entry::Vacant(place) => {
                    place.insert(value);
                }
                serde_json::map::Entry::Occupied(place) => {
                    return Err(A::Error::custom(format_args!("the key {:?} is given twice", place.key())));
                }
            }
        }
        Ok(Once(Value::Object(fields)))
    }
}
