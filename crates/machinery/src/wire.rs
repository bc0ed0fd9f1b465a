//! What does `null` mean in Kubernetes JSON?

use serde::{Deserialize, Deserializer};

/// Reads `null` as "not given", as Kubernetes does for every field.
///
/// # Errors
/// As reading the value itself.
pub fn or_default<'de, T, D>(d: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(d).map(Option::unwrap_or_default)
}
