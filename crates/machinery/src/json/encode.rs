//! How is a tree shown? As JSON without spaces.

use super::Tree;
use serde::ser::{Serialize, Serializer};
use std::fmt;

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(truth) => to.serialize_bool(*truth),
            Self::Number(number) => number.serialize(to),
            Self::String(text) => to.serialize_str(text),
            Self::Array(items) => to.collect_seq(items),
            Self::Object(fields) => to.collect_map(fields.iter()),
        }
    }
}

impl fmt::Display for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}
