//! How is a cluster read and written? One way for every component.
//!
//! ```text
//!  access ─► Connection ─► watch ─► Informer (Store) ─► the component's snapshot
//!                │
//!                ├─► Writer: bind, patch, evict, create, delete
//!                └─► Recorder: events
//! ```
//!
//! | question | module |
//! |---|---|
//! | how is the API server reached | [`access`] |
//! | how is one request sent, and what became of it | [`connection`] |
//! | where is a kind of object served | [`resource`] |
//! | what is there, and what changes | [`watch`] |
//! | what is known of a kind, and how current is it | [`store`], [`informer`], [`shared`] |
//! | how is something written | [`mod@write`] |
//! | who is told | [`events`] |
//! | which key is looked at next | [`queue`] |
//! | who of several processes may write | [`lease`], [`leading`] |

pub mod access;
mod backoff;
pub mod connection;
pub mod events;
pub mod informer;
pub mod leading;
pub mod lease;
pub mod pace;
pub mod queue;
pub mod resource;
pub mod shared;
pub mod store;
#[cfg(test)]
pub(crate) mod testing;
pub mod watch;
pub mod write;

pub use access::Access;
pub use connection::{Calls, Cause, Connection, Failure};
pub use events::Recorder;
pub use informer::{Change, Freshness, Informer};
pub use resource::Resource;
pub use shared::SharedStore;
pub use store::Store;
pub use watch::{Event, Watched};
pub use write::Writer;
