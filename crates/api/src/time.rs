//! How does the API write a moment? In whole seconds.

use jiff::Timestamp;

/// As `metav1.Time` is written, such as `2025-01-01T00:00:00Z`.
#[must_use]
pub fn text(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
