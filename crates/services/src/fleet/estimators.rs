//! How many replicas fit in each member? Estimators, asked in parallel over gRPC.
