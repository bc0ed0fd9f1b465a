//! Creating and updating: from a decoded object to a stored one.
//!
//! The order of steps is upstream's: defaults, admission, field ownership, preparation by the kind's rules,
//! validation, storage. Every step before storage is a pure function of another module.

use super::rules::{
    created_on_update, invalid_subject, kind_of, prepare_create, prepare_update, reset_fields,
    structural_default, unconditional_update, validate_create, validate_update,
};
use super::{Answer, ApiServer, Call, convert, encode};
use crate::apply;
use crate::builtin::{self, admission, meta};
use crate::registry::Resource;
use crate::status::{FieldError, Status, Subject};
use crate::store::{Expect, Object, Query};
use rand::RngExt as _;
use serde_json::{Value, json};
use std::sync::Arc;

/// How often an update without a revision is tried again when others write too.
const TRIES: usize = 20;

/// A write that passed every check.
pub(super) struct Written {
    pub object: Arc<Object>,
    pub created: bool,
}

impl ApiServer {
    pub(super) fn create(&self, call: &Call) -> Result<Answer, Status> {
        call.check_options("CreateOptions", Vec::new())?;
        let object = call.object()?;
        let written = self.create_object(call, object, Ownership::Track)?;
        Ok(self.written(call, &written))
    }

    /// Creates an object of the server's own, which may use reserved names.
    pub(super) fn create_privileged(&self, call: &Call) -> Result<(), Status> {
        let mut object = call.object()?;
        let kind = kind_of(&call.resource);
        builtin::default(kind, &mut object);
        builtin::normalize(kind, &mut object);
        self.write_managed_fields(call, None, &mut object);
        builtin::prepare_create(kind, &mut object);
        self.fill_metadata(&mut object);
        self.insert(call, object)?;
        Ok(())
    }

    pub(super) fn written(&self, call: &Call, written: &Written) -> Answer {
        let code = if written.created { 201 } else { 200 };
        Answer::Json(code, self.encoder(call).one(&written.object))
    }

    pub(super) fn create_object(
        &self,
        call: &Call,
        mut object: Value,
        ownership: Ownership,
    ) -> Result<Written, Status> {
        let resource = &call.resource;
        call.place(&mut object)?;
        self.open_namespace(call)?;
        if resource.custom.is_some() {
            structural_default(resource, &mut object);
        } else {
            let kind = kind_of(resource);
            builtin::default(kind, &mut object);
            builtin::normalize(kind, &mut object);
        }
        if ownership == Ownership::Track {
            self.write_managed_fields(call, None, &mut object);
        }
        if resource.custom.is_none() {
            self.admit_create(call, &mut object)?;
        }
        self.name_it(&mut object);
        self.fill_metadata(&mut object);
        prepare_create(resource, &mut object);
        let errors = validate_create(resource, &object);
        if !errors.is_empty() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            return Err(Status::invalid(invalid_subject(resource), name, &errors));
        }
        if resource.custom.is_none() {
            call.warnings.borrow_mut().extend(builtin::warnings(kind_of(resource), &object, None));
            self.admit_check(call, &object, None)?;
            self.allocate(call, &mut object);
            let kind = kind_of(resource);
            builtin::default(kind, &mut object);
            builtin::normalize(kind, &mut object);
        }
        let created = if call.dry_run() { self.pretend(call, &object)? } else { self.insert(call, object)? };
        Ok(Written { object: created, created: true })
    }

    /// A namespace must exist and not be going away.
    fn open_namespace(&self, call: &Call) -> Result<(), Status> {
        let Some(namespace) = call.namespace() else { return Ok(()) };
        let subject = Subject { group: "", resource: "namespaces", kind: "Namespace" };
        let found = self.0.store.get("/namespaces", namespace);
        let found = found.ok_or_else(|| Status::not_found(subject, namespace))?;
        if !found.deleting {
            return Ok(());
        }
        let name = serde_json::from_slice::<Value>(&call.body).unwrap_or_default();
        let name = name["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Err(Status::forbidden(call.resource.subject(), &name, &why).with_cause(
            "NamespaceTerminating",
            format!("namespace {namespace} is being terminated"),
            "metadata.namespace",
        ))
    }

    /// Every object of a table, as trees. For small tables only.
    pub(super) fn all_of(&self, table: &str, namespace: Option<&str>) -> Vec<Value> {
        let query = Query { namespace, ..Query::default() };
        let page = self.0.store.list(table, &query);
        page.map(|p| p.objects.iter().map(|o| o.value()).collect()).unwrap_or_default()
    }

    fn name_it(&self, object: &mut Value) {
        let metadata = &mut object["metadata"];
        if metadata["name"].as_str().unwrap_or_default().is_empty()
            && let Some(prefix) = metadata["generateName"].as_str().filter(|p| !p.is_empty())
        {
            let name = self.with_rng(|rng| meta::generate_name(prefix, rng));
            metadata["name"] = json!(name);
        }
    }

    pub(super) fn write_managed_fields(&self, call: &Call, live: Option<&Value>, object: &mut Value) {
        let manager = call.manager();
        let api_version = call.resource.api_version();
        let write = self.write_of(call, &manager, &api_version);
        apply::update(call.resource.schema(), live, object, &write);
    }

    pub(super) fn write_of<'a>(
        &self,
        call: &'a Call,
        manager: &'a str,
        api_version: &'a str,
    ) -> apply::Write<'a> {
        apply::Write {
            manager,
            api_version,
            kind: &call.resource.kind,
            subresource: call.subresource(),
            time: self.now_text(),
            reset: reset_fields(&call.resource, call.subresource()),
            builtin: call.resource.custom.is_none(),
        }
    }

    fn fill_metadata(&self, object: &mut Value) {
        meta::prepare_create(object);
        let uid = self.with_rng(|rng| uid(rng.random()));
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(uid);
        metadata["creationTimestamp"] = json!(self.now_text());
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("resourceVersion");
            metadata.remove("selfLink");
        }
    }

    /// What a dry run answers: the object, with the revision left out as upstream does.
    fn pretend(&self, call: &Call, object: &Value) -> Result<Arc<Object>, Status> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let key = crate::store::key(call.namespace(), name);
        if self.0.store.get(&call.resource.table, &key).is_some() {
            return Err(Status::already_exists(call.resource.subject(), name));
        }
        Ok(Arc::new(Object::freeze(object, 0, &call.resource.fields)))
    }

    fn insert(&self, call: &Call, object: Value) -> Result<Arc<Object>, Status> {
        let resource = &call.resource;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let generated = object["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
        let key = crate::store::key(call.namespace(), &name);
        let stored = convert::to_storage(resource, object);
        let put = self.0.store.put(&resource.table, &key, Expect::Absent, stored);
        let object = put.map_err(|_| {
            let mut status = Status::already_exists(resource.subject(), &name);
            if !generated.is_empty() && name.starts_with(&generated) {
                status.message.push_str(", the server was not able to generate a unique name for the object");
                if let Some(details) = &mut status.details {
                    details.retry_after_seconds = Some(1);
                }
            }
            status
        })?;
        self.after_create(resource, &object);
        Ok(object)
    }

    pub(super) fn update(&self, call: &Call) -> Result<Answer, Status> {
        call.check_options("UpdateOptions", Vec::new())?;
        let mut object = call.object()?;
        call.check_name(&object)?;
        for _ in 0..TRIES {
            let Some(live) = self.0.store.get(&call.resource.table, &call.key()) else {
                if call.subresource().is_empty() && created_on_update(&call.resource) {
                    // What does not exist has no revision that could be wrong.
                    forget_revision(&mut object);
                    let written = self.create_object(call, object, Ownership::Track)?;
                    return Ok(self.written(call, &written));
                }
                return Err(Status::not_found(call.resource.subject(), call.name()));
            };
            let mut new = object.clone();
            if let Some(namespace) = call.namespace() {
                new["metadata"]["namespace"] = json!(namespace);
            }
            let unconditional = check_revision(call, &new, &live)?;
            match self.replace(call, &live, new, Ownership::Track)? {
                Some(object) => {
                    return Ok(self.written(call, &Written { object, created: false }));
                }
                None if !unconditional => {
                    return Err(Status::modified(call.resource.subject(), call.name()));
                }
                None => {}
            }
        }
        Err(Status::modified(call.resource.subject(), call.name()))
    }

    /// Stores `new` in place of `live`; `None` when somebody else was faster.
    pub(super) fn replace(
        &self,
        call: &Call,
        live: &Arc<Object>,
        mut new: Value,
        ownership: Ownership,
    ) -> Result<Option<Arc<Object>>, Status> {
        let resource = &call.resource;
        let old = convert::from_storage(resource, live.value());
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        if resource.custom.is_some() {
            structural_default(resource, &mut new);
        } else {
            let kind = kind_of(resource);
            builtin::default(kind, &mut new);
            builtin::normalize(kind, &mut new);
        }
        if ownership == Ownership::Track {
            self.write_managed_fields(call, Some(&old), &mut new);
        }
        let main = resource.custom.is_none() && call.subresource().is_empty();
        if main {
            admission::update(kind_of(resource), &mut new, &old);
        }
        meta::prepare_update(&mut new, &old);
        prepare_update(resource, call.subresource(), &mut new, &old);
        let errors = validate_update(resource, call.subresource(), &new, &old);
        if !errors.is_empty() {
            return Err(Status::invalid(invalid_subject(resource), call.name(), &errors));
        }
        if main {
            call.warnings.borrow_mut().extend(builtin::warnings(kind_of(resource), &new, Some(&old)));
            self.admit_check(call, &new, Some(&old))?;
        }
        if resource.custom.is_none() {
            builtin::normalize(kind_of(resource), &mut new);
        }
        if apply::keep_times(&old, &mut new) {
            return Ok(Some(live.clone()));
        }
        let done = deletable(&new);
        let stored = convert::to_storage(resource, new);
        if call.dry_run() {
            return Ok(Some(Arc::new(Object::freeze(&stored, live.revision, &resource.fields))));
        }
        if done {
            // The last finalizer is gone: the object goes as it is stored, and the answer shows what would have been.
            let gone = self.remove(resource, &call.key(), live.revision);
            return Ok(gone.map(|_| Arc::new(Object::freeze(&stored, live.revision, &resource.fields))));
        }
        let put = self.0.store.put(&resource.table, &call.key(), Expect::Revision(live.revision), stored);
        let Ok(object) = put else { return Ok(None) };
        self.after_update(resource, &object);
        Ok(Some(object))
    }

    fn after_create(&self, resource: &Arc<Resource>, object: &Arc<Object>) {
        if resource.plural == "customresourcedefinitions" && resource.custom.is_none() {
            self.accept_definition(resource, object);
        }
        self.collect_if_orphaned(resource, object);
    }

    fn after_update(&self, resource: &Arc<Resource>, object: &Arc<Object>) {
        if resource.plural == "customresourcedefinitions" && resource.custom.is_none() {
            self.refresh_definition(object);
        }
    }
}

/// Whether a write changes who owns which field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    /// Work it out from the difference.
    Track,
    /// Already worked out, by server-side apply.
    Settled,
}

/// Whether an object marked for deletion has nothing left that holds it.
pub(super) fn deletable(value: &Value) -> bool {
    let metadata = &value["metadata"];
    let held = metadata["finalizers"].as_array().is_some_and(|f| !f.is_empty());
    let namespace_held =
        value["kind"] == "Namespace" && value["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
    metadata.get("deletionTimestamp").is_some_and(|t| !t.is_null())
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !held
        && !namespace_held
}

/// 500, because upstream's storage only notices when it is too late.
pub(super) fn not_a_revision(given: &str) -> Status {
    Status::new(500, "", format!("strconv.ParseUint: parsing {given:?}: invalid syntax"))
}

/// Takes the revision out of an object that does not exist yet.
pub(super) fn forget_revision(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
}

/// Compares the revision in an update with the stored one; `true` when none was given.
fn check_revision(call: &Call, new: &Value, live: &Object) -> Result<bool, Status> {
    let subject = call.resource.subject();
    let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != live.uid.as_ref() {
        return Err(Status::conflict(subject, call.name(), &call.wrong_uid(uid, &live.uid)));
    }
    let given = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if given.is_empty() || given == "0" {
        if unconditional_update(&call.resource) {
            return Ok(true);
        }
        let error =
            FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
        let subject = Subject { kind: subject.resource, ..subject };
        return Err(Status::invalid(subject, call.name(), &[error]));
    }
    match given.parse::<u64>() {
        Ok(revision) if revision == live.revision => Ok(false),
        Ok(_) => Err(Status::modified(subject, call.name())),
        Err(_) => Err(not_a_revision(given)),
    }
}

/// A random (version 4) uid.
fn uid(bits: u128) -> String {
    let bits = bits & !(0xf << 76) | (4 << 76);
    let bits = bits & !(0x3 << 62) | (2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

impl Call {
    /// Checks name and namespace of a new object against the path it is sent to.
    fn place(&self, object: &mut Value) -> Result<(), Status> {
        let metadata = &mut object["metadata"];
        if let Some(wanted) = self.namespace() {
            match metadata["namespace"].as_str().unwrap_or_default() {
                "" => metadata["namespace"] = json!(wanted),
                given if given != wanted => {
                    return Err(Status::bad_request(
                        "the namespace of the provided object does not match the namespace sent on the request",
                    ));
                }
                _ => {}
            }
        } else if self.resource.namespaced {
            return Err(Status::bad_request("an empty namespace may not be set during creation"));
        } else if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("namespace");
        }
        let revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !revision.is_empty() && revision != "0" {
            return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        Ok(())
    }

    /// An object must be the one the path names.
    pub(super) fn check_name(&self, object: &Value) -> Result<(), Status> {
        let wanted = self.name();
        let given = object["metadata"]["name"].as_str().unwrap_or_default();
        if given.is_empty() {
            return Err(Status::bad_request(format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )));
        }
        if given != wanted {
            return Err(Status::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({wanted})"
            )));
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        if self.resource.namespaced && !namespace.is_empty() && Some(namespace) != self.namespace() {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// What upstream's storage says when an object was replaced by another of the same name.
    pub(super) fn wrong_uid(&self, given: &str, found: &str) -> String {
        format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: UID in precondition: {given}, UID in object meta: {found}",
            self.storage_key()
        )
    }

    /// Where upstream's storage keeps the object.
    fn storage_key(&self) -> String {
        let Resource { group, plural, custom, .. } = &*self.resource;
        let prefix = match (group.as_str(), plural.as_str()) {
            ("", "nodes") => "minions".to_owned(),
            ("", "services") => "services/specs".to_owned(),
            ("", "endpoints") => "services/endpoints".to_owned(),
            ("", "replicationcontrollers") => "controllers".to_owned(),
            ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
            ("apiextensions.k8s.io", _) => format!("{group}/{plural}"),
            _ if custom.is_some() => format!("{group}/{plural}"),
            _ => plural.clone(),
        };
        format!("/registry/{prefix}/{}", self.key())
    }

    /// The same call, for another object.
    pub(super) fn for_object(resource: &Arc<Resource>, namespace: Option<&str>, name: &str) -> Self {
        Self {
            resource: resource.clone(),
            target: crate::request::Target {
                namespace: namespace.map(str::to_owned),
                name: Some(name.to_owned()),
                ..crate::request::Target::default()
            },
            query: crate::request::Query::default(),
            form: encode::Form::Plain,
            content_type: String::new(),
            user_agent: "kube-apiserver".to_owned(),
            body: bytes::Bytes::new(),
            warnings: std::cell::RefCell::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_version_4() {
        assert_eq!(uid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
