//! An in-memory Kubernetes API server as a tower service.
