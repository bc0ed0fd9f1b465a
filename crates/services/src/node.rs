//! How is a node reached from within, past the API server?
//!
//! | question | module |
//! |---|---|
//! | how is its container runtime asked for something | [`cri`] |

pub mod cri;

pub use cri::Runtime;
