//! What everything that speaks Kubernetes shares, after its `apimachinery`.
//!
//! | question | module |
//! |---|---|
//! | How much is `1.5Gi`, exactly? How is it written? | [`quantity`] |
//! | Which labels match? | [`label`] |
//! | What does `null` mean? | [`wire`] |
//! | What does the text of an object say? | [`json`] |
//! | And its protobuf? | [`protobuf`] |
//!
//! Everything here is pure, and everything answers as Kubernetes does: `vectors/machinery` holds answers recorded from
//! its own libraries, and the tests compare every one. Where we differ on purpose, the module says so and why.

#![warn(missing_docs, unreachable_pub)]

#[cfg(any(test, feature = "test-util"))]
pub mod fuzz;
pub mod json;
pub mod label;
pub mod protobuf;
pub mod quantity;
pub mod wire;
