//! Custom resource definitions: names, versions and scope. Schemas are checked elsewhere.

use super::check::{Errors, immutable, invalid, invalid_text, required};
use crate::builtin::json::{flag, get, has, list, text};
use crate::builtin::names;
use crate::status::FieldError;
use serde_json::{Value, json};

pub(super) fn definition(obj: &Value, old: Option<&Value>, out: &mut Errors) {
    let spec = get(obj, "spec");
    let meta = get(obj, "metadata");
    let group = text(spec, "group");
    let crd_names = get(spec, "names");
    if old.is_none() {
        let wanted = format!("{}.{group}", text(crd_names, "plural"));
        let name = text(meta, "name");
        if !name.is_empty() && name != wanted {
            invalid(out, "metadata.name", &json!(name), "must be spec.names.plural+\".\"+spec.group");
        }
    }
    if group.is_empty() {
        required(out, "spec.group", "");
    } else if let problems @ [_, ..] = names::subdomain(group).as_slice() {
        invalid(out, "spec.group", &json!(group), problems.join(","));
    } else if !group.contains('.') {
        invalid(out, "spec.group", &json!(group), "should be a domain with at least one dot");
    }
    let scope = text(spec, "scope");
    if scope.is_empty() {
        required(out, "spec.scope", "");
    } else if scope != "Cluster" && scope != "Namespaced" {
        out.push(FieldError::not_supported("spec.scope", &json!(scope), &["Cluster", "Namespaced"]));
    }
    versions(out, spec);
    all_names(out, crd_names);
    if flag(spec, "preserveUnknownFields") {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                   spec.versions[*].schema instead";
        invalid(out, "spec.preserveUnknownFields", &json!(true), why);
    }
    stored(out, obj, list(spec, "versions"));
    approval(out, group, get(meta, "annotations"));
}

fn versions(out: &mut Errors, spec: &Value) {
    let all = list(spec, "versions");
    let schema = |v: &Value| has(get(v, "schema"), "openAPIV3Schema");
    for (i, _) in all.iter().enumerate().filter(|(_, v)| !schema(v)) {
        required(out, format!("spec.versions[{i}].schema.openAPIV3Schema"), "");
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut unique = true;
    for (i, version) in all.iter().enumerate() {
        let name = text(version, "name");
        unique &= !seen.contains(&name);
        seen.push(name);
        if let problems @ [_, ..] = names::label_1035(name).as_slice() {
            invalid(out, format!("spec.versions[{i}].name"), &json!(name), problems.join(","));
        }
        subresources(out, get(version, "subresources"), &format!("spec.versions[{i}].subresources"));
        for (j, column) in list(version, "additionalPrinterColumns").iter().enumerate() {
            printer_column(out, column, &format!("spec.versions[{i}].additionalPrinterColumns[{j}]"));
        }
    }
    // Upstream prints its internal form of the versions, from which schemas and the like have moved to the top.
    let shown = || {
        let each: Vec<String> = all.iter().map(version_text).collect();
        if each.is_empty() { "null".to_owned() } else { format!("[{}]", each.join(",")) }
    };
    if !unique {
        invalid_text(out, "spec.versions", shown(), "must contain unique version names");
    }
    if all.iter().filter(|v| flag(v, "storage")).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        invalid_text(out, "spec.versions", shown(), why);
    }
}

fn version_text(version: &Value) -> String {
    format!(
        "{{\"Name\":{:?},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":null,\
         \"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        text(version, "name"),
        flag(version, "served"),
        flag(version, "storage"),
        flag(version, "deprecated"),
        get(version, "deprecationWarning")
    )
}

fn subresources(out: &mut Errors, subresources: &Value, path: &str) {
    let scale = get(subresources, "scale");
    if scale.is_null() {
        return;
    }
    for (key, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let value = text(scale, key);
        let field = format!("{path}.scale.{key}");
        if value.is_empty() {
            required(out, field, "");
        } else if !value.starts_with(root) {
            let why = format!("should be a json path under {}", root.trim_end_matches('.'));
            invalid(out, field, &json!(value), why);
        }
    }
}

fn printer_column(out: &mut Errors, column: &Value, path: &str) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    if text(column, "name").is_empty() {
        required(out, format!("{path}.name"), "");
    }
    let ty = text(column, "type");
    let why = format!("must be one of {}", TYPES.join(","));
    if ty.is_empty() {
        required(out, format!("{path}.type"), &why);
    } else if !TYPES.contains(&ty) {
        invalid(out, format!("{path}.type"), &json!(ty), why);
    }
    if text(column, "jsonPath").is_empty() {
        required(out, format!("{path}.JSONPath"), "");
    }
}

fn all_names(out: &mut Errors, held: &Value) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(held, key).is_empty() {
            required(out, format!("spec.names.{key}"), "");
        }
    }
    for key in ["plural", "singular", "kind", "listKind"] {
        let name = text(held, key);
        let mixed = key.ends_with("ind");
        let problems = names::label_1035(&if mixed { name.to_lowercase() } else { name.to_owned() });
        if name.is_empty() || problems.is_empty() {
            continue;
        }
        let prefix = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
        let why = format!("{prefix}{}", problems.join(","));
        invalid(out, format!("spec.names.{key}"), &json!(name), why);
    }
    for key in ["shortNames", "categories"] {
        if key == "categories"
            && !text(held, "kind").is_empty()
            && text(held, "kind") == text(held, "listKind")
        {
            let why = "kind and listKind may not be the same";
            invalid(out, "spec.names.listKind", &json!(text(held, "listKind")), why);
        }
        for (i, name) in list(held, key).iter().enumerate() {
            let problems = names::label_1035(name.as_str().unwrap_or_default());
            if !problems.is_empty() {
                invalid(out, format!("spec.names.{key}[{i}]"), name, problems.join(","));
            }
        }
    }
}

fn stored(out: &mut Errors, obj: &Value, versions: &[Value]) {
    let stored = list(get(obj, "status"), "storedVersions");
    if stored.is_empty() {
        let why = "must have at least one stored version";
        return invalid(out, "status.storedVersions", &Value::Null, why);
    }
    for (i, name) in stored.iter().enumerate() {
        if !versions.iter().any(|v| get(v, "name") == name) {
            let name_text = name.as_str().unwrap_or_default();
            let why = format!(
                "missing from spec.versions; {name_text} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name_text} and \
                 removes {name_text} from status.storedVersions"
            );
            invalid(out, format!("status.storedVersions[{i}]"), name, why);
        }
    }
}

/// Groups of the Kubernetes community need an approval.
fn approval(out: &mut Errors, group: &str, annotations: &Value) {
    let protected = |suffix: &str| group == suffix || group.ends_with(&format!(".{suffix}"));
    if !protected("k8s.io") && !protected("kubernetes.io") {
        return;
    }
    let key = "api-approved.kubernetes.io";
    let value = text(annotations, key);
    if value.is_empty() {
        let why = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                   https://github.com/kubernetes/enhancements/pull/1111";
        required(out, format!("metadata.annotations[{key}]"), why);
    } else if !value.starts_with("unapproved") && !value.contains("://") {
        let why = "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a \
                   URL or a reason starting with \"unapproved\", see \
                   https://github.com/kubernetes/enhancements/pull/1111";
        invalid(out, format!("metadata.annotations[{key}]"), &json!(value), why);
    }
}

/// What an update may not change: names and scope of an established definition, group and plural of any.
pub(super) fn changes(new: &Value, old: &Value, out: &mut Errors) {
    let (spec, before) = (get(new, "spec"), get(old, "spec"));
    let established = list(get(old, "status"), "conditions")
        .iter()
        .any(|c| text(c, "type") == "Established" && text(c, "status") == "True");
    if established {
        immutable(out, spec, before, "scope", "spec.");
        immutable(out, get(spec, "names"), get(before, "names"), "kind", "spec.names.");
    }
    immutable(out, spec, before, "group", "spec.");
    immutable(out, get(spec, "names"), get(before, "names"), "plural", "spec.names.");
}
