//! Rules for the metadata of every object, built-in or custom.

use super::json::{child_of, copy, entries, flag, get, has, int, list, text};
use super::names::{self, Rule};
use super::validate::check::ordered;
use crate::status::{FieldError, Mistake};
use rand::{Rng, RngExt as _};
use serde_json::{Value, json};

const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const MAX_ANNOTATIONS: usize = 256 << 10;

/// Appends five random characters to a prefix, cut so that the result has at most 63 characters.
pub(crate) fn generate_name(prefix: &str, rng: &mut impl Rng) -> String {
    let mut end = prefix.len().min(58);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let suffix = (0..5).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())]));
    prefix[..end].chars().chain(suffix).collect()
}

/// Drops the metadata a client may not set on create.
pub(crate) fn prepare_create(obj: &mut Value) {
    if let Some(meta) = child_of(obj, "metadata") {
        for key in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
        {
            meta.remove(key);
        }
    }
}

/// Carries metadata over that an update may not change: generation, uid if absent, timestamps of creation and
/// deletion.
pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    keep_generation(new, old);
    keep_system_fields(new, old);
}

/// Requests cannot choose a generation.
pub(super) fn keep_generation(new: &mut Value, old: &Value) {
    if let Some(meta) = new.get_mut("metadata") {
        copy(meta, get(old, "metadata"), "generation");
    }
}

/// What else requests cannot choose; runs after the rules of the kind.
pub(super) fn keep_system_fields(new: &mut Value, old: &Value) {
    let Some(meta) = new.get_mut("metadata") else { return };
    let old = get(old, "metadata");
    if text(meta, "uid").is_empty() {
        copy(meta, old, "uid");
    }
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if has(old, key) {
            copy(meta, old, key);
        }
    }
    if has(old, "deletionGracePeriodSeconds") && !has(meta, "deletionGracePeriodSeconds") {
        copy(meta, old, "deletionGracePeriodSeconds");
    }
}

/// Problems of the metadata of a new object whose name must be a DNS subdomain, as for custom resources.
#[must_use]
pub(crate) fn validate_create(obj: &Value, namespaced: bool) -> Vec<FieldError> {
    create(obj, namespaced, Rule::Subdomain)
}

/// Problems of the metadata of an updated object, whatever its kind.
#[must_use]
pub(crate) fn validate_update(new: &Value, old: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut out = create(new, namespaced, Rule::PathSegment);
    out.extend(update(new, old));
    out
}

/// Problems of the metadata of a new object.
pub(super) fn create(obj: &Value, namespaced: bool, rule: Rule) -> Vec<FieldError> {
    let meta = get(obj, "metadata");
    let mut out = Vec::new();
    let generate = text(meta, "generateName");
    if !generate.is_empty() {
        for message in rule.check(generate, true) {
            out.push(FieldError::invalid("metadata.generateName", &json!(generate), message));
        }
    }
    let name = text(meta, "name");
    if name.is_empty() {
        out.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        for message in rule.check(name, false) {
            out.push(FieldError::invalid("metadata.name", &json!(name), message));
        }
    }
    let namespace = text(meta, "namespace");
    if namespaced && namespace.is_empty() {
        out.push(FieldError::required("metadata.namespace", ""));
    } else if namespaced {
        for message in names::label(namespace) {
            out.push(FieldError::invalid("metadata.namespace", &json!(namespace), message));
        }
    } else if !namespace.is_empty() {
        out.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
    }
    if int(meta, "generation").is_some_and(|g| g < 0) {
        let value = get(meta, "generation");
        out.push(FieldError::invalid("metadata.generation", value, "must be greater than or equal to 0"));
    }
    labels(meta, "labels", "metadata.labels", &mut out);
    annotations(meta, "metadata.annotations", &mut out);
    owners(meta, &mut out);
    finalizers(meta, &mut out);
    managed_fields(meta, &mut out);
    out
}

/// Problems of changed metadata.
pub(super) fn update(new: &Value, old: &Value) -> Vec<FieldError> {
    let (meta, old) = (get(new, "metadata"), get(old, "metadata"));
    let mut out = Vec::new();
    if has(old, "deletionTimestamp") {
        let known = list(old, "finalizers");
        let mut extra: Vec<&str> = list(meta, "finalizers")
            .iter()
            .filter(|f| !known.contains(f))
            .filter_map(Value::as_str)
            .collect();
        extra.sort_unstable();
        extra.dedup();
        if !extra.is_empty() {
            let quoted: Vec<String> = extra.iter().map(|f| format!("{f:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers \
                 []string{{{}}}",
                quoted.join(", ")
            );
            out.push(FieldError::forbidden("metadata.finalizers", why));
        }
    }
    if text(meta, "resourceVersion").is_empty() {
        let why = "must be specified for an update";
        out.push(FieldError::invalid("metadata.resourceVersion", &json!(""), why));
    }
    if int(meta, "generation").unwrap_or(0) < int(old, "generation").unwrap_or(0) {
        let value = json!(int(meta, "generation").unwrap_or(0));
        out.push(FieldError::invalid("metadata.generation", &value, "must not be decremented"));
    }
    for key in ["name", "namespace", "uid"] {
        if text(meta, key) != text(old, key) {
            let field = format!("metadata.{key}");
            out.push(FieldError::invalid(field, &json!(text(meta, key)), "field is immutable"));
        }
    }
    for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if get(meta, key) != get(old, key) {
            out.push(FieldError::invalid(format!("metadata.{key}"), get(meta, key), "field is immutable"));
        }
    }
    labels(meta, "labels", "metadata.labels", &mut out);
    annotations(meta, "metadata.annotations", &mut out);
    owners(meta, &mut out);
    managed_fields(meta, &mut out);
    out
}

/// Problems of a map of labels.
pub(super) fn labels(holder: &Value, key: &str, path: &str, out: &mut Vec<FieldError>) {
    for (key, value) in entries(holder, key) {
        for message in names::qualified(key) {
            out.push(FieldError::invalid(path, &json!(key), message));
        }
        for message in names::label_value(value.as_str().unwrap_or_default()) {
            out.push(FieldError::invalid(path, value, message));
        }
    }
}

/// Problems of annotations: keys and total size.
pub(super) fn annotations(meta: &Value, path: &str, out: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in entries(meta, "annotations") {
        for message in names::qualified(&key.to_lowercase()) {
            out.push(FieldError::invalid(path, &json!(key), message));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        out.push(too_long(path, MAX_ANNOTATIONS));
    }
}

/// A value with too many bytes.
pub(super) fn too_long(path: impl Into<String>, limit: usize) -> FieldError {
    FieldError {
        mistake: Mistake::TooLong,
        field: path.into(),
        value: None,
        detail: format!("may not be more than {limit} bytes"),
    }
}

fn owners(meta: &Value, out: &mut Vec<FieldError>) {
    let path = "metadata.ownerReferences";
    let references = list(meta, "ownerReferences");
    let mut first: Option<String> = None;
    for reference in references {
        let version = text(reference, "apiVersion");
        let version_part = version.rsplit('/').next().unwrap_or_default();
        if version_part.is_empty() || version.matches('/').count() > 1 {
            let why = "version must not be empty";
            out.push(FieldError::invalid(format!("{path}.apiVersion"), &json!(version), why));
        }
        for key in ["kind", "name", "uid"] {
            if text(reference, key).is_empty() {
                out.push(FieldError::invalid(format!("{path}.{key}"), &json!(""), "must not be empty"));
            }
        }
        if version == "v1" && text(reference, "kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            out.push(FieldError { value: Some(ordered(reference, &OWNER)), ..shown(&[], why.to_owned()) });
        }
        if flag(reference, "controller") {
            let this = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
            if let Some(first) = &first {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for \
                     {first} and {this}"
                );
                out.push(shown(references, why));
            } else {
                first = Some(this);
            }
        }
    }
}

const OWNER: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// A problem of all owner references, printed in the order of their type.
fn shown(references: &[Value], detail: String) -> FieldError {
    FieldError {
        mistake: Mistake::Invalid,
        field: "metadata.ownerReferences".to_owned(),
        value: Some(ordered(&json!(references), &OWNER)),
        detail,
    }
}

/// Finalizers of most built-in kinds need a domain, unless they are Kubernetes' own.
pub(super) fn qualified_finalizers(obj: &Value, out: &mut Vec<FieldError>) {
    for (i, finalizer) in list(get(obj, "metadata"), "finalizers").iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            out.push(FieldError::invalid(format!("metadata.finalizers[{i}]"), finalizer, why));
        }
    }
}

fn finalizers(meta: &Value, out: &mut Vec<FieldError>) {
    let path = "metadata.finalizers";
    let all = list(meta, "finalizers");
    for finalizer in all {
        for message in names::qualified(finalizer.as_str().unwrap_or_default()) {
            out.push(FieldError::invalid(path, finalizer, message));
        }
    }
    if all.contains(&json!("orphan")) && all.contains(&json!("foregroundDeletion")) {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        out.push(FieldError::invalid(path, &json!(all), why));
    }
}

fn managed_fields(meta: &Value, out: &mut Vec<FieldError>) {
    for (i, entry) in list(meta, "managedFields").iter().enumerate() {
        let path = format!("metadata.managedFields[{i}]");
        let operation = text(entry, "operation");
        if operation != "Apply" && operation != "Update" {
            let why = "must be `Apply` or `Update`";
            out.push(FieldError::invalid(format!("{path}.operation"), &json!(operation), why));
        }
        let fields = text(entry, "fieldsType");
        if !fields.is_empty() && fields != "FieldsV1" {
            out.push(FieldError::invalid(format!("{path}.fieldsType"), &json!(fields), "must be `FieldsV1`"));
        }
        if text(entry, "manager").len() > 128 {
            out.push(too_long(format!("{path}.manager"), 128));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn generated_names_keep_the_prefix_and_fit_a_label() {
        let mut rng = rand::rngs::StdRng::seed_from_u64(1);
        let name = generate_name("web-", &mut rng);
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert!(name.bytes().skip(4).all(|b| ALPHABET.contains(&b)), "{name}");
        assert_eq!(generate_name(&"a".repeat(80), &mut rng).len(), 63);
    }

    #[test]
    fn an_update_may_not_change_identity() {
        let old = json!({"metadata": {"name": "a", "uid": "1", "resourceVersion": "1", "namespace": "n"}});
        let new = json!({"metadata": {"name": "b", "uid": "2", "resourceVersion": "1", "namespace": "n"}});
        let got: Vec<String> = validate_update(&new, &old, true).iter().map(ToString::to_string).collect();
        assert_eq!(
            got,
            [
                "metadata.name: Invalid value: \"b\": field is immutable",
                "metadata.uid: Invalid value: \"2\": field is immutable"
            ]
        );
    }

    #[test]
    fn a_name_is_required() {
        let got = validate_create(&json!({"metadata": {}}), false);
        assert_eq!(got[0].to_string(), "metadata.name: Required value: name or generateName is required");
    }
}
