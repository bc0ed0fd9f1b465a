//! Wire types and their conversion to the views of core.
