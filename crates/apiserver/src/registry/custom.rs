//! From a `CustomResourceDefinition` to the resources it adds.

use super::{Resource, Subresource};
use crate::schema::{Definitions, Schema, View};
use crate::table::CustomColumn;
use serde_json::Value;
use std::sync::Arc;

/// What only resources from a definition have.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, as a definition has them")]
pub(crate) struct Custom {
    schema: Option<Schema>,
    definitions: Definitions,
    /// `apiVersion` in which objects are stored.
    pub storage_api_version: String,
    /// Whether this version is the stored one.
    pub storage: bool,
    /// Columns of its table; empty means the default ones.
    pub columns: Vec<CustomColumn>,
    /// Whether the `status` subresource is on.
    pub status: bool,
    /// Where the `scale` subresource finds its figures.
    pub scale: Option<ScalePaths>,
    /// `preserveUnknownFields` of the definition: nothing is pruned.
    pub preserve_unknown: bool,
    /// Whether the schema has defaults, which are filled in when an object is read, too.
    pub defaults: bool,
    /// What to warn users of this version about.
    pub deprecation: Option<String>,
}

/// Where the `scale` subresource of a custom resource finds its figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    /// Path of the wanted number of replicas.
    pub spec_replicas: String,
    /// Path of the observed number of replicas.
    pub status_replicas: String,
    /// Path of the selector, if any.
    pub label_selector: Option<String>,
}

impl Custom {
    /// Schema of the objects; `None` when the definition leaves everything open.
    #[must_use]
    pub(crate) fn schema(&self) -> Option<View<'_>> {
        self.schema.as_ref().map(|s| s.standalone(&self.definitions))
    }

    /// The schema as the definition wrote it.
    #[must_use]
    pub(crate) fn raw_schema(&self) -> Option<&Value> {
        self.schema.as_ref().map(|s| &s.raw)
    }
}

/// Whether a definition is being served.
#[must_use]
pub(crate) fn established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

impl Resource {
    /// The resources of a definition, one per served version.
    #[must_use]
    pub(crate) fn from_definition(definition: &Value) -> Vec<Arc<Self>> {
        let spec = &definition["spec"];
        let versions: Vec<&Value> = spec["versions"].as_array().into_iter().flatten().collect();
        let group = text(&spec["group"]);
        let storage = versions.iter().find(|v| v["storage"] == true);
        let storage_api_version =
            format!("{group}/{}", storage.and_then(|v| v["name"].as_str()).unwrap_or_default());
        versions
            .iter()
            .filter(|v| v["served"] == true)
            .map(|version| Arc::new(Self::of_version(spec, version, &storage_api_version)))
            .collect()
    }

    fn of_version(spec: &Value, version: &Value, storage_api_version: &str) -> Self {
        let names = &spec["names"];
        let group = text(&spec["group"]);
        let plural = text(&names["plural"]);
        let subs = &version["subresources"];
        let scale = subs.get("scale").map(|s| ScalePaths {
            spec_replicas: text(&s["specReplicasPath"]),
            status_replicas: text(&s["statusReplicasPath"]),
            label_selector: s["labelSelectorPath"].as_str().map(str::to_owned),
        });
        let kind = text(&names["kind"]);
        let verbs = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut subresources = Vec::new();
        if subs.get("status").is_some() {
            subresources.push(Subresource {
                name: "status".to_owned(),
                kind: kind.clone(),
                group: String::new(),
                version: String::new(),
                verbs: verbs(&["get", "patch", "update"]),
            });
        }
        if scale.is_some() {
            subresources.push(Subresource {
                name: "scale".to_owned(),
                kind: "Scale".to_owned(),
                group: "autoscaling".to_owned(),
                version: "v1".to_owned(),
                verbs: verbs(&["get", "patch", "update"]),
            });
        }
        let fields = version["selectableFields"].as_array().into_iter().flatten();
        let custom = Custom {
            schema: version["schema"].get("openAPIV3Schema").map(Schema::from_openapi),
            definitions: Definitions::default(),
            storage_api_version: storage_api_version.to_owned(),
            storage: version["storage"] == true,
            columns: CustomColumn::of_version(version),
            status: subs.get("status").is_some(),
            scale,
            preserve_unknown: spec["preserveUnknownFields"] == true,
            defaults: has_default(&version["schema"]),
            deprecation: deprecation(spec, version),
        };
        Self {
            table: format!("{group}/{plural}").into(),
            group,
            version: text(&version["name"]),
            plural,
            singular: text(&names["singular"]),
            kind,
            list_kind: text(&names["listKind"]),
            namespaced: spec["scope"] == "Namespaced",
            verbs: verbs(&[
                "delete",
                "deletecollection",
                "get",
                "list",
                "patch",
                "create",
                "update",
                "watch",
            ]),
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            subresources,
            fields: fields.map(|f| text(&f["jsonPath"]).trim_start_matches('.').to_owned()).collect(),
            custom: Some(Arc::new(custom)),
        }
    }
}

fn has_default(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("default") || map.values().any(has_default),
        Value::Array(list) => list.iter().any(has_default),
        _ => false,
    }
}

/// The warning of a deprecated version: its own words, or a hint at the best one that is not.
fn deprecation(spec: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(own) = version["deprecationWarning"].as_str() {
        return Some(own.to_owned());
    }
    let name = |version: &Value| text(&version["name"]);
    let title =
        |version: &str| format!("{}/{version} {}", text(&spec["group"]), text(&spec["names"]["kind"]));
    let others = spec["versions"].as_array().into_iter().flatten();
    let others = others.filter(|other| other["served"] == true && other["deprecated"] != true);
    let best = others.map(name).max_by_key(|name| version_priority(name));
    let better = best.filter(|best| version_priority(best) > version_priority(&name(version)));
    let advice = better.map(|best| format!("; use {}", title(&best))).unwrap_or_default();
    Some(format!("{} is deprecated{advice}", title(&name(version))))
}

/// Order of versions as Kubernetes ranks them: GA over beta over alpha, newer over older, others last.
#[must_use]
pub(super) fn version_priority(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major: u32 = rest[..digits].parse().ok()?;
        let stage = &rest[digits..];
        let number = |s: &str| if s.is_empty() { Some(0) } else { s.parse::<u32>().ok() };
        if stage.is_empty() {
            Some((3, major, 0))
        } else if let Some(minor) = stage.strip_prefix("beta") {
            Some((2, major, number(minor)?))
        } else {
            Some((1, major, number(stage.strip_prefix("alpha")?)?))
        }
    };
    let (stage, major, minor) = parse().unwrap_or((0, 0, 0));
    (stage, major, minor, std::cmp::Reverse(version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rank_ga_beta_alpha_then_the_rest() {
        let mut versions = vec![
            "foo10",
            "v3beta1",
            "v10",
            "v1",
            "v11alpha2",
            "foo1",
            "v10beta3",
            "v2",
            "v11beta2",
            "v12alpha1",
        ];
        versions.sort_by_key(|v| std::cmp::Reverse(version_priority(v)));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
        );
    }
}
