//! What did the API server see? Every write that it carried out, with the object before and after, who sent it, and when.
//!
//! It is taken between the faults and the server: a write whose answer is lost is in here, one that never arrived is not.

use serde_json::{Value, json};
use std::fmt;

/// The verb of an entry that says that a component went round and round without time going on.
pub const SPIN: &str = "spin";

/// The verb of an entry that says that a component ended though nobody asked for it.
pub const ENDED: &str = "ended";

/// The verb of an entry that says that something in a component panicked.
pub const PANIC: &str = "panic";

/// One write that was carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Milliseconds since the beginning, by a clock nobody sets.
    pub at: u64,
    /// When it was sent: earlier, if it was late.
    pub sent: u64,
    /// Which component, such as `scheduler/a`.
    pub who: String,
    /// Who it says it is: another name after each start.
    pub identity: String,
    /// `create`, `update`, `patch`, `delete`; `quota` for what an agent tells its node; [`SPIN`], [`ENDED`], [`PANIC`].
    pub verb: &'static str,
    /// Of the object, without the subresource.
    pub path: String,
    /// Such as `binding`; nothing for the object itself.
    pub subresource: String,
    /// What was there before; null if there was nothing.
    pub before: Value,
    /// What is there now; null if there is nothing.
    pub after: Value,
}

impl Entry {
    /// All of it as one document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "at": self.at, "sent": self.sent, "who": self.who, "identity": self.identity, "verb": self.verb, "path": self.path,
            "subresource": self.subresource, "before": self.before, "after": self.after,
        })
    }

    /// Is it about one of these objects, such as `/pods/`?
    #[must_use]
    pub fn is_of(&self, plural: &str) -> bool {
        let mut parts = self.path.rsplit('/');
        parts.next();
        parts.next() == Some(plural)
    }

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// In one line, as a person reads it.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sub = if self.subresource.is_empty() { String::new() } else { format!("/{}", self.subresource) };
        let (second, milli) = (self.at / 1000, self.at % 1000);
        write!(
            f,
            "{second:>4}.{milli:03} s  {:<16} {} {}{sub}{}",
            self.identity,
            self.verb,
            self.path,
            told(self)
        )
    }
}

/// What about it matters most.
fn told(entry: &Entry) -> String {
    let after = &entry.after;
    let mut words = Vec::new();
    if let Some(node) = after["spec"]["nodeName"].as_str() {
        words.push(format!("on {node}"));
    }
    let conditions = after["status"]["conditions"].as_array().into_iter().flatten();
    for waits in conditions.filter(|one| one["type"] == "PodScheduled" && one["status"] == "False") {
        words.push(format!("waits: {}", waits["message"].as_str().unwrap_or_default()));
    }
    if let Some(holder) = after["spec"]["holderIdentity"].as_str() {
        words.push(format!("held by {holder:?}"));
    }
    for taint in after["spec"]["taints"].as_array().into_iter().flatten() {
        words.push(format!("taint {}", taint["key"].as_str().unwrap_or_default()));
    }
    if let Some(until) = after["metadata"]["annotations"]["loadline.dev/cooling-until"].as_str() {
        words.push(format!("cooling until {until}"));
    }
    if entry.verb == "quota" {
        words.push(format!("{} → {}", entry.before, entry.after));
    }
    for cluster in after["spec"]["clusters"].as_array().into_iter().flatten() {
        words.push(format!("{}={}", cluster["name"].as_str().unwrap_or_default(), cluster["replicas"]));
    }
    for decision in after["status"]["decisions"].as_array().into_iter().flatten() {
        words.push(decision["clusterName"].as_str().unwrap_or_default().to_owned());
    }
    if after.is_null() {
        words.push("gone".to_owned());
    }
    if words.is_empty() { String::new() } else { format!("  ({})", words.join(", ")) }
}

/// A number that two histories share only if they are the same, byte for byte.
#[must_use]
pub fn fingerprint(history: &[Entry]) -> u64 {
    history
        .iter()
        .flat_map(|entry| entry.to_json().to_string().into_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}
