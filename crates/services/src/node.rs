//! How is a node reached from within, past the API server?
//!
//! | question | module |
//! |---|---|
//! | what does everything on it use, and how is it held back | [`local`] |
//! | how are the kernel's files read and written | [`files`] |
//! | which of them stay open from one look to the next | `kept` |
//! | how is its container runtime asked for something | [`cri`] |

pub mod cri;
pub mod files;
mod kept;
pub mod local;
mod pods;

pub use cri::Runtime;
pub use local::Local;
