//! Who was placed where, and when? Schedulers tell in events, whichever scheduler it was.

use crate::json::Tree;
use jiff::Timestamp;

/// A pod was bound to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The pod's namespace.
    pub pod_namespace: String,
    /// The pod's name.
    pub pod_name: String,
    /// The pod's identity, if the event has it.
    pub pod_uid: Option<String>,
    pub node: String,
    /// When, in whole seconds.
    pub at: Timestamp,
}

/// The binding an Event tells of, if it tells of one and when: of type `Normal`, for the reason `Scheduled`, with
/// a message that reads `Successfully assigned <namespace>/<pod> to <node>`, whatever follows. Both kinds of
/// events are read, those of the core group and those of `events.k8s.io`.
#[must_use]
pub fn binding(value: &Tree<'_>) -> Option<Binding> {
    let text = |key: &str| value[key].as_str();
    if (text("type"), text("reason")) != (Some("Normal"), Some("Scheduled")) {
        return None;
    }
    let message = text("message").filter(|m| !m.is_empty()).or(text("note"))?;
    let words: Vec<&str> = message.split_whitespace().take(5).collect();
    let ["Successfully", "assigned", key, "to", node] = words[..] else { return None };
    let about =
        if value["involvedObject"].is_object() { &value["involvedObject"] } else { &value["regarding"] };
    let (pod_namespace, pod_name) = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => return None,
        Some((namespace, name)) => (namespace, name),
        None => (about["namespace"].as_str().unwrap_or_default(), key),
    };
    if pod_name.is_empty() {
        return None;
    }
    Some(Binding {
        pod_namespace: pod_namespace.to_owned(),
        pod_name: pod_name.to_owned(),
        pod_uid: about["uid"].as_str().filter(|uid| !uid.is_empty()).map(str::to_owned),
        node: node.to_owned(),
        at: time(value)?,
    })
}

/// The last time if events are counted, else the time of the event.
fn time(value: &Tree<'_>) -> Option<Timestamp> {
    let either = |a: &str, b: &str| if value[a].is_null() { value[b].clone() } else { value[a].clone() };
    let counted = either("count", "deprecatedCount").as_i64().is_some_and(|count| count > 0);
    let told =
        if counted { either("lastTimestamp", "deprecatedLastTimestamp") } else { value["eventTime"].clone() };
    let at: Timestamp = told.as_str()?.parse().ok()?;
    Timestamp::from_second(at.as_second()).ok()
}
