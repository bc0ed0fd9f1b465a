//! What clients ask for below `/openapi`: documents assembled from the schemas of what is served.
//!
//! `kubectl` reads them to validate, to merge and to explain: it looks for operations by the kind they are about,
//! for the parameters and body types of a patch, and for schemas by kind.

pub(crate) mod gnostic;
mod paths;
mod v2;

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) use self::v2::v2;
use super::builtin;

/// Where schemas are in a document of version 3.
const SCHEMAS: &str = "#/components/schemas/";
/// What clients send to delete something.
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
/// What clients send to change something.
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
/// What clients get when there is nothing better.
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// One group and version with what it serves.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupVersion {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// What is served.
    pub resources: Vec<Resource>,
}

/// One served resource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resource {
    /// Plural name, as in paths.
    pub plural: String,
    /// Kind of its objects.
    pub kind: String,
    /// Kind of lists of its objects; the kind with `List` after it when empty.
    pub list_kind: String,
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
pub(crate) struct Subresource {
    /// Name, as in paths.
    pub name: String,
    /// Group, version and kind of what is exchanged; the resource's own when `None`.
    pub kind: Option<(String, String, String)>,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

impl GroupVersion {
    /// `api/v1` or `apis/GROUP/VERSION`: the path without the slash before it, as the index has it.
    #[must_use]
    pub(crate) fn path(&self) -> String {
        if self.group.is_empty() {
            format!("api/{}", self.version)
        } else {
            format!("apis/{}/{}", self.group, self.version)
        }
    }

    /// Name of the definition of a kind served here.
    fn definition(&self, kind: &str) -> String {
        definition(&self.group, &self.version, kind)
    }
}

impl Resource {
    fn list_kind(&self) -> String {
        if self.list_kind.is_empty() { format!("{}List", self.kind) } else { self.list_kind.clone() }
    }
}

/// Name of the definition of a kind: the recorded one, else the name upstream gives to custom resources.
fn definition(group: &str, version: &str, kind: &str) -> String {
    if let Some(name) = builtin::kind(group, version, kind).and_then(super::View::name) {
        return name.to_owned();
    }
    let reversed: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", reversed.join("."))
}

/// The OpenAPI v3 document of one group and version.
#[must_use]
pub(crate) fn document(served: &GroupVersion) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths::paths(served),
        "components": {"schemas": schemas(served)},
    })
}

/// All schemas a group and version needs, by name.
fn schemas(served: &GroupVersion) -> Map<String, Value> {
    let mut out = Map::new();
    let mut wanted: Vec<String> = [DELETE_OPTIONS, PATCH, STATUS].map(str::to_owned).to_vec();
    for resource in &served.resources {
        if let Some(schema) = &resource.custom {
            let name = served.definition(&resource.kind);
            out.insert(served.definition(&resource.list_kind()), custom_list(served, resource, &name));
            out.insert(name, custom(served, resource, schema));
        } else {
            wanted.push(served.definition(&resource.kind));
            wanted.push(served.definition(&resource.list_kind()));
        }
        for (group, version, kind) in resource.subresources.iter().filter_map(|sub| sub.kind.as_ref()) {
            wanted.push(definition(group, version, kind));
        }
    }
    out.values().for_each(|schema| references(schema, &mut wanted));
    while let Some(name) = wanted.pop() {
        if out.contains_key(&name) {
            continue;
        }
        let Some(view) = builtin::definitions().view(&name) else { continue };
        let mut schema = view.schema().raw.clone();
        references(&schema, &mut wanted);
        if name == DELETE_OPTIONS {
            // Every group has this kind as its own.
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": served.group, "kind": "DeleteOptions", "version": served.version}]);
        }
        out.insert(name, schema);
    }
    out
}

/// Adds the names a schema refers to.
fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) =
                fields.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(SCHEMAS))
            {
                names.push(name.to_owned());
            }
            fields.values().for_each(|field| references(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{SCHEMAS}{name}")})
}

/// The schema of a custom resource with what every object has.
fn custom(served: &GroupVersion, resource: &Resource, schema: &Value) -> Value {
    let mut out = schema.clone();
    if !out.is_object() {
        out = json!({});
    }
    out["type"] = json!("object");
    embed(&mut out, true);
    out["x-kubernetes-group-version-kind"] =
        json!([{"group": served.group, "kind": resource.kind, "version": served.version}]);
    out
}

/// Gives resources, at the root and inside, the fields every object has.
fn embed(schema: &mut Value, resource: bool) {
    let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(|property| embed(property, false));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = schema.get_mut(key).filter(|below| below.is_object()) {
            embed(below, false);
        }
    }
    if resource || embedded {
        if !schema["properties"].is_object() {
            schema["properties"] = json!({});
        }
        for name in ["apiVersion", "kind"] {
            schema["properties"][name] = json!({"type": "string"});
        }
        schema["properties"]["metadata"] = json!({"allOf": [reference(builtin::OBJECT_META)]});
    }
    if embedded {
        let mut required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(json!(name));
            }
        }
        schema["required"] = Value::Array(required);
    }
}

fn custom_list(served: &GroupVersion, resource: &Resource, item: &str) -> Value {
    json!({
        "description": format!("{} is a list of {}", resource.list_kind(), resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [reference(builtin::LIST_META)]},
            "items": {"type": "array", "items": reference(item)},
        },
        "x-kubernetes-group-version-kind":
            [{"group": served.group, "kind": resource.list_kind(), "version": served.version}],
    })
}

/// A short text that changes whenever the document does.
///
/// Clients cache a document under it for ever, so it depends on the content alone.
#[must_use]
pub(crate) fn hash(document: &Value) -> String {
    // FNV-1a with 128 bits.
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in document.to_string().bytes() {
        hash ^= u128::from(byte);
        hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    format!("{hash:032X}")
}

/// The index at `/openapi/v3`: from path (`api/v1`, `apis/apps/v1`) and document hash.
#[must_use]
pub(crate) fn index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let paths: BTreeMap<&str, Value> = documents
        .into_iter()
        .map(|(path, hash)| (path, json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")})))
        .collect();
    json!({"paths": paths})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verbs() -> Vec<String> {
        ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
            .map(str::to_owned)
            .to_vec()
    }

    fn core() -> GroupVersion {
        let status =
            Subresource { name: "status".into(), kind: None, verbs: vec!["get".into(), "patch".into()] };
        let binding = Subresource {
            name: "binding".into(),
            kind: Some((String::new(), "v1".into(), "Binding".into())),
            verbs: vec!["create".into()],
        };
        GroupVersion {
            group: String::new(),
            version: "v1".into(),
            resources: vec![Resource {
                plural: "pods".into(),
                kind: "Pod".into(),
                namespaced: true,
                verbs: verbs(),
                subresources: vec![status, binding],
                ..Resource::default()
            }],
        }
    }

    fn crane() -> GroupVersion {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                         "x-kubernetes-preserve-unknown-fields": true}}}}});
        GroupVersion {
            group: "x.example".into(),
            version: "v1".into(),
            resources: vec![Resource {
                plural: "things".into(),
                kind: "Thing".into(),
                verbs: verbs(),
                custom: Some(schema),
                ..Resource::default()
            }],
        }
    }

    #[test]
    fn kubectl_finds_the_patch_of_a_kind_and_its_parameters() {
        let document = document(&core());
        let patch = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-action"], "patch");
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "", "kind": "Pod", "version": "v1"})
        );
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|p| p["name"] == "fieldValidation" && p["in"] == "query"));
        assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
    }

    #[test]
    fn documents_are_closed_under_references() {
        for served in [core(), crane()] {
            let document = document(&served);
            let mut names = Vec::new();
            references(&document, &mut names);
            assert!(!names.is_empty());
            for name in names {
                assert!(document["components"]["schemas"].get(&name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn custom_resources_get_the_fields_every_object_has() {
        let document = document(&crane());
        let schema = &document["components"]["schemas"]["example.x.v1.Thing"];
        assert_eq!(schema["properties"]["kind"], json!({"type": "string"}));
        assert!(schema["properties"]["spec"]["properties"]["template"]["properties"]["metadata"].is_object());
        assert!(document["components"]["schemas"]["example.x.v1.ThingList"].is_object());
        let patch = &document["paths"]["/apis/x.example/v1/things/{name}"]["patch"];
        let bodies = patch["requestBody"]["content"].as_object().unwrap();
        assert!(!bodies.contains_key("application/strategic-merge-patch+json"), "it needs a Go type");
    }

    #[test]
    fn the_index_names_every_document_with_its_hash() {
        let first = document(&core());
        assert_eq!(hash(&first), hash(&document(&core())), "the same content has the same hash");
        assert_ne!(hash(&first), hash(&document(&crane())));
        let index = index([("api/v1", "AB")]);
        assert_eq!(index["paths"]["api/v1"]["serverRelativeURL"], "/openapi/v3/api/v1?hash=AB");
    }

    #[test]
    fn version_two_has_no_constructs_of_version_three() {
        fn walk(value: &Value) {
            match value {
                Value::Object(fields) => {
                    for key in ["oneOf", "anyOf", "allOf", "nullable"] {
                        assert!(!fields.get(key).is_some_and(|v| v.is_array() || v.is_boolean()), "{key}");
                    }
                    if let Some(Value::String(reference)) = fields.get("$ref") {
                        assert!(reference.starts_with("#/definitions/"), "{reference}");
                    }
                    fields.values().for_each(walk);
                }
                Value::Array(items) => items.iter().for_each(walk),
                _ => {}
            }
        }
        let document = v2(&[core(), crane()]);
        assert_eq!(document["swagger"], "2.0");
        walk(&document["definitions"]);
        let quantity = &document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
        assert_eq!(quantity["type"], "string");
    }
}
