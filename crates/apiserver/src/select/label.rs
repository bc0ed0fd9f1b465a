//! What is wrong with a label selector, in the words of kube-apiserver?

use crate::builtin::names;
use crate::quote::quoted;
use loadline_machinery::label::{Error, Expected, Op, Selector};

/// Reads the string form, for example `app=web,tier in (a, b),!legacy`.
pub(crate) fn parse(text: &str) -> Result<Selector, String> {
    text.parse().map_err(|error| words(&error))
}

fn words(error: &Error) -> String {
    let why = match error {
        Error::Parse { found, expected, .. } => {
            return unexpected(found.as_deref().unwrap_or_default(), *expected);
        }
        Error::Key { key, .. } => {
            format!("<nil>: Invalid value: {}: {}", quoted(key), names::qualified(key).join("; "))
        }
        Error::Value { key, op, values, .. } => bad_values(key, *op, values),
        // Text cannot lead here: the parser gives every operator as many values as it takes.
        Error::Count { .. } | Error::Operator { .. } => error.to_string(),
    };
    format!("unable to parse requirement: {why}")
}

fn unexpected(found: &str, expected: Expected) -> String {
    let inside = "unable to parse requirement: ";
    let (context, expected) = match expected {
        Expected::Condition => ("", ", expected: !, identifier, or 'end of string'"),
        Expected::ConditionAfterComma => ("", ", expected: identifier after ','"),
        Expected::AfterCondition => ("", ", expected: ',' or 'end of string'"),
        Expected::Key | Expected::Value => (inside, ", expected: identifier"),
        Expected::Operator => (inside, ", expected: in, notin, =, ==, !=, gt, lt"),
        Expected::Open => (inside, " expected: '('"),
        Expected::FirstOfSet => (inside, ", expected: ',', ')' or identifier"),
        Expected::NextOfSet => (inside, ", expected: ',', or identifier"),
        Expected::AfterValue => (inside, ", expected: ',' or ')'"),
    };
    format!("{context}found '{found}'{expected}")
}

/// All that is wrong with all values, each once.
fn bad_values(key: &str, op: Op, values: &[String]) -> String {
    let mut all = Vec::new();
    if matches!(op, Op::Gt | Op::Lt) {
        let wrong = values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err());
        all.extend(wrong.map(|(at, value)| {
            let value = quoted(value);
            format!(
                "values[{at}]: Invalid value: {value}: for 'Gt', 'Lt' operators, the value must be an integer"
            )
        }));
    }
    for (at, value) in values.iter().enumerate() {
        let problems = names::label_value(value);
        if !problems.is_empty() {
            let value = quoted(value);
            all.push(format!("values[{at}][{key}]: Invalid value: {value}: {}", problems.join("; ")));
        }
    }
    match all.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_machinery::label::{check_key, check_value};
    use proptest::prelude::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct File {
        parsed: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        r#in: String,
        #[serde(default)]
        err: String,
    }

    #[test]
    fn every_recorded_selector_is_refused_in_the_words_of_kubernetes() {
        let text = include_str!("../../../../vectors/machinery/label-selector.json");
        let file: File = serde_json::from_str(text).unwrap();
        let refused = file.parsed.iter().filter(|case| !case.err.is_empty());
        assert!(refused.clone().count() > 80);
        for case in &file.parsed {
            assert_eq!(parse(&case.r#in).err().unwrap_or_default(), case.err, "{:?}", case.r#in);
        }
    }

    proptest! {
        /// Selectors are checked by one crate and explained by another: they must agree on what is wrong.
        #[test]
        fn what_is_refused_is_explained(text in "[a-cA-C0-9._/é -]{0,12}|[a.]{60,66}|[a.]{250,256}/a") {
            prop_assert_eq!(check_key(&text).is_ok(), names::qualified(&text).is_empty(), "{}", text);
            prop_assert_eq!(check_value(&text).is_ok(), names::label_value(&text).is_empty(), "{}", text);
        }
    }
}
