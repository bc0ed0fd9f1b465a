//! Jobs and cron jobs.

use super::check::{
    Errors, immutable, invalid, invalid_text, labels_value, matches, must_be, nonnegative, one_of, required,
    selector, selector_text,
};
use crate::builtin::json::{flag, get, has, int, text};
use crate::builtin::pod;
use crate::status::FieldError;
use serde_json::{Value, json};

pub(super) fn job(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    let meta = get(obj, "metadata");
    if !flag(spec, "manualSelector") {
        generated_labels(out, spec, meta);
    }
    job_spec(out, spec, "spec");
    if has(spec, "selector") {
        selector(out, get(spec, "selector"), "spec.selector");
    } else {
        required(out, "spec.selector", "");
    }
    let labels = get(get(get(spec, "template"), "metadata"), "labels");
    if matches(get(spec, "selector"), labels) == Some(false) {
        let why = "`selector` does not match template `labels`";
        invalid(out, "spec.template.metadata.labels", &labels_value(labels), why);
    }
}

/// Labels that tie pods to their job are the server's, or must look as if they were.
fn generated_labels(out: &mut Errors, spec: &Value, meta: &Value) {
    let held = get(spec, "selector");
    if held.is_null() {
        return;
    }
    let (name, uid) = (text(meta, "name"), text(meta, "uid"));
    let wanted = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    let labels = get(get(get(spec, "template"), "metadata"), "labels");
    for (key, want) in [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ] {
        match labels.get(key).and_then(Value::as_str) {
            None => {
                let path = format!("spec.template.metadata.labels[{key}]");
                required(out, path, &format!("must be '{want}'"));
            }
            Some(value) if value != want => {
                let path = format!("spec.template.metadata.labels[{key}]");
                invalid(out, path, &json!(value), format!("must be '{want}'"));
            }
            Some(_) => {}
        }
    }
    if matches(held, &wanted) == Some(false) {
        invalid_text(out, "spec.selector", selector_text(held), "`selector` not auto-generated");
    }
}

fn job_spec(out: &mut Errors, spec: &Value, path: &str) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        nonnegative(out, spec, key, path);
    }
    one_of(out, spec, "completionMode", path, &["NonIndexed", "Indexed"]);
    let indexed = text(spec, "completionMode") == "Indexed";
    if indexed && !has(spec, "completions") {
        required(out, format!("{path}.completions"), "when completion mode is Indexed");
    }
    if !indexed {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if has(spec, key) {
                invalid(out, format!("{path}.{key}"), get(spec, key), "requires indexed completion mode");
            }
        }
    }
    pod::validate::template(get(spec, "template"), &format!("{path}.template"), out);
    let policy = text(get(get(spec, "template"), "spec"), "restartPolicy");
    let field = format!("{path}.template.spec.restartPolicy");
    match policy {
        "OnFailure" if has(spec, "podFailurePolicy") => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            invalid(out, field, &json!(policy), why);
        }
        "OnFailure" | "Never" => {}
        "Always" | "" => required(out, field, "valid values: \"OnFailure\", \"Never\""),
        other => out.push(FieldError::not_supported(field, &json!(other), &["OnFailure", "Never"])),
    }
}

/// What an update of a job may not change. The template stays unless the job has not started.
pub(super) fn job_changes(new: &Value, old: &Value, out: &mut Errors) {
    let (spec, before) = (get(new, "spec"), get(old, "spec"));
    let elastic =
        text(before, "completionMode") == "Indexed" && int(spec, "completions") == int(spec, "parallelism");
    if !elastic {
        immutable(out, spec, before, "completions", "spec.");
    }
    immutable(out, spec, before, "selector", "spec.");
    let fresh = flag(before, "suspend") && !has(get(old, "status"), "startTime");
    if !fresh {
        immutable(out, spec, before, "template", "spec.");
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        immutable(out, spec, before, key, "spec.");
    }
}

pub(super) fn cron_job(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        required(out, "spec.schedule", "");
    } else if let Some(why) = schedule_problem(schedule) {
        invalid(out, "spec.schedule", &json!(schedule), why);
    }
    nonnegative(out, spec, "startingDeadlineSeconds", "spec");
    must_be(out, spec, "concurrencyPolicy", "spec", &["Allow", "Forbid", "Replace"]);
    job_spec(out, get(get(spec, "jobTemplate"), "spec"), "spec.jobTemplate.spec");
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        nonnegative(out, spec, key, "spec");
    }
    let name = text(get(obj, "metadata"), "name");
    if name.len() > 52 {
        invalid(out, "metadata.name", &json!(name), "must be no more than 52 characters");
    }
}

/// Five fields, or a word that starts with `@`.
fn schedule_problem(schedule: &str) -> Option<String> {
    const WORDS: [&str; 7] =
        ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if schedule.starts_with('@') {
        let known = WORDS.contains(&schedule) || schedule.starts_with("@every ");
        return (!known).then(|| format!("unrecognized descriptor: {schedule}"));
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let count = fields.len();
    (count != 5).then(|| {
        let listed: Vec<String> = fields.iter().map(|f| (*f).to_owned()).collect();
        format!("expected exactly 5 fields, found {count}: [{}]", listed.join(" "))
    })
}
