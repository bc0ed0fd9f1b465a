//! How Go prints a JSON value: some error messages on the wire contain one, and clients see them verbatim.

use serde_json::{Number, Value};

/// `%v`: maps as `map[a:1 b:2]` in order of key, lists as `[1 2]`, strings bare.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => number(n),
        Value::String(s) => s.clone(),
        Value::Array(items) => format!("[{}]", join(items.iter().map(plain))),
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            format!("map[{}]", join(keys.into_iter().map(|k| format!("{k}:{}", plain(&map[k])))))
        }
    }
}

/// `%#v` of a scalar, and of composites as far as they appear in messages.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(s) => format!("{s:?}"),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            let fields: Vec<String> =
                keys.into_iter().map(|k| format!("{k:?}:{}", literal(&map[k]))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => plain(scalar),
    }
}

/// The Go type a decoded JSON value has.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What `encoding/json` calls a JSON value in its own errors.
pub(crate) fn json_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Numbers as Go prints them: whole floats without a fraction, large ones with an exponent.
pub(crate) fn number(n: &Number) -> String {
    match n.as_f64() {
        Some(f) if n.is_f64() => {
            if f == 0.0 || (1e-4..1e21).contains(&f.abs()) {
                format!("{f}")
            } else {
                let text = format!("{f:e}");
                match text.split_once('e') {
                    Some((mantissa, power)) => {
                        let (sign, digits) = power.strip_prefix('-').map_or(('+', power), |rest| ('-', rest));
                        format!("{mantissa}e{sign}{digits:0>2}")
                    }
                    None => text,
                }
            }
        }
        _ => n.to_string(),
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_print_as_go_prints_them() {
        let cases = [
            (json!({"b": 1, "a": [true, null, "x y"]}), "map[a:[true <nil> x y] b:1]", "keys are sorted"),
            (json!(1.0), "1", "a whole float has no fraction"),
            (json!(1e21), "1e+21", "large floats have an exponent of two digits"),
            (json!(0.00001), "1e-05", "so have small ones"),
            (json!(0.5), "0.5", "and the rest is plain"),
        ];
        for (value, want, why) in cases {
            assert_eq!(plain(&value), want, "{why}");
        }
        assert_eq!(literal(&json!("a")), "\"a\"");
        assert_eq!(literal(&json!({"a": [1]})), "map[string]interface {}{\"a\":[]interface {}{1}}");
    }
}
