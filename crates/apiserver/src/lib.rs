//! An in-memory Kubernetes API server as a tower service.
//!
//! The same [`ApiServer`] serves tests without sockets (hand it to `kube::Client::new`), `loadline up` and kubectl
//! (see [`ApiServer::listen`]). It is held to a real kube-apiserver by a differential suite.
//!
//! | question | module |
//! |---|---|
//! | where objects live, what a watcher sees | [`store`] |
//! | which resources there are | [`registry`] |
//! | what a request asks for | [`request`] |
//! | who answers it | [`server`] |
//! | what a field is, and what a body may hold | [`schema`] |
//! | what a body in protobuf says | [`protobuf`] |
//! | what built-in kinds demand | [`builtin`] |
//! | how a patch changes an object | [`patch`], [`apply`] |
//! | what kubectl prints | [`table`], [`jsonpath`] |
//! | how failures look | [`status`] |
//! | what can go wrong on purpose | [`fault`] |

#![warn(missing_docs)]

pub mod apply;
pub mod builtin;
mod ending;
pub mod fault;
#[cfg(any(test, feature = "test-util"))]
pub mod fuzz;
pub mod jsonpath;
pub mod listen;
pub mod metrics;
pub mod patch;
pub mod protobuf;
mod quote;
pub mod registry;
pub mod request;
pub mod schema;
mod select;
pub mod server;
pub mod status;
pub mod store;
pub mod table;

pub use server::{ApiServer, Config};
