//! From stored objects to bytes on the wire: plain, metadata only, or as a table.

use super::convert;
use crate::registry::Resource;
use crate::status::Status;
use crate::store::Object;
use crate::table::{self, IncludeObject};
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Value, json};
use std::sync::Arc;

/// How the client wants objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Plain,
    /// `PartialObjectMetadata`.
    Metadata,
    /// `PartialObjectMetadataList`.
    MetadataList,
    /// `Table`.
    Table(IncludeObject),
}

/// Picks the form from an `Accept` header.
///
/// # Errors
/// 406 when nothing acceptable is on offer.
pub(super) fn negotiate(accept: Option<&str>, include: Option<&str>) -> Result<Form, Status> {
    let Some(accept) = accept.filter(|a| !a.trim().is_empty()) else { return Ok(Form::Plain) };
    let mut readable = false;
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !matches!(media, "application/json" | "*/*" | "application/*") {
            continue;
        }
        readable = true;
        let params: Vec<(&str, &str)> = parts.filter_map(|p| p.split_once('=')).collect();
        let param = |key: &str| params.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        let meta = param("g") == Some("meta.k8s.io");
        match (param("as"), param("v")) {
            (None, _) => return Ok(Form::Plain),
            (Some("Table"), Some("v1")) if meta => {
                let include = include.unwrap_or_default();
                let include = IncludeObject::parse(include).ok_or_else(|| {
                    Status::bad_request(format!("Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: must be \
                         'Metadata', 'Object', 'None', or empty"))
                })?;
                return Ok(Form::Table(include));
            }
            (Some("PartialObjectMetadata"), Some("v1")) if meta => return Ok(Form::Metadata),
            (Some("PartialObjectMetadataList"), Some("v1")) if meta => return Ok(Form::MetadataList),
            _ => {}
        }
    }
    Err(not_acceptable(readable))
}

const MEDIA: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// 406; `readable` when the media type was good and only the form was not.
fn not_acceptable(readable: bool) -> Status {
    if readable {
        let message = format!("only the following media types are accepted: {MEDIA}");
        return Status::new(406, "NotAcceptable", message);
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {MEDIA}");
    let mut status = Status::new(406, "NotAcceptable", message);
    status.details = Some(Box::default());
    status
}

impl Form {
    /// A list cannot be shown as one object, nor one object as a list.
    ///
    /// # Errors
    /// 406 when that is asked for.
    pub(crate) fn check(self, list: bool, resource: &Resource) -> Result<(), Status> {
        let (asked, is) = match (self, list) {
            (Self::Metadata, true) => ("PartialObjectMetadata", "a list"),
            (Self::MetadataList, false) => ("PartialObjectMetadataList", "not a list"),
            _ => return Ok(()),
        };
        let suffix = if list { "List" } else { "" };
        let ty = if resource.custom.is_some() {
            format!("unstructured.Unstructured{suffix}")
        } else {
            let package = if resource.group.is_empty() { "core" } else { &resource.group };
            format!("{}.{}{suffix}", package.split('.').next().unwrap_or_default(), resource.kind)
        };
        let message = format!("you requested {asked}, but the requested object is {is} (*{ty})");
        Err(Status::new(406, "NotAcceptable", message))
    }
}

/// Encodes objects of one resource in one form.
#[derive(Debug, Clone)]
pub(super) struct Encoder {
    /// Resource, at the version asked for.
    pub resource: Arc<Resource>,
    /// Form asked for.
    pub form: Form,
    /// Whether column definitions were already sent on this watch.
    pub headers_sent: bool,
    /// What ages are counted to.
    pub now: jiff::Timestamp,
}

impl Encoder {
    /// One object.
    pub(super) fn one(&mut self, object: &Object) -> Bytes {
        if self.form == Form::Plain && !convert::needed(&self.resource) {
            return object.json.clone();
        }
        let value = convert::from_storage(&self.resource, object.value());
        to_bytes(&self.shape(value))
    }

    /// One object given as a tree in the version asked for.
    pub(super) fn shape(&mut self, value: Value) -> Value {
        match self.form {
            Form::Plain => value,
            Form::Metadata | Form::MetadataList => partial(value),
            Form::Table(include) => {
                let headers = if self.headers_sent { table::Headers::Omit } else { table::Headers::Show };
                self.headers_sent = true;
                self.table(std::slice::from_ref(&value), None, include, headers)
            }
        }
    }

    fn table(
        &self,
        objects: &[Value],
        list_meta: Option<Value>,
        include: IncludeObject,
        headers: table::Headers,
    ) -> Value {
        let request = table::Request {
            group: &self.resource.group,
            resource: &self.resource.plural,
            custom: self.resource.custom.as_ref().map(|c| c.columns.as_slice()),
            list_meta,
            include,
            headers,
            now: self.now,
        };
        table::render(&request, objects)
    }

    /// A list of objects with its metadata.
    #[must_use]
    pub(super) fn list(&self, objects: &[Arc<Object>], meta: &Value) -> Bytes {
        let rewritten = |o: &Arc<Object>| convert::from_storage(&self.resource, o.value());
        match self.form {
            Form::Plain => self.plain_list(objects, meta),
            Form::Metadata | Form::MetadataList => {
                let items: Vec<Value> = objects.iter().map(|o| partial(rewritten(o))).collect();
                to_bytes(&json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": meta, "items": items,
                }))
            }
            Form::Table(include) => {
                let values: Vec<Value> = objects.iter().map(rewritten).collect();
                to_bytes(&self.table(&values, Some(meta.clone()), include, table::Headers::Show))
            }
        }
    }

    fn plain_list(&self, objects: &[Arc<Object>], meta: &Value) -> Bytes {
        let rewrite = convert::needed(&self.resource);
        let size: usize = objects.iter().map(|o| o.json.len() + 1).sum();
        let mut out = BytesMut::with_capacity(size + 256);
        let head = json!({"kind": self.resource.list_kind(), "apiVersion": self.resource.api_version()});
        let head = head.to_string();
        out.put_slice(&head.as_bytes()[..head.len() - 1]);
        out.put_slice(b",\"metadata\":");
        out.put_slice(meta.to_string().as_bytes());
        out.put_slice(b",\"items\":[");
        // A typed list upstream leaves the type out of its items; custom resources keep it.
        let typed = self.resource.custom.is_none();
        let prefix = format!(
            "{{\"apiVersion\":\"{}\",\"kind\":\"{}\",",
            self.resource.api_version(),
            self.resource.kind
        );
        for (at, object) in objects.iter().enumerate() {
            if at > 0 {
                out.put_u8(b',');
            }
            let bare = object.json.strip_prefix(prefix.as_bytes());
            if rewrite || typed && bare.is_none() {
                let mut value = convert::from_storage(&self.resource, object.value());
                if typed {
                    strip_type(&mut value);
                }
                out.put_slice(&to_bytes(&value));
            } else if let Some(rest) = bare.filter(|_| typed) {
                out.put_u8(b'{');
                out.put_slice(rest);
            } else {
                out.put_slice(&object.json);
            }
        }
        out.put_slice(b"]}");
        out.freeze()
    }
}

fn strip_type(value: &mut Value) {
    if let Some(object) = value.as_object_mut() {
        object.remove("apiVersion");
        object.remove("kind");
    }
}

/// Only the metadata of an object.
fn partial(mut value: Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"].take(),
    })
}

/// Compact JSON.
#[must_use]
pub(super) fn to_bytes(value: &Value) -> Bytes {
    // A tree of JSON values always serialises.
    serde_json::to_vec(value).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_acceptable_form_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        for (accept, want) in [
            (None, Form::Plain),
            (Some("application/json"), Form::Plain),
            (Some("*/*"), Form::Plain),
            (Some(table), Form::Table(IncludeObject::Metadata)),
            (Some("application/vnd.kubernetes.protobuf,application/json"), Form::Plain),
            (Some("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"), Form::MetadataList),
        ] {
            assert_eq!(negotiate(accept, None), Ok(want), "{accept:?}");
        }
        assert_eq!(negotiate(Some("text/html"), None).map_err(|s| s.code), Err(406));
    }
}
