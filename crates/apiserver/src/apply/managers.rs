//! `metadata.managedFields`: the wire form of who owns what.

use super::fields::FieldSet;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// At most this many managers with operation `Update` are kept apart.
const MAX_UPDATERS: usize = 10;

/// Who the fields of merged updaters belong to.
const ANCIENT: &str = "ancient-changes";

/// What a manager did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn wire(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells one entry from another. Appliers are the same whatever version they apply in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for appliers.
    version: String,
    pub(super) subresource: String,
}

impl Id {
    pub(super) fn new(manager: &str, operation: Operation, version: &str, subresource: &str) -> Self {
        let version = if operation == Operation::Apply { "" } else { version };
        Self {
            manager: manager.to_owned(),
            operation,
            version: version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// How conflict messages name the manager.
    pub(super) fn spelled(&self) -> String {
        let mut out = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            out = format!("{out} with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            out = format!("{out} using {}", self.version);
        }
        out
    }
}

/// What one manager owns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) version: String,
    pub(super) time: Option<String>,
    pub(super) fields: FieldSet,
}

/// Everybody and what they own.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Managers {
    pub(super) entries: BTreeMap<Id, Entry>,
}

impl Managers {
    /// Reads `metadata.managedFields` of an object; none is as good as an empty list.
    pub(super) fn of(object: &Value) -> Result<Self, String> {
        let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        let mut entries = BTreeMap::new();
        for (at, raw) in list.into_iter().flatten().enumerate() {
            let text = |key: &str| raw.get(key).and_then(Value::as_str).unwrap_or_default();
            let operation = match text("operation") {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            if text("apiVersion").is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
                other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
            }
            let fields = match raw.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(fields) => FieldSet::from_wire(fields)?,
            };
            let id = Id::new(text("manager"), operation, text("apiVersion"), text("subresource"));
            let time = raw.get("time").and_then(Value::as_str).map(normal_time);
            entries.insert(id, Entry { version: text("apiVersion").to_owned(), time, fields });
        }
        Ok(Self { entries })
    }

    /// Writes `metadata.managedFields`; nobody owning anything leaves none.
    pub(super) fn write(&self, object: &mut Value) {
        let Some(map) = object.as_object_mut() else { return };
        let metadata = map.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else { return };
        if self.entries.is_empty() {
            metadata.remove("managedFields");
            return;
        }
        let mut sorted: Vec<(&Id, &Entry)> = self.entries.iter().collect();
        sorted.sort_by_key(|(id, entry)| {
            (id.operation, seconds(entry.time.as_deref()), &id.manager, &entry.version, &id.subresource)
        });
        let list = sorted.into_iter().map(|(id, entry)| wire(id, entry)).collect();
        metadata.insert("managedFields".to_owned(), Value::Array(list));
    }

    /// Takes fields from everybody; who is left with nothing is forgotten.
    pub(super) fn take(&mut self, fields: &FieldSet) {
        self.entries.retain(|_, entry| {
            entry.fields = entry.fields.difference(fields);
            !entry.fields.is_empty()
        });
    }

    /// Merges the oldest updaters of each version until few enough are left.
    pub(super) fn cap(&mut self) {
        let mut updaters: Vec<Id> =
            self.entries.keys().filter(|id| id.operation == Operation::Update).cloned().collect();
        let mut count = updaters.len();
        if count <= MAX_UPDATERS {
            return;
        }
        updaters.sort_by_key(|id| (seconds(self.entries[id].time.as_deref()), id.clone()));
        let mut first_of: BTreeMap<String, Id> = BTreeMap::new();
        for id in updaters {
            if count <= MAX_UPDATERS {
                return;
            }
            let version = self.entries[&id].version.clone();
            let Some(first) = first_of.get(&version) else {
                first_of.insert(version, id);
                continue;
            };
            let bucket = Id::new(ANCIENT, Operation::Update, &version, "");
            if !self.entries.contains_key(&bucket)
                && let Some(entry) = self.entries.remove(first)
            {
                self.entries.insert(bucket.clone(), entry);
            }
            if let Some(merged) = self.entries.remove(&id) {
                let fields = match self.entries.get(&bucket) {
                    Some(entry) => merged.fields.union(&entry.fields),
                    None => merged.fields,
                };
                self.entries.insert(bucket, Entry { fields, ..merged });
                count -= 1;
            }
        }
    }
}

fn wire(id: &Id, entry: &Entry) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            out.insert(key.to_owned(), json!(value));
        }
    };
    put("manager", &id.manager);
    put("operation", id.operation.wire());
    put("apiVersion", &entry.version);
    put("time", entry.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    put("subresource", &id.subresource);
    out.insert("fieldsV1".to_owned(), entry.fields.to_wire());
    Value::Object(out)
}

fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|t| t.parse::<Timestamp>().ok()).map_or(0, Timestamp::as_second)
}

/// Times are kept in whole seconds of UTC, however they were sent.
fn normal_time(time: &str) -> String {
    let parsed = time.parse::<Timestamp>().ok();
    let whole = parsed.and_then(|t| Timestamp::from_second(t.as_second()).ok());
    whole.map_or_else(|| time.to_owned(), |t| t.to_string())
}

/// Whether a list of managers asks to forget them all: it is empty, or holds one empty entry.
pub(super) fn asks_to_forget(object: &Value) -> bool {
    match object.pointer("/metadata/managedFields").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => match one {
            Value::Object(map) => map.values().all(|v| v.is_null() || v == ""),
            other => other.is_null(),
        },
        _ => false,
    }
}
