//! What is to be moved, as programs read it; by which settings; and what was moved, as nodes remember it.

mod result;
mod settings;

pub use result::{PlanResult, of};
pub use settings::settings;

use jiff::Timestamp;
use loadline_core::load::Load;
use loadline_core::object::Key;
use loadline_core::rebalance::Moved;
use serde::{Deserialize, Serialize};

/// API version and kind of the settings.
pub const SETTINGS: (&str, &str) = ("loadline.dev/v1alpha1", "RebalanceSettings");
/// The annotation of a node that says what was moved from it of late.
pub const MOVED: &str = "loadline.dev/rebalanced";

/// A move as it is written on the node it was made from.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    at: Timestamp,
    pod: String,
    uid: String,
    workload: String,
    to: String,
    cpu_nano: i64,
    memory_bytes: i64,
    #[serde(default)]
    because: String,
}

/// What a node says was moved from it, as text.
pub fn written<'a>(moves: impl Iterator<Item = &'a Moved>) -> String {
    let all: Vec<Written> = moves
        .map(|one| Written {
            at: one.at,
            pod: one.pod.to_string(),
            uid: one.uid.to_string(),
            workload: one.workload.to_string(),
            to: one.to.to_string(),
            cpu_nano: one.high.cpu_nano,
            memory_bytes: one.high.memory_bytes,
            because: one.because.to_string(),
        })
        .collect();
    serde_json::to_string(&all).unwrap_or_default()
}

/// The moves a text on a node tells of; none if it is not ours.
#[must_use]
pub fn moved(node: &str, text: &str) -> Vec<Moved> {
    let read: Vec<Written> = serde_json::from_str(text).unwrap_or_default();
    read.into_iter()
        .map(|one| Moved {
            at: one.at,
            pod: Key::parse(&one.pod),
            uid: one.uid.into(),
            workload: one.workload.into(),
            from: node.into(),
            to: one.to.into(),
            high: Load::new(one.cpu_nano, one.memory_bytes),
            because: one.because.into(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_is_read_as_it_was_written() {
        let one = Moved {
            at: "2026-01-05T10:00:00Z".parse().unwrap(),
            pod: Key::new("shop", "web-1"),
            uid: "u1".into(),
            workload: "shop/ReplicaSet/web".into(),
            from: "n1".into(),
            to: "n2".into(),
            high: Load::new(1_500_000_000, 1 << 30),
            because: "cpu of n1 is 1 over its line".into(),
        };
        assert_eq!(moved("n1", &written([&one].into_iter())), [one]);
        for other in ["", "yes", "{}", "[{}]", "[1]"] {
            assert_eq!(moved("n1", other), [], "{other:?} is not ours");
        }
    }
}
