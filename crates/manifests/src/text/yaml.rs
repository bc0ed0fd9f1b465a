//! What does one document of YAML say?

use super::Document;
use super::block;
use super::split::Piece;

/// Deeper documents are refused.
const DEEPEST: usize = 64;

/// What kubectl prints, fast; everything else by the complete parser.
pub fn read(piece: Piece<'_>) -> Document {
    block::parse(piece.text).map_or_else(|| complete(piece), Ok)
}

/// All of YAML. Whole numbers may be octal (`0644`), as Kubernetes reads them.
pub fn complete(piece: Piece<'_>) -> Document {
    // Files come from whoever calls us; only what could exhaust the stack, or grow by aliases, is limited.
    let budget = serde_saphyr::budget! {
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_total_scalar_bytes: usize::MAX,
        max_depth: DEEPEST - piece.depth,
    };
    let options = serde_saphyr::options! {
        budget: budget,
        with_snippet: false,
        emit_comments: false,
        legacy_octal_numbers: true,
        // Whoever reads the field says what was expected there, with its path.
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
    };
    serde_saphyr::from_str_with_options(piece.text, options).map_err(|error| {
        let message = error.to_string();
        // The parser's advice is for programmers.
        let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
        match error.location() {
            Some(place) => {
                let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                piece.wrong(size(place.line()), size(place.column()), message)
            }
            None => message.split(" at line ").next().unwrap_or_default().to_owned(),
        }
    })
}
