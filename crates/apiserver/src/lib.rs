#![doc = include_str!("../README.md")]
#![warn(missing_docs, unreachable_pub)]

// Which module answers which question:
//
// | question | module |
// |---|---|
// | where objects live, what a watcher sees | `store` |
// | which resources there are | `registry` |
// | what a request asks for | `request`, `select` |
// | who answers it | `server` |
// | what a field is, and what a body may hold | `schema` |
// | what a body in protobuf says | `protobuf` |
// | what built-in kinds demand | `builtin` |
// | how a patch changes an object | `patch`, `apply` |
// | what kubectl prints | `table`, `jsonpath` |
// | how failures look | `status` |

mod apply;
mod builtin;
mod ending;
pub mod fault;
#[cfg(any(test, feature = "test-util"))]
#[doc(hidden)]
pub mod fuzz;
mod jsonpath;
pub mod listen;
pub mod metrics;
mod patch;
mod protobuf;
mod quote;
mod registry;
mod request;
mod schema;
mod select;
mod server;
mod status;
mod store;
mod table;
pub mod validation;

pub use server::{ApiServer, Config};
