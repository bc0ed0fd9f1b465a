//! The `scale` subresource: how many replicas, seen and set without knowing the kind.

use super::body::Wanted;
use super::patch::{PatchKind, parse, unreadable};
use super::write::Ownership;
use super::{Answer, ApiServer, Call};
use crate::apply::{self, Write, scale};
use crate::patch;
use crate::registry::ScalePaths;
use crate::request::Verb;
use crate::schema::{View, decode};
use crate::status::{FieldError, Status, Subject};
use serde_json::{Value, json};

/// How often a write is tried against a moving object.
const TRIES: usize = 20;

const SCALE: Subject<'_> = Subject { group: "autoscaling", resource: "scales", kind: "Scale" };

impl ApiServer {
    pub(super) fn get_scale(&self, call: &Call) -> Result<Answer, Status> {
        let object = self.existing(call)?;
        Ok(Answer::value(200, &scale_of(call, &object.value())?))
    }

    pub(super) fn write_scale(&self, verb: Verb, call: &Call) -> Result<Answer, Status> {
        let kind = if verb == Verb::Update { None } else { Some(PatchKind::of(call)?) };
        match kind {
            Some(kind) => kind.check_options(call)?,
            None => call.check_options("UpdateOptions", Vec::new())?,
        }
        let path = replicas_path(call);
        for _ in 0..TRIES {
            let live = self.existing(call)?;
            let mut value = live.value();
            let mut old = scale_of(call, &value)?;
            // A write to a scale is a write to an object of another kind; its owners are brought over and back.
            old["metadata"]["managedFields"] = scale::to_scale(&value, &path);
            let new = self.new_scale(call, kind, &old)?;
            check(call, &old, &new)?;
            set(&mut value, &path, json!(new["spec"]["replicas"].as_i64().unwrap_or(0)));
            scale::to_parent(&mut value, &new, &call.resource.api_version(), &path);
            if let Some(object) = self.replace(call, &live, value, Ownership::Settled)? {
                return Ok(Answer::value(200, &scale_of(call, &object.value())?));
            }
        }
        Err(Status::modified(call.resource.subject(), call.name()))
    }

    /// The scale as the request wants it, with its owners.
    fn new_scale(&self, call: &Call, kind: Option<PatchKind>, old: &Value) -> Result<Value, Status> {
        let view = crate::schema::builtin::kind("autoscaling", "v1", "Scale");
        let manager = call.manager();
        let write = Write {
            kind: "Scale",
            reset: &[],
            builtin: true,
            ..self.write_of(call, &manager, "autoscaling/v1")
        };
        let document =
            kind.map_or_else(|| read_scale(call), |kind| parse(kind, &call.body).map(|d| d.value))?;
        let mut new = match kind {
            None => document.clone(),
            Some(PatchKind::Json) => patch::json(old, &document)?,
            Some(PatchKind::Merge) => patch::merge(old, &document)?,
            Some(PatchKind::Strategic) => patch::strategic(view, old, &document)?,
            Some(PatchKind::Apply) => {
                return apply::apply(view, Some(old), &document, &write, call.query.flag("force"));
            }
        };
        if let (Some(kind), Some(view)) = (kind, view) {
            new = read_patched(kind, &document, new, view)?;
        }
        apply::update(view, Some(old), &mut new, &write);
        Ok(new)
    }
}

fn read_scale(call: &Call) -> Result<Value, Status> {
    let wanted = Wanted { group: "autoscaling", version: "v1", kind: "Scale" };
    call.decode_as(wanted)
}

fn read_patched(kind: PatchKind, document: &Value, new: Value, view: View<'_>) -> Result<Value, Status> {
    let shown = if kind == PatchKind::Strategic { patch::words::plain(document) } else { new.to_string() };
    let decoded = decode::typed_value(view, new).map_err(|e| unreadable(kind, &shown, e.0))?;
    Ok(decoded.value)
}

/// Replicas a definition's paths find below zero.
pub(super) fn negative(paths: &ScalePaths, object: &Value) -> Vec<FieldError> {
    let fields = [&paths.spec_replicas, &paths.status_replicas];
    let below =
        fields.into_iter().filter_map(|path| Some((path, at(object, path).as_i64().filter(|n| *n < 0)?)));
    below.map(|(path, n)| FieldError::invalid(path, &json!(n), "should be a non-negative integer")).collect()
}

fn check(call: &Call, old: &Value, new: &Value) -> Result<(), Status> {
    let replicas = &new["spec"]["replicas"];
    // What a custom resource makes of it is for its own rules to say.
    let built_in = call.resource.custom.is_none();
    if let Some(negative) = replicas.as_i64().filter(|n| *n < 0 && built_in) {
        let error =
            FieldError::invalid("spec.replicas", &json!(negative), "must be greater than or equal to 0");
        return Err(Status::invalid(SCALE, call.name(), &[error]));
    }
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    if name != call.name() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name()
        )));
    }
    let revision = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !revision.is_empty() && new["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"] {
        return Err(Status::modified(call.resource.subject(), call.name()));
    }
    Ok(())
}

fn replicas_path(call: &Call) -> String {
    let custom = call.resource.custom.as_ref().and_then(|c| c.scale.as_ref());
    custom.map_or("spec.replicas", |s| s.spec_replicas.trim_start_matches('.')).to_owned()
}

/// The object seen as a `Scale`.
fn scale_of(call: &Call, value: &Value) -> Result<Value, Status> {
    let paths = call.resource.custom.as_ref().and_then(|c| c.scale.as_ref());
    let metadata = &value["metadata"];
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {}, "status": {"replicas": 0},
    });
    let (wanted, observed, selector) = match paths {
        None => {
            let selector = selector_text(&value["spec"]["selector"]);
            (value["spec"]["replicas"].clone(), value["status"]["replicas"].clone(), Some(selector))
        }
        Some(paths) => {
            let wanted = at(value, &paths.spec_replicas);
            if wanted.is_null() {
                return Err(Status::internal(format!(
                    "the spec replicas field {:?} does not exist",
                    paths.spec_replicas
                )));
            }
            let selector = paths.label_selector.as_deref().map(|p| at(value, p));
            let selector = selector.and_then(|s| s.as_str().map(str::to_owned));
            (wanted, at(value, &paths.status_replicas), selector)
        }
    };
    // Zero replicas are left out of a spec upstream, and always present in a status.
    if wanted.as_i64().unwrap_or(0) != 0 {
        scale["spec"]["replicas"] = wanted;
    }
    scale["status"]["replicas"] = json!(observed.as_i64().unwrap_or(0));
    if let Some(selector) = selector.filter(|s| !s.is_empty()) {
        scale["status"]["selector"] = json!(selector);
    }
    Ok(scale)
}

/// A label selector in its string form.
fn selector_text(selector: &Value) -> String {
    let mut parts = Vec::new();
    // Replication controllers have a plain map where newer kinds have `matchLabels`.
    let labels = if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() {
        selector["matchLabels"].as_object()
    } else {
        selector.as_object()
    };
    for (key, value) in labels.into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let text = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

fn at(value: &Value, path: &str) -> Value {
    let mut at = value;
    for step in path.trim_start_matches('.').split('.') {
        at = &at[step];
    }
    at.clone()
}

fn set(value: &mut Value, path: &str, to: Value) {
    let mut at = value;
    for step in path.trim_start_matches('.').split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[step];
    }
    *at = to;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_print_sorted_by_key() {
        let selector = json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}],
        });
        assert_eq!(selector_text(&selector), "a in (x,y),b=1");
        assert_eq!(selector_text(&json!({"app": "web"})), "app=web", "a replication controller's map");
    }
}
