//! Simulated nodes, workloads and load.
