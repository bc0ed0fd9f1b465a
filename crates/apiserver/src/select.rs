//! Label and field selectors as they stand in a query string.

mod field;
mod label;

pub(crate) use field::Fields;
pub(crate) use label::parse as parse_labels;
