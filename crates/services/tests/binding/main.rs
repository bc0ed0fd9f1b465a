//! Karmada's bindings, decided about: a hub in memory, our controller, estimators on real sockets. What is judged is what
//! the API server has.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "../serving/mod.rs"]
mod serving;
#[path = "../signing/mod.rs"]
mod signing;

mod asking;
mod deciding;
mod estimating;
mod moving;
mod trouble;
mod world;
