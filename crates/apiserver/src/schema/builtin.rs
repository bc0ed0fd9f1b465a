//! Which schema does a built-in kind have: the recorded ones, parsed once.

use super::{Definitions, View};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::OnceLock;

const KUBERNETES: &str = include_str!("../../schemas/kubernetes.json");
const METRICS: &str = include_str!("../../schemas/metrics.json");
const DESCRIPTIONS: &str = include_str!("../../schemas/descriptions.json");
const GO_TYPES: &str = include_str!("../../schemas/go-types.json");

/// Definition of the metadata of objects.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Definition of the metadata of lists.
pub(crate) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

struct Recorded {
    definitions: Definitions,
    kinds: BTreeMap<(String, String, String), String>,
    go_types: Map<String, Value>,
}

/// All built-in definitions.
#[must_use]
pub(crate) fn definitions() -> &'static Definitions {
    &recorded().definitions
}

/// The schema of one built-in kind.
#[must_use]
pub(crate) fn kind(group: &str, version: &str, kind: &str) -> Option<View<'static>> {
    let recorded = recorded();
    let name = recorded.kinds.get(&(group.to_owned(), version.to_owned(), kind.to_owned()))?;
    recorded.definitions.view(name)
}

/// The schema of the metadata every object has.
///
/// # Panics
/// Never: a test looks it up in what was recorded.
#[must_use]
pub(crate) fn object_meta() -> View<'static> {
    recorded().definitions.view(OBJECT_META).expect("the recorded schemas contain ObjectMeta")
}

/// How Go names a field of a definition where that cannot be told from the schema: the embedded struct it comes
/// from, and its type. Either may be empty.
pub(crate) fn go_field(definition: &str, field: &str) -> Option<(&'static str, &'static str)> {
    let text = recorded().go_types.get(definition)?.get(field)?.as_str()?;
    Some(text.split_once('|').unwrap_or(("", text)))
}

fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let mut schemas = parse(KUBERNETES);
        schemas.extend(parse(METRICS));
        describe(&mut schemas, &parse(DESCRIPTIONS));
        let mut kinds = BTreeMap::new();
        for (name, schema) in &schemas {
            let listed = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            for kind in listed.into_iter().flatten() {
                let part = |key: &str| kind[key].as_str().unwrap_or_default().to_owned();
                kinds.insert((part("group"), part("version"), part("kind")), name.clone());
            }
        }
        let definitions = Definitions::from_openapi(&Value::Object(schemas));
        Recorded { definitions, kinds, go_types: parse(GO_TYPES) }
    })
}

fn parse(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).expect("the recorded schemas are JSON objects: a test reads them")
}

/// Puts our descriptions in place; the entry without a field name describes the kind.
fn describe(schemas: &mut Map<String, Value>, descriptions: &Map<String, Value>) {
    for (name, fields) in descriptions {
        let Some(schema) = schemas.get_mut(name) else { continue };
        for (field, text) in fields.as_object().into_iter().flatten() {
            let target =
                if field.is_empty() { Some(&mut *schema) } else { schema["properties"].get_mut(field) };
            if let Some(Value::Object(target)) = target {
                target.insert("description".to_owned(), text.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ListKind, Type};

    #[test]
    fn every_served_kind_has_a_schema() {
        for (group, version, name) in [
            ("", "v1", "Pod"),
            ("", "v1", "Node"),
            ("", "v1", "Status"),
            ("", "v1", "Binding"),
            ("apps", "v1", "Deployment"),
            ("autoscaling", "v1", "Scale"),
            ("policy", "v1", "Eviction"),
            ("policy", "v1", "PodDisruptionBudget"),
            ("resource.k8s.io", "v1", "ResourceClaim"),
            ("events.k8s.io", "v1", "Event"),
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            ("authorization.k8s.io", "v1", "SelfSubjectAccessReview"),
            ("metrics.k8s.io", "v1beta1", "PodMetrics"),
        ] {
            assert!(kind(group, version, name).is_some(), "{group}/{version} {name}");
        }
        assert!(kind("", "v1", "Nothing").is_none());
    }

    #[test]
    fn all_references_resolve() {
        fn walk(schema: &Value, definitions: &Definitions) {
            match schema {
                Value::Object(fields) => {
                    if let Some(Value::String(reference)) = fields.get("$ref") {
                        let name = reference.rsplit('/').next().unwrap();
                        assert!(definitions.view(name).is_some(), "{reference}");
                    }
                    fields.values().for_each(|field| walk(field, definitions));
                }
                Value::Array(items) => items.iter().for_each(|item| walk(item, definitions)),
                _ => {}
            }
        }
        for (_, schema) in definitions().iter() {
            walk(&schema.raw, definitions());
        }
    }

    #[test]
    fn merge_markers_survive_the_recording() {
        let pod = kind("", "v1", "Pod").unwrap();
        let ports = pod.at(&["spec", "containers", "ports"]).unwrap();
        assert_eq!(*ports.list(), ListKind::Map(vec!["containerPort".into(), "protocol".into()]));
        assert_eq!(ports.strategy().merge_key.as_deref(), Some("containerPort"));
        let limits = pod.at(&["spec", "containers", "resources", "limits"]).unwrap();
        assert_eq!(limits.value().unwrap().ty(), Type::IntOrString);
    }

    #[test]
    fn every_description_belongs_to_a_field() {
        for (name, fields) in parse(DESCRIPTIONS) {
            let view = definitions().view(&name).unwrap_or_else(|| panic!("{name}"));
            for (field, _) in fields.as_object().unwrap() {
                assert!(field.is_empty() || view.schema().properties.contains_key(field), "{name}.{field}");
            }
        }
    }
}
