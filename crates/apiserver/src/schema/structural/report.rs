//! Mistakes found so far, and how far a value got: upstream reports the alternative that came closest.

use crate::status::{FieldError, Mistake};
use serde_json::Value;

/// What upstream prints as the field of a mistake that belongs to none.
pub(super) const NOWHERE: &str = "<nil>";

/// One mistake.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// What is said about it; the same sentence is said once.
    message: String,
    error: FieldError,
}

/// The result of checking a value.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    found: Vec<Found>,
    /// How many checks were made that went well.
    pub(super) matched: usize,
}

impl Report {
    pub(super) fn is_valid(&self) -> bool {
        self.found.is_empty()
    }

    /// Forgets the mistakes.
    pub(super) fn forgive(&mut self) {
        self.found.clear();
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matched += other.matched;
        other.found.into_iter().for_each(|found| self.add(found));
    }

    fn add(&mut self, found: Found) {
        if !self.found.iter().any(|known| known.message == found.message) {
            self.found.push(found);
        }
    }

    fn push(&mut self, mistake: Mistake, path: &str, value: Option<&Value>, message: String, detail: String) {
        let field = path.trim_start_matches('.');
        let field = if field.is_empty() { NOWHERE } else { field };
        let value = value.map(crate::status::render);
        self.add(Found { message, error: FieldError { mistake, field: field.to_owned(), value, detail } });
    }

    /// A value of a wrong type; `found` is what upstream calls it.
    pub(super) fn wrong_type(&mut self, path: &str, wanted: &str, found: &str) {
        let message = format!("{path} in body must be of type {wanted}: {found:?}");
        self.push(Mistake::TypeInvalid, path, Some(&Value::from(found)), message.clone(), message);
    }

    /// A value that breaks a rule.
    pub(super) fn invalid(&mut self, path: &str, value: &Value, rule: &str) {
        let message = format!("{path} in body {rule}");
        self.push(Mistake::Invalid, path, Some(value), message.clone(), message);
    }

    /// A key that is not allowed.
    pub(super) fn forbidden_key(&mut self, path: &str, key: &str) {
        let message = format!("{path}.{key} in body is a forbidden property");
        self.push(Mistake::Invalid, path, Some(&Value::from(key)), message.clone(), message);
    }

    /// A mistake that belongs to no field.
    pub(super) fn general(&mut self, message: String) {
        self.push(Mistake::Invalid, "", Some(&Value::from("")), message.clone(), message);
    }

    /// A required field that is missing.
    pub(super) fn required(&mut self, path: &str) {
        self.push(Mistake::Required, path, None, format!("{path} in body is required"), String::new());
    }

    /// A value outside an enumeration.
    pub(super) fn not_supported(&mut self, path: &str, value: &Value, allowed: &[Value]) {
        let quoted: Vec<String> = allowed
            .iter()
            .map(|one| match one {
                Value::String(text) => format!("{text:?}"),
                other => format!("{:?}", other.to_string()),
            })
            .collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        let message = format!("{path} in body should be one of {detail}");
        self.push(Mistake::NotSupported, path, Some(value), message, detail);
    }

    /// A text that is too long.
    pub(super) fn too_long(&mut self, path: &str, most: u64) {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let message = format!("{path} in body should be at most {most} chars long");
        self.push(Mistake::TooLong, path, None, message, format!("may not be more than {most} {unit}"));
    }

    /// Too many entries; `what` they are in the sentence that tells repetitions apart.
    pub(super) fn too_many(&mut self, path: &str, count: usize, most: u64, what: &str) {
        let unit = if most == 1 { "item" } else { "items" };
        let message = format!("{path} in body should have at most {most} {what}");
        let detail = format!("must have at most {most} {unit}");
        self.push(Mistake::TooMany, path, Some(&Value::from(count)), message, detail);
    }

    /// All mistakes, with `prefix` before every field.
    pub(super) fn into_errors(self, prefix: &str) -> Vec<FieldError> {
        let place = |mut error: FieldError| {
            if !prefix.is_empty() {
                error.field = match error.field.as_str() {
                    NOWHERE => prefix.to_owned(),
                    field => format!("{prefix}.{field}"),
                };
            }
            error
        };
        self.found.into_iter().map(|found| place(found.error)).collect()
    }
}
