//! What does an expression of Prometheus ask for? Metrics, the labels it matches them by, the labels it groups by. Whether the
//! rest of it makes sense is left to Prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::str::Chars;

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Metrics, with the labels they are matched by.
    pub metrics: BTreeMap<String, BTreeSet<String>>,
    /// Labels that results are grouped by.
    pub grouped: BTreeSet<String>,
}

const WORDS: [&str; 6] = ["and", "or", "unless", "bool", "offset", "atan2"];
/// Functions whose labels may stand before what they are of.
const AGGREGATORS: [&str; 9] = ["sum", "min", "max", "avg", "count", "group", "topk", "bottomk", "quantile"];
const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

pub fn asked(expression: &str) -> Asked {
    let mut out = Asked::default();
    let mut rest = expression.chars().peekable();
    while let Some(&next) = rest.peek() {
        match next {
            '"' => skip(&mut rest, '"'),
            '[' => skip(&mut rest, ']'),
            // Numbers, with units that look like names.
            '0'..='9' => drop(word(&mut rest)),
            'a'..='z' | 'A'..='Z' | '_' => {
                let name = word(&mut rest);
                while rest.next_if(|c| c.is_whitespace()).is_some() {}
                if GROUPING.contains(&name.as_str()) {
                    rest.next_if_eq(&'(');
                    let list: String = std::iter::from_fn(|| rest.next_if(|c| *c != ')')).collect();
                    out.grouped.extend(
                        list.split(',').map(|label| label.trim().to_owned()).filter(|l| !l.is_empty()),
                    );
                } else if rest.peek() != Some(&'(')
                    && !WORDS.contains(&name.as_str())
                    && !AGGREGATORS.contains(&name.as_str())
                {
                    let labels =
                        if rest.next_if_eq(&'{').is_some() { matched(&mut rest) } else { BTreeSet::new() };
                    out.metrics.entry(name).or_default().extend(labels);
                }
            }
            _ => drop(rest.next()),
        }
    }
    out
}

fn word(rest: &mut Peekable<Chars<'_>>) -> String {
    std::iter::from_fn(|| rest.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.')))
        .collect()
}

fn skip(rest: &mut Peekable<Chars<'_>>, end: char) {
    rest.next();
    rest.by_ref().find(|c| *c == end);
}

/// Names of the labels within braces.
fn matched(rest: &mut Peekable<Chars<'_>>) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    while let Some(&next) = rest.peek() {
        match next {
            '}' => break,
            '"' => skip(rest, '"'),
            'a'..='z' | 'A'..='Z' | '_' => drop(out.insert(word(rest))),
            _ => drop(rest.next()),
        }
    }
    out
}

#[test]
fn metrics_labels_and_groups_are_told_apart() {
    let expression =
        r#"60 * sum by (a, le) (rate(one_total{b=~"x|y{",c!=""}[5m])) / on (d) two > 0.1 or three offset 5m"#;
    let asked = asked(expression);
    let metrics: Vec<(&str, String)> = asked
        .metrics
        .iter()
        .map(|(name, labels)| (name.as_str(), labels.iter().cloned().collect::<Vec<_>>().join(" ")))
        .collect();
    assert_eq!(metrics, [("one_total", "b c".to_owned()), ("three", String::new()), ("two", String::new())]);
    assert_eq!(asked.grouped, ["a", "d", "le"].map(str::to_owned).into());
}
