//! Who leads? Leader election with a Lease, as client-go does it, one step at a time.
//!
//! Several candidates run, one of them works. They agree through one record in the API server, replaced only by whoever
//! has read its newest revision. [`Elector`] is one candidate: it is told what was seen and what came of its requests,
//! and says what to do next. It reads no clock and sends nothing, so a test can put it through anything.
//!
//! | question | module |
//! |---|---|
//! | what does the record say? | `record` |
//! | how long is a leader a leader, and which settings make sense? | `settings` |
//! | may I still write, now? | `right` |
//! | what do I do next? | `elector` |
//!
//! # Why there are never two
//!
//! A leader may write until `sent + renew_deadline`, where `sent` is when it sent the last renewal that is known to
//! have arrived. Another candidate takes over no earlier than `seen + lease_duration`, where `seen` is when it first
//! saw that renewal. Nobody sees what has not been sent, so `sent ≤ seen`; `renew_deadline < lease_duration`; each
//! side measures a span on a clock of its own, so it does not matter what time other clocks show, only that they run
//! about equally fast. With the defaults (10 s, 15 s) one may run a third slower than the other.
//!
//! A renewal that crosses a take-over is refused: both replace the same revision. A renewal without an answer gives
//! nothing until the record is read back and found to be that very renewal; then it counts from when it was sent.
//!
//! # Differences to client-go
//!
//! The record is the same, byte for byte. Three things are stricter here:
//! - The right to write ends by itself. client-go measures from when it began to try, and ends the process.
//! - A record with our own name that we did not write is somebody else's. Two processes started with one identity do not
//!   both lead.
//! - A Lease that was deleted is not taken while the holder last seen may still write, and a leader that finds its Lease
//!   deleted stops until it has made a new one.

mod elector;
mod record;
mod right;
mod settings;

pub use elector::{Elector, Loss, Request, Step};
pub use record::{Record, Revision};
pub use right::{Reading, Right};
pub use settings::{Lock, Problem, Settings, check, flag};
