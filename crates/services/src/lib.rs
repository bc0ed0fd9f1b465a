//! The long-running components: watches, servers, writers.
