//! Where do measurements come from?

pub mod metrics_api;
pub mod prometheus;
pub mod recording;
