//! What does the text of a document say, as YAML or as JSON?

use super::block;
use super::json::Once;
use super::split::Piece;
use serde_json::Value;

/// JSON that cannot be read is tried as YAML, of which it may be another form, up to this size.
const SECOND_TRY: usize = 1 << 20;

/// One document of YAML.
pub fn one(piece: Piece<'_>) -> Vec<Result<Value, String>> {
    vec![match block::parse(piece.text) {
        Some(value) => Ok(value),
        None => complete(piece),
    }]
}

/// JSON values one after another.
pub fn json(piece: Piece<'_>) -> Vec<Result<Value, String>> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(piece.text).into_iter::<Once>() {
        match value {
            Ok(Once(value)) => values.push(Ok(value)),
            Err(error) => {
                if piece.text.len() <= SECOND_TRY
                    && let Ok(value) = complete(piece)
                {
                    return vec![Ok(value)];
                }
                let what = error.to_string();
                let what = what.split(" at line ").next().unwrap_or_default();
                values.push(Err(at(piece, error.line(), error.column(), what)));
                break;
            }
        }
    }
    values
}

/// All of YAML. Whole numbers may be octal (`0644`), as Kubernetes reads them.
pub(super) fn complete(piece: Piece<'_>) -> Result<Value, String> {
    // Files come from whoever calls us; only what could exhaust the stack, or grow by aliases, is limited.
    let budget = serde_saphyr::budget! {
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_total_scalar_bytes: usize::MAX,
        max_depth: 64,
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
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        // The parser's advice is for programmers.
        let what = what.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
        match error.location() {
            Some(place) => {
                let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                at(piece, size(place.line()), size(place.column()), what)
            }
            None => what.to_owned(),
        }
    })
}

fn at(piece: Piece<'_>, line: usize, column: usize, what: &str) -> String {
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("line {}, column {column}: {what}", line.saturating_add(piece.line - 1))
}
