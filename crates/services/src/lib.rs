//! The long-running components: watches, servers, writers.
//!
//! Nothing is here yet: the scheduler is the first that will be. Until then `loadline-sim` binds pods in turn.
