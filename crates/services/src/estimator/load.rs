//! How much more load does each node of a member take?
//!
//! Beside what nodes have free by requests stands what they use. A [`Cluster`] of core holds both against each other
//! by the load rules; measurements come from the metrics API of the member, those of nodes only: figures of pods would
//! be many and change little. Where there are none the rules say what to assume, and that is never nothing.

use crate::reload::{Reloaded, Source};
use crate::sources::metrics_api::Measurements;
use jiff::Timestamp;
use loadline_core::cluster::{self, Cluster, Mark, Profile};
use loadline_core::estimate::Index;
use loadline_core::load::policy::Rules;
use std::time::Duration;

/// Not more often than this is looked whether time alone changed something.
const LEAST: Duration = Duration::from_secs(1);

/// How load is followed.
#[derive(Clone, Debug)]
pub struct Options {
    /// By which it begins.
    pub rules: Rules,
    /// Where others may stand later.
    pub policy: Source<Rules>,
    /// How often measurements are asked for.
    pub every: Duration,
}

impl Default for Options {
    /// As often as the metrics server measures, by its defaults.
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            policy: Source::Fixed(Box::default()),
            every: Duration::from_secs(15),
        }
    }
}

/// The load of a member.
#[derive(Debug)]
pub(super) struct Load {
    /// Knows nodes and pods.
    pub cluster: Cluster,
    pub policy: Reloaded<Rules>,
    seen: Mark,
    /// Did the last measurements fail?
    missing: bool,
}

impl Load {
    pub fn new(options: &Options, now: Timestamp) -> Self {
        let policy = Reloaded::new("policy", options.policy.clone());
        let rules = Some(options.rules.clone());
        let options = cluster::Options { rules, ..cluster::Options::default() };
        Self { cluster: Cluster::new(options, now), policy, seen: Mark::default(), missing: false }
    }

    /// Takes in what the file of the policy says now.
    pub fn reread(&mut self, read: Result<String, String>) {
        if self.policy.take_text(read) {
            let rules = Rules::clone(self.policy.current());
            self.cluster.set_profiles(vec![Profile::by(Some(rules))]);
        }
    }

    /// Takes measurements in.
    pub fn measured(&mut self, cluster: &str, measurements: Measurements, now: Timestamp) {
        self.cluster.advance(now);
        let measured = match measurements {
            Ok(measured) => measured,
            Err(problem) => {
                if !std::mem::replace(&mut self.missing, true) {
                    tracing::warn!(cluster, problem, "no measurements, the settings decide what is assumed");
                }
                return;
            }
        };
        if std::mem::replace(&mut self.missing, false) {
            tracing::info!(cluster, "measurements are back");
        }
        for (node, sample) in measured.nodes {
            self.cluster.sample(&node, sample);
        }
    }

    /// Tells the index what changed; says whether anything did.
    pub fn fill(&mut self, index: &mut Index, now: Timestamp) -> bool {
        self.cluster.advance(now);
        let (seen, rooms) = self.cluster.rooms(self.seen);
        self.seen = seen;
        let any = !rooms.is_empty();
        for (node, room) in rooms {
            index.set_room(&node, Some(room));
        }
        any
    }

    /// How long nothing changes by time alone.
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        let left = self.cluster.next_due()?.duration_since(now);
        Some(Duration::try_from(left).unwrap_or_default().max(LEAST))
    }
}
