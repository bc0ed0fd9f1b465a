//! How does a derived definition become the one that is meant?

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

/// A derived definition, and what the derive cannot say of it.
pub(super) struct Kind {
    pub(super) definition: CustomResourceDefinition,
    /// The file that holds its types.
    pub(super) source: &'static str,
    pub(super) spec: Spec,
    /// Whether status is a subresource; deriving a status makes it one.
    pub(super) status: bool,
    /// Names of fields that may be null. Every `Option` is derived as if it might; but in Kubernetes a field is absent
    /// or has a value, and null is refused.
    pub(super) nullable: &'static [&'static str],
    /// An older version with the same schema, served but not stored: nothing is lost between the two. Deriving it would
    /// take a second set of types.
    pub(super) also: Option<&'static str>,
}

/// No object has a longer name.
const LONGEST_NAME: u32 = 253;

/// A derived kind has a spec, and it must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spec {
    Required,
    /// A kind that means something without its spec.
    Optional,
    /// A kind that is only a status.
    None,
}

impl Kind {
    pub(super) fn definition(&self) -> Result<Value, serde_json::Error> {
        let mut definition = serde_json::to_value(&self.definition)?;
        let names = &mut definition["spec"]["names"];
        // The server fills it in; written here, applying the file again changes nothing.
        names["listKind"] = json!(format!("{}List", names["kind"].as_str().unwrap_or_default()));
        let version = &mut definition["spec"]["versions"][0];
        if !self.status
            && let Value::Object(version) = version
        {
            version.remove("subresources");
        }
        self.root(&mut version["schema"]["openAPIV3Schema"]);
        if let Some(name) = self.also {
            let mut older = version.clone();
            older["name"] = json!(name);
            older["storage"] = json!(false);
            if let Value::Array(versions) = &mut definition["spec"]["versions"] {
                versions.push(older);
            }
        }
        Ok(definition)
    }

    fn root(&self, schema: &mut Value) {
        self.node(schema, "");
        let Value::Object(root) = schema else { return };
        if self.spec != Spec::Required {
            root.remove("required");
        }
        let ruled = root.contains_key("x-kubernetes-validations");
        let Some(Value::Object(properties)) = root.get_mut("properties") else { return };
        if self.spec == Spec::None {
            properties.remove("spec");
        }
        // Left out by the derive because the server checks them; named, they are shown by `kubectl explain`.
        for name in ["apiVersion", "kind"] {
            properties.insert(name.to_owned(), json!({"type": "string"}));
        }
        let mut metadata = json!({"type": "object"});
        if ruled {
            // A rule can point only to what the schema names.
            metadata["properties"] = json!({"name": {"type": "string", "maxLength": LONGEST_NAME}});
        }
        properties.insert("metadata".to_owned(), metadata);
    }

    /// One schema and all below it; `name` is that of the field it describes.
    fn node(&self, schema: &mut Value, name: &str) {
        let Value::Object(fields) = schema else { return };
        // Names of Rust types, which say nothing to whoever writes a manifest.
        fields.remove("title");
        if !self.nullable.contains(&name) {
            fields.remove("nullable");
            if let Some(Value::Array(values)) = fields.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
        }
        whole(fields);
        if fields.contains_key("x-kubernetes-int-or-string") {
            // Only with both types a client that knows no extension sees what is allowed; as a part of the type, it
            // would be taken for a tagged enum.
            fields.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
        }
        if let Some(Value::String(text)) = fields.get_mut("description") {
            // The lines of a comment are not those of a sentence.
            *text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        }
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            for (name, schema) in properties {
                self.node(schema, name);
            }
        }
        for below in ["items", "additionalProperties"] {
            if let Some(schema) = fields.get_mut(below) {
                self.node(schema, "");
            }
        }
    }
}

/// Limits are floating-point numbers in the type of the definition; ours are whole.
fn whole(fields: &mut Map<String, Value>) {
    for limit in ["minimum", "maximum"] {
        let Some(Value::Number(number)) = fields.get_mut(limit) else { continue };
        if let Ok(whole) = number.to_string().trim_end_matches(".0").parse::<i64>() {
            *number = whole.into();
        }
    }
}
