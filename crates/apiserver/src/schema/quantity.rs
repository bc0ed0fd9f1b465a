//! How Kubernetes writes an amount: reading any spelling, writing the canonical one.
