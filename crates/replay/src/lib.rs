//! What would have happened? Real use, replayed under one policy after another.
//!
//! Pods arrive, use what a real workload used, and leave; every five minutes nodes are measured; each pod is placed by the
//! engines of production, [`loadline_core::cluster`] and [`loadline_core::cycle`], or by somebody else's rule on top of them.
//! There are no Kubernetes objects, no clock and no chance but the seed: the same input gives the same answer.
//!
//! | module | answers |
//! |---|---|
//! | [`trace`] | what did real workloads use? |
//! | [`world`] | who arrives when, asks for what, and uses what? |
//! | [`recorded`] | what if that is known of a real cluster? |
//! | [`policy`] | by which rules are they placed? |
//! | [`protect`] | what would the agents of nodes do? |
//! | [`mod@run`] | what happened then? |
//! | [`figures`] | how good was that? |
//! | [`fewest`] | with how few nodes would it have been good enough? |
//! | [`compare`] | how do policies compare, over several seeds? |
//!
//! CPU only: memory is asked for in proportion and not replayed.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "millicores and steps of a few weeks are far below what a float holds exactly"
)]

pub mod compare;
pub mod dice;
pub mod fewest;
pub mod figures;
pub mod moves;
pub mod policy;
pub mod protect;
pub mod recorded;
pub mod run;
pub mod trace;
pub mod world;

mod account;
mod books;
mod forecast;
mod usage;

/// Minutes between two measurements.
pub const STEP_MINUTES: usize = 5;
/// Measurements in an hour.
pub const HOUR: usize = 60 / STEP_MINUTES;
/// Measurements in a day.
pub const DAY: usize = 24 * HOUR;
