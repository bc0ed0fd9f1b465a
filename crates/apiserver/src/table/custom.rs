//! Which columns does a custom resource have, and what is in them?
//!
//! The first column is the name, the others come from `additionalPrinterColumns`: a `JSONPath` of which only the
//! first result is shown, rendered by the column's type.

use super::columns::Column;
use super::{Grid, age};
use crate::jsonpath::Path;
use jiff::Timestamp;
use serde_json::{Value, json};

/// One entry of a CRD version's `additionalPrinterColumns`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CustomColumn {
    /// Header.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: String,
    /// `OpenAPI` format, passed on to clients.
    pub format: String,
    /// What the column shows; made from the path when empty.
    pub description: String,
    /// Above zero: only shown in wide output.
    pub priority: i64,
    /// Where the value is, without braces: `.status.phase`.
    pub path: String,
}

impl CustomColumn {
    /// The columns of one entry of a CRD's `spec.versions`; a lone age when it names none.
    #[must_use]
    pub(crate) fn of_version(version: &Value) -> Vec<Self> {
        let declared = version.get("additionalPrinterColumns").and_then(Value::as_array);
        match declared {
            Some(columns) if !columns.is_empty() => columns.iter().map(Self::read).collect(),
            _ => vec![Self {
                name: "Age".to_owned(),
                kind: "date".to_owned(),
                description: "Time since creation.".to_owned(),
                path: ".metadata.creationTimestamp".to_owned(),
                ..Self::default()
            }],
        }
    }

    fn read(column: &Value) -> Self {
        let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            path: text("jsonPath"),
        }
    }

    fn to_json(&self) -> Value {
        let description = if self.description.is_empty() {
            format!("Value at {} of the object.", self.path)
        } else {
            self.description.clone()
        };
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "description": description,
            "priority": self.priority,
        })
    }
}

/// Columns after one with an unreadable path are left out, together with it: clients get what could be understood.
pub(super) fn grid(custom: &[CustomColumn], objects: &[&Value], now: Timestamp) -> Grid {
    let usable: Vec<(&CustomColumn, Path)> =
        custom.iter().map_while(|column| Path::parse(&column.path).ok().map(|path| (column, path))).collect();
    let mut columns = vec![Column::name("Name of the object.").to_json()];
    columns.extend(usable.iter().map(|(column, _)| column.to_json()));
    let rows = objects
        .iter()
        .map(|object| {
            let mut cells = vec![super::cells::name(object)];
            cells.extend(usable.iter().map(|(column, path)| cell(column, path, object, now)));
            cells
        })
        .collect();
    Grid { columns, rows, null_when_empty: false }
}

fn cell(column: &CustomColumn, path: &Path, object: &Value, now: Timestamp) -> Value {
    let Ok(found) = path.find(object) else { return Value::Null };
    let Some(value) = found.first() else { return Value::Null };
    match column.kind.as_str() {
        "string" => Value::String(go_text(value)),
        "integer" => integer(value),
        "number" => number(value),
        "boolean" if value.is_boolean() => (*value).clone(),
        "date" => match value.as_str() {
            Some(text) => Value::String(age::since_text(text, now)),
            None => Value::Null,
        },
        _ => Value::Null,
    }
}

/// A number in Go is an int64 when it is written like one and fits, otherwise a float.
fn integer(value: &Value) -> Value {
    match (value.as_i64(), value.as_f64()) {
        (Some(int), _) => json!(int),
        #[expect(clippy::cast_possible_truncation, reason = "fractions are cut off, as upstream does")]
        (None, Some(float)) => json!(float as i64),
        (None, None) => Value::Null,
    }
}

/// Floats without a fraction are written without one, as Go's JSON does.
fn number(value: &Value) -> Value {
    match (value.as_i64(), value.as_f64()) {
        (Some(int), _) => json!(int),
        (None, Some(float)) if float.fract() == 0.0 && float.abs() < 9e15 => integer(value),
        (None, Some(float)) => json!(float),
        (None, None) => Value::Null,
    }
}

/// What Go prints for a decoded JSON value: strings bare, composites as JSON with HTML characters escaped.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => int.to_string(),
            (None, Some(float)) => go_float(float),
            (None, None) => number.to_string(),
        },
        Value::Bool(flag) => flag.to_string(),
        composite => composite
            .to_string()
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029"),
    }
}

/// Go's `%v` of a float64: the shortest text that reads back the same, with an exponent below 1e-4 and from 1e21.
fn go_float(float: f64) -> String {
    if float == 0.0 {
        return if float.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if (1e-4..1e21).contains(&float.abs()) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_go_prints_them() {
        for (float, text) in [
            (0.5, "0.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (-2.5e-10, "-2.5e-10"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(go_float(float), text);
        }
    }
}
