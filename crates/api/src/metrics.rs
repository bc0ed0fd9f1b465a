//! What was measured? `NodeMetrics` and `PodMetrics` of the metrics API, in every version.
//!
//! A measurement that is not complete is none: a figure that is missing or does not read is an error that says
//! so, never a zero, which would look like an idle node.

use crate::context::key;
use crate::duration;
use crate::json::Tree;
use crate::read::{At, Error, object};
use loadline_core::ledger::Sample;
use loadline_core::load::Load;
use loadline_core::load::estimate::nanocores;
use loadline_core::object::Key;

/// The node and what was measured of it.
///
/// # Errors
/// When anything about it is missing or not what it should be.
pub fn node(value: &Tree<'_>) -> Result<(String, Sample), Error> {
    object("NodeMetrics", value, |root| {
        (root.get("metadata").get("name").needed(), sample(root, usage(&root.get("usage"))))
    })
}

/// The pod and what was measured of it: its containers together.
///
/// # Errors
/// When anything about it is missing or not what it should be.
pub fn pod(value: &Tree<'_>) -> Result<(Key, Sample), Error> {
    object("PodMetrics", value, |root| {
        let (metadata, containers) = (root.get("metadata"), root.get("containers"));
        let all = containers.items().map(|container| usage(&container.get("usage")));
        let total = all.reduce(Load::plus).unwrap_or_else(|| {
            containers.fail("must not be empty");
            Load::ZERO
        });
        (key(&metadata), sample(root, total))
    })
}

/// The pod and what was measured of each of its containers.
///
/// # Errors
/// When anything about it is missing or not what it should be.
pub fn containers(value: &Tree<'_>) -> Result<(Key, Vec<(String, Sample)>), Error> {
    object("PodMetrics", value, |root| {
        let (metadata, containers) = (root.get("metadata"), root.get("containers"));
        let one = |at: At<'_, '_>| (at.get("name").needed(), sample(root, usage(&at.get("usage"))));
        (key(&metadata), containers.items().map(one).collect())
    })
}

fn sample(root: &At<'_, '_>, usage: Load) -> Sample {
    let (timestamp, window) = (root.get("timestamp"), root.get("window"));
    let at = timestamp.time().unwrap_or_else(|| {
        if !timestamp.is_set() {
            timestamp.fail("must not be empty");
        }
        jiff::Timestamp::MIN
    });
    let read = duration::parse(window.text().unwrap_or_default()).filter(|w| !w.is_negative());
    Sample {
        at,
        window: read.unwrap_or_else(|| {
            window.fail("expected a duration such as 15.236s");
            jiff::SignedDuration::ZERO
        }),
        usage,
    }
}

/// Zeros stand for what is wrong; as it has been noted, nobody gets to see them.
fn usage(at: &At<'_, '_>) -> Load {
    let amount = |name: &str| {
        let at = at.get(name);
        at.amount().map_err(|problem| at.fail(problem.problem)).unwrap_or_default()
    };
    Load::new(nanocores(&amount("cpu")), amount("memory").value())
}
