//! Which object is it? The same for every kind.

use crate::json::Tree;
use loadline_core::object::{Key, Meta};
use std::sync::Arc;

/// The identity of an object, as far as it is written. Nothing about it is a problem: whoever needs more than is there
/// looks at the facts.
#[must_use]
pub fn meta(object: &Tree<'_>) -> Meta {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    Meta {
        key: Key { namespace: shared(text("namespace")), name: shared(text("name")) },
        uid: shared(text("uid")),
        revision: text("resourceVersion").parse().ok(),
    }
}

/// Nothing is shared by all that have nothing.
fn shared(text: &str) -> Arc<str> {
    if text.is_empty() { Arc::default() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn identity_is_what_is_written() {
        let of = |metadata: Value| meta(&Tree::from(&json!({"metadata": metadata})));
        let pod = of(json!({"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7"}));
        assert_eq!((pod.key.to_string().as_str(), &*pod.uid, pod.revision), ("shop/web", "u", Some(7)));
        let node = of(json!({"name": "n1"}));
        assert_eq!(node, Meta { key: Key::new("", "n1"), ..Meta::default() }, "no namespace is no namespace");
        for (written, revision, why) in [
            (json!("18446744073709551615"), Some(u64::MAX), "the largest"),
            (json!("18446744073709551616"), None, "beyond it"),
            (json!("v7"), None, "no number"),
            (json!(""), None, "nothing"),
            (json!(7), None, "not how it is written"),
        ] {
            assert_eq!(of(json!({"resourceVersion": written})).revision, revision, "{why}");
        }
        assert_eq!(meta(&Tree::Null), Meta::default());
    }
}
