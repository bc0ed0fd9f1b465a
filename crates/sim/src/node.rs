//! What does a node do? It registers, sends heartbeats, runs the pods bound to it and reports what they use.
//!
//! All simulated nodes share one watch of pods and one of nodes, so a thousand of them cost little more than
//! one. Few of them can be looked into as real ones can, see [`Folders`].

mod address;
mod burn;
mod exporter;
mod folder;
mod life;
mod quota;
mod run;
mod shape;
mod trace;
mod usage;

pub use burn::Use;
pub(crate) use burn::{USAGE_CPU, USAGE_CPU_LATER};
pub use exporter::Exporters;
pub use folder::{Folders, NodeFolder};
pub use life::{Stage, next};
pub use run::Kubelets;
pub use shape::{Machines, Shape};
pub(crate) use trace::all as traces;
pub use usage::{Figures, NodeFigures, PodFigures, Sink};

/// A number that depends on the seed and a text only, and looks random.
pub(crate) fn dice(seed: u64, text: &str) -> u64 {
    // FNV-1a over the text, then the finisher of SplitMix64 to spread the bits.
    let mut x = text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
