//! An in-memory Kubernetes API server as a tower service.

pub mod apply;
pub mod builtin;
pub mod fault;
pub mod jsonpath;
pub mod patch;
pub mod schema;
pub mod status;
pub mod store;
pub mod table;
