//! Would a server take this object? For programs that read objects where no server is, such as from files.
//!
//! ```
//! use loadline_apiserver::validation::CustomSchema;
//! use serde_json::json;
//!
//! let schema = CustomSchema::new(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
//!     "replicas": {"type": "integer", "minimum": 0, "default": 1},
//!     "zone": {"type": "string"},
//! }}}}));
//! let mut thing = json!({"metadata": {"name": "a"}, "spec": {"zone": 7, "colour": "red"}});
//! assert_eq!(schema.prepare(&mut thing)?, ["spec.colour"]);
//! assert_eq!(thing["spec"]["replicas"], 1);
//! let errors: Vec<String> = schema.validate(&thing).iter().map(ToString::to_string).collect();
//! assert_eq!(errors, [r#"spec.zone: Invalid value: "integer": spec.zone in body must be of type string: "integer""#]);
//! # Ok::<(), loadline_apiserver::validation::InvalidMetadata>(())
//! ```

use crate::schema::{Definitions, Schema, builtin, structural};
use serde_json::Value;

pub use crate::schema::{Type, View};
pub use crate::status::{FieldError, Mistake};

/// The schema of a custom resource, as in `spec.versions[].schema.openAPIV3Schema` of its definition.
#[derive(Debug, Clone)]
pub struct CustomSchema {
    schema: Schema,
    /// Such schemas refer to nothing.
    definitions: Definitions,
}

/// The metadata of an object is not what metadata is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidMetadata(String);

impl CustomSchema {
    /// Reads a schema. Whether it is one that a server takes, [`CustomSchema::problems`] tells.
    #[must_use]
    pub fn new(openapi: &Value) -> Self {
        Self { schema: Schema::from_openapi(openapi), definitions: Definitions::default() }
    }

    /// What keeps it from being the schema of a definition: it must be structural. Paths start with `schema`.
    #[must_use]
    pub fn problems(&self) -> Vec<FieldError> {
        structural::check(&self.schema.raw, "schema")
    }

    /// Does what a server does before it looks at an object: fields that the schema does not know are dropped, and
    /// defaults filled in. Tells the paths of what was dropped.
    ///
    /// # Errors
    /// When a field of the metadata has the wrong type.
    pub fn prepare(&self, object: &mut Value) -> Result<Vec<String>, InvalidMetadata> {
        let view = self.schema.standalone(&self.definitions);
        let dropped = structural::coerce(view, object).map_err(|error| InvalidMetadata(error.0))?;
        structural::default(view, object);
        Ok(dropped)
    }

    /// What is wrong with a prepared object. Rules (`x-kubernetes-validations`) are evaluated with the feature `cel`.
    #[must_use]
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        structural::validate(self.schema.standalone(&self.definitions), object, None)
    }
}

/// The schema of a built-in kind, as in the `OpenAPI` documents that a server publishes.
#[must_use]
pub fn builtin_kind(group: &str, version: &str, kind: &str) -> Option<View<'static>> {
    builtin::kind(group, version, kind)
}
