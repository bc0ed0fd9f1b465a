//! Test support: throw-away control planes made of real parts.
