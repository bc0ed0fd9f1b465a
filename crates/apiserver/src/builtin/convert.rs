//! Fields that mirror each other: what the server's internal form does to an object that passes through it.

use super::json::{Object, child, text, text_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Applies the conversions of one struct of a normalized object.
pub(super) fn apply(ty: &str, map: &mut Object) {
    match ty {
        "Pod" => {
            let grace = map.get_mut("spec").and_then(|s| s.get_mut("terminationGracePeriodSeconds"));
            if let Some(grace) = grace.filter(|g| g.as_i64().is_some_and(|g| g < 0)) {
                *grace = json!(1);
            }
        }
        "PodSpec" => service_account(map),
        "PodStatus" => first_of(map, "podIP", "podIPs", |ip| json!({ "ip": ip }), |v| text(v, "ip")),
        "NodeSpec" => {
            first_of(map, "podCIDR", "podCIDRs", |cidr| json!(cidr), |v| v.as_str().unwrap_or_default());
        }
        "Secret" => secret(map),
        "DaemonSet" => {
            // The internal form has a number here, which is never absent.
            let annotations = child(map, "metadata").and_then(|m| child(m, "annotations"));
            if let Some(annotations) = annotations {
                annotations.entry("deprecated.daemonset.template.generation").or_insert_with(|| json!("0"));
            }
        }
        "StatefulSetSpec" => {
            let claims = map.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
            for claim in claims.into_iter().flatten().filter_map(Value::as_object_mut) {
                claim.insert("apiVersion".to_owned(), json!("v1"));
                claim.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
            }
        }
        "JSONSchemaProps" => {
            for key in ["default", "example"] {
                if map.get(key).is_some_and(Value::is_null) {
                    map.remove(key);
                }
            }
        }
        _ => {}
    }
}

fn service_account(spec: &mut Object) {
    let name = match text_of(spec, "serviceAccountName") {
        "" => text_of(spec, "serviceAccount"),
        name => name,
    };
    let name = name.to_owned();
    if !name.is_empty() {
        spec.insert("serviceAccountName".to_owned(), json!(name));
        spec.insert("serviceAccount".to_owned(), json!(name));
    }
    if !spec.contains_key("securityContext") {
        spec.insert("securityContext".to_owned(), json!({}));
    }
}

/// A single value and a list of the same: the single one wins over a list that starts otherwise.
fn first_of(
    map: &mut Object,
    one: &str,
    many: &str,
    wrap: impl Fn(&str) -> Value,
    unwrap: impl Fn(&Value) -> &str,
) {
    let single = text_of(map, one).to_owned();
    let first = map.get(many).and_then(|m| m.get(0)).map(|v| unwrap(v).to_owned());
    match (single.as_str(), first) {
        ("", Some(first)) if !first.is_empty() => drop(map.insert(one.to_owned(), json!(first))),
        ("", _) => {}
        (single, Some(first)) if first == single => {}
        (single, _) => drop(map.insert(many.to_owned(), json!([wrap(single)]))),
    }
}

fn secret(map: &mut Object) {
    let Some(Value::Object(plain)) = map.remove("stringData") else { return };
    if let Some(data) = child(map, "data") {
        for (key, value) in plain {
            let bytes = value.as_str().unwrap_or_default();
            data.insert(key, json!(STANDARD.encode(bytes)));
        }
    }
}
