//! What of an answer may differ between two servers that behave the same?
//!
//! Uids, revisions, times, addresses, tokens and the random end of generated names. Each becomes a placeholder that
//! keeps what matters: the same value has the same placeholder, and revisions are numbered in their order.

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
/// Times of today; cases use times long ago, which stay visible.
static TIME: LazyLock<Regex> =
    LazyLock::new(|| regex(r"20(2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^(\d+y)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?( ago)?$"));
/// Revisions inside messages.
static REVISION: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(current: |object meta: |ResourceVersion in record \(|too old resource version: \d+ \()\d+")
});
/// A patched object inside a message, whose fields come in the order of upstream's structs.
static PATCHED: LazyLock<Regex> = LazyLock::new(|| regex(r#"Invalid value: "\{\\.*\}": "#));
/// What a document is cached by.
static HASH: LazyLock<Regex> = LazyLock::new(|| regex(r"\?hash=[0-9A-Fa-f]{16,}$"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b10\.(96|0|9)\.\d+\.\d+\b"));

/// Masks all answers of one case, which ran in `namespace`.
pub fn mask(answers: &mut [Value], namespace: &str) {
    let mut seen = Seen::default();
    for answer in answers.iter() {
        seen.collect(answer);
    }
    let revisions: Vec<u64> = seen.revisions.into_iter().collect();
    let mut mask = Mask { namespace, revisions, generated: seen.generated, uids: Vec::new() };
    for answer in answers {
        mask.value(answer);
    }
}

#[derive(Default)]
struct Seen {
    revisions: BTreeSet<u64>,
    generated: Vec<(String, String)>,
}

impl Seen {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(object) => {
                let prefix = object.get("generateName").and_then(Value::as_str);
                let name = object.get("name").and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (prefix, name)
                    && name.len() == prefix.len() + 5
                    && name.starts_with(prefix)
                    && !self.generated.iter().any(|(known, _)| known == name)
                {
                    let label = format!("{prefix}<generated {}>", self.generated.len() + 1);
                    self.generated.push((name.to_owned(), label));
                }
                if !is_moment(object) {
                    self.revisions.extend(object.get("metadata").and_then(revision));
                    self.revisions.extend(object.get("involvedObject").and_then(revision));
                }
                object.values().for_each(|value| self.collect(value));
            }
            _ => {}
        }
    }
}

fn revision(metadata: &Value) -> Option<u64> {
    metadata["resourceVersion"].as_str()?.parse().ok()
}

/// Whether the revision in `metadata` is that of the whole server, to which others write too: lists, bookmarks.
fn is_moment(object: &Map<String, Value>) -> bool {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    object.contains_key("items")
        || object.contains_key("rows")
        || object.get("kind").is_some_and(|kind| kind == "Table")
        || metadata.get("uid").is_none() && metadata.get("name").is_none()
}

struct Mask<'a> {
    namespace: &'a str,
    revisions: Vec<u64>,
    generated: Vec<(String, String)>,
    uids: Vec<String>,
}

impl Mask<'_> {
    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(object) => self.object(object),
            _ => {}
        }
    }

    fn object(&mut self, object: &mut Map<String, Value>) {
        let moment = is_moment(object);
        for key in ["metadata", "involvedObject"] {
            let Some(part) = object.get_mut(key).and_then(Value::as_object_mut) else { continue };
            if let Some(given) = part.get("resourceVersion").and_then(Value::as_str)
                && let Ok(number) = given.parse::<u64>()
            {
                let rank = self.revisions.binary_search(&number).map(|at| format!("<revision {}>", at + 1));
                let label = if moment && key == "metadata" {
                    "<moment>".to_owned()
                } else {
                    rank.unwrap_or_default()
                };
                part.insert("resourceVersion".to_owned(), json!(label));
            }
            if let Some(token) =
                part.get_mut("continue").filter(|token| !token.as_str().unwrap_or("").is_empty())
            {
                *token = json!("<continue>");
            }
            if let Some(Value::Array(entries)) = part.get_mut("managedFields") {
                for entry in entries.iter_mut() {
                    *entry = json!(owner(entry));
                }
                // Their order depends on which second a write fell into.
                entries.sort_by_key(Value::to_string);
            }
        }
        for row in object.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
            for cell in row["cells"].as_array_mut().into_iter().flatten() {
                if cell.as_str().is_some_and(|text| !text.is_empty() && AGE.is_match(text)) {
                    *cell = json!("<age>");
                }
            }
        }
        for column in object.get_mut("columnDefinitions").and_then(Value::as_array_mut).into_iter().flatten()
        {
            // Prose of upstream's documentation.
            let described = column["description"].as_str().is_some_and(|text| !text.is_empty());
            column["description"] = json!(described);
        }
        let keys: Vec<String> = object.keys().filter(|key| key.contains(self.namespace)).cloned().collect();
        for key in keys {
            if let Some(value) = object.remove(&key) {
                object.insert(key.replace(self.namespace, "<ns>"), value);
            }
        }
        object.values_mut().for_each(|value| self.value(value));
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, label) in &self.generated {
            text = text.replace(name, label);
        }
        let text = UID.replace_all(&text, |found: &Captures<'_>| {
            let at = self.uids.iter().position(|uid| *uid == found[0]).unwrap_or_else(|| {
                self.uids.push(found[0].to_owned());
                self.uids.len() - 1
            });
            format!("<uid {}>", at + 1)
        });
        let text = TIME.replace_all(&text, |found: &Captures<'_>| {
            match (is_now(&found[0]), found.get(2).is_some()) {
                (true, true) => "<precise time>",
                (true, false) => "<time>",
                (false, _) => "<some other time>",
            }
        });
        let text = PATCHED.replace_all(&text, r#"Invalid value: "<the object>": "#);
        let text = HASH.replace_all(&text, "?hash=<hash>");
        let text = REVISION.replace_all(&text, "$1<number>");
        ADDRESS.replace_all(&text, "<address>").replace(self.namespace, "<ns>")
    }
}

/// Did that happen while the case ran, or does it within the hour? Any other time is not what the real server tells.
fn is_now(time: &str) -> bool {
    time.parse::<jiff::Timestamp>().is_ok_and(|at| {
        let ago = jiff::Timestamp::now().duration_since(at);
        jiff::SignedDuration::from_mins(-61) < ago && ago < jiff::SignedDuration::from_mins(10)
    })
}

/// An entry of `managedFields` on one line.
fn owner(entry: &Value) -> String {
    let mut line = String::new();
    for key in ["manager", "operation", "apiVersion", "subresource"] {
        if let Some(text) = entry[key].as_str() {
            line.push_str(text);
            line.push(' ');
        }
    }
    for key in entry.as_object().into_iter().flat_map(Map::keys) {
        let known = ["manager", "operation", "apiVersion", "subresource", "time", "fieldsType", "fieldsV1"];
        if !known.contains(&key.as_str()) {
            line.push_str(key);
            line.push_str("? ");
        }
    }
    if entry["time"].as_str().is_none_or(|time| !TIME.is_match(time)) {
        line.push_str("without time ");
    }
    fields(&entry["fieldsV1"], &mut line);
    line
}

fn fields(value: &Value, line: &mut String) {
    line.push('{');
    for (at, (key, below)) in value.as_object().into_iter().flatten().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        line.push_str(key.strip_prefix("f:").unwrap_or(key));
        if below.as_object().is_none_or(|below| !below.is_empty()) {
            fields(below, line);
        }
    }
    line.push('}');
}
