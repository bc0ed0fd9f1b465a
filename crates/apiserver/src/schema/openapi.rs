//! What clients ask for below `/openapi`: documents assembled from the schemas of what is served.

use serde_json::{Value, json};

/// One group and version with what it serves.
#[derive(Debug, Clone, Default)]
pub struct GroupVersion {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// What is served.
    pub resources: Vec<Resource>,
}

/// One served resource.
#[derive(Debug, Clone, Default)]
pub struct Resource {
    /// Plural name, as in paths.
    pub plural: String,
    /// Kind of its objects.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it: `get`, `list`, `create`, …
    pub verbs: Vec<String>,
    /// Subresources such as `status`.
    pub subresources: Vec<Subresource>,
    /// Schema of a custom resource as its definition has it; `None` for built-in kinds.
    pub custom: Option<Value>,
}

/// One subresource of a resource.
#[derive(Debug, Clone, Default)]
pub struct Subresource {
    /// Name, as in paths.
    pub name: String,
    /// Group, version and kind of what is exchanged; the resource's own when `None`.
    pub kind: Option<(String, String, String)>,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// The OpenAPI v3 document of one group and version.
#[must_use]
pub fn document(served: &GroupVersion) -> Value {
    let _ = served;
    json!({})
}

/// A short text that changes whenever the document does.
#[must_use]
pub fn hash(document: &Value) -> String {
    let _ = document;
    String::new()
}

/// The index at `/openapi/v3`: from path (`api/v1`, `apis/apps/v1`) and document hash.
#[must_use]
pub fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let _ = documents.into_iter().count();
    json!({"paths": {}})
}

/// The OpenAPI v2 document at `/openapi/v2` of everything served.
#[must_use]
pub fn v2(served: &[GroupVersion]) -> Value {
    let _ = served;
    json!({})
}
