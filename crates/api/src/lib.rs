//! Wire types and their conversion to the views of core.
//!
//! Objects come as JSON, from a cluster or from files, and become facts here, once. What is wrong with an
//! object is told with the path to it, all at once, see [`Error`]; what can be done without is left out with
//! a [`Warning`]. Nothing unknown ever becomes a zero.
//!
//! What the API server fills in on creation is filled in here, too, where it matters: objects from files then
//! mean the same as those from a cluster.
//!
//! | what | module |
//! |---|---|
//! | nodes | [`node`] |
//! | pods, and what they refer to | [`pod`], [`context`] |

pub mod context;
pub mod node;
pub mod pod;
mod read;

pub use context::Context;
pub use read::{Error, Problem, Warning};
