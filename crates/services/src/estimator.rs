//! How many replicas would really fit in a cluster? A gRPC server that answers for one or many clusters.

mod member;

pub use member::{Known, Member, Members, Status};
