//! The older document in protobuf, the only form in which kubectl reads it.
//!
//! Only what kubectl looks at is written: the definitions with their fields, types and Kubernetes' markers. It
//! validates the items of a `List` by them.

use serde_json::Value;

/// What clients ask for; older ones write `@`, which no media type may have.
pub(crate) const ASKED: [&str; 2] = [MEDIA, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"];
/// What the answer is called.
pub(crate) const MEDIA: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Field numbers of `openapi.v2.Document`, `Schema` and the messages inside, as gnostic has them.
mod number {
    pub(super) const DOCUMENT_SWAGGER: u32 = 1;
    pub(super) const DOCUMENT_INFO: u32 = 2;
    pub(super) const DOCUMENT_PATHS: u32 = 8;
    pub(super) const DOCUMENT_DEFINITIONS: u32 = 9;
    pub(super) const INFO_TITLE: u32 = 1;
    pub(super) const INFO_VERSION: u32 = 2;
    pub(super) const SCHEMA_REF: u32 = 1;
    pub(super) const SCHEMA_FORMAT: u32 = 2;
    pub(super) const SCHEMA_DESCRIPTION: u32 = 4;
    pub(super) const SCHEMA_REQUIRED: u32 = 19;
    pub(super) const SCHEMA_ADDITIONAL: u32 = 21;
    pub(super) const SCHEMA_TYPE: u32 = 22;
    pub(super) const SCHEMA_ITEMS: u32 = 23;
    pub(super) const SCHEMA_PROPERTIES: u32 = 25;
    pub(super) const SCHEMA_EXTENSION: u32 = 31;
    /// The only field of lists and choices: `TypeItem`, `ItemsItem`, `Properties`, `AdditionalPropertiesItem`.
    pub(super) const ONLY: u32 = 1;
    pub(super) const NAMED_NAME: u32 = 1;
    pub(super) const NAMED_VALUE: u32 = 2;
    pub(super) const ANY_YAML: u32 = 2;
}

/// Encodes the document made by [`super::v2`].
#[must_use]
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let mut info = Vec::new();
    text(&mut info, number::INFO_TITLE, &document["info"]["title"]);
    text(&mut info, number::INFO_VERSION, &document["info"]["version"]);
    let mut out = Vec::new();
    text(&mut out, number::DOCUMENT_SWAGGER, &document["swagger"]);
    bytes(&mut out, number::DOCUMENT_INFO, &info);
    bytes(&mut out, number::DOCUMENT_PATHS, &[]);
    bytes(&mut out, number::DOCUMENT_DEFINITIONS, &named(&document["definitions"]));
    out
}

/// Named schemas: definitions or properties.
fn named(schemas: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in schemas.as_object().into_iter().flatten() {
        let mut entry = Vec::new();
        bytes(&mut entry, number::NAMED_NAME, name.as_bytes());
        bytes(&mut entry, number::NAMED_VALUE, &schema(value));
        bytes(&mut out, number::ONLY, &entry);
    }
    out
}

fn schema(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, number::SCHEMA_REF, &value["$ref"]);
    text(&mut out, number::SCHEMA_FORMAT, &value["format"]);
    text(&mut out, number::SCHEMA_DESCRIPTION, &value["description"]);
    for name in value["required"].as_array().into_iter().flatten() {
        text(&mut out, number::SCHEMA_REQUIRED, name);
    }
    for (key, field) in [("additionalProperties", number::SCHEMA_ADDITIONAL), ("items", number::SCHEMA_ITEMS)]
    {
        if value[key].is_object() {
            let mut only = Vec::new();
            bytes(&mut only, number::ONLY, &schema(&value[key]));
            bytes(&mut out, field, &only);
        }
    }
    if value["type"].is_string() {
        let mut only = Vec::new();
        text(&mut only, number::ONLY, &value["type"]);
        bytes(&mut out, number::SCHEMA_TYPE, &only);
    }
    if value["properties"].is_object() {
        bytes(&mut out, number::SCHEMA_PROPERTIES, &named(&value["properties"]));
    }
    for (key, marker) in value.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("x-")) {
        let mut any = Vec::new();
        // JSON is YAML.
        bytes(&mut any, number::ANY_YAML, marker.to_string().as_bytes());
        let mut entry = Vec::new();
        bytes(&mut entry, number::NAMED_NAME, key.as_bytes());
        bytes(&mut entry, number::NAMED_VALUE, &any);
        bytes(&mut out, number::SCHEMA_EXTENSION, &entry);
    }
    out
}

fn text(out: &mut Vec<u8>, field: u32, value: &Value) {
    if let Some(text) = value.as_str().filter(|t| !t.is_empty()) {
        bytes(out, field, text.as_bytes());
    }
}

/// A length-delimited field.
fn bytes(out: &mut Vec<u8>, field: u32, content: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_is_written_field_by_field() {
        let document = json!({
            "swagger": "2.0", "info": {"title": "T", "version": "1"},
            "definitions": {"A": {"type": "object", "required": ["b"], "properties": {"b": {"$ref": "#/definitions/B"}}}},
        });
        let b = b"\x0a\x01b\x12\x11\x0a\x0f#/definitions/B";
        let schema = [&b"\x9a\x01\x01b\xb2\x01\x08\x0a\x06object\xca\x01\x18\x0a\x16"[..], b].concat();
        let entry = [&b"\x0a\x01A\x12"[..], &[u8::try_from(schema.len()).unwrap()], &schema].concat();
        let definitions = [&[0x0a, u8::try_from(entry.len()).unwrap()][..], &entry].concat();
        let want = [
            &b"\x0a\x032.0\x12\x06\x0a\x01T\x12\x011\x42\x00\x4a"[..],
            &[u8::try_from(definitions.len()).unwrap()],
            &definitions,
        ]
        .concat();
        assert_eq!(encode(&document), want);
    }
}
