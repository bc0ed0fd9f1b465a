//! Are two pod templates the same, and what is a replica set of one called?

use serde_json::Value;

const HASH: &str = "pod-template-hash";
/// Letters and digits that make no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const LENGTH: usize = 10;

/// Are two templates equal but for the label that tells replica sets apart?
#[must_use]
pub fn same_template(a: &Value, b: &Value) -> bool {
    let plain = |template: &Value| {
        let mut template = template.clone();
        if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
            labels.remove(HASH);
        }
        template
    };
    plain(a) == plain(b)
}

/// A short name for a template. `collisions` gives another one when the first was taken.
#[must_use]
pub fn hash(template: &Value, collisions: Option<i64>) -> String {
    let mut text = String::new();
    canonical(template, &mut text);
    let mut x = crate::node::dice(u64::from_ne_bytes(collisions.unwrap_or(0).to_ne_bytes()), &text);
    let mut out = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        let at = usize::try_from(x % 27).unwrap_or(0);
        out.push(char::from(ALPHABET[at]));
        x /= 27;
    }
    out
}

/// JSON with sorted keys: the order in which fields were written must not matter.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in entries {
                out.push_str(key);
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for value in list {
                canonical(value, out);
                out.push(',');
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_hash_label_is_ignored() {
        let plain = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"x": 1}});
        let labelled =
            json!({"metadata": {"labels": {"app": "a", "pod-template-hash": "h"}}, "spec": {"x": 1}});
        let other = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"x": 2}});
        assert!(same_template(&plain, &labelled));
        assert!(!same_template(&plain, &other));
    }

    #[test]
    fn the_hash_follows_the_content_not_the_order_and_avoids_collisions() {
        let a: Value = serde_json::from_str(r#"{"a": 1, "b": [1, 2]}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"b": [1, 2], "a": 1}"#).unwrap();
        assert_eq!(hash(&a, None), hash(&b, None));
        assert_ne!(hash(&a, None), hash(&a, Some(1)));
        assert_ne!(hash(&a, None), hash(&json!({"a": 1, "b": [2, 1]}), None));
        assert_eq!(hash(&a, None).len(), LENGTH);
    }
}
