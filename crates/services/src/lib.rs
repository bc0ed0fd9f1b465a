//! The long-running components: watches, servers, writers.
//!
//! Each follows the same pattern: watches bring news, one task folds them into an index and publishes a view that
//! never changes, servers answer from the newest view without locks. A component says when it is ready, how old what
//! it knows is, and ends when it is told to.

pub mod estimator;
pub mod serve;
pub mod watch;
