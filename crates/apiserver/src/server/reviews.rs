//! Access reviews. Whoever got in may do everything: there is one user here.

use super::{Answer, ApiServer, Call};
use crate::status::{FieldError, Status, Subject};
use serde_json::{Value, json};

impl ApiServer {
    /// Fills the status of a review and sends it back; nothing is stored.
    #[expect(clippy::unused_self, reason = "every verb is a method of the server")]
    pub(super) fn review(&self, call: &Call) -> Result<Answer, Status> {
        call.check_options("CreateOptions", Vec::new())?;
        let mut review = call.object()?;
        let spec = &review["spec"];
        let asks =
            ["resourceAttributes", "nonResourceAttributes"].iter().filter(|key| spec.get(**key).is_some());
        if call.resource.kind.ends_with("AccessReview") && asks.count() != 1 {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let shown = spec.get("resourceAttributes").unwrap_or(&Value::Null);
            let error = FieldError::invalid("spec.resourceAttributes", shown, why);
            let subject = Subject { kind: "", ..call.resource.subject() };
            return Err(Status::invalid(subject, "", &[error]));
        }
        review["status"] = match call.resource.kind.as_str() {
            "SelfSubjectReview" => json!({"userInfo": user()}),
            "TokenReview" => json!({"authenticated": true, "user": user()}),
            "SelfSubjectRulesReview" => json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
            _ => json!({"allowed": true}),
        };
        Ok(Answer::Json(201, super::encode::to_bytes(&review)))
    }
}

fn user() -> Value {
    json!({"username": "admin", "groups": ["system:masters", "system:authenticated"]})
}
