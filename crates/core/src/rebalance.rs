//! Which pods should leave which nodes now, and where would they go?
//!
//! A node that is over its line, and not just for a moment, gives up pods until it is not any more: the least harmful first,
//! and only those for which a better node is known. What a node uses in one sample says little, so [`Recent`] knows for how
//! long it has been over its line; what a pod uses now says little of tomorrow, so the node it goes to must stay under its
//! line with the most the pod was measured to use, or was learned to use as long as it is young.
//!
//! ```text
//! line                 = the target of the settings, else that of the load rules + slack (CPU only)
//! gap                  = expected − allocatable × line                at the node it leaves, > 0
//! gap after            = gap − what the pod uses now
//! at the node it goes  : expected + the most the pod uses  ≤  allocatable × (line − margin)
//! ```
//!
//! Where a pod goes is not ours to say: its scheduler decides. So the same engine is asked ([`crate::cycle`]), on a copy of the
//! account in which the pod is not there and nodes that give up pods take none. What one move brings is charged there before
//! the next is decided. A pod the engine would send to a bad place stays, with that reason.
//!
//! # Who goes first
//!
//! The lowest priority; then pods that are not the only one of their workload; then the one whose use is nearest to the gap: the
//! smallest that closes it alone, or else the largest. Then by name.
//!
//! # What never happens
//!
//! What was made in place of a moved pod stays where it landed for the dwell time, wherever that is. Two nodes do not swap pods: what
//! went from one to the other within that time closes the way back. A node that gives up
//! pods takes none in the same plan. No more than so many moves from a node, of a workload, and in all, within an hour. A
//! node that gave up a pod is measured before it gives up the next ones. Whatever is not known, such as what a pod uses, is a
//! reason to stay.
//!
//! A plan costs one look at every node when none is over its line. When a pod could go from one that is, the account is copied once.

mod moves;
mod over;
mod reason;
mod recent;
mod relieve;
mod settings;

pub use moves::{Moved, Moves, workload};
pub use over::{Over, SWITCH};
pub use reason::{Pause, Refused, Stay, Wait};
pub use recent::{Recent, Run, Use};
pub use settings::{Absurd, Closing, Landing, Level, Settings};

use crate::cluster::Cluster;
use crate::load::ratio::Ratio;
use crate::load::{Load, Metered};
use crate::object::Key;
use crate::view::PodView;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The key of the taint of a node that gave up pods.
pub const COOLING_TAINT: &str = "loadline.dev/cooling";

/// What a pod is known to use at most within the next while, by the time of day; `None` where that is not known.
pub type Soon<'a> = &'a dyn Fn(&PodView) -> Option<Load>;

/// Who is to be left alone, beside what the settings and nodes say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Off {
    pub namespaces: BTreeSet<Arc<str>>,
    /// By uid.
    pub pods: BTreeSet<Arc<str>>,
}

/// What a plan rests on, beside the account.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub settings: &'a Settings,
    pub recent: &'a Recent,
    pub moves: &'a Moves,
    pub off: &'a Off,
    /// What is known of the time of day, if anything.
    pub soon: Option<Soon<'a>>,
}

/// One pod that should go somewhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub pod: Key,
    pub uid: Arc<str>,
    /// See [`workload`].
    pub workload: Arc<str>,
    pub from: Arc<str>,
    /// Where its scheduler would put it.
    pub to: Arc<str>,
    /// Which load of the node it leaves is the reason.
    pub resource: Metered,
    /// What it uses now: so much less is used where it leaves.
    pub uses: Load,
    /// What it uses at most, by what was measured of late, or was learned before while it is young: so much more where it goes.
    pub high: Load,
    /// What has to go from the node it leaves, before and after.
    pub gap: Load,
    pub gap_after: Load,
    /// How much of that resource is expected to be used where it goes, with the most the pod uses.
    pub there: i64,
    /// How far that stays below the line, by the resource where it is least, as a share of what the node has.
    pub margin: Ratio,
}

impl Move {
    /// What is to be remembered when it was made.
    #[must_use]
    pub fn moved(&self, at: jiff::Timestamp) -> Moved {
        Moved {
            at,
            pod: self.pod.clone(),
            uid: self.uid.clone(),
            workload: self.workload.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            high: self.high,
            because: self.to_string().into(),
        }
    }
}

/// One sentence, the same wherever it is told.
impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, resource, margin, .. } = self;
        let show = |load: Load| resource.rounded(load.get(*resource));
        write!(
            f,
            "{resource} of {from} is {} over its line, {} after; {to} stays {:.0} % of it below its line with the pod, which uses {} and at most {}",
            show(self.gap),
            show(self.gap_after),
            margin.to_f64() * 100.0,
            show(self.uses),
            show(self.high)
        )
    }
}

/// What should be done now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Why nothing was looked at.
    pub pause: Option<Pause>,
    /// The nodes over their line, the one by the largest share first.
    pub nodes: Vec<Over>,
    /// In the order in which to make them.
    pub moves: Vec<Move>,
}

impl Plan {
    fn paused(pause: Pause) -> Self {
        Self { pause: Some(pause), ..Self::default() }
    }
}

/// Which pods should leave which nodes now? The account is brought up to date and otherwise left as it is.
#[must_use]
pub fn plan(cluster: &mut Cluster, input: &Input<'_>) -> Plan {
    if !input.settings.enabled {
        return Plan::paused(Pause::Off);
    }
    if input.recent.is_empty() {
        return Plan::paused(Pause::NoHistory);
    }
    match over::look(cluster, input) {
        Ok(nodes) => relieve::relieve(cluster, input, nodes),
        Err(pause) => Plan::paused(pause),
    }
}

#[cfg(test)]
mod tests;
