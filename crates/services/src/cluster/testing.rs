//! What do tests of components make objects from?

use loadline_core::object::{Key, Meta};
use serde_json::Value;

/// Which object a document is, as of when.
pub(crate) fn meta(value: &Value) -> Meta {
    let text = |key: &str| value["metadata"][key].as_str().unwrap_or_default();
    Meta {
        key: Key::new(text("namespace"), text("name")),
        uid: text("uid").into(),
        revision: text("resourceVersion").parse().ok(),
    }
}
