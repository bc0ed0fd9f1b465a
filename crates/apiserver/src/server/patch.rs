//! Patching: the current object, changed by a patch, goes the way of an update.

use super::body::{lenient, no_kind, unsupported};
use super::write::{Ownership, Written, forget_revision, not_a_revision};
use super::{Answer, ApiServer, Call, convert};
use crate::patch::words;
use crate::schema::decode::{self, Decoded};
use crate::status::{FieldError, Status, Subject};
use crate::{apply, patch};
use serde_json::{Value, json};

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
            ])),
            _ => {
                let mut status = Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
                status.details = Some(Box::default());
                Err(status)
            }
        }
    }

    /// Checks the parameters of a patch.
    pub(super) fn check_options(self, call: &Call) -> Result<(), Status> {
        let mut errors = Vec::new();
        if self != Self::Apply && call.query.get("force").is_some() {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        if self == Self::Apply && call.query.get("fieldManager").is_none() {
            errors.push(FieldError::required("fieldManager", "is required for apply patch"));
        }
        call.check_options("PatchOptions", errors)
    }
}

impl ApiServer {
    pub(super) fn patch(&self, call: &Call) -> Result<Answer, Status> {
        let kind = PatchKind::of(call)?;
        kind.check_options(call)?;
        if kind == PatchKind::Apply {
            return self.apply(call, &parse(kind, &call.body)?.value);
        }
        for _ in 0..TRIES {
            let live = self.existing(call)?;
            let old = convert::from_storage(&call.resource, live.value());
            let document = parse(kind, &call.body)?;
            let new = match kind {
                PatchKind::Json => patch::json(&old, &document.value)?,
                PatchKind::Merge => patch::merge(&old, &document.value)?,
                _ => patch::strategic(call.resource.schema(), &old, &document.value)?,
            };
            let new = read_patched(call, kind, &document, new)?;
            call.check_name(&new)?;
            let given = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            if !given.is_empty() && given != "0" {
                given.parse::<u64>().map_err(|_| not_a_revision(given))?;
                if given != old["metadata"]["resourceVersion"] {
                    return Err(Status::modified(call.resource.subject(), call.name()));
                }
            }
            if let Some(object) = self.replace(call, &live, new, Ownership::Track)? {
                return Ok(self.written(call, &Written { object, created: false }));
            }
        }
        Err(Status::modified(call.resource.subject(), call.name()))
    }

    fn apply(&self, call: &Call, config: &Value) -> Result<Answer, Status> {
        let force = call.query.flag("force");
        let manager = call.manager();
        let api_version = call.resource.api_version();
        let write = self.write_of(call, &manager, &api_version);
        for _ in 0..TRIES {
            let Some(live) = self.0.store.get(&call.resource.table, &call.key()) else {
                if !call.subresource().is_empty() {
                    return Err(Status::not_found(call.resource.subject(), call.name()));
                }
                let object = apply::apply(call.resource.schema(), None, config, &write, force)?;
                let mut object = read_applied(call, object)?;
                call.check_name(&object)?;
                if let Some(uid) = object["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) {
                    let why = format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    );
                    return Err(Status::conflict(call.resource.subject(), call.name(), &why));
                }
                forget_revision(&mut object);
                match self.create_object(call, object, Ownership::Settled) {
                    Err(status) if status.reason == "AlreadyExists" => continue,
                    created => return Ok(self.written(call, &created?)),
                }
            };
            let old = convert::from_storage(&call.resource, live.value());
            let given = config["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            if !given.is_empty() && given != old["metadata"]["resourceVersion"].as_str().unwrap_or_default() {
                return Err(Status::modified(call.resource.subject(), call.name()));
            }
            let new = apply::apply(call.resource.schema(), Some(&old), config, &write, force)?;
            let new = read_applied(call, new)?;
            call.check_name(&new)?;
            if let Some(object) = self.replace(call, &live, new, Ownership::Settled)? {
                return Ok(self.written(call, &Written { object, created: false }));
            }
        }
        Err(Status::modified(call.resource.subject(), call.name()))
    }
}

/// Reads the patched object as if it had been sent whole.
fn read_patched(call: &Call, kind: PatchKind, document: &Decoded, new: Value) -> Result<Value, Status> {
    // Upstream shows what could not be read: the patch, or else what became of the object.
    let shown = if kind == PatchKind::Strategic { words::plain(&document.value) } else { new.to_string() };
    let refuse = |why: String| unreadable(kind, &shown, why);
    let (value, mut strict) = match call.resource.schema().filter(|_| call.resource.custom.is_none()) {
        None => {
            let given = new["kind"].as_str().unwrap_or_default().to_owned();
            if given != call.resource.kind {
                let subject = Subject { kind: &given, ..call.resource.subject() };
                let why = format!("must be {}", call.resource.kind);
                return Err(Status::invalid(
                    subject,
                    call.name(),
                    &[FieldError::invalid("kind", &json!(given), why)],
                ));
            }
            call.coerce(Decoded { value: new, strict: Vec::new() }).map_err(refuse)?
        }
        Some(view) => {
            let text = |key: &str| new[key].as_str().unwrap_or_default().to_owned();
            if text("kind") != call.resource.kind || text("apiVersion") != call.resource.api_version() {
                return Err(refuse(no_kind(&text("kind"), &text("apiVersion"))));
            }
            let decoded = decode::typed_value(view, new).map_err(|e| refuse(e.0))?;
            (call.typed(decoded.value), decoded.strict)
        }
    };
    strict.splice(0..0, document.strict.iter().cloned());
    call.object_to(strict, refuse)?;
    Ok(value)
}

/// 422 for a patch that leaves an object nobody can read.
pub(super) fn unreadable(kind: PatchKind, shown: &str, why: String) -> Status {
    let why = if kind == PatchKind::Strategic { restoring(&why) } else { why };
    let subject = Subject { group: "", resource: "", kind: "" };
    Status::invalid(subject, "", &[FieldError::invalid("patch", &json!(shown), why)])
}

/// Reads what server-side apply made of an object.
fn read_applied(call: &Call, object: Value) -> Result<Value, Status> {
    let fail = |why: String| Status::new(500, "", format!("failed to convert merged object: {why}"));
    match call.resource.schema().filter(|_| call.resource.custom.is_none()) {
        None => {
            let (value, strict) = call.coerce(Decoded { value: object, strict: Vec::new() }).map_err(fail)?;
            call.object_to(strict, Status::bad_request)?;
            Ok(value)
        }
        Some(view) => {
            let decoded = decode::typed_value(view, object).map_err(|e| fail(e.0))?;
            Ok(call.typed(decoded.value))
        }
    }
}

/// A strategic patch goes through upstream's own converter, which words a wrong type differently.
fn restoring(why: &str) -> String {
    let parts = why.strip_prefix("json: cannot unmarshal ").and_then(|rest| rest.split_once(" into Go "));
    let Some((what, wanted)) = parts.and_then(|(what, rest)| Some((what, rest.rsplit_once(" of type ")?.1)))
    else {
        return why.to_owned();
    };
    let what = match what {
        "number" => "int64",
        "object" => "map",
        "array" => "slice",
        other => other,
    };
    match wanted {
        list if list.starts_with("[]") => format!("cannot restore slice from {what}"),
        map if map.starts_with("map[") => format!("cannot restore map from {what}"),
        of if of.contains('.') => format!("cannot restore struct from: {what}"),
        scalar => format!("unrecognized type: {scalar}"),
    }
}

/// Reads the patch itself.
pub(super) fn parse(kind: PatchKind, body: &[u8]) -> Result<Decoded, Status> {
    let body = lenient(body);
    if kind != PatchKind::Apply {
        return decode::untyped(&body).map_err(|e| Status::bad_request(format!("error decoding patch: {e}")));
    }
    // JSON is YAML too, and what every client of ours sends.
    let value: Value = serde_json::from_slice(&body).or_else(|_| {
        serde_saphyr::from_str(&String::from_utf8_lossy(&body)).map_err(|e| {
            Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {e}"))
        })
    })?;
    if !value.is_object() && !value.is_null() {
        return Err(Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value \
             of type map[string]interface {{}}",
            words::json_name(&value)
        )));
    }
    Ok(Decoded { value, strict: Vec::new() })
}
