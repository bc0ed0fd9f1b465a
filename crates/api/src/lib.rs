//! Wire types and their conversion to the views of core.
//!
//! Nothing is here yet: the first custom resource brings the first type.
