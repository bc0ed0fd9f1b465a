//! Rules for the metadata of every object, built-in or custom.

use rand::Rng;
use serde_json::Value;

use crate::status::FieldError;

/// Appends five random characters to a prefix, cut so that the result has at most 63 characters.
pub fn generate_name(prefix: &str, _rng: &mut impl Rng) -> String {
    prefix.to_owned()
}

/// Drops the metadata a client may not set on create.
pub fn prepare_create(_obj: &mut Value) {}

/// Carries metadata over that an update may not change: generation, uid if absent, timestamps of creation and
/// deletion.
pub fn prepare_update(_new: &mut Value, _old: &Value) {}

/// Problems of the metadata of a new object whose name must be a DNS subdomain, as for custom resources.
#[must_use]
pub fn validate_create(_obj: &Value, _namespaced: bool) -> Vec<FieldError> {
    Vec::new()
}

/// Problems of the metadata of an updated object, whatever its kind.
#[must_use]
pub fn validate_update(_new: &Value, _old: &Value, _namespaced: bool) -> Vec<FieldError> {
    Vec::new()
}
