//! Quantities in JSON: a string, or a bare number as Kubernetes also reads.

use super::{Format, Quantity};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as \"100m\" or \"1.5Gi\", or a number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity::new(value, Format::DecimalSi))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quantity, E> {
        Ok(Quantity::scaled(value.into(), 0, Format::DecimalSi))
    }

    // By the shortest text that reads back as the same float: 0.1 is a tenth, not its nearest binary fraction.
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Quantity, E> {
        value.to_string().parse().map_err(E::custom)
    }

    // `null` stands for nothing asked.
    fn visit_unit<E: de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}
