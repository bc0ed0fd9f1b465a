//! The body of the fuzz target: what must hold for any bytes.
//!
//! It lives here so that the fuzzer and the ordinary test over the committed corpus run the same code.

use crate::text;

/// A file: read in pieces, by the reader of what kubectl prints where that answers, it says what the complete parser says
/// of each document.
///
/// # Panics
/// When it does not: that is a finding.
pub fn fuzz_yaml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = text::documents(text);
    let complete = text::complete_documents(text);
    assert_eq!(read, complete, "{text:?}");
}
