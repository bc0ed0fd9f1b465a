//! What has been asked, how long did answers take, and how much is known?

use super::Members;
use crate::serve::Certificates;
use std::sync::Arc;

/// The estimator's metrics.
#[derive(Debug)]
pub struct Metrics {}

impl Metrics {
    /// Metrics of an estimator for these clusters.
    #[must_use]
    pub fn new(members: &Arc<Members>) -> Arc<Self> {
        let _ = members;
        Arc::new(Self {})
    }

    /// Tells about these certificates, too.
    pub fn watch(&self, certificates: Arc<Certificates>) {
        let _ = (self, certificates);
    }
}
