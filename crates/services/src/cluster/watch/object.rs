//! How is an object decoded without what nobody looks at?
//!
//! Most of an object is of no use to us: who set which field, environment variables, probes, the images of a node.
//! Built as a tree of values it would take many times what is kept. So it is skipped while reading the text.

use super::Watched;
use loadline_api::Error;
use loadline_core::object::{Key, Meta};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::marker::PhantomData;

/// Fields that are skipped, by name, and within those that are not, which. Lists are looked through: a field of a
/// container is below `containers`.
#[derive(Clone, Copy, Debug)]
pub struct Skip(pub &'static [(&'static str, Self)]);

/// The field is skipped.
pub const DROP: Skip = Skip(&[]);

/// Who set which field. Often the longest part of an object.
pub const MANAGED_FIELDS: Skip = Skip(&[("metadata", Skip(&[("managedFields", DROP)]))]);

impl Skip {
    /// What is skipped below a field; `None` if nothing is known of it.
    fn below(self, key: &str) -> Option<Self> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, skip)| *skip)
    }
}

impl<'de> DeserializeSeed<'de> for Skip {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Skip {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match self.below(&key) {
                Some(Self([])) => drop(map.next_value::<IgnoredAny>()?),
                Some(below) => drop(out.insert(key, map.next_value_seed(below)?)),
                None => drop(out.insert(key, map.next_value()?)),
            }
        }
        Ok(Value::Object(out))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    // Nothing of these can be skipped.
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// An object as it comes out of a list or a watch: facts already.
pub(super) struct Object<W: Watched> {
    pub meta: Meta,
    /// As the server writes it.
    pub revision: String,
    pub facts: Result<W::Facts, Error>,
    kind: PhantomData<fn() -> W>,
}

// What `kube` wants of what it decodes; nothing is cloned.
impl<W: Watched> Clone for Object<W> {
    fn clone(&self) -> Self {
        Self {
            meta: self.meta.clone(),
            revision: self.revision.clone(),
            facts: self.facts.clone(),
            kind: PhantomData,
        }
    }
}

impl<'de, W: Watched> serde::Deserialize<'de> for Object<W> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = W::SKIP.deserialize(from)?;
        let text = |key: &str| value["metadata"][key].as_str().unwrap_or_default();
        let revision = text("resourceVersion").to_owned();
        let meta = Meta {
            key: Key::new(text("namespace"), text("name")),
            uid: text("uid").into(),
            revision: revision.parse().ok(),
        };
        Ok(Self { meta, revision, facts: W::read(&value), kind: PhantomData })
    }
}

/// Reads one object.
///
/// # Errors
/// When it is no JSON.
pub(in crate::cluster) fn read<W: Watched>(
    bytes: &[u8],
) -> Result<(Meta, Result<W::Facts, Error>), serde_json::Error> {
    let object: Object<W> = serde_json::from_slice(bytes)?;
    Ok((object.meta, object.facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const SOME: Skip = Skip(&[("a", DROP), ("b", Skip(&[("c", DROP), ("d", Skip(&[("a", DROP)]))]))]);

    fn read(skip: Skip, value: &Value) -> Value {
        let text = value.to_string();
        skip.deserialize(&mut serde_json::Deserializer::from_str(&text)).expect("valid JSON")
    }

    #[test]
    fn only_the_named_fields_are_skipped() {
        for (given, expected, why) in [
            (json!({"a": 1, "e": 2}), json!({"e": 2}), "at the top"),
            (json!({"e": {"a": 1}}), json!({"e": {"a": 1}}), "the same name elsewhere"),
            (json!({"b": {"c": [1], "x": 2}}), json!({"b": {"x": 2}}), "below"),
            (json!({"b": [{"c": 1}, {"x": 1}]}), json!({"b": [{}, {"x": 1}]}), "through lists"),
            (json!({"b": {"d": {"a": 1, "c": 1}}}), json!({"b": {"d": {"c": 1}}}), "further below"),
            (json!({"b": "c"}), json!({"b": "c"}), "something else than expected is kept"),
            (json!(null), json!(null), "not even an object"),
        ] {
            assert_eq!(read(SOME, &given), expected, "{why}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            "[a-z\"\\\\é]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-e]", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// Reads everything, then takes out.
    fn slow(skip: Skip, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| slow(skip, item)),
            Value::Object(fields) => {
                for (name, below) in skip.0 {
                    if below.0.is_empty() {
                        fields.remove(*name);
                    } else if let Some(value) = fields.get_mut(*name) {
                        slow(*below, value);
                    }
                }
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn skipping_while_reading_is_taking_out_afterwards(value in any_json()) {
            let mut expected = value.clone();
            slow(SOME, &mut expected);
            prop_assert_eq!(read(SOME, &value), expected);
            prop_assert_eq!(read(DROP, &value), value, "nothing named, nothing skipped");
        }
    }
}
