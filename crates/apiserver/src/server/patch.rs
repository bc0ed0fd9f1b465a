//! Patching: the current object, changed by a patch, goes the way of an update.

use serde_json::{Value, json};

use super::body::{Strictness, unsupported};
use super::write::{Ownership, Written};
use super::{Answer, ApiServer, Call, convert};
use crate::schema::decode::{self, Decoded};
use crate::status::{FieldError, Status, Subject};
use crate::{apply, patch};

/// How often a patch is tried against a moving object.
const TRIES: usize = 20;

/// The patch types by media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(super) fn of(call: &Call) -> Result<Self, Status> {
        let media = call.content_type.split(';').next().unwrap_or_default().trim();
        let custom = call.resource.custom.is_some();
        match media {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ if custom => Err(unsupported(&[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
                "application/apply-patch+cbor",
            ])),
            _ => Err(unsupported(&[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
                "application/apply-patch+cbor",
            ])),
        }
    }
}

impl ApiServer {
    pub(super) fn patch(&self, call: &Call) -> Result<Answer, Status> {
        let kind = PatchKind::of(call)?;
        if kind != PatchKind::Apply && call.query.flag("force") {
            let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
            let subject = Subject { group: "meta.k8s.io", resource: "", kind: "PatchOptions" };
            return Err(Status::invalid(subject, "", &[error]));
        }
        let strictness = call.strictness()?;
        let document = parse(kind, &call.body)?;
        if kind == PatchKind::Apply {
            return self.apply(call, &document, strictness);
        }
        for _ in 0..TRIES {
            let live = self.existing(call)?;
            let old = convert::from_storage(&call.resource, live.value());
            let new = match kind {
                PatchKind::Json => patch::json(&old, &document)?,
                PatchKind::Merge => patch::merge(&old, &document)?,
                _ => patch::strategic(call.resource.schema(), &old, &document)?,
            };
            let (new, warnings) = call.read_patched(new, strictness)?;
            check_identity(call, &new, &old)?;
            let given = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            let pinned = given != old["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            if pinned && !given.is_empty() && given != "0" {
                return Err(Status::modified(call.resource.subject(), call.name()));
            }
            if let Some(object) = self.replace(call, &live, new, Ownership::Track)? {
                return Ok(self.written(call, &Written { object, created: false, warnings }));
            }
        }
        Err(Status::modified(call.resource.subject(), call.name()))
    }

    fn apply(&self, call: &Call, config: &Value, strictness: Strictness) -> Result<Answer, Status> {
        if call.query.get("fieldManager").is_none() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            let subject = Subject { group: "meta.k8s.io", resource: "", kind: "PatchOptions" };
            return Err(Status::invalid(subject, "", &[error]));
        }
        let (config, warnings) = call.read_config(config, strictness)?;
        let force = call.query.flag("force");
        let manager = call.manager();
        let api_version = call.resource.api_version();
        let write = self.write_of(call, &manager, &api_version);
        for _ in 0..TRIES {
            let live = self.0.store.get(&call.resource.table, &call.key());
            let Some(live) = live else {
                if !call.subresource().is_empty() {
                    return Err(Status::not_found(call.resource.subject(), call.name()));
                }
                if !config["metadata"]["uid"].is_null() {
                    let why =
                        "uid mismatch: the provided object specified uid, and no existing object was found";
                    return Err(Status::conflict(call.resource.subject(), call.name(), why));
                }
                let object = apply::apply(call.resource.schema(), None, &config, &write, force)?;
                let object = call.typed(object)?;
                match self.create_object(call, object, warnings.clone()) {
                    Err(status) if status.reason == "AlreadyExists" => continue,
                    created => return Ok(self.written(call, &created?)),
                }
            };
            let old = convert::from_storage(&call.resource, live.value());
            let given = config["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            if !given.is_empty() && given != old["metadata"]["resourceVersion"].as_str().unwrap_or_default() {
                return Err(Status::modified(call.resource.subject(), call.name()));
            }
            let new = apply::apply(call.resource.schema(), Some(&old), &config, &write, force)?;
            let new = call.typed(new)?;
            check_identity(call, &new, &old)?;
            if let Some(object) = self.replace(call, &live, new, Ownership::Settled)? {
                let warnings = warnings.clone();
                return Ok(self.written(call, &Written { object, created: false, warnings }));
            }
        }
        Err(Status::modified(call.resource.subject(), call.name()))
    }
}

impl Call {
    /// Reads the patched object as if it had been sent whole.
    fn read_patched(&self, new: Value, strictness: Strictness) -> Result<(Value, Vec<String>), Status> {
        let view = if self.resource.custom.is_some() { None } else { self.resource.schema() };
        let decoded = match view {
            None => Decoded { value: new, strict: Vec::new() },
            Some(view) => decode::typed_value(view, new).map_err(|e| {
                let (kind, version) = (&self.resource.kind, &self.resource.version);
                Status::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a {kind}: {e}"
                ))
            })?,
        };
        self.accept(decoded, strictness)
    }

    fn read_config(&self, config: &Value, strictness: Strictness) -> Result<(Value, Vec<String>), Status> {
        let view = self.resource.schema().filter(|_| self.resource.custom.is_none());
        let decoded = match view {
            None => Decoded { value: config.clone(), strict: Vec::new() },
            Some(view) => decode::typed_value(view, config.clone())
                .map_err(|e| Status::new(500, "", format!("failed to create typed patch object: {e}")))?,
        };
        let (mut config, warnings) = self.accept(decoded, strictness)?;
        let metadata = &mut config["metadata"];
        if !metadata.is_object() {
            *metadata = json!({});
        }
        match metadata["name"].as_str().unwrap_or_default() {
            "" => metadata["name"] = json!(self.name()),
            given if given != self.name() => {
                return Err(Status::bad_request(format!(
                    "the name of the object ({given}) does not match the name on the URL ({})",
                    self.name()
                )));
            }
            _ => {}
        }
        if let Some(namespace) = self.namespace() {
            metadata["namespace"] = json!(namespace);
        }
        Ok((config, warnings))
    }
}

/// Reads the patch itself.
pub(super) fn parse(kind: PatchKind, body: &[u8]) -> Result<Value, Status> {
    match kind {
        PatchKind::Apply => {
            let text = std::str::from_utf8(body)
                .map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))?;
            // JSON is YAML too, and what every client of ours sends.
            serde_json::from_str(text).or_else(|_| {
                serde_saphyr::from_str(text)
                    .map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))
            })
        }
        _ => serde_json::from_slice(body)
            .map_err(|e| Status::bad_request(format!("error decoding patch: {e}"))),
    }
}

/// A patch may not turn one object into another.
fn check_identity(call: &Call, new: &Value, old: &Value) -> Result<(), Status> {
    for (field, what) in [("apiVersion", "API version"), ("kind", "kind")] {
        if new[field] != old[field] {
            return Err(Status::bad_request(format!(
                "the {what} in the data ({}) does not match the expected {what} ({})",
                new[field].as_str().unwrap_or_default(),
                old[field].as_str().unwrap_or_default()
            )));
        }
    }
    let given = new["metadata"]["name"].as_str().unwrap_or_default();
    if given != call.name() {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    let namespace = new["metadata"]["namespace"].as_str().unwrap_or_default();
    if namespace != call.namespace().unwrap_or_default() {
        return Err(Status::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the URL ({})",
            call.namespace().unwrap_or_default()
        )));
    }
    let uid = &new["metadata"]["uid"];
    if !uid.is_null() && *uid != old["metadata"]["uid"] {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            uid.as_str().unwrap_or_default(),
            old["metadata"]["uid"].as_str().unwrap_or_default()
        );
        return Err(Status::conflict(call.resource.subject(), call.name(), &why));
    }
    Ok(())
}
