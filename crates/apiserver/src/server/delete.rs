//! Deleting: at once, after a grace period, or when the last finalizer is gone.

use super::body::no_kind;
use super::encode::Encoder;
use super::options::invalid_options;
use super::{Answer, ApiServer, Call};
use crate::registry::Resource;
use crate::schema::{self, decode};
use crate::status::{FieldError, Status, Subject};
use crate::store::{Expect, Object};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::Arc;

/// What a deletion asks for beside the object.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub grace: Option<i64>,
    pub uid: Option<String>,
    pub revision: Option<String>,
    pub policy: Option<String>,
    pub orphan: Option<bool>,
    pub dry_run: bool,
}

/// How a deletion went.
pub(super) enum Outcome {
    /// Gone; this was its last state.
    Gone(Arc<Object>),
    /// Marked; it goes later.
    Marked(Arc<Object>),
}

impl Options {
    fn of(call: &Call) -> Result<Self, Status> {
        let dry_run = call.query.get("dryRun").map(|value| vec![value.to_owned()]).unwrap_or_default();
        if call.body.is_empty() {
            return Ok(Self {
                grace: call.query.number("gracePeriodSeconds")?,
                policy: call.query.get("propagationPolicy").map(str::to_owned),
                orphan: call.query.get("orphanDependents").map(|_| call.query.flag("orphanDependents")),
                ..Self::default()
            })
            .and_then(|options| options.checked(&dry_run));
        }
        let body = decoded(&call.body)?;
        let text = |v: &Value| v.as_str().map(str::to_owned);
        let given: Vec<String> = body["dryRun"].as_array().into_iter().flatten().filter_map(text).collect();
        Self {
            grace: body["gracePeriodSeconds"].as_i64(),
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
            policy: text(&body["propagationPolicy"]),
            orphan: body["orphanDependents"].as_bool(),
            dry_run: false,
        }
        .checked(if given.is_empty() { &dry_run } else { &given })
    }

    fn checked(mut self, dry_run: &[String]) -> Result<Self, Status> {
        let mut errors = Vec::new();
        self.dry_run = dry_run.iter().any(|value| value == "All");
        if let Some(policy) = self.policy.as_deref()
            && !matches!(policy, "Orphan" | "Background" | "Foreground")
        {
            errors.push(FieldError::not_supported(
                "propagationPolicy",
                &json!(policy),
                &["Foreground", "Background", "Orphan", "nil"],
            ));
        }
        if self.policy.is_some() && self.orphan.is_some() {
            errors.push(FieldError::invalid(
                "propagationPolicy",
                &json!(self.policy),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        if !self.dry_run && !dry_run.is_empty() {
            errors.push(FieldError::not_supported("dryRun", &json!(dry_run), &["All"]));
        }
        if errors.is_empty() { Ok(self) } else { Err(invalid_options("DeleteOptions", &errors)) }
    }

    fn policy(&self) -> &str {
        match (self.policy.as_deref(), self.orphan) {
            (Some(policy), _) => policy,
            (None, Some(true)) => "Orphan",
            _ => "Background",
        }
    }
}

/// The options in the body of a deletion.
fn decoded(body: &[u8]) -> Result<Value, Status> {
    let (api_version, kind) = decode::type_meta(body).map_err(|e| Status::bad_request(e.0))?;
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(Status::bad_request(no_kind(&kind, &api_version)));
    }
    let view = schema::builtin::definitions().view("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
    let decoded = view.map_or_else(|| decode::untyped(body), |view| decode::typed(view, body));
    Ok(decoded.map_err(|e| Status::bad_request(e.0))?.value)
}

/// Namespaces no cluster can do without.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Kinds whose deletion answers with the object rather than a `Status`.
fn returns_object(resource: &Resource) -> bool {
    resource.custom.is_none()
        && matches!(
            resource.plural.as_str(),
            "namespaces"
                | "persistentvolumes"
                | "persistentvolumeclaims"
                | "pods"
                | "podtemplates"
                | "resourcequotas"
                | "services"
                | "serviceaccounts"
                | "csidrivers"
                | "csinodes"
                | "storageclasses"
                | "volumeattachments"
        )
}

impl ApiServer {
    pub(super) fn delete(&self, call: &Call) -> Result<Answer, Status> {
        let options = Options::of(call)?;
        if call.resource.table.as_ref() == "/namespaces" && IMMORTAL.contains(&call.name()) {
            let why = "this namespace may not be deleted";
            return Err(Status::forbidden(call.resource.subject(), call.name(), why));
        }
        let outcome = self.delete_object(call, &options)?;
        Ok(match outcome {
            Outcome::Gone(object) if !returns_object(&call.resource) => {
                let mut details =
                    json!({"name": call.name(), "kind": call.resource.plural, "uid": object.uid});
                if !call.resource.group.is_empty() {
                    details["group"] = json!(call.resource.group);
                }
                Answer::value(
                    200,
                    &json!({
                        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                        "details": details,
                    }),
                )
            }
            Outcome::Marked(object) => {
                let code = if options.orphan == Some(false) { 202 } else { 200 };
                Answer::Json(code, self.encoder(call).one(&object))
            }
            Outcome::Gone(object) => Answer::Json(200, self.encoder(call).one(&object)),
        })
    }

    /// Deletes one object and everything that goes with it.
    pub(super) fn delete_object(&self, call: &Call, options: &Options) -> Result<Outcome, Status> {
        loop {
            let live = self.existing(call)?;
            check_preconditions(call, options, &live)?;
            let old = live.value();
            let mut new = old.clone();
            let marked = self.mark(&call.resource, &mut new, options);
            if options.dry_run {
                let seen = Arc::new(Object::freeze(&new, live.revision, &call.resource.fields));
                return Ok(if marked { Outcome::Marked(seen) } else { Outcome::Gone(seen) });
            }
            // A pod is marked even when it goes at once, and whoever watches it sees that.
            if !marked && call.resource.table.as_ref() == "/pods" {
                let put =
                    self.0.store.put(&call.resource.table, &call.key(), Expect::Revision(live.revision), new);
                let Ok(object) = put else { continue };
                if let Some(object) = self.remove(&call.resource, &call.key(), object.revision) {
                    return Ok(Outcome::Gone(object));
                }
                continue;
            }
            if !marked {
                match self.remove(&call.resource, &call.key(), live.revision) {
                    Some(object) => return Ok(Outcome::Gone(object)),
                    None => continue,
                }
            }
            if new == old {
                return Ok(Outcome::Marked(live));
            }
            let table = &call.resource.table;
            if let Ok(object) = self.0.store.put(table, &call.key(), Expect::Revision(live.revision), new) {
                self.after_mark(&call.resource, &call.key(), &object);
                return Ok(Outcome::Marked(object));
            }
        }
    }

    /// Writes into `value` what a deletion leaves behind; `false` when nothing holds it and it can go now.
    fn mark(&self, resource: &Resource, value: &mut Value, options: &Options) -> bool {
        let grace = grace_period(resource, value, options);
        let already = value["metadata"].get("deletionTimestamp").is_some_and(|t| !t.is_null());
        let before = value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if resource.table.as_ref() == "apiextensions.k8s.io/customresourcedefinitions" {
            self.announce_end(value);
        }
        set_policy_finalizers(resource, value, options);
        let held = value["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty())
            || value["kind"] == "Namespace"
                && value["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        if already && grace >= before && (before > 0 || held) {
            return true;
        }
        let gone = grace == 0 && !held;
        if gone && resource.table.as_ref() != "/pods" {
            return false;
        }
        let now = self.now();
        // A client may ask for centuries.
        let when = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(jiff::Timestamp::MAX);
        let metadata = &mut value["metadata"];
        metadata["deletionTimestamp"] = json!(when.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        // Namespaces are marked by hand upstream, without a period.
        if resource.table.as_ref() != "/namespaces" {
            metadata["deletionGracePeriodSeconds"] = json!(grace);
        }
        if let Some(generation) = metadata["generation"].as_i64().filter(|g| *g > 0 && !already) {
            metadata["generation"] = json!(generation + 1);
        }
        if value["kind"] == "Namespace" {
            value["status"]["phase"] = json!("Terminating");
        }
        !gone
    }

    /// Removes an object and lets its dependents follow; `None` when somebody else changed it meanwhile.
    pub(super) fn remove(&self, resource: &Arc<Resource>, key: &str, revision: u64) -> Option<Arc<Object>> {
        let object = self.0.store.remove(&resource.table, key, revision).ok()?;
        self.after_remove(resource, &object);
        Some(object)
    }

    pub(super) fn delete_collection(&self, call: &Call) -> Result<Answer, Status> {
        let options = Options::of(call)?;
        let selection = call.selection()?;
        let page = self.matching(call, &selection)?;
        for object in &page.objects {
            let one = Call::for_object(&call.resource, object.namespace.as_deref(), &object.name);
            match self.delete_object(&one, &options) {
                Ok(_) => {}
                // Somebody else deleted it: that is what was asked for.
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        let encoder: Encoder = self.encoder(call);
        let mut meta = json!({"resourceVersion": page.revision.to_string()});
        if call.resource.custom.is_some() {
            meta["continue"] = json!("");
        }
        Ok(Answer::Json(200, encoder.list(&page.objects, &meta)))
    }
}

fn check_preconditions(call: &Call, options: &Options, live: &Object) -> Result<(), Status> {
    // Here upstream names the kind where it names the resource elsewhere.
    let subject = Subject { resource: &call.resource.kind, ..call.resource.subject() };
    if let Some(uid) = options.uid.as_deref().filter(|u| **u != *live.uid) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            live.uid
        );
        return Err(Status::conflict(subject, call.name(), &why));
    }
    if let Some(revision) = options.revision.as_deref().filter(|r| **r != live.revision.to_string()) {
        let why = format!(
            "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            live.revision
        );
        return Err(Status::conflict(subject, call.name(), &why));
    }
    Ok(())
}

/// Seconds an object gets to end by itself. Only pods on a node do.
fn grace_period(resource: &Resource, value: &Value, options: &Options) -> i64 {
    if resource.custom.is_some() || resource.plural != "pods" {
        return 0;
    }
    let scheduled = value["spec"]["nodeName"].as_str().is_some_and(|n| !n.is_empty());
    let ended = matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !scheduled || ended {
        return 0;
    }
    let wanted = options.grace.or_else(|| value["spec"]["terminationGracePeriodSeconds"].as_i64());
    match wanted.unwrap_or(30) {
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// Finalizers stand for the propagation policy while dependents are dealt with.
fn set_policy_finalizers(resource: &Resource, value: &mut Value, options: &Options) {
    let Some(metadata) = value["metadata"].as_object_mut() else { return };
    let given = options.policy.is_some() || options.orphan.is_some();
    let mut finalizers: Vec<String> = metadata
        .get("finalizers")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    if !given || resource.plural == "namespaces" {
        return;
    }
    let before = finalizers.clone();
    finalizers.retain(|f| f != "orphan" && f != "foregroundDeletion");
    match options.policy() {
        "Orphan" => finalizers.push("orphan".to_owned()),
        "Foreground" => finalizers.push("foregroundDeletion".to_owned()),
        _ => {}
    }
    if finalizers == before {
        return;
    }
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), json!(finalizers));
    }
}
