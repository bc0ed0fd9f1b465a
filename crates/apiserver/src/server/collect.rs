//! What goes when something else goes: dependents of a deleted owner, contents of a deleted namespace.
//!
//! Upstream leaves this to controllers that run some time later. Here it happens right after the write that caused
//! it, so a test needs not wait and a small world needs no extra controller.

use super::delete::Options;
use super::{ApiServer, Call};
use crate::registry::{Registry, Resource};
use crate::store::{Expect, Key, Object, TableId};
use serde_json::{Value, json};
use std::sync::Arc;

impl ApiServer {
    /// After an object was removed: dependents follow, waiting owners and namespaces get another look.
    pub(super) fn after_remove(&self, resource: &Arc<Resource>, object: &Arc<Object>) {
        if resource.plural == "customresourcedefinitions" && resource.custom.is_none() {
            self.forget_definition(object);
        }
        for (table, key) in self.0.store.dependents(&object.uid) {
            self.release_dependent(&table, &key, &object.uid);
        }
        self.look_at_owners(object);
        if let Some(namespace) = &object.namespace {
            self.finish_namespace(namespace);
        }
    }

    /// After an object was marked for deletion: do what its finalizers stand for.
    pub(super) fn after_mark(&self, resource: &Arc<Resource>, key: &Key, object: &Arc<Object>) {
        let value = object.value();
        if resource.table.as_ref() == "/namespaces" {
            self.empty_namespace(&object.name);
            self.finish_namespace(&object.name);
            return;
        }
        let has = |finalizer: &str| {
            value["metadata"]["finalizers"].as_array().is_some_and(|f| f.contains(&json!(finalizer)))
        };
        if resource.plural == "customresourcedefinitions" && has(super::definitions::CLEANUP) {
            self.empty_definition(object);
            self.drop_finalizer(resource, key, super::definitions::CLEANUP);
        }
        if has("orphan") {
            for (table, dependent) in self.0.store.dependents(&object.uid) {
                self.rewrite(&table, &dependent, |value| drop_owner(value, &object.uid));
            }
            self.drop_finalizer(resource, key, "orphan");
        }
        if has("foregroundDeletion") {
            for (table, dependent) in self.0.store.dependents(&object.uid) {
                let policy = Options { policy: Some("Foreground".to_owned()), ..Options::default() };
                self.delete_dependent(&table, &dependent, &policy);
            }
            self.finish_foreground(resource, key, &object.uid);
        }
    }

    /// A new object all of whose owners are gone goes too; a controller may be slower than a deletion.
    pub(super) fn collect_if_orphaned(&self, resource: &Arc<Resource>, object: &Arc<Object>) {
        if object.owners.is_empty() {
            return;
        }
        let value = object.value();
        let registry = self.registry();
        let owners = value["metadata"]["ownerReferences"].as_array();
        let gone = owners.is_some_and(|owners| {
            owners.iter().all(|owner| self.owner_is_gone(&registry, owner, object.namespace.as_deref()))
        });
        if gone {
            let key = crate::store::key(object.namespace.as_deref(), &object.name);
            self.delete_dependent(&resource.table, &key, &Options::default());
        }
    }

    /// Whether an owner surely does not exist. Unknown kinds are not judged.
    fn owner_is_gone(&self, registry: &Registry, owner: &Value, namespace: Option<&str>) -> bool {
        let Some(resource) = resource_of(registry, owner) else { return false };
        let name = owner["name"].as_str().unwrap_or_default();
        let key = crate::store::key(namespace.filter(|_| resource.namespaced), name);
        let found = self.0.store.get(&resource.table, &key);
        found.is_none_or(|o| Some(o.uid.as_ref()) != owner["uid"].as_str())
    }

    /// One owner of a dependent is gone: with the last of them the dependent goes.
    fn release_dependent(&self, table: &TableId, key: &Key, gone: &str) {
        let Some(object) = self.0.store.get(table, key) else { return };
        let value = object.value();
        let registry = self.registry();
        let others = value["metadata"]["ownerReferences"].as_array().is_some_and(|owners| {
            owners.iter().any(|owner| {
                owner["uid"] != gone && !self.owner_is_gone(&registry, owner, object.namespace.as_deref())
            })
        });
        if others {
            self.rewrite(table, key, |value| drop_owner(value, gone));
        } else {
            self.delete_dependent(table, key, &Options::default());
        }
    }

    fn delete_dependent(&self, table: &TableId, key: &Key, options: &Options) {
        let Some(resource) = self.registry().of_table(table).cloned() else { return };
        let Some(object) = self.0.store.get(table, key) else { return };
        let call = Call::for_object(&resource, object.namespace.as_deref(), &object.name);
        // Not there any more is what is wanted; nothing else can go wrong without preconditions.
        let _ = self.delete_object(&call, options);
    }

    /// Owners that wait in the foreground for this object may be free to go now.
    fn look_at_owners(&self, object: &Arc<Object>) {
        if object.owners.is_empty() {
            return;
        }
        let value = object.value();
        let registry = self.registry();
        for owner in value["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
            let Some(resource) = resource_of(&registry, owner) else { continue };
            let name = owner["name"].as_str().unwrap_or_default();
            let namespace = object.namespace.as_deref().filter(|_| resource.namespaced);
            let key = crate::store::key(namespace, name);
            if let Some(uid) = owner["uid"].as_str() {
                self.finish_foreground(resource, &key, uid);
            }
        }
    }

    /// Lets an owner go when no dependent blocks it any more.
    fn finish_foreground(&self, resource: &Arc<Resource>, key: &Key, uid: &str) {
        let Some(owner) = self.0.store.get(&resource.table, key) else { return };
        let value = owner.value();
        let waits = value["metadata"].get("deletionTimestamp").is_some_and(|t| !t.is_null())
            && value["metadata"]["finalizers"]
                .as_array()
                .is_some_and(|f| f.contains(&json!("foregroundDeletion")));
        if !waits || owner.uid.as_ref() != uid {
            return;
        }
        let blocked = self.0.store.dependents(uid).iter().any(|(table, key)| {
            self.0.store.get(table, key).is_some_and(|dependent| {
                let value = dependent.value();
                let owners = value["metadata"]["ownerReferences"].as_array();
                owners.is_some_and(|o| {
                    o.iter().any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
                })
            })
        });
        if !blocked {
            self.drop_finalizer(resource, key, "foregroundDeletion");
        }
    }

    /// Removes one finalizer, and the object when it was the last and it is marked for deletion.
    pub(super) fn drop_finalizer(&self, resource: &Arc<Resource>, key: &Key, finalizer: &str) {
        let written = self.rewrite(&resource.table, key, |value| {
            let Some(metadata) = value["metadata"].as_object_mut() else { return };
            if let Some(list) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
                list.retain(|f| f != finalizer);
                if list.is_empty() {
                    metadata.remove("finalizers");
                }
            }
        });
        if let Some(object) = written
            && super::write::deletable(&object.value())
        {
            self.remove(resource, key, object.revision);
        }
    }

    /// Changes a stored object in place, trying again when others write too; `None` when it is gone.
    pub(super) fn rewrite(
        &self,
        table: &TableId,
        key: &Key,
        change: impl Fn(&mut Value),
    ) -> Option<Arc<Object>> {
        loop {
            let live = self.0.store.get(table, key)?;
            let old = live.value();
            let mut new = old.clone();
            change(&mut new);
            if new == old {
                return Some(live);
            }
            if let Ok(object) = self.0.store.put(table, key, Expect::Revision(live.revision), new) {
                return Some(object);
            }
        }
    }

    /// Deletes everything in a namespace.
    fn empty_namespace(&self, namespace: &str) {
        for (table, key) in self.0.store.in_namespace(namespace) {
            if table.starts_with("metrics.k8s.io/") {
                if let Some(object) = self.0.store.get(&table, &key) {
                    let _ = self.0.store.remove(&table, &key, object.revision);
                }
                continue;
            }
            self.delete_dependent(&table, &key, &Options::default());
        }
    }

    /// Lets a namespace go that is marked for deletion and empty.
    fn finish_namespace(&self, namespace: &str) {
        let Some(object) = self.0.store.get("/namespaces", namespace) else { return };
        let value = object.value();
        let going = value["metadata"].get("deletionTimestamp").is_some_and(|t| !t.is_null());
        if !going || !self.0.store.in_namespace(namespace).is_empty() {
            return;
        }
        let Some(resource) = self.registry().find("", "v1", "namespaces").cloned() else { return };
        let written = self.rewrite(&resource.table, &Key::from(namespace), |value| {
            let Some(spec) = value["spec"].as_object_mut() else { return };
            if let Some(list) = spec.get_mut("finalizers").and_then(Value::as_array_mut) {
                list.retain(|finalizer| finalizer != "kubernetes");
                if list.is_empty() {
                    spec.remove("finalizers");
                }
            }
        });
        if let Some(object) = written
            && super::write::deletable(&object.value())
        {
            self.remove(&resource, namespace, object.revision);
        }
    }
}

fn resource_of<'a>(registry: &'a Registry, owner: &Value) -> Option<&'a Arc<Resource>> {
    let api_version = owner["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    registry.of_kind(group, version, owner["kind"].as_str()?)
}

fn drop_owner(value: &mut Value, uid: &str) {
    let Some(metadata) = value["metadata"].as_object_mut() else { return };
    if let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|o| o["uid"] != uid);
        if owners.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
}
