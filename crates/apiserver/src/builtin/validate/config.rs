//! Config maps and secrets.

use super::check::{Errors, each, forbidden, immutable, invalid, required};
use crate::builtin::json::{entries, flag, get, text};
use crate::builtin::{meta, names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const MAX_SIZE: usize = 1 << 20;

pub(super) fn config_map(obj: &Value, out: &mut Errors) {
    let mut size = 0;
    let mut plain: Vec<_> = entries(obj, "data").collect();
    plain.sort_by_key(|(key, _)| *key);
    for (key, value) in plain {
        let path = format!("data[{key}]");
        each(out, &path, key, names::config_key(key));
        if get(obj, "binaryData").get(key).is_some() {
            invalid(out, path, &json!(key), "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(obj, "binaryData") {
        each(out, &format!("binaryData[{key}]"), key, names::config_key(key));
        size += bytes(value).len();
    }
    if size > MAX_SIZE {
        // Upstream has no path for the whole object, and prints none this way.
        out.push(meta::too_long("[]", MAX_SIZE));
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    value.as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default()
}

pub(super) fn secret(obj: &Value, out: &mut Errors) {
    let data = get(obj, "data");
    let mut size = 0;
    for (key, value) in entries(obj, "data") {
        each(out, &format!("data[{key}]"), key, names::config_key(key));
        size += bytes(value).len();
    }
    if size > MAX_SIZE {
        out.push(meta::too_long("data", MAX_SIZE));
    }
    let need = |key: &str, out: &mut Errors| {
        if data.get(key).is_none() {
            required(out, format!("data[{key}]"), "");
        }
    };
    match text(obj, "type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if text(get(get(obj, "metadata"), "annotations"), key).is_empty() {
                required(out, format!("metadata.annotations[{key}]"), "");
            }
        }
        "kubernetes.io/dockercfg" => docker(data, ".dockercfg", out),
        "kubernetes.io/dockerconfigjson" => docker(data, ".dockerconfigjson", out),
        "kubernetes.io/basic-auth" if data.get("username").is_none() && data.get("password").is_none() => {
            need("username", out);
            need("password", out);
        }
        "kubernetes.io/ssh-auth" if bytes(get(data, "ssh-privatekey")).is_empty() => {
            required(out, "data[ssh-privatekey]", "");
        }
        "kubernetes.io/tls" => {
            need("tls.crt", out);
            need("tls.key", out);
        }
        _ => {}
    }
}

fn docker(data: &Value, key: &str, out: &mut Errors) {
    let path = format!("data[{key}]");
    let Some(value) = data.get(key) else { return required(out, path, "") };
    if let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes(value)) {
        let why = if bytes(value).is_empty() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        };
        invalid(out, path, &json!("<secret contents redacted>"), why);
    }
}

/// What an update of a config map or secret may not change.
pub(super) fn changes(kind: &str, new: &Value, old: &Value, out: &mut Errors) {
    if kind == "Secret" {
        immutable(out, new, old, "type", "");
    }
    if !flag(old, "immutable") {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    if !flag(new, "immutable") {
        forbidden(out, "immutable", why);
    }
    let fields: &[&str] = if kind == "Secret" { &["data"] } else { &["data", "binaryData"] };
    for key in fields {
        if get(new, key) != get(old, key) {
            forbidden(out, *key, why);
        }
    }
}
