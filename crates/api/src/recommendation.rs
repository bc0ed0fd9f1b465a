//! What was recommended? The Recommendation objects of Crane, in every shape they ever had.
//!
//! | shape | where | what |
//! |---|---|---|
//! | [`Form::Value`] | `status.recommendedValue` | a text in YAML: `resourceRequest.containers[]` with `containerName` and `target` |
//! | [`Form::Patch`] | `status.recommendedInfo` | a text in JSON: a patch with the containers of the pod template |
//! | [`Form::Typed`] | `status.resourceRequest` | the fields themselves: `containers[]` as in the first |
//! | [`Form::Annotation`] | an annotation of the workload | a text in YAML: `containers[]` as in the first |
//!
//! What was learned by us also says when in the day a container uses how much, in the annotation [`DAY`].
//!
//! They are tried in this order. A text that does not read is passed over with a warning; so is the amount of one
//! resource of one container.

#[cfg(feature = "schema")]
pub mod types;
mod write;

pub use write::{CHECKPOINT, CONFIDENCE, DAY, Learned, MANAGED_BY, change, key, object};

use crate::context::namespace;
use crate::json::Tree;
use crate::read::{At, Error, Warning, group, tolerant};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use loadline_core::load::estimate::nanocores;
use loadline_core::load::need::{Day, HOURS};
use loadline_core::load::recommend::{Advice, Form, Recommendation, WorkloadRef};
use loadline_core::object::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The annotation of a workload that holds what is recommended for it.
pub const ANNOTATION: &str = "analysis.crane.io/resource-recommendation";
/// The annotation of a Recommendation that says how its last renewal went.
pub const MESSAGE: &str = "analysis.crane.io/message";

/// The definition of the kind, for clusters without crane.
pub const DEFINITION: &str = include_str!("../../../deploy/crds/recommendations.yaml");

/// In billionths of a core.
const MILLICORE: i64 = 1_000_000;

type Containers = BTreeMap<Arc<str>, Advice>;

/// Reads a Recommendation. None if it recommends something else than resources, or nothing yet.
///
/// The workload it is for is the one it names; where the object itself is, and what it is called, says nothing.
///
/// # Errors
/// When the object is not what it should be.
pub fn read(value: &Tree<'_>) -> Result<(Option<Recommendation>, Vec<Warning>), Error> {
    tolerant("Recommendation", value, |root| {
        let (metadata, spec, status) = (root.get("metadata"), root.get("spec"), root.get("status"));
        if spec.get("type").text().is_some_and(|kind| kind != "Resource") {
            return None;
        }
        let (shape, containers) = containers(&status)?;
        let target = spec.get("targetRef");
        let here = namespace(metadata.get("namespace").text());
        let message = metadata.get("annotations").get(MESSAGE).text();
        Some(Recommendation {
            target: WorkloadRef {
                group: group(target.get("apiVersion").text().unwrap_or_default()).into(),
                kind: target.get("kind").needed().into(),
                key: Key::new(target.get("namespace").text().unwrap_or(&here), target.get("name").needed()),
            },
            containers,
            days: days(&metadata),
            success: message == Some("Success"),
            message: message.map(Into::into),
            updated: status.get("lastUpdateTime").time(),
            name: format!("{here}/{}", metadata.get("name").needed()).into(),
            shape,
        })
    })
}

/// When in the day containers use how much CPU: by container, 24 whole millicores from midnight in UTC, `null` for an hour
/// nobody has seen. What does not read is left out with a warning: it is of use, and nothing depends on it.
fn days(metadata: &At<'_, '_>) -> BTreeMap<Arc<str>, Day> {
    let annotations = metadata.get("annotations");
    let at = annotations.get(DAY);
    let Some(parsed) = json(&at) else { return BTreeMap::new() };
    let read = |at: &At<'_, '_>| {
        let one = |(name, hours): (&str, At<'_, '_>)| Some((name.into(), day(&hours)?));
        at.entries().filter_map(one).collect()
    };
    at.attempt(&parsed, read).unwrap_or_default()
}

fn day(at: &At<'_, '_>) -> Option<Day> {
    let hours: Vec<_> = at.items().collect();
    if hours.len() != HOURS {
        at.fail(format!("expected {HOURS} hours, found {}", hours.len()));
        return None;
    }
    let known = hours.iter().enumerate().filter(|(_, at)| at.is_set());
    let milli = |(hour, at): (usize, &At<'_, '_>)| {
        let milli = at.int()?;
        if milli < 0 {
            at.fail(format!("expected 0 or more millicores, found {milli}"));
        }
        Some((hour, milli.saturating_mul(MILLICORE)))
    };
    Day::new(known.filter_map(milli))
}

/// What an object of ours was made from, for learning on; `None` if it is not ours, or was damaged.
#[must_use]
pub fn checkpoint(value: &Tree<'_>) -> Option<Vec<u8>> {
    let metadata = &value["metadata"];
    (metadata["labels"][MANAGED_BY.0].as_str() == Some(MANAGED_BY.1)).then_some(())?;
    BASE64_STANDARD.decode(metadata["annotations"][CHECKPOINT].as_str()?).ok()
}

/// What the annotation of a workload recommends for it.
pub(crate) fn annotated(metadata: &At<'_, '_>, target: &WorkloadRef) -> Option<Recommendation> {
    let annotations = metadata.get("annotations");
    let at = annotations.get(ANNOTATION);
    let parsed = yaml(&at)?;
    let containers = at.attempt(&parsed, targets)?;
    (!containers.is_empty()).then(|| Recommendation {
        target: target.clone(),
        containers,
        // It is written only when there is something to write.
        success: true,
        name: target.to_string().into(),
        shape: Form::Annotation,
        ..Recommendation::default()
    })
}

fn containers(status: &At<'_, '_>) -> Option<(Form, Containers)> {
    let value = || {
        let at = status.get("recommendedValue");
        at.attempt(&yaml(&at)?, |at| targets(&at.get("resourceRequest")))
    };
    let patch = || {
        let at = status.get("recommendedInfo");
        at.attempt(&json(&at)?, |at| {
            let spec = at.get("spec");
            let requests = |container: &At<'_, '_>| advice(&container.get("resources").get("requests"));
            list(&spec.get("template").get("spec").get("containers"), "name", requests)
        })
    };
    let typed = || {
        let at = status.get("resourceRequest");
        at.attempt(at.value(), targets)
    };
    let tried = |shape, found: Option<Containers>| Some((shape, found.filter(|all| !all.is_empty())?));
    tried(Form::Value, value())
        .or_else(|| tried(Form::Patch, patch()))
        .or_else(|| tried(Form::Typed, typed()))
}

fn targets(at: &At<'_, '_>) -> Containers {
    list(&at.get("containers"), "containerName", |container| advice(&container.get("target")))
}

/// What is recommended for each container that something is recommended for.
fn list(at: &At<'_, '_>, name: &str, advice: impl Fn(&At<'_, '_>) -> Advice) -> Containers {
    let one = |container: At<'_, '_>| Some((container.get(name).text()?.into(), advice(&container)));
    at.items().filter_map(one).filter(|(_, advice)| *advice != Advice::default()).collect()
}

/// A bad amount is left out with a warning.
fn advice(target: &At<'_, '_>) -> Advice {
    let amount = |name: &str| {
        let at = target.get(name);
        at.some()?.amount().map_err(|problem| at.warn(problem.problem)).ok()
    };
    Advice {
        cpu_nano: amount("cpu").map(|cpu| nanocores(&cpu)),
        memory_bytes: amount("memory").map(|memory| memory.value()),
    }
}

/// The document in a text; none, perhaps with a warning, if there is none.
fn yaml<'v>(at: &At<'v, '_>) -> Option<Tree<'v>> {
    document(at, |text| serde_saphyr::from_str(text).map_err(|e| e.to_string()))
}

fn json<'v>(at: &At<'v, '_>) -> Option<Tree<'v>> {
    document(at, |text| serde_json::from_str(text).map_err(|e| e.to_string()))
}

fn document<'v>(at: &At<'v, '_>, parse: impl Fn(&'v str) -> Result<Tree<'v>, String>) -> Option<Tree<'v>> {
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general enough")]
    let text = at.attempt(at.value(), |at| at.text())??;
    // Parsers of YAML like to show the text around; the first line says it.
    parse(text).map_err(|e| at.warn(e.lines().next().unwrap_or_default())).ok()
}
