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

/// So long a text is at most, in bytes: half of what all annotations of an object may have.
const LONGEST: usize = 128 << 10;

/// What a node says was moved from it, given by time, as text. Where that is more than an annotation can hold, the oldest are left out:
/// they matter least.
pub fn written<'a>(moves: impl DoubleEndedIterator<Item = &'a Moved>) -> String {
    let mut room = LONGEST.saturating_sub(2);
    let mut all: Vec<String> = moves
        .rev()
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
        .map_while(|one| {
            let text = serde_json::to_string(&one).ok()?;
            room = room.checked_sub(text.len() + 1)?;
            Some(text)
        })
        .collect();
    all.reverse();
    format!("[{}]", all.join(","))
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

    fn web() -> Moved {
        Moved {
            at: "2026-01-05T10:00:00Z".parse().unwrap(),
            pod: Key::new("shop", "web-1"),
            uid: "u1".into(),
            workload: "shop/ReplicaSet/web".into(),
            from: "n1".into(),
            to: "n2".into(),
            high: Load::new(1_500_000_000, 1 << 30),
            because: "cpu of n1 is 1 over its line".into(),
        }
    }

    #[test]
    fn of_more_than_a_node_can_say_it_says_the_newest() {
        let one = |number: usize| Moved {
            at: web().at + jiff::SignedDuration::from_secs(i64::try_from(number).unwrap()),
            uid: format!("u{number}").into(),
            because: "because ".repeat(100).into(),
            ..web()
        };
        let all: Vec<Moved> = (0..200).map(one).collect();
        let text = written(all.iter());
        assert!(text.len() <= LONGEST && text.len() > LONGEST - 2000, "{}", text.len());
        let said = moved("n1", &text);
        assert!(said.len() > 100, "{}", said.len());
        assert_eq!(said, all[200 - said.len()..], "by time, as they were given");
    }

    #[test]
    fn what_a_node_says_is_read_as_it_was_written() {
        let one = web();
        assert_eq!(moved("n1", &written([&one].into_iter())), [one]);
        assert_eq!(written([].into_iter()), "[]");
        for other in ["", "yes", "{}", "[{}]", "[1]"] {
            assert_eq!(moved("n1", other), [], "{other:?} is not ours");
        }
    }
}
