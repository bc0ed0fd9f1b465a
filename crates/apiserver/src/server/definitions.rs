//! Custom resource definitions: serving what they define from the moment they are accepted.

use super::{ApiServer, Call};
use crate::registry::{Registry, Resource, established};
use crate::schema::structural;
use crate::status::FieldError;
use crate::store::{Key, Object, Query};
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError};

/// Holds a definition until its objects are gone.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl ApiServer {
    /// A new definition: its names are accepted, then it is served. Upstream does this in a controller.
    pub(super) fn accept_definition(&self, resource: &Arc<Resource>, object: &Arc<Object>) {
        let now = self.now_text();
        let accepted = self.names_free(object);
        let mut call = Call::for_object(resource, None, &object.name);
        call.target.subresource = Some("status".to_owned());
        self.rewrite(&resource.table, &Key::from(object.name.as_ref()), |value| {
            let old = value.clone();
            let condition = |kind: &str, ok: bool, reason: &str, message: &str| {
                json!({
                    "type": kind, "status": if ok { "True" } else { "False" }, "reason": reason, "message": message,
                    "lastTransitionTime": now,
                })
            };
            value["status"]["conditions"] = match &accepted {
                Ok(()) => json!([
                    condition("NamesAccepted", true, "NoConflicts", "no conflicts found"),
                    condition(
                        "Established",
                        true,
                        "InitialNamesAccepted",
                        "the initial names have been accepted"
                    ),
                ]),
                Err(taken) => json!([
                    condition("NamesAccepted", false, "PluralConflict", &format!("{taken:?} is already in use")),
                    condition("Established", false, "NotAccepted", "not all names are accepted"),
                ]),
            };
            if accepted.is_ok() {
                value["status"]["acceptedNames"] = value["spec"]["names"].clone();
            }
            self.write_managed_fields(&call, Some(&old), value);
        });
        self.reload_definitions();
    }

    /// What a definition that is to go says about itself while its objects go first.
    pub(super) fn announce_end(&self, definition: &mut Value) {
        let ending = json!({
            "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            "lastTransitionTime": self.now_text(),
        });
        let conditions = &mut definition["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        if let Some(list) = conditions.as_array_mut()
            && !list.iter().any(|c| c["type"] == "Terminating")
        {
            list.push(ending);
        }
        let finalizers = &mut definition["metadata"]["finalizers"];
        if !finalizers.is_array() {
            *finalizers = json!([]);
        }
        if let Some(list) = finalizers.as_array_mut()
            && !list.contains(&json!(CLEANUP))
        {
            list.push(json!(CLEANUP));
        }
    }

    /// A changed definition may have new versions or names.
    pub(super) fn refresh_definition(&self, object: &Arc<Object>) {
        let key = Key::from(object.name.as_ref());
        let Some(resource) =
            self.registry().find("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned()
        else {
            return;
        };
        self.rewrite(&resource.table, &key, |value| {
            let stored: Vec<Value> = value["spec"]["versions"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|v| v["storage"] == true)
                .map(|v| v["name"].clone())
                .collect();
            if let Some(list) = value["status"]["storedVersions"].as_array_mut() {
                for version in stored {
                    if !list.contains(&version) {
                        list.push(version);
                    }
                }
            }
            if established(value) {
                value["status"]["acceptedNames"] = value["spec"]["names"].clone();
            }
        });
        self.reload_definitions();
    }

    /// Whether no other definition of the group uses the plural name.
    fn names_free(&self, object: &Arc<Object>) -> Result<(), String> {
        let value = object.value();
        let (group, plural) = (&value["spec"]["group"], &value["spec"]["names"]["plural"]);
        let built_in =
            self.registry().all().any(|r| r.custom.is_none() && *group == r.group && *plural == r.plural);
        if built_in { Err(plural.as_str().unwrap_or_default().to_owned()) } else { Ok(()) }
    }

    /// Deletes every object of a definition that is going away.
    pub(super) fn empty_definition(&self, object: &Arc<Object>) {
        let Some(resource) = Resource::from_definition(&object.value()).into_iter().next() else { return };
        let query = Query::default();
        let Ok(page) = self.0.store.list(&resource.table, &query) else { return };
        for item in page.objects {
            let call = Call::for_object(&resource, item.namespace.as_deref(), &item.name);
            // Objects held by finalizers of their own stay until those are gone, as upstream.
            let _ = self.delete_object(&call, &super::delete::Options::default());
        }
    }

    /// A definition is gone: so is its resource.
    pub(super) fn forget_definition(&self, object: &Arc<Object>) {
        for resource in Resource::from_definition(&object.value()) {
            self.0.store.drop_table(&resource.table);
        }
        self.reload_definitions();
    }

    /// Makes the registry true again after definitions changed.
    fn reload_definitions(&self) {
        // Held from reading to writing: of two definitions made at once, neither may be forgotten.
        let mut registry = self.0.registry.write().unwrap_or_else(PoisonError::into_inner);
        let definitions = self.all_of("apiextensions.k8s.io/customresourcedefinitions", None);
        let mut custom = Vec::new();
        for definition in definitions.iter().filter(|d| established(d)) {
            for resource in Resource::from_definition(definition) {
                self.0.store.create_table(&resource.table, &resource.fields);
                custom.push(resource);
            }
        }
        *registry = Arc::new(Registry::with_custom(&custom));
    }
}

/// Whether objects of this resource define others.
pub(super) fn defines(resource: &Resource) -> bool {
    resource.table.as_ref() == "apiextensions.k8s.io/customresourcedefinitions"
}

/// What is wrong with the schemas of a definition.
pub(super) fn schema_errors(definition: &Value) -> Vec<FieldError> {
    let versions = definition["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let Some(first) = versions.first().map(schema) else { return Vec::new() };
    if versions.iter().all(|version| schema(version) == first) {
        // Upstream keeps what all versions share in a place of its own, and names that.
        return check_schema(&first, "spec.validation.openAPIV3Schema");
    }
    let all = versions.iter().enumerate();
    all.flat_map(|(at, version)| {
        check_schema(&schema(version), &format!("spec.versions[{at}].schema.openAPIV3Schema"))
    })
    .collect()
}

fn check_schema(schema: &Value, path: &str) -> Vec<FieldError> {
    if schema.is_object() { structural::check(schema, path) } else { Vec::new() }
}
