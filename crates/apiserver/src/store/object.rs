//! One stored object: its JSON text, and the few facts selectors ask for.

use bytes::Bytes;
use loadline_machinery::label::Lookup;
use serde_json::Value;

/// Key of an object inside its table: `namespace/name`, or the name alone for cluster-scoped ones.
///
/// One string, compared bytewise, because that is the order in which etcd, and so a real server, lists objects.
pub(crate) type Key = Box<str>;

/// Builds the [`Key`] of an object.
#[must_use]
pub(crate) fn key(namespace: Option<&str>, name: &str) -> Key {
    match namespace {
        Some(namespace) => format!("{namespace}/{name}").into(),
        None => name.into(),
    }
}

/// An immutable stored object.
///
/// The text is kept, not the tree: a tree of small maps costs five times the memory, and most reads only copy
/// the text into an answer.
#[derive(Debug)]
pub(crate) struct Object {
    /// Compact JSON, as sent to clients.
    pub json: Bytes,
    /// Revision of the write that made it.
    pub revision: u64,
    /// `metadata.namespace`, if any.
    pub namespace: Option<Box<str>>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the selectable fields, in the order of the table's list of fields.
    pub fields: Box<[Box<str>]>,
    /// Uids of the owners.
    pub owners: Box<[Box<str>]>,
    /// Whether it is marked for deletion.
    pub deleting: bool,
}

impl Object {
    /// Freezes a value. `fields` are the selectable fields of its table.
    #[must_use]
    pub(crate) fn freeze(value: &Value, revision: u64, fields: &[String]) -> Self {
        let meta = &value["metadata"];
        let text = |v: &Value| v.as_str().unwrap_or_default().into();
        let labels = meta["labels"].as_object().into_iter().flatten();
        let owners = meta["ownerReferences"].as_array().into_iter().flatten();
        // Cut to size: a grown buffer would keep up to half of its room unused for as long as the object lives.
        let json = serde_json::to_vec(value).unwrap_or_default().into_boxed_slice();
        Self {
            json: json.into(),
            revision,
            namespace: meta["namespace"].as_str().map(Into::into),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
            labels: labels.map(|(k, v)| (k.as_str().into(), text(v))).collect(),
            fields: fields.iter().map(|path| field(value, path)).collect(),
            owners: owners.map(|o| text(&o["uid"])).collect(),
            deleting: !meta["deletionTimestamp"].is_null(),
        }
    }

    /// The object as a tree.
    #[must_use]
    pub(crate) fn value(&self) -> Value {
        // The text was written by us from a tree, so it parses.
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

impl Lookup for Object {
    fn value(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }
}

/// Text of the field at a dotted path; absent reads as empty, as field selectors have it.
fn field(value: &Value, path: &str) -> Box<str> {
    let mut at = value;
    for step in path.split('.') {
        at = &at[step];
    }
    match at {
        Value::String(s) => s.as_str().into(),
        Value::Null => "".into(),
        other => other.to_string().into(),
    }
}
