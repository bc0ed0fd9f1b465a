//! Parameters of a write: dry run, field manager, how strictly a body is read.

use super::Call;
use crate::status::{FieldError, Mistake, Status, Subject};
use serde_json::json;

/// Longest name of a field manager.
const LONGEST_MANAGER: usize = 128;

/// How strictly a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    Ignore,
    Warn,
    Strict,
}

impl Call {
    /// Checks what a write is asked to do; `kind` is what upstream calls its options.
    ///
    /// # Errors
    /// 422 naming every parameter that makes no sense; `first` are problems found before.
    pub(super) fn check_options(&self, kind: &str, first: Vec<FieldError>) -> Result<(), Status> {
        let mut errors = first;
        if let Some(manager) = self.query.get("fieldManager") {
            errors.extend(manager_errors(manager));
        }
        if let Some(other) = self.query.get("dryRun").filter(|value| *value != "All") {
            errors.push(FieldError::not_supported("dryRun", &json!([other]), &["All"]));
        }
        if let Some(other) = self.query.get("fieldValidation")
            && !matches!(other, "Ignore" | "Strict" | "Warn")
        {
            let supported = ["", "Ignore", "Strict", "Warn"];
            errors.push(FieldError::not_supported("fieldValidation", &json!(other), &supported));
        }
        if errors.is_empty() { Ok(()) } else { Err(invalid_options(kind, &errors)) }
    }

    /// The `fieldValidation` parameter; what it may be was checked before.
    pub(super) fn strictness(&self) -> Strictness {
        match self.query.get("fieldValidation") {
            Some("Ignore") => Strictness::Ignore,
            Some("Strict") => Strictness::Strict,
            _ => Strictness::Warn,
        }
    }

    /// Whether this is a dry run.
    pub(super) fn dry_run(&self) -> bool {
        self.query.get("dryRun") == Some("All")
    }

    /// Who writes: the `fieldManager` parameter, else the first part of the user agent.
    pub(super) fn manager(&self) -> String {
        let name = self.query.get("fieldManager");
        let name = name.unwrap_or_else(|| self.user_agent.split('/').next().unwrap_or_default());
        name.chars().take(LONGEST_MANAGER).collect()
    }
}

fn manager_errors(manager: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > LONGEST_MANAGER {
        errors.push(FieldError {
            mistake: Mistake::TooLong,
            field: "fieldManager".to_owned(),
            value: None,
            detail: format!("may not be more than {LONGEST_MANAGER} bytes"),
        });
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| c.is_control()) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(FieldError::invalid("fieldManager", &json!(manager), why));
    }
    errors
}

/// 422 for parameters of a request.
pub(super) fn invalid_options(kind: &str, errors: &[FieldError]) -> Status {
    Status::invalid(Subject { group: "meta.k8s.io", resource: "", kind }, "", errors)
}
