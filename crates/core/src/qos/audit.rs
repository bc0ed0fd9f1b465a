//! What did acting release, compared with what was predicted?
//!
//! An act is noted with what it is expected to release, and closed by a later look at the pod it was about:
//!
//! ```text
//! slowed down:  measured = what the container used before − what it uses now
//! restored:     measured = what it uses now − what it used before
//! evicted:      measured = what the pod used before, once it is gone
//! reclaimed:    measured = memory of the pod with its page cache before − the same now
//! shortfall     = 1 − measured / predicted
//! ```
//!
//! in millicores or bytes. A container that used 1 500 millicores, was expected to release 300 and uses 1 260 now has released 240: a
//! shortfall of 0.2. What cannot be measured is closed without a figure, and teaches nothing; nor does page cache, which counts for no gap.

mod record;
mod tune;

pub use record::{Act, Audit, Closed, Kind, Tally};
pub use tune::{LIMIT, tuned};

#[cfg(test)]
mod tests;
