//! How Go reads and writes times.
