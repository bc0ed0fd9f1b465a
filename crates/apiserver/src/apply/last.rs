//! The annotation client-side apply leaves behind: server-side apply by `kubectl` respects and renews it.

use super::fields::FieldSet;
use super::shape::Shape;
use super::walk;
use serde_json::{Map, Value};

/// Where client-side apply keeps what it applied last.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager these courtesies are for.
pub(super) const KUBECTL: &str = "kubectl";

/// All annotations together may not be larger than this.
const MAX_ANNOTATIONS: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str().filter(|s| !s.is_empty())
}

/// Fields that client-side apply set and nobody changed since: kubectl may take these over without a conflict.
pub(super) fn still_applied(shape: Shape<'_>, live: &Value, version: &str) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(version)
        || !walk::problems(shape, &last).is_empty()
    {
        return None;
    }
    let changes = walk::compare(shape, &last, live).ok()?;
    let fields = walk::fields(shape, &last);
    Some(fields.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Brings the annotation up to date, if there is one.
pub(super) fn renew(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(map)) = config.pointer_mut("/metadata/annotations") {
        map.remove(ANNOTATION);
    }
    let text = encoded(&config);
    let Some(Value::Object(map)) = object.pointer_mut("/metadata/annotations") else { return };
    map.insert(ANNOTATION.to_owned(), Value::String(text));
    let size: usize = map.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        map.remove(ANNOTATION);
    }
}

/// JSON in one line as Go writes it: keys in order, no angle brackets or ampersands, a newline at the end.
fn encoded(value: &Value) -> String {
    let mut out = sorted(value).to_string();
    for (plain, escaped) in [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        out = out.replace(plain, escaped);
    }
    out.push('\n');
    out
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            Value::Object(keys.into_iter().map(|k| (k.clone(), sorted(&map[k]))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        scalar => scalar.clone(),
    }
}
