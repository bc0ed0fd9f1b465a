//! How many replicas would really fit in a cluster? A gRPC server that answers for one or many clusters.

pub mod feed;
pub mod health;
pub mod load;
mod member;
pub mod metrics;
pub mod server;

pub use member::{Known, Member, Members, Status};
