//! How objects were decoded before: into a tree of owned values, without the fields nobody reads.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Fields that are skipped; of one that is not, which below it.
#[derive(Clone, Copy)]
pub struct Without(&'static [(&'static str, Self)]);

const DROP: Without = Without(&[]);
const METADATA: Without = Without(&[("managedFields", DROP), ("annotations", DROP)]);
const CONTAINER: Without = Without(&[
    ("args", DROP),
    ("command", DROP),
    ("env", DROP),
    ("envFrom", DROP),
    ("image", DROP),
    ("lifecycle", DROP),
    ("livenessProbe", DROP),
    ("readinessProbe", DROP),
    ("securityContext", DROP),
    ("startupProbe", DROP),
    ("volumeDevices", DROP),
    ("volumeMounts", DROP),
]);
const STATUS: Without = Without(&[("containerID", DROP), ("image", DROP), ("imageID", DROP)]);

/// What was skipped of a pod.
pub const POD: Without = Without(&[
    ("metadata", METADATA),
    (
        "spec",
        Without(&[("containers", CONTAINER), ("initContainers", CONTAINER), ("ephemeralContainers", DROP)]),
    ),
    ("status", Without(&[("containerStatuses", STATUS), ("initContainerStatuses", STATUS)])),
]);

impl<'de> DeserializeSeed<'de> for Without {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Without {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match self.0.iter().find(|(name, _)| *name == key).map(|(_, below)| *below) {
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
}
