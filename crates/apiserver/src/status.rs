//! Every answer that is not an object: Kubernetes' `Status`, built the way kube-apiserver words it.
//!
//! A handler returns `Result<_, Status>`; the transport renders it. Messages and reasons are part of the wire
//! contract: clients match on them, and the conformance suite compares them with a real server.

use serde_json::{Value, json};

/// A failure as Kubernetes clients expect it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, for example `NotFound`; empty when upstream gives none.
    pub reason: &'static str,
    /// The sentence a person reads.
    pub message: String,
    /// What it was about, where upstream says so. Boxed, because most results are successes.
    pub details: Option<Box<Details>>,
}

/// The `details` of a [`Status`].
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Details {
    /// Name of the object.
    pub name: String,
    /// API group of the object.
    pub group: String,
    /// Resource (plural) or kind, as upstream does it per reason.
    pub kind: String,
    /// Uid, in precondition failures.
    pub uid: String,
    /// One entry per problem.
    pub causes: Vec<Cause>,
    /// When to try again, if that helps.
    pub retry_after_seconds: Option<u32>,
}

/// One problem inside a [`Status`].
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Cause {
    /// Machine-readable reason, for example `FieldValueInvalid`.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// Path of the field.
    pub field: String,
}

/// What kind of mistake a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A reference to something that is not there.
    NotFound,
    /// A field that must be set.
    Required,
    /// The same value twice.
    Duplicate,
    /// A value outside what is allowed.
    Invalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A field that may not be set here.
    Forbidden,
    /// A string that is too long.
    TooLong,
    /// A list or map with too many entries.
    TooMany,
    /// A value of the wrong JSON type.
    TypeInvalid,
}

impl Mistake {
    /// The machine-readable reason of a cause.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }
}

/// One invalid field of an object: a value, so that all of them can be reported at once.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The kind of mistake.
    pub mistake: Mistake,
    /// Path, for example `spec.containers[0].name`.
    pub field: String,
    /// The offending value, rendered as upstream prints it; `None` where upstream leaves it out.
    pub value: Option<String>,
    /// What was expected.
    pub detail: String,
}

impl FieldError {
    /// A required field that is missing.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { mistake: Mistake::Required, field: field.into(), value: None, detail: detail.into() }
    }

    /// A field that may not be set or changed.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { mistake: Mistake::Forbidden, field: field.into(), value: None, detail: detail.into() }
    }

    /// A value that is not acceptable.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self {
            mistake: Mistake::Invalid,
            field: field.into(),
            value: Some(render(value)),
            detail: detail.into(),
        }
    }

    /// The same value for the second time.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self {
            mistake: Mistake::Duplicate,
            field: field.into(),
            value: Some(render(value)),
            detail: String::new(),
        }
    }

    /// A value outside an enumeration; `supported` is listed as given.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        Self {
            mistake: Mistake::NotSupported,
            field: field.into(),
            value: Some(render(value)),
            detail: if list.is_empty() {
                String::new()
            } else {
                format!("supported values: {}", list.join(", "))
            },
        }
    }

    /// Mistake, value and detail, without the field: the message of a cause.
    #[must_use]
    pub fn body(&self) -> String {
        let mut out = self.mistake.words().to_owned();
        if let Some(value) = &self.value {
            out.push_str(": ");
            out.push_str(value);
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Prints a value as Go's `%#v` would for scalars; composite values print as JSON.
#[must_use]
pub(crate) fn render(value: &Value) -> String {
    match value {
        Value::String(s) => format!("{s:?}"),
        other => other.to_string(),
    }
}

/// A kind of object by its group and both of its names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Plural resource name.
    pub resource: &'a str,
    /// Kind.
    pub kind: &'a str,
}

impl Status {
    /// A status with code, reason and message only.
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    fn about(mut self, subject: Subject<'_>, name: &str, kind: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: subject.group.to_owned(),
            kind: kind.to_owned(),
            ..Details::default()
        }));
        self
    }

    /// 404 for an object.
    #[must_use]
    pub(crate) fn not_found(subject: Subject<'_>, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(subject));
        Self::new(404, "NotFound", message).about(subject, name, subject.resource)
    }

    /// 404 for a path that names no known resource.
    #[must_use]
    pub(crate) fn no_such_resource() -> Self {
        let mut status = Self::new(404, "NotFound", "the server could not find the requested resource");
        status.details = Some(Box::default());
        status
    }

    /// 409: the name is taken.
    #[must_use]
    pub(crate) fn already_exists(subject: Subject<'_>, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(subject));
        Self::new(409, "AlreadyExists", message).about(subject, name, subject.resource)
    }

    /// 409: somebody else changed the object, or a precondition failed.
    #[must_use]
    pub(crate) fn conflict(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(subject));
        Self::new(409, "Conflict", message).about(subject, name, subject.resource)
    }

    /// 409: the resourceVersion in the request is not the current one.
    #[must_use]
    pub(crate) fn modified(subject: Subject<'_>, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(subject, name, why)
    }

    /// 422: the object is well-formed but not acceptable.
    #[must_use]
    pub(crate) fn invalid(subject: Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
        // Rules that look at the same field twice report it twice: all are causes, but the sentence names each once.
        let mut listed: Vec<String> = Vec::new();
        for text in errors.iter().map(ToString::to_string) {
            if !listed.contains(&text) {
                listed.push(text);
            }
        }
        let text = match listed.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let kind = if subject.group.is_empty() {
            subject.kind.to_owned()
        } else {
            format!("{}.{}", subject.kind, subject.group)
        };
        let message = format!("{kind} {name:?} is invalid: {text}");
        let mut status = Self::new(422, "Invalid", message).about(subject, name, subject.kind);
        if let Some(details) = &mut status.details {
            details.causes = errors
                .iter()
                .map(|e| Cause {
                    reason: e.mistake.reason().to_owned(),
                    message: e.body(),
                    field: e.field.clone(),
                })
                .collect();
        }
        status
    }

    /// 400: the request itself is wrong.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 403 for one object.
    #[must_use]
    pub(crate) fn forbidden(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", qualified(subject));
        Self::new(403, "Forbidden", message).about(subject, name, subject.resource)
    }

    /// 405: the resource does not know this verb.
    #[must_use]
    pub(crate) fn method_not_allowed() -> Self {
        let mut status = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        status.details = Some(Box::default());
        status
    }

    /// 410: the revision asked for is no longer known.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 500: our fault.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let text = message.to_string();
        let mut status = Self::new(500, "InternalError", format!("Internal error occurred: {text}"));
        status.details = Some(Box::new(Details {
            causes: vec![Cause { message: text, ..Cause::default() }],
            ..Details::default()
        }));
        status
    }

    /// Adds a cause.
    #[must_use]
    pub(crate) fn with_cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.to_owned(),
        });
        self
    }

    /// The `Status` object sent to clients.
    #[must_use]
    pub(crate) fn to_json(&self) -> Value {
        let mut out = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            out["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            out["details"] = details.to_json();
        }
        out
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut out = serde_json::Map::new();
        for (key, value) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                out.insert(key.to_owned(), json!(value));
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_json).collect();
            out.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = self.retry_after_seconds {
            out.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        Value::Object(out)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut out = serde_json::Map::new();
        for (key, value) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !value.is_empty() {
                out.insert(key.to_owned(), json!(value));
            }
        }
        Value::Object(out)
    }
}

/// `pods`, or `deployments.apps` outside the core group: how messages name a resource.
fn qualified(subject: Subject<'_>) -> String {
    if subject.group.is_empty() {
        subject.resource.to_owned()
    } else {
        format!("{}.{}", subject.resource, subject.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: Subject<'_> = Subject { group: "", resource: "pods", kind: "Pod" };
    const DEPLOYMENT: Subject<'_> = Subject { group: "apps", resource: "deployments", kind: "Deployment" };

    #[test]
    fn messages_name_resource_group_and_object_as_upstream_does() {
        assert_eq!(Status::not_found(POD, "a").message, "pods \"a\" not found");
        assert_eq!(Status::not_found(DEPLOYMENT, "a").message, "deployments.apps \"a\" not found");
        assert_eq!(
            Status::modified(POD, "a").message,
            "Operation cannot be fulfilled on pods \"a\": the object has been modified; please apply your \
             changes to the latest version and try again"
        );
    }

    #[test]
    fn several_invalid_fields_are_reported_at_once() {
        let errors = [
            FieldError::required("spec.containers", ""),
            FieldError::not_supported("spec.restartPolicy", &json!("Maybe"), &["Always", "Never"]),
        ];
        let status = Status::invalid(POD, "a", &errors);
        assert_eq!(
            status.message,
            "Pod \"a\" is invalid: [spec.containers: Required value, spec.restartPolicy: Unsupported value: \
             \"Maybe\": supported values: \"Always\", \"Never\"]"
        );
        assert_eq!(status.to_json()["details"]["causes"][0]["reason"], "FieldValueRequired");
    }
}
