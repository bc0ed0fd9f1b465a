//! Decisions as pure functions: no async, no clock, no Kubernetes crates.

pub mod quantity;
pub mod requests;
pub mod resources;
pub mod select;
mod wire;
