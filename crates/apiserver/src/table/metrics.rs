//! What do usage samples show?
//!
//! `metrics.k8s.io` has one column per resource found in the first object, so columns depend on the data. A pod's
//! usage is the sum of its containers'.

use super::Grid;
use super::cells::{list, map, name, quantity, text};
use super::columns::NAME;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn grid(objects: &[&Value]) -> Grid {
    let usages: Vec<BTreeMap<&str, String>> = objects.iter().map(|object| usage(object)).collect();
    let Some(first) = usages.first() else {
        return Grid { columns: Vec::new(), rows: Vec::new(), null_when_empty: true };
    };
    let resources: Vec<&str> = first.keys().copied().collect();
    let column = |name: &str, format: &str| json!({ "name": name, "type": "string", "format": format, "description": "", "priority": 0 });
    let mut columns = vec![NAME.to_json()];
    columns.extend(resources.iter().map(|resource| column(resource, "quantity")));
    columns.push(column("Window", "duration"));
    let rows = objects
        .iter()
        .zip(&usages)
        .map(|(object, usage)| {
            let mut cells = vec![name(object)];
            let amount = |resource: &&str| usage.get(resource).cloned().unwrap_or_else(|| "0".to_owned());
            cells.extend(resources.iter().map(|resource| json!(amount(resource))));
            cells.push(json!(text(object, "/window")));
            cells
        })
        .collect();
    Grid { columns, rows, null_when_empty: true }
}

fn usage(object: &Value) -> BTreeMap<&str, String> {
    let own = map(object, "/usage").into_iter().flatten();
    let mut out: BTreeMap<&str, String> =
        own.map(|(resource, amount)| (resource.as_str(), quantity(Some(amount)))).collect();
    for container in list(object, "/containers") {
        for (resource, amount) in map(container, "/usage").into_iter().flatten() {
            let amount = quantity(Some(amount));
            let sum = match out.get(resource.as_str()) {
                Some(before) => add(before, &amount),
                None => amount,
            };
            out.insert(resource, sum);
        }
    }
    out
}

/// Decimal suffixes as powers of ten, counted from nano.
const DECIMAL: [(&str, u32); 10] =
    [("n", 0), ("u", 3), ("m", 6), ("", 9), ("k", 12), ("M", 15), ("G", 18), ("T", 21), ("P", 24), ("E", 27)];
/// Binary suffixes as powers of two.
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
const NANOS: i128 = 1_000_000_000;

/// Adds two whole quantities, keeping the first one's style; what cannot be read leaves the first one as it is.
fn add(a: &str, b: &str) -> String {
    match (nanos(a), nanos(b)) {
        (Some(x), Some(y)) => x.checked_add(y).map_or_else(|| a.to_owned(), |sum| print(sum, is_binary(a))),
        _ => a.to_owned(),
    }
}

fn is_binary(quantity: &str) -> bool {
    quantity.ends_with('i')
}

fn nanos(quantity: &str) -> Option<i128> {
    let digits = quantity.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &quantity[digits.len()..];
    let value: i128 = digits.parse().ok()?;
    let decimal = DECIMAL.iter().find(|(name, _)| *name == suffix).map(|(_, power)| 10_i128.pow(*power));
    let binary = BINARY.iter().find(|(name, _)| *name == suffix).map(|(_, power)| NANOS << power);
    value.checked_mul(decimal.or(binary)?)
}

/// The largest suffix that leaves a whole number.
fn print(nanos: i128, binary: bool) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    if binary && nanos % NANOS == 0 {
        let whole = nanos / NANOS;
        let fitting = BINARY.iter().rev().find(|(_, power)| whole % (1_i128 << power) == 0);
        return match fitting {
            Some((suffix, power)) => format!("{}{suffix}", whole >> power),
            None => whole.to_string(),
        };
    }
    let fitting = DECIMAL.iter().rev().find(|(_, power)| nanos % 10_i128.pow(*power) == 0);
    match fitting {
        Some((suffix, power)) => format!("{}{suffix}", nanos / 10_i128.pow(*power)),
        None => format!("{nanos}n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_the_style_of_the_first_quantity() {
        for (a, b, sum, reason) in [
            ("1500000n", "500000n", "2m", "the largest suffix that fits"),
            ("1", "1m", "1001m", "units mix"),
            ("1024Ki", "1024Ki", "2Mi", "binary stays binary"),
            ("512Ki", "1", "524289", "binary without a fitting suffix"),
            ("0", "0", "0", "nothing"),
            ("x", "1", "x", "unreadable: leave it"),
            ("1", "1.5", "1", "fractions do not come from a meter"),
        ] {
            assert_eq!(add(a, b), sum, "{a} + {b}: {reason}");
        }
    }
}
