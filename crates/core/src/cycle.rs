//! Where does this pod go? One scheduling cycle as a pure function: a snapshot and a pod in, a decision out.
//!
//! Every node is looked at; there is no sampling. Still it is fast: what depends on the pod alone is prepared
//! once, what depends on labels is answered for all nodes at once, what depends on amounts is read from columns,
//! and for pods of the same shape only nodes that changed since the last one are looked at again ([`Memo`]).
//!
//! # Rules
//!
//! A node takes a pod when every rule says so. The order is that of kube-scheduler, then the load rules:
//! cordon, taints, node selector and affinity, host ports, resources, volumes, topology spread, affinity between
//! pods, load thresholds, and the line: measured + pending + incoming load stays under the target.
//!
//! # Scores
//!
//! Each is 0 to 100, computed as kube-scheduler computes it, and weighs as much as it does there: taints 3, node
//! affinity 2, spread 2, pod affinity 2, least allocated 1, balanced allocation 1, images 1. The load score weighs 3.
//! The best total wins; among equals the first name.
//!
//! A pod that says nothing of spreading is spread all the same, softly, with those that belong with it ([`siblings`]):
//! over hosts, and less so over zones.
//!
//! [`siblings`]: crate::view::siblings
//!
//! # What is left out
//!
//! A pod that needs what is not done here (see [`crate::view::Hold`]) is refused, with the reason, before any
//! node is looked at.

pub mod among;
mod apart;
mod decide;
mod images;
mod local;
mod memo;
mod message;
mod preempt;
mod prepare;
mod report;
mod score;
mod spread;
mod volumes;

pub(crate) use decide::reason;
pub use decide::{Decision, Input, candidates, decide};
pub use memo::{Changes, Memo};
pub use message::message;
pub(crate) use message::{message_with, words};
pub use preempt::{InVain, Preemption, Releases, make_room, preempt};
pub use report::{Examined, examine, rank};
pub use score::{Parts, Weights};
pub use volumes::planned;

use serde::Serialize;

/// A rule a node can fail. The order is the order of checking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum Filter {
    /// The node is cordoned.
    Cordon,
    /// The node has a taint the pod does not tolerate.
    Taints,
    /// The node is not what the pod's node selector or affinity demands.
    NodeAffinity,
    /// A host port is taken.
    Ports,
    /// Not enough of a resource is free.
    Resources,
    /// A pod there has a disk that the two cannot share.
    DiskInUse,
    /// Another pod has the volume for itself.
    VolumeInUse,
    /// The driver cannot attach another volume.
    AttachLimit,
    /// A volume cannot be reached from there.
    VolumeReach,
    /// A claim finds no volume there, and none can be made.
    NoVolume,
    /// There is not enough room to make a volume.
    NoStorage,
    /// A volume is in another zone.
    VolumeZone,
    /// Pods like this would not be spread evenly enough.
    Spread,
    /// The node is no place at all for a spread constraint: it lacks the label.
    SpreadLabel,
    /// Pods this one must be near are not there.
    Affinity,
    /// Pods this one must be away from are there.
    AntiAffinity,
    /// Pods there keep this one away.
    ExistingAntiAffinity,
    /// A load is over its threshold.
    Threshold,
    /// Nothing is known of the load, and the settings say to keep off then.
    UnknownLoad,
    /// The node is being left alone after it was relieved.
    Cooling,
    /// The load would pass the line.
    Line,
}

impl Filter {
    /// All, in the order of checking.
    pub const ALL: [Self; 21] = [
        Self::Cordon,
        Self::Taints,
        Self::NodeAffinity,
        Self::Ports,
        Self::Resources,
        Self::DiskInUse,
        Self::VolumeInUse,
        Self::AttachLimit,
        Self::VolumeReach,
        Self::NoVolume,
        Self::NoStorage,
        Self::VolumeZone,
        Self::Spread,
        Self::SpreadLabel,
        Self::Affinity,
        Self::AntiAffinity,
        Self::ExistingAntiAffinity,
        Self::Threshold,
        Self::UnknownLoad,
        Self::Cooling,
        Self::Line,
    ];

    /// Position in [`Filter::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Is it one of the load rules? They come last.
    #[must_use]
    pub fn is_of_load(self) -> bool {
        matches!(self, Self::Threshold | Self::UnknownLoad | Self::Cooling | Self::Line)
    }

    /// Could taking pods off the node change the answer? If not, evicting is pointless.
    #[must_use]
    pub fn yields_to_eviction(self) -> bool {
        matches!(
            self,
            Self::Ports
                | Self::Resources
                | Self::DiskInUse
                | Self::VolumeInUse
                | Self::AttachLimit
                | Self::Spread
                | Self::AntiAffinity
                | Self::ExistingAntiAffinity
                | Self::Line
        )
    }
}

#[cfg(test)]
mod tests;
