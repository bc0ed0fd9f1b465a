//! Decisions as pure functions: no async, no clock, no Kubernetes crates.

pub mod quantity;
